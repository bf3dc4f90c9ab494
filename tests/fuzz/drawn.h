/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs drawn from bytes: a model of the whole language, a schedule, weights, structures.  What draws is
 * that of tests/models, its choices are the bytes as long as there are any; what follows is a function of
 * them too, so that few bytes are a program as well. */
#ifndef ESPALIER_TESTS_FUZZ_DRAWN_H
#define ESPALIER_TESTS_FUZZ_DRAWN_H

#include "tests/fuzz/fuzz.h"

/* Which variants of compiling it are compared, beside the oracle and the loops as they are first bounded. */
enum fuzz_variants {
	FUZZ_SOME_PASSES, /* the interpreter after a pass and after the last; ESPALIER_FUZZ_DEEP=1: after each
			   */
	FUZZ_BACKENDS	  /* the interpreter after the last pass, and every back end that there is */
};

/* Compares the variants with each other, bit for bit, and with the oracle, within rounding. Always 0. */
int fuzz_drawn(enum fuzz_variants, const uint8_t *bytes, size_t n);

#endif
