/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The generator at work: the operation and the tile at hand, and instructions over all sums of a tile. */
#ifndef ESPALIER_VTA_VTA_PARTS_H
#define ESPALIER_VTA_VTA_PARTS_H

#include "vta/vta_layout.h"

struct vta_generator {
	const struct vta_operation *op;
	struct vta_places place;
	struct vta_tile tile;
	struct vta_emitter *emitter;
	struct vta_uop *uop; /* room for those of one instruction */
	int64_t steps, step; /* of the operation: how many there are, and how many there were */
	int64_t tiles, tile_number;
};

/* A tile at hand: what of the outputs it has.  The last ones of an axis may be smaller. */
struct vta_part {
	int64_t image, block, blocks; /* of outputs */
	int64_t first_input;	      /* block of the inputs of its group */
	int64_t begin[2], size[2];
	uint32_t sums, copies, bias, rounding; /* entries of accumulators where they begin */
	uint32_t weights;		       /* entry where they begin, when they stay */
	bool loads_weights;
};

static inline int64_t vta_count_places(const struct vta_part *p)
{
	return p->size[0] * p->size[1];
}

/* Appends a loop with the first micro-ops of g->uop. */
struct vta_insn *vta_emit_loop(struct vta_generator *, struct vta_insn, uint32_t uops);
/* A loop over all sums of a tile, or over their copies. */
struct vta_insn vta_over_sums(enum vta_opcode, const struct vta_part *);
/* An operation on each of the entries that begin at `at`, as many as the tile has sums. */
struct vta_insn *vta_emit_immediate(struct vta_generator *, const struct vta_part *, uint32_t at,
				    enum vta_alu, int imm);
/* Makes as many entries zero; `pop_next`: when stores have ended. */
void vta_clear_entries(struct vta_generator *, const struct vta_part *, uint32_t at, bool pop_next);
/* Loads constants of an operation, entries that follow each other. */
void vta_load_constants(struct vta_generator *, enum vta_memory, uint64_t place, int64_t n, uint32_t sram);
void vta_add_bias(struct vta_generator *, const struct vta_part *);
/* Divides the sums by 2^shift. */
void vta_round_sums(struct vta_generator *, const struct vta_part *);

#endif
