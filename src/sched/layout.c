/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Chooses the order of the rows of states.
 *
 * By node, the row of a node is its number: a parent fetches the rows of its children through an index
 * array.  By parent, rows lie in the order in which parents read them, so that the children of a node lie
 * side by side: the parent computes where, and the writer fetches the place of its row.  A node then has
 * one place, and so must have one parent. */
#include "sched/plan.h"

/* A body and the values that it needs. */
struct view {
	const struct sched_plan *plan;
	const struct sub_program *p;
	int body;
	bool *live;
};

static struct view view_of(const struct sched_plan *plan, int body)
{
	const struct sub_program *p = plan->p;
	struct view x = {plan, p, body, ARENA_ARRAY(p->arena, bool, p->values.n)};
	sub_mark_live(p, &p->bodies.at[body], x.live);
	return x;
}

static uint32_t chain_end_of(const struct view *x, uint32_t r)
{
	return sched_chain_end(&x->plan->values[x->body], (sub_ref){r}).i;
}

/* Whether a product with one child is in a chain with the same product of the previous or next child. */
static bool has_neighbour(const struct view *x, sub_ref sum)
{
	for (uint32_t other = 1; other < x->p->values.n; other++)
		if (x->live[other] && chain_end_of(x, other) == chain_end_of(x, sum.i) &&
		    (sched_next_child(x->p, sum, (sub_ref){other}, 1) ||
		     sched_next_child(x->p, (sub_ref){other}, sum, 1)))
			return true;
	return false;
}

/* How products read the states of children: slot after slot, or one slot alone. */
struct reading {
	bool walked, alone;
};

static void note_product(const struct view *x, uint32_t sum, struct reading *readings)
{
	struct sched_child_product c;
	if (!x->live[sum] || !sched_child_product(x->p, (sub_ref){sum}, &c))
		return;
	struct reading *r = &readings[c.state];
	if (c.slots > 1 || has_neighbour(x, (sub_ref){sum}))
		r->walked = true;
	else
		r->alone = true;
}

/* Whether a group of the body has too many sums for the registers, so that its reductions take several
 * loops and the sums lie in memory between them. */
static bool parks_sums(const struct sched *s, const struct sched_plan *plan, int body)
{
	for (size_t g = 0; g < plan->groups.n; g++) {
		const struct sched_tile *t = &s->tiles.at[g];
		if (plan->groups.at[g].body == body &&
		    t->nodes[0] * t->columns * plan->groups.at[g].gates > s->accumulators)
			return true;
	}
	return false;
}

/* Whether later traversals read the state: they go by node, and each would fetch the place of its row. */
static bool read_later(const struct sub_program *p, int state)
{
	for (size_t b = 0; b < p->bodies.n; b++) {
		const struct sub_body *body = &p->bodies.at[b];
		bool output = body->domain == SUB_EVERY_NODE || body->domain == SUB_EVERY_INPUT;
		if (output || body->traversal <= p->states.at[state].traversal)
			continue;
		bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
		sub_mark_live(p, body, live);
		for (uint32_t v = 1; v < p->values.n; v++)
			if (live[v] && p->values.at[v].op == SUB_STATE && p->values.at[v].which == state)
				return true;
	}
	return false;
}

static void choose_in_body(struct sched *s, const struct sched_plan *plan, int body)
{
	const struct sub_program *p = plan->p;
	struct view x = view_of(plan, body);
	struct reading *readings = ARENA_ARRAY(p->arena, struct reading, p->states.n);
	for (uint32_t v = 1; v < p->values.n; v++)
		note_product(&x, v, readings);
	for (size_t i = 0; i < p->states.n; i++)
		if (readings[i].walked && !readings[i].alone && !read_later(p, i))
			s->states.at[i].layout = IMAGE_BY_PARENT;
}

/* For a writer, fetching a place costs about what fetching a child costs a reader.  Rows by parent are
 * profitable where products go along the children and sums are parked in memory, since a single loop over
 * children parks them once, not once per child: measured, 1 to 4 % of a TreeLSTM's time; without parking
 * it made no difference.  A product that reads one child alone shares its operand with the products of
 * that child; by parent it does not: an LSTM whose forget gates see only their own child took a quarter
 * longer. */
void sched_choose_layout(struct sched *s, const struct sched_plan *plan)
{
	const struct sub_program *p = plan->p;
	for (size_t b = 0; p->tree && b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == SUB_INNER && parks_sums(s, plan, b))
			choose_in_body(s, plan, b);
}

void sched_place_by_node(struct sched *s)
{
	for (size_t i = 0; i < s->states.n; i++) {
		s->states.at[i].layout = IMAGE_BY_NODE;
		s->states.at[i].in_table = false;
	}
	for (size_t i = 0; i < s->given.n; i++)
		s->given.at[i] = false;
	s->unroll = 1;
	s->joins_leaves = false;
}
