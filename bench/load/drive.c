/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Drives a server with requests, in a closed loop or at times that were drawn before. */
#include "load/load.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static void sleep_until(int64_t due)
{
	struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
	if (due > esp_clock())
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* --- traffic --- */

static void submit(struct server *s, struct arrival *a)
{
	a->submitted = esp_clock();
	s->kind->submit(s->self, a);
}

/* The next request of a closed loop; false when there is none. */
static bool submit_next(struct server *s)
{
	struct traffic *t = s->traffic;
	int64_t now = esp_clock();
	if (now >= t->stop)
		return false;
	size_t i = atomic_fetch_add(&t->next, 1);
	if (i >= t->n) {
		atomic_fetch_sub(&t->next, 1);
		return false;
	}
	t->arrival[i].due = now;
	submit(s, &t->arrival[i]);
	return true;
}

void traffic_end(struct arrival *a, enum outcome outcome)
{
	struct traffic *t = a->server->traffic;
	a->ended = esp_clock();
	a->outcome = outcome;
	if (t->stop && outcome == OUTCOME_DONE)
		submit_next(a->server);
	atomic_fetch_add(&t->ended, 1);
}

int64_t traffic_deadline(const struct arrival *a)
{
	int64_t after = a->server->traffic->deadline;
	return after ? a->due + after : 0;
}

/* No request is submitted any more but by those in flight, each before it ends. */
static void wait_for_end(struct traffic *t)
{
	enum { POLL = 200000 };
	while (atomic_load(&t->ended) < atomic_load(&t->next))
		sleep_until(esp_clock() + POLL);
}

static bool traffic_make(struct traffic *t, struct server *s, size_t n)
{
	*t = (struct traffic){.arrival = calloc(n + 1, sizeof *t->arrival), .n = n};
	for (size_t i = 0; t->arrival && i < n; i++)
		t->arrival[i].server = s;
	s->traffic = t;
	return t->arrival || complain("no memory for %zu requests", n);
}

/* --- figures --- */

/* Times of requests [ns], and nodes that were computed for them. */
struct sample {
	int64_t *time;
	size_t n, due, good;
	uint64_t good_nodes, all_good_nodes;
};

static void add_arrival(struct sample *s, const struct traffic *t, const struct arrival *a, bool counts)
{
	bool done = a->outcome == OUTCOME_DONE;
	int64_t took = a->ended - a->due;
	bool good = done && (!t->deadline || took <= t->deadline);
	s->all_good_nodes += good ? arrival_nodes(a) : 0;
	if (!counts)
		return;
	s->due++;
	s->good += good;
	s->good_nodes += good ? arrival_nodes(a) : 0;
	if (done)
		s->time[s->n++] = took;
}

static double median_lateness(const struct traffic *t, int64_t *time)
{
	size_t n = atomic_load(&t->next);
	for (size_t i = 0; i < n; i++)
		time[i] = t->arrival[i].submitted - t->arrival[i].due;
	qsort(time, n, sizeof *time, compare_times);
	return (double)percentile(time, n, 0.5) * 1e-3;
}

/* Of those that were due from `begin` to `end` and submitted while no other was pending: what they take without any
 * queue. */
static double median_idle(const struct traffic *t, int64_t begin, int64_t end, int64_t *time)
{
	int64_t last = 0; /* when the last one of those before has ended */
	size_t n = 0;
	for (size_t i = 0; i < atomic_load(&t->next); i++) {
		const struct arrival *a = &t->arrival[i];
		bool counts = a->due >= begin && a->due < end && a->outcome == OUTCOME_DONE;
		if (counts && a->submitted >= last)
			time[n++] = a->ended - a->due;
		last = a->ended > last ? a->ended : last;
	}
	qsort(time, n, sizeof *time, compare_times);
	return (double)percentile(time, n, 0.5) * 1e-3;
}

/* Of what was due from `begin` to `end`, while the server computed so many nodes. */
static bool summarize(const struct traffic *t, int64_t begin, int64_t end, uint64_t computed, struct figures *f)
{
	struct sample s = {.time = malloc((t->n + 1) * sizeof *s.time)};
	double seconds = (double)(end - begin) * 1e-9;
	if (!s.time)
		return complain("no memory for latencies");
	for (size_t i = 0; i < atomic_load(&t->next); i++) {
		const struct arrival *a = &t->arrival[i];
		f->n++;
		f->outcome[a->outcome]++;
		add_arrival(&s, t, a, a->due >= begin && a->due < end);
	}
	qsort(s.time, s.n, sizeof *s.time, compare_times);
	f->p50 = (double)percentile(s.time, s.n, 0.5) * 1e-3;
	f->p99 = (double)percentile(s.time, s.n, 0.99) * 1e-3;
	f->p999 = (double)percentile(s.time, s.n, 0.999) * 1e-3;
	f->rate = (double)s.due / seconds;
	f->good = (double)s.good / seconds;
	f->good_nodes = (double)s.good_nodes / seconds;
	f->useful = computed ? (double)s.all_good_nodes / (double)computed : 0;
	f->late = median_lateness(t, s.time);
	f->idle = median_idle(t, begin, end, s.time);
	free(s.time);
	return !f->outcome[OUTCOME_FAILED] || complain("%zu requests failed", f->outcome[OUTCOME_FAILED]);
}

static uint64_t count_nodes(const struct server *s)
{
	return s->kind->count ? s->kind->count(s->self) : 0;
}

/* --- a closed loop --- */

bool measure_closed(struct server *s, long flight, double seconds, struct figures *f)
{
	struct traffic t;
	const double most = 1e6; /* requests a second */
	*f = (struct figures){0};
	bool ok = traffic_make(&t, s, (size_t)(seconds * most) + (size_t)flight);
	int64_t begin = esp_clock(), warm = begin + (int64_t)(seconds * 1e8);
	uint64_t nodes = count_nodes(s);
	t.stop = begin + (int64_t)(seconds * 1e9);
	for (long i = 0; ok && i < flight; i++)
		submit_next(s);
	if (ok) {
		sleep_until(t.stop);
		wait_for_end(&t);
		ok = summarize(&t, warm, t.stop, count_nodes(s) - nodes, f);
	}
	free(t.arrival);
	return ok;
}

/* --- an open loop --- */

/* Between 0 and 1, without 0. */
static double draw(struct random *r)
{
	return (random_bits(r) + 1.0) / 4294967296.0;
}

/* Draws when requests come: `burst` at each event of a Poisson process. */
static void draw_arrivals(struct traffic *t, double rate, long burst, int64_t begin, int64_t end, long seed)
{
	struct random random = {(uint64_t)seed};
	double at = 0;
	size_t n = 0;
	for (; n < t->n; n++) {
		if (n % (size_t)burst == 0)
			at -= log(draw(&random)) * (double)burst / rate;
		t->arrival[n].due = begin + (int64_t)(at * 1e9);
		if (t->arrival[n].due >= end)
			break;
	}
	t->n = n;
}

static int64_t thread_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* Sleeps until a request is due, but at least `grain` behind the last time that it did [ns]. */
static void sleep_until_due(int64_t due, int64_t grain, int64_t *woke)
{
	if (due <= esp_clock())
		return;
	sleep_until(due > *woke + grain ? due : *woke + grain);
	*woke = esp_clock();
}

static bool is_full(struct traffic *t, long flight)
{
	return flight && atomic_load(&t->next) - atomic_load(&t->ended) >= (size_t)flight;
}

/* Returns the processor time that the calling thread took [ns]. */
static int64_t generate(struct server *s, int64_t grain, long flight)
{
	struct traffic *t = s->traffic;
	int64_t began = thread_time(), woke = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct arrival *a = &t->arrival[i];
		sleep_until_due(a->due, grain, &woke);
		bool full = is_full(t, flight);
		atomic_fetch_add(&t->next, 1);
		if (full)
			a->submitted = esp_clock(), traffic_end(a, OUTCOME_REFUSED);
		else
			submit(s, a);
	}
	return thread_time() - began;
}

static struct jitter jitter;

static bool drive(struct server *s, int64_t grain, long flight, int64_t begin, int64_t end, struct figures *f)
{
	uint64_t nodes = count_nodes(s);
	if (!jitter_start(&jitter))
		return false;
	f->generator = (double)generate(s, grain, flight) / (double)(end - begin);
	wait_for_end(s->traffic);
	jitter_stop(&jitter, &f->jitter, &f->jitter_most);
	return summarize(s->traffic, begin + (end - begin) / 10, end, count_nodes(s) - nodes, f);
}

bool measure_open(struct server *s, const struct load_options *o, double rate, double deadline, long flight,
		  struct figures *f)
{
	enum { LEAD = 2000000 /* before the first request [ns] */ };
	struct traffic t;
	*f = (struct figures){0};
	bool ok = traffic_make(&t, s, (size_t)(rate * o->seconds * 1.5) + 1000 + 4 * (size_t)o->burst);
	t.deadline = (int64_t)(deadline * 1e3);
	int64_t begin = esp_clock() + LEAD, end = begin + (int64_t)(o->seconds * 1e9);
	if (ok) {
		draw_arrivals(&t, rate, o->burst, begin, end, o->seed);
		ok = drive(s, (int64_t)(o->grain * 1e3), flight, begin, end, f);
	}
	free(t.arrival);
	return ok;
}
