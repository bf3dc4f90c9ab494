/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements and change none. */
#include "onnx/operators.h"

/* Integers that are an attribute in early versions (the row names it), and an input in later ones. */
static bool find_ints(const struct onnx_op *o, int input, int64_t *out, int *n)
{
	const struct onnx_attribute *a = onnx_attribute(o, o->row->text);
	if (!*o->row->text && onnx_given(o, input))
		return onnx_known_ints(o, input, 2 * RA_MAX_RANK, out, n);
	*n = a ? (int)a->n : 0;
	return !a || onnx_ints(o, o->row->text, 2 * RA_MAX_RANK, 0, out);
}

static bool find_axes(const struct onnx_op *o, int rank, unsigned *mask)
{
	int64_t axes[2 * RA_MAX_RANK];
	int n;
	*mask = 0;
	if (!find_ints(o, 1, axes, &n))
		return false;
	for (int i = 0; i < n; i++) {
		int axis = onnx_axis(o, axes[i], rank < 0 ? o->in[0].shape.rank + n : rank);
		if (axis < 0)
			return false;
		*mask |= 1u << axis;
	}
	return true;
}

static bool keep_shape(struct onnx_op *o, const struct onnx_shape *shape)
{
	o->out[0] = onnx_reshape(o, o->in[0], shape);
	return o->out[0].given;
}

/* --- shapes --- */

/* The extent of -1 is what the others leave. */
static void find_rest(struct onnx_shape *shape, int64_t elements)
{
	int64_t others = 1;
	for (int d = 0; d < shape->rank; d++)
		others = onnx_times(others, shape->dim[d] == -1 ? 1 : shape->dim[d]);
	for (int d = 0; d < shape->rank; d++)
		if (shape->dim[d] == -1)
			shape->dim[d] = others ? elements / others : 0;
}

bool onnx_write_reshape(struct onnx_op *o)
{
	struct onnx_shape shape = {0};
	int64_t extent[2 * RA_MAX_RANK];
	int n;
	if (!find_ints(o, 1, extent, &n))
		return false;
	if (n > RA_MAX_RANK)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "values have at most %d axes, not %d",
				      RA_MAX_RANK, n);
	for (shape.rank = 0; shape.rank < n; shape.rank++) {
		bool copied =
		    !extent[shape.rank] && shape.rank < o->in[0].shape.rank && !onnx_int(o, "allowzero");
		shape.dim[shape.rank] = copied ? o->in[0].shape.dim[shape.rank] : extent[shape.rank];
	}
	find_rest(&shape, onnx_elements(&o->in[0].shape));
	return keep_shape(o, &shape);
}

bool onnx_write_flatten(struct onnx_op *o)
{
	struct onnx_shape from = o->in[0].shape, shape = {2, {1, 1}};
	int64_t axis = onnx_int(o, "axis");
	if (axis < -from.rank || axis > from.rank)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "there is no axis %lld of %d",
				      (long long)axis, from.rank);
	axis += axis < 0 ? from.rank : 0;
	for (int d = 0; d < from.rank; d++)
		shape.dim[d >= axis] = onnx_times(shape.dim[d >= axis], from.dim[d]);
	return keep_shape(o, &shape);
}

bool onnx_write_squeeze(struct onnx_op *o)
{
	struct onnx_shape from = o->in[0].shape, shape = {0};
	unsigned mask;
	if (!find_axes(o, from.rank, &mask))
		return false;
	for (int d = 0; d < from.rank; d++)
		if (!(mask ? mask >> d & 1 : from.dim[d] == 1))
			shape.dim[shape.rank++] = from.dim[d];
	return keep_shape(o, &shape);
}

bool onnx_write_unsqueeze(struct onnx_op *o)
{
	struct onnx_shape from = o->in[0].shape, shape = {0};
	unsigned mask;
	if (!find_axes(o, -1, &mask))
		return false;
	shape.rank = from.rank + __builtin_popcount(mask);
	if (shape.rank > RA_MAX_RANK)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "values have at most %d axes", RA_MAX_RANK);
	for (int d = 0, at = 0; d < shape.rank; d++)
		shape.dim[d] = mask >> d & 1 ? 1 : from.dim[at++];
	return keep_shape(o, &shape);
}

bool onnx_write_expand(struct onnx_op *o)
{
	int64_t extent[2 * RA_MAX_RANK];
	struct onnx_shape shape = {0};
	int n;
	if (!onnx_known_ints(o, 1, RA_MAX_RANK, extent, &n))
		return false;
	shape.rank = n;
	memcpy(shape.dim, extent, sizeof *extent * n);
	if (!onnx_broadcast(o, &o->in[0].shape, &shape, &shape))
		return false;
	o->out[0] = onnx_expand(o, o->in[0], &shape);
	return true;
}

/* The last axis but one of t copies. */
static struct onnx_operand repeat_axis(const struct onnx_op *o, struct onnx_operand x, int axis,
				       int64_t times)
{
	struct onnx_shape joined = x.shape, single = x.shape, repeated;
	joined.dim[axis] = onnx_times(joined.dim[axis], times);
	if (times == 1 || single.rank == RA_MAX_RANK)
		return x;
	memmove(&single.dim[axis + 1], &single.dim[axis], sizeof single.dim[0] * (single.rank - axis));
	single.dim[axis] = 1;
	single.rank++;
	repeated = single;
	repeated.dim[axis] = times;
	return onnx_reshape(o, onnx_expand(o, onnx_reshape(o, x, &single), &repeated), &joined);
}

bool onnx_write_tile(struct onnx_op *o)
{
	int64_t times[RA_MAX_RANK];
	int n;
	struct onnx_operand x = o->in[0];
	if (!onnx_known_ints(o, 1, RA_MAX_RANK, times, &n))
		return false;
	if (n != x.shape.rank || n == RA_MAX_RANK)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%d numbers cannot repeat %d axes", n,
				      x.shape.rank);
	for (int d = 0; d < n; d++) {
		if (times[d] < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "no repetition leaves no element");
		x = repeat_axis(o, x, d, times[d]);
	}
	o->out[0] = x;
	return x.given;
}

/* --- order --- */

bool onnx_write_transpose(struct onnx_op *o)
{
	int order[RA_MAX_RANK], rank = o->in[0].shape.rank;
	int64_t given[RA_MAX_RANK];
	bool reversed = !onnx_has(o, "perm");
	unsigned seen = 0;
	if (!onnx_ints(o, "perm", rank, -1, given))
		return false;
	for (int d = 0; d < rank; d++) {
		order[d] = reversed ? rank - 1 - d : given[d] < 0 || given[d] >= rank ? 0 : (int)given[d];
		seen |= 1u << order[d];
	}
	if (seen != (1u << rank) - 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "'perm' does not name each of %d axes once", rank);
	o->out[0] = onnx_transpose(o, o->in[0], order);
	return true;
}

static bool check_blocks(const struct onnx_op *o, int64_t block)
{
	return (o->in[0].shape.rank == 4 && block > 0) ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
			      "it takes a value of four axes and a block of at least 1");
}

bool onnx_write_depth_to_space(struct onnx_op *o)
{
	const int64_t *x = o->in[0].shape.dim, b = onnx_int(o, "blocksize");
	if (!check_blocks(o, b))
		return false;
	bool columns = strcmp(onnx_string(o, "mode"), "CRD") == 0;
	int64_t c = x[1] / (b * b);
	struct onnx_shape split = columns ? (struct onnx_shape){6, {x[0], c, b, b, x[2], x[3]}}
					  : (struct onnx_shape){6, {x[0], b, b, c, x[2], x[3]}};
	struct onnx_operand y = onnx_reshape(o, o->in[0], &split);
	if (y.given)
		y = onnx_transpose(o, y, columns ? (int[]){0, 1, 4, 2, 5, 3} : (int[]){0, 3, 4, 1, 5, 2});
	if (y.given)
		y = onnx_reshape(o, y, &(struct onnx_shape){4, {x[0], c, x[2] * b, x[3] * b}});
	o->out[0] = y;
	return y.given;
}

bool onnx_write_space_to_depth(struct onnx_op *o)
{
	const int64_t *x = o->in[0].shape.dim, b = onnx_int(o, "blocksize");
	if (!check_blocks(o, b))
		return false;
	struct onnx_operand y =
	    onnx_reshape(o, o->in[0], &(struct onnx_shape){6, {x[0], x[1], x[2] / b, b, x[3] / b, b}});
	if (y.given)
		y = onnx_transpose(o, y, (int[]){0, 3, 5, 1, 2, 4});
	if (y.given)
		y = onnx_reshape(o, y, &(struct onnx_shape){4, {x[0], x[1] * b * b, x[2] / b, x[3] / b}});
	o->out[0] = y;
	return y.given;
}

/* --- parts --- */

bool onnx_write_concat(struct onnx_op *o)
{
	struct onnx_operand *x = ARENA_ARRAY(o->arena, struct onnx_operand, o->ins);
	int n = 0, axis = onnx_axis(o, onnx_int(o, "axis"), o->in[0].shape.rank);
	if (axis < 0)
		return false;
	for (int i = 0; i < o->ins; i++)
		if (onnx_elements(&o->in[i].shape))
			x[n++] = o->in[i];
	o->out[0] = n ? onnx_concat(o, x, n, axis) : o->in[0];
	return true;
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

/* One axis of a slice; ends beyond the axis are those of it. */
static bool slice_axis(const struct onnx_op *o, struct onnx_operand *x, int axis, int64_t begin, int64_t end,
		       int64_t step)
{
	int64_t extent = x->shape.dim[axis], most = step > 0 ? extent : extent - 1, least = step > 0 ? 0 : -1;
	if (!step)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a step is 0");
	begin = clamp(begin < 0 ? begin + extent : begin, 0, most);
	end = clamp(end < 0 && end >= -extent ? end + extent : end, least, most);
	int64_t n = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
	if (n < 1 && x->constant) {
		struct onnx_shape shape = x->shape;
		shape.dim[axis] = 0;
		struct onnx_tensor *t = onnx_new_tensor(o, x->constant->type, &shape);
		*x = onnx_constant(o, t);
		return true;
	}
	if (n < 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, "values without elements are not computed",
				      "nothing is left of axis %d", axis);
	*x = step == 1 ? onnx_slice(o, *x, axis, begin, begin + n) : onnx_stride(o, *x, axis, begin, step, n);
	return true;
}

/* The same number for each axis that is sliced, or none. */
static bool find_list(const struct onnx_op *o, int input, const char *attribute, int64_t *out, int *n)
{
	const struct onnx_attribute *a = onnx_attribute(o, attribute);
	if (!a && onnx_given(o, input))
		return onnx_known_ints(o, input, RA_MAX_RANK, out, n);
	*n = a ? (int)a->n : 0;
	return !a || onnx_ints(o, attribute, RA_MAX_RANK, 0, out);
}

bool onnx_write_slice(struct onnx_op *o)
{
	int64_t begin[RA_MAX_RANK], end[RA_MAX_RANK], axes[RA_MAX_RANK], steps[RA_MAX_RANK];
	int n, ends, named, stepped = 0;
	struct onnx_operand x = o->in[0];
	if (!find_list(o, 1, "starts", begin, &n) || !find_list(o, 2, "ends", end, &ends) ||
	    !find_list(o, 3, "axes", axes, &named) || !find_list(o, 4, "steps", steps, &stepped))
		return false;
	if (ends != n || (named && named != n) || (stepped && stepped != n))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "starts, ends, axes and steps are not equally many");
	for (int i = 0; i < n; i++) {
		int axis = onnx_axis(o, named ? axes[i] : i, x.shape.rank);
		if (axis < 0 || !slice_axis(o, &x, axis, begin[i], end[i], stepped ? steps[i] : 1))
			return false;
	}
	o->out[0] = x;
	return true;
}

/* Parts of equal extent, of which the last may be smaller. */
static void split_evenly(const struct onnx_op *o, int64_t extent, int64_t *part)
{
	int64_t each = (extent + o->outs - 1) / o->outs;
	for (int i = 0; i < o->outs; i++, extent -= each)
		part[i] = extent < each ? extent : each;
}

bool onnx_write_split(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int64_t part[ONNX_OUTPUT_LIMIT], at = 0;
	int n, axis = onnx_axis(o, onnx_int(o, "axis"), x.shape.rank);
	if (axis < 0)
		return false;
	split_evenly(o, x.shape.dim[axis], part);
	if (onnx_given(o, 1) ? !onnx_known_ints(o, 1, ONNX_OUTPUT_LIMIT, part, &n)
			     : onnx_has(o, "split") && !onnx_ints(o, "split", o->outs, 0, part))
		return false;
	for (int i = 0; i < o->outs; at += part[i++]) {
		if (part[i] < 1 || at + part[i] > x.shape.dim[axis])
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, "values without elements are not computed",
					      "part %d of the axis has %lld elements", i, (long long)part[i]);
		o->out[i] = onnx_slice(o, x, axis, at, at + part[i]);
	}
	return true;
}

/* --- borders --- */

/* What stands before or behind an axis. */
static struct onnx_operand make_border(const struct onnx_op *o, struct onnx_operand x,
				       struct onnx_operand fill, int axis, int64_t n, bool after,
				       const char *mode)
{
	int64_t extent = x.shape.dim[axis];
	struct onnx_shape shape = x.shape;
	shape.dim[axis] = n;
	if (strcmp(mode, "reflect") == 0)
		return onnx_stride(o, x, axis, after ? extent - 2 : n, -1, n);
	if (strcmp(mode, "wrap") == 0)
		return onnx_slice(o, x, axis, after ? 0 : extent - n, after ? n : extent);
	if (strcmp(mode, "edge") == 0)
		return onnx_expand(o, onnx_slice(o, x, axis, after ? extent - 1 : 0, after ? extent : 1),
				   &shape);
	return onnx_expand(o, fill, &shape);
}

static bool pad_axis(const struct onnx_op *o, struct onnx_operand *x, struct onnx_operand fill, int axis,
		     int64_t before, int64_t after, const char *mode)
{
	struct onnx_operand part[3];
	int64_t extent = x->shape.dim[axis];
	int n = 0;
	bool constant = strcmp(mode, "constant") == 0;
	if (before + after + extent < 1 ||
	    (!constant && (before >= extent || after >= extent) && strcmp(mode, "edge") != 0))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "axis %d of %lld elements cannot be padded by %lld and %lld", axis,
				      (long long)extent, (long long)before, (long long)after);
	if (before > 0)
		part[n++] = make_border(o, *x, fill, axis, before, false, mode);
	part[n++] = onnx_slice(o, *x, axis, before < 0 ? -before : 0, after < 0 ? extent + after : extent);
	if (after > 0)
		part[n++] = make_border(o, *x, fill, axis, after, true, mode);
	*x = onnx_concat(o, part, n, axis);
	return true;
}

/* The element of borders of the mode `constant`: others have no use for it. */
static bool find_fill(const struct onnx_op *o, struct onnx_operand *fill)
{
	bool given = onnx_given(o, 2);
	*fill = given ? o->in[2] : onnx_number(o, o->in[0].type, onnx_float(o, "value"));
	return !given || onnx_reshape(o, *fill, &(struct onnx_shape){0}).given;
}

bool onnx_write_pad(struct onnx_op *o)
{
	int64_t pads[2 * RA_MAX_RANK] = {0}, axes[RA_MAX_RANK] = {0};
	struct onnx_operand x = o->in[0];
	int n, named = 0;
	if (!find_ints(o, 1, pads, &n) ||
	    (onnx_given(o, 3) && !onnx_known_ints(o, 3, RA_MAX_RANK, axes, &named)))
		return false;
	int padded = onnx_given(o, 3) ? named : x.shape.rank;
	if (n != 2 * padded)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%d numbers cannot pad %d axes", n, padded);
	const char *mode = onnx_string(o, "mode");
	struct onnx_operand fill = {0};
	if (strcmp(mode, "constant") == 0 && !find_fill(o, &fill))
		return false;
	for (int i = 0; i < padded; i++) {
		int axis = onnx_axis(o, onnx_given(o, 3) ? axes[i] : i, x.shape.rank);
		if (axis < 0 || !pad_axis(o, &x, fill, axis, pads[i], pads[i + padded], mode))
			return false;
	}
	o->out[0] = x;
	return true;
}
