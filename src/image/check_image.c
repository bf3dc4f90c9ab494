/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checks what must hold between the tables of an image, so that its users need not. */
#include "image/image_file.h"

#include "image/frames.h"

#include <stdio.h>
#include <string.h>

/* A check in progress, and the first problem; NULL = none. */
struct checking {
	const struct image *image;
	const char *problem;
	const char *name; /* of the thing that has the problem */
};

static bool refuse_image(struct checking *c, const char *name, const char *problem)
{
	c->name = name;
	c->problem = problem;
	return false;
}

/* False when the bytes do not fit 64 bits, or an extent is 0, which no model has: loops over the other
 * extents could take long for nothing. */
static bool elements_of(int rank, const int64_t *shape, int64_t *elements)
{
	*elements = sizeof(int64_t);
	for (int d = 0; d < rank; d++)
		if (shape[d] < 1 || __builtin_mul_overflow(*elements, shape[d], elements))
			return false;
	*elements /= (int64_t)sizeof(int64_t);
	return true;
}

static bool has_elements(int rank, const int64_t *shape, int64_t wanted)
{
	int64_t elements;
	return elements_of(rank, shape, &elements) && elements == wanted;
}

/* --- inputs and parameters --- */

static bool check_input(struct checking *c, int i)
{
	const struct image_input *in = &c->image->input[i];
	bool ok = in->token ? !in->elements && !in->rank : has_elements(in->rank, in->shape, in->elements);
	if (in->within > 0 && (in->token || dtype_traits_of(in->dtype)->kind != DTYPE_FLOAT))
		return refuse_image(c, in->name, "an input that is bounded does not have floats");
	if (in->on_edge && in->at_leaf)
		return refuse_image(c, in->name, "leaves have no edges to read of");
	return ok || refuse_image(c, in->name, "the shape of an input does not have its elements");
}

static bool check_param(struct checking *c, int i)
{
	const struct tensor_info *t = &c->image->param[i];
	int64_t elements;
	return elements_of(t->rank, t->shape, &elements) ||
	       refuse_image(c, t->name, "a parameter is empty, or its size does not fit 64 bits");
}

/* --- recipes --- */

bool image_walks_within(const struct image_recipe *r, int axis, int64_t limit)
{
	int64_t last = 0, reach;
	for (const struct image_pack_dim *d = r->dim; d < r->dim + r->dims; d++) {
		if (d->axis != axis || !d->extent)
			continue;
		if (d->stride < 0 || __builtin_mul_overflow(d->extent - 1, d->stride, &reach) ||
		    __builtin_add_overflow(last, reach, &last))
			return false;
	}
	return last < limit;
}

static bool check_source(struct checking *c, const struct image_pack_source *s)
{
	if (s->param >= image_params(c->image))
		return refuse_image(c, "recipe", "a recipe reads a parameter that does not exist");
	const struct tensor_info *t = image_param(c->image, s->param);
	for (int a = 0; a < t->rank; a++)
		if (s->begin[a] > s->end[a] || s->end[a] > t->shape[a])
			return refuse_image(c, t->name, "a recipe reads past the end of its parameter");
	return true;
}

static bool check_recipe(struct checking *c, int i)
{
	const struct image_recipe *r = &c->image->recipe[i];
	for (int s = 0; s < r->sources; s++)
		if (!check_source(c, &r->source[s]))
			return false;
		else if (image_param(c->image, r->source[s].param)->dtype != r->dtype)
			return refuse_image(c, "recipe", "a recipe takes elements of another type");
	for (int axis = 0; axis < TENSOR_MAX_RANK; axis++)
		if (!image_walks_within(r, axis, IMAGE_WALK_LIMIT))
			return refuse_image(c, "recipe", "a recipe walks too far");
	if (!r->sources || !image_walks_within(r, IMAGE_PACK_SOURCE, r->sources))
		return refuse_image(c, "recipe", "a recipe takes from a source that it does not have");
	return image_recipe_elements(r) > 0 ||
	       refuse_image(c, "recipe", "a recipe is empty, or its size does not fit 64 bits");
}

/* --- folded parameters --- */

/* Whether the recipe is the place of a folded parameter: a dimension for each axis, with the parameter at the
 * front. */
static bool is_place_of(const struct image_recipe *r, const struct tensor_info *t, int param)
{
	const struct image_pack_source *s = r->source;
	bool ok = r->dims == t->rank && r->sources == 1 && s->param == param;
	for (int d = 0; ok && d < t->rank; d++)
		ok = r->dim[d].axis == d && r->dim[d].stride == 1 && r->dim[d].extent >= t->shape[d] &&
		     !s->begin[d] && s->end[d] == t->shape[d];
	return ok;
}

static bool check_fold(struct checking *c, int i)
{
	const struct image_fold *f = &c->image->fold[i];
	int64_t elements;
	if (!elements_of(f->tensor.rank, f->tensor.shape, &elements))
		return refuse_image(c, f->tensor.name,
				    "a parameter is empty, or its size does not fit 64 bits");
	if (f->recipe >= c->image->recipes ||
	    !is_place_of(&c->image->recipe[f->recipe], &f->tensor, c->image->params + i))
		return refuse_image(c, f->tensor.name, "a folded parameter has no place of its own");
	bool step = i < c->image->steps && c->image->step[i].domain == IMAGE_DOMAIN_BINDING;
	return step || refuse_image(c, f->tensor.name, "a folded parameter has no step that computes it");
}

/* --- buffers --- */

/* How many things the member `which` of a buffer of that kind can name. */
static int count_choices(const struct image *image, enum image_buffer_kind kind)
{
	switch (image_traits_of(kind)->which) {
	case IMAGE_COUNTS_RECIPES:
		return image->recipes;
	case IMAGE_COUNTS_STATES:
		return image->states;
	case IMAGE_COUNTS_OUTPUTS:
		return image->outputs;
	case IMAGE_COUNTS_INPUTS:
		return image->inputs;
	case IMAGE_COUNTS_SLOTS:
		return image->children > 0 ? image->children : 0;
	case IMAGE_COUNTS_SORTS:
		return image->sorts;
	case IMAGE_COUNTS_CASES:
		return image->cases > 0;
	case IMAGE_COUNTS_TREES:
		return !image->shared_children;
	case IMAGE_COUNTS_NOTHING:
		break;
	}
	return 1;
}

/* Whether all elements of a row lie inside of it. */
static bool reaches_inside(const struct image_buffer *b)
{
	int64_t last = 0, reach;
	for (int d = 0; d < b->rank; d++)
		if (__builtin_mul_overflow(b->shape[d] - 1, b->stride[d], &reach) ||
		    __builtin_add_overflow(last, reach, &last))
			return false;
	return last < b->row_elements;
}

/* Inputs and sorts of nodes have a row per node, those of edges one per edge. */
static bool has_data_rows(const struct image *image, const struct image_buffer *b)
{
	switch (image_traits_of(b->kind)->which) {
	case IMAGE_COUNTS_SORTS:
		return b->rows == (image->sort[b->which].edges ? IMAGE_EDGES : IMAGE_NODES);
	case IMAGE_COUNTS_INPUTS:
		return b->rows == (image->input[b->which].on_edge ? IMAGE_EDGES : IMAGE_NODES);
	default:
		return true;
	}
}

/* Inputs, states and outputs have the type that they are declared with. */
static bool has_declared_type(const struct image *image, const struct image_buffer *b)
{
	switch (image_traits_of(b->kind)->which) {
	case IMAGE_COUNTS_INPUTS:
		return image->input[b->which].dtype == b->dtype;
	case IMAGE_COUNTS_STATES:
		return image->state[b->which].dtype == b->dtype;
	case IMAGE_COUNTS_OUTPUTS:
		return image->output[b->which].dtype == b->dtype;
	default:
		return true;
	}
}

/* Whether the type and the rows are those of the kind. */
static bool has_traits(const struct image_buffer *b)
{
	const struct image_buffer_traits *t = image_traits_of(b->kind);
	return (t->dtype == IMAGE_ANY || t->dtype == (int)b->dtype) && (t->rows == IMAGE_ANY || t->rows == (int)b->rows);
}

/* Whether rows are as large as what the run leg writes to them. */
static bool has_space(const struct image *image, const struct image_buffer *b)
{
	int64_t elements;
	if (b->kind == IMAGE_WEIGHT)
		return image->recipe[b->which].dtype == b->dtype &&
		       image_recipe_elements(&image->recipe[b->which]) == b->row_elements;
	if (b->kind == IMAGE_READ_ROW && !image->input[b->which].at_leaf)
		return false;
	if (b->kind == IMAGE_TOKEN || b->kind == IMAGE_READ_ROW)
		return image->input[b->which].token && b->row_elements == 1;
	if (b->kind == IMAGE_GIVEN && b->row_elements != image_input_elements(image, b->which))
		return false;
	if ((b->kind == IMAGE_VECTOR || b->kind == IMAGE_GIVEN) && (image->input[b->which].token ||
					!has_elements(b->rank, b->shape, image_input_elements(image, b->which))))
		return false;
	return elements_of(b->rank, b->shape, &elements) && b->row_elements >= elements && reaches_inside(b);
}

/* A table of leaves' rows has one for each token that they may carry. */
static bool has_table(const struct image *image, const struct image_buffer *b)
{
	if (!b->table && !b->read_row)
		return true;
	if (b->kind != IMAGE_STATE || b->table < 1 || b->table > image->buffers || b->read_row < 1 ||
	    b->read_row > image->buffers)
		return false;
	const struct image_buffer *t = &image->buffer[b->table - 1], *rows = &image->buffer[b->read_row - 1];
	const struct image_input *in =
	    rows->kind == IMAGE_READ_ROW && rows->which < image->inputs ? &image->input[rows->which] : NULL;
	return t->kind == IMAGE_WEIGHT && !t->at_binding && t->dtype == b->dtype && in && in->limit > 0 && b->row_elements > 0 &&
	       in->limit <= t->row_elements / b->row_elements;
}

/* An intermediate in the place of another one has the same rows, and is needed between the same steps. */
static bool has_place(const struct image *image, int i)
{
	const struct image_buffer *b = &image->buffer[i],
				  *home = b->home < image->buffers ? &image->buffer[b->home] : NULL;
	return home && home->kind == IMAGE_SCRATCH && !home->at_binding &&
	       image->buffer + home->home == home && home->rows == b->rows && home->dtype == b->dtype &&
	       home->row_elements == b->row_elements && home->first == b->first && home->last == b->last &&
	       b->first <= b->last && b->last < image->steps;
}

static bool check_buffer(struct checking *c, int i)
{
	const struct image_buffer *b = &c->image->buffer[i];
	if (!has_traits(b))
		return refuse_image(c, b->name, "a buffer is not as its kind must be");
	if (b->which >= count_choices(c->image, b->kind))
		return refuse_image(c, b->name, "a buffer is for something that does not exist");
	if (b->kind == IMAGE_SCRATCH && !b->at_binding && !has_place(c->image, i))
		return refuse_image(c, b->name, "an intermediate is in a place that does not fit it");
	if (!has_data_rows(c->image, b) || !has_declared_type(c->image, b))
		return refuse_image(c, b->name, "a buffer is not as its kind must be");
	if (b->at_binding && ((b->kind != IMAGE_WEIGHT && b->kind != IMAGE_SCRATCH) || b->rows != IMAGE_ONE))
		return refuse_image(c, b->name, "a buffer cannot belong to a binding");
	if (!has_table(c->image, b))
		return refuse_image(c, b->name, "rows of leaves are in a table that does not have them");
	return has_space(c->image, b) || refuse_image(c, b->name, "a buffer is not as large as it must be");
}

/* --- cases --- */

static bool check_match(struct checking *c, const char *name, const struct image_match *m)
{
	const struct image_input *in = m->input < c->image->inputs ? &c->image->input[m->input] : NULL;
	if (!in || !in->token || in->on_edge)
		return refuse_image(c, name, "a case reads a token that does not exist");
	return true;
}

static bool check_case(struct checking *c, int i)
{
	const struct image_case *k = &c->image->case_at[i];
	if (i && k->inner < k[-1].inner)
		return refuse_image(c, k->name, "a case of leaves stands behind one of inner nodes");
	for (int m = 0; m < k->matches; m++)
		if (!check_match(c, k->name, &k->match[m]))
			return false;
	return true;
}

/* Whether some case accepts all nodes with children or without, with a parent or without. */
static bool takes_all(const struct image *image, bool inner, enum image_answer parent)
{
	for (int i = 0; i < image->cases; i++) {
		const struct image_case *k = &image->case_at[i];
		if (k->inner == inner && k->children < 0 && !k->matches &&
		    (k->parent == IMAGE_EITHER || k->parent == parent))
			return true;
	}
	return false;
}

static bool check_cases(struct checking *c)
{
	const struct image *image = c->image;
	if (!image->cases)
		return true;
	if (image->cases > IMAGE_MAX_CASES)
		return refuse_image(c, "case", "there are too many");
	for (int i = 0; i < image->cases; i++)
		if (!check_case(c, i))
			return false;
	for (int k = 0; k < 4; k++)
		if (!takes_all(image, k & 1, k & 2 ? IMAGE_YES : IMAGE_NO))
			return refuse_image(c, "case", "some nodes are of no case");
	return true;
}

/* --- sorts --- */

/* Tokens are checked against the limit of the input before anything is sorted by them. */
static bool check_sort(struct checking *c, int i)
{
	const struct image_sort *s = &c->image->sort[i];
	const struct image_input *in = s->input < c->image->inputs ? &c->image->input[s->input] : NULL;
	if (!in || !in->token || in->limit < 1)
		return refuse_image(c, "sort", "rows are sorted by a token that does not exist");
	return in->on_edge == (s->edges || s->slot >= 0) || refuse_image(c, in->name, "rows are sorted by a token that they do not carry");
}

/* --- results and steps --- */

static bool has_rows(const struct image *image, int buffer, enum image_buffer_kind kind, int which,
		     enum image_size rows, int64_t elements)
{
	if (buffer < 0 || buffer >= image->buffers)
		return false;
	const struct image_buffer *b = &image->buffer[buffer];
	return b->kind == kind && b->which == which && b->rows == rows &&
	       has_elements(b->rank, b->shape, elements);
}

static bool check_output(struct checking *c, int i)
{
	const struct image_output *o = &c->image->output[i];
	if (!has_elements(o->rank, o->shape, o->elements) || (o->labels && o->labels != o->elements))
		return refuse_image(c, o->name,
				    "an output has not the elements of its shape, or not a label for each");
	return has_rows(c->image, o->buffer, IMAGE_OUTPUT, i, o->at_root ? IMAGE_INPUTS : IMAGE_NODES,
			image_output_elements(c->image, i)) ||
	       refuse_image(c, o->name, "an output is not in its buffer");
}

static bool check_state(struct checking *c, int i)
{
	const struct image_state *s = &c->image->state[i];
	if (!has_elements(s->rank, s->shape, s->elements))
		return refuse_image(c, s->name, "a state has not the elements of its shape");
	if (s->layout == IMAGE_BY_PARENT && c->image->shared_children)
		return refuse_image(c, s->name, "a state is laid out by parent where nodes have several");
	return has_rows(c->image, s->buffer, IMAGE_STATE, i, IMAGE_NODES, s->elements) ||
	       refuse_image(c, s->name, "a state is not in its buffer");
}

/* Single nodes are no ranges of positions; nor are subtrees, by which no run of an image with sorts divides levels. */
static bool can_be_sorted(const struct image_step *s)
{
	return s->domain == IMAGE_DOMAIN_LEAVES || s->domain == IMAGE_DOMAIN_INNER || s->domain == IMAGE_DOMAIN_BATCH ||
	       s->domain == IMAGE_DOMAIN_NODES || s->domain == IMAGE_DOMAIN_PAST_LEAVES || s->domain == IMAGE_DOMAIN_BATCH_DOWN;
}

static bool check_step(struct checking *c, int i)
{
	const struct image_step *s = &c->image->step[i];
	if (i >= IMAGE_MAX_STEPS)
		return refuse_image(c, "step", "there are too many steps");
	if ((s->domain == IMAGE_DOMAIN_BINDING) != (i < c->image->folds))
		return refuse_image(c, "step",
				    "the steps at binding are not the first, one for each folded parameter");
	bool cut = (s->domain >= IMAGE_DOMAIN_LEAVES && s->domain <= IMAGE_DOMAIN_NODE) ||
		   s->domain == IMAGE_DOMAIN_BATCH_DOWN || s->domain == IMAGE_DOMAIN_NODE_DOWN;
	if (s->cases && (!cut || (uint64_t)s->cases >> c->image->cases))
		return refuse_image(c, "step", "a step is of cases that it cannot tell apart");
	if (s->sort > c->image->sorts || (s->sort && !can_be_sorted(s)))
		return refuse_image(c, "step", "a step runs over rows that nothing sorts");
	if (s->after > c->image->steps)
		return refuse_image(c, "step", "a step follows one that does not exist");
	if ((s->first < s->last) != (s->domain == IMAGE_DOMAIN_SCAN))
		return refuse_image(c, "step", "a step of a scan has no steps, or another one has them");
	if (s->head > s->operations)
		return refuse_image(c, "step", "the head of a step does more than the step");
	const char *fault = image_find_target_fault(c->image, i);
	return !fault || refuse_image(c, "step", fault);
}

static bool check_call(struct checking *c, int i)
{
	const char *fault = image_find_call_fault(c->image, i);
	return !fault || refuse_image(c, c->image->call[i].name, fault);
}

static bool check_kernel(struct checking *c, int i)
{
	return c->image->blob.kernel[i] < c->image->blob.size ||
	       refuse_image(c, c->image->kernel_name[i], "a kernel lies outside of the code");
}

static bool check_blob(struct checking *c)
{
	const struct image_blob *b = &c->image->blob;
	if (b->size > IMAGE_BLOB_LIMIT || b->alignment & (b->alignment - 1))
		return refuse_image(c, "code", "it is too large, or its alignment is not a power of two");
	return b->kernels == c->image->kernels ||
	       refuse_image(c, "code", "it does not have a place for each kernel");
}

/* What debuggers and unwinders are told of the code. */
static bool check_frames(struct checking *c)
{
	const struct image_blob *b = &c->image->blob;
	if (b->frames > b->size || b->frame_bytes > b->size - b->frames)
		return refuse_image(c, "code", "its call frame information lies outside of it");
	struct image_frames frames = {b->bytes + b->frames, b->frame_bytes, b->frames};
	return !b->frame_bytes || image_check_frames(&frames, b->frames) ||
	       refuse_image(c, "code", "its call frame information is of another form");
}

static bool check_function(struct checking *c, int i)
{
	const struct image_symbol *f = &c->image->blob.function[i];
	return (f->place < c->image->blob.size && f->bytes <= c->image->blob.size - f->place) ||
	       refuse_image(c, f->name, "a function lies outside of the code");
}

static bool check_line(struct checking *c, int i)
{
	const struct image_line *l = &c->image->blob.line[i];
	return (l->place <= c->image->blob.size && (!i || l[-1].place < l->place)) ||
	       refuse_image(c, "lines", "they are not in the order of the code");
}

/* Whether runs read the packed weights of a recipe. */
static bool is_needed(const struct image *image, int recipe)
{
	for (int i = 0; i < image->buffers; i++) {
		const struct image_buffer *b = &image->buffer[i];
		if (b->kind == IMAGE_WEIGHT && b->which == recipe && !b->at_binding)
			return true;
	}
	return false;
}

/* Packed weights have the size of their recipe; there are none where no run needs them. */
static bool check_packed(struct checking *c, int i)
{
	int64_t bytes = c->image->packed[i].bytes;
	if (!bytes)
		return !is_needed(c->image, i) ||
		       refuse_image(c, "weights", "there are none where a run needs them");
	return bytes == image_recipe_bytes(&c->image->recipe[i]) ||
	       refuse_image(c, "weights", "they are not as long as they are laid out");
}

static bool check_packs(struct checking *c)
{
	return !c->image->packs || c->image->packs == c->image->recipes ||
	       refuse_image(c, "weights", "there are not as many as recipes");
}

/* Unrolled levels run at the same time.  Where buffers have the rows of one batch, a run gives them those of a span
 * (IMAGE_ORIGIN). */
static bool check_structure(struct checking *c)
{
	return c->image->unroll < 2 || !c->image->shared_children ||
	       refuse_image(c, "structure", "levels are unrolled where nodes have several parents");
}

static bool is_stack(const struct image *image, int rank, const int64_t *shape)
{
	return rank && shape[0] == image->stacked;
}

/* A row that is several is one of a model without a structure, and so are all that it carries and its results. */
static bool check_stack(struct checking *c)
{
	const struct image *image = c->image;
	bool stacked = !image->children && !image->states && !image->cases;
	for (int i = 0; i < image->inputs; i++)
		stacked &= !image->input[i].on_edge && is_stack(image, image->input[i].rank, image->input[i].shape);
	for (int i = 0; i < image->outputs; i++)
		stacked &= is_stack(image, image->output[i].rank, image->output[i].shape);
	return image->stacked < 2 || stacked ||
	       refuse_image(c, "structure", "a row is several, and an input, a result or the structure is not as many");
}

static bool check_each(struct checking *c, int n, bool (*check)(struct checking *, int))
{
	for (int i = 0; i < n; i++)
		if (!check(c, i))
			return false;
	return true;
}

bool image_check(const struct image *image, struct diags *diags)
{
	struct checking c = {.image = image};
	if (check_blob(&c) && check_frames(&c) && check_each(&c, image->blob.functions, check_function) &&
	    check_each(&c, image->blob.lines, check_line) && check_structure(&c) &&
	    check_each(&c, image->inputs, check_input) && check_cases(&c) && check_stack(&c) &&
	    check_each(&c, image->sorts, check_sort) &&
	    check_each(&c, image->params, check_param) && check_each(&c, image->recipes, check_recipe) &&
	    check_each(&c, image->folds, check_fold) && check_each(&c, image->buffers, check_buffer) &&
	    check_each(&c, image->outputs, check_output) && check_each(&c, image->states, check_state) &&
	    check_each(&c, image->calls, check_call) && check_each(&c, image->steps, check_step) && check_each(&c, image->kernels, check_kernel) &&
	    check_packs(&c) && check_each(&c, image->packs, check_packed))
		return true;
	return diag_add(diags, DIAG_BAD_IMAGE, (struct diag_at){0}, "compile the model again", "%s: %s",
			c.name, c.problem);
}
