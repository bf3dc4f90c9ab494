/* In which order the rows of a state stand.
 *
 * By node, the row of a node is its number: readers at children fetch it through an index array.  By parent,
 * rows stand in the order in which parents read, so that the children of a node lie side by side and a reader
 * computes where; it is the writer who fetches the place of its row.  A node then has one place, and so must
 * have one parent. */
#include "sched/sched.h"

const char *sched_not_by_parent(const struct sched_plan *plan)
{
	return plan->p->tree
		   ? NULL
		   : "a node of this structure may have several parents, and its row only one place";
}

/* The state whose children are read in one product after the other, slot after slot. */
static int walked(const struct sub_program *p, const bool *live, uint32_t sum)
{
	struct sched_child_product c;
	if (!live[sum] || !sched_child_product(p, (sub_ref){sum}, &c))
		return -1;
	for (uint32_t other = 1; c.slots == 1 && other < p->values.n; other++)
		if (live[other] && sched_next_child(p, (sub_ref){sum}, (sub_ref){other}, 1))
			return c.state;
	return c.slots > 1 ? c.state : -1;
}

/* Whether the sums of a group do not fit the registers, so that its reductions take several loops, and the
 * sums rest in memory between them. */
static bool parks_sums(const struct sched *s, const struct sched_plan *plan, int body)
{
	for (size_t g = 0; g < plan->groups.n; g++) {
		const struct sched_tile *t = &s->tiles.at[g];
		if (plan->groups.at[g].body == body &&
		    t->nodes[0] * t->columns * plan->groups.at[g].gates > s->accumulators)
			return true;
	}
	return false;
}

static void choose_in_body(struct sched *s, const struct sched_plan *plan, int body)
{
	const struct sub_program *p = plan->p;
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	sub_mark_live(p, &p->bodies.at[body], live);
	for (uint32_t v = 1; v < p->values.n; v++) {
		int state = walked(p, live, v);
		if (state >= 0)
			s->states.at[state].layout = IMAGE_BY_PARENT;
	}
}

/* What a fetched place costs a writer is about what a fetched child costs a reader.  By parent pays where
 * products walk along the children and sums are parked, since one walk parks them once and not for each
 * child: measured, 1 to 4 % of a TreeLSTM's time; without parking it made no difference. */
void sched_choose_layout(struct sched *s, const struct sched_plan *plan)
{
	const struct sub_program *p = plan->p;
	for (size_t b = 0; p->tree && b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == SUB_INNER && parks_sums(s, plan, b))
			choose_in_body(s, plan, b);
}
