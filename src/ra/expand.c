/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Expressions, bodies and outputs to nodes. */
#include "ra/syntax.h"

static const ra_ref none = {0};

/* --- places: a fault inside a function is reported at its call --- */

/* The call in the author's text that led into the prelude, or NULL. */
static const struct ra_call *prelude_entry(const struct ra_graph *g)
{
	const struct ra_call *entry = NULL;
	for (const struct ra_call *c = g->call; c && c->def->prelude; c = c->outer)
		entry = c;
	return entry;
}

struct diag_at ra_place_of(const struct ra_graph *g, struct diag_at at)
{
	const struct ra_call *entry = prelude_entry(g);
	return entry ? entry->at : at;
}

/* The hint, and the calls that led to the fault. */
static const char *hint_with_calls(struct ra_graph *g, const char *hint)
{
	struct str s = str_in(g->arena);
	const struct ra_call *entry = prelude_entry(g), *call = entry ? entry->outer : g->call;
	str_puts(&s, hint ? hint : "");
	if (entry)
		str_printf(&s, "%sinside '%s', a function of the prelude", s.n ? "; " : "",
			   ra_excerpt(g->arena, entry->def->name));
	if (call)
		str_printf(&s, "%s'%s' is called in line %d", s.n ? "; " : "",
			   ra_excerpt(g->arena, call->def->name), call->at.line);
	return s.n ? str_text(&s) : NULL;
}

bool ra_refuse(struct ra_graph *g, enum diag_id id, struct diag_at at, const char *hint, const char *format,
	       ...)
{
	struct str s = str_in(g->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return ra_report(g->report, id, ra_place_of(g, at), hint_with_calls(g, hint), "%s", str_text(&s));
}

/* --- local names --- */

struct locals {
	struct map names;
	ra_spans spans;
	VEC(ra_ref) values;
	struct ra_scope scope;
};

static void locals_init(struct locals *l, struct arena *a, const struct ra_scope *outer)
{
	*l = (struct locals){.names = map_in(a), .scope.outer = outer};
	l->scope.names = &l->names;
}

static void locals_add(struct ra_graph *g, struct locals *l, struct ra_span name, ra_ref value)
{
	if (ra_name_taken(g, &l->scope, name))
		return;
	map_add(&l->names, name.text, name.length, (int)l->values.n);
	vec_push(g->arena, &l->spans, name);
	vec_push(g->arena, &l->values, value);
	l->scope.spans = l->spans.at;
	l->scope.values = l->values.at;
	l->scope.n = l->values.n;
}

/* --- expressions --- */

static ra_ref expand_let(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct locals l;
	locals_init(&l, g->arena, scope);
	for (size_t i = 0; i < e->bindings.n; i++) {
		const struct ra_binding *b = &e->bindings.at[i];
		locals_add(g, &l, b->name, ra_expand_expr(g, &l.scope, b->value));
	}
	return ra_expand_expr(g, &l.scope, e->base);
}

static ra_ref build_binary(struct ra_graph *g, enum ra_op op, ra_ref a, ra_ref b, struct ra_span span)
{
	return op == RA_MATMUL ? ra_build_matmul(g, a, b, span) : ra_build_elementwise(g, op, a, b, span);
}

static ra_ref expand_chain(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_expr **operand = e->chain.operand.at;
	ra_ref value = ra_expand_expr(g, scope, operand[0]);
	for (size_t i = 1; i < e->chain.operand.n; i++) {
		struct ra_span span = e->span;
		if (i + 1 < e->chain.operand.n)
			span.length = (size_t)(operand[i]->span.text + operand[i]->span.length - span.text);
		value =
		    build_binary(g, e->chain.op.at[i - 1], value, ra_expand_expr(g, scope, operand[i]), span);
	}
	return value;
}

static ra_ref expand_zeros(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_shape shape;
	return ra_resolve_shape(g, scope, &e->dims, &shape) ? ra_build_zero(g, &shape, e->dtype, e->span) : none;
}

static ra_ref expand_dimension(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_shape shape;
	return ra_resolve_shape(g, scope, &e->dims, &shape) ? ra_build_extent(g, &shape.dim[0], e->span) : none;
}

static ra_ref expand_reshape(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_shape shape;
	ra_ref base = ra_expand_expr(g, scope, e->base);
	return ra_resolve_shape(g, scope, &e->dims, &shape) ? ra_build_reshape(g, base, &shape, e->span) : none;
}

static ra_ref expand_slice(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	ra_ref base = ra_expand_expr(g, scope, e->base);
	struct ra_dim begin = {0}, end;
	if (!base.i)
		return none;
	struct ra_shape shape = ra_at(g->model, base)->shape;
	if (!shape.rank)
		return ra_refuse(g, DIAG_MODEL_RANK, e->span.at, NULL,
				 "'%s': a number has no axis to take a slice of",
				 ra_excerpt(g->arena, e->span)),
		       none;
	int axis = ra_find_axis(g, base, e->axis, e->span);
	if (axis < 0 || (!e->begin && !e->end))
		return axis < 0 ? none : base;
	end = shape.dim[axis];
	if ((e->begin && !ra_resolve_dim(g, scope, e->begin, &begin)) ||
	    (e->end && !ra_resolve_dim(g, scope, e->end, &end)))
		return none;
	return ra_build_slice(g, base, axis, &begin, &end, e->span);
}

static ra_ref expand_slot(struct ra_graph *g, const struct ra_expr *e)
{
	const struct ra_name *field = ra_find_name(g, e->name.text, e->name.length);
	int slot = ra_find_child(g, e->slot, e->span);
	if (slot < 0)
		return none;
	if (!field || !ra_is_child_field(g, field))
		return ra_refuse(g, DIAG_MODEL_UNKNOWN, e->name.at, "only states are seen of a child",
				 "'%s' is no state", ra_excerpt(g->arena, e->name)),
		       none;
	return ra_child_field(g, slot, field, e->span);
}

/* Whether this body sees children, or parents, as the sum requires. */
static bool check_direction(struct ra_graph *g, const struct ra_expr *e)
{
	bool parents = e->each.parents;
	if (g->region == RA_IN_OUTPUTS)
		return ra_refuse(g, DIAG_MODEL_PLACE, e->span.at,
				 "outputs use the states of their own node, those at root also 'for n in nodes'",
				 "outputs cannot range over %s", parents ? "parents" : "children");
	return parents == ra_goes_down(g) ||
	       ra_refuse(g, DIAG_MODEL_DIRECTION, e->span.at,
			 parents ? "'traversal down' begins one that sees those of parents"
				 : "'traversal up' begins one that sees those of children",
			 "a traversal %s does not see the states of %s", parents ? "up" : "down",
			 parents ? "parents" : "children");
}

/* Whether a sum over children, parents or nodes is legal here. */
static bool check_each(struct ra_graph *g, const struct ra_expr *e)
{
	bool parents = e->each.parents;
	if (ra_is_graph(g))
		return ra_refuse_neighbours(g, e->span);
	if (g->each || g->nest)
		return ra_refuse(
		    g, DIAG_MODEL_NESTED, e->span.at, "compute the inner one first and give it a name",
		    "'%s' stands inside %s", ra_excerpt(g->arena, e->span),
		    g->each ? "another range over children or nodes" : "index notation");
	if (e->each.members)
		return g->region != RA_IN_OUTPUTS || ra_note_range(g);
	if (!check_direction(g, e))
		return false;
	if (g->region == RA_IN_LEAF && (!g->childless || e->each.maximum))
		return ra_refuse(g, DIAG_MODEL_LEAF, e->span.at,
				 parents ? "write the bodies 'root:' and 'below:' apart"
					 : "write the bodies 'leaf:' and 'inner:' apart",
				 "%s to take a %s over", parents ? "a root has no parents" : "a leaf has no children",
				 e->each.maximum ? "maximum" : "sum");
	return true;
}

static ra_ref expand_each(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	if (!check_each(g, e) || ra_name_taken(g, scope, e->name))
		return none;
	struct ra_scope inner = {.outer = scope, .each = e->name};
	g->each = ++g->sums;
	g->members = e->each.members;
	ra_ref value = ra_expand_expr(g, &inner, e->base);
	g->each = 0;
	g->members = false;
	if (value.i && g->region == RA_IN_LEAF && !e->each.members) {
		struct ra_node n = *ra_at(g->model, value);
		return ra_build_zero(g, &n.shape, n.dtype, e->span);
	}
	static const enum ra_op ops[2][2] = {{RA_CHILD_SUM, RA_CHILD_MAX}, {RA_PARENT_SUM, RA_PARENT_MAX}};
	return ra_build_each(g, ops[e->each.parents][e->each.maximum], value, e->each.members, e->span);
}

static ra_ref expand_kind(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	switch (e->kind) {
	case RA_E_NUMBER:
		return ra_build_constant(g, e->number, e->span);
	case RA_E_NAME:
		return ra_resolve_name(g, scope, e);
	case RA_E_CHAIN:
		return expand_chain(g, scope, e);
	case RA_E_NEGATE:
		return ra_build_map(g, RA_NEG, ra_expand_expr(g, scope, e->base), e->span);
	case RA_E_CALL:
		return ra_expand_call(g, scope, e);
	case RA_E_ZEROS:
		return expand_zeros(g, scope, e);
	case RA_E_DIMENSION:
		return expand_dimension(g, scope, e);
	case RA_E_RESHAPE:
		return expand_reshape(g, scope, e);
	case RA_E_SLICE:
		return expand_slice(g, scope, e);
	case RA_E_LOOKUP:
		return ra_resolve_lookup(g, scope, e);
	case RA_E_SLOT:
		return expand_slot(g, e);
	case RA_E_EACH:
		return expand_each(g, scope, e);
	case RA_E_ELEMENT:
		return ra_expand_element(g, scope, e);
	case RA_E_OVER:
		return ra_expand_over(g, scope, e);
	case RA_E_NEST:
		return ra_expand_nest(g, scope, e);
	case RA_E_LET:
		return expand_let(g, scope, e);
	}
	return none;
}

/* Limits the stack, and the time that functions calling functions can take. */
static bool check_limits(struct ra_graph *g, const struct ra_expr *e)
{
	if (g->stopped)
		return false;
	if (g->depth > RA_EXPANSION_LIMIT) {
		g->stopped = true;
		return ra_refuse(g, DIAG_MODEL_DEEP, e->span.at,
				 "give parts of the expression names of their own",
				 "expressions and calls are nested more than %d deep", RA_EXPANSION_LIMIT);
	}
	if (++g->steps > RA_STEP_LIMIT) {
		g->stopped = true;
		return ra_refuse(g, DIAG_MODEL_LARGE, e->span.at,
				 "functions are expanded at every call: look for calls in calls in calls",
				 "the model is too large once its functions are expanded");
	}
	return true;
}

ra_ref ra_expand_expr(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	if (!e || !check_limits(g, e))
		return none;
	g->depth++;
	ra_ref value = expand_kind(g, scope, e);
	g->depth--;
	return value;
}

/* --- bodies --- */

static struct ra_statement statement_at(struct ra_graph *g, struct diag_at at)
{
	if (!at.source)
		return (struct ra_statement){.line = at.line};
	const char *text = at.source + strspn(at.source, " \t");
	size_t length = strcspn(text, "\r\n");
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	return (struct ra_statement){arena_text(g->arena, text, length), at.line};
}

static void assign_state(struct ra_graph *g, const struct ra_name *state, const struct ra_binding *b,
			 ra_ref value)
{
	int i = state->index;
	if (g->model->states.at[i].traversal != g->traversal) {
		ra_refuse(g, DIAG_MODEL_PLACE, b->name.at, "a traversal assigns the states that are declared in it",
			  "the state '%s' belongs to another traversal", ra_excerpt(g->arena, b->name));
		return;
	}
	if (g->assigned[i]) {
		ra_refuse(g, DIAG_MODEL_DUPLICATE, b->name.at, "a body assigns each state once",
			  "the state '%s' is assigned twice", ra_excerpt(g->arena, b->name));
		return;
	}
	g->assigned[i] = true;
	g->model->states.at[i].assigned[g->body] = statement_at(g, b->name.at);
	g->value[i] = state->broken || !b->value ? none : ra_build_as_state(g, value, i, b->value->span);
}

/* Only the locals of a text have names that their author chose. */
static void note_local(struct ra_graph *g, const struct ra_binding *b, ra_ref value)
{
	if (!value.i || g->syntax->built)
		return;
	vec_push(g->arena, &g->model->locals,
		 (struct ra_local){.name = ra_span_string(g->arena, b->name),
				   .traversal = g->traversal,
				   .body = g->body,
				   .dtype = ra_at(g->model, value)->dtype,
				   .shape = ra_at(g->model, value)->shape,
				   .at = b->name.at,
				   .assigned = statement_at(g, b->name.at),
				   .value = value});
}

static void check_states(struct ra_graph *g, const struct ra_body *body)
{
	struct str missing = str_in(g->arena);
	for (size_t i = 0; i < g->model->states.n; i++)
		if (g->model->states.at[i].traversal == g->traversal && !g->assigned[i] &&
		    missing.n < RA_NAME_LIMIT)
			str_printf(&missing, "%s'%s'", missing.n ? ", " : "", g->model->states.at[i].name);
	if (missing.n && !g->stopped)
		ra_report(g->report, DIAG_MODEL_STATE, body->header.at, "every body assigns every state",
			  "'%s:' does not assign %s", ra_excerpt(g->arena, body->header), str_text(&missing));
}

void ra_enter_body(struct ra_graph *g, int which)
{
	const struct ra_named_case *c = which < RA_CASES ? NULL : &g->model->cases.at[which - RA_CASES];
	bool leaf = c ? c->base == RA_LEAF : which == RA_LEAF;
	g->body = which;
	g->region = leaf ? RA_IN_LEAF : RA_IN_INNER;
	g->children = c && c->children >= 0 ? c->children : g->model->structure.children;
}

static void expand_body(struct ra_graph *g, const struct ra_body *body, int which)
{
	struct locals l;
	locals_init(&l, g->arena, NULL);
	ra_enter_body(g, which);
	g->childless = body->word == RA_WORD_NODE;
	g->value = ARENA_ARRAY(g->arena, ra_ref, g->model->states.n);
	g->assigned = ARENA_ARRAY(g->arena, bool, g->model->states.n);
	for (size_t i = 0; i < body->statements.n; i++) {
		const struct ra_binding *b = &body->statements.at[i];
		ra_ref value = ra_expand_expr(g, &l.scope, b->value);
		const struct ra_name *n = ra_find_name(g, b->name.text, b->name.length);
		if (n && n->kind == RA_N_STATE) {
			assign_state(g, n, b, value);
			continue;
		}
		locals_add(g, &l, b->name, value);
		note_local(g, b, value);
	}
	check_states(g, body);
	for (size_t i = 0; i < g->model->states.n; i++)
		if (g->model->states.at[i].traversal == g->traversal)
			g->model->states.at[i].value[which] = g->value[i];
}

static void expand_case(struct ra_graph *g, int which)
{
	bool plain = which < RA_CASES;
	enum ra_word word = plain ? ra_case_word(ra_goes_down(g), which) : ra_word_of_case(which - RA_CASES);
	const struct ra_body *b = ra_body_for(g, g->traversal, word);
	if (b)
		expand_body(g, b, which);
}

void ra_expand_bodies(struct ra_graph *g)
{
	if (ra_is_graph(g) && !ra_scans(g->syntax))
		return;
	for (g->traversal = 0; (size_t)g->traversal < g->model->traversals.n; g->traversal++) {
		bool once = ra_is_graph(g) && !ra_in_scan(g);
		for (int which = 0; which < (once ? 1 : ra_bodies(g->model)); which++)
			expand_case(g, which);
	}
	g->traversal = 0;
}

/* --- outputs --- */

static void check_labels(struct ra_graph *g, const struct ra_output_text *o, ra_ref value)
{
	if (!o->labels.n || !value.i)
		return;
	const struct ra_shape *s = &ra_at(g->model, value)->shape;
	if (ra_at(g->model, value)->dtype != DTYPE_F32)
		ra_report(g->report, DIAG_MODEL_LABELS, o->labels_at, "labels are chosen by the largest of f32 values",
			  "the output '%s' is %s and cannot have labels", ra_excerpt(g->arena, o->name),
			  dtype_traits_of(ra_at(g->model, value)->dtype)->spelling);
	else if (s->rank != 1)
		ra_report(g->report, DIAG_MODEL_LABELS, o->labels_at, "labels name the elements of a vector",
			  "the output '%s' is %s and cannot have labels", ra_excerpt(g->arena, o->name),
			  ra_shape_text(g->arena, g->model, s));
	else if (!s->dim[0].terms && s->dim[0].constant != (int64_t)o->labels.n)
		ra_report(g->report, DIAG_MODEL_LABELS, o->labels_at, "write one label for each element",
			  "the output '%s' is %s and has %zu labels", ra_excerpt(g->arena, o->name),
			  ra_shape_text(g->arena, g->model, s), o->labels.n);
}

/* The body of a model without a structure: its names are nodes of the outputs, which share them. */
static void expand_shared(struct ra_graph *g)
{
	const struct ra_body *body =
	    ra_is_graph(g) && !ra_scans(g->syntax) ? ra_body_for(g, 0, RA_WORD_NODE) : NULL;
	struct locals *l = ARENA_NEW(g->arena, struct locals);
	locals_init(l, g->arena, NULL);
	for (size_t i = 0; body && i < body->statements.n; i++) {
		const struct ra_binding *b = &body->statements.at[i];
		locals_add(g, l, b->name, ra_expand_expr(g, &l->scope, b->value));
	}
	g->shared = &l->scope;
}

void ra_expand_outputs(struct ra_graph *g)
{
	g->region = RA_IN_OUTPUTS;
	g->body = 0;
	expand_shared(g);
	for (size_t i = 0; i < g->syntax->outputs.n; i++) {
		const struct ra_output_text *o = &g->syntax->outputs.at[i];
		g->at_root = o->at_root;
		ra_ref value = ra_expand_expr(g, g->shared, o->value);
		check_labels(g, o, value);
		struct ra_output output = {.name = ra_span_string(g->arena, o->name),
					   .value = value,
					   .at_root = o->at_root,
					   .labels = (int)o->labels.n,
					   .label = o->labels.at,
					   .at = o->name.at,
					   .computed = statement_at(g, o->name.at)};
		vec_push(g->arena, &g->model->outputs, output);
	}
	g->at_root = true;
	ra_expand_expr(g, g->shared, g->syntax->unused);
}
