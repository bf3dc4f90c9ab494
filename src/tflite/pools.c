/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pools of windows, and averages over axes. */
#include "onnx/windows.h"
#include "tflite/requantise.h"

#include <stdlib.h>

static const struct onnx_operand none;

/* --- windows --- */

/* FUNCTION over each window, which ends where the value ends. */
static struct onnx_operand reduce_windows(const struct onnx_op *o, struct onnx_operand x,
					  const struct onnx_windows *w)
{
	const char *i = o->target->axis;
	struct onnx_shape shape = {4, {x.shape.dim[0], w->out[0], w->out[1], x.shape.dim[3]}};
	struct str s = str_in(o->arena);
	str_printf(&s, "%s(a[%s0", o->row->text, i);
	onnx_put_windows(o, &s, w, 1);
	str_printf(&s, ", %s3] for ", i);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	return onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

/* How many elements each window has, [height, width, 1]. */
static int64_t *count_elements(const struct onnx_op *o, const struct onnx_windows *w)
{
	int64_t *count = ARENA_ARRAY(o->arena, int64_t, (size_t)(w->out[0] * w->out[1]));
	for (int64_t i = 0; i < w->out[0]; i++)
		for (int64_t k = 0; k < w->out[1]; k++)
			count[i * w->out[1] + k] =
			    onnx_count_inside(w, 0, i, false) * onnx_count_inside(w, 1, k, false);
	return count;
}

/* Rounded to the nearest, halves away from zero. */
static struct onnx_operand divide_integers(const struct onnx_op *o, struct onnx_operand sum,
					   const struct onnx_shape *shape, const int64_t *count)
{
	int64_t n = onnx_elements(shape), *half = ARENA_ARRAY(o->arena, int64_t, (size_t)n);
	for (int64_t i = 0; i < n; i++)
		half[i] = count[i] / 2;
	struct onnx_operand b = onnx_cast(o, onnx_integers(o, shape, count), ONNX_INT32),
			    c = onnx_cast(o, onnx_integers(o, shape, half), ONNX_INT32);
	struct onnx_operand *arguments[] = {&sum, &b, &c};
	return onnx_formula(o, ONNX_INT32, &sum.shape, arguments, 3,
			    "quotient(where(a > 0, a + c, a - c), b)");
}

static struct onnx_operand average_windows(const struct onnx_op *o, struct onnx_operand sum,
					   const struct onnx_windows *w, enum lite_kind kind)
{
	struct onnx_shape shape = {3, {w->out[0], w->out[1], 1}};
	const int64_t *count = count_elements(o, w);
	if (kind == LITE_BYTES)
		return divide_integers(o, sum, &shape, count);
	float *n = ARENA_ARRAY(o->arena, float, (size_t)onnx_elements(&shape));
	for (int64_t i = 0; i < onnx_elements(&shape); i++)
		n[i] = (float)count[i];
	return onnx_two(o, sum, onnx_floats(o, &shape, n), ONNX_FLOAT, "a / b");
}

bool onnx_write_tflite_pool(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 1);
	struct onnx_operand x = o->in[0];
	struct onnx_windows w;
	int64_t least, most;
	if (!kind || !lite_read_windows(o, &w, onnx_int(o, "filter_h"), onnx_int(o, "filter_w"), false))
		return false;
	if (kind == LITE_BYTES)
		x.type = ONNX_INT32;
	struct onnx_operand y = reduce_windows(o, x, &w);
	if (*o->row->text == 's')
		y = average_windows(o, y, &w, kind);
	if (kind == LITE_FLOATS)
		o->out[0] = lite_activate(o, y, onnx_int(o, "activation"));
	else if (lite_check_same_scale(o, 0) && lite_find_range(o, onnx_int(o, "activation"), &least, &most))
		o->out[0] = lite_clamp(o, y, 0, least, most, ONNX_INT8);
	return o->out[0].given;
}

/* --- axes --- */

static bool find_axes(const struct onnx_op *o, unsigned *mask)
{
	int64_t axes[RA_MAX_RANK];
	int n, rank = o->in[0].shape.rank;
	*mask = 0;
	if (!onnx_given(o, 1))
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it has no axes");
	if (!onnx_known_ints(o, 1, RA_MAX_RANK, axes, &n))
		return false;
	for (int i = 0; i < n; i++) {
		int axis = onnx_axis(o, axes[i], rank);
		if (axis < 0)
			return false;
		*mask |= 1u << axis;
	}
	return true;
}

/* The factor of a sum of n elements: the ratio of the scales is divided in integers, with as many bits as n
 * has more than one. */
static bool find_mean_factor(const struct onnx_op *o, int64_t n, struct fixed_factor *f)
{
	if (!lite_find_factor(o, (double)lite_input(o, 0).scale / (double)lite_output(o, 0).scale, f))
		return false;
	int shift = 63 - __builtin_clzll((unsigned long long)n);
	shift = shift > 32 ? 32 : shift;
	shift = shift > 31 + f->shift ? 31 + f->shift : shift;
	f->multiplier = (int32_t)(((int64_t)f->multiplier << shift) / n);
	f->shift -= shift;
	return true;
}

static struct onnx_operand average_bytes(const struct onnx_op *o, unsigned mask, int64_t n)
{
	struct onnx_operand x = o->in[0];
	struct lite_scale from = lite_input(o, 0), to = lite_output(o, 0);
	struct fixed_factor factor;
	x.type = ONNX_INT32;
	struct onnx_operand sum = onnx_reduce(o, x, "sum", mask, "$");
	if (!find_mean_factor(o, n, &factor))
		return none;
	if (from.zero)
		sum = onnx_map(
		    o, sum, ONNX_INT32,
		    onnx_format(o, from.zero < 0 ? "a + %lld" : "a - %lld", (long long)llabs(from.zero * n)));
	return lite_clamp(o, lite_scale_integers(o, sum, &factor, 1, 0), to.zero, INT8_MIN, INT8_MAX,
			  ONNX_INT8);
}

bool onnx_write_tflite_mean(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 1);
	struct onnx_shape kept = {0};
	unsigned mask;
	int64_t n = 1;
	if (!kind || !find_axes(o, &mask))
		return false;
	for (int d = 0; d < o->in[0].shape.rank; d++) {
		n = mask >> d & 1 ? onnx_times(n, o->in[0].shape.dim[d]) : n;
		if (!(mask >> d & 1))
			kept.dim[kept.rank++] = o->in[0].shape.dim[d];
	}
	if (n < 1 || n > INT32_MAX / 256)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "it averages %lld elements, and can average 1 to 2^23", (long long)n);
	struct onnx_operand y = kind == LITE_BYTES
				    ? average_bytes(o, mask, n)
				    : onnx_map(o, onnx_reduce(o, o->in[0], "sum", mask, "$"), ONNX_FLOAT,
					       onnx_format(o, "a / %lld", (long long)n));
	o->out[0] = onnx_int(o, "keep_dims") || !y.given ? y : onnx_reshape(o, y, &kept);
	return o->out[0].given;
}
