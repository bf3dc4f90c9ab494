/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which request is answered by what: the table of paths, what is asked before a body is read, and the answers that
 * need none. */
#include "serve.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- answers --- */

static const char *const json = "application/json";

/* The name that a request has, and when to come again. */
static void add_headers(const struct request *r, struct MHD_Response *response, const char *type)
{
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "X-Request-Id", r->id);
	if (r->status == 429 || r->status == 503)
		MHD_add_response_header(response, "Retry-After", "1");
	if (r->status == 405)
		MHD_add_response_header(response, "Allow", r->route->method == METHOD_GET ? "GET, HEAD" : "POST");
	if (r->server->draining)
		MHD_add_response_header(response, "Connection", "close");
}

enum MHD_Result answer_text(struct request *r, int status, const char *type, char *text, size_t bytes)
{
	static char none[] = "{\"error\":\"no memory\"}";
	struct MHD_Response *response =
	    text ? MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE)
		 : MHD_create_response_from_buffer(sizeof none - 1, none, MHD_RESPMEM_PERSISTENT);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	r->status = text ? status : 503;
	if (strcmp(r->method, "HEAD") != 0)
		r->sent = text ? bytes : sizeof none - 1;
	add_headers(r, response, text ? type : json);
	enum MHD_Result queued = MHD_queue_response(r->connection, r->status, response);
	MHD_destroy_response(response);
	r->client->since = esp_clock();
	return queued;
}

enum MHD_Result answer_json(struct request *r, int status, char *text, size_t bytes)
{
	return answer_text(r, status, json, text, bytes);
}

enum MHD_Result answer_error(struct request *r, int status, const char *format, ...)
{
	va_list args;
	char *message = NULL, *text = NULL;
	size_t bytes = 0;
	va_start(args, format);
	if (vasprintf(&message, format, args) >= 0) {
		text = infer_write_error(message, &bytes);
		free(message);
	}
	va_end(args);
	return answer_json(r, status, text, bytes);
}

struct infer_model model_of(const struct request *r)
{
	struct instance *i = r->instance;
	return (struct infer_model){i->name, r->server->models.context, i->objects.program,
				    &i->objects.reading.options, i->arrays};
}

static enum MHD_Result answer_live(struct request *r)
{
	return answer_json(r, 200, strdup("{\"live\":true}"), strlen("{\"live\":true}"));
}

static enum MHD_Result answer_ready(struct request *r)
{
	if (r->server->draining || !models_ready(&r->server->models))
		return answer_error(r, 503, r->server->draining ? "the server ends" : "models are being loaded");
	return answer_json(r, 200, strdup("{\"ready\":true}"), strlen("{\"ready\":true}"));
}

static enum MHD_Result answer_server(struct request *r)
{
	size_t bytes = 0;
	char *text = infer_describe_server(&bytes);
	return answer_json(r, 200, text, bytes);
}

static enum MHD_Result answer_model(struct request *r)
{
	size_t bytes = 0;
	const struct infer_model model = model_of(r);
	char *text = infer_describe_model(&model, r->generation, &bytes);
	return answer_json(r, 200, text, bytes);
}

static enum MHD_Result answer_model_ready(struct request *r)
{
	char *text = NULL;
	int n = asprintf(&text, "{\"name\":\"%s\",\"ready\":true}", r->instance->name);
	return answer_json(r, 200, n < 0 ? NULL : text, n);
}

/* --- routes --- */

static const struct route routes[] = {
    {"/v2", METHOD_GET, 0, answer_server},
    {"/v2/health/live", METHOD_GET, 0, answer_live},
    {"/v2/health/ready", METHOD_GET, 0, answer_ready},
    {"/v2/models/*", METHOD_GET, true, answer_model},
    {"/v2/models/*/ready", METHOD_GET, true, answer_model_ready},
    {"/v2/models/*/infer", METHOD_POST, true, answer_infer},
    {"/v2/models/*/versions/*", METHOD_GET, true, answer_model},
    {"/v2/models/*/versions/*/ready", METHOD_GET, true, answer_model_ready},
    {"/v2/models/*/versions/*/infer", METHOD_POST, true, answer_infer},
    {"/v1/run", METHOD_POST, true, answer_run},
    {"/v1/run/*", METHOD_POST, true, answer_run},
    {"/metrics", METHOD_GET, 0, answer_metrics},
};

/* Copies a segment of a path; false when it is empty, or too long to be anything's name. */
static bool take_segment(const char **path, char *to, size_t capacity)
{
	size_t n = strcspn(*path, "/");
	if (!n || n >= capacity)
		return false;
	memcpy(to, *path, n);
	to[n] = 0;
	*path += n;
	return true;
}

/* Whether a path is of a pattern; what stands for its first star is the name, for the second the version. */
static bool match_path(struct request *r, const char *pattern)
{
	const char *path = r->path;
	*r->name = *r->version = 0;
	for (; *pattern; pattern++)
		if (*pattern != '*') {
			if (*path++ != *pattern)
				return false;
		} else if (!(*r->name ? take_segment(&path, r->version, sizeof r->version)
				      : take_segment(&path, r->name, sizeof r->name))) {
			return false;
		}
	return !*path;
}

static bool fits_method(const char *method, enum method wanted)
{
	if (wanted == METHOD_POST)
		return strcmp(method, "POST") == 0;
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

/* The version of a model is the generation of its weights. */
static bool check_version(struct request *r, enum MHD_Result *result)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, r->generation);
	if (!*r->version || strcmp(r->version, text) == 0)
		return true;
	*result = answer_error(r, 404, "model '%s' has version %s now, not '%s'", r->name, text, r->version);
	return false;
}

/* Finds the model of a request; false after a refusal. */
static bool find_model(struct request *r, enum MHD_Result *result)
{
	if (r->server->draining) {
		*result = answer_error(r, 503, "the server ends");
		return false;
	}
	switch (models_take(&r->server->models, r->name, &r->instance)) {
	case FOUND_READY:
		r->generation = instance_generation(r->instance, NULL);
		return check_version(r, result);
	case FOUND_LOADING:
		*result = answer_error(r, 503, "%s",
				       *r->name ? "the model is being loaded" : "models are being loaded");
		return false;
	case FOUND_SEVERAL:
		*result = answer_error(r, 400, "there are several models: name one, as in /v1/run/NAME");
		return false;
	case FOUND_NONE:
		*result = *r->name ? answer_error(r, 404, "there is no model '%s'", r->name)
				   : answer_error(r, 404, "there is no model");
		return false;
	}
	return false;
}

bool route_request(struct request *r, enum MHD_Result *result)
{
	size_t i = 0, n = sizeof routes / sizeof *routes;
	while (i < n && !match_path(r, routes[i].pattern))
		i++;
	if (i == n) {
		*r->name = 0;
		*result = answer_error(r, 404, "there is nothing at %.200s", r->path);
		return false;
	}
	r->route = &routes[i];
	if (!fits_method(r->method, r->route->method)) {
		*result = answer_error(r, 405, "%s is not a method of %.200s", r->method, r->path);
		return false;
	}
	return !r->route->ready || find_model(r, result);
}
