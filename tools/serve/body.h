/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A text of JSON under construction. */
#ifndef ESPALIER_TOOLS_SERVE_BODY_H
#define ESPALIER_TOOLS_SERVE_BODY_H

#include "espalier.h"

#include <stdbool.h>

/* Zero at the beginning.  Without memory `lost` is set, and what is put afterwards is dropped. */
struct body {
	char *text;
	size_t n, capacity;
	bool lost;
};

void body_add(struct body *, const char *text, size_t length);
void body_puts(struct body *, const char *text);
/* A string in quotes; bytes that are no UTF-8 become U+FFFD. */
void body_string(struct body *, const char *text, size_t length);
void body_integer(struct body *, int64_t);
/* The elements of an array with commas between them: floats by the shortest decimals that read back as the
 * same binary32, or null for NaN and infinities, which JSON cannot express; bools as true and false. */
void body_elements(struct body *, const void *elements, esp_dtype, size_t n);
/* The text, for free(), with a NUL behind its *n bytes; NULL when memory ran out.  The body is empty then. */
char *body_take(struct body *, size_t *n);

/* Bytes of the shortest spelling of a number that reads back as the same binary32; without a NUL. NaN and
 * infinities are null. */
enum { FLOAT_BYTES = 24 };
size_t put_float(char to[FLOAT_BYTES], float);

#endif
