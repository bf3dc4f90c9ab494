/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* cells MODEL.ra SIZES TREES [REQUESTS [SECONDS]]: microseconds of a request that has no company, by a
 * session and by a service; then requests a second, of requests that are always so many (a closed loop): each
 * thread alone, the team for one after the other, minibatches, and cells that join and leave at every
 * superstep. TREES has bracketed trees, or is a number: sequences of so many nodes.  Words and weights are
 * random. */
#include "bench/timing.h"
#include "serve/queue.h"
#include "tests/models/helper.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- requests --- */

struct request {
	struct rt_minibatch minibatch;
	int32_t *child_begin, *children, root, begin;
	const void *data[MAX_INPUTS];
};

static struct request *requests;
static int made;

static void fill_data(struct request *r, const struct image *image)
{
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		int64_t nodes = r->minibatch.forest.nodes, n = in->token ? nodes : nodes * in->elements;
		int32_t *at = malloc((n + 1) * 4);
		for (int64_t k = 0; k < n; k++)
			if (in->token)
				at[k] = random_below(in->limit ? in->limit : 4);
			else
				((float *)at)[k] = weight_at(i, k);
		r->data[i] = at;
	}
	r->minibatch.data = r->data;
}

static struct request *add_request(int nodes)
{
	requests = realloc(requests, (made + 1) * sizeof *requests);
	struct request *r = &requests[made++];
	*r = (struct request){.begin = 0};
	r->child_begin = calloc(nodes + 1, sizeof *r->child_begin);
	r->children = calloc(nodes + 1, sizeof *r->children);
	r->minibatch.forest = (struct lin_forest){.nodes = nodes, .inputs = 1};
	return r;
}

/* Reads a line "(2 (2 It) (2 works))"; phrases of one child are left out. */
static void read_tree(const char *line)
{
	int stack[1000], depth = 0, open[1000], opened = 0, nodes = 0, edges = 0;
	struct request *r = add_request((int)strlen(line));
	for (const char *c = line; *c; c++) {
		if (*c == '(') {
			open[opened++] = depth;
		} else if (*c == ')') {
			int first = open[--opened];
			if (depth - first == 1)
				continue;
			r->child_begin[nodes] = edges;
			for (int i = first; i < depth; i++)
				r->children[edges++] = stack[i];
			depth = first;
			stack[depth++] = nodes++;
		} else if (*c != ' ') {
			bool word = c[-1] == ' ';
			while (c[1] && !strchr(" )", c[1]))
				c++;
			r->child_begin[nodes] = edges;
			if (word)
				stack[depth++] = nodes++;
		}
	}
	r->child_begin[nodes] = edges;
	r->minibatch.forest.nodes = nodes;
}

static void make_sequence(int nodes)
{
	struct request *r = add_request(nodes);
	for (int n = 0; n < nodes; n++) {
		r->child_begin[n + 1] = n;
		if (n)
			r->children[n - 1] = n - 1;
	}
	for (int n = 0; n <= nodes; n++)
		r->child_begin[n] = n ? n - 1 : 0;
}

static void read_requests(const char *path, const struct image *image)
{
	static char line[1 << 16];
	int length = atoi(path);
	FILE *f = length ? NULL : fopen(path, "r");
	if (length)
		for (int i = 0; i < 400; i++)
			make_sequence(1 + random_below(2 * length));
	while (f && made < 2000 && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		read_tree(line);
	}
	if (f)
		fclose(f);
	for (int i = 0; i < made; i++) {
		struct request *r = &requests[i];
		r->root = r->minibatch.forest.nodes - 1;
		r->minibatch.forest.child_begin = r->child_begin;
		r->minibatch.forest.children = r->children;
		r->minibatch.forest.root = &r->root;
		r->minibatch.forest.input_begin = &r->begin;
		fill_data(r, image);
	}
}

/* --- contestants: each returns requests a second --- */

static struct test_run plain, joined;
static struct rt_team team;
static double seconds = 1;
static volatile int sink;

static void need(bool ok, const char *what, const struct diags *d)
{
	if (ok)
		return;
	print_diags(d);
	fprintf(stderr, "cells: %s\n", what);
	exit(1);
}

struct loop {
	int first;
	long served;
	struct rt_session session;
	struct diags diags;
};

static void *run_alone(void *context)
{
	struct loop *l = context;
	double end = read_clock() + seconds;
	for (int at = l->first; read_clock() < end; at = (at + 1) % made, l->served++)
		need(rt_session_run(&l->session, &plain.binding, NULL, &requests[at].minibatch, &l->diags),
		     "run", &l->diags);
	return NULL;
}

static double serve_alone(int threads)
{
	struct loop loop[8] = {{0}};
	pthread_t thread[8];
	long served = 0;
	double begin;
	for (int t = 0; t < threads; t++) {
		loop[t].first = made * t / threads;
		diags_init(&loop[t].diags, &allocator_default);
		need(rt_session_init(&loop[t].session, &allocator_default, &plain.image, &loop[t].diags),
		     "session", &loop[t].diags);
	}
	begin = read_clock();
	for (int t = 0; t < threads; t++)
		pthread_create(&thread[t], NULL, run_alone, &loop[t]);
	for (int t = 0; t < threads; t++) {
		pthread_join(thread[t], NULL);
		served += loop[t].served;
		rt_session_free(&loop[t].session);
	}
	return served / (read_clock() - begin);
}

static double serve_by_team(void)
{
	double begin = read_clock(), now;
	long served = 0;
	do {
		need(rt_session_run(&plain.session, &plain.binding, &team, &requests[served % made].minibatch,
				    &plain.diags),
		     "run", &plain.diags);
		served++;
		now = read_clock();
	} while (now < begin + seconds);
	return served / (now - begin);
}

/* Appends the rows of a request to the columns of a minibatch, whose inputs have so many bytes already. */
static void append_data(const struct request *r, char **column, size_t *bytes)
{
	const struct image *image = &plain.image;
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		size_t n = r->minibatch.forest.nodes * (in->token ? 1 : in->elements) * 4;
		column[i] = realloc(column[i], bytes[i] + n);
		memcpy(column[i] + bytes[i], r->data[i], n);
		bytes[i] += n;
	}
}

static double serve_minibatches(int batch)
{
	struct lin_collect c;
	char *column[MAX_INPUTS] = {0};
	double begin = read_clock(), now;
	long served = 0;
	lin_collect_init(&c, &allocator_default);
	do {
		size_t bytes[MAX_INPUTS] = {0};
		lin_collect_clear(&c);
		for (int i = 0; i < batch; i++, served++) {
			const struct request *r = &requests[served % made];
			const struct lin_forest *f = &r->minibatch.forest;
			lin_collect_add(&c, f->nodes, f->child_begin, f->children, &plain.diags);
			append_data(r, column, bytes);
		}
		struct rt_minibatch m = {lin_collect_forest(&c), (const void *const *)column};
		need(rt_session_run(&plain.session, &plain.binding, &team, &m, &plain.diags), "run",
		     &plain.diags);
		now = read_clock();
	} while (now < begin + seconds);
	lin_collect_free(&c);
	for (int i = 0; i < plain.image.inputs; i++)
		free(column[i]);
	return served / (now - begin);
}

/* Admits requests until so many are in flight, or those fill supersteps; returns how many are. */
static int admit_up_to(struct serve_engine *e, int in_flight, int now, int *at)
{
	for (; now < in_flight; now++, ++*at) {
		const struct serve_entry of = {&joined.binding, &requests[*at % made].minibatch, 0, NULL, 0};
		struct serve_request *r;
		enum serve_outcome outcome = serve_admit(e, &of, &r, &joined.diags);
		need(outcome != SERVE_REFUSED, "admit", &joined.diags);
		if (outcome == SERVE_FULL)
			break;
	}
	return now;
}

static double serve_cells(int in_flight, bool with_team, struct serve_counts *counts)
{
	struct serve_limits limits = {16384, 1024, 0};
	struct serve_engine *e = serve_create(&allocator_default, &joined.image, limits, &joined.diags);
	long served = 0;
	int at = 0, pending = 0;
	need(e, "engine", &joined.diags);
	int threads = with_team ? rt_team_enter(&team, 1e12) : 0;
	double begin = read_clock(), now;
	do {
		pending = admit_up_to(e, in_flight, pending, &at);
		need(serve_advance(e, &team, threads, &joined.diags), "superstep", &joined.diags);
		for (struct serve_request *r; (r = serve_take(e)); served++, pending--) {
			sink += *(const char *)serve_row(r, 0, 0);
			serve_release(e, r);
		}
		now = read_clock();
	} while (now < begin + seconds);
	if (threads)
		rt_team_leave(&team);
	*counts = serve_count(e);
	serve_free(e);
	return served / (now - begin);
}

/* --- one request at a time --- */

enum { ALONE = 3 };

static double run_plain(const struct rt_minibatch *m)
{
	double begin = read_clock();
	need(rt_session_run(&plain.session, &plain.binding, &team, m, &plain.diags), "run", &plain.diags);
	return read_clock() - begin;
}

static double run_continuous(const struct rt_minibatch *m)
{
	double begin = read_clock();
	need(rt_session_run(&joined.session, &joined.binding, &team, m, &joined.diags), "run", &joined.diags);
	return read_clock() - begin;
}

static double run_service(struct serve_service *s, const struct rt_minibatch *m)
{
	double begin = read_clock();
	struct serve_submission of = {.minibatch = *m, .binding = &joined.binding};
	struct serve_ticket *t = serve_submit(s, &of, &joined.diags);
	need(t && serve_wait(s, t, INT64_MAX) == SERVE_DONE, "wait", &joined.diags);
	sink += *(const char *)serve_ticket_row(t, 0, 0);
	serve_ticket_free(s, t);
	return read_clock() - begin;
}

/* Each serves all requests, in turn, as it would find the caches after requests of its own; of each request
 * the least of several rounds, and the mean and the median of these. */
static void compare_alone(void)
{
	enum { ROUNDS = 9, MOST = 400 };
	static const char *const names[ALONE] = {"session", "session, continuous program", "service"};
	static double least[ALONE][MOST];
	int n = made < MOST ? made : MOST;
	struct serve_service_options o = {.limits = {16384, 1024, 0}, .requests = 16, .team = &team};
	struct serve_service *s = serve_open(&allocator_default, &joined.image, &o, &joined.diags);
	need(s, "service", &joined.diags);
	for (int round = 0; round < ROUNDS; round++)
		for (int c = 0; c < ALONE; c++)
			for (int i = 0; i < n; i++) {
				const struct rt_minibatch *m = &requests[i].minibatch;
				double t = c == 0   ? run_plain(m)
					   : c == 1 ? run_continuous(m)
						    : run_service(s, m);
				least[c][i] = !round || t < least[c][i] ? t : least[c][i];
			}
	for (int c = 0; c < ALONE; c++) {
		double sum = 0;
		for (int i = 0; i < n; i++)
			sum += least[c][i];
		qsort(least[c], n, sizeof **least, compare_doubles);
		printf("%-30s %8.1f %8.1f us\n", names[c], sum / n * 1e6, least[c][n / 2] * 1e6);
	}
	serve_close(s);
}

int main(int argc, char **argv)
{
	struct test_model t = {0};
	struct option_texts o = {.backend = "llvm", .target = "native"};
	struct serve_counts counts;
	if (argc < 4)
		return fprintf(stderr, "usage: cells MODEL.ra SIZES TREES [REQUESTS [SECONDS]]\n"), 2;
	int in_flight = argc > 4 ? atoi(argv[4]) : 32;
	seconds = argc > 5 ? atof(argv[5]) : 1;
	rt_team_init(&team, &allocator_default, 2);
	need(load_model(&t, argv[1], argv[2]), "model", &t.diags);
	need(start_run(&plain, &t, &o), "compile", &plain.diags);
	o.continuous = true;
	need(start_run(&joined, &t, &o), "compile", &joined.diags);
	read_requests(argv[3], &plain.image);
	need(made, "no requests", &plain.diags);
	enum { ROUNDS = 15, CONTESTANTS = 6 };
	static const char *const names[] = {
	    "one thread",  "a thread each",	"the team, one after the other",
	    "minibatches", "cells, one thread", "cells"};
	double rate[CONTESTANTS][ROUNDS];
	compare_alone();
	for (int round = 0; round < ROUNDS; round++) {
		rate[0][round] = serve_alone(1);
		rate[1][round] = serve_alone(2);
		rate[2][round] = serve_by_team();
		rate[3][round] = serve_minibatches(in_flight);
		rate[4][round] = serve_cells(in_flight, false, &counts);
		rate[5][round] = serve_cells(in_flight, true, &counts);
	}
	for (int c = 0; c < CONTESTANTS; c++) {
		qsort(rate[c], ROUNDS, sizeof **rate, compare_doubles);
		printf("%-30s %8.0f %8.0f\n", names[c], rate[c][ROUNDS / 2], rate[c][ROUNDS - 1]);
	}
	double each = rate[1][ROUNDS / 2], after = rate[2][ROUNDS / 2];
	printf("cells to the better way alone: %.2f by medians; %.1f nodes a superstep, %lld rows at most\n",
	       rate[5][ROUNDS / 2] / (each > after ? each : after), (double)counts.nodes / counts.supersteps,
	       (long long)counts.most_rows);
	rt_team_stop(&team);
	return 0;
}
