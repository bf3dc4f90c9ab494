/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verifier share. */
#ifndef ESPALIER_VTA_VTA_VERIFY_H
#define ESPALIER_VTA_VTA_VERIFY_H

#include "vta/vta.h"

/* Adds a diagnostic about an instruction; always false. */
bool vta_refuse(struct diags *, enum diag_id, uint32_t insn, const char *hint, const char *what);

/* Rules of single instructions.  False after `vta-instruction`. */
bool vta_check_insns(struct diags *, const struct vta_stream *);

/* The largest number of entries of a memory that loops go over. */
enum { VTA_ENTRIES = 2048 };

/* A set of entries of a memory. */
struct vta_set {
	uint64_t bits[VTA_ENTRIES / 64];
};

static inline bool vta_set_has(const struct vta_set *set, uint32_t entry)
{
	return set->bits[entry / 64] >> entry % 64 & 1;
}

/* Which entries a loop uses in each role of its micro-ops. */
struct vta_uses {
	struct vta_set dst, src, wgt;
};

/* Finds them without going through the steps of the loop.  False when one would lie outside of its memory;
 * `uop` has the memory of micro-ops. */
bool vta_find_uses(const struct vta_insn *, const uint32_t *uop, struct vta_uses *);

#endif
