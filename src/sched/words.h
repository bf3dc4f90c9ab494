/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the printer and the reader of a schedule's text share: the words that stand for values, and the
 * directives of which each sets one field. */
#ifndef ESPALIER_SCHED_WORDS_H
#define ESPALIER_SCHED_WORDS_H

#include "sched/line.h"

#include <stddef.h>

/* By the value of an enum or a bool; NULL ends them. */
extern const char *const words_planner[];
extern const char *const words_profit[];
extern const char *const words_moving[];
extern const char *const words_way[];
extern const char *const words_layout[];

/* By directive; words NULL = it does more than set a field to one of two words. */
struct sched_switch {
	size_t offset; /* of a bool in struct sched */
	const char *const *words;
};
extern const struct sched_switch sched_switches[SCHED_DIRECTIVES];

/* By directive; moved NULL = it makes no other program of it. */
struct sched_mover {
	size_t offset; /* of an enum move_extent in struct sched_fusion */
	bool (*moved)(const struct sub_program *);
	const char *cannot, *worthless; /* why `all` and `on` are refused */
};
extern const struct sched_mover sched_movers[SCHED_DIRECTIVES];

static inline enum move_extent sched_extent_of(const struct sched_mover *m, const struct sched_fusion *f)
{
	return *(const enum move_extent *)((const char *)f + m->offset);
}

#endif
