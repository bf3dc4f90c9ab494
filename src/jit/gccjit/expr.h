/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the emitters of operators share. */
#ifndef ESPALIER_JIT_GCCJIT_EXPR_H
#define ESPALIER_JIT_GCCJIT_EXPR_H

#include "jit/gccjit/emit.h"

/* The operands of an emitter: an expression, and one subvector of each of its operands. */
struct job {
	ilir_expr x;
	struct ilir_type type, operand; /* of the result, of the first operand */
	int width;
	gcc_jit_type *result;
	gcc_jit_rvalue *arg[3];
};
typedef gcc_jit_rvalue *emit_op(struct emitter *, const struct job *);

/* Records why an operator cannot be emitted; returns a placeholder of its type. */
gcc_jit_rvalue *jit_refuse_operator(struct emitter *, const struct job *, const char *why);
/* Truth in lanes from a row of asm.def. */
gcc_jit_rvalue *jit_compare_lanes(struct emitter *, enum jit_asm, const struct job *, gcc_jit_rvalue *a,
				  gcc_jit_rvalue *b);
/* The lanes of `yes` where the condition is true, of `no` elsewhere. */
gcc_jit_rvalue *jit_blend_lanes(struct emitter *, const struct job *, gcc_jit_rvalue *condition, gcc_jit_rvalue *yes,
				gcc_jit_rvalue *no);
/* dot.c: the value of dot4, dot2 or dot_bf16 (in vectors only where jit_find_dot finds a row), and the row of asm.def that adds it to the register of its last operand;
 * false = the machine has none for that width. */
gcc_jit_rvalue *jit_emit_dot(struct emitter *, const struct job *);
bool jit_find_dot(const struct emitter *, enum ilir_op, int width, enum jit_asm *row);
/* Emits a cast to the type of its result; see casts.c. */
gcc_jit_rvalue *jit_emit_cast(struct emitter *, const struct job *);

#endif
