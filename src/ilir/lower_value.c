/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Values at an index.  An `assign` or `cond` only changes the index (no data moves), a reduction is a loop
 * with an accumulator (lower_sum.c), any other operator a let; what is stored is loaded. */
#include "ilir/lower.h"

#include <math.h>
#include <stdio.h>

/* --- operators, by the column `loops` of subop/sub_ops.def --- */

static bool is_float(const struct ilir_module *m, ilir_expr e)
{
	return ilir_type_of(m, e).dtype == ILIR_F32;
}

static bool is_i64(const struct ilir_module *m, ilir_expr e)
{
	return ilir_type_of(m, e).dtype == ILIR_I64;
}

/* The upper half becomes the lower one of a word, whose own upper half is not used. */
ilir_expr lower_half_sum(struct ilir_module *m, ilir_expr word)
{
	ilir_expr upper = ilir_binary(m, ILIR_SHR, word, ilir_i32(m, 16));
	ilir_expr sum = ilir_ternary(m, ILIR_FMA_F16, word, ilir_i32(m, 0x3c00), upper); /* 1 in f16 */
	return ilir_unary(m, ILIR_TO_F32, ilir_unary(m, ILIR_AS_F16, sum));
}

/* The product of the other half is that of zeros of opposite signs, -0, which leaves any sum as it is. */
ilir_expr lower_half_dot(struct ilir_module *m, ilir_expr a, ilir_expr b, ilir_expr sum, bool upper)
{
	ilir_expr mask = ilir_i32(m, upper ? (int32_t)0xffff0000 : 0xffff), zero = ilir_i32(m, upper ? 0x8000 : INT32_MIN);
	ilir_expr x = ilir_binary(m, ILIR_BIT_OR, ilir_binary(m, ILIR_BIT_AND, a, mask), zero);
	return ilir_ternary(m, ILIR_DOT_BF16, x, ilir_binary(m, ILIR_BIT_AND, b, mask), sum);
}

/* A number with zeros for denormal ones: of the sum of it and two products that are -0. */
static ilir_expr flush_denormals(struct ilir_module *m, ilir_expr x)
{
	return ilir_ternary(m, ILIR_DOT_BF16, ilir_i32(m, (int32_t)0x80008000), ilir_i32(m, 0), x);
}

ilir_expr lower_block_sum(struct ilir_module *m, ilir_expr sum, ilir_expr lower, ilir_expr upper)
{
	ilir_expr block = flush_denormals(m, ilir_binary(m, ILIR_ADD, lower, upper));
	return flush_denormals(m, ilir_binary(m, ILIR_ADD, flush_denormals(m, sum), block));
}

#define unary(op, x) ilir_unary(m, ILIR_##op, x)
#define binary(op, x, y) ilir_binary(m, ILIR_##op, x, y)
#define ternary(op, x, y, z) ilir_ternary(m, ILIR_##op, x, y, z)
#define number(x) ilir_float(m, x)
#define integer(i) (is_i64(m, a) ? ilir_i64(m, i) : ilir_i32(m, i))
#define by_type(of_floats, of_integers) (is_float(m, a) ? (of_floats) : (of_integers))
#define bits(i) ilir_i32(m, i)
#define half_sum(x) lower_half_sum(m, x)
#define half_dot(a, b, sum, upper) lower_half_dot(m, a, b, sum, upper)
#define block_sum(sum, lower, upper) lower_block_sum(m, sum, lower, upper)
#define SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                        \
	static ilir_expr loops_of_##name(struct ilir_module *m, ilir_expr a, ilir_expr b, ilir_expr c)       \
	{                                                                                                    \
		(void)m, (void)a, (void)b, (void)c;                                                          \
		return loops;                                                                                \
	}
#include "subop/sub_ops.def"
#undef unary
#undef binary
#undef ternary
#undef number
#undef integer
#undef by_type
#undef bits
#undef half_sum
#undef half_dot
#undef block_sum

static ilir_expr (*const loops_of[SUB_OPS])(struct ilir_module *, ilir_expr, ilir_expr, ilir_expr) = {
#define SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                        \
	[SUB_##name] = loops_of_##name,
#include "subop/sub_ops.def"
};

ilir_expr lower_applied(struct lowering *l, enum sub_op op, ilir_expr a, ilir_expr b, ilir_expr c)
{
	return loops_of[op](l->m, a, b, c);
}

/* --- values --- */

/* Names a computed value by a let in the outermost scope in which its operands are defined.  Leaves,
 * loads and values inside a reduction get no name. */
static ilir_expr name_value(struct lowering *l, const char *name, ilir_expr e)
{
	enum ilir_op op = ilir_at(l->m, e)->op;
	struct scope *s = lower_scope_at(l, lower_depth_of(l, &e, 1));
	bool row = ilir_type_of(l->m, e).dtype == ILIR_INDEX;
	if (s->reduction || op == ILIR_CONST_F || op == ILIR_VAR || (op == ILIR_LOAD && !row))
		return e;
	ilir_var v = ilir_new_var(l->m, name, ilir_type_of(l->m, e));
	lower_define(l, false, v.i, s->depth, s->items.n);
	lower_scope_add(l, s, ilir_let(l->m, v, e), NULL);
	return ilir_var_ref(l->m, v);
}

ilir_expr lower_row_of(struct lowering *l, ilir_buffer array, const char *name, ilir_expr at)
{
	return lower_named(l, name, ilir_load_index(l->m, array, &at, 1));
}

/* The key of an expression in a scope is longer by a byte than that of a value of its number at no index. */
ilir_expr lower_named(struct lowering *l, const char *name, ilir_expr e)
{
	struct scope *s = lower_scope_at(l, lower_depth_of(l, &e, 1));
	char key[sizeof e + 1] = {0};
	memcpy(key, &e, sizeof e);
	int known = map_get(&s->memo, key, sizeof key);
	if (known >= 0)
		return (ilir_expr){known};
	ilir_expr row = name_value(l, name, e);
	map_add(&s->memo, key, sizeof key, row.i);
	return row;
}

ilir_expr lower_argument(struct lowering *l, const struct sub_value *v, const ilir_expr *index, int a)
{
	ilir_expr out[SUB_MAX_VARS];
	static const struct sub_vars no_vars = {0};
	lower_indices_with(v, index, &v->arg[a], &no_vars, NULL, out);
	return lower_value_at(l, v->arg[a].value, out);
}

/* --- elementwise --- */

/* Lowers the chain that a value continues before its other operands, so that these are not live while its
 * loops run. */
static ilir_expr lower_elementwise(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	ilir_expr x[SUB_MAX_ARITY] = {{0}};
	for (int step = 1; step >= 0; step--)
		for (int a = 0; a < v->args; a++)
			if (sched_is_step(l->plan, l->body, v->arg[a].value) == step)
				x[a] = lower_argument(l, v, index, a);
	if (v->op == SUB_CAST)
		return lower_cast(l, x[0], v->dtype);
	return lower_applied(l, v->op, x[0], x[1], x[2]);
}

/* Lowers the parts of a word of four bytes, the lowest first; false if the value is none that is computed here. */
static bool lower_parts(struct lowering *l, const struct sub_value *v, const ilir_expr *index, ilir_expr part[4])
{
	static const struct sub_vars no_vars = {0};
	ilir_expr at[SUB_MAX_VARS], next[SUB_MAX_VARS];
	memcpy(at, index, v->vars * sizeof *at);
	for (int k = 0; k < 3; k++) {
		sub_ref rest = v->arg[0].value;
		if (v->op != SUB_APPEND8 || (k < 2 && sched_is_stored(l->plan, l->body, rest)))
			return false;
		part[k] = lower_argument(l, v, at, 1);
		lower_indices_with(v, at, &v->arg[0], &no_vars, NULL, next);
		if (k == 2)
			part[3] = lower_value_at(l, rest, next);
		v = sub_at(l->p, rest);
		memcpy(at, next, v->vars * sizeof *at);
	}
	return true;
}

/* Whether two loads are of one buffer, and the second is so many elements behind the first along the last dimension. */
static bool lies_behind(const struct ilir_module *m, ilir_expr first, ilir_expr second, int64_t by)
{
	const struct ilir_node *a = ilir_at(m, first), *b = ilir_at(m, second);
	int64_t apart;
	if (b->op != ILIR_LOAD || b->buffer.i != a->buffer.i)
		return false;
	for (int i = 0; i + 1 < a->args; i++)
		if (ilir_arg(m, first, i).i != ilir_arg(m, second, i).i)
			return false;
	return ilir_find_distance(m, ilir_arg(m, first, a->args - 1), ilir_arg(m, second, a->args - 1), &apart) && apart == by;
}

/* Four bytes that are neighbours in memory as the word that they are there; none if they are not. */
static ilir_expr lower_word(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	ilir_expr part[4], at[ILIR_MAX_RANK];
	if (v->op != SUB_APPEND8 || !lower_parts(l, v, index, part))
		return (ilir_expr){0};
	for (int k = 0; k < 4; k++)
		part[k] = ilir_widened(l->m, part[k]);
	const struct ilir_node load = *ilir_at(l->m, part[0]);
	bool bytes = load.op == ILIR_LOAD && load.args && load.type.lanes == 1 && (load.type.dtype == ILIR_U8 || load.type.dtype == ILIR_I8);
	if (!bytes || ilir_buffer_at(l->m, load.buffer)->table.i || ilir_buffer_at(l->m, load.buffer)->kind == ILIR_REGISTER)
		return (ilir_expr){0};
	for (int k = 1; k < 4; k++)
		if (!lies_behind(l->m, part[0], part[k], k))
			return (ilir_expr){0};
	for (int i = 0; i < load.args; i++)
		at[i] = ilir_arg(l->m, part[0], i);
	at[load.args - 1] = ilir_ramp(l->m, at[load.args - 1], 4, 1);
	return ilir_unary(l->m, ILIR_WORD, ilir_load(l->m, load.buffer, at, load.args));
}

/* Gathers at the index that the second argument is, or at the nearest to it in the dimension. */
static ilir_expr lower_gathered(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	int64_t last = l->p->vars.at[v->reduced.var[0]].extent - 1;
	ilir_expr out[SUB_MAX_VARS], at = ilir_unary(l->m, ILIR_TO_INDEX, lower_argument(l, v, index, 1));
	at = ilir_binary(l->m, ILIR_MIN, ilir_binary(l->m, ILIR_MAX, at, ilir_index(l->m, 0)),
			 ilir_index(l->m, last));
	at = lower_named(l, "at", at);
	lower_indices_with(v, index, &v->arg[0], &v->reduced, &at, out);
	return lower_value_at(l, v->arg[0].value, out);
}

/* --- values at an index --- */

static ilir_expr read_state(struct lowering *l, int state, const ilir_expr *index, int n)
{
	ilir_expr at[SUB_MAX_VARS];
	memcpy(at, index, n * sizeof *at);
	at[0] = lower_read_row(l, state, index[0]);
	return lower_load(l, l->state[state], at, n);
}

/* The caller's row of the current node. */
static ilir_expr read_given(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	ilir_expr at[SUB_MAX_VARS];
	memcpy(at, index, v->vars * sizeof *at);
	at[0] = ilir_var_ref(l->m, l->given);
	return lower_widened(l, ilir_load(l->m, l->input[v->which], at, v->vars));
}

static ilir_expr read_source(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	switch (v->op) {
	case SUB_CONST:
		return lower_number(l, v->dtype, v->constant);
	case SUB_INDEX:
		return lower_index_number(l, index[0]);
	case SUB_PARAM:
		return lower_widened(l, lower_load(l, l->param[v->which], index, v->vars));
	case SUB_STATE:
		return read_state(l, v->which, index, v->vars);
	default: {
		if (ilir_buffer_at(l->m, l->input[v->which])->kind == IMAGE_GIVEN)
			return read_given(l, v, index);
		int node = l->p->inputs.at[v->which].on_edge; /* 1 skips the node: the edge determines it */
		return lower_widened(l, ilir_load(l->m, l->input[v->which], index + node, v->vars - node));
	}
	}
}

/* Whether the current group computes the value at this index: it is a target, at the element of the
 * current iteration. */
static bool is_computed_here(const struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_value *v = sub_at(l->p, r);
	bool target = sched_group_of(l->plan, l->body, r) == l->group - l->plan->groups.at;
	for (int i = 0; target && i < v->vars; i++)
		target = index[i].i == l->space[i].i;
	return target;
}

static ilir_expr compute_value(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_value *v = sub_at(l->p, r);
	char name[24];
	switch (v->op) {
	case SUB_ASSIGN:
		return lower_moved(l, v, index);
	case SUB_COND:
		return lower_joined(l, v, index);
	case SUB_GATHER:
		return lower_gathered(l, v, index);
	default:
		if (sub_reduces(v->op))
			return lower_reduction(l, r, index);
		if (sched_is_step(l->plan, l->body, r))
			return lower_elementwise(l, v, index);
		ilir_expr word = lower_word(l, v, index);
		if (word.i)
			return word;
		snprintf(name, sizeof name, "v%u", r.i);
		return name_value(l, arena_string(l->m->arena, name), lower_elementwise(l, v, index));
	}
}

/* A state of a scan, of the step at hand. */
static ilir_expr read_step(struct lowering *l, const struct sub_store *s, const ilir_expr *index, int vars)
{
	ilir_expr at[SUB_MAX_VARS + 1] = {index[0], lower_step_index(l, s->scale, s->offset)};
	memcpy(at + 2, index + 1, (size_t)(vars - 1) * sizeof *at);
	return lower_load(l, lower_target(l, s), at, vars + 1);
}

static ilir_expr read_stored(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_store *s = lower_result(l, l->body, r);
	ilir_expr at[SUB_MAX_VARS];
	if (s && s->stepped)
		return read_step(l, s, index, sub_at(l->p, r)->vars);
	if (s && s->to == SUB_TO_STATE)
		return read_state(l, s->which, index, sub_at(l->p, r)->vars);
	int n = lower_stored_index(l, r, index, at);
	return lower_widened(l, lower_load(l, lower_storage(l, l->body, r), at, n));
}

ilir_expr lower_value_at(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_value *v = sub_at(l->p, r);
	if (sub_class_of(v->op) == SUB_SOURCE)
		return read_source(l, v, index);
	if (sched_is_stored(l->plan, l->body, r) && !is_computed_here(l, r, index))
		return read_stored(l, r, index);
	uint32_t key[1 + SUB_MAX_VARS] = {r.i};
	size_t bytes = (1 + v->vars) * sizeof *key;
	for (int i = 0; i < v->vars; i++)
		key[1 + i] = index[i].i;
	for (const struct scope *s = l->scope; s; s = s->outer) {
		int known = map_get(&s->memo, (const char *)key, bytes);
		if (known >= 0)
			return (ilir_expr){known};
	}
	ilir_expr e = compute_value(l, r, index);
	map_add(&lower_scope_at(l, lower_depth_of(l, &e, 1))->memo, (const char *)key, bytes, e.i);
	return e;
}
