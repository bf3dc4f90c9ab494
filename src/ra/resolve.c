/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The meaning of names, by place and scope. */
#include "ra/syntax.h"

#include <math.h>

static const ra_ref none = {0};

/* --- children and parents --- */

bool ra_goes_down(const struct ra_graph *g)
{
	return g->model->traversals.at[g->traversal].down;
}

bool ra_in_scan(const struct ra_graph *g)
{
	return g->region != RA_IN_OUTPUTS && ra_is_scan(&g->model->traversals.at[g->traversal]);
}

/* Words of diagnostics about the neighbours that a traversal sees, children or parents. */
static const struct neighbour {
	enum ra_op op;
	const char *name, *first, *hint, *direction, *other;
} neighbours[] = {
    {RA_CHILD, "a child", "a leaf", "a leaf uses inputs and parameters; below 'node:' its children count as zeros",
     "down", "this traversal sees the states of parents; 'traversal up' begins one that sees those of children"},
    {RA_PARENT, "a parent", "a root",
     "a root uses inputs, parameters and states of earlier traversals; below 'node:' its parent counts as zeros", "up",
     "this traversal sees the states of children; 'traversal down' begins one that sees those of parents"},
};

bool ra_is_child_field(const struct ra_graph *g, const struct ra_name *n)
{
	return n->kind == RA_N_STATE || (n->kind == RA_N_INPUT && g->syntax->inputs.at[n->index].edge);
}

int ra_find_child(struct ra_graph *g, int64_t slot, struct ra_span span)
{
	int children = ra_in_scan(g) ? 1 : g->children;
	if (ra_is_graph(g) && !ra_in_scan(g))
		return ra_refuse_neighbours(g, span), -1;
	if (children < 0)
		return ra_refuse(
			   g, DIAG_MODEL_CHILD, span.at,
			   "write sum(... for k in children), or a body for a case of so many: inner when children == 2",
			   "the children of this structure have no numbers: there is any number of them"),
		       -1;
	if (slot < 0 || slot >= children)
		return ra_refuse(g, DIAG_MODEL_CHILD, span.at, "children are counted from 0",
				 "there is no child %lld: a node has %d", (long long)slot, children),
		       -1;
	return (int)slot;
}

/* Whether there are such neighbours here; below `node:` those of a leaf or a root count as zeros. */
static bool is_seen(struct ra_graph *g, bool down, const struct ra_name *field, struct ra_span span)
{
	const struct neighbour *n = &neighbours[down];
	const char *text = ra_excerpt(g->arena, span);
	const char *what = field->kind == RA_N_STATE ? "is the state of" : "is carried by the edge to";
	if (ra_is_graph(g) && !ra_in_scan(g))
		return ra_refuse_neighbours(g, span);
	if (ra_is_graph(g) && field->kind == RA_N_STATE &&
	    g->model->states.at[field->index].traversal != g->traversal)
		return ra_refuse(g, DIAG_MODEL_PLACE, span.at,
				 "the states of other traversals are whole: at_step(h) is that of the step",
				 "'%s' is a state of another traversal than this scan", text);
	if (g->region == RA_IN_OUTPUTS)
		return ra_refuse(g, DIAG_MODEL_PLACE, span.at, "outputs use the states of their own node",
				 "'%s' %s %s, which outputs cannot use", text, what, n->name);
	if (down != ra_goes_down(g))
		return ra_refuse(g, DIAG_MODEL_DIRECTION, span.at, n->other,
				 "'%s' %s %s, which a traversal %s does not see", text, what, n->name, n->direction);
	if (field->kind == RA_N_STATE && g->model->states.at[field->index].traversal > g->traversal)
		return ra_refuse(g, DIAG_MODEL_PLACE, span.at, "a traversal uses its own states and those of earlier ones",
				 "'%s' is computed by a later traversal", text);
	if (g->region == RA_IN_LEAF && !g->childless)
		return ra_refuse(g, DIAG_MODEL_LEAF, span.at, n->hint, "'%s' %s %s, which %s has not", text, what,
				 n->name, n->first);
	return true;
}

static ra_ref refuse_value(struct ra_graph *, struct ra_span, const char *what, const char *hint);

static ra_ref neighbour_field(struct ra_graph *g, bool down, int slot, const struct ra_name *field,
			      struct ra_span span)
{
	bool state = field->kind == RA_N_STATE;
	if (field->broken || !is_seen(g, down, field, span))
		return none;
	if (!state && g->model->inputs.at[field->index].token)
		return refuse_value(
		    g, span, "a token",
		    "look a parameter up with it: U[k.rel]; declared i32 it is a number as well");
	const struct ra_shape *shape =
	    state ? &g->model->states.at[field->index].shape : &g->model->inputs.at[field->index].shape;
	enum dtype dtype = state ? g->model->states.at[field->index].dtype
				 : ra_widened(g->model->inputs.at[field->index].dtype);
	if (g->region == RA_IN_LEAF)
		return ra_build_zero(g, shape, dtype, span);
	struct ra_node n = {.op = state ? neighbours[down].op : RA_INPUT, .shape = *shape, .at = span.at};
	if (state) {
		n.state.state = field->index;
		n.state.slot = slot;
	} else {
		n.input = field->index;
		n.slot = slot;
	}
	return ra_build_leaf(g, n);
}

ra_ref ra_child_field(struct ra_graph *g, int slot, const struct ra_name *field, struct ra_span span)
{
	return neighbour_field(g, false, slot, field, span);
}

static bool is_each(const struct ra_scope *scope, const char *name, size_t length)
{
	for (const struct ra_scope *s = scope; s; s = s->outer)
		if (s->each.length == length && memcmp(s->each.text, name, length) == 0)
			return true;
	return false;
}

/* --- names that have no value --- */

/* The names of a builder's values are no candidates. */
static void consider_names(const struct ra_graph *g, const struct ra_scope *scope, struct ra_nearest *near)
{
	for (const struct ra_scope *s = scope; s; s = s->outer)
		for (size_t i = 0; i < s->n; i++)
			if (*s->spans[i].text != RA_VALUE_LETTER)
				ra_consider_name(near, s->spans[i].text, s->spans[i].length);
	for (size_t i = 0; i < g->name.n; i++)
		ra_consider_name(near, g->name.at[i].span.text, g->name.at[i].span.length);
}

static ra_ref unknown_state(struct ra_graph *g, struct ra_span span, const char *dot, const char *of)
{
	if (!ra_is_news(g->report, DIAG_MODEL_UNKNOWN, ra_place_of(g, span.at)))
		return none;
	size_t prefix = (size_t)(dot + 1 - span.text);
	struct ra_nearest near = ra_nearest_to(dot + 1, span.length - prefix);
	for (size_t i = 0; i < g->name.n; i++)
		if (ra_is_child_field(g, &g->name.at[i]))
			ra_consider_name(&near, g->name.at[i].span.text, g->name.at[i].span.length);
	const char *hint = str_format(g->arena, "only states are seen of %s", of);
	if (near.best)
		hint = str_format(g->arena, "did you mean '%.*s%.*s'?", (int)prefix, span.text,
				 (int)near.best_length, near.best);
	ra_refuse(g, DIAG_MODEL_UNKNOWN, span.at, hint, "'%.*s' is %s, but '%.*s' is no state",
		  (int)prefix - 1, span.text, of, (int)(span.length - prefix), dot + 1);
	return none;
}

/* "did you mean 'left.h'?" for 'lefft.h', unless a name as a whole is nearer; NULL when no child is near. */
static const char *child_meant(const struct ra_graph *g, struct ra_span span, const struct ra_nearest *whole)
{
	const char *dot = memchr(span.text, '.', span.length);
	if (!dot)
		return NULL;
	size_t prefix = (size_t)(dot - span.text);
	struct ra_nearest near = ra_nearest_to(span.text, prefix);
	for (size_t i = 0; i < g->name.n; i++)
		if (g->name.at[i].kind == RA_N_SLOT || g->name.at[i].kind == RA_N_PARENT)
			ra_consider_name(&near, g->name.at[i].span.text, g->name.at[i].span.length);
	if (!near.best || (whole->best && whole->distance < near.distance))
		return NULL;
	return str_format(g->arena, "did you mean '%.*s%.*s'?", (int)near.best_length, near.best,
			 (int)(span.length - prefix), dot);
}

static ra_ref refuse_unknown_name(struct ra_graph *g, const struct ra_scope *scope, struct ra_span span)
{
	if (!ra_is_news(g->report, DIAG_MODEL_UNKNOWN, ra_place_of(g, span.at)))
		return none;
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

static ra_ref refuse_value(struct ra_graph *g, struct ra_span span, const char *what, const char *hint)
{
	ra_refuse(g, DIAG_MODEL_VALUE, span.at, hint, "'%s' is %s, not a value", ra_excerpt(g->arena, span),
		  what);
	return none;
}

static ra_ref refuse_place(struct ra_graph *g, struct ra_span span, const char *why, const char *hint)
{
	ra_refuse(g, DIAG_MODEL_PLACE, span.at, hint, "'%s' %s", ra_excerpt(g->arena, span), why);
	return none;
}

/* --- names of the model --- */

/* Outputs are computed of states, which stay; those of a model without a structure of the inputs themselves. */
static bool sees_inputs(const struct ra_graph *g)
{
	return g->region != RA_IN_OUTPUTS || ra_is_graph(g);
}

/* An input of the node itself, or of the one that a sum over the nodes of an input is at. */
static ra_ref plain_input(struct ra_graph *g, int i, int slot, struct ra_span span)
{
	const struct ra_input *input = &g->model->inputs.at[i];
	if (input->token)
		return refuse_value(
		    g, span, "a token",
		    "look a parameter up with it: embedding[word]; declared i32 it is a number as well");
	if (!sees_inputs(g))
		return refuse_place(g, span, "is an input, which outputs cannot use",
				    "keep what the output needs in a state");
	struct ra_node n = {.op = RA_INPUT, .shape = input->shape, .at = span.at};
	n.input = i;
	n.slot = slot;
	return ra_build_leaf(g, n);
}

static ra_ref resolve_input(struct ra_graph *g, int i, struct ra_span span)
{
	if (g->model->inputs.at[i].edge)
		return refuse_place(g, span, "is carried by the edges to children",
				    "write k.x or left.x for it");
	return plain_input(g, i, 0, span);
}

static ra_ref own_state(struct ra_graph *, int state, int slot, struct ra_span);

/* In an output that is computed for each node of an input, a state is that of the node. */
static ra_ref resolve_state(struct ra_graph *g, int i, struct ra_span span)
{
	int traversal = g->model->states.at[i].traversal;
	bool own = g->region != RA_IN_OUTPUTS && traversal == g->traversal;
	if (g->region != RA_IN_OUTPUTS && traversal > g->traversal)
		return refuse_place(g, span, "is computed by a later traversal",
				    "a traversal uses its own states and those of earlier ones");
	if (own && !g->assigned[i])
		return refuse_place(g, span, "is used before this body assigns it",
				    ra_goes_down(g)
					? "the state of the parent is written parent.h, next.h or p.h"
					: "the state of a child is written left.h or k.h");
	if (own)
		return g->value[i];
	return own_state(g, i, g->of_member ? RA_EACH_MEMBER : 0, span);
}

static ra_ref member_output(struct ra_graph *, int output, struct ra_span);

bool ra_note_range(struct ra_graph *g)
{
	size_t output = g->model->outputs.n;
	if (output < g->syntax->outputs.n)
		g->syntax->outputs.at[output].ranges = true;
	return true;
}

static ra_ref resolve_output(struct ra_graph *g, int i, struct ra_span span)
{
	if (g->region != RA_IN_OUTPUTS)
		return refuse_place(g, span, "is an output, which bodies cannot use", NULL);
	if ((size_t)i >= g->model->outputs.n)
		return refuse_place(g, span, "is used before it is computed",
				    "outputs use the outputs above them");
	if (g->of_member)
		return member_output(g, i, span);
	if (g->syntax->outputs.at[i].ranges && g->syntax->outputs.at[i].at_root && !g->at_root)
		return refuse_place(g, span, "is of all nodes of an input, not of each",
				    "use it in an output 'at root'");
	if (g->syntax->outputs.at[i].ranges)
		ra_note_range(g);
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
		return refuse_value(g, span, "a function", "write its arguments in parentheses");
	case RA_N_SLOT:
		return refuse_value(g, span, "a child", "its states are written with a dot: left.h");
	case RA_N_PARENT:
		return refuse_value(g, span, "the parent",
				    "its states are written with a dot: parent.h, next.h");
	case RA_N_CASE:
		return refuse_value(g, span, "a case", "its body stands below its name and ':'");
	}
	return none;
}

/* Finds the child before the dot of a name: that of the sum around it, or one in a slot; false = neither. */
static bool find_owner(const struct ra_graph *g, const struct ra_scope *scope, struct ra_span span,
		       const char *dot, int *slot)
{
	size_t prefix = dot ? (size_t)(dot - span.text) : span.length;
	bool each = is_each(scope, span.text, prefix);
	*slot = each						  ? RA_EACH_CHILD
		: dot && !ra_find_name(g, span.text, span.length) ? ra_find_slot(g, span.text, prefix)
								  : -2;
	return each || *slot >= 0;
}

static const struct ra_name *name_behind(const struct ra_graph *g, struct ra_span span, const char *dot)
{
	return ra_find_name(g, dot + 1, span.length - (size_t)(dot + 1 - span.text));
}

/* An output of the node that a sum is at: computed of that node's states, as it is at every node. */
static ra_ref member_output(struct ra_graph *g, int i, struct ra_span span)
{
	if ((size_t)i >= g->model->outputs.n)
		return refuse_place(g, span, "is used before it is computed",
				    "outputs use the outputs above them");
	if (g->syntax->outputs.at[i].at_root)
		return refuse_place(g, span, "is computed at the root only", "write it 'at every node'");
	if (g->syntax->outputs.at[i].ranges)
		return refuse_place(g, span, "ranges over the nodes of an input itself",
				    "make it a state of a traversal, which is read of each node");
	bool outer = g->of_member;
	g->of_member = true;
	ra_ref value =
	    g->model->outputs.at[i].value.i ? ra_expand_expr(g, NULL, g->syntax->outputs.at[i].value) : none;
	g->of_member = outer;
	return value;
}

static ra_ref own_state(struct ra_graph *g, int i, int slot, struct ra_span span)
{
	struct ra_node n = {.op = RA_STATE, .shape = ra_outer_shape(g->model, i), .at = span.at};
	n.state.state = i;
	n.state.slot = slot;
	return ra_build_leaf(g, n);
}

/* A state of the node that a sum is at: bodies see those of earlier traversals, which all nodes have. */
static ra_ref member_state(struct ra_graph *g, int i, struct ra_span span)
{
	int traversal = g->model->states.at[i].traversal;
	if (g->region == RA_IN_OUTPUTS || traversal < g->traversal)
		return own_state(g, i, RA_EACH_MEMBER, span);
	return refuse_place(g, span, "is not complete: this traversal, or a later one, computes it",
			    "compute it in a traversal before this one; 'traversal up' begins the next one");
}

/* What the node that a sum is at carries. */
static ra_ref member_input(struct ra_graph *g, int i, struct ra_span span)
{
	if (g->model->inputs.at[i].edge)
		return refuse_place(g, span, "is carried by edges, not by nodes", "keep what is needed of it in a state");
	return plain_input(g, i, RA_EACH_MEMBER, span);
}

/* `n.h` of the node that a sum over the nodes of an input is at. */
static ra_ref resolve_member(struct ra_graph *g, struct ra_span span, const char *dot)
{
	const struct ra_name *field = name_behind(g, span, dot);
	if (field && field->kind == RA_N_OUTPUT && g->region == RA_IN_OUTPUTS)
		return member_output(g, field->index, span);
	if (!field || (field->kind != RA_N_STATE && field->kind != RA_N_INPUT))
		return unknown_state(g, span, dot, "a node");
	if (field->broken)
		return none;
	return field->kind == RA_N_INPUT ? member_input(g, field->index, span) : member_state(g, field->index, span);
}

/* `left.h`, `k.h`, `parent.h`: the state, or what the edge carries, that is named after the dot. */
static ra_ref resolve_neighbour(struct ra_graph *g, bool down, int slot, struct ra_span span, const char *dot)
{
	if (slot == RA_EACH_CHILD && g->members)
		return resolve_member(g, span, dot);
	const struct ra_name *field = name_behind(g, span, dot);
	bool seen = field && (down ? field->kind == RA_N_STATE : ra_is_child_field(g, field));
	return seen ? neighbour_field(g, down, slot, field, span)
		    : unknown_state(g, span, dot, neighbours[down].name);
}

/* Whether a name is `parent.h` where no parent has a name: a node has several, or no traversal goes down. */
static bool means_parent(const struct ra_graph *g, struct ra_span span, const char *dot)
{
	const char *name = g->model->structure.kind == RA_SEQUENCE ? "next" : "parent";
	size_t prefix = dot ? (size_t)(dot - span.text) : 0;
	return !ra_is_graph(g) && prefix == strlen(name) && memcmp(span.text, name, prefix) == 0;
}

static ra_ref resolve_unnamed_parent(struct ra_graph *g, struct ra_span span, const char *dot)
{
	if (g->region == RA_IN_OUTPUTS || !ra_goes_down(g))
		return resolve_neighbour(g, true, 0, span, dot);
	ra_refuse(g, DIAG_MODEL_CHILD, span.at, "write sum(... for p in parents)",
		  "the parents of this structure have no name: there is any number of them");
	return none;
}

/* Local names hide those of the model, so that arguments of the prelude's functions may have any name. */
ra_ref ra_resolve_name(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_span span = e->name;
	int slot;
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		int i = s->names ? map_get(s->names, span.text, span.length) : -1;
		if (i >= 0 && s->index)
			return refuse_value(g, span, "an index", "indices stand in brackets: x[i, j + 1]");
		if (i >= 0)
			return s->values[i];
	}
	const char *dot = memchr(span.text, '.', span.length);
	if (find_owner(g, scope, span, dot, &slot)) {
		bool down = slot == RA_EACH_CHILD && ra_goes_down(g);
		return dot ? resolve_neighbour(g, down, slot, span, dot)
			   : refuse_value(g, span, neighbours[down].name, "its states are written k.h");
	}
	const struct ra_name *n = ra_find_name(g, span.text, span.length);
	if (n)
		return resolve_global(g, n, span);
	const struct ra_name *of = dot ? ra_find_name(g, span.text, (size_t)(dot - span.text)) : NULL;
	if (of && of->kind == RA_N_PARENT)
		return resolve_neighbour(g, true, 0, span, dot);
	return means_parent(g, span, dot) ? resolve_unnamed_parent(g, span, dot)
					  : refuse_unknown_name(g, scope, span);
}

/* --- look-ups --- */

/* The token that is the index of a look-up, and its child, or the node of a sum; NULL = it is no token. */
static const struct ra_name *find_token(struct ra_graph *g, const struct ra_scope *scope,
					const struct ra_expr *index, int *slot)
{
	struct ra_span span = index->name;
	const char *dot = memchr(span.text, '.', span.length);
	bool numbered = index->kind == RA_E_SLOT;
	if (numbered)
		*slot = ra_find_child(g, index->slot, index->span);
	bool of_child = numbered || find_owner(g, scope, span, dot, slot);
	const struct ra_name *n = of_child && !numbered && dot ? name_behind(g, span, dot)
							       : ra_find_name(g, span.text, span.length);
	bool token = n && n->kind == RA_N_INPUT && ra_is_index(&g->model->inputs.at[n->index]);
	bool of_edge = of_child && !(g->members && *slot == RA_EACH_MEMBER);
	return token && g->model->inputs.at[n->index].edge == of_edge ? n : NULL;
}

/* Whether the token can be used here. */
static bool check_token(struct ra_graph *g, const struct ra_name *token, struct ra_span span)
{
	if (g->model->inputs.at[token->index].edge)
		return is_seen(g, false, token, span);
	return sees_inputs(g) ||
	       ra_refuse(g, DIAG_MODEL_PLACE, span.at, "keep what the output needs in a state",
			 "'%s' is an input, which outputs cannot use", ra_excerpt(g->arena, span));
}

static ra_ref look_up(struct ra_graph *g, ra_ref base, const struct ra_name *token, int slot,
		      struct ra_span span)
{
	bool edge = g->model->inputs.at[token->index].edge;
	ra_ref row = ra_build_lookup(g, base, token->index, edge || slot == RA_EACH_MEMBER ? slot : 0, span);
	if (!row.i || !edge || g->region != RA_IN_LEAF)
		return row;
	struct ra_node n = *ra_at(g->model, row);
	return ra_build_zero(g, &n.shape, n.dtype, span);
}

/* x[2] */
static ra_ref build_numbered_row(struct ra_graph *g, ra_ref base, const struct ra_expr *e)
{
	double number = e->index->number;
	if (fabs(number) <= INT32_MAX && number == (double)(int64_t)number)
		return ra_build_row(g, base, (int64_t)number, e->span);
	ra_refuse(g, DIAG_MODEL_LOOKUP, e->index->span.at, "rows are numbered from 0",
		  "'%s' is not the number of a row", ra_excerpt(g->arena, e->index->span));
	return none;
}

/* Whether a name is one of the values at hand. */
static bool is_local(const struct ra_scope *scope, struct ra_span name)
{
	for (const struct ra_scope *s = scope; s; s = s->outer)
		if (s->names && map_get(s->names, name.text, name.length) >= 0)
			return !s->index;
	return false;
}

/* Whether a name is an input of the node that is an integer of another type than tokens: a value, which can be an index. */
static bool is_integer_input(struct ra_graph *g, struct ra_span name)
{
	const struct ra_name *n = ra_find_name(g, name.text, name.length);
	const struct ra_input *in = n && n->kind == RA_N_INPUT ? &g->model->inputs.at[n->index] : NULL;
	if (!in || in->edge || in->shape.rank || ra_is_index(in))
		return false;
	return ra_widened(in->dtype) == DTYPE_I32 || ra_widened(in->dtype) == DTYPE_I64;
}

ra_ref ra_resolve_lookup(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	int slot = 0;
	if (e->index->kind == RA_E_NAME && (ra_is_index_name(g, scope, e->index->name) ||
					    is_local(scope, e->index->name) || is_integer_input(g, e->index->name)))
		return ra_expand_indexed(g, scope, e);
	struct ra_nest *nest = g->nest;
	g->nest = NULL;
	ra_ref base = ra_expand_expr(g, scope, e->base);
	g->nest = nest;
	if (e->index->kind == RA_E_NUMBER)
		return build_numbered_row(g, base, e);
	const struct ra_name *token = find_token(g, scope, e->index, &slot);
	struct ra_span named = e->index->kind == RA_E_SLOT ? e->index->span : e->index->name;
	const struct ra_name *whole = ra_find_name(g, e->index->name.text, e->index->name.length);
	if ((token ? token : whole) && (token ? token : whole)->broken)
		return none;
	if (!token)
		return ra_refuse(g, DIAG_MODEL_LOOKUP, named.at,
				 "declare it with 'input word : i32', or 'edge rel : i32' for k.rel; a "
				 "slice is written x[a:b]",
				 "'%s' is not an input that is an i32", ra_excerpt(g->arena, named)),
		       none;
	if (!check_token(g, token, named) || !base.i)
		return none;
	const struct ra_node *n = ra_at(g->model, base);
	if (n->op != RA_PARAM || !n->shape.rank)
		return ra_refuse(g, DIAG_MODEL_LOOKUP, e->span.at,
				 "only a parameter with rows can be looked up", "'%s' has no rows to look up",
				 ra_excerpt(g->arena, e->base->span)),
		       none;
	return look_up(g, base, token, slot, e->span);
}

/* --- new names --- */

static bool refuse_name(struct ra_graph *g, struct ra_span name, const char *what, struct diag_at old)
{
	return !ra_refuse(g, DIAG_MODEL_DUPLICATE, name.at, "give one of them another name",
			  "'%s' is already %s%s", ra_excerpt(g->arena, name), what,
			  ra_line_text(g->arena, old));
}

bool ra_name_taken(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name)
{
	const struct ra_name *n = ra_find_name(g, name.text, name.length);
	if (n && !(g->call && g->call->def->prelude))
		return refuse_name(g, name, ra_name_kind_text(n->kind), n->span.at);
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		int i = s->names ? map_get(s->names, name.text, name.length) : -1;
		if (i >= 0)
			return refuse_name(g, name, s->index ? "an index" : "a name", s->spans[i].at);
		if (s->each.length == name.length && memcmp(s->each.text, name.text, name.length) == 0)
			return refuse_name(g, name, "a child", s->each.at);
	}
	return false;
}
