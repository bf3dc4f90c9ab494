/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* overhead: the cost of a run besides its kernels.
 *
 *   usage: overhead [REPEATS]
 *
 * The model adds one number per node, so nearly all of a run's time is spent outside the kernels: it is an
 * upper bound of the overhead. A request is esp_forest_clear, esp_forest_add, esp_session_run; by a service
 * esp_service_submit, esp_ticket_wait and esp_ticket_free instead of the last, by one thread. */
#include "bench/library.h"
#include "espalier_service.h"

static const char model[] =
    "model least\n"
    "structure tree(left, right)\n"
    "input word : token\n"
    "param E[V]\n"
    "state h\n"
    "leaf:\n"
    "    h = E[word]\n"
    "inner:\n"
    "    h = left.h + right.h\n"
    "output sum = h at root\n";

/* --- structures --- */

/* A perfect tree as a heap: node i has children 2i + 1 and 2i + 2. Numbered backwards, children come
 * first. */
static esp_structure make_heap(int32_t nodes)
{
	int32_t *begin = malloc((nodes + 1ul) * sizeof *begin), *children = malloc(nodes * sizeof *children);
	int32_t *word = malloc(nodes * sizeof *word), inner = nodes / 2, n = 0;
	const void **data = malloc(sizeof *data);
	if (!begin || !children || !word || !data)
		give_up("no memory");
	for (int32_t i = 0; i < nodes; i++) {
		int32_t at = nodes - 1 - i;
		begin[i] = n;
		word[i] = at < inner ? -1 : at % 4;
		for (int k = 1; at < inner && k <= 2; k++)
			children[n++] = nodes - 1 - (2 * at + k);
	}
	begin[nodes] = n;
	*data = word;
	return (esp_structure){.size = sizeof(esp_structure),
			       .nodes = nodes,
			       .child_begin = begin,
			       .children = children,
			       .root = nodes - 1,
			       .data = data};
}

/* --- weights --- */

static const char header[] = "{\"E\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";

static void put_weights(FILE *f, void *unused)
{
	(void)unused;
	fwrite((const float[]){1, 2, 3, 4}, sizeof(float), 4, f);
}

/* --- measuring --- */

static void print_times(const char *what, double *seconds, long n, double scale, const char *unit)
{
	qsort(seconds, n, sizeof *seconds, compare_doubles);
	printf("%-48s %8.2f %8.2f %8.2f %s\n", what, seconds[0] * scale, seconds[n / 2] * scale,
	       seconds[n * 99 / 100] * scale, unit);
}

static void measure_request(struct server *s, size_t nodes, double *seconds, long repeats)
{
	char what[60];
	esp_structure tree = make_heap(nodes);
	for (long i = -100; i < repeats; i++) {
		double begin = read_clock();
		esp_forest_clear(s->forest);
		check_status(esp_forest_add(s->forest, &tree, &error));
		check_status(esp_session_run(s->session, s->forest, &error));
		if (i >= 0)
			seconds[i] = read_clock() - begin;
	}
	snprintf(what, sizeof what, "request of %zu node%s", nodes, nodes == 1 ? "" : "s");
	print_times(what, seconds, repeats, 1e6, "us");
}

static void measure_service(esp_service *service, esp_forest *forest, size_t nodes, double *seconds,
			    long repeats)
{
	char what[60];
	esp_structure tree = make_heap(nodes);
	for (long i = -100; i < repeats; i++) {
		double begin = read_clock();
		esp_ticket *ticket;
		esp_forest_clear(forest);
		check_status(esp_forest_add(forest, &tree, &error));
		check_status(esp_service_submit(service, forest, NULL, &ticket, &error));
		check_status(esp_ticket_wait(ticket, INT64_MAX, &error));
		esp_ticket_free(ticket);
		if (i >= 0)
			seconds[i] = read_clock() - begin;
	}
	snprintf(what, sizeof what, "by a service, of %zu node%s", nodes, nodes == 1 ? "" : "s");
	print_times(what, seconds, repeats, 1e6, "us");
}

static void measure_services(esp_context *context, esp_weights *weights, double *seconds, long repeats)
{
	const esp_program_options o = {.size = sizeof o, .continuous = 1};
	esp_model *m;
	esp_program *program;
	esp_binding *binding;
	esp_service *service;
	esp_forest *forest;
	check_status(esp_model_parse(context, "least.ra", model, strlen(model), &m, &error));
	check_status(esp_program_create(m, weights, &o, &program, &error));
	check_status(esp_binding_create(program, weights, &binding, &error));
	check_status(esp_service_create(binding, NULL, &service, &error));
	check_status(esp_forest_create(program, &forest, &error));
	measure_service(service, forest, 1, seconds, repeats);
	measure_service(service, forest, 37, seconds, repeats);
}

int main(int argc, char **argv)
{
	long repeats = argc > 1 ? atol(argv[1]) : 20000;
	if (repeats < 1)
		give_up("REPEATS is a number from 1");
	double *seconds = malloc(repeats * sizeof *seconds);
	if (!seconds)
		give_up("no memory");
	esp_context *context = create_context(0);
	esp_weights *weights = make_weights(context, header, put_weights, NULL);
	printf("%-48s %8s %8s %8s\n", "", "minimum", "median", "99 %");
	measure_services(context, weights, seconds, repeats);
	struct server s = open_text(context, model, weights, NULL);
	measure_request(&s, 1, seconds, repeats);
	measure_request(&s, 37, seconds, repeats);
	return 0;
}
