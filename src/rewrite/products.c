/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/products.h"

#include "base/map.h"
#include "rewrite/weight_elements.h"

#include <math.h>

enum {
	LEAST_TERMS = 16, /* a shorter sum takes less than making its integers */
	LEAST_SUMS = 16	  /* so does one whose integers so few sums read */
};

static const char *const refusals[] = {
    [REWRITE_NO_SHAPE] = "the weights, or what they multiply, lack an index of the sum",
    [REWRITE_TOO_SMALL] = "fewer than 16 terms, or 16 sums of the same factors",
    [REWRITE_TOO_LONG] = "sums of more than 65535 products of bytes may not fit in 32 bits",
    [REWRITE_SEVERAL] = "sums over several indices, or over edges, are not computed by blocks, as in f16, bf16x1 and bf16x3",
    [REWRITE_NO_BOUND] = "no bound is known of what they multiply",
    [REWRITE_UNFIT_BOUND] = "bounds that come with the weights hold for other options: --math, --rules or --assume",
    [REWRITE_KEPT] = "the weights say so",
    [REWRITE_IN_F32] = "the model says so",
    [REWRITE_UNASKED] = "neither the model nor --precision asks for another precision",
    [REWRITE_CONTRADICTED] =
	"they are products with other parameters at once, of which something else is said",
};

const char *rewrite_refusal_text(enum rewrite_refusal refusal)
{
	return refusals[refusal];
}

bool rewrite_observes_f32(const struct rewrite_options *o)
{
	return o->observing && o->precision == PRECISION_F32;
}

void rewrite_put_bound_name(struct str *s, const char *product)
{
	str_printf(s, "bound(%s)", product);
}

/* The most products of a chain in i8x3: for each its sums of mixed bytes add two products of signed bytes, of at most 127 * 128 each, and
 * must stay below 2^31. */
static const double most_i8x3_terms = 65535;

/* What is said of the precision of products with a value. */
struct claim {
	enum precision precision;
	bool any;	   /* it is computed of a parameter */
	bool declared;	   /* by the model, else by the options */
	bool contradicted; /* different things are said of its parameters */
};

struct finding {
	struct rewrite_products all;
	struct arena *arena;
	const struct rewrite_options *options;
	const struct rewrite_bound *bound; /* by value */
	const struct claim *claim;	   /* by value */
	const bool *unhoistable;	   /* by value: see sub_find_unhoistable */
	const char **source;		   /* by value: what it is computed of, see name_sources */
	struct map *pairs; /* by the two values that are multiplied: the first product of them */
	struct map *names; /* the largest number that was tried behind each name */
};

/* --- judging --- */

/* Counts the iterations of loops over the variables of a use that others lack. */
static double count_elements(const struct sub_program *p, const struct sub_use *u,
			     const struct sub_vars *without, const struct sub_use *other)
{
	double n = 1;
	for (int i = 0; i < u->vars; i++)
		if (sub_position_in(without, u->var[i]) < 0 && !sub_use_has(other, u->var[i]))
			n *= p->vars.at[u->var[i]].extent;
	return n;
}

/* A bound of 12 binary digits, where it is so near to what is known that integers keep to their range: ranges
 * are a little wider than what they describe. */
static struct rewrite_bound find_bound(const struct finding *f, sub_ref x)
{
	struct rewrite_bound bound = f->bound[x.i];
	int exponent;
	double digits = frexp(bound.most, &exponent),
	       nearest = ldexp(nearbyint(ldexp(digits, 12)), exponent - 12);
	if (!(bound.most > 0x1p-64 && bound.most < 0x1p64))
		bound.most = INFINITY;
	else if (bound.most <= nearest * (1 + 0x1p-17))
		bound.most = nearest;
	return bound;
}

/* Joins what the arguments of each value say of the precision of products with it. */
static struct claim *find_claims(const struct sub_program *p, enum precision usual, struct arena *a)
{
	struct claim *claim = ARENA_ARRAY(a, struct claim, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		const struct sub_tensor *t = v->op == SUB_PARAM ? &p->params.at[v->which] : NULL;
		struct claim *c = &claim[i];
		*c = (struct claim){t && t->declared ? t->products : usual, t, t && t->declared, false};
		for (int k = 0; k < v->args; k++) {
			const struct claim *of = &claim[v->arg[k].value.i];
			c->contradicted |=
			    of->contradicted || (c->any && of->any && c->precision != of->precision);
			c->precision = of->any ? of->precision : c->precision;
			c->declared |= of->declared;
			c->any |= of->any;
		}
	}
	return claim;
}

/* Whether products without a bound are looked at, to observe one: then all are computed in f32. */
static bool is_watching(const struct finding *f)
{
	return rewrite_observes_f32(f->options);
}

static enum rewrite_refusal judge_shape(const struct finding *f, const struct sub_value *v,
					const struct rewrite_product *p)
{
	if (f->claim[p->w.value.i].contradicted)
		return REWRITE_CONTRADICTED;
	if (!sub_use_has_all(&p->w, &v->reduced) || !sub_use_has_all(&p->x, &v->reduced))
		return REWRITE_NO_SHAPE;
	if (p->precision == PRECISION_F32 && (p->declared || !is_watching(f)))
		return p->declared ? REWRITE_IN_F32 : REWRITE_UNASKED;
	if (p->precision == PRECISION_I8X3 && p->terms > most_i8x3_terms)
		return REWRITE_TOO_LONG;
	bool blocks = p->precision == PRECISION_F16 || p->precision == PRECISION_BF16X1 || p->precision == PRECISION_BF16X3;
	if (blocks && (v->reduced.n > 1 || sub_reduces_ragged(f->all.p, v)))
		return REWRITE_SEVERAL;
	return !p->declared && (p->terms < LEAST_TERMS || p->sums < LEAST_SUMS) ? REWRITE_TOO_SMALL
										: REWRITE_QUANTISED;
}

/* --- names --- */

/* By value: the parameter, state or input that it is computed of; of several, the first that is no constant.
 */
static const char **name_sources(const struct sub_program *p, const bool *constant, struct arena *arena)
{
	const char **source = ARENA_ARRAY(arena, const char *, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		source[i] = v->op == SUB_PARAM	  ? p->params.at[v->which].name
			    : v->op == SUB_STATE  ? p->states.at[v->which].name
			    : v->op == SUB_VECTOR ? p->inputs.at[v->which].name
						  : NULL;
		for (int k = 0; k < 2 * v->args && !source[i]; k++)
			if (constant[v->arg[k % v->args].value.i] == k / v->args)
				source[i] = source[v->arg[k % v->args].value.i];
	}
	return source;
}

/* A name that no product has yet: the names of what it is computed of, and a number if they are not the first. */
static const char *make_free_name(const struct finding *f, const struct rewrite_product *p)
{
	const char *w = f->source[p->w.value.i], *x = f->source[p->x.value.i];
	struct str base = str_in(f->arena);
	str_printf(&base, "%s*%s", w ? w : "numbers", x ? x : "numbers");
	if (map_add(f->names, str_text(&base), base.n, 1))
		return str_text(&base);
	for (int k = map_get(f->names, str_text(&base), base.n) + 1;; k++) {
		struct str s = str_in(f->arena);
		str_printf(&s, "%s#%d", str_text(&base), k);
		*map_at(f->names, str_text(&base), base.n) = k;
		if (map_add(f->names, str_text(&s), s.n, 1))
			return str_text(&s);
	}
}

/* The same products twice, as with other starts, have one name. */
static const char *make_name(const struct finding *f, uint32_t i, const struct rewrite_product *p)
{
	const uint32_t pair[] = {p->w.value.i, p->x.value.i};
	int same = map_get(f->pairs, (const char *)pair, sizeof pair);
	if (same >= 0)
		return f->all.at[same].name;
	map_add(f->pairs, (const char *)pair, sizeof pair, (int)i);
	return make_free_name(f, p);
}

bool rewrite_is_bf16(enum precision p)
{
	return p == PRECISION_BF16 || p == PRECISION_BF16X1 || p == PRECISION_BF16X3;
}

/* --- finding --- */

static const struct rewrite_calibrated *find_calibrated(const struct rewrite_calibration *c, const char *name)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (strcmp(c->product[i].name, name) == 0)
			return &c->product[i];
	return NULL;
}

/* The first calibrated product that multiplies the same value, or this one. */
static const char *find_bound_name(const struct finding *f, uint32_t before, const struct rewrite_product *p)
{
	for (uint32_t i = 1; i < before; i++)
		if (f->all.at[i].calibrated && f->all.at[i].x.value.i == p->x.value.i)
			return f->all.at[i].bound_of;
	return p->name;
}

/* Judges a product of a legal shape by its bound, and by what is known of a calibration. */
static void judge_bound(const struct finding *f, uint32_t i, struct rewrite_product *p)
{
	const struct rewrite_calibrated *c = find_calibrated(f->options->calibration, p->name);
	if (c && c->kept) {
		p->refusal = REWRITE_KEPT;
	} else if (rewrite_is_bf16(p->precision)) {
		return;
	} else if (isinf(p->bound.most) && (c || is_watching(f))) {
		p->bound = (struct rewrite_bound){1, false};
		p->calibrated = true;
		p->bound_of = find_bound_name(f, i, p);
	} else if (isinf(p->bound.most)) {
		p->refusal = f->options->calibration && f->options->calibration->unfit ? REWRITE_UNFIT_BOUND
										       : REWRITE_NO_BOUND;
	}
}

static struct rewrite_product find_product(const struct finding *f, uint32_t i)
{
	const struct sub_value *v = &f->all.p->values.at[i];
	const bool *constant = f->all.constant;
	struct rewrite_product p = {.refusal = REWRITE_NO_WEIGHTS};
	if (v->op != SUB_ACCUMULATE || constant[v->arg[1].value.i] == constant[v->arg[2].value.i])
		return p;
	int weights = constant[v->arg[1].value.i] ? 1 : 2;
	p.w = v->arg[weights];
	p.x = v->arg[3 - weights];
	p.terms = sub_reduced_extent(f->all.p, v);
	p.sums = count_elements(f->all.p, &p.w, &v->reduced, &p.x);
	p.bound = find_bound(f, p.x.value);
	p.name = make_name(f, i, &p);
	p.precision = f->claim[p.w.value.i].precision;
	p.declared = f->claim[p.w.value.i].declared;
	p.refusal = judge_shape(f, v, &p);
	if (p.refusal == REWRITE_QUANTISED)
		judge_bound(f, i, &p);
	return p;
}

/* The terms of a product and of those that it would be one sum with. */
static double count_terms(const struct finding *f, const struct sub_value *v, const struct rewrite_product *p)
{
	double terms = p->terms;
	for (int links = f->all.at[v->arg[0].value.i].links; links >= 0; links--) {
		uint32_t before = v->arg[0].value.i;
		terms += f->all.at[before].terms;
		v = &f->all.p->values.at[before];
	}
	return terms;
}

/* Whether products are sums of integers together.  Those of three products of bytes are so where both are computed ahead of
 * the recursion or neither is: what is computed ahead is stored as one f32, not as three integers. */
static bool are_one_sum(const struct finding *f, const struct sub_value *v, const struct rewrite_product *p)
{
	if (p->precision != PRECISION_I8X3)
		return true;
	return f->unhoistable[f->all.at[v->arg[0].value.i].x.value.i] == f->unhoistable[p->x.value.i] &&
	       count_terms(f, v, p) <= most_i8x3_terms;
}

/* Whether the sum of a product goes on from that of another one, which nothing else reads, and is one sum of integers
 * with it. */
static bool is_linked(const struct finding *f, const struct sub_value *v, const struct rewrite_product *p)
{
	sub_ref start = v->arg[0].value;
	const struct rewrite_product *before = &f->all.at[start.i];
	return p->refusal == REWRITE_QUANTISED && before->refusal == REWRITE_QUANTISED && !rewrite_is_bf16(p->precision) &&
	       before->links + 1 < REWRITE_MOST_LINKS && p->bound.per_edge == before->bound.per_edge &&
	       p->precision == before->precision && f->all.uses[start.i] == 1 &&
	       are_one_sum(f, v, p) && sub_reads_as_is(f->all.p, v, 0);
}

struct rewrite_products rewrite_find_products(const struct sub_program *p,
					      const struct rewrite_options *options, struct arena *a)
{
	struct finding f = {.all = {.p = p,
				    .constant = sub_find_constants(p),
				    .uses = sub_count_uses(p, a),
				    .at = ARENA_ARRAY(a, struct rewrite_product, p->values.n)},
			    .arena = a,
			    .options = options,
			    .bound = rewrite_find_bounds(p, options, a),
			    .claim = find_claims(p, options->precision, a),
			    .unhoistable = sub_find_unhoistable(p),
			    .pairs = &(struct map){.arena = a},
			    .names = &(struct map){.arena = a}};
	f.source = name_sources(p, f.all.constant, a);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		if (!f.all.uses[i])
			continue;
		f.all.at[i] = find_product(&f, i);
		if (!v->args || !is_linked(&f, v, &f.all.at[i]))
			continue;
		f.all.at[i].links = f.all.at[v->arg[0].value.i].links + 1;
		f.all.at[v->arg[0].value.i].absorbed = true;
	}
	return f.all;
}

/* A quarter of the largest f16, so that no rounding of a sum of products of factors within 1 comes near it. */
static const double f16_limit = 16384;

/* The largest integer of weights: each byte of it is at most that of a signed byte, so that integers of 16 bits are pairs of
 * signed bytes, 256 h + l, whatever their sign. */
static double find_most(enum precision precision)
{
	double most = 0;
	for (int i = 0; i < precision_traits_of(precision)->bytes; i++)
		most = most * (UINT8_MAX + 1) + INT8_MAX;
	return most;
}

struct rewrite_product_chain rewrite_find_chain(const struct rewrite_products *all, uint32_t last)
{
	const enum precision precision = all->at[last].precision;
	struct rewrite_product_chain c = {.links = all->at[last].links + 1, .most = find_most(precision)};
	double terms = 0;
	for (int i = 0; i < c.links; i++) {
		c.sum[i] = &all->p->values.at[last];
		c.product[i] = &all->at[last];
		terms += c.product[i]->terms;
		c.per_edge = c.product[i]->bound.per_edge;
		last = c.sum[i]->arg[0].value.i;
	}
	if (precision == PRECISION_I8X3) {
		c.levels = c.most;
		c.limit = INFINITY;
		return c;
	}
	if (precision == PRECISION_F16) {
		c.levels = 1;
		c.most = INFINITY;
		c.limit = f16_limit;
		return c;
	}
	c.levels = fmin(c.most, floor(sqrt(0x1p32 / terms)));
	c.limit = (INT32_MAX - c.levels * terms / 2) / c.levels / (1 + (terms + 8) * 0x1p-23);
	if (c.most * terms <= c.limit)
		c.limit = INFINITY;
	return c;
}

/* --- what the model declares --- */

/* By parameter: whether a value is computed of it. */
static const bool *find_params(const struct sub_program *p, sub_ref r, struct arena *a)
{
	bool *reads = ARENA_ARRAY(a, bool, p->params.n + 1);
	rewrite_mark_params(p, r, reads, a);
	return reads;
}

const uint32_t *rewrite_find_sources(const struct sub_program *p, struct arena *a)
{
	uint32_t *source = ARENA_ARRAY(a, uint32_t, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		source[i] = sub_class_of(v->op) == SUB_SOURCE && v->op != SUB_CONST ? i : 0;
		for (int k = 0; k < v->args && !source[i]; k++)
			source[i] = source[v->arg[k].value.i];
	}
	return source;
}

/* The name of the first source of what a product multiplies; NULL if its bound is not why it is refused. */
static const char *name_factor(const struct rewrite_products *all, const struct rewrite_product *p,
			       struct arena *a)
{
	struct str s = str_in(a);
	uint32_t source = rewrite_find_sources(all->p, a)[p->x.value.i];
	sub_print_name(all->p, (sub_ref){source ? source : p->x.value.i}, &s);
	return p->refusal == REWRITE_NO_BOUND ? str_text(&s) : NULL;
}

static const char *const hints[] = {
    [REWRITE_NO_SHAPE] = "leave out 'products', or multiply something that is computed of inputs or states by it, as W @ x does",
    [REWRITE_TOO_LONG] = "leave out 'products', or declare i8, or i16, which has fewer steps the longer a sum is",
    [REWRITE_SEVERAL] = "leave out 'products', or declare bf16 or integers",
    [REWRITE_NO_BOUND] =
	"leave out 'products', or bound what is multiplied: tanh, sigmoid, minimum and maximum do, and 'within' an input",
    [REWRITE_UNFIT_BOUND] = "leave out 'products', or quantise the weights again with these options: espalier quantise",
    [REWRITE_KEPT] = "leave out 'products', or do not keep them in f32: --keep",
    [REWRITE_CONTRADICTED] = "leave out 'products', or say the same of all parameters that are one factor"
};

/* Whether a product with the parameter is refused, or there is none. */
static bool is_refused(const struct rewrite_products *all, int param, struct arena *a,
		       struct rewrite_refused *r)
{
	bool any = false;
	for (uint32_t i = 1; i < all->p->values.n; i++) {
		const struct rewrite_product *p = &all->at[i];
		if (p->refusal == REWRITE_NO_WEIGHTS || !find_params(all->p, p->w.value, a)[param])
			continue;
		any = true;
		*r = (struct rewrite_refused){param, refusals[p->refusal], name_factor(all, p, a), hints[p->refusal]};
		if (p->refusal != REWRITE_QUANTISED)
			return true;
	}
	*r = (struct rewrite_refused){param, "there is no sum of products of floats with it", NULL,
				       hints[REWRITE_NO_SHAPE]};
	return !any;
}

bool rewrite_find_refused(const struct sub_program *from, const struct rewrite_options *options,
			  struct arena *a, struct rewrite_refused *r)
{
	struct rewrite_products all = rewrite_find_products(from, options, a);
	for (size_t i = 0; i < from->params.n; i++) {
		const struct sub_tensor *t = &from->params.at[i];
		if (t->declared && t->products != PRECISION_F32 && is_refused(&all, (int)i, a, r))
			return true;
	}
	return false;
}

/* --- for bounds of errors --- */

/* The largest product of the lower bytes of two integers, which is left out. */
static const double most_lower_product = 128 * 128;

/* Two factors with 8 binary digits each, of which the last is rounded. */
static const double bf16_error = 2 * 0x1p-8 + 0x1p-16;

/* Of two factors with 8 digits and 8 of the rest each: the last digit of both is rounded, and the product of the rests is left out. */
static const double bf16x3_error = 3 * 0x1p-16 + 0x1p-23;

/* The largest error of a sum of so many products in f16, of their magnitudes: of both factors, of each sum in the chain of a block,
 * and of the sum of the two chains; and what denormal numbers lose, which a row's scale keeps below 2^-20. */
static double find_f16_error(double terms)
{
	double words = ceil(terms / 2), blocks = ceil(words / SUB_MOST_BLOCK);
	return expm1((ceil(words / blocks) + 3) * log1p(0x1p-11)) + 0x1p-20;
}

/* Factors beyond a calibrated bound are cut off, so that nothing bounds how far the sum is from that in f32.
 */
static struct rewrite_integer_link describe_link(const struct rewrite_product_chain *c, int i)
{
	const struct rewrite_product *p = c->product[i];
	return (struct rewrite_integer_link){c->sum[i], p->w, p->calibrated ? INFINITY : p->bound.most};
}

static struct rewrite_integers describe_chain(const struct rewrite_products *all, uint32_t last,
					      struct arena *a)
{
	struct rewrite_product_chain c = rewrite_find_chain(all, last);
	enum precision p = all->at[last].precision;
	struct rewrite_integers d = {.links = c.links,
				     .link = ARENA_ARRAY(a, struct rewrite_integer_link, c.links),
				     .levels = c.levels,
				     .most = c.most,
				     .limit = c.limit,
				     .relative = p == PRECISION_BF16X3 ? bf16x3_error : rewrite_is_bf16(p) ? bf16_error : 0,
				     .dropped = p == PRECISION_I8X3 ? most_lower_product / c.levels : 0,
				     .per_edge = c.per_edge};
	bool halves = p == PRECISION_F16;
	if (halves)
		d.levels = d.limit = INFINITY;
	for (int i = 0; i < c.links; i++) {
		d.link[i] = describe_link(&c, i);
		if (halves)
			d.levels = fmin(d.levels, 1 / (2 * find_f16_error(c.product[i]->terms)));
		d.terms += c.product[i]->terms;
	}
	return d;
}

const struct rewrite_integers *rewrite_find_integers(const struct sub_program *p,
						     const struct rewrite_options *options, struct arena *a)
{
	struct rewrite_products products = rewrite_find_products(p, options, a);
	struct rewrite_integers *all = ARENA_ARRAY(a, struct rewrite_integers, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++)
		if (products.at[i].refusal == REWRITE_QUANTISED && !products.at[i].absorbed)
			all[i] = describe_chain(&products, i, a);
	return all;
}

/* --- the list --- */

static bool is_listed(const struct rewrite_listed_products *list, const char *name)
{
	for (size_t i = 0; i < list->all.n; i++)
		if (strcmp(list->all.at[i].name, name) == 0)
			return true;
	return false;
}

void rewrite_list_products(const struct sub_program *p, const struct rewrite_options *options,
			   struct rewrite_listed_products *list)
{
	struct rewrite_products found = rewrite_find_products(p, options, p->arena);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct rewrite_product *one = &found.at[i];
		bool quantised = one->refusal == REWRITE_QUANTISED;
		if (one->refusal == REWRITE_NO_WEIGHTS || is_listed(list, one->name))
			continue;
		vec_push(p->arena, &list->all,
			 (struct rewrite_listed){.name = one->name,
						 .reads = find_params(p, one->w.value, p->arena),
						 .params = p->params.n,
						 .why = quantised ? NULL : refusals[one->refusal],
						 .precision = quantised && !rewrite_observes_f32(options) ? one->precision : PRECISION_F32,
						 .calibrated = one->calibrated,
						 .bound_of = one->bound_of,
						 .per_edge = one->bound.per_edge,
						 .bound = one->bound.most,
						 .terms = one->terms,
						 .sums = one->sums,
						 .columns = rewrite_count_columns(p, one)});
	}
}
