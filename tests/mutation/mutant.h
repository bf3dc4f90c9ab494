/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. */
#ifndef ESPALIER_TESTS_MUTATION_MUTANT_H
#define ESPALIER_TESTS_MUTATION_MUTANT_H

#include "compile/compilation.h"
#include "tests/models/agree.h"

/* The place to break, among those where a fault is possible: the one after `skip` others. */
struct choice {
	int skip;
	bool done;
};

static inline bool is_chosen(struct choice *c)
{
	if (c->done || c->skip-- > 0)
		return false;
	return c->done = true;
}

#endif
