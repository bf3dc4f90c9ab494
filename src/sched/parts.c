/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values are computed as part of another one.
 *
 * Nested additions are one sum of terms, a product that a sum adds up is half of a fused multiply-add, and
 * one reduction goes on where its neighbour in the sum ended.  Whether that is so decides about rounding;
 * hence it is decided here, by the values of the body alone, and no plan stores a part: results have the same
 * bits whatever is stored. */
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

static bool adds_up(enum sub_op op)
{
	return sub_class_of(op) == SUB_REDUCE && sub_traits_of(op)->combine == SUB_ADD;
}

bool sched_is_contraction(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return adds_up(v->op) && sub_at(p, v->arg[0].value)->op == SUB_MULTIPLY;
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

double sched_row_elements(const struct sub_program *p, const struct sub_value *v)
{
	double n = 1;
	for (int i = 0; i < v->vars; i++) {
		int64_t extent = sched_loop_extent(p, v->var[i]);
		n *= extent ? extent : 1;
	}
	return n;
}

static bool can_be_term(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->dtype == DTYPE_F32 && (v->op == SUB_ADD || v->op == SUB_MULTIPLY ||
	       (v->op == SUB_SUM && p->vars.at[v->reduced].set == SUB_DIM));
}

/* Terms have all variables of their sum: what is repeated along one would be computed for each turn of it. */
static bool same_variables(const struct sub_value *v, const struct sub_use *u)
{
	return v->vars == u->vars && memcmp(v->var, u->var, v->vars * sizeof *v->var) == 0;
}

static void find_terms(struct sched_values *values, const struct sub_program *p, int at)
{
	const struct sub_value *v = sub_at(p, values->value[at]);
	sub_ref whole = values->fact[at].part_of.i ? values->fact[at].part_of : values->value[at];
	for (int a = 0; v->op == SUB_ADD && a < 2; a++) {
		struct sched_fact *term = sched_fact(values, v->arg[a].value);
		if (term->uses == 1 && can_be_term(p, v->arg[a].value) && same_variables(v, &v->arg[a]))
			term->part_of = whole;
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

/* Products that sums alone want. */
static void find_products(struct sched_values *values, const struct sub_program *p)
{
	for (int i = 0; i < values->n; i++)
		values->fact[i].product =
		    sub_at(p, values->value[i])->op == SUB_MULTIPLY &&
		    sub_at(p, values->value[i])->dtype == DTYPE_F32 && !values->fact[i].result;
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		for (int a = 0; !adds_up(v->op) && a < v->args; a++)
			sched_fact(values, v->arg[a].value)->product = false;
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
	find_products(values, p);
	for (int i = values->n; i-- > 0;)
		find_terms(values, p, i);
}

sub_ref sched_whole(const struct sched_values *values, sub_ref r)
{
	sub_ref whole = sched_fact(values, r)->part_of;
	return whole.i ? whole : r;
}
