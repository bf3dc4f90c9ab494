/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Limits that a caller sets, and numbers that say more than there is. */
#include "tests/api/support.h"

#include <limits.h>

static char weights[128];

enum { OPERATOR_BYTES = 800 << 10 }; /* of compiling, more than is needed (doc/limits.md) */

/* --- operators --- */

/* A model of a sum of so many products, added up two by two, whose chain of operators is short. */
static char *wide_model(int terms)
{
	char *text = malloc((size_t)terms * 100 + 1000), *p = text;
	p += sprintf(p, EMBEDDED("wide", "tree(left, right)") "    w = W @ left.h\n");
	for (int i = terms; i < 2 * terms; i++)
		p += sprintf(p, "    x%d = w * right.h\n", i);
	for (int i = terms - 1; i > 0; i--)
		p += sprintf(p, "    x%d = x%d + x%d\n", i, 2 * i, 2 * i + 1);
	sprintf(p, "    h = x1\noutput top = h at root\n");
	return text;
}

/* A model of so many traversals, each of so many layers, whose weights are the same. */
static char *deep_model(int traversals, int layers)
{
	char *text = malloc((size_t)traversals * (layers + 10) * 100 + 1000), *p = text;
	p += sprintf(p, "model deep\nstructure tree(left, right)\ninput word : token\nparam E[V, D], W[D, D]\n");
	for (int t = 0; t < traversals; t++) {
		p += sprintf(p, "traversal up\nstate h%d[D]\nleaf:\n", t);
		p += t ? sprintf(p, "    h%d = h%d\n", t, t - 1) : sprintf(p, "    h0 = E[word]\n");
		p += sprintf(p, "inner:\n    x0 = left.h%d + right.h%d\n", t, t);
		for (int i = 0; i < layers; i++)
			p += sprintf(p, "    x%d = tanh(W @ x%d)\n", i + 1, i);
		p += sprintf(p, "    h%d = x%d", t, layers);
		p += t ? sprintf(p, " + h%d\n", t - 1) : sprintf(p, "\n");
	}
	sprintf(p, "output top = h%d at root\n", traversals - 1);
	return text;
}

/* Frees the text. */
static esp_status prepare_text(const esp_context_options *o, char *text, esp_error **error)
{
	struct kit k = {0};
	esp_status s;
	if (!(s = esp_context_create(o, &k.context, error)) &&
	    !(s = esp_model_parse(k.context, "many.ra", text, strlen(text), &k.model, error)) &&
	    !(s = esp_weights_open(k.context, weights, &k.weights, error)) &&
	    !(s = esp_program_create(k.model, k.weights, &interpreted, &k.program, error)))
		s = esp_program_prepare(k.program, error);
	free_kit(&k);
	free(text);
	return s;
}

static esp_status make_wide(const esp_context_options *o, int terms, esp_error **error)
{
	return prepare_text(o, wide_model(terms), error);
}

static void test_operators(void)
{
	esp_error *error;
	esp_context_options o = {.size = sizeof o};
	tap_ok(make_wide(&o, 300, NULL) == ESP_OK, "a model of many operators is compiled");
	o.operators = 500;
	tap_ok(make_wide(&o, 300, &error) == ESP_ERROR_INPUT && error_is(error, "model-too-large"),
	       "not when the context says that they are too many");
	o.operators = 0;
	tap_ok(make_wide(&o, 11000, &error) == ESP_ERROR_INPUT && error_is(error, "model-too-large"),
	       "more than 20000 are not compiled unless the context says so");
}

/* The compiler's memory counts, too. */
static void test_cap(void)
{
	esp_error *error;
	esp_context_options o = {.size = sizeof o, .memory_cap = 2 << 20};
	esp_status s = make_wide(&o, 300, &error);
	tap_ok(s == ESP_ERROR_MEMORY && esp_error_count(error) == 2 &&
		   strcmp(esp_error_get(error, 1)->id, "memory-cap") == 0,
	       "a compilation stays below the cap of its context");
	esp_error_free(error);
}

/* Memory per operator does not grow with the layers and traversals of a program. */
static void test_growth(void)
{
	enum { TRAVERSALS = 12, LAYERS = 60 };
	esp_error *error;
	esp_context_options o = {.size = sizeof o, .memory_cap = (size_t)2 * TRAVERSALS * LAYERS * OPERATOR_BYTES};
	esp_status s = prepare_text(&o, deep_model(TRAVERSALS, LAYERS), &error);
	tap_ok(s == ESP_OK, "%d operators take less than %d KB each", 2 * TRAVERSALS * LAYERS, OPERATOR_BYTES >> 10);
	for (size_t i = 0; i < esp_error_count(error); i++)
		printf("# %s\n", esp_error_get(error, i)->message);
	esp_error_free(error);
}

/* --- structures --- */

static void test_structures(void)
{
	struct kit k;
	esp_error *error;
	static const int32_t descending[] = {0, 5, 2}, negative[] = {-7, -7, -7},
			     children[] = {1, 1, 1, 1, 1};
	const struct {
		const char *what;
		esp_structure structure;
		const char *id;
	} cases[] = {
	    {"2^31 nodes",
	     {sizeof(esp_structure), (size_t)1 << 31, first_pair, pair_children, 2, pair_data},
	     "bad-argument"},
	    {"2^64 - 1 nodes",
	     {sizeof(esp_structure), SIZE_MAX, first_pair, pair_children, 2, pair_data},
	     "bad-argument"},
	    {"2^62 nodes",
	     {sizeof(esp_structure), (size_t)1 << 62, first_pair, pair_children, 2, pair_data},
	     "bad-argument"},
	    {"no node", {sizeof(esp_structure), 0, first_pair, NULL, 0, pair_data}, "empty-input"},
	    {"children that descend",
	     {sizeof(esp_structure), 2, descending, children, 0, pair_data},
	     "bad-child-begin"},
	    {"children before the first",
	     {sizeof(esp_structure), 2, negative, children, 0, pair_data},
	     "bad-child-begin"},
	    {"a root of 2^31 - 1",
	     {sizeof(esp_structure), 3, first_pair, pair_children, INT_MAX, pair_data},
	     "bad-root"},
	};
	make_kit(&k, NULL, weights, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		tap_ok(esp_forest_add(k.forest, &cases[i].structure, &error) != ESP_OK &&
			   error_is(error, cases[i].id),
		       "%s: refused", cases[i].what);
	tap_ok(esp_forest_structures(k.forest) == 0 && esp_forest_add(k.forest, &pair, NULL) == ESP_OK &&
		   esp_session_run(k.session, k.forest, NULL) == ESP_OK,
	       "and what is right is taken after them");
	free_kit(&k);
}

/* --- sizes --- */

/* Everything up to a run, within 1 GiB. */
static esp_status run_text(const char *text, const char *path, esp_error **error)
{
	esp_context_options o = {.size = sizeof o, .memory_cap = (size_t)1 << 30, .threads = 1};
	struct kit k = {0};
	esp_status s;
	if (!(s = esp_context_create(&o, &k.context, error)) &&
	    !(s = esp_model_parse(k.context, "big.ra", text, strlen(text), &k.model, error)) &&
	    !(s = esp_weights_open(k.context, path, &k.weights, error)) &&
	    !(s = esp_program_create(k.model, k.weights, &interpreted, &k.program, error)) &&
	    !(s = esp_binding_create(k.program, k.weights, &k.binding, error)) &&
	    !(s = esp_forest_create(k.program, &k.forest, error)) &&
	    !(s = esp_session_create(k.binding, &k.session, error)) &&
	    !(s = esp_forest_add(k.forest, &pair, error)))
		s = esp_session_run(k.session, k.forest, error);
	free_kit(&k);
	return s;
}

/* Shapes whose products leave 31 or 63 bits, in models that are read as if nothing were. */
static void test_sizes(void)
{
	static const char *const models[] = {
	    "param E[V, 2147483647*D]\nstate h[D]\nleaf:\n    h = E[word][0:D]\ninner:\n    h = left.h\n",
	    "param E[V, D]\nstate h[46341*D, 46341*D, 46341*D]\nleaf:\n    h = sum(E[word]) + zeros(46341*D, "
	    "46341*D, "
	    "46341*D)\ninner:\n    h = "
	    "left.h\n",
	    "param E[V, D]\nstate h[2147483647, 2147483647, 2147483647]\nleaf:\n    h = "
	    "sum(E[word])\ninner:\n    h = left.h\n",
	    "param E[V, D]\nstate h[46341, 46341]\nleaf:\n    h = zeros(46341, 46341) + "
	    "sum(E[word])\ninner:\n    h = left.h @ "
	    "right.h\n",
	};
	char path[128];
	strcpy(path, write_weights("e.safetensors", tiny_weights, 1));
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		char text[1000];
		esp_error *error;
		snprintf(text, sizeof text,
			 "model big\nstructure tree(left, right)\ninput word : token\n%soutput total = "
			 "sum(h) at root\n",
			 models[i]);
		esp_status s = run_text(text, path, &error);
		tap_ok((s == ESP_ERROR_INPUT || s == ESP_ERROR_MEMORY) && esp_error_count(error),
		       "sizes that multiply to too much, %zu: %s", i,
		       esp_error_count(error) ? esp_error_get(error, 0)->message : "nothing is said");
		esp_error_free(error);
	}
}

int main(void)
{
	make_folder();
	strcpy(weights, write_weights("tiny.safetensors", tiny_weights, 2));
	test_operators();
	test_cap();
	test_growth();
	test_structures();
	test_sizes();
	remove_folder((const char *const[]){"tiny.safetensors", "e.safetensors"}, 2);
	return tap_done();
}
