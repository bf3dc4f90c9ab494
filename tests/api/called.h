/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model without weights that is called with arrays, for tests of functions of the language. */
#ifndef ESPALIER_TESTS_API_CALLED_H
#define ESPALIER_TESTS_API_CALLED_H

#include "api/espalier.h"
#include "tests/backends.h"

#include <string.h>

struct run {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
};

/* A file of weights without any. */
static const char no_weights[] = "\2\0\0\0\0\0\0\0{}";

static inline bool open_run(struct run *r, const char *backend, const char *math, const char *text)
{
	const esp_context_options quiet = {.size = sizeof quiet, .cache = ESP_CACHE_OFF, .threads = 1};
	const esp_program_options o = {.size = sizeof o, .backend = backend, .math = math};
	esp_error *error = NULL;
	memset(r, 0, sizeof *r);
	bool ok = esp_context_create(&quiet, &r->context, &error) == ESP_OK &&
		  esp_model_parse(r->context, "prelude.ra", text, strlen(text), &r->model, &error) == ESP_OK &&
		  esp_weights_from_memory(r->context, no_weights, sizeof no_weights - 1, &r->weights, &error) == ESP_OK &&
		  esp_program_create(r->model, r->weights, &o, &r->program, &error) == ESP_OK &&
		  esp_binding_create(r->program, r->weights, &r->binding, &error) == ESP_OK &&
		  esp_session_create(r->binding, &r->session, &error) == ESP_OK;
	if (!tap_ok(ok, "%s compiles the functions in %s arithmetic", backend, math))
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

static inline void close_run(struct run *r)
{
	esp_session_free(r->session);
	esp_binding_free(r->binding);
	esp_program_free(r->program);
	esp_weights_free(r->weights);
	esp_model_free(r->model);
	esp_context_free(r->context);
}

/* Results of a row, of an output that there is. */
static inline const void *row_of(const struct run *r, const char *output, size_t row)
{
	size_t which = 0;
	while (esp_program_output(r->program, which) && strcmp(esp_program_output(r->program, which)->name, output) != 0)
		which++;
	return esp_session_root_elements(r->session, which, row);
}

#endif
