/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights that espalier quantised: a safetensors file whose metadata says so (doc/quantise.md has the format).
 *
 *     W             I8, integers: an element of the weights is its integer times its scale
 *     scale(W)      F32 [D, 1], of as many axes as W, each of the same extent or of 1: above zero, and finite
 *     bound(W*x)    F32 [], the largest magnitude that W is to multiply: above 2^-64 and below 2^64
 *
 * Tensors that were not quantised are as in other files.  Once such a file is opened, W is described and read as F32. */
#ifndef ESPALIER_IO_QUANTISED_H
#define ESPALIER_IO_QUANTISED_H

#include "io/safetensors.h"

#define IO_QUANTISED_KEY "espalier"
#define IO_QUANTISED_VERSION "quantised 1"
enum { IO_QUANTISED_MOST = 127 }; /* the largest integer; -128 is none */
/* Bounds lie between these two, so that scales times bounds are numbers. */
#define IO_QUANTISED_LEAST_BOUND 0x1p-64f
#define IO_QUANTISED_LARGEST_BOUND 0x1p64f

struct io_quantised {
	const char *precision; /* as --precision takes it, of products */
	const char *math;
	const char *assume; /* as --assume takes it */
	const char *rules; /* as --rules takes it */
	const char *model; /* a checksum of the model that it was made for */
	const char *kept;  /* names of products that stay in f32, a line each */
};

/* What a tensor that is kept as integers is multiplied by; `at` NULL = it is not. */
struct io_scale {
	const float *at;
	int64_t shape[TENSOR_MAX_RANK];
};

/* Completes an open file: checks all scales and bounds of one that was quantised, orders its tensors such that those of the
 * model come first, and sets `own` to their number.  Leaves another file as it is.  May escape.  False after
 * `bad-quantised`. */
bool io_complete_quantised(struct arena *, struct diags *, struct io_safetensors *);
/* Widens elements first .. first+count-1 of tensor i. */
void io_widen_quantised(const struct io_safetensors *, int i, int64_t first, int64_t count, const int8_t *from, float *to);

#endif
