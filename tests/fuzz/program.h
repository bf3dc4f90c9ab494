/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A program run once, over made-up weights and two small structures: for targets that have an image with
 * code. */
#ifndef ESPALIER_TESTS_FUZZ_PROGRAM_H
#define ESPALIER_TESTS_FUZZ_PROGRAM_H

#include "runtime/runtime.h"
#include "tests/fuzz/fuzz.h"

/* The elements of all rows of all outputs, one after the other. */
struct fuzz_results {
	float *at;
	size_t n;
};

/* Binds the image's own weights, or others, and runs, unless the image wants much data.  False after a
 * diagnostic: memory is out, or the structures are not what it takes.  Results are in the arena; NULL = they
 * are only looked at. */
bool fuzz_run_program(struct fuzz *, const struct image *, struct fuzz_results *);

#endif
