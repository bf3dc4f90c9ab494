/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include <math.h>

double floor_without_meeting(const struct machine *m, int threads, double operations, double bytes,
			     double set)
{
	double computing = operations / (m->peak * threads);
	double reading = bytes / threads / machine_bandwidth(m, set / threads);
	return fmax(computing, reading);
}

double floor_of_rows(const struct machine *m, int threads, double operations, double bytes, double set)
{
	double alone = floor_without_meeting(m, 1, operations, bytes, set);
	return fmin(alone, floor_without_meeting(m, threads, operations, bytes, set) + m->barrier);
}

/* The next steps over the same rows; or the same steps over the next row, where each has a range of its own.
 */
static bool continues(const esp_range *before, const esp_range *r)
{
	bool further =
	    r->step == before->step + before->steps && r->row == before->row && r->rows == before->rows;
	bool next = r->step == before->step && r->level < 0 && r->row == before->row + before->rows;
	return r->level == before->level && (further || next);
}

static void add(struct floor_part *part, const struct recording *r, const esp_range *range)
{
	for (size_t i = 0; i < range->steps; i++) {
		const esp_step *s = &r->step[range->step + i];
		part->operations += (double)s->operations * range->rows;
		part->bytes += (double)s->weight_bytes;
		if (range->step + i >= part->step + part->steps)
			part->set += (double)s->weight_bytes;
	}
	if (range->step == part->step)
		part->rows += range->rows;
	if (range->step + range->steps > part->step + part->steps)
		part->steps = range->step + range->steps - part->step;
	part->ranges++;
}

struct floor_part floor_part_at(const struct recording *r, size_t i)
{
	struct floor_part part = {.range = i};
	if (i >= r->facts.ranges)
		return part;
	part.step = r->range[i].step;
	part.level = r->range[i].level;
	do
		add(&part, r, &r->range[i]);
	while (++i < r->facts.ranges && continues(&r->range[i - 1], &r->range[i]));
	return part;
}

double floor_of_part(const struct machine *m, int threads, const struct floor_part *part)
{
	return floor_of_rows(m, threads, part->operations, part->bytes, part->set);
}

struct floor floor_of_run(const struct machine *m, int threads, const struct recording *r)
{
	struct floor sum = {0};
	for (struct floor_part part = floor_part_at(r, 0); part.ranges;
	     part = floor_part_at(r, part.range + part.ranges)) {
		sum.seconds += floor_of_part(m, threads, &part);
		sum.operations += part.operations;
		sum.bytes += part.bytes;
	}
	return sum;
}
