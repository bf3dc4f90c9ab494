/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The words of a schedule's text. */
#include "sched/words.h"

const char *const words_planner[] = {
#define SCHED_PLANNER(name, spelling, meaning) spelling,
#include "sched/sched.def"
#undef SCHED_PLANNER
    NULL};

const char *const words_profit[] = {[SCHED_PROFIT_MEASURED] = "measured",
				    [SCHED_PROFIT_ALWAYS] = "always",
				    [SCHED_PROFIT_NEVER] = "never",
				    NULL};

const char *const words_moving[] = {[MOVE_ON] = "on", [MOVE_ALL] = "all", [MOVE_OFF] = "off", NULL};

const char *const words_strategy[] = {
    [IMAGE_CHEAPEST] = "measured", [IMAGE_ALONE] = "off",	  [IMAGE_ROWS] = "rows",
    [IMAGE_COLUMNS] = "columns",   [IMAGE_SUBTREES] = "subtrees", NULL};

const char *const words_layout[] = {[IMAGE_BY_NODE] = "node", [IMAGE_BY_PARENT] = "parent", NULL};

const char *const words_leaves[] = {"copy", "table", NULL};

const char *const words_vectors[] = {"copy", "given", NULL};

const char *const words_switch[] = {"off", "on", NULL};

static const char *const level_step[] = {"level", "step", NULL};

const struct sched_switch sched_switches[SCHED_DIRECTIVES] = {
    [SCHED_DYNAMIC_BATCH] = {offsetof(struct sched, dynamic_batch), words_switch},
    [SCHED_DENSE_INDEX] = {offsetof(struct sched, dense_index), words_switch},
    [SCHED_PEEL] = {offsetof(struct sched, peel), words_switch},
    [SCHED_ALIGN] = {offsetof(struct sched, align), words_switch},
    [SCHED_PERSIST] = {offsetof(struct sched, persist), words_switch},
    [SCHED_BARRIER] = {offsetof(struct sched, barrier_each_step), level_step},
};

const struct sched_mover sched_movers[SCHED_DIRECTIVES] = {
    [SCHED_REFACTOR] =
	{offsetof(struct sched_fusion, refactoring), move_is_refactored,
	 "each product with weights needs more than one child's states, or continues a sum that does",
	 "no product of weights and one child's states is common to all children and saves more than "
	 "storing "
	 "it costs",
	 move_explain_tails},
    [SCHED_HOIST] = {offsetof(struct sched_fusion, hoisting), move_is_hoisted,
		     "each product with weights needs a state, or continues a sum that does",
		     "no product with weights that needs no state saves more than storing it costs",
		     NULL},
    [SCHED_UNSTACK] = {offsetof(struct sched_fusion, unstacking), move_is_unstacked,
		       "inputs and results are no stacks of instances that are computed without each other",
		       "an instance multiplies too few weights for each of its elements, or computes what others need",
		       NULL},
    [SCHED_PAD] = {offsetof(struct sched_fusion, padding), move_is_padded,
		   "nothing is reduced of a row that is read through windows that leave it",
		   "no element is read through windows that leave their row so often that a copy pays",
		   NULL},
};

const struct sched_planned sched_planned[SCHED_DIRECTIVES] = {
    [SCHED_LOCAL] = {offsetof(struct sched_fusion, local), sched_has_local,
		     "each group that others read has products, or as much to do as a reader"},
    [SCHED_SORT] = {offsetof(struct sched_fusion, sorting), sched_has_sorts,
		    "no token selects the weights of all products of a group"},
    [SCHED_ARRANGE] = {offsetof(struct sched_fusion, arranging), sched_has_arranged,
		       "each group has vectors, or has none wherever its operands stand, or a copy costs more than it saves"},
    [SCHED_WORDS] = {offsetof(struct sched_fusion, words), sched_has_words_in_place,
		     "no product alone reads words of bytes that are neighbours in memory, or storing them lets vectors run there"},
};
