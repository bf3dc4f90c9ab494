/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: moves the loops of a tile inwards until each contains one statement.
 *
 *     for n2 in 0..2 unrolled                alloc row : index [2]
 *       let row = child[n1 + n2]             for n2: row[n2] = child[n1 + n2]
 *       alloc sum; sum[] = 0          ->     alloc sum : f32 [2]
 *       for k in 0..64                       for n2: sum[n2] = 0
 *         sum[] = fma(.., h[row, k], ..)     for k in 0..64
 *                                              for n2: sum[n2] = fma(.., h[row[n2], k], ..)
 *
 * Lets and registers whose values differ by iteration get a dimension for the loop.  A loop sinks if its
 * iterations are independent: if they write no register from outside, or only in a single statement, which
 * then keeps the order of iterations.  An inner loop or branch whose bounds or condition depend on the
 * iteration (the edges of a node) stays inside the tile loops that it depends on. */
#include "ilir/sink.h"

/* --- registers with a dimension for each loop --- */

/* Lists the loops of a mask in the order of dimensions and of nesting: unrolled ones first, the vector
 * last. */
static int order_loops(const struct sink *s, uint64_t mask, const struct ilir_stmt **loops)
{
	int n = 0;
	for (int vector = 0; vector < 2; vector++)
		for (size_t i = 0; i < s->loops.n; i++)
			if (mask >> i & 1 && (s->loops.at[i].loop->loop.kind == ILIR_VECTOR) == vector)
				loops[n++] = s->loops.at[i].loop;
	return n;
}

static void add_dimensions(const struct sink *s, struct ilir_buffer_decl *b, uint64_t mask)
{
	const struct ilir_stmt *loops[MAX_SUNK];
	int n = order_loops(s, mask, loops);
	for (int i = 0; i < n && b->rank < ILIR_MAX_RANK; i++) {
		int64_t extent = ilir_trip_count(s->m, loops[i]);
		b->dim[b->rank++] = (struct ilir_dim){loops[i]->loop.dim, IMAGE_ONE, extent, extent};
	}
}

/* The indices in these dimensions for the current iteration of the loops. */
static int iteration_index(const struct sink *s, uint64_t mask, ilir_expr *index)
{
	const struct ilir_stmt *loops[MAX_SUNK];
	int n = order_loops(s, mask, loops);
	for (int i = 0; i < n; i++) {
		ilir_expr at = ilir_var_ref(s->m, loops[i]->loop.var);
		index[i] = ilir_binary(s->m, ILIR_DIV, at, ilir_index(s->m, loops[i]->loop.step));
	}
	return n;
}

/* --- rewriting --- */

static ilir_expr replace_leaf(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct sink *s = context;
	const struct ilir_node *n = ilir_at(m, e);
	ilir_expr index[ILIR_MAX_RANK + MAX_SUNK];
	if (n->op == ILIR_VAR && n->var.i < s->as_register.n && s->as_register.at[n->var.i].i) {
		int count = iteration_index(s, s->var_mask.at[n->var.i], index);
		return ilir_load(m, s->as_register.at[n->var.i], index, count);
	}
	if (n->op != ILIR_LOAD || n->buffer.i >= s->buffer_mask.n || !s->buffer_mask.at[n->buffer.i])
		return e;
	int rank = n->args;
	ilir_buffer b = n->buffer;
	for (int i = 0; i < rank; i++)
		index[i] = ilir_arg(m, e, i);
	rank += iteration_index(s, s->buffer_mask.at[b.i], index + rank);
	return ilir_load(m, b, index, rank);
}

static ilir_expr replace_in_expr(struct sink *s, ilir_expr e)
{
	return ilir_map_expr(s->m, e, replace_leaf, s);
}

struct ilir_stmt *sink_wrap_in_loops(struct sink *s, struct ilir_stmt *stmt, uint64_t mask)
{
	const struct ilir_stmt *loops[MAX_SUNK];
	for (int i = order_loops(s, mask & s->active, loops); i-- > 0;) {
		const struct ilir_stmt *l = loops[i];
		const struct ilir_var_decl *old = &s->m->vars.at[l->loop.var.i];
		ilir_var v = ilir_new_var(s->m, old->name, old->type);
		stmt = ilir_substitute_block(s->m, stmt, l->loop.var, ilir_var_ref(s->m, v));
		stmt = ilir_for(s->m, v, l->loop.begin, l->loop.end, l->loop.step, l->loop.dim, l->loop.kind, stmt);
	}
	return stmt;
}

static struct ilir_stmt *sink_store(struct sink *s, const struct ilir_stmt *b)
{
	struct ilir_module *m = s->m;
	ilir_expr index[ILIR_MAX_RANK + MAX_SUNK];
	uint64_t mask = sink_store_mask(s, b);
	int n = b->store.indices;
	for (int i = 0; i < n; i++)
		index[i] = replace_in_expr(s, b->store.index[i]);
	if (sink_is_register(m, b->store.buffer)) {
		mask |= s->buffer_mask.at[b->store.buffer.i];
		n += iteration_index(s, s->buffer_mask.at[b->store.buffer.i], index + n);
	}
	return sink_wrap_in_loops(s, ilir_store(m, b->store.buffer, index, n, replace_in_expr(s, b->store.value)),
			     mask);
}

struct reading {
	ilir_buffer buffer;
	bool found;
};

static void note_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct reading *r = context;
	r->found |= ilir_at(m, e)->op == ILIR_LOAD && ilir_at(m, e)->buffer.i == r->buffer.i;
}

static bool reads_buffer(const struct ilir_module *m, ilir_expr e, ilir_buffer b)
{
	struct reading r = {b, false};
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = note_load, .context = &r});
	return r.found;
}

/* The number of stores from here on that go to registers, differ with the same loops, and are independent. */
static int run_length(const struct sink *s, const struct ilir_stmt *b)
{
	int n = 0;
	uint64_t mask = sink_store_mask(s, b);
	for (const struct ilir_stmt *at = b;
	     at && at->kind == ILIR_STORE && sink_is_register(s->m, at->store.buffer); at = at->next, n++) {
		if (sink_store_mask(s, at) != mask)
			return n;
		for (const struct ilir_stmt *other = b; other != at; other = other->next)
			if (other->store.buffer.i == at->store.buffer.i ||
			    reads_buffer(s->m, at->store.value, other->store.buffer) ||
			    reads_buffer(s->m, other->store.value, at->store.buffer))
				return n;
	}
	return n;
}

/* The unrolled loops of a mask over rows, or over columns, whose step is a vector; sets the number of
 * their iterations. */
static uint64_t unrolled_bits(const struct sink *s, uint64_t mask, bool columns, int64_t *iterations)
{
	uint64_t bits = 0;
	*iterations = 1;
	for (size_t i = 0; i < s->loops.n; i++) {
		const struct ilir_stmt *l = s->loops.at[i].loop;
		if (mask >> i & 1 && l->loop.kind == ILIR_UNROLLED && (l->loop.step > 1) == columns) {
			bits |= 1ull << i;
			*iterations *= ilir_trip_count(s->m, l);
		}
	}
	return bits;
}

/* Sinks a run of independent stores, the gates of rows and columns.  Each uses operands of a row, and
 * weights of a gate and column.  The smaller of the two sets should stay in machine registers, so rows
 * are the outer loop if there are more rows than weights, else weights are. */
static struct ilir_stmt *sink_stores(struct sink *s, const struct ilir_stmt **b)
{
	uint64_t saved = s->active, mask = sink_store_mask(s, *b) & s->active, rows;
	int64_t row_count, columns;
	int n = run_length(s, *b);
	struct ilir_stmt *block = NULL;
	rows = unrolled_bits(s, mask, false, &row_count);
	unrolled_bits(s, mask, true, &columns);
	rows = row_count > n * columns ? rows : 0;
	s->active &= ~rows;
	block = sink_store(s, *b);
	for (int i = 1; i < n && (*b)->next; i++) {
		*b = (*b)->next;
		block = ilir_append(block, sink_store(s, *b));
	}
	s->active = saved;
	return sink_wrap_in_loops(s, block, rows);
}

/* A let whose value differs by iteration becomes a register. */
static struct ilir_stmt *sink_let(struct sink *s, const struct ilir_stmt *b)
{
	struct ilir_module *m = s->m;
	uint64_t mask = s->var_mask.at[b->let.var.i];
	if (!mask)
		return ilir_let(m, b->let.var, replace_in_expr(s, b->let.value));
	struct ilir_var_decl *v = &m->vars.at[b->let.var.i];
	struct ilir_buffer_decl decl = {.name = v->name, .kind = ILIR_REGISTER, .dtype = v->type.dtype};
	add_dimensions(s, &decl, mask);
	ilir_buffer r = ilir_new_buffer(m, decl);
	s->as_register.at[b->let.var.i] = r;
	ilir_expr index[MAX_SUNK];
	int n = iteration_index(s, mask, index);
	struct ilir_stmt *store = ilir_store(m, r, index, n, replace_in_expr(s, b->let.value));
	return ilir_append(ilir_alloc(m, r), sink_wrap_in_loops(s, store, mask));
}

static struct ilir_stmt *sink_alloc(struct sink *s, const struct ilir_stmt *b)
{
	add_dimensions(s, ilir_buffer_at(s->m, b->alloc), s->buffer_mask.at[b->alloc.i]);
	return ilir_alloc(s->m, b->alloc);
}

/* The innermost of a nest of loops in which each body is a single loop. */
static struct ilir_stmt *innermost_loop(struct ilir_stmt *loop)
{
	while (loop->loop.body && loop->loop.body->kind == ILIR_FOR && !loop->loop.body->next)
		loop = loop->loop.body;
	return loop;
}

/* The number of sums that a loop accumulates, if they are independent and all that its body does; else 0. */
static int sums_of(const struct sink *s, const struct ilir_stmt *loop)
{
	int n = 0;
	const struct ilir_stmt *sums = innermost_loop((struct ilir_stmt *)loop)->loop.body;
	for (const struct ilir_stmt *at = sums; at; at = at->next)
		n++;
	return n && sums->kind == ILIR_STORE && run_length(s, sums) == n ? n : 0;
}

/* The loop that accumulates sums: this one, or of one over blocks that in its body (lower_sum.c); NULL = neither does. */
static const struct ilir_stmt *find_sums(const struct sink *s, const struct ilir_stmt *loop)
{
	const struct ilir_stmt *found = sums_of(s, loop) ? loop : NULL;
	for (const struct ilir_stmt *at = loop->loop.body; at && !found; at = at->next)
		found = at->kind == ILIR_FOR && !sink_bit_of(s, at) && sums_of(s, at) ? at : NULL;
	return found;
}

static bool keeps_sum(const struct ilir_stmt *loop, ilir_buffer sum)
{
	for (const struct ilir_stmt *at = innermost_loop((struct ilir_stmt *)loop)->loop.body; at;
	     at = at->next)
		if (at->store.buffer.i == sum.i)
			return true;
	return false;
}

/* Whether a loop of the block after this one accumulates other sums than this one. */
static bool others_follow(const struct sink *s, const struct ilir_stmt *loop)
{
	for (const struct ilir_stmt *b = loop->next; b; b = b->next) {
		int n = b->kind == ILIR_FOR ? sums_of(s, b) : 0;
		bool same = n == sums_of(s, loop);
		for (const struct ilir_stmt *at = innermost_loop((struct ilir_stmt *)loop)->loop.body;
		     n && at; at = at->next)
			same &= keeps_sum(b, at->store.buffer);
		if (n && !same)
			return true;
	}
	return false;
}

/* Whether an expression is a load of words that are neighbours in memory in successive iterations of a loop. */
static bool loads_neighbours(const struct ilir_module *m, ilir_expr e, ilir_var v)
{
	int args = ilir_at(m, e)->args;
	bool last = ilir_at(m, e)->op == ILIR_LOAD && args && ilir_uses_var(m, ilir_arg(m, e, args - 1), v);
	for (int d = 0; last && d < args - 1; d++)
		last = !ilir_uses_var(m, ilir_arg(m, e, d), v);
	return last;
}

/* An operand of a dot product without the masks that take half of each word. */
static ilir_expr find_words(const struct ilir_module *m, const struct ilir_stmt *s, int a)
{
	ilir_expr e = ilir_arg(m, s->store.value, a);
	while (ilir_at(m, e)->op == ILIR_BIT_AND || ilir_at(m, e)->op == ILIR_BIT_OR)
		e = ilir_arg(m, e, 0);
	return e;
}

/* The lanes of the vector loop of a mask, and its bit; 1 and 0 = there is none. */
static int64_t lanes_of(const struct sink *s, uint64_t mask, uint64_t *bit)
{
	int64_t lanes = 1;
	*bit = 0;
	for (size_t i = 0; i < s->loops.n; i++)
		if (mask >> i & 1 && s->loops.at[i].loop->loop.kind == ILIR_VECTOR) {
			lanes = ilir_trip_count(s->m, s->loops.at[i].loop);
			*bit = 1ull << i;
		}
	return lanes;
}

/* Whether a store adds dot products of the words of a row with those of a weight, which lie along the lanes, to a sum, as matrix
 * registers compute them. */
static bool multiplies_words(const struct sink *s, const struct ilir_stmt *store, ilir_var v, uint64_t lanes)
{
	enum ilir_op op = ilir_at(s->m, store->store.value)->op;
	if (op != ILIR_DOT4 && op != ILIR_DOT_BF16)
		return false;
	ilir_expr row = find_words(s->m, store, 0), word = find_words(s->m, store, 1);
	bool halves = row.i != ilir_arg(s->m, store->store.value, 0).i;
	const struct ilir_node *weight = ilir_at(s->m, word);
	return weight->op == ILIR_LOAD && ilir_buffer_at(s->m, weight->buffer)->kind == IMAGE_WEIGHT && halves == (op == ILIR_DOT_BF16) &&
	       !(sink_mask_of(s, row) & lanes) && sink_mask_of(s, word) & lanes && loads_neighbours(s->m, row, v);
}

/* Whether matrix registers compute the sums of a loop that accumulates some: then none of them is a vector register. */
static bool uses_matrices(const struct sink *s, const struct ilir_stmt *loop)
{
	const struct ilir_stmt *inner = innermost_loop((struct ilir_stmt *)loop);
	uint64_t mask = sink_store_mask(s, inner->loop.body) & s->active, vector;
	int64_t rows;
	unrolled_bits(s, mask, false, &rows);
	bool fits = s->tiling->matrices && lanes_of(s, mask, &vector) == ILIR_MATRIX_WORDS;
	for (const struct ilir_stmt *at = inner->loop.body; fits && at; at = at->next)
		fits = multiplies_words(s, at, inner->loop.var, vector) &&
		       (rows > 1 || ilir_at(s->m, at->store.value)->op == ILIR_DOT_BF16);
	return fits;
}

/* The number of sums that a loop accumulates at a time, which are in memory before and after it; 0 = all,
 * which stay in registers, or are moved to matrix registers.  If loops of a block accumulate different sums, each
 * keeps the others' in memory, because LLVM would spill the wrong ones. */
static int sums_at_once(const struct sink *s, const struct ilir_stmt *loop)
{
	int64_t rows, columns;
	int n = sums_of(s, loop);
	if (!n)
		return 0;
	uint64_t mask = sink_store_mask(s, innermost_loop((struct ilir_stmt *)loop)->loop.body) & s->active;
	unrolled_bits(s, mask, false, &rows);
	unrolled_bits(s, mask, true, &columns);
	if (uses_matrices(s, loop))
		return 0;
	if (n * rows * columns > s->tiling->accumulators)
		return sched_gates_at_once(s->tiling->accumulators, n, rows * columns);
	return s->mixed ? n : 0;
}

static struct ilir_stmt *sink_plain_loop(struct sink *, const struct ilir_stmt *);

struct exchange {
	ilir_buffer from, to;
	ilir_expr load; /* the load of `from` in the sum */
};

static ilir_expr exchange_load(struct ilir_module *m, ilir_expr e, void *context)
{
	struct exchange *x = context;
	if (ilir_at(m, e)->op != ILIR_LOAD || ilir_at(m, e)->buffer.i != x->from.i)
		return e;
	x->load = e;
	return ilir_load(m, x->to, NULL, 0);
}

/* A register that replaces a sum while a loop runs.  The sum itself is kept in memory between loops, so
 * that each loop can use all registers of the machine. */
static ilir_buffer working_copy(struct sink *s, ilir_buffer sum)
{
	const struct ilir_buffer_decl *like = ilir_buffer_at(s->m, sum);
	struct ilir_buffer_decl decl = {.name = like->name, .kind = ILIR_REGISTER, .dtype = like->dtype};
	ilir_buffer_at(s->m, sum)->parked = true;
	ilir_buffer copy = ilir_new_buffer(s->m, decl);
	while (s->buffer_mask.n <= copy.i)
		vec_push(s->m->arena, &s->buffer_mask, 0);
	sink_mask_buffer(s, copy, s->buffer_mask.at[sum.i]);
	return copy;
}

/* The loop with n of its sums only, which are loaded before it and stored after it. */
static struct ilir_stmt *around_sums(struct sink *s, struct ilir_stmt *loop, const struct ilir_stmt *sums, int n)
{
	struct ilir_module *m = s->m;
	struct ilir_stmt *before = NULL, *after = NULL, *inner = innermost_loop(loop);
	inner->loop.body = NULL;
	for (int i = 0; i < n && sums; i++, sums = sums->next) {
		struct exchange x = {sums->store.buffer, working_copy(s, sums->store.buffer), {0}};
		ilir_expr value = ilir_map_expr(m, sums->store.value, exchange_load, &x);
		before = ilir_append(before, ilir_append(ilir_alloc(m, x.to),
							 ilir_store(m, x.to, NULL, 0, x.load)));
		inner->loop.body = ilir_append(inner->loop.body, ilir_store(m, x.to, NULL, 0, value));
		after = ilir_append(after, ilir_store(m, x.from, NULL, 0, ilir_load(m, x.to, NULL, 0)));
	}
	/* in program order, because the alloc of a register must be sunk before its uses */
	struct ilir_stmt *block = sink_block(s, before);
	block = ilir_append(block, sink_plain_loop(s, loop));
	return ilir_append(block, sink_block(s, after));
}

/* Splits a loop with more sums than there are registers into several. */
static struct ilir_stmt *split_sums(struct sink *s, const struct ilir_stmt *b, int at_once)
{
	struct ilir_stmt alone = *b, *block = NULL;
	alone.next = NULL;
	for (int first = 0;; first += at_once) {
		struct ilir_stmt *loop = ilir_clone_block(s->m, &alone, NULL);
		const struct ilir_stmt *sums = innermost_loop(loop)->loop.body;
		for (int i = 0; i < first && sums; i++)
			sums = sums->next;
		if (!sums)
			return block;
		block = ilir_append(block, around_sums(s, loop, sums, at_once));
	}
}

static struct ilir_stmt *sink_loop(struct sink *s, const struct ilir_stmt *b)
{
	uint64_t own = sink_bit_of(s, b), saved = s->active;
	if (own) {
		s->active |= own;
		struct ilir_stmt *body = sink_block(s, b->loop.body);
		s->active = saved;
		return body;
	}
	int at_once = sums_at_once(s, b);
	return at_once ? split_sums(s, b, at_once) : sink_plain_loop(s, b);
}

static struct ilir_stmt *sink_plain_loop(struct sink *s, const struct ilir_stmt *b)
{
	uint64_t saved = s->active;
	uint64_t around = sink_mask_of(s, b->loop.begin) | sink_mask_of(s, b->loop.end);
	bool within = s->within, outer = s->pipelined;
	s->active &= ~around;
	s->within |= find_sums(s, b) != NULL;
	s->pipelined |= ilir_is_pipelined(s->tiling, b->loop.var);
	struct ilir_stmt *body = sink_block(s, b->loop.body);
	s->active = saved;
	s->within = within;
	s->pipelined = outer;
	struct ilir_stmt *loop =
	    ilir_for(s->m, b->loop.var, replace_in_expr(s, b->loop.begin), replace_in_expr(s, b->loop.end),
		     b->loop.step, b->loop.dim, b->loop.kind, body);
	return sink_wrap_in_loops(s, loop, around);
}

static struct ilir_stmt *sink_branch(struct sink *s, const struct ilir_stmt *b)
{
	uint64_t around = sink_mask_of(s, b->branch.condition), saved = s->active;
	s->active &= ~around;
	struct ilir_stmt *then = sink_block(s, b->branch.then), *otherwise = sink_block(s, b->branch.otherwise);
	s->active = saved;
	return sink_wrap_in_loops(s, ilir_if(s->m, replace_in_expr(s, b->branch.condition), then, otherwise),
			     around);
}

/* The statements of a tile after the last loop that accumulates sums, where these are in memory and one loop over rows can
 * run the statements; else NULL. */
static const struct ilir_stmt *find_epilogue(const struct sink *s, const struct ilir_stmt *b)
{
	const struct ilir_stmt *epilogue = NULL;
	for (; b; b = b->next) {
		const struct ilir_stmt *sums = b->kind == ILIR_FOR && !sink_bit_of(s, b) ? find_sums(s, b) : NULL;
		if (sums && !uses_matrices(s, sums) && !s->pipelined)
			return NULL;
		epilogue = sums ? b->next : epilogue;
	}
	return epilogue && !s->within && sink_can_loop_rows(s, epilogue, sink_row_bit(s)) ? epilogue : NULL;
}

static bool is_mixed(const struct sink *s, const struct ilir_stmt *b)
{
	for (; b; b = b->next)
		if (b->kind == ILIR_FOR && sums_of(s, b) && others_follow(s, b))
			return true;
	return false;
}

struct ilir_stmt *sink_block(struct sink *s, const struct ilir_stmt *b)
{
	struct ilir_stmt *block = NULL, **link = &block;
	const struct ilir_stmt *epilogue = find_epilogue(s, b);
	bool outer = s->mixed;
	s->mixed = is_mixed(s, b) || (epilogue && s->pipelined);
	for (; b != epilogue; b = b->next) {
		*link = b->kind == ILIR_FOR	? sink_loop(s, b)
			: b->kind == ILIR_IF	? sink_branch(s, b)
			: b->kind == ILIR_LET	? sink_let(s, b)
			: b->kind == ILIR_ALLOC ? sink_alloc(s, b)
			: b->kind == ILIR_STORE ? sink_stores(s, &b)
						: ilir_barrier(s->m);
		while (*link)
			link = &(*link)->next;
	}
	if (epilogue)
		*link = sink_rows(s, epilogue, sink_row_bit(s));
	s->mixed = outer;
	return block;
}

/* Sinks the loops of one nest: the outermost loop that contains a tile loop, and all below it. */
static struct ilir_stmt *sink_nest(struct sink *s, const struct ilir_stmt *nest)
{
	sink_find_masks(s, nest);
	struct ilir_stmt *sunk = sink_block(s, nest);
	sink_clear_masks(s);
	return sunk;
}

static bool has_tile_loop(const struct ilir_module *m, const struct ilir_stmt *s)
{
	if (sink_can_move(m, s))
		return true;
	for (const struct ilir_stmt *b = s->kind == ILIR_FOR ? s->loop.body : NULL; b; b = b->next)
		if (sink_can_move(m, b))
			return true;
	return false;
}

/* Finds the nests in a block, and rebuilds the statements around them. */
static struct ilir_stmt *find_nests(struct sink *s, const struct ilir_stmt *b)
{
	struct ilir_stmt *block = NULL, **link = &block;
	for (; b; b = b->next) {
		struct ilir_stmt alone = *b;
		alone.next = NULL;
		if (has_tile_loop(s->m, &alone)) {
			*link = sink_nest(s, &alone);
		} else {
			struct ilir_stmt *copy = *link = arena_copy(s->m->arena, &alone, sizeof alone);
			if (b->kind == ILIR_FOR)
				copy->loop.body = find_nests(s, b->loop.body);
			else if (b->kind == ILIR_IF)
				copy->branch.then = find_nests(s, b->branch.then),
				copy->branch.otherwise = find_nests(s, b->branch.otherwise);
		}
		while (*link)
			link = &(*link)->next;
	}
	return block;
}

void ilir_sink(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct sink s = {.m = m, .tiling = tiling};
	for (size_t k = 0; k < m->kernels.n; k++)
		m->kernels.at[k].body = find_nests(&s, m->kernels.at[k].body);
}
