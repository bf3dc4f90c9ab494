/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which body is for which nodes, and what a model must have. */
#include "ra/syntax.h"

/* --- bodies, by traversal and word --- */

struct body_key {
	int traversal;
	enum ra_word word;
};

static const struct ra_body *first_body(const struct ra_graph *g, int traversal, enum ra_word word)
{
	struct body_key key = {traversal, word};
	int i = map_get(&g->bodies, (const char *)&key, sizeof key);
	return i < 0 ? NULL : &g->syntax->bodies.at[i];
}

/* The first of two bodies in the text, either of which may be NULL. */
static const struct ra_body *earlier_body(const struct ra_body *a, const struct ra_body *b)
{
	return !b || (a && a < b) ? a : b;
}

const struct ra_body *ra_body_for(const struct ra_graph *g, int traversal, enum ra_word word)
{
	const struct ra_body *all = word < RA_WORDS ? first_body(g, traversal, RA_WORD_NODE) : NULL;
	return earlier_body(first_body(g, traversal, word), all);
}

/* --- what a model needs --- */

static bool has_state(const struct ra_graph *g, int traversal)
{
	for (size_t i = 0; i < g->model->states.n; i++)
		if (g->model->states.at[i].traversal == traversal)
			return true;
	return false;
}

/* What a model or a traversal must have, and hints; that for a builder may be NULL = the same. */
struct requirement {
	bool there;
	const char *what, *hint, *built;
};

static void check_requirements(struct ra_graph *g, struct diag_at at, const char *whole,
			       const struct requirement *required, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!required[i].there)
			ra_report(g->report, DIAG_MODEL_MISSING, at,
				  g->syntax->built && required[i].built ? required[i].built
									: required[i].hint,
				  "%s lacks %s", whole, required[i].what);
}

/* Diagnostics about the only traversal speak of the model, wherever its statement is. */
static void check_traversal(struct ra_graph *g, int t)
{
	const struct ra_syntax *s = g->syntax;
	const struct ra_traversal *traversal = &g->model->traversals.at[t];
	bool down = traversal->down, said = g->model->traversals.n == s->traversals.n || t;
	const struct requirement required[] = {
	    {has_state(g, t), "a state", "add a line such as: state h[D]",
	     "declare one with esp_builder_state"},
	    {ra_body_for(g, t, ra_case_word(down, RA_LEAF)), down ? "a body for roots" : "a body for leaves",
	     down ? "add one below 'root:', or one for all nodes below 'node:'"
		  : "add one below 'leaf:', or one for all nodes below 'node:'",
	     down ? "begin one with esp_builder_body: ESP_BODY_ROOT, or ESP_BODY_NODE for all nodes"
		  : "begin one with esp_builder_body: ESP_BODY_LEAF, or ESP_BODY_NODE for all nodes"},
	    {ra_body_for(g, t, ra_case_word(down, RA_INNER)),
	     down ? "a body for nodes below others" : "a body for inner nodes",
	     down ? "add one below 'below:', or one for all nodes below 'node:'"
		  : "add one below 'inner:', or one for all nodes below 'node:'",
	     down ? "begin one with esp_builder_body: ESP_BODY_BELOW, or ESP_BODY_NODE for all nodes"
		  : "begin one with esp_builder_body: ESP_BODY_INNER, or ESP_BODY_NODE for all nodes"},
	};
	check_requirements(g, traversal->at, said ? "the traversal" : "the model", required,
			   sizeof required / sizeof *required);
}

void ra_check_complete(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	const struct requirement first[] = {
	    {s->model.length, "a name", "add a line such as: model treelstm", NULL},
	    {s->structure.span.length, "a structure", "add a line such as: structure tree(left, right), or: structure none",
	     NULL},
	};
	const struct requirement last = {s->outputs.n, "an output",
					 ra_is_graph(g) ? "add a line such as: output y = W @ x" : "add a line such as: output result = h",
					 "name one with esp_builder_output"};
	struct diag_at at = {.file = g->model->file};
	check_requirements(g, at, "the model", first, 2);
	for (size_t t = 0; t < g->model->traversals.n; t++)
		if (!ra_is_graph(g) || ra_is_scan(&g->model->traversals.at[t]) || has_state(g, (int)t))
			check_traversal(g, (int)t);
	check_requirements(g, at, "the model", &last, 1);
}

/* The first body before this one that is for some of the same nodes, or NULL: 'node:' is for those of all
 * words of the language. */
static const struct ra_body *body_before(const struct ra_graph *g, const struct ra_body *b)
{
	const struct ra_body *old = ra_body_for(g, b->traversal, b->word);
	for (enum ra_word word = RA_WORD_LEAF; b->word == RA_WORD_NODE && word < RA_WORDS; word++)
		old = earlier_body(old, first_body(g, b->traversal, word));
	return old;
}

static void check_body(struct ra_graph *g, const struct ra_body *b)
{
	const struct ra_body *old = body_before(g, b);
	if (old && ra_is_news(g->report, DIAG_MODEL_DUPLICATE, b->header.at))
		ra_report(g->report, DIAG_MODEL_DUPLICATE, b->header.at,
			  "write one 'node:', or one body for each case",
			  "'%s:' gives nodes a second body after '%s:'%s", ra_excerpt(g->arena, b->header),
			  ra_excerpt(g->arena, old->header), ra_line_text(g->arena, old->header.at));
}

void ra_add_bodies(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->bodies.n; i++) {
		const struct ra_body *b = &g->syntax->bodies.at[i];
		struct body_key key = {b->traversal, b->word};
		if (!b->word)
			continue;
		check_body(g, b);
		map_add(&g->bodies, (const char *)&key, sizeof key, (int)i);
	}
}

/* Whether a traversal of this direction has bodies of that word. */
static bool belongs_to_direction(enum ra_word word, bool down)
{
	if (word >= RA_WORDS)
		return !down;
	return word == RA_WORD_NODE || word == ra_case_word(down, RA_LEAF) || word == ra_case_word(down, RA_INNER);
}

void ra_check_directions(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->bodies.n; i++) {
		const struct ra_body *b = &g->syntax->bodies.at[i];
		bool down = g->model->traversals.at[b->traversal].down;
		if (!b->word || belongs_to_direction(b->word, down))
			continue;
		g->syntax->incomplete = true;
		ra_report(g->report, DIAG_MODEL_DIRECTION, b->header.at,
				  down ? "write 'root:', 'below:' or 'node:', or begin a traversal up"
				       : "write 'leaf:', 'inner:' or 'node:', or begin a traversal down",
				  "'%s:' is no body of a traversal that goes %s", ra_excerpt(g->arena, b->header),
				  down ? "down" : "up");
	}
}
