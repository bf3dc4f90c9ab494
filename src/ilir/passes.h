/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From sub-operators to loops, and the passes over the loops.  The list of passes in order is passes.def. */
#ifndef ESPALIER_ILIR_PASSES_H
#define ESPALIER_ILIR_PASSES_H

#include "ilir/ilir.h"
#include "sched/sched.h"

/* What the schedule asks of one loop, named by its variable: it is cut into pieces of these sizes, falling, each size
 * taking what is left as long as it fits; the loop inside a piece is of `kind`.  VECTOR: one size, the lanes; the last
 * piece is padded; `columns` vectors lie side by side in a piece. */
struct ilir_tile {
	ilir_var var;
	enum ilir_loop_kind kind;
	int sizes, size[SCHED_MAX_SIZES];
	int columns;
};

struct ilir_tiling {
	VEC(struct ilir_tile) tiles;
	int accumulators; /* vectors of sums that one loop may keep */
	bool peel;	  /* loops whose ends are not known have loops for what is left over, not tests inside */
};

/* Lowers a planned and scheduled program to loops: kernels at binding, and over batches one kernel, `once`.
 */
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

/* Axes that a weight may have to be packed: block, gate, columns and lanes take the place of one. */
enum { ILIR_PACKED_RANK = IMAGE_PACK_DIMS - 3 };

/* A copy of a block in which everything that is defined has a new name; tiles of its loops are copied as well.  `tiling`
 * may be NULL. */
struct ilir_stmt *ilir_clone_block(struct ilir_module *, const struct ilir_stmt *, struct ilir_tiling *);
/* A block with a variable replaced. */
struct ilir_stmt *ilir_substitute_block(struct ilir_module *, const struct ilir_stmt *, ilir_var, ilir_expr by);
const struct ilir_tile *ilir_tile_of(const struct ilir_tiling *, ilir_var);
/* A constant index, or false. */
bool ilir_constant(const struct ilir_module *, ilir_expr, int64_t *value);

/* Sets the padded extents of buffers to what is accessed. */
void ilir_fit_buffers(struct ilir_module *);

/* The places of the intermediates that runs see: homes, and when they are needed. */
void ilir_share(const struct ilir_module *, struct image_buffer *, int buffers);
/* Buffers, recipes, kernels and steps of an outlined or `once` module, for the image; not the code. */
void ilir_describe(struct ilir_module *, struct image *);

#endif
