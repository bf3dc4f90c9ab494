/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The compile leg as one list of calls: model and sizes in, image out. */
#ifndef ESPALIER_COMPILE_COMPILE_H
#define ESPALIER_COMPILE_COMPILE_H

#include "base/times.h"
#include "compile/options.h"
#include "image/image.h"
#include "image/perf.h"
#include "sched/sched.h"

/* Lowers and rewrites the model by the options, and makes the plan.  False after diagnostics.  The trace may
 * be NULL. */
bool compile_plan(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, struct sub_program *, struct sched_plan *,
		  struct rewrite_trace *);

/* Lowers and rewrites the model by the options up to where products are found, to be observed or quantised.  False after
 * diagnostics. */
bool compile_to_products(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		      const struct compile_options *, struct sub_program *);

/* Whether products of such a program can be computed as the model declares, in integers, f16 or bf16; false after
 * `products-refused`. */
bool compile_check_declared(struct arena *, struct diags *, const struct ra_model *, const struct sub_program *,
			    const struct rewrite_options *);

/* A compilation after its first half: the program is rewritten, fused and scheduled. */
struct compilation;

/* The first half.  Fills the image but for steps, buffers, recipes, blob and code.  The result is in the
 * arena and refers to the model, the options and `sizes`, those of the model's symbols.  NULL after
 * diagnostics.  Adds the seconds of each step to `times`, unless that is NULL. */
struct compilation *compile_begin(struct arena *, struct diags *, const struct ra_model *,
				  const int64_t *sizes, const struct compile_options *, struct image *,
				  struct times *);

/* The second half, which can be repeated: completes the image, but does not load its code.  The image points
 * into this arena, and into that of the first half. */
bool compile_finish(const struct compilation *, struct arena *, struct diags *, struct image *,
		    struct times *);
/* Loads the code of an image, which may have been compiled elsewhere; code that is interpreted, or compiled when it is
 * needed, needs no loading.
 * image->code.release frees it.  False after diagnostics, such as `target-not-here`.  `times` may be NULL. */
bool compile_load(const struct allocator *, struct diags *, struct image *, struct times *);
/* --- code that is compiled when it is needed: images whose code has a `call` and `kernels` ---
 *
 * One caller at a time, but for compile_has_code and calls of the code. */

static inline bool compile_is_late(const struct image *image)
{
	return image->code.kernels && image->code.call;
}
/* Whether there is all that calls of kernels with so many rows need; NULL = all that there can be. */
bool compile_has_code(const struct image *, const int64_t *rows);
bool compile_has_any_code(const struct image *);
/* Compiles that.  False after the diagnostics of all that failed; what did not fail is there. */
bool compile_need_code(struct arena *, struct diags *, struct image *, const int64_t *rows, struct times *);
/* The functions that compile_need_code compiled last, in the arena; returns how many. */
int compile_list_code(struct arena *, const struct image *, struct image_function **);
/* Links the objects of all kernels, which are there, to the image's blob. */
bool compile_link_code(struct arena *, struct diags *, struct image *);

/* Whether this machine has all that the code of an image needs. */
bool compile_can_load(const struct image *, struct diags *);
/* Whether code that is compiled with these options will run on this machine. */
bool compile_runs_here(const struct compile_options *, struct diags *);

/* Runs both halves, and loads the code. */
bool compile_image(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		   const struct compile_options *, struct image *, struct times *);

/* The finished loops of an interpreted image, which live as long as its code; NULL = it is compiled. */
const struct ilir_module *compile_loops_of(const struct image *);

/* Stages in order: ra, written (sub-operators as the model has them), derivation (how rules rewrite them),
 * each pass over programs, subop (after the last of them that no schedule steers), sched, choices, lower,
 * each pass over loops, ilir (after the last), the IR of each back end, asm.  NULL past the last. */
const char *compile_stage(size_t i);
/* Appends the text of a stage.  False after diagnostics. */
bool compile_dump(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		  const struct compile_options *, const char *stage, struct str *);

#endif
