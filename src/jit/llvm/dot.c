/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dot products of the parts of i32.  Of bytes and halves: an instruction where the machine has one (VNNI), else the
 * sums of pairs of products that every x86-64 has, else products of i32.  All are exact modulo 2^32, so they give
 * the same bits.  Of bf16: an instruction (AVX512-BF16), else dot_bf16.c. */
#include "jit/llvm/emit.h"

static LLVMValueRef constant_like(LLVMValueRef v, int64_t i)
{
	return jit_constant(LLVMTypeOf(v), i);
}

/* --- in i32 --- */

/* The bits first .. first+count-1 of each element as a number. */
static LLVMValueRef take_bits(struct emitter *e, LLVMValueRef v, int first, int count, bool is_signed)
{
	LLVMValueRef left = LLVMBuildShl(e->at, v, constant_like(v, 32 - first - count), "");
	return (is_signed ? LLVMBuildAShr : LLVMBuildLShr)(e->at, left, constant_like(v, 32 - count), "");
}

static LLVMValueRef multiply_parts(struct emitter *e, const LLVMValueRef *arg, int count)
{
	LLVMValueRef sum = arg[2];
	for (int first = 0; first < 32; first += count) {
		LLVMValueRef a = take_bits(e, arg[0], first, count, count == 16),
			     b = take_bits(e, arg[1], first, count, true);
		sum = LLVMBuildAdd(e->at, sum, LLVMBuildMul(e->at, a, b, ""), "");
	}
	return sum;
}

/* --- by instructions --- */

static LLVMValueRef call_instruction(struct emitter *e, const char *name, LLVMValueRef *arg, int args)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
	return LLVMBuildCall2(e->at, LLVMIntrinsicGetType(e->context, id, NULL, 0), function, arg, args, "");
}

/* LLVM's names for registers of 4, 8 and 16 lanes. */
static const struct {
	const char *dot4, *dot2, *dot_bf16, *pairs;
} names[] = {
    {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpwssd.128", "llvm.x86.avx512bf16.dpbf16ps.128",
     "llvm.x86.sse2.pmadd.wd"},
    {"llvm.x86.avx512.vpdpbusd.256", "llvm.x86.avx512.vpdpwssd.256", "llvm.x86.avx512bf16.dpbf16ps.256",
     "llvm.x86.avx2.pmadd.wd"},
    {"llvm.x86.avx512.vpdpbusd.512", "llvm.x86.avx512.vpdpwssd.512", "llvm.x86.avx512bf16.dpbf16ps.512",
     "llvm.x86.avx512.pmaddw.d.512"},
};

static int row_of(unsigned lanes)
{
	return lanes == 4 ? 0 : lanes == 8 ? 1 : 2;
}

static LLVMTypeRef halves_of(struct emitter *e, LLVMValueRef v)
{
	return LLVMVectorType(e->scalar[ILIR_I16], 2 * LLVMGetVectorSize(LLVMTypeOf(v)));
}

/* c + the sums of pairs of products of vectors of i16. */
static LLVMValueRef add_pairs(struct emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	const char *name = names[row_of(LLVMGetVectorSize(LLVMTypeOf(c)))].pairs;
	return LLVMBuildAdd(e->at, call_instruction(e, name, (LLVMValueRef[]){a, b}, 2), c, "");
}

static LLVMValueRef pair_halves(struct emitter *e, const LLVMValueRef *arg)
{
	LLVMTypeRef type = halves_of(e, arg[2]);
	return add_pairs(e, LLVMBuildBitCast(e->at, arg[0], type, ""),
			 LLVMBuildBitCast(e->at, arg[1], type, ""), arg[2]);
}

/* The bytes of even numbers widened to i16, then those of odd ones. */
static LLVMValueRef pair_bytes(struct emitter *e, const LLVMValueRef *arg)
{
	LLVMTypeRef type = halves_of(e, arg[2]);
	LLVMValueRef eight = jit_constant(type, 8), a = LLVMBuildBitCast(e->at, arg[0], type, ""),
		     b = LLVMBuildBitCast(e->at, arg[1], type, "");
	LLVMValueRef even_a = LLVMBuildAnd(e->at, a, jit_constant(type, 0xff), ""),
		     even_b = LLVMBuildAShr(e->at, LLVMBuildShl(e->at, b, eight, ""), eight, "");
	LLVMValueRef odd_a = LLVMBuildLShr(e->at, a, eight, ""), odd_b = LLVMBuildAShr(e->at, b, eight, "");
	return add_pairs(e, odd_a, odd_b, add_pairs(e, even_a, even_b, arg[2]));
}

static LLVMValueRef dot_brains(struct emitter *e, const LLVMValueRef *arg)
{
	unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(arg[2]));
	LLVMTypeRef type = LLVMVectorType(LLVMBFloatTypeInContext(e->context), 2 * lanes);
	LLVMValueRef a = LLVMBuildBitCast(e->at, arg[0], type, ""), b = LLVMBuildBitCast(e->at, arg[1], type, "");
	return call_instruction(e, names[row_of(lanes)].dot_bf16, (LLVMValueRef[]){arg[2], a, b}, 3);
}

/* The dot product of vectors that fill a register. */
static LLVMValueRef emit_register(struct emitter *e, const LLVMValueRef *arg, enum ilir_op op)
{
	unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(arg[2]));
	if (op == ILIR_DOT_BF16)
		return dot_brains(e, arg);
	if ((int)lanes > e->dots.vnni_lanes)
		return (op == ILIR_DOT4 ? pair_bytes : pair_halves)(e, arg);
	const char *name = op == ILIR_DOT4 ? names[row_of(lanes)].dot4 : names[row_of(lanes)].dot2;
	return call_instruction(e, name, (LLVMValueRef[]){arg[2], arg[0], arg[1]}, 3);
}

/* `count` lanes from the first on. */
static LLVMValueRef take_lanes(struct emitter *e, LLVMValueRef v, int first, int count)
{
	LLVMValueRef lane[ILIR_MAX_LANES];
	for (int i = 0; i < count; i++)
		lane[i] = LLVMConstInt(e->scalar[ILIR_I32], first + i, false);
	return LLVMBuildShuffleVector(e->at, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(lane, count),
				      "");
}

/* The lanes of two halves, one behind the other. */
static LLVMValueRef join_lanes(struct emitter *e, LLVMValueRef low, LLVMValueRef high)
{
	LLVMValueRef lane[ILIR_MAX_LANES];
	int lanes = 2 * (int)LLVMGetVectorSize(LLVMTypeOf(low));
	for (int i = 0; i < lanes; i++)
		lane[i] = LLVMConstInt(e->scalar[ILIR_I32], i, false);
	return LLVMBuildShuffleVector(e->at, low, high, LLVMConstVector(lane, lanes), "");
}

/* The lanes of the widest registers that there are instructions for; 0 = there are none. */
static int find_lanes(const struct emitter *e, enum ilir_op op)
{
	return op == ILIR_DOT_BF16 ? e->dots.bf16_lanes : e->dots.pair_lanes;
}

/* Of a vector that is wider than a register: half by half. */
static LLVMValueRef emit_vector(struct emitter *e, const LLVMValueRef *arg, enum ilir_op op)
{
	int lanes = (int)LLVMGetVectorSize(LLVMTypeOf(arg[2]));
	LLVMValueRef half[2][3];
	if (lanes <= find_lanes(e, op))
		return emit_register(e, arg, op);
	for (int h = 0; h < 2; h++)
		for (int a = 0; a < 3; a++)
			half[h][a] = take_lanes(e, arg[a], h * lanes / 2, lanes / 2);
	LLVMValueRef low = emit_vector(e, half[0], op);
	return join_lanes(e, low, emit_vector(e, half[1], op));
}

/* Whether vectors of so many lanes can be cut into registers of 4, 8 or 16. */
static bool fills_registers(int lanes)
{
	return lanes >= 4 && lanes <= ILIR_MAX_LANES && (lanes & (lanes - 1)) == 0;
}

LLVMValueRef jit_emit_dot(struct emitter *e, const LLVMValueRef *arg, enum ilir_op op)
{
	LLVMTypeRef type = LLVMTypeOf(arg[2]);
	bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
	if (find_lanes(e, op) && vector && fills_registers((int)LLVMGetVectorSize(type)))
		return emit_vector(e, arg, op);
	return op == ILIR_DOT_BF16 ? jit_emit_dot_bf16(e, arg) : multiply_parts(e, arg, op == ILIR_DOT4 ? 8 : 16);
}
