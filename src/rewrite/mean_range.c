/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Means: t * a + (1 - t) * b with t in 0 .. 1 is between a and b.
 *
 * What it is rounded to is, too, if b is enlarged by 2^-21 of it.  Let C be a number of
 * binary32, at least 2^-64, with a <= C and b * (1 + 2^-21) <= C, and u = 2^-24.  If t = 1, then 1 - t = 0 and
 * the result is a.  Else (1 - t) * b is at most (1 - t) * b * (1 + u)^2 after it was rounded twice, and so less
 * than (1 - t) * C by more than what a denormal number may lose; and t * a is at most t * C plus half the
 * distance from C to the next number.  The sum is less than C plus that half, so it is rounded to C at most.
 * The same holds below, with signs reversed.
 *
 * So a state that is a mean of another bounded value and of itself as it was before, times t, stays in its range
 * however often it is computed.  One that is multiplied by 1 - t, which was rounded, may grow in each step. */
#include "rewrite/rule_engine.h"

#include <math.h>

static const double slack = 1 + 0x1p-21, least_bound = 0x1p-64;

static const struct sub_value *value_of(const struct rewriter *w, const struct sub_use *u)
{
	return sub_at(w->p, u->value);
}

static const struct rewrite_fact *fact_of(const struct rewriter *w, const struct sub_use *u)
{
	return &w->notes.at[u->value.i].fact;
}

static bool is_one(const struct rewriter *w, const struct sub_use *u)
{
	return fact_of(w, u)->uniform && fact_of(w, u)->number == 1;
}

/* Sets t where a value is 1 - t. */
static bool find_complement(const struct rewriter *w, const struct sub_use *rest, struct sub_use *t)
{
	const struct sub_value *sum = value_of(w, rest);
	for (int a = 0; sum->op == SUB_ADD && a < 2; a++) {
		struct sub_use negative = sub_rename_use(sum, rest, sum->arg[a]);
		const struct sub_value *v = value_of(w, &negative);
		if (v->op != SUB_NEG || !is_one(w, &sum->arg[!a]))
			continue;
		*t = sub_rename_use(v, &negative, v->arg[0]);
		return true;
	}
	return false;
}

static bool is_complement(const struct rewriter *w, const struct sub_use *rest, const struct sub_use *t)
{
	struct sub_use positive;
	return find_complement(w, rest, &positive) && sub_same_use(&positive, t);
}

/* In 0 .. 1, as the complement of what is in 0 .. 1 is when it was rounded. */
static bool is_fraction(const struct rewriter *w, const struct sub_use *t)
{
	struct sub_use of = *t;
	find_complement(w, t, &of);
	const struct rewrite_range *r = &fact_of(w, &of)->range;
	return r->low >= 0 && r->high <= 1;
}

/* Sets the factors of the two products that a value adds up, in its names. */
static bool find_products(const struct rewriter *w, const struct sub_value *v, struct sub_use x[2],
			  struct sub_use y[2])
{
	const struct sub_use *other = v->op == SUB_FMA ? &v->arg[2] : &v->arg[1];
	if ((v->op != SUB_FMA && v->op != SUB_ADD) || value_of(w, other)->op != SUB_MULTIPLY ||
	    (v->op == SUB_ADD && value_of(w, &v->arg[0])->op != SUB_MULTIPLY))
		return false;
	for (int i = 0; i < 2; i++) {
		x[i] = v->op == SUB_FMA ? v->arg[i]
					: sub_rename_use(value_of(w, &v->arg[0]), &v->arg[0],
							 value_of(w, &v->arg[0])->arg[i]);
		y[i] = sub_rename_use(value_of(w, other), other, value_of(w, other)->arg[i]);
	}
	return true;
}

/* Finds t * a + (1 - t) * b. */
static bool find_mean(const struct rewriter *w, const struct sub_value *v, struct sub_use *a,
		      struct sub_use *b)
{
	struct sub_use x[2], y[2];
	if (v->dtype != DTYPE_F32 || !find_products(w, v, x, y))
		return false;
	for (int i = 0; i < 4; i++) {
		const struct sub_use *t = &x[i / 2], *s = &y[i % 2];
		bool first = is_fraction(w, t) && is_complement(w, s, t);
		*a = first ? x[!(i / 2)] : y[!(i % 2)];
		*b = first ? y[!(i % 2)] : x[!(i / 2)];
		if (first || (is_fraction(w, s) && is_complement(w, t, s)))
			return true;
	}
	return false;
}

/* The bound C. */
static double bound_above(double a, double b)
{
	double least = fmax(fmax(a, b * slack), least_bound);
	float bound = (float)least;
	return bound < least ? nextafterf(bound, INFINITY) : bound;
}

void rewrite_bound_mean(const struct rewriter *w, const struct sub_value *v, struct rewrite_range *r)
{
	struct sub_use a, b;
	if (!find_mean(w, v, &a, &b))
		return;
	const struct rewrite_range *first = &fact_of(w, &a)->range, *second = &fact_of(w, &b)->range;
	r->low = fmax(r->low, -bound_above(-first->low, -second->low));
	r->high = fmin(r->high, bound_above(first->high, second->high));
}
