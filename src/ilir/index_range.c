/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges of index expressions: interval arithmetic in which INT64_MIN and INT64_MAX are infinite. */
#include "ilir/ilir.h"

typedef struct ilir_range range;

static const range everything = {INT64_MIN, INT64_MAX};

static bool is_open(int64_t bound)
{
	return bound == INT64_MIN || bound == INT64_MAX;
}

static bool is_empty(range r)
{
	return r.low > r.high;
}

static range intersect_ranges(range a, range b)
{
	return (range){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static range unite_ranges(range a, range b)
{
	return (range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/* --- bounds --- */

/* a + b; `side`, an infinity, if either is open or the sum overflows. */
static int64_t add_bound(int64_t a, int64_t b, int64_t side)
{
	int64_t sum;
	return is_open(a) || is_open(b) || __builtin_add_overflow(a, b, &sum) ? side : sum;
}

static int64_t negate_bound(int64_t a)
{
	return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a;
}

static int64_t scale_bound(int64_t a, int64_t factor, int64_t side)
{
	int64_t product;
	return is_open(a) || __builtin_mul_overflow(a, factor, &product) ? side : product;
}

static int64_t floor_quotient(int64_t a, int64_t b)
{
	return is_open(a) ? a : a / b - (a % b < 0);
}

/* --- operators --- */

static range add_range(range a, range b)
{
	return (range){add_bound(a.low, b.low, INT64_MIN), add_bound(a.high, b.high, INT64_MAX)};
}

static range negate_range(range a)
{
	return (range){negate_bound(a.high), negate_bound(a.low)};
}

static bool is_point(range r)
{
	return r.low == r.high && !is_open(r.low);
}

static range multiply_range(range a, range b)
{
	if (!is_point(b))
		return is_point(a) ? multiply_range(b, a) : everything;
	if (b.low < 0)
		return multiply_range(negate_range(a), negate_range(b));
	if (b.low == 0)
		return b;
	return (range){scale_bound(a.low, b.low, INT64_MIN), scale_bound(a.high, b.low, INT64_MAX)};
}

static range divide_range(range a, range b)
{
	if (!is_point(b) || b.low <= 0)
		return everything;
	return (range){floor_quotient(a.low, b.low), floor_quotient(a.high, b.low)};
}

/* Exact if a is between two multiples of b. */
static range modulo_range(range a, range b)
{
	if (!is_point(b) || b.low <= 0)
		return everything;
	int64_t below = floor_quotient(a.low, b.low);
	if (is_open(a.low) || is_open(a.high) || below != floor_quotient(a.high, b.low))
		return (range){0, b.low - 1};
	int64_t base = negate_bound(scale_bound(below, b.low, INT64_MIN));
	return add_range(a, (range){base, base});
}

static range binary_range(enum ilir_op op, range a, range b)
{
	switch (op) {
	case ILIR_ADD:
		return add_range(a, b);
	case ILIR_SUB:
		return add_range(a, negate_range(b));
	case ILIR_MUL:
		return multiply_range(a, b);
	case ILIR_DIV:
		return divide_range(a, b);
	case ILIR_MOD:
		return modulo_range(a, b);
	case ILIR_MIN:
		return (range){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
	case ILIR_MAX:
		return (range){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
	default:
		return everything;
	}
}

/* --- expressions --- */

/* The most operators that are evaluated: one that is used several times is evaluated for each use. */
enum { EFFORT = 1000 };

static range find_range(const struct ilir_module *, ilir_expr, const struct ilir_known *, int *effort);

static range compute_range(const struct ilir_module *m, ilir_expr e, const struct ilir_known *known,
			   int *effort)
{
	const struct ilir_node *n = ilir_at(m, e);
	switch (n->op) {
	case ILIR_CONST_I:
		return (range){n->i, n->i};
	case ILIR_VAR:
		return known && known->of_var ? known->of_var[n->var.i] : everything;
	case ILIR_SIZE:
		return (range){0, INT64_MAX};
	case ILIR_BROADCAST:
		return find_range(m, ilir_arg(m, e, 0), known, effort);
	case ILIR_RAMP:
		return add_range(find_range(m, ilir_arg(m, e, 0), known, effort),
				 (range){0, (n->type.lanes - 1) * n->i});
	case ILIR_SELECT:
		return unite_ranges(find_range(m, ilir_arg(m, e, 1), known, effort),
				    find_range(m, ilir_arg(m, e, 2), known, effort));
	case ILIR_LOAD:
		return everything;
	default:
		return n->args != 2 ? everything
				    : binary_range(n->op, find_range(m, ilir_arg(m, e, 0), known, effort),
						   find_range(m, ilir_arg(m, e, 1), known, effort));
	}
}

/* The range of an expression itself may be narrower than that computed from its arguments. */
static range find_range(const struct ilir_module *m, ilir_expr e, const struct ilir_known *known, int *effort)
{
	if (--*effort < 0 || ilir_type_of(m, e).dtype != ILIR_INDEX)
		return everything;
	range r = compute_range(m, e, known, effort);
	return known && known->of_expr ? intersect_ranges(r, known->of_expr[e.i]) : r;
}

bool ilir_range_of(const struct ilir_module *m, ilir_expr e, const struct ilir_known *known,
		   struct ilir_range *r)
{
	int effort = EFFORT;
	*r = find_range(m, e, known, &effort);
	return !is_open(r->low) && !is_open(r->high);
}

/* --- accesses --- */

/* Known ranges, by variable and by expression.  A walk narrows them on entering a scope, and undoes these
 * changes, which the trail records, on leaving it.  A module has many kernels and many passes, so walks reuse
 * one set of tables: each restores them to nothing known. */
struct ilir_tables {
	size_t vars, nodes; /* capacities */
	range *of_var, *of_expr;
	ilir_expr *condition; /* by variable: the condition that a let binds to it */
	VEC(ilir_var) let;    /* the variables that have one */
	VEC(struct change {
		range *place;
		range before;
	})
	trail;
	uint32_t *seen; /* by expression: the last scope in which it was visited */
	uint32_t scopes;
};

struct walk {
	const struct ilir_module *m;
	ilir_access_visit *visit;
	void *context;
	struct ilir_tables *t;
	struct ilir_known known; /* of_var and of_expr */
	int conditions;		 /* number of selects around the expression being visited */
	const struct ilir_stmt *vector; /* the VECTOR loop around the statement; NULL = none */
	const struct ilir_stmt *stmt;
};

/* The deepest nesting of selects whose sides are visited apart, each with its condition, since each level
 * doubles the work. */
enum { CONDITIONS = 10 };

static void learn_at(struct walk *w, range *place, range r)
{
	struct change c = {place, *place};
	vec_push(w->m->arena, &w->t->trail, c);
	*place = r;
}

static void learn_var(struct walk *w, ilir_var v, range r)
{
	learn_at(w, &w->t->of_var[v.i], r);
}

static void undo_changes(struct walk *w, size_t mark)
{
	while (w->t->trail.n > mark) {
		struct change c = w->t->trail.at[--w->t->trail.n];
		*c.place = c.before;
	}
}

static range range_now(const struct walk *w, ilir_expr e)
{
	range r;
	ilir_range_of(w->m, e, &w->known, &r);
	return r;
}

static int64_t ceiling_quotient(int64_t a, int64_t b)
{
	return is_open(a) ? a : -floor_quotient(-a, b);
}

/* Records that an expression lies in r, which constrains var if it is c*var + d.  False if it cannot lie
 * there. */
static bool constrain_expr(struct walk *w, ilir_expr e, range r)
{
	for (;;) {
		r = intersect_ranges(r, range_now(w, e));
		const struct ilir_node *n = ilir_at(w->m, e);
		if (is_empty(r))
			return false;
		if (n->op == ILIR_VAR)
			return learn_var(w, n->var, r), true;
		if (n->op != ILIR_CONST_I)
			learn_at(w, &w->t->of_expr[e.i], r);
		if (n->args != 2 || ilir_at(w->m, ilir_arg(w->m, e, 1))->op != ILIR_CONST_I)
			return true;
		int64_t c = ilir_at(w->m, ilir_arg(w->m, e, 1))->i;
		if (n->op == ILIR_ADD)
			r = add_range(r, negate_range((range){c, c}));
		else if (n->op == ILIR_MUL && c > 0)
			r = (range){ceiling_quotient(r.low, c), floor_quotient(r.high, c)};
		else
			return true;
		e = ilir_arg(w->m, e, 0);
	}
}

/* Records that a + gap <= b.  False if that cannot hold. */
static bool constrain_order(struct walk *w, ilir_expr a, ilir_expr b, int64_t gap)
{
	range low = range_now(w, a), high = range_now(w, b);
	return constrain_expr(w, a, (range){INT64_MIN, add_bound(high.high, -gap, INT64_MAX)}) &&
	       constrain_expr(w, b, (range){add_bound(low.low, gap, INT64_MIN), INT64_MAX});
}

/* Records that a condition has this truth value.  False if it cannot. */
static bool assume_condition(struct walk *w, ilir_expr condition, bool truth)
{
	const struct ilir_node *n = ilir_at(w->m, condition);
	if (n->op == ILIR_VAR && w->t->condition[n->var.i].i)
		return assume_condition(w, w->t->condition[n->var.i], truth);
	if (n->type.lanes != 1 || n->args != 2)
		return true;
	ilir_expr a = ilir_arg(w->m, condition, 0), b = ilir_arg(w->m, condition, 1);
	if (n->op == (truth ? ILIR_AND : ILIR_OR))
		return assume_condition(w, a, truth) && assume_condition(w, b, truth);
	if (ilir_type_of(w->m, a).dtype != ILIR_INDEX)
		return true;
	switch (n->op) {
	case ILIR_LT:
		return truth ? constrain_order(w, a, b, 1) : constrain_order(w, b, a, 0);
	case ILIR_LE:
		return truth ? constrain_order(w, a, b, 0) : constrain_order(w, b, a, 1);
	case ILIR_EQ:
		return !truth ||
		       (constrain_expr(w, a, range_now(w, b)) && constrain_expr(w, b, range_now(w, a)));
	default:
		return true;
	}
}

static void visit_access(struct walk *w, ilir_expr load, ilir_buffer b, int indices, const ilir_expr *index)
{
	struct ilir_access a = {w->stmt, load, b, indices, index, &w->known};
	w->visit(w->m, &a, w->context);
}

static void walk_expr(struct walk *, ilir_expr, uint32_t scope);

/* The lanes that an index has, or will have when the loop around it is a vector. */
static int64_t lanes_of(const struct walk *w, ilir_expr index)
{
	if (w->vector && ilir_uses_var(w->m, index, w->vector->loop.var))
		return ilir_trip_count(w->m, w->vector);
	return ilir_type_of(w->m, index).lanes;
}

/* Visits a load that reads memory only within the extents of its buffer, and whole vectors. */
static void walk_within(struct walk *w, ilir_expr load)
{
	const struct ilir_node *n = ilir_at(w->m, load);
	const struct ilir_buffer_decl *b = ilir_buffer_at(w->m, n->buffer);
	size_t mark = w->t->trail.n;
	bool inside = true;
	w->conditions++;
	for (int i = 0; inside && i < n->args; i++) {
		ilir_expr index = ilir_arg(w->m, load, i);
		int64_t lanes = lanes_of(w, index), vectors = (b->dim[i].extent + lanes - 1) / lanes;
		if (b->dim[i].rows == IMAGE_ONE)
			inside = constrain_expr(w, index, (range){0, vectors * lanes - 1});
	}
	if (inside)
		walk_expr(w, load, ++w->t->scopes);
	w->conditions--;
	undo_changes(w, mark);
}

static void walk_side(struct walk *w, ilir_expr condition, bool truth, ilir_expr side)
{
	size_t mark = w->t->trail.n;
	w->conditions++;
	if (assume_condition(w, condition, truth))
		walk_expr(w, side, ++w->t->scopes);
	w->conditions--;
	undo_changes(w, mark);
}

/* Visits an expression once in each scope, in which known ranges do not change.  Only a scalar select
 * evaluates just one of its sides. */
static void walk_expr(struct walk *w, ilir_expr e, uint32_t scope)
{
	const struct ilir_node *n = ilir_at(w->m, e);
	if (w->t->seen[e.i] == scope)
		return;
	w->t->seen[e.i] = scope;
	if (n->op == ILIR_SELECT && w->conditions < CONDITIONS &&
	    ilir_type_of(w->m, ilir_arg(w->m, e, 0)).lanes == 1) {
		walk_expr(w, ilir_arg(w->m, e, 0), scope);
		walk_side(w, ilir_arg(w->m, e, 0), true, ilir_arg(w->m, e, 1));
		walk_side(w, ilir_arg(w->m, e, 0), false, ilir_arg(w->m, e, 2));
		return;
	}
	if (n->op == ILIR_WITHIN)
		walk_within(w, ilir_widened(w->m, ilir_arg(w->m, e, 0)));
	for (int i = n->op == ILIR_WITHIN; i < n->args; i++)
		walk_expr(w, ilir_arg(w->m, e, i), scope);
	if (n->op == ILIR_LOAD)
		visit_access(w, e, n->buffer, n->args, &w->m->args.at[n->arg]);
}

static void walk_block(struct walk *, const struct ilir_stmt *);

static void walk_store(struct walk *w, const struct ilir_stmt *s)
{
	uint32_t scope = ++w->t->scopes;
	for (int i = 0; i < s->store.indices; i++)
		walk_expr(w, s->store.index[i], scope);
	walk_expr(w, s->store.value, scope);
	visit_access(w, (ilir_expr){0}, s->store.buffer, s->store.indices, s->store.index);
}

/* The largest value that a loop's variable can have. */
static int64_t last_value(range begin, range end, int64_t step)
{
	int64_t last = add_bound(end.high, -1, INT64_MAX);
	if (is_open(last) || !is_point(begin) || last < begin.low || step <= 1)
		return last;
	return last - (last - begin.low) % step;
}

static void walk_loop(struct walk *w, const struct ilir_stmt *s)
{
	uint32_t scope = ++w->t->scopes;
	walk_expr(w, s->loop.begin, scope);
	walk_expr(w, s->loop.end, scope);
	range begin = range_now(w, s->loop.begin);
	range r = {begin.low, last_value(begin, range_now(w, s->loop.end), s->loop.step)};
	if (is_empty(r))
		return;
	learn_var(w, s->loop.var, r);
	const struct ilir_stmt *around = w->vector;
	w->vector = s->loop.kind == ILIR_VECTOR ? s : around;
	walk_block(w, s->loop.body);
	w->vector = around;
}

static void walk_branch(struct walk *w, const struct ilir_stmt *s)
{
	size_t mark = w->t->trail.n;
	walk_expr(w, s->branch.condition, ++w->t->scopes);
	if (assume_condition(w, s->branch.condition, true))
		walk_block(w, s->branch.then);
	undo_changes(w, mark);
	if (assume_condition(w, s->branch.condition, false))
		walk_block(w, s->branch.otherwise);
}

static void walk_step(struct walk *w, const struct ilir_stmt *s)
{
	uint32_t scope = ++w->t->scopes;
	walk_expr(w, s->step.begin, scope);
	walk_expr(w, s->step.end, scope);
	range begin = range_now(w, s->step.begin), end = range_now(w, s->step.end);
	learn_var(w, ilir_begin, begin);
	learn_var(w, ilir_end, end);
	walk_block(w, s->step.body);
}

static void let_condition(struct walk *w, ilir_var v, ilir_expr condition)
{
	w->t->condition[v.i] = condition;
	vec_push(w->m->arena, &w->t->let, v);
}

/* Ranges that a statement implies hold inside it only, but that of a let's variable holds until the end of
 * the block. */
static void walk_stmt(struct walk *w, const struct ilir_stmt *s)
{
	size_t mark = w->t->trail.n;
	w->stmt = s;
	switch (s->kind) {
	case ILIR_FOR:
		walk_loop(w, s);
		break;
	case ILIR_IF:
		walk_branch(w, s);
		break;
	case ILIR_LET:
		walk_expr(w, s->let.value, ++w->t->scopes);
		learn_var(w, s->let.var, range_now(w, s->let.value));
		if (ilir_type_of(w->m, s->let.value).dtype == ILIR_BOOL)
			let_condition(w, s->let.var, s->let.value);
		return;
	case ILIR_STORE:
		walk_store(w, s);
		break;
	case ILIR_PREFETCH:
		walk_expr(w, s->prefetch.load, ++w->t->scopes);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		walk_expr(w, s->rows.first, ++w->t->scopes);
		walk_expr(w, s->rows.last, ++w->t->scopes);
		break;
	case ILIR_STEP:
		walk_step(w, s);
		break;
	case ILIR_ALLOC:
	case ILIR_DOT:
	case ILIR_BARRIER:
		break;
	}
	undo_changes(w, mark);
}

static void walk_block(struct walk *w, const struct ilir_stmt *s)
{
	size_t mark = w->t->trail.n;
	for (; s; s = s->next)
		walk_stmt(w, s);
	undo_changes(w, mark);
}

static range *new_open_ranges(struct arena *a, size_t n)
{
	range *r = ARENA_ARRAY(a, range, n);
	for (size_t i = 0; i < n; i++)
		r[i] = everything;
	return r;
}

/* Grows the tables to twice the size of the module, which passes enlarge. */
static void reserve_tables(const struct ilir_module *m, struct ilir_tables *t)
{
	if (m->vars.n > t->vars) {
		t->vars = 2 * m->vars.n;
		t->of_var = new_open_ranges(m->arena, t->vars);
		t->of_var[ilir_begin.i].low = t->of_var[ilir_end.i].low = 0;
		t->condition = ARENA_ARRAY(m->arena, ilir_expr, t->vars);
	}
	if (m->nodes.n > t->nodes) {
		t->nodes = 2 * m->nodes.n;
		t->of_expr = new_open_ranges(m->arena, t->nodes);
		t->seen = ARENA_ARRAY(m->arena, uint32_t, t->nodes);
	}
}

/* A walk inside another has its own tables. */
void ilir_visit_accesses(const struct ilir_module *m, const struct ilir_stmt *s, ilir_access_visit *visit,
			 void *context)
{
	struct ilir_tables *t = *m->tables;
	if (!t)
		t = ARENA_NEW(m->arena, struct ilir_tables);
	*m->tables = NULL;
	reserve_tables(m, t);
	struct walk w = {
	    .m = m, .visit = visit, .context = context, .t = t, .known = {t->of_var, t->of_expr}};
	walk_block(&w, s);
	while (t->let.n)
		t->condition[t->let.at[--t->let.n].i] = (ilir_expr){0};
	*m->tables = t;
}
