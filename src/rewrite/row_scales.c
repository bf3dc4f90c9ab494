/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Chooses the scales of rows of weights that are kept in 8 bits and multiplied in f32 (narrow.c), by a calibration.
 *
 * For each row of a parameter, of all scales that are tried, that with the least of
 *
 *     sum_k E[x_k^2] (W[j,k] - q[j,k] * scale)^2        q[j,k] = round (W[j,k] / scale), limited to -127 .. 127
 *
 * which is the mean square of the error of the row's sum where columns of x are not correlated: only the diagonal of the second
 * moments of x is observed.  Scales are the largest magnitude of the row times a factor of at most 1, over 127.  With a factor of
 * 1 it is the scale that narrow.c would find; with a smaller one the largest weights are clipped, and the others rounded finer.
 *
 * The largest integer of a row is 127 or -127 in either case.  So narrow.c finds these scales again, but for a rounding, in
 * weights that are integers times scales, and the same integers. */
#include "rewrite/weight_elements.h"

#include <math.h>
#include <string.h>

/* The factors that are tried: 1, and so many below it down to the least one, at equal distances. */
static const struct {
	int below;
	float least;
} clipping = {32, 0.5f};

enum { MOST = 127 };

/* What is known of a parameter. */
struct row_param {
	int axis;	    /* that a row consists of, as in narrow.c; -1 = no product was seen */
	double *importance; /* by element: sums of squares of what it multiplies, over all products */
	float *plain, *scale; /* by element: of the largest magnitude, and chosen */
};

struct row_scaling {
	const struct sub_program *p;
	const struct rewrite_products *all;
	struct arena *arena;
	const float *const *params;
	struct rewrite_row_errors *errors;
	size_t n;
	struct row_param *param;
	bool *wide; /* by parameter: it stays as it is */
};

/* --- columns --- */

/* Whether a variable of what is multiplied, behind the row, is one of the weights. */
static bool is_column(const struct rewrite_product *p, int d)
{
	return sub_use_has(&p->w, p->x.var[d]);
}

int64_t rewrite_count_columns(const struct sub_program *p, const struct rewrite_product *product)
{
	int64_t n = 1;
	for (int d = 1; d < product->x.vars; d++)
		n *= is_column(product, d) ? p->vars.at[product->x.var[d]].extent : 1;
	return n;
}

/* The number of the column of x that an element of the weights multiplies. */
static int64_t find_column(const struct sub_program *p, const struct rewrite_product *product, const struct rewrite_weight *at)
{
	int64_t column = 0;
	for (int d = 1; d < product->x.vars; d++)
		for (int i = 0; is_column(product, d) && i < product->w.vars; i++)
			if (product->w.var[i] == product->x.var[d])
				column = column * p->vars.at[product->x.var[d]].extent + at->element.at[i];
	return column;
}

/* --- products --- */

static struct rewrite_row_errors *find_errors(const struct row_scaling *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->errors[i].name, name) == 0)
			return &s->errors[i];
	return NULL;
}

static bool is_finite(const struct row_scaling *s, const struct rewrite_product *p, const double *squares)
{
	for (int64_t i = 0, n = rewrite_count_columns(s->p, p); i < n; i++)
		if (!isfinite(squares[i]))
			return false;
	return true;
}

/* What was observed of a product whose weights can have such scales; NULL = they cannot. */
static struct rewrite_row_errors *find_observed(const struct row_scaling *s, const struct rewrite_product *p)
{
	struct rewrite_row_errors *e = p->name ? find_errors(s, p->name) : NULL;
	bool fits = e && e->squares && e->columns == rewrite_count_columns(s->p, p) && p->refusal == REWRITE_QUANTISED && !p->declared;
	return fits && is_finite(s, p, e->squares) ? e : NULL;
}

/* Adds what a product says of the elements of its weights; marks the parameters of one that nothing is known of. */
static void weigh_product(const struct row_scaling *s, uint32_t value)
{
	const struct sub_value *sum = sub_at(s->p, (sub_ref){value});
	const struct rewrite_product *p = &s->all->at[value];
	const struct rewrite_row_errors *e = find_observed(s, p);
	struct rewrite_weight at;
	for (int64_t i = 0, n = rewrite_count_weights(s->p, &p->w); i < n; i++) {
		if (!e || !rewrite_visit_weight(s->p, sum, &p->w, i, &at)) {
			rewrite_mark_params(s->p, p->w.value, s->wide, s->arena);
			return;
		}
		struct row_param *to = &s->param[at.param];
		if (to->axis < 0)
			to->axis = rewrite_find_row_axis(s->p, &p->w, &sum->reduced, s->p->params.at[at.param].rank);
		to->importance[at.number] += e->squares[find_column(s->p, p, &at)];
	}
}

static double square_error(double w, float read, double importance)
{
	return importance * (w - read) * (w - read);
}

static float round_weight(float w, float scale)
{
	return fminf(fmaxf(nearbyintf(w / scale), -MOST), MOST) * scale;
}

/* Adds up the errors of the sums of a product. */
static void measure_product(const struct row_scaling *s, uint32_t value)
{
	const struct sub_value *sum = sub_at(s->p, (sub_ref){value});
	const struct rewrite_product *p = &s->all->at[value];
	struct rewrite_row_errors *e = find_observed(s, p);
	struct rewrite_weight at;
	for (int64_t i = 0, n = rewrite_count_weights(s->p, &p->w); e && i < n; i++) {
		if (!rewrite_visit_weight(s->p, sum, &p->w, i, &at) || s->wide[at.param])
			return;
		const struct row_param *of = &s->param[at.param];
		float w = s->params[at.param][at.number];
		double squares = e->squares[find_column(s->p, p, &at)];
		e->reference += squares * w * w;
		e->plain += square_error(w, round_weight(w, of->plain[at.number]), squares);
		e->chosen += square_error(w, round_weight(w, of->scale[at.number]), squares);
	}
}

/* --- rows --- */

/* The elements of a row: `n` of them, `stride` apart. */
struct row {
	const float *w;
	const double *importance;
	int64_t n, stride;
};

static float find_row_scale(const struct row *r, float factor)
{
	float largest = 0;
	for (int64_t k = 0; k < r->n; k++)
		largest = fmaxf(largest, fabsf(r->w[k * r->stride]));
	return largest > 0 ? factor * largest / MOST : 1;
}

static double find_row_error(const struct row *r, float scale)
{
	double error = 0;
	for (int64_t k = 0; k < r->n; k++) {
		float w = r->w[k * r->stride];
		error += square_error(w, round_weight(w, scale), r->importance[k * r->stride]);
	}
	return error;
}

static float choose_row_scale(const struct row *r)
{
	float best = find_row_scale(r, 1);
	double least = find_row_error(r, best);
	for (int i = 1; i <= clipping.below; i++) {
		float scale = find_row_scale(r, 1 - (1 - clipping.least) * (float)i / (float)clipping.below);
		double error = find_row_error(r, scale);
		best = error < least ? scale : best;
		least = fmin(error, least);
	}
	return best;
}

static void choose_scales(const struct row_scaling *s, size_t param)
{
	const struct sub_tensor *t = &s->p->params.at[param];
	struct row_param *to = &s->param[param];
	int64_t n = rewrite_count_param(t), extent = t->shape[to->axis], inner = 1;
	for (int d = to->axis + 1; d < t->rank; d++)
		inner *= t->shape[d];
	for (int64_t i = 0; i < n; i++) {
		int64_t first = i - i / inner % extent * inner;
		struct row r = {s->params[param] + first, to->importance + first, extent, inner};
		to->plain[i] = i == first ? find_row_scale(&r, 1) : to->plain[first];
		to->scale[i] = i == first ? choose_row_scale(&r) : to->scale[first];
		s->wide[param] |= to->scale[i] < 0x1p-120f || isinf(to->scale[i]);
	}
}

/* Whether products read all elements of a parameter, of two axes or more: others are not kept in 8 bits. */
static bool has_rows(const struct row_scaling *s, size_t param)
{
	return !s->wide[param] && s->param[param].axis >= 0 && s->p->params.at[param].rank > 1;
}

/* --- all --- */

static void describe_params(struct row_scaling *s)
{
	s->param = ARENA_ARRAY(s->arena, struct row_param, s->p->params.n + 1);
	s->wide = ARENA_ARRAY(s->arena, bool, s->p->params.n + 1);
	for (size_t i = 0; i < s->p->params.n; i++) {
		int64_t n = rewrite_count_param(&s->p->params.at[i]) + 1;
		s->wide[i] = s->p->params.at[i].dtype != DTYPE_F32;
		s->param[i] = (struct row_param){-1, ARENA_ARRAY(s->arena, double, n), ARENA_ARRAY(s->arena, float, n),
						 ARENA_ARRAY(s->arena, float, n)};
	}
}

static void for_each_product(const struct row_scaling *s, void (*take)(const struct row_scaling *, uint32_t))
{
	for (uint32_t i = 1; i < s->p->values.n; i++)
		if (s->all->at[i].refusal != REWRITE_NO_WEIGHTS)
			take(s, i);
}

float **rewrite_find_row_scales(const struct sub_program *p, const struct rewrite_options *options, const float *const *params,
				struct rewrite_row_errors *errors, size_t n, struct arena *a)
{
	struct rewrite_products all = rewrite_find_products(p, options, a);
	struct row_scaling s = {.p = p, .all = &all, .arena = a, .params = params, .errors = errors, .n = n};
	float **scale = ARENA_ARRAY(a, float *, p->params.n + 1);
	describe_params(&s);
	rewrite_mark_other_params(&all, s.wide, a);
	for_each_product(&s, weigh_product);
	for (size_t i = 0; i < p->params.n; i++) {
		s.wide[i] = !has_rows(&s, i);
		if (!s.wide[i])
			choose_scales(&s, i);
		scale[i] = s.wide[i] ? NULL : s.param[i].scale;
	}
	for_each_product(&s, measure_product);
	return scale;
}
