/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services: results have the bits of sessions and of their generation, however they are waited for; nothing
 * is lost or told twice. */
#include "tests/api/serving.h"
#include "tests/backends.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

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

/* Submits as many as there are forests, and waits for all. */
static bool serve_all(struct place *p)
{
	esp_ticket *t[FORESTS];
	bool same = true;
	for (int i = 0; i < FORESTS; i++)
		t[i] = submit(p, i, (esp_submit_options){0});
	for (int i = 0; i < FORESTS; i++) {
		same &= !esp_ticket_wait(t[i], INT64_MAX, NULL) && has_bits(p, t[i], i);
		esp_ticket_free(t[i]);
	}
	return same;
}

/* Requests that come together are run as forests sooner or later, as both ways are measured. */
static void test_forests(void)
{
	enum { MOST = 3000, UNTOUCHED = 77 };
	struct place p;
	int rounds = 0;
	open_full(&p, NULL);
	bool same = true;
	while (same && rounds < MOST && !count(p.service).forests) {
		same = serve_all(&p);
		rounds++;
	}
	esp_service_counts c = count(p.service), old = c;
	tap_ok(same && c.forests && c.forest_requests >= 2 * c.forests && c.forest_requests <= FORESTS * c.forests &&
		   c.forest_nodes >= c.forest_requests && c.forest_nodes < c.nodes && c.forests < c.supersteps,
	       "a forest after %d rounds: %d requests of %d nodes", rounds, (int)c.forest_requests, (int)c.forest_nodes);
	old.size = offsetof(esp_service_counts, forests);
	old.forests = old.forest_requests = old.forest_nodes = UNTOUCHED;
	esp_service_count(p.service, &old);
	tap_ok(old.done == c.done && old.whole.values == c.whole.values && old.forests == UNTOUCHED &&
		   old.forest_requests == UNTOUCHED && old.forest_nodes == UNTOUCHED,
	       "a struct of a program that knows no forests is filled to its end");
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

/* Callbacks of three requests: the first waits until the others were submitted, which end together; of these one is freed, and
 * the other one waits until the service was freed. */
struct blocked {
	atomic_int calls, submitted, freed, hangs, ended;
};

static void wait_until(struct blocked *b, atomic_int *flag)
{
	for (int i = 0; !atomic_load(flag); i++) {
		if (i == 20000) {
			atomic_store(&b->hangs, 1);
			return;
		}
		sleep_briefly();
	}
}

static void end_blocked(void *user, esp_ticket *t)
{
	struct blocked *b = user;
	int before = atomic_load(&b->calls);
	if (before == 0)
		wait_until(b, &b->submitted);
	esp_ticket_free(t);
	atomic_fetch_add(&b->calls, 1);
	if (before == 2)
		wait_until(b, &b->freed);
	atomic_fetch_add(&b->ended, 1);
}

static void test_blocked(void)
{
	struct place p;
	struct blocked b = {0};
	const esp_submit_options o = {.done = end_blocked, .user = &b};
	open_full(&p, NULL);
	for (int i = 0; i < 3; i++)
		submit(&p, 0, o);
	atomic_store(&b.submitted, 1);
	while (atomic_load(&b.calls) < 3)
		sleep_briefly();
	esp_service_free(p.service);
	p.service = NULL;
	atomic_store(&b.freed, 1);
	while (atomic_load(&b.ended) < 3)
		sleep_briefly();
	tap_ok(!atomic_load(&b.hangs), "a service is freed while a callback waits for that, behind one that freed its ticket");
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

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors", "m.espalier"};
	write_generations();
	test_wait();
	test_forests();
	test_threads();
	test_calls();
	test_last();
	test_blocked();
	test_saved();
	test_events();
	remove_folder(names, 3);
	return tap_done();
}
