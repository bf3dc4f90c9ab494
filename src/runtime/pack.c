/* Bindings: weights laid out as the recipes of an image say.
 *
 * Every parameter is read once, into a temporary, and its elements are placed in all the recipes that use it;
 * so at most one parameter is held twice. */
#include "runtime/internal.h"

#include <string.h>

/* One parameter being placed into one recipe. */
struct placing {
	const struct image_recipe *recipe;
	const struct tensor_info *param;
	int which;			/* the parameter's number */
	int64_t pitch[TENSOR_MAX_RANK]; /* elements between neighbours on an axis of the parameter */
	int64_t inner[IMAGE_PACK_DIMS]; /* elements of the packed buffer between neighbours on a dimension */
	int last_source;		/* the last dimension that changes the source, -1 = none */
	const float *from;
	float *to;
};

/* A position in the walk over a recipe's dimensions. */
struct place {
	int64_t source, to;
	int64_t index[TENSOR_MAX_RANK];
};

static bool is_source(const struct placing *p, int64_t i)
{
	return i >= 0 && i < p->recipe->sources && p->recipe->source[i].param == p->which;
}

/* Where the element at a place lies in the parameter, or -1 when the place is padding. */
static int64_t element_at(const struct placing *p, const struct place *at)
{
	const struct image_pack_source *s = &p->recipe->source[at->source];
	int64_t element = 0;
	for (int a = 0; a < p->param->rank; a++) {
		int64_t i = s->begin[a] + at->index[a];
		if (i < 0 || i >= s->end[a] || i >= p->param->shape[a])
			return -1;
		element += i * p->pitch[a];
	}
	return element;
}

static void place_one(const struct placing *p, const struct place *at)
{
	int64_t element = element_at(p, at);
	if (element >= 0)
		p->to[at->to] = p->from[element];
}

/* How many indices of a dimension, from 0 on, stay inside the source; `at` is its first place. */
static int64_t inside(const struct placing *p, const struct place *at, const struct image_pack_dim *d)
{
	const struct image_pack_source *s = &p->recipe->source[at->source];
	int64_t end = s->end[d->axis] < p->param->shape[d->axis] ? s->end[d->axis] : p->param->shape[d->axis];
	int64_t first = s->begin[d->axis] + at->index[d->axis];
	int64_t n = (end - first + d->stride - 1) / d->stride;
	return n < d->extent ? n : d->extent;
}

/* The innermost dimension in one go: a strided copy of what is not padding. */
static void place_row(const struct placing *p, const struct place *at, const struct image_pack_dim *d)
{
	int64_t element = element_at(p, at);
	if (element < 0)
		return;
	int64_t n = inside(p, at, d), pitch = p->pitch[d->axis] * d->stride;
	const float *from = p->from + element;
	float *to = p->to + at->to;
	if (pitch == 1)
		memcpy(to, from, n * sizeof *to);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i * pitch];
}

/* Recursion is as deep as a recipe has dimensions.  A source is known after the last dimension that changes
 * it; what belongs to other parameters is then left. */
static void place_dims(const struct placing *p, int dim, struct place at)
{
	const struct image_pack_dim *d = &p->recipe->dim[dim];
	if (dim > p->last_source && !is_source(p, at.source))
		return;
	if (dim == p->recipe->dims) {
		place_one(p, &at);
		return;
	}
	if (dim == p->recipe->dims - 1 && d->axis >= 0 && d->axis < p->param->rank && d->stride > 0) {
		place_row(p, &at, d);
		return;
	}
	for (int64_t i = 0; i < d->extent; i++) {
		place_dims(p, dim + 1, at);
		at.to += p->inner[dim];
		if (d->axis == IMAGE_PACK_SOURCE)
			at.source += d->stride;
		else
			at.index[d->axis] += d->stride;
	}
}

/* Elements of a packed buffer, -1 when their bytes cannot be counted. */
static int64_t packed_elements(const struct image_recipe *r)
{
	int64_t n = sizeof(float);
	for (int d = 0; d < r->dims; d++)
		if (__builtin_mul_overflow(n, r->dim[d].extent, &n))
			return -1;
	return n / (int64_t)sizeof(float);
}

static bool uses(const struct image_recipe *r, int param)
{
	for (int i = 0; i < r->sources; i++)
		if (r->source[i].param == param)
			return true;
	return false;
}

static void place_param(const struct image *image, const struct image_recipe *r, int param, const float *from,
			float *to)
{
	struct placing p = {r, &image->param[param], param, .last_source = -1, .from = from, .to = to};
	int64_t pitch = 1, inner = 1;
	for (int a = p.param->rank - 1; a >= 0; a--) {
		p.pitch[a] = pitch;
		pitch *= p.param->shape[a];
	}
	for (int d = r->dims - 1; d >= 0; d--) {
		p.inner[d] = inner;
		inner *= r->dim[d].extent;
		if (p.last_source < 0 && r->dim[d].axis == IMAGE_PACK_SOURCE)
			p.last_source = d;
	}
	place_dims(&p, 0, (struct place){0});
}

/* Reads a parameter and places it wherever it is used. */
static bool bind_param(struct rt_binding *b, int param, const struct rt_source *source, float *space,
		       struct diags *diags)
{
	if (!source->read(source->context, param, 0, tensor_elements(&b->image->param[param]), space, diags))
		return false;
	for (int i = 0; i < b->image->recipes; i++)
		if (uses(&b->image->recipe[i], param))
			place_param(b->image, &b->image->recipe[i], param, space, b->packed[i]);
	return true;
}

static bool param_used(const struct image *image, int param)
{
	for (int i = 0; i < image->recipes; i++)
		if (uses(&image->recipe[i], param))
			return true;
	return false;
}

/* Bytes of the greatest parameter that any recipe uses, -1 when they cannot be counted. */
static int64_t greatest_param(const struct image *image)
{
	int64_t greatest = 0;
	for (int i = 0; i < image->params; i++) {
		int64_t bytes = sizeof(float);
		for (int a = 0; a < image->param[i].rank; a++)
			if (__builtin_mul_overflow(bytes, image->param[i].shape[a], &bytes))
				return -1;
		if (bytes > greatest && param_used(image, i))
			greatest = bytes;
	}
	return greatest;
}

static bool take_packed(struct rt_binding *b)
{
	const struct allocator *a = b->allocator;
	int recipes = b->image->recipes;
	b->packed = a->resize(a->context, NULL, 0, (recipes + 1) * sizeof *b->packed);
	if (!b->packed)
		return false;
	memset(b->packed, 0, (recipes + 1) * sizeof *b->packed);
	for (int i = 0; i < recipes; i++) {
		int64_t n = packed_elements(&b->image->recipe[i]);
		b->packed[i] = n < 0 ? NULL : rt_take(a, n * sizeof(float));
		if (!b->packed[i])
			return false;
	}
	return true;
}

bool rt_bind(struct rt_binding *b, const struct allocator *allocator, const struct image *image,
	     const struct rt_source *source, struct diags *diags)
{
	*b = (struct rt_binding){allocator, image, NULL};
	int64_t bytes = greatest_param(image);
	float *space = bytes < 0 ? NULL : rt_take(allocator, bytes);
	bool ok = space && take_packed(b);
	if (!ok)
		rt_out_of_memory(diags, "packed weights");
	for (int i = 0; ok && i < image->params; i++)
		ok = !param_used(image, i) || bind_param(b, i, source, space, diags);
	rt_give(allocator, space);
	if (!ok)
		rt_binding_free(b);
	return ok;
}

void rt_binding_free(struct rt_binding *b)
{
	const struct allocator *a = b->allocator;
	if (!b->packed)
		return;
	for (int i = 0; i < b->image->recipes; i++)
		rt_give(a, b->packed[i]);
	a->resize(a->context, b->packed, (b->image->recipes + 1) * sizeof *b->packed, 0);
	b->packed = NULL;
}
