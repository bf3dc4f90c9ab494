/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is done with sums before they are stored: the bias is added, and they are divided by a power of two,
 * by operations that the accelerator has.
 *
 * With k places, and t a copy of the sums that is -1 where one must be taken away from half of the last
 * place, else 0:
 *
 *     half up         (x + half) >> k
 *     half to even    (x + half + t) >> k        t = -1 where bit k of x is 0
 *     twice           y = (x + 1) >> 1, then (y + half + t) >> (k - 1)        t = -1 where y is below zero
 *
 * (x + half - 1 + bit k) >> k is x / 2^k to the nearest, halves to even: of two integers that are as near the
 * upper one is taken where the lower one, which is x >> k, is odd. */
#include "vta/vta_parts.h"

/* Loads constants of an operation, entries that follow each other. */
void vta_load_constants(struct vta_generator *g, enum vta_memory memory, uint64_t place, int64_t n,
			uint32_t sram)
{
	struct vta_insn insn = {.opcode = VTA_LOAD};
	insn.memory = memory;
	insn.sram_base = sram;
	insn.dram_base = (uint32_t)(place / vta_memory_traits(memory).bytes);
	insn.y_size = 1;
	insn.x_size = insn.x_stride = (uint32_t)n;
	vta_emit(g->emitter, insn);
}

struct vta_insn *vta_emit_loop(struct vta_generator *g, struct vta_insn insn, uint32_t uops)
{
	insn.uop_begin = vta_place_uops(g->emitter, g->uop, uops);
	insn.uop_end = insn.uop_begin + uops;
	return vta_emit(g->emitter, insn);
}

struct vta_insn vta_over_sums(enum vta_opcode opcode, const struct vta_part *p)
{
	struct vta_insn insn = {.opcode = opcode};
	insn.iter_out = (uint32_t)(p->blocks * vta_count_places(p));
	insn.iter_in = 1;
	insn.dst_factor_out = 1;
	return insn;
}

struct vta_insn *vta_emit_immediate(struct vta_generator *g, const struct vta_part *p, uint32_t at,
				    enum vta_alu operation, int imm)
{
	struct vta_insn insn = vta_over_sums(VTA_ALU, p);
	insn.operation = operation;
	insn.use_imm = 1;
	insn.imm = (uint32_t)imm;
	g->uop[0] = (struct vta_uop){at, at, 0};
	return vta_emit_loop(g, insn, 1);
}

void vta_clear_entries(struct vta_generator *g, const struct vta_part *p, uint32_t at, bool pop_next)
{
	struct vta_insn insn = vta_over_sums(VTA_GEMM, p);
	insn.reset = 1;
	insn.pop_next = pop_next;
	g->uop[0] = (struct vta_uop){at, 0, 0};
	vta_emit_loop(g, insn, 1);
}

/* Adds entries from `from` on, or always the first of them, to those from `to` on, as many as the tile has
 * sums. */
static void add_entries(struct vta_generator *g, const struct vta_part *p, uint32_t to, uint32_t from,
			bool always)
{
	struct vta_insn insn = vta_over_sums(VTA_ALU, p);
	insn.operation = VTA_ALU_ADD;
	insn.src_factor_out = !always;
	g->uop[0] = (struct vta_uop){to, from, 0};
	vta_emit_loop(g, insn, 1);
}

void vta_add_bias(struct vta_generator *g, const struct vta_part *p)
{
	vta_load_constants(g, VTA_MEMORY_ACCUMULATOR, g->place.bias + (uint64_t)p->block * VTA_BLOCK * 4,
			   p->blocks, p->bias);
	for (int64_t i = 0; i < p->blocks; i++)
		g->uop[i] =
		    (struct vta_uop){p->sums + (uint32_t)(i * vta_count_places(p)), p->bias + (uint32_t)i, 0};
	struct vta_insn insn = {.opcode = VTA_ALU};
	insn.operation = VTA_ALU_ADD;
	insn.iter_out = (uint32_t)vta_count_places(p);
	insn.iter_in = 1;
	insn.dst_factor_out = 1;
	vta_emit_loop(g, insn, (uint32_t)p->blocks);
}

/* An instruction shifts by at most 15 places to the right, and 16 to the left. */
static void shift_right(struct vta_generator *g, const struct vta_part *p, int places)
{
	for (; places > 0; places -= 15)
		vta_emit_immediate(g, p, p->sums, VTA_ALU_SHR, places < 15 ? places : 15);
}

static void shift_copies_left(struct vta_generator *g, const struct vta_part *p, int places)
{
	for (; places > 0; places -= 16)
		vta_emit_immediate(g, p, p->copies, VTA_ALU_SHR, places < 16 ? -places : -16);
}

/* Of the copies, -1 where one is below zero, else 0. */
static void take_signs(struct vta_generator *g, const struct vta_part *p)
{
	vta_emit_immediate(g, p, p->copies, VTA_ALU_MIN, 0);
	vta_emit_immediate(g, p, p->copies, VTA_ALU_MAX, -1);
}

/* Makes t of the copies: of a sum itself, or of its bit behind the shift, which an addition inverts and a
 * shift makes the sign. */
static void make_corrections(struct vta_generator *g, const struct vta_part *p)
{
	vta_clear_entries(g, p, p->copies, false);
	add_entries(g, p, p->copies, p->sums, false);
	if (g->op->rounding == VTA_HALF_EVEN) {
		add_entries(g, p, p->copies, p->rounding + 1, true);
		shift_copies_left(g, p, 31 - g->op->shift);
	}
	take_signs(g, p);
	add_entries(g, p, p->sums, p->copies, false);
}

void vta_round_sums(struct vta_generator *g, const struct vta_part *p)
{
	bool twice = g->op->shift && g->op->rounding == VTA_HALF_TWICE;
	if (twice) {
		vta_emit_immediate(g, p, p->sums, VTA_ALU_ADD, 1);
		shift_right(g, p, 1);
	}
	if (vta_adds_half(g->op))
		vta_load_constants(g, VTA_MEMORY_ACCUMULATOR, g->place.rounding, VTA_ROUNDING_ENTRIES,
				   p->rounding);
	if (vta_copies_sums(g->op))
		make_corrections(g, p);
	if (vta_adds_half(g->op))
		add_entries(g, p, p->sums, p->rounding, true);
	shift_right(g, p, g->op->shift - twice);
}
