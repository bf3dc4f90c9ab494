/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The tokens that parse_loops.c reads; only this folder includes it.  The first fault ends the parse by a jump
 * to `failed`. */
#ifndef ESPALIER_ILIR_LEX_LOOPS_H
#define ESPALIER_ILIR_LEX_LOOPS_H

#include "base/diag.h"
#include "base/str.h"

enum { LEX_LONGEST_NUMBER = 48 };

enum token_kind { END, WORD /* bare */, QUOTED, NUMBER, PUNCTUATION };

struct token {
	enum token_kind kind;
	const char *text; /* QUOTED: without the quotes, unescaped */
	size_t length;
	const char *from; /* its position in the source */
};

struct lexer {
	struct arena *arena;
	struct diags *diags;
	const char *file, *begin, *at, *end;
	struct token token; /* the next one */
	jmp_buf failed;
};

/* Reports a fault at the next token and ends the parse; the hint may be NULL. */
__attribute__((format(printf, 3, 4))) _Noreturn void lex_fail(struct lexer *, const char *hint,
							      const char *format, ...);
/* Reports that the next token is not `what`. */
_Noreturn void lex_expected(struct lexer *, const char *what);
/* Moves to the next token. */
void lex_next(struct lexer *);
/* Whether the next token is this word or mark. */
bool lex_is_next(const struct lexer *, const char *text);
/* Moves past the next token if it is this word or mark, and returns whether it was. */
bool lex_accept(struct lexer *, const char *text);
/* Moves past the next token, which must be this word or mark. */
void lex_expect(struct lexer *, const char *text);
/* Moves past the next token, which must be a word of the table, and returns its index. */
int lex_one_of(struct lexer *, const char *const *words, int n, const char *what);
/* Whether the next token is a name. */
bool lex_at_name(const struct lexer *);
/* Moves past the next token, which must be a name, and returns it. */
const char *lex_name(struct lexer *, const char *what);
/* Copies the text of the next token, which must be a number; does not move past it. */
void lex_number(struct lexer *, char text[LEX_LONGEST_NUMBER]);
/* Reads the mantissa of a NaN, such as (7ff) right after `nan`; without one it is that of the default NaN. */
uint32_t lex_nan(struct lexer *);

#endif
