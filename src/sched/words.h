/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the printer and the reader of a schedule's text share: the words for values of enums, and the
 * directives that set one field each. */
#ifndef ESPALIER_SCHED_WORDS_H
#define ESPALIER_SCHED_WORDS_H

#include "sched/line.h"

#include <stddef.h>

/* By the value of an enum or a bool; each list ends with NULL. */
extern const char *const words_planner[];
extern const char *const words_profit[];
extern const char *const words_moving[];
extern const char *const words_strategy[];
extern const char *const words_layout[];
extern const char *const words_leaves[];
extern const char *const words_vectors[];
extern const char *const words_switch[];

/* Directives that choose one of two words, by directive; words NULL = the directive is none of them. */
struct sched_switch {
	size_t offset; /* of the bool in struct sched that it sets */
	const char *const *words;
};
extern const struct sched_switch sched_switches[SCHED_DIRECTIVES];

/* Directives that move values to other bodies (move/move.h), by directive; moved NULL = it is none of
 * them. */
struct sched_mover {
	size_t offset; /* of its extent in struct sched_fusion */
	bool (*moved)(const struct sub_program *);
	const char *cannot, *worthless; /* why `all` and `on` are refused where nothing moved */
	const char *(*details)(const struct sub_program *); /* of `cannot`, state by state; may be NULL */
};
extern const struct sched_mover sched_movers[SCHED_DIRECTIVES];

static inline enum move_extent sched_extent_of(const struct sched_mover *m, const struct sched_fusion *f)
{
	return *(const enum move_extent *)((const char *)f + m->offset);
}

/* Directives that say how far the plan goes in what it decides itself, by directive; any NULL = it is none of them. */
struct sched_planned {
	size_t offset; /* of its extent in struct sched_fusion */
	bool (*any)(const struct sched_plan *); /* whether the plan has something of the kind */
	const char *nothing; /* why `on` and `all` are refused where it has not */
};
extern const struct sched_planned sched_planned[SCHED_DIRECTIVES];

static inline enum move_extent sched_planned_extent(const struct sched_planned *d, const struct sched_fusion *f)
{
	return *(const enum move_extent *)((const char *)f + d->offset);
}

#endif
