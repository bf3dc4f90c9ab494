/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Estimates the work of a row, from which the runtime decides whether to divide rows among threads. */
#include "sched/plan.h"

#include <limits.h>

/* A value without rows counts as no work: what depends on weights alone is computed at binding. */
static bool has_row(const struct sub_program *p, const struct sub_value *v)
{
	return v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
}

static double operations_of(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	double elements = sub_reduces(v->op) ? sub_reduced_elements(p, v) : sub_row_elements(p, v);
	return has_row(p, v) ? sub_traits_of(v->op)->weight * elements : 0;
}

double sched_operations(const struct sub_program *p, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	double n = 0;
	sub_mark_live(p, b, live);
	for (size_t i = 0; i < b->stores.n; i++)
		n += sub_row_elements(p, sub_at(p, b->stores.at[i].value.value));
	for (uint32_t i = 1; i < p->values.n; i++)
		n += live[i] ? operations_of(p, (sub_ref){i}) : 0;
	return n;
}

/* The operations of a group, without those of values that other groups have stored. */
static double group_operations(const struct sched_plan *plan, int group, bool *needed)
{
	const struct sched_group *g = &plan->groups.at[group];
	const struct sched_values *values = &plan->values[g->body];
	double n = 0;
	for (size_t t = 0; t < g->targets.n; t++) {
		needed[g->targets.at[t].i] = true;
		n += sub_row_elements(plan->p, sub_at(plan->p, g->targets.at[t]));
	}
	for (int i = values->n; i-- > 0;) {
		const struct sub_value *v = sub_at(plan->p, values->value[i]);
		int of = sched_group_of(plan, g->body, values->value[i]);
		if (!needed[values->value[i].i] || (of >= 0 && of != group))
			continue;
		n += operations_of(plan->p, values->value[i]);
		for (int a = 0; a < v->args; a++)
			needed[v->arg[a].value.i] = true;
	}
	for (int i = 0; i < values->n; i++)
		needed[values->value[i].i] = false;
	return n;
}

void sched_count_operations(struct sched_plan *plan, bool *needed)
{
	for (size_t g = 0; g < plan->groups.n; g++)
		plan->groups.at[g].operations = group_operations(plan, g, needed);
}

struct sched_work sched_work_of(const struct sched *s, const struct sched_plan *plan, int group)
{
	const struct sched_tile *t = &s->tiles.at[group];
	double operations = plan->groups.at[group].operations;
	struct sched_work w = {1, 1, operations < INT_MAX ? operations : INT_MAX};
	for (int i = 0; t->across == SCHED_NODES && i < t->sizes; i++) {
		w.rows = t->nodes[i] > w.rows ? t->nodes[i] : w.rows;
		w.tiles |= 1 << (t->nodes[i] - 1);
	}
	return w;
}
