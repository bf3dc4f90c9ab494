/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The description of a tensor: all but its values. */
#ifndef ESPALIER_BASE_TENSOR_H
#define ESPALIER_BASE_TENSOR_H

#include "base/dtype.h"

#include <stdint.h>

/* The most axes that any value of a model has: other limits are made of it. */
enum { TENSOR_MAX_RANK = 8 };

/* Row-major, no padding. */
struct tensor_info {
	const char *name;
	enum dtype dtype;
	int rank;
	int64_t shape[TENSOR_MAX_RANK];
};

static inline int64_t tensor_elements(const struct tensor_info *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->shape[i];
	return n;
}

#endif
