/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dot products of the two bf16 of words for machines without the instruction: by fused multiply-adds of f32, around
 * which denormal numbers become zeros, step by step as dot_bf16 of base/convert.h. */
#include "jit/llvm/emit.h"

static LLVMTypeRef integer_like(struct emitter *e, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
	return vector ? LLVMVectorType(e->scalar[ILIR_I32], LLVMGetVectorSize(t)) : e->scalar[ILIR_I32];
}

static LLVMValueRef mask_bits(struct emitter *e, LLVMValueRef bits, uint32_t mask)
{
	return LLVMBuildAnd(e->at, bits, jit_constant(LLVMTypeOf(bits), mask), "");
}

/* The f32 of these bits, of the type of another one; a denormal number becomes a zero of its sign. */
static LLVMValueRef read_flushed(struct emitter *e, LLVMValueRef bits, LLVMTypeRef type)
{
	LLVMValueRef exponent = mask_bits(e, bits, 0x7f800000);
	LLVMValueRef small = LLVMBuildICmp(e->at, LLVMIntEQ, exponent, LLVMConstNull(LLVMTypeOf(bits)), "");
	LLVMValueRef kept = LLVMBuildSelect(e->at, small, mask_bits(e, bits, 0x80000000), bits, "");
	return LLVMBuildBitCast(e->at, kept, type, "");
}

static LLVMValueRef multiply_by_power(struct emitter *e, LLVMValueRef x, uint32_t power)
{
	LLVMTypeRef integer = integer_like(e, x);
	return LLVMBuildFMul(e->at, x, LLVMBuildBitCast(e->at, jit_constant(integer, power), LLVMTypeOf(x), ""), "");
}

/* Whether |x| is less than a number; both are compared as bits, so no NaN is. */
static LLVMValueRef is_less(struct emitter *e, LLVMValueRef x, uint32_t limit)
{
	LLVMTypeRef integer = integer_like(e, x);
	LLVMValueRef bits = mask_bits(e, LLVMBuildBitCast(e->at, x, integer, ""), 0x7fffffff);
	return LLVMBuildICmp(e->at, LLVMIntSLT, bits, jit_constant(integer, limit), "");
}

/* a * b + c, rounded to 24 digits, then a zero below 2^-126: `large` is the same 2^32 times as large. */
static LLVMValueRef add_flushed_product(struct emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	LLVMTypeRef integer = integer_like(e, c);
	LLVMValueRef sum = jit_fuse(e, a, b, c),
		     large = jit_fuse(e, multiply_by_power(e, a, 159u << 23), b, multiply_by_power(e, c, 159u << 23));
	LLVMValueRef tiny = LLVMBuildAnd(e->at, is_less(e, sum, 0x00800001), is_less(e, large, 33u << 23), "");
	LLVMValueRef bits = LLVMBuildBitCast(e->at, sum, integer, "");
	bits = LLVMBuildSelect(e->at, tiny, mask_bits(e, bits, 0x80000000), bits, "");
	return LLVMBuildBitCast(e->at, bits, LLVMTypeOf(c), "");
}

LLVMValueRef jit_emit_dot_bf16(struct emitter *e, const LLVMValueRef *arg)
{
	LLVMTypeRef real = LLVMTypeOf(arg[2]), integer = LLVMTypeOf(arg[0]);
	LLVMValueRef sixteen = jit_constant(integer, 16),
		     sum = read_flushed(e, LLVMBuildBitCast(e->at, arg[2], integer, ""), real);
	sum = add_flushed_product(e, read_flushed(e, mask_bits(e, arg[0], 0xffff0000), real),
				  read_flushed(e, mask_bits(e, arg[1], 0xffff0000), real), sum);
	return add_flushed_product(e, read_flushed(e, LLVMBuildShl(e->at, arg[0], sixteen, ""), real),
				   read_flushed(e, LLVMBuildShl(e->at, arg[1], sixteen, ""), real), sum);
}
