/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Converts half floats to f32 one by one by integer operations, as ../llvm/half.c does. */
#include "jit/gccjit/emit.h"

static gcc_jit_rvalue *operate_i32(struct emitter *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *a, int32_t b)
{
	return jit_binary(e, e->type[ILIR_I32][0], op, a, jit_i32(e, b));
}

static gcc_jit_rvalue *choose_i32(struct emitter *e, gcc_jit_rvalue *condition, gcc_jit_rvalue *yes,
				  gcc_jit_rvalue *no)
{
	return jit_choose(e, e->type[ILIR_I32][0], condition, yes, no);
}

/* Below the smallest normal number: a float of the fraction behind the exponent of 2^-14, less 2^-14. */
static gcc_jit_rvalue *widen_subnormal(struct emitter *e, gcc_jit_rvalue *shifted)
{
	gcc_jit_type *real = e->type[ILIR_F32][0];
	gcc_jit_rvalue *sum = jit_bits(e, real, operate_i32(e, GCC_JIT_BINARY_OP_PLUS, shifted, 113 << 23)),
		       *one = gcc_jit_context_new_rvalue_from_double(e->context, real, 0x1p-14);
	return jit_bits(e, e->type[ILIR_I32][0], jit_binary(e, real, GCC_JIT_BINARY_OP_MINUS, sum, one));
}

/* From an exponent of all ones to another of all ones; a NaN becomes quiet. */
static gcc_jit_rvalue *widen_special(struct emitter *e, gcc_jit_rvalue *shifted)
{
	gcc_jit_rvalue *wide = operate_i32(e, GCC_JIT_BINARY_OP_BITWISE_OR, shifted, 0x7f800000);
	return choose_i32(e, jit_compare(e, GCC_JIT_COMPARISON_GT, shifted, jit_i32(e, 31 << 23)),
			  operate_i32(e, GCC_JIT_BINARY_OP_BITWISE_OR, wide, 0x400000), wide);
}

gcc_jit_rvalue *jit_widen_half(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *wide = jit_cast(e, ILIR_I32, bits);
	gcc_jit_rvalue *shifted = operate_i32(
	    e, GCC_JIT_BINARY_OP_LSHIFT, operate_i32(e, GCC_JIT_BINARY_OP_BITWISE_AND, wide, 0x7fff), 13);
	gcc_jit_rvalue *result = operate_i32(e, GCC_JIT_BINARY_OP_PLUS, shifted, (127 - 15) << 23);
	result = choose_i32(e, jit_compare(e, GCC_JIT_COMPARISON_LT, shifted, jit_i32(e, 1 << 23)),
			    widen_subnormal(e, shifted), result);
	result = choose_i32(e, jit_compare(e, GCC_JIT_COMPARISON_GE, shifted, jit_i32(e, 31 << 23)),
			    widen_special(e, shifted), result);
	gcc_jit_rvalue *sign = operate_i32(e, GCC_JIT_BINARY_OP_LSHIFT,
					   operate_i32(e, GCC_JIT_BINARY_OP_BITWISE_AND, wide, 0x8000), 16);
	result = jit_binary(e, e->type[ILIR_I32][0], GCC_JIT_BINARY_OP_BITWISE_OR, result, sign);
	return jit_bits(e, e->type[ILIR_F32][0], result);
}

gcc_jit_rvalue *jit_widen_brain(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *wide = operate_i32(e, GCC_JIT_BINARY_OP_LSHIFT, jit_cast(e, ILIR_I32, bits), 16);
	return jit_bits(e, e->type[ILIR_F32][0], wide);
}
