/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from texts, by the library's readers: the body of v1/run, and elements of the tensor
 * "structure". */
#include "request.h"

#include <stdlib.h>
#include <string.h>

/* --- limits that are found before memory is taken --- */

/* A reader takes memory for all brackets of a tree before the number of its nodes is known. */
static bool check_brackets(const struct texts *x, const char *where, const char *text, size_t n)
{
	size_t depth = 0, most = 0, nodes = 0;
	for (size_t i = 0; i < n; i++) {
		bool opens = text[i] == '(';
		depth += opens;
		nodes += opens;
		depth -= text[i] == ')' && depth;
		most = depth > most ? depth : most;
	}
	if (most > x->limits->depth)
		return refuse(x->failure, TOO_LARGE,
			      "%s: %zu brackets are open in each other, and the limit is %zu", where, most,
			      x->limits->depth);
	return nodes <= x->limits->nodes ||
	       refuse(x->failure, TOO_LARGE,
		      "%s has %zu brackets, and the limit is %zu: send several requests", where, nodes,
		      x->limits->nodes);
}

static bool check_nodes(const struct texts *x)
{
	return x->request->nodes <= x->limits->nodes ||
	       refuse(x->failure, TOO_LARGE,
		      "the request has more than %zu nodes, which is the limit: send several requests",
		      x->limits->nodes);
}

/* --- sentences --- */

static bool keep_sentence(struct texts *x, const esp_treebank *t)
{
	struct infer_request *r = x->request;
	size_t n = r->structures;
	if (!r->lines)
		return true;
	/* The list grows to twice its length whenever that is a power of two. */
	char **list = n & (n - 1) ? r->sentence : realloc(r->sentence, (n ? 2 * n : 1) * sizeof *list);
	if (!list)
		return refuse_memory(x->failure);
	r->sentence = list;
	return (r->sentence[n] = strdup(esp_treebank_sentence(t))) || refuse_memory(x->failure);
}

/* --- texts --- */

static bool add_next(struct texts *x, const char *where, esp_treebank *t, int *more)
{
	esp_error *error;
	struct infer_request *r = x->request;
	esp_status status = esp_treebank_next(t, r->forest, more, &error);
	if (status)
		return refuse_error(x->failure, where, status, error);
	if (!*more)
		return true;
	if (!keep_sentence(x, t))
		return false;
	r->nodes += esp_forest_nodes(r->forest, r->structures++);
	return check_nodes(x);
}

static bool add_all(struct texts *x, const char *where, esp_treebank *t, bool one)
{
	size_t before = x->request->structures;
	int more;
	do
		if (!add_next(x, where, t, &more))
			return false;
	while (more);
	size_t n = x->request->structures - before;
	if (n == 0 || (one && n > 1))
		return refuse(x->failure, BAD_REQUEST, "%s has %zu structures: it must have one%s", where, n,
			      one ? "" : " or more");
	return true;
}

bool texts_add(struct texts *x, const char *where, int format, const char *text, size_t n, bool one)
{
	esp_treebank_options o = {.size = sizeof o};
	esp_treebank *t;
	esp_error *error;
	if (x->model->reading)
		o = *x->model->reading;
	if (format)
		o.format = format;
	if (!check_brackets(x, where, text, n))
		return false;
	esp_status status = esp_treebank_from_memory(x->model->context, "body", text, n, &o, &t, &error);
	if (status)
		return refuse_error(x->failure, where, status, error);
	bool ok = add_all(x, where, t, one);
	esp_treebank_free(t);
	return ok;
}

/* --- v1/run --- */

static const struct {
	const char *type;
	int format;
} types[] = {
    {"text/", ESP_FORMAT_AUTO},
    {"application/x-www-form-urlencoded", ESP_FORMAT_AUTO},
    {"application/json", ESP_FORMAT_JSON},
    {"application/jsonl", ESP_FORMAT_JSON},
    {"application/x-ndjson", ESP_FORMAT_JSON},
};

/* The format by the type of the body; -1 = it is none. */
static int format_of_type(const char *type)
{
	if (!type)
		return ESP_FORMAT_AUTO;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (is_type(type, types[i].type))
			return types[i].format;
	return -1;
}

struct infer_request *infer_parse_text(const struct infer_model *model, const struct infer_limits *limits,
				       const char *type, const char *body, size_t bytes,
				       struct infer_failure *failure)
{
	struct infer_limits most = limits_of(limits);
	int format = format_of_type(type);
	if (format < 0) {
		refuse(failure, BAD_TYPE,
		       "structures are not read from '%.60s': send text/plain, or application/json as "
		       "doc/structures.md says",
		       type);
		return NULL;
	}
	struct infer_request *r = check_bytes(&most, bytes, failure) ? request_new(model, failure) : NULL;
	if (!r)
		return NULL;
	r->lines = true;
	struct texts x = {model, &most, r, failure};
	if (texts_add(&x, "the body", format, body, bytes, false) && request_all_outputs(r, failure))
		return r;
	infer_free(r);
	return NULL;
}
