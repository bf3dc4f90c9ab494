/* The choice is a comparison of times that are estimated: of a part, the longer of computing and of reading
 * the weights; of a job, that of its first part, which has the most, and of the meeting of its parts.
 *
 *   alone     T(all rows, all columns)
 *   rows      T(share of the rows, all columns)     each part reads all weights
 *   columns   T(all rows, share of the columns)     each part reads its own weights: the fewer, the more of
 *                                                   them stay in its second-level cache
 *
 * Who shares reads what others wrote out of their caches.  How long a row is nobody says; a step that reads
 * as many weights as a matrix has is taken to read and write rows as long as its side. */
#include "runtime/split.h"

#include "runtime/internal.h"

#include <math.h>

/* A job is worse than its meeting: parts differ in what they have to do, and nobody computes meanwhile. */
static const double meetings_a_job = 2;

/* What a processor reads, by the bytes that it reads again and again, while the others read as well: `make
 * bench` on Zen 3 (tools/machine.c).  Processors differ, but less so in where it pays to cut. */
static const struct {
	double bytes, per_nanosecond;
} bandwidth[] = {{32 << 10, 180}, {512 << 10, 100}, {8 << 20, 60}, {1e300, 20}};

/* Sweeps that alternate find so many bytes of the last one in the second-level cache, at that bandwidth. */
static const double kept_bytes = 384 << 10, kept_per_nanosecond = 100;

static double per_nanosecond(double bytes)
{
	int i = 0;
	while (bytes > bandwidth[i].bytes)
		i++;
	return bandwidth[i].per_nanosecond;
}

/* Nanoseconds to read some of the bytes that are read again and again. */
static double reading(double bytes, double again)
{
	double near = again > kept_bytes ? kept_bytes / again : 1, far = per_nanosecond(again);
	if (far > kept_per_nanosecond)
		return bytes / far;
	return bytes * (near / kept_per_nanosecond + (1 - near) / far);
}

/* Nanoseconds of a part's call. */
static double call(const struct image_step *s, int64_t rows, int64_t blocks, double again)
{
	double computing = (double)s->operations * rows * blocks / s->blocks / RT_OPERATIONS_PER_NANOSECOND;
	double read = reading((double)s->block_bytes * blocks, again);
	return computing > read ? computing : read;
}

/* Rows of others come line by line, some at a time, each as slowly as parts meet. */
static double sharing(const struct image_step *s, int64_t rows, double meeting)
{
	enum { LINE = 64, AT_ONCE = 16 };
	double bytes = sqrt((double)s->block_bytes * s->blocks * sizeof(float));
	return rows * bytes / LINE / AT_ONCE * meeting;
}

struct question {
	const struct rt_group *group;
	int64_t rows;
	int parts;
	double meeting;
};

static double cost(const struct question *q, int which, enum rt_way way)
{
	const struct rt_group *g = q->group;
	const struct image_step *s = &g->step[which];
	int64_t blocks = rt_share(s->blocks, 1, 1, q->parts);
	int64_t rows = rt_share(q->rows, rt_greatest_tile(g), 1, q->parts);
	switch (way) {
	case RT_ROWS:
		return call(s, rows, s->blocks, g->weights) + sharing(s, q->rows, q->meeting);
	case RT_COLUMNS:
		return call(s, q->rows, blocks, g->weights * blocks / s->blocks) +
		       sharing(s, q->rows, q->meeting);
	default:
		return call(s, q->rows, s->blocks, g->weights);
	}
}

/* The best way for one step, and what it costs. */
static enum rt_way choose(const struct question *q, int which, double *least)
{
	enum rt_way best = RT_ALONE;
	*least = cost(q, which, RT_ALONE);
	for (enum rt_way way = RT_ROWS; way <= RT_COLUMNS; way++) {
		double c = cost(q, which, way) + meetings_a_job * q->meeting;
		if (c < *least) {
			*least = c;
			best = way;
		}
	}
	return best;
}

enum rt_way rt_choose(const struct rt_group *g, int64_t rows, int parts, double meeting)
{
	struct question q = {g, rows, parts, meeting};
	double alone = 0, together = meetings_a_job * meeting, each = 0, least;
	enum rt_way way = RT_ALONE;
	for (int i = 0; i < g->steps; i++) {
		alone += cost(&q, i, RT_ALONE);
		together += cost(&q, i, RT_ROWS);
		way = choose(&q, i, &least);
		each += least;
	}
	if (g->steps == 1)
		return way;
	if (alone <= together && alone <= each)
		return RT_ALONE;
	return together <= each ? RT_ROWS : RT_COLUMNS;
}

struct rt_group rt_group_of(const struct image_step *step, int steps)
{
	struct rt_group g = {step, steps, 0};
	for (int i = 0; i < steps; i++)
		g.weights += (double)step[i].block_bytes * step[i].blocks;
	return g;
}

struct rt_group rt_step_of(const struct rt_group *g, int which)
{
	return (struct rt_group){&g->step[which], 1, g->weights};
}

int64_t rt_share(int64_t rows, int64_t tile, int part, int parts)
{
	int64_t tiles = (rows + tile - 1) / tile;
	if (tiles < parts && tile > 1) {
		tile /= 2;
		tiles = (rows + tile - 1) / tile;
	}
	int64_t first = (tiles * part + parts - 1) / parts * tile;
	return first < rows ? first : rows;
}

int64_t rt_greatest_tile(const struct rt_group *g)
{
	int64_t rows = 1;
	for (int i = 0; i < g->steps; i++)
		rows = g->step[i].rows > rows ? g->step[i].rows : rows;
	return rows;
}
