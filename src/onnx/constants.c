/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators whose values are known when a graph is imported. */
#include "onnx/operators.h"

#include <math.h>

static bool has_extents(const struct onnx_shape *shape)
{
	for (int d = 0; d < shape->rank; d++)
		if (shape->dim[d] < 0)
			return false;
	return shape->rank <= RA_MAX_RANK;
}

/* Elements in the computed type, which all are 0. */
static struct onnx_tensor *new_elements(const struct onnx_op *o, enum onnx_type type,
					const struct onnx_shape *shape)
{
	if (onnx_type_traits_of(type)->dtype == DTYPES)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "there are no values of the type %s here",
				      onnx_type_traits_of(type)->name),
		       NULL;
	if (!has_extents(shape))
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "the constant has a negative extent, or more axes than %d", RA_MAX_RANK),
		       NULL;
	return onnx_new_tensor(o, onnx_kept_type(type), shape);
}

bool onnx_write_constant(struct onnx_op *o)
{
	const struct onnx_attribute *a;
	struct onnx_shape single = {0};
	if ((a = onnx_attribute(o, "value")))
		o->out[0] = onnx_constant(o, a->tensor);
	else if ((a = onnx_attribute(o, "value_int")))
		o->out[0] = onnx_integers(o, &single, &a->i);
	else if ((a = onnx_attribute(o, "value_float")))
		o->out[0] = onnx_floats(o, &single, &a->f);
	else if ((a = onnx_attribute(o, "value_ints")))
		o->out[0] = onnx_integers(o, &(struct onnx_shape){1, {(int64_t)a->n}}, a->ints);
	else if ((a = onnx_attribute(o, "value_floats")))
		o->out[0] = onnx_floats(o, &(struct onnx_shape){1, {(int64_t)a->n}}, a->floats);
	else
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "it has no value");
	if (o->out[0].shape.rank > RA_MAX_RANK)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "values have at most %d axes", RA_MAX_RANK);
	if (onnx_type_traits_of(o->out[0].type)->dtype == DTYPES)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, "export the model in 32-bit types",
				      "there are no values of the type %s here",
				      onnx_type_traits_of(o->out[0].type)->name);
	return true;
}

bool onnx_write_constant_of_shape(struct onnx_op *o)
{
	const struct onnx_attribute *a = onnx_attribute(o, "value");
	int64_t extent[RA_MAX_RANK];
	struct onnx_shape shape;
	if (!onnx_known_ints(o, 0, RA_MAX_RANK, extent, &shape.rank))
		return false;
	memcpy(shape.dim, extent, sizeof extent);
	struct onnx_tensor *t = new_elements(o, a ? a->tensor->type : ONNX_FLOAT, &shape);
	for (int64_t i = 0; a && t && i < t->elements; i++)
		onnx_set_number(t, i, onnx_number_at(a->tensor, 0));
	if (t)
		o->out[0] = onnx_constant(o, t);
	return t != NULL;
}

bool onnx_write_eye_like(struct onnx_op *o)
{
	const struct onnx_shape *shape = &o->in[0].shape;
	int64_t k = onnx_int(o, "k");
	struct onnx_tensor *t =
	    new_elements(o, onnx_has(o, "dtype") ? onnx_int(o, "dtype") : o->in[0].type, shape);
	if (!t || shape->rank != 2)
		return t && onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "it takes a matrix");
	for (int64_t i = 0; i < shape->dim[0]; i++)
		if (i + k >= 0 && i + k < shape->dim[1])
			onnx_set_number(t, i * shape->dim[1] + i + k, 1);
	o->out[0] = onnx_constant(o, t);
	return true;
}

bool onnx_write_range(struct onnx_op *o)
{
	float x[3];
	int n;
	for (int i = 0; i < 3; i++)
		if (!onnx_given(o, i) || !onnx_known_floats(o, i, 1, &x[i], &n) || n != 1)
			return false;
	double elements = x[2] ? ((double)x[1] - x[0]) / x[2] : 0;
	struct onnx_shape shape = {1, {(int64_t)ceil(fmin(fmax(elements, 0), 0x1p40))}};
	struct onnx_tensor *t = elements < 0 ? NULL : new_elements(o, o->in[0].type, &shape);
	for (int64_t i = 0; t && i < shape.dim[0]; i++)
		onnx_set_number(t, i, x[0] + (double)i * x[2]);
	if (t)
		o->out[0] = onnx_constant(o, t);
	return t || onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "the range has no elements");
}

bool onnx_write_shape(struct onnx_op *o)
{
	const struct onnx_shape *shape = &o->in[0].shape;
	int64_t begin = onnx_int(o, "start"), end = onnx_int(o, "end"), rank = shape->rank;
	begin = begin < 0 ? begin + rank : begin;
	end = end < 0 ? end + rank : end;
	begin = begin < 0 ? 0 : begin > rank ? rank : begin;
	end = end < begin ? begin : end > rank ? rank : end;
	o->out[0] = onnx_integers(o, &(struct onnx_shape){1, {end - begin}}, shape->dim + begin);
	return true;
}

bool onnx_write_size(struct onnx_op *o)
{
	o->out[0] = onnx_integers(o, &(struct onnx_shape){0}, (int64_t[]){onnx_elements(&o->in[0].shape)});
	return true;
}
