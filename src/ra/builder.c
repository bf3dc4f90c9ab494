/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From calls to syntax.  A value of a body is a statement `%7 = ...` of that body, and used by that name,
 * which no text can spell; parameters, inputs and numbers are written where they are used.  A value that
 * depends on the child of a sum is no statement: every sum that needs it contains it, as in a text.  Outputs
 * share nothing but each other: each contains the statements that it needs. */
#include "ra/values.h"

#include <math.h>

static const uint32_t none = 0;

/* --- the model, its structure and declarations --- */

static bool read_heading(struct ra_builder *b, const char *name, const char *structure)
{
	struct ra_parser p = ra_arg_parser(b, structure);
	return ra_arg_name(b, name, "the name of the model", &b->syntax.model) && ra_parse_structure(&p) &&
	       ra_arg_end(&p);
}

struct ra_builder *ra_builder_new(struct arena *a, struct diags *diags, unsigned tag, const char *name,
				  const char *structure)
{
	struct ra_builder *b = ARENA_NEW(a, struct ra_builder);
	*b = (struct ra_builder){
	    .arena = a, .report = {.arena = a, .diags = diags}, .tag = tag, .syntax = {.built = true}, .indexed = map_in(a)};
	vec_push(a, &b->values, NULL);
	return read_heading(b, name, structure) ? b : NULL;
}

/* A name that could not be read may be used elsewhere, so the syntax is incomplete. */
static bool begin_declaration(struct ra_builder *b, const char *name, const char *what, const char *shape,
			      ra_clause *clause, struct ra_declaration *d)
{
	b->calls++;
	*d = (struct ra_declaration){0};
	if (ra_arg_name(b, name, what, &d->name) && ra_arg_shape(b, shape, d, clause))
		return true;
	b->syntax.incomplete = true;
	return false;
}

static uint32_t name_value(struct ra_builder *b, const struct ra_declaration *d)
{
	return ra_add_plain(b, ra_new_expr(b, RA_E_NAME, d->name));
}

uint32_t ra_builder_param(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	if (!begin_declaration(b, name, "the name of a parameter", shape, ra_parse_products, &d))
		return none;
	if (b->syntax.params.n == RA_PARAM_LIMIT)
		return ra_report(&b->report, DIAG_MODEL_LARGE, ra_here(b), NULL,
				 "a model has at most %d parameters", RA_PARAM_LIMIT);
	vec_push(b->arena, &b->syntax.params, d);
	return name_value(b, &d);
}

static bool add_carried(struct ra_builder *b, const char *name, const char *shape, bool token, bool edge,
			struct ra_declaration *d)
{
	if (!begin_declaration(b, name, edge ? "the name of what edges carry" : "the name of an input", shape,
			       ra_parse_within, d))
		return false;
	d->token = token;
	d->edge = edge;
	vec_push(b->arena, &b->syntax.inputs, *d);
	return true;
}

uint32_t ra_builder_input(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	return add_carried(b, name, shape, false, false, &d) ? name_value(b, &d) : none;
}

uint32_t ra_builder_token(struct ra_builder *b, const char *name)
{
	struct ra_declaration d;
	return add_carried(b, name, NULL, true, false, &d) ? name_value(b, &d) : none;
}

void ra_builder_edge(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	add_carried(b, name, shape, false, true, &d);
}

void ra_builder_edge_token(struct ra_builder *b, const char *name)
{
	struct ra_declaration d;
	add_carried(b, name, NULL, true, true, &d);
}

void ra_builder_state(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	if (!begin_declaration(b, name, "the name of a state", shape, ra_parse_no_clause, &d))
		return;
	d.traversal = (int)b->syntax.traversals.n;
	vec_push(b->arena, &b->syntax.states, d);
}

void ra_builder_traversal(struct ra_builder *b, const char *direction)
{
	b->calls++;
	struct ra_parser p = ra_arg_parser(b, direction);
	size_t before = b->syntax.traversals.n;
	if (ra_parse_traversal(&p) && ra_arg_end(&p)) {
		b->body = RA_WORD_NONE;
		return;
	}
	b->syntax.traversals.n = before;
	b->syntax.incomplete = true;
}

/* A case with a faulty condition is declared nevertheless, so that its body is no further fault. */
int ra_builder_case(struct ra_builder *b, const char *name, enum ra_builder_body base, const char *conditions)
{
	struct ra_case_text c = {.base = base == RA_BODY_LEAF ? RA_WORD_LEAF : RA_WORD_INNER};
	b->calls++;
	struct ra_parser p = ra_arg_parser(b, conditions);
	bool named = ra_arg_name(b, name, "the name of a case", &c.name);
	if (!named || !ra_parse_conditions(&p, &c) || !ra_arg_end(&p))
		b->syntax.incomplete = true;
	if (!named)
		return -1;
	vec_push(b->arena, &b->syntax.cases, c);
	return RA_BODY_CASE + (int)b->syntax.cases.n - 1;
}

static enum ra_word word_of_body(const struct ra_builder *b, int body)
{
	static const enum ra_word words[] = {[RA_BODY_LEAF] = RA_WORD_LEAF,
					     [RA_BODY_INNER] = RA_WORD_INNER,
					     [RA_BODY_NODE] = RA_WORD_NODE,
					     [RA_BODY_OUTPUT] = RA_WORD_OUTPUT,
					     [RA_BODY_ROOT] = RA_WORD_ROOT,
					     [RA_BODY_BELOW] = RA_WORD_BELOW};
	if (body < RA_BODY_CASE)
		return words[body];
	return (size_t)(body - RA_BODY_CASE) < b->syntax.cases.n ? ra_word_of_case(body - RA_BODY_CASE)
								 : RA_WORD_NONE;
}

void ra_builder_body(struct ra_builder *b, int body)
{
	enum ra_word word = word_of_body(b, body);
	b->calls++;
	if (!word) {
		ra_report(&b->report, DIAG_BAD_ARGUMENT, ra_here(b),
			  "pass what esp_builder_case has returned", "there is no case of body %d", body);
		return;
	}
	b->body = word;
	if (b->body == RA_WORD_OUTPUT || ra_current_body(b))
		return;
	struct ra_body new = {.header = ra_here_span(b, ra_body_text(b, b->body)), .word = b->body};
	new.traversal = (int)b->syntax.traversals.n;
	vec_push(b->arena, &b->syntax.bodies, new);
}

/* --- numbers and calls --- */

/* As in a text a negative number is the negation of a positive one. */
uint32_t ra_builder_number(struct ra_builder *b, double number)
{
	b->calls++;
	if (!isfinite((float)number))
		return ra_report(&b->report, DIAG_MODEL_NUMBER, ra_here(b), "numbers are at most 3.4e38",
				 "%g cannot be a number of a model", number);
	struct str s = str_in(b->arena);
	str_double(&s, fabs(number));
	struct ra_expr *e = ra_new_expr(b, RA_E_NUMBER, ra_clipped_span(b, &s));
	e->number = fabs(number);
	if (signbit(number)) {
		struct ra_expr *negative = ra_new_expr(b, RA_E_NEGATE, ra_show_text(b, "-%s", str_text(&s)));
		negative->base = e;
		e = negative;
	}
	return ra_add_plain(b, e);
}

static enum ra_op operator_of(const char *function)
{
	return ra_find_operator((struct ra_span){.text = function, .length = strlen(function)});
}

static struct ra_expr *operation_expr(struct ra_builder *b, enum ra_op op, struct ra_value *const *arg,
				      size_t n)
{
	struct str s = str_in(b->arena);
	for (size_t i = 0; i < n; i++) {
		if (i || n == 1)
			str_printf(&s, i ? " %s " : "%s", ra_op_spelling(op));
		ra_show_value(&s, arg[i], true);
	}
	struct ra_expr *e = ra_new_expr(b, n == 1 ? RA_E_NEGATE : RA_E_CHAIN, ra_clipped_span(b, &s));
	if (n == 1)
		return e->base = ra_written_value(b, arg[0]), e;
	vec_push(b->arena, &e->chain.operand, ra_written_value(b, arg[0]));
	vec_push(b->arena, &e->chain.operand, ra_written_value(b, arg[1]));
	vec_push(b->arena, &e->chain.op, op);
	return e;
}

static struct ra_expr *function_call(struct ra_builder *b, struct ra_span name, const int *axis,
				     struct ra_value *const *arg, size_t n)
{
	struct str s = str_in(b->arena);
	str_printf(&s, "%.*s(", (int)name.length, name.text);
	for (size_t i = 0; i < n && s.n < RA_SHOWN; i++) {
		str_puts(&s, i ? ", " : "");
		ra_show_value(&s, arg[i], false);
	}
	if (axis)
		str_printf(&s, "%saxis=%d", n ? ", " : "", *axis);
	str_puts(&s, ")");
	struct ra_expr *e = ra_new_expr(b, RA_E_CALL, ra_clipped_span(b, &s));
	e->name = name;
	e->along = axis;
	e->axis = axis ? *axis : 0;
	for (size_t i = 0; i < n; i++)
		vec_push(b->arena, &e->args, ra_written_value(b, arg[i]));
	return e;
}

/* cast(x, i32), called by the name of the type. */
static uint32_t call_cast(struct ra_builder *b, const char *type, struct ra_value *const *arg)
{
	struct str s = str_in(b->arena);
	str_puts(&s, "cast(");
	ra_show_value(&s, arg[0], false);
	str_printf(&s, ", %s)", type);
	struct ra_expr *e = ra_new_expr(b, RA_E_CALL, ra_clipped_span(b, &s));
	e->name = ra_here_span(b, "cast");
	vec_push(b->arena, &e->args, ra_written_value(b, arg[0]));
	vec_push(b->arena, &e->args, ra_new_expr(b, RA_E_NAME, ra_show_text(b, "%s", type)));
	return ra_add_value(b, e, arg, 1);
}

/* The values of all arguments, or NULL after a fault of one. */
static struct ra_value **use_all(struct ra_builder *b, const uint32_t *id, size_t n)
{
	struct ra_value **arg = ARENA_ARRAY(b->arena, struct ra_value *, n + 1);
	bool good = true;
	for (size_t i = 0; i < n; i++)
		good &= (arg[i] = ra_use_value(b, id[i])) != NULL;
	return good ? arg : NULL;
}

static uint32_t call_operator(struct ra_builder *b, enum ra_op op, struct ra_value *const *arg, size_t n)
{
	if (n != 2 && !(n == 1 && op == RA_SUB))
		return ra_report(&b->report, DIAG_MODEL_ARGUMENTS, ra_here(b), NULL, "'%s' takes %s, not %zu",
				 ra_op_spelling(op), op == RA_SUB ? "1 or 2 arguments" : "2 arguments", n);
	uint32_t id = ra_add_value(b, operation_expr(b, op, arg, n), arg, n);
	if (id)
		b->values.at[id & RA_VALUE_INDEX]->infix = true;
	return id;
}

/* `axis` may be NULL. */
static uint32_t add_call(struct ra_builder *b, const char *function, const int *axis,
			 const uint32_t *arguments, size_t n)
{
	struct ra_span name;
	struct ra_value **arg;
	b->calls++;
	if (!ra_has_body(b) || !(arg = use_all(b, arguments, n)))
		return none;
	if (operator_of(function) && axis)
		return ra_report(&b->report, DIAG_MODEL_ARGUMENTS, ra_here(b), "call it by esp_builder_call",
				 "'%s' works along no axis", function);
	if (operator_of(function))
		return call_operator(b, operator_of(function), arg, n);
	enum dtype dtype;
	if (dtype_read(function, &dtype) && n == 1 && !axis)
		return call_cast(b, dtype_traits_of(dtype)->spelling, arg);
	if (!ra_arg_name(b, function, "the name of a function, or an operator", &name))
		return none;
	if (ra_span_is(name, "zeros") || ra_span_is(name, "dimension") || ra_span_is(name, "reshape"))
		return ra_report(&b->report, DIAG_MODEL_FUNCTION, ra_here(b),
				 str_format(b->arena, "call esp_builder_%s", function),
				 "'%s' takes dimensions, no values for them", function);
	return ra_add_value(b, function_call(b, name, axis, arg, n), arg, n);
}

uint32_t ra_builder_call(struct ra_builder *b, const char *function, const uint32_t *arguments, size_t n)
{
	return add_call(b, function, NULL, arguments, n);
}

uint32_t ra_builder_call_along(struct ra_builder *b, const char *function, int axis, const uint32_t *arguments,
			       size_t n)
{
	return add_call(b, function, &axis, arguments, n);
}

uint32_t ra_builder_lookup(struct ra_builder *b, uint32_t param, uint32_t token)
{
	b->calls++;
	struct ra_value **arg = ra_has_body(b) ? use_all(b, (uint32_t[]){param, token}, 2) : NULL;
	if (!arg)
		return none;
	const struct ra_expr *index = arg[1]->use;
	bool indexes = index->kind == RA_E_NAME || index->kind == RA_E_SLOT || index->kind == RA_E_NUMBER;
	if (arg[1]->definition || !indexes)
		return ra_report(
		    &b->report, DIAG_MODEL_LOOKUP, ra_here(b),
		    "declare it with esp_builder_token, or before this with esp_builder_edge_token",
		    "'%s' is not an input that is a token", ra_excerpt(b->arena, index->span));
	struct str s = str_in(b->arena);
	ra_show_value(&s, arg[0], true);
	str_puts(&s, "[");
	ra_show_value(&s, arg[1], false);
	str_puts(&s, "]");
	struct ra_expr *e = ra_new_expr(b, RA_E_LOOKUP, ra_clipped_span(b, &s));
	e->base = ra_written_value(b, arg[0]);
	e->index = ra_written_value(b, arg[1]);
	return ra_add_value(b, e, arg, 2);
}

/* Parses `(a, b)[i, j] = value` as a function of a and b, whose name is the text. */
static struct ra_def *parse_indexed(struct ra_builder *b, const char *text)
{
	struct ra_parser p = ra_arg_parser(b, text);
	struct ra_def *def = ARENA_NEW(b->arena, struct ra_def);
	def->param = map_in(b->arena);
	def->name = ra_here_span(b, arena_string(b->arena, text));
	return ra_expect_token(&p, '(', "'(' and the names of the values") && ra_parse_names(&p, def, false) &&
		       (def->body = ra_parse_assigned(&p, def->name)) && ra_arg_end(&p)
		   ? def
		   : NULL;
}

/* The function of a text: of equal texts there is one. */
static struct ra_def *find_indexed(struct ra_builder *b, const char *text)
{
	int known = map_get(&b->indexed, text, strlen(text));
	if (known >= 0)
		return b->syntax.defs.at[known];
	struct ra_def *def = parse_indexed(b, text);
	if (!def)
		return NULL;
	map_add(&b->indexed, arena_string(b->arena, text), strlen(text), (int)b->syntax.defs.n);
	vec_push(b->arena, &b->syntax.defs, def);
	return def;
}

uint32_t ra_builder_indexed(struct ra_builder *b, const char *text, const uint32_t *arguments, size_t n)
{
	struct ra_value **arg;
	b->calls++;
	if (!ra_has_body(b) || !(arg = use_all(b, arguments, n)))
		return none;
	struct ra_def *def = find_indexed(b, text);
	return def ? ra_add_value(b, function_call(b, def->name, NULL, arg, n), arg, n) : none;
}

uint32_t ra_builder_slice(struct ra_builder *b, uint32_t x, int axis, const char *begin, const char *end)
{
	b->calls++;
	struct ra_value *base = ra_has_body(b) ? ra_use_value(b, x) : NULL;
	if (!base)
		return none;
	struct str s = str_in(b->arena);
	ra_show_value(&s, base, true);
	str_printf(&s, "[%s:%s]", begin ? begin : "", end ? end : "");
	struct ra_expr *e = ra_new_expr(b, RA_E_SLICE, ra_clipped_span(b, &s));
	e->axis = axis;
	e->base = ra_written_value(b, base);
	if ((begin && !ra_arg_dim(b, begin, &e->begin)) || (end && !ra_arg_dim(b, end, &e->end)))
		return none;
	return ra_add_value(b, e, &base, 1);
}

uint32_t ra_builder_zeros(struct ra_builder *b, const char *shape)
{
	b->calls++;
	struct ra_expr *e = ra_new_expr(b, RA_E_ZEROS, ra_show_text(b, "zeros(%s)", shape ? shape : ""));
	struct ra_declaration d = {0};
	if (!ra_has_body(b) || !ra_arg_shape(b, shape, &d, ra_parse_no_clause) ||
	    (d.type.length && !ra_read_type(&b->report, d.type, &e->dtype)))
		return none;
	e->dims = d.dims;
	return ra_add_value(b, e, NULL, 0);
}

uint32_t ra_builder_reshape(struct ra_builder *b, uint32_t x, const char *shape)
{
	b->calls++;
	struct ra_value *base = ra_has_body(b) ? ra_use_value(b, x) : NULL;
	struct ra_parser p = ra_arg_parser(b, shape ? shape : "");
	if (!base)
		return none;
	struct str s = str_in(b->arena);
	str_puts(&s, "reshape(");
	ra_show_value(&s, base, false);
	str_printf(&s, "%s%s)", shape && *shape ? ", " : "", shape ? shape : "");
	struct ra_expr *e = ra_new_expr(b, RA_E_RESHAPE, ra_clipped_span(b, &s));
	e->base = ra_written_value(b, base);
	return ra_parse_dims(&p, RA_TOKEN_END, &e->dims) ? ra_add_value(b, e, &base, 1) : none;
}

uint32_t ra_builder_dimension(struct ra_builder *b, const char *dimension)
{
	struct ra_dim_text *dim;
	b->calls++;
	struct ra_expr *e = ra_new_expr(b, RA_E_DIMENSION, ra_show_text(b, "dimension(%s)", dimension));
	if (!ra_has_body(b) || !ra_arg_dim(b, dimension, &dim))
		return none;
	vec_push(b->arena, &e->dims, dim);
	return ra_add_value(b, e, NULL, 0);
}

/* --- states, outputs and children --- */

uint32_t ra_builder_get(struct ra_builder *b, const char *text)
{
	struct ra_span name;
	b->calls++;
	if (!ra_has_body(b) || !ra_arg_name(b, text, "the name of a state or an output", &name))
		return none;
	return ra_add_value(b, ra_new_expr(b, RA_E_NAME, name), NULL, 0);
}

/* The value `OF.STATE`. */
static uint32_t state_of(struct ra_builder *b, const char *of, const char *state)
{
	struct ra_expr *e = ra_new_expr(b, RA_E_NAME, ra_show_text(b, "%s.%s", of, state));
	e->name = ra_here_span(b, str_format(b->arena, "%s.%s", of, state));
	return ra_add_value(b, e, NULL, 0);
}

/* Whether a name is that of what edges, or nodes, carry and parameters can be looked up with: a token, or an i32. */
static bool is_index_of(const struct ra_builder *b, bool edge, struct ra_span name)
{
	for (size_t i = 0; i < b->syntax.inputs.n; i++) {
		const struct ra_declaration *d = &b->syntax.inputs.at[i];
		bool index = d->token || (!d->dims.n && ra_span_is(d->type, "i32"));
		if (d->edge == edge && index && d->name.length == name.length &&
		    memcmp(d->name.text, name.text, name.length) == 0)
			return true;
	}
	return false;
}

uint32_t ra_builder_member(struct ra_builder *b, const char *text)
{
	struct ra_span field;
	b->calls++;
	if (!ra_has_body(b) || !ra_arg_name(b, text, "the name of a state, an input or an output", &field))
		return none;
	struct ra_expr *e = ra_new_expr(b, RA_E_NAME, ra_show_text(b, RA_MEMBER_NAME ".%s", text));
	e->name = ra_here_span(b, str_format(b->arena, RA_MEMBER_NAME ".%s", text));
	return is_index_of(b, false, field) ? ra_add_plain(b, e) : ra_add_value(b, e, NULL, 0);
}

/* A token of an edge has no value: it is written in look-ups only. */
uint32_t ra_builder_child(struct ra_builder *b, int slot, const char *text)
{
	struct ra_span field;
	b->calls++;
	if (!ra_has_body(b) || !ra_arg_name(b, text, "the name of a state or of what edges carry", &field))
		return none;
	if (slot == RA_EACH_CHILD && !is_index_of(b, true, field))
		return state_of(b, RA_EACH_NAME, text);
	struct ra_expr *e = ra_new_expr(b, RA_E_SLOT, ra_show_text(b, "children[%d].%s", slot, text));
	if (slot == RA_EACH_CHILD) {
		e = ra_new_expr(b, RA_E_NAME, ra_show_text(b, RA_EACH_NAME ".%s", text));
		e->name = ra_here_span(b, str_format(b->arena, RA_EACH_NAME ".%s", text));
	} else {
		e->name = field;
		e->slot = slot;
	}
	return is_index_of(b, true, field) ? ra_add_plain(b, e) : ra_add_value(b, e, NULL, 0);
}

uint32_t ra_builder_parent(struct ra_builder *b, bool each, const char *text)
{
	struct ra_span state;
	b->calls++;
	if (!ra_has_body(b) || !ra_arg_name(b, text, "the name of a state", &state))
		return none;
	const char *parent = ra_parent_name(b->syntax.structure.kind);
	return state_of(b, each ? RA_EACH_NAME : parent ? parent : "parent", text);
}
