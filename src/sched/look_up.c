/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds states of leaves that are rows of tables, such as W[word]: their readers can read them there, and
 * no kernel copies them. */
#include "sched/plan.h"

#include <string.h>

/* Whether an assign moves each dimension of what it reads, but for the first, to itself. */
static bool keeps_dimensions(const struct sub_program *p, const struct sub_value *v,
			     const struct sub_value *from)
{
	bool keeps = !v->fills && v->vars == from->vars;
	for (int i = 1; keeps && i < v->vars; i++) {
		const struct sub_map *m = &v->map[i];
		keeps = m->function == SUB_AFFINE && m->var == v->var[i] && m->scale == 1 && m->offset == 0 &&
			!m->scale2 && p->vars.at[v->var[i]].extent == p->vars.at[from->var[i]].extent;
	}
	return keeps;
}

/* Whether a value of nodes is the row of a parameter that a token of the node selects. */
static bool is_row_of_table(const struct sub_program *p, sub_ref r, struct sched_look_up *up)
{
	const struct sub_value *v = sub_at(p, r);
	const struct sub_value *from = v->op == SUB_ASSIGN ? sub_at(p, v->arg[0].value) : NULL;
	if (!from || from->op != SUB_PARAM || from->vars < 2 || !keeps_dimensions(p, v, from))
		return false;
	const struct sub_map *m = &v->map[0];
	*up = (struct sched_look_up){from->which, m->which};
	return m->function == SUB_TOKEN && m->var == v->var[0] && !p->inputs.at[m->which].on_edge;
}

/* The store of the only body of leaves that has the state; NULL = several have it, or nodes that may be
 * leaves. */
static const struct sub_store *find_leaf_store(const struct sub_program *p, int state)
{
	const struct sub_store *found = NULL;
	for (size_t b = 0; b < p->bodies.n; b++) {
		const struct sub_body *body = &p->bodies.at[b];
		for (size_t i = 0; i < body->stores.n; i++) {
			const struct sub_store *s = &body->stores.at[i];
			if (s->to != SUB_TO_STATE || s->which != state || body->domain == SUB_INNER)
				continue;
			if (found || body->domain != SUB_LEAF)
				return NULL;
			found = s;
		}
	}
	return found;
}

bool sched_looks_up(const struct sched_plan *plan, int state, struct sched_look_up *up)
{
	const struct sub_program *p = plan->p;
	const struct sub_tensor *t = &p->states.at[state];
	const struct sub_store *s = t->derived ? NULL : find_leaf_store(p, state);
	return s && is_row_of_table(p, s->value.value, up) && p->params.at[up->param].dtype == t->dtype;
}

static bool is_same_order(const struct sched_order *a, const struct sched_order *b)
{
	return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

const char *sched_copies_leaves(const struct sched *s, const struct sched_plan *plan, int state)
{
	const struct sched_state *st = &s->states.at[state];
	struct sched_look_up up;
	if (!sched_looks_up(plan, state, &up))
		return "its leaves are not rows of one table of its type, selected by a token of theirs";
	if (st->layout != IMAGE_BY_NODE)
		return "its rows are by parent";
	if (!is_same_order(&st->order, &s->tables.at[up.param]))
		return "the dimensions of its table have another order";
	return s->specialize_leaf ? NULL : "leaves have no kernels of their own";
}

bool sched_reads_table(const struct sched *s, const struct sched_plan *plan, int state)
{
	return s->states.at[state].in_table && !sched_copies_leaves(s, plan, state);
}

/* Whether a value is only stored to states that are read in tables. */
static bool is_in_tables(const struct sched *s, const struct sched_plan *plan, const struct sub_body *b,
			 sub_ref r)
{
	int stores = 0;
	for (size_t i = 0; i < b->stores.n; i++) {
		const struct sub_store *to = &b->stores.at[i];
		if (to->value.value.i != r.i)
			continue;
		if (to->to != SUB_TO_STATE || !sched_reads_table(s, plan, to->which))
			return false;
		stores++;
	}
	return stores > 0;
}

bool sched_only_looks_up(const struct sched *s, const struct sched_plan *plan, int group)
{
	const struct sched_group *g = &plan->groups.at[group];
	const struct sub_body *b = &plan->p->bodies.at[g->body];
	bool only = b->domain == SUB_LEAF;
	for (size_t t = 0; only && t < g->targets.n; t++)
		only = is_in_tables(s, plan, b, g->targets.at[t]);
	return only;
}
