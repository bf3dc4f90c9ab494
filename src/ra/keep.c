/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Makes states of locals, so that a run shows the intermediate values of bodies. */
#include "ra/syntax.h"

static size_t end_of_states(const struct ra_model *m, int traversal)
{
	size_t end = m->states.n;
	while (end && m->states.at[end - 1].traversal > traversal)
		end--;
	return end;
}

/* Renumbers the states of nodes: those from `first` on have moved up by one. */
static void renumber_states(struct ra_model *m, size_t first)
{
	for (size_t i = 1; i < m->nodes.n; i++) {
		struct ra_node *n = &m->nodes.at[i];
		bool reads = n->op == RA_STATE || n->op == RA_CHILD || n->op == RA_PARENT;
		if (reads && n->state.state >= (int)first)
			n->state.state++;
	}
}

static struct ra_state *insert_state(struct ra_graph *g, const char *name, const struct ra_local *l)
{
	struct ra_model *m = g->model;
	size_t i = end_of_states(m, l->traversal);
	vec_push(g->arena, &m->states, (struct ra_state){0});
	memmove(&m->states.at[i + 1], &m->states.at[i], (m->states.n - 1 - i) * sizeof *m->states.at);
	renumber_states(m, i);
	m->states.at[i] = (struct ra_state){
	    .name = arena_string(g->arena, name), .traversal = l->traversal, .dtype = l->dtype, .shape = l->shape, .at = l->at};
	return &m->states.at[i];
}

static struct ra_state *find_state(struct ra_model *m, const char *name)
{
	for (size_t i = 0; i < m->states.n; i++)
		if (strcmp(m->states.at[i].name, name) == 0)
			return &m->states.at[i];
	return NULL;
}

/* Bodies without the local assign zeros, since every body assigns every state. */
static void fill_state(struct ra_graph *g, struct ra_state *s)
{
	g->traversal = s->traversal;
	for (int which = 0; which < ra_bodies(g->model); which++) {
		if (!ra_has_own_body(g->model, s->traversal, which) || s->value[which].i)
			continue;
		ra_enter_body(g, which);
		s->value[which] = ra_build_zero(g, &s->shape, s->dtype, (struct ra_span){.at = s->at});
	}
}

void ra_keep_locals(struct ra_graph *g)
{
	const struct ra_keep *keep = g->syntax->keep;
	for (size_t i = 0; i < g->syntax->keeps; i++) {
		const struct ra_local *l = &g->model->locals.at[keep[i].local];
		struct ra_state *s = find_state(g->model, keep[i].state);
		if (!s)
			s = insert_state(g, keep[i].state, l);
		s->value[l->body] = l->value;
		s->assigned[l->body] = l->assigned;
	}
	for (size_t i = 0; i < g->syntax->keeps; i++)
		fill_state(g, find_state(g->model, keep[i].state));
}
