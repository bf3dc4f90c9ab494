/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Casts between types of numbers, as ilir/ilir_ops.def says of each. */
#include "jit/gccjit/expr.h"

static const char no_row_problem[] = "an operator is used on a type that it does not take";

static gcc_jit_rvalue *number_of_truth(struct emitter *e, const struct job *j)
{
	gcc_jit_type *scalar = e->type[j->type.dtype][0];
	gcc_jit_rvalue *one = jit_splat(e, j->type.dtype, gcc_jit_context_one(e->context, scalar), j->width),
		       *zero =
			   jit_splat(e, j->type.dtype, gcc_jit_context_zero(e->context, scalar), j->width);
	return j->width == 1 ? jit_choose(e, j->result, j->arg[0], one, zero)
			     : jit_blend_lanes(e, j, j->arg[0], one, zero);
}

static gcc_jit_rvalue *make_f32(struct emitter *e, const struct job *j)
{
	switch (j->operand.dtype) {
	case ILIR_F16:
		return jit_widen_half(e, j->arg[0]);
	case ILIR_BF16:
		return jit_widen_brain(e, j->arg[0]);
	case ILIR_BOOL:
		return number_of_truth(e, j);
	case ILIR_I32:
	case ILIR_I64:
		return j->width == 1
			   ? jit_cast(e, ILIR_F32, j->arg[0])
			   : jit_asm(e, JIT_ASM_TO_FLOAT, j->width, j->result, j->arg[0], NULL, NULL);
	default:
		return jit_refuse_operator(e, j, no_row_problem);
	}
}

static gcc_jit_rvalue *make_integer(struct emitter *e, enum ilir_dtype t, int64_t i)
{
	return gcc_jit_context_new_rvalue_from_long(e->context, e->type[t][0], i);
}

/* Clamps to low..high and converts to a narrower type. */
static gcc_jit_rvalue *saturate_integer(struct emitter *e, const struct job *j, int64_t low, int64_t high)
{
	enum ilir_dtype t = j->operand.dtype;
	gcc_jit_type *wide = e->type[t][0];
	gcc_jit_rvalue *v = j->arg[0], *least = make_integer(e, t, low), *most = make_integer(e, t, high);
	v = jit_choose(e, wide, jit_compare(e, GCC_JIT_COMPARISON_LT, v, least), least, v);
	v = jit_choose(e, wide, jit_compare(e, GCC_JIT_COMPARISON_GT, v, most), most, v);
	return jit_cast(e, j->type.dtype, v);
}

/* The instruction returns INT32_MIN for all that is out of range: corrects numbers that are too large, and
 * NaNs. */
static gcc_jit_rvalue *cut_fractions(struct emitter *e, const struct job *j)
{
	gcc_jit_rvalue *x = j->arg[0],
		       *end =
			   gcc_jit_context_new_rvalue_from_double(e->context, e->type[ILIR_F32][0], 0x1p31);
	gcc_jit_rvalue *v = jit_asm(e, JIT_ASM_CUT_FRACTION, j->width, j->result, x, NULL, NULL);
	gcc_jit_rvalue *high = jit_compare_lanes(e, JIT_ASM_LE, j, jit_splat(e, ILIR_F32, end, j->width), x),
		       *nan = jit_compare_lanes(e, JIT_ASM_NAN, j, x, x);
	v = jit_blend_lanes(e, j, high, jit_splat(e, ILIR_I32, jit_i32(e, INT32_MAX), j->width), v);
	return jit_blend_lanes(e, j, nan, jit_splat(e, ILIR_I32, jit_i32(e, 0), j->width), v);
}

/* `high` is the largest integer, `end` the float behind it.  Casts 0 in place of numbers out of range. */
static gcc_jit_rvalue *cut_fraction(struct emitter *e, const struct job *j, double end, int64_t low,
				    int64_t high)
{
	enum ilir_dtype t = j->type.dtype;
	gcc_jit_type *real = e->type[ILIR_F32][0];
	gcc_jit_rvalue *x = j->arg[0],
		       *least = gcc_jit_context_new_rvalue_from_double(e->context, real, -end),
		       *behind = gcc_jit_context_new_rvalue_from_double(e->context, real, end),
		       *zero = gcc_jit_context_zero(e->context, real);
	gcc_jit_rvalue *is_low = jit_compare(e, GCC_JIT_COMPARISON_LT, x, least),
		       *is_high = jit_compare(e, GCC_JIT_COMPARISON_GE, x, behind),
		       *is_nan = jit_compare(e, GCC_JIT_COMPARISON_NE, x, x);
	x = jit_choose(e, real, is_low, zero,
		       jit_choose(e, real, is_high, zero, jit_choose(e, real, is_nan, zero, x)));
	gcc_jit_rvalue *v = jit_cast(e, t, x);
	v = jit_choose(e, e->type[t][0], is_low, make_integer(e, t, low), v);
	return jit_choose(e, e->type[t][0], is_high, make_integer(e, t, high), v);
}

static gcc_jit_rvalue *make_i32(struct emitter *e, const struct job *j)
{
	switch (j->operand.dtype) {
	case ILIR_BOOL:
		return number_of_truth(e, j);
	case ILIR_F32:
		return j->width > 1 ? cut_fractions(e, j) : cut_fraction(e, j, 0x1p31, INT32_MIN, INT32_MAX);
	case ILIR_I64:
		return saturate_integer(e, j, INT32_MIN, INT32_MAX);
	default:
		return jit_cast(e, ILIR_I32, j->arg[0]);
	}
}

static gcc_jit_rvalue *make_i64(struct emitter *e, const struct job *j)
{
	return j->operand.dtype == ILIR_F32 ? cut_fraction(e, j, 0x1p63, INT64_MIN, INT64_MAX)
					    : jit_cast(e, ILIR_I64, j->arg[0]);
}

gcc_jit_rvalue *jit_emit_cast(struct emitter *e, const struct job *j)
{
	switch (j->type.dtype) {
	case ILIR_F32:
		return make_f32(e, j);
	case ILIR_I32:
		return make_i32(e, j);
	case ILIR_I64:
		return make_i64(e, j);
	case ILIR_I8:
		return saturate_integer(e, j, INT8_MIN, INT8_MAX);
	case ILIR_U8:
		return saturate_integer(e, j, 0, UINT8_MAX);
	case ILIR_I16:
		return saturate_integer(e, j, INT16_MIN, INT16_MAX);
	default:
		return jit_cast(e, j->type.dtype, j->arg[0]);
	}
}
