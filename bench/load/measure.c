/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures one server: its capacity, latencies at shares of it, and overload. */
#include "load/load.h"

#include <stdlib.h>

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* --- capacity --- */

enum { MOST_ROUNDS = 100 };

static long flight_of(const struct server *s, const struct load_options *o)
{
	return s->kind->streams ? o->streams : o->flight;
}

bool measure_capacity(struct server *s, const struct load_options *o)
{
	double rate[MOST_ROUNDS];
	struct figures f = {0};
	long flight = flight_of(s, o), rounds = o->rounds < MOST_ROUNDS ? o->rounds : MOST_ROUNDS;
	bool ok = measure_closed(s, 1, o->seconds / 2, &f);
	s->unloaded = f.p50;
	s->unloaded_p99 = f.p99;
	report_record(s, "unloaded", 0, &f);
	for (int i = 0; ok && i < rounds; i++) {
		ok = measure_closed(s, flight, o->seconds / 2, &f);
		rate[i] = f.rate;
		report_record(s, "closed", 1, &f);
	}
	if (!ok)
		return false;
	qsort(rate, (size_t)rounds, sizeof *rate, compare_numbers);
	s->capacity = rate[rounds / 2];
	printf("%-10s %10.0f %10.0f %8ld %10.0f %10.0f\n", s->kind->name, s->capacity, rate[rounds - 1], flight,
	       s->unloaded, s->unloaded_p99);
	fflush(stdout);
	return s->capacity > 0 || complain("%s answered nothing", s->kind->name);
}

/* --- latencies --- */

static bool measure_at(struct server *s, const struct load_options *o, const char *what, double rate,
		       struct figures *f)
{
	char name[32];
	if (!measure_open(s, o, rate, 0, 0, f))
		return false;
	report_record(s, what, rate / s->capacity, f);
	snprintf(name, sizeof name, "%.0f %%", 100 * rate / s->capacity);
	report_row(name, f);
	return f->n == f->outcome[OUTCOME_DONE] + f->outcome[OUTCOME_REFUSED] ||
	       complain("%s lost requests", s->kind->name);
}

/* The largest rate found by bisection whose 99th percentile is at most `limit` [us]. */
static bool find_limit(struct server *s, const struct load_options *o, double limit)
{
	enum { STEPS = 6 };
	double low = 0, high = 1.2 * s->capacity;
	struct figures f, best = {0};
	for (int i = 0; i < STEPS; i++) {
		double rate = (low + high) / 2;
		if (!measure_open(s, o, rate, 0, 0, &f))
			return false;
		if (f.p99 <= limit && !f.outcome[OUTCOME_REFUSED])
			low = rate, best = f;
		else
			high = rate;
	}
	report_record(s, "limit", low / s->capacity, &best);
	printf("99th percentile within %.0f us: %.0f requests/s, %.0f %% of the capacity\n", limit, low,
	       100 * low / s->capacity);
	return true;
}

bool measure_shares(struct server *s, const struct load_options *o, double limit)
{
	static const double shares[] = {0.1, 0.3, 0.5, 0.7, 0.9};
	struct figures f;
	report_head(s->kind->name);
	if (o->rate)
		return measure_at(s, o, "rate", o->rate, &f);
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
		if (!measure_at(s, o, "open", shares[i] * s->capacity, &f))
			return false;
	return find_limit(s, o, limit);
}

/* --- overload --- */

/* What was answered in time, as shares of what the closed loop answers; by requests and by nodes. */
struct share {
	double requests[MOST_ROUNDS], nodes[MOST_ROUNDS];
};

static void note_share(struct share *s, long round, const struct figures *f, const struct figures *of)
{
	s->requests[round] = f->good / of->good;
	s->nodes[round] = f->good_nodes / of->good_nodes;
}

static void print_share(struct share *s, long rounds, const char *of)
{
	qsort(s->requests, (size_t)rounds, sizeof(double), compare_numbers);
	qsort(s->nodes, (size_t)rounds, sizeof(double), compare_numbers);
	printf("           in time: %.0f %% (least %.0f) of %s, %.0f %% (least %.0f) by nodes\n",
	       100 * s->requests[rounds / 2], 100 * s->requests[0], of, 100 * s->nodes[rounds / 2],
	       100 * s->nodes[0]);
}

/* A closed loop; then, beside the generator at the same rate, an open one in which as many are in flight at most; and
 * one in which all requests are submitted and have a deadline. */
static bool measure_round(struct server *s, const struct load_options *o, double deadline, struct figures f[3])
{
	struct load_options half = *o;
	half.seconds = o->seconds / 2;
	*f = (struct figures){0};
	if (!measure_closed(s, flight_of(s, o), half.seconds, &f[0]))
		return false;
	double rate = o->overload * f[0].rate;
	if (!measure_open(s, &half, rate, 0, flight_of(s, o), &f[1]) || !measure_open(s, o, rate, deadline, 0, &f[2]))
		return false;
	static const char *const what[] = {"closed", "beside", "overload"};
	for (int i = 0; i < 3; i++) {
		report_record(s, what[i], i ? o->overload : 1, &f[i]);
		report_row(i == 2 ? s->kind->name : what[i], &f[i]);
	}
	return f[2].n == f[2].outcome[OUTCOME_DONE] + f[2].outcome[OUTCOME_REFUSED] + f[2].outcome[OUTCOME_EXPIRED] ||
	       complain("%s lost requests", s->kind->name);
}

bool measure_overload(struct server *s, const struct load_options *o, double unloaded)
{
	enum { DEADLINE = 20 };
	static struct share of_closed, of_beside;
	struct figures f[3];
	double useful = 0, deadline = o->deadline ? o->deadline : DEADLINE * unloaded;
	long rounds = o->rounds < MOST_ROUNDS ? o->rounds : MOST_ROUNDS;
	for (long i = 0; i < rounds; i++) {
		if (!measure_round(s, o, deadline, f))
			return false;
		note_share(&of_closed, i, &f[2], &f[0]);
		note_share(&of_beside, i, &f[2], &f[1]);
		useful += f[2].useful / (double)rounds;
	}
	print_share(&of_closed, rounds, "the closed loop");
	print_share(&of_beside, rounds, "what the server answers beside the generator");
	if (useful > 0)
		printf("           %.1f %% of what was computed was for these\n", 100 * useful);
	return true;
}
