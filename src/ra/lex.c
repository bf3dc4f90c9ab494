/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens. */
#include "ra/syntax.h"

#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const words[RA_WORDS] = {
#define RA_WORD(name, spelling) [RA_WORD_##name] = spelling,
    RA_WORD_LIST RA_FREE_WORD_LIST
#undef RA_WORD
};

const char *ra_word_text(enum ra_word word)
{
	return words[word];
}

struct ra_lexer ra_lexer_of(const char *file, const char *text, size_t length)
{
	return (struct ra_lexer){file, text, text + length, text, .line = 1, .fresh = true};
}

bool ra_is_name(const char *text)
{
	struct ra_lexer l = ra_lexer_of("", text, strlen(text));
	struct ra_token t = ra_next_token(&l);
	return t.kind == RA_TOKEN_NAME && !t.word && t.span.length == strlen(text);
}

/* --- characters: of ASCII, whatever the locale --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool in_name(char c)
{
	return starts_name(c) || is_digit(c) || c == '.';
}

static char peek_char(const struct ra_lexer *l, size_t ahead)
{
	return (size_t)(l->end - l->p) > ahead ? l->p[ahead] : 0;
}

/* --- blanks --- */

static void skip_newline(struct ra_lexer *l)
{
	l->line_start = ++l->p;
	l->line++;
	l->fresh = true;
}

static void skip_comment(struct ra_lexer *l)
{
	while (l->p < l->end && *l->p != '\n')
		l->p++;
}

/* Skips to the next token; a newline that ends a statement is one. */
static void skip_blanks(struct ra_lexer *l)
{
	while (l->p < l->end) {
		char c = *l->p;
		if (c == ' ' || c == '\t' || c == '\r')
			l->p++;
		else if (c == '#')
			skip_comment(l);
		else if (c == '\n' && (l->fresh || l->depth > 0))
			skip_newline(l);
		else
			return;
	}
}

/* --- tokens, which begin at p --- */

static struct ra_token token_to(struct ra_lexer *l, const char *end, int kind)
{
	struct ra_token t = {.kind = kind, .first = l->fresh};
	struct diag_at at = {.file = l->file,
			     .line = l->line,
			     .column = (int)(l->p - l->line_start) + 1,
			     .source = l->line_start};
	t.span = (struct ra_span){l->p, (size_t)(end - l->p), l->place ? *l->place : at};
	l->p = end;
	l->fresh = false;
	return t;
}

static struct ra_token refuse_token(struct ra_token t, enum diag_id problem, const char *hint)
{
	t.kind = RA_TOKEN_BAD;
	t.problem = problem;
	t.hint = hint;
	return t;
}

static enum ra_word word_of(struct ra_span span)
{
	for (int w = 1; w < RA_RESERVED_WORDS; w++)
		if (ra_span_is(span, words[w]))
			return w;
	return RA_WORD_NONE;
}

static const char *name_end(const struct ra_lexer *l, const char *p)
{
	while (p < l->end && in_name(*p))
		p++;
	return p;
}

/* The end of the brace group that begins at p, or NULL. */
static const char *group_end(const struct ra_lexer *l, const char *p)
{
	do
		p++;
	while (p < l->end && (in_name(*p) || *p == ',' || *p == ' ' || *p == '\t'));
	return p < l->end && *p == '}' ? p + 1 : NULL;
}

static struct ra_token lex_name(struct ra_lexer *l)
{
	const char *end = name_end(l, l->p);
	int kind = RA_TOKEN_NAME;
	while (end < l->end && *end == '{') {
		const char *after = group_end(l, end);
		if (!after)
			return refuse_token(
			    token_to(l, end + 1, RA_TOKEN_BAD), DIAG_MODEL_BRACES,
			    "braces hold names between commas, on one line and not nested: U_{i, o}");
		kind = RA_TOKEN_PATTERN;
		end = name_end(l, after);
	}
	struct ra_token t = token_to(l, end, kind);
	if (kind == RA_TOKEN_NAME && t.span.length > RA_NAME_LIMIT)
		return refuse_token(t, DIAG_MODEL_LARGE, "names have at most 255 bytes");
	t.word = kind == RA_TOKEN_NAME ? word_of(t.span) : RA_WORD_NONE;
	return t;
}

static const char *digits_end(const struct ra_lexer *l, const char *p)
{
	while (p < l->end && is_digit(*p))
		p++;
	return p;
}

static const char *exponent_end(const struct ra_lexer *l, const char *p)
{
	const char *q = p;
	if (q < l->end && (*q == 'e' || *q == 'E'))
		q++;
	else
		return p;
	if (q < l->end && (*q == '+' || *q == '-'))
		q++;
	return q < l->end && is_digit(*q) ? digits_end(l, q) : p;
}

static struct ra_token lex_number(struct ra_lexer *l)
{
	const char *end = digits_end(l, l->p);
	if (end < l->end && *end == '.')
		end = digits_end(l, end + 1);
	end = exponent_end(l, end);
	if (end < l->end && in_name(*end))
		return refuse_token(token_to(l, name_end(l, end), RA_TOKEN_BAD), DIAG_MODEL_NUMBER,
				    "numbers are written 2, 0.5 or 1e-5; a product is written 2*D");
	struct ra_token t = token_to(l, end, RA_TOKEN_NUMBER);
	t.number = decimal_to_double(t.span.text);
	return isfinite((float)t.number) ? t
					 : refuse_token(t, DIAG_MODEL_NUMBER, "numbers are at most 3.4e38");
}

static struct ra_token lex_string(struct ra_lexer *l)
{
	const char *p = l->p + 1;
	for (; p < l->end && (unsigned char)*p >= ' ' && *p != 127; p++) {
		if (*p == '"')
			return token_to(l, p + 1, RA_TOKEN_STRING);
		if (*p == '\\' && p + 1 < l->end && (p[1] == '"' || p[1] == '\\'))
			p++;
	}
	return refuse_token(token_to(l, p, RA_TOKEN_BAD), DIAG_MODEL_STRING,
			    "strings end with \" on the line they begin on; a quote in one is written \\\"");
}

/* < <= == != > >= are tokens of one kind, of one byte or two; a single = is punctuation. */
static size_t comparison_length(const struct ra_lexer *l)
{
	char c = peek_char(l, 0), next = peek_char(l, 1);
	if (next == '=' && c && strchr("<>=!", c))
		return 2;
	return c == '<' || c == '>';
}

static struct ra_token lex_punctuation(struct ra_lexer *l)
{
	char c = *l->p;
	size_t comparison = comparison_length(l);
	if (comparison)
		return token_to(l, l->p + comparison, RA_TOKEN_COMPARE);
	if (!c || !strchr("()[]:,=+-*/@.;", c))
		return refuse_token(
		    token_to(l, l->p + 1, RA_TOKEN_BAD), DIAG_MODEL_CHARACTER,
		    "outside of comments and strings a text is made of names, numbers and ( ) [ ] { } "
		    ": , ; = + - * / @ < > !");
	if (c == '(' || c == '[')
		l->depth++;
	else if ((c == ')' || c == ']') && l->depth > 0)
		l->depth--;
	return token_to(l, l->p + 1, c);
}

struct ra_token ra_next_token(struct ra_lexer *l)
{
	skip_blanks(l);
	if (l->p == l->end)
		return token_to(l, l->p, RA_TOKEN_END);
	if (*l->p == '\n') {
		struct ra_token t = token_to(l, l->p, RA_TOKEN_LINE_END);
		skip_newline(l);
		return t;
	}
	if (is_digit(*l->p) || (*l->p == '.' && is_digit(peek_char(l, 1))))
		return lex_number(l);
	if (*l->p == '"')
		return lex_string(l);
	if (!starts_name(*l->p) && *l->p != '{')
		return lex_punctuation(l);
	struct ra_lexer before = *l;
	struct ra_token t = lex_name(l);
	if (!t.first || !before.depth || !t.word || t.word > RA_WORD_OUTPUT)
		return t;
	*l = before;
	l->depth = 0;
	struct ra_token end = token_to(l, l->p, RA_TOKEN_LINE_END);
	end.hint = "a bracket above is not closed";
	l->fresh = true;
	return end;
}

/* --- braces --- */

enum { GROUPS = 16 };

/* The pieces of a pattern: literal text and groups alternate; a literal is a group of one. */
struct pattern {
	ra_spans choice[2 * GROUPS + 1];
	size_t at[2 * GROUPS + 1];
	int pieces;
};

static struct ra_span trim_span(const char *begin, const char *end)
{
	while (begin < end && (*begin == ' ' || *begin == '\t'))
		begin++;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct ra_span){.text = begin, .length = (size_t)(end - begin)};
}

/* Adds the piece that begins at p and returns its end. */
static const char *add_piece(struct arena *a, struct pattern *x, const char *p, const char *end)
{
	ra_spans *choice = &x->choice[x->pieces++];
	bool group = *p == '{';
	const char *begin = group ? ++p : p;
	for (; p < end && *p != (group ? '}' : '{'); p++)
		if (group && *p == ',') {
			vec_push(a, choice, trim_span(begin, p));
			begin = p + 1;
		}
	vec_push(a, choice, trim_span(begin, p));
	return group ? p + 1 : p;
}

/* The name that the current choices make; length 0 when they make none. */
static struct ra_span current_name(struct arena *a, const struct pattern *x)
{
	char name[RA_NAME_LIMIT];
	size_t n = 0;
	for (int i = 0; i < x->pieces; i++) {
		struct ra_span piece = x->choice[i].at[x->at[i]];
		if (piece.length > sizeof name - n || memchr(piece.text, ' ', piece.length) ||
		    memchr(piece.text, '\t', piece.length))
			return (struct ra_span){0};
		memcpy(name + n, piece.text, piece.length);
		n += piece.length;
	}
	if (!n || !starts_name(name[0]))
		return (struct ra_span){0};
	return (struct ra_span){.text = arena_text(a, name, n), .length = n};
}

/* Advances to the next choices, the last piece fastest; false after the last. */
static bool next_choice(struct pattern *x)
{
	for (int i = x->pieces - 1; i >= 0; i--) {
		if (++x->at[i] < x->choice[i].n)
			return true;
		x->at[i] = 0;
	}
	return false;
}

bool ra_expand_braces(struct arena *a, struct ra_span pattern, ra_spans *names, const char **problem)
{
	struct pattern x = {0};
	const char *end = pattern.text + pattern.length;
	for (const char *p = pattern.text; p < end;) {
		if (x.pieces == 2 * GROUPS)
			return *problem = "a name has at most 16 groups of braces", false;
		p = add_piece(a, &x, p, end);
	}
	do {
		struct ra_span name = current_name(a, &x);
		if (!name.length || word_of(name))
			return *problem =
				   "every expansion must be a name of at most 255 letters, digits, _ and .",
			       false;
		if (names->n == RA_PARAM_LIMIT)
			return *problem = "a pattern expands to at most 65536 names", false;
		name.at = pattern.at;
		vec_push(a, names, name);
	} while (next_choice(&x));
	return true;
}
