/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Spans of levels, shared out by subtrees: each part runs its own through all levels of the span, one turn of
 * the team.
 *
 * Unless the schedule asks for subtrees, a span is run so only where it is expected to take shorter than level by
 * level. */
#ifndef ESPALIER_RUNTIME_SPAN_H
#define ESPALIER_RUNTIME_SPAN_H

#include "linearize/linearize.h"
#include "runtime/split.h"

/* Steps of one domain over some levels. */
struct rt_span {
	const struct lin_order *order;
	const struct rt_group *group; /* by step: those from this one on, where one begins */
	int first, next;	      /* the steps */
	int32_t level, levels;	      /* the lowest, how many */
	int parts;
	double meeting; /* nanoseconds that a turn takes the parts in which nothing is done */
	const struct target *machine; /* that they run on */
	int32_t *cut;	/* rt_span_cuts of them */
};

/* Levels have a column for each case that is told apart, or one. */
static inline int rt_span_columns(const struct lin_order *o)
{
	return o->cases ? o->cases : 1;
}

/* Where the rows of a part begin, in a column of a level; those of the next part are their end. */
static inline int32_t rt_span_cut(const int32_t *cut, int columns, int parts, int32_t level, int column,
				  int part)
{
	return cut[((int64_t)level * columns + column) * (parts + 1) + part];
}

/* How many cuts there are. */
static inline int64_t rt_span_cuts(const struct rt_span *s)
{
	return (int64_t)s->levels * rt_span_columns(s->order) * (s->parts + 1);
}

/* Fills `cut`. */
void rt_span_find_cuts(struct rt_span *);
/* Nanoseconds that the span is expected to take longer level by level than by subtrees, as cut. */
double rt_span_gain(const struct rt_span *, struct rt_choices *);

#endif
