/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Syntax of index notation. */
#include "ra/syntax.h"

/* NAME, or NAME in DIM. */
static bool parse_index(struct ra_parser *p, ra_index_texts *indices)
{
	struct ra_index_text i = {0};
	if (!ra_expect_new_name(p, "an index", &i.name) ||
	    (ra_take_word(p, RA_WORD_IN) && !(i.extent = ra_parse_dim(p))))
		return false;
	vec_push(p->arena, indices, i);
	return true;
}

static bool parse_indices(struct ra_parser *p, char close, ra_index_texts *indices)
{
	do
		if (!parse_index(p, indices))
			return false;
	while (ra_take_token(p, ','));
	return ra_expect_close(p, close);
}

struct ra_expr *ra_parse_assigned(struct ra_parser *p, struct ra_span name)
{
	struct ra_expr *nest = NULL;
	if (ra_take_token(p, '[')) {
		nest = ra_make_expr(p, RA_E_NEST, name);
		if (!parse_indices(p, ']', &nest->indices))
			return NULL;
	}
	if (!ra_expect_token(p, '=', "'=' and a value"))
		return NULL;
	struct ra_expr *value = ra_parse_expr(p);
	if (!nest || !value)
		return value;
	nest->base = value;
	nest->span = ra_span_from(p, name);
	return nest;
}

struct ra_expr *ra_parse_over(struct ra_parser *p, struct ra_span function, struct ra_expr *base)
{
	if (ra_reduction_named(function) == RA_CONST) {
		ra_report(p->report, DIAG_MODEL_SYNTAX, p->token.span.at,
			  "write sum(... for i, j), max(...), min(...) or prod(...)",
			  "'%s' does not range over indices", ra_excerpt(p->arena, function));
		return NULL;
	}
	struct ra_expr *e = ra_make_expr(p, RA_E_OVER, function);
	e->base = base;
	e->name = function;
	ra_advance_token(p);
	if (!parse_indices(p, ')', &e->indices))
		return NULL;
	e->span = ra_span_from(p, function);
	return e;
}

bool ra_at_fill(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	return ra_span_is(ra_next_token(&ahead).span, "else");
}

/* `else NUMBER`, after the brackets of an element. */
static bool parse_fill(struct ra_parser *p, struct ra_expr **fill)
{
	struct ra_span begin = p->token.span;
	if (p->token.kind != RA_TOKEN_NAME || !ra_span_is(begin, "else"))
		return true;
	ra_advance_token(p);
	bool negative = ra_take_token(p, '-');
	if (p->token.kind != RA_TOKEN_NUMBER)
		return ra_refuse_token(p, "the number that is read outside");
	*fill = ra_parse_number(p);
	(*fill)->number *= negative ? -1 : 1;
	(*fill)->span = ra_span_from(p, begin);
	return true;
}

/* Whether an index is a value: an element or the call of a function is in it. */
static bool at_value(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	struct ra_token t = p->token;
	for (int depth = 0;
	     t.kind != RA_TOKEN_END && t.kind != RA_TOKEN_LINE_END && t.kind != RA_TOKEN_BAD;) {
		bool name = t.kind == RA_TOKEN_NAME;
		if (!depth && (t.kind == ',' || t.kind == ']' || t.kind == ':'))
			return false;
		depth += (t.kind == '(') - (t.kind == ')');
		t = ra_next_token(&ahead);
		if (t.kind == '[' || (name && t.kind == '('))
			return true;
	}
	return false;
}

struct ra_dim_text *ra_parse_index(struct ra_parser *p)
{
	if (!at_value(p))
		return ra_parse_dim(p);
	struct ra_dim_text *d = ARENA_NEW(p->arena, struct ra_dim_text);
	struct ra_span begin = p->token.span;
	d->value = ra_parse_expr(p);
	d->span = ra_span_from(p, begin);
	return d->value ? d : NULL;
}

struct ra_expr *ra_parse_element(struct ra_parser *p, struct ra_expr *base, struct ra_dim_text *first)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_ELEMENT, base->span);
	e->base = base;
	vec_push(p->arena, &e->element.at, first);
	while (ra_take_token(p, ',')) {
		struct ra_dim_text *d = ra_parse_index(p);
		if (!d)
			return NULL;
		vec_push(p->arena, &e->element.at, d);
	}
	if (!ra_expect_token(p, ']', "',' or ']'") || !parse_fill(p, &e->element.fill))
		return NULL;
	e->span = ra_span_from(p, base->span);
	return e;
}
