/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* An allocator of which the first requests succeed, and none after them. */
#ifndef ESPALIER_TESTS_BUDGET_H
#define ESPALIER_TESTS_BUDGET_H

#include "base/memory.h"

struct budget {
	long left; /* requests that succeed yet */
	long held; /* blocks that are out */
};

/* `context`: the budget. */
static inline void *resize_budget(void *context, void *p, size_t old_size, size_t new_size)
{
	struct budget *b = context;
	if (new_size && b->left-- <= 0)
		return NULL;
	b->held += (new_size && !p) - (!new_size && p);
	return allocator_default.resize(NULL, p, old_size, new_size);
}

#endif
