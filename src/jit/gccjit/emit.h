/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The inside of the libgccjit back end: what its files share. */
#ifndef ESPALIER_JIT_GCCJIT_EMIT_H
#define ESPALIER_JIT_GCCJIT_EMIT_H

#include "jit/jit.h"
#include "jit/place.h"

#include <libgccjit.h>
#include <string.h>

/* --- machine.c --- */

enum jit_set { JIT_SSE, JIT_AVX, JIT_AVX512 };

struct jit_processor {
	enum jit_set set;
	const char *march;
	const char *width; /* an option, NULL = the usual */
};

/* NULL when libgccjit makes no code for the target. */
const struct jit_processor *jit_find_processor(const struct target *);
/* Says to the context what code is to be made, and how. */
void jit_set_options(gcc_jit_context *, const struct jit_processor *);

/* --- values --- */

/* A vector of f32, i32 or truth is as many parts of `width` lanes as registers hold it; one of another type, or of
 * lanes that fill no register, a part for each lane.  Half floats are integers: their bits. */
struct jit_value {
	int width, subvectors;
	gcc_jit_rvalue *subvector[ILIR_MAX_LANES];
};

enum { JIT_WIDTHS = 5 }; /* of 1, 2, 4, 8 and 16 lanes; there is no part of 2 */

/* A register buffer.  When every access is of `lanes` lanes, from a multiple of them, it is variables of that
 * type, else an array. */
struct jit_register {
	int lanes; /* of all accesses; 0 = none met, -1 = they differ */
	int slots;
	gcc_jit_lvalue **slot; /* by part of a slot; NULL = not met in this kernel yet, or an array */
	gcc_jit_lvalue *array;
};

/* One module on its way into libgccjit.  `at` is where code goes; `entry` is the kernel's first block, which
 * holds what is computed once: base pointers. */
struct emitter {
	const struct ilir_module *m;
	struct arena *arena;
	const struct jit_processor *processor;
	gcc_jit_context *context;
	gcc_jit_type *type[ILIR_DTYPES][JIT_WIDTHS];  /* by dtype and binary logarithm of the width */
	gcc_jit_type *loose[ILIR_DTYPES][JIT_WIDTHS]; /* in memory: aligned like its elements, truth a byte */
	gcc_jit_type *nothing, *pointer;
	gcc_jit_function *function, *fma[JIT_WIDTHS]; /* fma: NULL = not written yet */
	gcc_jit_param *parameter[6];
	gcc_jit_block *at, *entry;
	unsigned names;			/* of variables in this kernel so far */
	bool *reads;			/* jit_find_reads */
	uint32_t *loads;		/* by expression: the statements of this kernel that load it */
	const struct jit_value **value; /* by expression: computed in this statement, else NULL */
	VEC(uint32_t) known;		/* the expressions that have a value, oldest first */
	const struct jit_value **var;	/* by variable */
	gcc_jit_rvalue **base;		/* by buffer: its address, NULL = not used in this kernel yet */
	struct jit_register *reg;	/* by buffer */
	const char *kernel;		/* being emitted */
	const char *problem;		/* first thing that cannot be emitted, NULL = none */
	const char *culprit;		/* the kernel it stands in */
};

/* --- emit.c --- */

/* Fills e->context with a function for each kernel; m, arena, context and processor are given.  False when
 * the module is not what the back end takes: see problem and culprit. */
bool jit_emit_module(struct emitter *);

/* The type of a part. */
gcc_jit_type *jit_subvector_type(const struct emitter *, enum ilir_dtype, int width);
/* The lanes of a part of such a value. */
int jit_width(const struct emitter *, struct ilir_type);
/* A value of that type, whose parts are to be filled in. */
struct jit_value *jit_new_value(struct emitter *, struct ilir_type);
/* Notes why something cannot be emitted; a value of that type stands in. */
const struct jit_value *jit_refuse(struct emitter *, struct ilir_type, const char *why);
gcc_jit_block *jit_block(struct emitter *, const char *name);
gcc_jit_lvalue *jit_local(struct emitter *, gcc_jit_type *);
/* Computes it here: what stands for a computation would be done again wherever it is used. */
gcc_jit_rvalue *jit_keep(struct emitter *, gcc_jit_type *, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_index(struct emitter *, int64_t);

/* --- expr.c --- */

const struct jit_value *jit_emit_expr(struct emitter *, ilir_expr);
/* Of an index, or another scalar. */
gcc_jit_rvalue *jit_emit_scalar(struct emitter *, ilir_expr);
/* Forgets what was computed since `known` had `mark` entries: registers may have changed, or control left the
 * block. */
void jit_forget(struct emitter *, size_t mark);
/* A scalar in all lanes of a part. */
gcc_jit_rvalue *jit_splat(struct emitter *, enum ilir_dtype, gcc_jit_rvalue *, int width);

/* `to` += a * b, of fma(a, b, what is in `to`): in the variables themselves, so that nothing can come between
 * a sum and its register.  Of vectors, on a machine that has the instruction. */
void jit_emit_sum(struct emitter *, ilir_expr fma, gcc_jit_lvalue *const *to);

/* A lane of a value. */
gcc_jit_rvalue *jit_lane(struct emitter *, const struct jit_value *, enum ilir_dtype, int lane);
/* A value of that type from its lanes. */
const struct jit_value *jit_join(struct emitter *, struct ilir_type, gcc_jit_rvalue *const *lane);
gcc_jit_rvalue *jit_binary(struct emitter *, gcc_jit_type *, enum gcc_jit_binary_op, gcc_jit_rvalue *, gcc_jit_rvalue *);
/* The bits of a value as one of another type. */
gcc_jit_rvalue *jit_bits(struct emitter *, gcc_jit_type *, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_cast(struct emitter *, enum ilir_dtype, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_i32(struct emitter *, int32_t);
/* Of scalars. */
gcc_jit_rvalue *jit_choose(struct emitter *, gcc_jit_type *, gcc_jit_rvalue *condition, gcc_jit_rvalue *yes,
			   gcc_jit_rvalue *no);
gcc_jit_rvalue *jit_compare(struct emitter *, enum gcc_jit_comparison, gcc_jit_rvalue *, gcc_jit_rvalue *);

/* --- half.c --- */

/* The f32 of the bits of an f16, and of a bf16; scalars. */
gcc_jit_rvalue *jit_widen_half(struct emitter *, gcc_jit_rvalue *bits);
gcc_jit_rvalue *jit_widen_brain(struct emitter *, gcc_jit_rvalue *bits);

/* --- asm.c --- */

enum jit_asm {
#define GCCJIT_ASM(name, sse, avx, avx512, meaning) JIT_ASM_##name,
#include "jit/gccjit/asm.def"
#undef GCCJIT_ASM
};

/* A row of asm.def for parts of that width; as many operands as are not NULL. */
gcc_jit_rvalue *jit_asm(struct emitter *, enum jit_asm, int width, gcc_jit_type *result, gcc_jit_rvalue *a,
			gcc_jit_rvalue *b, gcc_jit_rvalue *c);
/* The same, all operands in registers: what is read there is read once for others as well. */
gcc_jit_rvalue *jit_asm_in_registers(struct emitter *, enum jit_asm, int width, gcc_jit_type *result,
				     gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c);
/* A row whose last operand begins in the register of the result, and is the result. */
void jit_asm_in_place(struct emitter *, enum jit_asm, int width, gcc_jit_lvalue *, gcc_jit_rvalue *a,
		      gcc_jit_rvalue *b, bool memory);
/* A row whose result is a place in memory. */
void jit_asm_to_memory(struct emitter *, enum jit_asm, int width, gcc_jit_lvalue *, gcc_jit_rvalue *);
/* A row whose operand is a place in memory. */
gcc_jit_rvalue *jit_asm_from_memory(struct emitter *, enum jit_asm, int width, gcc_jit_type *result, gcc_jit_lvalue *);
/* Whether there is such an instruction. */
bool jit_has_asm(const struct emitter *, enum jit_asm, int width);

/* --- fma.c --- */

/* a * b + c, rounded once, on a machine that has no such instruction; parts of 1 or 4 lanes. */
gcc_jit_rvalue *jit_emit_fma(struct emitter *, int width, gcc_jit_rvalue *a, gcc_jit_rvalue *b,
			     gcc_jit_rvalue *c);

/* --- access.c --- */

const struct jit_value *jit_emit_load(struct emitter *, ilir_expr);
/* Of a cast of what is loaded, both in one instruction; NULL when it is none that can be. */
const struct jit_value *jit_emit_widening_load(struct emitter *, ilir_expr cast);
/* Of a load, its place only. */
void jit_emit_prefetch(struct emitter *, ilir_expr load);
void jit_emit_store(struct emitter *, const struct ilir_stmt *);
/* Finds how wide each register is, and how often each place is loaded, from all accesses of a block. */
void jit_measure_registers(struct emitter *, const struct ilir_stmt *);

#endif
