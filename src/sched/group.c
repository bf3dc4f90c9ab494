/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Stages, and groups of targets that one nest computes.
 *
 * A target that reads another one at the same element that it computes joins the other's stage if their
 * blocks may join; for all other reads it goes to a later stage.  Then targets of one stage and one shape
 * form a group as far as the planner lets their blocks join: the gates of a cell, the parallel sums of a
 * softmax. */
#include "sched/group.h"

#include <stdlib.h>

int sched_find_target(struct sched_grouper *gr, int body, sub_ref value)
{
	struct sched_fact *f = sched_fact(&gr->pl.values[body], value);
	if (f->target)
		return f->target - 1;
	struct sched_target t = {.value = value, .body = body, .pinned = f->dropped, .block = f->block};
	if (!t.block)
		t.block = sched_new_block(&gr->pl, (struct sched_block){.pressure = 1});
	vec_push(gr->pl.arena, &gr->targets, t);
	return (f->target = gr->targets.n) - 1;
}

void sched_set_apart(struct sched_grouper *gr, int body, sub_ref value)
{
	int limit = sched_pressure_limit(gr->pl.plan->target);
	gr->targets.at[sched_find_target(gr, body, sched_chain_end(&gr->pl.values[body], value))].block =
	    sched_new_block(&gr->pl, (struct sched_block){.reductions = 2, .pressure = limit + 1});
}

/* --- joining blocks --- */

static int root_block(struct sched_grouper *gr, int block)
{
	while (gr->united[block].joined != block)
		block = gr->united[block].joined = gr->united[gr->united[block].joined].joined;
	return block;
}

/* Whether two blocks may join. */
static bool may_hold(const struct sched_grouper *gr, const struct sched_block *a, const struct sched_block *b)
{
	switch (gr->pl.plan->fusion.planner) {
	case SCHED_NONE:
		return false;
	case SCHED_GREEDY:
		return a->reductions + b->reductions <= 1;
	default:
		return a->pressure + b->pressure <= sched_pressure_limit(gr->pl.plan->target) &&
		       sched_spaces_agree(a->spaces, b->spaces);
	}
}

static void add_block(struct sched_block *to, const struct sched_block *b)
{
	to->reductions += b->reductions;
	to->pressure += b->pressure;
	to->spaces |= b->spaces;
}

/* Joins block `a` with block `b`, which reads it, if they may join; whether they are one now.  The greedy
 * planner ends a block with the result of a reduction. */
static bool join_blocks(struct sched_grouper *gr, int a, int b)
{
	a = root_block(gr, a), b = root_block(gr, b);
	if (a == b)
		return gr->pl.plan->fusion.planner != SCHED_NONE;
	if (!may_hold(gr, &gr->united[a], &gr->united[b]) ||
	    (gr->pl.plan->fusion.planner == SCHED_GREEDY && gr->united[a].reductions))
		return false;
	gr->united[b].joined = a;
	add_block(&gr->united[a], &gr->united[b]);
	return true;
}

/* --- stages --- */

struct target_key {
	int body, stage;
	uint32_t value;
	int target;
};

static int compare_keys(const void *a, const void *b)
{
	const struct target_key *x = a, *y = b;
	if (x->body != y->body)
		return x->body < y->body ? -1 : 1;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* Sorts targets by body, stage and value. */
static struct target_key *sorted_targets(struct sched_grouper *gr)
{
	struct target_key *keys = ARENA_ARRAY(gr->pl.arena, struct target_key, gr->targets.n);
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		keys[i] = (struct target_key){t->body, t->stage, t->value.i, i};
	}
	qsort(keys, gr->targets.n, sizeof *keys, compare_keys);
	return keys;
}

/* Operands have smaller numbers than values computed from them, so one pass in that order assigns all
 * stages. */
static void set_stages(struct sched_grouper *gr)
{
	for (size_t i = 0; i < gr->targets.n; i++)
		gr->targets.at[i].stage = 0;
	gr->united = arena_copy(gr->pl.arena, gr->pl.blocks.at, gr->pl.blocks.n * sizeof *gr->united);
	const struct target_key *keys = sorted_targets(gr);
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target *t = &gr->targets.at[keys[i].target];
		for (int k = 0; k < t->reads; k++) {
			const struct sched_target *from =
			    &gr->targets.at[sched_find_target(gr, t->body, t->read[k].value)];
			int least =
			    from->stage + !(t->read[k].inside && join_blocks(gr, from->block, t->block));
			t->stage = t->stage > least ? t->stage : least;
		}
	}
}

/* --- groups --- */

/* The group that a target would form alone. */
static struct sched_group shape_of(const struct sched_grouper *gr, const struct sched_target *t)
{
	const struct sub_program *p = gr->pl.p;
	const struct sub_value *v = sub_at(p, t->value);
	int leading = sub_leading_dims(p, t->value);
	struct sched_group g = {.body = t->body,
				.stage = t->stage,
				.rows = leading > 0,
				.edges = leading > 1,
				.dims = v->vars - leading};
	for (int i = 0; i < g.dims; i++)
		g.extent[i] = p->vars.at[v->var[leading + i]].extent;
	return g;
}

/* Identifies a group; `block` 0: the newest group of this shape. */
struct group_key {
	int64_t extent[SUB_MAX_VARS];
	int body, stage, leading, dims, block, zero;
};

static struct group_key key_of(const struct sched_group *g, int block)
{
	struct group_key key = {.body = g->body,
				.stage = g->stage,
				.leading = g->rows + g->edges,
				.dims = g->dims,
				.block = block};
	memcpy(key.extent, g->extent, sizeof key.extent);
	return key;
}

struct groups {
	struct map of;
	struct sched_block *held; /* by group; there are at most as many groups as targets */
	int *number;		  /* of the next group of a body, by body */
};

static void set_group(struct groups *gs, struct group_key key, int group)
{
	if (!map_add(&gs->of, (const char *)&key, sizeof key, group))
		*map_at(&gs->of, (const char *)&key, sizeof key) = group;
}

static int get_group(const struct groups *gs, struct group_key key)
{
	return map_get(&gs->of, (const char *)&key, sizeof key);
}

static int new_group(struct sched_grouper *gr, struct groups *gs, struct sched_group shape)
{
	struct str s = str_in(gr->pl.arena);
	str_printf(&s, "%s.%d", gr->pl.p->bodies.at[shape.body].name, gs->number[shape.body]++);
	shape.name = s.text;
	vec_push(gr->pl.arena, &gr->pl.plan->groups, shape);
	return gr->pl.plan->groups.n - 1;
}

/* The group of the target's block; else the newest group of its shape, if the block may join it; else a
 * new one. */
static int find_group(struct sched_grouper *gr, struct groups *gs, const struct sched_target *t)
{
	struct sched_group shape = shape_of(gr, t);
	int block = root_block(gr, t->block);
	struct group_key own = key_of(&shape, block), any = key_of(&shape, 0);
	const struct sched_block *b = &gr->united[block];
	int group = get_group(gs, own);
	if (group >= 0 && gr->pl.plan->fusion.planner != SCHED_NONE)
		return group;
	group = get_group(gs, any);
	if (group < 0 || !may_hold(gr, &gs->held[group], b))
		group = new_group(gr, gs, shape);
	add_block(&gs->held[group], b);
	set_group(gs, own, group);
	set_group(gs, any, group);
	return group;
}

void sched_make_groups(struct sched_grouper *gr)
{
	struct groups gs = {.of = map_in(gr->pl.arena),
			    .held = ARENA_ARRAY(gr->pl.arena, struct sched_block, gr->targets.n),
			    .number = ARENA_ARRAY(gr->pl.arena, int, gr->pl.p->bodies.n)};
	set_stages(gr);
	gr->pl.plan->groups.n = 0;
	const struct target_key *keys = sorted_targets(gr);
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target *t = &gr->targets.at[keys[i].target];
		t->group = find_group(gr, &gs, t);
		vec_push(gr->pl.arena, &gr->pl.plan->groups.at[t->group].targets, t->value);
	}
}

/* --- totals --- */

/* The number of a key, which is `next` if the key is new. */
static int number_of(struct map *m, uint64_t a, uint64_t b, int next)
{
	uint64_t key[2] = {a, b};
	return map_add(m, (const char *)key, sizeof key, next) ? next
							       : map_get(m, (const char *)key, sizeof key);
}

/* Notes what the operands of a product depend on.  One that depends on all dimensions of a row, and differs
 * from row to row, is each row's own. */
static void note_operands(struct sched_loop *loop, const struct sched_reduction *r, int dims)
{
	unsigned all = (1u << dims) - 1;
	for (int a = 0; a < 2; a++) {
		loop->own |= all && r->operand[a] == (all | SCHED_ROW);
		for (int d = 0; d < dims; d++)
			loop->beside[d] |= r->operand[a] >> d & 1 ? r->operand[a] & ~(1u << d) : 0;
	}
}

static void count_reduction(struct sched_grouper *gr, struct map *shared, int group,
			    const struct sched_reduction *r)
{
	struct sched_group *g = &gr->pl.plan->groups.at[group];
	const struct sub_program *p = gr->pl.p;
	size_t loop = number_of(shared, group, r->shared, g->loops.n);
	const struct sub_value *v = sub_at(p, r->value);
	bool ragged = sub_reduces_ragged(p, v);
	bool per_edge = !g->edges && !ragged && sub_leading_dims(p, r->value) > 1;
	struct sched_loop fresh = {.shared = r->shared, .per_edge = per_edge};
	fresh.extent = ragged ? 0 : sub_reduced_extent(p, v);
	fresh.innermost = p->vars.at[v->reduced.var[v->reduced.n - 1]].extent;
	if (loop == g->loops.n)
		vec_push(gr->pl.arena, &g->loops, fresh);
	int gates = ++g->loops.at[loop].gates;
	note_operands(&g->loops.at[loop], r, g->dims);
	if (!ragged)
		g->over_edges = per_edge && (g->over_edges || !g->products);
	g->products += !ragged;
	g->gates = gates > g->gates ? gates : g->gates;
	g->reductions++;
}

/* Counts the distinct reductions of the groups, by the operand that they share. */
static void count_reductions(struct sched_grouper *gr)
{
	struct map distinct = map_in(gr->pl.arena), shared = map_in(gr->pl.arena);
	int n = 0;
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		for (int k = 0; k < t->reductions; k++, n++)
			if (number_of(&distinct, t->group, t->reduction[k].instance, n) == n)
				count_reduction(gr, &shared, t->group, &t->reduction[k]);
	}
}

void sched_finish_groups(struct sched_grouper *gr)
{
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		sched_fact(&gr->pl.values[t->body], t->value)->group = t->group + 1;
	}
	count_reductions(gr);
}
