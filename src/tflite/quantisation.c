/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Scales and zero points of tensors. */
#include "tflite/lite.h"

#include <float.h>

struct onnx_quantisation *tflite_read_quantisation(struct flat_file *f, const struct flat_table *tensor)
{
	struct flat_table t = flat_child(f, tensor, FLAT_TENSOR_quantization, FLAT_QUANTIZATION);
	struct flat_list scale = flat_list(f, &t, FLAT_QUANTIZATION_scale),
			 zero = flat_list(f, &t, FLAT_QUANTIZATION_zero_point);
	if (flat_number(f, &t, FLAT_QUANTIZATION_details_type))
		flat_refuse(f, "the quantisation at byte %u has details, which are not supported", t.at);
	if (zero.n && zero.n != scale.n)
		flat_refuse(f, "the quantisation at byte %u has %u scales and %u zero points", t.at, scale.n,
			    zero.n);
	if (f->failed || !scale.n)
		return NULL;
	struct onnx_quantisation *q = ARENA_NEW(f->arena, struct onnx_quantisation);
	float *scales = ARENA_ARRAY(f->arena, float, scale.n);
	int64_t *zeros = ARENA_ARRAY(f->arena, int64_t, scale.n);
	for (uint32_t i = 0; i < scale.n; i++) {
		scales[i] = flat_float_at(f, &scale, i);
		zeros[i] = zero.n ? flat_integer_at(f, &zero, i) : 0;
	}
	*q = (struct onnx_quantisation){scales, zeros, scale.n,
					(int)flat_number(f, &t, FLAT_QUANTIZATION_quantized_dimension)};
	return q;
}

/* The zero points that a type has; of types that are not quantised 0 alone. */
static int64_t least_zero(enum onnx_type type)
{
	return type == ONNX_INT8 ? INT8_MIN : type == ONNX_INT16 ? INT16_MIN : 0;
}

static int64_t most_zero(enum onnx_type type)
{
	return type == ONNX_INT8    ? INT8_MAX
	       : type == ONNX_UINT8 ? UINT8_MAX
	       : type == ONNX_INT16 ? INT16_MAX
				    : 0;
}

static bool check_pairs(struct diags *diags, const struct onnx_graph *g, const struct onnx_node *n,
			const struct onnx_value *v)
{
	const struct onnx_quantisation *q = v->quantisation;
	for (size_t i = 0; i < q->n; i++) {
		if (!(q->scale[i] > 0 && q->scale[i] <= FLT_MAX))
			return onnx_refuse(diags, g, n, DIAG_ONNX_SCALE, NULL,
					   "a scale of '%.120s' is %g, and scales are positive and finite",
					   v->name, (double)q->scale[i]);
		if (q->zero[i] < least_zero(v->type) || q->zero[i] > most_zero(v->type))
			return onnx_refuse(diags, g, n, DIAG_ONNX_SCALE, NULL,
					   "a zero point of '%.120s' is %lld, and the type %s has zero "
					   "points from %lld to %lld",
					   v->name, (long long)q->zero[i], onnx_type_traits_of(v->type)->name,
					   (long long)least_zero(v->type), (long long)most_zero(v->type));
	}
	return true;
}

/* One pair stands for all elements, and its axis for nothing; what a file says so of floats is left alone. */
static bool check_value(struct diags *diags, const struct onnx_graph *g, const struct onnx_node *n,
			const struct onnx_value *v)
{
	const struct onnx_quantisation *q = v->quantisation;
	if (!q || v->type == ONNX_FLOAT)
		return true;
	if (q->n > 1 && (q->axis < 0 || q->axis >= v->rank))
		return onnx_refuse(diags, g, n, DIAG_ONNX_SCALE, NULL,
				   "'%.120s' has scales for its axis %d, and %d axes", v->name, q->axis,
				   v->rank);
	if (q->n > 1 && v->dim[q->axis].size != (int64_t)q->n)
		return onnx_refuse(diags, g, n, DIAG_ONNX_SCALE, NULL,
				   "'%.120s' has %zu scales, and its axis %d has %lld elements", v->name,
				   q->n, q->axis, (long long)v->dim[q->axis].size);
	return check_pairs(diags, g, n, v);
}

bool tflite_check_quantisation(struct diags *diags, const struct onnx_graph *g, const struct onnx_node *n)
{
	for (size_t i = 0; i < n->inputs; i++)
		if (n->input[i] >= 0 && !check_value(diags, g, n, &g->value[n->input[i]]))
			return false;
	for (size_t i = 0; i < n->outputs; i++)
		if (n->output[i] >= 0 && !check_value(diags, g, n, &g->value[n->output[i]]))
			return false;
	return true;
}
