/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What operators of a graph mean, but for index notation and sources: each fills `to`, which has the elements of the node's
 * shape. */
#ifndef ESPALIER_TESTS_MODELS_REFERENCE_OPERATORS_H
#define ESPALIER_TESTS_MODELS_REFERENCE_OPERATORS_H

#include "tests/models/reference_numbers.h"

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
		to[i] = apply_to_numbers(n, x->dtype, a[element_of(r, n, x, i)], b[element_of(r, n, y, i)]);
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

#endif
