/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* For benchmarks that use the library: ending when a call fails, making weights, programs that are ready to
 * run. */
#ifndef ESPALIER_BENCH_LIBRARY_H
#define ESPALIER_BENCH_LIBRARY_H

#include "bench/timing.h"
#include "espalier.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static esp_error *error; /* of the last call */

static inline _Noreturn void give_up(const char *why)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	exit(1);
}

static inline void check_status(esp_status status)
{
	if (status)
		give_up(esp_error_text(error));
}

/* Opens weights from a temporary file of the safetensors header and the values that `put` writes. The file
 * is removed before this returns. */
static inline esp_weights *make_weights(esp_context *context, const char *header, void (*put)(FILE *, void *),
					void *user)
{
	char path[] = "/tmp/espalier-bench-XXXXXX";
	uint64_t n = strlen(header), length = (n + 7) / 8 * 8;
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f)
		give_up("cannot write weights");
	fwrite(&length, sizeof length, 1, f);
	fprintf(f, "%s%*s", header, (int)(length - n), "");
	put(f, user);
	if (ferror(f) | fclose(f))
		give_up("cannot write weights");
	esp_weights *w;
	check_status(esp_weights_open(context, path, &w, &error));
	unlink(path);
	return w;
}

/* --- programs that are ready to run --- */

struct server {
	esp_program *program;
	esp_session *session;
	esp_forest *forest; /* empty at first */
};

/* Compiles the model; all that is measured is code by then.  Options may be NULL. */
static inline struct server open_server(const esp_model *m, const esp_weights *w,
					const esp_program_options *o)
{
	struct server s;
	esp_binding *binding;
	check_status(esp_program_create(m, w, o, &s.program, &error));
	check_status(esp_program_prepare(s.program, &error));
	check_status(esp_binding_create(s.program, w, &binding, &error));
	check_status(esp_session_create(binding, &s.session, &error));
	check_status(esp_forest_create(s.program, &s.forest, &error));
	esp_binding_free(binding);
	return s;
}

/* The same of a text; frees the context and the weights, which the server keeps as long as it needs them. */
static inline struct server open_text(esp_context *context, const char *text, esp_weights *w,
				      const esp_program_options *o)
{
	esp_model *m;
	check_status(esp_model_parse(context, "bench.ra", text, strlen(text), &m, &error));
	struct server s = open_server(m, w, o);
	esp_model_free(m);
	esp_weights_free(w);
	esp_context_free(context);
	return s;
}

static inline void close_server(struct server *s)
{
	esp_session_free(s->session);
	esp_forest_free(s->forest);
	esp_program_free(s->program);
}

static inline esp_context *create_context(int threads)
{
	esp_context *context;
	esp_context_options o = {.size = sizeof o, .threads = threads};
	check_status(esp_context_create(&o, &context, &error));
	return context;
}

/* Runs the forest; returns seconds. */
static inline double time_run(const struct server *s)
{
	double begin = read_clock();
	check_status(esp_session_run(s->session, s->forest, &error));
	return read_clock() - begin;
}

static inline double time_least_run(const struct server *s, int repeats)
{
	double least = time_run(s);
	for (int i = 1; i < repeats; i++) {
		double took = time_run(s);
		least = took < least ? took : least;
	}
	return least;
}

#endif
