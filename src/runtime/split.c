/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The choice of a strategy compares estimated times: of a chunk, that of its tiles, by the measured times of
 * iterations; of a work item, that of its largest chunk, of the barrier, and of cache lines that come from
 * other cores.
 *
 *   alone     T(all rows, all columns)
 *   rows      T(a chunk of the rows, all columns)     each thread reads all weights; one item for all steps
 *             (within sections of some rows, which keep intermediates in the second-level cache)
 *   columns   T(all rows, a chunk of the columns)     each thread reads its own weights: the fewer, the
 *                                                     more of them stay in its second-level cache
 *
 * A step that goes on with the columns of the step before has neither the barrier nor these lines. */
#include "runtime/split.h"

#include "runtime/section.h"
#include "runtime/shared.h"

#include <math.h>
#include <string.h>

static int most_rows(const struct image_step *s)
{
	return s->rows < 1 ? 1 : s->rows;
}

/* Vectors that registers hold with the rows of the greatest tile, of those whose times are known. */
static int most_vectors(const struct target *m, const struct image_step *s)
{
	return target_most_vectors(m, most_rows(s) < TARGET_ROWS ? most_rows(s) : TARGET_ROWS);
}

/* The share of the weights of a working set that the last range left in the second-level cache. */
static double near_share(const struct target *m, double set)
{
	double kept = m->kept_share * m->l2_bytes;
	return set > m->l2_bytes ? kept / set : 1;
}

/* Nanoseconds of an iteration of a tile, of more rows than times are known for as of several tiles. */
static double cached_time(const struct target *m, int rows, int vectors, enum target_cache cache)
{
	int known = rows < TARGET_ROWS ? rows : TARGET_ROWS;
	return target_iteration_time(m, known, vectors, cache) * rows / known;
}

/* Nanoseconds of an iteration of a tile of so many rows.  The image does not specify its vectors: as many as
 * registers hold with the rows of whole tiles. */
static double iteration_time(const struct target *m, const struct image_step *s, int rows, double near)
{
	int vectors = most_vectors(m, s);
	double close = cached_time(m, rows, vectors, TARGET_L2);
	return near < 1 ? near * close + (1 - near) * cached_time(m, rows, vectors, TARGET_BEYOND) : close;
}

/* Operations of a row in the blocks of a kernel, after its head. */
static double operations_of(const struct image_step *s)
{
	return s->operations - s->head;
}

/* Nanoseconds of operations without weights, which move rows: the longer of both. */
static double moving_time(const struct target *m, double operations, double bytes)
{
	return fmax(operations / target_kernel_rate(m), bytes / m->l2_rate);
}

/* Iterations that a tile runs for a share of the columns. */
static double iterations_of(const struct target *m, const struct image_step *s, double share)
{
	return operations_of(s) * share / (2.0 * m->lanes * most_vectors(m, s));
}

/* Whether a kernel has a tile of so many rows; of any number where its tiles are not known. */
static bool has_tile(const struct image_step *s, int rows)
{
	return !s->tiles || s->tiles >> (rows - 1) & 1;
}

/* Nanoseconds of an iteration of each tile that the rows are cut into, the greatest first: the first reads weights from where
 * the last range left them, further ones find them in the second-level cache. */
static double tiles_time(const struct target *m, const struct image_step *s, int64_t rows, double near)
{
	double times = 0;
	int64_t left = rows;
	for (int size = most_rows(s); left && size; size--) {
		int64_t tiles = has_tile(s, size) ? left / size : 0;
		if (!tiles)
			continue;
		times += iteration_time(m, s, size, near) + (tiles - 1) * iteration_time(m, s, size, 1);
		left -= tiles * size;
		near = 1;
	}
	return times;
}

/* Nanoseconds of some of the blocks of one kernel call, whose weights are in a working set of so many bytes. */
static double blocks_time(const struct target *m, const struct image_step *s, int64_t rows, int64_t blocks, double set)
{
	double share = (double)blocks / s->blocks, read = (double)s->block_bytes * blocks;
	if (!s->block_bytes)
		return moving_time(m, operations_of(s) * share * rows, s->moved_bytes * share * rows);
	double time = tiles_time(m, s, rows, near_share(m, set)) * iterations_of(m, s, share);
	return set > m->l3_bytes ? fmax(time, read / m->memory_rate) : time;
}

/* Nanoseconds of one kernel call: the head, and then the blocks. */
static double call_time(const struct target *m, const struct image_step *s, int64_t rows, int64_t blocks, double set)
{
	double head = s->head ? moving_time(m, (double)s->head * rows, (double)s->moved_bytes * rows) : 0;
	return head + blocks_time(m, s, rows, blocks, set);
}

/* Nanoseconds to fetch what others have written.  Where their processors are now, lines take longer as barriers do. */
static double fetching_time(const struct rt_query *q, double bytes)
{
	const struct target *m = q->machine;
	return bytes / m->exchange_rate * q->barrier_cost / m->barrier;
}

/* The share of what it reads that a thread finds in the caches of others. */
static double others_share(const struct rt_query *q)
{
	return (q->threads - 1.0) / q->threads;
}

double rt_item_overhead(const struct target *machine, double barrier_cost)
{
	return barrier_cost + machine->skew;
}

/* Nanoseconds of the slowest chunk of rows. */
static double cost_of_rows(const struct rt_query *q, const struct image_step *s)
{
	double most = 0;
	for (int chunk = 0; chunk < q->threads; chunk++) {
		int64_t begin = rt_chunk_begin(q->rows, q->stage->tile, chunk, q->threads);
		int64_t end = rt_chunk_begin(q->rows, q->stage->tile, chunk + 1, q->threads);
		if (begin < end)
			most =
			    fmax(most, call_time(q->machine, s, end - begin, s->blocks, q->stage->weights));
	}
	return most;
}

/* The part of a step's weights that some of its blocks read: blocks may share weights. */
static double share_of_weights(const struct image_step *s, int64_t blocks)
{
	double read = (double)s->block_bytes * blocks;
	return s->weight_bytes > read ? read / s->weight_bytes : 1;
}

/* Nanoseconds that a step computes, by the slowest chunk.  If threads `go on` from the step before with the same columns,
 * they fetch no intermediates of others. */
static double step_cost(const struct rt_query *q, int which, enum rt_strategy strategy, bool goes_on)
{
	const struct rt_stage *stage = q->stage;
	const struct image_step *s = &stage->step[which];
	int64_t blocks = (s->blocks + q->threads - 1) / q->threads;
	double rows = q->rows * others_share(q);
	switch (strategy) {
	case RT_ROWS:
		return cost_of_rows(q, s) + fetching_time(q, rows / q->threads * s->state_bytes);
	case RT_COLUMNS:
		return call_time(q->machine, s, q->rows, blocks, stage->weights * share_of_weights(s, blocks)) +
		       fetching_time(q, rows * (goes_on ? s->state_bytes : s->read_bytes));
	default:
		return call_time(q->machine, s, q->rows, s->blocks, stage->weights);
	}
}

/* The caller alone between work items of the team: it fetches what others wrote, and they all of what it writes and not
 * a part of it. */
static double alone_between(const struct rt_query *q, int which)
{
	return step_cost(q, which, RT_ALONE, false) + q->barrier_cost +
	       fetching_time(q, (double)q->rows * q->stage->step[which].read_bytes);
}

static enum rt_strategy choose_for_step(const struct rt_query *, int which, bool between, double *least);

/* Whether threads that divide the columns of a step do not wait behind the step before, since they divide its columns
 * alike. */
static bool can_go_on(const struct rt_query *q, int which)
{
	const struct image_step *s = &q->stage->step[which];
	double least;
	return q->stage->before + which > 0 && s->after && rt_share_borders(s - 1, s, q->threads) &&
	       choose_for_step(q, which - 1, true, &least) == RT_COLUMNS;
}

/* The fastest strategy for one step, and its nanoseconds. */
static enum rt_strategy choose_for_step(const struct rt_query *q, int which, bool between, double *least)
{
	enum rt_strategy best = RT_ALONE;
	bool can = can_go_on(q, which);
	*least = between ? alone_between(q, which) : step_cost(q, which, RT_ALONE, false);
	for (enum rt_strategy strategy = RT_ROWS; strategy <= RT_COLUMNS; strategy++) {
		bool goes_on = can && strategy == RT_COLUMNS;
		double c = step_cost(q, which, strategy, goes_on) +
			   (goes_on ? 0 : rt_item_overhead(q->machine, q->barrier_cost));
		if (c < *least) {
			*least = c;
			best = strategy;
		}
	}
	return best;
}

/* Nanoseconds that steps take longer as items of their own: what sections (section.h) keep in the second-level cache is read from
 * beyond it. */
static double apart_time(const struct rt_query *q)
{
	const struct rt_stage *stage = q->stage;
	int64_t rows = (q->rows + q->threads - 1) / q->threads;
	double bytes = 0;
	struct rt_section section;
	for (int i = 0; i < stage->steps; i += section.steps) {
		section = rt_find_section(&stage->step[i], stage->steps - i, rows, (double)q->machine->l2_bytes);
		for (int k = 1; k < section.steps; k++)
			bytes += (double)stage->step[i + k].read_bytes * rows;
	}
	return fetching_time(q, bytes);
}

/* For several steps: one item for all, or a strategy for each. */
static struct rt_estimate choose_for_steps(const struct rt_query *q)
{
	double alone = 0, together = rt_item_overhead(q->machine, q->barrier_cost), each = apart_time(q), least;
	for (int i = 0; i < q->stage->steps; i++) {
		alone += step_cost(q, i, RT_ALONE, false);
		together += step_cost(q, i, RT_ROWS, false);
		choose_for_step(q, i, true, &least);
		each += least;
	}
	if (alone <= together && alone <= each)
		return (struct rt_estimate){RT_ALONE, alone, alone};
	return together <= each ? (struct rt_estimate){RT_ROWS, together, alone}
				: (struct rt_estimate){RT_COLUMNS, each, alone};
}

struct rt_estimate rt_choose_strategy(const struct rt_query *q)
{
	struct rt_estimate t;
	if (q->stage->steps > 1)
		return choose_for_steps(q);
	t.strategy = choose_for_step(q, 0, q->stage->interleaved, &t.least);
	t.alone = step_cost(q, 0, RT_ALONE, false);
	return t;
}

static enum rt_strategy requested_strategy(const struct image_step *s)
{
	static const enum rt_strategy strategies[] = {[IMAGE_CHEAPEST] = RT_CHEAPEST,
						      [IMAGE_ALONE] = RT_ALONE,
						      [IMAGE_ROWS] = RT_ROWS,
						      [IMAGE_COLUMNS] = RT_COLUMNS,
						      [IMAGE_SUBTREES] = RT_SUBTREES};
	return strategies[s->strategy];
}

/* Ranges of a step whose operations are not known, and those of an accelerator, are not divided. */
static bool can_divide(const struct image_step *s)
{
	return s->operations > 0 && s->target == IMAGE_TARGET_HOST;
}

/* The smallest tile that chunks of a stage's rows can be cut by: steps that have larger ones do at most an eighth of the operations. */
static int64_t choose_tile(const struct image_step *step, int steps)
{
	double all = 0, within;
	int64_t tile = 1, next;
	for (int i = 0; i < steps; i++)
		all += step[i].operations;
	do {
		within = 0;
		next = INT64_MAX;
		for (int i = 0; i < steps; i++)
			if (step[i].rows <= tile)
				within += step[i].operations;
			else if (step[i].rows < next)
				next = step[i].rows;
	} while (next < INT64_MAX && within < all * 7 / 8 && (tile = next));
	return tile;
}

struct rt_stage rt_stage_of(const struct image_step *step, int steps)
{
	struct rt_stage stage = {
	    .step = step, .steps = steps, .tile = 1, .strategy = requested_strategy(step), .known = true};
	stage.tile = choose_tile(step, steps);
	for (int i = 0; i < steps; i++) {
		stage.weights += (double)step[i].weight_bytes;
		stage.known &= can_divide(&step[i]);
		stage.mixed |= step[i].strategy != step->strategy;
	}
	return stage;
}

struct rt_stage rt_stage_of_step(const struct rt_stage *stage, int which)
{
	const struct image_step *s = &stage->step[which];
	return (struct rt_stage){.step = s,
				 .steps = 1,
				 .before = which,
				 .weights = stage->weights,
				 .tile = s->rows > 1 ? s->rows : 1,
				 .interleaved = true,
				 .strategy = requested_strategy(s),
				 .known = can_divide(s)};
}

/* --- the cache --- */

/* Classes of rows: each number below EXACT, then those up to the next power of two. */
enum { EXACT = 64, CLASSES = EXACT + 64 };

static int class_of(int64_t rows)
{
	return rows < EXACT ? (int)rows : EXACT + 63 - __builtin_clzll(rows);
}

bool rt_choices_init(struct rt_choices *c, const struct allocator *a, int steps)
{
	*c = (struct rt_choices){.allocator = a, .answers = 2 * CLASSES * steps};
	c->answer = rt_allocate_zeroed(a, c->answers * sizeof *c->answer);
	return c->answer;
}

void rt_choices_free(struct rt_choices *c)
{
	rt_free(c->allocator, c->answer);
	c->answer = NULL;
}

/* Forgets what was chosen for other threads or another barrier cost. */
static void match_team(struct rt_choices *c, const struct rt_query *q)
{
	if (c->threads == q->threads && c->barrier_cost == q->barrier_cost)
		return;
	c->threads = q->threads;
	c->barrier_cost = q->barrier_cost;
	for (int i = 0; i < c->answers; i++)
		c->answer[i].strategy = RT_CHEAPEST;
}

struct rt_estimate rt_recall_strategy(struct rt_choices *c, const struct rt_query *q, int step)
{
	match_team(c, q);
	struct rt_choice *a = &c->answer[(2 * step + (q->stage->steps > 1)) * CLASSES + class_of(q->rows)];
	if (a->strategy == RT_CHEAPEST) {
		struct rt_estimate t = rt_choose_strategy(q);
		*a = (struct rt_choice){t.strategy, t.least / q->rows, t.alone / q->rows};
	}
	return (struct rt_estimate){a->strategy, (double)a->least * q->rows, (double)a->alone * q->rows};
}

/* --- chunks --- */

int64_t rt_chunk_begin(int64_t rows, int64_t tile, int chunk, int chunks)
{
	int64_t unit = tile > 1 ? tile / 2 : 1, all = chunks * unit;
	int64_t round = rows < all ? all - 1 : all / 2;
	int64_t first = (rows * chunk + round) / all * unit;
	return chunk == chunks || first > rows ? rows : first;
}

bool rt_share_borders(const struct image_step *a, const struct image_step *b, int chunks)
{
	bool same = true;
	for (int c = 1; same && c < chunks; c++)
		same = rt_chunk_begin(a->blocks, 1, c, chunks) * a->columns ==
		       rt_chunk_begin(b->blocks, 1, c, chunks) * b->columns;
	return same;
}
