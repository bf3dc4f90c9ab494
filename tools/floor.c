/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include <math.h>

double floor_without_barrier(const struct machine *m, int threads, double operations, double bytes,
			     double set)
{
	double computing = operations / (m->peak * threads);
	double reading = bytes / threads / machine_bandwidth(m, set / threads);
	return fmax(computing, reading);
}

double floor_of_rows(const struct machine *m, int threads, double operations, double bytes, double set)
{
	double alone = floor_without_barrier(m, 1, operations, bytes, set);
	return fmin(alone, floor_without_barrier(m, threads, operations, bytes, set) + m->barrier);
}

/* Whether `r` has the next steps over the same rows, or the same steps over the next row, where each row
 * has a range of its own. */
static bool continues_span(const esp_range *before, const esp_range *r)
{
	bool further =
	    r->step == before->step + before->steps && r->row == before->row && r->rows == before->rows;
	bool next = r->step == before->step && r->level < 0 && r->row == before->row + before->rows;
	return r->level == before->level && (further || next);
}

/* Bytes that the edges to children of a level select by their tokens: at least those of one token. */
static double edge_bytes(const struct recording *r, const esp_range *range, const esp_step *s)
{
	bool counted = r->tokens && r->edge_input == s->edge_input && (size_t)range->level < r->facts.levels;
	if (range->level < 1 || s->edge_bytes == 0) /* leaves have no children */
		return 0;
	return (double)s->edge_bytes * (counted ? r->tokens[range->level] : 1);
}

static void add_range(struct floor_span *span, const struct recording *r, const esp_range *range)
{
	for (size_t i = 0; i < range->steps; i++) {
		const esp_step *s = &r->step[range->step + i];
		span->operations += (double)s->operations * range->rows;
		span->bytes += (double)s->weight_bytes;
		if (range->step + i < span->step + span->steps)
			continue;
		span->set += (double)s->weight_bytes + edge_bytes(r, range, s);
		span->bytes += edge_bytes(r, range, s);
	}
	if (range->step == span->step)
		span->rows += range->rows;
	if (range->step + range->steps > span->step + span->steps)
		span->steps = range->step + range->steps - span->step;
	span->ranges++;
}

struct floor_span floor_span_at(const struct recording *r, size_t i)
{
	struct floor_span span = {.range = i};
	if (i >= r->facts.ranges)
		return span;
	span.step = r->range[i].step;
	span.level = r->range[i].level;
	do
		add_range(&span, r, &r->range[i]);
	while (++i < r->facts.ranges && continues_span(&r->range[i - 1], &r->range[i]));
	return span;
}

double floor_of_span(const struct machine *m, int threads, const struct floor_span *span)
{
	return floor_of_rows(m, threads, span->operations, span->bytes, span->set);
}

struct floor floor_of_run(const struct machine *m, int threads, const struct recording *r)
{
	struct floor sum = {0};
	for (struct floor_span span = floor_span_at(r, 0); span.ranges;
	     span = floor_span_at(r, span.range + span.ranges)) {
		sum.seconds += floor_of_span(m, threads, &span);
		sum.operations += span.operations;
		sum.bytes += span.bytes;
	}
	return sum;
}
