/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What parsers do with the next token: take it, expect it, refuse it. */
#include "ra/syntax.h"

void ra_advance_token(struct ra_parser *p)
{
	p->token = ra_next_token(&p->lexer);
}

bool ra_take_token(struct ra_parser *p, int kind)
{
	if (p->token.kind != kind)
		return false;
	ra_advance_token(p);
	return true;
}

bool ra_at_word(const struct ra_parser *p, enum ra_word word)
{
	return p->token.kind == RA_TOKEN_NAME && p->token.word == word;
}

bool ra_take_word(struct ra_parser *p, enum ra_word word)
{
	if (!ra_at_word(p, word))
		return false;
	ra_advance_token(p);
	return true;
}

bool ra_take_free_word(struct ra_parser *p, enum ra_word word)
{
	return p->token.kind == RA_TOKEN_NAME && ra_span_is(p->token.span, ra_word_text(word)) &&
	       (ra_advance_token(p), true);
}

static const char *token_text(struct ra_parser *p)
{
	const struct ra_token *t = &p->token;
	if (t->kind == RA_TOKEN_END)
		return "the text ends";
	if (t->kind == RA_TOKEN_LINE_END)
		return "the line ends";
	return str_format(p->arena, "'%s' stands here", ra_excerpt(p->arena, t->span));
}

/* Reports a token that the lexer refused, with its reason. */
static bool report_bad(struct ra_parser *p)
{
	const struct ra_token *t = &p->token;
	if (t->problem == DIAG_MODEL_CHARACTER)
		return ra_report(p->report, t->problem, t->span.at, t->hint,
				 "the byte 0x%02x does not belong here", (unsigned char)t->span.text[0]);
	return ra_report(p->report, t->problem, t->span.at, t->hint, "'%s' cannot be read",
			 ra_excerpt(p->arena, t->span));
}

bool ra_refuse_token(struct ra_parser *p, const char *what)
{
	if (p->token.kind == RA_TOKEN_BAD)
		return report_bad(p);
	const char *hint = p->token.kind == RA_TOKEN_PATTERN ? "braces expand in the names of parameters only"
							     : p->token.hint;
	return ra_report(p->report, DIAG_MODEL_SYNTAX, p->token.span.at, hint, "expected %s, but %s", what,
			 token_text(p));
}

bool ra_expect_token(struct ra_parser *p, int kind, const char *what)
{
	return ra_take_token(p, kind) || ra_refuse_token(p, what);
}

bool ra_expect_new_name(struct ra_parser *p, const char *what, struct ra_span *name)
{
	if (p->token.kind != RA_TOKEN_NAME)
		return ra_refuse_token(p, what);
	*name = p->token.span;
	if (p->token.word)
		return ra_report(p->report, DIAG_MODEL_RESERVED, name->at,
				 "choose another name; a longer one such as 'node.W' is fine",
				 "'%s' is a word of the language and cannot be %s",
				 ra_excerpt(p->arena, *name), what);
	ra_advance_token(p);
	return true;
}

bool ra_expect_count(struct ra_parser *p, int64_t limit, int64_t *count)
{
	const struct ra_token *t = &p->token;
	if (t->kind != RA_TOKEN_NUMBER)
		return ra_refuse_token(p, "a whole number");
	if (t->number > (double)limit || t->number != (double)(int64_t)t->number)
		return ra_report(p->report, DIAG_MODEL_NUMBER, t->span.at, NULL,
				 "'%s' is not a whole number of at most %lld", ra_excerpt(p->arena, t->span),
				 (long long)limit);
	*count = (int64_t)t->number;
	ra_advance_token(p);
	return true;
}

struct ra_span ra_span_from(const struct ra_parser *p, struct ra_span begin)
{
	const char *end = p->token.span.text;
	while (end > begin.text + 1 && strchr(" \t\r\n", end[-1]))
		end--;
	begin.length = (size_t)(end - begin.text);
	return begin;
}

bool ra_refuse_depth(struct ra_parser *p)
{
	return !ra_report(p->report, DIAG_MODEL_DEEP, p->token.span.at,
			  "give parts of the expression names of their own",
			  "more than %d brackets and signs are nested here", RA_NESTING_LIMIT);
}
