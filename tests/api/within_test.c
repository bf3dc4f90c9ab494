/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inputs that a model declares within a bound: an element beyond it is refused wherever data come in, and named;
 * nothing is computed, and what comes after it is. */
#include "api/espalier_service.h"
#include "tests/api/support.h"
#include "tests/backends.h"

#include <math.h>

static const struct tensor weights[] = {{"W", 2, 2, (const float[]){1, 2, 3, 4}}};

static const char tree[] = "model tree\nstructure tree(left, right)\n"
			   "input x[D] within 0.5, m[1, D] : f16 within 0.1\nedge w within 2\nparam W[D, D]\nstate h[D]\n"
			   "leaf:\n    h = W @ x + m[0]\ninner:\n    h = left.w * left.h + right.w * right.h\n"
			   "output y = h at every node\n";
static const char sequence[] = "model sequence\nstructure sequence\ninput x[D] within 0.5\nparam W[D, D]\nstate h[D]\n"
			       "node:\n    h = W @ x + previous.h\noutput y = h at every node\n";
static const char rows[] = "model rows\nstructure none\ninput x[D] within 0.5\nparam W[D, D]\noutput y = W @ x\n";

static bool open_kit(struct kit *k, const char *text, int continuous)
{
	const esp_program_options o = {.size = sizeof o, .backend = "interpreter", .continuous = continuous};
	esp_error *error = NULL;
	memset(k, 0, sizeof *k);
	bool ok = !esp_context_create(NULL, &k->context, &error) &&
		  !esp_model_parse(k->context, "within.ra", text, strlen(text), &k->model, &error) &&
		  !esp_weights_open(k->context, path_of("w.safetensors"), &k->weights, &error) &&
		  !esp_program_create(k->model, k->weights, &o, &k->program, &error) &&
		  !esp_binding_create(k->program, k->weights, &k->binding, &error) &&
		  !esp_forest_create(k->program, &k->forest, &error) &&
		  (continuous || !esp_session_create(k->binding, &k->session, &error));
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

/* --- sessions --- */

/* Two trees of two leaves: their nodes carry x and m, their edges w. */
struct data {
	float x[2][3][2];
	uint16_t m[2][3][2];
	float w[2][2];
};

static const struct data fine = {{{{0.5f, -0.5f}, {0, 0}, {9, NAN}}, {{0, 0}, {0.25f, 0}, {NAN, INFINITY}}},
				 {{{0x2e66, 0xae66}, {0, 0}, {0x7c00, 0}}, {{0, 0}, {0, 0}, {0, 0}}},
				 {{2, -2}, {1, 1}}};

static esp_status run(struct kit *k, const struct data *d, esp_error **error)
{
	*error = NULL;
	esp_forest_clear(k->forest);
	for (int i = 0; i < 2; i++) {
		const void *at[] = {d->x[i], d->m[i], d->w[i]};
		const esp_structure s = {sizeof s, 3, first_pair, pair_children, 2, at};
		if (esp_forest_add(k->forest, &s, NULL))
			abort();
	}
	return esp_session_run(k->session, k->forest, error);
}

static void refuse(struct kit *k, const struct data *d, const char *message, int64_t structure, int64_t node)
{
	esp_error *error;
	bool refused = run(k, d, &error) == ESP_ERROR_INPUT;
	const esp_diagnostic *said = refused ? esp_error_get(error, 0) : NULL;
	bool named = said && strncmp(said->message, message, strlen(message)) == 0 && said->structure == structure &&
		     said->node == node;
	if (said && !named)
		printf("# %s\n", said->message);
	tap_ok(refused && error_is(error, "input-beyond-bound") && named && !esp_session_output(k->session, 0, 0, 0), "%s",
	       message);
}

static void test_sessions(void)
{
	struct kit k;
	struct data d = fine;
	esp_error *error;
	if (!tap_ok(open_kit(&k, tree, 0), "a model with bounds is compiled"))
		return;
	tap_ok(esp_program_input(k.program, 0)->within == 0.5f && esp_program_input(k.program, 1)->within == 0.1f &&
		   esp_program_input(k.program, 2)->within == 2,
	       "the program says the bounds of its inputs");
	tap_ok(run(&k, &d, &error) == ESP_OK, "elements at the bound are taken, and what no case reads is not looked at");
	d.x[1][1][1] = nextafterf(0.5f, 1);
	refuse(&k, &d, "'x[1]' of node 1 of input 1 is 0.50000006, but the model declares it within 0.5", 1, 1);
	d.x[1][1][1] = NAN;
	refuse(&k, &d, "'x[1]' of node 1 of input 1 is nan", 1, 1);
	d.x[0][0][0] = -INFINITY;
	refuse(&k, &d, "'x[0]' of node 0 of input 0 is -inf", 0, 0);
	d = fine;
	d.m[0][1][1] = 0xae67;
	refuse(&k, &d, "'m[0, 1]' of node 1 of input 0 is -0.100036621, but the model declares it within 0.1", 0, 1);
	d = fine;
	d.w[1][1] = 2.5f;
	refuse(&k, &d, "'w' of edge 1 of node 2 of input 1 is 2.5, but the model declares it within 2", 1, 2);
	tap_ok(run(&k, &fine, &error) == ESP_OK, "after all of that it runs");
	free_kit(&k);
}

/* --- saved programs --- */

static void test_saved(void)
{
	const esp_program_options o = {.size = sizeof o, .precision = "i16"};
	const char *path = path_of("within.espimg");
	esp_error *error = NULL;
	struct kit k;
	if (!need_backend("saved programs") || !open_kit(&k, tree, 0))
		return;
	esp_binding_free(k.binding), esp_forest_free(k.forest), esp_session_free(k.session), esp_program_free(k.program);
	k.binding = NULL, k.forest = NULL, k.session = NULL, k.program = NULL;
	bool ok = !esp_program_create(k.model, k.weights, &o, &k.program, &error) &&
		  !esp_program_save(k.program, path, NULL, &error);
	esp_program_free(k.program);
	ok = ok && !esp_program_load(k.context, path, &k.program, &error) &&
	     !esp_binding_create(k.program, k.weights, &k.binding, &error) &&
	     !esp_forest_create(k.program, &k.forest, &error) && !esp_session_create(k.binding, &k.session, &error);
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	if (tap_ok(ok && esp_program_input(k.program, 0)->within == 0.5f, "a saved program keeps its bounds")) {
		struct data d = fine;
		tap_ok(run(&k, &fine, &error) == ESP_OK, "and runs");
		d.x[0][1][0] = 1;
		refuse(&k, &d, "'x[0]' of node 1 of input 0 is 1, but the model declares it within 0.5", 0, 1);
	}
	free_kit(&k);
}

/* --- calls by arrays --- */

static esp_status call(struct kit *k, const float x[3][2], esp_error **error)
{
	static const size_t shape[] = {3, 2};
	const esp_array array = {.name = "x", .dtype = ESP_F32, .shape = shape, .rank = 2, .elements = x};
	*error = NULL;
	return esp_session_call(k->session, &array, 1, error);
}

static void test_calls(void)
{
	struct kit k;
	esp_error *error;
	float x[3][2] = {{0.5f, 0}, {0, 0}, {0, -0.5f}};
	if (!open_kit(&k, rows, 0))
		abort();
	tap_ok(call(&k, x, &error) == ESP_OK, "arrays within the bound are computed");
	x[2][1] = -0.75f;
	bool refused = call(&k, x, &error) == ESP_ERROR_INPUT && strstr(esp_error_get(error, 0)->message, "'x[1]' of");
	tap_ok(refused && esp_error_get(error, 0)->structure == 2 && error_is(error, "input-beyond-bound"),
	       "a call by arrays names the row and the element");
	free_kit(&k);
}

/* --- services and streams --- */

static esp_ticket *submit(struct kit *k, esp_service *service, const float (*x)[2])
{
	static const int32_t begin[] = {0, 0, 1}, children[] = {0};
	const void *data[] = {x};
	const esp_structure s = {sizeof s, 2, begin, children, 1, data};
	esp_ticket *t = NULL;
	esp_forest *f = NULL;
	if (esp_forest_create(k->program, &f, NULL) || esp_forest_add(f, &s, NULL) ||
	    esp_service_submit(service, f, NULL, &t, NULL))
		abort();
	esp_forest_free(f);
	return t;
}

static bool ends_refused(esp_ticket *t)
{
	esp_error *error = NULL;
	bool refused = esp_ticket_wait(t, INT64_MAX, &error) == ESP_ERROR_INPUT && error_is(error, "input-beyond-bound");
	esp_ticket_free(t);
	return refused;
}

static bool ends_well(esp_ticket *t)
{
	bool ok = esp_ticket_wait(t, INT64_MAX, NULL) == ESP_OK && esp_ticket_output(t, 0, 0, 0);
	esp_ticket_free(t);
	return ok;
}

static void test_stream(esp_service *service)
{
	static const float good[2][2] = {{0.5f, 0}, {0, -0.5f}}, bad[2][2] = {{0, 0}, {0.6f, 0}};
	const void *fits[] = {good}, *does_not[] = {bad};
	esp_stream *stream = NULL;
	esp_ticket *t = NULL;
	bool ok = !esp_stream_open(service, &stream, NULL) && !esp_stream_push(stream, 2, fits, NULL, &t, NULL) && ends_well(t);
	ok = ok && !esp_stream_push(stream, 2, does_not, NULL, &t, NULL) && ends_refused(t);
	tap_ok(ok, "a stream refuses elements beyond the bound");
	tap_ok(ok && !esp_stream_push(stream, 1, fits, NULL, &t, NULL) && ends_well(t), "and goes on from before them");
	esp_stream_free(stream);
}

static void test_services(void)
{
	static const float good[2][2] = {{0.5f, 0}, {0, -0.5f}}, bad[2][2] = {{0, 0}, {0, NAN}};
	struct kit k;
	esp_service *service = NULL;
	if (!open_kit(&k, sequence, 1) || esp_service_create(k.binding, NULL, &service, NULL))
		abort();
	esp_ticket *t[] = {submit(&k, service, good), submit(&k, service, bad), submit(&k, service, good)};
	bool ok = ends_well(t[0]);
	ok &= ends_refused(t[1]);
	ok &= ends_well(t[2]);
	tap_ok(ok, "a service refuses the request alone");
	test_stream(service);
	esp_service_free(service);
	free_kit(&k);
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "within.espimg"};
	if (!make_folder())
		return 1;
	write_weights("w.safetensors", weights, 1);
	test_sessions();
	test_saved();
	test_calls();
	test_services();
	remove_folder(names, 2);
	return tap_done();
}
