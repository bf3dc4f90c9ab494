/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Nodes that depend on constants alone, as those that compute shapes do: each is written as a model of its
 * own, which the oracle of sub-operators evaluates.  So there is one meaning of an operator. */
#include "onnx/import.h"
#include "subop/subop.h"

/* Elements of an input or output of a node: what is larger is left to the compiled model. */
enum { FOLDED_ELEMENTS = 4096 };

static bool is_small(const struct onnx_operand *x)
{
	return onnx_elements(&x->shape) <= FOLDED_ELEMENTS;
}

static bool is_small_constant(const struct onnx_tensor *t)
{
	return t && t->elements <= FOLDED_ELEMENTS;
}

/* Whether a value that a graph takes from the ones around is a small constant. */
static bool captures_constant(const struct onnx_scope *scope, int value)
{
	while (scope && !scope->operand[value].given && !scope->graph->value[value].constant) {
		value = scope->graph->value[value].outer;
		scope = value < 0 ? NULL : scope->around;
	}
	return scope && is_small_constant(scope->operand[value].given ? scope->operand[value].constant
								      : scope->graph->value[value].constant);
}

/* Whether a graph and the graphs in it have small constants and take such ones; of the latter only what the graph takes
 * from around it is looked at.  Graphs are no deeper than the reader allows. */
static bool has_small_constants(const struct onnx_scope *around, const struct onnx_graph *g)
{
	bool small = true;
	for (size_t i = 0; small && i < g->values; i++) {
		const struct onnx_value *v = &g->value[i];
		small = (!v->constant || is_small_constant(v->constant)) && (v->outer < 0 || !around || captures_constant(around, v->outer));
	}
	for (size_t n = 0; small && n < g->nodes; n++)
		for (size_t i = 0; small && i < g->node[n].attributes; i++)
			small = g->node[n].attribute[i].kind != ONNX_KIND_GRAPH || has_small_constants(NULL, g->node[n].attribute[i].graph);
	return small;
}

bool onnx_is_foldable(const struct onnx_op *o)
{
	for (int i = 0; i < o->ins; i++)
		if (o->in[i].given && !is_small_constant(o->in[i].constant))
			return false;
	for (size_t i = 0; i < o->node->attributes; i++) {
		const struct onnx_attribute *a = &o->node->attribute[i];
		if (a->kind == ONNX_KIND_GRAPH && !has_small_constants(o->importer->scope, a->graph))
			return false;
	}
	return o->ins > 0;
}

/* Sets an element that the oracle has computed. */
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

static struct ra_model *finish_model(struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given)
			ra_builder_output(o->target->builder, onnx_format(o, "out.%d", i),
					  onnx_use(o, &o->out[i]), RA_AT_EVERY_NODE, NULL, 0);
	return onnx_finish_target(o->target);
}

/* Elements that the oracle computes, those of reductions at each of their steps. */
static double count_elements(const struct sub_program *p)
{
	double n = 0;
	for (uint32_t i = 1; i < p->values.n; i++)
		n += sub_row_elements(p, &p->values.at[i]) * sub_reduced_extent(p, &p->values.at[i]);
	return n;
}

static bool is_affordable(struct onnx_importer *im, const struct sub_program *p)
{
	double n = count_elements(p);
	if (n > ONNX_EVALUATED || im->evaluated + n > ONNX_EVALUATED_IN_ALL)
		return false;
	im->evaluated += n;
	return true;
}

/* Where elements of the outputs are computed, in their order. */
static double *const *make_outputs(struct onnx_importer *im, const struct onnx_op *o)
{
	double **elements = ARENA_ARRAY(&im->scratch, double *, o->outs + 1);
	int n = 0;
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given)
			elements[n++] = ARENA_ARRAY(&im->scratch, double, onnx_elements(&o->out[i].shape) + 1);
	return elements;
}

/* Where elements of states are computed. */
static double *const *make_states(struct onnx_importer *im, const struct sub_program *p)
{
	double **elements = ARENA_ARRAY(&im->scratch, double *, p->states.n + 1);
	for (size_t s = 0; s < p->states.n; s++) {
		int64_t n = 1;
		for (int d = 0; d < p->states.at[s].rank; d++)
			n *= p->states.at[s].shape[d];
		elements[s] = ARENA_ARRAY(&im->scratch, double, n);
	}
	return elements;
}

/* Evaluates a model without inputs on one row, if that is affordable. */
static bool evaluate_model(struct onnx_importer *im, struct onnx_op *o, const struct ra_model *model,
			   double *const **outputs)
{
	static const int32_t zeros[2];
	struct sub_forest row = {
	    .nodes = 1, .inputs = 1, .child_begin = zeros, .root = zeros, .order = zeros};
	const void **params = ARENA_ARRAY(o->arena, const void *, o->target->weights.n + 1);
	struct sub_program p;
	*outputs = NULL;
	sub_init(&p, &im->scratch, "constants");
	if (!sub_lower_model(&p, model, NULL, SUB_AT_MODEL, o->diags))
		return false;
	if (!is_affordable(im, &p))
		return true;
	for (size_t i = 0; i < o->target->weights.n; i++)
		params[i] = o->target->weights.at[i].data;
	*outputs = make_outputs(im, o);
	return sub_evaluate_in(SUB_BINARY32, &p, &row, params, make_states(im, &p), *outputs, &im->scratch);
}

static void keep_constant(struct onnx_op *o, struct onnx_operand *x, const double *elements)
{
	struct onnx_tensor *t = onnx_new_tensor(o, onnx_kept_type(x->type), &x->shape);
	for (int64_t i = 0; i < t->elements; i++)
		set_element(t, i, elements[i]);
	enum onnx_type type = x->type;
	*x = onnx_constant(o, t);
	x->type = type;
}

/* Whether the operands that were written are constants already. */
static bool is_done(const struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given && !o->out[i].constant)
			return false;
	return true;
}

static bool has_small_outputs(const struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++)
		if (o->out[i].given && !is_small(&o->out[i]))
			return false;
	return true;
}

/* Makes constants of the outputs; of none where computing them is not affordable. */
static bool compute_outputs(struct onnx_importer *im, struct onnx_op *o, bool *folded)
{
	struct ra_model *model = finish_model(o);
	double *const *elements;
	bool good = model && evaluate_model(im, o, model, &elements);
	*folded = good && elements;
	for (int i = 0, at = 0; i < o->outs && *folded; i++)
		if (o->out[i].given)
			keep_constant(o, &o->out[i], elements[at++]);
	return good;
}

/* Operands of a node refer to the target, which therefore is not scratch: another one never has its place. */
bool onnx_fold_node(struct onnx_importer *im, struct onnx_op *whole, bool *folded)
{
	struct onnx_op o = *whole;
	o.target = ARENA_NEW(o.arena, struct onnx_target);
	im->scratch.escape = im->arena->escape;
	im->scratch.limit = im->arena->limit;
	if (!onnx_start_target(im, &im->scratch, o.target) || !o.row->write(&o))
		return false;
	*folded = is_done(&o);
	if (!*folded && has_small_outputs(&o) && !compute_outputs(im, &o, folded))
		return false;
	if (!*folded)
		memset(o.out, 0, sizeof *o.out * o.outs);
	arena_free(&im->scratch);
	return true;
}
