/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Losses, of the class that a target names: axis 1 of the scores. */
#include "onnx/operators.h"

/* The sum over classes of what TEXT is at the target's class; the arguments are scores, targets, classes and
 * weights. */
static struct onnx_operand at_target(const struct onnx_op *o, struct onnx_operand *const *arg, int n,
				     const char *text)
{
	struct str s = str_in(o->arena);
	const struct onnx_shape *shape = &arg[1]->shape;
	str_puts(&s, "sum(where(b");
	onnx_put_axes(o, &s, shape->rank);
	str_printf(&s, " == c[%s0], %s, 0) for %s0 in %lld)", o->target->reduced, text, o->target->reduced,
		   (long long)arg[0]->shape.dim[1]);
	return onnx_nest(o, arg[0]->type, shape, arg, n, str_text(&s));
}

/* `a[i0, r0, i1, ...]` */
static const char *format_scores(const struct onnx_op *o, int rank)
{
	struct str s = str_in(o->arena);
	str_printf(&s, "a[%s0, %s0", o->target->axis, o->target->reduced);
	for (int d = 1; d < rank; d++)
		str_printf(&s, ", %s%d", o->target->axis, d);
	str_puts(&s, "]");
	return str_text(&s);
}

/* The weight of each target, 0 where it is ignored. */
static struct onnx_operand find_weights(const struct onnx_op *o, struct onnx_operand *const *arg,
					bool weighted)
{
	struct onnx_operand w = weighted ? at_target(o, arg, 4, onnx_format(o, "d[%s0]", o->target->reduced))
					 : onnx_map(o, *arg[1], arg[0]->type, "cast(a == a, f32)");
	if (!onnx_has(o, "ignore_index"))
		return w;
	return onnx_two(o, w, *arg[1], w.type,
			onnx_format(o, "where(b == %lld, 0, a)", (long long)onnx_int(o, "ignore_index")));
}

static bool keep_loss(struct onnx_op *o, struct onnx_operand loss, struct onnx_operand weight)
{
	const char *reduction = onnx_string(o, "reduction");
	unsigned all = (1u << loss.shape.rank) - 1;
	struct onnx_shape single = {0};
	if (strcmp(reduction, "none") == 0) {
		o->out[0] = loss;
		return true;
	}
	struct onnx_operand sum = onnx_reduce(o, loss, "sum", all, "$");
	if (strcmp(reduction, "mean") == 0)
		sum = onnx_two(o, sum, onnx_reduce(o, weight, "sum", all, "$"), sum.type, "a / b");
	o->out[0] = onnx_reshape(o, sum, &single);
	return o->out[0].given;
}

static bool write_loss(struct onnx_op *o, struct onnx_operand x)
{
	struct onnx_operand target = o->in[1], classes,
			    *arg[] = {&x, &target, &classes, onnx_given(o, 2) ? &o->in[2] : NULL};
	if (x.shape.rank < 2 || target.shape.rank != x.shape.rank - 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "scores have one axis more than targets, that of the classes");
	classes = onnx_count(o, target.type, x.shape.dim[1]);
	struct onnx_operand weight = find_weights(o, arg, onnx_given(o, 2));
	struct onnx_operand taken = at_target(o, arg, 3, format_scores(o, target.shape.rank));
	return keep_loss(o, onnx_two(o, taken, weight, x.type, "where(b == 0, 0, -a * b)"), weight);
}

bool onnx_write_likelihood_loss(struct onnx_op *o)
{
	return write_loss(o, o->in[0]);
}

bool onnx_write_cross_entropy_loss(struct onnx_op *o)
{
	struct onnx_operand x = onnx_softmax(o, o->in[0], 2, true);
	if (o->outs > 1)
		o->out[1] = x;
	return write_loss(o, x);
}
