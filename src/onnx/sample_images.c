/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images that are read between their pixels: GridSample, RoiAlign.  Along each axis a place becomes the
 * pixels around it, the taps, and a weight of each; an element is the sum over the taps of both axes. */
#include "onnx/operators.h"

/* How places along an axis become taps. */
struct sampling {
	const char *kind;    /* nearest, linear or cubic */
	const char *outside; /* zeros, border or reflection */
	bool corners; /* the outermost places are the centres of the outermost pixels, else their borders */
};

/* By place [..., place] the indices of its taps and their weights [..., place, tap].  An index is i32, and -1
 * of what is outside and reads zero. */
struct taps {
	struct onnx_operand index, weight;
};

/* The shape with an axis more at its end. */
static struct onnx_shape with_axis(struct onnx_shape shape, int64_t extent)
{
	shape.dim[shape.rank++] = extent;
	return shape;
}

/* Mirrors places that are outside at the borders of the axis, as often as it takes. */
static struct onnx_operand reflect_places(const struct onnx_op *o, struct onnx_operand x, int64_t extent,
					  bool corners)
{
	long long range = (long long)(corners ? extent - 1 : extent);
	if (!range)
		return onnx_map(o, x, x.type, "0 * a");
	x = onnx_map(o, x, x.type,
		     onnx_format(o, corners ? "fmod(abs(a), %lld)" : "fmod(abs(a + 0.5), %lld)", 2 * range));
	return onnx_map(
	    o, x, x.type,
	    onnx_format(o, corners ? "minimum(a, %lld - a)" : "minimum(a, %lld - a) - 0.5", 2 * range));
}

/* Moves places that are outside of the axis into it; zeros stay outside. */
static struct onnx_operand bring_inside(const struct onnx_op *o, struct onnx_operand x, int64_t extent,
					const struct sampling *how)
{
	if (strcmp(how->outside, "reflection") == 0)
		x = reflect_places(o, x, extent, how->corners);
	if (strcmp(how->outside, "zeros") == 0)
		return x;
	return onnx_map(o, x, x.type, onnx_format(o, "minimum(maximum(a, 0), %lld)", (long long)extent - 1));
}

/* Keys' cubic with the parameter -0.75, of a distance. */
static const char cubic[] =
    "where(abs(a) <= 1, (1.25 * abs(a) - 2.25) * a * a + 1, "
    "where(abs(a) < 2, ((-0.75 * abs(a) + 3.75) * abs(a) - 6) * abs(a) + 3, 0))";

static struct taps find_taps(const struct onnx_op *o, struct onnx_operand x, int64_t extent,
			     const struct sampling *how)
{
	static const float offset[] = {-1, 0, 1, 2};
	bool nearest = strcmp(how->kind, "nearest") == 0, smooth = strcmp(how->kind, "cubic") == 0;
	int n = nearest ? 1 : smooth ? 4 : 2, last = x.shape.rank;
	struct onnx_shape shape = with_axis(x.shape, n);
	struct onnx_operand offsets = onnx_floats(o, &(struct onnx_shape){1, {n}}, offset + !smooth);
	x = bring_inside(o, nearest ? onnx_map(o, x, x.type, "round(a)") : x, extent, how);
	struct str s = str_in(o->arena);
	str_puts(&s, nearest ? "a" : "floor(a");
	onnx_put_axes(o, &s, last);
	str_puts(&s, nearest ? "" : ")");
	str_printf(&s, " + b[%s%d]", o->target->axis, last);
	struct onnx_operand at =
	    onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x, &offsets}, 2, str_text(&s));
	struct onnx_shape spread = with_axis(x.shape, 1);
	struct onnx_operand distance = onnx_two(o, onnx_reshape(o, x, &spread), at, x.type, "a - b");
	struct taps t = {.weight = onnx_map(o, distance, x.type, smooth ? cubic : "maximum(1 - abs(a), 0)")};
	t.index =
	    onnx_map(o, bring_inside(o, at, extent, how), ONNX_INT32,
		     onnx_format(o, "where(a >= 0 and a <= %lld, cast(a, i32), -1)", (long long)extent - 1));
	return t;
}

/* The numbers of pixels in an image of `columns`, by the taps of both axes; -1 where one of them is. */
static struct onnx_operand number_pixels(const struct onnx_op *o, struct onnx_operand row,
					 struct onnx_operand column, int64_t columns)
{
	return onnx_two(o, row, column, ONNX_INT32,
			onnx_format(o, "where(a < 0 or b < 0, -1, a * %lld + b)", (long long)columns));
}

/* The two values of the last axis of a grid, as places in an axis of so many pixels. */
static struct onnx_operand find_places(const struct onnx_op *o, int which, int64_t extent, bool corners)
{
	struct onnx_operand x = onnx_select(o, o->in[1], 3, which);
	return onnx_map(o, x, x.type,
			onnx_format(o, corners ? "(a + 1) * %lld / 2" : "(a + 1) * %lld / 2 - 0.5",
				    (long long)(corners ? extent - 1 : extent)));
}

static bool read_sampling(const struct onnx_op *o, struct sampling *how)
{
	static const char *const names[][2] = {{"bilinear", "linear"},
					       {"bicubic", "cubic"},
					       {"linear", "linear"},
					       {"cubic", "cubic"},
					       {"nearest", "nearest"}};
	const char *mode = onnx_string(o, "mode");
	*how = (struct sampling){.outside = onnx_string(o, "padding_mode"),
				 .corners = onnx_int(o, "align_corners")};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(mode, names[i][0]) == 0)
			how->kind = names[i][1];
	if (!how->kind)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "bilinear, bicubic and nearest are supported",
				      "the mode is '%s'", mode);
	return strcmp(how->outside, "zeros") == 0 || strcmp(how->outside, "border") == 0 ||
	       strcmp(how->outside, "reflection") == 0 ||
	       onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "zeros, border and reflection are supported",
			      "the padding is '%s'", how->outside);
}

/* y[n, c, i, j] of x[n, c, h, w] at grid[n, i, j, (x, y)]. */
bool onnx_write_grid_sample(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], grid = o->in[1];
	const int64_t *dim = x.shape.dim;
	struct sampling how;
	if (x.shape.rank != 4 || grid.shape.rank != 4 || grid.shape.dim[3] != 2 ||
	    grid.shape.dim[0] != dim[0])
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "images [N, C, H, W] and a grid [N, I, J, 2] are taken");
	if (!read_sampling(o, &how))
		return false;
	struct taps column = find_taps(o, find_places(o, 0, dim[3], how.corners), dim[3], &how),
		    row = find_taps(o, find_places(o, 1, dim[2], how.corners), dim[2], &how);
	int64_t taps = row.index.shape.dim[3];
	struct onnx_shape rows = row.index.shape, flat = {3, {dim[0], dim[1], dim[2] * dim[3]}};
	rows = with_axis(rows, 1);
	struct onnx_shape columns = {5, {rows.dim[0], rows.dim[1], rows.dim[2], 1, taps}};
	struct onnx_operand pixel = number_pixels(o, onnx_reshape(o, row.index, &rows),
						  onnx_reshape(o, column.index, &columns), dim[3]);
	struct onnx_operand image = onnx_reshape(o, x, &flat);
	struct onnx_shape shape = {4, {dim[0], dim[1], rows.dim[1], rows.dim[2]}};
	o->out[0] = onnx_nest(o, x.type, &shape,
			      (struct onnx_operand *[]){&image, &pixel, &row.weight, &column.weight}, 4,
			      onnx_name_indices(o,
						"sum(a[@0, @1, b[@0, @2, @3, #0, #1]] * "
						"(c[@0, @2, @3, #0] * d[@0, @2, @3, #1]) for #0, #1)"));
	return o->out[0].given;
}

/* Of regions [r, (x0, y0, x1, y1)] the places of samples along one axis: [r, bins * samples]. */
static struct onnx_operand place_samples(const struct onnx_op *o, int first, int64_t bins, int64_t samples,
					 bool half)
{
	struct onnx_operand begin = onnx_select(o, o->in[1], 1, first),
			    end = onnx_select(o, o->in[1], 1, first + 2);
	struct str scale = str_in(o->arena);
	str_float(&scale, (float)onnx_float(o, "spatial_scale"));
	const char *by = onnx_format(o, half ? "a * %s - 0.5" : "a * %s", str_text(&scale));
	begin = onnx_map(o, begin, begin.type, by), end = onnx_map(o, end, end.type, by);
	struct onnx_operand size = onnx_two(o, end, begin, begin.type, half ? "a - b" : "maximum(a - b, 1)");
	struct onnx_operand count = onnx_cast(o, onnx_count(o, ONNX_INT32, bins * samples), begin.type);
	struct onnx_shape shape = {2, {begin.shape.dim[0], bins * samples}};
	return onnx_nest(o, begin.type, &shape, (struct onnx_operand *[]){&begin, &size, &count}, 3,
			 onnx_name_indices(o, onnx_format(o, "a[@0] + (c[@1] + 0.5) * b[@0] / %lld",
							  (long long)(bins * samples))));
}

/* Taps of places that are at most a pixel outside; what is farther away is zero. */
static struct taps find_region_taps(const struct onnx_op *o, struct onnx_operand x, int64_t extent)
{
	struct taps t = find_taps(o, x, extent, &(struct sampling){"linear", "border", false});
	struct onnx_shape spread = with_axis(x.shape, 1);
	t.weight = onnx_two(o, t.weight, onnx_reshape(o, x, &spread), x.type,
			    onnx_format(o, "where(b < -1 or b > %lld, 0, a)", (long long)extent));
	return t;
}

/* Of an average of samples y[r, c, i, j] = v[r, c, S*i + s, S*j + t] over s and t, each between pixels of an
 * image. */
bool onnx_write_roi_align(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], regions = o->in[1], image = o->in[2];
	const char *mode = onnx_string(o, "mode");
	int64_t samples = onnx_int(o, "sampling_ratio"), height = onnx_int(o, "output_height"),
		width = onnx_int(o, "output_width");
	bool half = strcmp(onnx_string(o, "coordinate_transformation_mode"), "half_pixel") == 0;
	if (x.shape.rank != 4 || regions.shape.rank != 2 || regions.shape.dim[1] != 4 ||
	    image.shape.rank != 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "images [N, C, H, W], regions [R, 4] and numbers [R] are taken");
	if (strcmp(mode, "avg") != 0)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "avg is supported", "the mode is '%s'", mode);
	if (samples < 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "give the samples by sampling_ratio",
				      "the number of samples depends on the regions");
	const int64_t *dim = x.shape.dim;
	struct onnx_shape bins = {2, {onnx_times(height, samples), onnx_times(width, samples)}};
	if (!onnx_has_extents(&bins) || height < 1 || width < 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "%lld times %lld bins of %lld samples",
				      (long long)height, (long long)width, (long long)samples);
	struct taps row = find_region_taps(o, place_samples(o, 1, height, samples, half), dim[2]),
		    column = find_region_taps(o, place_samples(o, 0, width, samples, half), dim[3]);
	int64_t n = regions.shape.dim[0];
	struct onnx_shape rows = {5, {n, bins.dim[0], 1, 2, 1}}, columns = {5, {n, 1, bins.dim[1], 1, 2}},
			  each = {5, {n, 1, 1, 1, 1}};
	struct onnx_operand pixel = number_pixels(o, onnx_reshape(o, row.index, &rows),
						  onnx_reshape(o, column.index, &columns), dim[3]);
	pixel = onnx_two(o, pixel, onnx_reshape(o, onnx_cast(o, image, ONNX_INT32), &each), ONNX_INT32,
			 onnx_format(o, "b * %lld + a", (long long)(dim[2] * dim[3])));
	struct onnx_operand all = onnx_reshape(o, onnx_transpose(o, x, (int[]){1, 0, 2, 3}),
					       &(struct onnx_shape){2, {dim[1], dim[0] * dim[2] * dim[3]}});
	struct onnx_shape shape = {4, {n, dim[1], height, width}};
	const char *text =
	    "sum(a[@1, b[@0, %lld*@2 + #2, %lld*@3 + #3, #0, #1]] * (c[@0, %lld*@2 + #2, #0] * "
	    "d[@0, %lld*@3 + #3, #1]) for #2 in %lld, #3 in %lld, #0, #1) / %lld";
	long long s = (long long)samples;
	o->out[0] =
	    onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&all, &pixel, &row.weight, &column.weight},
		      4, onnx_name_indices(o, onnx_format(o, text, s, s, s, s, s, s, s * s)));
	return o->out[0].given;
}
