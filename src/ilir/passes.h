/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowering from sub-operators to loops, and the passes over loops, which passes.def lists in order. */
#ifndef ESPALIER_ILIR_PASSES_H
#define ESPALIER_ILIR_PASSES_H

#include "ilir/ilir.h"
#include "sched/sched.h"

/* How the schedule tiles the loop of a variable: into pieces of the given sizes, in falling order, each
 * size as often as it fits into the remaining iterations.  The loop inside a piece is of `kind`.  VECTOR:
 * the only size is the number of lanes, a piece is `columns` vectors side by side, and the last piece is
 * padded. */
struct ilir_tile {
	ilir_var var;
	enum ilir_loop_kind kind;
	int sizes, size[SCHED_MAX_SIZES];
	int columns;
	bool pipelined; /* the loop over pieces of the first size */
};

struct ilir_tiling {
	VEC(struct ilir_tile) tiles;
	VEC(ilir_var) pipelined; /* loops over pieces, cut by tile, whose epilogues run in the iteration after their own (pipeline.c) */
	int accumulators; /* vectors of sums that one loop may accumulate at once */
	bool align;	  /* vectors that are not aligned are put together from those that are */
	bool matrices;	  /* the machine has matrix registers for bytes and for bf16 */
	bool peel;	  /* a tiled loop of unknown trip count has remainder loops, not a test inside */
};

/* Lowers a planned and scheduled program to loops: a kernel for each folded parameter, and one `once`
 * kernel for the rest. */
void ilir_lower(struct ilir_module *, struct ilir_tiling *, const struct sched_plan *, const struct sched *);

#define ILIR_PASS(name, establishes, meaning) void ilir_##name(struct ilir_module *, struct ilir_tiling *);
#include "ilir/passes.def"
#undef ILIR_PASS

struct ilir_pass {
	const char *name;
	void (*run)(struct ilir_module *, struct ilir_tiling *);
	unsigned establishes; /* enum ilir_property */
	const char *meaning;
};
/* The i-th pass, NULL past the last. */
const struct ilir_pass *ilir_pass_at(int i);

/* --- what passes share --- */

/* The largest rank of a weight that can be packed: block, gate, columns and lanes replace one of its axes. */
enum { ILIR_PACKED_RANK = IMAGE_PACK_DIMS - 3 };

/* A copy of a block with new names for all that it defines.  Tiles of its loops are copied too, unless
 * `tiling` is NULL. */
struct ilir_stmt *ilir_clone_block(struct ilir_module *, const struct ilir_stmt *, struct ilir_tiling *);
/* A copy of a block with a variable replaced. */
struct ilir_stmt *ilir_substitute_block(struct ilir_module *, const struct ilir_stmt *, ilir_var, ilir_expr by);
const struct ilir_tile *ilir_tile_of(const struct ilir_tiling *, ilir_var);
bool ilir_is_pipelined(const struct ilir_tiling *, ilir_var);

/* Sets the padded extents of buffers to the least that covers all accesses. */
void ilir_fit_buffers(struct ilir_module *);

/* How far an index moves when a variable does by one; 0 = it does not, or not evenly. */
int64_t ilir_step_along(const struct ilir_module *, ilir_expr, ilir_var);
/* Whether an index is the variable plus what does not depend on it. */
bool ilir_moves_with(const struct ilir_module *, ilir_expr, ilir_var, const struct ilir_known *);
/* Whether a thread that has run its blocks of columns of `before` may run those of `after` at once, if they are
 * the same columns (join.c).  Buffers of the image have their places. */
bool ilir_can_join(struct ilir_module *, const struct ilir_kernel *before, const struct ilir_kernel *after,
		   const struct image *);
/* Decides which intermediates of a run share memory: sets home, first and last of their buffers.  Of all buffers it sets
 * which steps access them. */
void ilir_share_memory(const struct ilir_module *, struct image_buffer *, int buffers);
/* Fills the image's tables (buffers, recipes, kernels, steps) from an outlined or `once` module; not the
 * code. */
void ilir_describe(struct ilir_module *, struct image *);

#endif
