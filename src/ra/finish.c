/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The order of the nodes of a finished graph, and declarations that nothing uses. */
#include "ra/syntax.h"

/* A node on the path from a root to the current node of the walk. */
struct frame {
	uint32_t node;
	int next; /* argument to be visited */
};

struct walk {
	struct ra_graph *g;
	uint32_t *number; /* old -> new, 0 = not reached */
	struct frame *stack;
	struct ra_node *nodes;
	size_t n;
};

static void number_node(struct walk *w, uint32_t old)
{
	struct ra_node n = w->g->model->nodes.at[old];
	for (int i = 0; i < ra_op_arity(n.op); i++)
		n.arg[i].i = w->number[n.arg[i].i];
	w->number[old] = (uint32_t)w->n;
	w->nodes[w->n++] = n;
}

/* Numbers the nodes that a root needs, arguments first.  The stack is as deep as the graph, which may be a
 * long chain. */
static ra_ref number_needed(struct walk *w, ra_ref root)
{
	size_t depth = 0;
	if (!w->number[root.i])
		w->stack[depth++] = (struct frame){root.i, 0};
	while (depth) {
		struct frame *top = &w->stack[depth - 1];
		const struct ra_node *n = &w->g->model->nodes.at[top->node];
		if (top->next == ra_op_arity(n->op)) {
			number_node(w, top->node);
			depth--;
			continue;
		}
		uint32_t arg = n->arg[top->next++].i;
		if (!w->number[arg])
			w->stack[depth++] = (struct frame){arg, 0};
	}
	return (ra_ref){w->number[root.i]};
}

/* Numbers all nodes in the order in which ra_print writes them, so that reading the text again gives the
 * same. */
static void order_nodes(struct ra_graph *g)
{
	struct ra_model *m = g->model;
	struct walk w = {.g = g, .n = 1};
	w.number = ARENA_ARRAY(g->arena, uint32_t, m->nodes.n);
	w.stack = ARENA_ARRAY(g->arena, struct frame, m->nodes.n);
	w.nodes = ARENA_ARRAY(g->arena, struct ra_node, m->nodes.n);
	for (size_t t = 0; t < m->traversals.n; t++)
		for (int which = 0; which < ra_bodies(m); which++)
			for (size_t i = 0; i < m->states.n; i++)
				if (m->states.at[i].traversal == (int)t && m->states.at[i].value[which].i)
					m->states.at[i].value[which] =
					    number_needed(&w, m->states.at[i].value[which]);
	for (size_t i = 0; i < m->outputs.n; i++)
		m->outputs.at[i].value = number_needed(&w, m->outputs.at[i].value);
	m->nodes.capacity = m->nodes.n;
	m->nodes.at = w.nodes;
	m->nodes.n = w.n;
}

static bool same_place(struct diag_at a, struct diag_at b)
{
	return a.line == b.line && a.column == b.column && a.call == b.call;
}

/* Reports the unused ones of the parameters that were declared at one place, beginning with the i-th; returns
 * where the next place begins. */
static size_t check_declaration(struct ra_graph *g, const bool *used, size_t i)
{
	const struct ra_model *m = g->model;
	struct diag_at at = m->params.at[i].at;
	struct str names = str_in(g->arena);
	for (; i < m->params.n && same_place(at, m->params.at[i].at); i++)
		if (!used[i] && names.n < RA_NAME_LIMIT)
			str_printf(&names, "%s'%s'", names.n ? ", " : "", m->params.at[i].name);
	if (names.n)
		ra_report(g->report, DIAG_MODEL_UNUSED_PARAM, at,
			  "remove it, or look for the place where it is missing",
			  "no state and no output needs the parameter %s", str_text(&names));
	return i;
}

/* A name that nothing needs is most often a name misspelt elsewhere. */
static void check_use(struct ra_graph *g)
{
	const struct ra_model *m = g->model;
	bool *param = ARENA_ARRAY(g->arena, bool, m->params.n),
	     *input = ARENA_ARRAY(g->arena, bool, m->inputs.n);
	for (size_t i = 1; i < m->nodes.n; i++) {
		const struct ra_node *n = &m->nodes.at[i];
		if (n->op == RA_PARAM)
			param[n->param] = true;
		if (n->op == RA_INPUT || n->op == RA_LOOKUP)
			input[n->input] = true;
	}
	for (size_t i = 0; i < m->cases.n; i++)
		for (size_t t = 0; t < m->cases.at[i].tokens.n; t++)
			input[m->cases.at[i].tokens.at[t].input] = true;
	for (size_t i = 0; i < m->params.n;)
		i = check_declaration(g, param, i);
	for (size_t i = 0; i < m->inputs.n; i++)
		if (!input[i])
			ra_report(g->report, DIAG_MODEL_UNUSED_INPUT, m->inputs.at[i].at,
				  "remove it, or look for the place where it is missing",
				  "no state and no output needs the input '%s'", m->inputs.at[i].name);
}

void ra_finish(struct ra_graph *g)
{
	order_nodes(g);
	check_use(g);
}
