/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Packing: copies the elements of parameters to where the recipes of an image specify.  Each element of a
 * packed buffer is written once: only padding is cleared. */
#include "runtime/shared.h"

#include <string.h>

/* Rows of a parameter being packed by one recipe.  The order of the dimensions is free, since no element is
 * written twice: those that choose the source come first, so that sources of other parameters are skipped
 * early, and the last two go along different axes where possible, so that they are two plain loops. */
struct packing {
	const struct image_recipe *recipe;
	const struct tensor_info *param;
	int which; /* the parameter's number */
	int order[IMAGE_PACK_DIMS];
	int choices;			/* how many of them choose the source */
	bool plane;			/* the last two go along different axes */
	int64_t pitch[TENSOR_MAX_RANK]; /* elements between neighbours on an axis of the parameter */
	int64_t inner[IMAGE_PACK_DIMS]; /* elements of the packed buffer between neighbours on a dimension */
	int64_t first, end; /* the rows of the parameter that are in memory, counted on its first axis */
	const char *from;
	char *to;
	int bytes; /* of an element */
};

/* A position in the walk over a recipe's dimensions. */
struct position {
	int64_t source, to;
	int64_t index[TENSOR_MAX_RANK];
};

struct range {
	int64_t begin, end;
};

static int64_t min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool is_source(const struct packing *p, int64_t i)
{
	return i >= 0 && i < p->recipe->sources && p->recipe->source[i].param == p->which;
}

/* The indices of an axis that a source may read: neither padding nor rows that are not in memory. */
static struct range axis_range(const struct packing *p, const struct image_pack_source *s, int axis)
{
	struct range r = {0, min_of(s->end[axis], p->param->shape[axis])};
	if (axis == 0)
		r = (struct range){p->first, min_of(r.end, p->end)};
	return r;
}

/* The offset of the element at a position among the rows in memory, or -1 when it is not there. */
static int64_t element_at(const struct packing *p, const struct position *at)
{
	const struct image_pack_source *s = &p->recipe->source[at->source];
	int64_t element = p->param->rank ? -p->first * p->pitch[0] : 0;
	for (int a = 0; a < p->param->rank; a++) {
		int64_t i = s->begin[a] + at->index[a];
		struct range r = axis_range(p, s, a);
		if (i < r.begin || i >= r.end)
			return -1;
		element += i * p->pitch[a];
	}
	return element;
}

static void pack_element(const struct packing *p, const struct position *at)
{
	int64_t element = element_at(p, at);
	if (element >= 0)
		memcpy(p->to + at->to * p->bytes, p->from + element * p->bytes, p->bytes);
}

static int64_t steps_to(int64_t distance, int64_t stride)
{
	return distance <= 0 ? 0 : (distance + stride - 1) / stride;
}

/* The indices of a dimension at which its axis is in memory. */
static struct range indices_inside(const struct packing *p, const struct position *at,
				   const struct image_pack_dim *d)
{
	const struct image_pack_source *s = &p->recipe->source[at->source];
	int64_t first = s->begin[d->axis] + at->index[d->axis];
	struct range r = axis_range(p, s, d->axis);
	return (struct range){steps_to(r.begin - first, d->stride),
			      min_of(d->extent, steps_to(r.end - first, d->stride))};
}

static void advance_position(const struct packing *p, struct position *at, int dim, int64_t n)
{
	const struct image_pack_dim *d = &p->recipe->dim[dim];
	at->to += n * p->inner[dim];
	if (d->axis == IMAGE_PACK_SOURCE)
		at->source += n * d->stride;
	else
		at->index[d->axis] += n * d->stride;
}

/* Packs along the last dimension, or the last two, as plain loops. */
static void pack_plane(const struct packing *p, struct position at, const int *dims, int n)
{
	const struct image_pack_dim *outer = &p->recipe->dim[dims[0]], *inner = &p->recipe->dim[dims[n - 1]];
	struct range rows = n == 2 ? indices_inside(p, &at, outer) : (struct range){0, 1};
	struct range columns = indices_inside(p, &at, inner);
	if (rows.begin >= rows.end || columns.begin >= columns.end)
		return;
	if (n == 2)
		advance_position(p, &at, dims[0], rows.begin);
	advance_position(p, &at, dims[n - 1], columns.begin);
	int64_t element = element_at(p, &at);
	if (element < 0)
		return;
	rt_copy_plane(&(struct rt_plane){
	    .bytes = p->bytes,
	    .rows = rows.end - rows.begin,
	    .columns = columns.end - columns.begin,
	    .to = p->to + at.to * p->bytes,
	    .to_down = p->inner[dims[0]],
	    .to_step = p->inner[dims[n - 1]],
	    .from = p->from + element * p->bytes,
	    .from_down = n == 2 ? p->pitch[outer->axis] * outer->stride : 0,
	    .from_step = p->pitch[inner->axis] * inner->stride,
	});
}

static bool is_plain(const struct packing *p, int dim)
{
	const struct image_pack_dim *d = &p->recipe->dim[dim];
	return d->axis >= 0 && d->axis < p->param->rank && d->stride > 0;
}

/* Recursion is as deep as a recipe has dimensions.  The source is known after the last dimension that chooses
 * it. */
static void pack_dims(const struct packing *p, int depth, struct position at)
{
	int left = p->recipe->dims - depth, dim = left ? p->order[depth] : 0;
	if (depth == p->choices && !is_source(p, at.source))
		return;
	if (!left) {
		pack_element(p, &at);
	} else if (depth >= p->choices && left == 1 + p->plane &&
		   is_plain(p, p->order[p->recipe->dims - 1])) {
		pack_plane(p, at, &p->order[depth], left);
	} else {
		for (int64_t i = 0; i < p->recipe->dim[dim].extent; i++, advance_position(p, &at, dim, 1))
			pack_dims(p, depth + 1, at);
	}
}

/* --- the order of the dimensions --- */

/* The longest dimension that can make a plane with the last; -1 = none. */
static int find_partner(const struct packing *p, int last)
{
	const struct image_pack_dim *d = p->recipe->dim;
	int best = -1;
	for (int i = 0; i < last && is_plain(p, last); i++)
		if (is_plain(p, i) && d[i].axis != d[last].axis &&
		    (best < 0 || d[i].extent >= d[best].extent))
			best = i;
	return best;
}

static void choose_order(struct packing *p)
{
	const struct image_pack_dim *d = p->recipe->dim;
	int n = 0, last = p->recipe->dims - 1;
	while (last >= 0 && d[last].axis == IMAGE_PACK_SOURCE)
		last--;
	int partner = find_partner(p, last);
	for (int i = 0; i < p->recipe->dims; i++)
		if (d[i].axis == IMAGE_PACK_SOURCE)
			p->order[n++] = i;
	p->choices = n;
	for (int i = 0; i < last; i++)
		if (d[i].axis != IMAGE_PACK_SOURCE && i != partner)
			p->order[n++] = i;
	p->plane = partner >= 0;
	if (p->plane)
		p->order[n++] = partner;
	if (last >= 0)
		p->order[n] = last;
}

static struct packing packing_of(const struct image *image, const struct image_recipe *r,
				 const struct rt_param_rows *rows, void *to)
{
	struct packing p = {.recipe = r,
			    .param = image_param(image, rows->param),
			    .which = rows->param,
			    .first = rows->first,
			    .end = rows->first + rows->rows,
			    .from = rows->from,
			    .to = to,
			    .bytes = dtype_traits_of(r->dtype)->bytes};
	int64_t pitch = 1, inner = 1;
	for (int a = p.param->rank - 1; a >= 0; a--) {
		p.pitch[a] = pitch;
		pitch *= rows->packed_by ? rows->packed_by->dim[a].extent : p.param->shape[a];
	}
	for (int d = r->dims - 1; d >= 0; d--) {
		p.inner[d] = inner;
		inner *= r->dim[d].extent;
	}
	choose_order(&p);
	return p;
}

/* --- padding --- */

/* The largest index of an axis that a recipe's dimensions add up to, one of them excepted; `block` is the index of the
 * outermost dimension, -1 = any. */
static int64_t last_index(const struct image_recipe *r, int axis, int but, int64_t block)
{
	int64_t last = 0;
	for (int d = 0; d < r->dims; d++)
		if (r->dim[d].axis == axis && d != but)
			last += (d || block < 0 ? r->dim[d].extent - 1 : block) * r->dim[d].stride;
	return last;
}

/* Whether the first `columns` elements of each row along the last dimension of a packed buffer are filled. */
static bool is_covered(const struct image *image, const struct image_recipe *r, int64_t block, int64_t columns)
{
	int last = r->dims - 1;
	for (int i = 0; i < r->sources; i++) {
		const struct image_pack_source *s = &r->source[i];
		const struct tensor_info *t = image_param(image, s->param);
		for (int a = 0; a < t->rank; a++) {
			int64_t reach = s->begin[a] + last_index(r, a, last, block);
			if (r->dim[last].axis == a)
				reach += (columns - 1) * r->dim[last].stride;
			if (reach >= min_of(s->end[a], t->shape[a]))
				return false;
		}
	}
	return last_index(r, IMAGE_PACK_SOURCE, -1, block) < r->sources;
}

/* How many elements at the start of each row along the last dimension are filled, when the rest of the rows
 * is all the padding that there is; 0 otherwise. */
static int64_t covered_columns(const struct image *image, const struct image_recipe *r, int64_t block)
{
	int inner = r->dims - 1;
	if (r->dims < 1 || r->sources < 1 || (!inner && block >= 0))
		return 0;
	const struct image_pack_dim *last = &r->dim[inner];
	if (last->axis == IMAGE_PACK_SOURCE || last->stride < 1)
		return 0;
	const struct image_pack_source *s = &r->source[0];
	int64_t first = block < 0 ? 0 : last_index(r, last->axis, inner, block);
	int64_t n = min_of(last->extent, steps_to(s->end[last->axis] - s->begin[last->axis] - first, last->stride));
	return n > 0 && is_covered(image, r, block, n) ? n : 0;
}

/* Clears all of each row but its first elements. */
static void clear_rows(const struct image_recipe *r, char *to, int64_t elements, int64_t row, int64_t covered)
{
	int bytes = dtype_traits_of(r->dtype)->bytes;
	for (int64_t i = 0; covered < row && i < elements; i += row)
		memset(to + (i + covered) * bytes, 0, (row - covered) * bytes);
}

int64_t rt_blocks(const struct image_recipe *r)
{
	return r->dims ? r->dim[0].extent : 1;
}

/* Block by block unless the same columns are filled in all of them: mostly only the last block has padding. */
void rt_clear_padding(const struct image *image, const struct image_recipe *r, void *to, int64_t first, int64_t blocks)
{
	int64_t covered = covered_columns(image, r, -1), row = r->dims ? r->dim[r->dims - 1].extent : 1;
	int64_t block = image_recipe_elements(r) / rt_blocks(r), bytes = block * dtype_traits_of(r->dtype)->bytes;
	if (covered) {
		clear_rows(r, to, blocks * block, row, covered);
		return;
	}
	for (int64_t i = 0; i < blocks; i++) {
		covered = covered_columns(image, r, first + i);
		clear_rows(r, (char *)to + i * bytes, block, covered ? row : block, covered);
	}
}

/* --- rows of parameters --- */

/* Whether the buffer is the parameter itself: as many elements, and each dimension with the same stride. */
static bool is_plain_copy(const struct image *image, const struct image_recipe *r, int param)
{
	if (r->sources != 1 || r->source->param != param ||
	    image_recipe_elements(r) != tensor_elements(image_param(image, param)))
		return false;
	struct packing p = packing_of(image, r, &(struct rt_param_rows){.param = param}, NULL);
	for (int a = 0; a < p.param->rank; a++)
		if (r->source->begin[a] || r->source->end[a] < p.param->shape[a] ||
		    last_index(r, a, -1, -1) >= p.param->shape[a])
			return false;
	for (int d = 0; d < r->dims; d++) {
		const struct image_pack_dim *dim = &r->dim[d];
		int64_t step;
		if (dim->axis < 0 || dim->axis >= p.param->rank ||
		    __builtin_mul_overflow(p.pitch[dim->axis], dim->stride, &step) || p.inner[d] != step)
			return false;
	}
	return true;
}

int rt_find_plain_recipe(const struct image *image, int param)
{
	for (int i = 0; i < image->recipes; i++)
		if (is_plain_copy(image, &image->recipe[i], param))
			return i;
	return -1;
}

bool rt_recipe_uses(const struct image_recipe *r, int param)
{
	for (int i = 0; i < r->sources; i++)
		if (r->source[i].param == param)
			return true;
	return false;
}

void rt_pack_rows(const struct image *image, void *const *packed, const struct rt_param_rows *rows)
{
	for (int i = 0; i < image->recipes; i++) {
		const struct image_recipe *r = &image->recipe[i];
		if (r == rows->packed_by || i == rows->held || !rt_recipe_uses(r, rows->param))
			continue;
		struct packing p = packing_of(image, r, rows, packed[i]);
		pack_dims(&p, 0, (struct position){0});
	}
}
