/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From operators to sub-operators.  Every row of ra/ra_ops.def names a function of this file, of lower_movement.c or
 * of lower_nest.c; the node becomes an index variable: n in bodies that run over nodes, t in outputs that run over
 * inputs. */
#include "subop/lower_operator.h"

/* --- shapes and uses --- */

void sub_name_extents(struct lowering *l, const int64_t *extent, int n, int *vars)
{
	for (int d = 0; d < n; d++) {
		int ordinal = 0;
		for (int i = 0; i < d; i++)
			ordinal += extent[i] == extent[d];
		vars[d] = sub_dim(l->p, extent[d], ordinal);
	}
}

int sub_lower_shape(struct lowering *l, const struct ra_shape *shape, int *vars)
{
	int64_t extent[RA_MAX_RANK];
	for (int d = 0; d < shape->rank; d++)
		extent[d] = ra_dim_value(&shape->dim[d], l->sizes);
	sub_name_extents(l, extent, shape->rank, vars);
	return shape->rank;
}

/* The first dimension variable of this extent that is not among `taken`. */
static int find_free_var(struct lowering *l, int64_t extent, const int *taken, int n)
{
	for (int ordinal = 0;; ordinal++) {
		int var = sub_dim(l->p, extent, ordinal), i = 0;
		while (i < n && taken[i] != var)
			i++;
		if (i == n)
			return var;
	}
}

bool sub_is_dim(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM;
}

int sub_dims_of(const struct lowering *l, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	int dims = 0;
	for (int i = 0; i < v->vars; i++)
		dims += sub_is_dim(l->p, v->var[i]);
	return dims;
}

struct sub_use sub_use_under(const struct lowering *l, sub_ref r, const int *vars, int n)
{
	struct sub_use u = sub_as_is(l->p, r);
	int at = n - sub_dims_of(l, r);
	for (int i = 0; i < u.vars; i++)
		if (sub_is_dim(l->p, u.var[i]))
			u.var[i] = vars[at++];
	return u;
}

sub_ref sub_value_of_argument(const struct lowering *l, const struct ra_node *n, int i)
{
	return l->values[n->arg[i].i];
}

struct sub_map sub_affine_map(int var, int64_t offset)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1, .offset = offset};
}

struct sub_map sub_fixed_map(int64_t index)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = -1, .offset = index};
}

void sub_add_leading_vars(const struct lowering *l, struct sub_value *v, const struct sub_use *u)
{
	for (int i = 0; i < u->vars && !sub_is_dim(l->p, u->var[i]); i++) {
		int j = 0;
		while (j < v->vars && v->var[j] != u->var[i])
			j++;
		if (j == v->vars)
			v->var[v->vars++] = u->var[i];
	}
}

void sub_add_dims(struct sub_value *v, const int *vars, int n)
{
	for (int i = 0; i < n; i++)
		v->var[v->vars++] = vars[i];
}

sub_ref sub_move_filled(struct lowering *l, sub_ref from, const struct sub_map *map, const int *vars,
			   int rank, const double *fill)
{
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, from)}, .map = maps};
	v.fills = fill;
	v.fill = fill ? *fill : 0;
	sub_add_leading_vars(l, &v, &v.arg[0]);
	for (int i = 0; i < v.arg[0].vars; i++)
		maps[i] = i < v.vars ? sub_affine_map(v.var[i], 0) : map[i - v.vars];
	sub_add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref move_value(struct lowering *l, sub_ref from, const struct sub_map *map, const int *vars,
			  int rank)
{
	return sub_move_filled(l, from, map, vars, rank, NULL);
}

/* The value with a dimension for each axis. */
static sub_ref expand_value(struct lowering *l, sub_ref r, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, shape, vars), dims = sub_dims_of(l, r);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < dims; d++)
		map[d] = sub_affine_map(vars[rank - dims + d], 0);
	return dims == rank ? r : move_value(l, r, map, vars, rank);
}

sub_ref sub_expand_argument(struct lowering *l, const struct ra_node *n, int i)
{
	return expand_value(l, sub_value_of_argument(l, n, i), &ra_at(l->model, n->arg[i])->shape);
}

const enum sub_op sub_op_of_ra[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) [RA_##name] = SUB_##sub,
#include "ra/ra_ops.def"
};

/* --- elementwise --- */

static sub_ref lower_cast(struct lowering *l, const struct ra_node *n)
{
	struct sub_value v = {.op = SUB_CAST, .dtype = n->dtype, .arg = {sub_number_use(l, n, 0)}};
	return sub_add(l->p, v, l->diags);
}

static sub_ref add_unary_of(struct lowering *l, enum sub_op op, struct sub_use u)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {u}}, l->diags);
}

static sub_ref add_unary(struct lowering *l, enum sub_op op, sub_ref r)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {sub_as_is(l->p, r)}}, l->diags);
}

static sub_ref lower_unary(struct lowering *l, const struct ra_node *n)
{
	return add_unary_of(l, sub_op_of_ra[n->op], sub_number_use(l, n, 0));
}

/* An argument of an elementwise operator whose shape `to` has the variables `vars`.  Drops axes of extent 1
 * that the operator repeats, or that `to` lacks; if `all_axes`, copies it along all axes instead. */
static struct sub_use repeat_axes(struct lowering *l, sub_ref value, const struct ra_shape *from,
				  const struct ra_shape *to, const int *vars, bool all_axes)
{
	struct sub_map map[RA_MAX_RANK];
	int kept[RA_MAX_RANK], n = 0, lacks = to->rank - from->rank;
	for (int d = 0; d < from->rank; d++) {
		bool same = d + lacks >= 0 && ra_dim_equal(&from->dim[d], &to->dim[d + lacks]);
		map[d] = same ? sub_affine_map(vars[d + lacks], 0) : sub_fixed_map(0);
		if (same)
			kept[n++] = vars[d + lacks];
	}
	if (all_axes)
		return sub_as_is(l->p, move_value(l, value, map, vars, to->rank));
	return n == from->rank ? sub_use_under(l, value, vars, to->rank)
			       : sub_as_is(l->p, move_value(l, value, map, kept, n));
}

/* Whether a shape ends with all axes of another. */
static bool ends_with_axes(const struct ra_shape *shape, const struct ra_shape *axes)
{
	bool all = shape->rank >= axes->rank;
	for (int d = 1; all && d <= axes->rank; d++)
		all = ra_dim_equal(&shape->dim[shape->rank - d], &axes->dim[axes->rank - d]);
	return all;
}

struct ra_shape sub_last_axes(const struct ra_shape *shape, int n)
{
	struct ra_shape last = {.rank = n};
	memcpy(last.dim, shape->dim + shape->rank - n, (size_t)n * sizeof *last.dim);
	return last;
}

/* The axes that the value of an elementwise operator has variables for.  Leaves out axes of extent 1 at the
 * front that an argument other than a number lacks: copies along them would hide operands from rules. */
static struct ra_shape axes_of(const struct ra_shape *shape, int a, int b)
{
	int least = !a || (b && b < a) ? b : a, rank = shape->rank;
	while (least && rank > least && ra_dim_is_one(&shape->dim[shape->rank - rank]))
		rank--;
	return sub_last_axes(shape, rank);
}

/* Copies one of the arguments along all axes if neither has all, so that the order of the axes is known. */
static sub_ref add_elementwise(struct lowering *l, enum sub_op op, const struct ra_shape *shape,
			       sub_ref first, const struct ra_shape *first_shape, sub_ref second,
			       const struct ra_shape *second_shape)
{
	int vars[RA_MAX_RANK];
	struct ra_shape a = sub_last_axes(first_shape, sub_dims_of(l, first)),
			b = sub_last_axes(second_shape, sub_dims_of(l, second));
	struct ra_shape to = axes_of(shape, a.rank, b.rank);
	bool all_axes = !ends_with_axes(&a, &to) && !ends_with_axes(&b, &to);
	sub_lower_shape(l, &to, vars);
	struct sub_value v = {.op = op,
			      .arg = {repeat_axes(l, first, &a, &to, vars, all_axes),
				      repeat_axes(l, second, &b, &to, vars, false)}};
	return sub_add(l->p, v, l->diags);
}

static const struct ra_shape *argument_shape(const struct lowering *l, const struct ra_node *n, int i)
{
	return &ra_at(l->model, n->arg[i])->shape;
}

static sub_ref add_numbers_of(struct lowering *l, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return sub_add_numbers(l, (struct sub_value){.op = op, .arg = {a, b}});
}

static sub_ref lower_binary(struct lowering *l, const struct ra_node *n)
{
	if (!n->shape.rank)
		return add_numbers_of(l, sub_op_of_ra[n->op], sub_number_use(l, n, 0), sub_number_use(l, n, 1));
	return add_elementwise(l, sub_op_of_ra[n->op], &n->shape, sub_value_of_argument(l, n, 0),
			       argument_shape(l, n, 0), sub_value_of_argument(l, n, 1), argument_shape(l, n, 1));
}

static sub_ref lower_sub(struct lowering *l, const struct ra_node *n)
{
	if (!n->shape.rank)
		return add_numbers_of(l, sub_op_of_ra[n->op], sub_number_use(l, n, 0),
				      sub_as_is(l->p, add_unary_of(l, SUB_NEG, sub_number_use(l, n, 1))));
	return add_elementwise(l, sub_op_of_ra[n->op], &n->shape, sub_value_of_argument(l, n, 0),
			       argument_shape(l, n, 0), add_unary(l, SUB_NEG, sub_value_of_argument(l, n, 1)),
			       argument_shape(l, n, 1));
}

/* Lowers a > b as b < a. */
static sub_ref lower_swapped(struct lowering *l, const struct ra_node *n)
{
	if (!n->shape.rank)
		return add_numbers_of(l, sub_op_of_ra[n->op], sub_number_use(l, n, 1), sub_number_use(l, n, 0));
	return add_elementwise(l, sub_op_of_ra[n->op], &n->shape, sub_value_of_argument(l, n, 1),
			       argument_shape(l, n, 1), sub_value_of_argument(l, n, 0), argument_shape(l, n, 0));
}

static sub_ref lower_negated(struct lowering *l, const struct ra_node *n)
{
	return add_unary(l, SUB_NOT, lower_binary(l, n));
}

/* The i-th argument, copied along the axes that it lacks. */
static struct sub_use repeat_argument(struct lowering *l, const struct ra_node *n, int i, const int *vars)
{
	sub_ref r = sub_value_of_argument(l, n, i);
	struct ra_shape from = sub_last_axes(argument_shape(l, n, i), sub_dims_of(l, r));
	return repeat_axes(l, r, &from, &n->shape, vars, i == 0 && !ends_with_axes(&from, &n->shape));
}

/* Gives the condition all axes, so that their order is known. */
static sub_ref lower_where(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK];
	struct sub_value v = {.op = SUB_SELECT};
	for (int i = 0; i < 3; i++)
		v.arg[i] = sub_number_use(l, n, i);
	if (!n->shape.rank)
		return sub_add_numbers(l, v);
	sub_lower_shape(l, &n->shape, vars);
	for (int i = 0; i < 3; i++)
		v.arg[i] = repeat_argument(l, n, i, vars);
	return sub_add(l->p, v, l->diags);
}

/* --- sources --- */

static sub_ref add_constant(struct lowering *l, enum dtype dtype, double value)
{
	return sub_add(l->p, (struct sub_value){.op = SUB_CONST, .dtype = dtype, .constant = value},
		       l->diags);
}

static sub_ref lower_const(struct lowering *l, const struct ra_node *n)
{
	return add_constant(l, n->dtype, n->constant);
}

static sub_ref lower_extent(struct lowering *l, const struct ra_node *n)
{
	return add_constant(l, n->dtype, ra_dim_value(&n->begin, l->sizes));
}

/* Lowers zeros to a scalar that is repeated over the shape. */
static sub_ref lower_zero(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, &n->shape, vars);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, add_constant(l, n->dtype, 0))}};
	sub_add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

/* Adds a source with the leading dimension `leading` (-1 = none); that of edges follows that of nodes. */
static sub_ref add_source(struct lowering *l, enum sub_op op, int which, int leading,
			  const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, shape, vars);
	struct sub_value v = {.op = op, .which = which};
	if (leading == l->p->edge)
		v.var[v.vars++] = l->p->node;
	if (leading >= 0)
		v.var[v.vars++] = leading;
	sub_add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_param(struct lowering *l, const struct ra_node *n)
{
	return add_source(l, SUB_PARAM, n->param, -1, &l->model->params.at[n->param].shape);
}

/* The row of the edge in a slot, out of the rows of all edges of the node. */
static sub_ref select_slot(struct lowering *l, sub_ref vector, int slot)
{
	struct sub_use u = sub_as_is(l->p, vector);
	struct sub_map map[SUB_MAX_VARS] = {sub_affine_map(l->row, 0)};
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .var = {l->row}, .vars = 1, .map = map};
	map[1] = (struct sub_map){.function = SUB_SLOT_EDGE, .which = slot, .var = l->row};
	for (int i = 2; i < u.vars; i++) {
		map[i] = sub_affine_map(u.var[i], 0);
		v.var[v.vars++] = u.var[i];
	}
	return sub_add(l->p, v, l->diags);
}

/* The rows of `from` that `row` selects: one for each row of the body or, where it is a function of them, for each of its
 * edges or members. */
static sub_ref pick_rows(struct lowering *l, sub_ref from, struct sub_map row)
{
	struct sub_use u = sub_as_is(l->p, from);
	struct sub_map map[SUB_MAX_VARS] = {row};
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .map = map};
	v.var[v.vars++] = l->row;
	if (sub_is_ragged(l->p, row.var))
		v.var[v.vars++] = row.var;
	for (int i = 1; i < u.vars; i++) {
		int ordinal = 0;
		int64_t extent = l->p->vars.at[u.var[i]].extent;
		for (int j = 1; j < i; j++)
			ordinal += l->p->vars.at[u.var[j]].extent == extent;
		int var = sub_dim(l->p, extent, ordinal);
		map[i] = sub_affine_map(var, 0);
		v.var[v.vars++] = var;
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref pick_members(struct lowering *l, sub_ref from)
{
	return pick_rows(l, from, (struct sub_map){.function = SUB_MEMBER_NODE, .var = l->p->member});
}

static sub_ref lower_input(struct lowering *l, const struct ra_node *n)
{
	const struct ra_input *in = &l->model->inputs.at[n->input];
	sub_ref vector = add_source(l, SUB_VECTOR, n->input, in->edge ? l->p->edge : l->p->node, &in->shape);
	if (!in->edge && n->slot == RA_EACH_MEMBER)
		return pick_members(l, vector);
	return in->edge && n->slot != RA_EACH_CHILD ? select_slot(l, vector, n->slot) : vector;
}

static sub_ref lower_lookup(struct lowering *l, const struct ra_node *n)
{
	bool edge = l->model->inputs.at[n->input].edge, each = n->slot == RA_EACH_CHILD;
	int ragged = edge ? l->p->edge : l->p->member;
	struct sub_map row = {.function = SUB_TOKEN, .which = n->input, .var = each ? ragged : l->row};
	row.slot = edge && !each ? n->slot : 0;
	return pick_rows(l, sub_value_of_argument(l, n, 0), row);
}

struct sub_map sub_step_map(const struct lowering *l, int64_t shift)
{
	const struct sub_traversal *t = &l->p->traversals.at[l->traversal];
	return t->down ? (struct sub_map){.function = SUB_STEP,
					  .var = -1,
					  .scale = -1,
					  .offset = t->steps - 1 + shift}
		       : (struct sub_map){.function = SUB_STEP, .var = -1, .scale = 1, .offset = shift};
}

/* The row of the current step, or one that is `shift` further, of a value that has a dimension for each axis.
 */
static sub_ref pick_step(struct lowering *l, sub_ref from, const struct ra_shape *shape, int64_t shift)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, shape, vars);
	struct sub_map map[RA_MAX_RANK] = {sub_step_map(l, shift)};
	for (int d = 0; d < rank; d++)
		map[d + 1] = sub_affine_map(vars[d], 0);
	return sub_move_filled(l, from, map, vars, rank, NULL);
}

static sub_ref lower_at_step(struct lowering *l, const struct ra_node *n)
{
	return pick_step(l, sub_expand_argument(l, n, 0), &n->shape, 0);
}

/* A state of the step before, which is one further along the axis where a scan goes down. */
static sub_ref lower_step_before(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape all = ra_outer_shape(l->model, n->state.state);
	sub_ref state = add_source(l, SUB_STATE, n->state.state, l->p->node, &all);
	return pick_step(l, state, &n->shape, l->p->traversals.at[l->traversal].down ? 1 : -1);
}

static sub_ref lower_state(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state;
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &n->shape);
	if (n->state.slot == RA_EACH_MEMBER)
		return pick_members(l, state);
	if (l->row == l->p->node)
		return state;
	return pick_rows(l, state, (struct sub_map){.function = SUB_ROOT, .var = l->row});
}

static sub_ref lower_parent(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state;
	if (sub_is_scanned(l->p, s))
		return lower_step_before(l, n);
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	bool each = n->state.slot == RA_EACH_CHILD;
	struct sub_map row = {.function = each ? SUB_EDGE_PARENT : SUB_PARENT,
			      .var = each ? l->p->edge : l->row};
	return pick_rows(l, state, row);
}

static sub_ref lower_child(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state, slot = n->state.slot;
	if (sub_is_scanned(l->p, s))
		return lower_step_before(l, n);
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	if (slot == RA_EACH_CHILD)
		return pick_rows(l, state, (struct sub_map){.function = SUB_EDGE_CHILD, .var = l->p->edge});
	return pick_rows(l, state, (struct sub_map){.function = SUB_CHILD, .which = slot, .var = l->row});
}

/* --- products and reductions --- */

/* Axes with their variables. */
struct named_axes {
	struct ra_shape shape;
	int var[RA_MAX_RANK];
};

static struct named_axes first_axes(const struct ra_shape *shape, const int *vars, int n)
{
	struct named_axes first = {.shape = *shape};
	first.shape.rank = n;
	memcpy(first.var, vars, (size_t)n * sizeof *vars);
	return first;
}

static void add_axis(struct named_axes *to, const struct ra_dim *extent, int var)
{
	to->var[to->shape.rank] = var;
	to->shape.dim[to->shape.rank++] = *extent;
}

/* Gives the left argument all axes of the product but its columns, so that the order of the axes is known; a
 * vector on the left has only the axis that is summed over. */
static sub_ref lower_matmul(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *a = &ra_at(l->model, n->arg[0])->shape,
			      *b = &ra_at(l->model, n->arg[1])->shape;
	int out[RA_MAX_RANK], rank = sub_lower_shape(l, &n->shape, out), columns = b->rank > 1;
	const struct ra_dim *depth = &a->dim[a->rank - 1];
	int k = find_free_var(l, ra_dim_value(depth, l->sizes), out, rank);
	int batch = b->rank > 2 ? rank - columns - (a->rank > 1) : 0;
	struct named_axes left = first_axes(&n->shape, out, rank - columns),
			  right = first_axes(&n->shape, out, batch);
	add_axis(&left, depth, k);
	add_axis(&right, depth, k);
	if (columns)
		add_axis(&right, &n->shape.dim[rank - 1], out[rank - 1]);
	bool all_axes = a->rank > 1 && !ends_with_axes(a, &left.shape);
	struct sub_value product = {
	    .op = SUB_MULTIPLY,
	    .arg = {repeat_axes(l, sub_expand_argument(l, n, 0), a, &left.shape, left.var, all_axes),
		    repeat_axes(l, sub_expand_argument(l, n, 1), b, &right.shape, right.var, false)}};
	sub_ref r = sub_add(l->p, product, l->diags);
	if (!r.i)
		return r;
	return sub_add(l->p, (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(l->p, r)}, .reduced = sub_one_var(k)},
		       l->diags);
}

static sub_ref lower_reduce(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	int out[RA_MAX_RANK], rank = sub_lower_shape(l, &n->shape, out), under[RA_MAX_RANK];
	int k = find_free_var(l, ra_dim_value(&from->dim[n->axis], l->sizes), out, rank);
	for (int d = 0, o = 0; d < from->rank; d++)
		under[d] = d == n->axis ? k : out[o++];
	struct sub_value v = {.op = sub_op_of_ra[n->op],
			      .arg = {sub_use_under(l, sub_expand_argument(l, n, 0), under, from->rank)},
			      .reduced = sub_one_var(k)};
	return sub_add(l->p, v, l->diags);
}

static sub_ref add_binary(struct lowering *l, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {a, b}}, l->diags);
}

/* Lowers argmax and argmin to the least index at which the element equals the maximum or minimum, or is a NaN
 * (which equals nothing, not even itself). */
static sub_ref lower_argmax(struct lowering *l, const struct ra_node *n)
{
	struct ra_node extreme = *n;
	sub_ref x = sub_expand_argument(l, n, 0);
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	int out[RA_MAX_RANK], rank = sub_lower_shape(l, &n->shape, out), under[RA_MAX_RANK];
	int64_t extent = ra_dim_value(&from->dim[n->axis], l->sizes);
	int k = find_free_var(l, extent, out, rank);
	for (int d = 0, o = 0; d < from->rank; d++)
		under[d] = d == n->axis ? k : out[o++];
	extreme.op = n->op == RA_ARGMIN ? RA_MIN : RA_MAX;
	struct sub_use u = sub_use_under(l, x, under, from->rank),
		       end = sub_use_under(l, lower_reduce(l, &extreme), out, rank);
	sub_ref is_extreme = add_binary(l, SUB_EQUALS, u, end), is_number = add_binary(l, SUB_EQUALS, u, u);
	sub_ref is = add_binary(l, SUB_OR, sub_as_is(l->p, is_extreme),
				sub_as_is(l->p, add_unary(l, SUB_NOT, is_number)));
	sub_ref index = sub_add(l->p, (struct sub_value){.op = SUB_INDEX, .vars = 1, .var = {k}}, l->diags);
	struct sub_value place = {.op = SUB_SELECT, .arg = {sub_as_is(l->p, is), sub_as_is(l->p, index)}};
	place.arg[2] = sub_as_is(l->p, add_constant(l, DTYPE_I32, extent));
	sub_ref places = sub_add(l->p, place, l->diags);
	struct sub_value least = {.op = SUB_MIN, .arg = {sub_as_is(l->p, places)}, .reduced = sub_one_var(k)};
	return sub_add(l->p, least, l->diags);
}

/* Of n elements along the axis, element i is the sum of x[i + k - (n - 1)] for all k below n: zeros before
 * the first element, then those up to its own in order. */
static sub_ref lower_cumsum(struct lowering *l, const struct ra_node *n)
{
	static const double zero = 0;
	int vars[RA_MAX_RANK + 1], rank = sub_lower_shape(l, &n->shape, vars);
	int64_t extent = ra_dim_value(&n->shape.dim[n->axis], l->sizes);
	struct sub_map map[RA_MAX_RANK];
	vars[rank] = find_free_var(l, extent, vars, rank);
	for (int d = 0; d < rank; d++)
		map[d] = sub_affine_map(vars[d], 0);
	map[n->axis].var2 = vars[rank];
	map[n->axis].scale2 = 1;
	map[n->axis].offset = 1 - extent;
	sub_ref before = sub_move_filled(l, sub_expand_argument(l, n, 0), map, vars, rank + 1, &zero);
	struct sub_value sum = {
	    .op = SUB_SUM, .arg = {sub_as_is(l->p, before)}, .reduced = sub_one_var(vars[rank])};
	return before.i ? sub_add(l->p, sum, l->diags) : before;
}

/* The value, repeated for each edge or member, `ragged`, if it does not depend on it. */
static sub_ref repeat_per_edge(struct lowering *l, sub_ref r, int ragged)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {
	    .op = SUB_ASSIGN, .arg = {u}, .vars = 2, .var = {l->row, ragged}, .map = map};
	for (int i = 0; i < u.vars; i++) {
		if (u.var[i] == ragged)
			return r;
		map[i] = sub_affine_map(u.var[i], 0);
		if (sub_is_dim(l->p, u.var[i]))
			v.var[v.vars++] = u.var[i];
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_over_edges(struct lowering *l, const struct ra_node *n)
{
	int ragged = n->members ? l->p->member : l->p->edge;
	sub_ref r = repeat_per_edge(l, sub_value_of_argument(l, n, 0), ragged);
	struct sub_value v = {.op = sub_op_of_ra[n->op], .arg = {sub_as_is(l->p, r)}, .reduced = sub_one_var(ragged)};
	return sub_add(l->p, v, l->diags);
}

/* --- movement --- */

static sub_ref lower_concat(struct lowering *l, const struct ra_node *n)
{
	int out[RA_MAX_RANK], rank = sub_lower_shape(l, &n->shape, out);
	struct sub_value v = {.op = SUB_COND};
	for (int a = 0; a < 2; a++) {
		const struct ra_shape *shape = &ra_at(l->model, n->arg[a])->shape;
		int under[RA_MAX_RANK];
		memcpy(under, out, sizeof under);
		under[n->axis] = find_free_var(l, ra_dim_value(&shape->dim[n->axis], l->sizes), out, rank);
		v.arg[a] = sub_use_under(l, sub_expand_argument(l, n, a), under, rank);
		sub_add_leading_vars(l, &v, &v.arg[a]);
	}
	v.axis = v.vars + n->axis;
	sub_add_dims(&v, out, rank);
	return sub_add(l->p, v, l->diags);
}

/* --- results --- */

/* The value, repeated for each row if it does not depend on the row. */
static sub_ref repeat_per_row(struct lowering *l, sub_ref r)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .vars = 1, .var = {l->row}, .map = map};
	if (u.vars && !sub_is_dim(l->p, u.var[0]))
		return r;
	for (int i = 0; i < u.vars; i++)
		map[i] = sub_affine_map(u.var[i], 0);
	sub_add_dims(&v, u.var, u.vars);
	return sub_add(l->p, v, l->diags);
}

struct sub_use sub_lower_result(struct lowering *l, sub_ref r, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, shape, vars);
	return sub_use_under(l, repeat_per_row(l, expand_value(l, r, shape)), vars, rank);
}

/* --- the table --- */

static lower_op *const lowerings[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) [RA_##name] = lower_##lowering,
#include "ra/ra_ops.def"
};

sub_ref sub_lower_node(struct lowering *l, const struct ra_node *n)
{
	return lowerings[n->op](l, n);
}
