/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The choice is a comparison of times that are estimated: of a part, the longer of computing and of reading
 * the weights; of a turn, that of its first part, which has the most, of the meeting of its parts, and of
 * lines of memory that come from the caches of others.
 *
 *   alone     T(all rows, all columns)
 *   rows      T(share of the rows, all columns)     each part reads all weights; one turn for all steps
 *   columns   T(all rows, share of the columns)     each part reads its own weights: the fewer, the more of
 *                                                   them stay in its second-level cache
 *
 * How long a row is nobody says; a step that reads as many weights as a matrix has is taken to read and write
 * rows as long as its side, and so are its neighbours. */
#include "runtime/split.h"

#include "runtime/internal.h"

#include <math.h>
#include <string.h>

/* A step without weights reads and writes rows and computes little: bytes that it moves for an operation. */
static const double bytes_an_operation = 8;

/* Sweeps that alternate find so much of the second-level cache filled with what the last one read. */
static const double kept_share = 0.75;

/* What a core reads [bytes/ns], by the bytes that it reads again and again. */
static double rate_of(const struct target *m, double bytes)
{
	if (bytes > m->l3_bytes)
		return m->memory_rate;
	if (bytes > m->l2_bytes)
		return m->l3_rate;
	return bytes > m->l1_bytes ? m->l2_rate : m->l1_rate;
}

/* Nanoseconds to read some of the bytes that are read again and again. */
static double reading(const struct target *m, double bytes, double again)
{
	double kept = kept_share * m->l2_bytes, near = again > kept ? kept / again : 1;
	double far = rate_of(m, again);
	if (far > m->l2_rate)
		return bytes / far;
	return bytes * (near / m->l2_rate + (1 - near) / far);
}

/* Rows of whole tiles that take as long as these: what is left over is computed less well. */
static double in_tiles(const struct image_step *s, int64_t rows)
{
	int64_t left = s->rows > 1 ? rows % s->rows : 0;
	return left ? rows - left + (s->rows + 3.0 * left) / 4 : rows;
}

/* Nanoseconds of a part's call. */
static double call(const struct target *m, const struct image_step *s, int64_t rows, int64_t blocks,
		   double again)
{
	double rate = s->block_bytes ? target_kernel_rate(m) : m->l2_rate / bytes_an_operation;
	double computing = s->operations * in_tiles(s, rows) * blocks / s->blocks / rate;
	double read = reading(m, (double)s->block_bytes * blocks, again);
	return computing > read ? computing : read;
}

/* Rows of others come line by line, some at a time, each as slowly as parts meet. */
static double fetching(const struct rt_question *q, double share)
{
	const struct target *m = q->machine;
	return share * q->rows * q->group->row_bytes / m->line_bytes / m->lines_at_once * q->meeting;
}

static double others(const struct rt_question *q)
{
	return (q->parts - 1.0) / q->parts;
}

double rt_turn(const struct target *machine, double meeting)
{
	return meeting + machine->skew;
}

/* A turn without what its parts compute. */
static double turn(const struct rt_question *q)
{
	return rt_turn(q->machine, q->meeting) + fetching(q, others(q));
}

/* By rows, of the part that needs the longest. */
static double cost_of_rows(const struct rt_question *q, const struct image_step *s)
{
	double most = 0;
	for (int part = 0; part < q->parts; part++) {
		int64_t begin = rt_share(q->rows, q->group->tile, part, q->parts);
		int64_t end = rt_share(q->rows, q->group->tile, part + 1, q->parts);
		if (begin < end)
			most = fmax(most, call(q->machine, s, end - begin, s->blocks, q->group->weights));
	}
	return most;
}

/* What a step computes in the time of its turn. */
static double cost(const struct rt_question *q, int which, enum rt_strategy strategy)
{
	const struct rt_group *g = q->group;
	const struct image_step *s = &g->step[which];
	int64_t blocks = (s->blocks + q->parts - 1) / q->parts;
	switch (strategy) {
	case RT_ROWS:
		return cost_of_rows(q, s);
	case RT_COLUMNS:
		return call(q->machine, s, q->rows, blocks, g->weights * blocks / s->blocks);
	default:
		return call(q->machine, s, q->rows, s->blocks, g->weights);
	}
}

/* The caller alone, between turns: he fetches what others wrote, and they what he writes. */
static double alone_between(const struct rt_question *q, int which)
{
	return cost(q, which, RT_ALONE) + q->meeting + fetching(q, others(q) + 1);
}

/* The best way for one step, and what it costs. */
static enum rt_strategy choose(const struct rt_question *q, int which, bool between, double *least)
{
	enum rt_strategy best = RT_ALONE;
	*least = between ? alone_between(q, which) : cost(q, which, RT_ALONE);
	for (enum rt_strategy strategy = RT_ROWS; strategy <= RT_COLUMNS; strategy++) {
		double c = cost(q, which, strategy) + turn(q);
		if (c < *least) {
			*least = c;
			best = strategy;
		}
	}
	return best;
}

/* Of several steps, that take their turns together or each its own. */
static struct rt_times choose_steps(const struct rt_question *q)
{
	double alone = 0, together = turn(q), each = 0, least;
	for (int i = 0; i < q->group->steps; i++) {
		alone += cost(q, i, RT_ALONE);
		together += cost(q, i, RT_ROWS);
		choose(q, i, true, &least);
		each += least;
	}
	if (alone <= together && alone <= each)
		return (struct rt_times){RT_ALONE, alone, alone};
	return together <= each ? (struct rt_times){RT_ROWS, together, alone}
				: (struct rt_times){RT_COLUMNS, each, alone};
}

struct rt_times rt_choose(const struct rt_question *q)
{
	struct rt_times t;
	if (q->group->steps > 1)
		return choose_steps(q);
	t.strategy = choose(q, 0, q->group->between, &t.least);
	t.alone = cost(q, 0, RT_ALONE);
	return t;
}

static double row_bytes_of(const struct image_step *s)
{
	return sqrt((double)s->block_bytes * s->blocks * sizeof(float));
}

static enum rt_strategy asked_for(const struct image_step *s)
{
	static const enum rt_strategy strategies[] = {[IMAGE_CHEAPEST] = RT_CHEAPEST,
					   [IMAGE_ALONE] = RT_ALONE,
					   [IMAGE_ROWS] = RT_ROWS,
					   [IMAGE_COLUMNS] = RT_COLUMNS,
					   [IMAGE_SUBTREES] = RT_SUBTREES};
	return strategies[s->strategy];
}

struct rt_group rt_group_of(const struct image_step *step, int steps)
{
	struct rt_group g = {.step = step, .steps = steps, .tile = 1, .strategy = asked_for(step), .known = true};
	for (int i = 0; i < steps; i++) {
		g.weights += (double)step[i].block_bytes * step[i].blocks;
		g.row_bytes = fmax(g.row_bytes, row_bytes_of(&step[i]));
		g.tile = step[i].rows > g.tile ? step[i].rows : g.tile;
		g.known &= step[i].operations > 0;
		g.apart |= step[i].strategy != step->strategy;
	}
	return g;
}

struct rt_group rt_step_of(const struct rt_group *g, int which)
{
	const struct image_step *s = &g->step[which];
	return (struct rt_group){.step = s,
				 .steps = 1,
				 .weights = g->weights,
				 .row_bytes = g->row_bytes,
				 .tile = s->rows > 1 ? s->rows : 1,
				 .between = true,
				 .strategy = asked_for(s),
				 .known = s->operations > 0};
}

/* --- memory --- */

/* Classes of rows: each number below EXACT, then those up to the next power of two. */
enum { EXACT = 64, CLASSES = EXACT + 64 };

static int class_of(int64_t rows)
{
	return rows < EXACT ? (int)rows : EXACT + 63 - __builtin_clzll(rows);
}

bool rt_choices_init(struct rt_choices *c, const struct allocator *a, int steps)
{
	*c = (struct rt_choices){.allocator = a, .answers = 2 * CLASSES * steps};
	c->answer = rt_take(a, c->answers * sizeof *c->answer);
	return c->answer;
}

void rt_choices_free(struct rt_choices *c)
{
	rt_give(c->allocator, c->answer);
	c->answer = NULL;
}

/* What was chosen for another team's meeting is forgotten. */
static void keep_to(struct rt_choices *c, const struct rt_question *q)
{
	if (c->parts == q->parts && c->meeting == q->meeting)
		return;
	c->parts = q->parts;
	c->meeting = q->meeting;
	for (int i = 0; i < c->answers; i++)
		c->answer[i].strategy = RT_CHEAPEST;
}

struct rt_times rt_recall(struct rt_choices *c, const struct rt_question *q, int step)
{
	keep_to(c, q);
	struct rt_answer *a = &c->answer[(2 * step + (q->group->steps > 1)) * CLASSES + class_of(q->rows)];
	if (a->strategy == RT_CHEAPEST) {
		struct rt_times t = rt_choose(q);
		*a = (struct rt_answer){t.strategy, t.least / q->rows, t.alone / q->rows};
	}
	return (struct rt_times){a->strategy, (double)a->least * q->rows, (double)a->alone * q->rows};
}

/* --- shares --- */

int64_t rt_share(int64_t rows, int64_t tile, int part, int parts)
{
	int64_t unit = tile > 1 ? tile / 2 : 1, all = parts * unit;
	int64_t round = rows < all ? all - 1 : all / 2;
	int64_t first = (rows * part + round) / all * unit;
	return part == parts || first > rows ? rows : first;
}
