/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is said of a tensor apart from its values. */
#ifndef ESPALIER_BASE_TENSOR_H
#define ESPALIER_BASE_TENSOR_H

#include <stdint.h>

enum tensor_dtype { TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_I32, TENSOR_I64 };
enum { TENSOR_MAX_RANK = 4 };

/* Row-major, no padding. */
struct tensor_info {
	const char *name;
	enum tensor_dtype dtype;
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

static inline int64_t tensor_element_bytes(enum tensor_dtype d)
{
	return d == TENSOR_F16 || d == TENSOR_BF16 ? 2 : d == TENSOR_I64 ? 8 : 4;
}

#endif
