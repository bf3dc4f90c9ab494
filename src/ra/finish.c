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

/* --- numbers of symbols and of index variables: in the order of the canonical text --- */

struct numbering {
	struct ra_graph *g;
	int *symbol, *index; /* old -> new, -1 = not met yet */
	VEC(int) computed;   /* the symbols that are computed, in their order */
	int indices;
	/* What is done with each size and each index variable: meet or renumber. */
	void (*dim)(struct numbering *, struct ra_dim *);
	int (*of_index)(struct numbering *, int);
};

static void meet_dim(struct numbering *w, struct ra_dim *d)
{
	for (int t = 0; t < d->terms; t++) {
		struct ra_symbol *s = &w->g->model->symbols.at[d->term[t].symbol];
		int *number = &w->symbol[d->term[t].symbol];
		if (!s->divisor || *number >= 0)
			continue;
		meet_dim(w, &s->of);
		*number = (int)w->computed.n;
		vec_push(w->g->arena, &w->computed, d->term[t].symbol);
	}
}

static int meet_index(struct numbering *w, int index)
{
	if (w->index[index] < 0) {
		w->index[index] = w->indices++;
		meet_dim(w, &w->g->model->indices.at[index].extent);
	}
	return index;
}

static void renumber_dim(struct numbering *w, struct ra_dim *d)
{
	struct ra_dim sum = {.constant = d->constant};
	for (int t = 0; t < d->terms; t++) {
		struct ra_dim symbol = ra_dim_symbol(w->symbol[d->term[t].symbol]);
		ra_dim_add(&sum, d->term[t].coefficient, &symbol, &sum);
	}
	*d = sum;
}

static int renumber_index(struct numbering *w, int index)
{
	return w->index[index];
}

static bool has_begin(const struct ra_node *n)
{
	return n->op == RA_SLICE || n->op == RA_ROW || n->op == RA_EXTENT;
}

static void visit_shape(struct numbering *w, struct ra_shape *s)
{
	for (int d = 0; d < s->rank; d++)
		w->dim(w, &s->dim[d]);
}

/* Nodes may share their elements and their lists of index variables, so they get copies. */
static void visit_element(struct numbering *w, struct ra_node *n)
{
	struct ra_element *e = arena_copy(w->g->arena, n->element, sizeof *e);
	for (int d = 0; d < ra_at(w->g->model, n->arg[0])->shape.rank; d++) {
		for (int t = 0; t < e->at[d].terms; t++)
			e->at[d].term[t].index = w->of_index(w, e->at[d].term[t].index);
		w->dim(w, &e->at[d].offset);
	}
	n->element = e;
}

static void visit_indices(struct numbering *w, struct ra_node *n)
{
	struct ra_indices *all = arena_copy(w->g->arena, n->indices, sizeof *all);
	for (int i = 0; i < all->n; i++)
		all->index[i] = w->of_index(w, all->index[i]);
	n->indices = all;
}

static void visit_node(struct numbering *w, struct ra_node *n)
{
	visit_shape(w, &n->shape);
	if (has_begin(n))
		w->dim(w, &n->begin);
	if (ra_introduces_indices(n))
		visit_indices(w, n);
	if (ra_is_element(n))
		visit_element(w, n);
}

/* Visits the sizes and index variables of a model in the order of its text. */
static void visit_model(struct numbering *w)
{
	struct ra_model *m = w->g->model;
	for (size_t i = 0; i < m->inputs.n; i++)
		visit_shape(w, &m->inputs.at[i].shape);
	for (size_t i = 0; i < m->params.n; i++)
		visit_shape(w, &m->params.at[i].shape);
	for (size_t i = 0; i < m->traversals.n; i++)
		w->dim(w, &m->traversals.at[i].steps);
	for (size_t i = 0; i < m->states.n; i++)
		visit_shape(w, &m->states.at[i].shape);
	for (size_t i = 1; i < m->nodes.n; i++)
		visit_node(w, &m->nodes.at[i]);
	for (size_t i = 0; i < m->locals.n; i++)
		visit_shape(w, &m->locals.at[i].shape);
}

/* Puts the symbols that are computed, and are needed, after the others. */
static void order_symbols(struct numbering *w)
{
	struct ra_model *m = w->g->model;
	size_t given = 0;
	struct ra_symbol *sorted = ARENA_ARRAY(w->g->arena, struct ra_symbol, m->symbols.n + 1);
	for (size_t i = 0; i < m->symbols.n; i++)
		if (!m->symbols.at[i].divisor) {
			w->symbol[i] = (int)given;
			sorted[given++] = m->symbols.at[i];
		}
	for (size_t i = 0; i < w->computed.n; i++)
		w->symbol[w->computed.at[i]] = (int)(given + i);
	for (size_t i = 0; i < w->computed.n; i++) {
		sorted[given + i] = m->symbols.at[w->computed.at[i]];
		renumber_dim(w, &sorted[given + i].of);
	}
	m->symbols.at = sorted;
	m->symbols.n = m->symbols.capacity = given + w->computed.n;
}

static void order_indices(struct numbering *w)
{
	struct ra_model *m = w->g->model;
	struct ra_index *sorted = ARENA_ARRAY(w->g->arena, struct ra_index, m->indices.n + 1);
	for (size_t i = 0; i < m->indices.n; i++)
		if (w->index[i] >= 0) {
			sorted[w->index[i]] = m->indices.at[i];
			renumber_dim(w, &sorted[w->index[i]].extent);
		}
	m->indices.at = sorted;
	m->indices.n = m->indices.capacity = (size_t)w->indices;
}

static void renumber_nodes(struct ra_graph *g)
{
	const struct ra_model *m = g->model;
	struct numbering w = {.g = g};
	w.symbol = ARENA_ARRAY(g->arena, int, m->symbols.n + 1);
	w.index = ARENA_ARRAY(g->arena, int, m->indices.n + 1);
	memset(w.symbol, -1, m->symbols.n * sizeof *w.symbol);
	memset(w.index, -1, m->indices.n * sizeof *w.index);
	w.dim = meet_dim;
	w.of_index = meet_index;
	visit_model(&w);
	order_symbols(&w);
	order_indices(&w);
	w.dim = renumber_dim;
	w.of_index = renumber_index;
	visit_model(&w);
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

/* Which parameters and inputs nodes and cases need. */
static void mark_used(const struct ra_model *m, bool *param, bool *input)
{
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
}

/* The numbers of those that are used, once the others are gone; returns how many. */
static size_t number_used(struct arena *a, const bool *used, size_t n, int **number)
{
	size_t kept = 0;
	*number = ARENA_ARRAY(a, int, n + 1);
	for (size_t i = 0; i < n; i++) {
		(*number)[i] = (int)kept;
		kept += used[i];
	}
	return kept;
}

/* Forgets the declarations that nothing needs. */
static void drop_unused(struct ra_graph *g, const bool *param, const bool *input)
{
	struct ra_model *m = g->model;
	int *param_number, *input_number;
	size_t params = number_used(g->arena, param, m->params.n, &param_number),
	       inputs = number_used(g->arena, input, m->inputs.n, &input_number);
	for (size_t i = 0; i < m->params.n; i++)
		if (param[i])
			m->params.at[param_number[i]] = m->params.at[i];
	for (size_t i = 0; i < m->inputs.n; i++)
		if (input[i])
			m->inputs.at[input_number[i]] = m->inputs.at[i];
	m->params.n = params;
	m->inputs.n = inputs;
	for (size_t i = 1; i < m->nodes.n; i++) {
		struct ra_node *n = &m->nodes.at[i];
		if (n->op == RA_PARAM)
			n->param = param_number[n->param];
		if (n->op == RA_INPUT || n->op == RA_LOOKUP)
			n->input = input_number[n->input];
	}
	for (size_t i = 0; i < m->cases.n; i++)
		for (size_t t = 0; t < m->cases.at[i].tokens.n; t++)
			m->cases.at[i].tokens.at[t].input = input_number[m->cases.at[i].tokens.at[t].input];
}

/* A name that nothing needs is most often a name misspelt elsewhere; a program that makes models may not know. */
static void check_use(struct ra_graph *g)
{
	const struct ra_model *m = g->model;
	bool *param = ARENA_ARRAY(g->arena, bool, m->params.n),
	     *input = ARENA_ARRAY(g->arena, bool, m->inputs.n);
	mark_used(m, param, input);
	if (g->syntax->drops_unused) {
		drop_unused(g, param, input);
		return;
	}
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
	renumber_nodes(g);
	check_use(g);
}
