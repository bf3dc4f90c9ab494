/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-adds of the f16 of words, of scalars: in binary32, where the product of two f16 is exact, and the sum is rounded
 * to odd before it is rounded to f16, as ../llvm/fma_f16.c says. */
#include "jit/gccjit/emit.h"

static gcc_jit_rvalue *compute_integer(struct emitter *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_binary(e, e->type[ILIR_I32][0], op, a, b);
}

static gcc_jit_rvalue *compute_float(struct emitter *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_binary(e, e->type[ILIR_F32][0], op, a, b);
}

static gcc_jit_rvalue *choose_integer(struct emitter *e, gcc_jit_rvalue *condition, gcc_jit_rvalue *yes, gcc_jit_rvalue *no)
{
	return jit_choose(e, e->type[ILIR_I32][0], condition, yes, no);
}

static gcc_jit_rvalue *mask_bits(struct emitter *e, gcc_jit_rvalue *bits, int32_t mask)
{
	return compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, bits, jit_i32(e, mask));
}

/* Filled with copies of the sign. */
static gcc_jit_rvalue *shift_right(struct emitter *e, gcc_jit_rvalue *bits, int by)
{
	return compute_integer(e, GCC_JIT_BINARY_OP_RSHIFT, bits, jit_i32(e, by));
}

static gcc_jit_rvalue *bits_of(struct emitter *e, gcc_jit_rvalue *real)
{
	return jit_bits(e, e->type[ILIR_I32][0], real);
}

/* The rounding error of a sum: a + b = sum + error, exactly.  A NaN where an operand is not finite. */
static gcc_jit_rvalue *find_error(struct emitter *e, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *sum)
{
	gcc_jit_rvalue *b_part = compute_float(e, GCC_JIT_BINARY_OP_MINUS, sum, a),
		       *a_part = compute_float(e, GCC_JIT_BINARY_OP_MINUS, sum, b_part);
	return compute_float(e, GCC_JIT_BINARY_OP_PLUS, compute_float(e, GCC_JIT_BINARY_OP_MINUS, a, a_part),
			     compute_float(e, GCC_JIT_BINARY_OP_MINUS, b, b_part));
}

/* The bits of a sum rounded to odd: where there is an error, one step towards zero if it was rounded away from zero, then with
 * its last bit set.  The bits of an error say whether it is one: neither zero nor a NaN. */
static gcc_jit_rvalue *round_to_odd(struct emitter *e, gcc_jit_rvalue *sum, gcc_jit_rvalue *error)
{
	gcc_jit_rvalue *size = mask_bits(e, bits_of(e, error), INT32_MAX), *bits = bits_of(e, sum);
	gcc_jit_rvalue *some = jit_cast(e, ILIR_I32, jit_compare(e, GCC_JIT_COMPARISON_NE, size, jit_i32(e, 0))),
		       *number = jit_cast(e, ILIR_I32, jit_compare(e, GCC_JIT_COMPARISON_LE, size, jit_i32(e, 0x7f800000)));
	gcc_jit_rvalue *sticky = compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, some, number);
	gcc_jit_rvalue *signs = compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_XOR, bits, bits_of(e, error));
	gcc_jit_rvalue *away = compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, shift_right(e, signs, 31), sticky);
	return compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_OR, compute_integer(e, GCC_JIT_BINARY_OP_MINUS, bits, away), sticky);
}

/* The f16 nearest to a number of these magnitude bits from 2^-14 on, ties to even; infinite from 65520 on. */
static gcc_jit_rvalue *narrow_normal(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *even = mask_bits(e, shift_right(e, bits, 13), 1);
	gcc_jit_rvalue *up = compute_integer(e, GCC_JIT_BINARY_OP_PLUS, even, jit_i32(e, 0xfff - ((127 - 15) << 23)));
	gcc_jit_rvalue *half = shift_right(e, compute_integer(e, GCC_JIT_BINARY_OP_PLUS, bits, up), 13);
	gcc_jit_rvalue *infinite = jit_compare(e, GCC_JIT_COMPARISON_GT, half, jit_i32(e, 0x7c00));
	return choose_integer(e, infinite, jit_i32(e, 0x7c00), half);
}

/* The f16 nearest to a smaller number: adding 1/2 rounds to the last bit of a denormal f16. */
static gcc_jit_rvalue *narrow_small(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_type *real = e->type[ILIR_F32][0];
	gcc_jit_rvalue *half = gcc_jit_context_new_rvalue_from_double(e->context, real, 0.5);
	gcc_jit_rvalue *sum = compute_float(e, GCC_JIT_BINARY_OP_PLUS, jit_bits(e, real, bits), half);
	return compute_integer(e, GCC_JIT_BINARY_OP_MINUS, bits_of(e, sum), jit_i32(e, 0x3f000000));
}

/* The f16 nearest to the f32 of these bits. */
static gcc_jit_rvalue *narrow_float(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *magnitude = mask_bits(e, bits, INT32_MAX), *sign = mask_bits(e, shift_right(e, bits, 16), 0x8000);
	gcc_jit_rvalue *small = jit_compare(e, GCC_JIT_COMPARISON_LT, magnitude, jit_i32(e, 0x38800000)),
		       *nan = jit_compare(e, GCC_JIT_COMPARISON_GT, magnitude, jit_i32(e, 0x7f800000));
	gcc_jit_rvalue *half = choose_integer(e, small, narrow_small(e, magnitude), narrow_normal(e, magnitude));
	half = choose_integer(e, nan, jit_i32(e, 0x7e00), half);
	return compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_OR, half, sign);
}

/* The f16 of the halves of three words whose bits begin at `first`, in the lower half of a word. */
static gcc_jit_rvalue *fuse_half(struct emitter *e, gcc_jit_rvalue *const word[3], int first)
{
	gcc_jit_rvalue *x[3];
	for (int i = 0; i < 3; i++)
		x[i] = jit_widen_half(e, mask_bits(e, shift_right(e, word[i], first), 0xffff));
	gcc_jit_rvalue *product = compute_float(e, GCC_JIT_BINARY_OP_MULT, x[0], x[1]),
		       *sum = compute_float(e, GCC_JIT_BINARY_OP_PLUS, product, x[2]);
	return narrow_float(e, round_to_odd(e, sum, find_error(e, product, x[2], sum)));
}

/* A function inside the object, since tiles contain hundreds of calls, and each would be some hundred instructions. */
static gcc_jit_function *write_function(struct emitter *e)
{
	static const char *const names[] = {"a", "b", "c"};
	gcc_jit_type *integer = e->type[ILIR_I32][0];
	gcc_jit_function *outer = e->function;
	gcc_jit_block *at = e->at;
	gcc_jit_param *parameter[3];
	gcc_jit_rvalue *word[3];
	for (int i = 0; i < 3; i++) {
		parameter[i] = gcc_jit_context_new_param(e->context, NULL, integer, names[i]);
		word[i] = gcc_jit_param_as_rvalue(parameter[i]);
	}
	e->function =
	    gcc_jit_context_new_function(e->context, NULL, GCC_JIT_FUNCTION_INTERNAL, integer, "fma_f16", 3, parameter, 0);
	e->at = jit_block(e, "entry");
	gcc_jit_rvalue *low = fuse_half(e, word, 0);
	gcc_jit_rvalue *high = compute_integer(e, GCC_JIT_BINARY_OP_LSHIFT, fuse_half(e, word, 16), jit_i32(e, 16));
	gcc_jit_block_end_with_return(e->at, e->location, compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_OR, high, low));
	gcc_jit_function *written = e->function;
	e->function = outer;
	e->at = at;
	return written;
}

gcc_jit_rvalue *jit_emit_fma_f16(struct emitter *e, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	if (!e->fma_f16)
		e->fma_f16 = write_function(e);
	return jit_keep(e, e->type[ILIR_I32][0],
			gcc_jit_context_new_call(e->context, NULL, e->fma_f16, 3, (gcc_jit_rvalue *[]){a, b, c}));
}
