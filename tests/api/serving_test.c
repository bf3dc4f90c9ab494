/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services: results have the bits of sessions and of their generation, however they are waited for; nothing
 * is lost or told twice; nobody starves; what is refused, and what is left then. */
#include "api/espalier_service.h"
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/sanitizers.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { FORESTS = 12, MOST_NODES = 41 };

static const esp_program_options continuous = {
    .size = sizeof continuous, .backend = "interpreter", .continuous = 1};

/* --- a service, its requests, and what sessions say --- */

struct place {
	struct kit k;
	esp_weights *others;
	esp_service *service;
	esp_forest *forest[FORESTS];
	float twice[2][FORESTS][MOST_NODES][2], total[2][FORESTS]; /* by generation */
};

static unsigned drawn = 7;

static int draw(int below)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (int)((drawn >> 16) % (unsigned)below);
}

/* A random tree over the words, its root last. */
static void add_tree(esp_forest *f, int leaves)
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

static void note_expected(struct place *p, int generation)
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

static bool open_place(struct place *p, const esp_context_options *memory, const esp_service_options *o,
		       esp_error **error)
{
	struct kit *k = &p->k;
	memset(p, 0, sizeof *p);
	if (make_kit(k, memory, path_of("w.safetensors"), error))
		return false;
	esp_session_free(k->session);
	esp_forest_free(k->forest);
	esp_binding_free(k->binding);
	esp_program_free(k->program);
	k->session = NULL, k->forest = NULL, k->binding = NULL, k->program = NULL;
	return !esp_program_create(k->model, k->weights, &continuous, &k->program, error) &&
	       !esp_binding_create(k->program, k->weights, &k->binding, error) &&
	       !esp_service_create(k->binding, o, &p->service, error);
}

/* With requests, and what they give with two generations of weights: those of the odd ones, and of the even
 * ones. */
static void fill_place(struct place *p)
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

static void open_full(struct place *p, const esp_service_options *o)
{
	esp_error *error;
	if (!open_place(p, NULL, o, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
	fill_place(p);
}

static void close_place(struct place *p)
{
	for (int i = 0; i < FORESTS; i++)
		esp_forest_free(p->forest[i]);
	esp_weights_free(p->others);
	esp_service_free(p->service);
	free_kit(&p->k);
}

static bool has_bits(const struct place *p, const esp_ticket *t, int which)
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

static esp_ticket *submit(struct place *p, int which, esp_submit_options o)
{
	esp_ticket *t;
	o.size = sizeof o;
	return esp_service_submit(p->service, p->forest[which], &o, &t, NULL) ? NULL : t;
}

static esp_service_counts count(const esp_service *s)
{
	esp_service_counts c = {.size = sizeof c};
	esp_service_count(s, &c);
	return c;
}

static void sleep_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* --- waiting --- */

static void test_wait(void)
{
	struct place p;
	esp_ticket *t[FORESTS];
	bool same = true;
	open_full(&p, NULL);
	for (int i = 0; i < FORESTS; i++)
		t[i] = submit(&p, i, (esp_submit_options){.user = &t[i]});
	tap_is(esp_ticket_wait(t[3], 0, NULL), ESP_ERROR_BUSY, "pending until somebody waits");
	esp_error *error;
	esp_ticket_wait(t[3], 0, &error);
	tap_ok(error_is(error, "request-pending"), "and so it says");
	for (int i = FORESTS; i-- > 0;)
		same &= !esp_ticket_wait(t[i], INT64_MAX, NULL) && has_bits(&p, t[i], i) &&
			esp_ticket_user(t[i]) == &t[i] && esp_ticket_generation(t[i]) == 2;
	tap_ok(same, "all have the bits of sessions");
	esp_service_counts c = count(p.service);
	tap_ok(c.submitted == FORESTS && c.done == FORESTS && !c.pending && !c.bytes && c.most_bytes > 0 &&
		   c.generation == 2 && c.nodes > 0 && !c.rows && c.whole.values == FORESTS &&
		   c.whole.p50 <= c.whole.p999 && c.whole.p999 <= c.whole.most &&
		   c.queued.most <= c.whole.most,
	       "and are counted");
	tap_ok(c.supersteps < c.nodes / 2, "%d supersteps for %d nodes", (int)c.supersteps, (int)c.nodes);
	uint64_t before = c.supersteps;
	esp_ticket *alone = submit(&p, 0, (esp_submit_options){0});
	tap_ok(!esp_ticket_wait(alone, INT64_MAX, NULL) && has_bits(&p, alone, 0),
	       "one without company as well");
	tap_ok(count(p.service).supersteps - before <= 3, "in few supersteps");
	for (int i = 0; i < FORESTS; i++)
		esp_ticket_free(t[i]);
	esp_ticket_free(alone);
	close_place(&p);
}

/* Many threads, most of whose requests are waited for, others cancelled, freed or expired; weights are
 * exchanged. */
enum { THREADS = 4, EACH = 200 };

struct client {
	struct place *place;
	unsigned state;
	int done, cancelled, expired, freed, wrong;
};

static int draw_fate(struct client *c, int below)
{
	c->state = c->state * 1664525u + 1013904223u;
	return (int)((c->state >> 16) % (unsigned)below);
}

static void *run_client(void *context)
{
	struct client *c = context;
	for (int i = 0; i < EACH; i++) {
		int which = draw_fate(c, FORESTS), fate = draw_fate(c, 8);
		esp_ticket *t = submit(c->place, which,
				       (esp_submit_options){.priority = draw_fate(c, 3),
							    .deadline = fate == 2 ? esp_clock() - 1 : 0});
		if (!t) {
			c->wrong++;
			continue;
		}
		if (fate == 0)
			esp_ticket_cancel(t);
		if (fate != 1) {
			esp_status s = esp_ticket_wait(t, INT64_MAX, NULL);
			c->done += s == ESP_OK;
			c->cancelled += s == ESP_ERROR_CANCELLED;
			c->expired += s == ESP_ERROR_EXPIRED;
			c->wrong += s == ESP_OK ? !has_bits(c->place, t, which)
						: (s != ESP_ERROR_CANCELLED || fate != 0) &&
						      (s != ESP_ERROR_EXPIRED || fate != 2);
		}
		c->freed += fate == 1;
		esp_ticket_free(t);
	}
	return NULL;
}

static void test_threads(void)
{
	struct place p;
	struct client client[THREADS], all = {0};
	pthread_t thread[THREADS];
	open_full(&p,
		  &(esp_service_options){.size = sizeof(esp_service_options), .rows = 300, .step_rows = 32});
	for (int i = 0; i < THREADS; i++) {
		client[i] = (struct client){.place = &p, .state = 77 + (unsigned)i};
		pthread_create(&thread[i], NULL, run_client, &client[i]);
	}
	bool swapped = true;
	for (int i = 0; i < 40; i++) {
		swapped &= !esp_binding_swap(p.k.binding, i % 2 ? p.others : p.k.weights, NULL);
		sleep_briefly();
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		all.done += client[i].done;
		all.cancelled += client[i].cancelled;
		all.expired += client[i].expired;
		all.freed += client[i].freed;
		all.wrong += client[i].wrong;
	}
	esp_service_counts c = count(p.service);
	tap_ok(swapped && !all.wrong && all.done && all.cancelled && all.expired,
	       "%d done with the bits of their generation, %d cancelled, %d expired", all.done, all.cancelled,
	       all.expired);
	tap_ok(all.done + all.cancelled + all.expired + all.freed == THREADS * EACH &&
		   c.submitted == THREADS * EACH && c.done + c.cancelled + c.expired == c.submitted &&
		   !c.pending && !c.rows,
	       "every one ended once");
	close_place(&p);
}

/* --- callbacks --- */

struct calls {
	struct place *place;
	atomic_int ended, wrong, left; /* left: that callbacks submit yet */
};

static void end_call(void *user, esp_ticket *t);

static bool submit_call(struct calls *c, int which)
{
	return submit(c->place, which, (esp_submit_options){.done = end_call, .user = c});
}

static void end_call(void *user, esp_ticket *t)
{
	struct calls *c = user;
	int which = 0;
	while (which < FORESTS && !has_bits(c->place, t, which))
		which++;
	if (esp_ticket_wait(t, 0, NULL) || which == FORESTS || esp_ticket_user(t) != user)
		atomic_fetch_add(&c->wrong, 1);
	esp_ticket_free(t);
	if (atomic_fetch_sub(&c->left, 1) > 0 && !submit_call(c, which))
		atomic_fetch_add(&c->wrong, 1);
	atomic_fetch_add(&c->ended, 1);
}

static void test_calls(void)
{
	enum { FIRST = 20, LATER = 300 };
	struct place p;
	struct calls c = {.place = &p, .left = LATER};
	open_full(&p, NULL);
	for (int i = 0; i < FIRST; i++)
		submit_call(&c, i % FORESTS);
	while (atomic_load(&c.ended) < FIRST + LATER)
		sleep_briefly();
	tap_ok(!c.wrong, "callbacks read results, free their tickets and submit others");
	esp_ticket *t = submit(&p, 1, (esp_submit_options){0});
	tap_ok(!esp_ticket_wait(t, INT64_MAX, NULL) && has_bits(&p, t, 1),
	       "one that is waited for, beside them");
	esp_ticket_free(t);
	esp_service_counts n = count(p.service);
	tap_ok(n.done == FIRST + LATER + 1 && !n.pending, "all are counted");
	close_place(&p);
}

/* The last use of the service is that of a ticket, which its own thread frees. */
static void free_last(void *user, esp_ticket *t)
{
	while (!atomic_load((atomic_int *)user))
		sleep_briefly();
	esp_ticket_free(t);
	atomic_store((atomic_int *)user, 2);
}

static void test_last(void)
{
	struct place p;
	atomic_int freed = 0;
	esp_forest *f;
	esp_ticket *t;
	esp_service *s;
	open_full(&p, NULL);
	size_t before = esp_context_memory(p.k.context, NULL);
	esp_service_create(p.k.binding, NULL, &s, NULL);
	esp_forest_create(p.k.program, &f, NULL);
	add_tree(f, 9);
	esp_service_submit(
	    s, f, &(esp_submit_options){sizeof(esp_submit_options), .done = free_last, .user = &freed}, &t,
	    NULL);
	esp_service_free(s);
	esp_forest_free(f);
	atomic_store(&freed, 1);
	for (int i = 0; i < 20000 && (freed < 2 || esp_context_memory(p.k.context, NULL) != before); i++)
		sleep_briefly();
	tap_is(esp_context_memory(p.k.context, NULL), before,
	       "a service ends with its last ticket, freed by its own thread");
	close_place(&p);
}

/* --- saved programs --- */

/* The model is compiled, its program saved, and read anew for another service. */
static bool reopen_saved(struct place *p, esp_error **error)
{
	static const esp_program_options compiled = {.size = sizeof compiled, .continuous = 1};
	struct kit *k = &p->k;
	esp_service_free(p->service);
	esp_binding_free(k->binding);
	esp_program_free(k->program);
	p->service = NULL, k->binding = NULL, k->program = NULL;
	if (esp_program_create(k->model, k->weights, &compiled, &k->program, error) ||
	    esp_program_save(k->program, path_of("m.espalier"), NULL, error))
		return false;
	esp_program_free(k->program);
	k->program = NULL;
	return !esp_program_load(k->context, path_of("m.espalier"), &k->program, error) &&
	       !esp_binding_create(k->program, k->weights, &k->binding, error) &&
	       !esp_service_create(k->binding, NULL, &p->service, error);
}

static void test_saved(void)
{
	struct place p;
	esp_error *error;
	esp_ticket *t = NULL;
	if (!need_backend("a saved program"))
		return;
	/* when several threads use LLVM first, ThreadSanitizer takes what LLVM sets up for a race */
	const esp_context_options one_thread = {.size = sizeof one_thread, .threads = 1};
	bool opened = open_place(&p, &one_thread, NULL, &error) && reopen_saved(&p, &error);
	if (!tap_ok(opened, "a program that was saved is served")) {
		printf("# %s\n", esp_error_text(error));
		return;
	}
	fill_place(&p);
	for (int i = 0; i < FORESTS; i++) {
		bool same = !esp_service_submit(p.service, p.forest[i], NULL, &t, NULL) &&
			    !esp_ticket_wait(t, INT64_MAX, NULL) && has_bits(&p, t, i);
		tap_ok(same, "with the bits of a session, request %d", i);
		esp_ticket_free(t);
	}
	close_place(&p);
}

/* --- events --- */

static bool is_readable(int descriptor, int timeout)
{
	struct pollfd d = {.fd = descriptor, .events = POLLIN};
	return poll(&d, 1, timeout) == 1;
}

static void test_events(void)
{
	enum { N = 200 };
	struct place p;
	int which[N], descriptor, ended = 0;
	bool same = true;
	open_full(&p, NULL);
	tap_ok(!esp_service_descriptor(p.service, &descriptor, NULL) && !is_readable(descriptor, 0) &&
		   !esp_service_next(p.service),
	       "a descriptor that is not readable yet");
	for (int i = 0; i < N; i++) {
		which[i] = draw(FORESTS);
		same &= submit(&p, which[i], (esp_submit_options){.event = 1, .user = &which[i]}) != NULL;
	}
	while (ended < N && is_readable(descriptor, 10000))
		for (esp_ticket *t; (t = esp_service_next(p.service)); ended++) {
			int *w = esp_ticket_user(t);
			same &= *w >= 0 && !esp_ticket_wait(t, 0, NULL) && has_bits(&p, t, *w);
			*w = -1;
			esp_ticket_free(t);
		}
	tap_ok(same && ended == N, "each of %d came once, with its bits", ended);
	tap_ok(!is_readable(descriptor, 0) && !esp_service_next(p.service), "then it is not readable");
	esp_ticket *dropped = submit(&p, 0, (esp_submit_options){.event = 1});
	while (count(p.service).pending)
		sleep_briefly();
	esp_ticket_free(dropped);
	tap_ok(!is_readable(descriptor, 0), "nor when what had ended was freed");
	close_place(&p);
}

/* --- the order --- */

/* Requests of a higher priority come all the time; the other one is ahead of those that come too late. */
static void test_starvation(void)
{
	enum { FLOOD = 16, MOST = 200000 };
	struct place p;
	esp_ticket *flood[FLOOD];
	int passed = 0;
	open_full(
	    &p, &(esp_service_options){
		    .size = sizeof(esp_service_options), .rows = 100, .step_rows = 1, .head_start = 1000000});
	for (int i = 0; i < FLOOD; i++)
		flood[i] = submit(&p, 0, (esp_submit_options){.priority = 5});
	int64_t begin = esp_clock();
	esp_ticket *low = submit(&p, 1, (esp_submit_options){0});
	for (; passed < MOST && esp_ticket_wait(low, 0, NULL) == ESP_ERROR_BUSY; passed++) {
		esp_ticket **t = &flood[passed % FLOOD];
		esp_ticket_wait(*t, INT64_MAX, NULL);
		esp_ticket_free(*t);
		*t = submit(&p, 0, (esp_submit_options){.priority = 5});
	}
	tap_ok(passed >= 1 && passed < MOST && has_bits(&p, low, 1),
	       "one of low priority ended after %d others and %.1f ms", passed,
	       (double)(esp_clock() - begin) / 1e6);
	for (int i = 0; i < FLOOD; i++)
		esp_ticket_free(flood[i]);
	esp_ticket_free(low);
	close_place(&p);
}

static void test_company(void)
{
	struct place p;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .company = 30000000});
	int64_t begin = esp_clock();
	esp_ticket *a = submit(&p, 0, (esp_submit_options){0}), *b = submit(&p, 1, (esp_submit_options){0});
	bool ok = !esp_ticket_wait(a, INT64_MAX, NULL) && !esp_ticket_wait(b, INT64_MAX, NULL);
	tap_ok(ok && has_bits(&p, a, 0) && has_bits(&p, b, 1) && esp_clock() - begin >= 30000000,
	       "a request waits for company as long as it may");
	esp_ticket_free(a);
	esp_ticket_free(b);
	close_place(&p);
}

/* --- what is refused --- */

static bool refused(esp_status status, esp_status expected, esp_error *error, const char *id)
{
	return error_is(error, id) && status == expected;
}

static void test_full(void)
{
	struct place p;
	esp_error *error;
	esp_ticket *t;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .requests = 2});
	esp_ticket *a = submit(&p, 0, (esp_submit_options){0}), *b = submit(&p, 1, (esp_submit_options){0});
	esp_status s = esp_service_submit(p.service, p.forest[2], NULL, &t, &error);
	tap_ok(refused(s, ESP_ERROR_BUSY, error, "service-full") && !t && esp_status_is_transient(s),
	       "full at two requests");
	esp_ticket_cancel(a);
	s = esp_ticket_wait(a, INT64_MAX, &error);
	tap_ok(refused(s, ESP_ERROR_CANCELLED, error, "request-cancelled") && !esp_ticket_output(a, 1, 0, 0),
	       "one is cancelled, and has no results");
	esp_ticket *late = submit(&p, 2, (esp_submit_options){.deadline = esp_clock() - 1});
	uint64_t before = count(p.service).nodes;
	s = esp_ticket_wait(late, INT64_MAX, &error);
	tap_ok(refused(s, ESP_ERROR_EXPIRED, error, "request-expired"), "one has expired");
	esp_ticket_wait(b, INT64_MAX, NULL);
	tap_is(count(p.service).nodes - before, esp_forest_nodes(p.forest[1], 0),
	       "and nothing was computed of both");
	esp_ticket_free(a);
	esp_ticket_free(b);
	esp_ticket_free(late);
	close_place(&p);

	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .bytes = 1});
	a = submit(&p, 0, (esp_submit_options){0});
	s = esp_service_submit(p.service, p.forest[1], NULL, &t, &error);
	tap_ok(a && refused(s, ESP_ERROR_BUSY, error, "service-full"), "full by bytes, but for one alone");
	esp_ticket_free(a);
	close_place(&p);
}

/* A chain of so many nodes. */
static esp_forest *make_chain(struct place *p, int nodes)
{
	int32_t *begin = calloc((size_t)nodes + 1, sizeof *begin);
	int32_t *children = calloc((size_t)nodes, sizeof *children);
	int32_t *words = calloc((size_t)nodes, sizeof *words);
	const void *data[] = {words};
	const esp_structure s = {sizeof s, (size_t)nodes, begin, children, nodes - 1, data};
	esp_forest *f;
	for (int n = 0; n < nodes; n++) { /* every second node joins the one before and a leaf */
		bool inner = n && n % 2 == 0;
		if (inner)
			children[begin[n]] = n - 2, children[begin[n] + 1] = n - 1;
		begin[n + 1] = begin[n] + 2 * inner;
	}
	if (esp_forest_create(p->k.program, &f, NULL) || esp_forest_add(f, &s, NULL))
		abort();
	free(begin), free(children), free(words);
	return f;
}

/* Submits it and waits; adds nodes that were computed meanwhile, and returns nanoseconds. */
static int64_t time_chain(struct place *p, const esp_forest *f, int64_t deadline, esp_ticket *company,
			  uint64_t *nodes)
{
	int64_t begin = esp_clock();
	uint64_t before = count(p->service).nodes;
	esp_ticket *t;
	const esp_submit_options o = {.size = sizeof o, .deadline = deadline ? begin + deadline : 0};
	if (esp_service_submit(p->service, f, &o, &t, NULL))
		abort();
	esp_ticket_wait(t, INT64_MAX, NULL);
	int64_t took = esp_clock() - begin;
	esp_ticket_wait(company, INT64_MAX, NULL);
	esp_ticket_free(t);
	*nodes = count(p->service).nodes - before;
	return took;
}

/* A request that cannot end in time beside others is dropped before anything is computed of it; alone it has
 * a chance. */
static void test_hopeless(void)
{
	enum { NODES = 20001 };
	struct place p;
	uint64_t nodes;
	esp_ticket *company;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 3 * NODES});
	esp_forest *f = make_chain(&p, NODES);
	int64_t alone = time_chain(&p, f, 0, NULL, &nodes);
	if (esp_service_submit(p.service, f, NULL, &company, NULL))
		abort();
	time_chain(&p, f, alone, company, &nodes);
	tap_is(nodes, NODES, "nothing is computed of what cannot end in time");
	esp_ticket_free(company);
	time_chain(&p, f, alone, NULL, &nodes);
	tap_ok(nodes > 0, "but of what has no company");
	esp_forest_free(f);
	close_place(&p);
}

static void test_refusals(void)
{
	struct place p;
	struct kit *k = &p.k;
	esp_error *error;
	esp_program *plain;
	esp_binding *binding;
	esp_service *s;
	esp_ticket *t;
	esp_forest *f;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 8});
	esp_program_options by_parent = {
	    .size = sizeof by_parent, .backend = "interpreter", .schedule = "layout h parent"};
	esp_program_create(k->model, k->weights, &by_parent, &plain, NULL);
	esp_binding_create(plain, k->weights, &binding, NULL);
	esp_status status = esp_service_create(binding, NULL, &s, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "not-continuous") && !s,
	       "a program for sessions alone");
	status = esp_service_create(
	    k->binding, &(esp_service_options){.size = sizeof(esp_service_options), .company = -1}, &s,
	    &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a negative option");
	status = esp_service_create(NULL, NULL, &s, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "no binding");
	esp_forest_create(plain, &f, NULL);
	esp_forest_add(f, &pair, NULL);
	status = esp_service_submit(p.service, f, NULL, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument") && !t,
	       "a forest of another program");
	esp_submit_options both = {.size = sizeof both, .event = 1, .done = free_last};
	status = esp_service_submit(p.service, p.forest[0], &both, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a callback and an event");
	esp_submit_options urgent = {.size = sizeof urgent, .priority = 1001};
	status = esp_service_submit(p.service, p.forest[0], &urgent, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a priority that is none");
	esp_forest *large;
	esp_forest_create(k->program, &large, NULL);
	for (int i = 0; i < 20; i++)
		add_tree(large, 5);
	esp_service_submit(p.service, large, NULL, &t, NULL);
	status = esp_ticket_wait(t, INT64_MAX, &error);
	tap_ok(refused(status, ESP_ERROR_INPUT, error, "request-too-large"), "more rows than there are");
	esp_ticket_free(t);
	static const int32_t wrong[] = {0, 9, -1};
	const void *data[] = {wrong};
	esp_forest_clear(large);
	esp_structure bad = pair;
	bad.data = data;
	esp_forest_add(large, &bad, NULL);
	esp_service_submit(p.service, large, NULL, &t, NULL);
	status = esp_ticket_wait(t, INT64_MAX, &error);
	tap_ok(esp_error_get(error, 0)->node == 1 &&
		   refused(status, ESP_ERROR_INPUT, error, "token-out-of-range"),
	       "a word that is none: the node is named");
	esp_ticket_free(t);
	esp_ticket_free(NULL);
	esp_ticket_cancel(NULL);
	esp_service_free(NULL);
	tap_ok(!esp_service_next(NULL) && !esp_ticket_user(NULL) && !esp_ticket_output(NULL, 0, 0, 0) &&
		   esp_ticket_generation(NULL) == 0,
	       "no ticket has nothing");
	esp_forest_free(large);
	esp_forest_free(f);
	esp_binding_free(binding);
	esp_program_free(plain);
	close_place(&p);
}

static void test_system(void)
{
	struct place p;
	esp_error *error;
	int descriptor;
	struct rlimit was, none;
	open_full(&p, NULL);
	getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	esp_status s = esp_service_descriptor(p.service, &descriptor, &error);
	setrlimit(RLIMIT_NOFILE, &was);
	tap_ok(refused(s, ESP_ERROR_SYSTEM, error, "system-refused") && descriptor == -1,
	       "no descriptor is left");
	tap_ok(!esp_service_descriptor(p.service, &descriptor, NULL) && descriptor >= 0,
	       "later there is one");
	close_place(&p);
}

/* Counts calls; results of those that were computed before can be read. */
static void note_closed(void *user, esp_ticket *t)
{
	atomic_fetch_add((atomic_int *)user, esp_ticket_wait(t, 0, NULL) == ESP_ERROR_CLOSED);
	esp_ticket_free(t);
}

/* Each is called back, with results or not. */
static void test_close(void)
{
	enum { N = 50 };
	struct place p;
	atomic_int closed = 0;
	esp_error *error;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .company = 200000000});
	for (int i = 0; i < N; i++)
		submit(&p, i % FORESTS, (esp_submit_options){.done = note_closed, .user = &closed});
	esp_context_close(p.k.context, NULL);
	while (count(p.service).pending)
		sleep_briefly();
	esp_ticket *t = NULL;
	esp_status s = esp_service_submit(p.service, p.forest[0], NULL, &t, &error);
	tap_ok(refused(s, ESP_ERROR_CLOSED, error, "context-closed") && !t, "a closed context takes no requests");
	for (int i = 0; i < 20000 && atomic_load(&closed) < N; i++)
		sleep_briefly();
	tap_is(atomic_load(&closed), N, "what was pending when it was closed is called back");
	close_place(&p);
}

static void test_fork(void)
{
	struct place p;
	int status;
	if (HEAP_NOT_FOR_FORKS) {
		tap_skip("the sanitizer's heap is not for forks", "a forked child, and its parent");
		return;
	}
	open_full(&p, NULL);
	esp_ticket *t = submit(&p, 0, (esp_submit_options){.event = 1}),
		   *waits = submit(&p, 1, (esp_submit_options){0});
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		bool right = esp_ticket_wait(waits, INT64_MAX, NULL) == ESP_ERROR_FORKED;
		esp_ticket_free(t);
		esp_ticket_free(waits);
		close_place(&p);
		_exit(right ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	tap_is(status, 0, "a forked child is refused, and frees what it inherited");
	tap_ok(!esp_ticket_wait(waits, INT64_MAX, NULL) && has_bits(&p, waits, 1) &&
		   !esp_ticket_wait(t, INT64_MAX, NULL),
	       "the parent goes on");
	esp_ticket_free(t);
	esp_ticket_free(waits);
	close_place(&p);
}

/* --- memory --- */

static esp_status serve_once(const esp_context_options *memory, esp_error **error)
{
	struct place p;
	esp_ticket *t = NULL;
	esp_status s = ESP_ERROR_MEMORY;
	char *text = NULL;
	if (open_place(&p, memory, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 64},
		       error) &&
	    !esp_forest_create(p.k.program, &p.forest[0], error) &&
	    !esp_forest_add(p.forest[0], &pair, error) &&
	    !esp_service_submit(p.service, p.forest[0], NULL, &t, error) &&
	    !esp_ticket_wait(t, INT64_MAX, error))
		s = esp_service_metrics(p.service, NULL, &text, error);
	esp_text_free(text);
	esp_ticket_free(t);
	close_place(&p);
	return s;
}

static void test_memory(void)
{
	struct account account = {.left = -1};
	esp_context_options memory = {.size = sizeof memory,
				      .resize = account_resize,
				      .user = &account,
				      .cache = ESP_CACHE_OFF,
				      .threads = 1};
	bool right = true;
	long n = 0;
	esp_status s;
	do {
		esp_error *error = NULL;
		account = (struct account){.left = n++};
		s = serve_once(&memory, &error);
		right &= s == ESP_OK || (error && strcmp(esp_error_get(error, 0)->id, "out-of-memory") == 0);
		esp_error_free(error);
		right &= account.blocks == 0 && !account.wrong;
	} while (s != ESP_OK && right && n < 5000);
	tap_ok(s == ESP_OK && right && n > 100,
	       "%ld allocations: any that fails is told, and all are given back", n - 1);
}

static const struct tensor other_weights[] = {
    {"E", 4, 2, (const float[]){2, 1, 5, 3, 1, 7, 3, 9}},
    {"W", 2, 2, (const float[]){1, 2, -1, 0}},
};

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors", "m.espalier"};
	make_folder();
	write_weights("w.safetensors", tiny_weights, 2);
	write_weights("v.safetensors", other_weights, 2);
	test_wait();
	test_threads();
	test_calls();
	test_last();
	test_saved();
	test_events();
	test_starvation();
	test_company();
	test_full();
	test_hopeless();
	test_refusals();
	test_system();
	test_close();
	test_fork();
	test_memory();
	remove_folder(names, 3);
	return tap_done();
}
