/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Windows: convolutions and pools.  Each is one value in index notation; axes 0 and 1 are the batch and the
 * channels. */
#include "onnx/quantised_values.h"
#include "onnx/windows.h"

#include <stdlib.h>

static bool is_auto(const struct onnx_op *o, const char *what)
{
	return strcmp(onnx_string(o, "auto_pad"), what) == 0;
}

static bool read_windows(const struct onnx_op *o, struct onnx_windows *w)
{
	int64_t pads[2 * ONNX_SPACE];
	if (!onnx_ints(o, "strides", w->n, 1, w->stride) ||
	    !onnx_ints(o, "dilations", w->n, 1, w->dilation) || !onnx_ints(o, "pads", 2 * w->n, 0, pads))
		return false;
	for (int d = 0; d < w->n; d++) {
		w->before[d] = pads[d], w->after[d] = pads[d + w->n];
		if (w->stride[d] < 1 || w->dilation[d] < 1 || w->kernel[d] < 1)
			return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
					      "a stride, a dilation or a kernel is not positive");
	}
	return true;
}

int64_t onnx_reach(const struct onnx_windows *w, int d)
{
	return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

static void pad_same(const struct onnx_op *o, struct onnx_windows *w, int d, int64_t total)
{
	total = total < 0 ? 0 : total;
	w->before[d] = w->after[d] = total / 2;
	*(is_auto(o, "SAME_UPPER") ? &w->after[d] : &w->before[d]) += total % 2;
}

/* Finds borders and results of one axis. */
static void fit_windows(const struct onnx_op *o, struct onnx_windows *w, int d, bool ceil)
{
	int64_t stride = w->stride[d];
	if (is_auto(o, "SAME_UPPER") || is_auto(o, "SAME_LOWER")) {
		w->out[d] = (w->in[d] + stride - 1) / stride;
		pad_same(o, w, d, (w->out[d] - 1) * stride + onnx_reach(w, d) - w->in[d]);
		return;
	}
	if (is_auto(o, "VALID"))
		w->before[d] = w->after[d] = 0;
	int64_t space = w->in[d] + w->before[d] + w->after[d] - onnx_reach(w, d);
	w->out[d] = space < 0 ? 0 : space / stride + 1 + (ceil && space % stride);
	if (ceil && (w->out[d] - 1) * stride >= w->in[d] + w->before[d])
		w->out[d]--;
}

static bool find_windows(const struct onnx_op *o, struct onnx_windows *w, bool ceil)
{
	if (!read_windows(o, w))
		return false;
	for (int d = 0; d < w->n; d++) {
		fit_windows(o, w, d, ceil);
		if (w->out[d] < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "the window is longer than axis %d",
					      d + 2);
	}
	return true;
}

void onnx_put_windows(const struct onnx_op *o, struct str *s, const struct onnx_windows *w, int first)
{
	for (int d = 0; d < w->n; d++) {
		str_printf(s, ", ");
		str_printf(s, w->stride[d] == 1 ? "%.0lld%s%d + " : "%lld*%s%d + ",
			   w->stride[d] == 1 ? 0 : (long long)w->stride[d], o->target->axis, first + d);
		str_printf(s, w->dilation[d] == 1 ? "%.0lld%s%d" : "%lld*%s%d",
			   w->dilation[d] == 1 ? 0 : (long long)w->dilation[d], o->target->reduced, 2 + d);
		if (w->before[d])
			str_printf(s, w->before[d] > 0 ? " - %lld" : " + %lld",
				   (long long)llabs(w->before[d]));
	}
}

void onnx_put_kernel(const struct onnx_op *o, struct str *s, const struct onnx_windows *w, const char *before)
{
	for (int d = 0; d < w->n; d++)
		str_printf(s, "%s%s%d in %lld", d ? ", " : before, o->target->reduced, 2 + d,
			   (long long)w->kernel[d]);
}

/* --- convolution --- */

/* What a convolution of groups multiplies: in one group, for each channel alone, or in general. */
struct groups {
	int64_t n, in, out; /* channels of each */
};

static bool find_groups(const struct onnx_op *o, const struct onnx_shape *x, const struct onnx_shape *w,
			bool transposed, struct groups *g)
{
	g->n = onnx_int(o, "group");
	if (g->n < 1 || x->rank < 3 || x->rank != w->rank || x->dim[1] % g->n)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "a convolution of %lld groups does not fit its input", (long long)g->n);
	g->in = x->dim[1] / g->n;
	g->out = transposed ? w->dim[1] : w->dim[0] / g->n;
	return (transposed ? w->dim[0] == x->dim[1] : w->dim[1] == g->in && w->dim[0] % g->n == 0) ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "the weights have %lld channels, and the input %lld",
			      (long long)w->dim[transposed ? 0 : 1], (long long)x->dim[1]);
}

/* The shape of a value with an axis of groups before that of their channels, unless one of both is enough. */
static bool shape_of_groups(const struct groups *g, const struct onnx_windows *w, int64_t batch,
			    struct onnx_shape *shape)
{
	bool split = g->n > 1 && g->out > 1;
	*shape = (struct onnx_shape){2, {batch, split ? g->n : g->n * g->out}};
	if (split)
		shape->dim[shape->rank++] = g->out;
	for (int d = 0; d < w->n; d++)
		shape->dim[shape->rank++] = w->out[d];
	return split;
}

static struct onnx_operand join_groups(const struct onnx_op *o, struct onnx_operand y, const struct groups *g,
				       bool split)
{
	struct onnx_shape shape = y.shape;
	if (!split)
		return y;
	memmove(&shape.dim[1], &shape.dim[2], sizeof shape.dim[0] * (shape.rank - 2));
	shape.dim[1] = g->n * g->out;
	shape.rank--;
	return onnx_reshape(o, y, &shape);
}

/* `C*i1 + r1`, of the channels of a group; `one` of one channel. */
static const char *channel(const struct onnx_op *o, const struct groups *g)
{
	const char *i = o->target->axis, *r = o->target->reduced;
	return g->n == 1    ? onnx_format(o, "%s1", r)
	       : g->in == 1 ? onnx_format(o, "%s1", i)
			    : onnx_format(o, "%lld*%s1 + %s1", (long long)g->in, i, r);
}

static struct onnx_operand convolve(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand k,
				    const struct groups *g, const struct onnx_windows *w)
{
	struct str s = str_in(o->arena);
	struct onnx_shape shape;
	const char *i = o->target->axis, *r = o->target->reduced;
	bool split = shape_of_groups(g, w, x.shape.dim[0], &shape), single = g->in == 1 && g->n > 1;
	str_puts(&s, "sum(b[");
	str_printf(&s, split ? "%lld*%s1 + %s2" : "%.0lld%s1%.0s", split ? (long long)g->out : 0, i, i);
	str_printf(&s, single ? ", 0" : ", %s1", r);
	for (int d = 0; d < w->n; d++)
		str_printf(&s, ", %s%d", r, 2 + d);
	str_printf(&s, "] * a[%s0, %s", i, channel(o, g));
	onnx_put_windows(o, &s, w, 2 + split);
	str_printf(&s, single ? "] for " : "] for %s1 in %lld, ", r, (long long)g->in);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	return join_groups(
	    o, onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x, &k}, 2, str_text(&s)), g, split);
}

struct onnx_operand onnx_add_bias(const struct onnx_op *o, struct onnx_operand y, int input)
{
	struct onnx_shape shape = {y.shape.rank - 1, {y.shape.dim[1], 1, 1, 1, 1, 1, 1, 1}};
	if (!y.given || !onnx_given(o, input))
		return y;
	struct onnx_operand bias = onnx_reshape(o, o->in[input], &shape);
	return bias.given ? onnx_two(o, y, bias, y.type, "a + b") : bias;
}

static bool find_convolution(const struct onnx_op *o, const struct onnx_shape *x, const struct onnx_shape *k,
			     struct groups *g, struct onnx_windows *w)
{
	*w = (struct onnx_windows){.n = x->rank - 2};
	if (!find_groups(o, x, k, false, g))
		return false;
	for (int d = 0; d < w->n; d++)
		w->in[d] = x->dim[2 + d], w->kernel[d] = k->dim[2 + d];
	return find_windows(o, w, false);
}

bool onnx_write_conv(struct onnx_op *o)
{
	struct groups g;
	struct onnx_windows w;
	if (!find_convolution(o, &o->in[0].shape, &o->in[1].shape, &g, &w))
		return false;
	o->out[0] = onnx_add_bias(o, convolve(o, o->in[0], o->in[1], &g, &w), 2);
	return o->out[0].given;
}

bool onnx_write_conv_integer(struct onnx_op *o)
{
	struct groups g;
	struct onnx_windows w;
	struct onnx_operand x = o->in[0], k = o->in[1];
	x.type = k.type = ONNX_INT32;
	if (!find_convolution(o, &x.shape, &k.shape, &g, &w) || !onnx_check_zero(o, 2, o->in[0].type, 1) ||
	    !onnx_check_zero(o, 3, o->in[1].type, k.shape.dim[0]))
		return false;
	if (onnx_given(o, 2))
		x = onnx_subtract_zero(o, x, o->in[2]);
	if (onnx_given(o, 3)) {
		struct onnx_operand zero = o->in[3];
		if (zero.shape.rank == 1 && zero.shape.dim[0] > 1)
			zero = onnx_reshape(
			    o, zero,
			    &(struct onnx_shape){k.shape.rank, {zero.shape.dim[0], 1, 1, 1, 1, 1, 1, 1}});
		k = onnx_subtract_zero(o, k, zero);
	}
	if (x.given && k.given)
		o->out[0] = convolve(o, x, k, &g, &w);
	return o->out[0].given;
}

/* --- transposed convolution --- */

/* Elements with stride - 1 zeros behind each. */
static struct onnx_operand spread_axis(const struct onnx_op *o, struct onnx_operand x, int axis,
				       int64_t stride)
{
	struct onnx_shape split = x.shape, zeros, joined = x.shape;
	if (stride == 1)
		return x;
	if (x.shape.rank == RA_MAX_RANK) {
		onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "values have at most %d axes", RA_MAX_RANK);
		return (struct onnx_operand){0};
	}
	memmove(&split.dim[axis + 2], &split.dim[axis + 1], sizeof split.dim[0] * (split.rank - axis - 1));
	split.dim[axis + 1] = 1;
	split.rank++;
	zeros = split;
	zeros.dim[axis + 1] = stride - 1;
	joined.dim[axis] = onnx_times(joined.dim[axis], stride);
	struct onnx_operand part[] = {onnx_reshape(o, x, &split),
				      onnx_expand(o, onnx_number(o, x.type, 0), &zeros)};
	return onnx_reshape(o, onnx_concat(o, part, 2, axis + 1), &joined);
}

/* The results of a transposed convolution, and where they begin and end. */
static bool find_transposed(const struct onnx_op *o, struct onnx_windows *w)
{
	int64_t extra[ONNX_SPACE], wanted[ONNX_SPACE];
	if (!read_windows(o, w) || !onnx_ints(o, "output_padding", w->n, 0, extra) ||
	    !onnx_ints(o, "output_shape", w->n, 0, wanted))
		return false;
	bool same = is_auto(o, "SAME_UPPER") || is_auto(o, "SAME_LOWER");
	for (int d = 0; d < w->n; d++) {
		int64_t all = (w->in[d] - 1) * w->stride[d] + onnx_reach(w, d) + extra[d];
		int64_t out = onnx_has(o, "output_shape") ? wanted[d] : same ? w->in[d] * w->stride[d] : 0;
		if (out)
			pad_same(o, w, d, all - out);
		w->out[d] = out ? out : all - w->before[d] - w->after[d];
		if (w->out[d] < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "nothing is left of axis %d", 2 + d);
	}
	return true;
}

static struct onnx_operand convolve_back(const struct onnx_op *o, struct onnx_operand x,
					 struct onnx_operand k, const struct groups *g,
					 const struct onnx_windows *w)
{
	struct str s = str_in(o->arena);
	struct onnx_shape shape;
	const char *i = o->target->axis, *r = o->target->reduced;
	bool split = shape_of_groups(g, w, x.shape.dim[0], &shape), single = g->in == 1 && g->n > 1;
	str_printf(&s, "sum(b[%s", channel(o, g));
	str_printf(&s, split ? ", %s2" : g->out == 1 ? ", 0%.0s" : ", %s1", i);
	for (int d = 0; d < w->n; d++)
		str_printf(&s, ", %s%d", r, 2 + d);
	str_printf(&s, "] * a[%s0, %s", i, channel(o, g));
	for (int d = 0; d < w->n; d++)
		str_printf(&s, ", %s%d - %lld*%s%d + %lld", i, 2 + split + d, (long long)w->dilation[d], r,
			   2 + d, (long long)w->before[d]);
	str_printf(&s, single ? "] for " : "] for %s1 in %lld, ", r, (long long)g->in);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	return join_groups(
	    o, onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x, &k}, 2, str_text(&s)), g, split);
}

bool onnx_write_conv_transpose(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], k = o->in[1];
	struct onnx_windows w = {.n = x.shape.rank - 2};
	struct groups g;
	if (!find_groups(o, &x.shape, &k.shape, true, &g))
		return false;
	for (int d = 0; d < w.n; d++)
		w.in[d] = x.shape.dim[2 + d], w.kernel[d] = k.shape.dim[2 + d];
	if (!find_transposed(o, &w))
		return false;
	for (int d = 0; d < w.n && x.given; d++)
		x = spread_axis(o, x, 2 + d, w.stride[d]);
	o->out[0] = x.given ? onnx_add_bias(o, convolve_back(o, x, k, &g, &w), 2) : x;
	return o->out[0].given;
}

/* --- pools --- */

static bool find_pool(const struct onnx_op *o, const struct onnx_shape *x, struct onnx_windows *w)
{
	*w = (struct onnx_windows){.n = x->rank - 2};
	if (x->rank < 3)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a pool takes values of at least three axes");
	for (int d = 0; d < w->n; d++)
		w->in[d] = x->dim[2 + d];
	return onnx_ints(o, "kernel_shape", w->n, 1, w->kernel) &&
	       find_windows(o, w, onnx_int(o, "ceil_mode"));
}

/* FUNCTION of TEXT over the window, where $ is its element. */
static struct onnx_operand pool_windows(const struct onnx_op *o, struct onnx_operand x, const struct onnx_windows *w,
				const char *function, const char *before, const char *after)
{
	struct str s = str_in(o->arena);
	struct onnx_shape shape = {x.shape.rank, {x.shape.dim[0], x.shape.dim[1]}};
	memcpy(&shape.dim[2], w->out, sizeof w->out[0] * w->n);
	str_printf(&s, "%s(%sa[%s0, %s1", function, before, o->target->axis, o->target->axis);
	onnx_put_windows(o, &s, w, 2);
	str_printf(&s, "]%s for ", after);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	return onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

/* Of the elements of a window from place `begin` on how many lie before a place. */
static int64_t count_before(const struct onnx_windows *w, int d, int64_t begin, int64_t place)
{
	int64_t n = (place - begin + w->dilation[d] - 1) / w->dilation[d];
	return place <= begin ? 0 : n < w->kernel[d] ? n : w->kernel[d];
}

int64_t onnx_count_inside(const struct onnx_windows *w, int d, int64_t at, bool padding)
{
	int64_t first = padding ? -w->before[d] : 0, last = w->in[d] + (padding ? w->after[d] : 0);
	int64_t begin = at * w->stride[d] - w->before[d];
	return count_before(w, d, begin, last) - count_before(w, d, begin, first);
}

/* How many elements windows average along an axis, by place; NULL after a diagnostic, where one averages none. */
static float *count_averaged(const struct onnx_op *o, const struct onnx_windows *w, int d, bool padding)
{
	float *count = ARENA_ARRAY(o->arena, float, w->out[d]);
	for (int64_t i = 0; i < w->out[d]; i++) {
		count[i] = (float)onnx_count_inside(w, d, i, padding);
		if (count[i] == 0) {
			onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "a window lies in the pads of axis %d alone", d + 2);
			return NULL;
		}
	}
	return count;
}

/* The shares of elements, which differ at the borders: one factor for each axis. */
static struct onnx_operand average_windows(const struct onnx_op *o, struct onnx_operand y, const struct onnx_windows *w)
{
	bool padding = onnx_int(o, "count_include_pad");
	for (int d = 0; d < w->n; d++) {
		float *share = count_averaged(o, w, d, padding);
		bool equal = true;
		if (!share)
			return (struct onnx_operand){0};
		for (int64_t i = 0; i < w->out[d]; i++) {
			share[i] = 1 / share[i];
			equal &= share[i] == share[0];
		}
		struct onnx_shape shape = {w->n - d, {w->out[d], 1, 1, 1, 1, 1, 1, 1}};
		struct onnx_operand factor =
		    equal ? onnx_number(o, y.type, share[0]) : onnx_floats(o, &shape, share);
		y = onnx_two(o, y, factor, y.type, "a * b");
	}
	return y;
}

/* The position of each element in its plane of space, counted along rows or columns. */
static struct onnx_operand list_positions(const struct onnx_op *o, const struct onnx_windows *w)
{
	struct onnx_shape shape = {w->n, {0}};
	memcpy(shape.dim, w->in, sizeof w->in[0] * w->n);
	int64_t n = onnx_elements(&shape), *at = ARENA_ARRAY(o->arena, int64_t, n);
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = i, step = n;
		at[i] = onnx_int(o, "storage_order") ? 0 : i;
		for (int d = w->n; d-- > 0 && onnx_int(o, "storage_order"); rest /= w->in[d])
			step /= w->in[d], at[i] += rest % w->in[d] * step;
	}
	return onnx_integers(o, &shape, at);
}

/* Of elements that are the largest of their window the first position, in the whole value. */
static struct onnx_operand find_positions(const struct onnx_op *o, struct onnx_operand x,
					  struct onnx_operand y, const struct onnx_windows *w)
{
	struct str s = str_in(o->arena);
	struct onnx_operand at = list_positions(o, w),
			    planes = onnx_count(o, ONNX_INT64, x.shape.dim[0] * x.shape.dim[1]);
	struct onnx_shape batch = {y.shape.rank, {x.shape.dim[0], x.shape.dim[1], 1, 1, 1, 1, 1, 1}};
	str_printf(&s, "min(where(a[%s0, %s1", o->target->axis, o->target->axis);
	onnx_put_windows(o, &s, w, 2);
	str_puts(&s, "] == b");
	onnx_put_axes(o, &s, y.shape.rank);
	str_puts(&s, ", c[");
	struct str inside = str_in(o->arena);
	onnx_put_windows(o, &inside, w, 2);
	str_printf(&s, "%s], 9007199254740992) for ", str_text(&inside) + 2);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	struct onnx_operand plane =
	    onnx_nest(o, ONNX_INT64, &y.shape, (struct onnx_operand *[]){&x, &y, &at}, 3, str_text(&s));
	planes = onnx_reshape(o, planes, &batch);
	int64_t elements = onnx_elements(&at.shape);
	return onnx_two(o, plane, planes, ONNX_INT64, onnx_format(o, "a + %lld * b", (long long)elements));
}

/* The elements that windows average, as ONNX Runtime counts them: all of the kernel, or those inside of the value. */
static struct onnx_operand count_elements(const struct onnx_op *o, const struct onnx_windows *w)
{
	struct onnx_shape shape = {w->n, {0}};
	memcpy(shape.dim, w->out, sizeof w->out[0] * w->n);
	int64_t n = onnx_elements(&shape), kernel = 1;
	for (int d = 0; d < w->n; d++)
		kernel = onnx_times(kernel, w->kernel[d]);
	if (onnx_int(o, "count_include_pad"))
		return onnx_number(o, ONNX_FLOAT, (double)kernel);
	float *count = ARENA_ARRAY(o->arena, float, n), *along[ONNX_SPACE];
	bool equal = true;
	for (int d = 0; d < w->n; d++)
		if (!(along[d] = count_averaged(o, w, d, false)))
			return (struct onnx_operand){0};
	for (int64_t i = 0; i < n; i++) {
		count[i] = 1;
		for (int64_t d = w->n, rest = i; d-- > 0; rest /= w->out[d])
			count[i] *= along[d][rest % w->out[d]];
		equal &= count[i] == count[0];
	}
	return equal ? onnx_number(o, ONNX_FLOAT, count[0]) : onnx_floats(o, &shape, count);
}

bool onnx_sum_windows(const struct onnx_op *o, struct onnx_operand x, struct onnx_pooled *pooled)
{
	struct onnx_windows w;
	if (!find_pool(o, &x.shape, &w))
		return false;
	pooled->whole = true;
	for (int d = 0; d < w.n; d++)
		pooled->whole &= w.kernel[d] == w.in[d] && !w.before[d] && !w.after[d];
	pooled->sum = pool_windows(o, x, &w, "sum", "", "");
	if (!pooled->sum.id)
		return false;
	pooled->count = count_elements(o, &w);
	return pooled->count.given;
}

/* What the largest element of a window finds beside a value: the least number of its type, where that is a
 * narrow one, so that the results are known to have the type, too. */
static const char *least_beside(const struct onnx_op *o, enum onnx_type type)
{
	int bits = onnx_type_traits_of(type)->bits;
	bool narrow = onnx_computed(type) == DTYPE_I32 && bits < 32;
	return narrow ? onnx_format(o, " else %d", type == ONNX_UINT8 ? 0 : -(1 << (bits - 1))) : "";
}

bool onnx_write_pool(struct onnx_op *o)
{
	struct onnx_windows w;
	bool mean = strcmp(o->row->text, "sum") == 0;
	if (!find_pool(o, &o->in[0].shape, &w))
		return false;
	o->out[0] = pool_windows(o, o->in[0], &w, o->row->text, "", mean ? "" : least_beside(o, o->in[0].type));
	if (!o->out[0].id)
		return false;
	if (mean)
		o->out[0] = average_windows(o, o->out[0], &w);
	if (o->outs > 1)
		o->out[1] = find_positions(o, o->in[0], o->out[0], &w);
	return o->out[0].given;
}

bool onnx_write_lp_pool(struct onnx_op *o)
{
	struct onnx_windows w;
	int64_t p = onnx_int(o, "p");
	if (!find_pool(o, &o->in[0].shape, &w))
		return false;
	if (p != 1 && p != 2)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "p is %lld, and 1 and 2 are supported",
				      (long long)p);
	struct onnx_operand x = p == 1 ? onnx_map(o, o->in[0], o->in[0].type, "abs(a)")
				       : onnx_map(o, o->in[0], o->in[0].type, "a * a");
	x = pool_windows(o, x, &w, "sum", "", "");
	o->out[0] = p == 1 ? x : onnx_map(o, x, x.type, "sqrt(a)");
	return true;
}
