/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Makes the graph of a body's operators. */
#include "sched/operator_graph.h"

#include <math.h>

/* The path from an operator down to one of its operands. */
struct path {
	struct sched_graph *g;
	int to;
	unsigned char moved, last;
	bool reducing; /* below a reduction over a dimension */
	double volume;
};

/* In a mask of loops: the loops of the reduction on the path.  Other loops are numbered by position. */
enum { REDUCED = 1u << SUB_MAX_VARS };

static const struct sub_vars no_vars = {0};

static void reach_value(struct path, sub_ref, const unsigned *loops);

static int op_of(const struct sched_graph *g, sub_ref r)
{
	return g->op_of[sched_fact(g->values, r) - g->values->fact];
}

static void find_use_loops(const struct sub_value *v, const unsigned *loops, const struct sub_use *u,
			   const struct sub_vars *own, unsigned own_loop, unsigned *out)
{
	for (int i = 0; i < u->vars; i++) {
		out[i] = 0;
		for (int j = 0; j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = loops[j];
		if (sub_position_in(own, u->var[i]) >= 0)
			out[i] = own_loop;
	}
}

/* The loops that a variable of the value depends on. */
static unsigned loops_of(const struct sub_value *v, const unsigned *loops, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return loops[i];
	return 0;
}

static void reach_moved(struct path w, sub_ref r, const unsigned *loops)
{
	const struct sub_value *v = sub_at(w.g->p, r);
	for (int a = 0; a < v->args; a++) {
		const struct sub_use *u = &v->arg[a];
		unsigned out[SUB_MAX_VARS] = {0};
		if (v->op == SUB_COND) {
			struct sub_vars axis = sub_one_var(sub_joined_var(v, a));
			find_use_loops(v, loops, u, &axis, loops[v->axis], out);
		}
		for (int i = 0; v->op == SUB_ASSIGN && i < u->vars; i++)
			out[i] = loops_of(v, loops, v->map[i].var) |
				 (v->map[i].scale2 ? loops_of(v, loops, v->map[i].var2) : 0);
		reach_value(w, u->value, out);
	}
}

static void reach_operands(struct path, sub_ref, const unsigned *loops);

/* Follows an operand; where it is a step of the same chain, the operands of the step. */
static void reach_step(struct path w, sub_ref r, const unsigned *loops)
{
	if (sched_fact(w.g->values, r)->chain_end.i)
		reach_operands(w, r, loops);
	else
		reach_value(w, r, loops);
}

/* A reduction over the edges of a node keeps all columns, so it maps one to one. */
static void reach_reduced(struct path w, sub_ref r, const unsigned *loops)
{
	const struct sub_value *v = sub_at(w.g->p, r);
	bool edge = sub_reduces_ragged(w.g->p, v);
	for (int a = v->args > 1; a < v->args; a++) {
		unsigned out[SUB_MAX_VARS] = {0};
		find_use_loops(v, loops, &v->arg[a], &v->reduced, REDUCED, out);
		w.last = edge ? SCHED_ONE_TO_ONE : sched_mapping_of(w.g->p, r, a);
		w.reducing = !edge;
		w.volume = sub_reduced_elements(w.g->p, v);
		reach_value(w, v->arg[a].value, out);
	}
}

/* Follows the operands of a value or of a step of its chain. */
static void reach_operands(struct path w, sub_ref r, const unsigned *loops)
{
	const struct sub_value *v = sub_at(w.g->p, r);
	bool reduces = sub_reduces(v->op);
	if (reduces)
		reach_reduced(w, r, loops);
	int others = reduces ? v->args > 1 : v->args;
	for (int a = 0; a < others && sub_class_of(v->op) != SUB_MOVE; a++) {
		unsigned out[SUB_MAX_VARS] = {0};
		find_use_loops(v, loops, &v->arg[a], &no_vars, 0, out);
		w.last = sched_mapping_of(w.g->p, r, a);
		reach_step(w, v->arg[a].value, out);
	}
	if (sub_class_of(v->op) == SUB_MOVE)
		reach_moved(w, r, loops);
}

static bool is_in(unsigned loops, int loop)
{
	return loop >= 0 && loop < SUB_MAX_VARS && loops >> loop & 1;
}

static void add_edge(const struct path *w, sub_ref r, const unsigned *loops)
{
	struct sched_graph *g = w->g;
	const struct sub_value *from = sub_at(g->p, r), *to = sub_at(g->p, g->ops.at[w->to].value);
	struct sched_edge e = {op_of(g, r),	w->to,	    .moved = w->moved,
			       .last = w->last, .times = 1, .volume = w->volume};
	int leading = sub_leading_dims(g->p, g->ops.at[w->to].value);
	unsigned used = 0;
	for (int i = 0; i < from->vars; i++)
		used |= loops[i];
	for (int i = 0; i < to->vars; i++)
		if (!is_in(used, i) && sub_loop_extent(g->p, to->var[i]) > 1)
			e.times *= i < leading ? INFINITY : sub_loop_extent(g->p, to->var[i]);
	bool columns = to->vars > leading && is_in(used, to->vars - 1);
	e.again = e.times > 1;
	e.scalar = w->reducing && !columns && from->vars > sub_leading_dims(g->p, r) &&
		   loops[from->vars - 1] & REDUCED;
	vec_push(g->arena, &g->edges, e);
}

static void reach_value(struct path w, sub_ref r, const unsigned *loops)
{
	if (sub_class_of(sub_at(w.g->p, r)->op) == SUB_SOURCE || !sub_has_leading_dim(w.g->p, r))
		return;
	if (op_of(w.g, r) >= 0) {
		add_edge(&w, r, loops);
		return;
	}
	for (int a = 0; sched_is_index(w.g->p, w.g->values, r) && a < sub_at(w.g->p, r)->args; a++) {
		enum sched_mapping m = sched_mapping_of(w.g->p, r, a);
		w.moved = m > w.moved ? m : w.moved;
	}
	reach_operands(w, r, loops);
}

static bool is_operator(const struct sched_graph *g, sub_ref r)
{
	const struct sched_values *values = g->values;
	const struct sched_fact *f = sched_fact(values, r);
	return !f->chain_end.i && sub_has_leading_dim(g->p, r) &&
	       sub_class_of(sub_at(g->p, r)->op) != SUB_SOURCE && !sched_is_index(g->p, values, r);
}

static void add_operator(struct sched_graph *g, sub_ref r)
{
	const struct sub_value *v = sub_at(g->p, r);
	struct sched_operator op = {.value = r, .type = sched_mapping_of_value(g->p, r), .in = g->edges.n};
	struct path w = {.g = g, .to = g->ops.n, .volume = sub_row_elements(g->p, v)};
	unsigned loops[SUB_MAX_VARS] = {0};
	op.moves = sub_class_of(v->op) == SUB_MOVE && !sched_fact(g->values, r)->result;
	op.elements = op.volume = w.volume;
	vec_push(g->arena, &g->ops, op);
	for (int i = 0; i < v->vars; i++)
		loops[i] = 1u << i;
	reach_operands(w, r, loops);
	g->ops.at[w.to].ins = g->edges.n - op.in;
	g->op_of[sched_fact(g->values, r) - g->values->fact] = w.to;
}

/* Adds the properties of a step to the operator that its chain is. */
static void add_step(struct sched_graph *g, sub_ref step)
{
	sub_ref end = sched_chain_end(g->values, step);
	const struct sub_value *v = sub_at(g->p, step);
	if (op_of(g, end) < 0)
		return;
	struct sched_operator *op = &g->ops.at[op_of(g, end)];
	/* Elements whose index is a value come from anywhere: no product reads them again for each column. */
	op->expensive |= sub_traits_of(v->op)->price == SUB_EXPENSIVE || v->op == SUB_GATHER;
	if (sub_reduces(v->op)) {
		op->accumulators = 1;
		if (!sub_reduces_ragged(g->p, v))
			op->spaces |= sub_leading_dims(g->p, step) > 1 ? SCHED_OF_EDGES : SCHED_OF_ROWS;
		op->volume += sub_reduced_elements(g->p, v);
		op->type = SCHED_MANY_TO_MANY;
	}
}

static void sort_by_producer(struct sched_graph *g)
{
	int at = 0;
	g->by_producer = ARENA_ARRAY(g->arena, int, g->edges.n);
	for (size_t e = 0; e < g->edges.n; e++)
		g->ops.at[g->edges.at[e].from].outs++;
	for (size_t i = 0; i < g->ops.n; i++) {
		g->ops.at[i].out = at;
		at += g->ops.at[i].outs;
		g->ops.at[i].outs = 0;
	}
	for (size_t e = 0; e < g->edges.n; e++) {
		struct sched_operator *op = &g->ops.at[g->edges.at[e].from];
		g->by_producer[op->out + op->outs++] = e;
	}
}

void sched_make_graph(struct sched_graph *g, struct arena *a, const struct sub_program *p,
		      const struct sched_values *values)
{
	*g = (struct sched_graph){
	    .p = p, .values = values, .arena = a, .op_of = ARENA_ARRAY(a, int, values->n)};
	for (int i = 0; i < values->n; i++)
		g->op_of[i] = -1;
	for (int i = 0; i < values->n; i++)
		if (is_operator(g, values->value[i]))
			add_operator(g, values->value[i]);
	for (int i = 0; i < values->n; i++)
		add_step(g, values->value[i]);
	sort_by_producer(g);
}
