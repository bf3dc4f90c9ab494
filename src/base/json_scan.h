/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Scans JSON (RFC 8259) where it stands.  The caller takes what it needs and skips the rest; no memory is
 * taken, and nesting costs no C stack.  Like base/decimal.h and base/utf8.h it includes nothing else of the
 * library, so that the command can have it, too. */
#ifndef ESPALIER_BASE_JSON_SCAN_H
#define ESPALIER_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_DEPTH = 512 }; /* nesting of values that are skipped, at most */

/* The scanner's place, and the first fault with its place.  `end` lies behind a bracket or quote, so that
 * numbers end before it. */
struct scan {
	const char *at, *end;
	const char *fault, *fault_at; /* NULL = none */
};

/* A string without its quotes, as it stands. */
struct span {
	const char *text; /* NULL = there is none */
	size_t n;
	bool escaped; /* there is a backslash in it */
};

/* A number as it stands: digits * 10^exponent, but for digits that were left out. */
struct number {
	const char *text;
	uint64_t digits;
	int64_t exponent;
	bool negative;
	bool whole; /* it has neither a point nor an exponent */
	bool cut;   /* it has more digits than `digits` holds */
};

/* Sets the fault, unless there is one already; always false. */
bool scan_fault(struct scan *, const char *at, const char *message);
/* Shows compilers and analysers that see one file alone that it is always false. */
static inline bool scan_failed(bool said)
{
	(void)said;
	return false;
}
#define scan_fault(...) scan_failed(scan_fault(__VA_ARGS__))
/* The next byte that is no space, 0 = there is none. */
char scan_peek(struct scan *);
/* Whether that byte is `c`, which is then behind the scanner. */
bool scan_take(struct scan *, char c);
/* The same, but anything else is a fault. */
bool scan_expect(struct scan *, char c);
/* In a list or object that ends with `close`: whether another element follows; `first` is true before the
 * first and is changed. After a fault there is none. */
bool scan_more(struct scan *, char close, bool *first);
/* In an object: its next key, behind whose colon the scanner is; false at the end, or after a fault. */
bool scan_key(struct scan *, struct span *, bool *first);
/* A string in valid UTF-8, without NUL. */
bool scan_string(struct scan *, struct span *);
bool scan_number(struct scan *, struct number *);
/* true or false. */
bool scan_truth(struct scan *, bool *);
/* Whether null is next, which is then behind the scanner. */
bool scan_null(struct scan *);
/* Skips any value, but checks its form. */
bool scan_skip(struct scan *);
/* Moves behind a list and looks at its brackets and strings alone; false after a fault. */
bool scan_pass_list(struct scan *);

/* Writes what the string means to `to`, which has n bytes, and returns how many it takes. */
size_t span_copy(struct span, char *to);
bool span_is(struct span, const char *text);

/* The nearest binary32 or binary64, the even one of two; false when it is out of range. */
bool number_double(const struct number *, double *);
bool number_float(const struct number *, float *);
/* False when it has a fraction or an exponent, or is out of range. */
bool number_integer(const struct number *, int64_t low, int64_t high, int64_t *);

#endif
