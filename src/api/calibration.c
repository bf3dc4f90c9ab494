/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Calibrations: what products with weights multiply, observed in runs, and how far runs are from others. */
#include "api/calibration.h"

#include <math.h>
#include <string.h>

static void destroy_calibration(void *object)
{
	esp_calibration *c = object;
	arena_free(&c->arena);
	object_release(c->program);
	object_release((void *)c->weights);
}

/* --- creation --- */

static void describe_product(esp_calibration *c, size_t i)
{
	const struct rewrite_listed *p = &c->listed.all.at[i];
	bool bounded = !p->calibrated && !isinf(p->bound);
	c->product[i] = (esp_product){.name = p->name,
				      .terms = (size_t)p->terms,
				      .sums = (size_t)p->sums,
				      .computed = precision_traits_of(p->precision)->spelling,
				      .why = p->why,
				      .per_edge = p->per_edge,
				      .bound_is = bounded ? ESP_BOUND_PROVED : ESP_BOUND_NONE,
				      .bound = bounded ? p->bound : 0};
}

/* Calibrated bounds are read in the weights. */
static bool read_bound(esp_calibration *c, size_t i, struct diags *diags)
{
	struct str name = str_in(&c->arena);
	float bound;
	if (!c->listed.all.at[i].calibrated || c->program->options.precision == PRECISION_F32)
		return true;
	rewrite_put_bound_name(&name, c->product[i].name);
	int tensor = io_safetensors_find(c->weights->file, str_text(&name));
	if (!io_safetensors_read_f32(c->weights->file, diags, tensor, 0, 1, &bound))
		return false;
	c->product[i].bound = bound;
	c->product[i].bound_is = ESP_BOUND_CALIBRATED;
	return true;
}

static void note_observed(esp_calibration *c, const char *name, bool output, size_t which)
{
	enum rewrite_observation observation = REWRITE_SUM;
	const char *product = rewrite_read_observed(name, &observation);
	for (size_t i = 0; product && i < c->listed.all.n; i++)
		if (strcmp(c->product[i].name, product) == 0) {
			vec_push(&c->arena, &c->observed, (struct observed){output, which, (int)i, observation});
			if (observation == REWRITE_SQUARES)
				c->squares[i] = ARENA_ARRAY(&c->arena, double, c->listed.all.at[i].columns + 1);
			return;
		}
}

static void find_observed(esp_calibration *c)
{
	const struct ra_model *m = c->program->model->graph;
	const struct image *image = &c->program->interface;
	for (size_t i = m->states.n; i < (size_t)image->states; i++)
		note_observed(c, image->state[i].name, false, i);
	for (size_t i = m->outputs.n; i < (size_t)image->outputs; i++)
		note_observed(c, image->output[i].name, true, i);
	for (size_t i = 0; i < m->outputs.n; i++)
		if (image->output[i].dtype == DTYPE_F32)
			vec_push(&c->arena, &c->observed, (struct observed){true, i, -1, REWRITE_SUM});
}

struct describing {
	esp_calibration *calibration;
	struct diags *diags;
};

static bool describe_products(void *job)
{
	struct describing *d = job;
	esp_calibration *c = d->calibration;
	struct rewrite_options options = compile_rewrite_options(&c->program->options);
	const struct ra_model *m = c->program->model->graph;
	if (!compile_to_products(&c->arena, d->diags, m, c->program->sizes, &c->program->options, &c->rewritten))
		return false;
	rewrite_list_products(&c->rewritten, &options, &c->listed);
	c->product = ARENA_ARRAY(&c->arena, esp_product, c->listed.all.n + 1);
	c->squares = ARENA_ARRAY(&c->arena, double *, c->listed.all.n + 1);
	c->sums = ARENA_ARRAY(&c->arena, struct difference, c->listed.all.n + 1);
	c->outputs = ARENA_ARRAY(&c->arena, struct difference, m->outputs.n + 1);
	c->output = ARENA_ARRAY(&c->arena, esp_difference, m->outputs.n + 1);
	for (size_t i = 0; i < c->listed.all.n; i++) {
		describe_product(c, i);
		if (!read_bound(c, i, d->diags))
			return false;
	}
	find_observed(c);
	return true;
}

static esp_calibration *new_calibration(const esp_model *model, const esp_weights *weights,
					const esp_program_options *options, struct diags *diags)
{
	esp_program_options o = *options;
	o.at = ESP_AT_EVERY_NODE;
	esp_calibration *c = object_new(model->object.context, sizeof *c, destroy_calibration, diags);
	if (!c)
		return NULL;
	arena_init(&c->arena, &model->object.context->allocator);
	c->weights = object_hold(weights);
	c->program = program_create_observed(model, weights, &o, diags);
	struct describing d = {c, diags};
	if (c->program && api_guarded_deep(model->graph, &c->arena, diags, describe_products, &d))
		return c;
	object_release(c);
	return NULL;
}

esp_status esp_calibration_create(const esp_model *model, const esp_weights *weights, const esp_program_options *options,
				  esp_calibration **out, esp_error **error)
{
	struct api_call call = api_begin(model ? (const void *)model : weights);
	esp_program_options o = {0};
	esp_calibration *c = NULL;
	if (api_need(&call, model) && api_need(&call, weights) && api_need(&call, out) && api_share(&call, weights) &&
	    (!options || api_take_struct(&call.diags, __func__, "options", options, &o, sizeof o)))
		c = new_calibration(model, weights, &o, &call.diags);
	if (out)
		*out = c;
	return api_end(&call, c, error);
}

void esp_calibration_free(esp_calibration *c)
{
	object_release(c);
}

esp_program *esp_calibration_program(const esp_calibration *c)
{
	return c ? c->program : NULL;
}

/* --- rows --- */

static size_t count_rows(const esp_calibration *c, const struct observed *o, const esp_session *s, size_t structure)
{
	return o->output && c->program->interface.output[o->which].at_root ? 1 : session_nodes(s, structure);
}

static size_t count_elements(const esp_calibration *c, const struct observed *o)
{
	const struct image *image = &c->program->interface;
	return (size_t)(o->output ? image->output[o->which].elements : image->state[o->which].elements);
}

static const float *find_row(const struct observed *o, const esp_session *s, size_t structure, size_t node)
{
	return o->output ? esp_session_output(s, o->which, structure, node) : esp_session_state(s, o->which, structure, node);
}

/* --- observing --- */

static bool refuse_infinite(const esp_calibration *c, const struct observed *o, struct diags *diags)
{
	return diag_add(diags, DIAG_NOT_CALIBRATED, (struct diag_at){0},
			"leave out the structures that make it so; 'espalier run' shows which outputs are not numbers",
			"what the product %s multiplies is infinite or not a number", c->product[o->product].name);
}

static bool observe_rows(esp_calibration *c, const struct observed *o, const esp_session *s, size_t structure,
			 struct diags *diags)
{
	double *largest = &c->product[o->product].observed;
	size_t rows = count_rows(c, o, s, structure), elements = count_elements(c, o);
	for (size_t r = 0; r < rows; r++) {
		const float *row = find_row(o, s, structure, r);
		for (size_t i = 0; row && i < elements; i++) {
			if (!isfinite(row[i]))
				return refuse_infinite(c, o, diags);
			*largest = fmax(*largest, row[i]);
		}
	}
	c->any |= rows > 0;
	return true;
}

/* A row of a scan has the columns of all steps. */
static void add_squares(const esp_calibration *c, const struct observed *o, const esp_session *s, size_t structure)
{
	size_t rows = count_rows(c, o, s, structure), elements = count_elements(c, o);
	size_t columns = (size_t)c->listed.all.at[o->product].columns;
	double *squares = c->squares[o->product];
	for (size_t r = 0; r < rows; r++) {
		const float *row = find_row(o, s, structure, r);
		for (size_t i = 0; row && i < elements; i++)
			squares[i % columns] += row[i];
	}
}

static bool take_rows(esp_calibration *c, const struct observed *o, const esp_session *s, size_t structure, struct diags *diags)
{
	switch (o->observation) {
	case REWRITE_LARGEST: return observe_rows(c, o, s, structure, diags);
	case REWRITE_SQUARES: add_squares(c, o, s, structure); return true;
	default: return true;
	}
}

static bool has_run(const esp_calibration *c, const esp_session *s, const char *function, struct diags *diags)
{
	size_t structures;
	if (session_program(s) != c->program)
		return api_bad_argument(diags, function, "session", "is not of the calibration's program");
	return session_structures(s, &structures) ||
	       api_bad_argument(diags, function, "session", "has no results: there was no run, or the last one failed");
}

static bool add_run(esp_calibration *c, const esp_session *s, struct diags *diags)
{
	size_t structures;
	if (!has_run(c, s, "esp_calibration_add", diags))
		return false;
	session_structures(s, &structures);
	for (size_t i = 0; i < c->observed.n; i++)
		for (size_t t = 0; t < structures; t++)
			if (c->observed.at[i].product >= 0 && !take_rows(c, &c->observed.at[i], s, t, diags))
				return false;
	return true;
}

esp_status esp_calibration_add(esp_calibration *calibration, const esp_session *session, esp_error **error)
{
	struct api_call call = api_begin(calibration ? (const void *)calibration : session);
	bool ok = api_need(&call, calibration) && api_need(&call, session) && api_share(&call, session) &&
		  add_run(calibration, session, &call.diags);
	return api_end(&call, ok, error);
}

/* --- comparing --- */

static void add_difference(struct difference *d, const float *row, const float *reference, size_t elements)
{
	for (size_t i = 0; row && reference && i < elements; i++) {
		double error = fabs((double)row[i] - reference[i]), size = fabs((double)reference[i]);
		d->squares += error * error;
		d->reference_squares += size * size;
		d->largest = fmax(d->largest, error);
		d->reference_largest = fmax(d->reference_largest, size);
		d->values++;
	}
}

static esp_difference describe_difference(const struct difference *d)
{
	double n = d->values > 0 ? d->values : 1;
	return (esp_difference){d->largest, sqrt(d->squares / n), d->reference_largest, sqrt(d->reference_squares / n)};
}

/* The place of the same name and shape in the program of the reference; NULL = it has none. */
static bool find_same(const esp_calibration *c, const struct observed *o, const esp_program *reference,
		      struct observed *to)
{
	const struct image *a = &c->program->interface, *b = &reference->interface;
	int64_t elements = (int64_t)count_elements(c, o);
	const char *name = o->output ? a->output[o->which].name : a->state[o->which].name;
	*to = *o;
	for (to->which = 0; o->output && to->which < (size_t)b->outputs; to->which++)
		if (strcmp(b->output[to->which].name, name) == 0)
			return b->output[to->which].elements == elements &&
			       b->output[to->which].at_root == a->output[o->which].at_root;
	for (to->which = 0; !o->output && to->which < (size_t)b->states; to->which++)
		if (strcmp(b->state[to->which].name, name) == 0)
			return b->state[to->which].elements == elements;
	return false;
}

static void compare_observed(esp_calibration *c, const struct observed *o, const esp_session *s, const esp_session *reference)
{
	struct observed same;
	size_t structures;
	session_structures(s, &structures);
	if ((o->product >= 0 && o->observation != REWRITE_SUM) || !find_same(c, o, session_program(reference), &same))
		return;
	struct difference *to = o->product < 0 ? &c->outputs[o->which] : &c->sums[o->product];
	for (size_t t = 0; t < structures; t++)
		for (size_t r = 0; r < count_rows(c, o, s, t); r++)
			add_difference(to, find_row(o, s, t, r), find_row(&same, reference, t, r), count_elements(c, o));
	if (o->product < 0) {
		c->output[o->which] = describe_difference(to);
	} else {
		c->product[o->product].sums_differ = describe_difference(to);
		c->product[o->product].compared = 1;
	}
}

static bool compare_runs(esp_calibration *c, const esp_session *s, const esp_session *reference, struct diags *diags)
{
	static const char function[] = "esp_calibration_compare";
	size_t structures, others;
	if (!has_run(c, s, function, diags))
		return false;
	session_structures(s, &structures);
	bool same = session_structures(reference, &others) && structures == others;
	for (size_t t = 0; same && t < structures; t++)
		same = session_nodes(s, t) == session_nodes(reference, t);
	if (!same)
		return api_bad_argument(diags, function, "reference", "has no results of the same structures");
	for (size_t i = 0; i < c->observed.n; i++)
		compare_observed(c, &c->observed.at[i], s, reference);
	return true;
}

esp_status esp_calibration_compare(esp_calibration *calibration, const esp_session *session, const esp_session *reference,
				   esp_error **error)
{
	struct api_call call = api_begin(calibration ? (const void *)calibration : session);
	bool ok = api_need(&call, calibration) && api_need(&call, session) && api_need(&call, reference) &&
		  api_share(&call, session) && api_share(&call, reference) &&
		  compare_runs(calibration, session, reference, &call.diags);
	return api_end(&call, ok, error);
}

/* --- what is known --- */

const esp_product *esp_calibration_product(const esp_calibration *c, size_t i)
{
	return c && i < c->listed.all.n ? &c->product[i] : NULL;
}

const esp_difference *esp_calibration_output(const esp_calibration *c, size_t i)
{
	return c && i < c->program->model->graph->outputs.n ? &c->output[i] : NULL;
}
