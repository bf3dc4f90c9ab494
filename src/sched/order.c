/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Chooses the order of the dimensions of stored values, and the dimension of each group that its vectors
 * run along.
 *
 * A group can be vectorized along one of its dimensions if every access moves with it in the last
 * dimension in memory, or not at all.  Weights are packed, so they allow any dimension.  Outputs, and
 * tables whose rows are looked up, are as the caller has them.  The order of states and intermediates is
 * chosen, greedily: each gets the order by which groups make the fewest accesses, of single elements or of vectors, of which
 * some lie past the end of a dimension.  Tensors without an order yet are assumed to suit.
 *
 * Which tensor comes first matters, and is decided in two ways: tensors that the dominant group (the one with most accesses)
 * touches; or the one whose second best order is the worst, so that where a choice leaves a neighbour one good order, that
 * neighbour is the next.  In a chain of convolutions the former meets groups from both sides that then have no vectors. */
#include "sched/order.h"

#include <math.h>

/* The share of accesses that the second way must save, below which the count does not tell which is faster: in transformers
 * orders that saved 1 % of them took a third longer. */
static const double least_gain = 0.03;

/* --- dimensions that vectors can run along --- */

/* The dimension of an access that moves with `dim` evenly; -1 = none, -2 = several, or another kind of
 * move. */
static int find_moving(const struct order_access *a, int dim)
{
	int found = -1;
	for (int i = 0; i < a->rank; i++)
		if (order_dim_of(a->moves[i]) == dim)
			found = found == -1 ? i : -2;
		else if (order_dims_of(a->moves[i]) >> dim & 1)
			found = -2;
	return found;
}

/* Whether access `i` allows vectors along `dim`.  A tensor without an order yet does if all accesses to it
 * agree. */
bool order_suits(const struct order *o, const struct order_group *g, size_t i, int dim)
{
	const struct order_access *a = &g->all.at[i];
	int at = find_moving(a, dim);
	const struct order_tensor *t = order_tensor_of(o, a);
	if (a->word.i)
		return at == -1 && (!t || !t->settled || t->last == a->word_dim);
	if (at < 0 || a->packed)
		return at == -1 || (at >= 0 && order_step_of(a->moves[at]) == 1);
	if (!t || t->settled)
		return at == (t ? t->last : a->rank - 1);
	for (size_t k = 0; k < i; k++)
		if (g->all.at[k].tensor == a->tensor && find_moving(&g->all.at[k], dim) >= 0 &&
		    find_moving(&g->all.at[k], dim) != at)
			return false;
	return true;
}

static bool can_vectorize(const struct order *o, const struct order_group *g, int dim)
{
	for (size_t i = 0; i < g->all.n; i++)
		if (!order_suits(o, g, i, dim))
			return false;
	return true;
}

/* The accesses of a group if vectors run along a dimension, those past its end included: each takes as many
 * vectors as its elements lie apart. */
static double vectors_along(const struct order *o, int group, int dim)
{
	const struct order_group *g = &o->groups[group];
	int64_t extent = o->plan->groups.at[group].extent[dim], lanes = o->lanes;
	double vectors = (double)((extent + lanes - 1) / lanes) / (double)extent, volume = g->volume;
	for (size_t i = 0; i < g->all.n; i++) {
		int at = find_moving(&g->all.at[i], dim);
		volume += at >= 0 ? g->all.at[i].volume * (order_step_of(g->all.at[i].moves[at]) - 1) : 0;
	}
	return volume * vectors;
}

/* The dimension of the group that the fewest vectors run along, the last of several; -1 = none. */
int order_vector_dim(const struct order *o, int group)
{
	int best = -1;
	for (int dim = o->groups[group].dims; dim-- > 0;)
		if (can_vectorize(o, &o->groups[group], dim) &&
		    (best < 0 || vectors_along(o, group, dim) < vectors_along(o, group, best)))
			best = dim;
	return best;
}

double order_count_accesses(const struct order *o, int group)
{
	int dim = o->groups[group].dims ? order_vector_dim(o, group) : -1;
	return dim < 0 ? o->groups[group].volume : vectors_along(o, group, dim);
}

/* --- choosing --- */

/* What is known of the orders of a tensor: the best one, and by how many accesses the second best is worse. */
struct preference {
	bool known;
	int last;
	double margin;
};

/* The accesses of the groups that touch a tensor: those of others do not depend on its order. */
static double count_touching(const struct order *o, const struct order_tensor *t)
{
	double accesses = 0;
	for (size_t i = 0; i < t->groups.n; i++)
		accesses += order_count_accesses(o, t->groups.at[i]);
	return accesses;
}

/* Compares the orders of a tensor, given those of tensors that have one: row-major unless another one is better. */
static struct preference compare_orders(struct order *o, struct order_tensor *t)
{
	struct preference p = {.known = true, .last = -1};
	double least = 0, second = INFINITY;
	t->settled = true;
	for (int last = t->rank; last-- > 0;) {
		t->last = last;
		double accesses = count_touching(o, t);
		if (p.last < 0 || accesses < least * (1 - 1e-9)) {
			second = p.last < 0 ? second : least;
			p.last = last;
			least = accesses;
		} else {
			second = fmin(second, accesses);
		}
	}
	t->settled = false;
	p.margin = second - least;
	return p;
}

/* Which tensor gets its order next. */
enum turn { BY_VOLUME, BY_MARGIN };

static bool comes_before(const struct order *o, const struct preference *of, enum turn turn, size_t a, size_t b)
{
	if (turn == BY_MARGIN && of[a].margin != of[b].margin)
		return of[a].margin > of[b].margin;
	return o->tensors.at[a].volume > o->tensors.at[b].volume;
}

/* The tensor without an order yet that gets it next; -1 = all have one. */
static int find_next_tensor(struct order *o, struct preference *of, enum turn turn)
{
	int found = -1;
	for (size_t i = 0; i < o->tensors.n; i++) {
		if (o->tensors.at[i].settled)
			continue;
		if (!of[i].known && turn == BY_MARGIN)
			of[i] = compare_orders(o, &o->tensors.at[i]);
		if (found < 0 || comes_before(o, of, turn, i, (size_t)found))
			found = (int)i;
	}
	return found;
}

/* Forgets the preferences of tensors that share a group with one. */
static void forget_neighbours(const struct order *o, const struct order_tensor *t, struct preference *of)
{
	for (size_t i = 0; i < t->groups.n; i++) {
		const struct order_group *g = &o->groups[t->groups.at[i]];
		for (size_t k = 0; k < g->all.n; k++)
			if (order_tensor_of(o, &g->all.at[k]))
				of[g->all.at[k].tensor].known = false;
	}
}

static void settle_tensors(struct order *o, enum turn turn)
{
	struct preference *of = ARENA_ARRAY(o->arena, struct preference, o->tensors.n);
	for (int i; (i = find_next_tensor(o, of, turn)) >= 0;) {
		struct order_tensor *t = &o->tensors.at[i];
		t->last = of[i].known ? of[i].last : compare_orders(o, t).last;
		t->settled = true;
		forget_neighbours(o, t, of);
	}
}

double order_count_all(const struct order *o)
{
	double accesses = 0;
	for (size_t g = 0; g < o->plan->groups.n; g++)
		accesses += order_count_accesses(o, (int)g);
	return accesses;
}

struct order order_copy(const struct order *from)
{
	struct order o = *from;
	o.tensors.at = arena_copy(o.arena, from->tensors.at, from->tensors.n * sizeof *from->tensors.at);
	o.tensors.capacity = o.tensors.n;
	o.copy = true;
	return o;
}

void order_settle(struct order *o)
{
	struct order by_margin = order_copy(o);
	settle_tensors(o, BY_VOLUME);
	settle_tensors(&by_margin, BY_MARGIN);
	if (order_count_all(&by_margin) < (1 - least_gain) * order_count_all(o))
		o->tensors = by_margin.tensors;
}

/* --- recording --- */

/* Row-major order, but with dimension `last` innermost. */
static struct sched_order ending_with(int rank, int last)
{
	struct sched_order order = {.rank = rank};
	for (int d = 0, n = 0; d < rank; d++)
		order.dim[d == last ? rank - 1 : n++] = d;
	return order;
}

static void add_intermediate(struct sched *s, const struct order *o, const struct order_tensor *t, struct sched_order order)
{
	const char *name = sched_value_name(o->plan, t->which, t->value);
	name = sub_find_free_name(o->p, SUB_NAME_TENSOR, name);
	vec_push(o->arena, &s->intermediates, (struct sched_intermediate){t->which, t->value, name, order});
}

/* The dimension of a group without vectors whose neighbours lie side by side in what it reads most, where that is not the
 * last one of the group; else the last one. */
static int neighbours_dim(const struct order *o, const struct order_group *g)
{
	int found = g->dims - 1;
	double most = 0;
	for (size_t i = 0; i < g->all.n; i++) {
		const struct order_access *a = &g->all.at[i];
		const struct order_tensor *t = order_tensor_of(o, a);
		int moves = a->rank ? a->moves[t ? t->last : a->rank - 1] : ORDER_NONE;
		if (moves >= 0 && moves < g->dims - 1 && a->volume > most)
			found = moves, most = a->volume;
	}
	return found;
}

static void record_orders(struct sched *s, const struct order *o)
{
	for (size_t i = 0; i < o->tensors.n; i++) {
		const struct order_tensor *t = &o->tensors.at[i];
		struct sched_order order = ending_with(t->rank, t->last);
		if (t->kind == ORDER_STATE)
			s->states.at[t->which].order = order;
		else if (t->kind == ORDER_TABLE && !t->packed)
			s->tables.at[t->which] = order;
		else if (t->kind == ORDER_INTERMEDIATE && t->rank > 0)
			add_intermediate(s, o, t, order);
	}
	for (size_t g = 0; g < o->plan->groups.n; g++) {
		int dims = o->groups[g].dims, dim = order_vector_dim(o, (int)g);
		bool large = sched_moves_images(s, &o->plan->groups.at[g]);
		int scalars = dims && large ? neighbours_dim(o, &o->groups[g]) : dims ? dims - 1 : 0;
		s->tiles.at[g].along = dim >= 0 ? dim : scalars;
		s->tiles.at[g].lanes = dim >= 0 ? o->lanes : 1;
	}
}

void sched_choose_order(struct sched *s, const struct sched_plan *plan)
{
	struct order o;
	struct arena *a = plan->p->arena;
	for (size_t i = 0; i < plan->p->states.n; i++) {
		int rank = plan->p->states.at[i].rank;
		vec_push(a, &s->states, (struct sched_state){IMAGE_BY_NODE, true, ending_with(rank, rank - 1)});
	}
	for (size_t i = 0; i < plan->p->params.n; i++)
		vec_push(a, &s->tables, (struct sched_order){0});
	for (size_t i = 0; i < plan->p->inputs.n; i++)
		vec_push(a, &s->given, true);
	order_list_accesses(&o, plan, a, s->lanes);
	order_settle(&o);
	record_orders(s, &o);
}

const struct sched_order *sched_intermediate_order(const struct sched *s, int body, sub_ref value)
{
	for (size_t i = 0; i < s->intermediates.n; i++)
		if (s->intermediates.at[i].body == body && s->intermediates.at[i].value.i == value.i)
			return &s->intermediates.at[i].order;
	return NULL;
}

const char *sched_value_name(const struct sched_plan *plan, int body, sub_ref value)
{
	struct str s = str_in(plan->p->arena);
	str_printf(&s, "%s.v%u", plan->p->bodies.at[body].name, value.i);
	return s.text;
}

bool sched_is_row_major(const struct sched_order *order)
{
	for (int i = 0; i < order->rank; i++)
		if (order->dim[i] != i)
			return false;
	return true;
}
