/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef ESPALIER_TESTS_MUTATION_MUTANT_H
#define ESPALIER_TESTS_MUTATION_MUTANT_H

#include "compile/compilation.h"
#include "tests/models/ways.h"

/* Which of the places where something can be broken: the one after so many. */
struct choice {
	int skip;
	bool done;
};

static inline bool chosen(struct choice *c)
{
	if (c->done || c->skip-- > 0)
		return false;
	return c->done = true;
}

#endif
