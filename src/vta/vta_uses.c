/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which entries a loop of micro-ops uses.
 *
 * A step uses field + i * factor_out + j * factor_in for a micro-op and i, j below the numbers of iterations.
 * The set of all of these is the set of fields, shifted by each multiple of the one factor, and then of the
 * other; so it is found in time that the size of the memory bounds, though a loop may have 2^41 steps. */
#include "vta/vta_verify.h"

static bool add_entry(struct vta_set *set, uint32_t entry, uint32_t entries)
{
	if (entry >= entries)
		return false;
	set->bits[entry / 64] |= (uint64_t)1 << entry % 64;
	return true;
}

/* Adds the members of a set, each `by` further; false when one leaves the memory. */
static bool add_shifted(struct vta_set *to, const struct vta_set *from, uint32_t by, uint32_t entries)
{
	for (uint32_t i = 0; i < VTA_ENTRIES / 64; i++)
		for (uint64_t rest = from->bits[i]; rest; rest &= rest - 1)
			if (!add_entry(to, i * 64 + (uint32_t)__builtin_ctzll(rest) + by, entries))
				return false;
	return true;
}

/* Doubles the iterations that the set covers until it covers all; without a factor all iterations use the
 * same. */
static bool repeat_set(struct vta_set *set, uint32_t iterations, uint32_t factor, uint32_t entries)
{
	for (uint32_t covered = 1; factor && covered < iterations;) {
		uint32_t more = iterations - covered < covered ? iterations - covered : covered;
		struct vta_set before = *set;
		if (!add_shifted(set, &before, more * factor, entries))
			return false;
		covered += more;
	}
	return true;
}

static bool spread_uses(struct vta_set *set, const struct vta_insn *insn, uint32_t out, uint32_t in,
			enum vta_memory memory)
{
	uint32_t entries = vta_memory_traits(memory).entries;
	return repeat_set(set, insn->iter_in, in, entries) && repeat_set(set, insn->iter_out, out, entries);
}

static bool add_fields(const struct vta_insn *insn, const uint32_t *uops, struct vta_uses *uses)
{
	bool gemm = insn->opcode == VTA_GEMM;
	uint32_t sources = vta_memory_traits(gemm ? VTA_MEMORY_INPUT : VTA_MEMORY_ACCUMULATOR).entries;
	for (uint32_t i = insn->uop_begin; i < insn->uop_end; i++) {
		struct vta_uop uop = vta_decode_uop(uops[i]);
		if (!add_entry(&uses->dst, uop.dst, vta_memory_traits(VTA_MEMORY_ACCUMULATOR).entries) ||
		    !add_entry(&uses->src, uop.src, sources) ||
		    (gemm && !add_entry(&uses->wgt, uop.wgt, vta_memory_traits(VTA_MEMORY_WEIGHT).entries)))
			return false;
	}
	return true;
}

bool vta_find_uses(const struct vta_insn *insn, const uint32_t *uops, struct vta_uses *uses)
{
	bool gemm = insn->opcode == VTA_GEMM;
	enum vta_memory source = gemm ? VTA_MEMORY_INPUT : VTA_MEMORY_ACCUMULATOR;
	*uses = (struct vta_uses){0};
	return add_fields(insn, uops, uses) &&
	       spread_uses(&uses->dst, insn, insn->dst_factor_out, insn->dst_factor_in,
			   VTA_MEMORY_ACCUMULATOR) &&
	       spread_uses(&uses->src, insn, insn->src_factor_out, insn->src_factor_in, source) &&
	       (!gemm ||
		spread_uses(&uses->wgt, insn, insn->wgt_factor_out, insn->wgt_factor_in, VTA_MEMORY_WEIGHT));
}
