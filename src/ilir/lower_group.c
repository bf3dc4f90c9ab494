/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers the groups of a planned sub-operator program to loops.
 *
 * Each group becomes a loop nest: its dimensions outside, the rows of the step inside, so that the weights of
 * a block of columns are used for all rows before the next block; or, by rows, in the opposite order; or with
 * the dimension that a tile's rows run across inside, in blocks whose loop is outside.  The
 * innermost block computes values at an index, from the results down: an `assign` or `cond` only changes the
 * index (no data moves), a reduction becomes a loop with an accumulator, any other operator a let. Reductions
 * that share an operand, such as the gates of a cell, share a loop. */
#include "base/map.h"
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

#define unary(op, x) ilir_unary(m, ILIR_##op, x)
#define binary(op, x, y) ilir_binary(m, ILIR_##op, x, y)
#define ternary(op, x, y, z) ilir_ternary(m, ILIR_##op, x, y, z)
#define number(x) ilir_float(m, x)
#define integer(i) (is_i64(m, a) ? ilir_i64(m, i) : ilir_i32(m, i))
#define by_type(of_floats, of_integers) (is_float(m, a) ? (of_floats) : (of_integers))
#define bits(i) ilir_i32(m, i)
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

static ilir_expr (*const loops_of[SUB_OPS])(struct ilir_module *, ilir_expr, ilir_expr, ilir_expr) = {
#define SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                        \
	[SUB_##name] = loops_of_##name,
#include "subop/sub_ops.def"
};

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

ilir_expr lower_named(struct lowering *l, const char *name, ilir_expr e)
{
	struct scope *s = lower_scope_at(l, lower_depth_of(l, &e, 1));
	int known = map_get(&s->memo, (const char *)&e, sizeof e);
	if (known >= 0)
		return (ilir_expr){known};
	ilir_expr row = name_value(l, name, e);
	map_add(&s->memo, (const char *)&e, sizeof e, row.i);
	return row;
}

static ilir_expr lower_argument(struct lowering *l, const struct sub_value *v, const ilir_expr *index, int a)
{
	ilir_expr out[SUB_MAX_VARS];
	static const struct sub_vars no_vars = {0};
	lower_indices_with(v, index, &v->arg[a], &no_vars, NULL, out);
	return lower_value_at(l, v->arg[a].value, out);
}

/* The last variable that a value reduces, whose loop is the innermost. */
static const struct sub_var *innermost_reduced(const struct lowering *l, const struct sub_value *v)
{
	return &l->p->vars.at[v->reduced.var[v->reduced.n - 1]];
}

/* An argument at one element of each reduced variable. */
static ilir_expr lower_reduced_argument(struct lowering *l, const struct sub_value *v, const ilir_expr *index,
					int a, const ilir_expr *element)
{
	ilir_expr out[SUB_MAX_VARS];
	lower_indices_with(v, index, &v->arg[a], &v->reduced, element, out);
	return lower_value_at(l, v->arg[a].value, out);
}

/* --- reductions --- */

/* Whether an expression does not depend on the column. */
static bool is_same_for_columns(const struct lowering *l, ilir_expr e)
{
	return !l->column.i || !ilir_uses_var(l->m, e, l->column);
}

/* The values that one loop reduces: one value; or several that differ only in the child, in consecutive
 * slots; or one whose operand is a concatenation of `joined` children. */
struct sums {
	const sub_ref *of;
	int n, joined;
};

/* Lowers both operands of the products at the loop's current element. */
static void lower_operands(struct lowering *l, const struct sums *sums, const struct lower_loop *loop,
			   const ilir_expr *index, const ilir_expr *element, ilir_expr *x)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	int child_at = -1;
	if (loop->slots) {
		ilir_expr slot = ilir_var_ref(l->m, loop->slot);
		ilir_expr child = lower_child_in_slot(l, sums->of[0], &child_at, index, slot,
						      ilir_var_ref(l->m, loop->var));
		x[child_at - 1] = child;
		if (sums->n > 1)
			x[2 - child_at] = lower_stacked_weight(l, sums->of, sums->n, index, element[0], slot);
	}
	for (int a = 1; a < v->args; a++)
		if (a != child_at && sums->n == 1)
			x[a - 1] = lower_reduced_argument(l, v, index, a, element);
}

/* The accumulator's new value after one element; sets the operand that does not depend on the column, if
 * any. */
static ilir_expr accumulate_element(struct lowering *l, const struct sums *sums,
				    const struct lower_loop *loop, const ilir_expr *index,
				    const ilir_expr *element, ilir_expr acc, ilir_expr *shared)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	*shared = (ilir_expr){0};
	if (v->op == SUB_ACCUMULATE) {
		ilir_expr x[2] = {{0}};
		lower_operands(l, sums, loop, index, element, x);
		*shared = is_same_for_columns(l, x[1]) ? x[1] : is_same_for_columns(l, x[0]) ? x[0] : *shared;
		return ilir_ternary(l->m, ILIR_FMA, x[0], x[1], acc);
	}
	ilir_expr x = lower_reduced_argument(l, v, index, 0, element);
	return loops_of[sub_traits_of(v->op)->combine](l->m, acc, x, (ilir_expr){0});
}

static bool is_over_inputs(const struct lowering *l)
{
	return l->p->bodies.at[l->body].domain == SUB_EVERY_INPUT;
}

/* The name of the ragged dimension: the edges of a node, or the members of an input. */
static const char *ragged_name(const struct lowering *l)
{
	return is_over_inputs(l) ? "member" : "edge";
}

static ilir_buffer edge_bounds_array(const struct lowering *l)
{
	bool down = sub_goes_down(l->p, &l->p->bodies.at[l->body]);
	return is_over_inputs(l) ? l->member_begin : down ? l->parent_begin : l->child_begin;
}

/* The range of the edges of the current node, or of the members of the current input. */
static void edge_bounds(struct lowering *l, ilir_expr *begin, ilir_expr *end)
{
	ilir_buffer bounds = edge_bounds_array(l);
	ilir_expr next = ilir_binary(l->m, ILIR_ADD, l->row, ilir_index(l->m, 1));
	*begin = ilir_load_index(l->m, bounds, &l->row, 1);
	*end = ilir_load_index(l->m, bounds, &next, 1);
}

/* Makes the loop count from 0 to a known number of children, from the node's first edge on. */
static void count_edges(struct lowering *l, struct lower_loop *loop, int children)
{
	loop->first = lower_row_of(l, l->child_begin, "edges", l->row);
	loop->end = ilir_index(l->m, children);
	if (!l->group->over_edges && children > 1 && children <= SCHED_MAX_UNROLL)
		vec_push(l->m->arena, &l->tiling->tiles,
			 (struct ilir_tile){loop->var, ILIR_UNROLLED, 1, {children}, 1});
}

/* Tiles the loop over this variable by the schedule's numbers of nodes, or of other rows. */
static void tile_rows(struct lowering *l, ilir_var var)
{
	struct ilir_tile t = {var, ILIR_UNROLLED, l->tile->sizes, {0}, 1};
	memcpy(t.size, l->tile->nodes, sizeof t.size);
	vec_push(l->m->arena, &l->tiling->tiles, t);
}

/* Adds the loops over the reduced variables before the last. */
static void add_outer_loops(struct lowering *l, struct lower_loop *loop, const struct sub_vars *reduced)
{
	for (; loop->outers < reduced->n - 1; loop->outers++) {
		const struct sub_var *var = &l->p->vars.at[reduced->var[loop->outers]];
		struct lower_outer_loop *outer = &loop->outer[loop->outers];
		outer->var = ilir_new_var(l->m, var->name, (struct ilir_type){ILIR_INDEX, 1});
		outer->dim = ilir_dim_name(l->m, var->name);
		outer->extent = var->extent;
		lower_define(l, false, outer->var.i, loop->body->depth, -1);
	}
}

/* Unrolls the loops over reduced variables: the innermost, and those around it that are whole in so many iterations. */
static void unroll_reduced(struct lowering *l, struct lower_loop *loop)
{
	int64_t left = l->tile->unroll, extent = loop->extent;
	ilir_var var = loop->var;
	for (int outer = loop->outers; left > 1; left /= extent, extent = loop->outer[outer].extent, var = loop->outer[outer].var) {
		int size = left < extent ? (int)left : (int)extent;
		vec_push(l->m->arena, &l->tiling->tiles, (struct ilir_tile){var, ILIR_UNROLLED, 2, {size, 1}, 1});
		if (left % extent || outer-- == 0)
			return;
	}
}

/* The loops over the reduced variables; that over the last one is over one of `sections` equal sections of
 * it. */
static struct lower_loop *new_loop(struct lowering *l, struct scope *s, const struct sub_value *v,
				   int sections, int slots)
{
	const struct sub_var *var = innermost_reduced(l, v);
	struct lower_loop *loop = ARENA_NEW(l->m->arena, struct lower_loop);
	bool edge = sub_reduces_ragged(l->p, v);
	*loop = (struct lower_loop){.extent = edge ? -1 : var->extent / sections,
				    .body = lower_scope_new(l, s, !edge)};
	loop->var = ilir_new_var(l->m, var->name, (struct ilir_type){ILIR_INDEX, 1});
	loop->dim = ilir_dim_name(l->m, edge ? ragged_name(l) : var->name);
	loop->begin = ilir_index(l->m, 0);
	loop->end = ilir_index(l->m, loop->extent);
	int children = edge ? sub_children_of(l->p, &l->p->bodies.at[l->body]) : -1;
	if (edge) {
		if (children >= 0 && !sub_goes_down(l->p, &l->p->bodies.at[l->body]))
			count_edges(l, loop, children);
		else
			edge_bounds(l, &loop->begin, &loop->end);
		if (l->group->over_edges && l->tile->across == SCHED_NODES)
			tile_rows(l, loop->var);
	}
	lower_define(l, false, loop->var.i, loop->body->depth, -1);
	add_outer_loops(l, loop, &v->reduced);
	if (!edge)
		unroll_reduced(l, loop);
	if (slots) {
		loop->slots = slots;
		loop->slot = ilir_new_var(l->m, "slot", (struct ilir_type){ILIR_INDEX, 1});
		lower_define(l, false, loop->slot.i, loop->body->depth, -1);
	}
	return loop;
}

/* A scope in place of a loop's body.  Lowering adds statements here, which can be discarded with it, so
 * that the body is unchanged. */
static struct scope *new_trial_scope(struct lowering *l, struct scope *body)
{
	struct scope *s = lower_scope_new(l, body, body->reduction);
	s->depth = body->depth;
	return s;
}

/* Whether a reduction whose update is `value` can join this loop of scope `s`: it added no statements to
 * the trial scope, shares an operand with the loop, and needs nothing that is defined after the loop. */
static bool fits_loop(const struct lowering *l, const struct scope *s, const struct lower_loop *loop,
		      const struct scope *trial, ilir_expr value, ilir_expr start, ilir_expr shared)
{
	return !trial->items.n && loop->shared.i == shared.i &&
	       lower_last_place(l, value, s->depth) <= loop->place &&
	       lower_last_place(l, start, s->depth) < loop->place;
}

/* The current element of the variable of a loop. */
static ilir_expr element_of(struct lowering *l, const struct lower_loop *loop, bool joined)
{
	ilir_expr at = ilir_var_ref(l->m, loop->var);
	if (loop->first.i)
		return ilir_binary(l->m, ILIR_ADD, loop->first, at);
	if (!joined)
		return at;
	ilir_expr start =
	    ilir_binary(l->m, ILIR_MUL, ilir_var_ref(l->m, loop->slot), ilir_index(l->m, loop->extent));
	return ilir_binary(l->m, ILIR_ADD, start, at);
}

/* Adds a reduction to a loop of scope `s`; a loop that is not `fresh` has others already.  False if it
 * does not fit. */
static bool add_to_loop(struct lowering *l, struct scope *s, struct lower_loop *loop, const struct sums *sums,
			const ilir_expr *index, ilir_buffer acc, ilir_expr start, bool fresh)
{
	struct scope *saved = l->scope, *body = fresh ? loop->body : new_trial_scope(l, loop->body);
	ilir_expr shared, edge = l->edge, from = ilir_load(l->m, acc, NULL, 0), element[SUB_MAX_VARS] = {{0}};
	for (int i = 0; i < loop->outers; i++)
		element[i] = ilir_var_ref(l->m, loop->outer[i].var);
	element[loop->outers] = element_of(l, loop, sums->joined);
	l->scope = body;
	if (loop->extent < 0)
		l->edge = element_of(l, loop, false);
	ilir_expr value = accumulate_element(l, sums, loop, index, element, from, &shared);
	l->scope = saved;
	l->edge = edge;
	if (!fresh && !fits_loop(l, s, loop, body, value, start, shared))
		return false;
	loop->shared = shared;
	loop->prologue = ilir_append(
	    loop->prologue, ilir_append(ilir_alloc(l->m, acc), ilir_store(l->m, acc, NULL, 0, start)));
	lower_scope_add(l, loop->body, ilir_store(l->m, acc, NULL, 0, value), NULL);
	return true;
}

/* Whether loops have the ranges that those of a reduction would have. */
static bool is_over(const struct lowering *l, const struct lower_loop *loop, const struct sub_value *v,
		    int sections, int slots)
{
	bool same = loop->extent == innermost_reduced(l, v)->extent / sections && loop->slots == slots &&
		    loop->outers == v->reduced.n - 1;
	for (int i = 0; same && i < loop->outers; i++)
		same = loop->outer[i].extent == l->p->vars.at[v->reduced.var[i]].extent;
	return same;
}

/* Lowers sums that continue from `start`: adds them to a loop of the scope that they fit into, else to a
 * new one. */
static ilir_expr lower_sums(struct lowering *l, const struct sums *sums, const ilir_expr *index,
			    ilir_expr start)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	int sections = sums->joined ? sums->joined : 1, slots = sums->n > 1 ? sums->n : sums->joined;
	struct scope *s = lower_scope_at(l, lower_depth_of(l, index, v->vars));
	bool edge = sub_reduces_ragged(l->p, v);
	struct ilir_buffer_decl decl = {
	    .name = "sum", .kind = ILIR_REGISTER, .dtype = (enum ilir_dtype)v->dtype};
	ilir_buffer acc = ilir_new_buffer(l->m, decl);
	struct lower_loop *loop = NULL;
	for (size_t i = 0; i < s->items.n && !loop && !edge; i++) {
		struct lower_loop *other = s->items.at[i].loop;
		if (other && is_over(l, other, v, sections, slots) &&
		    add_to_loop(l, s, other, sums, index, acc, start, false))
			loop = other;
	}
	if (!loop) {
		loop = new_loop(l, s, v, sections, slots);
		add_to_loop(l, s, loop, sums, index, acc, start, true);
		loop->place = s->items.n;
		lower_scope_add(l, s, NULL, loop);
	}
	lower_define(l, true, acc.i, s->depth, loop->place);
	return ilir_load(l->m, acc, NULL, 0);
}

/* The sum of products that a sum continues, if nothing else uses it; else none. */
static sub_ref step_before(const struct lowering *l, sub_ref r)
{
	sub_ref start = sub_at(l->p, r)->arg[0].value;
	bool continued = sub_at(l->p, start)->op == SUB_ACCUMULATE && sched_is_step(l->plan, l->body, start);
	return continued ? start : (sub_ref){0};
}

/* The last run of the chain of sums that ends at `r`.  A run is a sequence of steps over consecutive
 * children, which one loop nest computes.  A loop that is not unrolled evenly is no single nest, so each
 * of its steps is a run. */
static struct sums find_last_run(struct lowering *l, sub_ref r)
{
	VEC(sub_ref) chain = {0};
	bool even = innermost_reduced(l, sub_at(l->p, r))->extent % l->tile->unroll == 0;
	for (; r.i; r = step_before(l, r))
		vec_push(l->m->arena, &chain, r);
	sub_ref *of = ARENA_ARRAY(l->m->arena, sub_ref, chain.n);
	int n = 0;
	for (size_t i = chain.n; i-- > 0;) {
		if (n && !(even && lower_next_slot(l, of[0], chain.at[i], n)))
			n = 0;
		of[n++] = chain.at[i];
	}
	return (struct sums){of, n, lower_joined_slots(l, of[0])};
}

/* Lowers a reduction, from its neutral element or from the sum that it continues. */
static ilir_expr lower_reduction(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_value *v = sub_at(l->p, r);
	struct sums sums = {&r, 1, 0};
	if (v->op != SUB_ACCUMULATE)
		return lower_sums(l, &sums, index, lower_number(l, v->dtype, sub_traits_of(v->op)->neutral));
	sums = find_last_run(l, r);
	return lower_sums(l, &sums, index, lower_argument(l, sub_at(l->p, sums.of[0]), index, 0));
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
	return loops_of[v->op](l->m, x[0], x[1], x[2]);
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
	default:
		if (sub_reduces(v->op))
			return lower_reduction(l, r, index);
		if (sched_is_step(l->plan, l->body, r))
			return lower_elementwise(l, v, index);
		snprintf(name, sizeof name, "v%u", r.i);
		return name_value(l, arena_string(l->m->arena, name), lower_elementwise(l, v, index));
	}
}

static ilir_expr read_stored(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_store *s = lower_result(l, l->body, r);
	int first = lower_first_stored(l, r), n = sub_at(l->p, r)->vars - first;
	if (s && s->to == SUB_TO_STATE)
		return read_state(l, s->which, index, n);
	return lower_load(l, lower_storage(l, l->body, r), index + first, n);
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

/* --- loop nests --- */

/* Stores a target of the group: to all states and outputs that the body stores it to, or to an
 * intermediate. */
static void store_target(struct lowering *l, sub_ref r)
{
	ilir_expr e = lower_value_at(l, r, l->space);
	const struct sub_value *v = sub_at(l->p, r);
	const struct sub_body *b = &l->p->bodies.at[l->body];
	bool stored = false;
	for (size_t i = 0; i < b->stores.n; i++) {
		const struct sub_store *s = &b->stores.at[i];
		if (s->value.value.i != r.i)
			continue;
		stored = true;
		if (b->domain == SUB_LEAF && s->to == SUB_TO_STATE && ilir_buffer_at(l->m, l->state[s->which])->table.i)
			continue;
		ilir_expr index[SUB_MAX_VARS] = {l->row};
		int n = l->group->rows;
		for (int d = 0; d < l->group->dims; d++)
			index[n++] = l->space[v->vars - l->group->dims + d];
		if (s->to == SUB_TO_STATE)
			index[0] = lower_state_row(l, s->which, l->row);
		lower_scope_add(l, l->scope, lower_store(l, lower_target(l, s), index, n, e), NULL);
	}
	int first = lower_first_stored(l, r);
	if (!stored)
		lower_scope_add(
		    l, l->scope,
		    lower_store(l, lower_storage(l, l->body, r), l->space + first, v->vars - first, e), NULL);
}

/* Lowers the innermost block of a group, which computes one element of each target. */
static struct ilir_stmt *lower_element(struct lowering *l, struct scope *outer)
{
	l->scope = lower_scope_new(l, outer, false);
	l->floor = 0;
	for (size_t i = 0; i < l->group->targets.n; i++)
		store_target(l, l->group->targets.at[i]);
	return lower_scope_finish(l, l->scope);
}

/* Whether the group only stores intermediates: infer_bounds computes the bounds of its loops from what is
 * read of them. */
static bool is_inferred(const struct lowering *l)
{
	const struct sub_body *b = &l->p->bodies.at[l->body];
	for (size_t i = 0; i < b->stores.n; i++)
		for (size_t t = 0; t < l->group->targets.n; t++)
			if (b->stores.at[i].value.value.i == l->group->targets.at[t].i)
				return false;
	return true;
}

static const char *var_name(const struct lowering *l, int var)
{
	return l->p->vars.at[var].name;
}

/* Makes the variables of a group's nest, in the order row, edge, dimensions.  Returns that of the loop over
 * blocks of a tile's rows, to which the variable of the loop over these rows is added; none without blocks. */
static ilir_var open_space(struct lowering *l, const struct sub_value *v, bool row_loop, ilir_var *var)
{
	int first = v->vars - l->group->dims, across = first + l->tile->across;
	ilir_var rows = {0};
	for (int i = 0; i < v->vars; i++) {
		bool row = i == 0 && l->group->rows;
		if (row && !row_loop) {
			l->space[i] = l->row;
			continue;
		}
		var[i] = ilir_new_var(l->m, var_name(l, v->var[i]), (struct ilir_type){ILIR_INDEX, 1});
		l->space[i] = ilir_var_ref(l->m, var[i]);
		if (row)
			l->row = l->space[i];
	}
	if (l->sort && l->sort->edges)
		l->row = l->space[0] = ilir_load_index(l->m, l->edge_node, &l->space[1], 1);
	if (l->tile->block) {
		rows = ilir_new_var(l->m, var_name(l, v->var[across]), (struct ilir_type){ILIR_INDEX, 1});
		l->space[across] = ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, rows), l->space[across]);
	}
	l->column = l->group->dims ? var[first + l->tile->along] : (ilir_var){0};
	l->edge = l->group->edges ? l->space[1] : (ilir_expr){0};
	return rows;
}

static struct ilir_stmt *edge_loop(struct lowering *l, ilir_var var, struct ilir_stmt *block)
{
	ilir_expr begin, end;
	edge_bounds(l, &begin, &end);
	return ilir_for(l->m, var, begin, end, 1, ilir_dim_name(l->m, ragged_name(l)), ILIR_SERIAL, block);
}

struct use_of {
	ilir_var var;
	bool used;
};

static void note_use(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct use_of *use = context;
	use->used |= ilir_at(m, e)->op == ILIR_VAR && ilir_at(m, e)->var.i == use->var.i;
}

static bool uses_variable(const struct ilir_module *m, const struct ilir_stmt *block, ilir_var var)
{
	struct use_of use = {var, false};
	ilir_visit_block(m, block, &(struct ilir_visit){.expr = note_use, .context = &use});
	return use.used;
}

/* The loop over the edges of all rows of the range, or the members of its inputs, which follow each other: so that tiles hold
 * those of several rows.  For blocks that do not depend on the row. */
static struct ilir_stmt *flat_edge_loop(struct lowering *l, ilir_var var, struct ilir_stmt *block)
{
	ilir_buffer bounds = edge_bounds_array(l);
	ilir_expr begin = ilir_var_ref(l->m, ilir_begin), end = ilir_var_ref(l->m, ilir_end);
	if (l->tile->across == SCHED_NODES)
		tile_rows(l, var);
	return ilir_for(l->m, var, ilir_load_index(l->m, bounds, &begin, 1), ilir_load_index(l->m, bounds, &end, 1), 1,
			ilir_dim_name(l->m, ragged_name(l)), ILIR_SERIAL, block);
}

static struct ilir_stmt *row_loop(struct lowering *l, ilir_var var, const char *dim, struct ilir_stmt *block)
{
	if (!l->group->over_edges && l->tile->across == SCHED_NODES)
		tile_rows(l, var);
	return ilir_for(l->m, var, ilir_var_ref(l->m, ilir_begin), ilir_var_ref(l->m, ilir_end), 1,
			ilir_dim_name(l->m, dim), ILIR_SERIAL, block);
}

/* The loop over the rows or edges of a sort's segments around a block that computes `row`. */
static struct ilir_stmt *sorted_loop(struct lowering *l, ilir_var row, struct ilir_stmt *block)
{
	const struct ilir_type index = {ILIR_INDEX, 1};
	ilir_var segment = ilir_new_var(l->m, "segment", index), position = ilir_new_var(l->m, "p", index);
	ilir_expr first, last;
	lower_segment_bounds(l, ilir_var_ref(l->m, segment), &first, &last);
	if (l->tile->across == SCHED_NODES)
		tile_rows(l, position);
	block = lower_sorted_row(l, row, ilir_var_ref(l->m, position), block);
	block = ilir_for(l->m, position, first, last, 1, ilir_dim_name(l->m, "position"), ILIR_SERIAL, block);
	return lower_segments(l, segment, ilir_at(l->m, l->token)->var, block);
}

/* The loop over the caller's rows around a block that computes the row `row`, their node's number. */
static struct ilir_stmt *given_loop(struct lowering *l, ilir_var row, struct ilir_stmt *block)
{
	ilir_expr at = ilir_var_ref(l->m, l->given);
	block = ilir_append(ilir_let(l->m, row, ilir_load_index(l->m, l->member_list, &at, 1)), block);
	return row_loop(l, l->given, "member", block);
}

static struct ilir_stmt *dimension_loop(struct lowering *l, ilir_var var, int dim, int64_t extent,
					struct ilir_stmt *block)
{
	bool infer = is_inferred(l);
	ilir_expr begin = infer ? ilir_inferred(l->m) : ilir_index(l->m, 0);
	ilir_expr end = infer ? ilir_inferred(l->m) : ilir_index(l->m, extent);
	return ilir_for(l->m, var, begin, end, 1, ilir_dim_name(l->m, var_name(l, dim)), ILIR_SERIAL, block);
}

static const char *row_name(const struct lowering *l, int var)
{
	enum sub_set set = l->p->vars.at[var].set;
	return set == SUB_INPUT ? "input" : set == SUB_ROW ? "row" : "node";
}

/* In which of three turns a dimension's loop is put around a block. */
static int place_of(int dim, int innermost, int outermost)
{
	if (dim == innermost)
		return 0;
	return dim == outermost ? 2 : 1;
}

/* Puts the loops over some dimensions, a mask, around a block: the last one innermost, unless another is
 * to be, and the first one outermost, unless another is to be; -1 = none is. */
static struct ilir_stmt *dimension_loops(struct lowering *l, const struct sub_value *v, const ilir_var *var,
					 unsigned dims, int outermost, int innermost, struct ilir_stmt *block)
{
	const struct sched_group *g = l->group;
	int leading = v->vars - g->dims;
	for (int place = 0; place < 3; place++)
		for (int d = g->dims; d-- > 0;)
			if (dims >> d & 1 && place == place_of(d, innermost, outermost))
				block = dimension_loop(l, var[leading + d], v->var[leading + d], g->extent[d],
						       block);
	return block;
}

/* The loop over the rows of a tile in a block of them, whose first is `first`; the last block may have fewer:
 *
 *     if first + 4 <= 7 { for i in 0..4 .. } else { for i in 0..3 .. } */
static struct ilir_stmt *rows_loop(struct lowering *l, const struct sub_value *v, ilir_var var, ilir_var first,
				   struct ilir_stmt *block)
{
	int name = v->var[v->vars - l->group->dims + l->tile->across];
	int64_t extent = l->group->extent[l->tile->across], rows = first.i ? l->tile->block : extent;
	tile_rows(l, var);
	struct ilir_stmt *whole = ilir_for(l->m, var, ilir_index(l->m, 0), ilir_index(l->m, rows), 1,
					   ilir_dim_name(l->m, var_name(l, name)), ILIR_SERIAL, block);
	if (extent % rows == 0)
		return whole;
	struct ilir_stmt *rest = ilir_clone_block(l->m, whole, l->tiling);
	rest->loop.end = ilir_index(l->m, extent % rows);
	ilir_expr end = ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, first), ilir_index(l->m, rows));
	return ilir_if(l->m, ilir_binary(l->m, ILIR_LE, end, ilir_index(l->m, extent)), whole, rest);
}

/* The loop over the blocks of these rows. */
static struct ilir_stmt *blocks_loop(struct lowering *l, const struct sub_value *v, ilir_var var,
				     struct ilir_stmt *block)
{
	int name = v->var[v->vars - l->group->dims + l->tile->across];
	int64_t extent = l->group->extent[l->tile->across];
	return ilir_for(l->m, var, ilir_index(l->m, 0), ilir_index(l->m, extent), l->tile->block,
			ilir_dim_name(l->m, var_name(l, name)), ILIR_SERIAL, block);
}

/* Lowers the elements of a row, in loops over these dimensions.  What does not depend on them, such as the
 * rows that are read, comes before the loops. */
static struct ilir_stmt *lower_row(struct lowering *l, const struct sub_value *v, const ilir_var *var,
				   ilir_var first, unsigned dims)
{
	struct scope *row = lower_scope_new(l, NULL, false);
	int leading = v->vars - l->group->dims, across = l->tile->across;
	for (int d = 0; d < l->group->dims; d++)
		if (dims >> d & 1)
			lower_define(l, false, var[leading + d].i, row->depth + 1, -1);
	struct ilir_stmt *block = lower_element(l, row);
	block = across >= 0 ? rows_loop(l, v, var[leading + across], first, block)
			    : dimension_loops(l, v, var, dims, -1, l->tile->along, block);
	return ilir_append(lower_scope_finish(l, row), block);
}

/* The dimensions whose loops are inside the loop over nodes. */
static unsigned inner_dims(const struct lowering *l)
{
	unsigned all = (1u << l->group->dims) - 1;
	return l->tile->by_rows ? all : l->tile->across >= 0 ? 1u << l->tile->across : 0;
}

struct ilir_stmt *lower_group(struct lowering *l, int number, bool rows_here)
{
	const struct sched_group *g = l->group = &l->plan->groups.at[number];
	const struct sub_value *v = sub_at(l->p, g->targets.at[0]);
	ilir_var var[SUB_MAX_VARS] = {{0}};
	l->tile = &l->sched->tiles.at[number];
	l->body = g->body;
	l->sort = rows_here ? lower_sort_of(l, number) : NULL;
	if (l->sort)
		l->token = ilir_var_ref(l->m, ilir_new_var(l->m, "token", (struct ilir_type){ILIR_INDEX, 1}));
	l->given = rows_here && sched_is_in_given_order(l->sched, l->plan, g->body)
		       ? ilir_new_var(l->m, "m", (struct ilir_type){ILIR_INDEX, 1})
		       : (ilir_var){0};
	unsigned inside = inner_dims(l);
	ilir_var rows = open_space(l, v, rows_here, var);
	struct ilir_stmt *block = inside ? lower_row(l, v, var, rows, inside) : lower_element(l, NULL);
	if (l->sort)
		block = sorted_loop(l, var[g->edges], block);
	bool flat = g->edges && rows_here && !l->sort && !uses_variable(l->m, block, var[0]);
	if (flat)
		block = flat_edge_loop(l, var[1], block);
	else if (g->edges && !l->sort)
		block = edge_loop(l, var[1], block);
	if (l->given.i)
		block = given_loop(l, var[0], block);
	else if (g->rows && rows_here && !l->sort && !flat)
		block = row_loop(l, var[0], row_name(l, v->var[0]), block);
	unsigned first = l->tile->rows_outside ? 1u << l->tile->along : 0;
	if (first)
		block = dimension_loops(l, v, var, first, -1, -1, block);
	if (rows.i)
		block = blocks_loop(l, v, rows, block);
	block = dimension_loops(l, v, var, ~(inside | first), inside ? l->tile->along : -1, -1, block);
	if (g->dims && l->tile->lanes > 1)
		vec_push(l->m->arena, &l->tiling->tiles,
			 (struct ilir_tile){l->column, ILIR_VECTOR, 1, {l->tile->lanes}, l->tile->columns});
	return block;
}
