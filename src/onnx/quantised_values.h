/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What operators on quantised values share: an element q stands for (q - zero point) * scale. */
#ifndef ESPALIER_ONNX_QUANTISED_VALUES_H
#define ESPALIER_ONNX_QUANTISED_VALUES_H

#include "onnx/operators.h"

/* Checks a scale and a zero point, the latter only where it is given, of values of a type: scales that are known are positive
 * and finite, and a list has `extent` elements (1 = there is one scale for all; 0 = whatever can be broadcast).  False
 * after a diagnostic. */
bool onnx_check_scale(const struct onnx_op *, int scale, int zero, enum onnx_type, int64_t extent);
/* Checks a zero point alone, where it is given. */
bool onnx_check_zero(const struct onnx_op *, int zero, enum onnx_type, int64_t extent);
/* Checks the type of an input that is added to sums of products, where it is given. */
bool onnx_check_summand(const struct onnx_op *, int input);
/* One element, or known ones of f32 that are all the same, as a number without axes; more as they are. */
struct onnx_operand onnx_join_single(const struct onnx_op *, struct onnx_operand);
/* A zero point to be added in f32: one that is known is a number of the text. */
struct onnx_operand onnx_zero_number(const struct onnx_op *, struct onnx_operand zero);
/* Integers less a zero point, as i32.  One that is known is a number of the text, so that ranges of elements are known,
 * or not there at all where it is 0.  Not given after a diagnostic. */
struct onnx_operand onnx_subtract_zero(const struct onnx_op *, struct onnx_operand, struct onnx_operand zero);
/* The sums of products of a and b that an operator writes, of the node whose zero points are inputs 2 and 5. */
struct onnx_operand onnx_multiply_integers(const struct onnx_op *, struct onnx_operand a, struct onnx_operand b,
					   onnx_write_function *);
/* (x - zero) * scale, in f32. */
struct onnx_operand onnx_dequantise(const struct onnx_op *, struct onnx_operand x, struct onnx_operand scale,
				    struct onnx_operand zero);
/* round(x / scale) + zero, where `zero` may be left out, as the nearest number of the type.  Not given after a diagnostic. */
struct onnx_operand onnx_quantise(const struct onnx_op *, struct onnx_operand x, struct onnx_operand scale,
				  struct onnx_operand zero, enum onnx_type);
/* Whole numbers in f32 as integers of a type, the nearest that it has.  Not given after a diagnostic. */
struct onnx_operand onnx_saturate(const struct onnx_op *, struct onnx_operand, enum onnx_type);

#endif
