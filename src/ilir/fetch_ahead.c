/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: what a tile uses after its loops is asked for before the first of them, and comes while they run:
 * rows of tables that an index array names, the tile's own rows of inputs, of what was computed ahead and of
 * results.
 *
 *     for k in 0..64: sum[] = fma(..)          let row = word[n]
 *     let row = word[n]                        prefetch table[row, j]
 *     h[n, j] = sum[] + table[row, j]    ->    prefetch h[n, j]
 *                                              for k in 0..64: sum[] = fma(..)
 *                                              h[n, j] = sum[] + table[row, j]
 *
 * Indices that are read from arrays after the loop move with them: nothing writes there.  Weights that all
 * rows share are near anyway, and so are the rows of states that an index array names: of nodes that have
 * just been computed. */
#include "ilir/passes.h"

enum { LINE = 64 }; /* bytes of a line of the cache */

/* What a block says of a variable, or of a buffer. */
struct fact {
	bool noted;
	bool named;  /* a let's variable */
	bool late;   /* defined after the loop, and staying there */
	bool needed; /* by what is wanted */
	int stores, own_stores; /* statements that store in all of the block; in itself after the loop */
};

/* Facts of all of the module.  A block looks at few: each leaves the tables to the next as it found them, zero. */
struct facts {
	struct fact *of;
	VEC(uint32_t) noted;
};

/* One block, and where in it the first loop stands. */
struct tile {
	struct ilir_module *m;
	struct ilir_stmt *loop;
	struct facts *vars, *buffers;
	VEC(struct ilir_stmt *) movable;
	VEC(ilir_expr) wanted;
};

/* The fact, to be changed. */
static struct fact *note(const struct tile *t, struct facts *facts, uint32_t i)
{
	if (!facts->of[i].noted)
		vec_push(t->m->arena, &facts->noted, i);
	facts->of[i].noted = true;
	return &facts->of[i];
}

static struct fact *note_var(const struct tile *t, ilir_var v)
{
	return note(t, t->vars, v.i);
}

static struct fact *note_buffer(const struct tile *t, ilir_buffer b)
{
	return note(t, t->buffers, b.i);
}

static const struct fact *var_fact(const struct tile *t, ilir_var v)
{
	return &t->vars->of[v.i];
}

static const struct fact *buffer_fact(const struct tile *t, ilir_buffer b)
{
	return &t->buffers->of[b.i];
}

static void forget(struct facts *facts)
{
	while (facts->noted.n)
		facts->of[facts->noted.at[--facts->noted.n]] = (struct fact){false};
}

/* --- what moves to before the loop --- */

struct early {
	const struct tile *t;
	bool ok;
};

/* A register of indices, or an array that the linearizer fills. */
static bool holds_indices(const struct ilir_buffer_decl *b)
{
	return b->dtype == ILIR_INDEX ||
	       (b->kind >= IMAGE_TOKEN && b->kind != IMAGE_VECTOR && b->kind < ILIR_REGISTER);
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

/* It can be computed before the loop. */
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

/* Nothing stores to it but the block itself, after the loop. */
static bool is_own(const struct tile *t, ilir_buffer b)
{
	return buffer_fact(t, b)->own_stores == buffer_fact(t, b)->stores;
}

static bool moves(struct tile *t, const struct ilir_stmt *s)
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

static void stays(struct tile *t, const struct ilir_stmt *s)
{
	if (s->kind == ILIR_LET)
		note_var(t, s->let.var)->late = true;
	else if (s->kind == ILIR_ALLOC)
		note_buffer(t, s->alloc)->late = true;
	else if (s->kind == ILIR_STORE && is_index_register(t->m, s->store.buffer))
		note_buffer(t, s->store.buffer)->late = true;
}

/* --- what is wanted --- */

struct row {
	const struct tile *t;
	bool named;
};

/* Where a batch begins is no row that is picked. */
static void note_name(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct row *row = context;
	const struct ilir_node *n = ilir_at(m, e);
	int array = n->op == ILIR_LOAD ? ilir_buffer_at(m, n->buffer)->kind : IMAGE_ORIGIN;
	row->named |= (array != IMAGE_ORIGIN && array != IMAGE_CHILD_BEGIN) || (n->op == ILIR_VAR && var_fact(row->t, n->var)->named);
}

/* One of its indices was read from an array. */
static bool is_gathered(const struct tile *t, ilir_expr load)
{
	struct row row = {t, false};
	for (int i = 0; i < ilir_at(t->m, load)->args; i++)
		ilir_visit_expr(t->m, ilir_arg(t->m, load, i),
				&(struct ilir_visit){.expr = note_name, .context = &row});
	return row.named;
}

/* An index without its constant. */
static ilir_expr variable_part(const struct ilir_module *m, ilir_expr e, int64_t *constant)
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

/* Vectors of a row that are less than a line apart: one line, or the second comes with the next block of
 * columns. */
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
	ilir_expr p = variable_part(m, ilir_arg(m, a, last), &at[0]),
		  q = variable_part(m, ilir_arg(m, b, last), &at[1]);
	int elements = LINE / ilir_bytes(ilir_buffer_at(m, x->buffer)->dtype);
	return p.i == q.i && at[0] - at[1] < elements && at[1] - at[0] < elements;
}

static bool is_wanted(const struct tile *t, ilir_expr load)
{
	const struct ilir_node *n = ilir_at(t->m, load);
	const struct ilir_buffer_decl *b = ilir_buffer_at(t->m, n->buffer);
	if (b->kind == ILIR_REGISTER || holds_indices(b) || is_gathered(t, load) != (b->kind == IMAGE_WEIGHT))
		return false;
	for (int i = 0; i < n->args; i++)
		if (!is_early(t, ilir_arg(t->m, load, i)))
			return false;
	for (size_t i = 0; i < t->wanted.n; i++)
		if (share_line(t->m, t->wanted.at[i], load))
			return false;
	return true;
}

static void want(struct tile *t, ilir_expr load)
{
	if (is_wanted(t, load))
		vec_push(t->m->arena, &t->wanted, load);
}

static void want_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	if (ilir_at(m, e)->op == ILIR_LOAD)
		want(context, e);
}

static void note_choice(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *chooses = context;
	const struct ilir_node *n = ilir_at(m, e);
	*chooses |= n->op == ILIR_SELECT && ilir_type_of(m, ilir_arg(m, e, 0)).lanes == 1;
}

/* Of a scalar choice only one side may be an access at all. */
static bool chooses(const struct ilir_module *m, ilir_expr e)
{
	bool found = false;
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = note_choice, .context = &found});
	return found;
}

static void want_of(struct tile *t, const struct ilir_stmt *s)
{
	ilir_expr value = s->kind == ILIR_STORE ? s->store.value
			  : s->kind == ILIR_LET ? s->let.value
						: (ilir_expr){0};
	if (!value.i || chooses(t->m, value))
		return;
	ilir_visit_expr(t->m, value, &(struct ilir_visit){.expr = want_load, .context = t});
	if (s->kind == ILIR_STORE)
		want(t, ilir_load(t->m, s->store.buffer, s->store.index, s->store.indices));
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

static void prepare(struct tile *t, const struct ilir_stmt *block)
{
	ilir_visit_block(t->m, block, &(struct ilir_visit){.stmt = note_store, .context = t});
	for (const struct ilir_stmt *s = t->loop->next; s; s = s->next)
		if (s->kind == ILIR_STORE)
			note_buffer(t, s->store.buffer)->own_stores++;
}

/* Marks what the expression is computed from. */
static void need(const struct ilir_module *m, ilir_expr e, void *context)
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

/* What follows the loop: what can move, and what is wanted. */
static void look_behind(struct tile *t)
{
	const struct ilir_visit needs = {.expr = need, .context = t};
	for (struct ilir_stmt *s = t->loop->next; s; s = s->next)
		if (moves(t, s))
			vec_push(t->m->arena, &t->movable, s);
		else
			stays(t, s);
	for (struct ilir_stmt *s = t->loop->next; s; s = s->next)
		want_of(t, s);
	for (size_t i = 0; i < t->wanted.n; i++)
		ilir_visit_expr(t->m, t->wanted.at[i], &needs);
	for (size_t i = t->movable.n; i-- > 0;) {
		const struct ilir_stmt *s = t->movable.at[i];
		if (is_needed(t, s) && s->kind != ILIR_ALLOC)
			ilir_visit_expr(t->m, s->kind == ILIR_LET ? s->let.value : s->store.value, &needs);
	}
}

/* Takes the statements that move out of the block; gives them, and the prefetches. */
static struct ilir_stmt *take_early(struct tile *t)
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
	for (size_t i = 0; i < t->wanted.n; i++)
		early = ilir_append(early, ilir_prefetch(t->m, t->wanted.at[i]));
	return early;
}

static struct ilir_stmt *in_block(struct ilir_module *m, struct ilir_stmt *block, struct facts *facts)
{
	struct ilir_stmt **link = &block;
	while (*link && (*link)->kind != ILIR_FOR)
		link = &(*link)->next;
	if (!*link || !(*link)->next)
		return block;
	struct tile t = {.m = m, .loop = *link, .vars = &facts[0], .buffers = &facts[1]};
	prepare(&t, block);
	look_behind(&t);
	struct ilir_stmt *early = take_early(&t);
	if (early)
		*link = ilir_append(early, *link);
	forget(t.vars);
	forget(t.buffers);
	return block;
}

static struct ilir_stmt *in_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	if (s->kind == ILIR_FOR)
		s->loop.body = in_block(m, s->loop.body, context);
	return s;
}

void ilir_fetch_ahead(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	struct facts facts[2] = {{.of = ARENA_ARRAY(m->arena, struct fact, m->vars.n)},
				 {.of = ARENA_ARRAY(m->arena, struct fact, m->buffers.n)}};
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = in_loop, .context = facts});
}
