/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fills the image's tables of buffers, recipes, kernels and steps from a module. */
#include "ilir/passes.h"

/* Bytes of a row at most: far more than any cache, and few enough to be added up. */
static const int64_t MOST_ROW_BYTES = INT64_C(1) << 32;

/* The recipe of a weight that is not packed: row-major, with its padding. */
static struct image_recipe natural_recipe(struct arena *a, const struct ilir_buffer_decl *b)
{
	struct image_pack_source *source = ARENA_NEW(a, struct image_pack_source);
	struct image_recipe r = {.dims = b->rank, .sources = 1, .source = source};
	source->param = b->which;
	for (int d = 0; d < b->rank; d++) {
		r.dim[d] = (struct image_pack_dim){d, b->dim[d].padded, 1};
		source->end[d] = b->dim[d].extent;
	}
	return r;
}

static struct image_buffer describe_buffer(const struct ilir_buffer_decl *b)
{
	struct image_buffer out = {.name = b->name,
				   .kind = b->kind,
				   .dtype = (enum dtype)b->dtype,
				   .which = b->which,
				   .row_elements = 1};
	int first = b->rank && b->dim[0].rows != IMAGE_ONE;
	out.rows = first ? b->dim[0].rows : IMAGE_ONE;
	for (int d = b->rank; d-- > first; out.row_elements *= b->dim[d].padded)
		if (d - first < TENSOR_MAX_RANK) {
			out.shape[d - first] = b->dim[d].extent;
			out.stride[d - first] = out.row_elements;
		}
	out.rank = b->rank - first < TENSOR_MAX_RANK ? b->rank - first : TENSOR_MAX_RANK;
	return out;
}

/* The buffers that kernels use in runs, and at binding. */
struct users {
	bool *run, *binding; /* by buffer */
	bool *now;	     /* the table of the current kernel */
};

static void note_access(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	(void)m;
	((struct users *)context)->now[a->buffer.i] = true;
}

static struct users find_users(const struct ilir_module *m)
{
	struct users u = {ARENA_ARRAY(m->arena, bool, m->buffers.n),
			  ARENA_ARRAY(m->arena, bool, m->buffers.n), NULL};
	for (size_t k = 0; k < m->kernels.n; k++) {
		u.now = m->kernels.at[k].domain == IMAGE_DOMAIN_BINDING ? u.binding : u.run;
		ilir_visit_accesses(m, m->kernels.at[k].body, note_access, &u);
	}
	for (size_t c = 0; c < m->calls.n; c++)
		for (int i = 0; i < m->calls.at[c].operands; i++)
			u.run[m->calls.at[c].operand[i].buffer.i] = true;
	for (size_t b = 1; b < m->buffers.n; b++)
		u.run[m->buffers.at[b].table.i] = true;
	return u;
}

/* States whose leaves' rows are in tables. */
static void describe_tables(const struct ilir_module *m, struct image_buffer *buffers)
{
	for (uint32_t b = 1; b < m->buffers.n; b++) {
		const struct ilir_buffer_decl *decl = &m->buffers.at[b];
		if (!decl->table.i)
			continue;
		struct image_buffer *state = &buffers[ilir_buffer_slot(m, (ilir_buffer){b})];
		state->table = ilir_buffer_slot(m, decl->table) + 1;
		state->read_row = ilir_buffer_slot(m, decl->read_row) + 1;
	}
}

static void describe_buffers(const struct ilir_module *m, struct image *image)
{
	struct users users = find_users(m);
	struct image_buffer *buffers = ARENA_ARRAY(m->arena, struct image_buffer, m->buffers.n);
	struct image_recipe *recipes = ARENA_ARRAY(m->arena, struct image_recipe, m->buffers.n);
	for (size_t i = 1; i < m->buffers.n; i++) {
		const struct ilir_buffer_decl *b = &m->buffers.at[i];
		if (!ilir_traits_of(b))
			continue;
		buffers[image->buffers] = describe_buffer(b);
		buffers[image->buffers].at_binding = users.binding[i] && !users.run[i];
		if (b->kind == IMAGE_WEIGHT) {
			recipes[image->recipes] = b->recipe ? *b->recipe : natural_recipe(m->arena, b);
			recipes[image->recipes].dtype = (enum dtype)b->dtype;
			buffers[image->buffers].which = image->recipes++;
		}
		image->buffers++;
	}
	describe_tables(m, buffers);
	ilir_share_memory(m, buffers, image->buffers);
	image->buffer = buffers;
	image->recipe = recipes;
}

/* The weight that a kernel at binding stores to, its folded parameter. */
struct stored {
	ilir_buffer weight;
};

static void note_stored(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct stored *stored = context;
	if (s->kind == ILIR_STORE && ilir_buffer_at(m, s->store.buffer)->kind == IMAGE_WEIGHT)
		stored->weight = s->store.buffer;
}

static struct image_fold describe_fold(const struct ilir_module *m, ilir_buffer weight,
				       const struct image *image)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, weight);
	struct image_fold f = {.tensor = {.name = b->name, .dtype = (enum dtype)b->dtype, .rank = b->rank}};
	for (int d = 0; d < b->rank && d < TENSOR_MAX_RANK; d++)
		f.tensor.shape[d] = b->dim[d].extent;
	f.recipe = image->buffer[ilir_buffer_slot(m, weight)].which;
	return f;
}

static void describe_folds(const struct ilir_module *m, struct image *image)
{
	struct image_fold *folds = ARENA_ARRAY(m->arena, struct image_fold, m->kernels.n);
	for (size_t k = 0; k < m->kernels.n && m->kernels.at[k].domain == IMAGE_DOMAIN_BINDING; k++) {
		struct stored s = {{0}};
		ilir_visit_block(m, m->kernels.at[k].body,
				 &(struct ilir_visit){.stmt = note_stored, .context = &s});
		if (s.weight.i)
			folds[image->folds++] = describe_fold(m, s.weight, image);
	}
	image->fold = folds;
}

/* The box of a weight that contains all elements that a block of columns reads. */
struct box {
	bool read;
	ilir_buffer tokens; /* of edges, which select what is read; 0 = none do */
	struct ilir_range of[ILIR_MAX_RANK];
};

struct boxes {
	struct box *of;	       /* by buffer */
	ilir_buffer *tokens;   /* by variable: the tokens of edges that it is bound to */
	VEC(ilir_buffer) read; /* the buffers with a box */
};

static void note_edge_tokens(const struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	const struct ilir_buffer_decl *b = n->op == ILIR_LOAD ? ilir_buffer_at(m, n->buffer) : NULL;
	if (b && b->kind == IMAGE_TOKEN && b->dim[0].rows == IMAGE_EDGES)
		*(ilir_buffer *)context = n->buffer;
}

static void note_binding(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct boxes *boxes = context;
	if (s->kind == ILIR_LET)
		ilir_visit_expr(
		    m, s->let.value,
		    &(struct ilir_visit){.expr = note_edge_tokens, .context = &boxes->tokens[s->let.var.i]});
}

/* The tokens of edges that an index is; 0 = it is something else. */
static ilir_buffer tokens_of(const struct ilir_module *m, ilir_expr index, const struct boxes *boxes)
{
	ilir_buffer tokens = {0};
	if (ilir_at(m, index)->op == ILIR_VAR)
		return boxes->tokens[ilir_at(m, index)->var.i];
	ilir_visit_expr(m, index, &(struct ilir_visit){.expr = note_edge_tokens, .context = &tokens});
	return tokens;
}

static void note_weight(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct boxes *boxes = context;
	struct box *box = &boxes->of[a->buffer.i];
	if (!a->load.i || ilir_buffer_at(m, a->buffer)->kind != IMAGE_WEIGHT)
		return;
	for (int d = 0; d < a->indices; d++) {
		struct ilir_range r;
		ilir_range_of(m, a->index[d], a->known, &r);
		if (box->read)
			ilir_widen(&box->of[d], r);
		else
			box->of[d] = r;
		ilir_buffer tokens = tokens_of(m, a->index[d], boxes);
		if (tokens.i)
			box->tokens = tokens;
	}
	if (!box->read)
		vec_push(m->arena, &boxes->read, a->buffer);
	box->read = true;
}

/* Size of a box [bytes].  It is 0 for rows selected by an input of the nodes, whose index has no known
 * range: nodes read them, not blocks. */
static int64_t box_bytes(const struct ilir_buffer_decl *b, const struct box *box)
{
	int64_t bytes = box->read ? ilir_bytes(b->dtype) : 0;
	for (int d = 0; box->read && d < b->rank; d++) {
		const struct ilir_range *r = &box->of[d];
		if (r->low < 0 || r->high >= b->dim[d].padded ||
		    __builtin_mul_overflow(bytes, r->high - r->low + 1, &bytes))
			return 0;
	}
	return bytes;
}

/* Bytes of weights that a block of statements reads.  Clears the boxes that it used, for the next block. */
static int64_t weight_bytes(const struct ilir_module *m, const struct ilir_stmt *block, struct boxes *boxes)
{
	int64_t bytes = 0;
	ilir_visit_accesses(m, block, note_weight, boxes);
	while (boxes->read.n) {
		ilir_buffer b = boxes->read.at[--boxes->read.n];
		bytes += box_bytes(ilir_buffer_at(m, b), &boxes->of[b.i]);
		boxes->of[b.i] = (struct box){0};
	}
	return bytes;
}

/* The same of what one token selects [bytes]: one element along dimensions whose index has no known range. */
static int64_t selected_bytes(const struct ilir_buffer_decl *b, const struct box *box)
{
	int64_t bytes = ilir_bytes(b->dtype);
	for (int d = 0; d < b->rank; d++) {
		const struct ilir_range *r = &box->of[d];
		if (r->low >= 0 && r->high < b->dim[d].padded &&
		    __builtin_mul_overflow(bytes, r->high - r->low + 1, &bytes))
			return 0;
	}
	return bytes;
}

/* Sets what an edge reads by its token: of several inputs, that of the first weight that is found.  Nothing
 * where not all nodes of a level read the edges to their children. */
static void describe_edges(const struct ilir_module *m, const struct ilir_kernel *k, struct boxes *boxes,
			   struct image_step *step)
{
	ilir_buffer tokens = {0};
	if (k->cases || k->domain == IMAGE_DOMAIN_BATCH_DOWN || k->domain == IMAGE_DOMAIN_NODE_DOWN)
		return;
	ilir_visit_block(m, k->body, &(struct ilir_visit){.stmt = note_binding, .context = boxes});
	ilir_visit_accesses(m, k->body, note_weight, boxes);
	while (boxes->read.n) {
		ilir_buffer b = boxes->read.at[--boxes->read.n];
		const struct box *box = &boxes->of[b.i];
		if (!tokens.i)
			tokens = box->tokens;
		if (tokens.i && box->tokens.i == tokens.i)
			step->edge_bytes += selected_bytes(ilir_buffer_at(m, b), box);
		boxes->of[b.i] = (struct box){0};
	}
	step->edge_input = tokens.i ? ilir_buffer_at(m, tokens)->which : 0;
}

/* Bytes of weights that a kernel reads, each counted once.  Blocks may read the same weights, and a box
 * may contain more than is read, so this is the lesser of two estimates. */
static int64_t distinct_bytes(const struct ilir_module *m, const struct ilir_kernel *k, struct boxes *boxes,
			      const struct image_step *step)
{
	int64_t together = weight_bytes(m, k->body, boxes), apart;
	if (__builtin_mul_overflow(step->block_bytes, step->blocks, &apart))
		return together;
	return together < apart ? together : apart;
}

/* The first block of a kernel, from the last of its statements on: its swept loops with their first iterations only. */
static const struct ilir_stmt *first_block(struct ilir_module *m, const struct ilir_stmt *s)
{
	int64_t begin;
	if (!s || s->kind != ILIR_FOR || s->loop.kind > ILIR_SWEPT || !ilir_constant(m, s->loop.begin, &begin))
		return s;
	struct ilir_stmt *first = arena_copy(m->arena, s, sizeof *s);
	if (s->loop.kind == ILIR_SWEPT)
		first->loop.end = ilir_index(m, begin + s->loop.step);
	first->loop.body = (struct ilir_stmt *)first_block(m, s->loop.body);
	return first;
}

static const struct ilir_stmt *last_statement(const struct ilir_kernel *k)
{
	const struct ilir_stmt *s = k->body;
	while (s->next)
		s = s->next;
	return s;
}

/* Sets the numbers of blocks and bytes of a step; all blocks are taken to be like the first. */
static void describe_blocks(struct ilir_module *m, const struct ilir_kernel *k, struct boxes *boxes,
			    struct image_step *step)
{
	const struct ilir_stmt *loop = ilir_swept_loop(k);
	step->blocks = ilir_blocks(m, loop);
	step->columns = loop && ilir_blocks(m, loop->loop.body) == 1 ? loop->loop.step : 0;
	step->block_bytes = weight_bytes(m, loop ? first_block(m, last_statement(k)) : k->body, boxes);
	step->weight_bytes = distinct_bytes(m, k, boxes, step);
}

/* What a kernel does with the rows of each buffer. */
struct row_use {
	bool loads, stores;
};

static void note_row_use(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct row_use *use = &((struct row_use *)context)[a->buffer.i];
	(void)m;
	use->loads |= a->load.i && !ilir_is_prefetch(a);
	use->stores |= !a->load.i;
}

/* Bytes of one row: of all dimensions but the first. */
static int64_t bytes_of_row(const struct ilir_buffer_decl *b)
{
	int64_t bytes = ilir_bytes(b->dtype);
	for (int d = 1; d < b->rank; d++)
		if (__builtin_mul_overflow(bytes, b->dim[d].padded, &bytes) || bytes > MOST_ROW_BYTES)
			return MOST_ROW_BYTES;
	return bytes;
}

/* Adds what a step does with one row of a buffer.  Of weights only those that a row selects count, as in a look-up. */
static void add_row_bytes(const struct ilir_buffer_decl *b, struct row_use use, bool heads, struct image_step *step)
{
	bool state = b->kind == IMAGE_STATE, stored = state || b->kind == IMAGE_SCRATCH;
	bool lookup = b->kind == IMAGE_WEIGHT && b->rank > 1 && !step->weight_bytes;
	bool row = (b->rank && b->dim[0].rows != IMAGE_ONE && ilir_traits_of(b)) || lookup;
	int64_t bytes = row ? bytes_of_row(b) : 0;
	step->state_bytes += use.loads && state ? bytes : 0;
	step->read_bytes += use.loads && stored ? bytes : 0;
	if (heads)
		step->moved_bytes += (use.loads && state) || (use.stores && b->kind == IMAGE_LOCAL) ? bytes : 0;
	else if (!step->weight_bytes)
		step->moved_bytes += (use.loads + use.stores) * bytes;
}

/* Sets the bytes of rows, for one child or parent of each. */
static void describe_rows(const struct ilir_module *m, const struct ilir_kernel *k, struct image_step *step)
{
	struct row_use *use = ARENA_ARRAY(m->arena, struct row_use, m->buffers.n);
	const struct ilir_stmt *loop = ilir_swept_loop(k);
	ilir_visit_accesses(m, k->body, note_row_use, use);
	for (uint32_t b = 1; b < m->buffers.n; b++)
		add_row_bytes(&m->buffers.at[b], use[b], loop && k->body->next, step);
}

/* The kernel that runs before kernel k: of one domain they run in turn, over one level after the other where it
 * has levels.  -1 = none. */
static int kernel_before(const struct ilir_module *m, int k)
{
	const struct ilir_kernel *at = m->kernels.at, *kernel = &at[k];
	bool levels = kernel->domain == IMAGE_DOMAIN_INNER || kernel->domain == IMAGE_DOMAIN_BATCH ||
		      kernel->domain == IMAGE_DOMAIN_BATCH_DOWN;
	int last = k;
	if (k && at[k - 1].domain == kernel->domain)
		return k - 1;
	while (last + 1 < (int)m->kernels.n && at[last + 1].domain == kernel->domain)
		last++;
	return levels && last > k ? last : -1;
}

static void describe_joins(struct ilir_module *m, struct image *image, struct image_step *steps)
{
	for (int k = image->folds; k < (int)m->kernels.n; k++) {
		int before = kernel_before(m, k);
		const struct ilir_kernel *kernel = &m->kernels.at[k];
		if (before >= 0 && !kernel->cases && !m->kernels.at[before].cases &&
		    ilir_can_join(m, &m->kernels.at[before], kernel, image))
			steps[k].after = before + 1;
	}
}

void ilir_describe(struct ilir_module *m, struct image *image)
{
	struct image_step *steps = ARENA_ARRAY(m->arena, struct image_step, m->kernels.n);
	const char **names = ARENA_ARRAY(m->arena, const char *, m->kernels.n);
	struct boxes boxes = {.of = ARENA_ARRAY(m->arena, struct box, m->buffers.n),
			      .tokens = ARENA_ARRAY(m->arena, ilir_buffer, m->vars.n)};
	describe_buffers(m, image);
	describe_folds(m, image);
	for (size_t k = 0; k < m->kernels.n; k++) {
		steps[k] = (struct image_step){.kernel = k,
					       .domain = m->kernels.at[k].domain,
					       .first = m->kernels.at[k].first,
					       .last = m->kernels.at[k].last,
					       .cases = m->kernels.at[k].cases,
					       .sort = m->kernels.at[k].sort,
					       .apart = m->kernels.at[k].apart};
		describe_blocks(m, &m->kernels.at[k], &boxes, &steps[k]);
		describe_edges(m, &m->kernels.at[k], &boxes, &steps[k]);
		describe_rows(m, &m->kernels.at[k], &steps[k]);
		names[k] = m->kernels.at[k].name;
	}
	describe_joins(m, image, steps);
	image->steps = image->kernels = m->kernels.n;
	image->sorts = m->sorts.n;
	image->sort = m->sorts.at;
	image->step = steps;
	image->kernel_name = names;
}
