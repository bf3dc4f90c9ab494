/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dot products of the two bf16 of words, of scalars: by fused multiply-adds, around which denormal numbers become zeros, step
 * by step as dot_bf16 of base/convert.h.  Selections are made by masks, as branches would take longer. */
#include "jit/gccjit/emit.h"

static gcc_jit_type *integer_type(const struct emitter *e)
{
	return e->type[ILIR_I32][0];
}

static gcc_jit_rvalue *compute_integer(struct emitter *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_binary(e, integer_type(e), op, a, b);
}

static gcc_jit_rvalue *mask_bits(struct emitter *e, gcc_jit_rvalue *bits, uint32_t mask)
{
	return compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, bits, jit_i32(e, (int32_t)mask));
}

/* The sign alone where the condition, 1 or 0, is 1. */
static gcc_jit_rvalue *keep_sign(struct emitter *e, gcc_jit_rvalue *condition, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *mask = compute_integer(e, GCC_JIT_BINARY_OP_MINUS, condition, jit_i32(e, 1));
	mask = compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_OR, mask, jit_i32(e, INT32_MIN));
	return jit_bits(e, e->type[ILIR_F32][0], compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, bits, mask));
}

/* The f32 of these bits; a denormal number becomes a zero of its sign. */
static gcc_jit_rvalue *read_flushed(struct emitter *e, gcc_jit_rvalue *bits)
{
	gcc_jit_rvalue *exponent = mask_bits(e, bits, 0x7f800000);
	gcc_jit_rvalue *small = jit_compare(e, GCC_JIT_COMPARISON_EQ, exponent, jit_i32(e, 0));
	return keep_sign(e, jit_cast(e, ILIR_I32, small), bits);
}

static gcc_jit_rvalue *multiply_and_add(struct emitter *e, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	gcc_jit_rvalue *arg[] = {a, b, c};
	if (e->processor->set == JIT_SSE)
		return jit_emit_fma(e, 1, a, b, c);
	gcc_jit_function *f = gcc_jit_context_get_builtin_function(e->context, "__builtin_fmaf");
	return jit_keep(e, e->type[ILIR_F32][0], gcc_jit_context_new_call(e->context, NULL, f, 3, arg));
}

static gcc_jit_rvalue *scale_up(struct emitter *e, gcc_jit_rvalue *x)
{
	gcc_jit_type *real = e->type[ILIR_F32][0];
	return jit_binary(e, real, GCC_JIT_BINARY_OP_MULT, x,
			  gcc_jit_context_new_rvalue_from_double(e->context, real, 0x1p32));
}

/* 1 where |x| is less than a number, else 0; both are compared as bits, so no NaN is. */
static gcc_jit_rvalue *is_less(struct emitter *e, gcc_jit_rvalue *x, int32_t limit)
{
	gcc_jit_rvalue *bits = mask_bits(e, jit_bits(e, integer_type(e), x), INT32_MAX);
	return jit_cast(e, ILIR_I32, jit_compare(e, GCC_JIT_COMPARISON_LT, bits, jit_i32(e, limit)));
}

/* a * b + c, rounded to 24 digits, then a zero below 2^-126: `large` is the same 2^32 times as large. */
static gcc_jit_rvalue *add_flushed_product(struct emitter *e, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	gcc_jit_rvalue *sum = multiply_and_add(e, a, b, c), *large = multiply_and_add(e, scale_up(e, a), b, scale_up(e, c));
	gcc_jit_rvalue *tiny = compute_integer(e, GCC_JIT_BINARY_OP_BITWISE_AND, is_less(e, sum, 0x00800001),
				       is_less(e, large, 33 << 23));
	return keep_sign(e, tiny, jit_bits(e, integer_type(e), sum));
}

static gcc_jit_rvalue *add_products(struct emitter *e, gcc_jit_rvalue *const x[3])
{
	gcc_jit_rvalue *sixteen = jit_i32(e, 16), *sum = read_flushed(e, jit_bits(e, integer_type(e), x[2]));
	sum = add_flushed_product(e, read_flushed(e, mask_bits(e, x[0], 0xffff0000)),
				  read_flushed(e, mask_bits(e, x[1], 0xffff0000)), sum);
	return add_flushed_product(e, read_flushed(e, compute_integer(e, GCC_JIT_BINARY_OP_LSHIFT, x[0], sixteen)),
				   read_flushed(e, compute_integer(e, GCC_JIT_BINARY_OP_LSHIFT, x[1], sixteen)), sum);
}

/* A function inside the object, since tiles contain hundreds of calls, and each would be some fifty instructions. */
static gcc_jit_function *write_function(struct emitter *e)
{
	static const char *const names[] = {"a", "b", "c"};
	gcc_jit_type *real = e->type[ILIR_F32][0], *types[] = {integer_type(e), integer_type(e), real};
	gcc_jit_function *outer = e->function;
	gcc_jit_block *at = e->at;
	gcc_jit_param *parameter[3];
	gcc_jit_rvalue *x[3];
	for (int i = 0; i < 3; i++) {
		parameter[i] = gcc_jit_context_new_param(e->context, NULL, types[i], names[i]);
		x[i] = gcc_jit_param_as_rvalue(parameter[i]);
	}
	e->function = gcc_jit_context_new_function(e->context, NULL, GCC_JIT_FUNCTION_INTERNAL, real, "dot_bf16", 3,
						   parameter, 0);
	e->at = jit_block(e, "entry");
	gcc_jit_block_end_with_return(e->at, e->location, add_products(e, x));
	gcc_jit_function *written = e->function;
	e->function = outer;
	e->at = at;
	return written;
}

gcc_jit_rvalue *jit_emit_dot_bf16(struct emitter *e, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	if (!e->dot_bf16)
		e->dot_bf16 = write_function(e);
	return jit_keep(e, e->type[ILIR_F32][0],
			gcc_jit_context_new_call(e->context, NULL, e->dot_bf16, 3, (gcc_jit_rvalue *[]){a, b, c}));
}
