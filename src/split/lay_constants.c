/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights as the accelerator reads them, and what is added to its sums, as parameters that are computed when weights are bound:
 *
 *     weights [block of outputs][block of inputs][row][column][16 outputs][16 inputs], zeros behind the last ones
 *     bias + (what the accelerator takes off the input + the offset) * sum of weights, likewise
 *
 * What is added is kept within 2^30 where the accelerator requantises: beyond that every result is one of the bounds. */
#include "split/target_split.h"

#include "rewrite/expressions.h"

static int64_t count_blocks(int64_t n)
{
	return vta_blocks(n);
}

int split_add_param(struct sub_program *to, sub_ref value, enum dtype dtype, const char *name)
{
	const struct sub_value v = *sub_at(to, value);
	struct sub_tensor t = {.name = sub_find_free_name(to, SUB_NAME_TENSOR | SUB_NAME_BODY, name),
			       .dtype = dtype, .rank = v.vars, .folded = true};
	for (int d = 0; d < v.vars; d++) {
		t.shape[d] = to->vars.at[v.var[d]].extent;
		t.var[d] = sub_other_dim(to, t.shape[d], t.var, d);
	}
	vec_push(to->arena, &to->params, t);
	struct sub_body b = {.name = t.name, .domain = SUB_AT_BINDING};
	struct sub_store s = {.to = SUB_TO_PARAM, .which = (int)to->params.n - 1, .value = {.value = value, .vars = v.vars}};
	memcpy(s.value.var, t.var, v.vars * sizeof *t.var);
	vec_push(to->arena, &b.stores, s);
	vec_push(to->arena, &to->bodies, b);
	return s.which;
}

/* --- weights --- */

/* The index of a dimension of weights: of outputs and inputs the block and the place in it. */
static struct sub_map map_dim(const struct split_product *q, const int *var, int d)
{
	if (d == q->weight_dim[SPLIT_IMAGE] || d == q->weight_dim[SPLIT_CHANNEL]) {
		int inputs = d == q->weight_dim[SPLIT_CHANNEL];
		return (struct sub_map){.function = SUB_AFFINE, .var = var[inputs], .var2 = var[4 + inputs], .scale = VTA_BLOCK, .scale2 = 1};
	}
	for (int a = 0; a < 2; a++)
		if (d == q->weight_dim[SPLIT_ROW + a])
			return (struct sub_map){.function = SUB_AFFINE, .var = var[2 + a], .scale = 1};
	return (struct sub_map){.function = SUB_AFFINE, .var = -1};
}

/* Zeros beside the diagonal of each block. */
static sub_ref keep_diagonal(struct sub_program *to, sub_ref blocks)
{
	const struct sub_value v = *sub_at(to, blocks);
	struct sub_use index[2];
	for (int i = 0; i < 2; i++)
		index[i] = rewrite_use_value(to, (struct sub_value){.op = SUB_INDEX, .vars = 1, .var = {v.var[4 + i]}});
	struct sub_use own = rewrite_add_operator(to, SUB_EQUALS, index[0], index[1], (struct sub_use){0});
	return rewrite_add_operator(to, SUB_SELECT, own, sub_as_is(to, blocks), rewrite_add_constant(to, DTYPE_I32, 0)).value;
}

int split_add_weights(struct sub_program *to, const struct split_product *q, sub_ref weights, const char *name)
{
	const int64_t extent[] = {count_blocks(q->outputs), q->depthwise ? 1 : count_blocks(q->channels), q->kernel[0], q->kernel[1], VTA_BLOCK, VTA_BLOCK};
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(to, weights)}, .map = map, .vars = 6, .fills = true};
	for (int i = 0; i < 6; i++)
		v.var[i] = sub_other_dim(to, extent[i], v.var, i);
	for (int d = 0; d < v.arg[0].vars; d++)
		map[d] = map_dim(q, v.var, d);
	sub_ref blocks = sub_add(to, v, NULL);
	return split_add_param(to, q->depthwise ? keep_diagonal(to, blocks) : blocks, DTYPE_I8, name);
}

/* --- what is added --- */

/* The sum of weights of each output, times what the accelerator leaves of the offset. */
static struct sub_use correct_offset(struct sub_program *to, const struct split_product *q, sub_ref weights)
{
	const struct sub_value *w = sub_at(to, weights);
	struct sub_vars reduced = {0};
	if (q->zero + q->offset == 0)
		return rewrite_add_constant(to, DTYPE_I32, 0);
	for (int d = 0; d < w->vars; d++)
		if (d != q->weight_dim[SPLIT_IMAGE])
			reduced.var[reduced.n++] = w->var[d];
	struct sub_use sum = reduced.n ? rewrite_add_reduction(to, SUB_SUM, sub_as_is(to, weights), &reduced) : sub_as_is(to, weights);
	return rewrite_add_operator(to, SUB_MULTIPLY, sum, rewrite_add_constant(to, DTYPE_I32, q->zero + q->offset), (struct sub_use){0});
}

/* One number for each output: of a value that has it along one dimension, or one for all. */
static struct sub_use spread_outputs(struct sub_program *to, const struct split_product *q, sub_ref value, int dim)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(to, value)}, .map = map, .vars = 1};
	v.var[0] = sub_dim(to, q->outputs, 0);
	for (int d = 0; d < v.arg[0].vars; d++)
		map[d] = d == dim ? (struct sub_map){.function = SUB_AFFINE, .var = v.var[0], .scale = 1} : (struct sub_map){.function = SUB_AFFINE, .var = -1};
	return sub_as_is(to, sub_add(to, v, NULL));
}

static struct sub_use bound_bias(struct sub_program *to, struct sub_use bias)
{
	const struct sub_use none = {0};
	bias = rewrite_add_operator(to, SUB_SMAX, bias, rewrite_add_constant(to, DTYPE_I32, -0x1p30), none);
	return rewrite_add_operator(to, SUB_SMIN, bias, rewrite_add_constant(to, DTYPE_I32, 0x1p30), none);
}

/* Zeros behind the last output. */
static sub_ref fill_blocks(struct sub_program *to, struct sub_use sum, int64_t outputs)
{
	int var = sub_dim(to, count_blocks(outputs) * VTA_BLOCK, 0);
	struct sub_map map = {.function = SUB_AFFINE, .var = var, .scale = 1};
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sum}, .map = &map, .vars = 1, .var = {var}, .fills = true};
	return sub_add(to, v, NULL);
}

int split_add_bias(struct sub_program *to, const struct split_product *q, sub_ref weights, sub_ref bias, const char *name)
{
	struct sub_use correction = correct_offset(to, q, weights);
	int dim = sub_at(to, correction.value)->vars ? 0 : -1;
	struct sub_use sum = spread_outputs(to, q, correction.value, dim);
	if (bias.i) {
		struct sub_use added = spread_outputs(to, q, bias, q->bias_dim);
		added = q->requantised ? added : bound_bias(to, added);
		sum = rewrite_add_operator(to, SUB_ADD, added, sum, (struct sub_use){0});
	}
	return split_add_param(to, fill_blocks(to, sum, q->outputs), DTYPE_I32, name);
}
