/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model with a service, and the responses to requests that were read for it. */
#ifndef ESPALIER_TESTS_TOOLS_SERVED_H
#define ESPALIER_TESTS_TOOLS_SERVED_H

#include "serve/infer.h"
#include "tests/api/support.h"

static const esp_program_options continuous = {
    .size = sizeof continuous, .backend = "interpreter", .continuous = 1};

struct served {
	esp_context *context;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	esp_service *service;
	esp_vocab *vocab;
	esp_treebank_options reading;
	struct infer_model model;
};

static inline bool serve(struct served *s, const char *text, const struct tensor *tensors, int n,
			 const char *words)
{
	esp_model *model = NULL;
	esp_weights *weights = NULL;
	esp_error *error = NULL;
	memset(s, 0, sizeof *s);
	bool ok =
	    !esp_context_create(NULL, &s->context, &error) &&
	    !esp_model_parse(s->context, "m.ra", text, strlen(text), &model, &error) &&
	    !esp_weights_open(s->context, write_weights("w.safetensors", tensors, n), &weights, &error) &&
	    !esp_program_create(model, weights, &continuous, &s->program, &error) &&
	    !esp_binding_create(s->program, weights, &s->binding, &error) &&
	    !esp_session_create(s->binding, &s->session, &error) &&
	    !esp_service_create(s->binding, NULL, &s->service, &error) &&
	    !esp_vocab_open(s->context, write_text("words.txt", words), &s->vocab, &error);
	if (error)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	esp_model_free(model);
	esp_weights_free(weights);
	s->reading = (esp_treebank_options){.size = sizeof s->reading, .vocab = s->vocab};
	s->model = (struct infer_model){"m", s->context, s->program, &s->reading, false};
	return tap_ok(ok, "a model is served");
}

static inline void stop(struct served *s)
{
	esp_service_free(s->service);
	esp_session_free(s->session);
	esp_binding_free(s->binding);
	esp_program_free(s->program);
	esp_vocab_free(s->vocab);
	esp_context_free(s->context);
}

/* The response to a request, for free(); NULL after a line for people. */
static inline char *respond(struct served *s, struct infer_request *r, const struct infer_failure *f)
{
	esp_ticket *t = NULL;
	esp_error *error = NULL;
	char *text = NULL;
	size_t n;
	esp_submit_options o = r ? infer_options(r) : (esp_submit_options){0};
	if (!r)
		printf("# %d %s\n", f->status, f->message);
	else if (esp_service_submit(s->service, infer_forest(r), &o, &t, &error) ||
		 esp_ticket_wait(t, INT64_MAX, &error))
		printf("# %s\n", esp_error_text(error));
	else
		text = infer_write(r, t, "m", esp_ticket_generation(t), &n);
	if (text && strlen(text) != n)
		text[0] = 0;
	esp_error_free(error);
	esp_ticket_free(t);
	infer_free(r);
	return text;
}

#endif
