/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "serve/forecast.h"

#include <math.h>

/* A superstep that was disturbed takes several times as long as others.  Sums over the last ones, rather than the
 * mean of their quotients, change little then, so that not everything looks hopeless for a while. */
enum { STEPS = 32, ENDS = 32 };

/* Mean deviations that are kept back.  Of a normal distribution two leave one request in twenty too late.  RFC 6298
 * keeps four, as sending again what was only late costs more than to wait; here what is kept back keeps others from
 * joining, so that supersteps are narrow and compute less, which costs more than a request in vain. */
enum { DEVIATIONS = 2 };

/* A superstep costs some microseconds besides its nodes, and reads weights once for some rows: from so many nodes on,
 * and from so many nanoseconds on, these are small parts of it. */
enum { WIDE_NODES = 64, WIDE_TIME = 250000 };

/* Before a request has ended. */
static const double first_ratio = 1, first_deviation = 0.25;

void serve_note_step(struct serve_forecast *f, int64_t nodes, int64_t time)
{
	const double keep = 1 - 1.0 / STEPS;
	f->nodes = keep * f->nodes + (double)nodes;
	f->time = keep * f->time + (double)time;
}

static double ratio_of(const struct serve_forecast *f)
{
	return f->ratio ? f->ratio : first_ratio;
}

static double deviation_of(const struct serve_forecast *f)
{
	return f->ratio ? f->deviation : first_deviation;
}

void serve_note_time(struct serve_forecast *f, double expected, int64_t took)
{
	if (!expected)
		return;
	double off = (double)took / expected - ratio_of(f), deviation = deviation_of(f);
	f->deviation = deviation + (fabs(off) - deviation) / ENDS;
	f->ratio = ratio_of(f) + off / ENDS;
}

double serve_expect(const struct serve_forecast *f, int64_t levels, int64_t width)
{
	return f->nodes ? f->time / f->nodes * (double)levels * (double)width : 0;
}

bool serve_is_wide(const struct serve_forecast *f, int64_t width)
{
	return f->nodes && width >= WIDE_NODES && f->time * (double)width >= f->nodes * WIDE_TIME;
}

bool serve_is_late(const struct serve_forecast *f, double expected, int64_t left)
{
	return expected * (ratio_of(f) + DEVIATIONS * deviation_of(f)) > (double)left;
}

int64_t serve_count_levels(const struct lin_forest *f, int32_t *room)
{
	int32_t levels = 0;
	for (int32_t id = 0; id < f->nodes; id++)
		if (f->child_begin[id] < 0 || f->child_begin[id] > f->child_begin[id + 1])
			return 0;
	for (int32_t id = 0; id < f->nodes; id++) {
		int32_t level = 1;
		for (int32_t i = f->child_begin[id]; i < f->child_begin[id + 1]; i++) {
			int32_t child = f->children[i];
			if (child < 0 || child >= id)
				return 0;
			level = room[child] < level ? level : room[child] + 1;
		}
		room[id] = level;
		levels = level > levels ? level : levels;
	}
	return levels;
}
