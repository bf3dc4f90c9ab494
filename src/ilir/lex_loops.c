/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Splits the text of loops into tokens. */
#include "ilir/lex_loops.h"

#include "ilir/spelling.h"

#include <ctype.h>

/* --- faults --- */

static struct diag_at locate_text(const struct lexer *l, const char *at)
{
	const char *line = l->begin;
	int number = 1;
	for (const char *c = l->begin; c < at; c++)
		if (*c == '\n') {
			line = c + 1;
			number++;
		}
	return (struct diag_at){.file = l->file, .line = number, .column = at - line + 1, .source = line};
}

_Noreturn void lex_fail(struct lexer *l, const char *hint, const char *format, ...)
{
	struct str s = str_in(l->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	diag_add(l->diags, DIAG_INVALID_LOOP_TEXT, locate_text(l, l->token.from), hint, "%s", str_text(&s));
	longjmp(l->failed, 1);
}

_Noreturn void lex_expected(struct lexer *l, const char *what)
{
	const struct token *t = &l->token;
	lex_fail(l, NULL, "expected %s, found %s%.*s%s", what, t->kind == END ? "the end of the text" : "'",
		 t->length > 40 ? 40 : (int)t->length, t->text, t->kind == END ? "" : "'");
}

/* --- tokens --- */

static void skip_space(struct lexer *l)
{
	while (l->at < l->end && (isspace((unsigned char)*l->at) || *l->at == '#'))
		if (*l->at++ == '#')
			while (l->at < l->end && *l->at != '\n')
				l->at++;
}

static size_t count_digits(const struct lexer *l, const char *at)
{
	const char *from = at;
	while (at < l->end && isdigit((unsigned char)*at))
		at++;
	return at - from;
}

/* The length of a number: 12, 12i, 1.5, 1e-06.  It contains a dot only before a digit, so that 0..5 is
 * two numbers. */
static size_t number_length(const struct lexer *l)
{
	const char *at = l->at + count_digits(l, l->at);
	if (l->end - at > 1 && at[0] == '.' && count_digits(l, at + 1))
		at += 1 + count_digits(l, at + 1);
	if (l->end - at > 1 && *at == 'e') {
		bool sign = at[1] == '+' || at[1] == '-';
		size_t exponent = count_digits(l, at + 1 + sign);
		at += exponent ? 1 + sign + exponent : 0;
	}
	if (at < l->end && (*at == 'i' || *at == 'l'))
		at++;
	return at - l->at;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that \xHH in a quoted name denotes.  A NUL, which would end the name, is a fault. */
static char read_escape(struct lexer *l, const char *at)
{
	int high = -1, low = -1;
	if (l->end - at > 3 && at[1] == 'x') {
		high = hex_digit(at[2]);
		low = hex_digit(at[3]);
	}
	if (high < 0 || low < 0 || high + low == 0)
		lex_fail(l, "a byte is \\x and two small hexadecimal digits",
			 "a backslash that escapes nothing");
	return high * 16 + low;
}

static void take_quoted(struct lexer *l)
{
	struct str name = str_in(l->arena);
	const char *at = l->at + 1;
	for (; at < l->end && *at != '`' && *at != '\n'; at++) {
		char c = *at == '\\' ? read_escape(l, at) : *at;
		if (c == 0)
			lex_fail(l, NULL, "a zero byte in a name");
		at += *at == '\\' ? 3 : 0;
		str_add(&name, &c, 1);
	}
	if (at >= l->end || *at != '`')
		lex_fail(l, NULL, "a quoted name does not end on its line");
	l->token = (struct token){QUOTED, str_text(&name), name.n, l->at};
	l->at = at + 1;
}

static void take_token(struct lexer *l, enum token_kind kind, size_t length)
{
	l->token = (struct token){kind, l->at, length, l->at};
	l->at += length;
}

void lex_next(struct lexer *l)
{
	skip_space(l);
	size_t left = l->end - l->at, name = ilir_name_length(l->at, left);
	l->token.from = l->at;
	if (!left)
		take_token(l, END, 0);
	else if (name)
		take_token(l, WORD, name);
	else if (isdigit((unsigned char)*l->at))
		take_token(l, NUMBER, number_length(l));
	else if (*l->at == '`')
		take_quoted(l);
	else if (left > 1 && (!memcmp(l->at, "..", 2) || !memcmp(l->at, "<=", 2) || !memcmp(l->at, "==", 2)))
		take_token(l, PUNCTUATION, 2);
	else
		take_token(l, PUNCTUATION, 1);
}

bool lex_is_next(const struct lexer *l, const char *text)
{
	return (l->token.kind == WORD || l->token.kind == PUNCTUATION) && strlen(text) == l->token.length &&
	       memcmp(text, l->token.text, l->token.length) == 0;
}

bool lex_accept(struct lexer *l, const char *text)
{
	bool found = lex_is_next(l, text);
	if (found)
		lex_next(l);
	return found;
}

void lex_expect(struct lexer *l, const char *text)
{
	if (!lex_is_next(l, text)) {
		struct str s = str_in(l->arena);
		str_printf(&s, "'%s'", text);
		lex_expected(l, str_text(&s));
	}
	lex_next(l);
}

int lex_one_of(struct lexer *l, const char *const *words, int n, const char *what)
{
	for (int i = 0; i < n; i++)
		if (lex_accept(l, words[i]))
			return i;
	lex_expected(l, what);
}

bool lex_at_name(const struct lexer *l)
{
	return l->token.kind == QUOTED ||
	       (l->token.kind == WORD && !ilir_is_reserved(l->token.text, l->token.length));
}

const char *lex_name(struct lexer *l, const char *what)
{
	if (!lex_at_name(l))
		lex_expected(l, what);
	const char *text = arena_text(l->arena, l->token.text, l->token.length);
	lex_next(l);
	return text;
}

/* --- numbers --- */

void lex_number(struct lexer *l, char text[LEX_LONGEST_NUMBER])
{
	if (l->token.kind != NUMBER)
		lex_expected(l, "a number");
	if (l->token.length >= LEX_LONGEST_NUMBER)
		lex_fail(l, NULL, "a number of %zu characters", l->token.length);
	memcpy(text, l->token.text, l->token.length);
	text[l->token.length] = 0;
}

uint32_t lex_nan(struct lexer *l)
{
	uint32_t bits = 0;
	if (l->at == l->end || *l->at != '(')
		return 0x400000;
	for (l->at++; l->at < l->end && hex_digit(*l->at) >= 0 && bits < 0x80000; l->at++)
		bits = bits * 16 + hex_digit(*l->at);
	lex_next(l);
	if (!bits || bits > 0x7fffff || !lex_is_next(l, ")"))
		lex_expected(l, "the mantissa of a NaN");
	return bits;
}
