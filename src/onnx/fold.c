/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Nodes that depend on constants alone, as those that compute shapes do: each is written as a model of its
 * own, which the oracle of sub-operators evaluates.  So there is one meaning of an operator. */
#include "onnx/import.h"
#include "subop/subop.h"

/* Elements of the inputs or outputs of a node: what is larger is left to the compiled model. */
enum { FOLDED_ELEMENTS = 4096 };

static bool is_small(const struct onnx_operand *x)
{
	return onnx_elements(&x->shape) <= FOLDED_ELEMENTS;
}

bool onnx_is_foldable(const struct onnx_op *o)
{
	for (int i = 0; i < o->ins; i++)
		if (o->in[i].given && (!o->in[i].constant || !is_small(&o->in[i])))
			return false;
	return o->ins > 0;
}

static void set_element(const struct onnx_tensor *t, int64_t i, double x)
{
	switch (t->type) {
	case ONNX_FLOAT:
		((float *)t->data)[i] = (float)x;
		break;
	case ONNX_INT64:
		((int64_t *)t->data)[i] = sub_integer(x);
		break;
	case ONNX_INT32:
		((int32_t *)t->data)[i] = (int32_t)sub_integer(x);
		break;
	default:
		((uint8_t *)t->data)[i] = (uint8_t)sub_integer(x);
	}
}

/* The type in which elements that were computed are kept. */
static enum onnx_type kept_type(enum onnx_type type)
{
	static const enum onnx_type types[DTYPES] = {[DTYPE_F32] = ONNX_FLOAT,
						     [DTYPE_I32] = ONNX_INT32,
						     [DTYPE_I64] = ONNX_INT64,
						     [DTYPE_BOOL] = ONNX_BOOL};
	return types[onnx_computed(type)];
}

static struct ra_model *finish_model(struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given)
			ra_builder_output(o->target->builder, onnx_format(o, "out.%d", i),
					  onnx_use(o, &o->out[i]), RA_AT_EVERY_NODE, NULL, 0);
	return ra_builder_finish(o->target->builder);
}

/* Evaluates a model without inputs on one row. */
static bool evaluate(struct onnx_op *o, const struct ra_model *model, double *const *outputs)
{
	static const int32_t zeros[2];
	struct sub_forest row = {
	    .nodes = 1, .inputs = 1, .child_begin = zeros, .root = zeros, .order = zeros};
	const void **params = ARENA_ARRAY(o->arena, const void *, o->target->weights.n + 1);
	struct sub_program p;
	sub_init(&p, o->arena, "constants");
	if (!sub_lower_model(&p, model, NULL, SUB_AT_MODEL, o->diags))
		return false;
	for (size_t i = 0; i < o->target->weights.n; i++)
		params[i] = o->target->weights.at[i].data;
	return sub_evaluate_in(SUB_BINARY32, &p, &row, params, NULL, outputs, o->arena);
}

static void keep_constant(struct onnx_op *o, struct onnx_operand *x, const double *elements)
{
	struct onnx_tensor *t = onnx_new_tensor(o, kept_type(x->type), &x->shape);
	for (int64_t i = 0; i < t->elements; i++)
		set_element(t, i, elements[i]);
	enum onnx_type type = x->type;
	*x = onnx_constant(o, t);
	x->type = type;
}

/* Whether the operands that were written are constants already, and none is too large. */
static bool is_done(const struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given && !o->out[i].constant)
			return false;
	return true;
}

bool onnx_fold_node(struct onnx_op *whole)
{
	struct onnx_op o = *whole;
	double *elements[ONNX_OUTPUT_LIMIT] = {NULL};
	o.target = ARENA_NEW(o.arena, struct onnx_target);
	if (!onnx_start_target(o.arena, o.diags, o.graph, o.target) || !o.row->write(&o))
		return false;
	if (is_done(&o))
		return true;
	struct ra_model *model = finish_model(&o);
	int n = 0;
	for (int i = 0; i < o.outs; i++)
		if (o.out[i].given)
			elements[n++] = ARENA_ARRAY(o.arena, double, onnx_elements(&o.out[i].shape) + 1);
	if (!model || !evaluate(&o, model, elements))
		return false;
	for (int i = 0, at = 0; i < o.outs; i++)
		if (o.out[i].given)
			keep_constant(&o, &o.out[i], elements[at++]);
	return true;
}
