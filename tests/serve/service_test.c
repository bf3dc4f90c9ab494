/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tickets from several threads: every one ends once, with the bits of a session, whatever company it had, and
 * of the weights that it came with; also where nodes read all nodes of their input, and where an accelerator computes a part, with
 * the bits of the host. */
#include "serve/engine.h"
#include "serve/tickets.h"
#include "tests/models/helper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { FORESTS = 24, THREADS = 4, EACH = 150, GENERATIONS = 2 };

struct place {
	struct test_model model;
	struct test_run plain, joined[GENERATIONS]; /* all of one image */
	struct test_forest forest[FORESTS];
	char *expected[GENERATIONS][FORESTS];
	struct serve_service *service;
	struct diags diags;
	atomic_int released;
};

struct source {
	const char *path, *sizes;
	int nodes;		 /* of a request at most */
	const char *accelerator; /* of the service; sessions run on the host */
};

static const struct source tree = {"examples/treelstm/treelstm.ra", "D=9 E=6 V=30", 40, NULL},
			   sentence = {"examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4", 40, NULL},
			   network = {"tests/golden/network.ra", "", 3, "vta"};

static size_t output_bytes(const struct place *p)
{
	return output_elements(&p->plain.image, 0) * sizeof(float);
}

/* The weights of another generation have other values. */
static bool bind_generation(struct test_run *r, const struct image *image, int generation)
{
	struct rt_source source = {read_weight, (void *)image};
	weights_drawn = generation;
	bool ok = rt_bind(&r->binding, &allocator_default, image, &source, NULL, &r->diags);
	weights_drawn = 0;
	return ok;
}

static bool note_expected(struct place *p, int generation)
{
	rt_binding_free(&p->plain.binding);
	if (!bind_generation(&p->plain, &p->plain.image, generation))
		return false;
	for (int i = 0; i < FORESTS; i++) {
		int64_t rows = p->plain.image.output[0].at_root ? p->forest[i].minibatch.forest.inputs
								: p->forest[i].nodes;
		char *all = p->expected[generation][i] = malloc(rows * output_bytes(p) + 1);
		if (!run_forest(&p->plain, &p->forest[i].minibatch))
			return false;
		for (int64_t row = 0; row < rows; row++)
			memcpy(all + row * output_bytes(p), rt_session_row(&p->plain.session, 0, row),
			       output_bytes(p));
	}
	return true;
}

static bool open_place(struct place *p, struct source from, const char *backend, int64_t requests)
{
	struct option_texts o = {.backend = backend,
				 .target = strcmp(backend, "interpreter") == 0 ? "avx2" : "native"};
	struct serve_service_options so = {.limits = {4096, 256, 400}, .requests = requests};
	bool ok = true;
	memset(p, 0, sizeof *p);
	diags_init(&p->diags, &allocator_default);
	random_state = 17;
	if (!load_model(&p->model, from.path, from.sizes) || !start_run(&p->plain, &p->model, &o))
		return false;
	o.continuous = true;
	o.accelerator = from.accelerator;
	if (!start_run(&p->joined[0], &p->model, &o) || (from.accelerator && !p->joined[0].image.calls))
		return false;
	for (int i = 0; i < FORESTS; i++)
		make_shaped_forest(&p->forest[i], &p->plain.image, 1, from.nodes, random_below(3));
	for (int g = 0; ok && g < GENERATIONS; g++)
		ok = note_expected(p, g) && (!g || bind_generation(&p->joined[g], &p->joined[0].image, g));
	p->service = serve_open(&allocator_default, &p->joined[0].image, &so, &p->diags);
	return ok && p->service;
}

static void close_place(struct place *p)
{
	serve_close(p->service);
	for (int g = 1; g < GENERATIONS; g++)
		rt_binding_free(&p->joined[g].binding);
	for (int i = 0; i < FORESTS; i++) {
		free_forest(&p->forest[i]);
		for (int g = 0; g < GENERATIONS; g++)
			free(p->expected[g][i]);
	}
	end_run(&p->plain);
	end_run(&p->joined[0]);
	free_model(&p->model);
	diags_free(&p->diags);
}

static void note_release(void *user)
{
	atomic_fetch_add(&((struct place *)user)->released, 1);
}

static struct serve_ticket *submit(struct place *p, int forest, int generation, int priority,
				   int64_t deadline, struct diags *d)
{
	struct serve_submission s = {.minibatch = p->forest[forest].minibatch,
				     .binding = &p->joined[generation].binding,
				     .priority = priority,
				     .deadline = deadline,
				     .release = note_release,
				     .user = p};
	return serve_submit(p->service, &s, d);
}

static bool has_bits(const struct place *p, const struct serve_ticket *t, int forest, int generation)
{
	int64_t rows = p->plain.image.output[0].at_root ? p->forest[forest].minibatch.forest.inputs
							: p->forest[forest].nodes;
	bool same = true;
	for (int64_t row = 0; same && row < rows; row++)
		same = serve_ticket_row(t, 0, row) &&
		       memcmp(serve_ticket_row(t, 0, row),
			      p->expected[generation][forest] + row * output_bytes(p), output_bytes(p)) == 0;
	return same && !serve_ticket_row(t, 0, rows);
}

/* --- several threads --- */

struct client {
	struct place *place;
	unsigned state;
	int done, cancelled, expired, freed, wrong;
};

static unsigned draw(struct client *c, unsigned n)
{
	c->state = c->state * 1664525u + 1013904223u;
	return (c->state >> 16) % n;
}

/* What came of a ticket with such a fate. */
static void note_answer(struct client *c, enum serve_answer answer, int fate, bool right)
{
	c->done += answer == SERVE_DONE;
	c->cancelled += answer == SERVE_CANCELLED;
	c->expired += answer == SERVE_EXPIRED;
	c->wrong += answer == SERVE_DONE	? !right
		    : answer == SERVE_CANCELLED ? fate != 0 || right
						: answer != SERVE_EXPIRED || fate != 2 || right;
}

/* Most requests are waited for, some are cancelled first, some are freed at once, some have little time. */
static void *run_client(void *context)
{
	struct client *c = context;
	struct diags d;
	diags_init(&d, &allocator_default);
	for (int i = 0; i < EACH; i++) {
		int forest = draw(c, FORESTS), generation = draw(c, GENERATIONS), fate = draw(c, 8);
		int64_t deadline = fate == 2 ? rt_nanoseconds() + 1000 * (int64_t)draw(c, 1000) : 0;
		struct serve_ticket *t = submit(c->place, forest, generation, draw(c, 3), deadline, &d);
		if (!t) {
			c->wrong++;
			continue;
		}
		if (fate == 0)
			serve_cancel(c->place->service, t);
		c->wrong += serve_ticket_row(t, 0, 0) && serve_ticket_answer(t) != SERVE_DONE;
		if (fate != 1) {
			enum serve_answer answer = serve_wait(c->place->service, t, INT64_MAX);
			note_answer(c, answer, fate,
				    answer == SERVE_DONE ? has_bits(c->place, t, forest, generation)
							 : serve_ticket_row(t, 0, 0) != NULL);
		}
		c->freed += fate == 1;
		serve_ticket_free(c->place->service, t);
	}
	diags_free(&d);
	return NULL;
}

static void test_threads(struct source from, const char *backend)
{
	struct place p;
	struct client client[THREADS];
	pthread_t thread[THREADS];
	int done = 0, cancelled = 0, expired = 0, freed = 0, wrong = 0;
	if (!tap_ok(open_place(&p, from, backend, 1000), "%s by %s: a service", from.path, backend))
		return close_place(&p);
	for (int i = 0; i < SERVE_LOADS; i++)
		p.service->engine->ways.load[i].better = SERVE_BY_FOREST;
	for (int t = 0; t < THREADS; t++) {
		client[t] = (struct client){.place = &p, .state = 77 + t};
		pthread_create(&thread[t], NULL, run_client, &client[t]);
	}
	for (int t = 0; t < THREADS; t++) {
		pthread_join(thread[t], NULL);
		done += client[t].done;
		cancelled += client[t].cancelled;
		expired += client[t].expired;
		freed += client[t].freed;
		wrong += client[t].wrong;
	}
	const struct serve_counters *n = serve_counters(p.service);
	tap_ok(!wrong && done > 0 && cancelled > 0 && freed > 0,
	       "%s: %d done with the bits of their weights, %d cancelled, %d expired, %d freed; %llu supersteps, %llu of them forests",
	       backend, done, cancelled, expired, freed, (unsigned long long)n->supersteps, (unsigned long long)n->forests);
	tap_ok(done + cancelled + expired + freed == THREADS * EACH && n->submitted == THREADS * EACH &&
		   n->pending == 0 && n->bytes == 0,
	       "%s: all ended", backend);
	tap_ok(n->ended[SERVE_DONE] + n->ended[SERVE_CANCELLED] + n->ended[SERVE_EXPIRED] == n->submitted &&
		   (int)n->ended[SERVE_DONE] >= done,
	       "%s: counted by answer", backend);
	tap_is(atomic_load(&p.released), THREADS * EACH, "each was released once");
	close_place(&p);
}

/* --- one thread --- */

static void test_answers(void)
{
	struct place p;
	struct timespec t;
	open_place(&p, tree, "interpreter", 3);
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	struct serve_ticket *late = submit(&p, 0, 0, 0, now - 1, &p.diags),
			    *early = submit(&p, 1, 0, 0, now + INT64_C(3600000000000), &p.diags),
			    *third = submit(&p, 2, 0, 0, 0, &p.diags);
	tap_ok(!submit(&p, 3, 0, 0, 0, &p.diags) && p.diags.n == 1 && p.diags.at[0].id == DIAG_SERVICE_FULL &&
		   p.released == 0,
	       "full at three requests");
	tap_ok(serve_ticket_answer(late) == SERVE_PENDING &&
		   serve_wait(p.service, third, now) == SERVE_PENDING,
	       "pending until somebody waits");
	tap_ok(serve_wait(p.service, late, INT64_MAX) == SERVE_EXPIRED && !serve_ticket_row(late, 0, 0) &&
		   p.released == 0,
	       "one whose deadline passed: expired");
	tap_ok(serve_wait(p.service, early, INT64_MAX) == SERVE_DONE && has_bits(&p, early, 1, 0),
	       "one whose deadline comes: done");
	tap_ok(serve_counters(p.service)->supersteps < 60 &&
		   serve_wait(p.service, third, INT64_MAX) == SERVE_DONE && has_bits(&p, third, 2, 0),
	       "the third was computed with it");
	atomic_store(&third->answer, SERVE_PENDING);
	tap_ok(!serve_ticket_row(third, 0, 0), "there is no row before the answer, though the superstep has run");
	atomic_store(&third->answer, SERVE_DONE);
	serve_ticket_free(p.service, late);
	serve_ticket_free(p.service, early);
	serve_ticket_free(p.service, third);
	((int32_t *)p.forest[4].data[0])[0] = 30;
	struct serve_ticket *wrong = submit(&p, 4, 0, 0, 0, &p.diags),
			    *right = submit(&p, 5, 1, 0, 0, &p.diags);
	tap_ok(serve_wait(p.service, wrong, INT64_MAX) == SERVE_REJECTED &&
		   serve_ticket_diags(wrong)->n == 1 &&
		   serve_ticket_diags(wrong)->at[0].id == DIAG_TOKEN_OUT_OF_RANGE,
	       "an illegal one: rejected");
	tap_ok(serve_wait(p.service, right, INT64_MAX) == SERVE_DONE && has_bits(&p, right, 5, 1),
	       "and not the one beside it");
	serve_ticket_free(p.service, right);
	serve_ticket_free(p.service, wrong);
	struct serve_ticket *dropped = submit(&p, 6, 0, 0, 0, &p.diags),
			    *cancelled = submit(&p, 7, 0, 0, 0, &p.diags);
	serve_cancel(p.service, cancelled);
	serve_cancel(p.service, cancelled);
	tap_ok(serve_ticket_answer(cancelled) == SERVE_CANCELLED &&
		   serve_wait(p.service, cancelled, INT64_MAX) == SERVE_CANCELLED,
	       "cancelled before anybody waits");
	serve_ticket_free(p.service, cancelled);
	serve_ticket_free(p.service, dropped);
	serve_ticket_free(p.service, NULL);
	const struct serve_counters *n = serve_counters(p.service);
	tap_ok(n->submitted == 7 && n->full == 1 && n->pending == 0 && n->ended[SERVE_DONE] == 3 &&
		   n->ended[SERVE_EXPIRED] == 1 && n->ended[SERVE_REJECTED] == 1 &&
		   n->ended[SERVE_CANCELLED] == 2 && p.released == 7,
	       "counts");
	close_place(&p);
}

/* Deadlines come at all times of a computation, most of them while a superstep runs. */
static void test_rows_of_expired(void)
{
	enum { DEADLINES = 400, APART = 500 /* ns */ };
	struct place p;
	int expired = 0, left = 0;
	open_place(&p, tree, "interpreter", 3);
	for (int i = 0; i < DEADLINES; i++) {
		struct serve_ticket *t = submit(&p, i % FORESTS, 0, 0, rt_nanoseconds() + i * APART, &p.diags);
		expired += serve_wait(p.service, t, INT64_MAX) == SERVE_EXPIRED;
		left += serve_counters(p.service)->rows != 0;
		serve_ticket_free(p.service, t);
	}
	tap_ok(expired && !left, "of %d requests %d expired, and no rows are left of any", DEADLINES, expired);
	close_place(&p);
}

static bool serve_one(struct place *p, int expected)
{
	struct serve_ticket *t = submit(p, 0, 0, 0, 0, &p->diags);
	bool ok = t && serve_wait(p->service, t, INT64_MAX) == SERVE_DONE && has_bits(p, t, 0, expected);
	serve_ticket_free(p->service, t);
	return ok;
}

/* Weights may lie where others were that have been freed: the address does not say which they are. */
static void test_same_address(void)
{
	struct place p;
	if (!open_place(&p, tree, "interpreter", 4))
		abort();
	struct rt_binding *at = &p.joined[0].binding, *other = &p.joined[1].binding, first = *at;
	tap_ok(serve_one(&p, 0), "a request is computed with its weights");
	*at = *other;
	*other = first;
	tap_ok(serve_one(&p, 1), "so is one whose weights lie where others were");
	*other = *at;
	*at = first;
	close_place(&p);
}

int main(void)
{
	test_threads(tree, "interpreter");
	test_threads(sentence, "interpreter");
	test_threads(network, "interpreter");
	if (backend_at(0)) {
		test_threads(tree, usual_backend());
		test_threads(sentence, usual_backend());
		test_threads(network, usual_backend());
	}
	test_answers();
	test_rows_of_expired();
	test_same_address();
	return tap_done();
}
