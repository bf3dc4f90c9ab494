/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Words of the text form, shared by printer and parser. */
#ifndef ESPALIER_ILIR_SPELLING_H
#define ESPALIER_ILIR_SPELLING_H

#include "ilir/ilir.h"

enum { ILIR_BUFFER_KINDS = ILIR_REGISTER + 1, ILIR_DOMAINS = IMAGE_DOMAIN_BINDING + 1 };

extern const char *const ilir_kind_word[ILIR_BUFFER_KINDS]; /* by image_buffer_kind */
extern const char *const ilir_size_word[IMAGE_SIZES];
extern const char *const ilir_domain_word[ILIR_DOMAINS];
extern const char *const ilir_dtype_word[ILIR_DTYPES];
extern const char *const ilir_truth_word[2];
extern const char *const ilir_loop_word[ILIR_UNROLLED + 1];

/* The length of the name that `text` begins with; 0 = none.  A dot belongs to a name when a letter, digit or
 * underscore follows, so that a..b is two names. */
size_t ilir_name_length(const char *text, size_t length);
/* A word that means something in an expression or at the beginning of a statement: as a name it must be
 * quoted. */
bool ilir_is_reserved(const char *word, size_t length);
/* Infix: the spelling is punctuation. */
bool ilir_is_infix(enum ilir_op);

/* The first line of a statement, cut when it is very long. */
void ilir_print_stmt(const struct ilir_module *, const struct ilir_stmt *, struct str *);

#endif
