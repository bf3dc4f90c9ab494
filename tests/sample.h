/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which of many like things a test does.  Where it does the same to each, for each of many models, one in so many is enough at a
 * time: which is in turn, so that each kind of thing, and each thing done, remains.  ESPALIER_SAMPLE=FIRSTxEACH takes others:
 * one in EACH from FIRST on, 0x1 all. */
#ifndef ESPALIER_TESTS_SAMPLE_H
#define ESPALIER_TESTS_SAMPLE_H

#include "tests/sanitizers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A sanitizer looks at the code that runs, not at numbers, and makes it several times slower: of random things, such as seeds, it
 * is given one in so many. */
enum { SAMPLE = SHADOWED ? 8 : 1 };

struct sample {
	unsigned first, each;
};

static inline struct sample choose_sample(void)
{
	enum { USUAL = 4, SANITIZED = 16 };
	struct sample told, usual = {0, SHADOWED ? SANITIZED : USUAL};
	const char *text = getenv("ESPALIER_SAMPLE");
	return text && sscanf(text, "%ux%u", &told.first, &told.each) == 2 && told.each ? told : usual;
}

/* Whether thing i is in the sample. */
static inline bool in_sample(size_t i)
{
	struct sample s = choose_sample();
	return i % s.each == s.first % s.each;
}

#endif
