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

/* The values that a group computes, found from its targets. */
struct needs {
	const struct sched_plan *plan;
	struct arena *arena;
	int group, body;
	bool *needed; /* by value of the program */
	VEC(sub_ref) found;
};

/* Adds a value unless it is there, or another group has stored it. */
static void add_need(struct needs *n, sub_ref r)
{
	int of = sched_group_of(n->plan, n->body, r);
	if (n->needed[r.i] || (of >= 0 && of != n->group))
		return;
	n->needed[r.i] = true;
	vec_push(n->arena, &n->found, r);
}

static bool computes_number(const struct sub_value *v)
{
	return sub_class_of(v->op) != SUB_SOURCE && sub_class_of(v->op) != SUB_MOVE;
}

/* Counts the operations of a group, without those of values that other groups have stored, and finds whether it computes
 * anything. */
static void count_group(struct needs *n, struct sched_group *g, int group)
{
	const struct sched_plan *plan = n->plan;
	g->operations = 0;
	g->moves = true;
	n->group = group;
	n->body = g->body;
	n->found.n = 0;
	for (size_t t = 0; t < g->targets.n; t++) {
		add_need(n, g->targets.at[t]);
		g->operations += sub_row_elements(plan->p, sub_at(plan->p, g->targets.at[t]));
	}
	for (size_t i = 0; i < n->found.n; i++) {
		const struct sub_value *v = sub_at(plan->p, n->found.at[i]);
		g->operations += operations_of(plan->p, n->found.at[i]);
		g->moves &= !computes_number(v);
		for (int a = 0; a < v->args; a++)
			add_need(n, v->arg[a].value);
	}
	for (size_t i = 0; i < n->found.n; i++)
		n->needed[n->found.at[i].i] = false;
}

void sched_count_operations(struct sched_plan *plan, struct arena *a, bool *needed)
{
	struct needs n = {.plan = plan, .arena = a, .needed = needed};
	for (size_t g = 0; g < plan->groups.n; g++)
		count_group(&n, &plan->groups.at[g], (int)g);
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
