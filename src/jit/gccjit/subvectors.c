/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Values of kernels: operations of the library on scalars and subvectors, and vectors from lanes and to lanes. */
#include "jit/gccjit/emit.h"

gcc_jit_rvalue *jit_binary(struct emitter *e, gcc_jit_type *type, enum gcc_jit_binary_op op,
			   gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_keep(e, type, gcc_jit_context_new_binary_op(e->context, NULL, op, type, a, b));
}

gcc_jit_rvalue *jit_bits(struct emitter *e, gcc_jit_type *type, gcc_jit_rvalue *a)
{
	return jit_keep(e, type, gcc_jit_context_new_bitcast(e->context, NULL, a, type));
}

gcc_jit_rvalue *jit_compare(struct emitter *e, enum gcc_jit_comparison how, gcc_jit_rvalue *a,
			    gcc_jit_rvalue *b)
{
	return jit_keep(e, e->type[ILIR_BOOL][0],
			gcc_jit_context_new_comparison(e->context, NULL, how, a, b));
}

gcc_jit_rvalue *jit_i32(struct emitter *e, int32_t i)
{
	return gcc_jit_context_new_rvalue_from_int(e->context, e->type[ILIR_I32][0], i);
}

gcc_jit_rvalue *jit_choose(struct emitter *e, gcc_jit_type *type, gcc_jit_rvalue *condition,
			   gcc_jit_rvalue *yes, gcc_jit_rvalue *no)
{
	gcc_jit_lvalue *to = jit_local(e, type);
	gcc_jit_block *otherwise = jit_block(e, "otherwise"), *join = jit_block(e, "chosen");
	gcc_jit_block_add_assignment(e->at, e->location, to, yes);
	gcc_jit_block_end_with_conditional(e->at, e->location, condition, join, otherwise);
	gcc_jit_block_add_assignment(otherwise, NULL, to, no);
	gcc_jit_block_end_with_jump(otherwise, NULL, join);
	e->at = join;
	return gcc_jit_lvalue_as_rvalue(to);
}

gcc_jit_rvalue *jit_cast(struct emitter *e, enum ilir_dtype t, gcc_jit_rvalue *v)
{
	return jit_keep(e, e->type[t][0], gcc_jit_context_new_cast(e->context, NULL, v, e->type[t][0]));
}

/* --- vectors --- */

/* Truth in all lanes: all bits of each lane, or of a mask register a bit for each. */
static gcc_jit_rvalue *splat_truth(struct emitter *e, gcc_jit_rvalue *v, int width)
{
	gcc_jit_type *integer = e->type[ILIR_I32][0], *word = e->type[ILIR_BOOL][4];
	v = jit_keep(e, integer, gcc_jit_context_new_cast(e->context, NULL, v, integer));
	v = jit_keep(e, integer,
		     gcc_jit_context_new_unary_op(e->context, NULL, GCC_JIT_UNARY_OP_MINUS, integer, v));
	return width == 16 ? jit_keep(e, word, gcc_jit_context_new_cast(e->context, NULL, v, word))
			   : jit_splat(e, ILIR_I32, v, width);
}

gcc_jit_rvalue *jit_splat(struct emitter *e, enum ilir_dtype t, gcc_jit_rvalue *v, int width)
{
	gcc_jit_rvalue *lane[ILIR_MAX_LANES];
	gcc_jit_type *type = jit_subvector_type(e, t, width);
	if (width == 1)
		return v;
	if (t == ILIR_BOOL)
		return splat_truth(e, v, width);
	for (int i = 0; i < width; i++)
		lane[i] = v;
	return jit_keep(e, type, gcc_jit_context_new_rvalue_from_vector(e->context, NULL, type, width, lane));
}

/* Joins the truth of lanes that were compared one by one to a subvector. */
static gcc_jit_rvalue *join_truth(struct emitter *e, gcc_jit_rvalue *const *truth, int width)
{
	gcc_jit_type *integer = e->type[ILIR_I32][0], *mask = jit_subvector_type(e, ILIR_BOOL, width);
	gcc_jit_rvalue *lane[ILIR_MAX_LANES], *sum = jit_i32(e, 0);
	for (int i = 0; i < width; i++) {
		gcc_jit_rvalue *t = gcc_jit_context_new_cast(e->context, NULL, truth[i], integer);
		lane[i] = jit_binary(e, integer, GCC_JIT_BINARY_OP_MINUS, jit_i32(e, 0), t);
		t = jit_binary(e, integer, GCC_JIT_BINARY_OP_LSHIFT, t, jit_i32(e, i));
		sum = width == 16 ? jit_binary(e, integer, GCC_JIT_BINARY_OP_BITWISE_OR, sum, t) : sum;
	}
	return jit_keep(e, mask,
			width == 16
			    ? gcc_jit_context_new_cast(e->context, NULL, sum, mask)
			    : gcc_jit_context_new_rvalue_from_vector(e->context, NULL, mask, width, lane));
}

const struct jit_value *jit_join(struct emitter *e, struct ilir_type t, gcc_jit_rvalue *const *lane)
{
	struct jit_value *v = jit_new_value(e, t);
	gcc_jit_type *type = jit_subvector_type(e, t.dtype, v->width);
	for (int i = 0; i < v->subvectors; i++) {
		gcc_jit_rvalue *const *first = lane + i * v->width;
		v->subvector[i] =
		    v->width == 1 ? first[0]
		    : t.dtype == ILIR_BOOL
			? join_truth(e, first, v->width)
			: jit_keep(e, type,
				   gcc_jit_context_new_rvalue_from_vector(e->context, NULL, type, v->width,
									  (gcc_jit_rvalue **)first));
	}
	return v;
}

/* An element of a vector, through memory. */
static gcc_jit_rvalue *extract_element(struct emitter *e, gcc_jit_rvalue *vector, enum ilir_dtype t, int i)
{
	gcc_jit_lvalue *place = jit_local(e, gcc_jit_rvalue_get_type(vector));
	gcc_jit_block_add_assignment(e->at, e->location, place, vector);
	gcc_jit_rvalue *at =
	    gcc_jit_context_new_cast(e->context, NULL, gcc_jit_lvalue_get_address(place, NULL),
				     gcc_jit_type_get_pointer(e->type[t][0]));
	return jit_keep(e, e->type[t][0],
			gcc_jit_lvalue_as_rvalue(
			    gcc_jit_context_new_array_access(e->context, NULL, at, jit_index(e, i))));
}

gcc_jit_rvalue *jit_lane(struct emitter *e, const struct jit_value *v, enum ilir_dtype t, int i)
{
	gcc_jit_rvalue *subvector = v->subvector[i / v->width];
	if (v->width == 1)
		return subvector;
	if (t != ILIR_BOOL)
		return extract_element(e, subvector, t, i % v->width);
	gcc_jit_rvalue *truth = v->width == 16
				    ? jit_binary(e, e->type[ILIR_I32][0], GCC_JIT_BINARY_OP_BITWISE_AND,
						 jit_cast(e, ILIR_I32, subvector), jit_i32(e, 1 << i % 16))
				    : extract_element(e, subvector, ILIR_I32, i % v->width);
	return jit_compare(e, GCC_JIT_COMPARISON_NE, truth, jit_i32(e, 0));
}
