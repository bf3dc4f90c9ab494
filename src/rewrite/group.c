/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Grouping: writes sums of products of narrow integers as dot products of words.
 *
 *     %1[n,k,j] = multiply x[n,k], W[k,j]              %1[n,q] = append8 ... x[n,4*q+1], x[n,4*q]
 *     %2[n,j] = sum_k %1[n,k,j]                  ->    %2[q,j] = append8 ... W[4*q+1,j], W[4*q,j]
 *                                                      %3[n,j] = accumulate4_q 0, %1[n,q], %2[q,j]
 *
 * A word is an i32 of four bytes or two halves, neighbours along what is reduced; those past the end are 0.
 * It is possible where one factor depends on weights alone, so that its words are made when they are bound,
 * and where ranges say that the factors fit: into an unsigned and a signed byte, into halves otherwise.  A
 * factor may be a number of a byte plus what does not depend on what is reduced (a zero point).  As integers
 * wrap, and so add up in any order,
 *
 *     sum (u + a)(s + b)  =  sum u s  +  a sum (s + b)  +  b sum u
 *
 * holds to the bit, where `a sum (s + b)` mostly depends on weights alone.  For the same reason one of two
 * sums that are added goes on from the other, as the loops of both then keep one result. */
#include "rewrite/engine.h"
#include "rewrite/operators.h"

struct grouping {
	struct sub_program *to;
	const struct sub_program *from;
	const struct rewrite_range *range; /* NULL = nothing asked for it yet */
	const struct rewrite_options *options;
	const bool *constant;
	const int *uses; /* see sub_count_uses */
	sub_ref *now;	 /* its copy */
};

/* The parts of a word. */
struct parts {
	int count;
	double low, high;   /* of the activations' */
	double least, most; /* of the weights' */
	enum sub_op append, accumulate;
};

static const struct parts bytes = {4, 0, UINT8_MAX, INT8_MIN, INT8_MAX, SUB_APPEND8, SUB_ACCUMULATE4};
static const struct parts halves = {2,	       INT16_MIN,    INT16_MAX,	     INT16_MIN,
				    INT16_MAX, SUB_APPEND16, SUB_ACCUMULATE2};

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

/* A variable of an extent that is not in a list. */
static int find_free_var(struct grouping *g, int64_t extent, const int *var, int vars)
{
	for (int ordinal = 0;; ordinal++) {
		int v = sub_dim(g->to, extent, ordinal), i = 0;
		while (i < vars && var[i] != v)
			i++;
		if (i == vars)
			return v;
	}
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
	f->number = add_operator(g, SUB_ADD, f->number, add_integer(g, -by));
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

/* --- words --- */

/* The parts of a number's words that stand at `place` in each, along its dimension d, whose variable becomes
 * `word`. */
static struct sub_use take_part(struct grouping *g, sub_ref number, int d, int word,
				const struct parts *parts, int place)
{
	const struct sub_value *x = sub_at(g->to, number);
	int64_t extent = g->to->vars.at[x->var[d]].extent;
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN,
			      .args = 1,
			      .arg = {sub_as_is(g->to, number)},
			      .vars = x->vars,
			      .map = map,
			      .fills = extent % parts->count != 0};
	for (int i = 0; i < x->vars; i++) {
		v.var[i] = i == d ? word : x->var[i];
		map[i] = (struct sub_map){.function = SUB_AFFINE,
					  .var = v.var[i],
					  .scale = i == d ? parts->count : 1,
					  .offset = i == d ? place : 0};
	}
	return sub_as_is(g->to, sub_add(g->to, v, NULL));
}

/* The words of a number along the variable k, under its names with `q` instead of k. */
static struct sub_use add_words(struct grouping *g, struct sub_use number, int k, int q,
				const struct parts *parts)
{
	const struct sub_value x = *sub_at(g->to, number.value);
	int d = 0;
	while (number.var[d] != k)
		d++;
	int word = find_free_var(g, g->to->vars.at[q].extent, x.var, x.vars);
	struct sub_use words = take_part(g, number.value, d, word, parts, parts->count - 1);
	for (int place = parts->count - 1; place-- > 0;)
		words =
		    add_operator(g, parts->append, words, take_part(g, number.value, d, word, parts, place));
	number.value = words.value;
	number.var[d] = q;
	return number;
}

/* --- sums --- */

/* The longest variable that is reduced. */
static int choose_reduced(const struct grouping *g, const struct sub_vars *reduced)
{
	int k = reduced->var[0];
	for (int i = 1; i < reduced->n; i++)
		if (g->from->vars.at[reduced->var[i]].extent > g->from->vars.at[k].extent)
			k = reduced->var[i];
	return k;
}

static struct sub_use sum_words(struct grouping *g, const struct sub_value *sum, const struct factor *x,
				const struct factor *w, struct sub_use start, const struct parts *parts)
{
	int k = choose_reduced(g, &sum->reduced), names[3 * SUB_MAX_VARS], n = 0;
	for (int i = 0; i < x->number.vars; i++)
		names[n++] = x->number.var[i];
	for (int i = 0; i < w->number.vars; i++)
		names[n++] = w->number.var[i];
	int q = find_free_var(g, (g->from->vars.at[k].extent + parts->count - 1) / parts->count, names, n);
	struct sub_value v = {.op = parts->accumulate, .reduced = sum->reduced};
	v.reduced.var[sub_position_in(&v.reduced, k)] = q;
	v.arg[0] = start;
	v.arg[1] = add_words(g, x->number, k, q, parts);
	v.arg[2] = add_words(g, w->number, k, q, parts);
	return rewrite_use_value(g->to, v);
}

/* The sum of products of two factors, the second of which depends on weights alone. */
static sub_ref write_sum(struct grouping *g, const struct sub_value *sum, const struct factor *x,
			 const struct factor *w, const struct parts *parts)
{
	struct sub_use start = add_integer(g, 0);
	if (x->shifted)
		start = add_operator(g, SUB_MULTIPLY, x->shift,
				     rewrite_add_reduction(g->to, SUB_SUM, w->whole, &sum->reduced));
	struct sub_use total = start.value.i ? sum_words(g, sum, x, w, start, parts) : start;
	if (w->shifted && total.value.i)
		total = add_operator(
		    g, SUB_ADD, total,
		    add_operator(g, SUB_MULTIPLY, w->shift,
				 rewrite_add_reduction(g->to, SUB_SUM, x->number, &sum->reduced)));
	return rewrite_reorder(g->to, total, sum);
}

/* Tries the products of x and w in words of such parts; none if they do not fit. */
static sub_ref group_products(struct grouping *g, const struct sub_value *sum, const struct sub_use *x,
			      const struct sub_use *w, const struct parts *parts)
{
	struct factor a, b;
	if (!find_factor(g, x, &sum->reduced, parts->low, parts->high, &a) ||
	    !find_factor(g, w, &sum->reduced, parts->least, parts->most, &b))
		return (sub_ref){0};
	return write_sum(g, sum, &a, &b, parts);
}

/* Whether a value is a sum of integers along dimensions that a word can hold some of. */
static bool is_integer_sum(const struct grouping *g, const struct sub_value *v)
{
	return v->op == SUB_SUM && !sub_reduces_ragged(g->from, v) &&
	       sub_at(g->from, v->arg[0].value)->op == SUB_MULTIPLY;
}

/* The value as a sum of dot products; none if it is none. */
static sub_ref group_sum(struct grouping *g, const struct sub_value *sum)
{
	sub_ref r = {0};
	const struct sub_value *product = sub_at(g->from, sum->arg[0].value);
	for (int a = 0; a < 2 && !r.i; a++) {
		struct sub_use w = sub_rename_use(product, &sum->arg[0], product->arg[a]),
			       x = sub_rename_use(product, &sum->arg[0], product->arg[!a]);
		if (!g->constant[w.value.i])
			continue;
		r = group_products(g, sum, &x, &w, &bytes);
		r = r.i ? r : group_products(g, sum, &x, &w, &halves);
	}
	return r;
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

/* Whether argument a of a value is a sum of dot products that nothing else needs, and has its variables. */
static bool is_own_sum(const struct grouping *g, const struct sub_value *v, int a)
{
	sub_ref sum = v->arg[a].value;
	return g->uses[sum.i] == 1 && sub_reads_as_is(g->from, v, a) &&
	       sub_class_of(sub_at(g->to, g->now[sum.i])->op) == SUB_CONTRACTION;
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

/* --- all values --- */

static sub_ref group_value(struct grouping *g, uint32_t i)
{
	const struct sub_value *v = &g->from->values.at[i];
	if (g->constant[i] || v->dtype != DTYPE_I32)
		return (sub_ref){0};
	if (v->op == SUB_ADD)
		return join_sums(g, v);
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
			     .uses = sub_count_uses(from, to->arena),
			     .now = ARENA_ARRAY(to->arena, sub_ref, from->values.n)};
	for (uint32_t i = 1; i < from->values.n; i++) {
		g.now[i] = group_value(&g, i);
		if (!g.now[i].i)
			g.now[i] = copy_value(&g, i);
	}
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], g.now));
}
