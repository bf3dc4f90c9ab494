/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dot products of the parts of i32.  Of bytes and halves: an instruction where the machine has one (VNNI), else the sums
 * of pairs of products of i16; scalars by arithmetic of i32.  All are exact modulo 2^32, so they give the
 * same bits.  Of bf16: an instruction (AVX512-BF16), else lane by lane as dot_bf16.c does.
 * Multiply-adds of f16: likewise (AVX512-FP16), else fma_f16.c. */
#include "jit/gccjit/expr.h"

/* The bits first .. first+count-1 of an i32 as a number. */
static gcc_jit_rvalue *take_bits(struct emitter *e, gcc_jit_rvalue *v, int first, int count, bool is_signed)
{
	gcc_jit_type *type = e->type[ILIR_I32][0];
	v = jit_binary(e, type, GCC_JIT_BINARY_OP_LSHIFT, v, jit_i32(e, 32 - first - count));
	v = jit_binary(e, type, GCC_JIT_BINARY_OP_RSHIFT, v, jit_i32(e, 32 - count));
	return is_signed
		   ? v
		   : jit_binary(e, type, GCC_JIT_BINARY_OP_BITWISE_AND, v, jit_i32(e, (1 << count) - 1));
}

static gcc_jit_rvalue *multiply_parts(struct emitter *e, const struct job *j, int count)
{
	gcc_jit_rvalue *sum = j->arg[2];
	for (int first = 0; first < 32; first += count) {
		gcc_jit_rvalue *a = take_bits(e, j->arg[0], first, count, count == 16),
			       *b = take_bits(e, j->arg[1], first, count, true);
		sum = jit_binary(e, j->result, GCC_JIT_BINARY_OP_PLUS, sum,
				 jit_binary(e, j->result, GCC_JIT_BINARY_OP_MULT, a, b));
	}
	return sum;
}

static gcc_jit_rvalue *add_pairs(struct emitter *e, const struct job *j, gcc_jit_rvalue *a, gcc_jit_rvalue *b,
				 gcc_jit_rvalue *c)
{
	gcc_jit_rvalue *pairs = jit_asm(e, JIT_ASM_PAIRS, j->width, j->result, a, b, NULL);
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_PLUS, pairs, c);
}

/* The bytes of even numbers widened to i16, then those of odd ones. */
static gcc_jit_rvalue *pair_bytes(struct emitter *e, const struct job *j)
{
	gcc_jit_rvalue *a = j->arg[0], *b = j->arg[1],
		       *mask = jit_splat(e, ILIR_I32, jit_i32(e, 0x00ff00ff), j->width);
	gcc_jit_rvalue *even_a = jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_AND, a, mask),
		       *even_b = jit_asm(e, JIT_ASM_EVEN_BYTES, j->width, j->result, b, NULL, NULL),
		       *odd_a = jit_asm(e, JIT_ASM_ODD_UNSIGNED, j->width, j->result, a, NULL, NULL),
		       *odd_b = jit_asm(e, JIT_ASM_ODD_BYTES, j->width, j->result, b, NULL, NULL);
	return add_pairs(e, j, odd_a, odd_b, add_pairs(e, j, even_a, even_b, j->arg[2]));
}

/* The encoding for AVX-512 is for subvectors of 16 lanes, and where it is there for others as well. */
bool jit_find_dot(const struct emitter *e, enum ilir_op op, int width, enum jit_asm *row)
{
	bool bytes = op == ILIR_DOT4;
	if (op == ILIR_FMA_F16) {
		*row = JIT_ASM_FMA_F16;
		return e->dots.halves && width >= 4;
	}
	if (op == ILIR_DOT_BF16) {
		*row = JIT_ASM_DOT_BF16;
		return e->dots.bf16 && width >= 4;
	}
	if ((op != ILIR_DOT4 && op != ILIR_DOT2) || width < 4 ||
	    !(e->dots.evex || (e->dots.vex && width <= 8)))
		return false;
	*row = e->dots.evex ? bytes ? JIT_ASM_DOT4 : JIT_ASM_DOT2
	       : bytes	    ? JIT_ASM_DOT4_VEX
			    : JIT_ASM_DOT2_VEX;
	return true;
}

gcc_jit_rvalue *jit_emit_dot(struct emitter *e, const struct job *j)
{
	enum ilir_op op = ilir_at(e->m, j->x)->op;
	enum jit_asm row;
	if (j->width == 1 && op == ILIR_FMA_F16)
		return jit_emit_fma_f16(e, j->arg[0], j->arg[1], j->arg[2]);
	if (j->width == 1 && op == ILIR_DOT_BF16)
		return jit_emit_dot_bf16(e, j->arg[0], j->arg[1], j->arg[2]);
	if (j->width == 1)
		return multiply_parts(e, j, op == ILIR_DOT4 ? 8 : 16);
	if (jit_find_dot(e, op, j->width, &row))
		return jit_asm_in_registers(e, row, j->width, j->result, j->arg[0], j->arg[1], j->arg[2]);
	return op == ILIR_DOT4 ? pair_bytes(e, j) : add_pairs(e, j, j->arg[0], j->arg[1], j->arg[2]);
}
