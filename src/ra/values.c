/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The values of a builder, and the texts that its calls are given. */
#include "ra/values.h"

static const uint32_t none = 0;

/* --- places, texts and faults --- */

struct diag_at ra_here(const struct ra_builder *b)
{
	return (struct diag_at){.file = b->file, .line = b->line, .call = b->calls};
}

void ra_builder_at(struct ra_builder *b, const char *file, int line)
{
	if (file && (!b->file || strcmp(file, b->file) != 0))
		b->file = arena_string(b->arena, file);
	else if (!file)
		b->file = NULL;
	b->line = line > 0 ? line : 0;
}

void ra_builder_drop_unused(struct ra_builder *b)
{
	b->syntax.drops_unused = true;
}

void ra_builder_refuse(struct ra_builder *b, const char *function, const char *argument, const char *what)
{
	b->calls++;
	ra_report(&b->report, DIAG_BAD_ARGUMENT, ra_here(b), "see espalier.h", "%s: '%s' %s", function,
		  argument, what);
}

struct ra_parser ra_arg_parser(struct ra_builder *b, const char *text)
{
	struct ra_parser p = {.arena = b->arena, .report = &b->report, .syntax = &b->syntax};
	struct diag_at *place = ARENA_NEW(b->arena, struct diag_at);
	size_t length = strlen(text);
	const char *copy = arena_text(b->arena, text, length);
	*place = ra_here(b);
	place->source = copy;
	p.lexer = ra_lexer_of(NULL, copy, length);
	p.lexer.place = place;
	ra_advance_token(&p);
	return p;
}

bool ra_arg_end(struct ra_parser *p)
{
	return ra_expect_token(p, RA_TOKEN_END, "the end");
}

bool ra_arg_name(struct ra_builder *b, const char *text, const char *what, struct ra_span *name)
{
	struct ra_parser p = ra_arg_parser(b, text);
	return ra_expect_new_name(&p, what, name) && ra_arg_end(&p);
}

bool ra_arg_shape(struct ra_builder *b, const char *text, struct ra_declaration *d, ra_clause *clause)
{
	struct ra_parser p = ra_arg_parser(b, text ? text : "");
	return ra_parse_typed_dims(&p, RA_TOKEN_END, d, clause);
}

bool ra_arg_dim(struct ra_builder *b, const char *text, struct ra_dim_text **dim)
{
	struct ra_parser p = ra_arg_parser(b, text);
	return (*dim = ra_parse_dim(&p)) && ra_arg_end(&p);
}

/* --- the text of a value, for messages --- */

struct ra_span ra_here_span(const struct ra_builder *b, const char *text)
{
	return (struct ra_span){text, strlen(text), ra_here(b)};
}

struct ra_span ra_clipped_span(const struct ra_builder *b, struct str *s)
{
	if (s->n > RA_SHOWN) {
		s->n = RA_SHOWN - 3;
		str_puts(s, "...");
	}
	return ra_here_span(b, str_text(s));
}

void ra_show_value(struct str *s, const struct ra_value *v, bool operand)
{
	struct ra_span text = v->use->span;
	bool brackets = operand && v->infix;
	str_printf(s, "%s%.*s%s", brackets ? "(" : "", (int)text.length, text.text, brackets ? ")" : "");
}

struct ra_span ra_show_text(struct ra_builder *b, const char *format, ...)
{
	struct str s = str_in(b->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return ra_clipped_span(b, &s);
}

struct ra_expr *ra_new_expr(struct ra_builder *b, enum ra_expr_kind kind, struct ra_span span)
{
	struct ra_expr *e = ARENA_NEW(b->arena, struct ra_expr);
	e->kind = kind;
	e->span = e->name = span;
	return e;
}

/* --- values --- */

const char *ra_body_text(const struct ra_builder *b, enum ra_word body)
{
	if (body >= RA_WORDS)
		return ra_span_string(b->arena, b->syntax.cases.at[body - RA_WORDS].name);
	return ra_word_text(body);
}

static struct ra_value *new_value(struct ra_builder *b, struct ra_expr *use)
{
	if (b->values.n > RA_VALUE_INDEX)
		return ra_report(&b->report, DIAG_MODEL_LARGE, ra_here(b), "build fewer values",
				 "a builder has at most %d values", RA_VALUE_INDEX),
		       NULL;
	struct ra_value *v = ARENA_NEW(b->arena, struct ra_value);
	v->index = (uint32_t)b->values.n;
	v->use = use;
	vec_push(b->arena, &b->values, v);
	return v;
}

static uint32_t id_of(const struct ra_builder *b, const struct ra_value *v)
{
	return v ? b->tag << RA_VALUE_BITS | v->index : none;
}

static void refuse_missing_value(struct ra_builder *b)
{
	if (!b->report.seen.n)
		ra_report(&b->report, DIAG_BAD_ARGUMENT, ra_here(b), "pass what an earlier call returned",
			  "a value is wanted, and none was passed");
}

/* Finds the value of an id; that of a value at fault gives no further diagnostic. */
struct ra_value *ra_find_value(struct ra_builder *b, uint32_t id)
{
	uint32_t index = id & RA_VALUE_INDEX;
	if (!id)
		return refuse_missing_value(b), NULL;
	if (id >> RA_VALUE_BITS != b->tag || !index || index >= b->values.n)
		return ra_report(&b->report, DIAG_BAD_ARGUMENT, ra_here(b),
				 "pass what an earlier call with this builder returned",
				 "a value of another builder is passed"),
		       NULL;
	return b->values.at[index];
}

static int current_traversal(const struct ra_builder *b)
{
	return b->body == RA_WORD_OUTPUT ? 0 : (int)b->syntax.traversals.n;
}

bool ra_is_shared(const struct ra_builder *b, const struct ra_value *v)
{
	return b->syntax.structure.kind == RA_NONE && v->body == RA_WORD_NODE && !ra_scans(&b->syntax);
}

static bool is_here(const struct ra_builder *b, const struct ra_value *v)
{
	return !v->body || (v->body == b->body && v->traversal == current_traversal(b)) || ra_is_shared(b, v);
}

bool ra_builder_is_here(struct ra_builder *b, uint32_t id)
{
	const struct ra_value *v = ra_find_value(b, id);
	return !v || is_here(b, v);
}

/* Keeps states in the order of their traversals. */
static void insert_state(struct ra_builder *b, struct ra_declaration d)
{
	vec_push(b->arena, &b->syntax.states, d);
	for (size_t i = b->syntax.states.n - 1; i && b->syntax.states.at[i - 1].traversal > d.traversal;
	     i--) {
		b->syntax.states.at[i] = b->syntax.states.at[i - 1];
		b->syntax.states.at[i - 1] = d;
	}
}

void ra_builder_keep(struct ra_builder *b, uint32_t id, const char *state, const char *shape)
{
	b->calls++;
	const struct ra_value *v = ra_find_value(b, id);
	struct ra_declaration d = {.traversal = v ? v->traversal : 0};
	if (!v || !ra_arg_name(b, state, "the name of a state", &d.name) ||
	    !ra_arg_shape(b, shape, &d, ra_parse_no_clause))
		return;
	insert_state(b, d);
	for (size_t i = 0; i < b->syntax.bodies.n; i++) {
		struct ra_body *body = &b->syntax.bodies.at[i];
		if (body->word == v->body && body->traversal == v->traversal)
			vec_push(b->arena, &body->statements,
				 (struct ra_binding){d.name, arena_copy(b->arena, v->use, sizeof *v->use)});
	}
}

struct ra_value *ra_use_value(struct ra_builder *b, uint32_t id)
{
	struct ra_value *v = ra_find_value(b, id);
	if (!v || is_here(b, v))
		return v;
	return ra_report(&b->report, DIAG_MODEL_PLACE, ra_here(b),
			 "bodies share parameters, inputs and numbers, and see each other's states",
			 "'%s' is a value of '%s:', which '%s:' cannot use",
			 ra_excerpt(b->arena, v->use->span), ra_body_text(b, v->body), ra_body_text(b, b->body)),
	       NULL;
}

bool ra_has_body(struct ra_builder *b)
{
	return b->body || ra_report(&b->report, DIAG_MODEL_PLACE, ra_here(b), "call esp_builder_body first",
				    "this stands in no body");
}

struct ra_expr *ra_written_value(struct ra_builder *b, const struct ra_value *v)
{
	struct ra_expr *e = v->use;
	if (!v->definition) {
		e = arena_copy(b->arena, e, sizeof *e);
		e->span.at = e->name.at = ra_here(b);
	}
	return e;
}

struct ra_body *ra_current_body(struct ra_builder *b)
{
	for (size_t i = 0; i < b->syntax.bodies.n; i++) {
		struct ra_body *body = &b->syntax.bodies.at[i];
		if (body->word == b->body && body->traversal == current_traversal(b))
			return body;
	}
	return NULL;
}

static bool begins_with(struct ra_span name, const char *prefix)
{
	return name.length > strlen(prefix) && memcmp(name.text, prefix, strlen(prefix)) == 0;
}

/* Whether an expression is a field of the child or node of a sum, or looked up with one. */
static enum ra_each each_of(const struct ra_expr *e)
{
	if (e->kind == RA_E_LOOKUP)
		return each_of(e->index);
	if (e->kind != RA_E_NAME)
		return RA_OF_NONE;
	return begins_with(e->name, RA_EACH_NAME)     ? RA_OF_CHILD
	       : begins_with(e->name, RA_MEMBER_NAME) ? RA_OF_MEMBER
						      : RA_OF_NONE;
}

uint32_t ra_add_value(struct ra_builder *b, struct ra_expr *definition, struct ra_value *const *arg, size_t n)
{
	struct ra_expr *name = ra_new_expr(b, RA_E_NAME, definition->span);
	struct ra_value *v = new_value(b, name);
	if (!v)
		return none;
	const char *text = str_format(b->arena, "%c%u", RA_VALUE_LETTER, (unsigned)v->index);
	name->name = ra_here_span(b, text);
	v->definition = definition;
	v->body = b->body;
	v->traversal = current_traversal(b);
	v->each = each_of(definition);
	uint32_t *index = ARENA_ARRAY(b->arena, uint32_t, n);
	for (size_t i = 0; i < n; i++) {
		index[i] = arg[i]->index;
		v->each = v->each ? v->each : arg[i]->each;
	}
	v->arg = index;
	v->args = n;
	struct ra_body *body = ra_current_body(b);
	if (body && !v->each)
		vec_push(b->arena, &body->statements, (struct ra_binding){name->name, definition});
	return id_of(b, v);
}

uint32_t ra_add_plain(struct ra_builder *b, struct ra_expr *e)
{
	struct ra_value *v = new_value(b, e);
	if (v)
		v->each = each_of(e);
	return id_of(b, v);
}
