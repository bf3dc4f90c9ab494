/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* f16 to f32, also for machines without the instruction: code must not call the C library's. */
#include "jit/llvm/emit.h"

/* The type of an element, or of a vector of as many of them as the value has. */
static LLVMTypeRef type_like(LLVMTypeRef element, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(t))
							: element;
}

/* Below the smallest normal number: a float of the fraction behind the exponent of 2^-14, less 2^-14. */
static LLVMValueRef widen_subnormal(struct emitter *e, LLVMValueRef shifted)
{
	LLVMTypeRef integer = LLVMTypeOf(shifted), real = type_like(e->scalar[ILIR_F32], shifted);
	LLVMValueRef one = jit_constant(integer, 113 << 23);
	LLVMValueRef sum = LLVMBuildBitCast(e->at, LLVMBuildAdd(e->at, shifted, one, ""), real, "");
	LLVMValueRef exact = LLVMBuildFSub(e->at, sum, LLVMBuildBitCast(e->at, one, real, ""), "");
	return LLVMBuildBitCast(e->at, exact, integer, "");
}

/* From an exponent of all ones to another of all ones; a NaN becomes quiet. */
static LLVMValueRef widen_special(struct emitter *e, LLVMValueRef shifted, LLVMValueRef infinity)
{
	LLVMTypeRef integer = LLVMTypeOf(shifted);
	LLVMValueRef wide = LLVMBuildOr(e->at, shifted, jit_constant(integer, 0x7f800000), "");
	LLVMValueRef quiet = LLVMBuildOr(e->at, wide, jit_constant(integer, 0x400000), "");
	LLVMValueRef nan = LLVMBuildICmp(e->at, LLVMIntSGT, shifted, infinity, "");
	return LLVMBuildSelect(e->at, nan, quiet, wide, "");
}

static LLVMValueRef widen_by_integers(struct emitter *e, LLVMValueRef bits)
{
	LLVMTypeRef integer = type_like(e->scalar[ILIR_I32], bits);
	LLVMValueRef wide = LLVMBuildZExt(e->at, bits, integer, ""), thirteen = jit_constant(integer, 13);
	LLVMValueRef sign = LLVMBuildAnd(e->at, wide, jit_constant(integer, 0x8000), "");
	LLVMValueRef shifted =
	    LLVMBuildShl(e->at, LLVMBuildAnd(e->at, wide, jit_constant(integer, 0x7fff), ""), thirteen, "");
	LLVMValueRef normal = jit_constant(integer, 1 << 23), infinity = jit_constant(integer, 31 << 23);
	LLVMValueRef result = LLVMBuildAdd(e->at, shifted, jit_constant(integer, (127 - 15) << 23), "");
	LLVMValueRef small = LLVMBuildICmp(e->at, LLVMIntSLT, shifted, normal, "");
	result = LLVMBuildSelect(e->at, small, widen_subnormal(e, shifted), result, "");
	LLVMValueRef special = LLVMBuildICmp(e->at, LLVMIntSGE, shifted, infinity, "");
	result = LLVMBuildSelect(e->at, special, widen_special(e, shifted, infinity), result, "");
	sign = LLVMBuildShl(e->at, sign, jit_constant(integer, 16), "");
	return LLVMBuildBitCast(e->at, LLVMBuildOr(e->at, result, sign, ""),
				type_like(e->scalar[ILIR_F32], bits), "");
}

LLVMValueRef jit_widen_half(struct emitter *e, LLVMValueRef bits)
{
	if (!e->has_half)
		return widen_by_integers(e, bits);
	LLVMValueRef half =
	    LLVMBuildBitCast(e->at, bits, type_like(LLVMHalfTypeInContext(e->context), bits), "");
	return LLVMBuildFPExt(e->at, half, type_like(e->scalar[ILIR_F32], bits), "");
}
