/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Computes the floor, the undisturbed time and the phases of a minibatch from recorded runs. */
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

/* --- tokens of edges --- */

/* The input whose tokens edges carry; -1 = none. */
static int edge_input(const struct subject *s)
{
	const esp_input *input;
	for (int i = 0; (input = esp_program_input(s->objects.program, i)); i++)
		if (input->on_edges && input->is_token && input->limit)
			return i;
	return -1;
}

/* Sets height[node]: the level of each node of a structure, whose children come first. */
static void find_levels(const struct shape *shape, size_t *height)
{
	for (int node = 0; node < shape->nodes; node++) {
		height[node] = 0;
		for (int e = shape->begin[node]; e < shape->begin[node + 1]; e++)
			if (height[node] <= height[shape->children[e]])
				height[node] = height[shape->children[e]] + 1;
	}
}

/* Counts the different tokens of the edges at each level. */
struct token_count {
	size_t levels, *tokens; /* by level */
	int64_t limit;
	bool *seen; /* by level and token */
};

static void count_tokens(struct token_count *c, const struct shape *shape, const size_t *height)
{
	for (int node = 0; node < shape->nodes; node++)
		for (int e = shape->begin[node]; e < shape->begin[node + 1] && height[node] < c->levels;
		     e++) {
			bool *seen = &c->seen[height[node] * c->limit + shape_edge_word(shape, e) % c->limit];
			c->tokens[height[node]] += !*seen;
			*seen = true;
		}
}

static bool count_structure(struct token_count *c, const struct shape *shape)
{
	size_t *height = calloc(shape->nodes + 1, sizeof *height);
	if (!height)
		return false;
	find_levels(shape, height);
	count_tokens(c, shape, height);
	free(height);
	return true;
}

/* Counts the tokens of the minibatch, unless they come from a file; false when memory is out. */
static bool count_minibatch(const struct subject *s, struct recording *r, size_t *tokens)
{
	const esp_input *input = esp_program_input(s->objects.program, r->edge_input);
	if (!input || s->trees)
		return true;
	struct token_count c = {r->facts.levels, tokens, input->limit, NULL};
	c.seen = calloc((c.levels + 1) * c.limit, sizeof *c.seen);
	bool ok = c.seen;
	for (size_t i = 0; ok && i < r->facts.structures; i++)
		ok = count_structure(&c, &s->shapes->at[(s->first + i) % s->shapes->n]);
	free(c.seen);
	r->tokens = tokens;
	return ok;
}

static int add_floor(const struct subject *s, const struct machine *m, struct recording *r,
		     struct floor *floor)
{
	size_t *tokens = calloc(r->facts.levels + 1, sizeof *tokens);
	r->edge_input = edge_input(s);
	bool ok = tokens && count_minibatch(s, r, tokens);
	if (ok)
		*floor = floor_of_run(m, s->threads, r);
	else
		complain("no memory for the tokens of edges");
	r->tokens = NULL;
	free(tokens);
	return ok ? 0 : EXIT_INPUT;
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
		status = add_floor(s, m, &recording, floor);
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

/* --- phases --- */

int subject_phases(struct subject *s, long runs, struct phases *least)
{
	struct recording recording = {0};
	struct timing t;
	int status = record_runs(s, 1);
	*least = (struct phases){INFINITY, INFINITY, INFINITY};
	for (long i = 0; i < runs && !status; i++) {
		status = run_recorded(s, &recording, &t);
		if (!status) {
			least->linearize = fmin(least->linearize, recording.facts.linearize * 1e-9);
			least->fill = fmin(least->fill, recording.facts.fill * 1e-9);
			least->whole = fmin(least->whole, t.whole);
		}
	}
	recording_free(&recording);
	int off = record_runs(s, 0);
	return status ? status : off;
}
