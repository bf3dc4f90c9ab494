/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Targets, their stages and groups. */
#ifndef ESPALIER_SCHED_GROUP_H
#define ESPALIER_SCHED_GROUP_H

#include "sched/plan.h"

/* A value that is stored, or is a result. */
struct sched_target {
	sub_ref value;
	int body, stage, group, block;
	bool pinned; /* was let go of before: stays now */
	const struct sched_read *read;
	const struct sched_reduction *reduction;
	int reads, reductions;
};

struct sched_grouper {
	struct sched_planner pl;
	struct sched_walk walk;
	struct sched_block *united; /* blocks, with what has joined them */
	VEC(struct sched_target) targets;
	bool changed;
};

/* The number of a target; adds it. */
int sched_find_target(struct sched_grouper *, int body, sub_ref);
/* Keeps a target out of the groups of others. */
void sched_set_apart(struct sched_grouper *, int body, sub_ref);
/* Settles stages and groups from what the targets read. */
void sched_make_groups(struct sched_grouper *);
/* Counts what the groups hold. */
void sched_finish_groups(struct sched_grouper *);

#endif
