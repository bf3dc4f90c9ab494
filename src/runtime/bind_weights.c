/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bindings: packed weights, and what depends on weights alone.
 *
 * Parameters are read some rows at a time, which stay in the second-level cache while they are packed by all
 * the recipes that use them, by the threads of the team where that is profitable: most of the time goes into pages that are
 * touched for the first time.  Then the steps at binding run one after the other: each computes a parameter,
 * which is packed before the next.  Packed buffers that only these steps use are freed. */
#include "base/floats.h"
#include "runtime/shared.h"

#include <stdatomic.h>
#include <string.h>

enum {
	LINE = 64,
	READ_ELEMENTS = 128 * 1024, /* of a parameter, at a time */
	PAGE_COST = 5 /* times that reading memory takes: a page is zeroed and mapped, the file's is copied to it */
};

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

/* Whether only steps at binding use the packed buffer of a recipe. */
static bool is_for_binding(const struct image *image, int recipe)
{
	bool used = false;
	for (int i = 0; i < image->buffers; i++) {
		const struct image_buffer *b = &image->buffer[i];
		if (b->kind == IMAGE_WEIGHT && b->which == recipe && !b->at_binding)
			return false;
		used |= b->kind == IMAGE_WEIGHT && b->which == recipe;
	}
	return used;
}

/* What steps at binding alone use is freed after them, and a lazy table is hardly touched: both have memory
 * of their own. */
static bool is_apart(const struct rt_binding *b, int recipe)
{
	return is_for_binding(b->image, recipe) || rt_is_lazy(b, recipe);
}

/* Bytes of a packed buffer in the block of all; -1 when they cannot be counted. */
static int64_t shared_bytes(const struct rt_binding *b, int recipe)
{
	int64_t bytes = image_recipe_bytes(&b->image->recipe[recipe]);
	return bytes > 0 && is_apart(b, recipe) ? 0 : bytes;
}

/* Places the packed buffers that runs use in one block, the largest of which begins it: it has huge pages, of which a few
 * are touched sooner than many small ones.  Sets the offset of each, and returns the bytes of all, -1 when they cannot be
 * counted. */
static int64_t place_packed(const struct rt_binding *b, int64_t *offset)
{
	const struct image *image = b->image;
	int64_t end = 0;
	int largest = 0;
	for (int i = 0; i < image->recipes; i++)
		if (shared_bytes(b, i) > shared_bytes(b, largest))
			largest = i;
	for (int k = 0; k < image->recipes; k++) {
		int i = k == 0 ? largest : k <= largest ? k - 1 : k;
		int64_t bytes = shared_bytes(b, i);
		offset[i] = end;
		if (bytes < 0 || __builtin_add_overflow(end, (bytes + LINE - 1) / LINE * LINE, &end))
			return -1;
	}
	return end;
}

static void *allocate_apart(const struct rt_binding *b, int recipe)
{
	int64_t bytes = image_recipe_bytes(&b->image->recipe[recipe]);
	return rt_is_lazy(b, recipe) ? rt_allocate_sparse(b->allocator, bytes) : rt_allocate(b->allocator, bytes);
}

/* Memory behind the packed buffers that nothing is kept in. */
struct rest {
	char *at;
	size_t bytes;
};

static bool allocate_packed(struct rt_binding *b, struct rest *rest)
{
	const struct image *image = b->image;
	int64_t *offset = rt_allocate(b->allocator, (image->recipes + 1) * sizeof *offset);
	int64_t bytes = offset ? place_packed(b, offset) : -1;
	bool ok = bytes >= 0 && allocate_table(b) && (b->block = rt_allocate(b->allocator, bytes));
	*rest = ok ? (struct rest){(char *)b->block + bytes, rt_whole_pages(bytes) - bytes} : (struct rest){0};
	for (int i = 0; ok && i < image->recipes; i++) {
		b->packed[i] = is_apart(b, i) ? allocate_apart(b, i) : (char *)b->block + offset[i];
		ok = b->packed[i];
	}
	rt_free(b->allocator, offset);
	return ok;
}

/* --- pieces of the work, any of which may be done at the same time: no two write the same element --- */

/* Rows of a parameter to be read and packed, or a recipe whose padding is to be cleared. */
struct piece {
	int which;
	int64_t first, rows;
	int64_t bytes;	/* of the parameter; of the buffer */
	int64_t before; /* the bytes of the pieces before it */
	atomic_bool begun;
};

/* Padding is cleared first, since that may clear more. */
enum item { CLEAR, PACK, ITEMS };

struct pieces {
	struct rt_binding *binding;
	const struct rt_source *source;
	struct list {
		struct piece *piece;
		int n;
		int64_t bytes; /* of all */
	} item[ITEMS];
	struct rest rest;
	char *space;   /* room for rows that are read, of each chunk; in the rest, if there is enough */
	int64_t space_bytes;
	struct diags *diags; /* of each chunk */
	atomic_bool failed;
};

static bool clear_recipe(struct pieces *w, const struct piece *p, int chunk)
{
	const struct rt_binding *b = w->binding;
	const struct image_recipe *r = &b->image->recipe[p->which];
	(void)chunk;
	rt_clear_padding(b->image, r, b->packed[p->which], 0, rt_blocks(r));
	return true;
}

/* Reads rows of a parameter and packs them; where a recipe has the parameter as it is, they are read into that buffer
 * directly. */
static bool bind_rows(struct pieces *w, const struct piece *p, int chunk)
{
	const struct rt_binding *b = w->binding;
	const struct tensor_info *t = &b->image->param[p->which];
	int64_t row = row_elements(t);
	int plain = rt_find_plain_recipe(b->image, p->which);
	char *to = plain < 0 ? w->space + chunk * w->space_bytes
			     : (char *)b->packed[plain] + p->first * row * bytes_of(t);
	if (!w->source->read(w->source->context, p->which, p->first * row, p->rows * row, to, &w->diags[chunk]))
		return false;
	rt_pack_rows(b->image, b->packed, &(struct rt_param_rows){p->which, p->first, p->rows, to, .held = plain});
	return true;
}

/* Where a chunk begins: pieces that follow each other are written to the same pages, for which threads would wait. */
static int first_piece(const struct list *l, int chunk, int chunks)
{
	int i = 0;
	while (i < l->n - 1 && l->piece[i].before < (double)l->bytes * chunk / chunks)
		i++;
	return i;
}

/* Runs the pieces of an item that nobody has begun, from the chunk's own on. */
static int run_pieces(void *context, int item, int chunk, int chunks)
{
	struct pieces *w = context;
	struct list *l = &w->item[item];
	int first = first_piece(l, chunk, chunks);
	struct float_mode mode = float_mode_enter(w->binding->image->flush);
	for (int k = 0; k < l->n && !atomic_load_explicit(&w->failed, memory_order_relaxed); k++) {
		struct piece *p = &l->piece[(first + k) % l->n];
		if (!atomic_exchange(&p->begun, true) && !(item == CLEAR ? clear_recipe : bind_rows)(w, p, chunk))
			atomic_store(&w->failed, true);
	}
	float_mode_leave(&mode);
	return 0;
}

/* Adds a piece, or counts it where there is no room. */
static void add_piece(struct list *l, int which, int64_t first, int64_t rows, int64_t bytes)
{
	if (l->piece) {
		struct piece *p = &l->piece[l->n];
		p->which = which;
		p->first = first;
		p->rows = rows;
		p->bytes = bytes;
		p->before = l->bytes;
		atomic_init(&p->begun, false);
	}
	l->bytes += bytes;
	l->n++;
}

static void list_rows(struct list *l, const struct image *image, int param)
{
	const struct tensor_info *t = &image->param[param];
	int64_t step = rows_at_once(t), left;
	for (int64_t first = 0; (left = rows_of(t) - first) > 0; first += step) {
		int64_t rows = step < left ? step : left;
		add_piece(l, param, first, rows, rows * row_elements(t) * bytes_of(t));
	}
}

static void list_pieces(struct pieces *w)
{
	const struct image *image = w->binding->image;
	for (int i = 0; i < ITEMS; i++)
		w->item[i] = (struct list){.piece = w->item[i].piece};
	for (int i = 0; i < image->recipes; i++)
		if (!rt_is_lazy(w->binding, i))
			add_piece(&w->item[CLEAR], i, 0, 0, image_recipe_bytes(&image->recipe[i]));
	for (int i = 0; i < image->params; i++)
		if (is_param_used(image, i) && !rt_is_lazy_param(w->binding, i))
			list_rows(&w->item[PACK], image, i);
}

/* The pieces of both items lie in one block. */
static bool make_pieces(struct pieces *w)
{
	list_pieces(w);
	int n = w->item[CLEAR].n + w->item[PACK].n;
	struct piece *piece = rt_allocate(w->binding->allocator, n * sizeof *piece);
	if (!piece)
		return false;
	w->item[CLEAR].piece = piece;
	w->item[PACK].piece = piece + w->item[CLEAR].n;
	list_pieces(w);
	return true;
}

/* --- all pieces --- */

/* What workers save is counted as the operations that they could do meanwhile. */
static double packing_operations(const struct pieces *w, const struct rt_team *team)
{
	return team ? PAGE_COST * (double)w->item[PACK].bytes / team->machine->memory_rate * target_kernel_rate(team->machine) / 2 : 0;
}

/* Reports what went wrong first, by the order of chunks. */
static void report_first(struct diags *to, struct diags *chunk, int chunks)
{
	for (int i = 0; i < chunks; i++) {
		if (!to->n)
			diags_move(to, &chunk[i]);
		diags_free(&chunk[i]);
	}
}

static bool run_all_pieces(struct pieces *w, struct rt_team *team, int threads, struct diags *diags)
{
	const struct allocator *a = w->binding->allocator;
	int chunks = threads ? threads : 1;
	int64_t bytes;
	w->space_bytes = read_bytes(w->binding->image);
	bool counted = w->space_bytes >= 0 && !__builtin_mul_overflow(w->space_bytes, chunks, &bytes);
	bool fits = counted && (size_t)bytes <= w->rest.bytes;
	w->space = fits ? w->rest.at : counted ? rt_allocate(a, bytes) : NULL;
	w->diags = rt_allocate(a, chunks * sizeof *w->diags);
	bool ok = w->space && w->diags;
	for (int i = 0; ok && i < chunks; i++)
		diags_init(&w->diags[i], diags->allocator);
	if (ok && threads)
		rt_team_run(team, &(struct rt_work){run_pieces, w, ITEMS});
	for (int i = 0; ok && !threads && i < ITEMS; i++)
		run_pieces(w, i, 0, 1);
	if (ok)
		report_first(diags, w->diags, chunks);
	else
		rt_out_of_memory(diags, "packed weights");
	rt_free(a, w->diags);
	if (!fits)
		rt_free(a, w->space);
	return ok && !atomic_load(&w->failed);
}

static bool pack_weights(struct rt_binding *b, const struct rt_source *source, struct rt_team *team, struct diags *diags)
{
	struct pieces w = {.binding = b, .source = source};
	if (read_bytes(b->image) < 0 || !allocate_packed(b, &w.rest) || !make_pieces(&w))
		return rt_out_of_memory(diags, "packed weights");
	int threads = rt_enter_team(team, packing_operations(&w, team));
	bool ok = run_all_pieces(&w, team, threads, diags);
	if (threads)
		rt_team_leave(team);
	rt_free(b->allocator, w.item[CLEAR].piece);
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

static void free_packed(struct rt_binding *b, int recipe)
{
	rt_free(b->allocator, b->packed[recipe]);
	b->packed[recipe] = NULL;
}

/* Frees packed buffers that only steps at binding use. */
static void free_unused(struct rt_binding *b)
{
	for (int i = 0; i < b->image->recipes; i++)
		if (is_for_binding(b->image, i))
			free_packed(b, i);
}

/* Frees what has memory of its own. */
static void free_apart(struct rt_binding *b)
{
	for (int i = 0; i < b->image->recipes; i++)
		if (is_apart(b, i))
			free_packed(b, i);
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

/* Fills a binding whose lazy tables are known. */
static bool fill_binding(struct rt_binding *b, const struct rt_source *source, struct rt_team *team,
			 struct diags *diags)
{
	struct float_mode mode = float_mode_enter(b->image->flush);
	bool ok = pack_weights(b, source, team, diags) && fold_weights(b, team, diags);
	float_mode_leave(&mode);
	if (ok)
		count_bytes(b);
	else
		rt_binding_free(b);
	return ok;
}

bool rt_bind(struct rt_binding *b, const struct allocator *allocator, const struct image *image,
	     const struct rt_source *source, struct rt_team *team, struct diags *diags)
{
	*b = (struct rt_binding){.allocator = allocator, .image = image};
	return fill_binding(b, source, team, diags);
}

bool rt_bind_lazily(struct rt_binding *b, const struct allocator *allocator, const struct image *image,
		    const struct rt_source *source, struct rt_team *team, struct diags *diags)
{
	*b = (struct rt_binding){.allocator = allocator, .image = image};
	if (rt_find_tables(b, source))
		return fill_binding(b, source, team, diags);
	rt_free_tables(b);
	return rt_out_of_memory(diags, "tables");
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
	if (b->packed && !b->borrowed)
		free_apart(b);
	rt_free_tables(b);
	if (!b->packed)
		return;
	rt_free(a, b->block);
	a->resize(a->context, b->packed, (b->image->recipes + 1) * sizeof *b->packed, 0);
	b->packed = NULL;
}
