/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model over pairs of words with its weights, perhaps calibrated: objects for tests of weights in 8 bits. */
#ifndef ESPALIER_TESTS_CALIBRATED_H
#define ESPALIER_TESTS_CALIBRATED_H

#include "tests/api/support.h"

struct use {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_calibration *calibration; /* whose program it is; or NULL */
	esp_program *program;
	esp_binding *binding;
	esp_forest *forest;
	esp_session *session;
};

/* Adds a tree of two words; `inner` is the word of its root, -1 = it has none. */
static inline esp_status add_words(const struct use *u, int first, int second, int inner)
{
	const int32_t begin[] = {0, 0, 0, 2}, children[] = {0, 1}, words[] = {first, second, inner};
	esp_structure s = {.size = sizeof s,
			   .nodes = 3,
			   .child_begin = begin,
			   .children = children,
			   .root = 2,
			   .data = (const void *const[]){words}};
	return esp_forest_add(u->forest, &s, NULL);
}

static inline esp_status open_texts(struct use *u, const char *text, const char *weights, esp_error **e)
{
	memset(u, 0, sizeof *u);
	esp_status s = esp_context_create(NULL, &u->context, e);
	s = s ? s : esp_model_parse(u->context, "model.ra", text, strlen(text), &u->model, e);
	return s ? s : esp_weights_open(u->context, weights, &u->weights, e);
}

static inline esp_status bind_use(struct use *u, esp_error **e)
{
	esp_status s = esp_binding_create(u->program, u->weights, &u->binding, e);
	s = s ? s : esp_session_create(u->binding, &u->session, e);
	return s ? s : esp_forest_create(u->program, &u->forest, e);
}

static inline void close_use(struct use *u)
{
	esp_session_free(u->session);
	esp_forest_free(u->forest);
	esp_binding_free(u->binding);
	if (u->calibration)
		esp_calibration_free(u->calibration);
	else
		esp_program_free(u->program);
	esp_weights_free(u->weights);
	esp_model_free(u->model);
	esp_context_free(u->context);
}

/* Runs a tree alone, and copies what its root has of the first output. */
static inline bool run_words(const struct use *u, int first, int second, int inner, float *y, size_t elements)
{
	esp_forest_clear(u->forest);
	bool ok = !add_words(u, first, second, inner) && !esp_session_run(u->session, u->forest, NULL);
	if (ok)
		memcpy(y, esp_session_output(u->session, 0, 0, 2), elements * sizeof *y);
	return ok;
}

#endif
