/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What operators of TensorFlow Lite share.  Each computes in f32, or in bytes: an element q of int8 stands
 * for (q - zero point) * scale, sums of products are exact in i32, and are scaled to the result in fixed
 * point. */
#ifndef ESPALIER_TFLITE_REQUANTISE_H
#define ESPALIER_TFLITE_REQUANTISE_H

#include "onnx/operators.h"
#include "tflite/fixed_point.h"

enum lite_kind { LITE_REFUSED, LITE_FLOATS, LITE_BYTES };

struct lite_scale {
	float scale;
	int64_t zero;
};

/* How a node computes, of which the inputs in the mask and output 0 are of the type of input 0, and have one
 * scale each if they are bytes.  LITE_REFUSED after a diagnostic. */
enum lite_kind lite_find_kind(const struct onnx_op *, unsigned inputs);
/* The same of the inputs alone. */
enum lite_kind lite_find_input_kind(const struct onnx_op *, unsigned inputs);
/* The scales of an input or output, NULL = it has none; the first of them, of what lite_find_kind has
 * checked. */
const struct onnx_quantisation *lite_input_scales(const struct onnx_op *, int input);
const struct onnx_quantisation *lite_output_scales(const struct onnx_op *, int output);
struct lite_scale lite_input(const struct onnx_op *, int);
struct lite_scale lite_output(const struct onnx_op *, int);
/* Whether output 0 is of int8, with one scale; or, of the other kind, of f32.  False after a diagnostic. */
bool lite_check_output(const struct onnx_op *, enum lite_kind);
/* Refuses a node of bytes where an input has another scale or zero point than the result. */
bool lite_check_same_scale(const struct onnx_op *, int input);

/* An input less its zero point, as i32. */
struct onnx_operand lite_subtract_zero(const struct onnx_op *, int input);
/* Integers times 2^left and a factor, rounded as fixed_scale does; or one factor for each index of the last
 * axis.  Not given after a diagnostic. */
struct onnx_operand lite_scale_integers(const struct onnx_op *, struct onnx_operand,
					const struct fixed_factor *, size_t n, int left);
/* i32 divided by 2^shift, rounded to the nearest, halves away from zero; 0 < shift < 32. */
struct onnx_operand lite_shift_integers(const struct onnx_op *, struct onnx_operand, int shift);
/* Elements of a list by integers: at x, counted from `least` on. */
struct onnx_operand lite_look_up(const struct onnx_op *, struct onnx_operand x, struct onnx_operand list,
				 int least, enum onnx_type);
/* The factor of a real number, which must be below 2^30.  False after a diagnostic. */
bool lite_find_factor(const struct onnx_op *, double real, struct fixed_factor *);

/* The bytes that the activation of a node lets through, by its number in the schema.  False after a
 * diagnostic. */
bool lite_find_range(const struct onnx_op *, int64_t activation, int64_t *least, int64_t *most);
/* The sum of integers and a zero point, kept in a range, as values of the type. */
struct onnx_operand lite_clamp(const struct onnx_op *, struct onnx_operand, int64_t zero, int64_t least,
			       int64_t most, enum onnx_type);
/* Floats through the activation of a node.  Not given after a diagnostic. */
struct onnx_operand lite_activate(const struct onnx_op *, struct onnx_operand, int64_t activation);

/* products.c: windows by the options of a node, of [batch, height, width, channels], with dilations if it has
 * them.  False after a diagnostic. */
struct onnx_windows;
bool lite_read_windows(const struct onnx_op *, struct onnx_windows *, int64_t height, int64_t width,
		       bool dilated);

#define TFLITE_OP(name, last, union, options, attributes, write, text)                                       \
	onnx_write_function onnx_write_tflite_##write;
#include "tflite/tflite_ops.def"

#endif
