/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Local groups.
 *
 * A group without products, such as the sums over the children of a row, does little; but a pass of its own
 * over a level ends with a barrier, which the products that read it wait for.  A local group has none: it is
 * computed at the head of each kernel that reads it, for the rows of the call, into memory that belongs to
 * the thread.  Threads that divide columns compute the same rows again, each for itself. */
#include "sched/plan.h"

/* A group is computed again by every thread and for every group that reads it where each of these has at
 * least so many times its operations: then reading its rows from another core costs more. */
enum { LEAST_RATIO = 32 };

/* --- what groups read --- */

static bool has_group(const sched_groups *list, int group)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->at[i] == group)
			return true;
	return false;
}

static void add_group(sched_groups *list, struct arena *a, int group)
{
	if (!has_group(list, group))
		vec_push(a, list, group);
}

static void find_reads(struct sched_plan *plan, struct sched_walk *w, int group)
{
	struct sched_group *g = &plan->groups.at[group];
	for (size_t t = 0; t < g->targets.n; t++) {
		sched_walk_target(w, g->body, g->targets.at[t]);
		for (size_t i = 0; i < w->reads.n; i++) {
			int from = sched_group_of(plan, g->body, w->reads.at[i].value);
			if (from != group)
				add_group(&g->reads, w->arena, from);
		}
	}
}

static void note_readers(struct sched_plan *plan, struct arena *a)
{
	for (size_t g = 0; g < plan->groups.n; g++)
		for (size_t i = 0; i < plan->groups.at[g].reads.n; i++)
			vec_push(a, &plan->groups.at[plan->groups.at[g].reads.at[i]].readers, (int)g);
}

/* --- which groups can be local --- */

static bool stores_result(const struct sched_plan *plan, const struct sched_group *g)
{
	for (size_t t = 0; t < g->targets.n; t++)
		if (sched_fact(&plan->values[g->body], g->targets.at[t])->result)
			return true;
	return false;
}

static bool is_named(const struct sched_plan *plan, const struct sched_group *g)
{
	for (size_t t = 0; t < g->targets.n; t++)
		if (sched_is_named(plan, g->body, g->targets.at[t]))
			return true;
	return false;
}

static bool can_be_local(const struct sched_plan *plan, const struct sched_group *g)
{
	return plan->p->bodies.at[g->body].domain != SUB_AT_BINDING && g->rows && !g->edges && g->dims &&
	       !g->products && !stores_result(plan, g) && !is_named(plan, g);
}

/* Whether the body runs level by level, so that each pass ends with a barrier. */
static bool runs_by_levels(enum sub_domain domain)
{
	return domain == SUB_INNER || domain == SUB_TOP || domain == SUB_BELOW;
}

/* The rows of a call that is made for positions are not known before its loop. */
static bool has_sorted_reader(const struct sched_plan *plan, int group)
{
	const sched_groups *readers = &plan->groups.at[group].readers;
	for (size_t i = 0; i < readers->n; i++)
		if (plan->groups.at[readers->at[i]].sort)
			return true;
	return false;
}

/* Whether a value is moved with its first dimension as that of a group. */
static bool keeps_first_dim(const struct sched_plan *plan, const struct sub_value *v, const struct sched_group *g)
{
	const struct sub_value *target = sub_at(plan->p, g->targets.at[0]);
	const struct sub_map *first = &v->map[1];
	return first->function == SUB_AFFINE && first->scale == 1 && !first->scale2 && !first->offset &&
	       first->var == target->var[target->vars - g->dims];
}

static bool reads_copy_in_parts(const struct sched_plan *plan, const struct sched_group *g, sub_ref copy)
{
	const struct sub_program *p = plan->p;
	bool parts = sched_reads_images(g);
	for (uint32_t i = 1; parts && i < p->values.n; i++)
		if (p->values.at[i].op == SUB_ASSIGN && p->values.at[i].arg[0].value.i == copy.i)
			parts = keeps_first_dim(plan, &p->values.at[i], g);
	return parts;
}

/* Whether a group is a copy with a border, of which each iteration of its readers' outermost loops reads a part of its
 * own, such as a channel: then each part is copied before it is read (ilir/place_heads.c). */
static bool is_copied_in_parts(const struct sched_plan *plan, int group)
{
	const struct sched_group *g = &plan->groups.at[group];
	bool parts = g->targets.n == 1 && move_is_padded_copy(plan->p, g->targets.at[0]);
	for (size_t i = 0; parts && i < g->readers.n; i++)
		parts = reads_copy_in_parts(plan, &plan->groups.at[g->readers.at[i]], g->targets.at[0]);
	return parts;
}

static bool is_profitable(const struct sched_plan *plan, int group)
{
	const struct sched_group *g = &plan->groups.at[group];
	if (is_copied_in_parts(plan, group))
		return true;
	bool profitable = runs_by_levels(plan->p->bodies.at[g->body].domain);
	for (size_t i = 0; i < g->readers.n; i++)
		profitable &= plan->groups.at[g->readers.at[i]].operations >= LEAST_RATIO * g->operations;
	return profitable;
}

/* Adds the local groups that a group reads, each behind those that it reads itself. */
static void find_heads(struct sched_plan *plan, struct arena *a, int group)
{
	struct sched_group *g = &plan->groups.at[group];
	for (size_t i = 0; i < g->reads.n; i++) {
		const struct sched_group *from = &plan->groups.at[g->reads.at[i]];
		for (size_t h = 0; from->local && h < from->heads.n; h++)
			add_group(&g->heads, a, from->heads.at[h]);
		if (from->local)
			add_group(&g->heads, a, g->reads.at[i]);
	}
}

void sched_make_local(struct sched_plan *plan, struct arena *a)
{
	enum move_extent how = plan->fusion.local;
	struct sched_walk w;
	sched_walk_init(&w, a, plan);
	for (size_t g = 0; g < plan->groups.n; g++)
		find_reads(plan, &w, g);
	note_readers(plan, a);
	for (size_t g = 0; g < plan->groups.n; g++)
		plan->groups.at[g].local = how != MOVE_OFF && can_be_local(plan, &plan->groups.at[g]) &&
					   !has_sorted_reader(plan, g) &&
					   (how == MOVE_ALL || is_profitable(plan, g));
	for (size_t g = 0; g < plan->groups.n; g++)
		find_heads(plan, a, g);
}

bool sched_has_local(const struct sched_plan *plan)
{
	for (size_t g = 0; g < plan->groups.n; g++)
		if (plan->groups.at[g].local)
			return true;
	return false;
}
