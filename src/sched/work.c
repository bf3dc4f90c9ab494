/* How much there is to compute in a row: what the run leg decides by whether to share it out. */
#include "sched/plan.h"

#include <limits.h>

/* What belongs to no row is numbers alone: weights alone make folded parameters. */
static bool has_row(const struct sub_program *p, const struct sub_value *v)
{
	return v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
}

double sched_operations(const struct sub_program *p, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	double n = 0;
	sub_mark_live(p, b, live);
	for (size_t i = 0; i < b->stores.n; i++)
		n += sched_row_elements(p, sub_at(p, b->stores.at[i].value.value));
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool reduces = sub_class_of(v->op) == SUB_REDUCE;
		if (live[i] && has_row(p, v))
			n += sub_traits_of(v->op)->weight *
			     sched_row_elements(p, reduces ? sub_at(p, v->arg[0].value) : v);
	}
	return n;
}

struct sched_work sched_work_of(const struct sched *s, const struct sched_plan *plan, int body)
{
	double operations = sched_operations(plan->p, &plan->p->bodies.at[body]);
	struct sched_work w = {1, operations < INT_MAX ? operations : INT_MAX};
	for (size_t g = 0; g < plan->groups.n; g++)
		if (plan->groups.at[g].body == body && s->tiles.at[g].nodes[0] > w.rows)
			w.rows = s->tiles.at[g].nodes[0];
	return w;
}
