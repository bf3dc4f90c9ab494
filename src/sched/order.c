/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Chooses the order of the dimensions of stored values, and the dimension of each group that its vectors
 * run along.
 *
 * A group can be vectorized along one of its dimensions if every access moves with it in the last
 * dimension in memory, or not at all.  Weights are packed, so they allow any dimension.  Outputs, and
 * tables whose rows are looked up, are as the caller has them.  The order of states and intermediates is
 * chosen, greedily: tensors that the dominant group (the one with most accesses) touches come first, each
 * getting the order by which groups make the fewest accesses, of single elements or of vectors, of which some lie past
 * the end of a dimension.  Tensors without an order yet are assumed to suit. */
#include "base/map.h"
#include "sched/plan.h"

enum {
	NONE = -1,   /* an index that is independent of the group's dimensions */
	ROW = -2,    /* an index that is read from an index array */
	STRIDED = 32, /* plus a mask: an index that moves with these dimensions, but not with one evenly */
	/* times the step less one, plus a dimension: an index that moves with it by some elements at a time */
	STEP = 1 << 20
};

enum kind { STATE, TABLE, INTERMEDIATE };

/* A tensor in memory whose order can be chosen.  A table is a parameter whose rows are looked up. */
struct tensor {
	enum kind kind;
	int which;	     /* the state, the parameter, or the body of the intermediate */
	sub_ref value;	     /* the intermediate */
	int rank;	     /* of a row */
	int last;	     /* the dimension that is the last in memory */
	bool settled, packed; /* packed: a table that is also packed as a whole */
	double volume;	      /* of accesses, in the largest group that touches it */
};

struct access {
	int tensor; /* -1 = a parameter or output */
	int rank, moves[SUB_MAX_VARS];
	bool packed; /* vectors may run along any of its dimensions */
	double volume;
};

struct group_accesses {
	int dims;
	double volume;
	VEC(struct access) all;
};

struct order {
	struct sched *s;
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	VEC(struct tensor) tensors;
	struct group_accesses *groups;
	/* the current group */
	int group;
	struct map visited;
};

/* The tensor of an access; NULL = a parameter or output. */
static struct tensor *tensor_of(const struct order *o, const struct access *a)
{
	return a->tensor >= 0 && (size_t)a->tensor < o->tensors.n ? &o->tensors.at[a->tensor] : NULL;
}

/* --- accesses of a group --- */

static int find_tensor(struct order *o, enum kind kind, int which, sub_ref value, int rank)
{
	for (size_t i = 0; i < o->tensors.n; i++) {
		const struct tensor *t = &o->tensors.at[i];
		if (t->kind == kind && t->which == which && t->value.i == value.i)
			return i;
	}
	struct tensor t = {.kind = kind,
			   .which = which,
			   .value = value,
			   .rank = rank,
			   .last = rank - 1,
			   .settled = rank < 2};
	vec_push(o->arena, &o->tensors, t);
	return o->tensors.n - 1;
}

static void note_access(struct order *o, int tensor, const int *moves, int rank, bool packed, double volume)
{
	struct group_accesses *g = &o->groups[o->group];
	struct access a = {.tensor = tensor, .rank = rank, .packed = packed, .volume = volume};
	memcpy(a.moves, moves, rank * sizeof *moves);
	vec_push(o->arena, &g->all, a);
	g->volume += volume;
}

/* The first store of a result of the body, which is where it is read back; NULL = an intermediate. */
static const struct sub_store *result_of(const struct order *o, int body, sub_ref r)
{
	const struct sub_body *b = &o->p->bodies.at[body];
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i)
			return &b->stores.at[i];
	return NULL;
}

static void note_target(struct order *o, const struct sub_store *s, const int *moves, int rank, double volume)
{
	int tensor = s->to == SUB_TO_STATE ? find_tensor(o, STATE, s->which, (sub_ref){0}, rank) : -1;
	note_access(o, tensor, moves, rank, false, volume);
}

static void note_intermediate(struct order *o, sub_ref r, const int *moves, int rank, double volume)
{
	int body = o->plan->groups.at[o->group].body;
	note_access(o, find_tensor(o, INTERMEDIATE, body, r, rank), moves, rank, false, volume);
}

static void note_stored(struct order *o, sub_ref r, const int *moves, double volume)
{
	int leading = sub_leading_dims(o->p, r), rank = sub_at(o->p, r)->vars - leading;
	const struct sub_store *s = result_of(o, o->plan->groups.at[o->group].body, r);
	if (s)
		note_target(o, s, moves + leading, rank, volume);
	else
		note_intermediate(o, r, moves + leading, rank, volume);
}

/* A parameter is packed unless its rows are looked up; if both, the rows stay as the caller has them. */
static void note_param(struct order *o, const struct sub_value *v, const int *moves, double volume)
{
	bool picked = v->vars > 0 && moves[0] == ROW;
	bool given = v->vars > 1 && !o->p->params.at[v->which].folded;
	int table = given ? find_tensor(o, TABLE, v->which, (sub_ref){0}, v->vars - 1) : -1;
	if (table >= 0 && !picked)
		o->tensors.at[table].settled = o->tensors.at[table].packed = true;
	note_access(o, picked ? table : -1, moves + picked, v->vars - picked, !picked, volume);
}

/* Inputs have a row per node, or per edge of the node. */
static void note_vector(struct order *o, const struct sub_value *v, const int *moves, double volume)
{
	int leading = 1 + o->p->inputs.at[v->which].on_edge;
	note_access(o, -1, moves + leading, v->vars - leading, false, volume);
}

static void note_source(struct order *o, const struct sub_value *v, const int *moves, double volume)
{
	if (v->op == SUB_PARAM)
		note_param(o, v, moves, volume);
	else if (v->op == SUB_STATE)
		note_access(o, find_tensor(o, STATE, v->which, (sub_ref){0}, v->vars - 1), moves + 1,
			    v->vars - 1, false, volume);
	else if (v->op == SUB_VECTOR)
		note_vector(o, v, moves, volume);
}

static void walk_value(struct order *, sub_ref, const int *moves, double volume);

/* The dimension that an index moves with evenly, or the mask of several. */
static int dim_of(int moves)
{
	return moves >= 0 ? moves % STEP : moves;
}

static int step_of(int moves)
{
	return moves >= 0 ? moves / STEP + 1 : 1;
}

/* A mask of the dimensions of the group that an index moves with. */
static unsigned dims_of(int moves)
{
	int dim = dim_of(moves);
	return dim >= STRIDED ? (unsigned)(dim - STRIDED) : dim >= 0 ? 1u << dim : 0;
}

static int strided_moves(unsigned dims)
{
	return dims ? STRIDED + (int)dims : NONE;
}

static int moves_of(const struct sub_value *v, int var, const int *moves)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return moves[i];
	return NONE;
}

static int moves_of_map(const struct sub_value *v, const struct sub_map *m, const int *moves)
{
	if (!sub_is_arithmetic(m))
		return ROW;
	int first = moves_of(v, m->var, moves), second = m->scale2 ? moves_of(v, m->var2, moves) : NONE;
	bool even = m->function == SUB_AFFINE && m->scale >= 1 && first >= 0 && dim_of(first) < STRIDED &&
		    !dims_of(second);
	if (even && m->scale * step_of(first) <= SUB_LONGEST_STEP)
		return dim_of(first) + STEP * ((int)m->scale * step_of(first) - 1);
	if (m->function == SUB_AFFINE && m->scale == 1 && !dims_of(second))
		return first;
	return strided_moves(dims_of(first) | dims_of(second));
}

/* Walks an argument: its dimensions move as the value's variables of the same name, except for `own`,
 * variables of this use alone. */
static void walk_use(struct order *o, const struct sub_value *v, const struct sub_use *u, const int *moves,
		     const struct sub_vars *own, int own_moves, double volume)
{
	int out[SUB_MAX_VARS] = {0};
	for (int i = 0; i < u->vars; i++) {
		out[i] = own_moves;
		for (int j = 0; sub_position_in(own, u->var[i]) < 0 && j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = moves[j];
	}
	walk_value(o, u->value, out, volume);
}

static void walk_moved(struct order *o, const struct sub_value *v, const int *moves, double volume)
{
	int out[SUB_MAX_VARS] = {0};
	for (int a = 0; v->op == SUB_COND && a < 2; a++) {
		struct sub_vars axis = sub_one_var(sub_joined_var(v, a));
		walk_use(o, v, &v->arg[a], moves, &axis, moves[v->axis], volume);
	}
	if (v->op == SUB_COND)
		return;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		out[i] = moves_of_map(v, &v->map[i], moves);
	walk_value(o, v->arg[0].value, out, volume);
}

static void walk_arguments(struct order *o, const struct sub_value *v, const int *moves, double volume)
{
	static const struct sub_vars no_vars = {0};
	switch (sub_class_of(v->op)) {
	case SUB_CONTRACTION:
	case SUB_REDUCE:
		if (v->args > 1)
			walk_use(o, v, &v->arg[0], moves, &no_vars, NONE, volume);
		volume *= sub_reduced_extent(o->p, v);
		for (int a = v->args > 1; a < v->args; a++)
			walk_use(o, v, &v->arg[a], moves, &v->reduced, NONE, volume);
		break;
	case SUB_GATHERING:
		walk_use(o, v, &v->arg[0], moves, &v->reduced, ROW, volume);
		walk_use(o, v, &v->arg[1], moves, &no_vars, NONE, volume);
		break;
	case SUB_MOVE:
		walk_moved(o, v, moves, volume);
		break;
	default:
		for (int a = 0; a < v->args; a++)
			walk_use(o, v, &v->arg[a], moves, &no_vars, NONE, volume);
	}
}

static bool is_target(const struct sched_group *g, sub_ref r)
{
	for (size_t t = 0; t < g->targets.n; t++)
		if (g->targets.at[t].i == r.i)
			return true;
	return false;
}

/* Whether a value is a target of the current group, read at the element that the group computes. */
static bool is_here(const struct order *o, sub_ref r, const int *moves)
{
	int leading = sub_leading_dims(o->p, r);
	for (int i = leading; i < sub_at(o->p, r)->vars; i++)
		if (moves[i] != i - leading)
			return false;
	return is_target(&o->plan->groups.at[o->group], r);
}

static void walk_value(struct order *o, sub_ref r, const int *moves, double volume)
{
	const struct sub_value *v = sub_at(o->p, r);
	int key[1 + SUB_MAX_VARS] = {r.i};
	memcpy(key + 1, moves, v->vars * sizeof *moves);
	if (!map_add(&o->visited, (const char *)key, (1 + v->vars) * sizeof *key, 1))
		return;
	if (sub_class_of(v->op) == SUB_SOURCE)
		note_source(o, v, moves, volume);
	else if (sched_is_stored(o->plan, o->plan->groups.at[o->group].body, r) && !is_here(o, r, moves))
		note_stored(o, r, moves, volume);
	else
		walk_arguments(o, v, moves, volume);
}

/* Notes the stores of a target and all accesses to compute it. */
static void walk_target(struct order *o, sub_ref r, double volume)
{
	const struct sched_group *g = &o->plan->groups.at[o->group];
	const struct sub_body *b = &o->p->bodies.at[g->body];
	int moves[SUB_MAX_VARS] = {0}, leading = sub_leading_dims(o->p, r);
	bool stored = false;
	for (int i = 0; i < leading + g->dims; i++)
		moves[i] = i < leading ? NONE : i - leading;
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i) {
			note_target(o, &b->stores.at[i], moves + leading, g->dims, volume);
			stored = true;
		}
	if (!stored)
		note_intermediate(o, r, moves + leading, g->dims, volume);
	walk_value(o, r, moves, volume);
}

static void walk_group(struct order *o, int group)
{
	const struct sched_group *g = &o->plan->groups.at[group];
	double volume = g->edges ? SUB_RAGGED_EXTENT : 1;
	for (int d = 0; d < g->dims; d++)
		volume *= g->extent[d];
	o->group = group;
	o->groups[group].dims = g->dims;
	o->visited = map_in(o->arena);
	for (size_t t = 0; t < g->targets.n; t++)
		walk_target(o, g->targets.at[t], volume);
	for (size_t i = 0; i < o->groups[group].all.n; i++) {
		struct tensor *t = tensor_of(o, &o->groups[group].all.at[i]);
		if (t && t->volume < o->groups[group].volume)
			t->volume = o->groups[group].volume;
	}
}

/* --- dimensions that vectors can run along --- */

/* The dimension of an access that moves with `dim` evenly; -1 = none, -2 = several, or another kind of
 * move. */
static int find_moving(const struct access *a, int dim)
{
	int found = -1;
	for (int i = 0; i < a->rank; i++)
		if (dim_of(a->moves[i]) == dim)
			found = found == -1 ? i : -2;
		else if (dims_of(a->moves[i]) >> dim & 1)
			found = -2;
	return found;
}

/* Whether access `i` allows vectors along `dim`.  A tensor without an order yet does if all accesses to it
 * agree. */
static bool suits_vectors(const struct order *o, const struct group_accesses *g, size_t i, int dim)
{
	const struct access *a = &g->all.at[i];
	int at = find_moving(a, dim);
	const struct tensor *t = tensor_of(o, a);
	if (at < 0 || a->packed)
		return at == -1 || (at >= 0 && step_of(a->moves[at]) == 1);
	if (!t || t->settled)
		return at == (t ? t->last : a->rank - 1);
	for (size_t k = 0; k < i; k++)
		if (g->all.at[k].tensor == a->tensor && find_moving(&g->all.at[k], dim) >= 0 &&
		    find_moving(&g->all.at[k], dim) != at)
			return false;
	return true;
}

static bool can_vectorize(const struct order *o, const struct group_accesses *g, int dim)
{
	for (size_t i = 0; i < g->all.n; i++)
		if (!suits_vectors(o, g, i, dim))
			return false;
	return true;
}

/* The accesses of a group if vectors run along a dimension, those past its end included: each takes as many
 * vectors as its elements lie apart. */
static double vectors_along(const struct order *o, int group, int dim)
{
	const struct group_accesses *g = &o->groups[group];
	int64_t extent = o->plan->groups.at[group].extent[dim], lanes = o->s->lanes;
	double vectors = (double)((extent + lanes - 1) / lanes) / (double)extent, volume = g->volume;
	for (size_t i = 0; i < g->all.n; i++) {
		int at = find_moving(&g->all.at[i], dim);
		volume += at >= 0 ? g->all.at[i].volume * (step_of(g->all.at[i].moves[at]) - 1) : 0;
	}
	return volume * vectors;
}

/* The dimension of the group that the fewest vectors run along, the last of several; -1 = none. */
static int vector_dim(const struct order *o, int group)
{
	int best = -1;
	for (int dim = o->groups[group].dims; dim-- > 0;)
		if (can_vectorize(o, &o->groups[group], dim) &&
		    (best < 0 || vectors_along(o, group, dim) < vectors_along(o, group, best)))
			best = dim;
	return best;
}

/* The accesses of all groups, as vectors where these can be. */
static double count_accesses(const struct order *o)
{
	double accesses = 0;
	for (size_t g = 0; g < o->plan->groups.n; g++) {
		int dim = o->groups[g].dims ? vector_dim(o, (int)g) : -1;
		accesses += dim < 0 ? o->groups[g].volume : vectors_along(o, (int)g, dim);
	}
	return accesses;
}

/* --- choosing --- */

/* The tensor of the largest group among those without an order yet; NULL = all have one. */
static struct tensor *find_dominant(struct order *o)
{
	struct tensor *found = NULL;
	for (size_t i = 0; i < o->tensors.n; i++) {
		struct tensor *t = &o->tensors.at[i];
		if (!t->settled && (!found || t->volume > found->volume))
			found = t;
	}
	return found;
}

/* Gives a tensor its order: row-major unless another one is better. */
static void settle_order(struct order *o, struct tensor *t)
{
	double best = 0;
	int choice = -1;
	t->settled = true;
	for (int last = t->rank; last-- > 0;) {
		t->last = last;
		double accesses = count_accesses(o);
		if (choice < 0 || accesses < best * (1 - 1e-9))
			best = accesses, choice = last;
	}
	t->last = choice;
}

/* Row-major order, but with dimension `last` innermost. */
static struct sched_order ending_with(int rank, int last)
{
	struct sched_order order = {.rank = rank};
	for (int d = 0, n = 0; d < rank; d++)
		order.dim[d == last ? rank - 1 : n++] = d;
	return order;
}

static void add_intermediate(struct order *o, const struct tensor *t, struct sched_order order)
{
	const char *name = sched_value_name(o->plan, t->which, t->value);
	name = sub_find_free_name(o->p, SUB_NAME_TENSOR, name);
	vec_push(o->arena, &o->s->intermediates, (struct sched_intermediate){t->which, t->value, name, order});
}

/* The dimension of a group without vectors whose neighbours lie side by side in what it reads most, where that is not the
 * last one of the group; else the last one. */
static int neighbours_dim(const struct order *o, const struct group_accesses *g)
{
	int found = g->dims - 1;
	double most = 0;
	for (size_t i = 0; i < g->all.n; i++) {
		const struct access *a = &g->all.at[i];
		const struct tensor *t = tensor_of(o, a);
		int moves = a->rank ? a->moves[t ? t->last : a->rank - 1] : NONE;
		if (moves >= 0 && moves < g->dims - 1 && a->volume > most)
			found = moves, most = a->volume;
	}
	return found;
}

static void record_orders(struct order *o)
{
	for (size_t i = 0; i < o->tensors.n; i++) {
		const struct tensor *t = &o->tensors.at[i];
		struct sched_order order = ending_with(t->rank, t->last);
		if (t->kind == STATE)
			o->s->states.at[t->which].order = order;
		else if (t->kind == TABLE && !t->packed)
			o->s->tables.at[t->which] = order;
		else if (t->kind == INTERMEDIATE && t->rank > 0)
			add_intermediate(o, t, order);
	}
	for (size_t g = 0; g < o->plan->groups.n; g++) {
		int dims = o->groups[g].dims, dim = vector_dim(o, (int)g);
		bool large = sched_moves_images(o->s, &o->plan->groups.at[g]);
		int scalars = dims && large ? neighbours_dim(o, &o->groups[g]) : dims ? dims - 1 : 0;
		o->s->tiles.at[g].along = dim >= 0 ? dim : scalars;
		o->s->tiles.at[g].lanes = dim >= 0 ? o->s->lanes : 1;
	}
}

void sched_choose_order(struct sched *s, const struct sched_plan *plan)
{
	struct order o = {.s = s, .plan = plan, .p = plan->p, .arena = plan->p->arena};
	struct tensor *t;
	for (size_t i = 0; i < plan->p->states.n; i++) {
		int rank = plan->p->states.at[i].rank;
		vec_push(o.arena, &s->states, (struct sched_state){IMAGE_BY_NODE, true, ending_with(rank, rank - 1)});
	}
	for (size_t i = 0; i < plan->p->params.n; i++)
		vec_push(o.arena, &s->tables, (struct sched_order){0});
	for (size_t i = 0; i < plan->p->inputs.n; i++)
		vec_push(o.arena, &s->given, true);
	o.groups = ARENA_ARRAY(o.arena, struct group_accesses, plan->groups.n);
	for (size_t g = 0; g < plan->groups.n; g++)
		walk_group(&o, g);
	while ((t = find_dominant(&o)))
		settle_order(&o, t);
	record_orders(&o);
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
