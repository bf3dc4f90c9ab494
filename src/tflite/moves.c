/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements, of which bytes stay as they are: so their values have one scale. */
#include "tflite/requantise.h"

/* --- concatenation --- */

static bool check_part(const struct onnx_op *o, int i, int axis)
{
	const struct onnx_shape *first = &o->in[0].shape, *s = &o->in[i].shape;
	bool fits = s->rank == first->rank;
	for (int d = 0; fits && d < s->rank; d++)
		fits = d == axis || s->dim[d] == first->dim[d];
	return fits || onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "inputs 0 and %d differ in other axes than %d", i, axis);
}

bool onnx_write_tflite_concat(struct onnx_op *o)
{
	const int axis = onnx_axis(o, onnx_int(o, "axis"), o->in[0].shape.rank);
	if (axis < 0)
		return false;
	enum lite_kind kind = LITE_REFUSED;
	if (!o->ins || o->ins > 30)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it joins %d values, and can join 1 to 30",
				      o->ins);
	if (!(kind = lite_find_kind(o, (1u << o->ins) - 1)))
		return false;
	if (onnx_int(o, "activation"))
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "it has an activation, which is not supported");
	for (int i = 0; i < o->ins; i++)
		if (!check_part(o, i, axis) || (kind == LITE_BYTES && !lite_check_same_scale(o, i)))
			return false;
	o->out[0] = onnx_concat(o, o->in, o->ins, axis);
	return true;
}

/* --- borders --- */

/* The element of borders: input 2, or what stands for 0. */
static bool find_fill(const struct onnx_op *o, enum lite_kind kind, struct onnx_operand *fill)
{
	if (!onnx_given(o, 2)) {
		struct onnx_tensor *t =
		    onnx_new_tensor(o, kind == LITE_BYTES ? ONNX_INT32 : ONNX_FLOAT, &(struct onnx_shape){0});
		onnx_set_number(t, 0, kind == LITE_BYTES ? (double)lite_output(o, 0).zero : 0);
		*fill = onnx_constant(o, t);
		return true;
	}
	if (kind == LITE_BYTES && !lite_check_same_scale(o, 2))
		return false;
	*fill = onnx_reshape(o, o->in[2], &(struct onnx_shape){0});
	return fill->given;
}

static bool read_borders(const struct onnx_op *o, int64_t *border)
{
	const struct onnx_tensor *t = onnx_given(o, 1) ? o->in[1].constant : NULL;
	const int rank = o->in[0].shape.rank;
	if (!t)
		return onnx_op_refuse(o, DIAG_ONNX_CONSTANT, NULL,
				      "its borders decide a shape, and are no constant of the file");
	if (t->elements != 2 * rank)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%lld numbers are no borders of %d axes",
				      (long long)t->elements, rank);
	for (int i = 0; i < 2 * rank; i++) {
		border[i] = onnx_integer_at(t, i);
		if (border[i] < 0 || border[i] > INT32_MAX)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a border has %lld elements",
					      (long long)border[i]);
	}
	return true;
}

/* Adds n elements before or behind an axis. */
static struct onnx_operand add_border(const struct onnx_op *o, struct onnx_operand x,
				      struct onnx_operand fill, int axis, int64_t n, bool after)
{
	struct onnx_shape shape = x.shape;
	if (!n || !x.given)
		return x;
	shape.dim[axis] = n;
	struct onnx_operand border = onnx_expand(o, fill, &shape);
	border.type = x.type;
	struct onnx_operand part[2] = {after ? x : border, after ? border : x};
	return onnx_concat(o, part, 2, axis);
}

bool onnx_write_tflite_pad(struct onnx_op *o)
{
	int64_t border[2 * RA_MAX_RANK] = {0};
	struct onnx_operand fill = {0}, x = o->in[0];
	enum lite_kind kind = lite_find_kind(o, onnx_given(o, 2) ? 1 | 1 << 2 : 1);
	if (!kind || (kind == LITE_BYTES && !lite_check_same_scale(o, 0)) || !read_borders(o, border) ||
	    !find_fill(o, kind, &fill))
		return false;
	for (int d = 0; d < o->in[0].shape.rank; d++) {
		x = add_border(o, x, fill, d, border[2 * d], false);
		x = add_border(o, x, fill, d, border[2 * d + 1], true);
	}
	o->out[0] = x;
	return x.given;
}

/* --- shapes --- */

/* An extent of -1 is what the others leave. */
static bool find_shape(const struct onnx_op *o, const int64_t *extent, int n, struct onnx_shape *shape)
{
	int64_t others = 1, elements = onnx_elements(&o->in[0].shape);
	int open = -1;
	shape->rank = n;
	for (int d = 0; d < n; d++) {
		shape->dim[d] = extent[d];
		if (extent[d] < -1 || (extent[d] == -1 && open >= 0))
			return onnx_op_refuse(
			    o, DIAG_ONNX_SHAPE, NULL,
			    "its new shape has more than one open extent, or a negative one");
		if (extent[d] == -1)
			open = d;
		else
			others = onnx_times(others, extent[d]);
	}
	if (open >= 0)
		shape->dim[open] = others ? elements / others : 0;
	return true;
}

/* The new shape is input 1, or else in the options. */
bool onnx_write_tflite_reshape(struct onnx_op *o)
{
	int64_t extent[RA_MAX_RANK];
	struct onnx_shape shape = {0};
	const struct onnx_attribute *given = onnx_attribute(o, "new_shape");
	int n = given && given->n <= RA_MAX_RANK ? (int)given->n : 0;
	enum lite_kind kind = lite_find_kind(o, 1);
	if (!kind || (kind == LITE_BYTES && !lite_check_same_scale(o, 0)))
		return false;
	if (onnx_given(o, 1) ? !onnx_known_ints(o, 1, RA_MAX_RANK, extent, &n)
			     : !onnx_ints(o, "new_shape", RA_MAX_RANK, 1, extent))
		return false;
	if (!find_shape(o, extent, n, &shape))
		return false;
	o->out[0] = onnx_reshape(o, o->in[0], &shape);
	return o->out[0].given;
}
