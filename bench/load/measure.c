/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures servers: their capacities, latencies at shares of these, and overload. */
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

/* One of several rounds: the best counts, as other guests of a machine only slow servers. */
static bool measure_round_of(struct server *s, const struct load_options *o)
{
	struct figures one, all;
	if (!measure_closed(s, 1, o->seconds / 2, &one) || !measure_closed(s, flight_of(s, o), o->seconds / 2, &all))
		return false;
	report_record(s, "unloaded", 0, &one);
	report_record(s, "closed", 1, &all);
	if (!s->unloaded || one.p50 < s->unloaded) {
		s->unloaded = one.p50;
		s->unloaded_p99 = one.p99;
	}
	s->capacity = all.rate > s->capacity ? all.rate : s->capacity;
	return s->capacity > 0 || complain("%s answered nothing", s->kind->name);
}

bool measure_capacities(struct server *s, int n, const struct load_options *o)
{
	for (long round = 0; round < o->rounds; round++)
		for (int i = 0; i < n; i++)
			if (!measure_round_of(&s[i], o))
				return false;
	printf("%-10s %10s %8s %10s %10s\n", "", "capacity/s", "flight", "alone us", "p99");
	for (int i = 0; i < n; i++)
		printf("%-10s %10.0f %8ld %10.0f %10.0f\n", s[i].kind->name, s[i].capacity, flight_of(&s[i], o),
		       s[i].unloaded, s[i].unloaded_p99);
	return true;
}

/* --- latencies --- */

static bool measure_at(struct server *s, const struct load_options *o, const char *what, double rate)
{
	struct figures f;
	if (!measure_open(s, o, rate, 0, 0, &f))
		return false;
	report_record(s, what, rate / s->capacity, &f);
	report_row(s->kind->name, &f);
	return f.n == f.outcome[OUTCOME_DONE] + f.outcome[OUTCOME_REFUSED] ||
	       complain("%s lost requests", s->kind->name);
}

/* The largest rate found by bisection whose 99th percentile is at most `limit` [us]. */
bool measure_limit(struct server *s, const struct load_options *o, double limit)
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
	printf("%-10s 99th percentile within %.0f us: %.0f requests/s, %.0f %% of the capacity\n", s->kind->name, limit, low,
	       100 * low / s->capacity);
	return true;
}

/* All servers at one share, then at the next, so that a slow time of the machine is none of one server's. */
bool measure_shares(struct server *s, int n, const struct load_options *o)
{
	static const double shares[] = {0.1, 0.3, 0.5, 0.7, 0.9};
	for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
		char title[32];
		snprintf(title, sizeof title, "%.0f %% of the capacity", 100 * shares[k]);
		report_head(title);
		for (int i = 0; i < n; i++)
			if (!measure_at(&s[i], o, "open", shares[k] * s[i].capacity))
				return false;
	}
	return true;
}

bool measure_rate(struct server *s, int n, const struct load_options *o)
{
	report_head("at the given rate");
	for (int i = 0; i < n; i++)
		if (!measure_at(&s[i], o, "rate", o->rate))
			return false;
	return true;
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
