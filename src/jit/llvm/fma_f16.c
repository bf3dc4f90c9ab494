/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-adds of the f16 of words: by the instructions of AVX512-FP16, else in binary32, where the product of two f16 is
 * exact.  Rounding the sum to odd there before it is rounded to f16 gives what one rounding gives, since 24 >= 11 + 2 (see
 * fma.c); nothing overflows, and no number is denormal, as all are multiples of 2^-48. */
#include "jit/llvm/emit.h"

#include <stdio.h>

/* --- by instructions --- */

static LLVMValueRef fuse_by_instructions(struct emitter *e, const LLVMValueRef *arg)
{
	LLVMTypeRef words = LLVMTypeOf(arg[0]);
	bool vector = LLVMGetTypeKind(words) == LLVMVectorTypeKind;
	LLVMTypeRef type = LLVMVectorType(LLVMHalfTypeInContext(e->context), 2 * (vector ? LLVMGetVectorSize(words) : 1));
	static const char name[] = "llvm.fma";
	unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1), x[3];
	for (int i = 0; i < 3; i++)
		x[i] = LLVMBuildBitCast(e->at, arg[i], type, "");
	LLVMValueRef sum = LLVMBuildCall2(e->at, LLVMIntrinsicGetType(e->context, id, &type, 1), function, x, 3, "");
	return LLVMBuildBitCast(e->at, sum, words, "");
}

/* --- in binary32 --- */

/* The type of an element, or of a vector of as many of them as the value has. */
static LLVMTypeRef type_like(LLVMTypeRef element, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(t)) : element;
}

static LLVMValueRef constant_like(LLVMValueRef v, int64_t i)
{
	return jit_constant(LLVMTypeOf(v), i);
}

static LLVMValueRef mask_bits(struct emitter *e, LLVMValueRef bits, int64_t mask)
{
	return LLVMBuildAnd(e->at, bits, constant_like(bits, mask), "");
}

static LLVMValueRef bits_of(struct emitter *e, LLVMValueRef real)
{
	return LLVMBuildBitCast(e->at, real, type_like(e->scalar[ILIR_I32], real), "");
}

/* The rounding error of a sum: a + b = sum + error, exactly.  A NaN where an operand is not finite. */
static LLVMValueRef find_error(struct emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
	LLVMValueRef b_part = LLVMBuildFSub(e->at, sum, a, ""), a_part = LLVMBuildFSub(e->at, sum, b_part, "");
	return LLVMBuildFAdd(e->at, LLVMBuildFSub(e->at, a, a_part, ""), LLVMBuildFSub(e->at, b, b_part, ""), "");
}

/* The bits of a sum rounded to odd: where there is an error, one step towards zero if it was rounded away from zero, then with
 * its last bit set. */
static LLVMValueRef round_to_odd(struct emitter *e, LLVMValueRef sum, LLVMValueRef error)
{
	LLVMValueRef cut = LLVMBuildFCmp(e->at, LLVMRealONE, error, LLVMConstNull(LLVMTypeOf(error)), "");
	LLVMValueRef bits = bits_of(e, sum), sticky = LLVMBuildZExt(e->at, cut, LLVMTypeOf(bits), "");
	LLVMValueRef signs = LLVMBuildXor(e->at, bits, bits_of(e, error), "");
	LLVMValueRef away = LLVMBuildAnd(e->at, LLVMBuildLShr(e->at, signs, constant_like(bits, 31), ""), sticky, "");
	return LLVMBuildOr(e->at, LLVMBuildSub(e->at, bits, away, ""), sticky, "");
}

/* The f16 nearest to a number of these magnitude bits from 2^-14 on, ties to even; infinite from 65520 on. */
static LLVMValueRef narrow_normal(struct emitter *e, LLVMValueRef bits)
{
	LLVMValueRef even = mask_bits(e, LLVMBuildLShr(e->at, bits, constant_like(bits, 13), ""), 1);
	LLVMValueRef up = LLVMBuildAdd(e->at, even, constant_like(bits, 0xfff - ((127 - 15) << 23)), "");
	LLVMValueRef half = LLVMBuildAShr(e->at, LLVMBuildAdd(e->at, bits, up, ""), constant_like(bits, 13), "");
	LLVMValueRef infinite = LLVMBuildICmp(e->at, LLVMIntSGT, half, constant_like(half, 0x7c00), "");
	return LLVMBuildSelect(e->at, infinite, constant_like(half, 0x7c00), half, "");
}

/* The f16 nearest to a smaller number: adding 1/2 rounds to the last bit of a denormal f16. */
static LLVMValueRef narrow_small(struct emitter *e, LLVMValueRef bits)
{
	LLVMTypeRef real = type_like(e->scalar[ILIR_F32], bits);
	LLVMValueRef half = LLVMBuildBitCast(e->at, constant_like(bits, 0x3f000000), real, "");
	LLVMValueRef sum = LLVMBuildFAdd(e->at, LLVMBuildBitCast(e->at, bits, real, ""), half, "");
	return LLVMBuildSub(e->at, bits_of(e, sum), constant_like(bits, 0x3f000000), "");
}

/* The f16 nearest to the f32 of these bits. */
static LLVMValueRef narrow_float(struct emitter *e, LLVMValueRef bits)
{
	LLVMValueRef magnitude = mask_bits(e, bits, 0x7fffffff);
	LLVMValueRef sign = mask_bits(e, LLVMBuildLShr(e->at, bits, constant_like(bits, 16), ""), 0x8000);
	LLVMValueRef small = LLVMBuildICmp(e->at, LLVMIntSLT, magnitude, constant_like(bits, 0x38800000), "");
	LLVMValueRef half = LLVMBuildSelect(e->at, small, narrow_small(e, magnitude), narrow_normal(e, magnitude), "");
	LLVMValueRef nan = LLVMBuildICmp(e->at, LLVMIntSGT, magnitude, constant_like(bits, 0x7f800000), "");
	half = LLVMBuildSelect(e->at, nan, constant_like(bits, 0x7e00), half, "");
	return LLVMBuildOr(e->at, half, sign, "");
}

/* The f16 of the lower halves of three words, in the lower half of a word. */
static LLVMValueRef fuse_lower(struct emitter *e, const LLVMValueRef *word)
{
	LLVMValueRef x[3];
	for (int i = 0; i < 3; i++)
		x[i] = jit_widen_half(e, LLVMBuildTrunc(e->at, word[i], type_like(e->scalar[ILIR_I16], word[i]), ""));
	LLVMValueRef product = LLVMBuildFMul(e->at, x[0], x[1], ""), sum = LLVMBuildFAdd(e->at, product, x[2], "");
	return narrow_float(e, round_to_odd(e, sum, find_error(e, product, x[2], sum)));
}

static LLVMValueRef fuse_both(struct emitter *e, const LLVMValueRef *word)
{
	LLVMValueRef upper[3], sixteen = constant_like(word[0], 16);
	for (int i = 0; i < 3; i++)
		upper[i] = LLVMBuildLShr(e->at, word[i], sixteen, "");
	LLVMValueRef low = fuse_lower(e, word);
	return LLVMBuildOr(e->at, LLVMBuildShl(e->at, fuse_lower(e, upper), sixteen, ""), low, "");
}

/* A function inside the object, since tiles contain hundreds of calls, and each would be a hundred instructions. */
static LLVMValueRef write_function(struct emitter *e, const char *name, LLVMTypeRef signature)
{
	LLVMValueRef function = LLVMAddFunction(e->module, name, signature), word[3];
	LLVMBasicBlockRef outer = LLVMGetInsertBlock(e->at);
	LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(e->at);
	static const char *const flags[] = {"noinline", "nounwind"};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		unsigned kind = LLVMGetEnumAttributeKindForName(flags[i], strlen(flags[i]));
		LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->context, kind, 0));
	}
	LLVMSetLinkage(function, LLVMInternalLinkage);
	LLVMPositionBuilderAtEnd(e->at, LLVMAppendBasicBlockInContext(e->context, function, "entry"));
	LLVMSetCurrentDebugLocation2(e->at, NULL);
	LLVMGetParams(function, word);
	LLVMBuildRet(e->at, fuse_both(e, word));
	LLVMPositionBuilderAtEnd(e->at, outer);
	LLVMSetCurrentDebugLocation2(e->at, line);
	return function;
}

LLVMValueRef jit_emit_fma_f16(struct emitter *e, const LLVMValueRef *arg)
{
	LLVMTypeRef words = LLVMTypeOf(arg[0]), parameters[] = {words, words, words};
	LLVMTypeRef signature = LLVMFunctionType(words, parameters, 3, false);
	bool vector = LLVMGetTypeKind(words) == LLVMVectorTypeKind;
	char name[40];
	if (e->dots.halves)
		return fuse_by_instructions(e, arg);
	snprintf(name, sizeof name, "espalier.fma_f16.%u", vector ? LLVMGetVectorSize(words) : 1);
	LLVMValueRef function = LLVMGetNamedFunction(e->module, name);
	if (!function)
		function = write_function(e, name, signature);
	return LLVMBuildCall2(e->at, signature, function, (LLVMValueRef *)arg, 3, "");
}
