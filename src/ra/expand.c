/* Expressions, bodies and outputs to nodes. */
#include "ra/internal.h"

static const ra_ref none = {0};

/* --- places: what happens inside a function is told to who called it --- */

/* The call by which the author's text entered the prelude, or NULL. */
static const struct ra_call *prelude_entry(const struct ra_graph *g)
{
	const struct ra_call *entry = NULL;
	for (const struct ra_call *c = g->call; c && c->def->prelude; c = c->outer)
		entry = c;
	return entry;
}

struct diag_at ra_place(const struct ra_graph *g, struct diag_at at)
{
	const struct ra_call *entry = prelude_entry(g);
	return entry ? entry->at : at;
}

/* The hint, and by which calls we got here. */
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
	return ra_report(g->report, id, ra_place(g, at), hint_with_calls(g, hint), "%s", str_text(&s));
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
		locals_add(g, &l, b->name, ra_expand(g, &l.scope, b->value));
	}
	return ra_expand(g, &l.scope, e->base);
}

static ra_ref binary(struct ra_graph *g, char op, ra_ref a, ra_ref b, struct ra_span span)
{
	switch (op) {
	case '@':
		return ra_build_matmul(g, a, b, span);
	case '+':
		return ra_build_elementwise(g, RA_ADD, a, b, span);
	case '-':
		return ra_build_elementwise(g, RA_SUB, a, b, span);
	case '*':
		return ra_build_elementwise(g, RA_MUL, a, b, span);
	default:
		return ra_build_elementwise(g, RA_DIV, a, b, span);
	}
}

static ra_ref expand_chain(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_expr **operand = e->chain.operand.at;
	ra_ref value = ra_expand(g, scope, operand[0]);
	for (size_t i = 1; i < e->chain.operand.n; i++) {
		struct ra_span span = e->span;
		if (i + 1 < e->chain.operand.n)
			span.length = (size_t)(operand[i]->span.text + operand[i]->span.length - span.text);
		value = binary(g, e->chain.op.at[i - 1], value, ra_expand(g, scope, operand[i]), span);
	}
	return value;
}

static ra_ref expand_zeros(struct ra_graph *g, const struct ra_expr *e)
{
	struct ra_shape shape;
	return ra_resolve_shape(g, &e->dims, &shape) ? ra_build_zero(g, &shape, e->span) : none;
}

static ra_ref expand_dimension(struct ra_graph *g, const struct ra_expr *e)
{
	struct ra_shape shape;
	return ra_resolve_shape(g, &e->dims, &shape) ? ra_build_extent(g, &shape.dim[0], e->span) : none;
}

static ra_ref expand_slice(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	ra_ref base = ra_expand(g, scope, e->base);
	struct ra_dim begin = {0}, end;
	if (!base.i)
		return none;
	struct ra_shape shape = ra_at(g->model, base)->shape;
	if (!shape.rank)
		return ra_refuse(g, DIAG_MODEL_RANK, e->span.at, NULL,
				 "'%s': a number has no axis to take a slice of",
				 ra_excerpt(g->arena, e->span)),
		       none;
	end = shape.dim[shape.rank - 1];
	if ((e->begin && !ra_resolve_dim(g, e->begin, &begin)) ||
	    (e->end && !ra_resolve_dim(g, e->end, &end)))
		return none;
	return ra_build_slice(g, base, &begin, &end, e->span);
}

static ra_ref expand_lookup(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	const struct ra_name *index = ra_find_name(g, e->name.text, e->name.length);
	ra_ref base = ra_expand(g, scope, e->base);
	if (index && index->broken)
		return none;
	if (!index || index->kind != RA_N_INPUT || !g->model->inputs.at[index->index].token)
		return ra_refuse(g, DIAG_MODEL_LOOKUP, e->name.at,
				 "declare it with 'input word : token'; a slice is written x[a:b]",
				 "'%s' is not an input that is a token", ra_excerpt(g->arena, e->name)),
		       none;
	if (g->region == RA_IN_OUTPUTS)
		return ra_refuse(g, DIAG_MODEL_PLACE, e->name.at, "keep what the output needs in a state",
				 "'%s' is an input, which outputs cannot use", ra_excerpt(g->arena, e->name)),
		       none;
	if (!base.i)
		return none;
	const struct ra_node *n = ra_at(g->model, base);
	if (n->op != RA_PARAM || !n->shape.rank)
		return ra_refuse(g, DIAG_MODEL_LOOKUP, e->span.at,
				 "only a parameter with rows can be looked up", "'%s' has no rows to look up",
				 ra_excerpt(g->arena, e->base->span)),
		       none;
	return ra_build_lookup(g, base, index->index, e->span);
}

static ra_ref expand_slot(struct ra_graph *g, const struct ra_expr *e)
{
	int children = g->model->structure.children;
	const struct ra_name *state = ra_find_name(g, e->name.text, e->name.length);
	if (children < 0)
		return ra_refuse(
			   g, DIAG_MODEL_CHILD, e->span.at, "write sum(... for k in children)",
			   "the children of this structure have no numbers: there is any number of them"),
		       none;
	if (e->slot < 0 || e->slot >= children)
		return ra_refuse(g, DIAG_MODEL_CHILD, e->span.at, "children are counted from 0",
				 "there is no child %lld: a node has %d", (long long)e->slot, children),
		       none;
	if (!state || state->kind != RA_N_STATE)
		return ra_refuse(g, DIAG_MODEL_UNKNOWN, e->name.at, "only states are seen of a child",
				 "'%s' is no state", ra_excerpt(g->arena, e->name)),
		       none;
	return ra_child_state(g, (int)e->slot, state, e->span);
}

/* Whether children can be summed over here. */
static bool check_each(struct ra_graph *g, const struct ra_expr *e)
{
	if (g->region == RA_IN_OUTPUTS)
		return ra_refuse(g, DIAG_MODEL_PLACE, e->span.at, "outputs use the states of their own node",
				 "outputs cannot range over children");
	if (g->each)
		return ra_refuse(
		    g, DIAG_MODEL_NESTED, e->span.at, "compute the inner one first and give it a name",
		    "'%s' stands inside another range over children", ra_excerpt(g->arena, e->span));
	if (g->region == RA_IN_LEAF && (!g->childless || e->maximum))
		return ra_refuse(g, DIAG_MODEL_LEAF, e->span.at,
				 "write the bodies 'leaf:' and 'inner:' apart",
				 "a leaf has no children to take a %s over", e->maximum ? "maximum" : "sum");
	return true;
}

static ra_ref expand_each(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	if (!check_each(g, e) || ra_name_taken(g, scope, e->name))
		return none;
	struct ra_scope inner = {.outer = scope, .each = e->name};
	g->each = ++g->sums;
	ra_ref value = ra_expand(g, &inner, e->base);
	g->each = 0;
	if (value.i && g->region == RA_IN_LEAF) {
		struct ra_shape shape = ra_at(g->model, value)->shape;
		return ra_build_zero(g, &shape, e->span);
	}
	return ra_build_each(g, e->maximum ? RA_CHILD_MAX : RA_CHILD_SUM, value, e->span);
}

static ra_ref expand_kind(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	switch (e->kind) {
	case RA_E_NUMBER:
		return ra_build_constant(g, e->number, e->span);
	case RA_E_NAME:
		return ra_resolve(g, scope, e);
	case RA_E_CHAIN:
		return expand_chain(g, scope, e);
	case RA_E_NEGATE:
		return ra_build_map(g, RA_NEG, ra_expand(g, scope, e->base), e->span);
	case RA_E_CALL:
		return ra_expand_call(g, scope, e);
	case RA_E_ZEROS:
		return expand_zeros(g, e);
	case RA_E_DIMENSION:
		return expand_dimension(g, e);
	case RA_E_SLICE:
		return expand_slice(g, scope, e);
	case RA_E_LOOKUP:
		return expand_lookup(g, scope, e);
	case RA_E_SLOT:
		return expand_slot(g, e);
	case RA_E_EACH:
		return expand_each(g, scope, e);
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

ra_ref ra_expand(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
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
	if (g->assigned[i]) {
		ra_refuse(g, DIAG_MODEL_DUPLICATE, b->name.at, "a body assigns each state once",
			  "the state '%s' is assigned twice", ra_excerpt(g->arena, b->name));
		return;
	}
	g->assigned[i] = true;
	g->model->states.at[i].assigned[g->region == RA_IN_LEAF ? RA_LEAF : RA_INNER] =
	    statement_at(g, b->name.at);
	g->value[i] = state->broken || !b->value ? none : ra_build_as_state(g, value, i, b->value->span);
}

static void check_states(struct ra_graph *g, const struct ra_body *body)
{
	struct str missing = str_in(g->arena);
	for (size_t i = 0; i < g->model->states.n; i++)
		if (!g->assigned[i] && missing.n < RA_NAME_LIMIT)
			str_printf(&missing, "%s'%s'", missing.n ? ", " : "", g->model->states.at[i].name);
	if (missing.n && !g->stopped)
		ra_report(g->report, DIAG_MODEL_STATE, body->header.at, "every body assigns every state",
			  "'%s:' does not assign %s", ra_excerpt(g->arena, body->header), str_text(&missing));
}

static void expand_body(struct ra_graph *g, const struct ra_body *body, enum ra_case which)
{
	struct locals l;
	locals_init(&l, g->arena, NULL);
	g->region = which == RA_LEAF ? RA_IN_LEAF : RA_IN_INNER;
	g->childless = body->word == RA_WORD_NODE;
	g->value = ARENA_ARRAY(g->arena, ra_ref, g->model->states.n);
	g->assigned = ARENA_ARRAY(g->arena, bool, g->model->states.n);
	for (size_t i = 0; i < body->statements.n; i++) {
		const struct ra_binding *b = &body->statements.at[i];
		ra_ref value = ra_expand(g, &l.scope, b->value);
		const struct ra_name *n = ra_find_name(g, b->name.text, b->name.length);
		if (n && n->kind == RA_N_STATE)
			assign_state(g, n, b, value);
		else
			locals_add(g, &l, b->name, value);
	}
	check_states(g, body);
	for (size_t i = 0; i < g->model->states.n; i++)
		g->model->states.at[i].value[which] = g->value[i];
}

void ra_expand_bodies(struct ra_graph *g)
{
	static const enum ra_word words[RA_CASES] = {[RA_LEAF] = RA_WORD_LEAF, [RA_INNER] = RA_WORD_INNER};
	for (int which = 0; which < RA_CASES; which++)
		for (size_t i = 0; i < g->syntax->bodies.n; i++) {
			const struct ra_body *b = &g->syntax->bodies.at[i];
			if (b->word == words[which] || b->word == RA_WORD_NODE) {
				expand_body(g, b, which);
				break;
			}
		}
}

/* --- outputs --- */

static void check_labels(struct ra_graph *g, const struct ra_output_text *o, ra_ref value)
{
	if (!o->labels.n || !value.i)
		return;
	const struct ra_shape *s = &ra_at(g->model, value)->shape;
	if (s->rank != 1)
		ra_report(g->report, DIAG_MODEL_LABELS, o->labels_at, "labels name the elements of a vector",
			  "the output '%s' is %s and cannot have labels", ra_excerpt(g->arena, o->name),
			  ra_shape_text(g->arena, g->model, s));
	else if (!s->dim[0].terms && s->dim[0].constant != (int64_t)o->labels.n)
		ra_report(g->report, DIAG_MODEL_LABELS, o->labels_at, "write one label for each element",
			  "the output '%s' is %s and has %zu labels", ra_excerpt(g->arena, o->name),
			  ra_shape_text(g->arena, g->model, s), o->labels.n);
}

void ra_expand_outputs(struct ra_graph *g)
{
	g->region = RA_IN_OUTPUTS;
	for (size_t i = 0; i < g->syntax->outputs.n; i++) {
		const struct ra_output_text *o = &g->syntax->outputs.at[i];
		ra_ref value = ra_expand(g, NULL, o->value);
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
	ra_expand(g, NULL, g->syntax->unused);
}
