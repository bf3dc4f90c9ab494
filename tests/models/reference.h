/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a model means, straight from its graph, f32 in binary64 and integers as they are: shares nothing with
 * the compiler but the parser.  All are held in doubles, of which an integer has the bytes. */
#ifndef ESPALIER_TESTS_MODELS_REFERENCE_H
#define ESPALIER_TESTS_MODELS_REFERENCE_H

#include "tests/models/helper.h"

struct reference {
	const struct test_model *t;
	const struct test_forest *f;
	struct arena *arena;
	double **value;	 /* by node of the graph */
	unsigned *stamp; /* the epoch in which a value was computed */
	unsigned epoch, epochs;
	double **state;	    /* by state: a row for each node of the forest */
	int32_t node, each; /* the node at hand; the edge, parent or node that a sum is at */
	int64_t *index; /* the values of index variables */
	int64_t step;	/* of a scan: along the axis of its steps */
};

static inline int64_t dim_of(const struct reference *r, const struct ra_node *n, int d)
{
	return ra_dim_value(&n->shape.dim[d], r->t->sizes);
}

static inline int64_t count_of(const struct reference *r, const struct ra_shape *s)
{
	int64_t n = 1;
	for (int d = 0; d < s->rank; d++)
		n *= ra_dim_value(&s->dim[d], r->t->sizes);
	return n;
}

static inline const double *refer(struct reference *, ra_ref);

/* --- operators: each fills `to`, which has the elements of the node's shape --- */

static inline double refer_float(enum ra_op op, double a, double b)
{
	switch (op) {
	case RA_NEG:
		return -a;
	case RA_ADD:
		return a + b;
	case RA_SUB:
		return a - b;
	case RA_MUL:
		return a * b;
	case RA_DIV:
		return a / b;
	case RA_MAXIMUM:
		return a > b ? a : b;
	case RA_MINIMUM:
		return a < b ? a : b;
	case RA_ROUND:
		return nearbyint(a);
	case RA_FLOOR:
		return floor(a);
	case RA_SIN:
		return sin(a);
	case RA_COS:
		return cos(a);
	case RA_ABS:
		return fabs(a);
	case RA_EXP:
		return exp(a);
	case RA_LOG:
		return log(a);
	case RA_LOG1P:
		return log1p(a);
	case RA_SQRT:
		return sqrt(a);
	case RA_SIGMOID:
		return 1 / (1 + exp(-a));
	case RA_TANH:
		return tanh(a);
	case RA_ERF:
		return erf(a);
	case RA_ATAN:
		return atan(a);
	default:
		return NAN;
	}
}

/* In 64 bits, of which i32 keeps the lower half. */
static inline int64_t refer_integer(enum ra_op op, int64_t a, int64_t b)
{
	switch (op) {
	case RA_NEG:
		return -(uint64_t)a;
	case RA_ADD:
		return (uint64_t)a + (uint64_t)b;
	case RA_SUB:
		return (uint64_t)a - (uint64_t)b;
	case RA_MUL:
		return (uint64_t)a * (uint64_t)b;
	case RA_QUOTIENT:
		return b == 0 ? 0 : b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
	case RA_MAXIMUM:
		return a > b ? a : b;
	case RA_MINIMUM:
		return a < b ? a : b;
	case RA_ABS:
		return a < 0 ? -(uint64_t)a : (uint64_t)a;
	case RA_AND:
		return a && b;
	case RA_OR:
		return a || b;
	default: /* RA_NOT */
		return !a;
	}
}

/* The order of two numbers, and whether they have any. */
static inline bool compare_numbers(enum ra_op op, int order, bool ordered)
{
	switch (op) {
	case RA_LESS:
		return ordered && order < 0;
	case RA_LESS_EQUAL:
		return ordered && order <= 0;
	case RA_EQUAL:
		return ordered && order == 0;
	case RA_UNEQUAL:
		return !ordered || order != 0;
	case RA_GREATER:
		return ordered && order > 0;
	default: /* RA_GREATER_EQUAL */
		return ordered && order >= 0;
	}
}

static inline double wrap_integer(enum dtype dtype, int64_t i)
{
	return sub_element_of(dtype == DTYPE_I32 ? (int32_t)(uint32_t)i : i);
}

static inline double refer_cast(enum dtype from, enum dtype to, double x)
{
	int64_t least = to == DTYPE_I32 ? INT32_MIN : INT64_MIN,
		most = to == DTYPE_I32 ? INT32_MAX : INT64_MAX;
	int64_t i = sub_integer(x);
	if (to == DTYPE_BOOL)
		return sub_element_of(from == DTYPE_F32 ? x != 0 : i != 0);
	if (from != DTYPE_F32)
		return to == DTYPE_F32 ? (float)i : sub_element_of(i < least ? least : i > most ? most : i);
	if (to == DTYPE_F32)
		return x;
	if (isnan(x))
		return sub_element_of(0);
	return sub_element_of(x <= (double)least ? least : x >= (double)most ? most : (int64_t)x);
}

static inline bool is_comparison(enum ra_op op)
{
	return op == RA_LESS || op == RA_LESS_EQUAL || op == RA_EQUAL || op == RA_UNEQUAL ||
	       op == RA_GREATER || op == RA_GREATER_EQUAL;
}

/* Of arguments of type `from`. */
static inline double apply(const struct ra_node *n, enum dtype from, double a, double b)
{
	int64_t i = sub_integer(a), j = sub_integer(b);
	if (n->op == RA_CAST)
		return refer_cast(from, n->dtype, a);
	if (is_comparison(n->op))
		return sub_element_of(from == DTYPE_F32
					  ? compare_numbers(n->op, (a > b) - (a < b), !isnan(a) && !isnan(b))
					  : compare_numbers(n->op, (i > j) - (i < j), true));
	return from == DTYPE_F32 ? refer_float(n->op, a, b) : wrap_integer(from, refer_integer(n->op, i, j));
}

/* The element of an argument that element i of a node's value is computed of: axes that it lacks are leading
 * ones, and one of extent 1 has one element. */
static inline int64_t element_of(const struct reference *r, const struct ra_node *n,
				 const struct ra_node *arg, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int d = n->shape.rank - 1, a = arg->shape.rank - 1; a >= 0; d--, a--) {
		int64_t extent = dim_of(r, arg, a);
		at += extent == 1 ? 0 : i % dim_of(r, n, d) * stride;
		i /= dim_of(r, n, d);
		stride *= extent;
	}
	return at;
}

static inline void refer_elementwise(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_model *m = r->t->model;
	const struct ra_node *x = ra_at(m, n->arg[0]), *y = n->arg[1].i ? ra_at(m, n->arg[1]) : x;
	const double *a = refer(r, n->arg[0]), *b = n->arg[1].i ? refer(r, n->arg[1]) : a;
	for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++)
		to[i] = apply(n, x->dtype, a[element_of(r, n, x, i)], b[element_of(r, n, y, i)]);
}

static inline void refer_choice(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_model *m = r->t->model;
	const struct ra_node *arg[3];
	const double *from[3];
	for (int a = 0; a < 3; a++) {
		arg[a] = ra_at(m, n->arg[a]);
		from[a] = refer(r, n->arg[a]);
	}
	for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++) {
		int chosen = sub_integer(from[0][element_of(r, n, arg[0], i)]) ? 1 : 2;
		to[i] = from[chosen][element_of(r, n, arg[chosen], i)];
	}
}

/* Of the matrices of an operand of a product, the one that a matrix of the product is computed of. */
static inline int64_t matrix_of(const struct reference *r, const struct ra_node *n, const struct ra_node *arg,
				int64_t matrix)
{
	const struct ra_model *m = r->t->model;
	int operand = (ra_at(m, n->arg[0])->shape.rank > 1) + (ra_at(m, n->arg[1])->shape.rank > 1);
	int64_t at = 0, stride = 1;
	for (int d = n->shape.rank - operand - 1, a = arg->shape.rank - 3; a >= 0; d--, a--) {
		int64_t extent = dim_of(r, arg, a);
		at += extent == 1 ? 0 : matrix % dim_of(r, n, d) * stride;
		matrix /= dim_of(r, n, d);
		stride *= extent;
	}
	return at;
}

static inline double refer_fma(enum dtype dtype, double sum, double a, double b)
{
	if (dtype == DTYPE_F32)
		return sum + a * b;
	int64_t product = refer_integer(RA_MUL, sub_integer(a), sub_integer(b));
	return wrap_integer(dtype, refer_integer(RA_ADD, sub_integer(sum), product));
}

static inline void refer_product(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *x = ra_at(r->t->model, n->arg[0]), *y = ra_at(r->t->model, n->arg[1]);
	int64_t depth = dim_of(r, x, x->shape.rank - 1), rows = x->shape.rank > 1 ? dim_of(r, x, x->shape.rank - 2) : 1;
	int64_t columns = y->shape.rank > 1 ? dim_of(r, y, y->shape.rank - 1) : 1;
	const double *a = refer(r, n->arg[0]), *b = refer(r, n->arg[1]);
	for (int64_t e = 0, all = count_of(r, &n->shape); e < all; e++) {
		int64_t i = e / columns % rows, j = e % columns, matrix = e / columns / rows;
		int64_t at = matrix_of(r, n, x, matrix) * rows + i, under = matrix_of(r, n, y, matrix) * depth;
		to[e] = 0;
		for (int64_t k = 0; k < depth; k++)
			to[e] = refer_fma(n->dtype, to[e], a[at * depth + k], b[(under + k) * columns + j]);
	}
}

static inline void add_up(const struct ra_node *n, double *to, double x, bool first)
{
	static const enum ra_op combine[] = {
	    [RA_SUM] = RA_ADD,		[RA_SUM_OVER] = RA_ADD,	      [RA_CHILD_SUM] = RA_ADD,
	    [RA_PARENT_SUM] = RA_ADD,	[RA_CUMSUM] = RA_ADD,	      [RA_MAX] = RA_MAXIMUM,
	    [RA_MAX_OVER] = RA_MAXIMUM, [RA_CHILD_MAX] = RA_MAXIMUM,  [RA_MIN] = RA_MINIMUM,
	    [RA_MIN_OVER] = RA_MINIMUM, [RA_PARENT_MAX] = RA_MAXIMUM, [RA_PROD] = RA_MUL,
	    [RA_PROD_OVER] = RA_MUL};
	enum ra_op op = combine[n->op];
	if (first)
		*to = x;
	else if (n->dtype == DTYPE_F32)
		*to = refer_float(op, x, *to);
	else
		*to = wrap_integer(n->dtype, refer_integer(op, sub_integer(x), sub_integer(*to)));
}

static inline void refer_reduction(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	const double *a = refer(r, n->arg[0]);
	int64_t extent = dim_of(r, from, n->axis), inner = 1, all = count_of(r, &n->shape);
	for (int d = n->axis + 1; d < from->shape.rank; d++)
		inner *= dim_of(r, from, d);
	for (int64_t i = 0; i < all; i++)
		for (int64_t k = 0; k < extent; k++)
			add_up(n, &to[i], a[(i / inner * extent + k) * inner + i % inner], k == 0);
}

static inline void refer_cumsum(struct reference *r, const struct ra_node *n, double *to)
{
	const double *a = refer(r, n->arg[0]);
	int64_t extent = dim_of(r, n, n->axis), inner = 1, all = count_of(r, &n->shape);
	for (int d = n->axis + 1; d < n->shape.rank; d++)
		inner *= dim_of(r, n, d);
	for (int64_t i = 0; i < all; i++)
		for (int64_t k = 0, last = i / inner % extent; k <= last; k++)
			add_up(n, &to[i], a[i - (last - k) * inner], k == 0);
}

static inline bool is_smaller(enum dtype dtype, double a, double b)
{
	return dtype == DTYPE_F32 ? a < b || (isnan(a) && !isnan(b)) : sub_integer(a) < sub_integer(b);
}

static inline bool is_larger(enum dtype dtype, double a, double b)
{
	return dtype == DTYPE_F32 ? a > b || (isnan(a) && !isnan(b)) : sub_integer(a) > sub_integer(b);
}

static inline void refer_argmax(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	const double *a = refer(r, n->arg[0]);
	int64_t extent = dim_of(r, from, n->axis), inner = 1, all = count_of(r, &n->shape);
	for (int d = n->axis + 1; d < from->shape.rank; d++)
		inner *= dim_of(r, from, d);
	for (int64_t i = 0; i < all; i++) {
		const double *along = &a[i / inner * extent * inner + i % inner];
		int64_t best = 0;
		for (int64_t k = 1; k < extent; k++)
			best = (n->op == RA_ARGMIN ? is_smaller : is_larger)(from->dtype, along[k * inner],
									     along[best * inner])
				   ? k
				   : best;
		to[i] = sub_element_of(best);
	}
}

static inline int64_t input_of(const struct lin_forest *f, int32_t node)
{
	int64_t i = f->inputs - 1;
	while (f->input_begin[i] > node)
		i--;
	return i;
}

static inline void refer_children(struct reference *r, const struct ra_node *n, double *to)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	unsigned epoch = r->epoch;
	int32_t each = r->each, first = f->child_begin[r->node], end = f->child_begin[r->node + 1];
	if (n->members) {
		int64_t input = input_of(f, r->node);
		first = f->input_begin[input];
		end = input + 1 < f->inputs ? f->input_begin[input + 1] : f->nodes;
	}
	for (int32_t e = first; e < end; e++) {
		r->each = e;
		r->epoch = ++r->epochs;
		const double *a = refer(r, n->arg[0]);
		for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++)
			add_up(n, &to[i], a[i], e == first);
	}
	r->epoch = epoch;
	r->each = each;
}

/* By parents in the order of their ids, and by their edges. */
static inline void refer_parents(struct reference *r, const struct ra_node *n, double *to)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	unsigned epoch = r->epoch;
	bool first = true;
	for (r->each = 0; r->each < f->nodes; r->each++)
		for (int32_t e = f->child_begin[r->each]; e < f->child_begin[r->each + 1]; e++) {
			if (f->children[e] != r->node)
				continue;
			r->epoch = ++r->epochs;
			const double *a = refer(r, n->arg[0]);
			for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++)
				add_up(n, &to[i], a[i], first);
			first = false;
		}
	r->epoch = epoch;
}

/* The one that has the node as a child; -1 = there is none. */
static inline int32_t parent_of(const struct lin_forest *f, int32_t node)
{
	for (int32_t p = 0; p < f->nodes; p++)
		for (int32_t e = f->child_begin[p]; e < f->child_begin[p + 1]; e++)
			if (f->children[e] == node)
				return p;
	return -1;
}

static inline void refer_slice(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	int64_t inner = 1;
	for (int d = n->axis + 1; d < n->shape.rank; d++)
		inner *= dim_of(r, n, d);
	int64_t part = dim_of(r, n, n->axis) * inner, whole = dim_of(r, from, n->axis) * inner;
	int64_t begin = ra_dim_value(&n->begin, r->t->sizes) * inner;
	const double *a = refer(r, n->arg[0]);
	for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++)
		to[i] = a[i / part * whole + begin + i % part];
}

static inline void refer_row(struct reference *r, const struct ra_node *n, double *to)
{
	int64_t all = count_of(r, &n->shape);
	memcpy(to, refer(r, n->arg[0]) + n->begin.constant * all, (size_t)all * sizeof *to);
}

static inline void refer_at_step(struct reference *r, const struct ra_node *n, double *to)
{
	int64_t all = count_of(r, &n->shape);
	memcpy(to, refer(r, n->arg[0]) + r->step * all, (size_t)all * sizeof *to);
}

static inline void refer_concat(struct reference *r, const struct ra_node *n, double *to)
{
	int64_t inner = 1, whole, at = 0;
	for (int d = n->axis; d < n->shape.rank; d++)
		inner *= dim_of(r, n, d);
	whole = inner;
	for (int a = 0; a < 2; a++) {
		const double *from = refer(r, n->arg[a]);
		int64_t all = count_of(r, &ra_at(r->t->model, n->arg[a])->shape),
			part = all / (count_of(r, &n->shape) / whole);
		for (int64_t i = 0; i < all; i++)
			to[i / part * whole + at + i % part] = from[i];
		at += part;
	}
}

static inline void refer_transpose(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	const double *a = refer(r, n->arg[0]);
	int64_t stride[RA_MAX_RANK], step = 1;
	for (int d = n->shape.rank; d-- > 0; step *= dim_of(r, from, d))
		stride[d] = step;
	for (int64_t i = 0, all = count_of(r, &n->shape); i < all; i++) {
		int64_t at = 0, rest = i;
		for (int d = n->shape.rank; d-- > 0; rest /= dim_of(r, n, d))
			at += rest % dim_of(r, n, d) * stride[n->order[d]];
		to[i] = a[at];
	}
}

/* --- index notation --- */

static inline int64_t extent_of_index(const struct reference *r, int index)
{
	return ra_dim_value(&r->t->model->indices.at[index].extent, r->t->sizes);
}

/* Steps indices to their next values, the last one the fastest; false after the last. */
static inline bool next_indices(struct reference *r, const struct ra_indices *all)
{
	for (int i = all->n; i-- > 0;) {
		if (++r->index[all->index[i]] < extent_of_index(r, all->index[i]))
			return true;
		r->index[all->index[i]] = 0;
	}
	return false;
}

static inline void refer_element(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	const double *a = refer(r, n->arg[0]);
	int64_t at = 0;
	bool outside = false;
	for (int d = 0; d < from->shape.rank; d++) {
		const struct ra_index_form *f = &n->element->at[d];
		int64_t i = ra_dim_value(&f->offset, r->t->sizes), extent = dim_of(r, from, d);
		for (int t = 0; t < f->terms; t++)
			i += f->term[t].scale * r->index[f->term[t].index];
		if (ra_is_gathered(n, d)) /* without a fill the nearest element */
			i = sub_integer(*refer(r, n->arg[1]));
		if (ra_is_gathered(n, d) && !n->element->written && !n->element->reduced)
			i = i < 0 ? 0 : i < extent ? i : extent - 1;
		outside |= i < 0 || i >= extent;
		at = at * extent + i;
	}
	double fill = n->element->fill;
	*to = !outside ? a[at] : n->dtype == DTYPE_F32 ? (float)fill : refer_cast(DTYPE_F32, n->dtype, fill);
}

static inline void add_up(const struct ra_node *, double *to, double x, bool first);

static inline void refer_over(struct reference *r, const struct ra_node *n, double *to)
{
	bool first = true;
	for (int i = 0; i < n->indices->n; i++)
		r->index[n->indices->index[i]] = 0;
	do {
		add_up(n, to, *refer(r, n->arg[0]), first);
		first = false;
	} while (next_indices(r, n->indices));
}

static inline void refer_nest(struct reference *r, const struct ra_node *n, double *to)
{
	for (int i = 0; i < n->indices->n; i++)
		r->index[n->indices->index[i]] = 0;
	do
		*to++ = *refer(r, n->arg[0]);
	while (next_indices(r, n->indices));
}

static inline int64_t edge_of(const struct reference *r, int slot)
{
	return slot == RA_EACH_CHILD ? r->each : r->f->minibatch.forest.child_begin[r->node] + slot;
}

/* The row of what is carried: that of the node, or of an edge of it, or of the node that a sum is at. */
static inline int64_t data_row(const struct reference *r, const struct ra_node *n)
{
	if (r->t->model->inputs.at[n->input].edge)
		return edge_of(r, n->slot);
	return n->slot == RA_EACH_MEMBER ? r->each : r->node;
}

/* An element that memory has in a type, widened. */
static inline double widened(enum dtype dtype, const void *from, int64_t i)
{
	switch (dtype) {
	case DTYPE_F16:
		return f32_of_f16(((const c_F16 *)from)[i]);
	case DTYPE_BF16:
		return f32_of_bf16(((const c_BF16 *)from)[i]);
	case DTYPE_I8:
		return sub_element_of(((const c_I8 *)from)[i]);
	case DTYPE_U8:
		return sub_element_of(((const c_U8 *)from)[i]);
	case DTYPE_I16:
		return sub_element_of(((const c_I16 *)from)[i]);
	default:
		return read_result(dtype, from, i);
	}
}

static inline double weight_of(const struct reference *r, int param, int64_t i)
{
	int64_t element = 0;
	enum dtype dtype = r->t->model->params.at[param].dtype;
	put_element(dtype, param, i, &element, 0);
	return widened(dtype, &element, 0);
}

static inline void refer_source(struct reference *r, const struct ra_node *n, double *to)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	int64_t all = count_of(r, &n->shape);
	for (int64_t i = 0; i < all; i++)
		switch (n->op) {
		case RA_CONST:
			to[i] = refer_cast(DTYPE_F32, n->dtype, n->constant);
			break;
		case RA_EXTENT:
			to[i] = refer_cast(DTYPE_F32, n->dtype, (double)ra_dim_value(&n->begin, r->t->sizes));
			break;
		case RA_PARAM:
			to[i] = weight_of(r, n->param, i);
			break;
		case RA_INPUT:
			to[i] = widened(r->t->model->inputs.at[n->input].dtype, r->f->data[n->input],
					data_row(r, n) * all + i);
			break;
		case RA_LOOKUP:
			to[i] =
			    refer(r, n->arg[0])[((const int32_t *)r->f->data[n->input])[data_row(r, n)] * all + i];
			break;
		case RA_STATE:
			to[i] = r->state[n->state.state]
					[(n->state.slot == RA_EACH_MEMBER ? r->each : r->node) * all + i];
			break;
		case RA_CHILD:
			to[i] = r->state[n->state.state][f->children[edge_of(r, n->state.slot)] * all + i];
			break;
		case RA_PARENT: {
			int32_t parent = n->state.slot == RA_EACH_CHILD ? r->each : parent_of(f, r->node);
			to[i] = r->state[n->state.state][parent * all + i];
			break;
		}
		default:
			to[i] = 0;
		}
}

/* A state of a scan at the step before: rows have all of its steps. */
static inline void refer_step_before(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_shape outer = ra_outer_shape(r->t->model, n->state.state);
	int64_t all = count_of(r, &n->shape), row = r->node * count_of(r, &outer);
	int64_t before = r->step + (n->op == RA_PARENT ? 1 : -1);
	memcpy(to, r->state[n->state.state] + row + before * all, (size_t)all * sizeof *to);
}

static inline void refer_anew(struct reference *r, const struct ra_node *n, double *to)
{
	switch (n->op) {
	case RA_MATMUL:
		refer_product(r, n, to);
		break;
	case RA_SUM:
	case RA_MAX:
	case RA_MIN:
	case RA_PROD:
		refer_reduction(r, n, to);
		break;
	case RA_CUMSUM:
		refer_cumsum(r, n, to);
		break;
	case RA_ARGMAX:
	case RA_ARGMIN:
		refer_argmax(r, n, to);
		break;
	case RA_WHERE:
		refer_choice(r, n, to);
		break;
	case RA_CHILD_SUM:
	case RA_CHILD_MAX:
		refer_children(r, n, to);
		break;
	case RA_PARENT_SUM:
	case RA_PARENT_MAX:
		refer_parents(r, n, to);
		break;
	case RA_ELEMENT:
	case RA_GATHER:
		refer_element(r, n, to);
		break;
	case RA_SUM_OVER:
	case RA_MAX_OVER:
	case RA_MIN_OVER:
	case RA_PROD_OVER:
		refer_over(r, n, to);
		break;
	case RA_NEST:
		refer_nest(r, n, to);
		break;
	case RA_SLICE:
		refer_slice(r, n, to);
		break;
	case RA_ROW:
		refer_row(r, n, to);
		break;
	case RA_AT_STEP:
		refer_at_step(r, n, to);
		break;
	case RA_CONCAT:
		refer_concat(r, n, to);
		break;
	case RA_TRANSPOSE:
		refer_transpose(r, n, to);
		break;
	case RA_RESHAPE:
		memcpy(to, refer(r, n->arg[0]), (size_t)count_of(r, &n->shape) * sizeof *to);
		break;
	case RA_CONST:
	case RA_ZERO:
	case RA_EXTENT:
	case RA_PARAM:
	case RA_INPUT:
	case RA_LOOKUP:
	case RA_STATE:
		refer_source(r, n, to);
		break;
	case RA_CHILD:
	case RA_PARENT:
		(r->t->model->structure.kind == RA_NONE ? refer_step_before : refer_source)(r, n, to);
		break;
	default:
		refer_elementwise(r, n, to);
	}
}

/* The elements of a value at the node at hand. */
static inline const double *refer(struct reference *r, ra_ref ref)
{
	const struct ra_node *n = ra_at(r->t->model, ref);
	if (!r->value[ref.i])
		r->value[ref.i] = ARENA_ARRAY(r->arena, double, count_of(r, &n->shape));
	if (r->stamp[ref.i] == r->epoch && !n->free)
		return r->value[ref.i];
	refer_anew(r, n, r->value[ref.i]);
	r->stamp[ref.i] = r->epoch;
	return r->value[ref.i];
}

/* --- a whole run --- */

/* That of the first case that fits, or of its base. */
static inline int body_up(const struct reference *r, int traversal, int64_t node, int children)
{
	const struct ra_model *m = r->t->model;
	int base = children ? RA_INNER : RA_LEAF;
	for (size_t i = 0; i < m->cases.n; i++) {
		const struct ra_named_case *c = &m->cases.at[i];
		bool fits = (int)c->base == base && (c->children < 0 || c->children == children);
		for (size_t t = 0; t < c->tokens.n; t++)
			fits &= ((const int32_t *)r->f->data[c->tokens.at[t].input])[node] == c->tokens.at[t].value;
		if (fits)
			return ra_has_own_body(m, traversal, RA_CASES + i) ? (int)(RA_CASES + i) : base;
	}
	return base;
}

static inline int body_of_node(const struct reference *r, int traversal, int32_t node)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	if (r->t->model->structure.kind == RA_NONE)
		return RA_LEAF;
	if (r->t->model->traversals.at[traversal].down)
		return parent_of(f, node) < 0 ? RA_ROOT : RA_BELOW;
	return body_up(r, traversal, node, f->child_begin[node + 1] - f->child_begin[node]);
}

/* A value in the elements of a shape that may have more axes. */
static inline void copy_value(struct reference *r, ra_ref value, int64_t elements, double *to)
{
	int64_t n = count_of(r, &ra_at(r->t->model, value)->shape);
	const double *from = refer(r, value);
	for (int64_t i = 0; i < elements; i++)
		to[i] = from[i % n];
}

static inline void refer_states(struct reference *r, int traversal, int32_t node)
{
	const struct ra_model *m = r->t->model;
	r->node = node;
	r->epoch = ++r->epochs;
	int body = body_of_node(r, traversal, node);
	for (size_t s = 0; s < m->states.n; s++) {
		int64_t n = count_of(r, &m->states.at[s].shape);
		if (m->states.at[s].traversal == traversal)
			copy_value(r, m->states.at[s].value[body], n, r->state[s] + node * n);
	}
}

/* The steps of a scan in one row. */
static inline void refer_scan(struct reference *r, int traversal, int32_t node)
{
	const struct ra_model *m = r->t->model;
	const struct ra_traversal *t = &m->traversals.at[traversal];
	int64_t steps = ra_dim_value(&t->steps, r->t->sizes);
	for (int64_t i = 0; i < steps; i++) {
		r->node = node;
		r->step = t->down ? steps - 1 - i : i;
		r->epoch = ++r->epochs;
		for (size_t s = 0; s < m->states.n; s++) {
			int64_t n = count_of(r, &m->states.at[s].shape);
			if (m->states.at[s].traversal == traversal)
				copy_value(r, m->states.at[s].value[i ? RA_INNER : RA_LEAF], n,
					   r->state[s] + (node * steps + r->step) * n);
		}
	}
}

/* Children have smaller ids than their parents. */
static inline void refer_traversal(struct reference *r, int traversal)
{
	if (ra_is_scan(&r->t->model->traversals.at[traversal])) {
		for (int32_t n = 0; n < r->f->nodes; n++)
			refer_scan(r, traversal, n);
		return;
	}
	bool down = r->t->model->traversals.at[traversal].down;
	for (int32_t n = 0; n < r->f->nodes; n++)
		refer_states(r, traversal, down ? r->f->nodes - 1 - n : n);
}

/* All outputs in the order of gather_outputs, `count` of them; NULL when there are not that many. */
static inline double *refer_outputs(struct arena *a, const struct test_model *t, const struct test_forest *f,
				    int64_t count)
{
	const struct ra_model *m = t->model;
	struct reference r = {.t = t, .f = f, .arena = a};
	double *all = ARENA_ARRAY(a, double, count + 1);
	int64_t at = 0;
	r.value = ARENA_ARRAY(a, double *, m->nodes.n);
	r.stamp = ARENA_ARRAY(a, unsigned, m->nodes.n);
	r.index = ARENA_ARRAY(a, int64_t, m->indices.n + 1);
	r.state = ARENA_ARRAY(a, double *, m->states.n);
	for (size_t s = 0; s < m->states.n; s++) {
		const struct ra_shape outer = ra_outer_shape(m, (int)s);
		r.state[s] = ARENA_ARRAY(a, double, f->nodes *count_of(&r, &outer));
	}
	for (size_t i = 0; i < m->traversals.n; i++)
		refer_traversal(&r, (int)i);
	for (size_t o = 0; o < m->outputs.n; o++) {
		bool at_root = m->outputs.at[o].at_root;
		int64_t n = count_of(&r, &ra_at(m, m->outputs.at[o].value)->shape);
		int64_t rows = at_root ? f->minibatch.forest.inputs : f->nodes;
		for (int64_t row = 0; row < rows && at + n <= count; row++, at += n) {
			r.node = at_root ? f->minibatch.forest.root[row] : row;
			r.epoch = ++r.epochs;
			copy_value(&r, m->outputs.at[o].value, n, all + at);
		}
	}
	return at == count ? all : NULL;
}

#endif
