/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows in the order of a token that selects weights for them.
 *
 *     %45[n,e,j] = accumulate_k 0, U[rel(e),j,k], h[child(e),k]
 *
 * The edges of a level that have one label are multiplied by one matrix: in the order of their labels they are the rows of
 * a dense product for each label, in register tiles; otherwise each is a product of its own, which reads the matrix again.
 * So the products of edges are stored by a group of their own (sums over the edges of a node then read them in the
 * program's order), and a group all of whose products have weights that one token selects runs over sorted rows: over
 * edges by what they carry, over nodes by what they or their edges in a slot carry.  All else that it computes is of
 * single rows. */
#include "sched/group.h"

/* Sorting is profitable where a token selects at least so many weights for a product: with fewer, most of the time goes
 * into what each row, and each segment of rows, does besides.  The number is an estimate that was not measured. */
enum { LEAST_WEIGHTS = 256 };

/* --- what a token selects --- */

/* Whether an operand is weights that a token of the row or edge selects, and nothing else of the row does. */
static bool is_selected(const struct sub_program *p, sub_ref operand, struct sched_sort *s)
{
	const struct sub_value *v = sub_at(p, operand);
	int tokens = 0;
	if (v->op != SUB_ASSIGN || sub_at(p, v->arg[0].value)->op != SUB_PARAM)
		return false;
	for (int i = 0; i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		if (m->function == SUB_AFFINE)
			continue;
		if (m->function != SUB_TOKEN || p->vars.at[m->var].set == SUB_MEMBER || tokens++)
			return false;
		bool edges = p->vars.at[m->var].set == SUB_EDGE, in_slot = !edges && p->inputs.at[m->which].on_edge;
		*s = (struct sched_sort){.input = m->which, .slot = in_slot ? m->slot : -1, .edges = edges};
	}
	return tokens == 1;
}

/* The elements of an operand that one row, or edge, is multiplied by. */
static double elements_of(const struct sub_program *p, const struct sub_use *u, const struct sub_value *v)
{
	double n = 1;
	for (int i = 0; i < u->vars; i++) {
		const struct sub_var *var = &p->vars.at[u->var[i]];
		bool own = sub_position_in(&v->reduced, u->var[i]) >= 0;
		for (int k = 0; k < v->vars; k++)
			own |= v->var[k] == u->var[i];
		n *= own && var->set == SUB_DIM ? (double)var->extent : 1;
	}
	return n;
}

/* Whether an operand depends on a dimension of the result: it is a matrix, not a vector. */
static bool has_columns(const struct sub_program *p, const struct sub_use *u, const struct sub_value *v)
{
	bool columns = false;
	for (int i = 0; i < v->vars; i++)
		columns |= p->vars.at[v->var[i]].set == SUB_DIM && sub_use_has(u, v->var[i]);
	return columns;
}

static bool find_selection(const struct sched_plan *plan, int body, sub_ref r, struct sched_sort *s)
{
	const struct sub_program *p = plan->p;
	const struct sub_value *v = sub_at(p, r);
	enum sub_domain domain = p->bodies.at[body].domain;
	if (sub_class_of(v->op) != SUB_CONTRACTION || domain == SUB_EVERY_INPUT || domain == SUB_AT_BINDING)
		return false;
	for (int a = 1; a < v->args; a++) {
		const struct sub_use *u = &v->arg[a];
		if (!is_selected(p, u->value, s) || !has_columns(p, u, v))
			continue;
		bool down = s->edges && sub_goes_down(p, &p->bodies.at[body]);
		return !down && (plan->fusion.sorting == MOVE_ALL || elements_of(p, u, v) >= LEAST_WEIGHTS);
	}
	return false;
}

/* --- values --- */

void sched_store_selected(struct sched_planner *pl, int body)
{
	const struct sched_values *values = &pl->values[body];
	struct sched_sort s;
	for (int i = 0; i < values->n && pl->plan->fusion.sorting != MOVE_OFF; i++) {
		struct sched_fact *end = sched_fact(values, sched_chain_end(values, values->value[i]));
		if (end->result || end->stored || !find_selection(pl->plan, body, values->value[i], &s) || !s.edges)
			continue;
		end->stored = true;
		end->block =
		    sched_new_block(pl, (struct sched_block){.reductions = 1, .pressure = 2, .spaces = SCHED_OF_EDGES});
	}
}

/* --- groups --- */

/* The products of a group, and those whose weights are selected by one token. */
struct selected {
	int products, selected;
	struct sched_sort sort;
};

static bool is_same_sort(const struct sched_sort *a, const struct sched_sort *b)
{
	return a->input == b->input && a->slot == b->slot && a->edges == b->edges;
}

static void count_product(const struct sched_plan *plan, const struct sched_group *g, sub_ref r, struct selected *to)
{
	struct sched_sort s;
	to->products++;
	if (!find_selection(plan, g->body, r, &s) || s.edges != g->edges)
		return;
	if (!to->selected)
		to->sort = s;
	to->selected += is_same_sort(&s, &to->sort);
}

static int number_of(struct sched_plan *plan, struct arena *a, const struct sched_sort *s)
{
	for (size_t i = 0; i < plan->sorts.n; i++)
		if (is_same_sort(&plan->sorts.at[i], s))
			return i + 1;
	vec_push(a, &plan->sorts, *s);
	return plan->sorts.n;
}

void sched_choose_sorts(struct sched_grouper *gr)
{
	struct sched_plan *plan = gr->pl.plan;
	struct selected *of = ARENA_ARRAY(gr->pl.arena, struct selected, plan->groups.n);
	for (size_t i = 0; i < gr->targets.n; i++) {
		const struct sched_target *t = &gr->targets.at[i];
		for (int k = 0; k < t->reductions; k++)
			if (!sub_reduces_ragged(plan->p, sub_at(plan->p, t->reduction[k].value)))
				count_product(plan, &plan->groups.at[t->group], t->reduction[k].value, &of[t->group]);
	}
	for (size_t g = 0; g < plan->groups.n; g++)
		if (plan->fusion.sorting != MOVE_OFF && plan->groups.at[g].rows && of[g].selected && of[g].selected == of[g].products)
			plan->groups.at[g].sort = number_of(plan, gr->pl.arena, &of[g].sort);
}

bool sched_has_sorts(const struct sched_plan *plan)
{
	return plan->sorts.n;
}
