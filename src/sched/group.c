/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Supersteps, and groups of targets that one nest computes.
 *
 * A target that reads another one at the same element that it computes joins the other's superstep if their
 * blocks may join; for all other reads it goes to a later one.  It goes to the last superstep of its block if
 * no reader needs it before.  Then targets of one superstep and one shape form a group as far as the planner
 * lets their blocks join: the gates of a cell, the parallel sums of a softmax. */
#include "sched/group.h"

#include <limits.h>
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

/* --- supersteps --- */

struct target_key {
	int body, superstep;
	uint32_t value;
	int target;
};

static int compare_keys(const void *a, const void *b)
{
	const struct target_key *x = a, *y = b;
	if (x->body != y->body)
		return x->body < y->body ? -1 : 1;
	if (x->superstep != y->superstep)
		return x->superstep < y->superstep ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* Sorts targets by body, superstep and value. */
static struct target_key *sorted_targets(struct sched_grouper *gr)
{
	struct target_key *keys = ARENA_ARRAY(gr->pl.arena, struct target_key, gr->targets.n);
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		keys[i] = (struct target_key){t->body, t->superstep, t->value.i, i};
	}
	qsort(keys, gr->targets.n, sizeof *keys, compare_keys);
	return keys;
}

static struct sched_target *read_target(struct sched_grouper *gr, const struct sched_target *t, int k)
{
	return &gr->targets.at[sched_find_target(gr, t->body, t->read[k].value)];
}

/* Operands have smaller numbers than values computed from them, so one pass in that order assigns each
 * target the earliest superstep. */
static void set_first_supersteps(struct sched_grouper *gr, const struct target_key *keys)
{
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target *t = &gr->targets.at[keys[i].target];
		for (int k = 0; k < t->reads; k++) {
			const struct sched_target *from = read_target(gr, t, k);
			int least =
			    from->superstep + !(t->read[k].inside && join_blocks(gr, from->block, t->block));
			t->superstep = t->superstep > least ? t->superstep : least;
		}
	}
}

/* Whether one nest can compute both values: they have the same leading dimensions and extents. */
static bool have_one_shape(const struct sub_program *p, sub_ref a, sub_ref b)
{
	const struct sub_value *x = sub_at(p, a), *y = sub_at(p, b);
	bool same = x->vars == y->vars && sub_leading_dims(p, a) == sub_leading_dims(p, b);
	for (int i = 0; same && i < x->vars; i++)
		same = sub_same_range(p, x->var[i], y->var[i]);
	return same;
}

/* By block: the target with the latest superstep; -1 = none. */
static int *find_last_targets(struct sched_grouper *gr)
{
	int *last = ARENA_ARRAY(gr->pl.arena, int, gr->pl.blocks.n);
	for (size_t b = 0; b < gr->pl.blocks.n; b++)
		last[b] = -1;
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		if (last[t->block] < 0 || t->superstep > gr->targets.at[last[t->block]].superstep)
			last[t->block] = i;
	}
	return last;
}

/* Whether a target follows from another one of its superstep, in registers. */
static bool follows_target(struct sched_grouper *gr, const struct sched_target *t)
{
	for (int k = 0; k < t->reads; k++)
		if (read_target(gr, t, k)->superstep == t->superstep)
			return true;
	return false;
}

/* Moves targets to the last superstep of their block, as far as their readers allow, where the nest there
 * computes what they need, too.  Otherwise a value that both need, such as a gate that is a state of its own,
 * would be computed twice. */
static void delay_targets(struct sched_grouper *gr, const struct target_key *keys)
{
	const int *last = find_last_targets(gr);
	int *most = ARENA_ARRAY(gr->pl.arena, int, gr->targets.n);
	for (size_t i = 0; i < gr->targets.n; i++)
		most[i] = INT_MAX;
	for (size_t i = gr->targets.n; i-- > 0;) {
		struct sched_target *t = &gr->targets.at[keys[i].target];
		const struct sched_target *to = &gr->targets.at[last[t->block]];
		if (to->superstep > t->superstep && to->superstep <= most[keys[i].target] &&
		    have_one_shape(gr->pl.p, t->value, to->value) && !follows_target(gr, t))
			t->superstep = to->superstep;
		for (int k = 0; k < t->reads; k++) {
			const struct sched_target *from = read_target(gr, t, k);
			bool one =
			    t->read[k].inside && root_block(gr, from->block) == root_block(gr, t->block);
			int *least = &most[from - gr->targets.at];
			*least = t->superstep - !one < *least ? t->superstep - !one : *least;
		}
	}
}

static void set_supersteps(struct sched_grouper *gr)
{
	for (size_t i = 0; i < gr->targets.n; i++)
		gr->targets.at[i].superstep = 0;
	gr->united = arena_copy(gr->pl.arena, gr->pl.blocks.at, gr->pl.blocks.n * sizeof *gr->united);
	const struct target_key *keys = sorted_targets(gr);
	set_first_supersteps(gr, keys);
	if (gr->pl.plan->fusion.planner != SCHED_NONE)
		delay_targets(gr, keys);
}

/* --- groups --- */

/* The group that a target would form alone. */
static struct sched_group shape_of(const struct sched_grouper *gr, const struct sched_target *t)
{
	const struct sub_program *p = gr->pl.p;
	const struct sub_value *v = sub_at(p, t->value);
	int leading = sub_leading_dims(p, t->value);
	struct sched_group g = {.body = t->body,
				.superstep = t->superstep,
				.rows = leading > 0,
				.edges = leading > 1,
				.members = leading > 1 && p->vars.at[v->var[1]].set == SUB_MEMBER,
				.dims = v->vars - leading};
	for (int i = 0; i < g.dims; i++)
		g.extent[i] = p->vars.at[v->var[leading + i]].extent;
	return g;
}

/* Identifies a group; `block` 0: the newest group of this shape. */
struct group_key {
	int64_t extent[SUB_MAX_VARS];
	int body, superstep, leading, dims, block, members;
};

static struct group_key key_of(const struct sched_group *g, int block)
{
	struct group_key key = {.body = g->body,
				.superstep = g->superstep,
				.leading = g->rows + g->edges,
				.dims = g->dims,
				.block = block,
				.members = g->members};
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
	set_supersteps(gr);
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
 * from row to row, is each row's own; but sorted rows share it. */
static void note_operands(struct sched_loop *loop, const struct sched_reduction *r, int dims, bool sorted)
{
	unsigned all = (1u << dims) - 1;
	for (int a = 0; a < 2; a++) {
		unsigned operand = r->operand[a] & all && sorted ? r->operand[a] & all : r->operand[a];
		loop->own |= all && operand == (all | SCHED_ROW);
		for (int d = 0; d < dims; d++)
			loop->beside[d] |= operand >> d & 1 ? operand & ~(1u << d) : 0;
	}
}

/* Bytes of what a value moves: of a row, or of weights. */
static double bytes_moved(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	while (v->op == SUB_ASSIGN)
		v = sub_at(p, v->arg[0].value);
	return sub_row_elements(p, v) * dtype_traits_of(v->dtype)->bytes;
}

/* The extent of the last reduced variable that has more than one element, if any, or of its blocks. */
static int64_t innermost_of(const struct sub_program *p, const struct sub_value *v)
{
	int i = v->reduced.n - 1;
	int64_t block = sub_block_of(p, v);
	if (block)
		return block;
	while (i > 0 && p->vars.at[v->reduced.var[i]].extent == 1)
		i--;
	return p->vars.at[v->reduced.var[i]].extent;
}

/* The elements of the last of several reduced variables, as far as loops over all of them can be written out; 1 for the words of a
 * block, whose loop stays one. */
static int window_of(const struct sub_program *p, const struct sub_value *v)
{
	int64_t n = 1;
	if (sub_block_of(p, v))
		return 1;
	for (int i = v->reduced.n; i-- > 0 && v->reduced.n > 1 && n * p->vars.at[v->reduced.var[i]].extent <= SCHED_MAX_UNROLL;)
		n *= p->vars.at[v->reduced.var[i]].extent;
	return (int)n;
}

/* Whether a reduction has a loop of its own at each element of a group: its values have the group's dimensions, and none of its
 * operands is a concatenation, part of which other loops may read. */
static bool is_whole(const struct sub_program *p, const struct sched_group *g, const struct sub_value *v)
{
	bool whole = v->vars == g->rows + g->edges + g->dims && !sub_block_of(p, v); /* blocks are not cut */
	for (int a = 0; a < v->args; a++)
		whole &= sub_at(p, v->arg[a].value)->op != SUB_COND;
	return whole;
}

/* Whether a reduction is of dot products of words of a row with those of a weight that matrix registers can compute. */
static bool fits_matrices(const struct sub_program *p, const struct sub_value *v)
{
	if (!sub_fits_matrices(v->op))
		return false;
	const struct sub_value *weight = sub_at(p, v->arg[2].value);
	while (weight->op == SUB_ASSIGN)
		weight = sub_at(p, weight->arg[0].value);
	return weight->op == SUB_PARAM;
}

/* The loop of a reduction, which is that of another one that shares an operand, or `next`. */
static size_t find_loop(struct map *shared, int group, const struct sched_reduction *r, size_t next)
{
	uint64_t key[2] = {(uint64_t)group, r->columns};
	int beside = r->columns ? map_get(shared, (const char *)key, sizeof key) : -1;
	int loop = number_of(shared, group, r->shared, beside < 0 ? (int)next : beside);
	return r->columns ? number_of(shared, group, r->columns, loop) : loop;
}

static void count_reduction(struct sched_grouper *gr, struct map *shared, int group,
			    const struct sched_reduction *r)
{
	struct sched_group *g = &gr->pl.plan->groups.at[group];
	const struct sub_program *p = gr->pl.p;
	size_t loop = find_loop(shared, group, r, g->loops.n);
	const struct sub_value *v = sub_at(p, r->value);
	bool ragged = sub_reduces_ragged(p, v);
	bool per_edge = !g->edges && !ragged && sub_leading_dims(p, r->value) > 1;
	struct sched_loop fresh = {.shared = r->shared, .per_edge = per_edge};
	fresh.extent = ragged ? 0 : sub_reduced_extent(p, v);
	fresh.innermost = innermost_of(p, v);
	fresh.window = window_of(p, v);
	bool product = v->args > 1;
	for (int a = product; a < v->args && a <= 2; a++) {
		fresh.operand[a - product] = r->operand[a - product];
		fresh.step[a - product] = r->step[a - product];
		fresh.bytes[a - product] = bytes_moved(p, v->arg[a].value);
	}
	memcpy(fresh.shift, r->shift, sizeof fresh.shift);
	fresh.first = v->reduced.var[0];
	fresh.whole = fresh.of_matrices = true;
	if (loop == g->loops.n)
		vec_push(gr->pl.arena, &g->loops, fresh);
	g->loops.at[loop].whole &= !ragged && is_whole(p, g, v);
	g->loops.at[loop].of_matrices &= fits_matrices(p, v);
	int gates = ++g->loops.at[loop].gates;
	if (product)
		note_operands(&g->loops.at[loop], r, g->dims, g->sort);
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
	sched_choose_sorts(gr);
	count_reductions(gr);
}
