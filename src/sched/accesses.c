/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lists what the groups of a plan read and write in memory, and how that moves with their dimensions. */
#include "sched/order.h"

#include <math.h>

enum {
	STRIDED = 32, /* plus a mask: an index that moves with these dimensions, but not with one evenly */
	/* times the step less one, plus a dimension: an index that moves with it by some elements at a time */
	STEP = 1 << 20
};

/* The walk over a group. */
struct walk {
	struct order *order;
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	int group;
	struct map visited;
	sub_ref through; /* the outermost ASSIGN since the last value that is computed; 0 = none */
	int outer_rank, outer[SUB_MAX_VARS];
	sub_ref word; /* that is read in place; 0 = none */
	int word_dim; /* of a row of its bytes */
};

/* --- accesses of a group --- */

/* The number of a tensor; -1 = it is new. */
static int number_of_tensor(const struct order *o, const int *key, size_t bytes)
{
	int number = map_get(o->numbers, (const char *)key, bytes);
	for (size_t i = o->numbered; number < 0 && i < o->tensors.n; i++) {
		const struct order_tensor *t = &o->tensors.at[i];
		if ((int)t->kind == key[0] && t->which == key[1] && (int)t->value.i == key[2])
			number = (int)i;
	}
	return number;
}

int order_find_tensor(struct order *o, enum order_kind kind, int which, sub_ref value, int rank)
{
	const int key[] = {(int)kind, which, (int)value.i};
	int number = number_of_tensor(o, key, sizeof key);
	if (number >= 0)
		return number;
	struct order_tensor t = {.kind = kind,
			   .which = which,
			   .value = value,
			   .rank = rank,
			   .last = rank - 1,
			   .settled = rank < 2};
	vec_push(o->arena, &o->tensors, t);
	if (!o->copy)
		map_add(o->numbers, (const char *)key, sizeof key, (int)o->numbered++);
	return (int)o->tensors.n - 1;
}

void order_touch(struct order *o, int tensor, int group)
{
	struct order_tensor *t = &o->tensors.at[tensor];
	if (!t->groups.n || t->groups.at[t->groups.n - 1] != group)
		vec_push(o->arena, &t->groups, group);
}

static void note_access(struct walk *w, int tensor, const int *moves, int rank, bool packed, double volume)
{
	struct order_group *g = &w->order->groups[w->group];
	struct order_access a = {.tensor = tensor, .rank = rank, .packed = packed, .volume = volume,
				 .through = w->through, .outer_rank = w->outer_rank, .word = w->word, .word_dim = w->word_dim};
	memcpy(a.moves, moves, rank * sizeof *moves);
	memcpy(a.outer, w->outer, sizeof a.outer);
	vec_push(w->arena, &g->all, a);
	if (tensor >= 0)
		order_touch(w->order, tensor, w->group);
	g->volume += volume;
}

/* The first store of a result of the body, which is where it is read back; NULL = an intermediate. */
static const struct sub_store *result_of(const struct walk *w, int body, sub_ref r)
{
	const struct sub_body *b = &w->p->bodies.at[body];
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i)
			return &b->stores.at[i];
	return NULL;
}

static void note_target(struct walk *w, const struct sub_store *s, const int *moves, int rank, double volume)
{
	int tensor = s->to == SUB_TO_STATE && !s->stepped
			 ? order_find_tensor(w->order, ORDER_STATE, s->which, (sub_ref){0}, rank)
			 : -1;
	note_access(w, tensor, moves, rank, false, volume);
}

static void note_intermediate(struct walk *w, sub_ref r, const int *moves, int rank, double volume)
{
	int body = w->plan->groups.at[w->group].body;
	note_access(w, order_find_tensor(w->order, ORDER_INTERMEDIATE, body, r, rank), moves, rank, false, volume);
}

static void note_stored(struct walk *w, sub_ref r, const int *moves, double volume)
{
	int leading = sub_leading_dims(w->p, r), rank = sub_at(w->p, r)->vars - leading;
	const struct sub_store *s = result_of(w, w->plan->groups.at[w->group].body, r);
	if (s)
		note_target(w, s, moves + leading, rank, volume);
	else
		note_intermediate(w, r, moves + leading, rank, volume);
}

/* A parameter is packed unless its rows are looked up; if both, the rows stay as the caller has them. */
static void note_param(struct walk *w, const struct sub_value *v, const int *moves, double volume)
{
	bool picked = v->vars > 0 && moves[0] == ORDER_ROW;
	bool given = v->vars > 1 && !w->p->params.at[v->which].folded;
	int table = given ? order_find_tensor(w->order, ORDER_TABLE, v->which, (sub_ref){0}, v->vars - 1) : -1;
	if (table >= 0 && !picked)
		w->order->tensors.at[table].settled = w->order->tensors.at[table].packed = true;
	note_access(w, picked ? table : -1, moves + picked, v->vars - picked, !picked, volume);
}

/* Inputs have a row per node, or per edge of the node. */
static void note_vector(struct walk *w, const struct sub_value *v, const int *moves, double volume)
{
	int leading = 1 + w->p->inputs.at[v->which].on_edge;
	note_access(w, -1, moves + leading, v->vars - leading, false, volume);
}

static void note_source(struct walk *w, const struct sub_value *v, const int *moves, double volume)
{
	if (v->op == SUB_PARAM)
		note_param(w, v, moves, volume);
	else if (v->op == SUB_STATE && sub_is_scanned(w->p, v->which))
		note_access(w, -1, moves + 1, v->vars - 1, false, volume);
	else if (v->op == SUB_STATE)
		note_access(w, order_find_tensor(w->order, ORDER_STATE, v->which, (sub_ref){0}, v->vars - 1), moves + 1,
			    v->vars - 1, false, volume);
	else if (v->op == SUB_VECTOR)
		note_vector(w, v, moves, volume);
}

static void walk_value(struct walk *, sub_ref, const int *moves, double volume);

/* The dimension that an index moves with evenly, or the mask of several. */
int order_dim_of(int moves)
{
	return moves >= 0 ? moves % STEP : moves;
}

int order_step_of(int moves)
{
	return moves >= 0 ? moves / STEP + 1 : 1;
}

/* A mask of the dimensions of the group that an index moves with. */
unsigned order_dims_of(int moves)
{
	int dim = order_dim_of(moves);
	return dim >= STRIDED ? (unsigned)(dim - STRIDED) : dim >= 0 ? 1u << dim : 0;
}

static int strided_moves(unsigned dims)
{
	return dims ? STRIDED + (int)dims : ORDER_NONE;
}

static int moves_of(const struct sub_value *v, int var, const int *moves)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return moves[i];
	return ORDER_NONE;
}

static int moves_of_map(const struct sub_value *v, const struct sub_map *m, const int *moves)
{
	if (!sub_is_arithmetic(m))
		return ORDER_ROW;
	int first = moves_of(v, m->var, moves), second = m->scale2 ? moves_of(v, m->var2, moves) : ORDER_NONE;
	bool even = m->function == SUB_AFFINE && m->scale >= 1 && first >= 0 && order_dim_of(first) < STRIDED &&
		    !order_dims_of(second);
	if (even && m->scale * order_step_of(first) <= SUB_LONGEST_STEP)
		return order_dim_of(first) + STEP * ((int)m->scale * order_step_of(first) - 1);
	if (m->function == SUB_AFFINE && m->scale == 1 && !order_dims_of(second))
		return first;
	return strided_moves(order_dims_of(first) | order_dims_of(second));
}

/* Walks an argument: its dimensions move as the value's variables of the same name, except for `own`,
 * variables of this use alone. */
static void walk_use(struct walk *w, const struct sub_value *v, const struct sub_use *u, const int *moves,
		     const struct sub_vars *own, int own_moves, double volume)
{
	int out[SUB_MAX_VARS] = {0};
	for (int i = 0; i < u->vars; i++) {
		out[i] = own_moves;
		for (int j = 0; sub_position_in(own, u->var[i]) < 0 && j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = moves[j];
	}
	walk_value(w, u->value, out, volume);
}

static void walk_moved(struct walk *w, const struct sub_value *v, const int *moves, double volume)
{
	int out[SUB_MAX_VARS] = {0};
	for (int a = 0; v->op == SUB_COND && a < 2; a++) {
		struct sub_vars axis = sub_one_var(sub_joined_var(v, a));
		walk_use(w, v, &v->arg[a], moves, &axis, moves[v->axis], volume);
	}
	if (v->op == SUB_COND)
		return;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		out[i] = moves_of_map(v, &v->map[i], moves);
	walk_value(w, v->arg[0].value, out, volume);
}

static void walk_arguments(struct walk *w, const struct sub_value *v, const int *moves, double volume)
{
	static const struct sub_vars no_vars = {0};
	switch (sub_class_of(v->op)) {
	case SUB_CONTRACTION:
	case SUB_REDUCE:
		if (v->args > 1)
			walk_use(w, v, &v->arg[0], moves, &no_vars, ORDER_NONE, volume);
		volume *= sub_reduced_extent(w->p, v);
		for (int a = v->args > 1; a < v->args; a++)
			walk_use(w, v, &v->arg[a], moves, &v->reduced, ORDER_NONE, volume);
		break;
	case SUB_GATHERING:
		walk_use(w, v, &v->arg[0], moves, &v->reduced, ORDER_ROW, volume);
		walk_use(w, v, &v->arg[1], moves, &no_vars, ORDER_NONE, volume);
		break;
	case SUB_MOVE:
		walk_moved(w, v, moves, volume);
		break;
	default:
		for (int a = 0; a < v->args; a++)
			walk_use(w, v, &v->arg[a], moves, &no_vars, ORDER_NONE, volume);
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
static bool is_here(const struct walk *w, sub_ref r, const int *moves)
{
	int leading = sub_leading_dims(w->p, r);
	for (int i = leading; i < sub_at(w->p, r)->vars; i++)
		if (moves[i] != i - leading)
			return false;
	return is_target(&w->plan->groups.at[w->group], r);
}

/* Notes an ASSIGN that is read by what is computed, and what is read through it from here on. */
static void begin_moving(struct walk *w, sub_ref r, const int *moves)
{
	int leading = sub_leading_dims(w->p, r);
	if (sub_at(w->p, r)->op != SUB_ASSIGN) {
		w->through = (sub_ref){0};
	} else if (!w->through.i) {
		w->through = r;
		w->outer_rank = sub_at(w->p, r)->vars - leading;
		memcpy(w->outer, moves + leading, w->outer_rank * sizeof *moves);
	}
}

/* Words that are read in place are one access to their bytes, where the first of each lies. */
static void walk_word(struct walk *w, sub_ref r, const struct sched_word *word, const int *moves, double volume)
{
	static const struct sub_vars no_vars = {0};
	const struct sub_value *v = sub_at(w->p, r);
	w->word = r;
	w->word_dim = word->dim - sub_leading_dims(w->p, word->bytes);
	walk_use(w, v, &v->arg[1], moves, &no_vars, ORDER_NONE, volume);
	w->word = (sub_ref){0};
}

static void walk_value(struct walk *w, sub_ref r, const int *moves, double volume)
{
	const struct sub_value *v = sub_at(w->p, r);
	struct sched_word word;
	int key[1 + SUB_MAX_VARS] = {r.i};
	memcpy(key + 1, moves, v->vars * sizeof *moves);
	if (!map_add(&w->visited, (const char *)key, (1 + v->vars) * sizeof *key, 1))
		return;
	if (sub_class_of(v->op) == SUB_SOURCE) {
		note_source(w, v, moves, volume);
	} else if (sched_is_stored(w->plan, w->plan->groups.at[w->group].body, r) && !is_here(w, r, moves)) {
		note_stored(w, r, moves, volume);
	} else if (sched_fact(&w->plan->values[w->plan->groups.at[w->group].body], r)->in_place && sched_find_word(w->p, r, &word)) {
		walk_word(w, r, &word, moves, volume);
	} else {
		sub_ref through = w->through;
		begin_moving(w, r, moves);
		walk_arguments(w, v, moves, volume);
		w->through = through;
	}
}

/* Notes the stores of a target and all accesses to compute it. */
static void walk_target(struct walk *w, sub_ref r, double volume)
{
	const struct sched_group *g = &w->plan->groups.at[w->group];
	const struct sub_body *b = &w->p->bodies.at[g->body];
	int moves[SUB_MAX_VARS] = {0}, leading = sub_leading_dims(w->p, r);
	bool stored = false;
	for (int i = 0; i < leading + g->dims; i++)
		moves[i] = i < leading ? ORDER_NONE : i - leading;
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i) {
			note_target(w, &b->stores.at[i], moves + leading, g->dims, volume);
			stored = true;
		}
	if (!stored)
		note_intermediate(w, r, moves + leading, g->dims, volume);
	walk_value(w, r, moves, volume);
}

static void walk_group(struct walk *w, int group)
{
	const struct sched_group *g = &w->plan->groups.at[group];
	double volume = g->edges ? SUB_RAGGED_EXTENT : 1;
	for (int d = 0; d < g->dims; d++)
		volume *= g->extent[d];
	w->group = group;
	w->order->groups[group].dims = g->dims;
	w->visited = map_in(w->arena);
	for (size_t t = 0; t < g->targets.n; t++)
		walk_target(w, g->targets.at[t], volume);
	for (size_t i = 0; i < w->order->groups[group].all.n; i++) {
		struct order_tensor *t = order_tensor_of(w->order, &w->order->groups[group].all.at[i]);
		if (t)
			t->volume = fmax(t->volume, w->order->groups[group].volume);
	}
}

void order_list_accesses(struct order *o, const struct sched_plan *plan, struct arena *a, int lanes)
{
	struct walk w = {.order = o, .plan = plan, .p = plan->p, .arena = a};
	*o = (struct order){.plan = plan, .p = plan->p, .arena = a, .lanes = lanes};
	o->groups = ARENA_ARRAY(a, struct order_group, plan->groups.n);
	o->numbers = ARENA_NEW(a, struct map);
	*o->numbers = map_in(a);
	for (size_t g = 0; g < plan->groups.n; g++)
		walk_group(&w, (int)g);
}
