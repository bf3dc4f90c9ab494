/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the pass that sinks tile loops: which loops sink, and with which of them values
 * differ (sink_masks.c), the pass (sink.c), and epilogues that loop over rows (sink_rows.c). */
#ifndef ESPALIER_ILIR_SINK_H
#define ESPALIER_ILIR_SINK_H

#include "ilir/passes.h"

enum { MAX_SUNK = 16 };

struct sunk {
	const struct ilir_stmt *loop;
	int dim;
};

/* The state for one loop nest after the other.  Tables cover the module; each nest clears its entries
 * after use. */
struct sink {
	struct ilir_module *m;
	const struct ilir_tiling *tiling;
	VEC(struct sunk) loops;	      /* those that sink; a mask has a bit for each */
	VEC(uint64_t) var_mask;	      /* by variable: the loops that its value differs with */
	VEC(uint64_t) buffer_mask;    /* by register: likewise */
	VEC(ilir_buffer) as_register; /* by variable: the register that replaces a let's variable */
	VEC(ilir_var) masked_vars;    /* those with a mask that is not 0 */
	VEC(ilir_buffer) masked_buffers;
	bool changed;	 /* a mask has grown */
	bool mixed;	 /* loops of the block keep sums in memory: they accumulate different ones, or tiles are pipelined */
	bool pipelined;	 /* it is inside a loop over tiles that is pipelined */
	bool within;	 /* the block is in a loop that accumulates sums */
	uint64_t active; /* sinking loops around the current statement, but for those put back around it */
};

/* Finds the loops of a nest that sink, and the masks of its variables and registers. */
void sink_find_masks(struct sink *, const struct ilir_stmt *nest);
void sink_clear_masks(struct sink *);
/* The loops that an expression, or what a store writes and where, differs with. */
uint64_t sink_mask_of(const struct sink *, ilir_expr);
uint64_t sink_store_mask(const struct sink *, const struct ilir_stmt *);
/* Adds loops to the mask of a register. */
void sink_mask_buffer(struct sink *, ilir_buffer, uint64_t bits);
/* The bit of a loop that sinks, else 0. */
uint64_t sink_bit_of(const struct sink *, const struct ilir_stmt *loop);
/* Whether a statement is a tile loop with independent iterations. */
bool sink_can_move(const struct ilir_module *, const struct ilir_stmt *);
bool sink_is_register(const struct ilir_module *, ilir_buffer);

/* Sinks the active loops into each statement of a block. */
struct ilir_stmt *sink_block(struct sink *, const struct ilir_stmt *);
/* Puts copies of the active loops of a mask around a block. */
struct ilir_stmt *sink_wrap_in_loops(struct sink *, struct ilir_stmt *, uint64_t mask);

/* The bit of the active loop over the rows of a tile; 0 = there is none, or several. */
uint64_t sink_row_bit(const struct sink *);
/* Whether a block, the last statements of a tile, can be one loop over its rows. */
bool sink_can_loop_rows(const struct sink *, const struct ilir_stmt *epilogue, uint64_t row);
/* Makes it one. */
struct ilir_stmt *sink_rows(struct sink *, const struct ilir_stmt *epilogue, uint64_t row);

#endif
