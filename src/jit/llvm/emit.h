/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Internal declarations of the LLVM back end. */
#ifndef ESPALIER_JIT_LLVM_EMIT_H
#define ESPALIER_JIT_LLVM_EMIT_H

#include "jit/jit.h"
#include "jit/place.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

/* A register buffer: a stack slot of `lanes` elements each, which the optimiser turns into values. */
struct jit_register {
	int lanes; /* of the widest store; 0 = nothing stored */
	int64_t slots;
	LLVMValueRef *slot; /* NULL = not used in this kernel yet */
	LLVMTypeRef type;   /* of a slot */
	bool parked;
	bool whole; /* its slots follow each other in memory: it is parked, or matrix registers are filled from it or spilled to it */
};

/* The innermost loop that is being emitted, and multiples of its variable, which are advanced with it. */
enum { JIT_MULTIPLES = 8 };
struct jit_loop {
	ilir_var var; /* none: not in such a loop */
	LLVMValueRef begin;
	LLVMBasicBlockRef before, body;
	int multiples;
	struct {
		uint64_t factor;
		LLVMValueRef phi;
	} multiple[JIT_MULTIPLES];
};

/* The most lanes of i32 for which the machine has dot products of bytes and halves (VNNI), sums of pairs of
 * products of i16, and dot products of bf16; 0 = it has none. */
struct jit_dots {
	int vnni_lanes, pair_lanes, bf16_lanes;
	bool halves; /* multiply-adds of f16, in all widths */
};

/* One module while it is emitted.  `at` is where instructions are added; `entry` is the end of the kernel's
 * entry block, which computes base pointers and stack slots once. */
struct emitter {
	const struct ilir_module *m;
	struct arena *arena;
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef at, entry;
	LLVMTypeRef scalar[ILIR_DTYPES], pointer; /* by dtype; half floats are integers: their bits */
	LLVMValueRef function;
	const struct jit_unit *unit;	/* what is being emitted */
	const struct ilir_stmt *rows;	/* its loops over rows, of which variants run one each; NULL = no variants */
	LLVMValueRef block; /* the number of the block that a sweep is at; NULL = no sweep */
	bool has_fma, has_half;	       /* the machine has the instructions */
	struct jit_dots dots;
	ilir_buffer matrix[ILIR_MATRICES]; /* that are configured, by their numbers */
	int matrices;
	int lines; /* as in struct jit_options; with the four below it, 0 = no table of lines */
	LLVMDIBuilderRef describe;
	LLVMMetadataRef file, signature; /* of the listing, and of all kernels */
	LLVMMetadataRef scope;		 /* the function that is being emitted */
	struct jit_promises *promises; /* metadata of accesses to memory (access.c) */
	bool *reads;		       /* jit_find_reads */
	LLVMValueRef *value;	       /* by expression: computed in this statement, else NULL */
	VEC(uint32_t) known;	       /* the expressions that have a value, oldest first */
	LLVMValueRef *var;	       /* by variable */
	struct jit_loop loop;
	LLVMValueRef *base;	  /* by buffer: its address, NULL = not used in this kernel yet */
	struct jit_register *reg; /* by buffer */
	const char *kernel;	  /* being emitted */
	const char *problem;	  /* why the first failure happened, NULL = none */
	const char *culprit;	  /* the kernel in which it happened */
};

/* --- emit.c --- */

/* Fills e->module (empty, in e->context) with the function of the unit, or when it is NULL with one for each
 * kernel; m, arena, context, module, has_fma, has_half and lines are given.  False when the module cannot be
 * emitted: see problem and culprit.  `vector_bits` is the register width to use. */
bool jit_emit_module(struct emitter *, const struct jit_unit *, int vector_bits);

LLVMTypeRef jit_type(const struct emitter *, struct ilir_type);
/* The type in memory, where truth is a byte. */
LLVMTypeRef jit_stored_type(const struct emitter *, struct ilir_type);
/* The integer in each lane of a type. */
LLVMValueRef jit_constant(LLVMTypeRef, int64_t);
/* Records why something cannot be emitted; returns a placeholder of that type. */
LLVMValueRef jit_refuse(struct emitter *, struct ilir_type, const char *why);
LLVMBasicBlockRef jit_block(struct emitter *, const char *name);

/* The variable of the innermost loop times a factor, as an induction variable of its own; NULL when the
 * expression is no such variable. */
LLVMValueRef jit_multiple(struct emitter *, ilir_expr, uint64_t factor);

/* --- lines.c: the table of lines, if there is to be one --- */

/* Before and after all functions. */
void jit_begin_lines(struct emitter *);
void jit_end_lines(struct emitter *);
/* Describes the function that is emitted from now on. */
void jit_begin_function(struct emitter *, const struct ilir_kernel *, const char *name);
/* What is emitted from now on is on this line of the module. */
void jit_set_line(struct emitter *, int line);

/* --- expr.c --- */

LLVMValueRef jit_emit_expr(struct emitter *, ilir_expr);
/* Forgets the values computed since `known` had `mark` entries: registers may have changed, or the block has
 * ended. */
void jit_forget(struct emitter *, size_t mark);
LLVMValueRef jit_splat(struct emitter *, LLVMValueRef, int lanes);
/* a * b + c, rounded once; floats or vectors of them. */
LLVMValueRef jit_fuse(struct emitter *, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);

/* --- half.c --- */

/* The f32 of the bits of an f16; scalars or vectors. */
LLVMValueRef jit_widen_half(struct emitter *, LLVMValueRef bits);

/* --- fma.c --- */

/* a * b + c, rounded once, on a machine that has no such instruction; floats or vectors of them. */
LLVMValueRef jit_emit_fma(struct emitter *, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);

/* --- dot.c --- */

/* The value of dot4, dot2 or dot_bf16 of three arguments, or vectors of them. */
LLVMValueRef jit_emit_dot(struct emitter *, const LLVMValueRef *arg, enum ilir_op);

/* --- dot_bf16.c --- */

/* The value of dot_bf16 on a machine that has no such instruction. */
LLVMValueRef jit_emit_dot_bf16(struct emitter *, const LLVMValueRef *arg);

/* --- fma_f16.c --- */

/* The value of fma_f16 of three words, or vectors of them. */
LLVMValueRef jit_emit_fma_f16(struct emitter *, const LLVMValueRef *arg);

/* --- access.c --- */

/* Once per module, before any load or store. */
void jit_make_promises(struct emitter *);
LLVMValueRef jit_emit_load(struct emitter *, ilir_expr);
/* The four bytes that a load reads as an integer. */
LLVMValueRef jit_emit_word(struct emitter *, ilir_expr load);
/* The lanes of a vector as integers of their bits, if they are f32. */
LLVMValueRef jit_emit_bits(struct emitter *, ilir_expr);
void jit_emit_prefetch(struct emitter *, const struct ilir_stmt *);
void jit_emit_store(struct emitter *, const struct ilir_stmt *);
/* The address of the first element that a load reads, of which the register may be whole; NULL after a refusal. */
LLVMValueRef jit_emit_address(struct emitter *, ilir_expr load);
/* The content of a register becomes undefined. */
void jit_emit_alloc(struct emitter *, ilir_buffer);
/* Sets the width of each register from all stores of a block. */
void jit_measure_registers(struct emitter *, const struct ilir_stmt *);

/* --- matrix.c --- */

/* Before and after a matrix loop. */
void jit_configure_matrices(struct emitter *, const struct ilir_stmt *loop);
void jit_release_matrices(struct emitter *);
/* A FILL or SPILL, and a DOT. */
void jit_emit_rows(struct emitter *, const struct ilir_stmt *);
void jit_emit_matrix_dot(struct emitter *, const struct ilir_stmt *);

/* --- backend.c --- */

/* The object of a unit, or of all kernels (NULL); the caller disposes of it.  NULL after diagnostics. */
LLVMMemoryBufferRef jit_compile_unit(const struct ilir_module *, const struct jit_options *, const struct jit_unit *,
				     double seconds[JIT_PHASES], struct diags *);

/* --- process.c: open, find and close of struct jit_backend --- */

struct jit_process *jit_process_open(const struct ilir_module *, const struct jit_options *, const struct jit_unit *,
				     int units, struct jit_sink, struct diags *);
void *jit_process_find(struct jit_process *, const struct jit_unit *, struct diags *);
void jit_process_close(struct jit_process *);

/* --- processor.c --- */

/* A machine for one compilation, since LLVM's must not be shared between threads.  NULL and a
 * message for LLVMDisposeMessage on failure. */
LLVMTargetMachineRef jit_machine_new(const struct jit_options *, char **message);
/* Whether such a machine multiplies and adds in one instruction; after jit_machine_new. */
bool jit_machine_has_fma(const struct jit_options *);
/* Whether it converts between f16 and f32. */
bool jit_machine_has_half(const struct jit_options *);
/* What it has for dot products. */
struct jit_dots jit_machine_dots(const struct jit_options *);

#endif
