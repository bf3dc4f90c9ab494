/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Forests of requests: which are gathered together, what one that is to be refused does to the others, how long they take, and
 * services whose tickets are computed so. */
#include "serve/engine.h"
#include "serve/tickets.h"
#include "tests/models/helper.h"

#include <stdlib.h>

enum { FORESTS = 6 };

struct place {
	struct test_model model;
	struct test_run run;
	struct test_forest forest[FORESTS];
	struct serve_engine *engine;
	struct serve_service *service;
	struct diags diags;
};

static const char tree[] = "examples/treelstm/treelstm.ra", tree_sizes[] = "D=5 E=4 V=30",
		  sentence[] = "examples/selfattention/selfattention.ra", sentence_sizes[] = "V=30 K=3 F=9 C=4";
static const struct serve_limits limits = {640, 200, 0};

static bool open_place(struct place *p, const char *path, const char *sizes, struct serve_limits l)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .continuous = true};
	struct serve_service_options so = {.limits = l, .requests = 100};
	memset(p, 0, sizeof *p);
	diags_init(&p->diags, &allocator_default);
	random_state = 29;
	if (!load_model(&p->model, path, sizes) || !start_run(&p->run, &p->model, &o))
		return false;
	for (int i = 0; i < FORESTS; i++)
		make_shaped_forest(&p->forest[i], &p->run.image, 1, 20, random_below(3));
	p->engine = serve_create(&allocator_default, &p->run.image, l, &p->diags);
	p->service = serve_open(&allocator_default, &p->run.image, &so, &p->diags);
	return p->engine && p->service;
}

static void close_place(struct place *p)
{
	serve_free(p->engine);
	serve_close(p->service);
	for (int i = 0; i < FORESTS; i++)
		free_forest(&p->forest[i]);
	end_run(&p->run);
	free_model(&p->model);
	diags_free(&p->diags);
}

/* --- who is gathered --- */

static struct serve_request *last;

static enum serve_outcome gather(struct place *p, const struct rt_minibatch *m, int64_t deadline)
{
	const struct serve_entry entry = {&p->run.binding, m, 0, NULL, deadline};
	return serve_gather(p->engine, &entry, &last);
}

static int drop_all(struct place *p)
{
	int n = 0;
	while (serve_drop_gathered(p->engine))
		n++;
	return n;
}

static int end_all(struct place *p)
{
	int n = 0;
	for (struct serve_request *r; (r = serve_take(p->engine)); n++)
		serve_release(p->engine, r);
	return n;
}

static void test_limits(void)
{
	struct place p;
	struct rt_binding other = {0};
	struct serve_carry carry = {.begun = false};
	if (!tap_ok(open_place(&p, tree, tree_sizes, (struct serve_limits){640, 50, 0}), "a service of trees"))
		return close_place(&p);
	const struct rt_minibatch *first = &p.forest[0].minibatch, *second = &p.forest[1].minibatch;
	struct rt_minibatch empty = {.data = first->data};
	struct serve_entry streamed = {&p.run.binding, first, 0, &carry, 0}, foreign = {&other, first, 0, NULL, 0};
	tap_ok(serve_gather(p.engine, &streamed, &last) == SERVE_FULL && !last, "an element of a stream is not gathered");
	tap_ok(gather(&p, &empty, 0) == SERVE_FULL && !serve_is_busy(p.engine), "nor what has no nodes");
	tap_ok(gather(&p, first, 0) == SERVE_ADMITTED && last && serve_is_busy(p.engine), "a request is");
	tap_ok(serve_gather(p.engine, &foreign, &last) == SERVE_FULL, "one with other weights is not gathered with it");
	int gathered = 1;
	while (gather(&p, second, 0) == SERVE_ADMITTED)
		gathered++;
	tap_ok(gathered == 1 + (50 - p.forest[0].nodes) / p.forest[1].nodes, "%d have as many nodes as a superstep may",
	       gathered);
	tap_ok(drop_all(&p) == gathered && !serve_is_busy(p.engine) && gather(&p, second, 0) == SERVE_ADMITTED,
	       "when they are dropped there is room again");
	tap_ok(serve_advance(p.engine, NULL, 0, &p.diags) && end_all(&p) == 1 && serve_count(p.engine).forests == 1 &&
		   serve_count(p.engine).rows == 0 && !serve_is_busy(p.engine),
	       "a forest is run by one superstep");
	p.engine->forest.forecast.time = p.engine->forest.forecast.nodes; /* a nanosecond for a cell */
	tap_ok(gather(&p, first, 1) == SERVE_LATE && !serve_is_busy(p.engine), "one that would be late is not gathered");
	tap_ok(gather(&p, first, INT64_MAX) == SERVE_ADMITTED && gather(&p, second, 1) == SERVE_LATE && drop_all(&p) == 1,
	       "nor beside one that has time");
	p.engine->forest.forecast.time = 1e12;
	tap_ok(gather(&p, first, 0) == SERVE_FULL, "nor one that would keep others waiting for long");
	close_place(&p);
}

static void test_pairs(void)
{
	struct place p;
	bool ok = open_place(&p, sentence, sentence_sizes, (struct serve_limits){640, 0, 400});
	int64_t pairs = 0;
	int gathered = 0;
	for (; ok && gathered < FORESTS && gather(&p, &p.forest[gathered].minibatch, 0) == SERVE_ADMITTED; gathered++)
		pairs += (int64_t)p.forest[gathered].nodes * p.forest[gathered].nodes;
	int64_t nodes = gathered < FORESTS ? p.forest[gathered].nodes : 0;
	tap_ok(ok && gathered > 0 && pairs <= 400 && pairs + nodes * nodes > 400,
	       "forests have as many pairs as a superstep may: %lld, by %d requests", (long long)pairs, gathered);
	close_place(&p);
}

/* --- what is refused --- */

/* Each makes a request illegal by one number, such that it could be legal in a forest; returns where that is. */
struct fault {
	const char *what;
	int32_t *(*find)(struct test_forest *);
	int32_t (*wrong)(const struct test_forest *);
};

static int32_t *find_child(struct test_forest *f)
{
	return (int32_t *)f->minibatch.forest.children;
}

static int32_t *find_root(struct test_forest *f)
{
	return (int32_t *)f->minibatch.forest.root;
}

static int32_t *find_begin(struct test_forest *f)
{
	return (int32_t *)f->minibatch.forest.child_begin + 1;
}

static int32_t *find_word(struct test_forest *f)
{
	return (int32_t *)f->data[0];
}

static int32_t behind_nodes(const struct test_forest *f)
{
	return (int32_t)f->nodes;
}

static int32_t before_nodes(const struct test_forest *f)
{
	(void)f;
	return -1;
}

static int32_t beyond_words(const struct test_forest *f)
{
	(void)f;
	return 30;
}

static const struct fault faults[] = {
    {"a child of the next request", find_child, behind_nodes},
    {"a child of the request before", find_child, before_nodes},
    {"a root of the next request", find_root, behind_nodes},
    {"children that begin behind the last", find_begin, behind_nodes},
    {"a word that there is not", find_word, beyond_words},
};

static struct serve_ticket *submit(struct place *p, int forest, int64_t deadline)
{
	struct serve_submission s = {
	    .minibatch = p->forest[forest].minibatch, .binding = &p->run.binding, .deadline = deadline};
	return serve_submit(p->service, &s, &p->diags);
}

/* Forests are better at any load, and nothing is known of how slow the machine is. */
static void prefer_forests(struct serve_service *s)
{
	s->engine->forecast = s->engine->forest.forecast = (struct serve_forecast){0};
	for (int i = 0; i < SERVE_LOADS; i++)
		s->engine->ways.load[i].better = SERVE_BY_FOREST;
}

static bool has_bits(struct place *p, const struct serve_ticket *t, int forest)
{
	size_t bytes = output_elements(&p->run.image, 0) * sizeof(float);
	bool at_root = p->run.image.output[0].at_root;
	int64_t rows = at_root ? 1 : p->forest[forest].nodes;
	bool same = run_forest(&p->run, &p->forest[forest].minibatch);
	for (int64_t row = 0; same && row < rows; row++)
		same = serve_ticket_row(t, 0, row) &&
		       !memcmp(serve_ticket_row(t, 0, row), rt_session_row(&p->run.session, 0, row), bytes);
	return same && !serve_ticket_row(t, 0, rows);
}

/* Submits all, the second of which has a fault. */
static void test_fault(struct place *p, const struct fault *f)
{
	struct serve_ticket *ticket[FORESTS];
	int32_t *at = f->find(&p->forest[1]), was = *at;
	uint64_t forests = serve_counters(p->service)->forests, computed = serve_counters(p->service)->nodes;
	int done = 0;
	*at = f->wrong(&p->forest[1]);
	prefer_forests(p->service);
	for (int i = 0; i < FORESTS; i++)
		ticket[i] = submit(p, i, 0);
	tap_ok(serve_wait(p->service, ticket[1], INT64_MAX) == SERVE_REJECTED && serve_ticket_diags(ticket[1])->n == 1,
	       "%s: rejected", f->what);
	*at = was;
	for (int i = 0; i < FORESTS; i++) {
		done += i != 1 && serve_wait(p->service, ticket[i], INT64_MAX) == SERVE_DONE && has_bits(p, ticket[i], i) &&
			ticket[i]->apart;
		serve_ticket_free(p->service, ticket[i]);
	}
	tap_ok(done == FORESTS - 1 && serve_counters(p->service)->forests == forests &&
		   serve_counters(p->service)->nodes > computed && serve_counters(p->service)->pending == 0,
	       "the %d others are computed one by one, by supersteps", done);
}

static void test_faults(void)
{
	struct place p;
	if (tap_ok(open_place(&p, tree, tree_sizes, limits), "a service of trees"))
		for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
			test_fault(&p, &faults[i]);
	close_place(&p);
}

/* --- tickets --- */

static void test_tickets(const char *path, const char *sizes)
{
	struct place p;
	struct serve_ticket *ticket[FORESTS];
	int64_t nodes = 0;
	int done = 0;
	if (!tap_ok(open_place(&p, path, sizes, limits), "%s: a service", path))
		return close_place(&p);
	prefer_forests(p.service);
	for (int i = 0; i < FORESTS; i++) {
		ticket[i] = submit(&p, i, i == 2 ? rt_nanoseconds() + INT64_C(3600000000000) : 0);
		nodes += p.forest[i].nodes;
	}
	serve_cancel(p.service, ticket[4]);
	nodes -= p.forest[4].nodes;
	const struct serve_counters *n = serve_counters(p.service);
	tap_ok(serve_wait(p.service, ticket[4], 0) == SERVE_CANCELLED &&
		   serve_wait(p.service, ticket[0], INT64_MAX) == SERVE_DONE && n->forests == 1 && n->supersteps == 1 &&
		   n->nodes == (uint64_t)(nodes * p.service->engine->steps.traversals),
	       "all that wait are one forest, but for one that was cancelled");
	tap_ok(n->forest_requests == FORESTS - 1 && n->forest_nodes == n->nodes, "%d requests in it are counted, with their nodes",
	       (int)n->forest_requests);
	for (int i = 0; i < FORESTS; i++) {
		done += serve_ticket_answer(ticket[i]) == SERVE_DONE && has_bits(&p, ticket[i], i);
		serve_ticket_free(p.service, ticket[i]);
	}
	tap_ok(done == FORESTS - 1 && n->pending == 0 && n->rows == 0, "with the bits of sessions");
	struct serve_ticket *one = submit(&p, 3, 0);
	tap_ok(serve_wait(p.service, one, INT64_MAX) == SERVE_DONE && has_bits(&p, one, 3) && n->forests == 1 &&
		   n->forest_requests == FORESTS - 1 && n->forest_nodes < n->nodes,
	       "one without company is no forest");
	serve_ticket_free(p.service, one);
	struct serve_ticket *late = submit(&p, 0, rt_nanoseconds() + 10), *other = submit(&p, 1, 0);
	tap_ok(serve_wait(p.service, late, INT64_MAX) == SERVE_EXPIRED &&
		   serve_wait(p.service, other, INT64_MAX) == SERVE_DONE && has_bits(&p, other, 1),
	       "a deadline that passes before ends a ticket, and not the one beside it");
	serve_ticket_free(p.service, late);
	serve_ticket_free(p.service, other);
	close_place(&p);
}

/* Two that are no forest's join the same supersteps, although forests are preferred. */
static void test_unfit(void)
{
	struct place p;
	bool ok = open_place(&p, tree, tree_sizes, (struct serve_limits){640, 2, 0});
	if (ok)
		prefer_forests(p.service);
	struct serve_ticket *one = ok ? submit(&p, 0, 0) : NULL, *other = ok ? submit(&p, 0, 0) : NULL;
	tap_ok(one && other && serve_wait(p.service, one, INT64_MAX) == SERVE_DONE &&
		   serve_wait(p.service, other, INT64_MAX) == SERVE_DONE && serve_counters(p.service)->forests == 0 &&
		   serve_ticket_time(p.service, other, 1) < serve_ticket_time(p.service, one, 2),
	       "what does not fit into a forest joins supersteps, and what waits behind it");
	serve_ticket_free(p.service, one);
	serve_ticket_free(p.service, other);
	close_place(&p);
}

/* Those in flight end before a forest, if that will be soon; who comes before one of them joins. */
static void test_draining(void)
{
	struct place p;
	struct serve_request *r;
	bool ok = open_place(&p, tree, tree_sizes, limits);
	struct serve_engine *e = p.engine;
	const struct serve_entry later = {&p.run.binding, &p.forest[1].minibatch, 9, NULL, 0},
				 before = {&p.run.binding, &p.forest[2].minibatch, 1, NULL, 0},
				 first = {&p.run.binding, &p.forest[0].minibatch, 5, NULL, 0};
	for (int i = 0; ok && i < SERVE_LOADS; i++)
		e->ways.load[i].better = SERVE_BY_FOREST;
	tap_ok(ok && !serve_prefers_forest(e, 1, 9, true) && serve_admit(e, &first, &r, &p.diags) == SERVE_ADMITTED,
	       "one without company is admitted");
	tap_ok(!serve_prefers_forest(e, 2, 9, true) && serve_admit(e, &later, &r, &p.diags) == SERVE_FULL,
	       "another waits until it has ended");
	tap_ok(serve_admit(e, &before, &r, &p.diags) == SERVE_ADMITTED, "not one that comes before it");
	tap_ok(!serve_prefers_forest(e, 3, 9, false) && serve_admit(e, &later, &r, &p.diags) == SERVE_ADMITTED,
	       "nor one when a deadline is pending");
	serve_advance(e, NULL, 0, &p.diags);
	e->forecast.time = 1e12;
	tap_ok(!serve_prefers_forest(e, 4, 9, true) && e->way == SERVE_BY_CELLS, "nor when those in flight end late");
	while (serve_is_busy(e))
		serve_advance(e, NULL, 0, &p.diags);
	tap_ok(serve_prefers_forest(e, 2, 9, true) && end_all(&p) == 3, "then forests are gathered");
	close_place(&p);
}

/* Admits one request, and a second one if it does not wait for the first; whether it waits.  None is left. */
static bool waits_for_first(struct place *p, int64_t since)
{
	struct serve_request *r;
	struct serve_engine *e = p->engine;
	const struct serve_entry first = {&p->run.binding, &p->forest[0].minibatch, 5, NULL, 0},
				 later = {&p->run.binding, &p->forest[1].minibatch, 9, NULL, 0};
	serve_prefers_forest(e, 1, 9, true);
	serve_admit(e, &first, &r, &p->diags);
	for (int i = 0; i < SERVE_LOADS; i++)
		e->ways.load[i] = (struct serve_load){.better = SERVE_BY_FOREST};
	e->forest.drain_begin = since;
	e->forecast = (struct serve_forecast){0};
	serve_prefers_forest(e, 2, 9, true);
	bool waits = serve_admit(e, &later, &r, &p->diags) == SERVE_FULL;
	while (serve_is_busy(e))
		serve_advance(e, NULL, 0, &p->diags);
	end_all(p);
	return waits;
}

/* To wait for those in flight is in vain where nothing else has come when they have ended, and where requests that are ahead
 * keep joining them: neither goes on. */
static void test_vain_draining(void)
{
	enum { TIMES = 60 };
	struct place p;
	bool ok = open_place(&p, tree, tree_sizes, limits);
	int waited = 0;
	for (int i = 0; ok && i < TIMES; i++)
		waited += waits_for_first(&p, 0);
	tap_ok(ok && waited > 1 && waited < TIMES / 5, "of %d requests that have one other as company, %d wait for it", TIMES, waited);
	p.engine->forest.failures = 0;
	p.engine->forest.drain_begin = 0;
	tap_ok(ok && waits_for_first(&p, rt_nanoseconds() + SERVE_FOREST_TIME), "one waits for those in flight");
	p.engine->forest.failures = 0;
	p.engine->forest.drain_begin = 0;
	tap_ok(ok && !waits_for_first(&p, rt_nanoseconds() - SERVE_FOREST_TIME - 1) && p.engine->forest.failures == 1,
	       "no longer than a forest may take");
	close_place(&p);
}

static void drive(struct serve_service *s)
{
	pthread_mutex_lock(&s->lock);
	serve_drive(s);
	pthread_mutex_unlock(&s->lock);
}

/* While a deadline is pending none waits for those in flight, that are two; when it has ended others do. */
static void test_ended_deadline(void)
{
	struct place p;
	struct serve_ticket *ticket[FORESTS];
	bool waits[2] = {false, false}, ok = open_place(&p, tree, tree_sizes, limits);
	for (int ended = 0; ok && ended < 2; ended++) {
		struct serve_ticket *late = submit(&p, 0, rt_nanoseconds() + INT64_C(3600000000000));
		for (int i = 0; i < SERVE_LOADS; i++)
			p.service->engine->ways.load[i] = (struct serve_load){.better = SERVE_BY_CELLS};
		if (ended)
			serve_cancel(p.service, late);
		ticket[0] = submit(&p, 1, 0);
		ticket[1] = submit(&p, 2, 0);
		drive(p.service);
		ok = serve_is_busy(p.service->engine);
		prefer_forests(p.service);
		ticket[2] = submit(&p, 3, 0);
		drive(p.service);
		waits[ended] = ticket[2]->place == SERVE_WAITING;
		for (int i = 0; i < 3; i++) {
			ok &= serve_wait(p.service, ticket[i], INT64_MAX) == SERVE_DONE;
			serve_ticket_free(p.service, ticket[i]);
		}
		ok &= serve_wait(p.service, late, INT64_MAX) == (ended ? SERVE_CANCELLED : SERVE_DONE);
		serve_ticket_free(p.service, late);
	}
	tap_ok(ok && !waits[0] && waits[1] && p.service->deadlines == 0 && p.service->next_deadline == INT64_MAX,
	       "a deadline keeps others from waiting for a forest until its ticket has ended, and no longer");
	close_place(&p);
}

/* --- how long forests take --- */

/* Submits all again and again, until a forest is run; returns how often, most + 1 = none was. */
static int count_rounds(struct place *p, int most)
{
	const struct serve_counters *n = serve_counters(p->service);
	const uint64_t before = n->forests;
	for (int round = 1; round <= most; round++) {
		struct serve_ticket *ticket[FORESTS];
		for (int i = 0; i < FORESTS; i++)
			ticket[i] = submit(p, i, 0);
		for (int i = 0; i < FORESTS; i++) {
			serve_wait(p->service, ticket[i], INT64_MAX);
			serve_ticket_free(p->service, ticket[i]);
		}
		if (n->forests > before)
			return round;
	}
	return most + 1;
}

/* What was slow once is measured again, whatever it is expected to take. */
static void test_slow_forests(void)
{
	struct place p;
	if (!tap_ok(open_place(&p, tree, tree_sizes, limits), "a service of trees"))
		return close_place(&p);
	prefer_forests(p.service);
	struct serve_forecast *known = &p.service->engine->forest.forecast;
	*known = (struct serve_forecast){.nodes = 1, .time = 1e12};
	int rounds = count_rounds(&p, 40);
	tap_ok(rounds > 1 && rounds <= 20, "forests that were slow are run again in round %d", rounds);
	tap_ok(known->nodes > 0 && known->time < known->nodes * 1e9, "and their time is measured anew: %.0f ns for a cell",
	       known->time / known->nodes);
	*known = (struct serve_forecast){.nodes = 1, .time = 1};
	tap_ok(count_rounds(&p, 1) == 1 && known->nodes > 1 && known->time <= 2.1 * known->nodes,
	       "a forest that is disturbed counts as one of twice the time: %.3f ns for a cell", known->time / known->nodes);
	close_place(&p);
}

/* Attempts that gather nothing; those in flight join supersteps then, but for one attempt in some. */
static void test_failures(void)
{
	enum { DRIVES = 60 };
	struct place p;
	struct serve_request *r;
	bool ok = open_place(&p, tree, tree_sizes, limits);
	struct serve_engine *e = p.engine;
	const struct serve_entry first = {&p.run.binding, &p.forest[0].minibatch, 5, NULL, 0};
	int drained = 0;
	for (int i = 0; ok && i < SERVE_LOADS; i++)
		e->ways.load[i].better = SERVE_BY_FOREST;
	for (int i = 0; ok && i < 2; i++) {
		ok = serve_prefers_forest(e, 2, 9, true);
		serve_drop_gathered(e);
	}
	ok = ok && serve_admit(e, &first, &r, &p.diags) == SERVE_ADMITTED;
	for (int i = 0; ok && i < DRIVES; i++) {
		serve_prefers_forest(e, 2, 9, true);
		drained += e->way == SERVE_BY_FOREST;
		if (e->way == SERVE_BY_FOREST)
			serve_drop_gathered(e);
	}
	tap_ok(ok && drained > 1 && drained < DRIVES / 8, "after attempts that failed, %d of %d wait for those in flight", drained,
	       DRIVES);
	while (serve_is_busy(e))
		serve_advance(e, NULL, 0, &p.diags);
	end_all(&p);
	int attempts = 0;
	e->forecast = (struct serve_forecast){.nodes = 1, .time = 1e12};
	while (ok && attempts < DRIVES && gather(&p, &p.forest[0].minibatch, 0) == SERVE_FULL) {
		serve_prefers_forest(e, 2, 9, true);
		serve_drop_gathered(e);
		attempts++;
	}
	tap_ok(ok && attempts < DRIVES / 2 && gather(&p, &p.forest[1].minibatch, 0) == SERVE_ADMITTED &&
		   gather(&p, &p.forest[2].minibatch, 0) == SERVE_FULL,
	       "after %d more, two requests are gathered however long they may take, and no third", attempts);
	close_place(&p);
}

/* Both ways are measured until what has ended has its results. */
static void test_intervals(void)
{
	struct place p;
	struct serve_request *r;
	bool ok = open_place(&p, tree, tree_sizes, limits);
	struct serve_engine *e = p.engine;
	for (int way = 0; ok && way < SERVE_WAYS; way++) {
		struct serve_load *l = &e->ways.load[e->ways.now];
		l->better = way;
		e->forecast = (struct serve_forecast){0};
		ok = serve_prefers_forest(e, 2, 2, true) == (way == SERVE_BY_FOREST);
		for (int i = 0; ok && i < 2; i++) {
			const struct serve_entry entry = {&p.run.binding, &p.forest[i].minibatch, 0, NULL, 0};
			ok = (way == SERVE_BY_FOREST ? serve_gather(e, &entry, &r)
						     : serve_admit(e, &entry, &r, &p.diags)) == SERVE_ADMITTED;
		}
		l = &e->ways.load[e->ways.now];
		serve_advance(e, NULL, 0, &p.diags);
		tap_ok(ok && l->rate[way].cells > 0 && l->rate[way].time > (double)(e->step_end - e->drive_begin),
		       "%s are measured until requests have ended: %.0f ns, of which %.0f to the end of the steps",
		       way == SERVE_BY_FOREST ? "forests" : "supersteps", l->rate[way].time,
		       (double)(e->step_end - e->drive_begin));
		while (serve_is_busy(e))
			serve_advance(e, NULL, 0, &p.diags);
		end_all(&p);
	}
	close_place(&p);
}

int main(void)
{
	test_limits();
	test_pairs();
	test_faults();
	test_tickets(tree, tree_sizes);
	test_tickets(sentence, sentence_sizes);
	test_unfit();
	test_draining();
	test_vain_draining();
	test_ended_deadline();
	test_slow_forests();
	test_failures();
	test_intervals();
	return tap_done();
}
