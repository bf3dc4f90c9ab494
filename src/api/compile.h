/* The compile leg as one list of calls: model and sizes in, image out. */
#ifndef ESPALIER_API_COMPILE_H
#define ESPALIER_API_COMPILE_H

#include "base/diag.h"
#include "base/target.h"
#include "base/times.h"
#include "image/image.h"
#include "sched/sched.h"

enum { COMPILE_AT_MODEL, COMPILE_AT_ROOT, COMPILE_AT_EVERY_NODE };

struct compile_options {
	int at;
	const char *backend;  /* "llvm", "interpreter" */
	const char *target;   /* a name of base/target.h */
	const char *schedule; /* NULL = chosen */
	const char
	    *last_pass; /* interpreter only: stop after this pass; NULL = all.  For differential tests. */
	const char *math, *rules; /* texts of sub_math_read and sub_families_read; NULL = reassociate, all */
	uint64_t table_bytes;	  /* 0 = 64 MiB */
	int threads;		  /* that may compile; the code is the same.  0 = 1 */
};

/* What they say to the optimiser.  False after diagnostics. */
bool compile_rewriting(const struct compile_options *, struct sub_options *, struct diags *);

/* What is computed, rewritten as the options say, and what of it is fused.  The trace may be NULL. */
bool compile_plan(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, struct sub_program *, struct sched_plan *,
		  struct sub_trace *);

/* What the program promises before any code exists: inputs, outputs, states, params, sizes.  Fills everything
 * of the image but steps, buffers, recipes, blob and code.  All in the arena, but for the model's own names.
 * `sizes` are those of the model's symbols. */
bool compile_interface(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		       const struct compile_options *, struct image *);

/* Completes the image.  The arena holds whatever the image points to; code is released by
 * image->code.release.  Notes how long each part took; NULL = nobody asks. */
bool compile_image(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		   const struct compile_options *, struct image *, struct times *);

/* Makes the code of an image that was compiled with these options before and has been read from a file. */
bool compile_load(const struct allocator *, struct diags *, const struct compile_options *, struct image *,
		  struct times *);

/* Stages in order: ra, written (sub-operators as the model has them), derivation (how rules rewrite them), subop, refactor, hoist, sched, lower, each pass, ilir (after the last pass), llvm, asm. NULL past the
 * last. */
const char *compile_stage(size_t i);
/* The text of a stage. */
bool compile_dump(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, const char *stage, struct str *);

#endif
