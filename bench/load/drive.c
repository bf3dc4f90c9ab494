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

/* Of what was due from `begin` to `end`. */
static bool summarize(const struct traffic *t, int64_t begin, int64_t end, struct figures *f)
{
	size_t n = 0, good = 0, due = 0;
	int64_t *latency = malloc((t->n + 1) * sizeof *latency);
	if (!latency)
		return complain("no memory for latencies");
	for (size_t i = 0; i < atomic_load(&t->next); i++) {
		const struct arrival *a = &t->arrival[i];
		f->n++;
		f->outcome[a->outcome]++;
		if (a->due < begin || a->due >= end)
			continue;
		due++;
		if (a->outcome != OUTCOME_DONE)
			continue;
		latency[n] = a->ended - a->due;
		good += !t->deadline || latency[n] <= t->deadline;
		n++;
	}
	qsort(latency, n, sizeof *latency, compare_times);
	f->p50 = (double)percentile(latency, n, 0.5) * 1e-3;
	f->p99 = (double)percentile(latency, n, 0.99) * 1e-3;
	f->p999 = (double)percentile(latency, n, 0.999) * 1e-3;
	f->rate = (double)due / ((double)(end - begin) * 1e-9);
	f->good = (double)good / ((double)(end - begin) * 1e-9);
	free(latency);
	return !f->outcome[OUTCOME_FAILED] || complain("%zu requests failed", f->outcome[OUTCOME_FAILED]);
}

/* --- a closed loop --- */

bool measure_closed(struct server *s, long flight, double seconds, struct figures *f)
{
	struct traffic t;
	const double most = 1e6; /* requests a second */
	*f = (struct figures){0};
	bool ok = traffic_make(&t, s, (size_t)(seconds * most) + (size_t)flight);
	int64_t begin = esp_clock(), warm = begin + (int64_t)(seconds * 1e8);
	t.stop = begin + (int64_t)(seconds * 1e9);
	for (long i = 0; ok && i < flight; i++)
		submit_next(s);
	if (ok) {
		sleep_until(t.stop);
		wait_for_end(&t);
		ok = summarize(&t, warm, t.stop, f);
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

/* Returns the processor time that the calling thread took [ns]. */
static int64_t generate(struct server *s)
{
	struct traffic *t = s->traffic;
	int64_t began = thread_time();
	for (size_t i = 0; i < t->n; i++) {
		sleep_until(t->arrival[i].due);
		atomic_fetch_add(&t->next, 1);
		submit(s, &t->arrival[i]);
	}
	return thread_time() - began;
}

static struct jitter jitter;

static bool drive(struct server *s, int64_t begin, int64_t end, struct figures *f)
{
	if (!jitter_start(&jitter))
		return false;
	f->generator = (double)generate(s) / (double)(end - begin);
	wait_for_end(s->traffic);
	jitter_stop(&jitter, &f->jitter, &f->jitter_most);
	return summarize(s->traffic, begin + (end - begin) / 10, end, f);
}

bool measure_open(struct server *s, const struct load_options *o, double rate, double deadline,
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
		ok = drive(s, begin, end, f);
	}
	free(t.arrival);
	return ok;
}
