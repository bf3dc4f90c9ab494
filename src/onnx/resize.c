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

/* The nearest element of the axis. */
static int64_t clamp_place(const struct axis *a, double x)
{
	return (int64_t)fmin(fmax(x, 0), (double)(a->in - 1));
}

/* By which weights elements are added up. */
struct filter {
	char kind;	 /* the first letter of the mode */
	bool excluded;	 /* weights outside of the axis are left out */
	double coefficient; /* of cubic weights */
	double stretch;	 /* how wide weights are, which smooth what is made smaller */
	int64_t reach;	 /* how many elements of the input are weighed on either side of a place */
};

static struct filter read_filter(const struct onnx_op *o, const struct axis *a)
{
	struct filter f = {.kind = *onnx_string(o, "mode"),
			   .excluded = onnx_int(o, "exclude_outside"),
			   .coefficient = onnx_float(o, "cubic_coeff_a"),
			   .stretch = onnx_int(o, "antialias") && a->scale < 1 ? 1 / a->scale : 1};
	f.reach = (int64_t)ceil((f.kind == 'c' ? 2 : 1) * f.stretch);
	return f;
}

/* The weight of the element at a distance, in elements of the input. */
static double weight_at(const struct filter *f, double distance)
{
	distance /= f->stretch;
	if (f->kind == 'c')
		return cubic(distance, f->coefficient);
	return fmax(0, 1 - fabs(distance));
}

/* The weights of an output element: of n elements of the input, from `first` on. */
struct window {
	int64_t first, n;
	float *weight;
};

/* Fills the window of a place: weights outside of the axis are those of its end, or left out.  A place may be
 * any number, as the region of the file is. */
static void weigh_taps(const struct filter *f, const struct axis *a, double x, struct window *row)
{
	double sum = 0;
	x = fmin(fmax(x, -INT32_MAX), INT32_MAX);
	int64_t middle = (int64_t)floor(x);
	row->first = clamp_place(a, middle - f->reach);
	row->n = clamp_place(a, middle + f->reach + 1) - row->first + 1;
	memset(row->weight, 0, sizeof *row->weight * row->n);
	for (int64_t j = middle - f->reach; j <= middle + f->reach + 1; j++) {
		double w = weight_at(f, x - (double)j);
		int64_t at = clamp_place(a, j);
		if (at != j && f->excluded)
			continue;
		row->weight[at - row->first] += (float)w;
		sum += w;
	}
	for (int64_t j = 0; j < row->n && sum != 0; j++)
		row->weight[j] = (float)(row->weight[j] / sum);
}

/* Which elements an axis is a weighted sum of: `taps` of each of its elements, by ascending place, padded with
 * weights of 0; and a number to add where an element is outside of the region. */
struct weights {
	int64_t taps, *at;
	float *share, *extra;
	bool outside;
};

/* Appends the weights of a window that are not 0 to those of an element; returns their number. */
static int64_t put_window(const struct window *row, int64_t *at, float *share)
{
	int64_t n = 0;
	for (int64_t j = 0; j < row->n; j++)
		if (row->weight[j] != 0)
			at[n] = row->first + j, share[n++] = row->weight[j];
	return n;
}

/* Moves the taps of all elements together: each has `taps` of the room that there was for it. */
static void pack_taps(struct weights *w, int64_t n, int64_t room)
{
	for (int64_t i = 0; i < n && w->taps < room; i++) {
		memmove(w->at + i * w->taps, w->at + i * room, sizeof *w->at * w->taps);
		memmove(w->share + i * w->taps, w->share + i * room, sizeof *w->share * w->taps);
	}
}

static struct weights make_weights(const struct onnx_op *o, const struct axis *a)
{
	const char *places = *o->row->text ? o->row->text : onnx_string(o, "coordinate_transformation_mode");
	const struct filter filter = read_filter(o, a);
	const char *rounding = *o->row->text ? "floor" : onnx_string(o, "nearest_mode");
	bool cropped = strcmp(places, "tf_crop_and_resize") == 0;
	int64_t window = filter.kind == 'n' ? 1 : 2 * filter.reach + 2, room = window < a->in ? window : a->in;
	struct window row = {.weight = ARENA_ARRAY(o->arena, float, room)};
	struct weights w = {.taps = 1,
			    .at = ARENA_ARRAY(o->arena, int64_t, onnx_times(a->out, room)),
			    .share = ARENA_ARRAY(o->arena, float, onnx_times(a->out, room)),
			    .extra = ARENA_ARRAY(o->arena, float, a->out)};
	for (int64_t i = 0; i < a->out; i++) {
		double x = place_of(a, i, places);
		row.n = 0;
		if (cropped && (x < 0 || x > (double)(a->in - 1)))
			w.extra[i] = 1, w.outside = true;
		else if (filter.kind == 'n')
			row.first = clamp_place(a, nearest(x, rounding)), row.n = 1, *row.weight = 1;
		else
			weigh_taps(&filter, a, x, &row);
		int64_t n = put_window(&row, w.at + i * room, w.share + i * room);
		w.taps = n > w.taps ? n : w.taps;
	}
	pack_taps(&w, a->out, room);
	return w;
}

static struct onnx_operand resize_axis(const struct onnx_op *o, struct onnx_operand x, int axis,
				       const struct axis *a)
{
	const struct weights w = make_weights(o, a);
	x = onnx_weighted_sum(o, x, axis, a->out, w.taps, w.at, w.share);
	if (!w.outside)
		return x;
	struct onnx_shape shape = {x.shape.rank - axis, {a->out, 1, 1, 1, 1, 1, 1, 1}};
	struct str s = str_in(o->arena);
	str_puts(&s, "where(b == 0, a, ");
	str_float(&s, (float)onnx_float(o, "extrapolation_value"));
	str_puts(&s, ")");
	return onnx_two(o, x, onnx_floats(o, &shape, w.extra), x.type, str_text(&s));
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
	}
	if (n != named)
		keep_ratio(o, axes, place, rank);
	for (int d = 0; d < rank; d++)
		if (axes[d].in < 1 || axes[d].out < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "axis %d %s", d,
					      axes[d].in < 1 ? "has no element" : "is resized to nothing");
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
