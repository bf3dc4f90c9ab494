/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Quantised values: an element q stands for (q - zero point) * scale.  Scales and zero points are single elements, or
 * one for each index of an axis. */
#include "onnx/quantised_values.h"

#include <float.h>
#include <stdlib.h>

/* Whether all elements of a known tensor are the same. */
static bool has_one_number(const struct onnx_tensor *t)
{
	bool one = t && t->elements;
	for (int64_t i = 1; one && i < t->elements; i++)
		one = onnx_number_at(t, i) == onnx_number_at(t, 0);
	return one;
}

struct onnx_operand onnx_join_single(const struct onnx_op *o, struct onnx_operand x)
{
	if (x.given && has_one_number(x.constant) && onnx_computed(x.type) == DTYPE_F32) {
		float number = (float)onnx_number_at(x.constant, 0);
		return onnx_floats(o, &(struct onnx_shape){0}, &number);
	}
	return onnx_elements(&x.shape) == 1 ? onnx_reshape(o, x, &(struct onnx_shape){0}) : x;
}

struct onnx_operand onnx_zero_number(const struct onnx_op *o, struct onnx_operand zero)
{
	if (!zero.given || !has_one_number(zero.constant))
		return onnx_join_single(o, zero);
	float number = (float)onnx_number_at(zero.constant, 0);
	return onnx_floats(o, &(struct onnx_shape){0}, &number);
}

/* A list of one element for each index of an axis, so that it is broadcast to `rank` axes; or a single element. */
static struct onnx_operand spread_list(const struct onnx_op *o, struct onnx_operand x, int axis, int rank)
{
	struct onnx_shape shape = {.rank = rank};
	if (x.shape.rank != 1 || x.shape.dim[0] == 1 || has_one_number(x.constant))
		return onnx_join_single(o, x);
	for (int d = 0; d < rank; d++)
		shape.dim[d] = d == axis ? x.shape.dim[0] : 1;
	return onnx_reshape(o, x, &shape);
}

/* --- checks --- */

static bool check_positive(const struct onnx_op *o, int at)
{
	const struct onnx_tensor *t = o->in[at].constant;
	for (int64_t i = 0; t && i < t->elements; i++) {
		double scale = onnx_number_at(t, i);
		if (!(scale > 0 && scale <= FLT_MAX))
			return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL, "the scale in input %d is %g, and scales are positive and finite",
					      at, scale);
	}
	return true;
}

static bool check_count(const struct onnx_op *o, int at, int64_t extent)
{
	const struct onnx_shape *s = &o->in[at].shape;
	int64_t n = onnx_elements(s);
	if (!extent || n == 1 || (s->rank == 1 && n == extent))
		return true;
	return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
			      extent == 1 ? "input %d has %lld scales or zero points, and there is one for all elements"
					  : "input %d has %lld scales or zero points, and its axis %lld elements",
			      at, (long long)n, (long long)extent);
}

bool onnx_check_zero(const struct onnx_op *o, int zero, enum onnx_type type, int64_t extent)
{
	if (!onnx_given(o, zero))
		return true;
	if (o->in[zero].type != type)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "input %d is a zero point of type %s for values of type %s", zero,
				      onnx_type_traits_of(o->in[zero].type)->name, onnx_type_traits_of(type)->name);
	return check_count(o, zero, extent);
}

bool onnx_check_scale(const struct onnx_op *o, int scale, int zero, enum onnx_type type, int64_t extent)
{
	if (!onnx_given(o, scale))
		return false;
	if (onnx_computed(o->in[scale].type) != DTYPE_F32)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "input %d is a scale of type %s, and scales are floats", scale,
				      onnx_type_traits_of(o->in[scale].type)->name);
	if (!check_positive(o, scale) || !check_count(o, scale, extent))
		return false;
	return onnx_check_zero(o, zero, type, extent);
}

bool onnx_check_summand(const struct onnx_op *o, int at)
{
	return !onnx_given(o, at) || o->in[at].type == ONNX_INT32 ||
	       onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "input %d is of type %s, and what is added to sums of products is int32", at,
			      onnx_type_traits_of(o->in[at].type)->name);
}

/* --- values --- */

struct onnx_operand onnx_subtract_zero(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand zero)
{
	struct onnx_shape shape;
	zero = onnx_join_single(o, zero);
	if (!onnx_broadcast(o, &x.shape, &zero.shape, &shape))
		return (struct onnx_operand){0};
	if (!onnx_same_shape(&shape, &x.shape)) {
		onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "there are %lld zero points, and they do not fit the shape of the values",
			       (long long)onnx_elements(&zero.shape));
		return (struct onnx_operand){0};
	}
	if (!has_one_number(zero.constant))
		return onnx_two(o, x, zero, ONNX_INT32, "a - b");
	int64_t element = onnx_integer_at(zero.constant, 0);
	x.type = ONNX_INT32;
	return element ? onnx_map(o, x, ONNX_INT32, onnx_format(o, element < 0 ? "a + %lld" : "a - %lld", llabs(element))) : x;
}

struct onnx_operand onnx_saturate(const struct onnx_op *o, struct onnx_operand x, enum onnx_type type)
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

struct onnx_operand onnx_quantise(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand scale,
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
	return onnx_saturate(o, x, type);
}

struct onnx_operand onnx_dequantise(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand scale,
				    struct onnx_operand zero)
{
	struct onnx_shape shape;
	if (!onnx_broadcast(o, &x.shape, &scale.shape, &shape) ||
	    (zero.given && !onnx_broadcast(o, &shape, &zero.shape, &shape)))
		return (struct onnx_operand){0};
	struct onnx_operand *args[] = {&x, &scale, &zero};
	return onnx_formula(o, ONNX_FLOAT, &shape, args, 2 + zero.given,
			    zero.given ? "(cast(a, f32) - cast(c, f32)) * b" : "cast(a, f32) * b");
}

static bool check_blocks(const struct onnx_op *o)
{
	return !onnx_int(o, "block_size") ||
	       onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "scales of blocks are not supported");
}

/* Sets the scale and the zero point, which are inputs 1 and 2, for a value of the shape that is quantised to a type. */
static bool read_scale(const struct onnx_op *o, const struct onnx_shape *shape, enum onnx_type type, struct onnx_operand *scale,
		       struct onnx_operand *zero)
{
	bool list = shape->rank && onnx_elements(&o->in[1].shape) > 1;
	int axis = list ? onnx_axis(o, onnx_int(o, "axis"), shape->rank) : 0;
	if (axis < 0 || !onnx_check_scale(o, 1, 2, type, list ? shape->dim[axis] : 1))
		return false;
	*scale = spread_list(o, o->in[1], axis, shape->rank);
	*zero = onnx_given(o, 2) ? spread_list(o, o->in[2], axis, shape->rank) : (struct onnx_operand){0};
	return true;
}

bool onnx_write_quantize_linear(struct onnx_op *o)
{
	struct onnx_operand scale, zero;
	enum onnx_type type = onnx_given(o, 2)			  ? o->in[2].type
			      : onnx_int(o, "output_dtype") > 0 ? (enum onnx_type)onnx_int(o, "output_dtype")
								  : ONNX_UINT8;
	if (!check_blocks(o) || !read_scale(o, &o->in[0].shape, type, &scale, &zero))
		return false;
	o->out[0] = onnx_quantise(o, o->in[0], scale, zero, type);
	return o->out[0].given;
}

bool onnx_write_dequantize_linear(struct onnx_op *o)
{
	struct onnx_operand scale, zero;
	if (!check_blocks(o) || !read_scale(o, &o->in[0].shape, o->in[0].type, &scale, &zero))
		return false;
	o->out[0] = onnx_dequantise(o, o->in[0], scale, zero);
	return o->out[0].given;
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
	zero = onnx_saturate(o, zero, ONNX_UINT8);
	o->out[0] = onnx_quantise(o, x, scale, zero, ONNX_UINT8);
	if (o->outs > 1)
		o->out[1] = scale;
	if (o->outs > 2)
		o->out[2] = zero;
	return true;
}

/* --- products: of a, its scale and zero point, b likewise, and the scale and zero point of the result --- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS };

struct onnx_operand onnx_multiply_integers(const struct onnx_op *o, struct onnx_operand a, struct onnx_operand b, onnx_write_function *write)
{
	struct onnx_operand in[4 + ONNX_INPUT_ROOM] = {a, b, o->in[A_ZERO], o->in[B_ZERO]}, out[1] = {{0}};
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
			    y = onnx_join_single(o, o->in[Y_SCALE]), zero = onnx_zero_number(o, o->in[Y_ZERO]);
	struct onnx_shape shape = sum.shape;
	struct onnx_operand *args[] = {&sum, &a, &b, &y, &zero};
	for (int i = 1; i < 5; i++)
		if (!onnx_broadcast(o, &shape, &args[i]->shape, &shape))
			return false;
	if (!onnx_same_shape(&shape, &sum.shape))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its scales do not fit the shape of its product");
	struct onnx_operand x =
	    onnx_formula(o, ONNX_FLOAT, &shape, args, 5, "round(cast(a, f32) * (b * c / d)) + cast(e, f32)");
	o->out[0] = onnx_saturate(o, x, o->in[Y_ZERO].type);
	return o->out[0].given;
}

/* A list of scales has one for each row of a, or column of b, or channel; other shapes of scales are broadcast. */
static int64_t list_extent(const struct onnx_op *o, int scale, int axis)
{
	const struct onnx_shape *x = &o->in[scale - 1].shape;
	return o->in[scale].shape.rank > 1 || axis < 0 || axis >= x->rank ? 0 : x->dim[axis];
}

/* Of a and of b so many scales each as onnx_check_scale takes, and one of the result. */
static bool check_scales(const struct onnx_op *o, int64_t a, int64_t b)
{
	for (int i = A; i <= Y_ZERO; i++)
		if (!onnx_given(o, i))
			return false;
	return onnx_check_scale(o, A_SCALE, A_ZERO, o->in[A].type, a) && onnx_check_scale(o, B_SCALE, B_ZERO, o->in[B].type, b) &&
	       onnx_check_scale(o, Y_SCALE, Y_ZERO, o->in[Y_ZERO].type, 1);
}

bool onnx_write_qlinear_matmul(struct onnx_op *o)
{
	if (!check_scales(o, list_extent(o, A_SCALE, o->in[A].shape.rank - 2), list_extent(o, B_SCALE, o->in[B].shape.rank - 1)))
		return false;
	struct onnx_operand sum = onnx_multiply_integers(o, o->in[A], o->in[B], onnx_write_matmul_integer);
	return scale_product(o, sum, sum.shape.rank - 2, sum.shape.rank - 1);
}

bool onnx_write_qlinear_conv(struct onnx_op *o)
{
	if (!onnx_given(o, B) || !check_scales(o, 1, o->in[B].shape.rank ? o->in[B].shape.dim[0] : 1) || !onnx_check_summand(o, BIAS))
		return false;
	struct onnx_operand sum = onnx_multiply_integers(o, o->in[A], o->in[B], onnx_write_conv_integer);
	return scale_product(o, onnx_add_bias(o, sum, BIAS), 1, 1);
}
