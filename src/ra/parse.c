/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Syntax of statements: a table of the words that begin them. */
#include "ra/syntax.h"

/* --- names with dimensions --- */

static bool parse_dims_of(struct ra_parser *p, struct ra_declaration *d)
{
	return !ra_take_token(p, '[') || ra_parse_dims(p, ']', &d->dims);
}

bool ra_parse_type(struct ra_parser *p, struct ra_span *type)
{
	*type = p->token.span;
	if (p->token.kind != RA_TOKEN_NAME)
		return ra_refuse_token(p, "a type such as f32 or i32");
	ra_advance_token(p);
	return true;
}

/* [ dims ] [ ":" TYPE ] */
static bool parse_shape_of(struct ra_parser *p, struct ra_declaration *d)
{
	return parse_dims_of(p, d) && (!ra_take_token(p, ':') || ra_parse_type(p, &d->type));
}

/* What nodes carry, or edges. */
static bool parse_carried(struct ra_parser *p, bool edge, const char *what)
{
	do {
		struct ra_declaration d = {.edge = edge};
		if (!ra_expect_new_name(p, what, &d.name) || !parse_shape_of(p, &d) || !ra_parse_within(p, &d))
			return false;
		d.token = ra_span_is(d.type, "token");
		vec_push(p->arena, &p->syntax->inputs, d);
	} while (ra_take_token(p, ','));
	return true;
}

static bool parse_inputs(struct ra_parser *p)
{
	return parse_carried(p, false, "the name of an input");
}

static bool parse_edges(struct ra_parser *p)
{
	return parse_carried(p, true, "the name of what edges carry");
}

/* One name, or the names that a pattern expands to. */
static bool parse_param_names(struct ra_parser *p, ra_spans *names)
{
	struct ra_span span = p->token.span;
	if (p->token.kind != RA_TOKEN_PATTERN) {
		if (!ra_expect_new_name(p, "the name of a parameter", &span))
			return false;
		vec_push(p->arena, names, span);
		return true;
	}
	const char *problem;
	if (!ra_expand_braces(p->arena, span, names, &problem))
		return ra_report(p->report, DIAG_MODEL_BRACES, span.at, problem,
				 "'%s' does not expand to names", ra_excerpt(p->arena, span));
	ra_advance_token(p);
	return true;
}

static bool parse_params(struct ra_parser *p)
{
	do {
		ra_spans names = {0};
		struct ra_declaration d = {0};
		struct diag_at at = p->token.span.at;
		if (!parse_param_names(p, &names) || !parse_shape_of(p, &d) || !ra_parse_products(p, &d))
			return false;
		if (names.n + p->syntax->params.n > RA_PARAM_LIMIT)
			return ra_report(p->report, DIAG_MODEL_LARGE, at, NULL,
					 "a model has at most %d parameters", RA_PARAM_LIMIT);
		for (size_t i = 0; i < names.n; i++) {
			d.name = names.at[i];
			vec_push(p->arena, &p->syntax->params, d);
		}
	} while (ra_take_token(p, ','));
	return true;
}

static bool parse_states(struct ra_parser *p)
{
	do {
		struct ra_declaration d = {0};
		d.traversal = (int)p->syntax->traversals.n;
		if (!ra_expect_new_name(p, "the name of a state", &d.name) || !parse_shape_of(p, &d))
			return false;
		vec_push(p->arena, &p->syntax->states, d);
	} while (ra_take_token(p, ','));
	return true;
}

/* --- the model and its structure --- */

static bool parse_model(struct ra_parser *p)
{
	struct ra_span name;
	if (!ra_expect_new_name(p, "the name of the model", &name))
		return false;
	if (p->syntax->model.length)
		return ra_report(p->report, DIAG_MODEL_DUPLICATE, name.at, "a text holds one model",
				 "the model is already named '%s'", ra_excerpt(p->arena, p->syntax->model));
	p->syntax->model = name;
	return true;
}

static bool refuse_structure(struct ra_parser *p, struct diag_at at, const char *message)
{
	return ra_report(
	    p->report, DIAG_MODEL_STRUCTURE, at,
	    "write sequence, tree(left, right), tree(3), tree(*), dag(left, right), dag(3), dag(*) or none", "%s",
	    message);
}

static bool parse_slot_names(struct ra_parser *p)
{
	do {
		struct ra_span name;
		if (!ra_expect_new_name(p, "the name of a child", &name))
			return false;
		if (memchr(name.text, '.', name.length))
			return refuse_structure(p, name.at, "the name of a child has no dots");
		if (p->syntax->structure.names.n == RA_SLOT_LIMIT)
			return refuse_structure(p, name.at, "a node has at most 64 children");
		vec_push(p->arena, &p->syntax->structure.names, name);
	} while (ra_take_token(p, ','));
	p->syntax->structure.children = (int)p->syntax->structure.names.n;
	return true;
}

/* After '(': `*`, a number or names. */
static bool parse_children(struct ra_parser *p)
{
	struct diag_at at = p->token.span.at;
	if (ra_take_token(p, '*')) {
		p->syntax->structure.children = -1;
	} else if (p->token.kind == RA_TOKEN_NUMBER) {
		int64_t count;
		if (!ra_expect_count(p, INT32_MAX, &count))
			return false;
		if (count < 1 || count > RA_SLOT_LIMIT)
			return refuse_structure(p, at, "a node has 1 to 64 children");
		p->syntax->structure.children = (int)count;
	} else if (p->token.kind == ')') {
		return refuse_structure(p, at, "the children are missing");
	} else if (!parse_slot_names(p)) {
		return false;
	}
	return ra_expect_token(p, ')', "')'");
}

const char *const ra_structure_words[RA_STRUCTURES] = {
    [RA_SEQUENCE] = "sequence", [RA_TREE] = "tree", [RA_DAG] = "dag", [RA_NONE] = "none"};

/* RA_STRUCTURES = it is no kind of structure. */
static enum ra_structure_kind find_structure(struct ra_token t)
{
	enum ra_structure_kind kind = 0;
	while (kind < RA_STRUCTURES && !(t.kind == RA_TOKEN_NAME && ra_span_is(t.span, ra_structure_words[kind])))
		kind++;
	return kind;
}

bool ra_parse_structure(struct ra_parser *p)
{
	struct ra_span kind = p->token.span;
	enum ra_structure_kind found = find_structure(p->token);
	if (found == RA_STRUCTURES)
		return refuse_structure(p, kind.at, "this is not a kind of structure");
	if (p->syntax->structure.span.length)
		return ra_report(p->report, DIAG_MODEL_DUPLICATE, kind.at, "a model has one structure",
				 "the structure is already given in line %d",
				 p->syntax->structure.span.at.line);
	ra_advance_token(p);
	p->syntax->structure.span = kind;
	p->syntax->structure.kind = found;
	if (found == RA_SEQUENCE) {
		struct ra_span previous = {"previous", strlen("previous"), kind.at};
		vec_push(p->arena, &p->syntax->structure.names, previous);
		p->syntax->structure.children = 1;
	}
	if (found == RA_SEQUENCE || found == RA_NONE)
		return true;
	return ra_expect_token(p, '(', "'(' and the children") && parse_children(p);
}

bool ra_parse_traversal(struct ra_parser *p)
{
	struct ra_traversal_text t = {.span = p->token.span};
	t.down = p->token.kind == RA_TOKEN_NAME && ra_span_is(t.span, "down");
	if (p->syntax->traversals.n == RA_TRAVERSAL_LIMIT)
		return ra_report(p->report, DIAG_MODEL_LARGE, t.span.at, NULL,
				 "a model has at most %d traversals", RA_TRAVERSAL_LIMIT);
	vec_push(p->arena, &p->syntax->traversals, t);
	if (!t.down && (p->token.kind != RA_TOKEN_NAME || !ra_span_is(t.span, "up")))
		return ra_refuse_token(p, "'up' or 'down'");
	ra_advance_token(p);
	if (p->token.kind != RA_TOKEN_NAME || !ra_span_is(p->token.span, "over"))
		return true;
	ra_advance_token(p);
	struct ra_dim_text *steps = ra_parse_dim(p);
	p->syntax->traversals.at[p->syntax->traversals.n - 1].steps = steps;
	return steps;
}

/* --- functions, bodies, outputs --- */

/* `= NUMBER`, or `= NAME` of an argument before this one; nothing is read where there is no '='. */
static bool parse_default(struct ra_parser *p, struct ra_def *def, struct ra_expr **e)
{
	*e = NULL;
	if (!ra_take_token(p, '='))
		return !def->defaults.n || !def->defaults.at[def->defaults.n - 1] ||
		       ra_refuse_token(p, "'=' and a default, as the argument before has one");
	struct ra_span begin = p->token.span;
	if (p->token.kind == RA_TOKEN_NAME && map_get(&def->param, begin.text, begin.length) >= 0) {
		*e = ra_make_expr(p, RA_E_NAME, begin);
		(*e)->name = begin;
		ra_advance_token(p);
		return true;
	}
	bool negative = ra_take_token(p, '-');
	if (p->token.kind != RA_TOKEN_NUMBER)
		return ra_refuse_token(p, "a number or the name of an argument before this one");
	*e = ra_parse_number(p);
	(*e)->number *= negative ? -1 : 1;
	(*e)->span = ra_span_from(p, begin);
	return true;
}

bool ra_parse_names(struct ra_parser *p, struct ra_def *def, bool defaults)
{
	if (ra_take_token(p, ')'))
		return true;
	do {
		struct ra_span name;
		struct ra_expr *value = NULL;
		if (!ra_expect_new_name(p, "the name of an argument", &name) ||
		    (defaults && !parse_default(p, def, &value)))
			return false;
		if (!map_add(&def->param, name.text, name.length, (int)def->params.n))
			return ra_report(p->report, DIAG_MODEL_DUPLICATE, name.at, NULL,
					 "two arguments are named '%s'", ra_excerpt(p->arena, name));
		vec_push(p->arena, &def->params, name);
		vec_push(p->arena, &def->defaults, value);
	} while (ra_take_token(p, ','));
	return ra_expect_token(p, ')', "',' or ')'");
}

static bool parse_def(struct ra_parser *p)
{
	struct ra_def *def = ARENA_NEW(p->arena, struct ra_def);
	def->param = map_in(p->arena);
	def->prelude = p->prelude;
	if (!ra_expect_new_name(p, "the name of a function", &def->name) ||
	    !ra_expect_token(p, '(', "'(' and the arguments") || !ra_parse_names(p, def, true) ||
	    !ra_expect_token(p, '=', "'=' and the value") || !(def->body = ra_parse_expr(p)))
		return false;
	vec_push(p->arena, &p->syntax->defs, def);
	return true;
}

static bool take_text(struct ra_parser *p, const char *word)
{
	if (p->token.kind != RA_TOKEN_NAME || !ra_span_is(p->token.span, word))
		return false;
	ra_advance_token(p);
	return true;
}

static bool expect_equality(struct ra_parser *p)
{
	if (!ra_span_is(p->token.span, "=="))
		return ra_refuse_token(p, "'=='");
	ra_advance_token(p);
	return true;
}

/* children == 2, or an input. */
static bool parse_condition(struct ra_parser *p, struct ra_case_text *c)
{
	struct ra_condition condition = {.name = p->token.span};
	if (!ra_take_word(p, RA_WORD_CHILDREN) &&
	    !ra_expect_new_name(p, "'children' or an input", &condition.name))
		return false;
	if (!expect_equality(p) || !ra_expect_count(p, INT32_MAX, &condition.value))
		return false;
	vec_push(p->arena, &c->conditions, condition);
	return true;
}

bool ra_parse_conditions(struct ra_parser *p, struct ra_case_text *c)
{
	do
		if (!parse_condition(p, c))
			return false;
	while (take_text(p, "and"));
	return true;
}

/* BASE when CONDITION and ... */
static bool parse_base(struct ra_parser *p, struct ra_case_text *c)
{
	c->base = p->token.word;
	if (!ra_take_word(p, RA_WORD_LEAF) && !ra_take_word(p, RA_WORD_INNER))
		return ra_refuse_token(p, "'leaf' or 'inner'");
	return take_text(p, "when") ? ra_parse_conditions(p, c)
				    : ra_refuse_token(p, "'when' and a condition");
}

/* A case that does not parse is declared nevertheless. */
static bool parse_case(struct ra_parser *p)
{
	struct ra_case_text c = {0};
	if (!ra_expect_new_name(p, "the name of a case", &c.name))
		return false;
	bool read = ra_expect_token(p, '=', "'=' and what the case is") && parse_base(p, &c);
	map_add_lasting(&p->cases, c.name.text, c.name.length, (int)p->syntax->cases.n);
	vec_push(p->arena, &p->syntax->cases, c);
	return read;
}

/* The token before the ':' is the header. */
static bool parse_body(struct ra_parser *p, struct ra_token header)
{
	struct ra_body body = {.header = header.span, .word = header.word};
	body.traversal = (int)p->syntax->traversals.n;
	if (!ra_expect_token(p, ':', "':'"))
		return false;
	vec_push(p->arena, &p->syntax->bodies, body);
	p->in_body = true;
	return true;
}

/* The text of a string token, without its quotes and escapes. */
static const char *string_value(struct arena *a, struct ra_span span)
{
	char *value = arena_text(a, span.text + 1, span.length - 2), *to = value;
	for (const char *from = value; *from; from++)
		*to++ = *from == '\\' ? *++from : *from;
	*to = 0;
	return value;
}

static bool parse_labels(struct ra_parser *p, struct ra_output_text *o)
{
	do {
		if (p->token.kind != RA_TOKEN_STRING)
			return ra_refuse_token(p, "a label in quotes");
		vec_push(p->arena, &o->labels, string_value(p->arena, p->token.span));
		ra_advance_token(p);
	} while (ra_take_token(p, ','));
	return true;
}

static bool parse_place(struct ra_parser *p, struct ra_output_text *o)
{
	if (take_text(p, "root"))
		return o->at_root = true;
	if (take_text(p, "every"))
		return take_text(p, "node") || ra_refuse_token(p, "'node'");
	return ra_refuse_token(p, "'root' or 'every node'");
}

static bool parse_output(struct ra_parser *p)
{
	struct ra_output_text o = {0};
	if (!ra_expect_new_name(p, "the name of an output", &o.name) ||
	    !(o.value = ra_parse_assigned(p, o.name)))
		return false;
	if (ra_take_word(p, RA_WORD_AT) && !parse_place(p, &o))
		return false;
	o.labels_at = p->token.span.at;
	if (ra_take_word(p, RA_WORD_LABELS) && !parse_labels(p, &o))
		return false;
	vec_push(p->arena, &p->syntax->outputs, o);
	return true;
}

/* --- statements --- */

static bool (*const statements[RA_WORDS])(struct ra_parser *) = {
    [RA_WORD_MODEL] = parse_model,   [RA_WORD_STRUCTURE] = ra_parse_structure, [RA_WORD_INPUT] = parse_inputs,
    [RA_WORD_EDGE] = parse_edges,    [RA_WORD_PARAM] = parse_params,	       [RA_WORD_STATE] = parse_states,
    [RA_WORD_DEF] = parse_def,	     [RA_WORD_OUTPUT] = parse_output,	       [RA_WORD_TRAVERSAL] = ra_parse_traversal,
    [RA_WORD_CASE] = parse_case,
};

static bool expect_line_end(struct ra_parser *p)
{
	return p->token.kind == RA_TOKEN_END ||
	       ra_expect_token(p, RA_TOKEN_LINE_END, "the end of the statement");
}

/* NAME = value, in a body.  The name is declared even if the value does not parse. */
static bool parse_assignment(struct ra_parser *p)
{
	struct ra_body *body = &p->syntax->bodies.at[p->syntax->bodies.n - 1];
	struct ra_binding b = {0};
	if (!ra_expect_new_name(p, "the name of a value", &b.name))
		return false;
	b.value = ra_parse_assigned(p, b.name);
	bool ended = b.value && expect_line_end(p);
	if (!ended)
		b.value = NULL;
	vec_push(p->arena, &body->statements, b);
	return ended;
}

/* Refuses a line that begins with no word of the language, outside of a body. */
static bool refuse_statement(struct ra_parser *p)
{
	if (p->token.kind != RA_TOKEN_NAME)
		return ra_refuse_token(p, "a statement");
	struct ra_span s = p->token.span;
	struct ra_nearest near = ra_nearest_to(s.text, s.length);
#define RA_WORD(name, spelling) ra_consider_name(&near, spelling, strlen(spelling));
	RA_WORD_LIST
#undef RA_WORD
	return ra_report(p->report, DIAG_MODEL_SYNTAX, s.at,
			 ra_did_you_mean(p->arena, &near,
					 "assignments stand in a body, below 'leaf:', 'inner:' or 'node:'"),
			 "no statement begins with '%s'", ra_excerpt(p->arena, s));
}

/* Whether NAME ':' begins a line: a header of a body, though no reserved word. */
static bool at_header(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	return p->token.first && p->token.kind == RA_TOKEN_NAME && !p->token.word &&
	       ra_next_token(&ahead).kind == ':';
}

static void refuse_header(struct ra_parser *p, struct ra_span header)
{
	if (!ra_is_news(p->report, DIAG_MODEL_SYNTAX, header.at))
		return;
	struct ra_nearest near = ra_nearest_to(header.text, header.length);
#define RA_WORD(name, spelling)                                                                              \
	if (RA_WORD_##name >= RA_WORD_LEAF && RA_WORD_##name <= RA_WORD_NODE)                                \
		ra_consider_name(&near, spelling, strlen(spelling));
	RA_WORD_LIST
#undef RA_WORD
	ra_consider_name(&near, "root", strlen("root"));
	ra_consider_name(&near, "below", strlen("below"));
	for (size_t i = 0; i < p->syntax->cases.n; i++)
		ra_consider_name(&near, p->syntax->cases.at[i].name.text, p->syntax->cases.at[i].name.length);
	ra_report(p->report, DIAG_MODEL_SYNTAX, header.at,
		  ra_did_you_mean(p->arena, &near,
				  "bodies are 'leaf:', 'inner:', 'node:' and those of cases that are declared above; "
				  "down, 'root:', 'below:' and 'node:'"),
		  "no body is named '%s'", ra_excerpt(p->arena, header));
}

/* Statements below an unknown header are read as its body, so that only the header is at fault. */
static bool parse_header(struct ra_parser *p)
{
	struct ra_token header = p->token;
	for (header.word = RA_WORD_BELOW; header.word >= RA_WORD_ROOT; header.word--)
		if (ra_take_free_word(p, header.word))
			return parse_body(p, header) && expect_line_end(p);
	header.word = RA_WORD_NONE;
	p->syntax->incomplete = true;
	refuse_header(p, header.span);
	ra_advance_token(p);
	return parse_body(p, header) && expect_line_end(p);
}

/* The word of the case of that name; 0 = none is declared so far. */
static enum ra_word find_case(const struct ra_parser *p, struct ra_span name)
{
	int i = map_get(&p->cases, name.text, name.length);
	return i < 0 ? RA_WORD_NONE : ra_word_of_case((size_t)i);
}

static bool parse_named_body(struct ra_parser *p)
{
	struct ra_token header = p->token;
	header.word = find_case(p, header.span);
	ra_advance_token(p);
	return parse_body(p, header) && expect_line_end(p);
}

static bool parse_statement(struct ra_parser *p)
{
	struct ra_token t = p->token;
	enum ra_word word = t.kind == RA_TOKEN_NAME && t.word <= RA_WORD_OUTPUT ? t.word : RA_WORD_NONE;
	if (!word && at_header(p))
		return find_case(p, t.span) ? parse_named_body(p) : parse_header(p);
	if (!word && p->in_body)
		return parse_assignment(p);
	if (!word)
		return p->syntax->incomplete = true, refuse_statement(p);
	p->in_body = false;
	ra_advance_token(p);
	bool parsed = statements[word] ? statements[word](p) : parse_body(p, t);
	if (parsed && expect_line_end(p))
		return true;
	p->syntax->incomplete = true;
	return false;
}

/* Whether the token looks like the beginning of a statement rather than of a bracket's next line. */
static bool at_statement(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	return p->token.first && p->token.kind == RA_TOKEN_NAME &&
	       ((p->token.word && p->token.word <= RA_WORD_OUTPUT) || ra_next_token(&ahead).kind == '=');
}

/* Skips to the next statement after a fault; an unclosed bracket does not extend over it. */
static void skip_statement(struct ra_parser *p)
{
	while (p->token.kind != RA_TOKEN_END && p->token.kind != RA_TOKEN_LINE_END && !at_statement(p))
		ra_advance_token(p);
	p->lexer.depth = 0;
}

void ra_parse_text(struct arena *a, struct ra_report *r, struct ra_syntax *syntax, const char *file,
		   const char *text, size_t length, bool prelude)
{
	struct ra_parser p = {.arena = a, .report = r, .syntax = syntax, .prelude = prelude};
	p.lexer = ra_lexer_of(file, text, length);
	p.cases = map_in(a);
	ra_advance_token(&p);
	while (p.token.kind != RA_TOKEN_END) {
		const char *before = p.token.span.text;
		if (ra_take_token(&p, RA_TOKEN_LINE_END) || parse_statement(&p))
			continue;
		p.depth = 0;
		if (p.token.span.text == before)
			ra_advance_token(&p);
		skip_statement(&p);
	}
}
