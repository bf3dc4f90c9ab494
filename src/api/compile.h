/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The compile leg as one list of calls: model and sizes in, image out. */
#ifndef ESPALIER_API_COMPILE_H
#define ESPALIER_API_COMPILE_H

#include "base/diag.h"
#include "base/target.h"
#include "base/times.h"
#include "image/image.h"
#include "jit/jit.h"
#include "sched/sched.h"

enum { COMPILE_AT_MODEL, COMPILE_AT_ROOT, COMPILE_AT_EVERY_NODE };

/* The description of the machine at hand. */
struct machine_known {
	struct target target;
	const char *processor; /* a text that differs where code or its schedule may differ */
};

struct compile_options {
	int at;
	const char *backend;  /* jit_backend_name, or "interpreter" */
	const char *target;   /* a name of base/targets.h */
	const struct machine_known *machine; /* whom TARGET_NATIVE means; NULL = any of its best target */
	const char *schedule; /* NULL = chosen */
	const char
	    *last_pass; /* interpreter only: stop after this pass; NULL = all.  For differential tests. */
	const char *math, *rules; /* texts of sub_math_read and sub_families_read; NULL = reassociate, all */
	uint64_t table_bytes;	  /* 0 = 64 MiB */
	struct jit_threads threads; /* that may compile; the code is the same */
	bool apart;		    /* the back end works in a helper program */
	uint64_t memory;	    /* bytes of data that this may have; 0 = no limit */
	struct jit_watch watch;	    /* who may end the compilation; goes_on NULL = nobody */
};

/* The description that schedules are chosen by; NULL = there is no such target. */
const struct target *compile_target(const struct compile_options *);
/* What they say to the optimiser.  False after diagnostics. */
bool compile_rewriting(const struct compile_options *, struct sub_options *, struct diags *);

/* What is computed, rewritten as the options say, and what of it is fused.  The trace may be NULL. */
bool compile_plan(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, struct sub_program *, struct sched_plan *,
		  struct sub_trace *);

/* The first half of a compilation, which the second goes on from: rewritten, fused, scheduled. */
struct compilation;

/* Fills everything of the image but steps, buffers, recipes, blob and code: what the program promises before
 * any code exists.  All is in the arena but what the compilation only refers to: model, options, `sizes` of
 * the model's symbols. NULL after diagnostics.  Notes how long each part took; times NULL = nobody asks. */
struct compilation *compile_begin(struct arena *, struct diags *, const struct ra_model *,
				  const int64_t *sizes, const struct compile_options *, struct image *,
				  struct times *);

/* Completes the image, as often as it is called, but for loading its code.  What it points to is in this arena, or
 * in the one of the first half. */
bool compile_finish(const struct compilation *, struct arena *, struct diags *, struct image *,
		    struct times *);
/* Makes code that can be called from what an image has, whoever compiled it and wherever; what is interpreted can be
 * already.  Released by image->code.release.  False after diagnostics, `target-not-here` among them; times NULL =
 * nobody asks. */
bool compile_load(const struct allocator *, struct diags *, struct image *, struct times *);
/* Whether this machine has all that the code of an image needs. */
bool compile_can_load(const struct image *, struct diags *);
/* Whether code that is compiled with these options will run on this machine. */
bool compile_runs_here(const struct compile_options *, struct diags *);

/* Both halves, and loading. */
bool compile_image(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		   const struct compile_options *, struct image *, struct times *);

/* Stages in order: ra, written (sub-operators as the model has them), derivation (how rules rewrite them),
 * subop, refactor, hoist, sched, choices, lower, each pass, ilir (after the last pass), the IR of each back end, asm. NULL
 * past the last. */
const char *compile_stage(size_t i);
/* The text of a stage. */
bool compile_dump(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, const char *stage, struct str *);

#endif
