/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Nodes with their shapes.  Every constructor takes references that may be 0 (the fault was reported) and
 * then gives 0. */
#include "ra/syntax.h"

static const ra_ref none = {0};

static const struct {
	const char *spelling;
	int arity;
} ops[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) [RA_##name] = {spelling, arity},
#include "ra/ra_ops.def"
};

bool ra_is_each(enum ra_op op)
{
	return op == RA_CHILD_SUM || op == RA_CHILD_MAX || op == RA_PARENT_SUM || op == RA_PARENT_MAX;
}

int ra_op_arity(enum ra_op op)
{
	return ops[op].arity;
}

const char *ra_op_spelling(enum ra_op op)
{
	return ops[op].spelling;
}

static const struct ra_shape *shape_of(const struct ra_graph *g, ra_ref r)
{
	return &ra_at(g->model, r)->shape;
}

static const char *shape_text(struct ra_graph *g, ra_ref r)
{
	return ra_shape_text(g->arena, g->model, shape_of(g, r));
}

static const char *dim_text(struct ra_graph *g, const struct ra_dim *d)
{
	return ra_dim_text_of(g->arena, g->model, d);
}

/* Finds the index variables that a node depends on, besides those that it is given.  Only numbers may. */
static bool find_free_indices(struct ra_graph *g, struct ra_node *n)
{
	bool binds = ra_introduces_indices(n);
	for (int i = 0; i < ops[n->op].arity && !binds; i++)
		n->free |= ra_at(g->model, n->arg[i])->free;
	return !n->free || !n->shape.rank ||
	       ra_refuse(g, DIAG_MODEL_RANK, n->at, "write elements, x[i], and sum(... for i)",
			 "index notation computes numbers, and this is %s",
			 ra_shape_text(g->arena, g->model, &n->shape));
}

/* Node 0 stays unused: reference 0 means none. */
static ra_ref add_node(struct ra_graph *g, struct ra_node n)
{
	if (g->stopped || !ra_find_type(g, &n) || !find_free_indices(g, &n))
		return none;
	if (g->model->nodes.n >= RA_NODE_LIMIT) {
		g->stopped = true;
		ra_refuse(g, DIAG_MODEL_LARGE, n.at,
			  "functions are expanded at every call: look for calls in calls in calls",
			  "the model has more than %d operators", RA_NODE_LIMIT);
		return none;
	}
	if (!g->model->nodes.n)
		vec_push(g->arena, &g->model->nodes, (struct ra_node){0});
	n.at = ra_place_of(g, n.at);
	vec_push(g->arena, &g->model->nodes, n);
	return (ra_ref){(uint32_t)g->model->nodes.n - 1};
}

/* --- operators without arguments: one node for all that are the same in a region, and in one sum over
 * children --- */

enum { KEY = 10 + (RA_MAX_RANK + 1) * (2 + 2 * RA_DIM_TERMS) };

static int put_dim(int64_t *key, int n, const struct ra_dim *d)
{
	key[n++] = d->constant;
	key[n++] = d->terms;
	for (int i = 0; i < d->terms; i++) {
		key[n++] = d->term[i].symbol;
		key[n++] = d->term[i].coefficient;
	}
	return n;
}

/* Collects as numbers all fields in which two such nodes may differ. */
static int leaf_key(const struct ra_graph *g, const struct ra_node *node, int64_t *key)
{
	int n = 0;
	key[n++] = g->region;
	key[n++] = g->region == RA_IN_OUTPUTS ? 0 : g->traversal;
	key[n++] = g->body;
	key[n++] = node->op;
	key[n++] = node->dtype;
	key[n++] = node->shape.rank;
	for (int i = 0; i < node->shape.rank; i++)
		n = put_dim(key, n, &node->shape.dim[i]);
	if (node->op == RA_CONST) {
		memcpy(&key[n++], &node->constant, sizeof node->constant);
	} else if (node->op == RA_EXTENT) {
		n = put_dim(key, n, &node->begin);
	} else if (node->op == RA_CHILD || node->op == RA_PARENT || node->op == RA_STATE) {
		key[n++] = node->state.state;
		key[n++] = node->state.slot;
		key[n++] = node->state.slot == RA_EACH_CHILD ? g->each : 0;
	} else if (node->op == RA_INPUT) {
		key[n++] = node->input;
		key[n++] = node->slot;
		key[n++] = node->slot == RA_EACH_CHILD ? g->each : 0;
	} else if (node->op == RA_PARAM) {
		key[n++] = node->param;
	}
	return n;
}

ra_ref ra_build_leaf(struct ra_graph *g, struct ra_node n)
{
	int64_t key[KEY];
	ra_find_leaf_type(g, &n);
	size_t bytes = (size_t)leaf_key(g, &n, key) * sizeof *key;
	int old = map_get(&g->leaves, (char *)key, bytes);
	if (old >= 0)
		return (ra_ref){(uint32_t)old};
	ra_ref r = add_node(g, n);
	if (r.i)
		map_add(&g->leaves, (char *)key, bytes, (int)r.i);
	return r;
}

ra_ref ra_build_constant(struct ra_graph *g, double value, struct ra_span span)
{
	return ra_build_leaf(g, (struct ra_node){.op = RA_CONST, .at = span.at, .constant = value});
}

ra_ref ra_build_extent(struct ra_graph *g, const struct ra_dim *d, struct ra_span span)
{
	if (!d->terms)
		return ra_build_constant(g, (double)d->constant, span);
	return ra_build_leaf(g, (struct ra_node){.op = RA_EXTENT, .at = span.at, .begin = *d});
}

ra_ref ra_build_zero(struct ra_graph *g, const struct ra_shape *shape, enum dtype dtype, struct ra_span span)
{
	return ra_build_leaf(g, (struct ra_node){.op = RA_ZERO, .dtype = dtype, .shape = *shape, .at = span.at});
}

ra_ref ra_build_at_step(struct ra_graph *g, ra_ref a, struct ra_span span)
{
	if (!a.i)
		return none;
	struct ra_node n = {.op = RA_AT_STEP, .arg = {a}, .shape = *shape_of(g, a), .at = span.at};
	const struct ra_dim *steps = &g->model->traversals.at[g->traversal].steps;
	if (!ra_in_scan(g))
		return ra_refuse(g, DIAG_MODEL_PLACE, span.at, "a scan is begun by: traversal up over N",
				 "'%s': there are steps in the bodies of a scan only",
				 ra_excerpt(g->arena, span)),
		       none;
	if (!n.shape.rank || !ra_dim_equal(&n.shape.dim[0], steps))
		return ra_refuse(g, DIAG_MODEL_SHAPE, span.at,
				 "its first axis is as long as the scan has steps",
				 "'%s': %s has no row for each of %s steps", ra_excerpt(g->arena, span),
				 shape_text(g, a), dim_text(g, steps)),
		       none;
	memmove(n.shape.dim, n.shape.dim + 1, (size_t)--n.shape.rank * sizeof *n.shape.dim);
	return add_node(g, n);
}

/* --- elementwise --- */

ra_ref ra_build_map(struct ra_graph *g, enum ra_op op, ra_ref a, struct ra_span span)
{
	if (!a.i)
		return none;
	return add_node(g, (struct ra_node){.op = op, .arg = {a}, .shape = *shape_of(g, a), .at = span.at});
}

static ra_ref refuse_shapes(struct ra_graph *g, enum ra_op op, ra_ref a, ra_ref b, const struct ra_dim *left,
			    const struct ra_dim *right, struct ra_span span)
{
	bool infix = strchr("+-*/@<>=!", ops[op].spelling[0]);
	ra_refuse(g, DIAG_MODEL_SHAPE, span.at, "dimensions are equal when they are written equal",
		  "'%s': %s %s %s: %s and %s differ", ra_excerpt(g->arena, span), shape_text(g, a),
		  infix ? ops[op].spelling : "and", shape_text(g, b), dim_text(g, left), dim_text(g, right));
	return none;
}

ra_ref ra_build_elementwise(struct ra_graph *g, enum ra_op op, ra_ref a, ra_ref b, struct ra_span span)
{
	struct ra_node n = {.op = op, .arg = {a, b}, .at = span.at};
	struct ra_dim differ[2];
	if (!a.i || !b.i)
		return none;
	if (!ra_shape_broadcast(shape_of(g, a), shape_of(g, b), &n.shape, differ))
		return refuse_shapes(g, op, a, b, &differ[0], &differ[1], span);
	return add_node(g, n);
}

ra_ref ra_build_cast(struct ra_graph *g, ra_ref a, enum dtype dtype, struct ra_span span)
{
	if (!a.i || ra_at(g->model, a)->dtype == dtype)
		return a;
	return add_node(
	    g, (struct ra_node){
		   .op = RA_CAST, .arg = {a}, .dtype = dtype, .shape = *shape_of(g, a), .at = span.at});
}

ra_ref ra_build_where(struct ra_graph *g, const ra_ref arg[3], struct ra_span span)
{
	struct ra_node n = {.op = RA_WHERE, .arg = {arg[0], arg[1], arg[2]}, .at = span.at};
	struct ra_dim differ[2];
	if (!arg[0].i || !arg[1].i || !arg[2].i)
		return none;
	n.shape = *shape_of(g, arg[0]);
	for (int i = 1; i < 3; i++) {
		struct ra_shape so_far = n.shape;
		if (!ra_shape_broadcast(&so_far, shape_of(g, arg[i]), &n.shape, differ))
			return refuse_shapes(g, RA_WHERE, arg[0], arg[i], &differ[0], &differ[1], span);
	}
	return add_node(g, n);
}

/* Drops leading axes of extent 1 down to a rank, as NumPy's assignment does. */
static ra_ref drop_leading_ones(struct ra_graph *g, ra_ref value, int rank, struct ra_span span)
{
	while (value.i && shape_of(g, value)->rank > rank && ra_dim_is_one(&shape_of(g, value)->dim[0]))
		value = ra_build_row(g, value, 0, span);
	return value;
}

ra_ref ra_build_as_state(struct ra_graph *g, ra_ref value, int state, struct ra_span span)
{
	const struct ra_state *s = &g->model->states.at[state];
	struct ra_shape both;
	struct ra_dim differ[2];
	if (value.i)
		value = ra_build_typed_number(g, value, s->dtype, span.at);
	if (value.i && ra_at(g->model, value)->dtype != s->dtype)
		return ra_refuse(g, DIAG_MODEL_TYPE, span.at,
				 str_format(g->arena, "write cast(..., %s)", dtype_traits_of(s->dtype)->spelling),
				 "the state '%s' is %s, its value '%s' is %s", s->name,
				 dtype_traits_of(s->dtype)->spelling, ra_excerpt(g->arena, span),
				 dtype_traits_of(ra_at(g->model, value)->dtype)->spelling),
		       none;
	if (!value.i || ra_shape_equal(shape_of(g, value), &s->shape))
		return value;
	value = drop_leading_ones(g, value, s->shape.rank, span);
	if (!value.i || ra_shape_equal(shape_of(g, value), &s->shape))
		return value;
	if (!ra_shape_broadcast(shape_of(g, value), &s->shape, &both, differ) || !ra_shape_equal(&both, &s->shape))
		return ra_refuse(g, DIAG_MODEL_SHAPE, span.at,
				 "dimensions are equal when they are written equal",
				 "the state '%s' is %s, its value '%s' is %s", s->name,
				 ra_shape_text(g->arena, g->model, &s->shape), ra_excerpt(g->arena, span),
				 shape_text(g, value)),
		       none;
	return ra_build_elementwise(g, s->dtype == DTYPE_BOOL ? RA_OR : RA_ADD, value,
				    ra_build_zero(g, &s->shape, s->dtype, span), span);
}

/* --- index notation --- */

ra_ref ra_build_indexed(struct ra_graph *g, struct ra_node n)
{
	return n.arg[0].i ? add_node(g, n) : none;
}

/* --- along axes --- */

static ra_ref refuse_rank(struct ra_graph *g, enum ra_op op, ra_ref a, struct ra_span span,
			  const char *wanted)
{
	ra_refuse(g, DIAG_MODEL_RANK, span.at, NULL, "'%s': '%s' takes %s, not %s",
		  ra_excerpt(g->arena, span), ops[op].spelling, wanted, shape_text(g, a));
	return none;
}

/* All axes of a product but its last: the leading axes of both sides, broadcast as NumPy does, and the rows
 * of the left side. */
static bool batch_of(const struct ra_shape *x, const struct ra_shape *y, struct ra_shape *out, struct ra_dim differ[2])
{
	struct ra_shape left = *x, right = *y;
	bool rows = x->rank > 1;
	left.rank -= 1 + rows;
	right.rank -= 2;
	if (!ra_shape_broadcast(&left, &right, out, differ))
		return false;
	if (rows)
		out->dim[out->rank++] = x->dim[x->rank - 2];
	return true;
}

ra_ref ra_build_matmul(struct ra_graph *g, ra_ref a, ra_ref b, struct ra_span span)
{
	if (!a.i || !b.i)
		return none;
	const struct ra_shape *x = shape_of(g, a), *y = shape_of(g, b);
	if (!x->rank)
		return refuse_rank(g, RA_MATMUL, a, span, "a vector, a matrix or matrices on its left");
	if (!y->rank)
		return refuse_rank(g, RA_MATMUL, b, span, "a vector, a matrix or matrices on its right");
	const struct ra_dim *left = &x->dim[x->rank - 1], *right = &y->dim[y->rank > 1 ? y->rank - 2 : 0];
	if (!ra_dim_equal(left, right))
		return refuse_shapes(g, RA_MATMUL, a, b, left, right, span);
	struct ra_node n = {.op = RA_MATMUL, .arg = {a, b}, .shape = *x, .at = span.at};
	struct ra_dim differ[2];
	n.shape.rank--;
	if (y->rank > 2 && !batch_of(x, y, &n.shape, differ))
		return refuse_shapes(g, RA_MATMUL, a, b, &differ[0], &differ[1], span);
	if (y->rank > 1)
		n.shape.dim[n.shape.rank++] = y->dim[y->rank - 1];
	return add_node(g, n);
}

int ra_find_axis(struct ra_graph *g, ra_ref a, int number, struct ra_span span)
{
	int rank = shape_of(g, a)->rank, axis = number < 0 ? number + rank : number;
	if (axis >= 0 && axis < rank)
		return axis;
	ra_refuse(g, DIAG_MODEL_RANK, span.at, "axes are counted from 0, or from the end: -1 is the last",
		  "'%s': %s has no axis %d", ra_excerpt(g->arena, span), shape_text(g, a), number);
	return -1;
}

/* A node along an axis, of its argument's shape. */
static bool make_along(struct ra_graph *g, enum ra_op op, ra_ref a, int number, struct ra_span span,
		       const char *takes, struct ra_node *n)
{
	if (!a.i)
		return false;
	if (!shape_of(g, a)->rank)
		return refuse_rank(g, op, a, span, takes).i;
	int axis = ra_find_axis(g, a, number, span);
	*n = (struct ra_node){.op = op, .arg = {a}, .shape = *shape_of(g, a), .at = span.at, .axis = axis};
	return axis >= 0;
}

ra_ref ra_build_scan(struct ra_graph *g, enum ra_op op, ra_ref a, int number, struct ra_span span)
{
	struct ra_node n;
	return make_along(g, op, a, number, span, "a vector or a matrix", &n) ? add_node(g, n) : none;
}

ra_ref ra_build_reduce(struct ra_graph *g, enum ra_op op, ra_ref a, int number, struct ra_span span)
{
	struct ra_node n;
	if (!make_along(g, op, a, number, span,
			"a vector or a matrix, or ranges over children ('for k in children')", &n))
		return none;
	int axis = n.axis;
	n.shape.rank--;
	memmove(&n.shape.dim[axis], &n.shape.dim[axis + 1], (size_t)(n.shape.rank - axis) * sizeof *n.shape.dim);
	return add_node(g, n);
}

/* Refuses slices that are wrong whatever the sizes; ra_bind checks the others. */
ra_ref ra_build_slice(struct ra_graph *g, ra_ref a, int axis, const struct ra_dim *begin, const struct ra_dim *end,
		      struct ra_span span)
{
	if (!a.i)
		return none;
	struct ra_node n = {
	    .op = RA_SLICE, .arg = {a}, .shape = *shape_of(g, a), .at = span.at, .axis = axis, .begin = *begin};
	struct ra_dim rest, *extent = &n.shape.dim[axis];
	const char *whole = dim_text(g, extent);
	if (!ra_dim_add(extent, -1, end, &rest) || !ra_dim_add(end, -1, begin, extent))
		return ra_refuse(g, DIAG_MODEL_DIMENSION, span.at,
				 "at most 4 names, and factors up to 1048576",
				 "the extents of '%s' are too complex", ra_excerpt(g->arena, span)),
		       none;
	if (ra_dim_below(g->model, begin, 0) || ra_dim_below(g->model, &rest, 0) || ra_dim_below(g->model, extent, 1))
		return ra_refuse(g, DIAG_MODEL_SLICE, span.at,
				 "x[a:b] holds what lies from a up to, not including, b",
				 "'%s': %s to %s is not a part of an axis of extent %s",
				 ra_excerpt(g->arena, span), dim_text(g, begin), dim_text(g, end), whole),
		       none;
	return add_node(g, n);
}

ra_ref ra_build_row(struct ra_graph *g, ra_ref a, int64_t number, struct ra_span span)
{
	if (!a.i)
		return none;
	const struct ra_shape *x = shape_of(g, a);
	if (!x->rank)
		return ra_refuse(g, DIAG_MODEL_RANK, span.at, NULL, "'%s': a number has no axis to take a row of",
				 ra_excerpt(g->arena, span)),
		       none;
	struct ra_node n = {.op = RA_ROW, .arg = {a}, .at = span.at, .begin = ra_dim_constant(number)};
	if (number < 0 || ra_dim_below(g->model, &x->dim[0], number + 1))
		return ra_refuse(g, DIAG_MODEL_SLICE, span.at, "rows are numbered from 0",
				 "'%s': row %lld of a first axis of extent %s", ra_excerpt(g->arena, span),
				 (long long)number, dim_text(g, &x->dim[0])),
		       none;
	n.shape.rank = x->rank - 1;
	memcpy(n.shape.dim, x->dim + 1, (size_t)n.shape.rank * sizeof *x->dim);
	return add_node(g, n);
}

ra_ref ra_build_concat(struct ra_graph *g, ra_ref a, ra_ref b, int number, struct ra_span span)
{
	if (!a.i || !b.i)
		return none;
	const struct ra_shape *x = shape_of(g, a), *y = shape_of(g, b);
	if (!x->rank || x->rank != y->rank)
		return refuse_rank(g, RA_CONCAT, x->rank ? b : a, span,
				   "values of as many axes each, at least one");
	int axis = ra_find_axis(g, a, number, span);
	if (axis < 0)
		return none;
	for (int i = 0; i < x->rank; i++)
		if (i != axis && !ra_dim_equal(&x->dim[i], &y->dim[i]))
			return refuse_shapes(g, RA_CONCAT, a, b, &x->dim[i], &y->dim[i], span);
	struct ra_node n = {.op = RA_CONCAT, .arg = {a, b}, .shape = *x, .at = span.at, .axis = axis};
	if (!ra_dim_add(&x->dim[axis], 1, &y->dim[axis], &n.shape.dim[axis]))
		return ra_refuse(g, DIAG_MODEL_DIMENSION, span.at,
				 "at most 4 names, and factors up to 1048576",
				 "the extent of '%s' is too complex", ra_excerpt(g->arena, span)),
		       none;
	return add_node(g, n);
}

ra_ref ra_build_transpose(struct ra_graph *g, ra_ref a, struct ra_span span)
{
	if (!a.i)
		return none;
	int rank = shape_of(g, a)->rank;
	if (rank < 2)
		return refuse_rank(g, RA_TRANSPOSE, a, span, "a matrix");
	int order[RA_MAX_RANK] = {0};
	for (int d = 0; d < rank; d++)
		order[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
	return ra_build_reorder(g, a, order, span);
}

ra_ref ra_build_reorder(struct ra_graph *g, ra_ref a, const int *order, struct ra_span span)
{
	if (!a.i)
		return none;
	const struct ra_shape *x = shape_of(g, a);
	struct ra_node n = {.op = RA_TRANSPOSE, .arg = {a}, .shape = *x, .at = span.at};
	for (int d = 0; d < x->rank; d++) {
		n.order[d] = (int8_t)order[d];
		n.shape.dim[d] = x->dim[order[d]];
	}
	return add_node(g, n);
}

ra_ref ra_build_moved_axis(struct ra_graph *g, ra_ref a, int from, int to, struct ra_span span)
{
	int order[RA_MAX_RANK] = {0};
	if (!a.i || from == to)
		return a;
	for (int d = 0, axis = 0; d < shape_of(g, a)->rank; d++) {
		axis += axis == from;
		order[d] = d == to ? from : axis++;
	}
	return ra_build_reorder(g, a, order, span);
}

/* The number of elements of a shape as a product: a number, and factors without a common divisor. */
struct product {
	double number;
	int n;
	struct ra_dim factor[RA_MAX_RANK];
};

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a < 0 ? -a : a;
}

static struct product elements_of(const struct ra_shape *s)
{
	struct product p = {.number = 1};
	for (int i = 0; i < s->rank; i++) {
		struct ra_dim d = s->dim[i];
		int64_t by = d.constant;
		for (int t = 0; t < d.terms; t++)
			by = common_divisor(by, d.term[t].coefficient);
		p.number *= (double)by;
		if (!by)
			continue;
		d.constant /= by;
		for (int t = 0; t < d.terms; t++)
			d.term[t].coefficient = (int32_t)(d.term[t].coefficient / by);
		if (d.terms)
			p.factor[p.n++] = d;
	}
	return p;
}

/* Whether two shapes have as many elements; true where only sizes can tell. */
static bool may_be_reshaped(const struct ra_shape *a, const struct ra_shape *b)
{
	struct product x = elements_of(a), y = elements_of(b);
	for (int i = x.n; i-- > 0;)
		for (int j = y.n; j-- > 0;)
			if (ra_dim_equal(&x.factor[i], &y.factor[j])) {
				x.factor[i] = x.factor[--x.n];
				y.factor[j] = y.factor[--y.n];
				break;
			}
	return x.n || y.n || x.number == y.number;
}

ra_ref ra_build_reshape(struct ra_graph *g, ra_ref a, const struct ra_shape *shape, struct ra_span span)
{
	if (!a.i || ra_shape_equal(shape_of(g, a), shape))
		return a;
	if (!may_be_reshaped(shape_of(g, a), shape))
		return ra_refuse(g, DIAG_MODEL_SHAPE, span.at,
				 "a value keeps its elements: their number is the product of the extents",
				 "'%s': %s and %s have different numbers of elements",
				 ra_excerpt(g->arena, span), shape_text(g, a),
				 ra_shape_text(g->arena, g->model, shape)),
		       none;
	return add_node(g, (struct ra_node){.op = RA_RESHAPE, .arg = {a}, .shape = *shape, .at = span.at});
}

/* Repeats r along the last axis of x; where x is a vector, r is a number, which every operator repeats
 * itself. Broadcasting aligns last axes, so the axis that r lacks is first moved to the front. */
ra_ref ra_build_spread(struct ra_graph *g, ra_ref r, ra_ref x, struct ra_span span)
{
	if (!r.i || !x.i)
		return none;
	struct ra_shape to = *shape_of(g, x), rows = to;
	if (!to.rank)
		return ra_refuse(g, DIAG_MODEL_RANK, span.at, NULL, "'%s' takes a vector or a matrix, not %s",
				 ra_excerpt(g->arena, span), shape_text(g, x)),
		       none;
	rows.rank--;
	if (!ra_shape_equal(shape_of(g, r), &rows))
		return ra_refuse(g, DIAG_MODEL_RANK, span.at, NULL,
				 "'%s' takes one number for each row of %s, not %s",
				 ra_excerpt(g->arena, span), shape_text(g, x), shape_text(g, r)),
		       none;
	if (to.rank == 1)
		return r;
	struct ra_shape turned = {.rank = to.rank, .dim = {to.dim[to.rank - 1]}};
	memcpy(turned.dim + 1, to.dim, (size_t)rows.rank * sizeof *to.dim);
	ra_ref repeated = ra_build_elementwise(g, RA_ADD, r, ra_build_zero(g, &turned, ra_at(g->model, r)->dtype, span), span);
	return ra_build_moved_axis(g, repeated, 0, to.rank - 1, span);
}

ra_ref ra_build_lookup(struct ra_graph *g, ra_ref param, int input, int slot, struct ra_span span)
{
	if (!param.i)
		return none;
	const struct ra_shape *x = shape_of(g, param);
	struct ra_node n = {.op = RA_LOOKUP, .arg = {param}, .at = span.at};
	n.input = input;
	n.slot = slot;
	n.shape.rank = x->rank - 1;
	memcpy(n.shape.dim, x->dim + 1, (size_t)n.shape.rank * sizeof *x->dim);
	return add_node(g, n);
}

ra_ref ra_build_each(struct ra_graph *g, enum ra_op op, ra_ref a, bool members, struct ra_span span)
{
	ra_ref r = ra_build_map(g, op, a, span);
	if (r.i)
		g->model->nodes.at[r.i].members = members;
	return r;
}
