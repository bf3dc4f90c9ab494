/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators of ONNX Runtime's domain com.microsoft, which its quantisation tool writes: bytes in, bytes out.  What each
 * computes in between is exact in integers, or one formula of f32, which doc/onnx.md lists. */
#include "onnx/quantised_values.h"

/* --- inputs --- */

static bool check_bytes(const struct onnx_op *o, int at)
{
	enum onnx_type type = o->in[at].type;
	return type == ONNX_UINT8 || type == ONNX_INT8 ||
	       onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "input %d is of type %s, and values are uint8 or int8", at,
			      onnx_type_traits_of(type)->name);
}

static struct onnx_operand zero_of(const struct onnx_op *o, enum onnx_type type)
{
	struct onnx_tensor *t = onnx_new_tensor(o, type, &(struct onnx_shape){0});
	memset((void *)t->data, 0, t->bytes);
	return onnx_constant(o, t);
}

/* Sets a scale, which is an input, and the zero point, which is the next one: a single number each. */
static bool take_scale(const struct onnx_op *o, int at, enum onnx_type type, struct onnx_operand to[2])
{
	if (!onnx_check_scale(o, at, at + 1, type, 1))
		return false;
	to[0] = onnx_join_single(o, o->in[at]);
	to[1] = onnx_zero_number(o, onnx_given(o, at + 1) ? o->in[at + 1] : zero_of(o, type));
	return true;
}

/* Sets a value, which is an input, its scale and its zero point, which are the next ones. */
static bool take_value(const struct onnx_op *o, int at, struct onnx_operand to[3])
{
	if (!onnx_given(o, at) || !check_bytes(o, at) || !take_scale(o, at + 1, o->in[at].type, to + 1))
		return false;
	to[0] = o->in[at];
	return true;
}

/* A formula of operands in a row, as the nearest bytes. */
static struct onnx_operand write_bytes(const struct onnx_op *o, enum onnx_type type, const struct onnx_shape *shape,
				       struct onnx_operand *operand, int n, const char *text)
{
	struct onnx_operand *arg[8];
	for (int i = 0; i < n; i++)
		arg[i] = &operand[i];
	return onnx_saturate(o, onnx_formula(o, ONNX_FLOAT, shape, arg, n, text), type);
}

/* --- elements --- */

/* The formula of the table, of two values with their scales and zero points, and those of the result. */
bool onnx_write_qlinear_pair(struct onnx_op *o)
{
	struct onnx_operand operand[8];
	struct onnx_shape shape;
	enum onnx_type type = o->in[0].type;
	if (!take_value(o, 0, operand) || !take_value(o, 3, operand + 3) || !take_scale(o, 6, type, operand + 6) ||
	    !onnx_broadcast(o, &operand[0].shape, &operand[3].shape, &shape))
		return false;
	if (o->in[3].type != type)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "its values are of types %s and %s", onnx_type_traits_of(type)->name,
				      onnx_type_traits_of(o->in[3].type)->name);
	o->out[0] = write_bytes(o, type, &shape, operand, 8, o->row->text);
	return o->out[0].given;
}

/* The formula of the table, of the number that an element stands for. */
bool onnx_write_qlinear_map(struct onnx_op *o)
{
	struct onnx_operand x[3], y[2];
	if (!take_value(o, 0, x) || !take_scale(o, 3, x[0].type, y))
		return false;
	struct onnx_operand number = onnx_map(o, onnx_dequantise(o, x[0], x[1], x[2]), ONNX_FLOAT, onnx_fill_in(o, o->row->text));
	o->out[0] = onnx_quantise(o, number, y[0], y[1], x[0].type);
	return o->out[0].given;
}

static bool check_part(const struct onnx_op *o, int at, int axis, enum onnx_type type)
{
	const struct onnx_shape *first = &o->in[2].shape, *s = &o->in[at].shape;
	bool fits = s->rank == first->rank;
	for (int d = 0; fits && d < s->rank; d++)
		fits = d == axis || s->dim[d] == first->dim[d];
	if (!fits)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "inputs 2 and %d differ in other axes than %d", at, axis);
	return o->in[at].type == type || onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "inputs 2 and %d are of types %s and %s", at,
							onnx_type_traits_of(type)->name, onnx_type_traits_of(o->in[at].type)->name);
}

/* Of the scale and zero point of the result, then of each value, its scale and its zero point. */
bool onnx_write_qlinear_concat(struct onnx_op *o)
{
	struct onnx_operand y[2], x[3], *part = ARENA_ARRAY(o->arena, struct onnx_operand, o->ins);
	int n = 0;
	if (!onnx_given(o, 2))
		return false;
	const enum onnx_type type = o->in[2].type;
	const int axis = onnx_axis(o, onnx_int(o, "axis"), o->in[2].shape.rank);
	if (axis < 0 || !check_bytes(o, 2) || !take_scale(o, 0, type, y))
		return false;
	for (int at = 2; at < o->ins; at += 3, n++) {
		if (!take_value(o, at, x) || !check_part(o, at, axis, type))
			return false;
		part[n] = onnx_quantise(o, onnx_dequantise(o, x[0], x[1], x[2]), y[0], y[1], type);
	}
	o->out[0] = onnx_concat(o, part, n, axis);
	return true;
}

/* --- averages: a sum of integers, which is exact, and one scale --- */

/* A value whose channels are at one place of the axes: moved behind the batch, or from there to the end. */
static struct onnx_operand move_channels(const struct onnx_op *o, struct onnx_operand x, bool back)
{
	int order[RA_MAX_RANK] = {0}, last = x.shape.rank - 1;
	if (!x.given || !onnx_int(o, "channels_last"))
		return x;
	for (int d = 1; d <= last; d++)
		order[d] = back ? d % last + 1 : d == 1 ? last : d - 1;
	return onnx_transpose(o, x, order);
}

/* Sets a value less its zero point, its scale, and the scale and zero point of the result. */
static bool take_pooled(const struct onnx_op *o, struct onnx_operand *x, struct onnx_operand scale[3])
{
	struct onnx_operand value[3];
	if (!take_value(o, 0, value) || !take_scale(o, 3, o->in[0].type, scale + 1))
		return false;
	if (value[0].shape.rank < 3)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a pool takes values of at least three axes");
	scale[0] = value[1];
	*x = move_channels(o, onnx_subtract_zero(o, value[0], value[2]), false);
	return x->given;
}

/* The average over all places of space. */
static struct onnx_operand average_all(const struct onnx_op *o, struct onnx_operand x, const struct onnx_operand scale[3])
{
	int64_t n = 1;
	for (int d = 2; d < x.shape.rank; d++)
		n = onnx_times(n, x.shape.dim[d]);
	struct onnx_operand sum = onnx_reduce(o, x, "sum", (1u << x.shape.rank) - 4, "$");
	struct onnx_operand operand[4] = {sum, scale[0], scale[1], scale[2]};
	return write_bytes(o, o->in[0].type, &sum.shape, operand, 4,
			   onnx_format(o, "round(cast(a, f32) * (b / (c * %lld))) + cast(d, f32)", (long long)n));
}

bool onnx_write_qlinear_global_average_pool(struct onnx_op *o)
{
	struct onnx_operand x, scale[3];
	if (!take_pooled(o, &x, scale))
		return false;
	o->out[0] = move_channels(o, average_all(o, x, scale), true);
	return o->out[0].given;
}

bool onnx_write_qlinear_average_pool(struct onnx_op *o)
{
	struct onnx_operand x, scale[3];
	struct onnx_pooled pooled;
	if (!take_pooled(o, &x, scale) || !onnx_sum_windows(o, x, &pooled))
		return false;
	struct onnx_operand operand[5] = {pooled.sum, pooled.count, scale[0], scale[1], scale[2]};
	struct onnx_operand y = pooled.whole ? average_all(o, x, scale)
					     : write_bytes(o, o->in[0].type, &pooled.sum.shape, operand, 5,
							   "round(cast(a, f32) * c / b / d + cast(e, f32))");
	o->out[0] = move_channels(o, y, true);
	return y.given;
}

/* --- softmax --- */

/* The axes that are normalised: until version 12 of the standard's operator all from the axis on. */
static bool find_normalised(const struct onnx_op *o, unsigned *mask)
{
	int64_t opset = onnx_int(o, "opset");
	int rank = o->in[0].shape.rank;
	if (opset < 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "it has no attribute 'opset', which says what its axis means");
	int axis = onnx_axis(o, onnx_has(o, "axis") ? onnx_int(o, "axis") : opset < 13 ? 1 : -1, rank);
	*mask = axis < 0 ? 0 : opset < 13 ? (1u << rank) - (1u << axis) : 1u << axis;
	return axis >= 0;
}

/* A probability is so many steps: as many as the scale of the result divides 1 into, rounded down. */
bool onnx_write_qlinear_softmax(struct onnx_op *o)
{
	struct onnx_operand x[3], y[4];
	unsigned mask;
	if (!take_value(o, 0, x) || !take_scale(o, 3, x[0].type, y + 2) || !find_normalised(o, &mask))
		return false;
	struct onnx_operand most = onnx_reduce(o, x[0], "max", mask, "$");
	y[0] = onnx_formula(o, ONNX_FLOAT, &x[0].shape, (struct onnx_operand *[]){&x[0], &most, &x[1]}, 3,
			    "exp(cast(a - b, f32) * c)");
	y[1] = onnx_reduce(o, y[0], "sum", mask, "$");
	o->out[0] = write_bytes(o, x[0].type, &x[0].shape, y, 4, "round(a * floor(1 / c) / b) + cast(d, f32)");
	return o->out[0].given;
}

/* --- products --- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

/* Adds C, which is broadcast, to the sums of products. */
static struct onnx_operand add_offset(const struct onnx_op *o, struct onnx_operand sum)
{
	struct onnx_shape shape;
	if (!sum.given || !onnx_given(o, C))
		return sum;
	if (!onnx_broadcast(o, &sum.shape, &o->in[C].shape, &shape))
		return (struct onnx_operand){0};
	if (onnx_same_shape(&shape, &sum.shape))
		return onnx_two(o, sum, o->in[C], ONNX_INT32, "a + b");
	onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "C cannot be broadcast to the product");
	return (struct onnx_operand){0};
}

/* The sums of products of integers, with C. */
static struct onnx_operand multiply_integers(const struct onnx_op *o)
{
	struct onnx_operand a = o->in[A], b = o->in[B];
	if (onnx_int(o, "transA"))
		a = onnx_transpose(o, a, (int[]){1, 0});
	if (onnx_int(o, "transB"))
		b = onnx_transpose(o, b, (int[]){1, 0});
	return add_offset(o, onnx_multiply_integers(o, a, b, onnx_write_matmul_integer));
}

static bool check_gemm(const struct onnx_op *o)
{
	if (!onnx_given(o, A) || !onnx_given(o, B) || !check_bytes(o, A) || !check_bytes(o, B))
		return false;
	if (o->in[A].shape.rank != 2 || o->in[B].shape.rank != 2)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its factors have %d and %d axes, and matrices have two",
				      o->in[A].shape.rank, o->in[B].shape.rank);
	if (onnx_given(o, Y_SCALE) != onnx_given(o, Y_ZERO))
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it has a scale or a zero point of the result without the other");
	return onnx_check_summand(o, C) && onnx_check_scale(o, A_SCALE, A_ZERO, o->in[A].type, 1) &&
	       onnx_check_scale(o, B_SCALE, B_ZERO, o->in[B].type, o->in[B].shape.dim[!onnx_int(o, "transB")]);
}

/* Bytes where the result has a scale, f32 otherwise; B has a scale and a zero point for all, or for each column. */
bool onnx_write_qgemm(struct onnx_op *o)
{
	struct onnx_operand operand[5];
	const char *factor = onnx_fill_in(o, o->row->text);
	if (!check_gemm(o))
		return false;
	bool scaled = onnx_given(o, Y_SCALE);
	operand[0] = multiply_integers(o);
	if (!operand[0].given || (scaled && !take_scale(o, Y_SCALE, o->in[A].type, operand + 3)))
		return false;
	operand[1] = onnx_join_single(o, o->in[A_SCALE]);
	operand[2] = onnx_join_single(o, o->in[B_SCALE]);
	const struct onnx_shape *shape = &operand[0].shape;
	o->out[0] = scaled ? write_bytes(o, o->in[A].type, shape, operand, 5,
					 onnx_format(o, "round(cast(a, f32) * (%s / d)) + cast(e, f32)", factor))
			   : onnx_formula(o, ONNX_FLOAT, shape, (struct onnx_operand *[]){&operand[0], &operand[1], &operand[2]}, 3,
					  onnx_format(o, "cast(a, f32) * (%s)", factor));
	return o->out[0].given;
}
