/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What makes another program of one shares: hoist.c and refactor.c move values to other bodies, and no bit
 * may change. */
#include "sched/plan.h"

void sched_copy_program(struct sub_program *to, const struct sub_program *from)
{
	sub_clear(to);
	sub_copy_declarations(to, from);
	for (uint32_t i = 1; i < from->values.n; i++)
		sub_add(to, from->values.at[i], NULL);
}

void sched_keep_program(struct sub_program *to, const struct sub_program *from)
{
	sched_copy_program(to, from);
	for (size_t i = 0; i < from->bodies.n; i++)
		vec_push(to->arena, &to->bodies, from->bodies.at[i]);
}

/* What a traversal makes is needed by the next alone, so two programs take turns. */
void sched_move_each(struct sub_program *to, const struct sub_program *from,
		     void (*move)(struct sub_program *, const struct sub_program *, int, void *),
		     void *context)
{
	struct sub_program *between = ARENA_ARRAY(to->arena, struct sub_program, 2);
	sub_init(&between[0], to->arena, from->name);
	sub_init(&between[1], to->arena, from->name);
	for (size_t t = 0; t < from->traversals.n; t++) {
		struct sub_program *next = t + 1 == from->traversals.n ? to : &between[t % 2];
		sub_clear(next);
		move(next, from, t, context);
		from = next;
	}
}

struct sched_bodies sched_find_bodies(const struct sub_program *p, int traversal, enum sub_domain domain)
{
	struct sched_bodies found = {.all = {0}};
	for (size_t i = 0; i < p->bodies.n; i++)
		if (p->bodies.at[i].domain == domain && p->bodies.at[i].traversal == traversal)
			vec_push(p->arena, &found.all, &p->bodies.at[i]);
	return found;
}

bool sched_same_part(const struct sched_fact *a, const struct sched_fact *b)
{
	return !a->part_of.i == !b->part_of.i && a->product == b->product;
}

/* --- what it is worth --- */

/* A product of rows with what all rows share: at each level it is read again. */
static bool reads_weights(const struct sub_program *p, sub_ref r)
{
	if (!sched_has_lead(p, r) || !sched_is_contraction(p, r))
		return false;
	const struct sub_value *product = sub_at(p, sub_at(p, r)->arg[0].value);
	return !sched_has_lead(p, product->arg[0].value) || !sched_has_lead(p, product->arg[1].value);
}

const double *sched_weigh(struct arena *a, const struct sub_program *p)
{
	double *work = ARENA_ARRAY(a, double, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		for (int k = 0; k < v->args; k++)
			work[i] += work[v->arg[k].value.i];
		if (reads_weights(p, (sub_ref){i}))
			work[i] += sched_row_elements(p, sub_at(p, v->arg[0].value));
	}
	return work;
}

/* --- sums --- */

/* The terms of nested additions in the order of the text; `names` are those of the sum for the value's
 * variables. */
static void find_terms(struct arena *a, const struct sub_program *p, const struct sched_values *values,
		       sub_ref r, const int *names, struct sched_terms *terms)
{
	const struct sub_value *v = sub_at(p, r);
	for (int k = 0; k < 2; k++) {
		struct sub_use u = v->arg[k];
		for (int i = 0; i < u.vars; i++)
			for (int j = 0; j < v->vars; j++)
				if (v->var[j] == v->arg[k].var[i])
					u.var[i] = names[j];
		if (sub_at(p, u.value)->op == SUB_ADD && sched_fact(values, u.value)->part_of.i)
			find_terms(a, p, values, u.value, u.var, terms);
		else
			vec_push(a, &terms->all, u);
	}
}

struct sched_terms sched_terms_of(struct arena *a, const struct sub_program *p,
				  const struct sched_values *values, sub_ref sum)
{
	struct sched_terms t = {.sum = sum};
	find_terms(a, p, values, sum, sub_at(p, sum)->var, &t);
	t.ahead = ARENA_ARRAY(a, bool, t.all.n);
	return t;
}

static struct sub_value sum_of(struct sub_use a, struct sub_use b)
{
	return (struct sub_value){.op = SUB_ADD, .arg = {a, b}};
}

static struct sub_use named_as(const struct sub_program *p, sub_ref r, sub_ref sum)
{
	struct sub_use u = {.value = r, .vars = sub_at(p, sum)->vars};
	memcpy(u.var, sub_at(p, sum)->var, sizeof u.var);
	return u;
}

sub_ref sched_first_part(struct sub_program *to, const struct sched_terms *t, bool look)
{
	struct sub_use sum = {0};
	for (int param = 0; param < 2; param++)
		for (size_t i = 0; i < t->all.n; i++) {
			const struct sub_use *u = &t->all.at[i];
			if (!t->ahead[i] || (sub_at(to, u->value)->op == SUB_PARAM) != param)
				continue;
			struct sub_value both = sum_of(sum, *u);
			sub_ref r = !sum.value.i ? u->value
				    : look	 ? sub_find(to, both)
						 : sub_add(to, both, NULL);
			if (!r.i)
				return r;
			sum = named_as(to, r, t->sum);
		}
	return sum.value;
}

sub_ref sched_rest_of(struct sub_program *to, const struct sched_terms *t, sub_ref first, const sub_ref *now)
{
	struct sub_use sum = named_as(to, first, t->sum);
	for (size_t i = 0; i < t->all.n; i++) {
		struct sub_use u = t->all.at[i];
		if (t->ahead[i])
			continue;
		u.value = now[u.value.i];
		sum = named_as(to, sub_add(to, sum_of(sum, u), NULL), t->sum);
	}
	return sum.value;
}
