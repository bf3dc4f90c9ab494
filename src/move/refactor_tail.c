/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tails: the last operator of a state's value is applied by the parents that read it, so that the
 * recursion's back edge moves (Cortex, MLSys 2021).
 *
 *     inner                                          inner
 *       %1[n,e,k] = assign h[child(e),k]               %6[n,e,k] = assign refactor0[child(e),k]
 *       %2[n,k] = sum_e %1[n,e,k]                      %7[n,e,k] = assign refactor1[child(e),k]
 *       ... %3[n,k], %4[n,k] of %2[n,k] ...     ->     %8[n,e,k] = multiply %6[n,e,k], %7[n,e,k]
 *       %5[n,k] = multiply %3[n,k], %4[n,k]            %2[n,k] = sum_e %8[n,e,k]
 *       store h[n,k] = %5[n,k]                         ... store refactor0[n,k] = %3[n,k] ...
 *
 * A tail is a cheap elementwise operator on rows of the node, its operands, which the node keeps as derived
 * states.  The state itself is a result of the run, so all nodes still store it.  A parent computes the tail
 * for each of its edges, so it is no longer than one operator: a longer one would hardly have fewer operands.
 *
 * A body that does not end with the tail, as that of leaves, which may look its state up, passes its value
 * through: as one of the operands, beside numbers with which the operator is the identity, to the bit.  For
 * fma(a, b, c) that is b, beside 1 for a and -0 for c.
 *
 * Cheap operators that follow a product run in its kernel, while its sums are in registers.  So a moved tail
 * saves no pass over a level and no barrier, but has more operands to store and to read than it has results:
 * it is never profitable, and moved only where a schedule says so. */
#include "move/refactor.h"

#include <math.h>
#include <stdio.h>

struct tail {
	int state;
	const char *stays;	      /* why it is not moved; NULL = it is */
	const struct sub_value *last; /* the operator */
	int kept[SUB_MAX_ARITY];      /* by argument: the derived state, unless it depends on weights alone */
	int passed;		      /* the argument that a value is passed through by; -1 = none */
	double beside[SUB_MAX_ARITY]; /* the numbers for the others */
};

struct tails {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values under the same numbers, then new ones */
	int traversal;
	struct move_bodies leaves, inner;
	VEC(struct tail) all;
};

/* --- the last operator --- */

static bool is_row(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->dtype == DTYPE_F32 && sub_leading_dims(p, r) == 1 && v->var[0] == p->node &&
	       v->vars - 1 <= TENSOR_MAX_RANK;
}

/* Whether a value is computed by a cheap elementwise operator of rows and weights. */
static bool is_tail(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	enum sub_class class = sub_class_of(v->op);
	bool tail = is_row(p, r) && sub_traits_of(v->op)->price == SUB_CHEAP &&
		    (class == SUB_UNARY || class == SUB_BINARY || class == SUB_TERNARY);
	for (int a = 0; a < v->args; a++)
		tail &= sub_at(p, v->arg[a].value)->dtype == DTYPE_F32 &&
			(is_row(p, v->arg[a].value) || !sub_has_leading_dim(p, v->arg[a].value));
	return tail;
}

static bool is_operand(const struct sub_program *p, const struct tail *t, int a)
{
	return sub_has_leading_dim(p, t->last->arg[a].value);
}

/* --- passing a value through --- */

/* What is known of an argument: that it is a number, or the value that is passed through. */
struct known {
	enum { UNKNOWN, NUMBER, PASSED } is;
	double number;
};

static bool is_number(struct known k, double number)
{
	return k.is == NUMBER && k.number == number && signbit(k.number) == signbit(number);
}

/* Whether one of the first two arguments is passed through, and the other one is the number. */
static bool is_passed_by(const struct known *arg, double number)
{
	int other = arg[0].is == PASSED;
	return arg[!other].is == PASSED && is_number(arg[other], number);
}

/* Whether an operator is the identity: adding -0 and multiplying by 1 keep all bits. */
static bool is_identity(enum sub_op op, const struct known *arg)
{
	struct known product = {NUMBER, arg[0].number * arg[1].number};
	bool numbers = arg[0].is == NUMBER && arg[1].is == NUMBER;
	switch (op) {
	case SUB_ADD:
		return is_passed_by(arg, -0.0);
	case SUB_MULTIPLY:
		return is_passed_by(arg, 1);
	case SUB_FMA:
		return (is_passed_by(arg, 1) && is_number(arg[2], -0.0)) ||
		       (numbers && is_number(product, -0.0) && arg[2].is == PASSED);
	default:
		return false;
	}
}

static struct known known_argument(const struct sub_program *p, const struct tail *t, int a)
{
	const struct sub_value *v = sub_at(p, t->last->arg[a].value);
	if (is_operand(p, t, a))
		return (struct known){a == t->passed ? PASSED : NUMBER, t->beside[a]};
	return (struct known){v->op == SUB_CONST ? NUMBER : UNKNOWN, v->constant};
}

static bool passes_through(const struct sub_program *p, const struct tail *t)
{
	const struct sub_use *u = &t->last->arg[t->passed];
	struct known arg[SUB_MAX_ARITY] = {{UNKNOWN, 0}};
	for (int a = 0; a < t->last->args; a++)
		arg[a] = known_argument(p, t, a);
	return u->vars == t->last->vars && is_operand(p, t, t->passed) && is_identity(t->last->op, arg);
}

/* Finds an operand to pass a value through by, and numbers for the others. */
static void find_passed(const struct sub_program *p, struct tail *t)
{
	for (t->passed = 0; t->passed < t->last->args; t->passed++)
		for (int ones = 0; ones < 1 << t->last->args; ones++) {
			for (int a = 0; a < t->last->args; a++)
				t->beside[a] = ones >> a & 1 ? 1 : -0.0;
			if (passes_through(p, t))
				return;
		}
	t->passed = -1;
}

/* --- the operands in other bodies --- */

static bool have_same_vars(const struct sub_program *p, sub_ref a, sub_ref b)
{
	const struct sub_value *x = sub_at(p, a), *y = sub_at(p, b);
	return x->dtype == y->dtype && x->vars == y->vars &&
	       memcmp(x->var, y->var, x->vars * sizeof *x->var) == 0;
}

/* Whether the value is computed by the last operator. */
static bool ends_with(const struct sub_program *p, const struct tail *t, sub_ref r)
{
	const struct sub_value *x = t->last, *y = sub_at(p, r);
	bool same = x->op == y->op;
	for (int a = 0; same && a < x->args; a++) {
		const struct sub_use *u = &x->arg[a], *w = &y->arg[a];
		same =
		    u->vars == w->vars && memcmp(u->var, w->var, u->vars * sizeof *u->var) == 0 &&
		    (is_operand(p, t, a) ? have_same_vars(p, u->value, w->value) : u->value.i == w->value.i);
	}
	return same;
}

/* The value that a body stores to the state, if that has a row per node under its own names. */
static sub_ref stored_value(const struct sub_program *p, const struct sub_body *b, int state)
{
	const struct sub_store *s = refactor_store(b, state);
	bool row = s && is_row(p, s->value.value) &&
		   memcmp(s->value.var, sub_at(p, s->value.value)->var, s->value.vars * sizeof(int)) == 0;
	return row ? s->value.value : (sub_ref){0};
}

static bool can_keep_operands(const struct tails *ts, const struct tail *t, const struct sub_body *b)
{
	sub_ref r = stored_value(ts->from, b, t->state);
	return r.i && (ends_with(ts->from, t, r) ||
		       (t->passed >= 0 && have_same_vars(ts->from, t->last->arg[t->passed].value, r)));
}

/* --- which tails are moved --- */

/* Whether the value is a parent's read of all of a child's state. */
static bool reads_state(const struct sub_program *p, sub_ref r, int state)
{
	const struct sub_value *v = sub_at(p, r);
	return refactor_is_child(p, v) && sub_at(p, v->arg[0].value)->which == state &&
	       (v->map[0].function == SUB_CHILD || v->map[0].function == SUB_EDGE_CHILD) &&
	       refactor_is_whole(p, v);
}

static struct sub_values values_of(const struct tails *ts, const struct sub_body *b)
{
	return sub_find_values(ts->arena, ts->from, b, ARENA_ARRAY(ts->arena, bool, ts->from->values.n));
}

static bool is_read_by_parents(const struct tails *ts, int state)
{
	for (size_t i = 0; i < ts->inner.all.n; i++) {
		struct sub_values values = values_of(ts, ts->inner.all.at[i]);
		for (int k = 0; k < values.n; k++)
			if (reads_state(ts->from, values.value[k], state))
				return true;
	}
	return false;
}

static bool is_used_in(const struct tails *ts, const struct sub_body *b, sub_ref r)
{
	struct sub_values values = values_of(ts, b);
	for (int i = 0; i < values.n; i++) {
		const struct sub_value *v = sub_at(ts->from, values.value[i]);
		for (int a = 0; a < v->args; a++)
			if (v->arg[a].value.i == r.i)
				return true;
	}
	return false;
}

/* Takes the tail from a body that stores the state. */
static void take_tail(const struct tails *ts, struct tail *t, const struct sub_body *b)
{
	sub_ref r = stored_value(ts->from, b, t->state);
	t->last = sub_at(ts->from, r);
	if (!r.i || !is_tail(ts->from, r))
		t->stays = "its last operator is not a cheap one on the elements of f32 rows";
	else if (is_used_in(ts, b, r))
		t->stays = "its node computes with it, too";
}

static void check_bodies(const struct tails *ts, struct tail *t)
{
	bool kept = true;
	find_passed(ts->from, t);
	for (size_t i = 0; i < ts->leaves.all.n; i++)
		kept &= can_keep_operands(ts, t, ts->leaves.all.at[i]);
	for (size_t i = 0; i < ts->inner.all.n; i++)
		kept &= can_keep_operands(ts, t, ts->inner.all.at[i]);
	if (!kept)
		t->stays = "not all nodes end with its last operator, which is the identity with no numbers";
}

/* The first body of inner nodes that ends with a tail gives it. */
static struct tail find_tail(const struct tails *ts, int state)
{
	struct tail t = {.state = state, .stays = "no parent reads all of it as f32"};
	bool read = ts->from->states.at[state].dtype == DTYPE_F32 && is_read_by_parents(ts, state);
	for (size_t i = 0; read && t.stays && i < ts->inner.all.n; i++) {
		t = (struct tail){.state = state};
		take_tail(ts, &t, ts->inner.all.at[i]);
	}
	if (!t.stays)
		check_bodies(ts, &t);
	return t;
}

static void find_tails(struct tails *ts)
{
	ts->leaves = move_find_bodies(ts->from, ts->traversal, SUB_LEAF);
	ts->inner = move_find_bodies(ts->from, ts->traversal, SUB_INNER);
	for (size_t s = 0; ts->leaves.all.n && ts->inner.all.n && s < ts->from->states.n; s++) {
		const struct sub_tensor *t = &ts->from->states.at[s];
		if (!t->derived && t->traversal == ts->traversal)
			vec_push(ts->arena, &ts->all, find_tail(ts, s));
	}
}

/* --- parents --- */

/* Reads what a child keeps, where `read` reads its state. */
static sub_ref read_kept(struct tails *ts, int kept, const struct sub_value *read, int leading)
{
	const struct sub_tensor *t = &ts->to->states.at[kept];
	struct sub_value state = {.op = SUB_STATE, .which = kept, .vars = t->rank + 1, .var = {ts->to->node}};
	struct sub_map map[SUB_MAX_VARS] = {read->map[0]};
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .vars = leading + t->rank, .map = map};
	memcpy(&state.var[1], t->var, t->rank * sizeof *t->var);
	memcpy(v.var, read->var, leading * sizeof *v.var);
	for (int d = 0; d < t->rank; d++) {
		v.var[leading + d] = t->var[d];
		map[1 + d] = (struct sub_map){.function = SUB_AFFINE, .var = t->var[d], .scale = 1};
	}
	v.arg[0] = sub_as_is(ts->to, sub_add(ts->to, state, NULL));
	return sub_add(ts->to, v, NULL);
}

/* Replaces the node's variable by the leading ones of a parent's read. */
static void put_leading(struct sub_use *u, const struct sub_value *read, int leading)
{
	memmove(&u->var[leading], &u->var[1], (u->vars - 1) * sizeof *u->var);
	memcpy(u->var, read->var, leading * sizeof *u->var);
	u->vars += leading - 1;
}

/* Computes the tail for the children that `read` reads. */
static sub_ref compute_tail(struct tails *ts, const struct tail *t, sub_ref read)
{
	struct sub_value v = *t->last;
	const struct sub_value *at = sub_at(ts->from, read);
	int leading = sub_leading_dims(ts->from, read);
	for (int a = 0; a < v.args; a++)
		if (is_operand(ts->from, t, a)) {
			v.arg[a].value = read_kept(ts, t->kept[a], at, leading);
			put_leading(&v.arg[a], at, leading);
		}
	return sub_add(ts->to, v, NULL);
}

static sub_ref rewrite_value(struct tails *ts, sub_ref r, const sub_ref *now)
{
	for (size_t i = 0; i < ts->all.n; i++)
		if (!ts->all.at[i].stays && reads_state(ts->from, r, ts->all.at[i].state))
			return compute_tail(ts, &ts->all.at[i], r);
	struct sub_value v = *sub_at(ts->from, r);
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = now[v.arg[a].value.i];
	return sub_add(ts->to, v, NULL);
}

/* --- children --- */

/* A number as an operand: the same for all nodes and elements. */
static sub_ref number_like(struct tails *ts, double number, sub_ref operand)
{
	const struct sub_value *like = sub_at(ts->from, operand);
	struct sub_value c = {.op = SUB_CONST, .dtype = DTYPE_F32, .constant = number};
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .vars = like->vars};
	memcpy(v.var, like->var, sizeof v.var);
	v.arg[0] = sub_as_is(ts->to, sub_add(ts->to, c, NULL));
	return sub_add(ts->to, v, NULL);
}

static void keep_operands(struct tails *ts, const struct tail *t, const struct sub_body *from,
			  struct sub_body *b, const sub_ref *now)
{
	sub_ref r = stored_value(ts->from, from, t->state);
	bool ends = ends_with(ts->from, t, r);
	for (int a = 0; a < t->last->args; a++) {
		sub_ref kept;
		if (!is_operand(ts->from, t, a))
			continue;
		if (ends)
			kept = now[sub_at(ts->from, r)->arg[a].value.i];
		else
			kept = a == t->passed ? now[r.i]
					      : number_like(ts, t->beside[a], t->last->arg[a].value);
		vec_push(ts->arena, &b->stores,
			 (struct sub_store){
			     .to = SUB_TO_STATE, .which = t->kept[a], .value = sub_as_is(ts->to, kept)});
	}
}

static struct sub_body rewrite_body(struct tails *ts, const struct sub_body *from)
{
	struct sub_values values = values_of(ts, from);
	sub_ref *now = ARENA_ARRAY(ts->arena, sub_ref, ts->from->values.n);
	for (int i = 0; i < values.n; i++)
		now[values.value[i].i] = rewrite_value(ts, values.value[i], now);
	struct sub_body b = sub_map_body(ts->arena, from, now);
	for (size_t i = 0; i < ts->all.n; i++)
		if (!ts->all.at[i].stays)
			keep_operands(ts, &ts->all.at[i], from, &b, now);
	return b;
}

/* --- the pass --- */

static void declare_operands(struct tails *ts, struct tail *t, struct rewrite_trace *trace)
{
	struct str s = str_in(ts->arena);
	str_printf(&s, "the last operator of %s is applied by parents, to",
		   ts->from->states.at[t->state].name);
	for (int a = 0; a < t->last->args; a++) {
		t->kept[a] = -1;
		if (!is_operand(ts->from, t, a))
			continue;
		t->kept[a] = move_declare_derived(ts->to, t->last->arg[a].value, ts->traversal);
		str_printf(&s, " %s", ts->to->states.at[t->kept[a]].name);
	}
	if (trace)
		vec_push(ts->arena, &trace->notes, s.text);
}

static void move_tails(struct sub_program *to, const struct sub_program *from, int traversal, void *context)
{
	struct tails ts = {.arena = to->arena, .from = from, .to = to, .traversal = traversal};
	find_tails(&ts);
	move_copy_program(to, from);
	for (size_t i = 0; i < ts.all.n; i++)
		if (!ts.all.at[i].stays)
			declare_operands(&ts, &ts.all.at[i], context);
	for (size_t i = 0; i < from->bodies.n; i++) {
		const struct sub_body *b = &from->bodies.at[i];
		bool own = b->traversal == traversal && (b->domain == SUB_LEAF || b->domain == SUB_INNER);
		struct sub_body made = own ? rewrite_body(&ts, b) : *b;
		vec_push(to->arena, &to->bodies, made);
	}
}

void refactor_tails(struct sub_program *to, const struct sub_program *from, struct rewrite_trace *trace)
{
	move_each_traversal(to, from, move_tails, trace);
}

const char *move_explain_tails(const struct sub_program *p)
{
	struct str s = str_in(p->arena);
	for (size_t traversal = 0; traversal < p->traversals.n; traversal++) {
		struct tails ts = {.arena = p->arena, .from = p, .traversal = traversal};
		find_tails(&ts);
		for (size_t i = 0; i < ts.all.n; i++)
			if (ts.all.at[i].stays)
				str_printf(&s, "; %s: %s", p->states.at[ts.all.at[i].state].name,
					   ts.all.at[i].stays);
	}
	return str_text(&s);
}
