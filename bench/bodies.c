/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* bodies: what reading a request and writing its response cost beside the run between them.
 *
 *   usage: bodies MODEL.ra WEIGHTS VOCAB TREES [REPEATS]
 *
 * The first tree of 37 nodes is a request, as tensors and as text; then 37 nodes that carry 300 floats each,
 * all of which are written, too.  jansson parses the same bodies, and writes the same floats, for comparison.
 */
#include "bench/timing.h"
#include "serve/infer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 37 };

static esp_error *error;
static long repeats = 2000;
static double *seconds;

static void check_status(esp_status status)
{
	if (status == ESP_OK)
		return;
	fputs(esp_error_text(error), stderr);
	exit(1);
}

/* --- what is measured --- */

struct subject {
	struct infer_model model;
	esp_treebank_options reading;
	esp_service *service;
	esp_session *session;
	struct infer_request *request; /* read once */
	esp_ticket *ticket;	       /* of it, ended */
	char *body, *response;
	size_t bytes, response_bytes;
};

static void read_tensors(struct subject *s)
{
	struct infer_failure f;
	struct infer_request *r = infer_parse(&s->model, NULL, NULL, s->body, s->bytes, &f);
	if (!r) {
		fprintf(stderr, "%s\n", f.message);
		exit(1);
	}
	infer_free(s->request);
	s->request = r;
}

static void read_text(struct subject *s)
{
	struct infer_failure f;
	struct infer_request *r = infer_parse_text(&s->model, NULL, NULL, s->body, s->bytes, &f);
	infer_free(s->request);
	s->request = r;
}

static void run(struct subject *s)
{
	check_status(esp_session_run(s->session, infer_forest(s->request), &error));
}

static void compute(struct subject *s)
{
	esp_ticket_free(s->ticket);
	check_status(esp_service_submit(s->service, infer_forest(s->request), NULL, &s->ticket, &error));
	check_status(esp_ticket_wait(s->ticket, INT64_MAX, &error));
}

static void write_response(struct subject *s)
{
	free(s->response);
	s->response = infer_write(s->request, s->ticket, "m", 1, &s->response_bytes);
}

static void load_body(struct subject *s)
{
	json_decref(json_loadb(s->body, s->bytes, 0, NULL));
}

static void dump_response(struct subject *s)
{
	json_t *all = json_loadb(s->response, s->response_bytes, 0, NULL);
	double begin = read_clock();
	char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
	*seconds = read_clock() - begin;
	free(text);
	json_decref(all);
}

/* The least and the median of times in microseconds; `inside`: the subject measures itself. */
static void measure(const char *what, struct subject *s, void (*work)(struct subject *), int inside)
{
	double *time = malloc(repeats * sizeof *time);
	for (long i = -20; i < repeats; i++) {
		double begin = read_clock();
		work(s);
		if (i >= 0)
			time[i] = inside ? *seconds : read_clock() - begin;
	}
	qsort(time, repeats, sizeof *time, compare_doubles);
	printf("%-44s %9.2f %9.2f us\n", what, time[0] * 1e6, time[repeats / 2] * 1e6);
	free(time);
}

/* --- models --- */

static void open_model(struct subject *s, esp_model *m, esp_weights *w, esp_vocab *vocab)
{
	const esp_program_options o = {.size = sizeof o, .continuous = 1};
	esp_binding *binding;
	check_status(esp_program_create(m, w, &o, &s->model.program, &error));
	check_status(esp_program_prepare(s->model.program, &error));
	check_status(esp_binding_create(s->model.program, w, &binding, &error));
	check_status(esp_session_create(binding, &s->session, &error));
	check_status(esp_service_create(binding, NULL, &s->service, &error));
	s->reading = (esp_treebank_options){.size = sizeof s->reading, .vocab = vocab};
	s->model.name = "m";
	s->model.reading = &s->reading;
}

static void put_numbers(FILE *to, const char *name, const int32_t *v, size_t n)
{
	fprintf(to, ",{\"name\":\"%s\",\"shape\":[%zu],\"datatype\":\"INT32\",\"data\":[", name, n);
	for (size_t i = 0; i < n; i++)
		fprintf(to, "%s%d", i ? "," : "", v[i]);
	fputs("]}", to);
}

/* Links of a structure of the forest, and nodes that carry `row`. */
static void write_body(struct subject *s, const esp_forest *f, void (*put_input)(FILE *to, size_t nodes))
{
	size_t nodes = esp_forest_nodes(f, 0), edges = 0;
	int32_t begin[NODES + 1], children[NODES], child;
	free(s->body);
	FILE *to = open_memstream(&s->body, &s->bytes);
	fputs("{\"id\":\"1\",\"inputs\":[", to);
	put_input(to, nodes);
	for (size_t n = 0; n < nodes; n++) {
		begin[n] = (int32_t)edges;
		for (size_t c = 0; (child = esp_forest_child(f, 0, n, c)) >= 0; c++)
			children[edges++] = child;
	}
	begin[nodes] = (int32_t)edges;
	put_numbers(to, "child_begin", begin, nodes + 1);
	put_numbers(to, "children", children, edges);
	fputs("]}", to);
	fclose(to);
}

/* Numbers of about the length that words have. */
static void put_words(FILE *to, size_t nodes)
{
	fprintf(to, "{\"name\":\"word\",\"shape\":[%zu],\"datatype\":\"INT32\",\"data\":[", nodes);
	for (size_t n = 0; n < nodes; n++)
		fprintf(to, "%s%d", n ? "," : "", (int)(n * 2654435761u % 8000));
	fputs("]}", to);
}

static void put_vectors(FILE *to, size_t nodes)
{
	fprintf(to, "{\"name\":\"x\",\"shape\":[%zu,300],\"datatype\":\"FP32\",\"data\":[", nodes);
	for (size_t n = 0; n < nodes * 300; n++)
		fprintf(to, "%s%.9g", n ? "," : "", (double)(float)(n * 2654435761u) / 4294967296 - 0.5);
	fputs("]}", to);
}

/* --- requests --- */

/* Reads trees until one has the nodes wanted; its text becomes the body. */
static void find_tree(struct subject *s, const char *path, esp_forest *f)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n;
	struct infer_failure why;
	while (file && (n = getline(&line, &capacity, file)) > 0) {
		struct infer_request *r = infer_parse_text(&s->model, NULL, NULL, line, n, &why);
		if (r && infer_nodes(r) == NODES) {
			s->request = r;
			s->body = strdup(line);
			s->bytes = n;
			esp_treebank *t;
			int more;
			check_status(esp_treebank_from_memory(s->model.context, "t", line, n, &s->reading, &t,
							      &error));
			check_status(esp_treebank_next(t, f, &more, &error));
			esp_treebank_free(t);
			break;
		}
		infer_free(r);
	}
	if (!s->request)
		exit(1);
	free(line);
	fclose(file);
}

static void measure_all(struct subject *s)
{
	char what[60];
	snprintf(what, sizeof what, "infer_parse, %zu bytes", s->bytes);
	measure(what, s, read_tensors, 0);
	snprintf(what, sizeof what, "json_loadb, %zu bytes", s->bytes);
	measure(what, s, load_body, 0);
	measure("esp_session_run", s, run, 0);
	measure("submitted, waited for", s, compute, 0);
	write_response(s);
	snprintf(what, sizeof what, "infer_write, %zu bytes", s->response_bytes);
	measure(what, s, write_response, 0);
	snprintf(what, sizeof what, "json_dumps, %zu bytes", s->response_bytes);
	measure(what, s, dump_response, 1);
}

static const char vectors[] =
    "model v\nstructure tree(*)\ninput x[D]\nparam W[D]\nstate h[D]\nleaf:\n    h = tanh(W * x)\n"
    "inner:\n    h = tanh(W * x + sum(k.h for k in children))\noutput all = h at every node\n";

static void measure_vectors(esp_context *context, const esp_forest *f)
{
	static char file[8 + 64 + 300 * 4];
	struct subject s = {.model.context = context};
	esp_model *m;
	esp_weights *w;
	strcpy(file + 8, "{\"W\":{\"dtype\":\"F32\",\"shape\":[300],\"data_offsets\":[0,1200]}}");
	file[0] = (char)strlen(file + 8);
	for (int i = 0; i < 300; i++)
		memcpy(file + 8 + file[0] + 4 * i, &(float){1.0f / (float)(i + 3)}, 4);
	check_status(esp_model_parse(context, "v.ra", vectors, strlen(vectors), &m, &error));
	check_status(esp_weights_from_memory(context, file, 8 + (size_t)file[0] + 1200, &w, &error));
	open_model(&s, m, w, NULL);
	write_body(&s, f, put_vectors);
	puts("37 nodes of 300 floats");
	measure_all(&s);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return fputs("usage: bodies MODEL.ra WEIGHTS VOCAB TREES [REPEATS]\n", stderr), 2;
	struct subject s = {0};
	esp_model *m;
	esp_weights *w;
	esp_vocab *vocab;
	esp_forest *f;
	double inside;
	seconds = &inside;
	repeats = argc > 5 ? atol(argv[5]) : repeats;
	const esp_context_options o = {.size = sizeof o, .threads = 1};
	check_status(esp_context_create(&o, &s.model.context, &error));
	check_status(esp_model_read(s.model.context, argv[1], &m, &error));
	check_status(esp_weights_open(s.model.context, argv[2], &w, &error));
	check_status(esp_vocab_open(s.model.context, argv[3], &vocab, &error));
	open_model(&s, m, w, vocab);
	check_status(esp_forest_create(s.model.program, &f, &error));
	find_tree(&s, argv[4], f);
	printf("%-44s %9s %9s\n%d nodes\n", "", "least", "median", NODES);
	char what[60];
	snprintf(what, sizeof what, "infer_parse_text, %zu bytes", s.bytes);
	measure(what, &s, read_text, 0);
	write_body(&s, f, put_words);
	read_tensors(&s);
	measure_all(&s);
	measure_vectors(s.model.context, f);
	return 0;
}
