/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Scans JSON token by token.  The caller knows what it needs and skips the rest; nesting costs no C stack. */
#ifndef ESPALIER_IO_JSON_SCAN_H
#define ESPALIER_IO_JSON_SCAN_H

#include "io/text.h"

enum { JSON_DEPTH = 512 }; /* nesting of values that are skipped, at most */

/* The scanner: its place, and the first fault with its place.  `end` lies behind the text's last bracket, so
 * that numbers end before it. */
struct json {
	const char *at, *end;
	const char *fault, *fault_at; /* NULL = none */
};

/* Sets the fault, unless there is one already; always false. */
bool json_fault(struct json *, const char *at, const char *message);
#define json_fault(...) diag_false(json_fault(__VA_ARGS__))
/* The next byte that is no space, 0 = there is none. */
char json_peek(struct json *);
/* Whether that byte is `c`, which is then behind the scanner. */
bool json_take(struct json *, char c);
/* The same, but anything else is a fault. */
bool json_expect(struct json *, char c);
/* In a list that ends with `close`: whether another element follows; `first` is true before the first and is
 * changed.  After a fault there is none. */
bool json_more(struct json *, char close, bool *first);

/* A string without its escapes; in the arena if there were some.  NULL text after a fault. */
struct io_span json_text(struct json *, struct arena *);
bool json_number(struct json *, double *);
/* Converts a number to an integer of 32 bits; false when it is none. */
bool json_to_integer(double, int32_t *);
bool json_take_null(struct json *);
/* Skips any value, but checks its form. */
bool json_skip(struct json *);

#endif
