/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Quantisation: computes sums of products with weights in integers of 8 or 16 bits, as --precision says.
 *
 *     %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]
 *                                                  ->
 *     scale[j] = smax (max_k abs W[j,k]) / MOST, (sum_k abs W[j,k]) / LIMIT                      at binding
 *     Q[j,k]   = cast i32 round (W[j,k] / scale[j]), not beyond MOST                             at binding
 *     q[n,k]   = cast i32 round (x[n,k] * (LEVELS / bound))
 *     %2[n,j]  = fma (cast f32 sum_k q[n,k] * Q[j,k]), scale[j] / LEVELS, b[j]
 *
 * The bound of x is that of its range, as 1 is of a tanh; where none is known the product stays in f32.  W is
 * multiplied by it, so that products of a chain, which become one sum of integers, have one scale.  The bound
 * of a sum over edges is that of its terms for each edge of the row: then x is divided by their number, q is
 * limited to LEVELS, and the sum is multiplied by the number again.
 *
 * LEVELS and LIMIT depend on the number of products alone, and are chosen so that no sum of integers reaches
 * 2^31: so it is exact, in whatever order and by whatever instructions it is added.  Grouping (group.c),
 * which runs next, makes words of the integers. */
#include "rewrite/engine.h"
#include "rewrite/operators.h"

#include <math.h>

enum {
	LEAST_TERMS = 16,   /* a shorter sum takes less than making its integers */
	LEAST_COLUMNS = 16, /* so does one whose integers so few sums read */
	MOST_LINKS = 16	    /* of a chain that is one sum */
};

/* Why a product is computed in f32. */
enum refusal { NO_WEIGHTS /* of others, and of what no body computes */, QUANTISED, NO_SHAPE, TOO_SMALL, NO_BOUND };

static const char *const refusals[] = {
    [NO_SHAPE] = "the weights, or what they multiply, lack an index of the sum",
    [TOO_SMALL] = "fewer than 16 terms, or 16 sums of the same factors",
    [NO_BOUND] = "no bound is known of what they multiply",
};

/* The products of one accumulation, with the names of its variables. */
struct product {
	enum refusal refusal;
	struct sub_use x, w;
	double terms;
	struct rewrite_bound bound; /* of the magnitudes of x */
	int links;     /* the products before it in one sum of integers, which it goes on from */
	bool absorbed; /* another one goes on from it */
};

/* The products that are one sum of integers, the last one first, and what all of them share. */
struct chain {
	int links;
	const struct sub_value *sum[MOST_LINKS];
	const struct product *product[MOST_LINKS];
	double levels, most, limit; /* of factors, of weights, of the magnitudes of a sum's weights */
	bool per_edge;		    /* the bounds of the factors are those of each edge */
};

struct quantising {
	struct sub_program *to;
	const struct sub_program *from;
	double most;			   /* the largest integer of the precision */
	const struct rewrite_bound *bound; /* by value of `from`, like the rest */
	const bool *constant;
	const int *uses; /* see sub_count_uses */
	struct product *products;
	sub_ref *now;
};

/* --- which products --- */

/* Counts the iterations of loops over the variables of a use that others lack. */
static double count_elements(const struct quantising *q, const struct sub_use *u,
			     const struct sub_vars *without, const struct sub_use *other)
{
	double n = 1;
	for (int i = 0; i < u->vars; i++)
		if (sub_position_in(without, u->var[i]) < 0 && !(other && sub_use_has(other, u->var[i])))
			n *= q->from->vars.at[u->var[i]].extent;
	return n;
}

/* A bound of 12 binary digits, where it is so near to what is known that integers keep to their range: ranges
 * are a little wider than what they describe. */
static struct rewrite_bound find_bound(const struct quantising *q, sub_ref x)
{
	struct rewrite_bound bound = q->bound[x.i];
	int exponent;
	double digits = frexp(bound.most, &exponent), nearest = ldexp(nearbyint(ldexp(digits, 12)), exponent - 12);
	if (!(bound.most > 0x1p-64 && bound.most < 0x1p64))
		bound.most = INFINITY;
	else if (bound.most <= nearest * (1 + 0x1p-17))
		bound.most = nearest;
	return bound;
}

static enum refusal judge_product(const struct quantising *q, const struct sub_value *v,
				  const struct product *p)
{
	double columns = count_elements(q, &p->w, &v->reduced, &p->x);
	if (!sub_use_has_all(&p->w, &v->reduced) || !sub_use_has_all(&p->x, &v->reduced))
		return NO_SHAPE;
	if (p->terms < LEAST_TERMS || columns < LEAST_COLUMNS)
		return TOO_SMALL;
	return isinf(p->bound.most) ? NO_BOUND : QUANTISED;
}

static struct product find_product(const struct quantising *q, const struct sub_value *v)
{
	struct product p = {.refusal = NO_WEIGHTS};
	if (v->op != SUB_ACCUMULATE || q->constant[v->arg[1].value.i] == q->constant[v->arg[2].value.i])
		return p;
	int weights = q->constant[v->arg[1].value.i] ? 1 : 2;
	p.w = v->arg[weights];
	p.x = v->arg[3 - weights];
	p.terms = sub_reduced_extent(q->from, v);
	p.bound = find_bound(q, p.x.value);
	p.refusal = judge_product(q, v, &p);
	return p;
}

/* Whether the sum of a product goes on from that of another one, which nothing else reads. */
static bool is_linked(const struct quantising *q, const struct sub_value *v, const struct product *p)
{
	sub_ref start = v->arg[0].value;
	const struct product *before = &q->products[start.i];
	return p->refusal == QUANTISED && before->refusal == QUANTISED && before->links + 1 < MOST_LINKS &&
	       p->bound.per_edge == before->bound.per_edge && q->uses[start.i] == 1 &&
	       sub_reads_as_is(q->from, v, 0);
}

static void find_products(struct quantising *q)
{
	for (uint32_t i = 1; i < q->from->values.n; i++) {
		const struct sub_value *v = &q->from->values.at[i];
		struct product *p = &q->products[i];
		if (!q->uses[i])
			continue;
		*p = find_product(q, v);
		if (!v->args || !is_linked(q, v, p))
			continue;
		p->links = q->products[v->arg[0].value.i].links + 1;
		q->products[v->arg[0].value.i].absorbed = true;
	}
}

static struct chain find_chain(const struct quantising *q, uint32_t last)
{
	struct chain c = {.links = q->products[last].links + 1, .most = q->most};
	double terms = 0;
	for (int i = 0; i < c.links; i++) {
		c.sum[i] = &q->from->values.at[last];
		c.product[i] = &q->products[last];
		terms += c.product[i]->terms;
		c.per_edge = c.product[i]->bound.per_edge;
		last = c.sum[i]->arg[0].value.i;
	}
	c.levels = fmin(q->most, floor(sqrt(0x1p32 / terms)));
	c.limit = (INT32_MAX - c.levels * terms / 2) / c.levels / (1 + (terms + 8) * 0x1p-23);
	if (c.most * terms <= c.limit)
		c.limit = INFINITY;
	return c;
}

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

/* --- scales --- */

/* The weights of a link, multiplied by the bound of what they multiply. */
static struct sub_use add_weights(struct quantising *q, const struct product *p)
{
	return add_product(q, use_copy(q, p->w), p->bound.most);
}

/* Reduces the magnitudes of all weights of each sum. */
static struct sub_use add_reduced(struct quantising *q, const struct chain *c, enum sub_op reduction,
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

/* What an integer of the weights of a sum stands for. */
static struct sub_use add_scale(struct quantising *q, const struct chain *c)
{
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

/* The integers of what a link multiplies. */
static struct sub_use add_factors(struct quantising *q, const struct product *p, double levels)
{
	struct sub_use x = add_product(q, use_copy(q, p->x), levels / p->bound.most);
	if (!p->bound.per_edge)
		return add_rounded(q, x);
	x = add_binary(q, SUB_DIVIDE, x, add_edge_count(q, x));
	return add_clamped(q, add_rounded(q, x), levels);
}

/* What an integer of the sum stands for. */
static struct sub_use add_unit(struct quantising *q, const struct chain *c, struct sub_use scale)
{
	struct sub_use unit = add_binary(q, SUB_DIVIDE, scale, add_number(q, c->levels));
	if (!c->per_edge)
		return unit;
	return add_binary(q, SUB_MULTIPLY, unit, add_edge_count(q, scale));
}

/* The sum of integers of a chain, from the first link on. */
static struct sub_use add_sum(struct quantising *q, const struct chain *c, struct sub_use scale)
{
	struct sub_use total = none;
	for (int i = c->links; i-- > 0;) {
		const struct product *p = c->product[i];
		struct sub_use w = add_rounded(q, add_binary(q, SUB_DIVIDE, add_weights(q, p), scale));
		struct sub_use x = add_factors(q, p, c->levels);
		w = add_clamped(q, w, c->most);
		struct sub_use one = rewrite_add_reduction(q->to, SUB_SUM, add_binary(q, SUB_MULTIPLY, w, x),
							   &c->sum[i]->reduced);
		total = i == c->links - 1 ? one : add_binary(q, SUB_ADD, total, one);
	}
	return total;
}

/* The value in integers; none if it has too many variables. */
static sub_ref write_chain(struct quantising *q, uint32_t last)
{
	struct chain c = find_chain(q, last);
	const struct sub_value *first = c.sum[c.links - 1];
	struct sub_use scale = add_scale(q, &c);
	struct sub_use sum = rewrite_add_cast(q->to, DTYPE_F32, add_sum(q, &c, scale));
	struct sub_use unit = add_unit(q, &c, scale);
	struct sub_use all = rewrite_add_operator(q->to, SUB_FMA, sum, unit, use_copy(q, first->arg[0]));
	return rewrite_reorder(q->to, all, c.sum[0]);
}

/* --- all values --- */

static sub_ref copy_value(struct quantising *q, uint32_t i)
{
	struct sub_value v = q->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = q->now[v.arg[a].value.i];
	return sub_add(q->to, v, NULL);
}

/* An absorbed value is written only if those that go on from it cannot be. */
static sub_ref write_value(struct quantising *q, uint32_t i)
{
	struct product *p = &q->products[i];
	uint32_t start = q->from->values.at[i].arg[0].value.i;
	sub_ref r = p->refusal == QUANTISED ? write_chain(q, i) : (sub_ref){0};
	if (r.i)
		return r;
	if (p->links)
		q->now[start] = write_value(q, start);
	if (p->refusal == QUANTISED)
		p->refusal = NO_SHAPE;
	return copy_value(q, i);
}

/* --- notes --- */

/* By value: the first parameter that it is computed of; NULL = none. */
static const char **find_params(const struct sub_program *p, struct arena *a)
{
	const char **name = ARENA_ARRAY(a, const char *, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		name[i] = v->op == SUB_PARAM ? p->params.at[v->which].name : NULL;
		for (int k = 0; k < v->args && !name[i]; k++)
			name[i] = name[v->arg[k].value.i];
	}
	return name;
}

static void add_note(struct quantising *q, struct rewrite_trace *trace, const struct product *p,
		     const char *weights, const char *precision)
{
	struct str s = str_in(q->to->arena);
	str_printf(&s, "products with %s are computed in %s", weights ? weights : "numbers",
		   p->refusal == QUANTISED ? precision : "f32");
	if (p->refusal != QUANTISED)
		str_printf(&s, ": %s", refusals[p->refusal]);
	else
		str_printf(&s, " of factors within %g%s", p->bound.most, p->bound.per_edge ? " for each edge" : "");
	vec_push(q->to->arena, &trace->notes, str_text(&s));
}

static void add_notes(struct quantising *q, struct rewrite_trace *trace, const char *precision)
{
	const char **weights = find_params(q->from, q->to->arena);
	for (uint32_t i = 1; i < q->from->values.n; i++)
		if (q->products[i].refusal != NO_WEIGHTS)
			add_note(q, trace, &q->products[i], weights[q->products[i].w.value.i], precision);
}

void rewrite_quantise(struct sub_program *to, const struct sub_program *from,
		      const struct rewrite_options *options, struct rewrite_trace *trace)
{
	const struct dtype_traits *precision = dtype_traits_of(options->precision);
	struct quantising q = {.to = to,
			       .from = from,
			       .most = ldexp(1, 8 * precision->bytes - 1) - 1,
			       .bound = rewrite_find_bounds(from, options, to->arena),
			       .constant = sub_find_constants(from),
			       .uses = sub_count_uses(from, to->arena),
			       .products = ARENA_ARRAY(to->arena, struct product, from->values.n),
			       .now = ARENA_ARRAY(to->arena, sub_ref, from->values.n)};
	sub_copy_declarations(to, from);
	find_products(&q);
	for (uint32_t i = 1; i < from->values.n; i++)
		if (!q.products[i].absorbed)
			q.now[i] = write_value(&q, i);
	if (trace)
		add_notes(&q, trace, precision->spelling);
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], q.now));
}
