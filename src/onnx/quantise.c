/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Quantised values: an element q stands for (q - zero point) * scale.  Scales and zero points are single elements, or
 * one for each index of an axis. */
#include "onnx/operators.h"

/* A list of one element for each index of an axis, so that it is broadcast to `rank` axes; or a single element. */
static struct onnx_operand spread_list(const struct onnx_op *o, struct onnx_operand x, int axis, int rank)
{
	struct onnx_shape shape = {.rank = rank};
	if (onnx_elements(&x.shape) == 1)
		return onnx_reshape(o, x, &(struct onnx_shape){0});
	if (x.shape.rank != 1)
		return x;
	for (int d = 0; d < rank; d++)
		shape.dim[d] = d == axis ? x.shape.dim[0] : 1;
	return onnx_reshape(o, x, &shape);
}

/* Numbers as integers of a type, the nearest that it has.  Not given after a diagnostic. */
static struct onnx_operand saturate_value(const struct onnx_op *o, struct onnx_operand x, enum onnx_type type)
{
	if (type != ONNX_UINT8 && type != ONNX_INT8 && type != ONNX_INT16) {
		onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "values are quantised to uint8, int8 or int16 here, not to %s",
			       onnx_type_traits_of(type)->name);
		return (struct onnx_operand){0};
	}
	int range = 1 << onnx_type_traits_of(type)->bits, least = type == ONNX_UINT8 ? 0 : -range / 2;
	return onnx_map(o, x, type,
			onnx_format(o, "cast(minimum(maximum(a, %d), %d), i32)", least, least + range - 1));
}

/* x / scale + zero, where `zero` may be left out. */
static struct onnx_operand quantise_value(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand scale,
					  struct onnx_operand zero, enum onnx_type type)
{
	struct onnx_shape shape;
	x = onnx_cast(o, x, ONNX_FLOAT);
	if (!onnx_broadcast(o, &x.shape, &scale.shape, &shape) ||
	    (zero.given && !onnx_broadcast(o, &shape, &zero.shape, &shape)))
		return (struct onnx_operand){0};
	struct onnx_operand *args[] = {&x, &scale, &zero};
	x = onnx_formula(o, ONNX_FLOAT, &shape, args, 2 + zero.given,
			 zero.given ? "round(a / b) + cast(c, f32)" : "round(a / b)");
	return saturate_value(o, x, type);
}

static bool check_blocks(const struct onnx_op *o)
{
	return !onnx_int(o, "block_size") ||
	       onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "scales of blocks are not supported");
}

/* Sets the scale and the zero point, which are inputs from `at` on, for a value of the shape. */
static bool read_scale(const struct onnx_op *o, int at, const struct onnx_shape *shape, struct onnx_operand *scale,
		       struct onnx_operand *zero)
{
	int axis = shape->rank && onnx_elements(&o->in[at].shape) > 1 ? onnx_axis(o, onnx_int(o, "axis"), shape->rank) : 0;
	if (axis < 0 || !onnx_given(o, at))
		return false;
	*scale = spread_list(o, o->in[at], axis, shape->rank);
	*zero = onnx_given(o, at + 1) ? spread_list(o, o->in[at + 1], axis, shape->rank) : (struct onnx_operand){0};
	return true;
}

bool onnx_write_quantize_linear(struct onnx_op *o)
{
	struct onnx_operand scale, zero;
	if (!check_blocks(o) || !read_scale(o, 1, &o->in[0].shape, &scale, &zero))
		return false;
	enum onnx_type type = zero.given			  ? o->in[2].type
			      : onnx_int(o, "output_dtype") > 0 ? (enum onnx_type)onnx_int(o, "output_dtype")
								  : ONNX_UINT8;
	o->out[0] = quantise_value(o, o->in[0], scale, zero, type);
	return o->out[0].given;
}

bool onnx_write_dequantize_linear(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], scale, zero;
	struct onnx_shape shape;
	if (!check_blocks(o) || !read_scale(o, 1, &x.shape, &scale, &zero) ||
	    !onnx_broadcast(o, &x.shape, &scale.shape, &shape) ||
	    (zero.given && !onnx_broadcast(o, &shape, &zero.shape, &shape)))
		return false;
	struct onnx_operand *args[] = {&x, &scale, &zero};
	o->out[0] = onnx_formula(o, ONNX_FLOAT, &shape, args, 2 + zero.given,
				 zero.given ? "(cast(a, f32) - cast(c, f32)) * b" : "cast(a, f32) * b");
	return true;
}

/* To uint8, by a range that has 0 in it. */
bool onnx_write_dynamic_quantize_linear(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	const struct onnx_shape single = {0};
	unsigned all = (1u << x.shape.rank) - 1;
	struct onnx_operand least = onnx_reshape(o, onnx_reduce(o, x, "min", all, "$"), &single),
			    most = onnx_reshape(o, onnx_reduce(o, x, "max", all, "$"), &single);
	struct onnx_operand scale = onnx_two(o, least, most, ONNX_FLOAT, "(maximum(b, 0) - minimum(a, 0)) / 255");
	struct onnx_operand zero = onnx_two(o, least, scale, ONNX_FLOAT, "round(-minimum(a, 0) / b)");
	zero = saturate_value(o, zero, ONNX_UINT8);
	o->out[0] = quantise_value(o, x, scale, zero, ONNX_UINT8);
	if (o->outs > 1)
		o->out[1] = scale;
	if (o->outs > 2)
		o->out[2] = zero;
	return true;
}

/* --- products: of a, its scale and zero point, b likewise, and the scale and zero point of the result --- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS };

/* Writes the product of integers that another operator is, by its own inputs. */
static struct onnx_operand write_product(const struct onnx_op *o, onnx_write_function *write)
{
	struct onnx_operand in[4 + ONNX_INPUT_ROOM] = {o->in[A], o->in[B], o->in[A_ZERO], o->in[B_ZERO]}, out[1] = {{0}};
	struct onnx_op inner = *o;
	inner.in = in;
	inner.ins = 4;
	inner.out = out;
	inner.outs = 1;
	return write(&inner) ? out[0] : (struct onnx_operand){0};
}

/* Sums of products as the result's type; scales are of an axis each. */
static bool scale_product(struct onnx_op *o, struct onnx_operand sum, int a_axis, int b_axis)
{
	int rank = sum.shape.rank;
	if (!sum.given)
		return false;
	struct onnx_operand a = spread_list(o, o->in[A_SCALE], a_axis, rank), b = spread_list(o, o->in[B_SCALE], b_axis, rank),
			    y = spread_list(o, o->in[Y_SCALE], b_axis, rank), zero = spread_list(o, o->in[Y_ZERO], b_axis, rank);
	struct onnx_shape shape = sum.shape;
	struct onnx_operand *args[] = {&sum, &a, &b, &y, &zero};
	for (int i = 1; i < 5; i++)
		if (!onnx_broadcast(o, &shape, &args[i]->shape, &shape))
			return false;
	struct onnx_operand x =
	    onnx_formula(o, ONNX_FLOAT, &shape, args, 5, "round(cast(a, f32) * (b * c / d)) + cast(e, f32)");
	o->out[0] = saturate_value(o, x, o->in[Y_ZERO].type);
	return o->out[0].given;
}

static bool has_scales(const struct onnx_op *o)
{
	for (int i = A; i <= Y_ZERO; i++)
		if (!onnx_given(o, i))
			return false;
	return true;
}

bool onnx_write_qlinear_matmul(struct onnx_op *o)
{
	if (!has_scales(o))
		return false;
	struct onnx_operand sum = write_product(o, onnx_write_matmul_integer);
	return scale_product(o, sum, sum.shape.rank - 2, sum.shape.rank - 1);
}

bool onnx_write_qlinear_conv(struct onnx_op *o)
{
	if (!has_scales(o))
		return false;
	struct onnx_operand sum = write_product(o, onnx_write_conv_integer);
	if (sum.given && onnx_given(o, BIAS))
		sum = onnx_two(o, sum, spread_list(o, o->in[BIAS], 1, sum.shape.rank), ONNX_INT32, "a + b");
	return scale_product(o, sum, 1, 1);
}
