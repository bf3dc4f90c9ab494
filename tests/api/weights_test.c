/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights from memory: the caller's bytes, for as long as the weights are there. */
#include "tests/api/support.h"

static const char *path;

/* A block with the file's bytes and no more. */
static char *load(size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *bytes = malloc(1 << 16), *own;
	*n = fread(bytes, 1, 1 << 16, f);
	fclose(f);
	own = memcpy(malloc(*n), bytes, *n);
	free(bytes);
	return own;
}

static const float *run_pair(const struct kit *k, esp_binding *b, esp_session **s)
{
	if (esp_session_create(b, s, NULL) || esp_session_run(*s, k->forest, NULL))
		return NULL;
	return esp_session_output(*s, 0, 0, 2);
}

static void test_runs(struct kit *k)
{
	size_t n;
	char *bytes = load(&n);
	esp_weights *w;
	esp_program *p = NULL;
	esp_binding *b = NULL;
	esp_session *s = NULL;
	esp_error *error;
	size_t before = esp_context_memory(k->context, NULL);
	if (!tap_ok(esp_weights_from_memory(k->context, bytes, n, &w, &error) == ESP_OK, "weights are opened in memory"))
		return;
	tap_ok(esp_program_create(k->model, w, &interpreted, &p, &error) == ESP_OK, "a program takes its sizes from them");
	esp_program_free(p);
	tap_ok(esp_binding_create(k->program, w, &b, &error) == ESP_OK, "they are bound");
	esp_weights_free(w);
	memset(bytes, 0xff, n);
	free(bytes);
	const float *row = run_pair(k, b, &s);
	tap_ok(row && memcmp(row, esp_session_output(k->session, 0, 0, 2), 2 * sizeof *row) == 0,
	       "and run to the same bits as those of the file, when they are gone");
	esp_session_free(s);
	esp_binding_free(b);
	tap_is((long)esp_context_memory(k->context, NULL), (long)before, "all memory comes back");
}

/* Other values in the same bytes are other weights: nothing was copied before they are bound. */
static void test_in_place(struct kit *k)
{
	size_t n;
	char *bytes = load(&n);
	esp_weights *w;
	if (esp_weights_from_memory(k->context, bytes, n, &w, NULL))
		return;
	memset(bytes + n - sizeof(float[4]), 0, sizeof(float[4])); /* all of W */
	tap_ok(esp_binding_swap(k->binding, w, NULL) == ESP_OK &&
		   esp_session_run(k->session, k->forest, NULL) == ESP_OK &&
		   *esp_session_output(k->session, 0, 0, 2) == 2 * 3,
	       "values are read when they are bound");
	esp_weights_free(w);
	free(bytes);
}

static void test_refusals(struct kit *k)
{
	size_t n;
	char *bytes = load(&n);
	esp_weights *w = (void *)k;
	esp_error *error;
	tap_ok(esp_weights_from_memory(k->context, bytes, n - 1, &w, &error) == ESP_ERROR_INPUT && !w &&
		   strstr(esp_error_text(error), "weights in memory") && error_is(error, "bad-tensor"),
	       "bytes that were cut off are refused");
	tap_ok(esp_weights_from_memory(k->context, bytes, 0, &w, &error) == ESP_ERROR_INPUT && !w &&
		   error_is(error, "bad-weights"),
	       "so are none");
	memset(bytes, 0xff, 8);
	tap_ok(esp_weights_from_memory(k->context, bytes, n, &w, &error) == ESP_ERROR_INPUT && !w &&
		   error_is(error, "bad-weights"),
	       "and those that are no weights");
	free(bytes);
}

int main(void)
{
	struct kit k;
	esp_error *error;
	make_folder();
	path = write_weights("w.safetensors", tiny_weights, 2);
	if (make_kit(&k, NULL, path, &error) || esp_forest_add(k.forest, &pair, &error) ||
	    esp_session_run(k.session, k.forest, &error))
		return tap_ok(false, "%s", esp_error_text(error)), tap_done();
	test_runs(&k);
	test_in_place(&k);
	test_refusals(&k);
	free_kit(&k);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
