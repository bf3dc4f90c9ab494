/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Copies in another order of dimensions.
 *
 *     %1[n,k,l,t] = assign %0[n,t,64*k+l]
 *     %2[n,k,s,t] = accumulate_l 0, %3[n,k,s,l], %1[n,k,l,t]
 *
 * A sum reads what another group stores, but no dimension of the sum is the last in memory in all that it
 * reads, so that it would have no vectors.  Where the movement is stored by a group of its own, that gives
 * each element the place where a vector finds it.  This is tried for each dimension of such a group, the
 * largest first, and done where all groups together make fewer accesses, the copy's own counted. */
#include "sched/group.h"
#include "sched/order.h"

struct arrangement {
	int n;
	sub_ref copy[SUB_MAX_VARS];
};

/* Whether a value only moves elements of its own row, by known indices, and can be stored. */
static bool can_be_copied(const struct sched_plan *plan, int body, sub_ref r)
{
	const struct sub_value *v = sub_at(plan->p, r);
	const struct sched_fact *f = sched_fact(&plan->values[body], r);
	if (f->stored || f->result || f->dropped || sub_leading_dims(plan->p, r) != 1 || v->vars < 3)
		return false;
	for (int i = 0; i < v->arg[0].vars; i++)
		if (!sub_is_arithmetic(&v->map[i]))
			return false;
	return v->map[0].var == v->var[0];
}

static double count_elements(const struct sub_program *p, sub_ref r)
{
	double n = 1;
	for (int i = 1; i < sub_at(p, r)->vars; i++)
		n *= (double)p->vars.at[sub_at(p, r)->var[i]].extent;
	return n;
}

static bool add_copy(struct arrangement *a, sub_ref r)
{
	for (int i = 0; i < a->n; i++)
		if (a->copy[i].i == r.i)
			return true;
	if (a->n == SUB_MAX_VARS)
		return false;
	a->copy[a->n++] = r;
	return true;
}

/* Finds what must be copied so that a group has vectors along a dimension; false if something else hinders
 * them. */
static bool find_copies(const struct order *o, int group, int dim, struct arrangement *a)
{
	const struct order_group *g = &o->groups[group];
	int body = o->plan->groups.at[group].body;
	*a = (struct arrangement){0};
	for (size_t i = 0; i < g->all.n; i++)
		if (!order_suits(o, g, i, dim) &&
		    (!g->all.at[i].through.i || !can_be_copied(o->plan, body, g->all.at[i].through) ||
		     !add_copy(a, g->all.at[i].through)))
			return false;
	return a->n;
}

/* Makes what a group reads through copies accesses to these. */
static void read_copies(struct order *to, int group, const struct arrangement *a)
{
	struct order_group *g = &to->groups[group];
	int body = to->plan->groups.at[group].body;
	g->all.at = arena_copy(to->arena, g->all.at, g->all.n * sizeof *g->all.at);
	for (size_t i = 0; i < g->all.n; i++) {
		struct order_access *access = &g->all.at[i];
		for (int k = 0; k < a->n; k++)
			if (access->through.i == a->copy[k].i) {
				access->tensor = order_find_tensor(to, ORDER_INTERMEDIATE, body,
								   access->through, access->outer_rank);
				access->packed = false;
				access->rank = access->outer_rank;
				memcpy(access->moves, access->outer, sizeof access->moves);
				access->through = (sub_ref){0};
				order_touch(to, access->tensor, group);
				to->tensors.at[access->tensor].volume = g->volume;
			}
	}
}

static bool reads_copies(const struct order_group *g, const struct arrangement *a)
{
	bool any = false;
	for (size_t i = 0; i < g->all.n; i++)
		for (int k = 0; k < a->n; k++)
			any |= g->all.at[i].through.i == a->copy[k].i;
	return any;
}

/* The accesses of all groups with these copies, whose own are counted. */
static double count_with(const struct order *from, const struct arrangement *a)
{
	struct order o = order_copy(from);
	size_t n = from->plan->groups.n;
	o.groups = arena_copy(o.arena, o.groups, n * sizeof *o.groups);
	for (size_t g = 0; g < n; g++)
		if (reads_copies(&o.groups[g], a))
			read_copies(&o, (int)g, a);
	order_settle(&o);
	double accesses = order_count_all(&o);
	for (int k = 0; k < a->n && from->plan->fusion.arranging == MOVE_ON; k++)
		accesses += SCHED_ACCESSES_A_COPY * count_elements(o.p, a->copy[k]);
	return accesses;
}

/* The best copies for a group; none where they do not pay. */
static struct arrangement choose_copies(const struct order *unsettled, const struct order *settled, int group)
{
	struct arrangement best = {0}, a;
	double least = count_with(unsettled, &best);
	for (int dim = 0; dim < settled->groups[group].dims; dim++) {
		double accesses = find_copies(settled, group, dim, &a) ? count_with(unsettled, &a) : least;
		if (accesses < least)
			best = a, least = accesses;
	}
	return best;
}

static void store_copy(struct sched_grouper *gr, int body, sub_ref r)
{
	struct sched_fact *f = sched_fact(&gr->pl.values[body], r);
	int pressure = sched_pressure_limit(gr->pl.plan->target) + 1;
	f->stored = f->dropped = f->copied = f->arranged = true;
	f->block = sched_new_block(&gr->pl, (struct sched_block){.reductions = 2, .pressure = pressure});
	sched_find_target(gr, body, r);
}

/* The largest group without vectors that has not been looked at; -1 = none. */
static int find_largest(const struct order *o, const bool *seen)
{
	int found = -1;
	for (size_t g = 0; g < o->plan->groups.n; g++)
		if (!seen[g] && o->groups[g].dims && order_vector_dim(o, (int)g) < 0 &&
		    (found < 0 || o->groups[g].volume > o->groups[found].volume))
			found = (int)g;
	return found;
}

bool sched_arrange(struct sched_grouper *gr)
{
	const struct sched_plan *plan = gr->pl.plan;
	struct order unsettled, settled;
	struct arrangement a = {0};
	bool *seen = ARENA_ARRAY(gr->pl.arena, bool, plan->groups.n + 1);
	order_list_accesses(&unsettled, plan, gr->pl.arena, plan->target->lanes);
	settled = order_copy(&unsettled);
	order_settle(&settled);
	for (int g; !a.n && (g = find_largest(&settled, seen)) >= 0; seen[g] = true) {
		a = choose_copies(&unsettled, &settled, g);
		for (int k = 0; k < a.n; k++)
			store_copy(gr, plan->groups.at[g].body, a.copy[k]);
	}
	return a.n;
}

bool sched_has_arranged(const struct sched_plan *plan)
{
	for (size_t b = 0; b < plan->p->bodies.n; b++)
		for (int i = 0; i < plan->values[b].n; i++)
			if (plan->values[b].fact[i].arranged && plan->values[b].fact[i].stored)
				return true;
	return false;
}
