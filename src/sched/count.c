/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Totals of a plan. */
#include "sched/plan.h"

struct sched_counts sched_count(const struct sched_plan *plan, int body)
{
	struct sched_counts c = {0};
	int last = -1;
	for (size_t g = 0; g < plan->groups.n; g++) {
		const struct sched_group *group = &plan->groups.at[g];
		if (group->body != body)
			continue;
		c.reductions += group->reductions;
		c.local += group->local;
		if (group->local)
			continue;
		c.groups++;
		c.supersteps += group->superstep != last;
		last = group->superstep;
		for (size_t t = 0; t < group->targets.n; t++)
			c.stored += !sched_fact(&plan->values[body], group->targets.at[t])->result;
	}
	return c;
}
