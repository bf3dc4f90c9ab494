/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Computes the floor and the undisturbed time of a minibatch from recorded runs. */
#include "bench/bench.h"
#include "recording.h"

#include <math.h>
#include <stdlib.h>

static int record_runs(struct subject *s, int on)
{
	esp_error *error;
	esp_status status = esp_session_record(s->session, on, &error);
	return status ? report_failure(status, error) : 0;
}

/* Runs the minibatch and copies the recorded run. */
static int run_recorded(struct subject *s, struct recording *r, struct timing *t)
{
	int status = subject_run(s, t);
	const esp_profile *profile = status ? NULL : esp_session_profile(s->session);
	if (status || (profile && recording_take(r, profile)))
		return status;
	complain("no memory for the record of a run");
	return EXIT_INPUT;
}

int subject_floor(struct subject *s, const struct machine *m, struct floor *floor)
{
	struct recording recording = {0};
	struct timing t;
	int status = record_runs(s, 1);
	if (!status)
		status = run_recorded(s, &recording, &t);
	*floor = (struct floor){0};
	if (!status)
		*floor = floor_of_run(m, s->threads, &recording);
	recording_free(&recording);
	int off = record_runs(s, 0);
	return status ? status : off;
}

/* --- undisturbed --- */

static void put_least(struct stretches *x, size_t i, double seconds)
{
	x->least[i] = i < x->n ? fmin(x->least[i], seconds) : seconds;
	x->n = i < x->n ? x->n : i + 1;
}

/* Floor spans are the same in all runs, however their ranges were divided among threads. */
static bool add_run(struct stretches *x, const struct recording *r, double whole)
{
	size_t spans = 0;
	double before = 0;
	double *more = realloc(x->least, (r->facts.ranges + 1) * sizeof *more);
	if (!more)
		return complain("no memory for the stretches of a run");
	x->least = more;
	for (struct floor_span span = floor_span_at(r, 0); span.ranges;
	     span = floor_span_at(r, span.range + span.ranges)) {
		double stop = r->range[span.range + span.ranges - 1].stop * 1e-9;
		put_least(x, spans++, stop - before);
		before = stop;
	}
	put_least(x, spans, whole - before);
	x->whole = x->whole > 0 ? fmin(x->whole, whole) : whole;
	return true;
}

int subject_stretches(struct subject *s, long runs, struct stretches *x)
{
	struct recording recording = {0};
	struct timing t;
	int status = record_runs(s, 1);
	for (long i = 0; i < runs && !status; i++) {
		status = run_recorded(s, &recording, &t);
		if (!status && !add_run(x, &recording, t.whole))
			status = EXIT_INPUT;
	}
	recording_free(&recording);
	int off = record_runs(s, 0);
	return status ? status : off;
}

double stretches_sum(const struct stretches *x)
{
	double sum = 0;
	for (size_t i = 0; i < x->n; i++)
		sum += x->least[i];
	return sum;
}

void stretches_free(struct stretches *x)
{
	free(x->least);
	*x = (struct stretches){0};
}

int subject_undisturbed(struct subject *s, long runs, double *seconds)
{
	struct stretches x = {0};
	int status = subject_stretches(s, runs, &x);
	*seconds = stretches_sum(&x);
	stretches_free(&x);
	return status;
}
