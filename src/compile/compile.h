/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The compile leg as one list of calls: model and sizes in, image out. */
#ifndef ESPALIER_COMPILE_COMPILE_H
#define ESPALIER_COMPILE_COMPILE_H

#include "base/times.h"
#include "compile/options.h"
#include "image/image.h"
#include "sched/sched.h"

/* What is computed, rewritten as the options say, and what of it is fused.  The trace may be NULL. */
bool compile_plan(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, struct sub_program *, struct sched_plan *,
		  struct rewrite_trace *);

/* The first half of a compilation, which the second goes on from: rewritten, fused, scheduled. */
struct compilation;

/* Fills everything of the image but steps, buffers, recipes, blob and code: what the program promises before
 * any code exists.  All is in the arena but what the compilation only refers to: model, options, `sizes` of
 * the model's symbols. NULL after diagnostics.  Notes how long each part took; times NULL = nobody asks. */
struct compilation *compile_begin(struct arena *, struct diags *, const struct ra_model *,
				  const int64_t *sizes, const struct compile_options *, struct image *,
				  struct times *);

/* Completes the image, as often as it is called, but for loading its code.  What it points to is in this
 * arena, or in the one of the first half. */
bool compile_finish(const struct compilation *, struct arena *, struct diags *, struct image *,
		    struct times *);
/* Makes code that can be called from what an image has, whoever compiled it and wherever; what is interpreted
 * can be already.  Released by image->code.release.  False after diagnostics, `target-not-here` among them;
 * times NULL = nobody asks. */
bool compile_load(const struct allocator *, struct diags *, struct image *, struct times *);
/* Whether this machine has all that the code of an image needs. */
bool compile_can_load(const struct image *, struct diags *);
/* Whether code that is compiled with these options will run on this machine. */
bool compile_runs_here(const struct compile_options *, struct diags *);

/* Both halves, and loading. */
bool compile_image(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		   const struct compile_options *, struct image *, struct times *);

/* Stages in order: ra, written (sub-operators as the model has them), derivation (how rules rewrite them),
 * each pass over programs, subop (after the last of them that no schedule steers), sched, choices, lower,
 * each pass over loops, ilir (after the last), the IR of each back end, asm.  NULL past the last. */
const char *compile_stage(size_t i);
/* The text of a stage. */
bool compile_dump(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, const char *stage, struct str *);

#endif
