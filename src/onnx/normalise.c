/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Normalisations. */
#include "onnx/operators.h"

#include <math.h>

/* A number for each channel, as it is broadcast to a value of that rank. */
static struct onnx_operand of_channels(const struct onnx_op *o, struct onnx_operand x, int rank)
{
	struct onnx_shape shape = {rank - 1, {x.shape.dim[0], 1, 1, 1, 1, 1, 1, 1}};
	return onnx_reshape(o, x, &shape);
}

static const char *epsilon(const struct onnx_op *o)
{
	struct str s = str_in(o->arena);
	str_float(&s, (float)onnx_float(o, "epsilon"));
	return str_text(&s);
}

/* Scales and shifts, by a number for each channel. */
static struct onnx_operand scale(const struct onnx_op *o, struct onnx_operand y, int gain, int shift)
{
	int rank = y.shape.rank;
	if (y.given)
		y = onnx_two(o, y, of_channels(o, o->in[gain], rank), y.type, "a * b");
	return y.given ? onnx_two(o, y, of_channels(o, o->in[shift], rank), y.type, "a + b") : y;
}

/* (x - mean) / sqrt(variance + epsilon) along the axes of the mask. */
static struct onnx_operand normalise(const struct onnx_op *o, struct onnx_operand x, unsigned mask,
				     const char *eps, struct onnx_operand *mean, struct onnx_operand *factor)
{
	struct onnx_operand sum = onnx_reduce(o, x, "sum", mask, "$");
	long long n = onnx_elements(&x.shape) / onnx_elements(&sum.shape);
	*mean = onnx_map(o, sum, x.type, onnx_format(o, "a / %lld", n));
	struct onnx_operand centred = onnx_two(o, x, *mean, x.type, "a - b");
	*factor = onnx_map(o, onnx_reduce(o, centred, "sum", mask, "$ * $"), x.type,
			   onnx_format(o, "1 / sqrt(a / %lld + %s)", n, eps));
	return onnx_two(o, centred, *factor, x.type, "a * b");
}

bool onnx_write_batch_norm(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], mean, variance, factor;
	if (onnx_int(o, "training_mode") || (o->node->opset < 14 && o->outs > 1))
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, "export the model for inference",
				      "statistics are computed in training");
	if (!onnx_int(o, "spatial") || x.shape.rank < 2 || o->ins < 5)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "statistics are those of channels, and it takes five inputs");
	mean = of_channels(o, o->in[3], x.shape.rank);
	variance = of_channels(o, o->in[4], x.shape.rank);
	if (!mean.given || !variance.given)
		return false;
	factor = onnx_map(o, variance, x.type, onnx_format(o, "1 / sqrt(a + %s)", epsilon(o)));
	factor = onnx_two(o, factor, of_channels(o, o->in[1], x.shape.rank), x.type, "a * b");
	x = onnx_two(o, x, mean, x.type, "a - b");
	if (x.given)
		x = onnx_two(o, x, factor, x.type, "a * b");
	o->out[0] = x.given ? onnx_two(o, x, of_channels(o, o->in[2], x.shape.rank), x.type, "a + b") : x;
	return o->out[0].given;
}

/* All axes from one on. */
static unsigned axes_from(int axis, int rank)
{
	return (1u << rank) - (1u << axis);
}

bool onnx_write_instance_norm(struct onnx_op *o)
{
	struct onnx_operand mean, factor, x = o->in[0];
	if (x.shape.rank < 3)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "it takes a value of at least three axes");
	o->out[0] = scale(o, normalise(o, x, axes_from(2, x.shape.rank), epsilon(o), &mean, &factor), 1, 2);
	return o->out[0].given;
}

bool onnx_write_group_norm(struct onnx_op *o)
{
	struct onnx_operand mean, factor, x = o->in[0];
	int64_t groups = onnx_int(o, "num_groups");
	struct onnx_shape split = {
	    3, {x.shape.dim[0], groups, groups > 0 ? onnx_elements(&x.shape) / x.shape.dim[0] / groups : 0}};
	if (x.shape.rank < 3 || groups < 1 || x.shape.dim[1] % groups)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%lld groups do not fit the channels",
				      (long long)groups);
	if (o->in[1].shape.dim[0] != x.shape.dim[1])
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, "version 21 has a scale for each channel",
				      "its scale is one of groups");
	struct onnx_operand y = normalise(o, onnx_reshape(o, x, &split), 4, epsilon(o), &mean, &factor);
	o->out[0] = scale(o, onnx_reshape(o, y, &x.shape), 1, 2);
	return o->out[0].given;
}

bool onnx_write_layer_norm(struct onnx_op *o)
{
	struct onnx_operand mean, factor, y, x = o->in[0];
	int axis = onnx_axis(o, onnx_int(o, "axis"), x.shape.rank);
	if (axis < 0)
		return false;
	y = normalise(o, x, axes_from(axis, x.shape.rank), epsilon(o), &mean, &factor);
	for (int i = 1; i < o->ins && y.given; i++)
		if (onnx_given(o, i))
			y = onnx_two(o, y, o->in[i], x.type, i == 1 ? "a * b" : "a + b");
	o->out[0] = y;
	if (o->outs > 1)
		o->out[1] = mean;
	if (o->outs > 2)
		o->out[2] = factor;
	return y.given;
}

bool onnx_write_mean_variance_norm(struct onnx_op *o)
{
	struct onnx_operand mean, factor;
	const struct onnx_attribute *a = onnx_attribute(o, "axes");
	int64_t axes[RA_MAX_RANK] = {0, 2, 3};
	unsigned mask = 0;
	if (a && !onnx_ints(o, "axes", RA_MAX_RANK, 0, axes))
		return false;
	for (size_t i = 0; i < (a ? a->n : 3); i++) {
		int axis = onnx_axis(o, axes[i], o->in[0].shape.rank);
		if (axis < 0)
			return false;
		mask |= 1u << axis;
	}
	o->out[0] = normalise(o, o->in[0], mask, "1e-18", &mean, &factor);
	return true;
}

bool onnx_write_lp_norm(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], sum;
	int axis = onnx_axis(o, onnx_int(o, "axis"), x.shape.rank);
	bool absolute = onnx_int(o, "p") == 1;
	if (axis < 0)
		return false;
	sum = onnx_reduce(o, x, "sum", 1u << axis, absolute ? "abs($)" : "$ * $");
	o->out[0] = onnx_two(o, x, sum, x.type, absolute ? "a / b" : "a / sqrt(b)");
	return true;
}

/* x / (bias + alpha / size * the sum of squares in a window of channels) ^ beta */
bool onnx_write_lrn(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], sum;
	struct str s = str_in(o->arena), text = str_in(o->arena);
	int64_t size = onnx_int(o, "size");
	struct str at = str_in(o->arena);
	if (x.shape.rank < 2 || size < 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "'size' is not positive, or the input has no channels");
	for (int d = 0; d < x.shape.rank; d++) {
		str_printf(&at, "%s%s%d", d ? ", " : "a[", o->target->axis, d);
		if (d == 1)
			str_printf(&at, " + %s1 - %lld", o->target->reduced, (long long)(size - 1) / 2);
	}
	str_printf(&s, "sum(%s] * %s] for %s1 in %lld)", str_text(&at), str_text(&at), o->target->reduced,
		   (long long)size);
	sum = onnx_nest(o, x.type, &x.shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
	str_puts(&text, "a * exp(-");
	str_float(&text, (float)onnx_float(o, "beta"));
	str_puts(&text, " * log(");
	str_float(&text, (float)onnx_float(o, "bias"));
	str_puts(&text, " + b * ");
	str_float(&text, (float)(onnx_float(o, "alpha") / (double)size));
	str_puts(&text, "))");
	o->out[0] = onnx_two(o, x, sum, x.type, str_text(&text));
	return true;
}

/* Until version 12 the axis is where a matrix of rows is made of the value. */
static bool find_rest_mask(const struct onnx_op *o, unsigned *mask)
{
	int rank = o->in[0].shape.rank;
	int axis = onnx_axis(o, onnx_int(o, "axis"), rank);
	*mask = axis < 0 ? 0 : *o->row->text ? axes_from(axis, rank) : 1u << axis;
	return axis >= 0;
}

bool onnx_write_softmax(struct onnx_op *o)
{
	unsigned mask;
	if (!find_rest_mask(o, &mask))
		return false;
	o->out[0] = onnx_softmax(o, o->in[0], mask, o->row->name[0] == 'L');
	return o->out[0].given;
}

/* One at the first of the largest. */
bool onnx_write_hardmax(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], largest, at, matrix;
	int rank = x.shape.rank, axis = onnx_axis(o, onnx_int(o, "axis"), rank);
	if (axis < 0)
		return false;
	int64_t before = 1, after = 1, n = 1;
	for (int d = 0; d < rank; d++) {
		int64_t *part = d < axis ? &before : d == axis || *o->row->text ? &n : &after;
		*part = onnx_times(*part, x.shape.dim[d]);
	}
	matrix = onnx_reshape(o, x, &(struct onnx_shape){3, {before, n, after}});
	largest = onnx_formula(o, ONNX_INT32, &(struct onnx_shape){2, {before, after}},
			       (struct onnx_operand *[]){&matrix}, 1, "argmax(a, axis=1)");
	largest = onnx_reshape(o, largest, &(struct onnx_shape){3, {before, 1, after}});
	at = onnx_reshape(o, onnx_count(o, ONNX_INT32, n), &(struct onnx_shape){2, {n, 1}});
	o->out[0] = onnx_reshape(o, onnx_two(o, largest, at, x.type, "cast(a == b, f32)"), &x.shape);
	return o->out[0].given;
}
