/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What depends on one child alone, and what of it leaves the parent. */
#include "sched/refactor.h"

/* --- what depends on one child --- */

const struct sub_store *refactor_store(const struct sub_body *b, int state)
{
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].to == SUB_TO_STATE && b->stores.at[i].which == state)
			return &b->stores.at[i];
	return NULL;
}

/* Each node has a value of its own for it. */
static bool is_kept(const struct refactoring *f, const struct sub_body *b, int state)
{
	const struct sub_store *s = refactor_store(b, state);
	const struct sub_value *v = s ? sub_at(f->from, s->value.value) : NULL;
	return v && v->vars == f->from->states.at[state].rank + 1 && v->var[0] == f->from->node;
}

bool refactor_is_child(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && sub_at(p, v->arg[0].value)->op == SUB_STATE;
}

static bool is_kept_by_all(const struct refactoring *f, int state)
{
	for (size_t i = 0; i < f->leaves.all.n; i++)
		if (!is_kept(f, f->leaves.all.at[i], state))
			return false;
	for (size_t i = 0; i < f->readers.n; i++)
		if (!is_kept(f, f->readers.at[i].body, state))
			return false;
	return true;
}

static int reach_of_child(const struct refactoring *f, const struct sub_value *v)
{
	int state = sub_at(f->from, v->arg[0].value)->which;
	if (!is_kept_by_all(f, state))
		return MORE;
	const struct sub_map *m = &v->map[0];
	return m->function == SUB_EDGE_CHILD				    ? OF_EDGE
	       : m->function == SUB_CHILD && m->which < REFACTOR_MOST_SLOTS ? OF_SLOT + m->which
									    : MORE;
}

/* A row of the value is made of the same row of its argument. */
static bool keeps_rows(const struct refactoring *f, const struct sub_value *v)
{
	int leads = sched_leads(f->from, v->arg[0].value);
	for (int i = 0; v->op == SUB_ASSIGN && i < leads; i++)
		if (v->map[i].function != SUB_AFFINE || v->map[i].var != v->var[i])
			return false;
	return true;
}

static int reach_of(const struct refactoring *f, sub_ref r)
{
	const struct sub_value *v = sub_at(f->from, r);
	int leads = sched_leads(f->from, r), reach = leads ? MORE : NOTHING;
	if (refactor_is_child(f->from, v))
		return reach_of_child(f, v);
	for (int a = 0, first = 1; a < v->args; a++) {
		int of = f->reach[v->arg[a].value.i];
		if (of == NOTHING)
			continue;
		reach = first || of == reach ? of : MORE;
		first = 0;
	}
	bool same = reach == OF_EDGE ? leads == 2 : reach == NOTHING ? !leads : leads == 1;
	return same && keeps_rows(f, v) ? reach : MORE;
}

void refactor_find_reach(struct refactoring *f)
{
	f->reach = ARENA_ARRAY(f->arena, int, f->from->values.n);
	for (uint32_t i = 1; i < f->from->values.n; i++)
		f->reach[i] = reach_of(f, (sub_ref){i});
}

/* --- who leaves --- */

/* Slot by slot it pays where all children have it, and then to say it once. */
static bool pays(const struct refactoring *f, double work, sub_ref r, int reach)
{
	if (f->how == SCHED_MOVE_ALL)
		return work > 0;
	return work > 0 && work >= SCHED_LEAST_WORK * sched_row_elements(f->from, sub_at(f->from, r)) &&
	       !f->barred[r.i] && (reach == OF_EDGE || f->from->children > 1);
}

static int add_leaver(struct refactoring *f, sub_ref value, sub_ref at, int reach)
{
	vec_push(f->arena, &f->in->leavers, (struct leaver){.value = value, .at = at, .reach = reach});
	return f->in->leavers.n;
}

static bool fits(const struct refactoring *f, sub_ref r)
{
	return sub_at(f->from, r)->vars - sched_leads(f->from, r) <= TENSOR_MAX_RANK;
}

static bool stands_alone(const struct refactoring *f, sub_ref r)
{
	const struct sched_fact *fact = sched_fact(&f->in->values, r);
	return sub_class_of(refactor_value(f, r)->op) != SUB_MOVE && !fact->part_of.i && !fact->product &&
	       fits(f, r);
}

/* A value of one child is wanted by one of more: it leaves, or what it is computed from. */
static void leave(struct refactoring *f, sub_ref r)
{
	if (f->in->seen[r.i] || f->reach[r.i] <= NOTHING)
		return;
	f->in->seen[r.i] = true;
	if (stands_alone(f, r) && pays(f, f->work[r.i], r, f->reach[r.i])) {
		f->in->leaver_of[r.i] = add_leaver(f, r, r, f->reach[r.i]);
		return;
	}
	for (int a = 0; a < refactor_value(f, r)->args; a++)
		leave(f, refactor_value(f, r)->arg[a].value);
}

static bool is_sum(const struct refactoring *f, sub_ref r)
{
	return refactor_value(f, r)->op == SUB_ADD && !sched_fact(&f->in->values, r)->part_of.i;
}

/* Marks the chains of a sum and the parameter that they go on from; returns of which child all of them are,
 * else MORE. */
static int mark_chains(const struct refactoring *f, struct sched_terms *t, double *work)
{
	int reach = NOTHING;
	size_t start = 0;
	for (size_t i = 0; i < t->all.n; i++) {
		sub_ref r = t->all.at[i].value;
		t->ahead[i] = refactor_value(f, r)->op == SUB_SUM && sched_fact(&f->in->values, r)->part_of.i;
		if (t->ahead[i]) {
			reach = reach == NOTHING || reach == f->reach[r.i] ? f->reach[r.i] : MORE;
			*work += f->work[r.i];
		}
	}
	while (start < t->all.n && refactor_value(f, t->all.at[start].value)->op != SUB_PARAM)
		start++;
	if (reach != NOTHING && start < t->all.n)
		t->ahead[start] = true;
	return reach == NOTHING ? MORE : reach;
}

static void leave_sum(struct refactoring *f, sub_ref sum)
{
	struct sched_terms t = sched_terms_of(f->arena, f->from, &f->in->values, sum);
	double work = 0;
	int reach = mark_chains(f, &t, &work);
	if (reach > NOTHING && pays(f, work, sum, reach) && fits(f, sum)) {
		t.leaver = sched_first_part(f->to, &t, false);
		f->changed |= t.leaver.i < f->from->values.n && f->in->leaver_of[t.leaver.i];
		add_leaver(f, t.leaver, sum, reach);
		vec_push(f->arena, &f->in->sums, t);
	}
	for (size_t i = 0; i < t.all.n; i++)
		if (!t.leaver.i || !t.ahead[i])
			leave(f, t.all.at[i].value);
}

/* Terms of sums are looked at with their sum. */
static void leave_arguments(struct refactoring *f, const struct sub_value *v)
{
	for (int a = 0; a < v->args; a++)
		if (!sched_fact(&f->in->values, v->arg[a].value)->part_of.i)
			leave(f, v->arg[a].value);
}

void refactor_find_leavers(struct refactoring *f)
{
	size_t n = f->from->values.n;
	f->in->seen = ARENA_ARRAY(f->arena, bool, n);
	f->in->leaver_of = ARENA_ARRAY(f->arena, int, n);
	f->in->leavers.n = f->in->sums.n = 0;
	for (int i = 0; i < f->in->values.n; i++) {
		sub_ref r = f->in->values.value[i];
		struct sub_value v = *refactor_value(f, r);
		if (f->reach[r.i] == MORE && is_sum(f, r))
			leave_sum(f, r);
		else if (f->reach[r.i] == MORE && v.op != SUB_ADD)
			leave_arguments(f, &v);
	}
	for (size_t i = 0; i < f->in->body->stores.n; i++)
		leave(f, f->in->body->stores.at[i].value.value);
}
