/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests as objects. */
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct infer_limits limits_of(const struct infer_limits *given)
{
	struct infer_limits l = given ? *given : (struct infer_limits){0};
	l.bytes = l.bytes ? l.bytes : (size_t)64 << 20;
	l.nodes = l.nodes ? l.nodes : (size_t)1 << 20;
	l.depth = l.depth ? l.depth : 10000;
	return l;
}

bool check_bytes(const struct infer_limits *l, size_t bytes, struct infer_failure *f)
{
	return bytes <= l->bytes ||
	       refuse(f, TOO_LARGE, "the body has %zu bytes, and the limit is %zu: send several requests",
		      bytes, l->bytes);
}

bool is_type(const char *found, const char *wanted)
{
	size_t length = strcspn(found, "; \t"), n = strlen(wanted);
	bool fits = wanted[n - 1] == '/' ? length >= n : length == n;
	return !length || (fits && strncasecmp(found, wanted, n) == 0);
}

struct infer_request *request_new(const struct infer_model *model, struct infer_failure *failure)
{
	struct infer_request *r = calloc(1, sizeof *r);
	esp_error *error;
	if (!r) {
		refuse_memory(failure);
		return NULL;
	}
	r->program = model->program;
	r->options.size = sizeof r->options;
	esp_status status = esp_forest_create(model->program, &r->forest, &error);
	if (!status)
		return r;
	refuse_error(failure, "the request", status, error);
	free(r);
	return NULL;
}

bool request_make_outputs(struct infer_request *r, struct infer_failure *f)
{
	r->output = calloc(esp_program_outputs(r->program) + 1, sizeof *r->output);
	return r->output || refuse_memory(f);
}

bool request_all_outputs(struct infer_request *r, struct infer_failure *f)
{
	size_t n = esp_program_outputs(r->program);
	if (!r->output && !request_make_outputs(r, f))
		return false;
	for (r->outputs = 0; r->outputs < n; r->outputs++)
		r->output[r->outputs].number = (int)r->outputs;
	return true;
}

void infer_free(struct infer_request *r)
{
	if (!r)
		return;
	/* A structure whose text could not be kept is not counted, and those behind `structures` have none.
	 */
	for (size_t i = 0; r->sentence && i < r->structures; i++)
		free(r->sentence[i]);
	free(r->sentence);
	for (size_t i = 0; i < r->outputs; i++)
		free(r->output[i].name);
	free(r->output);
	free(r->id);
	esp_forest_free(r->forest);
	free(r);
}

const esp_forest *infer_forest(const struct infer_request *r)
{
	return r->forest;
}

esp_submit_options infer_options(const struct infer_request *r)
{
	return r->options;
}

size_t infer_nodes(const struct infer_request *r)
{
	return r->nodes;
}
