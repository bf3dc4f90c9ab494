/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums, extremes and positions along axes. */
#include "onnx/operators.h"

/* The axes to reduce: an attribute, from some version on the second input; all if there are none. */
static bool find_mask(const struct onnx_op *o, unsigned *mask)
{
	int64_t axes[RA_MAX_RANK];
	int n = 0, rank = o->in[0].shape.rank;
	const struct onnx_attribute *a = onnx_attribute(o, "axes");
	*mask = 0;
	if (onnx_given(o, 1) && !onnx_known_ints(o, 1, RA_MAX_RANK, axes, &n))
		return false;
	if (a && !onnx_ints(o, "axes", RA_MAX_RANK, 0, axes))
		return false;
	n = a ? (int)a->n : n;
	for (int i = 0; i < n; i++) {
		int axis = onnx_axis(o, axes[i], rank);
		if (axis < 0)
			return false;
		*mask |= 1u << axis;
	}
	if (!n && !onnx_int(o, "noop_with_empty_axes"))
		*mask = (1u << rank) - 1;
	return true;
}

/* Leaves the axes of the mask out, of which each has one element. */
static struct onnx_operand drop_axes(const struct onnx_op *o, struct onnx_operand x, unsigned mask)
{
	struct onnx_shape shape = {0};
	for (int d = 0; d < x.shape.rank; d++)
		if (!(mask >> d & 1))
			shape.dim[shape.rank++] = x.shape.dim[d];
	return onnx_reshape(o, x, &shape);
}

static bool keep_reduced(struct onnx_op *o, struct onnx_operand x, unsigned mask)
{
	o->out[0] = onnx_int(o, "keepdims") || !x.given ? x : drop_axes(o, x, mask);
	return o->out[0].given;
}

/* FUNCTION|ELEMENT|RESULT, of which the result may be empty. */
static struct onnx_operand reduce_as(const struct onnx_op *o, struct onnx_operand x, unsigned mask,
				     const char *text)
{
	size_t function = strcspn(text, "|"), element = strcspn(text + function + 1, "|");
	const char *result = text + function + element + 2;
	int64_t n = onnx_elements(&x.shape);
	x = onnx_reduce(o, x, arena_text(o->arena, text, function), mask,
			arena_text(o->arena, text + function + 1, element));
	if (!*result)
		return x;
	n /= onnx_elements(&x.shape);
	const char *number = strstr(result, "$n");
	if (number)
		result = onnx_format(o, "%.*s%lld", (int)(number - result), result, (long long)n);
	return onnx_map(o, x, x.type, result);
}

bool onnx_write_reduce(struct onnx_op *o)
{
	unsigned mask;
	return find_mask(o, &mask) && keep_reduced(o, reduce_as(o, o->in[0], mask, o->row->text), mask);
}

bool onnx_write_global_pool(struct onnx_op *o)
{
	unsigned mask = (1u << o->in[0].shape.rank) - 4;
	if (o->in[0].shape.rank < 3)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a pool takes values of at least three axes");
	o->out[0] = reduce_as(o, o->in[0], mask, o->row->text);
	return true;
}

bool onnx_write_log_sum_exp(struct onnx_op *o)
{
	unsigned mask;
	if (!find_mask(o, &mask))
		return false;
	struct onnx_operand x = o->in[0], most = onnx_reduce(o, x, "max", mask, "$");
	struct onnx_operand shifted = onnx_two(o, x, most, x.type, "a - b");
	return keep_reduced(
	    o, onnx_two(o, onnx_reduce(o, shifted, "sum", mask, "exp($)"), most, x.type, "log(a) + b"), mask);
}

bool onnx_write_argmax(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int axis = onnx_axis(o, onnx_int(o, "axis"), x.shape.rank);
	if (axis < 0)
		return false;
	int64_t n = x.shape.dim[axis];
	bool last = onnx_int(o, "select_last_index");
	if (last)
		x = onnx_stride(o, x, axis, n - 1, -1, n);
	struct onnx_shape shape = x.shape, kept = x.shape;
	kept.dim[axis] = 1;
	memmove(&shape.dim[axis], &shape.dim[axis + 1], sizeof shape.dim[0] * (shape.rank - axis - 1));
	shape.rank--;
	x = onnx_formula(o, ONNX_INT64, &shape, (struct onnx_operand *[]){&x}, 1,
			 onnx_format(o,
				     last ? "%lld - cast(%s(a, axis=%d), i64)"
					  : "%.0lldcast(%s(a, axis=%d), i64)",
				     last ? (long long)n - 1 : 0, o->row->text, axis));
	o->out[0] = onnx_int(o, "keepdims") ? onnx_reshape(o, x, &kept) : x;
	return true;
}

/* Element i is the sum of those at i - u for all u; what is outside is 0. */
bool onnx_write_cumsum(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int64_t given;
	int n;
	if (!onnx_known_ints(o, 1, 1, &given, &n) || n != 1)
		return false;
	int axis = onnx_axis(o, given, x.shape.rank);
	if (axis < 0)
		return false;
	struct str s = str_in(o->arena);
	for (int d = 0; d < x.shape.rank; d++) {
		str_printf(&s, "%s%s%d", d ? ", " : "sum(a[", o->target->axis, d);
		if (d == axis)
			str_printf(&s, "%s%s%d%s", onnx_int(o, "reverse") ? " + " : " - ", o->target->reduced,
				   d,
				   !onnx_int(o, "exclusive") ? ""
				   : onnx_int(o, "reverse")  ? " + 1"
							     : " - 1");
	}
	str_printf(&s, "] for %s%d in %lld)", o->target->reduced, axis, (long long)x.shape.dim[axis]);
	o->out[0] = onnx_nest(o, x.type, &x.shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
	return true;
}
