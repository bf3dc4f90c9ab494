/* What a name means where it stands. */
#include "ra/internal.h"

static const ra_ref none = {0};

/* --- children --- */

ra_ref ra_child_state(struct ra_graph *g, int slot, const struct ra_name *state, struct ra_span span)
{
	if (state->broken)
		return none;
	const struct ra_shape *shape = &g->model->states.at[state->index].shape;
	if (g->region == RA_IN_OUTPUTS)
		return ra_refuse(g, DIAG_MODEL_PLACE, span.at, "outputs use the states of their own node",
				 "'%s' is the state of a child, which outputs cannot use",
				 ra_excerpt(g->arena, span)),
		       none;
	if (g->region == RA_IN_LEAF && g->childless)
		return ra_build_zero(g, shape, span);
	if (g->region == RA_IN_LEAF)
		return ra_refuse(
			   g, DIAG_MODEL_LEAF, span.at,
			   "a leaf uses inputs and parameters; below 'node:' its children count as zeros",
			   "'%s' is the state of a child, which a leaf has not", ra_excerpt(g->arena, span)),
		       none;
	struct ra_node n = {.op = RA_CHILD, .shape = *shape, .at = span.at};
	n.state.state = state->index;
	n.state.slot = slot;
	return ra_build_leaf(g, n);
}

static bool is_each(const struct ra_scope *scope, const char *name, size_t length)
{
	for (const struct ra_scope *s = scope; s; s = s->outer)
		if (s->each.length == length && memcmp(s->each.text, name, length) == 0)
			return true;
	return false;
}

/* --- names that have no value --- */

/* Nobody wrote the names of a builder's values; and nobody reads more faults than are kept. */
static void consider_names(const struct ra_graph *g, const struct ra_scope *scope, struct ra_nearest *near)
{
	if (g->report->seen.n >= RA_REPORT_LIMIT)
		return;
	for (const struct ra_scope *s = scope; s; s = s->outer)
		for (size_t i = 0; i < s->n; i++)
			if (*s->spans[i].text != RA_VALUE_LETTER)
				ra_consider(near, s->spans[i].text, s->spans[i].length);
	for (size_t i = 0; i < g->name.n; i++)
		ra_consider(near, g->name.at[i].span.text, g->name.at[i].span.length);
}

static ra_ref unknown_state(struct ra_graph *g, struct ra_span span, const char *dot)
{
	size_t prefix = (size_t)(dot + 1 - span.text);
	struct ra_nearest near = ra_nearest_to(dot + 1, span.length - prefix);
	for (size_t i = 0; i < g->model->states.n; i++)
		ra_consider(&near, g->model->states.at[i].name, strlen(g->model->states.at[i].name));
	const char *hint = "only states are seen of a child";
	if (near.best)
		hint = ra_format(g->arena, "did you mean '%.*s%.*s'?", (int)prefix, span.text,
				 (int)near.best_length, near.best);
	ra_refuse(g, DIAG_MODEL_UNKNOWN, span.at, hint, "'%.*s' is a child, but '%.*s' is no state",
		  (int)prefix - 1, span.text, (int)(span.length - prefix), dot + 1);
	return none;
}

/* "did you mean 'left.h'?" for 'lefft.h', unless a name as a whole is nearer; NULL when no child is near. */
static const char *child_meant(const struct ra_graph *g, struct ra_span span, const struct ra_nearest *whole)
{
	const char *dot = memchr(span.text, '.', span.length);
	if (!dot || g->report->seen.n >= RA_REPORT_LIMIT)
		return NULL;
	size_t prefix = (size_t)(dot - span.text);
	struct ra_nearest near = ra_nearest_to(span.text, prefix);
	for (size_t i = 0; i < g->name.n; i++)
		if (g->name.at[i].kind == RA_N_SLOT)
			ra_consider(&near, g->name.at[i].span.text, g->name.at[i].span.length);
	if (!near.best || (whole->best && whole->distance < near.distance))
		return NULL;
	return ra_format(g->arena, "did you mean '%.*s%.*s'?", (int)near.best_length, near.best,
			 (int)(span.length - prefix), dot);
}

static ra_ref unknown_name(struct ra_graph *g, const struct ra_scope *scope, struct ra_span span)
{
	struct ra_nearest near = ra_nearest_to(span.text, span.length);
	consider_names(g, scope, &near);
	const char *hint = child_meant(g, span, &near);
	if (!hint)
		hint = ra_did_you_mean(
		    g->arena, &near,
		    "parameters, inputs and states are declared; other names are assigned before use");
	ra_refuse(g, DIAG_MODEL_UNKNOWN, span.at, hint, "nothing is named '%s' here",
		  ra_excerpt(g->arena, span));
	return none;
}

static ra_ref no_value(struct ra_graph *g, struct ra_span span, const char *what, const char *hint)
{
	ra_refuse(g, DIAG_MODEL_VALUE, span.at, hint, "'%s' is %s, not a value", ra_excerpt(g->arena, span),
		  what);
	return none;
}

static ra_ref misplaced(struct ra_graph *g, struct ra_span span, const char *why, const char *hint)
{
	ra_refuse(g, DIAG_MODEL_PLACE, span.at, hint, "'%s' %s", ra_excerpt(g->arena, span), why);
	return none;
}

/* --- names of the model --- */

static ra_ref resolve_input(struct ra_graph *g, int i, struct ra_span span)
{
	const struct ra_input *input = &g->model->inputs.at[i];
	if (input->token)
		return no_value(g, span, "a token", "look a parameter up with it: embedding[word]");
	if (g->region == RA_IN_OUTPUTS)
		return misplaced(g, span, "is an input, which outputs cannot use",
				 "keep what the output needs in a state");
	return ra_build_leaf(
	    g, (struct ra_node){.op = RA_INPUT, .shape = input->shape, .at = span.at, .input = i});
}

static ra_ref resolve_state(struct ra_graph *g, int i, struct ra_span span)
{
	if (g->region != RA_IN_OUTPUTS && !g->assigned[i])
		return misplaced(g, span, "is used before this body assigns it",
				 "the state of a child is written left.h or k.h");
	if (g->region != RA_IN_OUTPUTS)
		return g->value[i];
	struct ra_node n = {.op = RA_STATE, .shape = g->model->states.at[i].shape, .at = span.at};
	n.state.state = i;
	return ra_build_leaf(g, n);
}

static ra_ref resolve_output(struct ra_graph *g, int i, struct ra_span span)
{
	if (g->region != RA_IN_OUTPUTS)
		return misplaced(g, span, "is an output, which bodies cannot use", NULL);
	if ((size_t)i >= g->model->outputs.n)
		return misplaced(g, span, "is used before it is computed",
				 "outputs use the outputs above them");
	return g->model->outputs.at[i].value;
}

static ra_ref resolve_global(struct ra_graph *g, const struct ra_name *n, struct ra_span span)
{
	if (n->broken)
		return none;
	struct ra_dim symbol = ra_dim_symbol(n->index);
	switch (n->kind) {
	case RA_N_SYMBOL:
		return ra_build_extent(g, &symbol, span);
	case RA_N_PARAM:
		return ra_build_leaf(g, (struct ra_node){.op = RA_PARAM,
							 .shape = g->model->params.at[n->index].shape,
							 .at = span.at,
							 .param = n->index});
	case RA_N_INPUT:
		return resolve_input(g, n->index, span);
	case RA_N_STATE:
		return resolve_state(g, n->index, span);
	case RA_N_OUTPUT:
		return resolve_output(g, n->index, span);
	case RA_N_DEF:
		return no_value(g, span, "a function", "write its arguments in parentheses");
	case RA_N_SLOT:
		return no_value(g, span, "a child", "its states are written with a dot: left.h");
	}
	return none;
}

/* `left.h`, `k.h`: the state that is named after the dot. */
static ra_ref resolve_child(struct ra_graph *g, int slot, struct ra_span span, const char *dot)
{
	const struct ra_name *state = ra_find_name(g, dot + 1, span.length - (size_t)(dot + 1 - span.text));
	return state && state->kind == RA_N_STATE ? ra_child_state(g, slot, state, span)
						  : unknown_state(g, span, dot);
}

/* Local names hide those of the model: arguments of the prelude's functions may be called anything. */
ra_ref ra_resolve(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_span span = e->name;
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		int i = s->names ? map_get(s->names, span.text, span.length) : -1;
		if (i >= 0)
			return s->values[i];
	}
	const char *dot = memchr(span.text, '.', span.length);
	size_t prefix = dot ? (size_t)(dot - span.text) : span.length;
	if (is_each(scope, span.text, prefix))
		return dot ? resolve_child(g, RA_EACH_CHILD, span, dot)
			   : no_value(g, span, "a child", "its states are written k.h");
	const struct ra_name *n = ra_find_name(g, span.text, span.length);
	if (n)
		return resolve_global(g, n, span);
	int slot = dot ? ra_find_slot(g, span.text, prefix) : -1;
	return slot >= 0 ? resolve_child(g, slot, span, dot) : unknown_name(g, scope, span);
}

/* --- new names --- */

static bool refuse_name(struct ra_graph *g, struct ra_span name, const char *what, struct diag_at old)
{
	return !ra_refuse(g, DIAG_MODEL_DUPLICATE, name.at, "give one of them another name",
			  "'%s' is already %s%s", ra_excerpt(g->arena, name), what, ra_line(g->arena, old));
}

bool ra_name_taken(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name)
{
	const struct ra_name *n = ra_find_name(g, name.text, name.length);
	if (n && !(g->call && g->call->def->prelude))
		return refuse_name(g, name, ra_name_kind_text(n->kind), n->span.at);
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		int i = s->names ? map_get(s->names, name.text, name.length) : -1;
		if (i >= 0)
			return refuse_name(g, name, "a name", s->spans[i].at);
		if (s->each.length == name.length && memcmp(s->each.text, name.text, name.length) == 0)
			return refuse_name(g, name, "a child", s->each.at);
	}
	return false;
}
