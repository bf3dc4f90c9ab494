/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From operators to sub-operators.  Every row of ra/ra_ops.def names a function of this file; the node
 * becomes an index variable: n for bodies that run over nodes, t for read-outs that run over inputs. */
#include "subop/subop.h"

struct lowering {
	struct sub_program *p;
	const struct ra_model *model;
	const int64_t *sizes;
	struct diags *diags;
	int lead;	 /* the variable that stands for the node: p->node or p->input */
	sub_ref *values; /* by node of the model graph, in the body at hand */
};

typedef sub_ref lower_op(struct lowering *, const struct ra_node *);

/* --- shapes and uses --- */

/* The canonical variables of a shape: the d-th dimension has the variable of its extent that no earlier one
 * has. */
static int shape_vars(struct lowering *l, const struct ra_shape *shape, int *vars)
{
	int64_t extent[RA_MAX_RANK];
	for (int d = 0; d < shape->rank; d++) {
		int ordinal = 0;
		extent[d] = ra_dim_value(&shape->dim[d], l->sizes);
		for (int i = 0; i < d; i++)
			ordinal += extent[i] == extent[d];
		vars[d] = sub_dim(l->p, extent[d], ordinal);
	}
	return shape->rank;
}

/* A dimension variable of this extent that is none of `taken`. */
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

static bool is_dim(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM;
}

/* How many dimensions a value has besides its lead variables: one for each axis, or for all but leading ones
 * of extent 1; where there is an axis, for one at least. */
static int dims_of(const struct lowering *l, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	int dims = 0;
	for (int i = 0; i < v->vars; i++)
		dims += is_dim(l->p, v->var[i]);
	return dims;
}

/* The value with its dimensions named `vars`, aligned at the last; lead variables keep their names. */
static struct sub_use use_under(const struct lowering *l, sub_ref r, const int *vars, int n)
{
	struct sub_use u = sub_as_is(l->p, r);
	int at = n - dims_of(l, r);
	for (int i = 0; i < u.vars; i++)
		if (is_dim(l->p, u.var[i]))
			u.var[i] = vars[at++];
	return u;
}

static sub_ref value_of_argument(const struct lowering *l, const struct ra_node *n, int i)
{
	return l->values[n->arg[i].i];
}

static struct sub_map affine_map(int var, int64_t offset)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1, .offset = offset};
}

/* One index, whatever the variables are. */
static struct sub_map fixed_map(int64_t index)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = -1, .offset = index};
}

/* Appends lead variables of a use that are not there yet. */
static void add_leading_vars(const struct lowering *l, struct sub_value *v, const struct sub_use *u)
{
	for (int i = 0; i < u->vars && !is_dim(l->p, u->var[i]); i++) {
		int j = 0;
		while (j < v->vars && v->var[j] != u->var[i])
			j++;
		if (j == v->vars)
			v->var[v->vars++] = u->var[i];
	}
}

static void add_dims(struct sub_value *v, const int *vars, int n)
{
	for (int i = 0; i < n; i++)
		v->var[v->vars++] = vars[i];
}

/* A copy with dimensions `vars`; dimension d of what is copied is reached by `map[d]`. */
static sub_ref move_value(struct lowering *l, sub_ref from, const struct sub_map *map, const int *vars, int rank)
{
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, from)}, .map = maps};
	add_leading_vars(l, &v, &v.arg[0]);
	for (int i = 0; i < v.arg[0].vars; i++)
		maps[i] = i < v.vars ? affine_map(v.var[i], 0) : map[i - v.vars];
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

/* The value with a dimension for each axis. */
static sub_ref expand_value(struct lowering *l, sub_ref r, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, shape, vars), dims = dims_of(l, r);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < dims; d++)
		map[d] = affine_map(vars[rank - dims + d], 0);
	return dims == rank ? r : move_value(l, r, map, vars, rank);
}

static sub_ref expand_argument(struct lowering *l, const struct ra_node *n, int i)
{
	return expand_value(l, value_of_argument(l, n, i), &ra_at(l->model, n->arg[i])->shape);
}

/* --- elementwise --- */

/* The sub-operator that ra/ra_ops.def names. */
static const enum sub_op sub_of[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, way, sub) [RA_##name] = SUB_##sub,
#include "ra/ra_ops.def"
};

static sub_ref lower_cast(struct lowering *l, const struct ra_node *n)
{
	struct sub_value v = {.op = SUB_CAST, .dtype = n->dtype, .arg = {sub_as_is(l->p, value_of_argument(l, n, 0))}};
	return sub_add(l->p, v, l->diags);
}

static sub_ref add_unary(struct lowering *l, enum sub_op op, sub_ref r)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {sub_as_is(l->p, r)}}, l->diags);
}

static sub_ref lower_unary(struct lowering *l, const struct ra_node *n)
{
	return add_unary(l, sub_of[n->op], value_of_argument(l, n, 0));
}

/* An argument of an elementwise operator whose shape `to` has the variables `vars`.  An axis of extent 1 that
 * it repeats, or that `to` lacks, is dropped; `whole`: it is copied along all axes. */
static struct sub_use repeat_axes(struct lowering *l, sub_ref value, const struct ra_shape *from,
				  const struct ra_shape *to, const int *vars, bool whole)
{
	struct sub_map map[RA_MAX_RANK];
	int kept[RA_MAX_RANK], n = 0, lacks = to->rank - from->rank;
	for (int d = 0; d < from->rank; d++) {
		bool same = d + lacks >= 0 && ra_dim_equal(&from->dim[d], &to->dim[d + lacks]);
		map[d] = same ? affine_map(vars[d + lacks], 0) : fixed_map(0);
		if (same)
			kept[n++] = vars[d + lacks];
	}
	if (whole)
		return sub_as_is(l->p, move_value(l, value, map, vars, to->rank));
	return n == from->rank ? use_under(l, value, vars, to->rank)
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

static struct ra_shape last_axes(const struct ra_shape *shape, int n)
{
	struct ra_shape last = {.rank = n};
	memcpy(last.dim, shape->dim + shape->rank - n, (size_t)n * sizeof *last.dim);
	return last;
}

/* The axes that the value of an elementwise operator has variables for: all but leading ones of extent 1 that
 * an argument lacks which is no number.  These would stand between the rules and what they look for. */
static struct ra_shape axes_of(const struct ra_shape *shape, int a, int b)
{
	int least = !a || (b && b < a) ? b : a, rank = shape->rank;
	while (least && rank > least && ra_dim_is_one(&shape->dim[shape->rank - rank]))
		rank--;
	return last_axes(shape, rank);
}

/* One of two arguments has all variables, so that their order is known. */
static sub_ref add_elementwise(struct lowering *l, enum sub_op op, const struct ra_shape *shape, sub_ref first,
			   const struct ra_shape *first_shape, sub_ref second,
			   const struct ra_shape *second_shape)
{
	int vars[RA_MAX_RANK];
	struct ra_shape a = last_axes(first_shape, dims_of(l, first)),
			b = last_axes(second_shape, dims_of(l, second));
	struct ra_shape to = axes_of(shape, a.rank, b.rank);
	bool whole = !ends_with_axes(&a, &to) && !ends_with_axes(&b, &to);
	shape_vars(l, &to, vars);
	struct sub_value v = {.op = op,
			      .arg = {repeat_axes(l, first, &a, &to, vars, whole),
				      repeat_axes(l, second, &b, &to, vars, false)}};
	return sub_add(l->p, v, l->diags);
}

static const struct ra_shape *argument_shape(const struct lowering *l, const struct ra_node *n, int i)
{
	return &ra_at(l->model, n->arg[i])->shape;
}

static sub_ref lower_binary(struct lowering *l, const struct ra_node *n)
{
	return add_elementwise(l, sub_of[n->op], &n->shape, value_of_argument(l, n, 0), argument_shape(l, n, 0),
			   value_of_argument(l, n, 1), argument_shape(l, n, 1));
}

static sub_ref lower_sub(struct lowering *l, const struct ra_node *n)
{
	return add_elementwise(l, sub_of[n->op], &n->shape, value_of_argument(l, n, 0), argument_shape(l, n, 0),
			   add_unary(l, SUB_NEG, value_of_argument(l, n, 1)), argument_shape(l, n, 1));
}

/* a > b as b < a */
static sub_ref lower_swapped(struct lowering *l, const struct ra_node *n)
{
	return add_elementwise(l, sub_of[n->op], &n->shape, value_of_argument(l, n, 1), argument_shape(l, n, 1),
			   value_of_argument(l, n, 0), argument_shape(l, n, 0));
}

static sub_ref lower_negated(struct lowering *l, const struct ra_node *n)
{
	return add_unary(l, SUB_NOT, lower_binary(l, n));
}

/* An argument copied along the axes that it lacks. */
static struct sub_use repeat_argument(struct lowering *l, const struct ra_node *n, int i, const int *vars)
{
	sub_ref r = value_of_argument(l, n, i);
	struct ra_shape from = last_axes(argument_shape(l, n, i), dims_of(l, r));
	return repeat_axes(l, r, &from, &n->shape, vars, i == 0 && !ends_with_axes(&from, &n->shape));
}

/* The condition has all variables, so that their order is known. */
static sub_ref lower_where(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK];
	struct sub_value v = {.op = SUB_SELECT};
	shape_vars(l, &n->shape, vars);
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

/* A scalar repeated over a shape. */
static sub_ref lower_zero(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, add_constant(l, n->dtype, 0))}};
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

/* With a row for each of a lead variable; edges are those of a node. */
static sub_ref add_source(struct lowering *l, enum sub_op op, int which, int lead, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, shape, vars);
	struct sub_value v = {.op = op, .which = which};
	if (lead == l->p->edge)
		v.var[v.vars++] = l->p->node;
	if (lead >= 0)
		v.var[v.vars++] = lead;
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_param(struct lowering *l, const struct ra_node *n)
{
	return add_source(l, SUB_PARAM, n->param, -1, &l->model->params.at[n->param].shape);
}

/* Of an edge in a slot: the one of all edges of the node. */
static sub_ref select_slot(struct lowering *l, sub_ref vector, int slot)
{
	struct sub_use u = sub_as_is(l->p, vector);
	struct sub_map map[SUB_MAX_VARS] = {affine_map(l->lead, 0)};
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .var = {l->lead}, .vars = 1, .map = map};
	map[1] = (struct sub_map){.function = SUB_SLOT_EDGE, .which = slot, .var = l->lead};
	for (int i = 2; i < u.vars; i++) {
		map[i] = affine_map(u.var[i], 0);
		v.var[v.vars++] = u.var[i];
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_input(struct lowering *l, const struct ra_node *n)
{
	const struct ra_input *in = &l->model->inputs.at[n->input];
	sub_ref vector = add_source(l, SUB_VECTOR, n->input, in->edge ? l->p->edge : l->p->node, &in->shape);
	return in->edge && n->slot != RA_EACH_CHILD ? select_slot(l, vector, n->slot) : vector;
}

/* What a sum ranges over here: the edges of a node, the nodes of an input. */
static int ragged_var(const struct lowering *l)
{
	return l->lead == l->p->input ? l->p->member : l->p->edge;
}

/* Rows of `from` picked by `row`; the result runs over the variables that `row` names and the row's own. */
static sub_ref pick_rows(struct lowering *l, sub_ref from, struct sub_map row, bool ragged)
{
	struct sub_use u = sub_as_is(l->p, from);
	struct sub_map map[SUB_MAX_VARS] = {row};
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .map = map};
	v.var[v.vars++] = l->lead;
	if (ragged)
		v.var[v.vars++] = ragged_var(l);
	for (int i = 1; i < u.vars; i++) {
		int ordinal = 0;
		int64_t extent = l->p->vars.at[u.var[i]].extent;
		for (int j = 1; j < i; j++)
			ordinal += l->p->vars.at[u.var[j]].extent == extent;
		int var = sub_dim(l->p, extent, ordinal);
		map[i] = affine_map(var, 0);
		v.var[v.vars++] = var;
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_lookup(struct lowering *l, const struct ra_node *n)
{
	bool edge = l->model->inputs.at[n->input].edge, each = edge && n->slot == RA_EACH_CHILD;
	struct sub_map row = {.function = SUB_TOKEN, .which = n->input, .var = each ? l->p->edge : l->lead};
	row.slot = edge && !each ? n->slot : 0;
	return pick_rows(l, value_of_argument(l, n, 0), row, each);
}

static sub_ref lower_state(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state;
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	if (l->lead == l->p->node)
		return state;
	if (n->state.slot == RA_EACH_MEMBER)
		return pick_rows(l, state, (struct sub_map){.function = SUB_MEMBER_NODE, .var = l->p->member},
				 true);
	return pick_rows(l, state, (struct sub_map){.function = SUB_ROOT, .var = l->lead}, false);
}

static sub_ref lower_parent(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state;
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	bool each = n->state.slot == RA_EACH_CHILD;
	struct sub_map row = {.function = each ? SUB_EDGE_PARENT : SUB_PARENT,
			      .var = each ? l->p->edge : l->lead};
	return pick_rows(l, state, row, each);
}

static sub_ref lower_child(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state, slot = n->state.slot;
	sub_ref state = add_source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	if (slot == RA_EACH_CHILD)
		return pick_rows(l, state, (struct sub_map){.function = SUB_EDGE_CHILD, .var = l->p->edge},
				 true);
	return pick_rows(l, state, (struct sub_map){.function = SUB_CHILD, .which = slot, .var = l->lead},
			 false);
}

/* --- products and reductions --- */

/* Axes and the variables that they have. */
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

/* What is on the left has all axes of the product but its columns, so that the order of all is known; a
 * vector there has none but the one that is summed over. */
static sub_ref lower_matmul(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *a = &ra_at(l->model, n->arg[0])->shape,
			      *b = &ra_at(l->model, n->arg[1])->shape;
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out), columns = b->rank > 1;
	const struct ra_dim *depth = &a->dim[a->rank - 1];
	int k = find_free_var(l, ra_dim_value(depth, l->sizes), out, rank);
	int batch = b->rank > 2 ? rank - columns - (a->rank > 1) : 0;
	struct named_axes left = first_axes(&n->shape, out, rank - columns),
			  right = first_axes(&n->shape, out, batch);
	add_axis(&left, depth, k);
	add_axis(&right, depth, k);
	if (columns)
		add_axis(&right, &n->shape.dim[rank - 1], out[rank - 1]);
	bool whole = a->rank > 1 && !ends_with_axes(a, &left.shape);
	struct sub_value product = {
	    .op = SUB_MULTIPLY,
	    .arg = {repeat_axes(l, expand_argument(l, n, 0), a, &left.shape, left.var, whole),
		    repeat_axes(l, expand_argument(l, n, 1), b, &right.shape, right.var, false)}};
	sub_ref r = sub_add(l->p, product, l->diags);
	if (!r.i)
		return r;
	return sub_add(l->p, (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(l->p, r)}, .reduced = k},
		       l->diags);
}

static sub_ref lower_reduce(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out), under[RA_MAX_RANK];
	int k = find_free_var(l, ra_dim_value(&from->dim[n->axis], l->sizes), out, rank);
	for (int d = 0, o = 0; d < from->rank; d++)
		under[d] = d == n->axis ? k : out[o++];
	struct sub_value v = {.op = sub_of[n->op],
			      .arg = {use_under(l, expand_argument(l, n, 0), under, from->rank)},
			      .reduced = k};
	return sub_add(l->p, v, l->diags);
}

static sub_ref add_binary(struct lowering *l, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {a, b}}, l->diags);
}

/* The least index of what is equal to the largest element, or to nothing: a maximum of which one is no number
 * is none. */
static sub_ref lower_argmax(struct lowering *l, const struct ra_node *n)
{
	struct ra_node largest = *n;
	sub_ref x = expand_argument(l, n, 0);
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out), under[RA_MAX_RANK];
	int64_t extent = ra_dim_value(&from->dim[n->axis], l->sizes);
	int k = find_free_var(l, extent, out, rank);
	for (int d = 0, o = 0; d < from->rank; d++)
		under[d] = d == n->axis ? k : out[o++];
	largest.op = RA_MAX;
	struct sub_use u = use_under(l, x, under, from->rank),
		       most = use_under(l, lower_reduce(l, &largest), out, rank);
	sub_ref is_most = add_binary(l, SUB_EQUALS, u, most), is_number = add_binary(l, SUB_EQUALS, u, u);
	sub_ref is =
	    add_binary(l, SUB_OR, sub_as_is(l->p, is_most), sub_as_is(l->p, add_unary(l, SUB_NOT, is_number)));
	sub_ref index = sub_add(l->p, (struct sub_value){.op = SUB_INDEX, .vars = 1, .var = {k}}, l->diags);
	struct sub_value place = {.op = SUB_SELECT, .arg = {sub_as_is(l->p, is), sub_as_is(l->p, index)}};
	place.arg[2] = sub_as_is(l->p, add_constant(l, DTYPE_I32, extent));
	sub_ref places = sub_add(l->p, place, l->diags);
	struct sub_value least = {.op = SUB_MIN, .arg = {sub_as_is(l->p, places)}, .reduced = k};
	return sub_add(l->p, least, l->diags);
}

/* The value repeated for each edge, when it does not depend on the edge. */
static sub_ref repeat_per_edge(struct lowering *l, sub_ref r)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {
	    .op = SUB_ASSIGN, .arg = {u}, .vars = 2, .var = {l->lead, ragged_var(l)}, .map = map};
	for (int i = 0; i < u.vars; i++) {
		if (u.var[i] == ragged_var(l))
			return r;
		map[i] = affine_map(u.var[i], 0);
		if (is_dim(l->p, u.var[i]))
			v.var[v.vars++] = u.var[i];
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_over_edges(struct lowering *l, const struct ra_node *n)
{
	sub_ref r = repeat_per_edge(l, value_of_argument(l, n, 0));
	struct sub_value v = {.op = sub_of[n->op], .arg = {sub_as_is(l->p, r)}, .reduced = ragged_var(l)};
	return sub_add(l->p, v, l->diags);
}

/* --- movement --- */

static sub_ref lower_slice(struct lowering *l, const struct ra_node *n)
{
	struct ra_shape shape = last_axes(&n->shape, dims_of(l, value_of_argument(l, n, 0)));
	int vars[RA_MAX_RANK], rank = shape_vars(l, &shape, vars), axis = n->axis - (n->shape.rank - rank);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[d] = affine_map(vars[d], d == axis ? ra_dim_value(&n->begin, l->sizes) : 0);
	return move_value(l, value_of_argument(l, n, 0), map, vars, rank);
}

static sub_ref lower_row(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK] = {fixed_map(n->begin.constant)};
	if (dims_of(l, value_of_argument(l, n, 0)) <= rank)
		return value_of_argument(l, n, 0);
	for (int d = 0; d < rank; d++)
		map[d + 1] = affine_map(vars[d], 0);
	return move_value(l, expand_argument(l, n, 0), map, vars, rank);
}

static sub_ref lower_transpose(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[n->order[d]] = affine_map(vars[d], 0);
	return move_value(l, expand_argument(l, n, 0), map, vars, rank);
}

static sub_ref lower_concat(struct lowering *l, const struct ra_node *n)
{
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out);
	struct sub_value v = {.op = SUB_COND};
	for (int a = 0; a < 2; a++) {
		const struct ra_shape *shape = &ra_at(l->model, n->arg[a])->shape;
		int under[RA_MAX_RANK];
		memcpy(under, out, sizeof under);
		under[n->axis] = find_free_var(l, ra_dim_value(&shape->dim[n->axis], l->sizes), out, rank);
		v.arg[a] = use_under(l, expand_argument(l, n, a), under, rank);
		add_leading_vars(l, &v, &v.arg[a]);
	}
	v.axis = v.vars + n->axis;
	add_dims(&v, out, rank);
	return sub_add(l->p, v, l->diags);
}

/* --- the table, bodies --- */

static lower_op *const ways[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, way, sub) [RA_##name] = lower_##way,
#include "ra/ra_ops.def"
};

/* What follows goes down from a result to its sources by recursion, and must not run out of stack. */
enum { MAX_DEPTH = 1000 };

/* The operators on the longest way from a node down to a source; `depth` has those of its arguments. */
static int depth_of(const struct ra_node *n, const int *depth)
{
	int deepest = 0;
	for (int a = 0; a < 3; a++)
		deepest = depth[n->arg[a].i] > deepest ? depth[n->arg[a].i] : deepest;
	return 1 + deepest;
}

static bool refuse_depth(struct lowering *l, const struct ra_node *n)
{
	return diag_add(l->diags, DIAG_MODEL_LARGE, n->at,
			"make a state of what is halfway, or group long sums by parentheses",
			"more than %d operators follow one from another", MAX_DEPTH);
}

/* Lowers what the wanted nodes need, in the order of the graph: arguments come first. */
static bool lower_graph(struct lowering *l, bool *wanted)
{
	const struct ra_model *m = l->model;
	int *depth = ARENA_ARRAY(l->p->arena, int, m->nodes.n);
	for (size_t i = m->nodes.n; i-- > 1;)
		for (int a = 0; wanted[i] && a < 3; a++)
			wanted[m->nodes.at[i].arg[a].i] = true;
	for (size_t i = 1; i < m->nodes.n; i++) {
		if (!wanted[i])
			continue;
		depth[i] = depth_of(&m->nodes.at[i], depth);
		if (depth[i] > MAX_DEPTH)
			return refuse_depth(l, &m->nodes.at[i]);
		l->values[i] = ways[m->nodes.at[i].op](l, &m->nodes.at[i]);
		if (!l->values[i].i)
			return false;
	}
	return true;
}

/* The mask of cases with, or without, a parent. */
static unsigned cases_with(const struct sub_program *p, enum image_answer parent)
{
	unsigned mask = 0;
	for (size_t c = 0; c < p->cases.n; c++)
		mask |= (unsigned)(p->cases.at[c].parent == parent) << c;
	return mask;
}

static void start_body(struct lowering *l, const char *name, enum sub_domain domain, int traversal)
{
	l->lead = domain == SUB_EVERY_INPUT ? l->p->input : l->p->node;
	l->values = ARENA_ARRAY(l->p->arena, sub_ref, l->model->nodes.n);
	struct sub_body b = {
	    .name = sub_find_free_name(l->p, SUB_NAME_BODY, name), .domain = domain, .traversal = traversal};
	if (domain == SUB_TOP || domain == SUB_BELOW)
		b.cases = cases_with(l->p, domain == SUB_BELOW ? IMAGE_YES : IMAGE_NO);
	vec_push(l->p->arena, &l->p->bodies, b);
}

/* The value repeated for every row, when it does not depend on the row. */
static sub_ref repeat_per_row(struct lowering *l, sub_ref r)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .vars = 1, .var = {l->lead}, .map = map};
	if (u.vars && !is_dim(l->p, u.var[0]))
		return r;
	for (int i = 0; i < u.vars; i++)
		map[i] = affine_map(u.var[i], 0);
	add_dims(&v, u.var, u.vars);
	return sub_add(l->p, v, l->diags);
}

static void add_store(struct lowering *l, enum sub_target to, int which, ra_ref value,
		      const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, shape, vars);
	sub_ref whole = expand_value(l, l->values[value.i], shape);
	struct sub_store s = {to, which, use_under(l, repeat_per_row(l, whole), vars, rank)};
	vec_push(l->p->arena, &l->p->bodies.at[l->p->bodies.n - 1].stores, s);
}

/* "leaf" in the first traversal, "leaf2" in the second. */
static const char *body_name(struct lowering *l, const char *name, int traversal)
{
	struct str s = str_in(l->p->arena);
	str_printf(&s, traversal ? "%s%d" : "%s", name, traversal + 1);
	return str_text(&s);
}

/* The cases of a body of a traversal up: its own, and of a base those that have none. */
static unsigned cases_of(const struct lowering *l, int traversal, int which)
{
	const struct ra_model *m = l->model;
	unsigned mask = l->p->named.at[which].cases;
	for (size_t i = 0; i < m->cases.n; i++)
		if ((int)m->cases.at[i].base == which && !ra_has_own_body(m, traversal, RA_CASES + i))
			mask |= l->p->named.at[RA_CASES + i].cases;
	return mask;
}

static bool lower_case(struct lowering *l, int traversal, int which, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	if (which >= RA_CASES && !ra_has_own_body(m, traversal, which))
		return true;
	bool *wanted = ARENA_ARRAY(l->p->arena, bool, m->nodes.n);
	start_body(l, body_name(l, name, traversal), domain, traversal);
	if (m->cases.n && !m->traversals.at[traversal].down)
		l->p->bodies.at[l->p->bodies.n - 1].cases = cases_of(l, traversal, which);
	for (size_t s = 0; s < m->states.n; s++)
		if (m->states.at[s].traversal == traversal)
			wanted[m->states.at[s].value[which].i] = true;
	if (!lower_graph(l, wanted))
		return false;
	for (size_t s = 0; s < m->states.n; s++)
		if (m->states.at[s].traversal == traversal)
			add_store(l, SUB_TO_STATE, s, m->states.at[s].value[which], &m->states.at[s].shape);
	return true;
}

static bool lower_named(struct lowering *l, int traversal, enum ra_case base)
{
	const struct ra_model *m = l->model;
	enum sub_domain domain = base == RA_LEAF ? SUB_LEAF : SUB_INNER;
	bool ok = true;
	for (size_t i = 0; ok && i < m->cases.n; i++)
		if (m->cases.at[i].base == base)
			ok = lower_case(l, traversal, RA_CASES + i, m->cases.at[i].name, domain);
	return ok;
}

static bool lower_traversal(struct lowering *l, int t)
{
	if (l->model->traversals.at[t].down)
		return lower_case(l, t, RA_ROOT, "root", SUB_TOP) &&
		       lower_case(l, t, RA_BELOW, "below", SUB_BELOW);
	return lower_case(l, t, RA_LEAF, "leaf", SUB_LEAF) && lower_named(l, t, RA_LEAF) &&
	       lower_case(l, t, RA_INNER, "inner", SUB_INNER) && lower_named(l, t, RA_INNER);
}

/* The read-out of those outputs that are computed over `domain`; no body when there is none. */
static bool lower_outputs(struct lowering *l, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	bool *wanted = ARENA_ARRAY(l->p->arena, bool, m->nodes.n), any = false,
	     at_root = domain == SUB_EVERY_INPUT;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			any = wanted[m->outputs.at[o].value.i] = true;
	if (!any)
		return true;
	start_body(l, name, domain, m->traversals.n - 1);
	if (!lower_graph(l, wanted))
		return false;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			add_store(l, SUB_TO_OUTPUT, o, m->outputs.at[o].value,
				  &ra_at(m, m->outputs.at[o].value)->shape);
	return true;
}

static struct sub_tensor tensor_of(struct lowering *l, const char *name, enum dtype dtype,
				   const struct ra_shape *shape)
{
	struct sub_tensor t = {.name = name, .dtype = dtype, .rank = shape->rank};
	shape_vars(l, shape, t.var);
	for (int d = 0; d < shape->rank; d++)
		t.shape[d] = ra_dim_value(&shape->dim[d], l->sizes);
	return t;
}

static void declare_state(struct lowering *l, const struct ra_state *s)
{
	struct sub_tensor t = tensor_of(l, s->name, s->dtype, &s->shape);
	t.traversal = s->traversal;
	vec_push(l->p->arena, &l->p->states, t);
}

/* By node of the graph: a sum over the nodes of an input is in it, or what it is at. */
static bool *find_members(struct lowering *l)
{
	const struct ra_model *m = l->model;
	bool *found = ARENA_ARRAY(l->p->arena, bool, m->nodes.n);
	for (size_t i = 1; i < m->nodes.n; i++) {
		const struct ra_node *n = &m->nodes.at[i];
		found[i] = (n->op == RA_CHILD_SUM || n->op == RA_CHILD_MAX) && n->members;
		found[i] |= found[n->arg[0].i] || found[n->arg[1].i] || found[n->arg[2].i];
	}
	return found;
}

/* Whether an input picks rows, or tells cases apart. */
static bool is_looked_up(const struct ra_model *m, size_t input)
{
	for (size_t i = 1; i < m->nodes.n; i++)
		if (m->nodes.at[i].op == RA_LOOKUP && m->nodes.at[i].input == (int)input)
			return true;
	for (size_t c = 0; c < m->cases.n; c++)
		for (size_t t = 0; t < m->cases.at[c].tokens.n; t++)
			if (m->cases.at[c].tokens.at[t].input == (int)input)
				return true;
	return false;
}

/* Outputs of all nodes of an input are computed once for each, at its root. */
static void declare_model(struct lowering *l, int at)
{
	const bool *members = find_members(l);
	const struct ra_model *m = l->model;
	struct sub_program *p = l->p;
	p->children = m->structure.children;
	p->tree = m->structure.kind != RA_DAG;
	for (size_t i = 0; i < m->params.n; i++)
		vec_push(p->arena, &p->params,
			 tensor_of(l, m->params.at[i].name, m->params.at[i].dtype, &m->params.at[i].shape));
	for (size_t i = 0; i < m->states.n; i++)
		declare_state(l, &m->states.at[i]);
	p->traversals.n = 0;
	for (size_t i = 0; i < m->traversals.n; i++)
		vec_push(p->arena, &p->traversals, (struct sub_traversal){m->traversals.at[i].down});
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct ra_input *in = &m->inputs.at[i];
		vec_push(p->arena, &p->inputs,
			 (struct sub_input){.name = in->name,
					    .token = in->token || is_looked_up(m, i),
					    .on_edge = in->edge,
					    .row = tensor_of(l, in->name, in->dtype, &in->shape)});
	}
	for (size_t i = 0; i < m->outputs.n; i++) {
		const struct ra_output *out = &m->outputs.at[i];
		vec_push(p->arena, &p->outputs,
			 (struct sub_output){tensor_of(l, out->name, ra_at(m, out->value)->dtype,
						       &ra_at(m, out->value)->shape),
					     members[out->value.i] || (at ? at == 1 : out->at_root)});
	}
}

static void declare_case(struct lowering *l, struct image_case c, int of)
{
	l->p->named.at[of].cases |= 1u << l->p->cases.n;
	vec_push(l->p->arena, &l->p->cases, c);
}

/* A traversal that goes down tells roots from others. */
static void declare_with_parents(struct lowering *l, struct image_case c, int of)
{
	static const struct {
		enum image_answer parent;
		const char *suffix;
	} parts[] = {{IMAGE_NO, "root"}, {IMAGE_YES, "below"}};
	const char *name = c.name;
	if (!ra_has_down(l->model)) {
		declare_case(l, c, of);
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct str s = str_in(l->p->arena);
		str_printf(&s, "%s.%s", name, parts[i].suffix);
		c.name = str_text(&s);
		c.parent = parts[i].parent;
		declare_case(l, c, of);
	}
}

static void name_cases(struct lowering *l)
{
	static const char *const bases[] = {[RA_LEAF] = "leaf", [RA_INNER] = "inner"};
	const struct ra_model *m = l->model;
	for (int base = RA_LEAF; base < RA_CASES; base++)
		vec_push(l->p->arena, &l->p->named, (struct sub_named_case){.name = bases[base]});
	for (size_t i = 0; i < m->cases.n; i++)
		vec_push(l->p->arena, &l->p->named, (struct sub_named_case){.name = m->cases.at[i].name});
}

/* Those of leaves first, and behind those with a name the rest. */
static void declare_cases(struct lowering *l)
{
	const struct ra_model *m = l->model;
	bool any = m->cases.n || ra_has_down(m);
	name_cases(l);
	for (int base = RA_LEAF; any && base < RA_CASES; base++) {
		struct image_case rest = {.name = l->p->named.at[base].name, .inner = base, .children = -1};
		for (size_t i = 0; i < m->cases.n; i++) {
			const struct ra_named_case *c = &m->cases.at[i];
			struct image_case named = {c->name,	 base,	      c->children,
						   IMAGE_EITHER, c->tokens.n, c->tokens.at};
			if ((int)c->base == base)
				declare_with_parents(l, named, RA_CASES + i);
		}
		declare_with_parents(l, rest, base);
	}
}

bool sub_lower_model(struct sub_program *p, const struct ra_model *m, const int64_t *sizes, enum sub_at at,
	       struct diags *diags)
{
	struct lowering l = {.p = p, .model = m, .sizes = sizes, .diags = diags};
	declare_model(&l, at);
	declare_cases(&l);
	for (size_t t = 0; t < m->traversals.n; t++)
		if (!lower_traversal(&l, t))
			return false;
	return lower_outputs(&l, "output", SUB_EVERY_NODE) &&
	       lower_outputs(&l, "output.root", SUB_EVERY_INPUT);
}
