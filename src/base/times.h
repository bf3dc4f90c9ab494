/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How long parts of some work took, for tables that people read. */
#ifndef ESPALIER_BASE_TIMES_H
#define ESPALIER_BASE_TIMES_H

#include "base/str.h"
#include "base/vec.h"

/* The texts are not copied. */
struct times_entry {
	const char *room, *what;
	double seconds;
};

struct times {
	struct arena *arena;
	VEC(struct times_entry) entries;
};

/* Seconds, from some time on. */
double times_clock(void);
/* Notes what took so many seconds.  `times` NULL = nobody asks. */
void times_note(struct times *, const char *room, const char *what, double seconds);
/* Notes what has been going on since `begin`, and returns the time that it is. */
double times_since(struct times *, const char *room, const char *what, double begin);
/* A line for each: milliseconds, room, what. */
void times_print(const struct times *, struct str *);

#endif
