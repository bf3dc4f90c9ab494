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
	struct times *times;	    /* NULL = not measured */
	double clock;		    /* when the last note was made */
	struct sub_program written; /* before any pass; the image has its interface */
	/* The program before the first pass that a schedule steers.  Passes for another schedule begin here,
	 * since rewriting takes as long as all later passes. */
	struct sub_program unsteered;
	/* The result of the last pass, which in the end is compiled, and the program that the next pass
	 * fills: the two alternate. */
	struct sub_program program, spare;
	const struct sub_program *latest; /* while passes run: the input of the next one */
	struct sched_fusion fusion;	  /* the schedule's directives for passes and plan */
	struct sched_plan plan;
	struct sched sched;
	struct ilir_tiling tiling;
	struct ilir_module module;
	unsigned properties; /* of the module: a mask of ILIR_... */
	int lines;	     /* of its listing: the one that the module begins on, 0 = it was not listed */
};

/* Whether the compilation may go on; false after a diagnostic. */
bool compile_goes_on(const struct compilation *);
/* Notes the time since the last note under the name of a stage and of what it did. */
void compile_note(struct compilation *, const char *stage, const char *what);

/* --- program_passes.c; false after diagnostics --- */

/* Verifies a program and notes the time.  False also when the compilation may not go on. */
bool compile_check_program(struct compilation *, const struct sub_program *);
/* Reads the schedule's directives for passes, the first of which gets this program. */
bool compile_begin_passes(struct compilation *, const struct sub_program *);
/* Checks that the latest program has the quantised products that the options leave to the host.  False after a diagnostic. */
bool compile_check_kept(const struct compilation *);
bool compile_run_program_pass(struct compilation *, const struct program_pass *);
/* Runs the passes over programs, from the program as written, up to the one of this name; NULL = all. */
bool compile_run_program_passes(struct compilation *, const char *last);
/* Runs the passes that a schedule steers again, from the unsteered program, for another schedule. */
bool compile_run_steered_passes(struct compilation *);

/* --- compile.c: the stages; false after diagnostics --- */

bool compile_to_written(struct compilation *);
/* Makes the plan; needs all passes over programs. */
bool compile_to_plan(struct compilation *);
/* Makes plan and schedule; needs all passes over programs. */
bool compile_to_schedule(struct compilation *);
bool compile_to_loops(struct compilation *);
/* Runs the passes over loops up to the one of this name; NULL = all. */
bool compile_run_passes(struct compilation *, const char *last);

/* --- plan_choices.c --- */

/* Prints what else the schedule may say; needs compile_to_schedule. */
void compile_print_choices(const struct compilation *, struct str *);

/* --- dump.c --- */

/* Prints the module, and what its kernels store; numbers its statements by the lines. */
void compile_print_loops(struct compilation *, struct str *);

/* --- generate.c --- */

struct jit_options compile_jit_options(const struct compilation *);
/* Notes the times that objects took to make. */
void compile_note_objects(struct arena *, struct times *, const char *backend, const struct jit_objects *);
/* Makes code of the finished module: a blob, or the kernels that the interpreter runs. */
bool compile_to_code(struct compilation *, struct image *);

/* --- late_code.c --- */

/* Makes the image's code such that the back end compiles its kernels when they are needed.  False, without a diagnostic,
 * when the back end cannot. */
bool compile_open_code(struct compilation *, const struct jit_backend *, const struct jit_options *, struct image *);

/* --- describe_image.c --- */

void compile_describe_interface(const struct compilation *, struct image *);
/* Completes buffers and steps by what the loops do not determine: layouts, work, strategies. */
void compile_describe_steps(const struct compilation *, struct image *);
/* Describes the calls of the accelerator, and generates their streams; behind the steps.  False after diagnostics. */
bool compile_describe_calls(const struct compilation *, struct image *);

#endif
