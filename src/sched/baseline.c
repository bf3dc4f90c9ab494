/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The planners that `grow` is compared with.
 *
 *     greedy  at most one reduction per group, which ends the group because its result is small; elementwise
 *             operators are computed in the groups that use them (the patent on a reduced operator set)
 *     none    every operator is a group, except for data movement: shows what fusion saves */
#include "sched/operator_graph.h"

static void store_operator(struct sched_planner *pl, int body, const struct sched_operator *op)
{
	struct sched_fact *f = sched_fact(&pl->values[body], op->value);
	if (!sub_has_rows(pl->p, op->value))
		return;
	f->stored = true;
	f->block = sched_new_block(pl, (struct sched_block){.reductions = op->accumulators, .pressure = 1});
}

void sched_greedy(struct sched_planner *pl, int body)
{
	struct sched_graph g;
	sched_make_graph(&g, pl->arena, pl->p, &pl->values[body]);
	for (size_t i = 0; i < g.ops.n; i++)
		if (g.ops.at[i].accumulators)
			store_operator(pl, body, &g.ops.at[i]);
}

void sched_store_all(struct sched_planner *pl, int body)
{
	struct sched_graph g;
	sched_make_graph(&g, pl->arena, pl->p, &pl->values[body]);
	for (size_t i = 0; i < g.ops.n; i++)
		if (!g.ops.at[i].moves)
			store_operator(pl, body, &g.ops.at[i]);
}
