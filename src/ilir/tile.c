/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: cuts loops as the schedule specifies.
 *
 *     for n in begin..end            for n1 in begin..begin + (end-begin)/2*2 step 2
 *       B(n)                           for n2 in 0..2 unrolled
 *                               ->       B(n1 + n2)
 *                                    for n3 in begin + (end-begin)/2*2..end
 *                                      B(n3)
 *
 * or, without peeling, the first of these loops runs to the end and has a test inside, `if n1 + n2 < end`.
 *
 * A loop over columns is cut into vectors, and its end rounded up.  Elements past the end are padding of the
 * buffers, so a loop is only cut into vectors if its variable indexes last dimensions, or weights, which are
 * packed. */
#include "ilir/passes.h"

static const struct ilir_type index_type = {ILIR_INDEX, 1};

/* --- loops that can be vectors --- */

struct check {
	ilir_var var;
	bool ok;
	bool *is_row;  /* by variable: it was read from an index array */
	bool *bounded; /* by variable: it is of a loop with constant bounds */
	uint32_t
	    *follows; /* by variable of a let: the last checked loop whose variable its value depends on */
	uint32_t *inside; /* by register: the variable of the last checked loop that it is allocated in */
};

/* Whether the index is var, or var plus a constant, which a recipe can express. */
static bool moves_alone(const struct ilir_module *m, ilir_expr e, ilir_var v)
{
	int64_t c;
	if (ilir_at(m, e)->op == ILIR_ADD && ilir_constant(m, ilir_arg(m, e, 1), &c))
		e = ilir_arg(m, e, 0);
	return ilir_at(m, e)->op == ILIR_VAR && ilir_at(m, e)->var.i == v.i;
}

int64_t ilir_step_along(const struct ilir_module *m, ilir_expr e, ilir_var v)
{
	const struct ilir_node *n = ilir_at(m, e);
	int64_t by;
	if (n->op == ILIR_VAR)
		return n->var.i == v.i;
	if (n->op == ILIR_MUL && ilir_constant(m, ilir_arg(m, e, 1), &by) && by > 0 && by <= ILIR_MAX_STEP)
		return by * ilir_step_along(m, ilir_arg(m, e, 0), v);
	if (n->op != ILIR_ADD)
		return 0;
	ilir_expr a = ilir_arg(m, e, 0), b = ilir_arg(m, e, 1);
	if (ilir_uses_var(m, a, v))
		return ilir_uses_var(m, b, v) ? 0 : ilir_step_along(m, a, v);
	return ilir_step_along(m, b, v);
}

/* Whether vectors along the variable can be accessed: their elements are adjacent, or are loaded by a step. */
static bool moves_with(const struct ilir_module *m, ilir_expr e, ilir_var v, const struct ilir_buffer_decl *b)
{
	bool by_step = b->dtype == ILIR_F32 && b->kind != IMAGE_WEIGHT && b->kind != ILIR_REGISTER;
	int64_t step = ilir_step_along(m, e, v);
	return step == 1 || (by_step && step > 1 && step <= ILIR_MAX_STEP);
}

/* Whether a value differs between the iterations of the loop, perhaps through lets, or registers that each iteration
 * has of its own. */
struct dependence {
	const struct check *c;
	bool found;
};

static void find_dependence(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct dependence *d = context;
	const struct ilir_node *n = ilir_at(m, e);
	d->found |= n->op == ILIR_VAR && (n->var.i == d->c->var.i || d->c->follows[n->var.i] == d->c->var.i);
	d->found |= n->op == ILIR_LOAD && d->c->inside[n->buffer.i] == d->c->var.i;
}

static bool differs(const struct ilir_module *m, ilir_expr e, const struct check *c)
{
	struct dependence d = {c, false};
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = find_dependence, .context = &d});
	return d.found;
}

struct leaf_check {
	const struct check *c;
	bool ok;
};

static void check_leaf(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct leaf_check *check = context;
	const struct ilir_node *n = ilir_at(m, e);
	check->ok &= n->op != ILIR_LOAD && n->op != ILIR_SIZE &&
		     (n->op != ILIR_VAR || n->var.i == check->c->var.i || check->c->bounded[n->var.i]);
}

/* Whether the largest value of the index is known, so that buffers can be padded to it. */
static bool is_bounded(const struct ilir_module *m, ilir_expr e, const struct check *c)
{
	struct leaf_check check = {c, true};
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = check_leaf, .context = &check});
	return check.ok;
}

static bool is_row(const struct ilir_module *m, ilir_expr e, const struct check *c)
{
	const struct ilir_node *n = ilir_at(m, e);
	return ilir_loaded_index(m, e).i || (n->op == ILIR_VAR && c->is_row[n->var.i]);
}

/* Checks an access, even if conditions around it never hold, since it is vectorized all the same.
 * Elements stored past the end of the loop must be padding. */
static void check_access(const struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int indices, bool store,
			 struct check *c)
{
	bool packable = !store && ilir_buffer_at(m, b)->kind == IMAGE_WEIGHT && indices <= ILIR_PACKED_RANK;
	int uses = 0, last = 0;
	for (int d = 0; d < indices; d++) {
		bool used = ilir_uses_var(m, index[d], c->var);
		c->ok &= used || !differs(m, index[d], c);
		packable &= !is_row(m, index[d], c) && (!used || moves_alone(m, index[d], c->var));
		c->ok &= !used || (moves_with(m, index[d], c->var, ilir_buffer_at(m, b)) && is_bounded(m, index[d], c));
		c->ok &= !used || !store || moves_alone(m, index[d], c->var);
		uses += used;
		last = used ? d : last;
	}
	bool along = uses == 0 || (uses == 1 && last == indices - 1);
	c->ok &= along || (uses == 1 && packable);
}

static void note_variable(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct check *c = context;
	int64_t begin, end;
	if (s->kind == ILIR_FOR)
		c->bounded[s->loop.var.i] =
		    ilir_constant(m, s->loop.begin, &begin) && ilir_constant(m, s->loop.end, &end);
	else if (s->kind == ILIR_LET)
		c->is_row[s->let.var.i] = ilir_type_of(m, s->let.value).dtype == ILIR_INDEX;
}

/* Checks that only indices depend on the variable. */
static void check_stmt(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct check *c = context;
	if (s->kind == ILIR_FOR) {
		c->ok &= !differs(m, s->loop.begin, c) && !differs(m, s->loop.end, c);
		note_variable(m, s, c);
	} else if (s->kind == ILIR_ALLOC)
		c->inside[s->alloc.i] = c->var.i;
	else if (s->kind == ILIR_IF)
		c->ok &= !differs(m, s->branch.condition, c);
	else if (s->kind == ILIR_LET) {
		note_variable(m, s, c);
		if (differs(m, s->let.value, c))
			c->follows[s->let.var.i] = c->var.i;
	} else if (s->kind == ILIR_STORE)
		check_access(m, s->store.buffer, s->store.index, s->store.indices, true, c);
}

/* Vectors compute both sides of a choice.  If an index decides it, the side not chosen may be out of
 * bounds. */
static bool chooses_by_index(const struct ilir_module *m, ilir_expr e)
{
	ilir_expr condition = ilir_arg(m, e, 0);
	return !ilir_at(m, condition)->args || ilir_type_of(m, ilir_arg(m, condition, 0)).dtype == ILIR_INDEX;
}

static void check_expr(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct check *c = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_LOAD && n->args)
		check_access(m, n->buffer, &m->args.at[n->arg], n->args, false, c);
	if (n->op == ILIR_LT || n->op == ILIR_LE || n->op == ILIR_EQ)
		c->ok &= !ilir_uses_var(m, e, c->var) || ilir_type_of(m, ilir_arg(m, e, 1)).dtype != ILIR_INDEX;
	if (n->op == ILIR_TO_I64) /* the variable used as a value: there is no vector of it */
		c->ok &= !ilir_uses_var(m, e, c->var) || ilir_type_of(m, ilir_arg(m, e, 0)).dtype != ILIR_INDEX;
	if (n->op == ILIR_SELECT)
		c->ok &= !ilir_uses_var(m, e, c->var) || !chooses_by_index(m, e);
}

/* Facts by variable.  They stay valid: the new variables of cut loops are recorded when a loop around
 * them is checked. */
struct tiler {
	struct ilir_tiling *tiling;
	VEC(bool) is_row;
	VEC(bool) bounded;
	VEC(uint32_t) follows;
	VEC(uint32_t) inside; /* by buffer */
};

static void reserve_facts(struct tiler *t, const struct ilir_module *m)
{
	while (t->inside.n < m->buffers.n)
		vec_push(m->arena, &t->inside, 0);
	while (t->is_row.n < m->vars.n) {
		vec_push(m->arena, &t->is_row, false);
		vec_push(m->arena, &t->bounded, false);
		vec_push(m->arena, &t->follows, 0);
	}
}

static bool can_vectorize(struct tiler *t, const struct ilir_module *m, const struct ilir_stmt *loop)
{
	reserve_facts(t, m);
	struct check c = {.var = loop->loop.var,
			  .ok = true,
			  .is_row = t->is_row.at,
			  .bounded = t->bounded.at,
			  .follows = t->follows.at,
			  .inside = t->inside.at};
	ilir_visit_block(m, loop->loop.body, &(struct ilir_visit){check_stmt, check_expr, &c});
	return c.ok;
}

/* --- cutting --- */

static struct ilir_stmt *inner_loop(struct ilir_module *m, const char *name, int64_t extent, int64_t step, int dim,
				    enum ilir_loop_kind kind, ilir_expr *at)
{
	ilir_var v = ilir_new_var(m, name, index_type);
	*at = ilir_binary(m, ILIR_ADD, *at, ilir_var_ref(m, v));
	return ilir_for(m, v, ilir_index(m, 0), ilir_index(m, extent), step, dim, kind, NULL);
}

/* Whether a loop is a piece of one iteration that only stores: that of a border, whose vectors would be padding. */
static bool is_border(const struct ilir_module *m, const struct ilir_stmt *s)
{
	bool only = ilir_trip_count(m, s) == 1;
	for (const struct ilir_stmt *at = s->loop.body; at; at = at->next)
		only &= at->kind != ILIR_FOR;
	return only;
}

static struct ilir_stmt *cut_vectors(struct tiler *tiler, struct ilir_module *m, struct ilir_stmt *s,
				     const struct ilir_tile *t)
{
	int64_t begin, end, lanes = t->size[0], columns = t->columns;
	if (!ilir_constant(m, s->loop.begin, &begin) || !ilir_constant(m, s->loop.end, &end) || is_border(m, s) ||
	    !can_vectorize(tiler, m, s))
		return s;
	if (columns * lanes > end - begin)
		columns = (end - begin + lanes - 1) / lanes;
	int64_t piece = lanes * columns;
	const char *name = m->vars.at[s->loop.var.i].name;
	ilir_var outer = ilir_new_var(m, name, index_type);
	ilir_expr at = ilir_var_ref(m, outer);
	struct ilir_stmt *unrolled = NULL;
	if (columns > 1)
		unrolled = inner_loop(m, name, piece, lanes, s->loop.dim, ILIR_UNROLLED, &at);
	struct ilir_stmt *vector = inner_loop(m, name, lanes, 1, s->loop.dim, ILIR_VECTOR, &at);
	vector->loop.body = ilir_substitute_block(m, s->loop.body, s->loop.var, at);
	if (unrolled)
		unrolled->loop.body = vector;
	int64_t padded = begin + (end - begin + piece - 1) / piece * piece;
	return ilir_for(m, outer, s->loop.begin, ilir_index(m, padded), piece, s->loop.dim, ILIR_SERIAL,
			unrolled ? unrolled : vector);
}

/* The number of whole pieces of a size; if `less`, one less where a single iteration would remain. */
static ilir_expr count_pieces(struct ilir_module *m, ilir_expr length, int64_t size, bool less)
{
	ilir_expr by = ilir_index(m, size), one = ilir_index(m, 1), pieces = ilir_binary(m, ILIR_DIV, length, by);
	if (!less)
		return pieces;
	ilir_expr left = ilir_binary(m, ILIR_EQ, ilir_binary(m, ILIR_MOD, length, by), one);
	ilir_expr alone = ilir_binary(m, ILIR_AND, left, ilir_binary(m, ILIR_LT, one, length));
	return ilir_binary(m, ILIR_SUB, pieces, ilir_ternary(m, ILIR_SELECT, alone, one, ilir_index(m, 0)));
}

/* Whether a piece of this size is the whole loop, which counts from 0. */
static bool is_whole(const struct ilir_module *m, const struct ilir_stmt *s, int64_t size)
{
	return size > 1 && ilir_is_const(m, s->loop.begin, 0) && ilir_is_const(m, s->loop.end, size);
}

/* A loop over whole pieces of a size from *begin on; sets *begin to its end. */
static struct ilir_stmt *cut_pieces(struct ilir_module *m, const struct ilir_stmt *s, int64_t size, bool less,
				    ilir_expr *begin)
{
	const char *name = m->vars.at[s->loop.var.i].name;
	ilir_expr length = ilir_binary(m, ILIR_SUB, s->loop.end, *begin);
	ilir_expr pieces = count_pieces(m, length, size, less);
	ilir_expr end = ilir_binary(m, ILIR_ADD, *begin, ilir_binary(m, ILIR_MUL, pieces, ilir_index(m, size)));
	ilir_expr first = *begin;
	struct ilir_stmt *body = NULL, *inner = NULL;
	if (is_whole(m, s, size)) {
		struct ilir_stmt *whole = ilir_clone_block(m, s, NULL);
		whole->loop.kind = ILIR_UNROLLED;
		whole->next = NULL;
		*begin = s->loop.end;
		return whole;
	}
	ilir_var outer = ilir_new_var(m, name, index_type);
	ilir_expr at = ilir_var_ref(m, outer);
	if (size > 1)
		inner = inner_loop(m, name, size, 1, s->loop.dim, ILIR_UNROLLED, &at);
	else
		end = s->loop.end;
	body = ilir_substitute_block(m, ilir_clone_block(m, s->loop.body, NULL), s->loop.var, at);
	if (inner)
		inner->loop.body = body;
	*begin = end;
	return ilir_for(m, outer, first, end, size, s->loop.dim, ILIR_SERIAL, inner ? inner : body);
}

/* A loop over pieces of one size, the last of which may pass the end: a test skips iterations past it. */
static struct ilir_stmt *cut_with_test(struct ilir_module *m, struct ilir_stmt *s, int64_t size)
{
	const char *name = m->vars.at[s->loop.var.i].name;
	ilir_var outer = ilir_new_var(m, name, index_type);
	ilir_expr at = ilir_var_ref(m, outer);
	struct ilir_stmt *inner = inner_loop(m, name, size, 1, s->loop.dim, ILIR_UNROLLED, &at);
	struct ilir_stmt *body = ilir_substitute_block(m, s->loop.body, s->loop.var, at);
	inner->loop.body = ilir_if(m, ilir_binary(m, ILIR_LT, at, s->loop.end), body, NULL);
	return ilir_for(m, outer, s->loop.begin, s->loop.end, size, s->loop.dim, ILIR_SERIAL, inner);
}

static struct ilir_stmt *cut_rows(struct ilir_module *m, struct ilir_stmt *s, const struct ilir_tile *t, struct ilir_tiling *tiling)
{
	ilir_expr begin = s->loop.begin;
	struct ilir_stmt *block = NULL;
	bool pipelined = t->pipelined;
	if (t->sizes == 1 && t->size[0] == 1)
		return s;
	if (!tiling->peel && !ilir_trip_count(m, s))
		return cut_with_test(m, s, t->size[0]);
	for (int i = 0; i < t->sizes && begin.i != s->loop.end.i; i++) {
		int64_t from, to;
		bool empty = ilir_constant(m, begin, &from) && ilir_constant(m, s->loop.end, &to) && to - from < t->size[i];
		if (!empty)
			block = ilir_append(block, cut_pieces(m, s, t->size[i], sched_shares_last(t->size, t->sizes, i), &begin));
	}
	if (block && pipelined && block->loop.kind == ILIR_SERIAL)
		vec_push(m->arena, &tiling->pipelined, block->loop.var);
	return block;
}

static struct ilir_stmt *cut_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct tiler *tiler = context;
	const struct ilir_tile *t = s->kind == ILIR_FOR ? ilir_tile_of(tiler->tiling, s->loop.var) : NULL;
	if (!t)
		return s;
	return t->kind == ILIR_VECTOR ? cut_vectors(tiler, m, s, t) : cut_rows(m, s, t, tiler->tiling);
}

void ilir_tile(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct tiler tiler = {.tiling = tiling};
	reserve_facts(&tiler, m);
	struct check known = {.is_row = tiler.is_row.at, .bounded = tiler.bounded.at};
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_block(m, m->kernels.at[k].body,
				 &(struct ilir_visit){.stmt = note_variable, .context = &known});
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = cut_loop, .context = &tiler});
	ilir_fit_buffers(m);
}
