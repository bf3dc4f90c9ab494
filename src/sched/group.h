/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Targets, their supersteps and groups. */
#ifndef ESPALIER_SCHED_GROUP_H
#define ESPALIER_SCHED_GROUP_H

#include "sched/plan.h"

/* A value that a group computes: a stored intermediate, a state or an output. */
struct sched_target {
	sub_ref value;
	int body, superstep, group, block;
	bool pinned; /* was dropped once; stays until groups are final, so that planning ends */
	const struct sched_read *read;
	const struct sched_reduction *reduction;
	int reads, reductions;
};

/* The accesses that an element of a copy in another order costs: one read and one written, by scalars, which lie apart at one
 * end. */
enum { SCHED_ACCESSES_A_COPY = 4 };

struct sched_grouper {
	struct sched_planner pl;
	struct sched_walk walk;
	struct sched_block *united; /* blocks, each with the totals of those that have joined it */
	VEC(struct sched_target) targets;
	bool changed;
	int word_rounds;      /* of sched_read_words_in_place */
	double word_accesses; /* of all groups, if all words are stored */
};

/* The number of a target, which is added if it is new. */
int sched_find_target(struct sched_grouper *, int body, sub_ref);
/* Gives a target a group of its own. */
void sched_set_apart(struct sched_grouper *, int body, sub_ref);
/* Assigns supersteps and groups to the targets, from what they read. */
void sched_make_groups(struct sched_grouper *);
/* Tells values their groups and counts the reductions of each group. */
void sched_finish_groups(struct sched_grouper *);
/* Chooses the groups whose rows are sorted by a token that selects their weights (sort.c). */
void sched_choose_sorts(struct sched_grouper *);
/* Stores what is moved where a sum that reads it has vectors only then; whether there was something to store (arrange.c). */
bool sched_arrange(struct sched_grouper *);
/* Has words read where their bytes are stored; called when groups are made, until it returns that it changed nothing more
 * (words_in_place.c). */
bool sched_read_words_in_place(struct sched_grouper *);

#endif
