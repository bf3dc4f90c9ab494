/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Spans (linearize/find_spans.c) divided by subtrees: a chunk goes through all levels of the span, which is one
 * work item of the team.
 *
 * Unless the schedule specifies subtrees, a span is divided so only where that is expected to be faster than
 * level by level. */
#ifndef ESPALIER_RUNTIME_SPAN_H
#define ESPALIER_RUNTIME_SPAN_H

#include "linearize/linearize.h"
#include "runtime/split.h"

/* Steps of one domain over the levels of a span. */
struct rt_span {
	const struct lin_order *order;
	const struct rt_stage *stage; /* by step: the stage that begins with it, if one does */
	int first, next;	      /* the steps */
	int32_t level, levels;	      /* the lowest, how many */
	int threads;		      /* of the team, so chunks */
	double barrier_cost;	      /* of a work item in which nothing is computed [ns] */
	const struct target *machine; /* that the team runs on */
	int32_t *cut;		      /* rt_span_cuts of them */
};

/* A level has a column of cuts for each case, or one. */
static inline int rt_span_columns(const struct lin_order *o)
{
	return o->cases ? o->cases : 1;
}

/* The first row of a chunk in a column of a level; the next chunk's first is its end. */
static inline int32_t rt_span_cut(const int32_t *cut, int columns, int chunks, int32_t level, int column,
				  int chunk)
{
	return cut[((int64_t)level * columns + column) * (chunks + 1) + chunk];
}

/* The number of cuts. */
static inline int64_t rt_span_cuts(const struct rt_span *s)
{
	return (int64_t)s->levels * rt_span_columns(s->order) * (s->threads + 1);
}

/* Fills `cut`. */
void rt_span_find_cuts(struct rt_span *);
/* Nanoseconds that dividing by subtrees, as cut, is expected to gain over level by level. */
double rt_span_gain(const struct rt_span *, struct rt_choices *);

#endif
