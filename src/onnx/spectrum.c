/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Windows and Fourier transforms.  A transform is a product with the matrix of its sines and cosines: exact
 * to rounding for any length, and of the order of the square of the length. */
#include "onnx/operators.h"

#include <math.h>

/* The factors of windows a - b * cos(x) + c * cos(2 * x), in which x is once around the circle. */
static const struct window {
	const char *name;
	double a, b, c;
} windows[] = {{"HannWindow", 0.5, 0.5, 0},
	       {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
	       {"BlackmanWindow", 0.42, 0.5, 0.08}};

bool onnx_write_window(struct onnx_op *o)
{
	const struct window *w = windows;
	int64_t size;
	int n;
	while (strcmp(w->name, o->row->name) != 0)
		w++;
	if (!onnx_known_ints(o, 0, 1, &size, &n) || n != 1)
		return false;
	struct onnx_shape shape = {1, {size}};
	if (!onnx_check_extents(o, &shape))
		return false;
	float *at = ARENA_ARRAY(o->arena, float, size);
	int64_t period = onnx_int(o, "periodic") ? size : size > 1 ? size - 1 : 1;
	for (int64_t i = 0; i < size; i++) {
		double x = 2 * M_PI * (double)i / (double)period;
		at[i] = (float)(w->a - w->b * cos(x) + w->c * cos(2 * x));
	}
	o->out[0] = onnx_cast_to(o, onnx_floats(o, &shape, at), onnx_int(o, "output_datatype"));
	return o->out[0].given;
}

struct transform {
	int64_t length, bins,
	    parts; /* samples, bins of the result, and 2 where samples are complex, else 1 */
	bool inverse;
};

/* The factors [part, bin, sample, part of the sample]: of a real or imaginary part those of both of each
 * sample. */
static struct onnx_operand make_factors(const struct onnx_op *o, const struct transform *t)
{
	struct onnx_shape shape = {4, {2, t->bins, t->length, t->parts}};
	float *at = ARENA_ARRAY(o->arena, float, onnx_elements(&shape));
	float *cosine = ARENA_ARRAY(o->arena, float, t->length),
	      *sine = ARENA_ARRAY(o->arena, float, t->length);
	double scale = t->inverse ? 1 / (double)t->length : 1;
	for (int64_t i = 0; i < t->length; i++) {
		double angle = 2 * M_PI * (double)i / (double)t->length * (t->inverse ? 1 : -1);
		cosine[i] = (float)(scale * cos(angle));
		sine[i] = (float)(scale * sin(angle));
	}
	for (int part = 0; part < 2; part++)
		for (int64_t bin = 0; bin < t->bins; bin++)
			for (int64_t sample = 0; sample < t->length; sample++)
				for (int of = 0; of < t->parts; of++) {
					int64_t turn = bin * sample % t->length;
					*at++ = of == part ? cosine[turn] : of ? -sine[turn] : sine[turn];
				}
	return onnx_floats(o, &shape, at - onnx_elements(&shape));
}

/* Checks what is transformed, and sets how many bins there are. */
static bool check_transform(const struct onnx_op *o, struct transform *t, bool onesided)
{
	if (t->length < 1 || t->length > 1 << 20 || t->parts < 1 || t->parts > 2)
		return onnx_op_refuse(
		    o, DIAG_ONNX_SHAPE, "the last axis has one part or two; at most 2^20 are transformed",
		    "%lld samples of %lld parts", (long long)t->length, (long long)t->parts);
	if (onesided && (t->parts == 2 || t->inverse))
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "one side of the transform of complex samples is not all");
	t->bins = onesided ? t->length / 2 + 1 : t->length;
	return true;
}

/* An input of one integer; `otherwise` where it is left out. */
static bool read_length(const struct onnx_op *o, int input, int64_t otherwise, int64_t *length)
{
	int n = 1;
	*length = otherwise;
	return !onnx_given(o, input) || (onnx_known_ints(o, input, 1, length, &n) && n == 1);
}

/* Samples behind the end of the axis are zeros, those behind the length are left out. */
bool onnx_write_dft(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int rank = x.shape.rank;
	int64_t given = -2;
	if (o->row->since < 20)
		given = onnx_int(o, "axis");
	else if (!read_length(o, 2, -2, &given))
		return false;
	int axis = onnx_axis(o, given, rank);
	if (axis < 0 || axis == rank - 1)
		return axis >= 0 && onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
						   "the last axis is that of the parts of a sample");
	struct transform t = {.parts = x.shape.dim[rank - 1], .inverse = onnx_int(o, "inverse")};
	if (!read_length(o, 1, x.shape.dim[axis], &t.length) ||
	    !check_transform(o, &t, onnx_int(o, "onesided")))
		return false;
	struct onnx_operand factors = make_factors(o, &t);
	struct onnx_shape shape = x.shape;
	shape.dim[axis] = t.bins, shape.dim[rank - 1] = 2;
	struct str s = str_in(o->arena);
	str_printf(&s, "sum(b[@%d, @%d, #0, #1] * a[", rank - 1, axis);
	for (int d = 0; d < rank; d++)
		str_printf(&s, d == axis ? "%s#0" : d == rank - 1 ? "%s#1" : "%s@%d", d ? ", " : "", d);
	str_printf(&s, "] for #0 in %lld, #1)", (long long)t.length);
	o->out[0] = onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x, &factors}, 2,
			      onnx_name_indices(o, str_text(&s)));
	return o->out[0].given;
}

/* The transform of each frame of a signal, times the window. */
bool onnx_write_stft(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int64_t step, otherwise = onnx_given(o, 2) && o->in[2].shape.rank == 1 ? o->in[2].shape.dim[0] : 0;
	struct transform t = {.parts = x.shape.rank == 3 ? x.shape.dim[2] : 0};
	if (!read_length(o, 1, 0, &step) || !read_length(o, 3, otherwise, &t.length) ||
	    !check_transform(o, &t, onnx_int(o, "onesided")))
		return false;
	if (step < 1 || t.length > x.shape.dim[1] || (onnx_given(o, 2) && otherwise != t.length))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "frames of %lld samples, %lld apart, do not fit a signal of %lld",
				      (long long)t.length, (long long)step, (long long)x.shape.dim[1]);
	struct onnx_operand factors = make_factors(o, &t);
	if (onnx_given(o, 2))
		factors = onnx_nest(o, x.type, &factors.shape, (struct onnx_operand *[]){&factors, &o->in[2]},
				    2, onnx_name_indices(o, "a[@0, @1, @2, @3] * b[@2]"));
	struct onnx_shape shape = {4, {x.shape.dim[0], (x.shape.dim[1] - t.length) / step + 1, t.bins, 2}};
	o->out[0] = onnx_nest(
	    o, x.type, &shape, (struct onnx_operand *[]){&x, &factors}, 2,
	    onnx_name_indices(o, onnx_format(o, "sum(b[@3, @2, #0, #1] * a[@0, %lld*@1 + #0, #1] for #0, #1)",
					     (long long)step)));
	return o->out[0].given;
}

static double mel_of(double hertz)
{
	return 2595 * log10(1 + hertz / 700);
}

/* Triangles over the bins of a transform, at equal distances on the mel scale. */
bool onnx_write_mel_weights(struct onnx_op *o)
{
	int64_t bands, length, rate;
	float edge[2];
	int lows = 1, highs = 1;
	if (!read_length(o, 0, 0, &bands) || !read_length(o, 1, 0, &length) || !read_length(o, 2, 0, &rate) ||
	    !onnx_known_floats(o, 3, 1, &edge[0], &lows) || !onnx_known_floats(o, 4, 1, &edge[1], &highs) ||
	    lows != 1 || highs != 1)
		return false;
	struct onnx_shape shape = {2, {length / 2 + 1, bands}};
	if (bands < 1 || length < 1 || rate < 1 || !(edge[0] >= 0) || !(edge[1] <= 1e9f) ||
	    !onnx_check_extents(o, &shape))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%lld bands of %lld bins", (long long)bands,
				      (long long)length);
	float *at = ARENA_ARRAY(o->arena, float, onnx_elements(&shape));
	double low = mel_of(edge[0]), step = (mel_of(edge[1]) - low) / (double)(bands + 2);
	int64_t *bin = ARENA_ARRAY(o->arena, int64_t, bands + 2);
	for (int64_t b = 0; b < bands + 2; b++) {
		double hertz = 700 * (pow(10, (low + step * (double)b) / 2595) - 1);
		bin[b] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
	}
	for (int64_t b = 0; b < bands; b++) {
		int64_t from = bin[b], middle = bin[b + 1], to = bin[b + 2];
		for (int64_t i = from; i <= to && i < shape.dim[0]; i++)
			if (i >= 0 && (i < to || i == middle))
				at[i * bands + b] = i < middle	  ? (float)(i - from) / (float)(middle - from)
						    : to > middle ? (float)(to - i) / (float)(to - middle)
								  : 1;
	}
	o->out[0] = onnx_cast_to(o, onnx_floats(o, &shape, at), onnx_int(o, "output_datatype"));
	return o->out[0].given;
}
