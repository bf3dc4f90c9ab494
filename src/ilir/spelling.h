/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The words of the text format, which printer and parser share. */
#ifndef ESPALIER_ILIR_SPELLING_H
#define ESPALIER_ILIR_SPELLING_H

#include "ilir/ilir.h"

enum { ILIR_BUFFER_KINDS = ILIR_REGISTER + 1, ILIR_DOMAINS = IMAGE_DOMAIN_BINDING + 1 };

extern const char *const ilir_kind_word[ILIR_BUFFER_KINDS]; /* by image_buffer_kind */
extern const char *const ilir_size_word[IMAGE_SIZES];
extern const char *const ilir_domain_word[ILIR_DOMAINS];
extern const char *const ilir_dtype_word[ILIR_DTYPES];
extern const char *const ilir_truth_word[2];
extern const char *const ilir_loop_word[ILIR_LOOP_KINDS];

/* The length of the name that `text` begins with; 0 = none.  A name contains a dot only before a letter,
 * digit or underscore, so that a..b is two names. */
size_t ilir_name_length(const char *text, size_t length);
/* Whether a word is one of the language, so that it must be quoted as a name. */
bool ilir_is_reserved(const char *word, size_t length);
/* Whether an operator is written between its operands, which those spelled in punctuation are. */
bool ilir_is_infix(enum ilir_op);

/* Writes the first line of a statement, shortened if it is very long. */
void ilir_print_stmt(const struct ilir_module *, const struct ilir_stmt *, struct str *);

#endif
