/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file with its own weights, as far as a session. */
#ifndef ESPALIER_TESTS_ONNX_RUNNABLE_H
#define ESPALIER_TESTS_ONNX_RUNNABLE_H

#include "api/espalier.h"

#include <stdbool.h>
#include <stdio.h>

struct runnable {
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
};

/* False after it has printed why; what was opened is to be closed either way. */
static inline bool open_runnable_on(const char *accelerator, esp_context *context, struct runnable *r, const char *path,
				    const esp_read_options *read, const char *backend)
{
	const esp_program_options o = {.size = sizeof o, .backend = backend, .accelerator = accelerator};
	esp_error *error = NULL;
	*r = (struct runnable){0};
	bool ok = !esp_model_read_with(context, path, read, &r->model, &error) &&
		  !esp_model_weights(r->model, &r->weights, &error) &&
		  !esp_program_create(r->model, r->weights, &o, &r->program, &error) &&
		  !esp_binding_create(r->program, r->weights, &r->binding, &error) &&
		  !esp_session_create(r->binding, &r->session, &error);
	if (!ok)
		printf("# %s", error ? esp_error_text(error) : "no error\n");
	esp_error_free(error);
	return ok;
}

static inline bool open_runnable(esp_context *context, struct runnable *r, const char *path,
				 const esp_read_options *read, const char *backend)
{
	return open_runnable_on(NULL, context, r, path, read, backend);
}

static inline void close_runnable(struct runnable *r)
{
	esp_session_free(r->session);
	esp_binding_free(r->binding);
	esp_program_free(r->program);
	esp_weights_free(r->weights);
	esp_model_free(r->model);
}

#endif
