/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* JSON, token by token: what is read is known beforehand, the rest is skipped; nesting costs no C stack. */
#ifndef ESPALIER_IO_JSON_SCAN_H
#define ESPALIER_IO_JSON_SCAN_H

#include "io/text.h"

enum { JSON_DEPTH = 512 }; /* of what is skipped, at most */

/* Where the scanner is, and what it found wrong, where.  `end` lies behind the text's last bracket, so that
 * numbers end before it. */
struct json {
	const char *at, *end;
	const char *fault, *fault_at; /* NULL = none */
};

/* Always false. */
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

/* The text that is meant; in the arena if there are escapes.  NULL text after a fault. */
struct io_span json_text(struct json *, struct arena *);
bool json_number(struct json *, double *);
/* Whether a number is a whole one of 32 bits, which it is then. */
bool json_whole(double, int32_t *);
bool json_take_null(struct json *);
/* Any value, checked but not kept. */
bool json_skip(struct json *);

#endif
