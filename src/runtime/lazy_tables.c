/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tables of which only those rows are read that tokens of runs select, when the first run does so.
 *
 * Such a table is a parameter that one recipe holds row by row, and that kernels only look up by tokens.
 * Its memory is not touched before: a vocabulary of which few words occur costs neither time nor pages. */
#include "runtime/shared.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PIECE = 4096 }; /* bytes of rows that are read at once, but at least one row: a page */

struct table {
	int param, recipe;
	unsigned inputs;		       /* a mask of those whose tokens select its rows */
	int64_t rows;
	int shift;			       /* a piece has 1 << shift rows */
	int64_t row_elements, packed_elements; /* of a row: of the parameter, with its padding */
	char *space;	    /* of a piece before it is packed; NULL = rows need no packing */
	atomic_uchar *read; /* by piece: whether its rows are there */
};

struct rt_lazy {
	pthread_mutex_t lock; /* held while rows are read */
	struct rt_source source;
	int tables;
	struct table table[];
};

/* Whether a recipe has the rows of a parameter one after the other, each apart. */
static bool keeps_rows(const struct image_recipe *r, const struct tensor_info *t)
{
	bool ok = t->rank > 0 && r->dims > 0 && r->sources == 1 && r->dim[0].axis == 0 &&
		  r->dim[0].stride == 1 && r->dim[0].extent >= t->shape[0] && !r->source->begin[0] &&
		  r->source->end[0] >= t->shape[0];
	for (int d = 1; ok && d < r->dims; d++)
		ok = r->dim[d].axis != 0;
	return ok && image_recipe_bytes(r) > 0;
}

/* The recipe of a parameter that may be read late; -1 = it is packed otherwise, or used otherwise. */
static int find_recipe(const struct image *image, int param)
{
	int found = -1;
	for (int i = 0; i < image->recipes; i++)
		if (rt_recipe_uses(&image->recipe[i], param)) {
			if (found >= 0 || !image->recipe[i].selected_by ||
			    !keeps_rows(&image->recipe[i], &image->param[param]))
				return -1;
			found = i;
		}
	return found;
}

/* A table that may be read late; one without rows is none. */
static struct table describe_table(const struct image *image, int param)
{
	const struct tensor_info *info = &image->param[param];
	int recipe = find_recipe(image, param);
	const struct image_recipe *r = recipe < 0 ? NULL : &image->recipe[recipe];
	if (!r || info->shape[0] < 1)
		return (struct table){0};
	struct table t = {.param = param, .recipe = recipe, .inputs = r->selected_by, .rows = info->shape[0]};
	t.packed_elements = image_recipe_elements(r) / r->dim[0].extent;
	t.row_elements = tensor_elements(info) / t.rows;
	int64_t bytes = t.packed_elements * dtype_traits_of(r->dtype)->bytes;
	while (bytes << t.shift <= PIECE / 2)
		t.shift++;
	return t;
}

static bool allocate_table(const struct rt_binding *b, struct table *t)
{
	int64_t bytes = dtype_traits_of(b->image->recipe[t->recipe].dtype)->bytes;
	bool packed = rt_find_plain_recipe(b->image, t->param) != t->recipe;
	t->read = rt_allocate_zeroed(b->allocator, ((t->rows - 1) >> t->shift) + 1);
	t->space = packed ? rt_allocate(b->allocator, (t->row_elements * bytes) << t->shift) : NULL;
	return t->read && (t->space || !packed);
}

bool rt_find_tables(struct rt_binding *b, const struct rt_source *source)
{
	const struct image *image = b->image;
	struct rt_lazy *l = rt_allocate_zeroed(b->allocator, sizeof *l + image->params * sizeof *l->table);
	if (!l || pthread_mutex_init(&l->lock, NULL)) {
		rt_free(b->allocator, l);
		return false;
	}
	b->lazy = l;
	l->source = *source;
	for (int i = 0; i < image->params; i++) {
		struct table *t = &l->table[l->tables];
		*t = describe_table(image, i);
		l->tables += t->rows > 0;
		if (t->rows && !allocate_table(b, t))
			return false;
	}
	return true;
}

bool rt_is_lazy_param(const struct rt_binding *b, int param)
{
	for (int i = 0; b->lazy && i < b->lazy->tables; i++)
		if (b->lazy->table[i].param == param)
			return true;
	return false;
}

bool rt_is_lazy(const struct rt_binding *b, int recipe)
{
	for (int i = 0; b->lazy && i < b->lazy->tables; i++)
		if (b->lazy->table[i].recipe == recipe)
			return true;
	return false;
}

void rt_free_tables(struct rt_binding *b)
{
	struct rt_lazy *l = b->lazy;
	if (!l)
		return;
	for (int i = 0; i < l->tables; i++) {
		rt_free(b->allocator, l->table[i].read);
		rt_free(b->allocator, l->table[i].space);
	}
	pthread_mutex_destroy(&l->lock);
	rt_free(b->allocator, l);
	b->lazy = NULL;
}

/* --- in runs --- */

/* With the lock held. */
static bool copy_rows(const struct rt_binding *b, const struct table *t, int64_t first, int64_t rows,
		      struct diags *diags)
{
	const struct rt_source *s = &b->lazy->source;
	const struct image_recipe *r = &b->image->recipe[t->recipe];
	int64_t packed = t->packed_elements * dtype_traits_of(r->dtype)->bytes;
	char *at = (char *)b->packed[t->recipe] + first * packed, *to = t->space ? t->space : at;
	if (!s->read(s->context, t->param, first * t->row_elements, rows * t->row_elements, to, diags))
		return false;
	if (t->space) {
		rt_clear_padding(b->image, r, at, first, rows);
		rt_pack_rows(b->image, b->packed,
			     &(struct rt_param_rows){t->param, first, rows, to, .held = -1});
	}
	return true;
}

/* Reads a piece unless another run has done so. */
static bool read_piece(const struct rt_binding *b, struct table *t, int64_t piece, struct diags *diags)
{
	struct rt_lazy *l = b->lazy;
	int64_t together = INT64_C(1) << t->shift, first = piece << t->shift, left = t->rows - first;
	pthread_mutex_lock(&l->lock);
	bool ok = atomic_load_explicit(&t->read[piece], memory_order_relaxed) ||
		  copy_rows(b, t, first, left < together ? left : together, diags);
	if (ok)
		atomic_store_explicit(&t->read[piece], 1, memory_order_release);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

static bool read_row(const struct rt_binding *b, struct table *t, int64_t row, struct diags *diags)
{
	int64_t piece = row >> t->shift;
	return atomic_load_explicit(&t->read[piece], memory_order_acquire) || read_piece(b, t, piece, diags);
}

/* Row 0 is what nodes select that do not read the input. */
static bool read_rows(const struct rt_binding *b, struct table *t, const int32_t *token, int64_t n,
		      struct diags *diags)
{
	bool ok = read_row(b, t, 0, diags);
	for (int64_t i = 0; ok && i < n; i++)
		ok = token[i] < 0 || token[i] >= t->rows || read_row(b, t, token[i], diags);
	return ok;
}

/* Whether all of these rows are there, as they mostly are: without a branch, since what nodes select cannot be predicted. */
static bool has_rows(const struct table *t, const int32_t *token, int64_t n)
{
	uint64_t rows = t->rows;
	unsigned all = atomic_load_explicit(&t->read[0], memory_order_acquire);
	for (int64_t i = 0; i < n; i++) {
		uint64_t row = (uint32_t)token[i] < rows ? (uint32_t)token[i] : 0;
		all &= atomic_load_explicit(&t->read[row >> t->shift], memory_order_acquire);
	}
	return all;
}

static bool need_rows(const struct rt_binding *b, struct table *t, const int32_t *token, int64_t n, double *seconds,
		      struct diags *diags)
{
	if (has_rows(t, token, n))
		return true;
	double begin = rt_seconds();
	bool ok = read_rows(b, t, token, n, diags);
	*seconds += rt_seconds() - begin;
	return ok;
}

static bool selects_rows(const struct table *t, const struct image *image, int input)
{
	return input < IMAGE_SELECTING_INPUTS && t->inputs >> input & 1 && image->input[input].token;
}

bool rt_need_rows(const struct rt_binding *b, const struct rt_minibatch *m, double *seconds, struct diags *diags)
{
	const struct lin_forest *f = &m->forest;
	bool ok = true;
	for (int i = 0; b->lazy && f->nodes && i < b->lazy->tables; i++)
		for (int k = 0; ok && k < b->image->inputs; k++) {
			struct table *t = &b->lazy->table[i];
			int64_t n = b->image->input[k].on_edge ? f->child_begin[f->nodes] : f->nodes;
			if (selects_rows(t, b->image, k))
				ok = need_rows(b, t, m->data[k], m->data[k] ? n : 0, seconds, diags);
		}
	return ok;
}
