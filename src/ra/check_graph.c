/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models without a structure: what they do not have.  Their rows are instances of a batch, one like the other, so there is
 * nothing that a row could see of another, and nothing by which rows could differ. */
#include "ra/syntax.h"

bool ra_is_graph(const struct ra_graph *g)
{
	return g->syntax->structure.kind == RA_NONE;
}

bool ra_scans(const struct ra_syntax *s)
{
	for (size_t i = 0; i < s->traversals.n; i++)
		if (s->traversals.at[i].steps)
			return true;
	return false;
}

void ra_refuse_scans(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->traversals.n; i++)
		if (g->syntax->traversals.at[i].steps)
			ra_report(
			    g->report, DIAG_MODEL_GRAPH, g->syntax->traversals.at[i].span.at,
			    "remove 'over', or write: structure none",
			    "a traversal over steps is one inside of a row, and this model has a structure");
}

/* Names that look unknown after this may be those of what was refused. */
static void refuse(struct ra_graph *g, struct ra_span name, const char *what, const char *hint)
{
	g->syntax->incomplete = true;
	ra_report(g->report, DIAG_MODEL_GRAPH, name.at, hint, "'%s' %s", ra_excerpt(g->arena, name), what);
}

/* Whether a body is one of all rows at once, not of steps. */
static bool is_of_rows(const struct ra_graph *g, const struct ra_body *b)
{
	return !ra_is_scan(&g->model->traversals.at[b->traversal]);
}

static void refuse_declarations(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	for (size_t i = 0; i < s->inputs.n; i++)
		if (s->inputs.at[i].edge)
			refuse(g, s->inputs.at[i].name, "is carried by edges, and a model without a structure has none",
			       "declare it as an input, or declare a structure such as dag(*)");
	for (size_t i = 0; !ra_scans(s) && i < s->states.n; i++)
		refuse(g, s->states.at[i].name,
		       "is a state, and a model without a structure has no parents that would see it",
		       "assign it below 'node:' without declaring it, or make it an output");
	for (size_t i = 0; i < s->cases.n; i++)
		refuse(g, s->cases.at[i].name, "is a case, and rows of a model without a structure do not differ",
		       "choose elements by where(c, a, b), or declare a structure such as dag(*)");
	for (size_t i = 0; i < s->traversals.n; i++)
		if (!ra_scans(s) || (s->traversals.at[i].down && !s->traversals.at[i].steps))
			refuse(g, s->traversals.at[i].span,
			       "goes along edges, and a model without a structure has none",
			       "remove the traversal: statements follow each other below 'node:'; or scan: "
			       "traversal up over N");
}

/* The body of a case is at fault by the case alone. */
void ra_check_graph(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	refuse_declarations(g);
	for (size_t i = 0; i < s->bodies.n; i++)
		if (is_of_rows(g, &s->bodies.at[i]) && s->bodies.at[i].word &&
		    s->bodies.at[i].word != RA_WORD_NODE && s->bodies.at[i].word < RA_WORDS)
			refuse(g, s->bodies.at[i].header, "is the body of some nodes of a structure, and this model has none",
			       "write 'node:'");
	for (size_t i = 0; i < s->outputs.n; i++)
		if (s->outputs.at[i].at_root)
			refuse(g, s->outputs.at[i].name, "is at a root, and a model without a structure has none",
			       "leave 'at root' out: an output is of each row of the batch");
}

bool ra_refuse_neighbours(struct ra_graph *g, struct ra_span span)
{
	return ra_refuse(g, DIAG_MODEL_GRAPH, span.at,
			 "sum elements by indices, sum(x[i] for i), or declare a structure such as tree(*)",
			 "'%s': a model without a structure has no children, parents or nodes", ra_excerpt(g->arena, span));
}
