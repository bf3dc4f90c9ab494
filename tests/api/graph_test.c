/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models without a structure through the public interface: made by calls, run over rows, served and saved; what is refused. */
#include "api/espalier_service.h"
#include "tests/api/built.h"
#include "tests/backends.h"

enum { ROWS = 37 };

/* W swaps the two elements of x, and E has a row for each of four words. */
static const char graph_model[] = "model rows\nstructure none\ninput x[D], word : token\nparam E[V, D], W[D, D]\n"
				  "node:\n    both = W @ x + E[word]\n"
				  "output twice = both + both\noutput most = argmax(both)\n"
				  "output outer[i, j] = both[i] * x[j]\n";
enum { TWICE, MOST, OUTER };

struct rows {
	float x[ROWS][2];
	int32_t word[ROWS];
};

static struct rows make_rows(void)
{
	struct rows r;
	for (int i = 0; i < ROWS; i++) {
		r.x[i][0] = (float)(i % 5);
		r.x[i][1] = (float)(-3 * i);
		r.word[i] = i * 7 % 4;
	}
	return r;
}

static bool add_row(esp_forest *f, const struct rows *r, int i, esp_error **error)
{
	const void *data[] = {r->x[i], &r->word[i]};
	const esp_structure row = {.size = sizeof row, .nodes = 1, .data = data};
	return esp_forest_add(f, &row, error) == ESP_OK;
}

static bool add_rows(esp_forest *f, const struct rows *r)
{
	bool ok = true;
	for (int i = 0; i < ROWS; i++)
		ok &= add_row(f, r, i, NULL);
	return ok;
}

/* What the outputs are of a row: all are small whole numbers. */
static bool is_right(const struct rows *r, int i, const float *twice, const int32_t *most, const float *outer)
{
	float a = r->x[i][1] + tiny_weights[0].values[2 * r->word[i]];
	float b = r->x[i][0] + tiny_weights[0].values[2 * r->word[i] + 1];
	bool product = outer && outer[0] == a * r->x[i][0] && outer[1] == a * r->x[i][1] && outer[2] == b * r->x[i][0] &&
		       outer[3] == b * r->x[i][1];
	return product && twice && twice[0] == 2 * a && twice[1] == 2 * b && most && *most == (b > a);
}

static bool add_batch(esp_forest *f, const struct rows *r)
{
	const void *data[] = {r->x, r->word};
	const esp_structures all = {.size = sizeof all, .structures = ROWS, .data = data};
	return esp_forest_add_many(f, &all, NULL) == ESP_OK;
}

/* All rows of each output at once. */
static bool batch_is_right(const esp_session *s, const struct rows *r, size_t rows)
{
	size_t twice, most, outer;
	const char *a = esp_session_rows(s, TWICE, &twice), *b = esp_session_rows(s, MOST, &most),
		   *c = esp_session_rows(s, OUTER, &outer);
	bool ok = a && b && c && twice >= sizeof(float[2]) && most >= sizeof(int32_t) && outer >= sizeof(float[4]);
	for (size_t i = 0; ok && i < rows; i++)
		ok = is_right(r, (int)(i % ROWS), (const float *)(a + i * twice), (const int32_t *)(b + i * most),
			      (const float *)(c + i * outer));
	return ok;
}

static bool session_is_right(const esp_session *s, const struct rows *r)
{
	bool ok = true;
	for (int i = 0; i < ROWS; i++)
		ok &= is_right(r, i, esp_session_root(s, TWICE, i), esp_session_root_elements(s, MOST, i),
			       esp_session_output(s, OUTER, i, 0));
	return ok && !esp_session_root(s, TWICE, ROWS) && !esp_session_output(s, TWICE, 0, 1);
}

/* A model of this test with what it needs to run; only the context and the weights belong to the caller. */
static esp_status open_graph(struct kit *k, const esp_program_options *o)
{
	esp_status s;
	if ((s = esp_model_parse(k->context, "rows.ra", graph_model, strlen(graph_model), &k->model, NULL)) ||
	    (s = esp_program_create(k->model, k->weights, o, &k->program, NULL)) ||
	    (s = esp_binding_create(k->program, k->weights, &k->binding, NULL)) ||
	    (s = esp_forest_create(k->program, &k->forest, NULL)))
		return s;
	return esp_session_create(k->binding, &k->session, NULL);
}

static void close_graph(struct kit *k)
{
	struct kit kept = {.context = k->context, .weights = k->weights};
	k->context = NULL;
	k->weights = NULL;
	free_kit(k);
	*k = kept;
}

static void test_facts(const struct kit *k)
{
	const esp_model_facts *facts = esp_model_describe(k->model);
	int line = 0;
	tap_ok(strcmp(facts->structure, "none") == 0 && facts->children == 0 && facts->states == 0 && facts->outputs == 3,
	       "a model says that it has no structure");
	tap_ok(!esp_program_states(k->program) && !esp_program_output(k->program, TWICE)->at_root,
	       "its program has no states, and outputs of each row");
	const char *statement = esp_model_statement(k->model, "most", ESP_BODY_OUTPUT, &line);
	tap_ok(statement && strcmp(statement, "output most = argmax(both)") == 0 && line == 8,
	       "a model says where outputs are computed");
}

static void test_runs(struct kit *k, const struct rows *r)
{
	tap_ok(add_rows(k->forest, r) && !esp_session_run(k->session, k->forest, NULL) && session_is_right(k->session, r),
	       "a batch of rows runs");
	esp_forest_remove(k->forest, 0);
	tap_ok(esp_forest_structures(k->forest) == ROWS - 1 && !esp_session_run(k->session, k->forest, NULL) &&
		   is_right(r, 1, esp_session_root(k->session, TWICE, 0), esp_session_root_elements(k->session, MOST, 0),
			    esp_session_root(k->session, OUTER, 0)),
	       "and without the first of them");
	esp_forest_clear(k->forest);
	tap_ok(add_batch(k->forest, r) && add_batch(k->forest, r) && esp_forest_structures(k->forest) == 2 * ROWS &&
		   !esp_session_run(k->session, k->forest, NULL) &&
		   batch_is_right(k->session, r, 2 * ROWS),
	       "rows are added as arrays, and results are read as arrays");
	esp_forest_clear(k->forest);
	size_t stride;
	tap_ok(!esp_session_run(k->session, k->forest, NULL) && !esp_session_root(k->session, TWICE, 0) &&
		   !esp_session_rows(k->session, TWICE, &stride),
	       "no rows are a batch, too");
}

static bool refuses(struct kit *k, const char *id, const char *what)
{
	esp_error *error = NULL;
	esp_status s = esp_session_run(k->session, k->forest, &error);
	bool ok = tap_ok(s == ESP_ERROR_INPUT && error_is(error, id), "%s", what);
	esp_forest_clear(k->forest);
	return ok;
}

static void test_refusals(struct kit *k, const struct rows *r)
{
	static const int32_t apart[] = {0, 0, 0}, begin[] = {0, 0, 1}, first[] = {0};
	const void *data[] = {r->x, r->word};
	esp_structure s = {sizeof s, 2, apart, NULL, 1, data};
	esp_error *error = NULL;
	add_row(k->forest, r, 0, NULL);
	esp_forest_add(k->forest, &s, NULL);
	refuses(k, "not-a-row", "a structure of two nodes is refused");
	s.child_begin = begin;
	s.children = first;
	esp_forest_add(k->forest, &s, NULL);
	refuses(k, "not-a-row", "a node with a child is refused");
	s.child_begin = NULL;
	tap_ok(esp_forest_add(k->forest, &s, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "several nodes need their arrays");
	struct rows wrong = *r;
	wrong.word[3] = 4;
	const esp_structures no_data = {.size = sizeof no_data, .structures = ROWS};
	tap_ok(esp_forest_add_many(k->forest, &no_data, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument") &&
		   !esp_forest_structures(k->forest),
	       "rows without data are refused");
	add_rows(k->forest, &wrong);
	refuses(k, "token-out-of-range", "a token without a row is refused");
}

/* Requests of a service have the same results. */
static void test_service(struct kit *k, const struct rows *r)
{
	esp_service *service = NULL;
	esp_ticket *ticket[2] = {NULL};
	esp_stream *stream = NULL;
	esp_error *error = NULL;
	bool ok = add_rows(k->forest, r) && !esp_service_create(k->binding, NULL, &service, NULL);
	for (int t = 0; ok && t < 2; t++)
		ok = !esp_service_submit(service, k->forest, NULL, &ticket[t], NULL);
	for (int t = 0; ok && t < 2; t++)
		ok = !esp_ticket_wait(ticket[t], INT64_MAX, NULL);
	for (int i = 0; ok && i < ROWS; i++)
		ok = is_right(r, i, esp_ticket_output(ticket[1], TWICE, i, 0),
			      esp_ticket_output_elements(ticket[1], MOST, i, 0), esp_ticket_output(ticket[0], OUTER, i, 0));
	tap_ok(ok, "a service computes rows");
	tap_ok(service && esp_stream_open(service, &stream, &error) == ESP_ERROR_ARGUMENT && error_is(error, "no-stream"),
	       "and has no streams of them");
	esp_ticket_free(ticket[0]);
	esp_ticket_free(ticket[1]);
	esp_service_free(service);
}

static void test_saved(struct kit *k, const struct rows *r)
{
	const char *path = path_of("rows.espalier");
	const esp_save_options options = {.size = sizeof options, .weights = k->weights};
	esp_program *p = NULL;
	esp_binding *b = NULL;
	esp_forest *f = NULL;
	esp_session *s = NULL;
	bool ok = !esp_program_save(k->program, path, &options, NULL) && !esp_program_load(k->context, path, &p, NULL) &&
		  !esp_binding_create(p, NULL, &b, NULL) && !esp_forest_create(p, &f, NULL) &&
		  !esp_session_create(b, &s, NULL) && add_rows(f, r) && !esp_session_run(s, f, NULL) &&
		  session_is_right(s, r);
	tap_ok(ok, "a saved program computes rows");
	esp_session_free(s);
	esp_forest_free(f);
	esp_binding_free(b);
	esp_program_free(p);
}

/* --- made by calls --- */

/* The model of the text.  Values of ESP_BODY_NODE are used by outputs, and inputs directly. */
static esp_builder *build_graph(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "rows", "none", &b, NULL))
		return NULL;
	esp_value x = esp_builder_input(b, "x", "D"), word = esp_builder_token(b, "word");
	esp_value E = esp_builder_param(b, "E", "V, D"), W = esp_builder_param(b, "W", "D, D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value both = CALL(b, "+", CALL(b, "@", W, x), esp_builder_lookup(b, E, word));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	const esp_value factors[] = {both, x};
	esp_builder_output(b, "twice", CALL(b, "+", both, both), ESP_AT_EVERY_NODE, NULL, 0);
	esp_builder_output(b, "most", CALL(b, "argmax", both), ESP_AT_EVERY_NODE, NULL, 0);
	esp_builder_output(b, "outer", esp_builder_indexed(b, "(a, c)[i, j] = a[i] * c[j]", factors, 2), ESP_AT_EVERY_NODE,
			   NULL, 0);
	return b;
}

static void test_builder(void)
{
	esp_model *m = NULL;
	esp_error *error = NULL;
	esp_builder *whole = build_graph();
	bool built = !esp_builder_finish(whole, &m, &error);
	char *made = built ? text_of(m) : NULL, *read = read_model(graph_model, strlen(graph_model));
	tap_ok(made && read && strcmp(made, read) == 0, "calls make the model of the text");
	esp_builder_free(whole);
	esp_error_free(error);
	esp_text_free(made);
	esp_text_free(read);
	esp_builder *b = NULL;
	esp_builder_create(context, "rows", "none", &b, NULL);
	esp_value x = esp_builder_input(b, "x", "D");
	esp_builder_output(b, "y", x, ESP_AT_ROOT, NULL, 0);
	tap_ok(esp_builder_finish(b, &m, &error) == ESP_ERROR_INPUT && error_is(error, "no-structure"),
	       "an output at the root is refused");
	esp_builder_free(b);
}

int main(void)
{
	struct kit k = {0};
	const struct rows r = make_rows();
	make_folder();
	const char *weights = write_weights("w.safetensors", tiny_weights, 2);
	if (!tap_ok(!esp_context_create(NULL, &k.context, NULL) && !esp_weights_open(k.context, weights, &k.weights, NULL),
		    "a context and weights"))
		return tap_done();
	context = k.context;
	for (int i = 0; i < 2; i++) {
		const esp_program_options o = {
		    .size = sizeof o, .backend = i ? usual_backend() : "interpreter", .continuous = i};
		if (!tap_ok(!open_graph(&k, &o), "a program by %s", o.backend))
			continue;
		test_facts(&k);
		test_runs(&k, &r);
		test_refusals(&k, &r);
		if (i)
			test_service(&k, &r);
		if (i)
			test_saved(&k, &r);
		close_graph(&k);
	}
	test_builder();
	free_kit(&k);
	remove_folder((const char *const[]){"w.safetensors", "rows.espalier"}, 2);
	return tap_done();
}
