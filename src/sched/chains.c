/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Values of a body, and the chains among them.
 *
 * A chain of additions and multiply-adds is one accumulator: each step continues where the one before it
 * ended.  A planner sees a chain as one operator and stores none of its steps. */
#include "sched/plan.h"

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
	return sub_class_of(sub_at(p, r)->op) == SUB_MOVE && f->uses == 1 && !f->result && !f->copied;
}

void sched_mark_expensive(const struct sub_program *p, struct sched_values *values)
{
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		bool expensive = sub_traits_of(v->op)->price == SUB_EXPENSIVE && !values->fact[i].in_place;
		for (int a = 0; a < v->args; a++) {
			const struct sched_fact *arg = sched_fact(values, v->arg[a].value);
			expensive |= arg->expensive && !arg->stored;
		}
		values->fact[i].expensive = expensive;
	}
}

/* Whether a value can be a step of a chain: an accumulator that the next step continues. */
static bool is_step(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ADD || v->op == SUB_FMA ||
	       (sub_class_of(v->op) == SUB_CONTRACTION && !sub_reduces_ragged(p, v));
}

/* Whether a step continues argument `a`. */
static bool goes_on_from(const struct sub_value *v, int a)
{
	return v->op == SUB_ADD || (v->op == SUB_FMA && a == 2) ||
	       (sub_class_of(v->op) == SUB_CONTRACTION && a == 0);
}

/* A chain goes on over the same variables only: an argument that is repeated along another variable would
 * be computed in each iteration over it. */
static bool same_variables(const struct sub_value *v, const struct sub_use *u)
{
	return v->vars == u->vars && memcmp(v->var, u->var, v->vars * sizeof *v->var) == 0;
}

static void find_steps(struct sched_values *values, const struct sub_program *p, int at)
{
	const struct sub_value *v = sub_at(p, values->value[at]);
	sub_ref end = values->fact[at].chain_end.i ? values->fact[at].chain_end : values->value[at];
	for (int a = 0; is_step(p, v) && a < v->args; a++) {
		struct sched_fact *step = sched_fact(values, v->arg[a].value);
		if (goes_on_from(v, a) && step->uses == 1 && is_step(p, sub_at(p, v->arg[a].value)) &&
		    same_variables(v, &v->arg[a]))
			step->chain_end = end;
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

void sched_find_values(struct sched_values *values, struct arena *a, const struct sub_program *p, int body,
		       bool *seen)
{
	struct sub_values live = sub_find_values(a, p, &p->bodies.at[body], seen);
	*values = (struct sched_values){
	    .n = live.n, .value = live.value, .fact = ARENA_ARRAY(a, struct sched_fact, live.n)};
	count_uses(values, p, &p->bodies.at[body]);
	for (int i = values->n; i-- > 0;)
		find_steps(values, p, i);
}

sub_ref sched_chain_end(const struct sched_values *values, sub_ref r)
{
	sub_ref end = sched_fact(values, r)->chain_end;
	return end.i ? end : r;
}
