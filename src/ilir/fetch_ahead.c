/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: prefetches before the first loop of a tile what it accesses after its loops, so that it arrives while
 * they run: rows of tables selected by an index array, and the tile's own rows of inputs, of hoisted values
 * and of results.
 *
 *     for k in 0..64: sum[] = fma(..)          let row = word[n]
 *     let row = word[n]                        prefetch table[row, j]
 *     h[n, j] = sum[] + table[row, j]    ->    prefetch write h[n, j]
 *                                              for k in 0..64: sum[] = fma(..)
 *                                              h[n, j] = sum[] + table[row, j]
 *
 * What the block stores to is prefetched for writing: a line that another thread has read since it was last
 * stored to is then taken from that thread's cache while the loop runs.
 * A loop over the rows of the tile behind its loops is treated likewise: a loop before them prefetches what it accesses.
 * Indices that are read from arrays after the loop are moved before it, since nothing writes these arrays.
 * Not prefetched are weights that all rows share and rows of states selected by an index array, which were
 * just computed: they are in the cache.  Where leaves' rows of a state are in a table, rows that are selected are prefetched. */
#include "ilir/passes.h"

enum { LINE = 64 }; /* size of a cache line [bytes] */

/* Facts about a variable or a buffer in one block. */
struct fact {
	bool noted;
	bool named;  /* a let's variable */
	bool late;   /* defined after the loop by a statement that does not move */
	bool needed; /* the addresses of prefetches depend on it */
	int stores;  /* number of stores in the block and all blocks inside it */
	int own_stores; /* number of stores in the block itself, after the loop */
};

/* A table of facts for the module.  A block uses few entries, and clears them afterwards for the next
 * block. */
struct facts {
	VEC(struct fact) of; /* by id */
	VEC(uint32_t) noted;
};

/* An access to prefetch. */
struct prefetch {
	ilir_expr load;
	bool writes;
};

/* A block, and the first loop in it. */
struct tile {
	struct ilir_module *m;
	struct ilir_stmt *loop;
	struct facts *vars, *buffers;
	VEC(struct ilir_stmt *) movable;
	VEC(struct prefetch) prefetched;
};

/* The facts of a variable or buffer, for writing. */
static struct fact *note_fact(const struct tile *t, struct facts *facts, uint32_t i)
{
	if (!facts->of.at[i].noted)
		vec_push(t->m->arena, &facts->noted, i);
	facts->of.at[i].noted = true;
	return &facts->of.at[i];
}

static struct fact *note_var(const struct tile *t, ilir_var v)
{
	return note_fact(t, t->vars, v.i);
}

static struct fact *note_buffer(const struct tile *t, ilir_buffer b)
{
	return note_fact(t, t->buffers, b.i);
}

static const struct fact *var_fact(const struct tile *t, ilir_var v)
{
	return &t->vars->of.at[v.i];
}

static const struct fact *buffer_fact(const struct tile *t, ilir_buffer b)
{
	return &t->buffers->of.at[b.i];
}

/* Extends a table to so many; copies of loops over rows have variables of their own. */
static void reserve_facts(const struct ilir_module *m, struct facts *facts, size_t n)
{
	while (facts->of.n < n)
		vec_push(m->arena, &facts->of, (struct fact){false});
}

static void clear_facts(struct facts *facts)
{
	while (facts->noted.n)
		facts->of.at[facts->noted.at[--facts->noted.n]] = (struct fact){false};
}

/* --- statements that move before the loop --- */

struct early {
	const struct tile *t;
	bool ok;
};

/* Whether a buffer is a register of indices, or an array of a kind that is always one of indices. */
static bool holds_indices(const struct ilir_buffer_decl *b)
{
	const struct image_buffer_traits *t = ilir_traits_of(b);
	return b->dtype == ILIR_INDEX || (t && t->dtype == DTYPE_I32);
}

static void check_early(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct early *early = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR)
		early->ok &= !var_fact(early->t, n->var)->late;
	if (n->op == ILIR_LOAD)
		early->ok &=
		    !buffer_fact(early->t, n->buffer)->late && holds_indices(ilir_buffer_at(m, n->buffer));
}

/* Whether an expression can be computed before the loop. */
static bool is_early(const struct tile *t, ilir_expr e)
{
	struct early early = {t, true};
	ilir_visit_expr(t->m, e, &(struct ilir_visit){.expr = check_early, .context = &early});
	return early.ok;
}

static bool is_index_register(const struct ilir_module *m, ilir_buffer b)
{
	const struct ilir_buffer_decl *decl = ilir_buffer_at(m, b);
	return decl->kind == ILIR_REGISTER && decl->dtype == ILIR_INDEX;
}

/* Whether only the block itself stores to a buffer, after the loop. */
static bool is_own(const struct tile *t, ilir_buffer b)
{
	return buffer_fact(t, b)->own_stores == buffer_fact(t, b)->stores;
}

static bool is_movable(struct tile *t, const struct ilir_stmt *s)
{
	switch (s->kind) {
	case ILIR_LET:
		return ilir_type_of(t->m, s->let.value).dtype == ILIR_INDEX && is_early(t, s->let.value);
	case ILIR_ALLOC:
		return is_index_register(t->m, s->alloc) && is_own(t, s->alloc);
	case ILIR_STORE:
		return is_index_register(t->m, s->store.buffer) && is_own(t, s->store.buffer) &&
		       !buffer_fact(t, s->store.buffer)->late && is_early(t, s->store.value);
	default:
		return false;
	}
}

static void mark_late(struct tile *t, const struct ilir_stmt *s)
{
	if (s->kind == ILIR_LET)
		note_var(t, s->let.var)->late = true;
	else if (s->kind == ILIR_ALLOC)
		note_buffer(t, s->alloc)->late = true;
	else if (s->kind == ILIR_STORE && is_index_register(t->m, s->store.buffer))
		note_buffer(t, s->store.buffer)->late = true;
}

/* --- accesses to prefetch --- */

struct row {
	const struct tile *t;
	bool named;
};

/* Records whether an index comes from an array, but for the arrays that give the first row of a batch. */
static void note_name(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct row *row = context;
	const struct ilir_node *n = ilir_at(m, e);
	int array = n->op == ILIR_LOAD ? ilir_buffer_at(m, n->buffer)->kind : IMAGE_ORIGIN;
	row->named |= (array != IMAGE_ORIGIN && array != IMAGE_CHILD_BEGIN) || (n->op == ILIR_VAR && var_fact(row->t, n->var)->named);
}

/* Whether an index of a load was read from an array. */
static bool is_gathered(const struct tile *t, ilir_expr load)
{
	struct row row = {t, false};
	for (int i = 0; i < ilir_at(t->m, load)->args; i++)
		ilir_visit_expr(t->m, ilir_arg(t->m, load, i),
				&(struct ilir_visit){.expr = note_name, .context = &row});
	return row.named;
}

/* An index without its constant term, which *constant is set to. */
static ilir_expr without_constant(const struct ilir_module *m, ilir_expr e, int64_t *constant)
{
	if (ilir_at(m, e)->op == ILIR_RAMP)
		e = ilir_arg(m, e, 0);
	if (ilir_constant(m, e, constant))
		return (ilir_expr){0};
	if (ilir_at(m, e)->op == ILIR_ADD && ilir_constant(m, ilir_arg(m, e, 1), constant))
		return ilir_arg(m, e, 0);
	*constant = 0;
	return e;
}

/* Whether two loads are less than a cache line apart in one row: a prefetch of the first suffices, since
 * the next block of columns prefetches what follows. */
static bool share_line(const struct ilir_module *m, ilir_expr a, ilir_expr b)
{
	const struct ilir_node *x = ilir_at(m, a), *y = ilir_at(m, b);
	int64_t at[2];
	int last = x->args - 1;
	if (a.i == b.i || x->buffer.i != y->buffer.i || x->args != y->args || last < 0)
		return a.i == b.i;
	for (int i = 0; i < last; i++)
		if (ilir_arg(m, a, i).i != ilir_arg(m, b, i).i)
			return false;
	ilir_expr p = without_constant(m, ilir_arg(m, a, last), &at[0]),
		  q = without_constant(m, ilir_arg(m, b, last), &at[1]);
	int elements = LINE / ilir_bytes(ilir_buffer_at(m, x->buffer)->dtype);
	return p.i == q.i && at[0] - at[1] < elements && at[1] - at[0] < elements;
}

/* Whether an access can be prefetched before the loop, and probably is not in the cache. */
static bool is_prefetchable(const struct tile *t, ilir_expr load)
{
	const struct ilir_node *n = ilir_at(t->m, load);
	const struct ilir_buffer_decl *b = ilir_buffer_at(t->m, n->buffer);
	bool table = b->kind == IMAGE_WEIGHT, gathered = is_gathered(t, load);
	if (b->kind == ILIR_REGISTER || holds_indices(b) || (gathered ? !table && !b->table.i : table))
		return false;
	for (int i = 0; i < n->args; i++)
		if (!is_early(t, ilir_arg(t->m, load, i)))
			return false;
	return true;
}

static void add_prefetch(struct tile *t, ilir_expr load, bool writes)
{
	if (!is_prefetchable(t, load))
		return;
	for (size_t i = 0; i < t->prefetched.n; i++)
		if (share_line(t->m, t->prefetched.at[i].load, load)) {
			t->prefetched.at[i].writes |= writes;
			return;
		}
	vec_push(t->m->arena, &t->prefetched, ((struct prefetch){load, writes}));
}

static void prefetch_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	if (ilir_at(m, e)->op == ILIR_LOAD)
		add_prefetch(context, e, false);
}

static void note_choice(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *found = context;
	const struct ilir_node *n = ilir_at(m, e);
	*found |= n->op == ILIR_SELECT && ilir_type_of(m, ilir_arg(m, e, 0)).lanes == 1;
}

/* Whether an expression contains a scalar select, only one side of which may be a valid access. */
static bool has_scalar_choice(const struct ilir_module *m, ilir_expr e)
{
	bool found = false;
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = note_choice, .context = &found});
	return found;
}

static void add_prefetches_of(struct tile *t, const struct ilir_stmt *s)
{
	ilir_expr value = s->kind == ILIR_STORE ? s->store.value
			  : s->kind == ILIR_LET ? s->let.value
						: (ilir_expr){0};
	if (!value.i || has_scalar_choice(t->m, value))
		return;
	ilir_visit_expr(t->m, value, &(struct ilir_visit){.expr = prefetch_load, .context = t});
	if (s->kind == ILIR_STORE)
		add_prefetch(t, ilir_load(t->m, s->store.buffer, s->store.index, s->store.indices), true);
}

/* --- blocks --- */

static void note_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct tile *t = context;
	(void)m;
	if (s->kind == ILIR_STORE)
		note_buffer(t, s->store.buffer)->stores++;
	if (s->kind == ILIR_LET)
		note_var(t, s->let.var)->named = true;
}

static void count_stores(struct tile *t, const struct ilir_stmt *block)
{
	ilir_visit_block(t->m, block, &(struct ilir_visit){.stmt = note_store, .context = t});
	for (const struct ilir_stmt *s = t->loop->next; s; s = s->next)
		if (s->kind == ILIR_STORE)
			note_buffer(t, s->store.buffer)->own_stores++;
}

/* Marks the variables and buffers that an expression depends on. */
static void mark_needed(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct tile *t = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR)
		note_var(t, n->var)->needed = true;
	else if (n->op == ILIR_LOAD)
		note_buffer(t, n->buffer)->needed = true;
}

static bool is_needed(const struct tile *t, const struct ilir_stmt *s)
{
	return s->kind == ILIR_LET ? var_fact(t, s->let.var)->needed
				   : buffer_fact(t, s->kind == ILIR_ALLOC ? s->alloc : s->store.buffer)->needed;
}

/* Finds the statements after the loop that can move before it, and the accesses to prefetch. */
static void analyze_after_loop(struct tile *t)
{
	const struct ilir_visit needs = {.expr = mark_needed, .context = t};
	for (struct ilir_stmt *s = t->loop->next; s; s = s->next)
		if (is_movable(t, s))
			vec_push(t->m->arena, &t->movable, s);
		else
			mark_late(t, s);
	for (struct ilir_stmt *s = t->loop->next; s; s = s->next)
		add_prefetches_of(t, s);
	for (size_t i = 0; i < t->prefetched.n; i++)
		ilir_visit_expr(t->m, t->prefetched.at[i].load, &needs);
	for (size_t i = t->movable.n; i-- > 0;) {
		const struct ilir_stmt *s = t->movable.at[i];
		if (is_needed(t, s) && s->kind != ILIR_ALLOC)
			ilir_visit_expr(t->m, s->kind == ILIR_LET ? s->let.value : s->store.value, &needs);
	}
}

/* Removes the statements that move from the block; returns them, followed by the prefetches. */
static struct ilir_stmt *extract_early(struct tile *t)
{
	struct ilir_stmt *early = NULL;
	size_t next = 0;
	for (struct ilir_stmt **link = &t->loop->next; *link;) {
		struct ilir_stmt *s = *link;
		bool movable = next < t->movable.n && t->movable.at[next] == s;
		next += movable;
		if (movable && is_needed(t, s)) {
			*link = s->next;
			s->next = NULL;
			early = ilir_append(early, s);
		} else {
			link = &s->next;
		}
	}
	for (size_t i = 0; i < t->prefetched.n; i++)
		early = ilir_append(
		    early, ilir_prefetch(t->m, t->prefetched.at[i].load, t->prefetched.at[i].writes));
	return early;
}

/* A loop that prefetches what a loop over rows after the tile's loops accesses; NULL = that is nothing. */
static struct ilir_stmt *fetch_for_rows(struct tile *outer, const struct ilir_stmt *rows)
{
	struct ilir_module *m = outer->m;
	struct ilir_stmt front = {.next = rows->loop.body}, *early = NULL;
	struct tile t = {.m = m, .loop = &front, .vars = outer->vars, .buffers = outer->buffers};
	for (const struct ilir_stmt *s = front.next; s; s = s->next)
		if (s->kind == ILIR_STORE)
			note_buffer(&t, s->store.buffer)->own_stores++;
	analyze_after_loop(&t);
	for (size_t i = 0; i < t.movable.n; i++) {
		struct ilir_stmt *copy = arena_copy(m->arena, t.movable.at[i], sizeof *copy);
		copy->next = NULL;
		early = is_needed(&t, copy) ? ilir_append(early, copy) : early;
	}
	for (size_t i = 0; i < t.prefetched.n; i++)
		early = ilir_append(early, ilir_prefetch(m, t.prefetched.at[i].load, t.prefetched.at[i].writes));
	struct ilir_stmt *loop =
	    ilir_for(m, rows->loop.var, rows->loop.begin, rows->loop.end, rows->loop.step, rows->loop.dim, rows->loop.kind, early);
	return t.prefetched.n ? ilir_clone_block(m, loop, NULL) : NULL;
}

static struct ilir_stmt *fetch_for_loops(struct tile *t)
{
	struct ilir_stmt *early = NULL;
	for (const struct ilir_stmt *s = t->loop->next; s; s = s->next)
		if (ilir_loops_over_rows(t->m, s))
			early = ilir_append(early, fetch_for_rows(t, s));
	return early;
}

static struct ilir_stmt *fetch_in_block(struct ilir_module *m, struct ilir_stmt *block, struct facts *facts)
{
	struct ilir_stmt **link = &block;
	while (*link && (*link)->kind != ILIR_FOR)
		link = &(*link)->next;
	if (!*link || !(*link)->next)
		return block;
	reserve_facts(m, &facts[0], m->vars.n);
	reserve_facts(m, &facts[1], m->buffers.n);
	struct tile t = {.m = m, .loop = *link, .vars = &facts[0], .buffers = &facts[1]};
	count_stores(&t, block);
	analyze_after_loop(&t);
	struct ilir_stmt *early = ilir_append(extract_early(&t), fetch_for_loops(&t));
	if (early)
		*link = ilir_append(early, *link);
	clear_facts(t.vars);
	clear_facts(t.buffers);
	return block;
}

static struct ilir_stmt *fetch_in_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	if (s->kind == ILIR_FOR)
		s->loop.body = fetch_in_block(m, s->loop.body, context);
	return s;
}

void ilir_fetch_ahead(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	struct facts facts[2] = {0};
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = fetch_in_loop, .context = facts});
}
