/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Quantisation: computes sums of products with weights in integers of 8 or 16 bits, or of two bytes (i8x3), in f16, or in bf16 (bf16_products.c), as
 * the model or --precision says.
 *
 *     %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]
 *                                                  ->
 *     scale[j] = smax (max_k abs W[j,k]) / MOST, (sum_k abs W[j,k]) / LIMIT                      at binding
 *     Q[j,k]   = cast i32 round (W[j,k] / scale[j]), not beyond MOST                             at binding
 *     q[n,k]   = cast i32 round (x[n,k] * (LEVELS / bound))
 *     %2[n,j]  = fma (cast f32 sum_k q[n,k] * Q[j,k]), scale[j] / LEVELS, b[j]
 *
 * The bound of x is that of its range, as 1 is of a tanh; where none is known the product stays in f32, unless a
 * calibration has observed one: then it is a parameter, which comes with the weights, and q is limited to LEVELS.  W is
 * multiplied by the bound, so that products of a chain, which become one sum of integers, have one scale.  The bound
 * of a sum over edges is that of its terms for each edge of the row: then x is divided by their number, q is
 * limited to LEVELS, and the sum is multiplied by the number again.
 *
 * In i8x3 both factors are 256 high + low, of two signed bytes, and three of the four products of these are added, each in a sum of
 * its own, so that LEVELS is as large as MOST whatever the number of products:
 *
 *     H[n,j], M[n,j] = sum_k high q[n,k] * high Q[j,k], sum_k high q[n,k] * low Q[j,k] + sum_k low q[n,k] * high Q[j,k]
 *     %2[n,j]  = fma (fma (cast f32 H[n,j]), 256, cast f32 M[n,j]), scale[j] / (LEVELS / 256), b[j]
 *
 * In f16 the scale is (sum_k abs W[j,k]) / LIMIT, with the LIMIT of f16 (products.c), so that no sum overflows and few weights are
 * denormal; W / scale and x / bound are rounded to f16 instead, and words of two of them are summed by accumulate_f16.
 *
 * Sigmoids and tanhs that such sums go into become those of fewer places (choose_functions.c).
 *
 * LEVELS and LIMIT depend on the number of products alone, and are chosen so that no sum of integers reaches
 * 2^31; in i8x3, where they are the same for all, a chain has at most 65535 products (products.c).  So a sum is exact, in
 * whatever order and by whatever instructions it is added.  Grouping (group_words.c), which runs next, makes words of the
 * integers. */
#include "rewrite/expressions.h"
#include "rewrite/products.h"
#include "rewrite/word_products.h"

#include <math.h>

struct quantising {
	struct sub_program *to;
	const struct sub_program *from;
	struct rewrite_products products;
	const enum sub_op *op; /* by value of `from`, as the next one: see rewrite_choose_functions */
	sub_ref *now;
};

/* --- values --- */

static const struct sub_use none;

static struct sub_use add_unary(struct quantising *q, enum sub_op op, struct sub_use a)
{
	return rewrite_add_operator(q->to, op, a, none, none);
}

static struct sub_use add_binary(struct quantising *q, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return rewrite_add_operator(q->to, op, a, b, none);
}

static struct sub_use add_number(struct quantising *q, double x)
{
	return rewrite_add_constant(q->to, DTYPE_F32, (float)x);
}

static struct sub_use add_product(struct quantising *q, struct sub_use a, double factor)
{
	return factor == 1 ? a : add_binary(q, SUB_MULTIPLY, a, add_number(q, factor));
}

/* The nearest integer, the even one of two; 0 of a NaN. */
static struct sub_use add_rounded(struct quantising *q, struct sub_use x)
{
	return rewrite_add_cast(q->to, DTYPE_I32, add_unary(q, SUB_ROUND, x));
}

static struct sub_use add_clamped(struct quantising *q, struct sub_use i, double most)
{
	i = add_binary(q, SUB_SMAX, i, rewrite_add_constant(q->to, DTYPE_I32, -most));
	return add_binary(q, SUB_SMIN, i, rewrite_add_constant(q->to, DTYPE_I32, most));
}

static struct sub_use use_copy(const struct quantising *q, struct sub_use u)
{
	u.value = q->now[u.value.i];
	return u;
}

/* --- bounds --- */

/* The parameter of a calibrated bound, a number. */
static struct sub_use add_bound(struct quantising *q, const struct rewrite_product *p)
{
	struct str name = str_in(q->to->arena);
	rewrite_put_bound_name(&name, p->bound_of);
	size_t i = q->from->params.n;
	while (i < q->to->params.n && strcmp(q->to->params.at[i].name, str_text(&name)) != 0)
		i++;
	if (i == q->to->params.n)
		vec_push(q->to->arena, &q->to->params, (struct sub_tensor){.name = str_text(&name), .dtype = DTYPE_F32});
	return rewrite_use_value(q->to, (struct sub_value){.op = SUB_PARAM, .which = (int)i});
}

/* --- scales --- */

/* The weights of a link, multiplied by the bound of what they multiply. */
static struct sub_use add_weights(struct quantising *q, const struct rewrite_product *p)
{
	struct sub_use w = use_copy(q, p->w);
	return p->calibrated ? add_binary(q, SUB_MULTIPLY, w, add_bound(q, p)) : add_product(q, w, p->bound.most);
}

/* Reduces the magnitudes of all weights of each sum. */
static struct sub_use add_reduced(struct quantising *q, const struct rewrite_product_chain *c, enum sub_op reduction,
				  enum sub_op join)
{
	struct sub_use all = none;
	for (int i = 0; i < c->links; i++) {
		struct sub_use size = add_unary(q, SUB_ABS, add_weights(q, c->product[i]));
		struct sub_use one = rewrite_add_reduction(q->to, reduction, size, &c->sum[i]->reduced);
		all = i ? add_binary(q, join, all, one) : one;
	}
	return all;
}

static bool is_in(const struct rewrite_product_chain *c, enum precision precision)
{
	return c->product[0]->precision == precision;
}

/* What an integer, or 1 in f16, of the weights of a sum stands for. */
static struct sub_use add_scale(struct quantising *q, const struct rewrite_product_chain *c)
{
	if (is_in(c, PRECISION_F16)) {
		struct sub_use all = add_binary(q, SUB_DIVIDE, add_reduced(q, c, SUB_SUM, SUB_ADD), add_number(q, c->limit));
		return add_binary(q, SUB_SMAX, all, add_number(q, 0x1p-126)); /* not 0, by which weights are divided */
	}
	struct sub_use largest = add_reduced(q, c, SUB_MAX, SUB_SMAX);
	struct sub_use scale = add_binary(q, SUB_DIVIDE, largest, add_number(q, c->most));
	if (isinf(c->limit))
		return scale;
	struct sub_use total = add_reduced(q, c, SUB_SUM, SUB_ADD);
	return add_binary(q, SUB_SMAX, scale, add_binary(q, SUB_DIVIDE, total, add_number(q, c->limit)));
}

/* --- sums --- */

/* The number of edges of a row, for each index of a value's last dimension: so it is computed where what
 * reads it is. */
static struct sub_use add_edge_count(struct quantising *q, struct sub_use like)
{
	if (!like.vars)
		return none;
	struct sub_vars edge = sub_one_var(q->to->edge);
	struct sub_value one = {.op = SUB_ASSIGN,
				.args = 1,
				.arg = {add_number(q, 1)},
				.vars = 3,
				.var = {q->to->node, q->to->edge, like.var[like.vars - 1]}};
	return rewrite_add_reduction(q->to, SUB_SUM, rewrite_use_value(q->to, one), &edge);
}

/* The number by which what a link multiplies becomes integers. */
static struct sub_use add_steps(struct quantising *q, const struct rewrite_product *p, double levels)
{
	return p->calibrated ? add_binary(q, SUB_DIVIDE, add_number(q, levels), add_bound(q, p))
			     : add_number(q, levels / p->bound.most);
}

/* What a link multiplies, in steps, and for each edge where its bound is. */
static struct sub_use add_scaled(struct quantising *q, const struct rewrite_product *p, double levels)
{
	struct sub_use x = use_copy(q, p->x);
	if (p->calibrated || levels != p->bound.most)
		x = add_binary(q, SUB_MULTIPLY, x, add_steps(q, p, levels));
	return p->bound.per_edge ? add_binary(q, SUB_DIVIDE, x, add_edge_count(q, x)) : x;
}

/* Whether a bound does not keep what a link multiplies in its range. */
static bool is_loose(const struct rewrite_product *p)
{
	return p->bound.per_edge || p->calibrated;
}

/* The integers of what a link multiplies. */
static struct sub_use add_factors(struct quantising *q, const struct rewrite_product *p, double levels)
{
	struct sub_use x = add_rounded(q, add_scaled(q, p, levels));
	return is_loose(p) ? add_clamped(q, x, levels) : x;
}

/* The bits of the f16 of what a link multiplies, within 1. */
static struct sub_use add_half_factors(struct quantising *q, const struct rewrite_product *p)
{
	struct sub_use x = add_scaled(q, p, 1);
	if (is_loose(p)) {
		x = add_binary(q, SUB_SMAX, x, add_number(q, -1));
		x = add_binary(q, SUB_SMIN, x, add_number(q, 1));
	}
	return add_unary(q, SUB_F16_BITS, x);
}

/* What an integer of the sum stands for, or what so many do. */
static struct sub_use add_unit(struct quantising *q, const struct rewrite_product_chain *c, struct sub_use scale, double integers)
{
	struct sub_use unit = add_binary(q, SUB_DIVIDE, scale, add_number(q, c->levels / integers));
	if (!c->per_edge)
		return unit;
	return add_binary(q, SUB_MULTIPLY, unit, add_edge_count(q, scale));
}

/* The integers that a link multiplies. */
struct integers {
	struct sub_use w, x;
};

static struct integers add_integers(struct quantising *q, const struct rewrite_product_chain *c, int link, struct sub_use scale)
{
	struct integers i;
	i.w = add_rounded(q, add_binary(q, SUB_DIVIDE, add_weights(q, c->product[link]), scale));
	i.x = add_factors(q, c->product[link], c->levels);
	i.w = add_clamped(q, i.w, c->most);
	return i;
}

/* Adds the products of a link to those before it, if there are any. */
static struct sub_use add_link(struct quantising *q, const struct rewrite_product_chain *c, int link, struct sub_use before,
			       struct sub_use w, struct sub_use x)
{
	struct sub_use one = rewrite_add_reduction(q->to, SUB_SUM, add_binary(q, SUB_MULTIPLY, w, x), &c->sum[link]->reduced);
	return before.value.i ? add_binary(q, SUB_ADD, before, one) : one;
}

/* The sum of integers of a chain, from the first link on. */
static struct sub_use add_sum(struct quantising *q, const struct rewrite_product_chain *c, struct sub_use scale)
{
	struct sub_use total = none;
	for (int i = c->links; i-- > 0;) {
		struct integers both = add_integers(q, c, i, scale);
		total = add_link(q, c, i, total, both.w, both.x);
	}
	return rewrite_add_cast(q->to, DTYPE_F32, total);
}

/* --- sums of three products --- */

enum { BYTE = 256 };

/* i = 256 high + low, with signed bytes. */
struct two_bytes {
	struct sub_use high, low;
};

static struct two_bytes add_bytes(struct quantising *q, struct sub_use i)
{
	struct two_bytes both;
	both.high = add_unary(q, SUB_DROP8, add_binary(q, SUB_ADD, i, rewrite_add_constant(q->to, DTYPE_I32, BYTE / 2.0)));
	both.low = add_unary(q, SUB_LOW8, i);
	return both;
}

/* The sum of integers of a chain without the products of both low bytes, divided by 256.  The sums of products of a high and
 * a low byte are behind nops: joined to one (group_words.c), the second would go on from the first, in a loop of its own. */
static struct sub_use add_sum_of_bytes(struct quantising *q, const struct rewrite_product_chain *c, struct sub_use scale)
{
	struct sub_use high = none, left = none, right = none;
	for (int i = c->links; i-- > 0;) {
		struct integers both = add_integers(q, c, i, scale);
		struct two_bytes w = add_bytes(q, both.w), x = add_bytes(q, both.x);
		high = add_link(q, c, i, high, w.high, x.high);
		left = add_link(q, c, i, left, w.low, x.high);
		right = add_link(q, c, i, right, w.high, x.low);
	}
	left = add_unary(q, SUB_NOP, left);
	right = add_unary(q, SUB_NOP, right);
	struct sub_use mixed = rewrite_add_cast(q->to, DTYPE_F32, add_binary(q, SUB_ADD, left, right));
	high = rewrite_add_cast(q->to, DTYPE_F32, high);
	return rewrite_add_operator(q->to, SUB_FMA, high, add_number(q, BYTE), mixed);
}

/* --- sums of halves --- */

static const struct rewrite_parts halves = {2, SUB_APPEND16, SUB_ACCUMULATE_F16, true};

/* The sum in f16 of a chain, from the first link on; none if it has too many variables. */
static struct sub_use add_half_sum(struct quantising *q, const struct rewrite_product_chain *c, struct sub_use scale)
{
	struct sub_use total = add_number(q, 0);
	for (int i = c->links; i-- > 0 && total.value.i;) {
		const struct rewrite_product *p = c->product[i];
		struct sub_use w = add_unary(q, SUB_F16_BITS, add_binary(q, SUB_DIVIDE, add_weights(q, p), scale));
		total = rewrite_sum_words(q->to, &c->sum[i]->reduced, add_half_factors(q, p), w, total, &halves);
	}
	return total;
}

/* The value in bf16; none if it has too many variables. */
static sub_ref write_bf16(struct quantising *q, uint32_t i)
{
	const struct rewrite_product *p = &q->products.at[i];
	const struct sub_value *sum = &q->from->values.at[i];
	return rewrite_add_bf16_product(q->to, p->precision, sum, use_copy(q, sum->arg[0]), use_copy(q, p->x), use_copy(q, p->w));
}

/* The sum of a chain in whatever it is computed in; none if it has too many variables. */
static struct sub_use add_any_sum(struct quantising *q, const struct rewrite_product_chain *c, struct sub_use scale)
{
	if (is_in(c, PRECISION_F16))
		return add_half_sum(q, c, scale);
	return is_in(c, PRECISION_I8X3) ? add_sum_of_bytes(q, c, scale) : add_sum(q, c, scale);
}

/* The value in integers, or in f16; none if it has too many variables. */
static sub_ref write_chain(struct quantising *q, uint32_t last)
{
	struct rewrite_product_chain c = rewrite_find_chain(&q->products, last);
	const struct sub_value *first = c.sum[c.links - 1];
	struct sub_use scale = add_scale(q, &c);
	struct sub_use sum = add_any_sum(q, &c, scale);
	if (!sum.value.i)
		return (sub_ref){0};
	struct sub_use unit = add_unit(q, &c, scale, is_in(&c, PRECISION_I8X3) ? BYTE : 1);
	struct sub_use all = rewrite_add_operator(q->to, SUB_FMA, sum, unit, use_copy(q, first->arg[0]));
	return rewrite_reorder(q->to, all, c.sum[0]);
}

/* --- all values --- */

static sub_ref copy_value(struct quantising *q, uint32_t i)
{
	struct sub_value v = q->from->values.at[i];
	v.op = q->op[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = q->now[v.arg[a].value.i];
	return sub_add(q->to, v, NULL);
}

/* An absorbed value is written only if those that go on from it cannot be. */
static sub_ref write_value(struct quantising *q, uint32_t i)
{
	struct rewrite_product *p = &q->products.at[i];
	uint32_t start = q->from->values.at[i].arg[0].value.i;
	sub_ref r = {0};
	if (p->refusal == REWRITE_QUANTISED)
		r = rewrite_is_bf16(p->precision) ? write_bf16(q, i) : write_chain(q, i);
	if (r.i)
		return r;
	if (p->links)
		q->now[start] = write_value(q, start);
	if (p->refusal == REWRITE_QUANTISED)
		p->refusal = REWRITE_NO_SHAPE;
	return copy_value(q, i);
}

/* --- notes --- */

static void add_note(struct quantising *q, struct rewrite_trace *trace, const struct rewrite_product *p)
{
	struct str s = str_in(q->to->arena);
	bool quantised = p->refusal == REWRITE_QUANTISED;
	str_printf(&s, "products %s are computed in %s", p->name, precision_traits_of(quantised ? p->precision : PRECISION_F32)->spelling);
	if (!quantised)
		str_printf(&s, ": %s", rewrite_refusal_text(p->refusal));
	else if (p->precision == PRECISION_BF16X3)
		str_puts(&s, ", both factors as sums of two bf16");
	else if (rewrite_is_bf16(p->precision))
		str_puts(&s, ", both factors rounded");
	else if (p->calibrated)
		str_puts(&s, " of factors within a bound that comes with the weights");
	else /* of integers, and of f16 */
		str_printf(&s, " of factors within %g%s", p->bound.most, p->bound.per_edge ? " for each edge" : "");
	vec_push(q->to->arena, &trace->notes, str_text(&s));
}

/* Counts the functions that become one of fewer places. */
static void add_function_note(struct quantising *q, struct rewrite_trace *trace, enum sub_op op)
{
	struct str s = str_in(q->to->arena);
	int n = 0;
	for (uint32_t i = 1; i < q->from->values.n; i++)
		n += q->products.uses[i] && q->op[i] == op;
	str_printf(&s, "%d of the functions that such products go into %s %s, within %g of the exact one",
		   n, n == 1 ? "is" : "are", sub_spelling(op), rewrite_function_error(op));
	if (n)
		vec_push(q->to->arena, &trace->notes, str_text(&s));
}

static void add_notes(struct quantising *q, struct rewrite_trace *trace)
{
	for (uint32_t i = 1; i < q->from->values.n; i++)
		if (q->products.at[i].refusal != REWRITE_NO_WEIGHTS)
			add_note(q, trace, &q->products.at[i]);
	for (enum sub_op op = 0; op < SUB_OPS; op++)
		if (rewrite_function_error(op) > 0)
			add_function_note(q, trace, op);
}

void rewrite_quantise(struct sub_program *to, const struct sub_program *from,
		      const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct quantising q = {.to = to,
			       .from = from,
			       .products = rewrite_find_products(from, options, to->arena),
			       .now = ARENA_ARRAY(to->arena, sub_ref, from->values.n)};
	sub_copy_declarations(to, from);
	q.op = rewrite_choose_functions(&q.products, options, to->arena);
	for (uint32_t i = 1; i < from->values.n; i++)
		if (!q.products.at[i].absorbed)
			q.now[i] = write_value(&q, i);
	if (trace)
		add_notes(&q, trace);
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], q.now));
}
