/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values are computed with the one that alone uses them.
 *
 * A chain of additions and multiply-adds is one accumulator that grows: each step goes on where the one before it ended.
 * So a planner sees the whole of it as one operator, and stores none of its steps. */
#include "sched/plan.h"

#include <stdlib.h>

bool sched_has_lead(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
}

bool sched_has_rows(const struct sub_program *p, sub_ref r)
{
	return sched_has_lead(p, r) && !sub_is_ragged(p, sub_at(p, r)->var[0]);
}

struct sched_fact *sched_fact(const struct sched_values *values, sub_ref r)
{
	int low = 0, high = values->n - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (values->value[middle].i < r.i)
			low = middle + 1;
		else
			high = middle;
	}
	return &values->fact[low];
}

bool sched_is_index(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	const struct sched_fact *f = sched_fact(values, r);
	return sub_class_of(sub_at(p, r)->op) == SUB_MOVE && f->uses == 1 && !f->result;
}

void sched_mark_dear(const struct sub_program *p, struct sched_values *values)
{
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		bool dear = sub_traits_of(v->op)->price == SUB_DEAR;
		for (int a = 0; a < v->args; a++) {
			const struct sched_fact *arg = sched_fact(values, v->arg[a].value);
			dear |= arg->dear && !arg->stored;
		}
		values->fact[i].dear = dear;
	}
}

int64_t sched_loop_extent(const struct sub_program *p, int var)
{
	const struct sub_var *v = &p->vars.at[var];
	return v->set == SUB_DIM ? v->extent : sub_is_ragged(p, var) ? SCHED_RAGGED : 0;
}

static double elements_of(const struct sub_program *p, const int *var, int vars)
{
	double n = 1;
	for (int i = 0; i < vars; i++) {
		int64_t extent = sched_loop_extent(p, var[i]);
		n *= extent ? extent : 1;
	}
	return n;
}

double sched_row_elements(const struct sub_program *p, const struct sub_value *v)
{
	return elements_of(p, v->var, v->vars);
}

double sched_reduced_elements(const struct sub_program *p, const struct sub_value *v)
{
	int var[SUB_MAX_VARS] = {0};
	return elements_of(p, var, sub_reduced_vars(p, v, var));
}

/* An accumulator that the next step may take over. */
static bool is_step(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ADD || v->op == SUB_FMA ||
	       (v->op == SUB_ACCUMULATE && p->vars.at[v->reduced].set == SUB_DIM);
}

/* Whether an argument is what a step goes on from. */
static bool goes_on_from(const struct sub_value *v, int a)
{
	return v->op == SUB_ADD || (v->op == SUB_FMA && a == 2) || (v->op == SUB_ACCUMULATE && a == 0);
}

/* What is repeated along a variable would be computed for each turn of it. */
static bool same_variables(const struct sub_value *v, const struct sub_use *u)
{
	return v->vars == u->vars && memcmp(v->var, u->var, v->vars * sizeof *v->var) == 0;
}

static void find_steps(struct sched_values *values, const struct sub_program *p, int at)
{
	const struct sub_value *v = sub_at(p, values->value[at]);
	sub_ref whole = values->fact[at].part_of.i ? values->fact[at].part_of : values->value[at];
	for (int a = 0; is_step(p, v) && a < v->args; a++) {
		struct sched_fact *step = sched_fact(values, v->arg[a].value);
		if (goes_on_from(v, a) && step->uses == 1 && is_step(p, sub_at(p, v->arg[a].value)) &&
		    same_variables(v, &v->arg[a]))
			step->part_of = whole;
	}
}

static void count_uses(struct sched_values *values, const struct sub_program *p, const struct sub_body *b)
{
	for (size_t i = 0; i < b->stores.n; i++) {
		struct sched_fact *f = sched_fact(values, b->stores.at[i].value.value);
		f->uses++;
		f->result = true;
	}
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		for (int a = 0; a < v->args; a++)
			sched_fact(values, v->arg[a].value)->uses++;
	}
}

/* --- the values of a body --- */

struct list {
	VEC(sub_ref) all;
};

static void add_value(struct list *l, struct arena *a, bool *seen, sub_ref r)
{
	if (!seen[r.i])
		vec_push(a, &l->all, r);
	seen[r.i] = true;
}

static int compare_values(const void *a, const void *b)
{
	const sub_ref *x = a, *y = b;
	return x->i < y->i ? -1 : x->i > y->i;
}

static void find_live(struct list *l, struct arena *a, const struct sub_program *p, const struct sub_body *b,
		      bool *seen)
{
	for (size_t i = 0; i < b->stores.n; i++)
		add_value(l, a, seen, b->stores.at[i].value.value);
	for (size_t i = 0; i < l->all.n; i++) {
		const struct sub_value *v = sub_at(p, l->all.at[i]);
		for (int k = 0; k < v->args; k++)
			add_value(l, a, seen, v->arg[k].value);
	}
	for (size_t i = 0; i < l->all.n; i++)
		seen[l->all.at[i].i] = false;
	if (l->all.n)
		qsort(l->all.at, l->all.n, sizeof *l->all.at, compare_values);
}

void sched_find_values(struct sched_values *values, struct arena *a, const struct sub_program *p, int body,
		       bool *seen)
{
	struct list live = {0};
	find_live(&live, a, p, &p->bodies.at[body], seen);
	*values = (struct sched_values){
	    .n = live.all.n, .value = live.all.at, .fact = ARENA_ARRAY(a, struct sched_fact, live.all.n)};
	count_uses(values, p, &p->bodies.at[body]);
	for (int i = values->n; i-- > 0;)
		find_steps(values, p, i);
}

sub_ref sched_whole(const struct sched_values *values, sub_ref r)
{
	sub_ref whole = sched_fact(values, r)->part_of;
	return whole.i ? whole : r;
}
