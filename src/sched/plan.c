/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The fusion plan.
 *
 * A planner decides which values are stored.  Whatever it decided, each target (a result or a stored
 * value) is then walked down to what it reads.  An expensive value that does not depend on a loop around
 * it would be computed again in each iteration of that loop, so it is stored and becomes a target of its
 * own.  The same holds for values that are used at many places, and for reductions that two groups need.
 * This is repeated until no more values are stored, and bounds the work of any plan. */
#include "sched/group.h"

#include <math.h>

/* --- the guard --- */

static struct sched_grouper *grouper_of(const struct sched_walk *w)
{
	return w->context;
}

static const struct sched_values *values_of(const struct sched_walk *w)
{
	return &grouper_of(w)->pl.values[w->body];
}

static void mark_stored(struct sched_grouper *gr, int body, sub_ref r)
{
	const struct sched_values *values = &gr->pl.values[body];
	sub_ref end = sched_store_narrow_end(gr->pl.p, values, sched_chain_end(values, r));
	sched_find_target(gr, body, end);
	gr->changed = true;
}

static bool is_expensive(const struct sched_walk *w, sub_ref r)
{
	return sched_fact(values_of(w), r)->expensive && !sched_fact(values_of(w), r)->stored;
}

/* Whether neighbours along the last dimension of a product read elements of a weight that lie apart, unless
 * the weight is packed. */
static bool reads_weights_apart(const struct sub_program *p, const struct sub_value *v)
{
	for (int a = 1; a < v->args; a++)
		for (int i = 0; i < v->arg[a].vars - 1; i++)
			if (v->arg[a].var[i] == v->var[v->vars - 1] &&
			    !sub_has_leading_dim(p, v->arg[a].value))
				return true;
	return false;
}

/* Whether two indices of an element depend on one loop, or one on two, as behind a reshape. */
static bool is_reshaped(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	uint64_t seen = 0;
	bool reshaped = false;
	for (int i = sub_leading_dims(w->p, r); i < sub_at(w->p, r)->vars; i++) {
		reshaped |= (index[i].loops & (index[i].loops - 1)) || index[i].loops & seen;
		seen |= index[i].loops;
	}
	return reshaped;
}

/* Whether neighbours along a loop are neighbours along one dimension of a value, and the same in the others: then vectors can run
 * along it. */
static bool is_loop_kept(const struct sched_walk *w, sub_ref r, const struct sched_index *index, int loop)
{
	int moving = 0, kept = 0;
	for (int i = 0; i < sub_at(w->p, r)->vars; i++) {
		moving += index[i].loops >> loop & 1;
		kept += index[i].next >> loop & 1;
	}
	return moving == 1 && kept == 1;
}

/* Whether the current target is an output, whose order of dimensions is given. */
static bool has_given_order(const struct sched_walk *w)
{
	const struct sub_body *b = &w->p->bodies.at[w->body];
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == w->target.i && b->stores.at[i].to == SUB_TO_OUTPUT)
			return true;
	return false;
}

/* Vectors for each element, if they run along a dimension of this extent. */
static double vectors_along(const struct sched_walk *w, int64_t extent)
{
	int64_t lanes = w->plan->target->lanes;
	return (double)((extent + lanes - 1) / lanes) / (double)extent;
}

/* The fewest vectors for each element where a sum is computed at these indices; 1 if there are only scalars. */
static double vectors_of_reshaped(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	int vars = sub_at(w->p, w->target)->vars, leading = sub_leading_dims(w->p, w->target);
	double least = 1;
	for (int loop = has_given_order(w) ? vars - 1 : leading; loop >= leading && loop < vars; loop++)
		if (is_loop_kept(w, r, index, loop))
			least = fmin(least, vectors_along(w, w->extent[loop]));
	return least;
}

/* The same where it is stored in its own order. */
static double vectors_of_stored(const struct sched_walk *w, sub_ref r)
{
	const struct sub_value *v = sub_at(w->p, r);
	double least = 1;
	for (int i = sub_leading_dims(w->p, r); i < v->vars; i++)
		least = fmin(least, vectors_along(w, w->p->vars.at[v->var[i]].extent));
	return least;
}

/* Whether an operand that several elements of a sum share differs at all of these indices. */
static bool loses_reuse(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	const struct sub_value *v = sub_at(w->p, r);
	bool lost = false;
	for (int a = 1; a < v->args; a++) {
		uint64_t all = 0, used = 0;
		bool shared = false;
		for (int i = sub_leading_dims(w->p, r); i < v->vars; i++) {
			bool has = sub_use_has(&v->arg[a], v->var[i]);
			all |= index[i].loops;
			used |= has ? index[i].loops : 0;
			shared |= !has && w->p->vars.at[v->var[i]].extent > 1;
		}
		lost |= shared && used == all;
	}
	return lost;
}

/* The accesses that each element of a chain's sums takes more where it is computed at these indices than in its own order: there
 * the nest may have no vectors, or shorter ones; or it may read an operand anew for each element, which takes as long as the
 * term itself.  All steps of the chain have the dimensions of its end. */
static double count_lost(const struct sched_walk *w, sub_ref end, sub_ref step, const struct sched_index *index)
{
	const struct sub_value *v = sub_at(w->p, step);
	double vectors = vectors_of_reshaped(w, step, index), lost = 0;
	if (sub_reduces(v->op) && !sub_reduces_ragged(w->p, v))
		lost = sub_reduced_extent(w->p, v) *
		       (vectors * (1 + loses_reuse(w, step, index)) - vectors_of_stored(w, step));
	for (int a = 0; a < v->args; a++)
		if (sched_fact(values_of(w), v->arg[a].value)->chain_end.i == end.i)
			lost += count_lost(w, end, v->arg[a].value, index);
	return lost;
}

/* Whether a sum that is read at reshaped elements is computed in its own order and stored: where that saves more accesses than
 * a copy of an element takes, by vectors if its reader has them. */
static bool is_arranged_sum(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	enum move_extent how = w->plan->fusion.arranging;
	if (how == MOVE_OFF || sched_fact(values_of(w), r)->stored || !is_reshaped(w, r, index))
		return false;
	double copied = how == MOVE_ON ? SCHED_ACCESSES_A_COPY * vectors_of_reshaped(w, r, index) : 0;
	return count_lost(w, r, r, index) > copied;
}

/* Likewise a product whose weights could be packed in no order there. */
static bool is_reshaped_product(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	const struct sub_value *v = sub_at(w->p, r);
	return v->op == SUB_ACCUMULATE && reads_weights_apart(w->p, v) && !sched_fact(values_of(w), r)->stored &&
	       is_reshaped(w, r, index);
}

/* Stores a value that would be computed too often.  At the element that the target computes it is computed
 * once, before any reduction that uses it. */
static void guard_value(struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	struct sched_grouper *gr = grouper_of(w);
	bool deep = w->loops >= SCHED_MAX_LOOPS, often = w->instances[r.i] > SCHED_MAX_PLACES;
	bool arranged = is_arranged_sum(w, r, index);
	if (!sub_has_rows(w->p, r) || sched_is_index(w->p, values_of(w), r))
		return; /* movement is not expensive; the value that it moves is visited as well */
	if (!deep && !often && !arranged && !is_reshaped_product(w, r, index)) {
		double n = is_expensive(w, r) && !sched_is_inside(w, r, index)
			       ? sched_times_computed(w, r, index)
			       : 1;
		if (n <= (sched_fact(values_of(w), r)->recomputed ? SCHED_MAX_AGAIN : 1))
			return;
	}
	sched_fact(values_of(w), r)->arranged |= arranged;
	mark_stored(gr, w->body, r);
	if (deep)
		sched_set_apart(gr, w->body, r);
}

/* Inside a reduction a choice is part of an expression and has no place for statements: an expensive
 * operand of it is stored. */
static void store_side(struct sched_walk *w, sub_ref r)
{
	while (sub_at(w->p, r)->args == 1 && sched_is_index(w->p, values_of(w), r))
		r = sub_at(w->p, r)->arg[0].value;
	if (sub_has_rows(w->p, r) && is_expensive(w, r) && !sched_is_index(w->p, values_of(w), r))
		mark_stored(grouper_of(w), w->body, r);
}

static void walk_targets(struct sched_grouper *gr)
{
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target t = gr->targets.at[i];
		sched_walk_target(&gr->walk, t.body, t.value);
		struct sched_target *to = &gr->targets.at[i];
		to->read = gr->walk.reads.at;
		to->reads = gr->walk.reads.n;
		to->reduction = gr->walk.reductions.at;
		to->reductions = gr->walk.reductions.n;
		for (int k = 0; k < to->reads; k++)
			sched_find_target(gr, t.body, gr->targets.at[i].read[k].value);
	}
}

/* Stores a reduction that two groups of a body compute; the first group will compute it. */
static void store_shared_reductions(struct sched_grouper *gr)
{
	struct map group_of = map_in(gr->pl.arena);
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target t = gr->targets.at[i];
		for (int k = 0; k < t.reductions; k++) {
			sub_ref end = sched_chain_end(&gr->pl.values[t.body], t.reduction[k].value);
			int key[2] = {t.body, end.i};
			if (!map_add(&group_of, (const char *)key, sizeof key, t.group) &&
			    map_get(&group_of, (const char *)key, sizeof key) != t.group &&
			    sub_has_rows(gr->pl.p, end) && !sched_fact(&gr->pl.values[t.body], end)->stored)
				mark_stored(gr, t.body, end);
		}
	}
}

/* By target: whether another group reads it, or its own one at another element than it computes. */
static bool *find_read_targets(struct sched_grouper *gr)
{
	bool *read = ARENA_ARRAY(gr->pl.arena, bool, gr->targets.n);
	for (size_t i = 0; i < gr->targets.n; i++)
		for (int k = 0; k < gr->targets.at[i].reads; k++) {
			const struct sched_read *r = &gr->targets.at[i].read[k];
			int from = sched_find_target(gr, gr->targets.at[i].body, r->value);
			read[from] |= !r->inside || gr->targets.at[from].group != gr->targets.at[i].group;
		}
	return read;
}

/* Drops stored values that only their own group reads, at the element that it computes: they stay in
 * registers.  Those that were dropped before stay, unless `pinned`.  Whether there were any. */
static bool drop_unread(struct sched_grouper *gr, bool pinned)
{
	const bool *read = find_read_targets(gr);
	size_t n = 0;
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target *t = &gr->targets.at[i];
		struct sched_fact *f = sched_fact(&gr->pl.values[t->body], t->value);
		bool keep = read[i] || (t->pinned && !pinned) || f->result;
		if (!keep) {
			f->stored = false;
			f->target = 0;
			f->dropped = true;
			continue;
		}
		f->target = n + 1;
		gr->targets.at[n++] = *t;
	}
	bool any = n < gr->targets.n;
	gr->targets.n = n;
	return any;
}

static void keep_known_targets(struct sched_grouper *gr, struct sched_group *g)
{
	size_t n = 0;
	for (size_t t = 0; t < g->targets.n; t++)
		if (sched_fact(&gr->pl.values[g->body], g->targets.at[t])->target)
			g->targets.at[n++] = g->targets.at[t];
	g->targets.n = n;
}

/* Gives each target from the n-th on a group of its own, but for those that had one; whether there were any. */
static bool set_new_apart(struct sched_grouper *gr, size_t n)
{
	bool any = false;
	for (size_t i = n; i < gr->targets.n; i++) {
		struct sched_fact *f = sched_fact(&gr->pl.values[gr->targets.at[i].body], gr->targets.at[i].value);
		if (f->apart)
			continue;
		f->apart = any = true;
		sched_set_apart(gr, gr->targets.at[i].body, gr->targets.at[i].value);
	}
	return any;
}

/* Drops values that were stored again but need no memory, and leaves the groups as they are.  A reduction that
 * two groups compute is stored, which may bring both into one group; dropped before groups are made, it lets
 * them part again.  Its readers read the element that they compute, and so they read there what it is computed
 * from.  Returns whether nothing is stored again then.  What a choice inside a reduction reads is, even at that
 * element, because it would be computed in each iteration there: a group of its own computes it, and groups are to be
 * made again.  That happens to a value once, so it ends. */
static bool release_pinned(struct sched_grouper *gr)
{
	if (!drop_unread(gr, true))
		return true;
	for (size_t g = 0; g < gr->pl.plan->groups.n; g++)
		keep_known_targets(gr, &gr->pl.plan->groups.at[g]);
	size_t n = gr->targets.n;
	walk_targets(gr);
	return !set_new_apart(gr, n);
}

static void add_targets(struct sched_grouper *gr)
{
	const struct sub_program *p = gr->pl.p;
	for (size_t b = 0; b < p->bodies.n; b++) {
		for (size_t i = 0; i < p->bodies.at[b].stores.n; i++)
			sched_find_target(gr, b, p->bodies.at[b].stores.at[i].value.value);
		const struct sched_values *values = &gr->pl.values[b];
		for (int i = 0; i < values->n; i++)
			if (values->fact[i].stored)
				sched_find_target(gr, b, values->value[i]);
	}
}

/* --- the plan --- */

int sched_new_block(struct sched_planner *pl, struct sched_block b)
{
	if (!pl->blocks.n)
		vec_push(pl->arena, &pl->blocks, (struct sched_block){0});
	b.joined = pl->blocks.n;
	vec_push(pl->arena, &pl->blocks, b);
	return b.joined;
}

/* The limit is not the number of registers, because sums without a register lie in memory while other
 * loops run (ilir/sink.c); their tile must stay in the first-level cache.  Four times the registers, in a
 * tile of four rows, take 16 KiB of the at least 32 of machines with vectors of 16 bytes or more. */
int sched_pressure_limit(const struct target *t)
{
	return 4 * t->registers;
}

static bool is_called(const struct sched_plan *plan, int body, sub_ref r, const struct sched_store *s)
{
	const char *name = sched_value_name(plan, body, r);
	return strlen(name) == (size_t)s->length && memcmp(name, s->name, s->length) == 0;
}

bool sched_is_named(const struct sched_plan *plan, int body, sub_ref r)
{
	bool named = false;
	for (int s = 0; s < plan->fusion.stores; s++)
		named |= is_called(plan, body, r, &plan->fusion.store[s]);
	return named;
}

static bool can_be_stored(const struct sub_program *p, sub_ref r, const struct sched_fact *f)
{
	enum sub_class class = sub_class_of(sub_at(p, r)->op);
	return !f->result && !f->chain_end.i && class != SUB_SOURCE && class != SUB_MOVE &&
	       sub_has_leading_dim(p, r);
}

/* Values that the schedule names get groups of their own and are never dropped. */
static void store_named_values(struct sched_planner *pl, int body)
{
	const struct sched_fusion *f = &pl->plan->fusion;
	const struct sched_values *values = &pl->values[body];
	int pressure = sched_pressure_limit(pl->plan->target) + 1;
	for (int s = 0; s < f->stores; s++)
		for (int i = 0; i < values->n; i++) {
			struct sched_fact *fact = &values->fact[i];
			if (!can_be_stored(pl->p, values->value[i], fact) ||
			    !is_called(pl->plan, body, values->value[i], &f->store[s]))
				continue;
			fact->stored = fact->dropped = true;
			fact->block =
			    sched_new_block(pl, (struct sched_block){.reductions = 2, .pressure = pressure});
		}
}

const char *sched_not_stored(const struct sched_plan *plan, const struct sched_store *s)
{
	for (size_t b = 0; b < plan->p->bodies.n; b++)
		for (int i = 0; i < plan->values[b].n; i++) {
			const struct sched_fact *fact = &plan->values[b].fact[i];
			if (!is_called(plan, b, plan->values[b].value[i], s))
				continue;
			return fact->result   ? "the value is a state or an output, and stored as that"
			       : fact->stored ? NULL
			       : fact->chain_end.i
				   ? "the value is a step of a sum, which continues it in a register"
				   : "the value is given or only moved: nothing is computed that could be "
				     "stored";
		}
	return "the program computes no value of this name";
}

/* What windows read is a group of its own, and never dropped. */
static void store_padded_copies(struct sched_planner *pl, int body)
{
	const struct sched_values *values = &pl->values[body];
	int pressure = sched_pressure_limit(pl->plan->target) + 1;
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(pl->p, values->value[i]);
		if (v->op != SUB_ASSIGN || !move_is_padded_copy(pl->p, v->arg[0].value))
			continue;
		struct sched_fact *fact = sched_fact(values, v->arg[0].value);
		if (fact->stored || fact->result)
			continue;
		fact->stored = fact->dropped = fact->copied = true;
		fact->block = sched_new_block(pl, (struct sched_block){.reductions = 2, .pressure = pressure});
	}
}

/* The stored value that another one is computed of, element by element; none if there is none, or there are several. */
static sub_ref find_stored_below(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	sub_ref found = {0};
	for (int a = 0; a < sub_at(p, r)->args; a++) {
		sub_ref arg = sub_at(p, r)->arg[a].value, below = arg;
		if (!sub_has_leading_dim(p, arg))
			continue;
		if (!sub_reads_as_is(p, sub_at(p, r), a) || found.i)
			return (sub_ref){0};
		enum sub_class class = sub_class_of(sub_at(p, arg)->op);
		if (!sched_fact(values, arg)->stored)
			below = class == SUB_UNARY || class == SUB_BINARY ? find_stored_below(p, values, arg) : (sub_ref){0};
		if (!below.i)
			return below;
		found = below;
	}
	return found;
}

/* Whether a value reads another one through windows that leave it. */
static bool leaves_row(const struct sub_program *p, const struct sub_value *v)
{
	bool leaves = false;
	for (int i = 1; v->op == SUB_ASSIGN && v->fills && i < v->arg[0].vars; i++)
		leaves |= sub_map_leaves(p, v, i);
	return leaves;
}

/* Where windows that leave a row read what is computed of a stored value element by element, that is stored instead by the
 * same group: loops can be cut at borders of what is in memory (ilir/peel_borders.c). */
static void store_windows(struct sched_planner *pl, int body)
{
	const struct sched_values *values = &pl->values[body];
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(pl->p, values->value[i]);
		if (!leaves_row(pl->p, v))
			continue;
		struct sched_fact *fact = sched_fact(values, v->arg[0].value);
		if (fact->stored || !can_be_stored(pl->p, v->arg[0].value, fact))
			continue;
		sub_ref below = find_stored_below(pl->p, values, v->arg[0].value);
		if (!below.i)
			continue;
		fact->stored = true;
		fact->block = sched_fact(values, below)->block;
	}
}

/* What is gathered is a group of its own unless it is given: it is read at other elements than those that are
 * computed. */
static void store_gathered(struct sched_planner *pl, int body)
{
	const struct sched_values *values = &pl->values[body];
	int pressure = sched_pressure_limit(pl->plan->target) + 1;
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(pl->p, values->value[i]);
		if (v->op != SUB_GATHER)
			continue;
		sub_ref from = v->arg[0].value;
		while (sub_at(pl->p, from)->op == SUB_ASSIGN)
			from = sub_at(pl->p, from)->arg[0].value;
		struct sched_fact *fact = sched_fact(values, from);
		if (fact->stored || !can_be_stored(pl->p, from, fact))
			continue;
		fact->stored = fact->dropped = true;
		fact->block =
		    sched_new_block(pl, (struct sched_block){.reductions = 2, .pressure = pressure});
	}
}

/* Moves what a planner stores to the narrow end of what is computed of it. */
static void store_narrow_ends(struct sched_planner *pl, int body)
{
	const struct sched_values *values = &pl->values[body];
	for (int i = values->n; i-- > 0;) {
		struct sched_fact *f = &values->fact[i];
		if (!f->stored || f->result || f->dropped)
			continue;
		f->stored = false;
		sched_store_narrow_end(pl->p, values, values->value[i]);
	}
}

static void run_planner(struct sched_planner *pl)
{
	static void (*const planners[])(struct sched_planner *, int) = {
	    [SCHED_GROW] = sched_grow, [SCHED_GREEDY] = sched_greedy, [SCHED_NONE] = sched_store_all};
	for (size_t b = 0; b < pl->p->bodies.n; b++)
		planners[pl->plan->fusion.planner](pl, b);
	for (size_t b = 0; b < pl->p->bodies.n; b++) {
		store_narrow_ends(pl, b);
		store_named_values(pl, b);
		store_padded_copies(pl, b);
		store_windows(pl, b);
		store_gathered(pl, b);
		sched_store_selected(pl, b);
	}
}

/* Walks the targets and makes groups of them, until nothing more is to be stored.  This ends, as a value is
 * dropped at most once on the way. */
static void find_groups(struct sched_grouper *gr)
{
	do {
		gr->changed = false;
		for (size_t b = 0; b < gr->pl.p->bodies.n; b++)
			sched_mark_expensive(gr->pl.p, &gr->pl.values[b]);
		walk_targets(gr);
		if (gr->changed)
			continue;
		sched_make_groups(gr);
		store_shared_reductions(gr);
		if (!gr->changed)
			gr->changed = drop_unread(gr, false);
	} while (gr->changed);
}

void sched_make_plan(struct sched_plan *plan, struct arena *a, const struct sub_program *p,
		     const struct target *target, const struct sched_fusion *fusion)
{
	size_t bodies = p->bodies.n;
	bool *seen = ARENA_ARRAY(a, bool, p->values.n);
	struct sched_grouper gr = {.pl = {.plan = plan, .p = p, .arena = a}};
	*plan = (struct sched_plan){.p = p, .target = target, .fusion = *fusion};
	plan->values = gr.pl.values = ARENA_ARRAY(a, struct sched_values, bodies);
	for (size_t b = 0; b < bodies; b++)
		sched_find_values(&gr.pl.values[b], a, p, b, seen);
	sched_walk_init(&gr.walk, a, plan);
	gr.walk.visit = guard_value;
	gr.walk.visit_choice = store_side;
	gr.walk.context = &gr;
	run_planner(&gr.pl);
	add_targets(&gr);
	do
		do
			find_groups(&gr);
		while (fusion->arranging != MOVE_OFF && sched_arrange(&gr));
	while (!release_pinned(&gr) || sched_read_words_in_place(&gr));
	sched_finish_groups(&gr);
	sched_count_operations(plan, a, seen);
	sched_make_local(plan, a);
	sched_choose_stored_types(plan, a);
}

bool sched_is_stored(const struct sched_plan *plan, int body, sub_ref r)
{
	return sched_fact(&plan->values[body], r)->stored;
}

bool sched_is_step(const struct sched_plan *plan, int body, sub_ref r)
{
	return sched_fact(&plan->values[body], r)->chain_end.i;
}

int sched_group_of(const struct sched_plan *plan, int body, sub_ref r)
{
	return sched_fact(&plan->values[body], r)->group - 1;
}
