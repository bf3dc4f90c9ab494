/* In which order the rows of a state stand.
 *
 * By node, the row of a node is its number: readers at children fetch it through an index array.  By parent, rows stand in
 * the order in which parents read, so that the children of a node lie side by side and a reader computes where; it is the
 * writer who fetches the place of its row.  A node then has one place, and so must have one parent. */
#include "sched/sched.h"

const char *sched_not_by_parent(const struct sched_plan *plan)
{
	return plan->p->tree ? NULL : "a node of this structure may have several parents, and its row only one place";
}

void sched_choose_layout(struct sched *s, const struct sched_plan *plan)
{
	const struct sub_program *p = plan->p;
	for (size_t i = 0; i < p->states.n; i++)
		vec_push(p->arena, &s->states,
			 (struct sched_state){IMAGE_BY_NODE, sched_row_major(p->states.at[i].rank)});
}
