/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-add for machines without the instruction, in arithmetic that every machine has: code must
 * not call the C library's.
 *
 * In binary64 the product of two binary32 is exact, and rounding a sum to odd (truncate, then set the last
 * bit when anything was cut off) before rounding it to binary32 gives what one rounding gives, since 53 >= 24
 * + 2 (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
 * odd", 2008).  Rounding to odd needs the error of the sum, which is exact in binary64 too (Knuth's two-sum;
 * nothing overflows or underflows there, since exponents are those of binary32 and its products). */
#include "jit/llvm/emit.h"

#include <stdio.h>

/* The type of an element, or of a vector of as many of them as `like` has. */
static LLVMTypeRef wide_type(LLVMTypeRef element, LLVMTypeRef like)
{
	bool vector = LLVMGetTypeKind(like) == LLVMVectorTypeKind;
	return vector ? LLVMVectorType(element, LLVMGetVectorSize(like)) : element;
}

/* The rounding error of a sum: a + b = sum + error, exactly.  A NaN where an operand is not finite. */
static LLVMValueRef error_of_sum(LLVMBuilderRef at, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
	LLVMValueRef b_part = LLVMBuildFSub(at, sum, a, "");
	LLVMValueRef a_part = LLVMBuildFSub(at, sum, b_part, "");
	return LLVMBuildFAdd(at, LLVMBuildFSub(at, a, a_part, ""), LLVMBuildFSub(at, b, b_part, ""), "");
}

/* Where there is an error: moves the sum one step towards zero if it was rounded away from zero, which the
 * signs of sum and error show, and sets its last bit. */
static LLVMValueRef round_to_odd(struct emitter *e, LLVMValueRef sum, LLVMValueRef error)
{
	LLVMBuilderRef at = e->at;
	LLVMTypeRef integer = wide_type(LLVMInt64TypeInContext(e->context), LLVMTypeOf(sum));
	LLVMValueRef cut = LLVMBuildFCmp(at, LLVMRealONE, error, LLVMConstNull(LLVMTypeOf(error)), "");
	LLVMValueRef sticky = LLVMBuildZExt(at, cut, integer, "");
	LLVMValueRef bits = LLVMBuildBitCast(at, sum, integer, "");
	LLVMValueRef signs = LLVMBuildXor(at, bits, LLVMBuildBitCast(at, error, integer, ""), "");
	LLVMValueRef shift = LLVMConstInt(LLVMInt64TypeInContext(e->context), 63, false);
	if (LLVMGetTypeKind(integer) == LLVMVectorTypeKind)
		shift = jit_splat(e, shift, LLVMGetVectorSize(integer));
	LLVMValueRef away = LLVMBuildAnd(at, LLVMBuildLShr(at, signs, shift, ""), sticky, "");
	return LLVMBuildBitCast(at, LLVMBuildOr(at, LLVMBuildSub(at, bits, away, ""), sticky, ""),
				LLVMTypeOf(sum), "");
}

/* Computes a * b + c of the parameters of the function. */
static LLVMValueRef emit_body(struct emitter *e, LLVMValueRef function, LLVMTypeRef narrow)
{
	LLVMBuilderRef at = e->at;
	LLVMTypeRef type = wide_type(LLVMDoubleTypeInContext(e->context), narrow);
	LLVMValueRef x[3];
	for (int i = 0; i < 3; i++)
		x[i] = LLVMBuildFPExt(at, LLVMGetParam(function, i), type, "");
	LLVMValueRef product = LLVMBuildFMul(at, x[0], x[1], ""), sum = LLVMBuildFAdd(at, product, x[2], "");
	LLVMValueRef odd = round_to_odd(e, sum, error_of_sum(at, product, x[2], sum));
	return LLVMBuildFPTrunc(at, odd, narrow, "");
}

/* A function inside the object, since tiles contain hundreds of calls, and each would be two dozen
 * instructions. */
static LLVMValueRef write_function(struct emitter *e, const char *name, LLVMTypeRef narrow,
				   LLVMTypeRef signature)
{
	LLVMValueRef function = LLVMAddFunction(e->module, name, signature);
	LLVMBasicBlockRef outer = LLVMGetInsertBlock(e->at);
	LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(e->at);
	static const char *const flags[] = {"noinline", "nounwind"};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		unsigned kind = LLVMGetEnumAttributeKindForName(flags[i], strlen(flags[i]));
		LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
					LLVMCreateEnumAttribute(e->context, kind, 0));
	}
	LLVMSetLinkage(function, LLVMInternalLinkage);
	LLVMPositionBuilderAtEnd(e->at, LLVMAppendBasicBlockInContext(e->context, function, "entry"));
	LLVMSetCurrentDebugLocation2(e->at, NULL);
	LLVMBuildRet(e->at, emit_body(e, function, narrow));
	LLVMPositionBuilderAtEnd(e->at, outer);
	LLVMSetCurrentDebugLocation2(e->at, line);
	return function;
}

LLVMValueRef jit_emit_fma(struct emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	LLVMTypeRef narrow = LLVMTypeOf(c), parameters[] = {narrow, narrow, narrow};
	LLVMTypeRef signature = LLVMFunctionType(narrow, parameters, 3, false);
	bool vector = LLVMGetTypeKind(narrow) == LLVMVectorTypeKind;
	char name[40];
	snprintf(name, sizeof name, "espalier.fma.%u", vector ? LLVMGetVectorSize(narrow) : 1);
	LLVMValueRef function = LLVMGetNamedFunction(e->module, name);
	if (!function)
		function = write_function(e, name, narrow, signature);
	return LLVMBuildCall2(e->at, signature, function, (LLVMValueRef[]){a, b, c}, 3, "");
}
