/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products with matrices.  Axes are batch, height, width, channels; weights have the
 * channels of the result first, but depthwise ones last. */
#include "onnx/windows.h"
#include "tflite/requantise.h"

#include <math.h>
#include <stdlib.h>

enum { X, W, BIAS };

static const struct onnx_operand none;

/* A product while it is written. */
struct product {
	const struct onnx_op *o;
	enum lite_kind kind;
	struct onnx_operand x;
	int axis;	  /* of the weights: the channels of the result */
	int64_t channels; /* of the result */
	bool in_floats;	  /* the scales of input and weights are multiplied in f32, where there is one */
};

/* --- scales --- */

static bool check_weights(const struct product *p)
{
	const struct onnx_op *o = p->o;
	const struct onnx_quantisation *q = lite_input_scales(o, W);
	if (p->kind != LITE_BYTES)
		return o->in[W].type == ONNX_FLOAT ||
		       onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "its input is of type float and its weights of type %s",
				      onnx_type_traits_of(o->in[W].type)->name);
	if (o->in[W].type != ONNX_INT8 || !q)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "its input is of type int8 and its weights of type %s%s",
				      onnx_type_traits_of(o->in[W].type)->name, q ? "" : ", without a scale");
	if (q->n > 1 && q->axis != p->axis)
		return onnx_op_refuse(
		    o, DIAG_ONNX_SCALE, NULL,
		    "its weights have scales for axis %d, and the channels of the result are axis %d",
		    q->axis, p->axis);
	for (size_t i = 0; i < q->n; i++)
		if (q->zero[i])
			return onnx_op_refuse(
			    o, DIAG_ONNX_SCALE, NULL,
			    "its weights have the zero point %lld, and those of weights are 0",
			    (long long)q->zero[i]);
	return true;
}

/* The scale of sums of products, of channel i. */
static double scale_of_sums(const struct product *p, size_t i)
{
	const struct onnx_quantisation *w = lite_input_scales(p->o, W);
	float x = lite_input(p->o, X).scale;
	return p->in_floats && w->n == 1 ? (double)(x * w->scale[0])
					 : (double)x * (double)w->scale[w->n == 1 ? 0 : i];
}

/* What is added to sums is of their scale, as far as a fiftieth of a step of the result. */
static bool check_bias_scale(const struct product *p)
{
	const struct onnx_op *o = p->o;
	const struct onnx_quantisation *b = lite_input_scales(o, BIAS);
	if (b && b->n > 1 && b->n != (size_t)p->channels)
		return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
				      "its bias has %zu scales, and there are %lld channels", b->n,
				      (long long)p->channels);
	for (size_t i = 0; b && i < b->n; i++) {
		double wanted = scale_of_sums(p, i), has = b->scale[i];
		if (fabs(wanted - has) > 0.02 * (double)lite_output(o, 0).scale &&
		    lite_input_scales(o, W)->n == b->n)
			return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
					      "its scales disagree: that of its bias is %g, and those of its "
					      "input and weights give %g",
					      has, wanted);
	}
	return true;
}

static bool check_bias(const struct product *p)
{
	const struct onnx_op *o = p->o;
	if (!onnx_given(o, BIAS))
		return true;
	enum onnx_type wanted = p->kind == LITE_BYTES ? ONNX_INT32 : ONNX_FLOAT;
	if (o->in[BIAS].type != wanted)
		return onnx_op_refuse(
		    o, DIAG_ONNX_TYPE, NULL, "its bias is of type %s, and it adds %s to its sums",
		    onnx_type_traits_of(o->in[BIAS].type)->name, onnx_type_traits_of(wanted)->name);
	if (onnx_elements(&o->in[BIAS].shape) != p->channels || o->in[BIAS].shape.rank != 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its bias has not one number for each of %lld channels",
				      (long long)p->channels);
	return p->kind != LITE_BYTES || check_bias_scale(p);
}

/* Sums of products with the bias, as the result: scaled, and through the activation. */
static struct onnx_operand finish_sums(const struct product *p, struct onnx_operand sum)
{
	const struct onnx_op *o = p->o;
	const int64_t activation = onnx_int(o, "activation");
	int64_t least, most;
	if (onnx_given(o, BIAS))
		sum = onnx_two(o, sum, o->in[BIAS], sum.type, "a + b");
	if (p->kind == LITE_FLOATS)
		return lite_activate(o, sum, activation);
	size_t n = lite_input_scales(o, W)->n;
	struct fixed_factor *factor = ARENA_ARRAY(o->arena, struct fixed_factor, n);
	for (size_t i = 0; i < n; i++)
		if (!lite_find_factor(o, scale_of_sums(p, i) / (double)lite_output(o, 0).scale, &factor[i]))
			return none;
	if (!lite_find_range(o, activation, &least, &most))
		return none;
	return lite_clamp(o, lite_scale_integers(o, sum, factor, n, 0), lite_output(o, 0).zero, least, most,
			  ONNX_INT8);
}

/* Checks what all products have; `x` is the input then, less its zero point. */
static bool start_product(struct product *p, const struct onnx_op *o, int rank, int axis)
{
	*p = (struct product){.o = o, .kind = lite_find_kind(o, 1), .axis = axis};
	if (!p->kind)
		return false;
	if (!onnx_given(o, W) || o->in[W].shape.rank != rank)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its weights have %d axes, not %d",
				      o->in[W].shape.rank, rank);
	p->channels = o->in[W].shape.dim[axis];
	p->x = p->kind == LITE_BYTES ? lite_subtract_zero(o, X) : o->in[X];
	return check_weights(p) && check_bias(p);
}

/* --- convolutions --- */

enum { MOST_OF_WINDOW = 1 << 16 };

static bool is_moderate(int64_t n)
{
	return n >= 1 && n <= MOST_OF_WINDOW;
}

/* Finds borders and results: with the padding SAME (0) the result has a place for each `stride` of the input.
 */
static bool find_windows(const struct onnx_op *o, struct onnx_windows *w)
{
	bool same = onnx_int(o, "padding") == 0;
	if (!same && onnx_int(o, "padding") != 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "its padding is neither SAME (0) nor VALID (1)");
	for (int d = 0; d < 2; d++) {
		if (!is_moderate(w->stride[d]) || !is_moderate(w->dilation[d]) || !is_moderate(w->kernel[d]))
			return onnx_op_refuse(
			    o, DIAG_ONNX_ATTRIBUTE, NULL,
			    "a stride, a dilation or an extent of its window is not in 1 .. %d",
			    MOST_OF_WINDOW);
		int64_t room = w->in[d] - onnx_times(w->kernel[d] - 1, w->dilation[d]) - 1;
		w->out[d] = same       ? (w->in[d] + w->stride[d] - 1) / w->stride[d]
			    : room < 0 ? 0
				       : room / w->stride[d] + 1;
		int64_t border = same ? onnx_times(w->out[d] - 1, w->stride[d]) - room : 0;
		w->before[d] = border > 0 ? border / 2 : 0;
		w->after[d] = border > 0 ? border - border / 2 : 0;
		if (w->out[d] < 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its window is longer than axis %d",
					      d + 1);
	}
	return true;
}

bool lite_read_windows(const struct onnx_op *o, struct onnx_windows *w, int64_t height, int64_t width,
		       bool dilated)
{
	const struct onnx_shape *x = &o->in[X].shape;
	if (x->rank != 4)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its input has %d axes, not four", x->rank);
	*w = (struct onnx_windows){
	    .n = 2,
	    .in = {x->dim[1], x->dim[2]},
	    .kernel = {height, width},
	    .stride = {onnx_int(o, "stride_h"), onnx_int(o, "stride_w")},
	    .dilation = {dilated ? onnx_int(o, "dilation_h") : 1, dilated ? onnx_int(o, "dilation_w") : 1}};
	return find_windows(o, w);
}

static struct onnx_operand write_convolution(const struct product *p, const struct onnx_windows *w)
{
	const struct onnx_op *o = p->o;
	const char *i = o->target->axis, *r = o->target->reduced;
	struct onnx_shape shape = {4, {p->x.shape.dim[0], w->out[0], w->out[1], p->channels}};
	struct str s = str_in(o->arena);
	str_printf(&s, "sum(b[%s3, %s2, %s3, %s1] * a[%s0", i, r, r, r, i);
	onnx_put_windows(o, &s, w, 1);
	str_printf(&s, ", %s1] for ", r);
	onnx_put_kernel(o, &s, w, "");
	str_printf(&s, ", %s1 in %lld)", r, (long long)p->x.shape.dim[3]);
	return onnx_nest(o, p->x.type, &shape,
			 (struct onnx_operand *[]){(struct onnx_operand *)&p->x, &o->in[W]}, 2, str_text(&s));
}

bool onnx_write_tflite_conv(struct onnx_op *o)
{
	struct product p;
	struct onnx_windows w;
	const int64_t *k = o->in[W].shape.dim;
	if (!start_product(&p, o, 4, 0) || !lite_read_windows(o, &w, k[1], k[2], true))
		return false;
	if (k[3] != p.x.shape.dim[3])
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its weights are for %lld channels, and its input has %lld",
				      (long long)k[3], (long long)p.x.shape.dim[3]);
	o->out[0] = finish_sums(&p, write_convolution(&p, &w));
	return o->out[0].given;
}

/* Each channel of the input gives `times` of the result. */
static struct onnx_operand convolve_each(const struct product *p, const struct onnx_windows *w, int64_t times)
{
	const struct onnx_op *o = p->o;
	const char *i = o->target->axis, *r = o->target->reduced;
	struct onnx_shape joined = {4, {p->x.shape.dim[0], w->out[0], w->out[1], p->channels}},
			  shape = joined;
	struct str s = str_in(o->arena);
	if (times > 1)
		shape.rank = 5, shape.dim[3] = p->channels / times, shape.dim[4] = times;
	str_printf(&s, "sum(b[0, %s2, %s3, ", r, r);
	str_puts(&s, times > 1 ? onnx_format(o, "%lld*%s3 + %s4", (long long)times, i, i)
			       : onnx_format(o, "%s3", i));
	str_printf(&s, "] * a[%s0", i);
	onnx_put_windows(o, &s, w, 1);
	str_printf(&s, ", %s3] for ", i);
	onnx_put_kernel(o, &s, w, "");
	str_puts(&s, ")");
	return onnx_reshape(o,
			    onnx_nest(o, p->x.type, &shape,
				      (struct onnx_operand *[]){(struct onnx_operand *)&p->x, &o->in[W]}, 2,
				      str_text(&s)),
			    &joined);
}

bool onnx_write_tflite_depthwise(struct onnx_op *o)
{
	struct product p;
	struct onnx_windows w;
	const int64_t *k = o->in[W].shape.dim;
	if (!start_product(&p, o, 4, 3) || !lite_read_windows(o, &w, k[1], k[2], true))
		return false;
	int64_t channels = p.x.shape.dim[3], times = channels ? p.channels / channels : 0;
	if (k[0] != 1 || times < 1 || p.channels != times * channels)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its weights, of %lld channels, are not for each of %lld",
				      (long long)p.channels, (long long)channels);
	o->out[0] = finish_sums(&p, convolve_each(&p, &w, times));
	return o->out[0].given;
}

/* --- matrices --- */

bool onnx_write_tflite_fully_connected(struct onnx_op *o)
{
	struct product p;
	if (!start_product(&p, o, 2, 0))
		return false;
	p.in_floats = true;
	int64_t depth = o->in[W].shape.dim[1], n = onnx_elements(&p.x.shape);
	struct onnx_shape rows = {2, {depth ? n / depth : 0, depth}}, shape = p.x.shape, product = rows;
	bool kept = onnx_int(o, "keep_num_dims");
	if (onnx_int(o, "weights_format"))
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "its weights are shuffled, which is not supported");
	if (!depth || n % depth || (kept && (!shape.rank || shape.dim[shape.rank - 1] != depth)))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its weights are for rows of %lld numbers, and its input has %lld",
				      (long long)depth, (long long)n);
	product.dim[1] = p.channels;
	struct onnx_operand x = onnx_reshape(o, p.x, &rows);
	const char *text = onnx_name_indices(
	    o, onnx_format(o, "sum(a[@0, #0] * b[@1, #0] for #0 in %lld)", (long long)depth));
	struct onnx_operand y = finish_sums(
	    &p, onnx_nest(o, p.x.type, &product, (struct onnx_operand *[]){&x, &o->in[W]}, 2, text));
	if (kept)
		shape.dim[shape.rank - 1] = p.channels;
	o->out[0] = kept && y.given ? onnx_reshape(o, y, &shape) : y;
	return o->out[0].given;
}
