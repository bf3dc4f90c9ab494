/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Windows over axes of space, as convolutions and pools have them. */
#ifndef ESPALIER_ONNX_WINDOWS_H
#define ESPALIER_ONNX_WINDOWS_H

#include "onnx/operators.h"

enum { ONNX_SPACE = RA_MAX_RANK - 2 };

/* By axis of space. */
struct onnx_windows {
	int n;
	int64_t in[ONNX_SPACE], out[ONNX_SPACE], kernel[ONNX_SPACE], stride[ONNX_SPACE], dilation[ONNX_SPACE],
	    before[ONNX_SPACE], after[ONNX_SPACE];
};

/* Elements of an axis that a window reaches over. */
int64_t onnx_reach(const struct onnx_windows *, int axis);
/* How many elements of the window at a place of an axis lie in the value, or in it and its borders. */
int64_t onnx_count_inside(const struct onnx_windows *, int axis, int64_t at, bool padding);
/* Writes the indices of an element of each window, from the axis of the value on at which space begins: each after a
 * comma.  Indices of kernels are reduced ones, from 2 on. */
void onnx_put_windows(const struct onnx_op *, struct str *, const struct onnx_windows *, int first);
/* Writes the ranges of these indices, with a text before the first. */
void onnx_put_kernel(const struct onnx_op *, struct str *, const struct onnx_windows *, const char *before);

#endif
