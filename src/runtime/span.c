/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/span.h"

#include "runtime/shared.h"

/* --- cuts --- */

/* Of the rows begin..end, by the ranks where shares begin. */
static void cut_column(const struct rt_span *s, int32_t begin, int32_t end, const int32_t *rank, int32_t *cut)
{
	cut[0] = begin;
	for (int p = 1; p < s->parts; p++)
		cut[p] = lin_first_of_rank(s->order, cut[p - 1], end, rank[p]);
	cut[s->parts] = end;
}

/* The ranks stand where the last cuts will, which are made from them. */
void rt_span_find_cuts(struct rt_span *s)
{
	const struct lin_order *o = s->order;
	int columns = rt_span_columns(o);
	int32_t *rank = s->cut + rt_span_cuts(s) - (s->parts + 1), *cut = s->cut;
	const int32_t *begin =
	    o->cases ? o->case_begin + (int64_t)s->level * columns : o->batch_begin + s->level;
	for (int p = 1; p < s->parts; p++)
		rank[p] = lin_share_of_span(o, lin_span_of(o, s->level), p, s->parts);
	for (int64_t i = 0; i < (int64_t)s->levels * columns; i++, cut += s->parts + 1)
		cut_column(s, begin[i], begin[i + 1], rank, cut);
}

/* --- what pays --- */

/* The rows of a group in a level that lie in parts from..to. */
static int64_t rows_of(const struct rt_span *s, const struct rt_group *g, int32_t level, int from, int to)
{
	int columns = rt_span_columns(s->order);
	int64_t rows = 0;
	for (int c = 0; c < columns; c++)
		if (rt_covers(g, c))
			rows += rt_span_cut(s->cut, columns, s->parts, level, c, to) -
				rt_span_cut(s->cut, columns, s->parts, level, c, from);
	return rows;
}

static struct rt_times times_of(const struct rt_span *s, struct rt_choices *choices, int step, int32_t level,
				int from, int to)
{
	const struct rt_group *g = &s->group[step];
	struct rt_question q = {g, rows_of(s, g, level, from, to), s->parts, s->meeting, s->machine};
	return q.rows ? rt_recall(choices, &q, step) : (struct rt_times){0};
}

/* Of the part that takes the longest. */
static double by_subtrees(const struct rt_span *s, struct rt_choices *choices)
{
	double most = 0;
	for (int part = 0; part < s->parts; part++) {
		double time = 0;
		for (int32_t level = 0; level < s->levels; level++)
			for (int i = s->first; i < s->next; i += s->group[i].steps)
				time += times_of(s, choices, i, level, part, part + 1).alone;
		most = time > most ? time : most;
	}
	return most + rt_turn(s->machine, s->meeting);
}

static double by_levels(const struct rt_span *s, struct rt_choices *choices)
{
	double time = 0;
	for (int32_t level = 0; level < s->levels; level++)
		for (int i = s->first; i < s->next; i += s->group[i].steps)
			time += times_of(s, choices, i, level, 0, s->parts).least;
	return time;
}

double rt_span_gain(const struct rt_span *s, struct rt_choices *choices)
{
	return by_levels(s, choices) - by_subtrees(s, choices);
}
