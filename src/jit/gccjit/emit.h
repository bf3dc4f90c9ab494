/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Internal declarations of the libgccjit back end. */
#ifndef ESPALIER_JIT_GCCJIT_EMIT_H
#define ESPALIER_JIT_GCCJIT_EMIT_H

#include "jit/jit.h"
#include "jit/place.h"

#include <libgccjit.h>
#include <string.h>

/* --- processor.c --- */

enum jit_set { JIT_SSE, JIT_AVX, JIT_AVX512 };

struct jit_processor {
	enum jit_set set;
	const char *march;
	const char *option[2]; /* further ones; NULL = none */
};

/* The encodings in which the machine has dot products of bytes and halves (VNNI), and whether it has those of bf16, and
 * multiply-adds of f16. */
struct jit_dots {
	bool vex, evex, bf16, halves;
};

/* NULL when libgccjit makes no code for the target. */
const struct jit_processor *jit_find_processor(const struct target *);
struct jit_dots jit_find_dots(const struct jit_options *);
/* Sets the options of the context. */
void jit_set_options(gcc_jit_context *, const struct jit_processor *, bool lines);

/* --- values --- */

/* A vector of f32, i32 or truth is split into subvectors that fill a register, of `width` lanes each; one of
 * another type, or of lanes that fill no register, into its lanes.  Half floats are integers: their bits. */
struct jit_value {
	int width, subvectors;
	gcc_jit_rvalue *subvector[ILIR_MAX_LANES];
};

enum { JIT_WIDTHS = 5 }; /* of 1, 2, 4, 8 and 16 lanes; there is no subvector of 2 */

/* A register buffer: variables of `lanes` lanes if every access is of so many, from a multiple of them; else
 * an array. */
struct jit_register {
	int lanes; /* of all accesses; 0 = there are none, -1 = they differ */
	int slots;
	gcc_jit_lvalue **slot; /* by subvector; NULL = not used in this kernel yet, or an array */
	gcc_jit_lvalue *array;
};

/* One module while it is emitted.  `at` is where statements are added; `entry` is the kernel's first block,
 * which computes base pointers once. */
struct emitter {
	const struct ilir_module *m;
	struct arena *arena;
	const struct jit_processor *processor;
	struct jit_dots dots;
	ilir_buffer matrix[ILIR_MATRICES]; /* that are configured, by their numbers */
	int matrices;
	gcc_jit_context *context;
	gcc_jit_type *type[ILIR_DTYPES][JIT_WIDTHS];  /* by dtype and binary logarithm of the width */
	gcc_jit_type *loose[ILIR_DTYPES][JIT_WIDTHS]; /* in memory: aligned like its elements, truth a byte */
	gcc_jit_type *nothing, *pointer;
	gcc_jit_function *function, *fma[JIT_WIDTHS], *dot_bf16, *fma_f16; /* but for `function`: NULL = not written yet */
	gcc_jit_param *parameter[6];
	gcc_jit_block *at, *entry;
	int lines;			/* as in struct jit_options */
	gcc_jit_location *location;	/* of the statement, NULL = there is no table of lines */
	unsigned names;			/* of variables in this kernel so far */
	bool *reads;			/* jit_find_reads */
	uint32_t *loads;		/* by expression: the statements of this kernel that load it */
	const struct jit_value **value; /* by expression: computed in this statement, else NULL */
	VEC(uint32_t) known;		/* the expressions that have a value, oldest first */
	const struct jit_value **var;	/* by variable */
	gcc_jit_rvalue **base;		/* by buffer: its address, NULL = not used in this kernel yet */
	struct jit_register *reg;	/* by buffer */
	const char *kernel;		/* being emitted */
	const char *problem;		/* why the first failure happened, NULL = none */
	const char *culprit;		/* the kernel in which it happened */
};

/* --- emit.c --- */

/* Fills e->context with a function for each kernel; m, arena, context, processor and lines are given.  False
 * when the module cannot be emitted: see problem and culprit. */
bool jit_emit_module(struct emitter *);

/* The type of a subvector. */
gcc_jit_type *jit_subvector_type(const struct emitter *, enum ilir_dtype, int width);
/* The lanes of a subvector of such a value. */
int jit_width(const struct emitter *, struct ilir_type);
/* A value of that type, whose subvectors the caller fills in. */
struct jit_value *jit_new_value(struct emitter *, struct ilir_type);
/* Records why something cannot be emitted; returns a placeholder of that type. */
const struct jit_value *jit_refuse(struct emitter *, struct ilir_type, const char *why);
gcc_jit_block *jit_block(struct emitter *, const char *name);
gcc_jit_lvalue *jit_local(struct emitter *, gcc_jit_type *);
/* Assigns a value to a new variable here, since an rvalue is computed again wherever it is used. */
gcc_jit_rvalue *jit_keep(struct emitter *, gcc_jit_type *, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_index(struct emitter *, int64_t);

/* --- expr.c --- */

const struct jit_value *jit_emit_expr(struct emitter *, ilir_expr);
/* The value of an index, or of another scalar. */
gcc_jit_rvalue *jit_emit_scalar(struct emitter *, ilir_expr);
/* Forgets the values computed since `known` had `mark` entries: registers may have changed, or the block has
 * ended. */
void jit_forget(struct emitter *, size_t mark);

/* --- subvectors.c --- */

/* A scalar in all lanes of a subvector. */
gcc_jit_rvalue *jit_splat(struct emitter *, enum ilir_dtype, gcc_jit_rvalue *, int width);
/* A lane of a value. */
gcc_jit_rvalue *jit_lane(struct emitter *, const struct jit_value *, enum ilir_dtype, int lane);
/* A value of that type from its lanes. */
const struct jit_value *jit_join(struct emitter *, struct ilir_type, gcc_jit_rvalue *const *lane);
gcc_jit_rvalue *jit_binary(struct emitter *, gcc_jit_type *, enum gcc_jit_binary_op, gcc_jit_rvalue *, gcc_jit_rvalue *);
/* The bits of a value as one of another type. */
gcc_jit_rvalue *jit_bits(struct emitter *, gcc_jit_type *, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_cast(struct emitter *, enum ilir_dtype, gcc_jit_rvalue *);
gcc_jit_rvalue *jit_i32(struct emitter *, int32_t);
/* These two are for scalars. */
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

/* A row of asm.def for subvectors of that width; as many operands as are not NULL. */
gcc_jit_rvalue *jit_asm(struct emitter *, enum jit_asm, int width, gcc_jit_type *result, gcc_jit_rvalue *a,
			gcc_jit_rvalue *b, gcc_jit_rvalue *c);
/* The same, with all operands in registers, so that other instructions can use what was read. */
gcc_jit_rvalue *jit_asm_in_registers(struct emitter *, enum jit_asm, int width, gcc_jit_type *result,
				     gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c);
/* A row whose last operand is also the result, in one register. */
void jit_asm_in_place(struct emitter *, enum jit_asm, int width, gcc_jit_lvalue *, gcc_jit_rvalue *a,
		      gcc_jit_rvalue *b, bool memory);
/* A row that writes its result to memory. */
void jit_asm_to_memory(struct emitter *, enum jit_asm, int width, gcc_jit_lvalue *, gcc_jit_rvalue *);
/* A row that reads its operand from memory. */
gcc_jit_rvalue *jit_asm_from_memory(struct emitter *, enum jit_asm, int width, gcc_jit_type *result, gcc_jit_lvalue *);
/* Whether there is such an instruction for that width. */
bool jit_has_asm(const struct emitter *, enum jit_asm, int width);

/* The row that adds what an fma or a dot product of words adds to its last operand in place, so that GCC keeps the
 * sum in its register; false = the machine has no such instruction for these vectors (expr.c). */
bool jit_find_sum(const struct emitter *, ilir_expr, enum jit_asm *row);
/* Emits it: adds to the variables `to`. */
void jit_emit_sum(struct emitter *, ilir_expr, enum jit_asm row, gcc_jit_lvalue *const *to);

/* --- fma.c --- */

/* a * b + c, rounded once, on a machine that has no such instruction; subvectors of 1 or 4 lanes. */
gcc_jit_rvalue *jit_emit_fma(struct emitter *, int width, gcc_jit_rvalue *a, gcc_jit_rvalue *b,
			     gcc_jit_rvalue *c);

/* --- dot_bf16.c --- */

/* The value of dot_bf16 of scalars. */
gcc_jit_rvalue *jit_emit_dot_bf16(struct emitter *, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c);

/* --- fma_f16.c --- */

/* The value of fma_f16 of scalars. */
gcc_jit_rvalue *jit_emit_fma_f16(struct emitter *, gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c);

/* --- access.c --- */

const struct jit_value *jit_emit_load(struct emitter *, ilir_expr);
/* The four bytes that a load reads as an integer. */
const struct jit_value *jit_emit_word(struct emitter *, ilir_expr load);
/* A load and a widening cast in one instruction; NULL when there is no such instruction. */
const struct jit_value *jit_emit_widening_load(struct emitter *, ilir_expr cast);
void jit_emit_prefetch(struct emitter *, const struct ilir_stmt *);
/* The address of the first element that a load reads, in memory or in the array of a register; NULL after a refusal. */
gcc_jit_rvalue *jit_emit_address(struct emitter *, ilir_expr load);
void jit_emit_store(struct emitter *, const struct ilir_stmt *);
/* Finds the width of each register, and how many statements evaluate each load, from all accesses of a block.
 */
void jit_measure_registers(struct emitter *, const struct ilir_stmt *);

/* --- matrix.c --- */

/* Before and after a matrix loop. */
void jit_configure_matrices(struct emitter *, const struct ilir_stmt *loop);
void jit_release_matrices(struct emitter *);
/* A FILL or SPILL, and a DOT. */
void jit_emit_rows(struct emitter *, const struct ilir_stmt *);
void jit_emit_matrix_dot(struct emitter *, const struct ilir_stmt *);

#endif
