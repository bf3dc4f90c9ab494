/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of errors of values: how far each element of a value may be from that in f32 if sums of products are
 * computed in integers, from the errors of its arguments.
 *
 *     %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]       own[j] + sum_k abs W[j,k] * error_x[k]
 *     %3[n,j] = tanh %2[n,j]                            error2[j] + that of tanh_4 or tanh_5, but not more than
 *                                                       the length of the range,
 * 2 %4[n,j] = multiply %3[n,j], y[n,j]                error3[j] * size_y[j] + size3[j] * error_y[j]
 *
 * own[j] = (sum_k abs W[j,k]) * bound / (2 LEVELS) + terms * scale[j] / 2 is what the integers add; what bf16 adds is
 * a fraction of sum_k abs W[j,k] * size_x[k].  Leading dimensions are left out, as a bound holds for every node.  Sizes are magnitudes in both programs: of
 * constants their own, of other values what ranges say, or else what follows from the sizes of arguments.
 * What depends on an index that the structure or an input selects is the largest of all. */
#include "rewrite/error_bound.h"

#include <math.h>

/* For roundings to f32 of scales and of factors at their bound. */
static const double slack = 1 + 0x1p-10;

/* --- elements --- */

static bool is_dimension(const struct rewrite_bounding *b, int var)
{
	return b->p->vars.at[var].set == SUB_DIM || b->p->vars.at[var].set == SUB_ROW;
}

int64_t error_elements(const struct rewrite_bounding *b, const struct sub_value *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->vars; i++)
		if (is_dimension(b, v->var[i]))
			n *= b->p->vars.at[v->var[i]].extent;
	return n;
}

int64_t error_state_elements(const struct sub_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* Sets the variables to their first index. */
static void first_index(struct rewrite_bounding *b, int vars, const int *var)
{
	for (int i = 0; i < vars; i++)
		b->env[var[i]] = 0;
}

/* Steps dimensions to the next index, the last one the fastest; false after the last. */
static bool next_index(struct rewrite_bounding *b, int vars, const int *var)
{
	for (int i = vars; i-- > 0;) {
		if (!is_dimension(b, var[i]))
			continue;
		if (++b->env[var[i]] < b->p->vars.at[var[i]].extent)
			return true;
		b->env[var[i]] = 0;
	}
	return false;
}

/* The position of the current element of a use. */
static int64_t find_position(const struct rewrite_bounding *b, const struct sub_use *u)
{
	int64_t at = 0;
	for (int i = 0; i < u->vars; i++)
		if (is_dimension(b, u->var[i]))
			at = at * b->p->vars.at[u->var[i]].extent + b->env[u->var[i]];
	return at;
}

static double multiply_bounds(double a, double b)
{
	return a == 0 || b == 0 ? 0 : a * b;
}

double error_longest(const struct rewrite_bounding *b, const struct rewrite_range *r)
{
	return b->trusted && r->low <= r->high ? r->high - r->low : INFINITY;
}

double error_most(const struct rewrite_bounding *b, const struct rewrite_range *r)
{
	return b->trusted ? fmax(fabs(r->low), fabs(r->high)) : INFINITY;
}

/* --- what sizes and errors have in common --- */

/* An element of an argument: its size or its error. */
typedef double element_of(struct rewrite_bounding *, const struct sub_use *);

static double size_of(struct rewrite_bounding *b, const struct sub_use *u)
{
	return error_find_size(b, u->value.i)[find_position(b, u)];
}

static double error_of(struct rewrite_bounding *b, const struct sub_use *u)
{
	const struct error_tensor *t = &b->error[u->value.i];
	return t->known ? t->element[find_position(b, u)] : 0;
}

/* Whether the structure, or a step, selects the index that a map computes. */
static bool is_selected(const struct rewrite_bounding *b, const struct sub_map *m)
{
	return !sub_is_arithmetic(m) || (m->var >= 0 && !is_dimension(b, m->var)) ||
	       (m->scale2 && !is_dimension(b, m->var2));
}

static int64_t apply_map(const struct rewrite_bounding *b, const struct sub_map *m)
{
	int64_t sum = (m->var < 0 ? 0 : m->scale * b->env[m->var]) +
		      (m->scale2 ? m->scale2 * b->env[m->var2] : 0) + m->offset;
	if (m->function != SUB_DIGIT)
		return sum;
	return m->modulus ? sum / m->divisor % m->modulus : sum / m->divisor;
}

/* The largest element of an assign's argument that the current one may be, from dimension `from` on; `at` is
 * the position in the dimensions before it. */
static double move_element(struct rewrite_bounding *b, const struct sub_value *v, const double *element,
			   int from, int64_t at, double fill)
{
	const struct sub_value *x = &b->p->values.at[v->arg[0].value.i];
	while (from < x->vars && !is_dimension(b, x->var[from]))
		from++;
	if (from == x->vars)
		return element[at];
	int64_t extent = b->p->vars.at[x->var[from]].extent, first = 0, last = extent - 1;
	if (!is_selected(b, &v->map[from]))
		first = last = apply_map(b, &v->map[from]);
	if (first < 0 || last >= extent)
		return fill;
	double most = 0;
	for (int64_t i = first; i <= last; i++)
		most = fmax(most, move_element(b, v, element, from + 1, at * extent + i, fill));
	return most;
}

/* An element of a concatenation; each side has its own variable for the axis. */
static double join_element(struct rewrite_bounding *b, const struct sub_value *v, element_of *of)
{
	int64_t at = b->env[v->var[v->axis]], extent = b->p->vars.at[sub_joined_var(v, 0)].extent;
	int side = at >= extent, var = sub_joined_var(v, side);
	int64_t saved = b->env[var];
	b->env[var] = side ? at - extent : at;
	double x = of(b, &v->arg[side]);
	b->env[var] = saved;
	return x;
}

/* The number of elements that a reduction takes for each index of the dimensions that it reduces. */
static double count_ragged(const struct rewrite_bounding *b, const struct sub_value *v)
{
	if (!sub_reduces_ragged(b->p, v))
		return 1;
	return b->p->vars.at[v->reduced.var[0]].set == SUB_EDGE ? b->edges : INFINITY;
}

static double sum_elements(struct rewrite_bounding *b, const struct sub_value *v, element_of *of)
{
	double sum = 0;
	first_index(b, v->reduced.n, v->reduced.var);
	do
		sum += of(b, &v->arg[0]);
	while (next_index(b, v->reduced.n, v->reduced.var));
	return multiply_bounds(sum, count_ragged(b, v));
}

/* The largest element of the first argument over what a value reduces. */
static double largest_element(struct rewrite_bounding *b, const struct sub_value *v, element_of *of)
{
	double most = 0;
	first_index(b, v->reduced.n, v->reduced.var);
	do
		most = fmax(most, of(b, &v->arg[0]));
	while (next_index(b, v->reduced.n, v->reduced.var));
	return most;
}

/* The sum over what a value reduces of bounds of its products. */
static double sum_products(struct rewrite_bounding *b, const struct sub_value *v,
			   double (*bound)(struct rewrite_bounding *, const struct sub_use *,
					   const struct sub_use *))
{
	double sum = 0;
	first_index(b, v->reduced.n, v->reduced.var);
	do
		sum += bound(b, &v->arg[1], &v->arg[2]);
	while (next_index(b, v->reduced.n, v->reduced.var));
	return multiply_bounds(sum, count_ragged(b, v));
}

/* --- what integers and bf16 add --- */

static double size_of_product(struct rewrite_bounding *b, const struct sub_use *x, const struct sub_use *y)
{
	return multiply_bounds(size_of(b, x), size_of(b, y));
}

/* The magnitudes of weights of a sum, each times the bound of what it is multiplied with. */
struct magnitudes {
	double sum, largest;
};

/* Without a bound of a factor there is none of the sum, not even where all weights of its row are zero. */
static struct magnitudes add_up_weights(struct rewrite_bounding *b, const struct rewrite_integers *s)
{
	struct magnitudes all = {0, 0};
	for (int i = 0; i < s->links; i++) {
		const struct rewrite_integer_link *l = &s->link[i];
		if (isinf(l->bound))
			return (struct magnitudes){INFINITY, INFINITY};
		const double *w = error_find_magnitude(b, l->w.value.i);
		first_index(b, l->sum->reduced.n, l->sum->reduced.var);
		do {
			double one = w[find_position(b, &l->w)] * l->bound;
			all.sum += one;
			all.largest = fmax(all.largest, one);
		} while (next_index(b, l->sum->reduced.n, l->sum->reduced.var));
	}
	return all;
}

const double *error_find_own(struct rewrite_bounding *b, uint32_t value)
{
	const struct sub_value *v = &b->p->values.at[value];
	const struct rewrite_integers *s = &b->integers[value];
	int64_t n = error_elements(b, v);
	double *error = b->integer_error[value];
	if (error)
		return error;
	b->integer_error[value] = error = ARENA_ARRAY(b->arena, double, n);
	first_index(b, v->vars, v->var);
	for (int64_t i = 0; i < n; i++, next_index(b, v->vars, v->var)) {
		struct magnitudes m = add_up_weights(b, s);
		double scale = isinf(m.sum) ? m.sum : fmax(m.largest / s->most, m.sum / s->limit);
		error[i] = s->relative ? slack * s->relative * m.sum
				       : slack * (m.sum / (2 * s->levels) + s->terms * scale * (0.5 + s->dropped));
	}
	return error;
}

/* What a sum adds to its error of itself.  Where it is in bf16 the sizes of its factors have been found. */
static double own_error_of(struct rewrite_bounding *b, const struct sub_value *v)
{
	uint32_t value = v - b->p->values.at;
	struct sub_use u = sub_as_is(b->p, (sub_ref){value});
	if (!b->integers[value].links)
		return 0;
	if (b->integers[value].relative)
		return slack * b->integers[value].relative * sum_products(b, v, size_of_product);
	return multiply_bounds(b->integer_error[value][find_position(b, &u)],
			       b->integers[value].per_edge ? b->edges : 1);
}

/* --- sizes --- */

static double size_element(struct rewrite_bounding *b, const struct sub_value *v)
{
	const struct sub_use *x = &v->arg[0], *y = &v->arg[1], *z = &v->arg[2];
	switch (v->op) {
	case SUB_NEG:
	case SUB_ABS:
	case SUB_NOP:
		return size_of(b, x);
	case SUB_ADD:
		return size_of(b, x) + size_of(b, y);
	case SUB_MULTIPLY:
		return size_of_product(b, x, y);
	case SUB_FMA:
		return size_of_product(b, x, y) + size_of(b, z);
	case SUB_ACCUMULATE:
		return size_of(b, x) + sum_products(b, v, size_of_product) + own_error_of(b, v);
	case SUB_SUM:
		return sum_elements(b, v, size_of);
	case SUB_MAX:
	case SUB_MIN:
		return largest_element(b, v, size_of);
	case SUB_SMAX:
	case SUB_SMIN:
		return fmax(size_of(b, x), size_of(b, y));
	case SUB_SELECT:
		return fmax(size_of(b, y), size_of(b, z));
	case SUB_ASSIGN:
		return move_element(b, v, error_find_size(b, x->value.i), 0, 0, fabs(v->fill));
	case SUB_COND:
		return join_element(b, v, size_of);
	default:
		return INFINITY;
	}
}

/* Computes the elements of a value one after the other, while no other value is computed. */
static void fill_tensor(struct rewrite_bounding *b, struct error_tensor *t, const struct sub_value *v,
			double (*compute)(struct rewrite_bounding *, const struct sub_value *))
{
	int64_t n = error_elements(b, v);
	if (!t->element)
		t->element = ARENA_ARRAY(b->arena, double, n);
	first_index(b, v->vars, v->var);
	for (int64_t i = 0; i < n; i++, next_index(b, v->vars, v->var))
		t->element[i] = compute(b, v);
	t->known = true;
}

static double most_of_range(struct rewrite_bounding *b, const struct sub_value *v)
{
	return error_most(b, &b->range[v - b->p->values.at]);
}

const double *error_find_size(struct rewrite_bounding *b, uint32_t i)
{
	const struct sub_value *v = &b->p->values.at[i];
	struct error_tensor *t = &b->size[i];
	if (t->known)
		return t->element;
	if (b->constant[i])
		return error_find_magnitude(b, i);
	if (isfinite(most_of_range(b, v))) {
		fill_tensor(b, t, v, most_of_range);
		return t->element;
	}
	if (v->op == SUB_STATE && v->dtype == DTYPE_F32)
		return b->states.size[v->which];
	for (int a = 0; a < v->args; a++)
		error_find_size(b, v->arg[a].value.i);
	if (b->integers[i].links)
		error_find_own(b, i);
	fill_tensor(b, t, v, size_element);
	return t->element;
}

/* --- errors --- */

/* |x' y' - x y| is at most |x' - x| |y'| + |x| |y' - y|. */
static double error_of_product(struct rewrite_bounding *b, const struct sub_use *x, const struct sub_use *y)
{
	double dx = error_of(b, x), dy = error_of(b, y);
	return (dx > 0 ? multiply_bounds(dx, size_of(b, y)) : 0) +
	       (dy > 0 ? multiply_bounds(size_of(b, x), dy) : 0);
}

/* The least magnitude in the range of an argument. */
static double least_of(const struct rewrite_bounding *b, const struct sub_use *u)
{
	const struct rewrite_range *r = &b->range[u->value.i];
	return !b->trusted ? 0 : r->low > 0 ? r->low : r->high < 0 ? -r->high : 0;
}

/* Goes through assigns that keep each index, to what a use reads, under its names; false if there is another
 * one. */
static bool see_through_spread(const struct rewrite_bounding *b, struct sub_use *u)
{
	for (const struct sub_value *v = sub_at(b->p, u->value); v->op == SUB_ASSIGN;
	     v = sub_at(b->p, u->value)) {
		struct sub_use arg = v->arg[0];
		for (int i = 0; i < arg.vars; i++) {
			int at = -1;
			for (int k = 0; k < v->vars && sub_is_identity(&v->map[i]); k++)
				at = v->var[k] == v->map[i].var ? k : at;
			if (at < 0)
				return false;
			arg.var[i] = u->var[at];
		}
		*u = arg;
	}
	return true;
}

/* Whether a quotient is e / sum(e) of e = exp(x): softmax over what the sum is over. */
static bool is_softmax(const struct rewrite_bounding *b, const struct sub_value *v)
{
	const struct sub_use *e = &v->arg[0];
	struct sub_use total = v->arg[1];
	if (v->op != SUB_DIVIDE || sub_at(b->p, e->value)->op != SUB_EXP || !see_through_spread(b, &total))
		return false;
	const struct sub_value *sum = sub_at(b->p, total.value);
	if (sum->op != SUB_SUM || sum->arg[0].value.i != e->value.i)
		return false;
	struct sub_use terms = sub_rename_use(sum, &total, sum->arg[0]);
	for (int i = 0; i < terms.vars; i++)
		if (sub_position_in(&sum->reduced, sum->arg[0].var[i]) < 0 && terms.var[i] != e->var[i])
			return false;
	return true;
}

static double largest_error(const struct rewrite_bounding *b, uint32_t value)
{
	const struct error_tensor *t = &b->error[value];
	double most = 0;
	for (int64_t i = 0, n = t->known ? error_elements(b, &b->p->values.at[value]) : 0; i < n; i++)
		most = fmax(most, t->element[i]);
	return most;
}

/* The magnitudes of a row of softmax's derivative are 2 s (1 - s) together, at most 1/2; values are in 0
 * .. 1. */
static double error_of_softmax(struct rewrite_bounding *b, const struct sub_value *v)
{
	(void)v;
	return fmin(b->exponents / 2, 1);
}

static double error_of_quotient(struct rewrite_bounding *b, const struct sub_value *v)
{
	const struct sub_use *x = &v->arg[0], *y = &v->arg[1];
	double dx = error_of(b, x), dy = error_of(b, y), least = least_of(b, y);
	return multiply_bounds(dx, 1 / least) +
	       (dy > 0 ? multiply_bounds(size_of(b, x), multiply_bounds(dy, 1 / (least * least))) : 0);
}

/* How steep a function of one argument is at most; infinite if it is not known, or has steps. */
static double find_slope(const struct rewrite_bounding *b, const struct sub_value *v)
{
	const struct rewrite_range *x = &b->range[v->arg[0].value.i];
	double least = least_of(b, &v->arg[0]);
	switch (v->op) {
	case SUB_NEG:
	case SUB_ABS:
	case SUB_NOP:
	case SUB_TANH:
	case SUB_QUICK_TANH:
	case SUB_SIN:
	case SUB_COS:
	case SUB_ATAN:
		return 1;
	case SUB_SIGMOID:
	case SUB_QUICK_SIGMOID:
		return 0.25;
	case SUB_ERF:
		return 1.1284;
	case SUB_EXP:
		return b->trusted ? exp(x->high) : INFINITY;
	case SUB_LOG:
		return x->low > 0 ? 1 / least : INFINITY;
	case SUB_LOG1P:
		return x->low > -1 && b->trusted ? 1 / (1 + x->low) : INFINITY;
	case SUB_SQRT:
		return x->low > 0 ? 0.5 / sqrt(least) : INFINITY;
	case SUB_REC:
		return 1 / (least * least);
	default:
		return INFINITY;
	}
}

/* The error of a choice by a condition; a condition that may be another one bounds nothing. */
static double error_of_choice(struct rewrite_bounding *b, const struct sub_value *v)
{
	return error_of(b, &v->arg[0]) > 0 ? INFINITY
					   : fmax(error_of(b, &v->arg[1]), error_of(b, &v->arg[2]));
}

static double error_of_function(struct rewrite_bounding *b, const struct sub_value *v)
{
	double error = 0;
	for (int a = 0; a < v->args; a++)
		error += error_of(b, &v->arg[a]);
	if (v->op == SUB_ROUND || v->op == SUB_FLOOR)
		return error > 0 ? error + 1 : 0;
	return multiply_bounds(error, v->args == 1 && v->dtype == DTYPE_F32 ? find_slope(b, v) : INFINITY) +
	       b->function_error[v - b->p->values.at];
}

/* What a gather reads is the same element in both programs if its index has no error. */
static double error_of_gathered(struct rewrite_bounding *b, const struct sub_value *v)
{
	return error_of(b, &v->arg[1]) > 0 ? INFINITY : largest_element(b, v, error_of);
}

/* The error of an element before it is compared with the length of the range. */
static double compute_error(struct rewrite_bounding *b, const struct sub_value *v)
{
	const struct sub_use *x = &v->arg[0], *y = &v->arg[1], *z = &v->arg[2];
	switch (v->op) {
	case SUB_ADD:
		return error_of(b, x) + error_of(b, y);
	case SUB_MULTIPLY:
		return error_of_product(b, x, y);
	case SUB_DIVIDE:
		return error_of_quotient(b, v);
	case SUB_FMA:
		return error_of_product(b, x, y) + error_of(b, z);
	case SUB_ACCUMULATE:
		return error_of(b, x) + sum_products(b, v, error_of_product) + own_error_of(b, v);
	case SUB_SUM:
		return sum_elements(b, v, error_of);
	case SUB_MAX:
	case SUB_MIN:
		return largest_element(b, v, error_of);
	case SUB_SMAX:
	case SUB_SMIN:
		return fmax(error_of(b, x), error_of(b, y));
	case SUB_SELECT:
		return error_of_choice(b, v);
	case SUB_GATHER:
		return error_of_gathered(b, v);
	case SUB_ASSIGN:
		return move_element(b, v, b->error[x->value.i].element, 0, 0, 0);
	case SUB_COND:
		return join_element(b, v, error_of);
	default:
		return error_of_function(b, v);
	}
}

static double error_element(struct rewrite_bounding *b, const struct sub_value *v)
{
	double error = compute_error(b, v);
	return fmin(isnan(error) ? INFINITY : error, error_longest(b, &b->range[v - b->p->values.at]));
}

static bool has_error(const struct rewrite_bounding *b, uint32_t i)
{
	const struct sub_value *v = &b->p->values.at[i];
	bool any = b->integers[i].links;
	for (int a = 0; a < v->args; a++)
		any |= b->error[v->arg[a].value.i].known;
	return any;
}

/* Finds the sizes that the errors of products need, before an element is computed. */
static void prepare_sizes(struct rewrite_bounding *b, uint32_t i)
{
	const struct sub_value *v = &b->p->values.at[i];
	bool product =
	    v->op == SUB_MULTIPLY || v->op == SUB_FMA || v->op == SUB_ACCUMULATE || v->op == SUB_DIVIDE;
	for (int a = 0; a < v->args && product; a++)
		for (int other = 0; other < v->args; other++)
			if (other != a && (b->error[v->arg[other].value.i].known || b->integers[i].relative))
				error_find_size(b, v->arg[a].value.i);
	if (b->integers[i].links)
		error_find_own(b, i);
}

static void evaluate_error(struct rewrite_bounding *b, uint32_t i)
{
	const struct sub_value *v = &b->p->values.at[i];
	struct error_tensor *t = &b->error[i];
	if (v->op == SUB_STATE) {
		*t = (struct error_tensor){b->states.error[v->which], true};
	} else if (is_softmax(b, v)) {
		b->exponents = largest_error(b, sub_at(b->p, v->arg[0].value)->arg[0].value.i);
		fill_tensor(b, t, v, error_of_softmax);
	} else if (has_error(b, i)) {
		prepare_sizes(b, i);
		fill_tensor(b, t, v, error_element);
	}
}

uint32_t error_find_cause(const struct rewrite_bounding *b, uint32_t i)
{
	const struct sub_value *v = &b->p->values.at[i];
	if (!isinf(largest_error(b, i)))
		return 0;
	for (int a = 0; a < v->args; a++) {
		uint32_t cause = error_find_cause(b, v->arg[a].value.i);
		if (cause)
			return cause;
	}
	return i;
}

void error_evaluate(struct rewrite_bounding *b, const bool *live)
{
	for (uint32_t i = 1; i < b->p->values.n && !b->failed; i++)
		if (live[i] && !b->constant[i])
			evaluate_error(b, i);
}

void error_forget(struct rewrite_bounding *b)
{
	for (uint32_t i = 1; i < b->p->values.n; i++) {
		b->error[i].known = false;
		b->size[i].known = false;
	}
}
