/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Grouping: writes sums of products of narrow integers as dot products of words.
 *
 *     %1[n,k,j] = multiply x[n,k], W[k,j]              %1[n,q] = append8 ... x[n,4*q+1], x[n,4*q]
 *     %2[n,j] = sum_k %1[n,k,j]                  ->    %2[q,j] = append8 ... W[4*q+1,j], W[4*q,j]
 *                                                      %3[n,j] = accumulate4_q 0, %1[n,q], %2[q,j]
 *
 * A word is an i32 of four bytes or two halves, neighbours along what is reduced; those past the end are 0.
 * It is possible where one factor depends on weights alone, so that its words are made when they are bound, or where each word
 * of both is part of many sums, as in a product of two matrices; and where ranges say that the factors fit: into an unsigned and a signed byte, into halves otherwise.  A
 * factor may be a number of a byte plus what does not depend on what is reduced (a zero point).  As integers
 * wrap, and so add up in any order,
 *
 *     sum (u + a)(s + b)  =  sum u s  +  a sum (s + b)  +  b sum u
 *
 * holds to the bit, where `a sum (s + b)` mostly depends on weights alone.  Machines that multiply matrices of bytes compute products of
 * halves by four sums of products of bytes (split_limbs.c).  For the same reason one of two
 * sums that are added goes on from the other, as the loops of both then keep one result.  Words of windows
 * are windows of words: they are made below what repeats elements, once for all that read them. */
#include "rewrite/rule_engine.h"
#include "rewrite/expressions.h"
#include "rewrite/split_limbs.h"
#include "rewrite/word_products.h"

struct grouping {
	struct sub_program *to;
	const struct sub_program *from;
	const struct rewrite_range *range; /* NULL = nothing asked for it yet */
	const struct rewrite_options *options;
	const bool *constant, *unhoistable; /* whether it depends on weights alone; see sub_find_unhoistable */
	const int *uses;	  /* see sub_count_uses */
	sub_ref *now;		  /* its copy */
	struct rewrite_limbs *limbs; /* the sums that its copy is, with its variables; none if it is no sum of limbs */
};

/* What fits into the parts of a word. */
struct fit {
	struct rewrite_parts parts;
	double low, high;   /* of the activations' */
	double least, most; /* of the weights' */
};

static const struct fit bytes = {{4, SUB_APPEND8, SUB_ACCUMULATE4, false}, 0, UINT8_MAX, INT8_MIN, INT8_MAX};
static const struct fit halves = {
    {2, SUB_APPEND16, SUB_ACCUMULATE2, false}, INT16_MIN, INT16_MAX, INT16_MIN, INT16_MAX};

/* A factor of the products: the number of a part, and what is added to it. */
struct factor {
	struct sub_use whole, number; /* in the new program */
	bool shifted;
	struct sub_use shift;
};

/* --- values --- */

static const struct sub_use none;

static struct sub_use add_operator(struct grouping *g, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return rewrite_add_operator(g->to, op, a, b, none);
}

static struct sub_use add_integer(struct grouping *g, double i)
{
	return rewrite_add_constant(g->to, DTYPE_I32, i);
}

static struct sub_use use_copy(const struct grouping *g, struct sub_use u)
{
	u.value = g->now[u.value.i];
	return u;
}

/* --- factors --- */

static bool lacks_all(const struct sub_use *u, const struct sub_vars *vars)
{
	for (int i = 0; i < vars->n; i++)
		if (sub_use_has(u, vars->var[i]))
			return false;
	return true;
}

/* Sets the number so that it is in low .. high, if its range is no longer than that. */
static bool fit_number(struct grouping *g, sub_ref number, double low, double high, struct factor *f)
{
	if (!g->range)
		g->range = rewrite_find_ranges(g->from, g->options, g->to->arena);
	struct rewrite_range r = g->range[number.i];
	double by = r.low < low || r.high > high ? r.low - low : 0;
	if (r.high - r.low > high - low)
		return false;
	if (by == 0)
		return true;
	f->number = rewrite_apply_to_number(g->to, SUB_ADD, f->number, -by);
	f->shift = f->shifted ? add_operator(g, SUB_ADD, f->shift, add_integer(g, by)) : add_integer(g, by);
	f->shifted = true;
	return true;
}

/* A factor as a number in low .. high, perhaps plus a term of it that lacks what is reduced. */
static bool find_factor(struct grouping *g, const struct sub_use *u, const struct sub_vars *reduced,
			double low, double high, struct factor *f)
{
	const struct sub_value *v = sub_at(g->from, u->value);
	*f = (struct factor){.whole = use_copy(g, *u), .number = use_copy(g, *u)};
	if (!sub_use_has_all(u, reduced))
		return false;
	if (fit_number(g, u->value, low, high, f))
		return true;
	for (int a = 0; v->op == SUB_ADD && a < 2; a++) {
		struct sub_use number = sub_rename_use(v, u, v->arg[a]),
			       shift = sub_rename_use(v, u, v->arg[!a]);
		if (!sub_use_has_all(&number, reduced) || !lacks_all(&shift, reduced))
			continue;
		f->number = use_copy(g, number);
		f->shift = use_copy(g, shift);
		f->shifted = true;
		return fit_number(g, number.value, low, high, f);
	}
	return false;
}

/* --- sums --- */

/* What the sum of products of a factor's number lacks. */
static struct sub_use start_sum(struct grouping *g, const struct sub_value *sum, const struct factor *x, const struct factor *w)
{
	struct sub_use start = add_integer(g, 0);
	if (x->shifted)
		start = add_operator(g, SUB_MULTIPLY, x->shift,
				     rewrite_add_reduction(g->to, SUB_SUM, w->whole, &sum->reduced));
	return start;
}

/* The sum of products of two factors, the second of which depends on weights alone. */
static sub_ref write_sum(struct grouping *g, const struct sub_value *sum, const struct factor *x,
			 const struct factor *w, const struct rewrite_parts *parts)
{
	struct sub_use start = start_sum(g, sum, x, w);
	struct sub_use total = start.value.i ? rewrite_sum_words(g->to, &sum->reduced, x->number, w->number, start, parts) : start;
	if (w->shifted && total.value.i)
		total = add_operator(
		    g, SUB_ADD, total,
		    add_operator(g, SUB_MULTIPLY, w->shift,
				 rewrite_add_reduction(g->to, SUB_SUM, x->number, &sum->reduced)));
	return rewrite_reorder(g->to, total, sum);
}

/* Tries the products of x and w in words of such parts; none if they do not fit, or do with terms that `shifts` forbids. */
static sub_ref group_products(struct grouping *g, const struct sub_value *sum, const struct sub_use *x,
			      const struct sub_use *w, const struct fit *fit, bool shifts)
{
	struct factor a, b;
	if (!find_factor(g, x, &sum->reduced, fit->low, fit->high, &a) ||
	    !find_factor(g, w, &sum->reduced, fit->least, fit->most, &b))
		return (sub_ref){0};
	if (((a.shifted || b.shifted) && !shifts) ||
	    rewrite_makes_single_words(g->to, &sum->reduced, &a.number, &b.number, &fit->parts))
		return (sub_ref){0};
	return write_sum(g, sum, &a, &b, &fit->parts);
}

/* Whether a value is a sum of integers along dimensions that a word can hold some of. */
static bool is_integer_sum(const struct grouping *g, const struct sub_value *v)
{
	return v->op == SUB_SUM && !sub_reduces_ragged(g->from, v) &&
	       sub_at(g->from, v->arg[0].value)->op == SUB_MULTIPLY;
}

/* The sums that a word is part of, at least, where it pays to make it for each run: a word of four parts takes about eight
 * operations on vectors, which lie apart. */
enum { LEAST_READERS = 16 };

/* Whether each element of both factors is part of many sums. */
static bool is_shared(const struct grouping *g, const struct sub_use *x, const struct sub_use *w)
{
	return rewrite_count_readers(g->from, x, w) >= LEAST_READERS && rewrite_count_readers(g->from, w, x) >= LEAST_READERS;
}

/* Sets both factors of a product, the a-th last. */
static void take_factors(const struct sub_value *product, const struct sub_value *sum, int a, struct sub_use *x, struct sub_use *w)
{
	*w = sub_rename_use(product, &sum->arg[0], product->arg[a]);
	*x = sub_rename_use(product, &sum->arg[0], product->arg[!a]);
}

/* Products of two factors that runs compute: without terms that are added, if they fit so, as these would be summed in each
 * run. */
static sub_ref group_matrices(struct grouping *g, const struct sub_value *sum, const struct sub_value *product)
{
	sub_ref r = {0};
	for (int shifts = 0; shifts < 2; shifts++)
		for (int a = 0; a < 2 && !r.i; a++) {
			struct sub_use x, w;
			take_factors(product, sum, a, &x, &w);
			r = is_shared(g, &x, &w) ? group_products(g, sum, &x, &w, &bytes, shifts) : r;
		}
	return r;
}

/* --- limbs --- */

static bool has_same_vars(const struct sub_use *u, const struct sub_value *v)
{
	return u->vars == v->vars && memcmp(u->var, v->var, v->vars * sizeof *v->var) == 0;
}

/* The value that sums of limbs are together, which are kept for sums that go on from them. */
static sub_ref keep_limbs(struct grouping *g, const struct sub_value *v, struct rewrite_limbs l)
{
	bool same = true;
	for (int i = 0; i < REWRITE_LIMB_SUMS; i++) {
		if (!l.sum[i].value.i)
			return (sub_ref){0};
		same &= has_same_vars(&l.sum[i], v);
	}
	if (same)
		g->limbs[v - g->from->values.at] = l;
	return rewrite_reorder(g->to, rewrite_combine_limbs(g->to, &l), v);
}

/* A sum of products of halves in limbs, where the target multiplies matrices of bytes; none if they do not fit, or it has fewer
 * columns than a matrix register. */
static sub_ref group_limbs(struct grouping *g, const struct sub_value *sum, const struct sub_use *x, const struct sub_use *w)
{
	struct factor a, b;
	if (!g->options->matrices || rewrite_count_readers(g->from, x, w) < LEAST_READERS ||
	    !find_factor(g, x, &sum->reduced, 0, UINT16_MAX, &a) ||
	    !find_factor(g, w, &sum->reduced, REWRITE_LEAST_LIMBS, REWRITE_MOST_LIMBS, &b) || b.shifted)
		return (sub_ref){0};
	return keep_limbs(g, sum, rewrite_sum_limbs(g->to, &sum->reduced, a.number, b.number, start_sum(g, sum, &a, &b)));
}

/* The value as a sum of dot products; none if it is none. */
static sub_ref group_sum(struct grouping *g, const struct sub_value *sum)
{
	sub_ref r = {0};
	const struct sub_value *product = sub_at(g->from, sum->arg[0].value);
	for (int a = 0; a < 2 && !r.i; a++) {
		struct sub_use x, w;
		take_factors(product, sum, a, &x, &w);
		if (!g->constant[w.value.i])
			continue;
		r = group_products(g, sum, &x, &w, &bytes, true);
		r = r.i ? r : group_limbs(g, sum, &x, &w);
		r = r.i ? r : group_products(g, sum, &x, &w, &halves, true);
	}
	bool constant = g->constant[product->arg[0].value.i] || g->constant[product->arg[1].value.i];
	return constant ? r : group_matrices(g, sum, product);
}

/* --- sums of sums --- */

/* The first argument of a sum of dot products, which has its variables. */
static struct sub_use start_of(const struct grouping *g, struct sub_use sum)
{
	return sub_at(g->to, sum.value)->arg[0];
}

static bool is_of_operator(const struct grouping *g, const struct sub_use *u, enum sub_op op)
{
	return sub_at(g->to, u->value)->op == op;
}

/* The same products, added to another start. */
static struct sub_use start_anew(struct grouping *g, struct sub_use sum, struct sub_use start)
{
	struct sub_value v = *sub_at(g->to, sum.value);
	v.arg[0] = start;
	return start.value.i ? rewrite_use_value(g->to, v) : none;
}

static bool is_zero(const struct grouping *g, const struct sub_use *u)
{
	const struct sub_value *v = sub_at(g->to, u->value);
	return v->op == SUB_CONST && v->constant == 0;
}

static struct sub_use add_terms(struct grouping *g, struct sub_use a, struct sub_use b)
{
	return is_zero(g, &a) ? b : add_operator(g, SUB_ADD, a, b);
}

/* A chain of sums, with a term added to what the first one starts from. */
static struct sub_use add_to_start(struct grouping *g, struct sub_use sum, struct sub_use term,
				   enum sub_op op)
{
	struct sub_use start = start_of(g, sum);
	if (is_zero(g, &term))
		return sum;
	return start_anew(g, sum,
			  is_of_operator(g, &start, op) ? add_to_start(g, start, term, op)
							: add_terms(g, start, term));
}

/* A chain of sums that goes on from another one, which starts from the terms that both did. */
static struct sub_use continue_sum(struct grouping *g, struct sub_use before, struct sub_use sum,
				   enum sub_op op)
{
	struct sub_use start = start_of(g, sum);
	return start_anew(g, sum,
			  is_of_operator(g, &start, op) ? continue_sum(g, before, start, op)
							: add_to_start(g, before, start, op));
}

/* Whether nothing else needs argument a of a value, which has its variables. */
static bool is_own(const struct grouping *g, const struct sub_value *v, int a)
{
	return g->uses[v->arg[a].value.i] == 1 && sub_reads_as_is(g->from, v, a);
}

/* Whether argument a of a value is a sum of dot products that nothing else needs, and has its variables. */
static bool is_own_sum(const struct grouping *g, const struct sub_value *v, int a)
{
	return is_own(g, v, a) && sub_class_of(sub_at(g->to, g->now[v->arg[a].value.i])->op) == SUB_CONTRACTION;
}

/* Two sums of dot products as one that goes on from the other; none if they are not. */
static sub_ref join_sums(struct grouping *g, const struct sub_value *v)
{
	struct sub_use a = use_copy(g, v->arg[0]), b = use_copy(g, v->arg[1]);
	enum sub_op op = sub_at(g->to, a.value)->op;
	if (!is_own_sum(g, v, 0) || !is_own_sum(g, v, 1) || !is_of_operator(g, &b, op))
		return (sub_ref){0};
	return continue_sum(g, a, b, op).value;
}

/* The sums of limbs that argument a of a value is, which nothing else needs; NULL if it is none. */
static const struct rewrite_limbs *own_limbs(const struct grouping *g, const struct sub_value *v, int a)
{
	const struct rewrite_limbs *l = &g->limbs[v->arg[a].value.i];
	return is_own(g, v, a) && l->sum[REWRITE_HIGH_HIGH].value.i ? l : NULL;
}

/* Two sums of products of limbs as one.  Each of the four sums goes on from that of the other one, so that all are put together once;
 * but where only one of the two needs a state, that one goes on from what the other is as a whole, which is computed, and stored, ahead
 * of the recursion. */
static sub_ref join_limbs(struct grouping *g, const struct sub_value *v)
{
	const struct rewrite_limbs *a = own_limbs(g, v, 0), *b = own_limbs(g, v, 1);
	bool late[2] = {g->unhoistable[v->arg[0].value.i], g->unhoistable[v->arg[1].value.i]};
	if (!a || !b)
		return (sub_ref){0};
	struct rewrite_limbs joined = late[0] ? *a : *b;
	if (late[0] != late[1])
		joined.sum[REWRITE_LOW_LOW] = add_to_start(g, joined.sum[REWRITE_LOW_LOW], use_copy(g, v->arg[late[0]]), SUB_ACCUMULATE4);
	else
		for (int i = 0; i < REWRITE_LIMB_SUMS; i++)
			joined.sum[i] = continue_sum(g, a->sum[i], b->sum[i], SUB_ACCUMULATE4);
	return keep_limbs(g, v, joined);
}

/* --- all values --- */

static sub_ref group_value(struct grouping *g, uint32_t i)
{
	const struct sub_value *v = &g->from->values.at[i];
	if (g->constant[i] || v->dtype != DTYPE_I32)
		return (sub_ref){0};
	if (v->op == SUB_ADD) {
		sub_ref joined = join_sums(g, v);
		return joined.i ? joined : join_limbs(g, v);
	}
	return is_integer_sum(g, v) ? group_sum(g, v) : (sub_ref){0};
}

static sub_ref copy_value(struct grouping *g, uint32_t i)
{
	struct sub_value v = g->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = g->now[v.arg[a].value.i];
	return sub_add(g->to, v, NULL);
}

void rewrite_group(struct sub_program *to, const struct sub_program *from,
		   const struct rewrite_options *options, struct rewrite_trace *trace)
{
	(void)trace;
	sub_copy_declarations(to, from);
	struct grouping g = {.to = to,
			     .from = from,
			     .options = options,
			     .constant = sub_find_constants(from),
			     .unhoistable = sub_find_unhoistable(from),
			     .uses = sub_count_uses(from, to->arena),
			     .now = ARENA_ARRAY(to->arena, sub_ref, from->values.n),
			     .limbs = ARENA_ARRAY(to->arena, struct rewrite_limbs, from->values.n)};
	for (uint32_t i = 1; i < from->values.n; i++) {
		g.now[i] = group_value(&g, i);
		if (!g.now[i].i)
			g.now[i] = copy_value(&g, i);
	}
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], g.now));
}
