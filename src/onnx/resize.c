/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample: along each axis an element is a weighted sum of a few, and the weights are known when
 * the graph is imported. */
#include "onnx/operators.h"

#include <math.h>

/* How one axis is resized. */
struct axis {
	int64_t in, out;
	double scale, begin, end; /* the region of tf_crop_and_resize */
};

/* The place in the input that an output element is at. */
static double place_of(const struct axis *a, int64_t i, const char *mode)
{
	double x = (double)i;
	if (strcmp(mode, "asymmetric") == 0)
		return x / a->scale;
	if (strcmp(mode, "align_corners") == 0)
		return a->out == 1 ? 0 : x * (double)(a->in - 1) / (a->scale * (double)a->in - 1);
	if (strcmp(mode, "tf_half_pixel_for_nn") == 0)
		return (x + 0.5) / a->scale;
	if (strcmp(mode, "tf_crop_and_resize") == 0)
		return a->out > 1 ? a->begin * (double)(a->in - 1) +
					x * (a->end - a->begin) * (double)(a->in - 1) / (double)(a->out - 1)
				  : 0.5 * (a->begin + a->end) * (double)(a->in - 1);
	if (strcmp(mode, "pytorch_half_pixel") == 0 && a->out == 1)
		return 0;
	if (strcmp(mode, "half_pixel_symmetric") == 0) {
		double whole = a->scale * (double)a->in, adjustment = (double)a->out / whole,
		       centre = (double)a->in / 2;
		return centre * (1 - adjustment) + (x + 0.5) / a->scale - 0.5;
	}
	return (x + 0.5) / a->scale - 0.5;
}

static double nearest(double x, const char *mode)
{
	if (strcmp(mode, "floor") == 0)
		return floor(x);
	if (strcmp(mode, "ceil") == 0)
		return ceil(x);
	if (strcmp(mode, "round_prefer_ceil") == 0)
		return floor(x + 0.5);
	return ceil(x - 0.5);
}

static double cubic(double t, double a)
{
	t = fabs(t);
	if (t <= 1)
		return ((a + 2) * t - (a + 3)) * t * t + 1;
	return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* The weight of the element at a distance, in elements of the input, stretched where it is smoothed. */
static double weight_at(const struct onnx_op *o, char kind, double distance, double stretch)
{
	distance /= stretch;
	if (kind == 'c')
		return cubic(distance, onnx_float(o, "cubic_coeff_a"));
	return fmax(0, 1 - fabs(distance));
}

/* Fills a row of weights: those outside of the axis are those of its end, or left out.  A place may be any
 * number, as the region of the file is. */
static void weigh_taps(const struct onnx_op *o, const struct axis *a, char kind, double x, float *row)
{
	bool excluded = onnx_int(o, "exclude_outside");
	double stretch = onnx_int(o, "antialias") && a->scale < 1 ? 1 / a->scale : 1, sum = 0;
	x = fmin(fmax(x, -INT32_MAX), INT32_MAX);
	int64_t reach = (int64_t)ceil((kind == 'c' ? 2 : 1) * stretch), middle = (int64_t)floor(x);
	for (int64_t j = middle - reach; j <= middle + reach + 1; j++) {
		double w = weight_at(o, kind, x - (double)j, stretch);
		int64_t at = j < 0 ? 0 : j >= a->in ? a->in - 1 : j;
		if (at != j && excluded)
			continue;
		row[at] += (float)w;
		sum += w;
	}
	for (int64_t j = 0; j < a->in && sum != 0; j++)
		row[j] = (float)(row[j] / sum);
}

/* The matrix of an axis, [out, in], and a number to add where an element is outside of the region. */
static void make_weights(const struct onnx_op *o, const struct axis *a, float *weights, float *extra)
{
	const char *mode = onnx_string(o, "mode"),
		   *places = *o->row->text ? o->row->text : onnx_string(o, "coordinate_transformation_mode");
	const char *rounding = *o->row->text ? "floor" : onnx_string(o, "nearest_mode");
	bool cropped = strcmp(places, "tf_crop_and_resize") == 0;
	for (int64_t i = 0; i < a->out; i++) {
		double x = place_of(a, i, places);
		float *row = weights + i * a->in;
		if (cropped && (x < 0 || x > (double)(a->in - 1)))
			extra[i] = 1;
		else if (*mode == 'n')
			row[(int64_t)fmin(fmax(nearest(x, rounding), 0), (double)(a->in - 1))] = 1;
		else
			weigh_taps(o, a, *mode, x, row);
	}
}

/* The most elements that a row has weights for. */
static int64_t count_taps(const struct axis *a, const float *weights)
{
	int64_t most = 1;
	for (int64_t i = 0; i < a->out; i++) {
		int64_t n = 0;
		for (int64_t j = 0; j < a->in; j++)
			n += weights[i * a->in + j] != 0;
		most = n > most ? n : most;
	}
	return most;
}

static struct onnx_operand resize_axis(const struct onnx_op *o, struct onnx_operand x, int axis,
				       const struct axis *a)
{
	float *weights = ARENA_ARRAY(o->arena, float, a->out * a->in),
	      *extra = ARENA_ARRAY(o->arena, float, a->out);
	make_weights(o, a, weights, extra);
	int64_t taps = count_taps(a, weights), *at = ARENA_ARRAY(o->arena, int64_t, a->out * taps);
	float *share = ARENA_ARRAY(o->arena, float, a->out *taps);
	bool outside = false;
	for (int64_t i = 0; i < a->out; i++) {
		int64_t n = 0;
		outside |= extra[i] != 0;
		for (int64_t j = 0; j < a->in; j++)
			if (weights[i * a->in + j] != 0)
				at[i * taps + n] = j, share[i * taps + n++] = weights[i * a->in + j];
	}
	x = onnx_weighted_sum(o, x, axis, a->out, taps, at, share);
	if (!outside)
		return x;
	struct onnx_shape shape = {x.shape.rank - axis, {a->out, 1, 1, 1, 1, 1, 1, 1}};
	struct str s = str_in(o->arena);
	str_puts(&s, "where(b == 0, a, ");
	str_float(&s, (float)onnx_float(o, "extrapolation_value"));
	str_puts(&s, ")");
	return onnx_two(o, x, onnx_floats(o, &shape, extra), x.type, str_text(&s));
}

/* Of n numbers for the axes that are resized those of one axis, or what stands for it. */
static double at_axis(const float *list, int n, int which, double otherwise)
{
	return which >= 0 && which < n ? list[which] : otherwise;
}

/* By axis its place in the lists; -1 = it stays. */
static bool find_places(const struct onnx_op *o, int rank, int *place, int *n)
{
	const struct onnx_attribute *a = onnx_attribute(o, "axes");
	for (int d = 0; d < rank; d++)
		place[d] = a ? -1 : d;
	*n = a ? (int)a->n : rank;
	for (int i = 0; a && i < *n; i++) {
		int axis = onnx_axis(o, a->ints[i], rank);
		if (axis < 0)
			return false;
		place[axis] = i;
	}
	return true;
}

/* Whole elements; 0 of what is no number. */
static int64_t count_elements(double n)
{
	return n >= 1 ? (int64_t)floor(fmin(n, INT32_MAX)) : 0;
}

/* All scales become the least or the largest of them where the ratio is kept. */
static void keep_ratio(const struct onnx_op *o, struct axis *axes, const int *place, int rank)
{
	const char *policy = onnx_string(o, "keep_aspect_ratio_policy");
	bool larger = strcmp(policy, "not_smaller") == 0;
	double scale = 0;
	if (!larger && strcmp(policy, "not_larger") != 0)
		return;
	for (int d = 0; d < rank; d++)
		if (place[d] >= 0)
			scale = !scale	 ? axes[d].scale
				: larger ? fmax(scale, axes[d].scale)
					 : fmin(scale, axes[d].scale);
	for (int d = 0; d < rank; d++)
		if (place[d] >= 0)
			axes[d].scale = scale, axes[d].out = count_elements(scale * (double)axes[d].in + 0.5);
}

/* The inputs: until version 10, and of Upsample, the second one are scales; later it is the region. */
static bool read_axes(const struct onnx_op *o, struct axis *axes, int *place)
{
	float region[2 * RA_MAX_RANK] = {0}, scales[RA_MAX_RANK], sizes[RA_MAX_RANK];
	int rank = o->in[0].shape.rank, regions = 0, n = 0, given = 0, named, early = *o->row->text != 0;
	const struct onnx_attribute *a = onnx_attribute(o, "scales");
	if (!find_places(o, rank, place, &named))
		return false;
	for (; a && n < RA_MAX_RANK && n < (int)a->n; n++)
		scales[n] = a->floats[n];
	if ((!early && onnx_given(o, 1) && !onnx_known_floats(o, 1, 2 * RA_MAX_RANK, region, &regions)) ||
	    (onnx_given(o, early ? 1 : 2) && !onnx_known_floats(o, early ? 1 : 2, RA_MAX_RANK, scales, &n)) ||
	    (onnx_given(o, 3) && !onnx_known_floats(o, 3, RA_MAX_RANK, sizes, &given)))
		return false;
	if (n != named && given != named)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "neither scales nor sizes fit %d axes",
				      named);
	for (int d = 0; d < rank; d++) {
		struct axis *x = &axes[d];
		x->in = x->out = o->in[0].shape.dim[d], x->scale = 1;
		if (place[d] >= 0 && n == named)
			x->scale = scales[place[d]], x->out = count_elements((double)x->in * x->scale);
		else if (place[d] >= 0)
			x->out = count_elements(sizes[place[d]]), x->scale = (double)x->out / (double)x->in;
		x->begin = at_axis(region, regions, place[d], 0);
		x->end = at_axis(region, regions, place[d] < 0 ? -1 : place[d] + named, 1);
		if (x->out < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "nothing is left of axis %d", d);
	}
	if (n != named)
		keep_ratio(o, axes, place, rank);
	return true;
}

bool onnx_write_resize(struct onnx_op *o)
{
	struct axis axes[RA_MAX_RANK];
	struct onnx_operand x = o->in[0];
	int place[RA_MAX_RANK];
	if (!read_axes(o, axes, place))
		return false;
	for (int d = 0; d < x.shape.rank && x.given; d++)
		if (axes[d].out != axes[d].in || axes[d].scale != 1 || axes[d].begin != 0 || axes[d].end != 1)
			x = resize_axis(o, x, d, &axes[d]);
	o->out[0] = x;
	return x.given;
}
