/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The weights that bounds of errors need, read and computed once: by the oracle, a constant at a time. */
#include "rewrite/error_bound.h"

#include <math.h>

static bool read_param(struct rewrite_bounding *b, int param)
{
	const struct sub_tensor *t = &b->p->params.at[param];
	int64_t n = error_state_elements(t);
	if (b->param[param])
		return true;
	void *elements = ARENA_ARRAY(b->arena, char, n * dtype_traits_of(t->dtype)->bytes);
	b->param[param] = elements;
	return b->weights->read(b->weights->context, param, 0, n, elements, b->diags);
}

/* Reads the parameters that a program needs. */
static void read_params(struct rewrite_bounding *b, const struct sub_program *one)
{
	bool *live = ARENA_ARRAY(b->arena, bool, one->values.n);
	sub_mark_live(one, &one->bodies.at[0], live);
	for (uint32_t i = 1; i < one->values.n && !b->failed; i++)
		if (live[i] && one->values.at[i].op == SUB_PARAM)
			b->failed |= !read_param(b, one->values.at[i].which);
}

/* Makes a program of a constant as its one output. */
static struct sub_program isolate_constant(struct rewrite_bounding *b, uint32_t value)
{
	struct sub_program one = *b->p;
	const struct sub_value *v = &b->p->values.at[value];
	struct sub_output output = {.row = {.name = "constant", .rank = v->vars}};
	struct sub_body body = {.name = "constant", .domain = SUB_EVERY_INPUT};
	for (int i = 0; i < v->vars && i < TENSOR_MAX_RANK; i++)
		output.row.shape[i] = b->p->vars.at[v->var[i]].extent;
	memset(&one.bodies, 0, sizeof one.bodies);
	memset(&one.outputs, 0, sizeof one.outputs);
	vec_push(b->arena, &body.stores,
		 (struct sub_store){.to = SUB_TO_OUTPUT, .value = sub_as_is(b->p, (sub_ref){value})});
	vec_push(b->arena, &one.bodies, body);
	vec_push(b->arena, &one.outputs, output);
	return one;
}

/* The elements of a constant, by the oracle. */
static double *evaluate_constant(struct rewrite_bounding *b, uint32_t value)
{
	static const int32_t zero[2] = {0, 0};
	const struct sub_value *v = &b->p->values.at[value];
	int64_t n = error_elements(b, v);
	double *element = ARENA_ARRAY(b->arena, double, n), *outputs[] = {element};
	struct sub_program one = isolate_constant(b, value);
	read_params(b, &one);
	if (b->failed || v->vars > TENSOR_MAX_RANK || v->dtype != DTYPE_F32) {
		for (int64_t i = 0; i < n; i++)
			element[i] = INFINITY;
		return element;
	}
	struct sub_forest f = {1, 1, zero, zero, zero, zero,
			       ARENA_ARRAY(b->arena, const void *, b->p->inputs.n + 1), NULL};
	sub_evaluate(&one, &f, b->param, NULL, outputs, b->arena);
	return element;
}

const double *error_find_magnitude(struct rewrite_bounding *b, uint32_t value)
{
	if (b->magnitude[value])
		return b->magnitude[value];
	double *element = evaluate_constant(b, value);
	for (int64_t i = 0, n = error_elements(b, &b->p->values.at[value]); i < n; i++)
		element[i] = isnan(element[i]) ? INFINITY : fabs(element[i]);
	return b->magnitude[value] = element;
}
