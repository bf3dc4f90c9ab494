/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How long the steps of some work took, for tables that people read. */
#ifndef ESPALIER_BASE_TIMES_H
#define ESPALIER_BASE_TIMES_H

#include "base/str.h"
#include "base/vec.h"

/* The texts are not copied. */
struct times_entry {
	const char *folder, *what;
	double seconds;
};

struct times {
	struct arena *arena;
	VEC(struct times_entry) entries;
};

/* Seconds of a clock that never goes back; where it began means nothing. */
double times_clock(void);
/* Adds a step that took so many seconds.  `times` NULL: does nothing. */
void times_note(struct times *, const char *folder, const char *what, double seconds);
/* Adds a step that began at `begin`, by times_clock, and ends now.  Returns the time of its end. */
double times_since(struct times *, const char *folder, const char *what, double begin);
/* A line for each step: milliseconds, folder, what it was. */
void times_print(const struct times *, struct str *);

#endif
