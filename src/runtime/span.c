/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/span.h"

#include "runtime/shared.h"

/* --- cuts --- */

/* Cuts the rows begin..end at the ranks where chunks begin. */
static void cut_column(const struct rt_span *s, int32_t begin, int32_t end, const int32_t *rank, int32_t *cut)
{
	cut[0] = begin;
	for (int p = 1; p < s->threads; p++)
		cut[p] = lin_first_of_rank(s->order, cut[p - 1], end, rank[p]);
	cut[s->threads] = end;
}

/* The ranks share the memory of the last cuts, which are made from them. */
void rt_span_find_cuts(struct rt_span *s)
{
	const struct lin_order *o = s->order;
	int columns = rt_span_columns(o);
	int32_t *rank = s->cut + rt_span_cuts(s) - (s->threads + 1), *cut = s->cut;
	const int32_t *begin =
	    o->cases ? o->case_begin + (int64_t)s->level * columns : o->batch_begin + s->level;
	for (int p = 1; p < s->threads; p++)
		rank[p] = lin_span_chunk_begin(o, lin_span_of(o, s->level), p, s->threads);
	for (int64_t i = 0; i < (int64_t)s->levels * columns; i++, cut += s->threads + 1)
		cut_column(s, begin[i], begin[i + 1], rank, cut);
}

/* --- is it profitable? --- */

/* The rows of a stage in a level that lie in the chunks from .. to - 1. */
static int64_t rows_of(const struct rt_span *s, const struct rt_stage *stage, int32_t level, int from, int to)
{
	int columns = rt_span_columns(s->order);
	int64_t rows = 0;
	for (int c = 0; c < columns; c++)
		if (rt_stage_covers(stage, c))
			rows += rt_span_cut(s->cut, columns, s->threads, level, c, to) -
				rt_span_cut(s->cut, columns, s->threads, level, c, from);
	return rows;
}

static struct rt_estimate estimate_level(const struct rt_span *s, struct rt_choices *choices, int step,
					 int32_t level, int from, int to)
{
	const struct rt_stage *stage = &s->stage[step];
	struct rt_query q = {stage, rows_of(s, stage, level, from, to), s->threads, s->barrier_cost,
			     s->machine};
	return q.rows ? rt_recall_strategy(choices, &q, step) : (struct rt_estimate){0};
}

/* Nanoseconds of the slowest chunk, and of the barrier. */
static double time_by_subtrees(const struct rt_span *s, struct rt_choices *choices)
{
	double most = 0;
	for (int chunk = 0; chunk < s->threads; chunk++) {
		double time = 0;
		for (int32_t level = 0; level < s->levels; level++)
			for (int i = s->first; i < s->next; i += s->stage[i].steps)
				time += estimate_level(s, choices, i, level, chunk, chunk + 1).alone;
		most = time > most ? time : most;
	}
	return most + rt_item_overhead(s->machine, s->barrier_cost);
}

static double time_by_levels(const struct rt_span *s, struct rt_choices *choices)
{
	double time = 0;
	for (int32_t level = 0; level < s->levels; level++)
		for (int i = s->first; i < s->next; i += s->stage[i].steps)
			time += estimate_level(s, choices, i, level, 0, s->threads).least;
	return time;
}

double rt_span_gain(const struct rt_span *s, struct rt_choices *choices)
{
	return time_by_levels(s, choices) - time_by_subtrees(s, choices);
}
