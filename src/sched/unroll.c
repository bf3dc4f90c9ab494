/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the recursion runs at once: levels of one meeting, cases in one batch. */
#include "sched/plan.h"

const char *sched_not_unrolled(const struct sched_plan *plan)
{
	return plan->p->tree ? NULL
			     : "a node of this structure may have several parents, and so be part of several "
			       "subtrees, which must not wait for each other";
}

bool sched_has_inner_cases(const struct sub_program *p)
{
	int inner = 0;
	for (size_t c = 0; c < p->cases.n; c++)
		inner += p->cases.at[c].inner;
	return inner > 1;
}

void sched_choose_unroll(struct sched *s, const struct sched_plan *plan)
{
	s->unroll = 1;
	s->batch_order = sched_has_inner_cases(plan->p) ? IMAGE_BATCH_LEAST : IMAGE_BATCH_DEPTH;
}
