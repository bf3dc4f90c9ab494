/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: what parse_loops.c reads, token by token.  The first fault ends the parse, by a jump to
 * where `failed` was set. */
#ifndef ESPALIER_ILIR_LEX_LOOPS_H
#define ESPALIER_ILIR_LEX_LOOPS_H

#include "base/diag.h"
#include "base/str.h"

enum { LEX_LONGEST_NUMBER = 48 };

enum token_kind { END, WORD /* bare */, QUOTED, NUMBER, PUNCTUATION };

struct token {
	enum token_kind kind;
	const char *text; /* QUOTED: the name itself */
	size_t length;
	const char *from; /* where it stands */
};

struct lexer {
	struct arena *arena;
	struct diags *diags;
	const char *file, *begin, *at, *end;
	struct token token; /* the next one */
	jmp_buf failed;
};

/* A fault at the next token; the hint may be NULL. */
__attribute__((format(printf, 3, 4))) _Noreturn void lex_fail(struct lexer *, const char *hint,
							      const char *format, ...);
/* The fault that something else stands there. */
_Noreturn void lex_expected(struct lexer *, const char *what);
/* Moves to the next token. */
void lex_next(struct lexer *);
/* Whether the next token is this word or mark. */
bool lex_sees(const struct lexer *, const char *text);
/* The same, and moves past it. */
bool lex_accept(struct lexer *, const char *text);
/* The same, but anything else is a fault. */
void lex_expect(struct lexer *, const char *text);
/* Which word of a table comes next. */
int lex_one_of(struct lexer *, const char *const *words, int n, const char *what);
bool lex_at_name(const struct lexer *);
const char *lex_name(struct lexer *, const char *what);
/* The text of a number, terminated; does not move. */
void lex_number(struct lexer *, char text[LEX_LONGEST_NUMBER]);
/* (7ff), right behind nan: the mantissa in hexadecimal; without it that of the default NaN. */
uint32_t lex_nan(struct lexer *);

#endif
