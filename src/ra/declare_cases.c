/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Cases of nodes that a model names. */
#include "ra/syntax.h"

static bool refuse_case(struct ra_graph *g, struct ra_span at, const char *hint, const char *what)
{
	return ra_report(g->report, DIAG_MODEL_CASE, at.at, hint, "'%s' %s", ra_excerpt(g->arena, at), what);
}

static bool add_children(struct ra_graph *g, struct ra_named_case *c, const struct ra_condition *condition)
{
	if (c->base == RA_LEAF)
		return refuse_case(g, condition->name, "leaves are told apart by their tokens",
				   "is asked of a leaf, which has none");
	if (g->syntax->structure.children >= 0)
		return refuse_case(g, condition->name, "declare the structure tree(*) or dag(*)",
				   "has one answer for all inner nodes of this structure");
	if (c->children >= 0 || condition->value < 1)
		return refuse_case(g, condition->name, "an inner node has one number of children, at least 1",
				   c->children >= 0 ? "is asked twice" : "is never 0 of an inner node");
	c->children = (int)condition->value;
	return true;
}

static bool add_token(struct ra_graph *g, struct ra_named_case *c, const struct ra_condition *condition)
{
	const struct ra_name *n = ra_find_name(g, condition->name.text, condition->name.length);
	if (!n || n->kind != RA_N_INPUT || !ra_is_index(&g->model->inputs.at[n->index]) || g->model->inputs.at[n->index].edge)
		return refuse_case(g, condition->name, "declare it with 'input kind : i32'",
				   "is not an input that is an i32");
	for (size_t i = 0; i < c->tokens.n; i++)
		if (c->tokens.at[i].input == n->index)
			return refuse_case(g, condition->name, "a node has one value of it",
					   "is asked twice");
	vec_push(g->arena, &c->tokens, (struct image_match){n->index, (int)condition->value});
	return true;
}

static bool has_token(const struct ra_named_case *c, struct image_match m)
{
	for (size_t i = 0; i < c->tokens.n; i++)
		if (c->tokens.at[i].input == m.input && c->tokens.at[i].value == m.value)
			return true;
	return false;
}

/* Whether every node of one case fits another. */
static bool covers_case(const struct ra_named_case *c, const struct ra_named_case *of)
{
	bool all = c->base == of->base && (c->children < 0 || c->children == of->children);
	for (size_t i = 0; all && i < c->tokens.n; i++)
		all = has_token(of, c->tokens.at[i]);
	return all;
}

static void check_cover(struct ra_graph *g, const struct ra_named_case *c, struct ra_span name)
{
	for (size_t i = 0; i < g->model->cases.n; i++) {
		const struct ra_named_case *before = &g->model->cases.at[i];
		if (covers_case(before, c)) {
			ra_report(g->report, DIAG_MODEL_CASE, name.at,
				  "the first case that fits is taken: declare it before",
				  "no node is of the case '%s': all are of '%s'%s", c->name, before->name,
				  ra_line_text(g->arena, before->at));
			return;
		}
	}
}

static void declare_case(struct ra_graph *g, const struct ra_case_text *text)
{
	struct ra_named_case c = {.name = ra_span_string(g->arena, text->name),
				  .base = text->base == RA_WORD_LEAF ? RA_LEAF : RA_INNER,
				  .children = -1,
				  .at = text->name.at};
	bool good = true;
	for (size_t i = 0; i < text->conditions.n; i++) {
		const struct ra_condition *condition = &text->conditions.at[i];
		bool children = ra_span_is(condition->name, "children");
		good &= (children ? add_children : add_token)(g, &c, condition);
	}
	if (good && !g->syntax->incomplete)
		check_cover(g, &c, text->name);
	vec_push(g->arena, &g->model->cases, c);
}

void ra_declare_cases(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	bool down = ra_has_down(g->model);
	size_t most = (down ? RA_BODY_LIMIT / 2 : RA_BODY_LIMIT) - RA_CASES;
	for (size_t i = 0; i < s->cases.n; i++) {
		if (g->model->cases.n == most) {
			refuse_case(g, s->cases.at[i].name,
				    str_format(g->arena, "a model%s names at most %zu cases",
					      down ? " that goes down" : "", most),
				    "is a case too many");
			g->syntax->incomplete = true;
			return;
		}
		declare_case(g, &s->cases.at[i]);
	}
}

void ra_check_case_bodies(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	for (size_t c = 0; c < s->cases.n; c++) {
		bool any = false;
		for (size_t t = 0; t < g->model->traversals.n; t++)
			any |= ra_body_for(g, (int)t, ra_word_of_case(c)) != NULL;
		if (!any)
			refuse_case(g, s->cases.at[c].name,
				    "give it a body below its name and ':', or remove it",
				    "is a case without a body");
	}
}
