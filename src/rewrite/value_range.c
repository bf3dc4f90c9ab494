/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Facts about values, from the facts of their arguments: whether they are constant, and the range of their
 * elements. Bounds hold in binary32: a result that may overflow may be infinite, and infinity minus infinity
 * a NaN.  Weights are assumed to be finite unless arithmetic is exact.  Of inputs the bounds are known that
 * the model declares, which runs check, and else nothing, unless the options say that numbers are finite; what is known
 * of states is found in state_range.c. */
#include "rewrite/rule_engine.h"

#include <float.h>
#include <math.h>

/* --- ranges --- */

static const struct rewrite_range anything = {-INFINITY, INFINITY, true},
				  any_finite = {-FLT_MAX, FLT_MAX, false};

/* Widens bounds computed in binary64 to what binary32 may give: operators round, numbers beyond the largest
 * become infinite, and denormal ones zero. */
static struct rewrite_range widen_range(struct rewrite_range r)
{
	r.low -= fabs(r.low) * 0x1p-20;
	r.high += fabs(r.high) * 0x1p-20;
	if (r.low < -FLT_MAX)
		r.low = -INFINITY;
	if (r.high > FLT_MAX)
		r.high = INFINITY;
	if (r.low > 0 && r.low < FLT_MIN)
		r.low = 0;
	if (r.high < 0 && r.high > -FLT_MIN)
		r.high = 0;
	return r;
}

static bool may_be_infinite(const struct rewrite_range *r)
{
	return isinf(r->low) || isinf(r->high);
}

static bool may_be_zero(const struct rewrite_range *r)
{
	return r->low <= 0 && r->high >= 0;
}

static struct rewrite_range range_of_sum(struct rewrite_range a, struct rewrite_range b)
{
	bool clash = (a.high == INFINITY && b.low == -INFINITY) || (a.low == -INFINITY && b.high == INFINITY);
	struct rewrite_range r = {a.low + b.low, a.high + b.high, a.nan || b.nan || clash};
	if (isnan(r.low))
		r.low = -INFINITY;
	if (isnan(r.high))
		r.high = INFINITY;
	return widen_range(r);
}

static double multiply_bounds(double a, double b)
{
	return a == 0 || b == 0 ? 0 : a * b;
}

static struct rewrite_range range_of_product(struct rewrite_range a, struct rewrite_range b)
{
	double corner[] = {multiply_bounds(a.low, b.low), multiply_bounds(a.low, b.high),
			   multiply_bounds(a.high, b.low), multiply_bounds(a.high, b.high)};
	struct rewrite_range r = {corner[0], corner[0], a.nan || b.nan};
	for (int i = 1; i < 4; i++) {
		r.low = fmin(r.low, corner[i]);
		r.high = fmax(r.high, corner[i]);
	}
	r.nan |= (may_be_zero(&a) && may_be_infinite(&b)) || (may_be_zero(&b) && may_be_infinite(&a));
	return widen_range(r);
}

static struct rewrite_range range_of_abs(struct rewrite_range a)
{
	double least = fmin(fabs(a.low), fabs(a.high)), most = fmax(fabs(a.low), fabs(a.high));
	return (struct rewrite_range){may_be_zero(&a) ? 0 : least, most, a.nan};
}

static struct rewrite_range range_of_square(struct rewrite_range a)
{
	a = range_of_abs(a);
	return widen_range((struct rewrite_range){a.low * a.low, a.high * a.high, a.nan});
}

static struct rewrite_range range_of_rec(struct rewrite_range a)
{
	if (may_be_zero(&a)) /* of either sign */
		return (struct rewrite_range){-INFINITY, INFINITY, a.nan};
	return widen_range((struct rewrite_range){1 / a.high, 1 / a.low, a.nan});
}

static struct rewrite_range range_of_quotient(struct rewrite_range a, struct rewrite_range b)
{
	return range_of_product(a, range_of_rec(b));
}

static double compute_logistic(double x)
{
	return 1 / (1 + exp(-x));
}

/* Functions that never fall but for their errors, and the bounds of their values. */
static const struct monotone {
	double (*f)(double);
	double least, most;
} monotone[SUB_OPS] = {
    [SUB_CAST] = {nearbyint, -INFINITY, INFINITY},
    [SUB_ROUND] = {nearbyint, -INFINITY, INFINITY},
    [SUB_FLOOR] = {floor, -INFINITY, INFINITY},
    [SUB_EXP] = {exp, 0, INFINITY},
    [SUB_SIGMOID] = {compute_logistic, 0, 1},
    [SUB_TANH] = {tanh, -1, 1},
    [SUB_QUICK_SIGMOID] = {compute_logistic, 0, 1},
    [SUB_QUICK_TANH] = {tanh, -1, 1},
    [SUB_SIGMOID_4] = {compute_logistic, 0, 1},
    [SUB_SIGMOID_5] = {compute_logistic, 0, 1},
    [SUB_TANH_4] = {tanh, -1, 1},
    [SUB_TANH_5] = {tanh, -1, 1},
    [SUB_ERF] = {erf, -1, 1},
    [SUB_ATAN] = {atan, -0x1.921fb6p0, 0x1.921fb6p0},
};

static struct rewrite_range range_of_monotone(enum sub_op op, struct rewrite_range a)
{
	const struct monotone *m = &monotone[op];
	double error = rewrite_function_error(op);
	struct rewrite_range r =
	    widen_range((struct rewrite_range){m->f(a.low) - error, m->f(a.high) + error, a.nan});
	r.low = isnan(r.low) ? m->least : fmax(r.low, m->least);
	r.high = isnan(r.high) ? m->most : fmin(r.high, m->most);
	return r;
}

/* The range of a logarithm that is minus infinity at `zero`. */
static struct rewrite_range range_above(double (*f)(double), struct rewrite_range a, double zero)
{
	struct rewrite_range r = {a.low > zero ? f(a.low) : -INFINITY, a.high > zero ? f(a.high) : INFINITY,
				  a.nan || a.low < zero};
	return widen_range(r);
}

static struct rewrite_range range_of_log(struct rewrite_range a)
{
	return range_above(log, a, 0);
}

static struct rewrite_range range_of_log1p(struct rewrite_range a)
{
	return range_above(log1p, a, -1);
}

static struct rewrite_range range_of_sqrt(struct rewrite_range a)
{
	struct rewrite_range r = {a.low > 0 ? sqrt(a.low) : 0, a.high > 0 ? sqrt(a.high) : 0,
				  a.nan || a.low < 0};
	return widen_range(r);
}

static struct rewrite_range range_of_neg(struct rewrite_range a)
{
	return (struct rewrite_range){-a.high, -a.low, a.nan};
}

static struct rewrite_range range_of_wave(struct rewrite_range a)
{
	return (struct rewrite_range){-1, 1, a.nan || may_be_infinite(&a)};
}

static struct rewrite_range keep_range(struct rewrite_range a)
{
	return a;
}

static struct rewrite_range range_of_smax(struct rewrite_range a, struct rewrite_range b)
{
	return (struct rewrite_range){fmax(a.low, b.low), fmax(a.high, b.high), a.nan || b.nan};
}

static struct rewrite_range range_of_smin(struct rewrite_range a, struct rewrite_range b)
{
	return (struct rewrite_range){fmin(a.low, b.low), fmin(a.high, b.high), a.nan || b.nan};
}

struct rewrite_range rewrite_join_ranges(struct rewrite_range a, struct rewrite_range b)
{
	return (struct rewrite_range){fmin(a.low, b.low), fmax(a.high, b.high), a.nan || b.nan};
}

static struct rewrite_range range_of_reduction(const struct sub_program *p, const struct sub_value *v,
					       struct rewrite_range a)
{
	bool ragged = sub_reduces_ragged(p, v);
	if (!ragged && v->op != SUB_SUM)
		return a;
	if (v->op == SUB_MIN)
		return (struct rewrite_range){a.low, INFINITY, a.nan};
	if (v->op == SUB_MAX)
		return (struct rewrite_range){-INFINITY, a.high, a.nan};
	double n = sub_reduced_extent(p, v), least = ragged ? 0 : n, most = ragged ? INFINITY : n;
	struct rewrite_range r = {multiply_bounds(a.low, a.low < 0 ? most : least),
				  multiply_bounds(a.high, a.high > 0 ? most : least),
				  a.nan || (a.low == -INFINITY && a.high == INFINITY)};
	r = widen_range(r);
	r.nan |= r.low == -INFINITY && r.high == INFINITY;
	return r;
}

static struct rewrite_range range_of_source(const struct rewriter *w, const struct sub_value *v)
{
	float within = v->op == SUB_VECTOR ? w->p->inputs.at[v->which].row.within : 0;
	if (v->op == SUB_CONST)
		return (struct rewrite_range){(float)v->constant, (float)v->constant, isnan(v->constant)};
	if (within)
		return (struct rewrite_range){-within, within, false};
	if ((v->op == SUB_PARAM && (w->options->math != REWRITE_EXACT || w->options->finite)) ||
	    (v->op == SUB_VECTOR && w->options->finite))
		return any_finite;
	return v->op == SUB_STATE && w->states ? w->states[v->which] : anything;
}

/* --- integers and truths, whose bounds are exact --- */

static const struct rewrite_range type_ranges[DTYPES] = {
    [DTYPE_I8] = {INT8_MIN, INT8_MAX, false},	 [DTYPE_U8] = {0, UINT8_MAX, false},
    [DTYPE_I16] = {INT16_MIN, INT16_MAX, false}, [DTYPE_I32] = {INT32_MIN, INT32_MAX, false},
    [DTYPE_I64] = {-0x1p63, 0x1p63, false},	 [DTYPE_BOOL] = {0, 1, false}};

/* A tensor holds what its type in memory has. */
static struct rewrite_range range_in_memory(const struct rewriter *w, const struct sub_value *v)
{
	const struct sub_tensor *t = v->op == SUB_PARAM	  ? &w->p->params.at[v->which]
				     : v->op == SUB_STATE ? &w->p->states.at[v->which]
							  : &w->p->inputs.at[v->which].row;
	return type_ranges[t->dtype];
}

/* A float loses its fraction; a NaN becomes 0, and what the type does not have the nearest that it has. */
static struct rewrite_range range_of_cast(struct rewrite_range a, const struct rewrite_range *type)
{
	struct rewrite_range r = {fmin(fmax(trunc(a.low), type->low), type->high),
				  fmax(fmin(trunc(a.high), type->high), type->low), false};
	return a.nan ? (struct rewrite_range){fmin(r.low, 0), fmax(r.high, 0), false} : r;
}

static struct rewrite_range range_of_integer_product(struct rewrite_range a, struct rewrite_range b)
{
	double corner[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
	struct rewrite_range r = {corner[0], corner[0], false};
	for (int i = 1; i < 4; i++)
		r = (struct rewrite_range){fmin(r.low, corner[i]), fmax(r.high, corner[i]), false};
	return r;
}

/* The range before the result wraps. */
static struct rewrite_range range_of_arithmetic(const struct rewriter *w, const struct sub_value *v,
						struct rewrite_range a, struct rewrite_range b,
						struct rewrite_range c)
{
	switch (v->op) {
	case SUB_CONST:
		return (struct rewrite_range){v->constant, v->constant, false};
	case SUB_PARAM:
	case SUB_VECTOR:
	case SUB_STATE:
		return range_in_memory(w, v);
	case SUB_CAST:
		return range_of_cast(a, &type_ranges[v->dtype]);
	case SUB_NEG:
		return range_of_neg(a);
	case SUB_ABS:
		return range_of_abs(a);
	case SUB_ADD:
		return (struct rewrite_range){a.low + b.low, a.high + b.high, false};
	case SUB_MULTIPLY:
		return range_of_integer_product(a, b);
	case SUB_DROP8:
		return (struct rewrite_range){floor(a.low / 256), floor(a.high / 256), false};
	case SUB_LOW8:
		return (struct rewrite_range){INT8_MIN, INT8_MAX, false};
	case SUB_SMAX:
		return range_of_smax(a, b);
	case SUB_SMIN:
		return range_of_smin(a, b);
	case SUB_SELECT:
		return rewrite_join_ranges(b, c);
	case SUB_COND:
		return rewrite_join_ranges(a, b);
	case SUB_MAX:
	case SUB_MIN:
		return range_of_reduction(w->p, v, a);
	case SUB_NOP:
	case SUB_GATHER:
		return a;
	case SUB_ASSIGN:
		return v->fills ? rewrite_join_ranges(a, (struct rewrite_range){v->fill, v->fill, false}) : a;
	default:
		return type_ranges[v->dtype];
	}
}

/* A result that may wrap may be any number of its type, and so may one that is too large for binary64 to bound exactly. */
static struct rewrite_range range_of_integer(const struct rewriter *w, const struct sub_value *v,
					     struct rewrite_range a, struct rewrite_range b,
					     struct rewrite_range c)
{
	const struct rewrite_range *type = &type_ranges[v->dtype];
	struct rewrite_range r = range_of_arithmetic(w, v, a, b, c);
	bool exact = r.low > -0x1p53 && r.high < 0x1p53;
	return exact && r.low >= type->low && r.high <= type->high ? r : *type;
}

/* By operator: the range that follows from those of one or two arguments alone; NULL = see range_of. */
static struct rewrite_range (*const range_of_one[SUB_OPS])(struct rewrite_range) = {
    [SUB_NEG] = range_of_neg,  [SUB_ABS] = range_of_abs,     [SUB_REC] = range_of_rec,
    [SUB_LOG] = range_of_log,  [SUB_LOG1P] = range_of_log1p, [SUB_SQRT] = range_of_sqrt,
    [SUB_SIN] = range_of_wave, [SUB_COS] = range_of_wave,    [SUB_NOP] = keep_range,
};
static struct rewrite_range (*const range_of_two[SUB_OPS])(struct rewrite_range, struct rewrite_range) = {
    [SUB_ADD] = range_of_sum,	[SUB_DIVIDE] = range_of_quotient, [SUB_SMAX] = range_of_smax,
    [SUB_SMIN] = range_of_smin, [SUB_COND] = rewrite_join_ranges,
};

static struct rewrite_range argument_range(const struct rewriter *w, const struct sub_value *v, int a)
{
	return a < v->args ? w->notes.at[v->arg[a].value.i].fact.range : anything;
}

static struct rewrite_range range_of(const struct rewriter *w, const struct sub_value *v)
{
	struct rewrite_range a = argument_range(w, v, 0), b = argument_range(w, v, 1),
			     c = argument_range(w, v, 2);
	bool known = (int)v->op < SUB_OPS;
	if (v->dtype != DTYPE_F32)
		return range_of_integer(w, v, a, b, c);
	if (known && monotone[v->op].f)
		return range_of_monotone(v->op, a);
	if (known && range_of_one[v->op])
		return range_of_one[v->op](a);
	if (known && range_of_two[v->op])
		return range_of_two[v->op](a, b);
	switch (v->op) {
	case SUB_SELECT:
		return rewrite_join_ranges(b, c);
	case SUB_MULTIPLY:
		return sub_same_use(&v->arg[0], &v->arg[1]) ? range_of_square(a) : range_of_product(a, b);
	case SUB_FMA:
		return range_of_sum(range_of_product(a, b), c);
	case SUB_ACCUMULATE:
		return range_of_sum(a, range_of_reduction(w->p, v, range_of_product(b, c)));
	case SUB_SUM:
	case SUB_MAX:
	case SUB_MIN:
		return range_of_reduction(w->p, v, a);
	case SUB_GATHER:
		return a;
	case SUB_ASSIGN:
		return v->fills ? rewrite_join_ranges(a, (struct rewrite_range){v->fill, v->fill, isnan(v->fill)})
				: a;
	default:
		return range_of_source(w, v);
	}
}

/* --- chains --- */

static struct rewrite_chain chain_of(const struct rewriter *w, const struct sub_value *v,
				     const struct rewrite_range *r)
{
	static const struct rewrite_fact none;
	const struct rewrite_fact *a = v->args > 0 ? &w->notes.at[v->arg[0].value.i].fact : &none;
	const struct rewrite_fact *b = v->args > 1 ? &w->notes.at[v->arg[1].value.i].fact : &none;
	if (v->dtype != DTYPE_F32)
		return (struct rewrite_chain){1, fabs(r->low), fabs(r->high)};
	if (v->op == SUB_ADD)
		return (struct rewrite_chain){a->chain.terms + b->chain.terms, a->chain.low + b->chain.low,
					      a->chain.high + b->chain.high};
	if ((v->op != SUB_SUM && v->op != SUB_ACCUMULATE) || sub_reduces_ragged(w->p, v))
		return (struct rewrite_chain){1, fabs(r->low), fabs(r->high)};
	double n = sub_reduced_extent(w->p, v);
	if (v->op == SUB_SUM)
		return (struct rewrite_chain){n, n * fabs(a->range.low), n * fabs(a->range.high)};
	struct rewrite_range each = range_of_product(b->range, w->notes.at[v->arg[2].value.i].fact.range);
	return (struct rewrite_chain){a->chain.terms + n, a->chain.low + n * fabs(each.low),
				      a->chain.high + n * fabs(each.high)};
}

/* Widens the range of a sum to hold in whatever order its terms are added.  Rounding is monotone, so no sum
 * is less than that of the least values of the terms, rounded in the same order; each addition rounds that by
 * at most half a unit in the last place of the sum of all magnitudes.  A sum of two terms has one order. */
static struct rewrite_range widen_by_chain(struct rewrite_range r, const struct rewrite_chain *c)
{
	if (c->terms <= 2)
		return r;
	r.low = c->low <= FLT_MAX ? r.low - c->terms * 0x1p-23 * c->low : -INFINITY;
	r.high = c->high <= FLT_MAX ? r.high + c->terms * 0x1p-23 * c->high : INFINITY;
	r.nan |= (isinf(c->low) && c->high > FLT_MAX) || (isinf(c->high) && c->low > FLT_MAX);
	return widen_range(r);
}

/* --- numbers that are assumed to be finite --- */

static bool is_finite_range(struct rewrite_range r)
{
	return !r.nan && !may_be_infinite(&r);
}

/* Whether a value that has finite arguments is infinite or NaN only if it overflows, if ever. */
static bool only_overflows(const struct rewriter *w, const struct sub_value *v)
{
	switch (v->op) {
	case SUB_ADD:
	case SUB_MULTIPLY:
	case SUB_FMA:
	case SUB_ACCUMULATE:
	case SUB_SUM:
	case SUB_PROD:
	case SUB_ROUND:
	case SUB_FLOOR:
		return true;
	case SUB_DIVIDE:
		return is_finite_range(range_of_rec(argument_range(w, v, 1)));
	default:
		return false;
	}
}

/* The range of a value none of whose sums, products and quotients overflows. */
static struct rewrite_range limit_to_finite(const struct rewriter *w, const struct sub_value *v,
					    struct rewrite_range r)
{
	bool finite = w->options->finite && v->dtype == DTYPE_F32 && only_overflows(w, v);
	for (int a = 0; finite && a < v->args; a++)
		finite = is_finite_range(argument_range(w, v, a));
	if (!finite)
		return r;
	return (struct rewrite_range){fmax(fmin(r.low, any_finite.high), any_finite.low),
				      fmin(fmax(r.high, any_finite.low), any_finite.high), false};
}

/* --- facts --- */

static bool is_constant(const struct rewriter *w, const struct sub_value *v)
{
	bool constant = sub_may_be_constant(w->p, v);
	for (int a = 0; a < v->args; a++)
		constant &= w->notes.at[v->arg[a].value.i].fact.constant;
	return constant;
}

static bool is_barred(const struct rewriter *w, const struct sub_value *v)
{
	bool barred = v->op == SUB_PARAM && w->barred && w->barred[v->which];
	for (int a = 0; a < v->args; a++)
		barred |= w->notes.at[v->arg[a].value.i].fact.barred;
	return barred;
}

static void find_number(const struct rewriter *w, const struct sub_value *v, struct rewrite_fact *f)
{
	static const struct rewrite_fact none = {.uniform = false};
	const struct rewrite_fact *a = v->args > 0 ? &w->notes.at[v->arg[0].value.i].fact : &none;
	const struct rewrite_fact *b = v->args > 1 ? &w->notes.at[v->arg[1].value.i].fact : &none;
	f->uniform = v->op == SUB_CONST ||
		     (v->op == SUB_ASSIGN && a->uniform &&
		      (!v->fills || memcmp(&v->fill, &a->number, sizeof v->fill) == 0)) ||
		     (v->op == SUB_COND && a->uniform && b->uniform && a->number == b->number &&
		      signbit(a->number) == signbit(b->number));
	f->number = v->op == SUB_CONST ? v->constant : f->uniform ? a->number : 0;
}

/* How far apart the numbers of a factor may be, without a term of fewer dimensions that is added, as a zero point is. */
static double span_of_factor(const struct rewriter *w, sub_ref factor)
{
	const struct sub_value *v = sub_at(w->p, factor);
	struct rewrite_range r = w->notes.at[factor.i].fact.range;
	double span = r.high - r.low;
	for (int a = 0; v->op == SUB_ADD && a < 2; a++) {
		struct rewrite_range number = argument_range(w, v, a);
		if (v->arg[!a].vars < v->vars)
			span = fmin(span, number.high - number.low);
	}
	return span;
}

/* The cost of an operation on a product of integers.  Where activations are each multiplied by several weights, sums of products
 * are dot products of words (group_words.c), which hold four products of bytes or two of halves.  Two products of narrower
 * numbers cost less than one of wider ones, whose weights take twice the memory and which fewer machines have instructions for:
 * so rules leave both, rather than merge their weights to numbers that do not fit. */
static double cost_in_words(const struct rewriter *w, const struct sub_value *v)
{
	enum { BYTES = 1, HALVES = 3 };
	if (v->op != SUB_MULTIPLY || v->dtype != DTYPE_I32)
		return REWRITE_OPERATION;
	int weights = w->notes.at[v->arg[1].value.i].fact.constant;
	double span = fmax(span_of_factor(w, v->arg[0].value), span_of_factor(w, v->arg[1].value));
	bool lacks = false;
	for (int d = 0; d < v->arg[weights].vars; d++)
		lacks |= !sub_use_has(&v->arg[!weights], v->arg[weights].var[d]);
	if (!lacks || !w->notes.at[v->arg[weights].value.i].fact.constant)
		return REWRITE_OPERATION;
	return span <= UINT8_MAX ? BYTES : span <= UINT16_MAX ? HALVES : REWRITE_OPERATION;
}

/* The cost of an element.  A concatenation only chooses an index. */
static double weigh_element(const struct rewriter *w, const struct sub_value *v, const struct rewrite_fact *f)
{
	if (sub_class_of(v->op) == SUB_MOVE)
		return v->op != SUB_COND || f->constant ? REWRITE_MOVE : 0;
	const struct sub_value *products = v->op == SUB_SUM && !sub_reduces_ragged(w->p, v) ? sub_at(w->p, v->arg[0].value) : v;
	return cost_in_words(w, products) * sub_traits_of(v->op)->weight;
}

/* The most elements that a cost counts; no row in memory has as many.  So costs are whole numbers that
 * doubles add exactly in any order: equal programs cost the same, and an undone application restores the
 * measure. */
static const double most_elements = 0x1p36;

/* The cost of a value per row: that of moving an element, and the weight of its operator for each element.  Constants cost nothing,
 * unless folding is off: then they are computed in each row like other values, and their concatenations copy
 * elements. */
static double cost_of(const struct rewriter *w, const struct sub_value *v, const struct rewrite_fact *f)
{
	bool computed = w->options->off & 1u << REWRITE_FAMILY_CONSTANTS;
	if (sub_class_of(v->op) == SUB_SOURCE || (f->constant && (!computed || f->uniform)))
		return 0;
	double volume = fmin(sub_reduces(v->op) ? sub_reduced_elements(w->p, v) : sub_row_elements(w->p, v),
			     most_elements);
	return REWRITE_MOVE + volume * weigh_element(w, v, f);
}

/* Counts assigns of assigns, and concatenations on the left side of concatenations. */
static double disorder_of(const struct rewriter *w, const struct sub_value *v)
{
	if (v->op == SUB_ASSIGN)
		return sub_at(w->p, v->arg[0].value)->op == SUB_ASSIGN;
	return v->op == SUB_COND ? w->notes.at[v->arg[0].value.i].fact.pieces - 1 : 0;
}

struct rewrite_fact rewrite_facts_of(const struct rewriter *w, const struct sub_value *v)
{
	struct rewrite_fact f = {.constant = is_constant(w, v), .pieces = 1};
	f.barred = is_barred(w, v);
	find_number(w, v, &f);
	f.range = range_of(w, v);
	if (w->rounded)
		rewrite_bound_mean(w, v, &f.range);
	f.chain = chain_of(w, v, &f.range);
	f.range = limit_to_finite(w, v, widen_by_chain(f.range, &f.chain));
	f.cost = cost_of(w, v, &f);
	f.disorder = disorder_of(w, v);
	if (v->op == SUB_COND)
		f.pieces =
		    w->notes.at[v->arg[0].value.i].fact.pieces + w->notes.at[v->arg[1].value.i].fact.pieces;
	return f;
}
