/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What tests of services share: a service of the tiny model, requests for it, and what sessions say of them.
 */
#ifndef ESPALIER_TESTS_API_SERVING_H
#define ESPALIER_TESTS_API_SERVING_H

#include "api/espalier_service.h"
#include "tests/api/support.h"

#include <time.h>

enum { FORESTS = 12, MOST_NODES = 41 };

static const esp_program_options continuous = {
    .size = sizeof continuous, .backend = "interpreter", .continuous = 1};

struct place {
	struct kit k;
	esp_weights *others;
	esp_service *service;
	esp_forest *forest[FORESTS];
	float twice[2][FORESTS][MOST_NODES][2], total[2][FORESTS]; /* by generation */
};

static unsigned drawn = 7;

static inline int draw(int below)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (int)((drawn >> 16) % (unsigned)below);
}

/* A random tree over the words, its root last. */
static inline void add_tree(esp_forest *f, int leaves)
{
	int32_t begin[MOST_NODES + 1], children[MOST_NODES], words[MOST_NODES], stack[MOST_NODES];
	int nodes = 0, edges = 0, depth = 0;
	while (leaves > 0 || depth > 1) {
		bool leaf = depth < 2 || (leaves > 0 && draw(2));
		begin[nodes] = edges;
		words[nodes] = leaf ? draw(4) : -1;
		if (!leaf) {
			children[edges++] = stack[depth - 2];
			children[edges++] = stack[depth - 1];
			depth -= 2;
		}
		leaves -= leaf;
		stack[depth++] = nodes++;
	}
	begin[nodes] = edges;
	const void *data[] = {words};
	const esp_structure s = {sizeof s, (size_t)nodes, begin, children, nodes - 1, data};
	if (esp_forest_add(f, &s, NULL))
		abort();
}

static inline void note_expected(struct place *p, int generation)
{
	for (int i = 0; i < FORESTS; i++) {
		if (esp_session_run(p->k.session, p->forest[i], NULL))
			abort();
		for (size_t n = 0; n < esp_forest_nodes(p->forest[i], 0); n++)
			memcpy(p->twice[generation][i][n], esp_session_output(p->k.session, 0, 0, n),
			       sizeof p->twice[0][0][0]);
		p->total[generation][i] = *esp_session_output(p->k.session, 1, 0, 0);
	}
}

/* A service without requests; false with an error. */
static inline bool open_place(struct place *p, const esp_context_options *memory,
			      const esp_service_options *o, esp_error **error)
{
	struct kit *k = &p->k;
	memset(p, 0, sizeof *p);
	return !esp_context_create(memory, &k->context, error) &&
	       !esp_model_parse(k->context, "tiny.ra", tiny_model, strlen(tiny_model), &k->model, error) &&
	       !esp_weights_open(k->context, path_of("w.safetensors"), &k->weights, error) &&
	       !esp_program_create(k->model, k->weights, &continuous, &k->program, error) &&
	       !esp_binding_create(k->program, k->weights, &k->binding, error) &&
	       !esp_service_create(k->binding, o, &p->service, error);
}

/* With requests, and what they give with two generations of weights: those of the odd ones, and of the even
 * ones. */
static inline void fill_place(struct place *p)
{
	if (esp_session_create(p->k.binding, &p->k.session, NULL) ||
	    esp_weights_open(p->k.context, path_of("v.safetensors"), &p->others, NULL))
		abort();
	for (int i = 0; i < FORESTS; i++) {
		if (esp_forest_create(p->k.program, &p->forest[i], NULL))
			abort();
		add_tree(p->forest[i], 1 + draw((MOST_NODES + 1) / 2));
	}
	note_expected(p, 1);
	if (esp_binding_swap(p->k.binding, p->others, NULL))
		abort();
	note_expected(p, 0);
}

static inline void open_full(struct place *p, const esp_service_options *o)
{
	esp_error *error;
	if (!open_place(p, NULL, o, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
	fill_place(p);
}

static inline void close_place(struct place *p)
{
	for (int i = 0; i < FORESTS; i++)
		esp_forest_free(p->forest[i]);
	esp_weights_free(p->others);
	esp_service_free(p->service);
	free_kit(&p->k);
}

static inline bool has_bits(const struct place *p, const esp_ticket *t, int which)
{
	int generation = (int)(esp_ticket_generation(t) % 2);
	size_t nodes = esp_forest_nodes(p->forest[which], 0);
	const float *total = esp_ticket_output(t, 1, 0, 0);
	bool same = total && memcmp(total, &p->total[generation][which], sizeof *total) == 0;
	for (size_t n = 0; same && n < nodes; n++) {
		const float *row = esp_ticket_output(t, 0, 0, n);
		same = row && memcmp(row, p->twice[generation][which][n], 2 * sizeof *row) == 0;
	}
	return same && !esp_ticket_output(t, 0, 0, nodes) && !esp_ticket_output(t, 0, 1, 0) &&
	       !esp_ticket_output(t, 2, 0, 0);
}

static inline esp_ticket *submit(struct place *p, int which, esp_submit_options o)
{
	esp_ticket *t;
	o.size = sizeof o;
	return esp_service_submit(p->service, p->forest[which], &o, &t, NULL) ? NULL : t;
}

static inline esp_service_counts count(const esp_service *s)
{
	esp_service_counts c = {.size = sizeof c};
	esp_service_count(s, &c);
	return c;
}

static inline void sleep_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Frees the error. */
static inline bool refused(esp_status status, esp_status expected, esp_error *error, const char *id)
{
	return error_is(error, id) && status == expected;
}

/* --- files --- */

static const struct tensor other_weights[] = {
    {"E", 4, 2, (const float[]){2, 1, 5, 3, 1, 7, 3, 9}},
    {"W", 2, 2, (const float[]){1, 2, -1, 0}},
};

/* Weights of two generations, where open_full and open_place look for them. */
static inline void write_generations(void)
{
	make_folder();
	write_weights("w.safetensors", tiny_weights, 2);
	write_weights("v.safetensors", other_weights, 2);
}

#endif
