/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* esp_program_explain: both forms say the same, of every body. */
#include "tests/api/support.h"

#include <jansson.h>

static const char *const bodies[] = {"leaf", "inner", "output", "output.root"};
static const char *const counts[] = {"sub_ops",	     "reductions", "operations", "bytes",
				     "weight_bytes", "groups",	   "barriers",	 "stored"};
enum { BODIES = sizeof bodies / sizeof *bodies, COUNTS = sizeof counts / sizeof *counts };

static json_int_t count_of(const json_t *body, const char *when, const char *what)
{
	const json_t *n = json_object_get(json_object_get(body, when), what);
	return json_is_integer(n) ? json_integer_value(n) : -1;
}

static json_t *find_body(const json_t *all, const char *name)
{
	json_t *found = NULL, *body;
	size_t i;
	json_array_foreach(json_object_get(all, "bodies"), i,
			   body) if (strcmp(json_string_value(json_object_get(body, "name")), name) == 0)
	    found = body;
	return found;
}

/* h = W @ left.h + right.h: two look-ups of states, which are read and one written, a product of 2 by 2 and
 * an addition.
 */
static void test_inner(const json_t *inner)
{
	tap_ok(count_of(inner, "written", "reductions") == 1 && count_of(inner, "written", "sub_ops") == 4,
	       "sub-operators are counted");
	tap_ok(count_of(inner, "written", "bytes") == 24 && count_of(inner, "written", "weight_bytes") == 16,
	       "bytes are counted");
	tap_ok(count_of(inner, "written", "groups") == 1 && count_of(inner, "written", "barriers") == 1 &&
		   count_of(inner, "written", "stored") == 0,
	       "groups, barriers and stored intermediates are counted");
}

static bool saves_the_difference(const json_t *body)
{
	int right = 0;
	for (int c = 0; c < COUNTS; c++)
		right += json_integer_value(json_object_get(json_object_get(body, "saved"), counts[c])) ==
			 count_of(body, "written", counts[c]) - count_of(body, "computed", counts[c]);
	return right == COUNTS;
}

/* Layers after are the groups of all bodies but that at binding; text and JSON say the same. */
static void test_layers(const struct kit *k, const json_t *all)
{
	const json_t *layers = json_object_get(all, "layers");
	int before = json_integer_value(json_object_get(layers, "before"));
	int after = json_integer_value(json_object_get(layers, "after")), groups = 0;
	char *text = NULL, words[100];
	for (int b = 0; b < BODIES; b++)
		groups += count_of(find_body(all, bodies[b]), "computed", "groups");
	tap_ok(after == groups && (int)json_array_size(json_object_get(layers, "groups")) == after, "%d layers are groups", after);
	tap_ok(before >= after && json_array_size(json_object_get(layers, "operators")) == 0,
	       "a text has %d operators, and no list of a graph's", before);
	tap_ok(esp_program_explain(k->program, ESP_FORM_LAYERS, &text, NULL) == ESP_OK, "layers as text");
	snprintf(words, sizeof words, "layers before  %6d  operators of the text\nlayers after   %6d  ", before, after);
	tap_ok(strstr(text, words) != NULL, "say the same");
	esp_text_free(text);
	tap_ok(esp_program_explain(k->program, ESP_FORM_LAYERS + 1, &text, NULL) == ESP_ERROR_ARGUMENT, "there are no more forms");
}

static void test_json(const struct kit *k)
{
	char *text = NULL;
	tap_ok(esp_program_explain(k->program, ESP_FORM_JSON, &text, NULL) == ESP_OK, "explained as JSON");
	json_t *all = json_loads(text, 0, NULL);
	tap_ok(all && strcmp(json_string_value(json_object_get(all, "model")), "tiny") == 0 &&
		   strcmp(json_string_value(json_object_get(all, "math")), "reassociate") == 0 &&
		   json_array_size(json_object_get(all, "rules_off")) == 0 &&
		   json_is_array(json_object_get(all, "rules")) &&
		   json_is_array(json_object_get(all, "notes")) &&
		   strcmp(json_string_value(json_object_get(all, "assume")), "nothing") == 0,
	       "JSON says what it is about");
	test_layers(k, all);
	for (int b = 0; b < BODIES; b++) {
		json_t *body = find_body(all, bodies[b]);
		int known = 0;
		for (int c = 0; c < COUNTS; c++)
			known += count_of(body, "written", counts[c]) >= 0 &&
				 count_of(body, "computed", counts[c]) >= 0;
		tap_ok(known == COUNTS, "%s has all counts", bodies[b]);
		tap_ok(saves_the_difference(body), "%s saved the difference", bodies[b]);
	}
	test_inner(find_body(all, "inner"));
	json_decref(all);
	esp_text_free(text);
}

static void test_text(const struct kit *k)
{
	char *text = NULL;
	tap_ok(esp_program_explain(k->program, ESP_FORM_TEXT, &text, NULL) == ESP_OK &&
		   strncmp(text, "tiny, math reassociate, all rules, V = 4, D = 2\n", 48) == 0,
	       "explained as text");
	for (int b = 0; b < BODIES; b++) {
		char begin[40];
		snprintf(begin, sizeof begin, "\n%-12s as written", bodies[b]);
		tap_ok(strstr(text, begin) != NULL, "%s has a line", bodies[b]);
	}
	esp_text_free(text);
}

/* With no rule, what is computed is what was written. */
static void test_none(const struct kit *k)
{
	esp_program_options o = {
	    .size = sizeof o, .backend = "interpreter", .rules = "none", .math = "exact"};
	esp_program *p = NULL;
	char *text = NULL;
	esp_program_create(k->model, k->weights, &o, &p, NULL);
	tap_ok(esp_program_explain(p, ESP_FORM_JSON, &text, NULL) == ESP_OK, "explained without rules");
	json_t *all = json_loads(text, 0, NULL);
	for (int b = 0; b < BODIES; b++) {
		json_t *body = find_body(all, bodies[b]);
		tap_ok(body &&
			   json_equal(json_object_get(body, "written"), json_object_get(body, "computed")),
		       "%s is as it was written", bodies[b]);
	}
	tap_ok(json_array_size(json_object_get(all, "rules")) == 0 &&
		   json_array_size(json_object_get(all, "rules_off")) >= 5,
	       "no rule was applied, all are off");
	json_decref(all);
	esp_text_free(text);
	esp_program_free(p);
}

/* The bounds of errors need weights: here no sum is long enough for integers, so nothing changes. */
static void test_errors(const struct kit *k)
{
	esp_program_options o = {.size = sizeof o, .backend = "interpreter", .precision = "i16"};
	esp_program *p = NULL;
	char *with = NULL, *without = NULL;
	bool ok = esp_program_create(k->model, k->weights, &o, &p, NULL) == ESP_OK &&
		  esp_program_explain_weights(p, k->weights, ESP_FORM_JSON, &with, NULL) == ESP_OK &&
		  esp_program_explain(p, ESP_FORM_JSON, &without, NULL) == ESP_OK;
	json_t *a = ok ? json_loads(with, 0, NULL) : NULL, *b = ok ? json_loads(without, 0, NULL) : NULL;
	const json_t *errors = json_object_get(a, "errors"), *first = json_array_get(errors, 0);
	tap_ok(json_array_size(errors) == 7 && json_is_null(json_object_get(b, "errors")),
	       "with weights there is a bound for each height");
	tap_ok(json_integer_value(json_object_get(first, "height")) == 0 &&
		   json_number_value(json_object_get(json_object_get(first, "states"), "h")) == 0 &&
		   json_is_null(json_object_get(first, "unbounded")),
	       "which is zero where nothing is in integers");
	json_decref(a);
	json_decref(b);
	esp_text_free(with);
	esp_text_free(without);
	esp_program_free(p);
}

static void test_refused(const struct kit *k)
{
	char *text = "before";
	esp_error *error;
	tap_ok(esp_program_explain(k->program, 7, &text, &error) == ESP_ERROR_ARGUMENT && !text &&
		   error_is(error, "bad-argument"),
	       "a form that does not exist is refused");
	tap_ok(esp_program_explain(NULL, 0, &text, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_program_explain(k->program, 0, NULL, NULL) == ESP_ERROR_ARGUMENT,
	       "so are arguments that are missing");
}

/* --- steps of scans --- */

/* p + h by elements; W is read by the last state alone. */
static const char scanned_model[] = "model scanned\nstructure none\ninput x[5, V, D]\nparam E[V, D], W[D, D]\n"
				    "traversal up over 5\nstate h[V, D]\n"
				    "leaf:\n    h = at_step(x) + E\n"
				    "inner:\n    h = at_step(x) + previous.h + E\n"
				    "output last = sum(h[4, i, j] * W[j, j] for i, j)\n";

/* A step has its operations once, and all further ones are counted. */
static void test_steps(const struct kit *k)
{
	esp_model *model = NULL;
	esp_program *p = NULL;
	char *text = NULL;
	esp_program_options o = {.size = sizeof o, .backend = "interpreter"};
	bool ok = esp_model_parse(k->context, "scanned.ra", scanned_model, strlen(scanned_model), &model, NULL) ==
			  ESP_OK &&
		  esp_program_create(model, k->weights, &o, &p, NULL) == ESP_OK &&
		  esp_program_explain(p, ESP_FORM_JSON, &text, NULL) == ESP_OK;
	json_t *all = ok ? json_loads(text, 0, NULL) : NULL, *first = find_body(all, "first"),
	       *next = find_body(all, "next");
	json_int_t once = count_of(first, "written", "operations"), further = count_of(next, "written", "operations");
	tap_ok(once == 2 * 8 && further == 4 * 3 * 8, "the operations of all steps are counted: %lld and %lld",
	       (long long)once, (long long)further);
	once = count_of(first, "written", "bytes"), further = count_of(next, "written", "bytes");
	tap_ok(once == 2 * 32 && further == 4 * 3 * 32, "and their bytes: %lld and %lld", (long long)once,
	       (long long)further);
	tap_ok(count_of(next, "written", "weight_bytes") == 32, "a step reads its weights");
	json_decref(all);
	esp_text_free(text);
	esp_program_free(p);
	esp_model_free(model);
}

int main(void)
{
	struct kit k;
	make_folder();
	const char *path = write_weights("w.safetensors", tiny_weights, 2);
	if (tap_ok(make_kit(&k, NULL, path, NULL) == ESP_OK, "a model and its weights")) {
		test_json(&k);
		test_text(&k);
		test_none(&k);
		test_errors(&k);
		test_refused(&k);
		test_steps(&k);
	}
	free_kit(&k);
	unlink(path);
	rmdir(folder);
	return tap_done();
}
