/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Forecasts by a clock of the test's own: requests that come three times as fast as they can be computed, into
 * supersteps that are disturbed now and then, and what is answered before its deadline; and a backlog. */
#include "serve/forecast.h"
#include "tests/tap.h"

#include <string.h>

/* --- a service in virtual time --- */

enum { MOST = 4096, WIDTH = 4, STALL_EACH = 61, STALL = 2000000 };

struct request {
	int64_t joined, deadline;
	int levels, left;
	double expected;
};

struct service {
	struct serve_forecast forecast;
	struct request flight[MOST];
	int n;
	int64_t now;
	unsigned random, steps;
	int64_t good, bad; /* levels of requests that were answered in time, and not */
};

static unsigned draw(struct service *s, unsigned n)
{
	s->random = s->random * 1664525u + 1013904223u;
	return (s->random >> 16) % n;
}

/* What does not end until its deadline is dropped then. */
static void run_step(struct service *s)
{
	int64_t took = 20000 + 1000 * (int64_t)WIDTH * s->n + (++s->steps % STALL_EACH ? 0 : STALL);
	int kept = 0;
	s->now += took;
	serve_note_step(&s->forecast, WIDTH * s->n, took);
	for (int i = 0; i < s->n; i++) {
		struct request r = s->flight[i];
		bool late = r.deadline && r.deadline < s->now;
		if (--r.left == 0 && !late)
			serve_note_time(&s->forecast, r.expected, s->now - r.joined);
		s->good += r.left || late ? 0 : r.levels;
		s->bad += late ? r.levels - r.left : 0;
		if (r.left && !late)
			s->flight[kept++] = r;
	}
	s->n = kept;
}

static void join(struct service *s, int levels, int64_t deadline, double expected)
{
	if (s->n < MOST)
		s->flight[s->n++] = (struct request){s->now, deadline, levels, levels, expected};
}

/* The levels a second of a closed loop of 32. */
static double measure_capacity(struct service *s, int64_t until)
{
	while (s->now < until) {
		while (s->n < 32)
			join(s, 1 + (int)draw(s, 20), 0, 0);
		run_step(s);
	}
	return (double)s->good / (double)s->now;
}

static void submit(struct service *s, bool forecasts, int64_t deadline)
{
	int levels = 1 + (int)draw(s, 20);
	double expected = s->n ? serve_expect(&s->forecast, levels, WIDTH * (s->n + 1)) : 0;
	if (!forecasts || !expected || !serve_is_late(&s->forecast, expected, deadline - s->now))
		join(s, levels, deadline, expected);
}

/* Requests come evenly; returns the levels of those in time, as a share of the capacity. */
static double overload(struct service *s, double capacity, bool forecasts, int64_t time, int64_t until)
{
	double each = 10.5 / (3 * capacity), next = 0;
	while (s->now < until) {
		for (; (int64_t)next <= s->now; next += each)
			submit(s, forecasts, (int64_t)next + time);
		if (s->n)
			run_step(s);
		else
			s->now = (int64_t)next;
	}
	return (double)s->good / (double)s->now / capacity;
}

static struct service service;

static struct service *restart(void)
{
	memset(&service, 0, sizeof service);
	return &service;
}

static void test_overload(void)
{
	const int64_t second = 1000000000;
	double capacity = measure_capacity(restart(), second);
	for (int64_t deadline = 10000000; deadline <= 40000000; deadline *= 2) {
		double with = overload(restart(), capacity, true, deadline, second);
		int64_t bad = service.bad, good = service.good;
		double without = overload(restart(), capacity, false, deadline, second);
		tap_ok(with > 0.9, "deadline of %d ms: %.0f %% of the capacity", (int)(deadline / 1000000), 100 * with);
		double vain = (double)bad / (double)(good + bad);
		tap_ok(vain < 0.1, "of what was computed %.1f %% was in vain", 100 * vain);
		tap_ok(without < 0.5, "without forecasts %.0f %%", 100 * without);
	}
}

/* A request of 20 levels takes 0.5 ms alone, and a stall 2 ms. */
static void test_short_deadline(void)
{
	const int64_t second = 1000000000, deadline = 2500000;
	double capacity = measure_capacity(restart(), second);
	double with = overload(restart(), capacity, true, deadline, second);
	tap_ok(with > 0.7, "deadline of %.1f ms: %.0f %% of the capacity", (double)deadline / 1e6, 100 * with);
}

/* --- a backlog --- */

/* Nodes beyond what the caches hold take half as long again. */
enum { CACHED = 512, BACKLOG = 1500, LEVELS = 10 };

static int64_t time_of_nodes(int64_t nodes)
{
	return 20000 + 1000 * nodes + (nodes > CACHED ? 500 * (nodes - CACHED) : 0);
}

/* Requests come at 0.85 of the rate at which supersteps of CACHED nodes compute them, behind a backlog; returns how
 * many are pending at the end.  Without a limit all that are pending join. */
static int64_t drain(bool limited)
{
	struct service *s = restart();
	double each = (double)time_of_nodes(CACHED) * LEVELS * WIDTH / CACHED / 0.85, next = 0;
	int64_t waiting = BACKLOG, second = 1000000000;
	while (s->now < 2 * second) {
		for (; (int64_t)next <= s->now; next += each)
			waiting++;
		for (; waiting && s->n < MOST && !(limited && serve_is_wide(&s->forecast, WIDTH * s->n)); waiting--)
			join(s, LEVELS, 0, 0);
		int64_t took = time_of_nodes((int64_t)WIDTH * s->n);
		serve_note_step(&s->forecast, (int64_t)WIDTH * s->n, took);
		s->now += s->n ? took : 1000;
		int kept = 0;
		for (int i = 0; i < s->n; i++)
			if (--s->flight[i].left)
				s->flight[kept++] = s->flight[i];
		s->n = kept;
	}
	return waiting + s->n;
}

static void test_backlog(void)
{
	int64_t with = drain(true), without = drain(false);
	tap_ok(with < 100, "a backlog of %d is computed: %d are pending", BACKLOG, (int)with);
	tap_ok(without > BACKLOG, "not if all of it joins: %d are pending", (int)without);
}

/* --- forecasts --- */

static void test_width(void)
{
	struct serve_forecast f = {0}, slow = {0};
	tap_ok(!serve_is_wide(&f, 1000000), "nothing is known to be wide at first");
	for (int i = 0; i < 100; i++) {
		serve_note_step(&f, 100, 100000);
		serve_note_step(&slow, 10, 1000000);
	}
	tap_ok(!serve_is_wide(&f, 249) && serve_is_wide(&f, 251), "supersteps of a quarter of a millisecond are");
	tap_ok(!serve_is_wide(&slow, 63) && serve_is_wide(&slow, 64), "but not those of few nodes");
}

static void test_rate(void)
{
	struct serve_forecast f = {0};
	tap_ok(serve_expect(&f, 3, 10) == 0, "nothing is known at first");
	for (int i = 0; i < 100; i++)
		serve_note_step(&f, 20, 40000);
	double usual = serve_expect(&f, 3, 10);
	tap_ok(usual > 59999 && usual < 60001, "nodes take as long as they took");
	serve_note_step(&f, 20, 400000);
	double disturbed = serve_expect(&f, 3, 10);
	tap_ok(disturbed > usual && disturbed < 1.5 * usual, "one superstep that takes ten times as long changes little");
	for (int i = 0; i < 500; i++)
		serve_note_step(&f, 20, 80000);
	tap_ok(serve_expect(&f, 3, 10) > 1.99 * usual, "all that do change it");
}

static void test_margin(void)
{
	struct serve_forecast even = {0}, uneven = {0};
	tap_ok(!serve_is_late(&even, 100, 300) && serve_is_late(&even, 100, 110), "some time is kept back at first");
	for (int i = 0; i < 1000; i++) {
		serve_note_time(&even, 100, 90);
		serve_note_time(&uneven, 100, i % 2 ? 30 : 150);
	}
	tap_ok(!serve_is_late(&even, 100, 95) && serve_is_late(&even, 100, 85), "little where forecasts are right");
	tap_ok(serve_is_late(&uneven, 100, 150) && !serve_is_late(&uneven, 100, 300), "more where they are not");
	struct serve_forecast before = even;
	serve_note_time(&even, 0, 12345);
	tap_ok(!memcmp(&before, &even, sizeof even), "what was not expected teaches nothing");
}

static void test_levels(void)
{
	static const int32_t chain_begin[] = {0, 0, 1, 2}, chain[] = {0, 1}, tree_begin[] = {0, 0, 0, 2}, tree[] = {0, 1},
			     behind_begin[] = {0, 2, 2, 2}, behind[] = {1, 2}, falling_begin[] = {0, 9, 2, 2};
	int32_t room[3];
	tap_is(serve_count_levels(&(struct lin_forest){.nodes = 3, .child_begin = chain_begin, .children = chain}, room), 3,
	       "levels of a chain");
	tap_is(serve_count_levels(&(struct lin_forest){.nodes = 3, .child_begin = tree_begin, .children = tree}, room), 2,
	       "of a tree");
	tap_is(serve_count_levels(&(struct lin_forest){.nodes = 3, .child_begin = behind_begin, .children = behind}, room), 0,
	       "unknown where children come behind");
	tap_is(serve_count_levels(&(struct lin_forest){.nodes = 3, .child_begin = falling_begin, .children = behind}, room), 0,
	       "and where there are no children");
}

int main(void)
{
	test_rate();
	test_margin();
	test_width();
	test_levels();
	test_overload();
	test_short_deadline();
	test_backlog();
	return tap_done();
}
