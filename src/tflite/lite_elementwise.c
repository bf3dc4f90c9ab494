/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of pairs, and functions of single elements: of a byte they are tables of 256 elements,
 * made when the graph is imported. */
#include "tflite/requantise.h"

#include <math.h>
#include <string.h>

static const struct onnx_operand none;

/* --- pairs --- */

/* In floats the text of the row. */
static bool write_floats(struct onnx_op *o)
{
	o->out[0] = lite_activate(o, onnx_two(o, o->in[0], o->in[1], ONNX_FLOAT, o->row->text),
				  onnx_int(o, "activation"));
	return o->out[0].given;
}

/* The result of integers, by one factor. */
static bool finish_pair(struct onnx_op *o, struct onnx_operand x, double real)
{
	struct fixed_factor factor;
	int64_t least, most;
	if (!x.given || !lite_find_factor(o, real, &factor) ||
	    !lite_find_range(o, onnx_int(o, "activation"), &least, &most))
		return false;
	o->out[0] = lite_clamp(o, lite_scale_integers(o, x, &factor, 1, 0), lite_output(o, 0).zero, least,
			       most, ONNX_INT8);
	return o->out[0].given;
}

/* Bits by which elements are shifted before they are brought to a common scale, twice the larger one. */
enum { SUM_BITS = 20 };

static struct onnx_operand scale_summand(const struct onnx_op *o, int i, double common)
{
	struct fixed_factor factor;
	if (!lite_find_factor(o, (double)lite_input(o, i).scale / common, &factor))
		return none;
	return lite_scale_integers(o, lite_subtract_zero(o, i), &factor, 1, SUM_BITS);
}

bool onnx_write_tflite_add(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 3);
	if (kind != LITE_BYTES)
		return kind && write_floats(o);
	float a = lite_input(o, 0).scale, b = lite_input(o, 1).scale, y = lite_output(o, 0).scale;
	double common = (double)(2 * (a > b ? a : b)), real = common / (double)((float)(1 << SUM_BITS) * y);
	if (!(real < 1))
		return onnx_op_refuse(
		    o, DIAG_ONNX_SCALE, NULL,
		    "its scales disagree: that of its result, %g, is less than a 2^19th of that of an input",
		    (double)y);
	struct onnx_operand first = scale_summand(o, 0, common), second = scale_summand(o, 1, common);
	return first.given && second.given &&
	       finish_pair(o, onnx_two(o, first, second, ONNX_INT32, "a + b"), real);
}

bool onnx_write_tflite_mul(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 3);
	if (kind != LITE_BYTES)
		return kind && write_floats(o);
	float real = lite_input(o, 0).scale * lite_input(o, 1).scale / lite_output(o, 0).scale;
	return finish_pair(
	    o, onnx_two(o, lite_subtract_zero(o, 0), lite_subtract_zero(o, 1), ONNX_INT32, "a * b"),
	    (double)real);
}

/* --- scales --- */

/* Bytes with another scale, by the ratio of both. */
static bool write_rescaled(struct onnx_op *o, double real, int64_t least, int64_t most)
{
	struct fixed_factor factor;
	if (!lite_find_factor(o, real, &factor))
		return false;
	o->out[0] = lite_clamp(o, lite_scale_integers(o, lite_subtract_zero(o, 0), &factor, 1, 0),
			       lite_output(o, 0).zero, least, most, ONNX_INT8);
	return o->out[0].given;
}

/* Quotients are rounded to the nearest, halves away from zero. */
bool onnx_write_tflite_quantize(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_input_kind(o, 1);
	if (!kind || !lite_check_output(o, LITE_BYTES))
		return false;
	const struct lite_scale to = lite_output(o, 0);
	if (kind == LITE_BYTES)
		return write_rescaled(o, (double)lite_input(o, 0).scale / (double)to.scale, INT8_MIN,
				      INT8_MAX);
	struct onnx_operand y =
	    onnx_two(o, o->in[0], onnx_floats(o, &(struct onnx_shape){0}, &to.scale), ONNX_FLOAT, "a / b");
	y = onnx_map(o, y, ONNX_FLOAT,
		     "(t = trunc(a); t + where(a - t >= 0.5, 1, where(t - a >= 0.5, -1, 0)))");
	y = onnx_map(o, y, ONNX_INT32,
		     onnx_format(o, "cast(minimum(maximum(a, %d), %d), i32)", 4 * INT8_MIN, 4 * INT8_MAX));
	o->out[0] = lite_clamp(o, y, to.zero, INT8_MIN, INT8_MAX, ONNX_INT8);
	return true;
}

bool onnx_write_tflite_dequantize(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_input_kind(o, 1);
	if (kind == LITE_FLOATS)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "its input is of type float, and it takes int8 here");
	if (!kind || !lite_check_output(o, LITE_FLOATS))
		return false;
	const float scale = lite_input(o, 0).scale;
	o->out[0] = onnx_two(o, lite_subtract_zero(o, 0), onnx_floats(o, &(struct onnx_shape){0}, &scale),
			     ONNX_FLOAT, "cast(a, f32) * b");
	return true;
}

/* --- functions of one element --- */

/* The text of the row is the number of the activation. */
bool onnx_write_tflite_rectify(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 1);
	const int64_t activation = *o->row->text - '0';
	int64_t least, most;
	if (kind == LITE_FLOATS)
		o->out[0] = lite_activate(o, o->in[0], activation);
	if (kind != LITE_BYTES)
		return kind;
	return lite_find_range(o, activation, &least, &most) &&
	       write_rescaled(o, (double)(lite_input(o, 0).scale / lite_output(o, 0).scale), least, most);
}

static float apply_function(const struct onnx_op *o, float x)
{
	return strcmp(o->node->op, "TANH") == 0 ? tanhf(x) : 1 / (1 + expf(-x));
}

/* What the function makes of byte x, in f32 but for the last step. */
static int8_t compute_byte(const struct onnx_op *o, int x)
{
	const struct lite_scale from = lite_input(o, 0), to = lite_output(o, 0);
	float y = roundf(apply_function(o, from.scale * (float)(x - from.zero)) * (1 / to.scale));
	return (int8_t)fminf(fmaxf(y + (float)to.zero, INT8_MIN), INT8_MAX); /* the least byte of no number */
}

bool onnx_write_tflite_table(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 1);
	if (kind == LITE_FLOATS)
		o->out[0] = onnx_map(o, o->in[0], ONNX_FLOAT, o->row->text);
	if (kind != LITE_BYTES)
		return kind;
	if (strcmp(o->node->op, "LOGISTIC") == 0 && lite_output(o, 0).scale != 1.0f / 256)
		return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
				      "its result has the scale %g, and that of LOGISTIC is 1/256",
				      (double)lite_output(o, 0).scale);
	struct onnx_tensor *t = onnx_new_tensor(o, ONNX_INT8, &(struct onnx_shape){1, {256}});
	for (int x = INT8_MIN; x <= INT8_MAX; x++)
		((int8_t *)t->data)[x - INT8_MIN] = compute_byte(o, x);
	o->out[0] = lite_look_up(o, o->in[0], onnx_constant(o, t), INT8_MIN, ONNX_INT8);
	return o->out[0].given;
}

/* --- softmax, of the last axis --- */

/* exp(beta * scale * -i) for i from 0 on, in f32. */
static struct onnx_operand list_powers(const struct onnx_op *o, float beta)
{
	float power[256], step = -lite_input(o, 0).scale * beta;
	for (int i = 0; i < 256; i++)
		power[i] = expf(step * (float)i);
	return onnx_floats(o, &(struct onnx_shape){1, {256}}, power);
}

/* Powers of differences from the largest byte of a row; their share of the sum in steps of the result,
 * rounded up from halves on. */
static struct onnx_operand soften_bytes(const struct onnx_op *o, float beta)
{
	struct onnx_operand x = o->in[0];
	const unsigned last = 1u << (x.shape.rank - 1);
	struct lite_scale to = lite_output(o, 0);
	struct onnx_operand place = onnx_two(o, onnx_reduce(o, x, "max", last, "$"), x, ONNX_INT32, "a - b");
	struct onnx_operand power = lite_look_up(o, place, list_powers(o, beta), 0, ONNX_FLOAT),
			    sum = onnx_reduce(o, power, "sum", last, "$");
	struct onnx_operand scale = onnx_floats(o, &(struct onnx_shape){0}, &to.scale);
	struct onnx_operand factor = onnx_two(o, sum, scale, ONNX_FLOAT, "1 / (a * b)");
	struct onnx_operand y = onnx_two(o, power, factor, ONNX_INT32, "cast(a * b + 0.5, i32)");
	return lite_clamp(o, y, to.zero, INT8_MIN, INT8_MAX, ONNX_INT8);
}

bool onnx_write_tflite_softmax(struct onnx_op *o)
{
	enum lite_kind kind = lite_find_kind(o, 1);
	struct onnx_operand x = o->in[0];
	float beta = (float)onnx_float(o, "beta");
	if (!kind)
		return false;
	if (!x.shape.rank || !(beta > 0 && beta < 1e30f))
		return onnx_op_refuse(
		    o, DIAG_ONNX_ATTRIBUTE, NULL,
		    "it has %d axes, and beta is %g: it needs an axis and a positive number", x.shape.rank,
		    (double)beta);
	if (kind == LITE_BYTES) {
		o->out[0] = soften_bytes(o, beta);
	} else {
		struct onnx_operand factor = onnx_floats(o, &(struct onnx_shape){0}, &beta);
		o->out[0] = onnx_softmax(o, beta == 1 ? x : onnx_two(o, x, factor, ONNX_FLOAT, "a * b"),
					 1u << (x.shape.rank - 1), false);
	}
	return o->out[0].given;
}
