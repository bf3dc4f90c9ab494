/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dimensions: a sum of whole numbers, symbols, their products and quotients. */
#include "ra/syntax.h"

static bool refuse_dim(struct ra_parser *p)
{
	return ra_report(p->report, DIAG_MODEL_DIMENSION, p->token.span.at,
			 "dimensions are sums of numbers, names and multiples of names: 4*D, D + E, 2*D + 1; "
			 "so are indices, 2*i + u - 1",
			 "a dimension cannot be computed with '%s'", ra_excerpt(p->arena, p->token.span));
}

/* After '/': the number that a name or a group is divided by. */
static bool parse_divisor(struct ra_parser *p, struct ra_dim_term *term)
{
	struct diag_at at = p->token.span.at;
	int64_t divisor = 0;
	if (p->token.kind == RA_TOKEN_NAME)
		return ra_expect_new_name(p, "a number", &term->divisor_name);
	if (!ra_expect_count(p, RA_COEFFICIENT_LIMIT, &divisor))
		return false;
	term->divisor = (int)divisor;
	return divisor > 0 || ra_report(p->report, DIAG_MODEL_DIMENSION, at, "divide by 1 or more",
					"a dimension is divided by zero");
}

/* ( a sum ) */
static bool parse_group(struct ra_parser *p, struct ra_dim_term *term)
{
	if (p->depth > RA_NESTING_LIMIT && ra_refuse_depth(p))
		return false;
	ra_advance_token(p);
	p->depth++;
	term->group = ra_parse_dim(p);
	p->depth--;
	return term->group && ra_expect_token(p, ')', "')'");
}

/* NUMBER, NAME, ( a sum ), one of the last two divided by a number, and products of one with numbers, of
 * which one may have a name, times the sign. */
static bool parse_dim_term(struct ra_parser *p, struct ra_dim_text *d, int sign)
{
	struct ra_dim_term term = {.coefficient = sign};
	bool counted = false, named = false;
	do {
		int64_t count;
		if (p->token.kind == RA_TOKEN_NUMBER && !counted) {
			if (!ra_expect_count(p, INT32_MAX, &count))
				return false;
			term.coefficient *= count;
			counted = true;
		} else if ((p->token.kind == RA_TOKEN_NAME || p->token.kind == '(') && !named) {
			named = true;
			if (p->token.kind == '(' ? !parse_group(p, &term)
						 : !ra_expect_new_name(p, "a dimension", &term.symbol))
				return false;
			if (!counted && ra_take_token(p, '/') && !parse_divisor(p, &term))
				return false;
		} else if (p->token.kind == RA_TOKEN_NAME && !term.by.length) {
			if (!ra_expect_new_name(p, "a dimension", &term.by))
				return false;
		} else if (p->token.kind == RA_TOKEN_NAME || p->token.kind == RA_TOKEN_NUMBER ||
			   p->token.kind == '(') {
			return refuse_dim(p);
		} else {
			return ra_refuse_token(p, "a dimension");
		}
	} while (ra_take_token(p, '*'));
	if (p->token.kind == '/' || p->token.kind == '@' || p->token.kind == '(')
		return refuse_dim(p);
	vec_push(p->arena, &d->terms, term);
	return true;
}

struct ra_dim_text *ra_parse_dim(struct ra_parser *p)
{
	struct ra_dim_text *d = ARENA_NEW(p->arena, struct ra_dim_text);
	struct ra_span begin = p->token.span;
	int sign = ra_take_token(p, '-') ? -1 : 1;
	for (;;) {
		if (!parse_dim_term(p, d, sign))
			return NULL;
		if (p->token.kind != '+' && p->token.kind != '-')
			break;
		sign = p->token.kind == '-' ? -1 : 1;
		ra_advance_token(p);
	}
	d->span = ra_span_from(p, begin);
	return d;
}

static bool parse_dim_list(struct ra_parser *p, ra_dim_texts *dims)
{
	do {
		struct ra_dim_text *d = ra_parse_dim(p);
		if (!d)
			return false;
		vec_push(p->arena, dims, d);
	} while (ra_take_token(p, ','));
	return true;
}

bool ra_expect_close(struct ra_parser *p, char close)
{
	return ra_expect_token(p, close,
			       close == ']'   ? "',' or ']'"
			       : close == ')' ? "',' or ')'"
					      : "',' or the end");
}

bool ra_parse_dims(struct ra_parser *p, char close, ra_dim_texts *dims)
{
	return ra_take_token(p, close) || (parse_dim_list(p, dims) && ra_expect_close(p, close));
}

/* Whether a clause begins here: the same words may name dimensions. */
static bool at_clause(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	int next = ra_next_token(&ahead).kind;
	return p->token.kind == RA_TOKEN_NAME &&
	       ((next == RA_TOKEN_NAME && ra_span_is(p->token.span, "products")) ||
		(next == RA_TOKEN_NUMBER && ra_span_is(p->token.span, "within")));
}

/* Takes a word that is a name elsewhere. */
static bool take_clause(struct ra_parser *p, const char *word)
{
	if (p->token.kind != RA_TOKEN_NAME || !ra_span_is(p->token.span, word))
		return false;
	ra_advance_token(p);
	return true;
}

bool ra_parse_no_clause(struct ra_parser *p, struct ra_declaration *d)
{
	(void)p, (void)d;
	return true;
}

bool ra_parse_products(struct ra_parser *p, struct ra_declaration *d)
{
	return !take_clause(p, "products") || ra_parse_type(p, &d->products);
}

bool ra_parse_within(struct ra_parser *p, struct ra_declaration *d)
{
	if (!take_clause(p, "within"))
		return true;
	if (p->token.kind != RA_TOKEN_NUMBER)
		return ra_refuse_token(p, "a positive number, the largest magnitude of an element");
	d->within = p->token.span;
	d->bound = p->token.number;
	ra_advance_token(p);
	return true;
}

bool ra_parse_typed_dims(struct ra_parser *p, char close, struct ra_declaration *d, ra_clause *clause)
{
	if (p->token.kind != ':' && p->token.kind != close && !at_clause(p) && !parse_dim_list(p, &d->dims))
		return false;
	return (!ra_take_token(p, ':') || ra_parse_type(p, &d->type)) && clause(p, d) && ra_expect_close(p, close);
}
