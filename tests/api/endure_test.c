/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A service that is used in every way at once for long: by several threads that wait, are called back or take
 * events, cancel, free early, and set deadlines and priorities, while weights are exchanged.  Each ticket
 * ends once, results have the bits of sessions, counters add up, memory stays as it is.  ESPALIER_ENDURE is
 * how many requests, as in ESPALIER_ENDURE=10000000. */
#include "api/espalier_service.h"
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/sanitizers.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DIMENSION = 16, TREES = 16, THREADS = 4, SETS = 2, MOST_NODES = 15 };
enum { ROUND = 50 /* requests of a thread before it waits */ };

static const char model[] = EMBEDDED("trees", "tree(left, right)")
    "    h = tanh(W @ left.h + right.h)\n"
    "output result = h at root\n";

/* How a request ends, as it was submitted. */
enum way { WAITED, CALLED, EVENT, CANCELLED, FREED, EXPIRED, WAYS };

struct client;

struct asked {
	struct client *client;
	esp_ticket *ticket;
	enum way way;
	int tree;
	atomic_int told; /* how often it was called back or returned as an event */
};

struct client {
	pthread_t thread;
	unsigned drawn;
	long requests, wrong;
	long done, cancelled, expired, refused, freed; /* as this client saw them */
	atomic_long called, events, wrong_called;
	struct asked asked[ROUND];
};

static struct {
	esp_context *context;
	esp_weights *weights[SETS];
	esp_program *program;
	esp_binding *binding;
	esp_service *service;
	esp_forest *tree[TREES];
	float expected[SETS][TREES][DIMENSION];
	atomic_int running;
} shared;

/* --- what is asked for, and what sessions say --- */

static int draw(unsigned *drawn, int below)
{
	*drawn = *drawn * 1664525u + 1013904223u;
	return (int)((*drawn >> 16) % (unsigned)below);
}

static void write_set(const char *name, unsigned seed)
{
	static float e[4 * DIMENSION], w[DIMENSION * DIMENSION];
	for (int i = 0; i < 4 * DIMENSION; i++)
		e[i] = (float)draw(&seed, 2001) / 1000 - 1;
	for (int i = 0; i < DIMENSION * DIMENSION; i++)
		w[i] = (float)draw(&seed, 2001) / 4000 - 0.25f;
	write_weights(name, (const struct tensor[]){{"E", 4, DIMENSION, e}, {"W", DIMENSION, DIMENSION, w}}, 2);
}

/* A chain of 1 to 8 leaves, each joined with what is before it. */
static esp_forest *make_tree(int leaves)
{
	int32_t begin[MOST_NODES + 2] = {0}, children[MOST_NODES + 1], words[MOST_NODES + 1];
	int nodes = 0, edges = 0;
	esp_forest *f;
	for (; nodes < 2 * leaves - 1; nodes++) {
		words[nodes] = (nodes * 7 + leaves) % 4;
		if (nodes && nodes % 2 == 0) {
			children[edges++] = nodes - 2;
			children[edges++] = nodes - 1;
		}
		begin[nodes + 1] = edges;
	}
	const void *data[] = {words};
	const esp_structure s = {sizeof s, (size_t)nodes, begin, children, nodes - 1, data};
	if (esp_forest_create(shared.program, &f, NULL) || esp_forest_add(f, &s, NULL))
		abort();
	return f;
}

/* Set 0 is generation 1. */
static void note_expected(void)
{
	for (int set = 0; set < SETS; set++) {
		esp_session *session;
		esp_binding *binding;
		if (esp_binding_create(shared.program, shared.weights[set], &binding, NULL) ||
		    esp_session_create(binding, &session, NULL))
			abort();
		for (int i = 0; i < TREES; i++) {
			if (esp_session_run(session, shared.tree[i], NULL))
				abort();
			memcpy(shared.expected[set][i], esp_session_root(session, 0, 0), sizeof shared.expected[0][0]);
		}
		esp_session_free(session);
		esp_binding_free(binding);
	}
}

static void open_all(void)
{
	/* A back end's own threads are not compiled with the sanitizer. */
	const char *backend = RACES_SOUGHT ? "interpreter" : usual_backend();
	const esp_program_options o = {.size = sizeof o, .backend = backend, .continuous = 1};
	const esp_service_options limits = {.size = sizeof limits, .requests = 150};
	esp_model *m;
	write_set("w0.safetensors", 1);
	write_set("w1.safetensors", 2);
	if (esp_context_create(NULL, &shared.context, NULL) ||
	    esp_model_parse(shared.context, "trees.ra", model, strlen(model), &m, NULL) ||
	    esp_weights_open(shared.context, path_of("w0.safetensors"), &shared.weights[0], NULL) ||
	    esp_weights_open(shared.context, path_of("w1.safetensors"), &shared.weights[1], NULL) ||
	    esp_program_create(m, shared.weights[0], &o, &shared.program, NULL) ||
	    esp_binding_create(shared.program, shared.weights[0], &shared.binding, NULL) ||
	    esp_service_create(shared.binding, &limits, &shared.service, NULL))
		abort();
	esp_model_free(m);
	for (int i = 0; i < TREES; i++)
		shared.tree[i] = make_tree(1 + i / 2);
	note_expected();
}

static void close_all(void)
{
	static const char *const names[] = {"w0.safetensors", "w1.safetensors"};
	for (int i = 0; i < TREES; i++)
		esp_forest_free(shared.tree[i]);
	esp_service_free(shared.service);
	esp_binding_free(shared.binding);
	esp_program_free(shared.program);
	for (int i = 0; i < SETS; i++)
		esp_weights_free(shared.weights[i]);
	esp_context_free(shared.context);
	remove_folder(names, 2);
}

/* --- clients --- */

static bool has_bits(const esp_ticket *t, int tree)
{
	const float *row = esp_ticket_output(t, 0, 0, 0);
	const float *expected = shared.expected[(esp_ticket_generation(t) - 1) % SETS][tree];
	return row && !memcmp(row, expected, DIMENSION * sizeof *row);
}

/* Looks at a ticket that has ended by callback or event. */
static bool is_right(struct asked *a, esp_ticket *t)
{
	return atomic_fetch_add(&a->told, 1) == 0 && esp_ticket_wait(t, 0, NULL) == ESP_OK && has_bits(t, a->tree);
}

static void call_back(void *user, esp_ticket *t)
{
	struct asked *a = user;
	atomic_fetch_add(&a->client->wrong_called, !is_right(a, t));
	esp_ticket_free(t);
	atomic_fetch_add(&a->client->called, 1);
}

/* Events of all clients: whoever takes one counts it for the client that asked. */
static void take_events(void)
{
	for (esp_ticket *t; (t = esp_service_next(shared.service));) {
		struct asked *a = esp_ticket_user(t);
		atomic_fetch_add(&a->client->wrong_called, !is_right(a, t));
		esp_ticket_free(t);
		atomic_fetch_add(&a->client->events, 1);
	}
}

/* False when the service was full. */
static bool ask(struct client *c, struct asked *a)
{
	*a = (struct asked){.client = c, .way = (enum way)draw(&c->drawn, WAYS), .tree = draw(&c->drawn, TREES)};
	const esp_submit_options o = {.size = sizeof o,
				      .priority = draw(&c->drawn, 5) - 2,
				      .event = a->way == EVENT,
				      .done = a->way == CALLED ? call_back : NULL,
				      .deadline = a->way == EXPIRED ? esp_clock() + draw(&c->drawn, 100000) : 0,
				      .user = a};
	esp_ticket *t;
	esp_status s = esp_service_submit(shared.service, shared.tree[a->tree], &o, &t, NULL);
	if (a->way != CALLED && a->way != EVENT)
		a->ticket = s ? NULL : t;
	c->wrong += s && s != ESP_ERROR_BUSY;
	return !s;
}

static void end(struct client *c, struct asked *a)
{
	if (a->way == FREED) {
		esp_ticket_free(a->ticket);
		c->freed++;
		return;
	}
	if (a->way == CANCELLED)
		esp_ticket_cancel(a->ticket);
	esp_status s = esp_ticket_wait(a->ticket, INT64_MAX, NULL);
	bool may = s == ESP_OK || (s == ESP_ERROR_CANCELLED && a->way == CANCELLED) ||
		   (s == ESP_ERROR_EXPIRED && a->way == EXPIRED);
	c->wrong += !may || (s == ESP_OK && !has_bits(a->ticket, a->tree));
	c->done += s == ESP_OK;
	c->cancelled += s == ESP_ERROR_CANCELLED;
	c->expired += s == ESP_ERROR_EXPIRED;
	esp_ticket_free(a->ticket);
}

/* Submits a round of requests, and waits until all of them have ended. */
static void run_round(struct client *c)
{
	long calls = atomic_load(&c->called), events = atomic_load(&c->events), called = 0, told = 0;
	for (int i = 0; i < ROUND; i++) {
		struct asked *a = &c->asked[i];
		bool taken = ask(c, a);
		c->refused += !taken;
		called += taken && a->way == CALLED;
		told += taken && a->way == EVENT;
		a->way = taken ? a->way : WAYS;
	}
	for (int i = 0; i < ROUND; i++)
		if (c->asked[i].way != CALLED && c->asked[i].way != EVENT && c->asked[i].way != WAYS)
			end(c, &c->asked[i]);
	while (atomic_load(&c->called) < calls + called || atomic_load(&c->events) < events + told) {
		take_events();
		usleep(20);
	}
}

static void *run_client(void *user)
{
	struct client *c = user;
	for (long n = 0; n < c->requests; n += ROUND)
		run_round(c);
	atomic_fetch_sub(&shared.running, 1);
	return NULL;
}

/* --- the test --- */

/* Bytes of this process that are resident. */
static long resident(void)
{
	long all, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static struct client clients[THREADS];

/* Exchanges the weights every millisecond while the clients run; returns how often. */
static long run_clients(long requests)
{
	long swaps = 0;
	atomic_store(&shared.running, THREADS);
	for (int i = 0; i < THREADS; i++) {
		clients[i].drawn = (unsigned)i + 1 + clients[i].drawn;
		clients[i].requests = requests / THREADS;
		pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
	}
	while (atomic_load(&shared.running)) {
		uint64_t next = esp_binding_generation(shared.binding) % SETS;
		swaps += esp_binding_swap(shared.binding, shared.weights[next], NULL) == ESP_OK;
		usleep(1000);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(clients[i].thread, NULL);
	return swaps;
}

static void check_counts(long swaps)
{
	esp_service_counts n = {.size = sizeof n};
	struct client all = {0};
	long told = 0;
	for (int i = 0; i < THREADS; i++) {
		struct client *c = &clients[i];
		all.wrong += c->wrong + atomic_load(&c->wrong_called);
		all.done += c->done, all.cancelled += c->cancelled, all.expired += c->expired;
		all.refused += c->refused, all.freed += c->freed;
		told += atomic_load(&c->called) + atomic_load(&c->events);
	}
	esp_service_count(shared.service, &n);
	printf("# %ld requests, %ld swaps; %ld waited for, %ld told, %ld cancelled, %ld expired, %ld freed, ",
	       (long)(n.submitted + n.refused), swaps, all.done, told, all.cancelled, all.expired, all.freed);
	printf("%ld refused\n", all.refused);
	tap_is(all.wrong, 0, "each ends as it may, once, and with the bits of its generation");
	tap_is((long)n.refused, all.refused, "what is refused is counted");
	tap_is((long)n.submitted, all.done + told + all.cancelled + all.expired + all.freed, "so is what is taken");
	tap_is((long)(n.done + n.cancelled + n.expired + n.failed), (long)n.submitted, "each has one end");
	tap_is((long)n.expired, all.expired, "the counts of those that expired agree");
	tap_ok(n.done >= (uint64_t)(all.done + told) && n.cancelled >= (uint64_t)all.cancelled && !n.failed,
	       "so do those of the others, but for what was freed early");
	tap_ok(!n.pending && !n.bytes && !n.rows, "nothing is left");
	tap_is((long)esp_binding_generation(shared.binding), swaps + 1, "no exchange failed");
}

int main(void)
{
	enum { SLACK = 4 << 20 };
	const char *asked = getenv("ESPALIER_ENDURE");
	long requests = asked && atol(asked) > 0 ? atol(asked) : 100000, swaps;
	make_folder();
	open_all();
	swaps = run_clients(requests / 4);
	size_t held = esp_context_memory(shared.context, NULL);
	long before = resident();
	swaps += run_clients(requests - requests / 4);
	long grown = resident() - before;
	check_counts(swaps);
	printf("# resident: %ld KiB more than after a quarter; the library holds %zu, then %zu bytes\n",
	       grown >> 10, held, esp_context_memory(shared.context, NULL));
	if (SHADOWED || RACES_SOUGHT)
		tap_skip("the sanitizer keeps what was freed", "memory stays as it is");
	else
		tap_ok(grown < SLACK, "memory stays as it is");
	close_all();
	return tap_done();
}
