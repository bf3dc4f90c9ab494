/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds vectors of nodes that kernels can read where the caller has them, in the caller's order: those that only
 * bodies over all nodes ahead of the recursion read.  Such a body runs over the caller's rows, one after the other, and
 * stores what it computes of each at the node's number.
 *
 * Nothing behind the last of the caller's rows may be read.  Loops over columns run over whole vectors, those over
 * what is reduced do not: so each element must be read by a reduction over all its dimensions. */
#include "sched/plan.h"

/* Whether all dimensions of the row that an argument has are reduced by the value. */
static bool reduces_row(const struct sub_program *p, const struct sub_value *v, const struct sub_use *u)
{
	bool all = sub_reduces(v->op) && u->vars && u->var[0] == p->node;
	for (int i = 1; all && i < u->vars; i++)
		all = sub_position_in(&v->reduced, u->var[i]) >= 0;
	return all;
}

static bool is_vector(const struct sub_program *p, sub_ref r, int input)
{
	return sub_at(p, r)->op == SUB_VECTOR && sub_at(p, r)->which == input;
}

/* Why a value of a body needs a copy of the input; NULL = it does not. */
static const char *find_other_use(const struct sub_program *p, const struct sub_value *v, int input)
{
	for (int a = 0; a < v->args; a++)
		if (is_vector(p, v->arg[a].value, input) && !reduces_row(p, v, &v->arg[a]))
			return "its elements are not all factors or summands of a sum";
	return NULL;
}

/* Whether the rows of a body's groups are all nodes, by number. */
static bool has_plain_rows(const struct sched_plan *plan, int body)
{
	bool plain = plan->p->bodies.at[body].domain == SUB_AHEAD && !plan->p->bodies.at[body].cases;
	for (size_t i = 0; i < plan->groups.n; i++) {
		const struct sched_group *g = &plan->groups.at[i];
		if (g->body == body)
			plain &= g->rows && !g->edges && !g->over_edges && !g->local && !g->sort;
	}
	return plain;
}

/* Whether a body needs the input; *why a copy of it, NULL = its rows are enough. */
static bool reads_input(const struct sched_plan *plan, int body, int input, const char **why)
{
	const struct sub_program *p = plan->p;
	const struct sub_body *b = &p->bodies.at[body];
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n), reads = false;
	sub_mark_live(p, b, live);
	*why = NULL;
	for (uint32_t r = 1; r < p->values.n; r++) {
		if (!live[r])
			continue;
		reads |= is_vector(p, (sub_ref){r}, input);
		*why = *why ? *why : find_other_use(p, &p->values.at[r], input);
	}
	for (size_t i = 0; i < b->stores.n; i++)
		if (is_vector(p, b->stores.at[i].value.value, input))
			*why = "it is a result itself";
	if (reads && !*why && !has_plain_rows(plan, body))
		*why = "not only a body over all nodes ahead of the recursion reads it";
	return reads;
}

bool sched_is_vector_of_nodes(const struct sub_program *p, int input)
{
	const struct sub_input *in = &p->inputs.at[input];
	return !in->token && !in->on_edge && !in->hoisted;
}

const char *sched_copies_vector(const struct sched_plan *plan, int input)
{
	const char *why, *found = NULL;
	bool any = false;
	if (!sched_is_vector_of_nodes(plan->p, input))
		return "it is no vector of nodes";
	if (sub_calls_read(plan->p, input))
		return "a call reads it";
	for (size_t b = 0; b < plan->p->bodies.n; b++)
		if (reads_input(plan, b, input, &why)) {
			any = true;
			found = found ? found : why;
		}
	return any ? found : "nothing reads it";
}

bool sched_reads_given(const struct sched *s, const struct sched_plan *plan, int input)
{
	return s->given.at[input] && !sched_copies_vector(plan, input);
}

bool sched_is_in_given_order(const struct sched *s, const struct sched_plan *plan, int body)
{
	const char *why;
	for (size_t i = 0; i < plan->p->inputs.n; i++)
		if (s->given.at[i] && reads_input(plan, body, i, &why) && sched_reads_given(s, plan, i))
			return true;
	return false;
}
