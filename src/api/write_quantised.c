/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes the weights of a calibration, quantised (io/quantised.h has the format). */
#include "api/calibration.h"
#include "io/quantised.h"
#include "io/write.h"

#include <math.h>
#include <string.h>

struct quantised_writing {
	const esp_calibration *calibration;
	const esp_quantise_options *options;
	const char *path;
	struct arena *arena;
	struct diags *diags;
	enum precision precision;
	struct sub_program rewritten; /* the calibration's, with this arena */
	bool *kept;		      /* by product */
	VEC(struct io_tensor) tensors;
};

static const struct io_safetensors *file_of(const struct quantised_writing *w)
{
	return w->calibration->weights->file;
}

/* --- what stays in f32 --- */

static bool is_named(const struct quantised_writing *w, size_t product, const char *name)
{
	const struct rewrite_listed *p = &w->calibration->listed.all.at[product];
	bool named = strcmp(p->name, name) == 0;
	for (size_t i = 0; !named && i < p->params; i++)
		named = p->reads[i] && strcmp(w->rewritten.params.at[i].name, name) == 0;
	return named;
}

static bool has_param(const struct quantised_writing *w, const char *name)
{
	for (size_t i = 0; i < w->rewritten.params.n; i++)
		if (strcmp(w->rewritten.params.at[i].name, name) == 0)
			return true;
	return false;
}

static bool find_kept(struct quantised_writing *w)
{
	const esp_quantise_options *o = w->options;
	size_t products = w->calibration->listed.all.n;
	w->kept = ARENA_ARRAY(w->arena, bool, products + 1);
	for (size_t k = 0; k < o->kept; k++) {
		bool any = has_param(w, o->keep[k]);
		for (size_t i = 0; i < products; i++) {
			bool named = is_named(w, i, o->keep[k]);
			w->kept[i] |= named;
			any |= named;
		}
		if (!any)
			return diag_add(w->diags, DIAG_UNKNOWN_PRODUCT, (struct diag_at){0},
					"'espalier explain --precision i8' names the products",
					"the model has neither a product nor a parameter '%.200s'", o->keep[k]);
	}
	return true;
}

/* --- bounds --- */

/* The largest magnitude that products which take one bound were seen to multiply, but for those that are kept.  They share
 * it because they multiply the same value; bodies of which each has another of them see other elements of it. */
static double find_largest(const struct quantised_writing *w, const char *bound_of)
{
	const esp_calibration *c = w->calibration;
	double largest = 0;
	for (size_t i = 0; i < c->listed.all.n; i++) {
		const struct rewrite_listed *p = &c->listed.all.at[i];
		if (!w->kept[i] && p->bound_of && strcmp(p->bound_of, bound_of) == 0)
			largest = fmax(largest, c->product[i].observed);
	}
	return largest;
}

/* What is known of products that need a bound, and of those that are kept.  One that multiplied nothing but zeros gets none,
 * nor does one whose bound leaves no room for scales, which are multiplied by it: both stay in f32. */
static const struct rewrite_calibration *list_bounds(const struct quantised_writing *w)
{
	const esp_calibration *c = w->calibration;
	struct rewrite_calibration *list = ARENA_NEW(w->arena, struct rewrite_calibration);
	struct rewrite_calibrated *product = ARENA_ARRAY(w->arena, struct rewrite_calibrated, c->listed.all.n + 1);
	for (size_t i = 0; i < c->listed.all.n; i++) {
		const struct rewrite_listed *p = &c->listed.all.at[i];
		double largest = p->bound_of ? find_largest(w, p->bound_of) : 0;
		if (w->kept[i] || (largest > IO_QUANTISED_LEAST_BOUND && largest < IO_QUANTISED_LARGEST_BOUND))
			product[list->n++] = (struct rewrite_calibrated){
			    .name = p->name, .kept = w->kept[i], .bound = (float)largest};
	}
	list->product = product;
	return list;
}

static void add_bounds(struct quantised_writing *w, const struct rewrite_calibration *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct str name = str_in(w->arena);
		rewrite_put_bound_name(&name, list->product[i].name);
		if (!list->product[i].kept)
			vec_push(w->arena, &w->tensors,
				 (struct io_tensor){
				     .name = str_text(&name), .dtype = DTYPE_F32, .values = &list->product[i].bound});
	}
}

/* --- weights --- */

static bool check_finite(const struct quantised_writing *w, const struct tensor_info *t, const float *at)
{
	for (int64_t i = 0, n = tensor_elements(t); i < n; i++)
		if (!isfinite(at[i]))
			return diag_add(w->diags, DIAG_WEIGHT_NOT_FINITE, (struct diag_at){.file = file_of(w)->path}, NULL,
					"number %lld of '%.200s' is %g", (long long)i, t->name, at[i]);
	return true;
}

/* The elements of all parameters of floats, by parameter; NULL after a diagnostic. */
static const float *const *read_params(struct quantised_writing *w)
{
	const struct sub_program *p = &w->rewritten;
	const float **params = ARENA_ARRAY(w->arena, const float *, p->params.n + 1);
	for (size_t i = 0; i < p->params.n; i++) {
		int tensor = io_safetensors_find(file_of(w), p->params.at[i].name);
		if (p->params.at[i].dtype != DTYPE_F32)
			continue;
		const struct tensor_info *t = &file_of(w)->tensor[tensor];
		float *at = ARENA_ARRAY(w->arena, float, tensor_elements(t) + 1);
		params[i] = at;
		if (!io_safetensors_read_f32(file_of(w), w->diags, tensor, 0, tensor_elements(t), at) ||
		    !check_finite(w, t, at))
			return NULL;
	}
	return params;
}

static struct io_tensor tensor_like(const struct tensor_info *t, enum dtype dtype, const void *values)
{
	struct io_tensor to = {.name = t->name, .dtype = dtype, .rank = t->rank, .values = values};
	memcpy(to.shape, t->shape, sizeof t->shape);
	return to;
}

/* As it is in the file. */
static bool add_wide(struct quantised_writing *w, int tensor)
{
	const struct tensor_info *t = &file_of(w)->tensor[tensor];
	void *at = arena_take(w->arena, tensor_elements(t) + 1, dtype_traits_of(t->dtype)->bytes);
	vec_push(w->arena, &w->tensors, tensor_like(t, t->dtype, at));
	return io_safetensors_read(file_of(w), w->diags, tensor, 0, tensor_elements(t), t->dtype, at);
}

/* Whether all scales are the same along an axis. */
static bool is_shared(const struct tensor_info *t, const float *scale, int axis)
{
	int64_t inner = 1;
	for (int d = axis + 1; d < t->rank; d++)
		inner *= t->shape[d];
	for (int64_t i = 0, n = tensor_elements(t); i < n; i++)
		if (scale[i] != scale[i - i / inner % t->shape[axis] * inner])
			return false;
	return true;
}

/* A scale for each row: along other axes they are all the same. */
static struct io_tensor make_scales(struct quantised_writing *w, const struct tensor_info *t, const float *scale)
{
	struct str name = str_in(w->arena);
	float *at = ARENA_ARRAY(w->arena, float, tensor_elements(t) + 1);
	str_printf(&name, "scale(%s)", t->name);
	struct io_tensor to = {.name = str_text(&name), .dtype = DTYPE_F32, .rank = t->rank, .values = at};
	for (int d = 0; d < t->rank; d++)
		to.shape[d] = is_shared(t, scale, d) ? 1 : t->shape[d];
	for (int64_t i = 0, n = tensor_elements(t), k = 0; i < n; i++) {
		bool first = true;
		for (int64_t d = t->rank - 1, rest = i; d >= 0; rest /= t->shape[d--])
			first &= to.shape[d] != 1 || rest % t->shape[d] == 0;
		if (first)
			at[k++] = scale[i];
	}
	return to;
}

static void add_integers(struct quantised_writing *w, const struct tensor_info *t, const float *params, const float *scale)
{
	int8_t *at = ARENA_ARRAY(w->arena, int8_t, tensor_elements(t) + 1);
	for (int64_t i = 0, n = tensor_elements(t); i < n; i++)
		at[i] = (int8_t)fminf(fmaxf(nearbyintf(params[i] / scale[i]), -IO_QUANTISED_MOST), IO_QUANTISED_MOST);
	vec_push(w->arena, &w->tensors, make_scales(w, t, scale));
	vec_push(w->arena, &w->tensors, tensor_like(t, DTYPE_I8, at));
}

/* What is known of products, for the choice of scales. */
static struct rewrite_row_errors *list_squares(const struct quantised_writing *w)
{
	const esp_calibration *c = w->calibration;
	struct rewrite_row_errors *e = ARENA_ARRAY(w->arena, struct rewrite_row_errors, c->listed.all.n + 1);
	for (size_t i = 0; i < c->listed.all.n; i++)
		e[i] = (struct rewrite_row_errors){
		    .name = c->product[i].name, .squares = c->squares[i], .columns = c->listed.all.at[i].columns};
	return e;
}

/* Chooses the scales of weights that are multiplied in f32, and tells the products how large the errors are. */
static float **choose_scales(const struct quantised_writing *w, const float *const *params)
{
	const esp_calibration *c = w->calibration;
	struct rewrite_options options = compile_rewrite_options(&c->program->options);
	struct rewrite_row_errors *e = list_squares(w);
	float **scale = rewrite_find_row_scales(&w->rewritten, &options, params, e, c->listed.all.n, w->arena);
	for (size_t i = 0; i < c->listed.all.n; i++) {
		double reference = e[i].reference;
		c->product[i].scaled = reference > 0;
		c->product[i].plain_error = reference > 0 ? sqrt(e[i].plain / reference) : 0;
		c->product[i].chosen_error = reference > 0 ? sqrt(e[i].chosen / reference) : 0;
	}
	return scale;
}

static float **find_scales(const struct quantised_writing *w, const struct rewrite_options *options, const float *const *params)
{
	if (w->options->weights_only)
		return choose_scales(w, params);
	return w->precision == PRECISION_I8 ? rewrite_find_weight_scales(&w->rewritten, options, params, w->arena) : NULL;
}

static bool add_weights(struct quantised_writing *w, const struct rewrite_calibration *list)
{
	const struct sub_program *p = &w->rewritten;
	struct rewrite_options options = compile_rewrite_options(&w->calibration->program->options);
	options.precision = w->precision;
	options.calibration = list;
	if (!compile_check_declared(w->arena, w->diags, w->calibration->program->model->graph, p, &options))
		return false;
	const float *const *params = read_params(w);
	if (!params)
		return false;
	float **scale = find_scales(w, &options, params);
	for (size_t i = 0; i < p->params.n; i++) {
		int tensor = io_safetensors_find(file_of(w), p->params.at[i].name);
		if (scale && scale[i])
			add_integers(w, &file_of(w)->tensor[tensor], params[i], scale[i]);
		else if (!add_wide(w, tensor))
			return false;
	}
	return true;
}

/* --- the file --- */

static const char *list_kept(const struct quantised_writing *w)
{
	struct str s = str_in(w->arena);
	for (size_t i = 0; i < w->calibration->listed.all.n; i++)
		if (w->kept[i])
			str_printf(&s, "%s\n", w->calibration->product[i].name);
	return str_text(&s);
}

/* Those of long elements come first, so that all are aligned. */
static const struct io_tensor *order_tensors(const struct quantised_writing *w)
{
	struct io_tensor *ordered = ARENA_ARRAY(w->arena, struct io_tensor, w->tensors.n + 1);
	size_t n = 0;
	for (int bytes = 8; bytes; bytes /= 2)
		for (size_t i = 0; i < w->tensors.n; i++)
			if (dtype_traits_of(w->tensors.at[i].dtype)->bytes == bytes)
				ordered[n++] = w->tensors.at[i];
	return ordered;
}

/* The families of rules that run, as --rules takes them. */
static const char *list_rules(const struct quantised_writing *w)
{
	struct str s = str_in(w->arena);
	for (int i = 0; rewrite_family_spelling(i); i++)
		if (w->calibration->program->options.rules_off >> i & 1)
			str_printf(&s, "%s-%s", s.n ? "," : "", rewrite_family_spelling(i));
	return s.n ? str_text(&s) : "all";
}

static bool put_file(struct quantised_writing *w)
{
	const esp_program *p = w->calibration->program;
	const struct io_pair texts[] = {{IO_QUANTISED_KEY, IO_QUANTISED_VERSION},
					{"precision", precision_traits_of(w->precision)->spelling},
					{"math", rewrite_math_spelling(p->options.math)},
					{"assume", rewrite_assumption_spelling(p->options.finite)},
					{"rules", list_rules(w)},
					{"model", weights_model_key(w->arena, p->model->graph)},
					{"kept", list_kept(w)}};
	return io_safetensors_write_with(w->arena, w->diags, w->path, texts, sizeof texts / sizeof *texts,
					 order_tensors(w), (int)w->tensors.n);
}

static bool observes_any(const esp_calibration *c)
{
	for (size_t i = 0; i < c->observed.n; i++)
		if (c->observed.at[i].product >= 0)
			return true;
	return false;
}

static bool write_quantised(void *job)
{
	struct quantised_writing *w = job;
	const esp_quantise_options *o = w->options;
	w->rewritten = w->calibration->rewritten;
	w->rewritten.arena = w->arena;
	w->precision = o->weights_only ? PRECISION_F32 : PRECISION_I8;
	if (o->weights_only && (o->precision || o->kept))
		return api_bad_argument(w->diags, "esp_calibration_write", "options->weights_only",
					"must be 0 with a precision or names that are kept: no product is computed in integers");
	if (o->precision && !rewrite_read_precision(o->precision, &w->precision, w->diags))
		return false;
	if (!o->weights_only && !precision_traits_of(w->precision)->bytes)
		return api_bad_argument(w->diags, "esp_calibration_write", "options->precision", "must be i8, i16 or i8x3");
	if (!w->calibration->any && !observes_any(w->calibration))
		return diag_add(w->diags, DIAG_NOT_CALIBRATED, (struct diag_at){0},
				"products of less than 16 sums of 16 terms take longer in integers; 'espalier explain --precision i8' names all, and why each stays",
				"'%s' has no product with weights that could be computed in integers", w->calibration->program->model->graph->name);
	if (!w->calibration->any)
		return diag_add(w->diags, DIAG_NOT_CALIBRATED, (struct diag_at){0}, "calibrate with typical structures",
				"no node was run before the weights of '%s' were quantised",
				w->calibration->program->model->graph->name);
	if (!find_kept(w))
		return false;
	const struct rewrite_calibration *list = o->weights_only ? ARENA_NEW(w->arena, struct rewrite_calibration) : list_bounds(w);
	if (!add_weights(w, list))
		return false;
	add_bounds(w, list);
	return put_file(w);
}

static bool write_guarded(const esp_calibration *c, const esp_quantise_options *options, const char *path,
			  struct diags *diags)
{
	struct arena arena;
	arena_init(&arena, &c->object.context->allocator);
	struct quantised_writing w = {.calibration = c, .options = options, .path = path, .arena = &arena, .diags = diags};
	bool ok = api_guarded_deep(c->program->model->graph, &arena, diags, write_quantised, &w);
	arena_free(&arena);
	return ok;
}

static bool check_keep(const esp_quantise_options *o, struct diags *diags)
{
	bool ok = !o->kept || o->keep;
	for (size_t i = 0; ok && i < o->kept; i++)
		ok = o->keep[i];
	return ok || api_bad_argument(diags, "esp_calibration_write", "options->keep", "must be names, none of them NULL");
}

esp_status esp_calibration_write(const esp_calibration *calibration, const esp_quantise_options *options, const char *path,
				 esp_error **error)
{
	struct api_call call = api_begin(calibration);
	esp_quantise_options o = {0};
	bool ok = api_need(&call, calibration) && api_need(&call, path) &&
		  (!options || api_take_struct(&call.diags, __func__, "options", options, &o, sizeof o)) &&
		  check_keep(&o, &call.diags) && write_guarded(calibration, &o, path, &call.diags);
	return api_end(&call, ok, error);
}
