/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds what weights can be divided by to be the integers of the products that read them.
 *
 * The weights of a chain of products have one scale for each row (quantise.c):
 *
 *     scale[j] = max_{l,k} abs W_l[j,k] * bound_l / MOST
 *
 * so element W_l[j,k] is the integer round (W_l[j,k] / (scale[j] / bound_l)), and the largest of the row is MOST or -MOST.
 * Weights that are these integers times scale[j] / bound_l have the same integers again when they are bound: the scale that
 * is found then differs by some roundings of 2^-24, and no integer is as large as 2^7.  This holds in i8, where the scale is that of
 * the largest weight alone (an infinite LIMIT), and where an element is of one chain, through data movement at most. */
#include "rewrite/weight_elements.h"

#include <math.h>

struct scaling {
	const struct sub_program *p;
	struct arena *arena;
	const struct rewrite_options *options;
	const float *const *params;
	float **scale; /* by parameter and element, 0 = none yet */
	bool *wide;    /* by parameter: it stays as it is */
};

/* --- chains --- */

static float find_bound(const struct scaling *s, const struct rewrite_product *p)
{
	const struct rewrite_calibration *c = s->options->calibration;
	for (size_t i = 0; p->calibrated && i < c->n; i++)
		if (strcmp(c->product[i].name, p->bound_of) == 0)
			return c->product[i].bound;
	return (float)p->bound.most;
}

/* Whether the weights of all links are parameters, perhaps moved, and share the rows of the sum. */
static bool can_scale(const struct scaling *s, const struct rewrite_product_chain *c, float *largest)
{
	int64_t rows = rewrite_count_weight_rows(s->p, c->sum[0], &c->product[0]->w);
	for (int l = 0; l < c->links; l++) {
		const struct sub_use *w = &c->product[l]->w;
		float bound = find_bound(s, c->product[l]);
		struct rewrite_weight at;
		if (rewrite_count_weight_rows(s->p, c->sum[l], w) != rows)
			return false;
		for (int64_t i = 0, n = rewrite_count_weights(s->p, w); i < n; i++) {
			if (!rewrite_visit_weight(s->p, c->sum[l], w, i, &at))
				return false;
			largest[at.row] = fmaxf(largest[at.row], fabsf(s->params[at.param][at.number] * bound));
		}
	}
	return true;
}

/* The scales of elements.  A parameter with one that has another scale already stays wide. */
static void set_scales(const struct scaling *s, const struct rewrite_product_chain *c, const float *largest)
{
	for (int l = 0; l < c->links; l++) {
		const struct sub_use *w = &c->product[l]->w;
		float bound = find_bound(s, c->product[l]);
		struct rewrite_weight at;
		for (int64_t i = 0, n = rewrite_count_weights(s->p, w); i < n; i++) {
			if (!rewrite_visit_weight(s->p, c->sum[l], w, i, &at))
				continue;
			float row = largest[at.row] / (float)c->most / bound, scale = row > 0 ? row : 1;
			float *to = &s->scale[at.param][at.number];
			s->wide[at.param] |= (*to != 0 && *to != scale) || scale < 0x1p-120f || isinf(scale);
			*to = scale;
		}
	}
}

static void scale_chain(const struct scaling *s, const struct rewrite_product_chain *c)
{
	float *largest = ARENA_ARRAY(s->arena, float, rewrite_count_weight_rows(s->p, c->sum[0], &c->product[0]->w));
	if (isinf(c->limit) && c->product[0]->precision == PRECISION_I8 && can_scale(s, c, largest))
		set_scales(s, c, largest);
	else
		for (int l = 0; l < c->links; l++)
			rewrite_mark_params(s->p, c->product[l]->w.value, s->wide, s->arena);
}

float **rewrite_find_weight_scales(const struct sub_program *p, const struct rewrite_options *options,
				   const float *const *params, struct arena *a)
{
	struct rewrite_products all = rewrite_find_products(p, options, a);
	struct scaling s = {.p = p,
			    .arena = a,
			    .options = options,
			    .params = params,
			    .scale = ARENA_ARRAY(a, float *, p->params.n + 1),
			    .wide = ARENA_ARRAY(a, bool, p->params.n + 1)};
	for (size_t i = 0; i < p->params.n; i++) {
		s.scale[i] = ARENA_ARRAY(a, float, rewrite_count_param(&p->params.at[i]));
		s.wide[i] = p->params.at[i].dtype != DTYPE_F32;
	}
	rewrite_mark_other_params(&all, s.wide, a);
	for (uint32_t i = 1; i < p->values.n; i++)
		if (all.at[i].refusal == REWRITE_QUANTISED && !all.at[i].absorbed) {
			struct rewrite_product_chain c = rewrite_find_chain(&all, i);
			scale_chain(&s, &c);
		}
	for (size_t i = 0; i < p->params.n; i++)
		for (int64_t e = 0; s.scale[i] && e < rewrite_count_param(&p->params.at[i]); e++)
			if (s.wide[i] || s.scale[i][e] == 0)
				s.scale[i] = NULL;
	return s.scale;
}
