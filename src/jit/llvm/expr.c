/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Expressions: one emitter per row of ilir/ilir_ops.def, nearly always one instruction.  No fast-math flag is
 * ever set, so LLVM neither contracts nor reassociates, and the results are those of the interpreter to the
 * bit.
 */
#include "jit/llvm/emit.h"

typedef LLVMValueRef emit_op(struct emitter *, ilir_expr, const LLVMValueRef *arg);

static bool is_float(const struct emitter *e, ilir_expr x)
{
	return ilir_type_of(e->m, x).dtype == ILIR_F32;
}

static bool is_index(const struct emitter *e, ilir_expr x)
{
	return ilir_type_of(e->m, x).dtype == ILIR_INDEX;
}

static const char no_row_problem[] = "an operator is used on a type that it does not take";

static enum ilir_dtype operand_type(const struct emitter *e, ilir_expr x)
{
	return ilir_type_of(e->m, ilir_arg(e->m, x, 0)).dtype;
}

/* --- leaves --- */

/* By its bits, so that a NaN keeps its payload. */
static LLVMValueRef emit_CONST_F(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	uint32_t bits;
	(void)arg;
	memcpy(&bits, &ilir_at(e->m, x)->f, sizeof bits);
	return LLVMConstBitCast(LLVMConstInt(e->scalar[ILIR_I32], bits, false), e->scalar[ILIR_F32]);
}

static LLVMValueRef emit_CONST_I(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return LLVMConstInt(jit_type(e, ilir_type_of(e->m, x)), ilir_at(e->m, x)->i, true);
}

static LLVMValueRef emit_VAR(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	LLVMValueRef v = e->var[ilir_at(e->m, x)->var.i];
	(void)arg;
	return v ? v : jit_refuse(e, ilir_type_of(e->m, x), "a variable is used outside its scope");
}

static LLVMValueRef emit_SIZE(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_refuse(e, ilir_type_of(e->m, x), "a size of the minibatch is not known inside a kernel");
}

static LLVMValueRef emit_INFERRED(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_refuse(e, ilir_type_of(e->m, x), "a loop bound was never inferred");
}

/* --- numbers --- */

static LLVMValueRef emit_ADD(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	if (is_float(e, x))
		return LLVMBuildFAdd(e->at, arg[0], arg[1], "");
	return (is_index(e, x) ? LLVMBuildNSWAdd : LLVMBuildAdd)(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_SUB(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	if (is_float(e, x))
		return LLVMBuildFSub(e->at, arg[0], arg[1], "");
	return (is_index(e, x) ? LLVMBuildNSWSub : LLVMBuildSub)(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_MUL(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	if (is_float(e, x))
		return LLVMBuildFMul(e->at, arg[0], arg[1], "");
	return (is_index(e, x) ? LLVMBuildNSWMul : LLVMBuildMul)(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_FDIV(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildFDiv(e->at, arg[0], arg[1], "");
}

/* The instruction traps where the divisor is 0, and for the least number by -1: divides by 1 there, and
 * replaces the result. */
static LLVMValueRef emit_QUOTIENT(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	LLVMTypeRef type = jit_type(e, ilir_type_of(e->m, x));
	LLVMValueRef zero = jit_constant(type, 0), one = jit_constant(type, 1);
	LLVMValueRef by_zero = LLVMBuildICmp(e->at, LLVMIntEQ, arg[1], zero, "");
	LLVMValueRef by_minus_one = LLVMBuildICmp(e->at, LLVMIntEQ, arg[1], LLVMConstAllOnes(type), "");
	LLVMValueRef unsafe = LLVMBuildOr(e->at, by_zero, by_minus_one, "");
	LLVMValueRef by = LLVMBuildSelect(e->at, unsafe, one, arg[1], "");
	LLVMValueRef quotient = LLVMBuildSDiv(e->at, arg[0], by, "");
	LLVMValueRef negative = LLVMBuildSub(e->at, zero, arg[0], "");
	quotient = LLVMBuildSelect(e->at, by_minus_one, negative, quotient, "");
	return LLVMBuildSelect(e->at, by_zero, zero, quotient, "");
}

static LLVMValueRef emit_NEG(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildFNeg(e->at, arg[0], "");
}

/* An intrinsic overloaded on the type of its operands. */
static LLVMValueRef emit_intrinsic(struct emitter *e, const char *name, const LLVMValueRef *arg, int args)
{
	LLVMTypeRef type = LLVMTypeOf(arg[0]);
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1);
	LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, &type, 1);
	return LLVMBuildCall2(e->at, signature, function, (LLVMValueRef *)arg, args, "");
}

LLVMValueRef jit_fuse(struct emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	if (!e->has_fma)
		return jit_emit_fma(e, a, b, c);
	return emit_intrinsic(e, "llvm.fma", (LLVMValueRef[]){a, b, c}, 3);
}

static LLVMValueRef emit_FMA(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return jit_fuse(e, arg[0], arg[1], arg[2]);
}

static LLVMValueRef emit_SQRT(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return emit_intrinsic(e, "llvm.sqrt", arg, 1);
}

/* a > b ? a : b is one x86 instruction, which returns b if either is a NaN; a second select restores a NaN in
 * a. */
static LLVMValueRef emit_extreme(struct emitter *e, ilir_expr x, const LLVMValueRef *arg,
				 LLVMRealPredicate real, LLVMIntPredicate integer)
{
	if (!is_float(e, x)) {
		LLVMValueRef first = LLVMBuildICmp(e->at, integer, arg[0], arg[1], "");
		return LLVMBuildSelect(e->at, first, arg[0], arg[1], "");
	}
	LLVMValueRef first = LLVMBuildFCmp(e->at, real, arg[0], arg[1], "");
	LLVMValueRef extreme = LLVMBuildSelect(e->at, first, arg[0], arg[1], "");
	LLVMValueRef nan = LLVMBuildFCmp(e->at, LLVMRealUNO, arg[0], arg[0], "");
	return LLVMBuildSelect(e->at, nan, arg[0], extreme, "");
}

static LLVMValueRef emit_MAX(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return emit_extreme(e, x, arg, LLVMRealOGT, LLVMIntSGT);
}

static LLVMValueRef emit_MIN(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return emit_extreme(e, x, arg, LLVMRealOLT, LLVMIntSLT);
}

static LLVMValueRef index_constant(const struct emitter *e, int64_t i)
{
	return LLVMConstInt(e->scalar[ILIR_INDEX], i, true);
}

/* -1 where x < 0, else 0. */
static LLVMValueRef sign_mask(struct emitter *e, LLVMValueRef x)
{
	return LLVMBuildAShr(e->at, x, index_constant(e, 63), "");
}

/* LLVM's quotient is rounded towards zero; it is one too large where the remainder is negative. */
static LLVMValueRef emit_DIV(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	int64_t by = jit_divisor(e->m, x);
	if (!by)
		return jit_refuse(e, ilir_type_of(e->m, x), "a divisor is not a positive constant");
	if (jit_is_power_of_two(by))
		return LLVMBuildAShr(e->at, arg[0], index_constant(e, __builtin_ctzll(by)), "");
	LLVMValueRef cut = LLVMBuildSDiv(e->at, arg[0], arg[1], "");
	LLVMValueRef rest = LLVMBuildSRem(e->at, arg[0], arg[1], "");
	return LLVMBuildAdd(e->at, cut, sign_mask(e, rest), "");
}

static LLVMValueRef emit_MOD(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	int64_t by = jit_divisor(e->m, x);
	if (!by)
		return jit_refuse(e, ilir_type_of(e->m, x), "a divisor is not a positive constant");
	if (jit_is_power_of_two(by))
		return LLVMBuildAnd(e->at, arg[0], index_constant(e, by - 1), "");
	LLVMValueRef rest = LLVMBuildSRem(e->at, arg[0], arg[1], "");
	return LLVMBuildAdd(e->at, rest, LLVMBuildAnd(e->at, sign_mask(e, rest), arg[1], ""), "");
}

/* expand_math has replaced these. */
static LLVMValueRef refuse_compound(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_refuse(e, ilir_type_of(e->m, x),
			  "a compound (exp, tanh ...) was never expanded");
}

/* --- conditions --- */

static LLVMValueRef emit_comparison(struct emitter *e, ilir_expr x, const LLVMValueRef *arg,
				    LLVMRealPredicate real, LLVMIntPredicate integer)
{
	if (is_float(e, ilir_arg(e->m, x, 0)))
		return LLVMBuildFCmp(e->at, real, arg[0], arg[1], "");
	return LLVMBuildICmp(e->at, integer, arg[0], arg[1], "");
}

static LLVMValueRef emit_LT(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return emit_comparison(e, x, arg, LLVMRealOLT, LLVMIntSLT);
}

static LLVMValueRef emit_LE(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return emit_comparison(e, x, arg, LLVMRealOLE, LLVMIntSLE);
}

static LLVMValueRef emit_EQ(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return emit_comparison(e, x, arg, LLVMRealOEQ, LLVMIntEQ);
}

static LLVMValueRef emit_SELECT(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildSelect(e->at, arg[0], arg[1], arg[2], "");
}

/* The sides of a select become branches: see jit_must_branch. */
static LLVMValueRef emit_choice(struct emitter *e, ilir_expr x)
{
	LLVMValueRef side[2], condition = jit_emit_expr(e, ilir_arg(e->m, x, 0));
	LLVMBasicBlockRef block[2] = {jit_block(e, "yes"), jit_block(e, "no")}, join = jit_block(e, "chosen");
	LLVMBuildCondBr(e->at, condition, block[0], block[1]);
	for (int i = 0; i < 2; i++) {
		size_t mark = e->known.n;
		LLVMPositionBuilderAtEnd(e->at, block[i]);
		side[i] = jit_emit_expr(e, ilir_arg(e->m, x, 1 + i));
		block[i] = LLVMGetInsertBlock(e->at);
		LLVMBuildBr(e->at, join);
		jit_forget(e, mark);
	}
	LLVMPositionBuilderAtEnd(e->at, join);
	LLVMValueRef phi = LLVMBuildPhi(e->at, jit_type(e, ilir_type_of(e->m, x)), "");
	LLVMAddIncoming(phi, side, block, 2);
	return phi;
}

/* --- bits --- */

static LLVMValueRef emit_BIT_AND(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildAnd(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_BIT_OR(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildOr(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_BIT_XOR(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildXor(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_NOT(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildNot(e->at, arg[0], "");
}

static LLVMValueRef emit_DOT4(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return jit_emit_dot(e, arg, ILIR_DOT4);
}

static LLVMValueRef emit_DOT2(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return jit_emit_dot(e, arg, ILIR_DOT2);
}

static LLVMValueRef emit_DOT_BF16(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return jit_emit_dot(e, arg, ILIR_DOT_BF16);
}

static LLVMValueRef emit_FMA_F16(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return jit_emit_fma_f16(e, arg);
}

#define emit_AND emit_BIT_AND
#define emit_OR emit_BIT_OR

static LLVMValueRef emit_SHL(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildShl(e->at, arg[0], arg[1], "");
}

static LLVMValueRef emit_SHR(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)x;
	return LLVMBuildAShr(e->at, arg[0], arg[1], "");
}

/* Half floats are integers in the IR. */
static LLVMValueRef emit_AS_I32(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	if (operand_type(e, x) != ILIR_F32)
		return LLVMBuildZExt(e->at, arg[0], jit_type(e, ilir_type_of(e->m, x)), "");
	return LLVMBuildBitCast(e->at, arg[0], jit_type(e, ilir_type_of(e->m, x)), "");
}

static LLVMValueRef emit_AS_F32(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return LLVMBuildBitCast(e->at, arg[0], jit_type(e, ilir_type_of(e->m, x)), "");
}

static LLVMValueRef truncate_integer(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return LLVMBuildTrunc(e->at, arg[0], jit_type(e, ilir_type_of(e->m, x)), "");
}

#define emit_AS_F16 truncate_integer
#define emit_AS_BF16 truncate_integer
#define emit_WRAP_I32 truncate_integer

/* --- casts --- */

/* Lane by lane: on some machines a vector of i64 is rounded twice, first to binary64. */
static LLVMValueRef round_i64(struct emitter *e, LLVMValueRef v, LLVMTypeRef to)
{
	if (LLVMGetTypeKind(to) != LLVMVectorTypeKind)
		return LLVMBuildSIToFP(e->at, v, to, "");
	LLVMValueRef result = LLVMGetPoison(to);
	for (unsigned i = 0; i < LLVMGetVectorSize(to); i++) {
		LLVMValueRef at = LLVMConstInt(e->scalar[ILIR_I32], i, false);
		LLVMValueRef lane = LLVMBuildExtractElement(e->at, v, at, "");
		lane = LLVMBuildSIToFP(e->at, lane, e->scalar[ILIR_F32], "");
		result = LLVMBuildInsertElement(e->at, result, lane, at, "");
	}
	return result;
}

static LLVMValueRef widen_brain(struct emitter *e, LLVMValueRef bits, struct ilir_type to)
{
	LLVMTypeRef integer = jit_type(e, (struct ilir_type){ILIR_I32, to.lanes});
	LLVMValueRef wide = LLVMBuildZExt(e->at, bits, integer, "");
	return LLVMBuildBitCast(e->at, LLVMBuildShl(e->at, wide, jit_constant(integer, 16), ""),
				jit_type(e, to), "");
}

static LLVMValueRef emit_TO_F32(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	struct ilir_type to = ilir_type_of(e->m, x);
	switch (operand_type(e, x)) {
	case ILIR_F16:
		return jit_widen_half(e, arg[0]);
	case ILIR_BF16:
		return widen_brain(e, arg[0], to);
	case ILIR_I32:
		return LLVMBuildSIToFP(e->at, arg[0], jit_type(e, to), "");
	case ILIR_I64:
		return round_i64(e, arg[0], jit_type(e, to));
	case ILIR_BOOL:
		return LLVMBuildUIToFP(e->at, arg[0], jit_type(e, to), "");
	default:
		return jit_refuse(e, to, no_row_problem);
	}
}

/* The same integer in another type. */
static LLVMValueRef resize_integer(struct emitter *e, ilir_expr x, LLVMValueRef v)
{
	enum ilir_dtype from = operand_type(e, x);
	bool is_unsigned = from == ILIR_U8 || from == ILIR_BOOL;
	return LLVMBuildIntCast2(e->at, v, jit_type(e, ilir_type_of(e->m, x)), !is_unsigned, "");
}

/* Clamps to low..high and converts to a narrower type. */
static LLVMValueRef saturate_integer(struct emitter *e, ilir_expr x, LLVMValueRef v, int64_t low,
				     int64_t high)
{
	LLVMTypeRef wide = LLVMTypeOf(v);
	v = emit_intrinsic(e, "llvm.smax", (LLVMValueRef[]){v, jit_constant(wide, low)}, 2);
	v = emit_intrinsic(e, "llvm.smin", (LLVMValueRef[]){v, jit_constant(wide, high)}, 2);
	return LLVMBuildTrunc(e->at, v, jit_type(e, ilir_type_of(e->m, x)), "");
}

static LLVMValueRef cut_fraction(struct emitter *e, ilir_expr x, LLVMValueRef v)
{
	static const char name[] = "llvm.fptosi.sat";
	LLVMTypeRef type[] = {jit_type(e, ilir_type_of(e->m, x)), LLVMTypeOf(v)};
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, type, 2);
	return LLVMBuildCall2(e->at, LLVMIntrinsicGetType(e->context, id, type, 2), function, &v, 1, "");
}

static LLVMValueRef splat_real(LLVMTypeRef vector, double number, struct emitter *e)
{
	return jit_splat(e, LLVMConstReal(LLVMGetElementType(vector), number),
			 (int)LLVMGetVectorSize(vector));
}

/* Vectors of i32, by comparisons around a plain conversion: LLVM makes a branch for each lane of the one that
 * saturates. */
static LLVMValueRef cut_fractions(struct emitter *e, ilir_expr x, LLVMValueRef v)
{
	LLVMTypeRef real = LLVMTypeOf(v), integer = jit_type(e, ilir_type_of(e->m, x));
	LLVMValueRef zero = LLVMConstNull(real), cut = LLVMBuildFPToSI(e->at, v, integer, "");
	LLVMValueRef fits =
	    LLVMBuildAnd(e->at, LLVMBuildFCmp(e->at, LLVMRealOGE, v, splat_real(real, -0x1p31, e), ""),
			 LLVMBuildFCmp(e->at, LLVMRealOLT, v, splat_real(real, 0x1p31, e), ""), "");
	LLVMValueRef low = LLVMBuildSelect(e->at, LLVMBuildFCmp(e->at, LLVMRealOLT, v, zero, ""),
					   jit_constant(integer, INT32_MIN), LLVMConstNull(integer), "");
	LLVMValueRef other = LLVMBuildSelect(e->at, LLVMBuildFCmp(e->at, LLVMRealOGT, v, zero, ""),
					     jit_constant(integer, INT32_MAX), low, "");
	return LLVMBuildSelect(e->at, fits, cut, other, "");
}

static LLVMValueRef emit_TO_I32(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	bool vector = ilir_type_of(e->m, x).lanes > 1;
	switch (operand_type(e, x)) {
	case ILIR_F32:
		return vector ? cut_fractions(e, x, arg[0]) : cut_fraction(e, x, arg[0]);
	case ILIR_I64:
		return saturate_integer(e, x, arg[0], INT32_MIN, INT32_MAX);
	default:
		return resize_integer(e, x, arg[0]);
	}
}

static LLVMValueRef emit_TO_I64(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return operand_type(e, x) == ILIR_F32 ? cut_fraction(e, x, arg[0]) : resize_integer(e, x, arg[0]);
}

static LLVMValueRef emit_TO_I8(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return saturate_integer(e, x, arg[0], INT8_MIN, INT8_MAX);
}

static LLVMValueRef emit_TO_U8(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return saturate_integer(e, x, arg[0], 0, UINT8_MAX);
}

static LLVMValueRef emit_TO_I16(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return saturate_integer(e, x, arg[0], INT16_MIN, INT16_MAX);
}

static LLVMValueRef emit_TO_INDEX(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return resize_integer(e, x, arg[0]);
}

/* --- vectors --- */

LLVMValueRef jit_splat(struct emitter *e, LLVMValueRef v, int lanes)
{
	LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), lanes);
	LLVMValueRef zero = LLVMConstInt(e->scalar[ILIR_I32], 0, false);
	LLVMValueRef one = LLVMBuildInsertElement(e->at, LLVMGetPoison(type), v, zero, "");
	LLVMTypeRef places = LLVMVectorType(e->scalar[ILIR_I32], lanes);
	return LLVMBuildShuffleVector(e->at, one, LLVMGetPoison(type), LLVMConstNull(places), "");
}

static LLVMValueRef emit_BROADCAST(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	return jit_splat(e, arg[0], ilir_type_of(e->m, x).lanes);
}

static LLVMValueRef emit_RAMP(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_refuse(e, ilir_type_of(e->m, x), "a ramp is used as a value");
}

/* Lanes of two vectors, moved as bits: for adjacent ones there is an instruction then.  Evaluates its arguments
 * itself. */
static LLVMValueRef emit_pair(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	LLVMValueRef lane[ILIR_MAX_LANES], side[2];
	struct ilir_type t = ilir_type_of(e->m, x);
	(void)arg;
	for (int i = 0; i < 2; i++)
		side[i] = jit_emit_bits(e, ilir_arg(e->m, x, i));
	for (int i = 0; i < t.lanes; i++)
		lane[i] = LLVMConstInt(e->scalar[ILIR_I32], ilir_paired_lane(e->m, x, i), false);
	LLVMValueRef v = LLVMBuildShuffleVector(e->at, side[0], side[1], LLVMConstVector(lane, t.lanes), "");
	return LLVMBuildBitCast(e->at, v, jit_type(e, t), "");
}

#define emit_SPLICE emit_pair
#define emit_KEEP emit_pair

static LLVMValueRef emit_WITHIN(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_refuse(e, ilir_type_of(e->m, x), "within was not resolved");
}

/* --- the table --- */

/* emit_anew does not evaluate the arguments of loads, of words and of selects that branch. */
static LLVMValueRef emit_LOAD(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_emit_load(e, x);
}

static LLVMValueRef emit_WORD(struct emitter *e, ilir_expr x, const LLVMValueRef *arg)
{
	(void)arg;
	return jit_emit_word(e, ilir_arg(e->m, x, 0));
}

static emit_op *const emitters[] = {
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) emit_##name,
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows) refuse_compound,
#include "ilir/ilir_ops.def"
};

static LLVMValueRef emit_anew(struct emitter *e, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	LLVMValueRef arg[ILIR_MAX_RANK] = {0};
	if (n->op == ILIR_SELECT && jit_must_branch(e->m, e->reads, x))
		return emit_choice(e, x);
	bool itself = n->op == ILIR_LOAD || n->op == ILIR_WORD || n->op == ILIR_SPLICE || n->op == ILIR_KEEP;
	for (int i = 0; !itself && i < n->args; i++)
		arg[i] = jit_emit_expr(e, ilir_arg(e->m, x, i));
	return emitters[n->op](e, x, arg);
}

LLVMValueRef jit_emit_expr(struct emitter *e, ilir_expr x)
{
	if (!e->value[x.i]) {
		LLVMValueRef v = emit_anew(e, x);
		vec_push(e->arena, &e->known, x.i);
		e->value[x.i] = v;
	}
	return e->value[x.i];
}

void jit_forget(struct emitter *e, size_t mark)
{
	while (e->known.n > mark)
		e->value[e->known.at[--e->known.n]] = NULL;
}
