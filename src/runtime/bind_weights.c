/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bindings: packed weights, and what depends on weights alone.
 *
 * Parameters are read some rows at a time, which stay in the second-level cache while they are packed by all
 * the recipes that use them.  Then the steps at binding run one after the other: each computes a parameter,
 * which is packed before the next.  Packed buffers that only these steps use are freed. */
#include "base/floats.h"
#include "runtime/shared.h"

#include <string.h>

enum { READ_ELEMENTS = 256 * 1024 }; /* of a parameter, at a time */

/* --- packing --- */

/* The rows of a parameter are counted along its first axis. */
static int64_t rows_of(const struct tensor_info *t)
{
	return t->rank ? t->shape[0] : 1;
}

static int64_t row_elements(const struct tensor_info *t)
{
	int64_t n = 1;
	for (int a = 1; a < t->rank; a++)
		n *= t->shape[a];
	return n;
}

static int64_t bytes_of(const struct tensor_info *t)
{
	return dtype_traits_of(t->dtype)->bytes;
}

static int64_t rows_at_once(const struct tensor_info *t)
{
	int64_t row = row_elements(t), rows = row < READ_ELEMENTS ? READ_ELEMENTS / (row ? row : 1) : 1;
	return rows < rows_of(t) ? rows : rows_of(t);
}

/* Reads a parameter and packs it; where a recipe has it as it is, it is read into that buffer directly. */
static bool bind_param(struct rt_binding *b, int param, const struct rt_source *source, void *space,
		       struct diags *diags)
{
	const struct tensor_info *t = &b->image->param[param];
	int64_t step = rows_at_once(t), row = row_elements(t);
	int plain = rt_find_plain_recipe(b->image, param);
	for (int64_t first = 0; first < rows_of(t); first += step) {
		int64_t rows = step < rows_of(t) - first ? step : rows_of(t) - first;
		void *to = plain < 0 ? space : (char *)b->packed[plain] + first * row * bytes_of(t);
		if (!source->read(source->context, param, first * row, rows * row, to, diags))
			return false;
		rt_pack_rows(b->image, b->packed,
			     &(struct rt_param_rows){param, first, rows, to, .held = plain});
	}
	return true;
}

static bool is_param_used(const struct image *image, int param)
{
	for (int i = 0; i < image->recipes; i++)
		if (rt_recipe_uses(&image->recipe[i], param))
			return true;
	return false;
}

/* Bytes of the most rows that are read before they are packed, -1 when they cannot be counted. */
static int64_t read_bytes(const struct image *image)
{
	int64_t greatest = 0;
	for (int i = 0; i < image->params; i++) {
		const struct tensor_info *t = &image->param[i];
		int64_t bytes = bytes_of(t);
		for (int a = 0; a < t->rank; a++)
			if (__builtin_mul_overflow(bytes, t->shape[a], &bytes))
				return -1;
		bytes = rows_at_once(t) * row_elements(t) * bytes_of(t);
		if (bytes > greatest && is_param_used(image, i) && rt_find_plain_recipe(image, i) < 0)
			greatest = bytes;
	}
	return greatest;
}

static bool allocate_table(struct rt_binding *b)
{
	const struct allocator *a = b->allocator;
	size_t bytes = (b->image->recipes + 1) * sizeof *b->packed;
	b->packed = a->resize(a->context, NULL, 0, bytes);
	return b->packed && memset(b->packed, 0, bytes);
}

static bool allocate_packed(struct rt_binding *b)
{
	const struct allocator *a = b->allocator;
	int recipes = b->image->recipes;
	if (!allocate_table(b))
		return false;
	for (int i = 0; i < recipes; i++) {
		int64_t n = image_recipe_elements(&b->image->recipe[i]);
		b->packed[i] = n < 0 ? NULL : rt_allocate(a, image_recipe_bytes(&b->image->recipe[i]));
		if (!b->packed[i])
			return false;
		rt_clear_padding(b->image, &b->image->recipe[i], b->packed[i], n);
	}
	return true;
}

static bool pack_weights(struct rt_binding *b, const struct rt_source *source, struct diags *diags)
{
	int64_t bytes = read_bytes(b->image);
	void *space = bytes < 0 ? NULL : rt_allocate(b->allocator, bytes);
	bool ok = (space && allocate_packed(b)) || rt_out_of_memory(diags, "packed weights");
	for (int i = 0; ok && i < b->image->params; i++)
		ok = !is_param_used(b->image, i) || bind_param(b, i, source, space, diags);
	rt_free(b->allocator, space);
	return ok;
}

/* --- folding --- */

static bool is_binding_scratch(const struct image_buffer *b)
{
	return b->at_binding && b->kind == IMAGE_SCRATCH;
}

/* Fills the pointer table of the steps at binding: weights, and intermediates of their own. */
static bool allocate_buffers(const struct rt_binding *b, void **buffers)
{
	for (int i = 0; i < b->image->buffers; i++) {
		const struct image_buffer *of = &b->image->buffer[i];
		int64_t bytes;
		if (of->kind == IMAGE_WEIGHT)
			buffers[i] = b->packed[of->which];
		if (!is_binding_scratch(of))
			continue;
		bool counted =
		    !__builtin_mul_overflow(of->row_elements, dtype_traits_of(of->dtype)->bytes, &bytes);
		buffers[i] = counted ? rt_allocate_zeroed(b->allocator, bytes) : NULL;
		if (!buffers[i])
			return false;
	}
	return true;
}

static void free_buffers(const struct rt_binding *b, void **buffers)
{
	for (int i = 0; buffers && i < b->image->buffers; i++)
		if (is_binding_scratch(&b->image->buffer[i]))
			rt_free(b->allocator, buffers[i]);
	rt_free(b->allocator, buffers);
}

/* Runs the steps and packs their results. */
static bool run_folds(struct rt_binding *b, void *const *buffers, struct rt_team *team, int threads,
		      struct diags *diags)
{
	const struct image *image = b->image;
	for (int i = 0; i < image->folds; i++) {
		const struct image_fold *f = &image->fold[i];
		struct rt_param_rows rows = {.param = image->params + i,
					     .rows = image_fold_rows(f),
					     .from = b->packed[f->recipe],
					     .packed_by = &image->recipe[f->recipe],
					     .held = -1};
		if (!rt_run_fold(image, i, buffers, team, threads, diags))
			return false;
		rt_pack_rows(image, b->packed, &rows);
		b->folded_bytes += tensor_elements(&f->tensor) * bytes_of(&f->tensor);
	}
	return true;
}

/* Frees packed buffers that only steps at binding use. */
static void free_unused(struct rt_binding *b)
{
	const struct image *image = b->image;
	for (int i = 0; i < image->buffers; i++) {
		int recipe = image->buffer[i].which;
		bool unused = image->buffer[i].kind == IMAGE_WEIGHT && image->buffer[i].at_binding;
		for (int k = 0; unused && k < image->buffers; k++)
			unused = image->buffer[k].kind != IMAGE_WEIGHT || image->buffer[k].which != recipe ||
				 image->buffer[k].at_binding;
		if (!unused)
			continue;
		rt_free(b->allocator, b->packed[recipe]);
		b->packed[recipe] = NULL;
	}
}

static bool fold_weights(struct rt_binding *b, struct rt_team *team, struct diags *diags)
{
	double begin = rt_seconds(), operations = team ? rt_fold_operations(b->image) : 0;
	if (!b->image->folds)
		return true;
	void **buffers = rt_allocate_zeroed(b->allocator, b->image->buffers * sizeof *buffers);
	int64_t *rows = rt_allocate_zeroed(b->allocator, b->image->kernels * sizeof *rows);
	bool ok = (buffers && rows && allocate_buffers(b, buffers)) || rt_out_of_memory(diags, "constants");
	ok = ok && rt_need_folds(b->image, rows, diags);
	rt_free(b->allocator, rows);
	int threads = ok ? rt_enter_team(team, operations) : 0;
	ok = ok && run_folds(b, buffers, team, threads, diags);
	if (threads)
		rt_team_leave(team);
	free_buffers(b, buffers);
	free_unused(b);
	b->folding = rt_seconds() - begin;
	return ok;
}

/* --- binding --- */

static void count_bytes(struct rt_binding *b)
{
	for (int i = 0; i < b->image->recipes; i++)
		if (b->packed[i])
			b->packed_bytes += image_recipe_bytes(&b->image->recipe[i]);
}

bool rt_bind(struct rt_binding *b, const struct allocator *allocator, const struct image *image,
	     const struct rt_source *source, struct rt_team *team, struct diags *diags)
{
	*b = (struct rt_binding){.allocator = allocator, .image = image};
	struct float_mode mode = float_mode_enter(image->flush);
	bool ok = pack_weights(b, source, diags) && fold_weights(b, team, diags);
	float_mode_leave(&mode);
	if (ok)
		count_bytes(b);
	else
		rt_binding_free(b);
	return ok;
}

bool rt_bind_packed(struct rt_binding *b, const struct allocator *allocator, const struct image *image,
		    struct diags *diags)
{
	*b = (struct rt_binding){.allocator = allocator, .image = image, .borrowed = true};
	if (!allocate_table(b))
		return rt_out_of_memory(diags, "packed weights");
	for (int i = 0; i < image->recipes; i++)
		b->packed[i] = (void *)image->packed[i].at;
	for (int i = 0; i < image->folds; i++)
		b->folded_bytes += tensor_elements(&image->fold[i].tensor) * bytes_of(&image->fold[i].tensor);
	count_bytes(b);
	return true;
}

void rt_binding_free(struct rt_binding *b)
{
	const struct allocator *a = b->allocator;
	if (!b->packed)
		return;
	for (int i = 0; !b->borrowed && i < b->image->recipes; i++)
		rt_free(a, b->packed[i]);
	a->resize(a->context, b->packed, (b->image->recipes + 1) * sizeof *b->packed, 0);
	b->packed = NULL;
}
