/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A compilation, which the files of this folder share. */
#ifndef ESPALIER_COMPILE_COMPILATION_H
#define ESPALIER_COMPILE_COMPILATION_H

#include "compile/compile.h"
#include "compile/program_passes.h"
#include "ilir/passes.h"
#include "jit/jit.h"

/* The state of a compilation.  Plan and schedule point into it. */
struct compilation {
	struct arena *arena;
	struct diags *diags;
	const struct ra_model *model;
	const int64_t *sizes;
	const struct compile_options *options;
	struct rewrite_trace *trace;
	struct times *times;	    /* NULL = nobody asks */
	double clock;		    /* when what was noted last ended */
	struct sub_program written; /* before any pass, as the model has it: what the interface promises */
	/* Before the first pass that a schedule steers: other schedules go on from here, since rewriting
	 * takes as long as all that follows. */
	struct sub_program unsteered;
	/* The result of the last pass, which in the end is compiled, and the program that the next pass
	 * fills: the two alternate. */
	struct sub_program program, spare;
	const struct sub_program *latest; /* while passes run: what the next one begins with */
	struct sched_fusion fusion;	  /* what the schedule says of passes and plan */
	struct sched_plan plan;
	struct sched sched;
	struct ilir_tiling tiling;
	struct ilir_module module;
	unsigned properties; /* that the module has */
};

/* Whether the compilation may go on; false after a diagnostic. */
bool compile_goes_on(const struct compilation *);
/* Notes the time since the last note under the name of a stage and of what it did. */
void compile_note(struct compilation *, const char *stage, const char *what);

/* --- program_passes.c; false after diagnostics --- */

/* Notes that a program has been verified.  False also when the next step is not wanted any more. */
bool compile_check_program(struct compilation *, const struct sub_program *);
/* Reads what the schedule says of passes, the first of which will begin with this program. */
bool compile_begin_passes(struct compilation *, const struct sub_program *);
bool compile_run_program_pass(struct compilation *, const struct program_pass *);
/* From the program as written up to the pass of this name; NULL = all. */
bool compile_run_program_passes(struct compilation *, const char *last);
/* Again from the unsteered program, after another schedule was given. */
bool compile_run_steered_passes(struct compilation *);

/* --- compile.c: the stages; false after diagnostics --- */

bool compile_to_written(struct compilation *);
/* After all passes over programs, as the next. */
bool compile_to_plan(struct compilation *);
/* Plan and schedule. */
bool compile_to_schedule(struct compilation *);
bool compile_to_loops(struct compilation *);
/* Up to the pass of this name; NULL = all. */
bool compile_run_passes(struct compilation *, const char *last);

/* --- plan_choices.c --- */

/* After compile_to_schedule: what else the schedule may say. */
void compile_print_choices(const struct compilation *, struct str *);

/* --- generate.c --- */

struct jit_options compile_jit_options(const struct compilation *);
/* From the finished module to code: a blob, or what the interpreter calls. */
bool compile_to_code(struct compilation *, struct image *);

/* --- describe_image.c --- */

void compile_describe_interface(const struct compilation *, struct image *);
/* What the loops do not know of buffers and steps. */
void compile_describe_steps(const struct compilation *, struct image *);

#endif
