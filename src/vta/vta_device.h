/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The memories of the accelerator, and what each of its instructions does to them, bit for bit.  Accumulators wrap around, shifts
 * take the low five bits of their operand as a signed number, and the output memory has the low eight bits of what was computed last.
 *
 * For the executor alone, and for that of programs that are written as C, in which this is a text (csource/). */
#ifndef ESPALIER_VTA_VTA_DEVICE_H
#define ESPALIER_VTA_VTA_DEVICE_H

#include "vta/vta.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct vta_device {
	_Alignas(max_align_t) uint32_t uop[8192];
	int8_t input[2048][VTA_BLOCK];
	int8_t weight[1024][VTA_BLOCK][VTA_BLOCK];
	int32_t accumulator[2048][VTA_BLOCK];
	int8_t output[2048][VTA_BLOCK];
};

/* --- loads and stores --- */

/* Memories hold numbers as the host does, which may have another order of bytes than the stream. */
static void fill_entries(struct vta_device *d, enum vta_memory memory, uint32_t entry, const uint8_t *from,
			 size_t entries)
{
	switch (memory) {
	case VTA_MEMORY_INPUT:
		memcpy(d->input[entry], from, entries * sizeof d->input[0]);
		return;
	case VTA_MEMORY_WEIGHT:
		memcpy(d->weight[entry], from, entries * sizeof d->weight[0]);
		return;
	case VTA_MEMORY_UOP:
		for (size_t i = 0; i < entries; i++)
			d->uop[entry + i] = vta_get_u32(from + 4 * i);
		return;
	default:
		for (size_t i = 0; i < entries * VTA_BLOCK; i++)
			d->accumulator[entry + i / VTA_BLOCK][i % VTA_BLOCK] =
			    (int32_t)vta_get_u32(from + 4 * i);
	}
}

/* Inputs and accumulators alone can be padded. */
static void clear_entries(struct vta_device *d, enum vta_memory memory, uint32_t entry, size_t entries)
{
	if (memory == VTA_MEMORY_INPUT)
		memset(d->input[entry], 0, entries * sizeof d->input[0]);
	else if (entries)
		memset(d->accumulator[entry], 0, entries * sizeof d->accumulator[0]);
}

static void load_entries(struct vta_device *d, const struct vta_insn *insn, const uint8_t *memory)
{
	uint32_t at = insn->sram_base, width = insn->x_pad_0 + insn->x_size + insn->x_pad_1;
	size_t bytes = vta_memory_traits(insn->memory).bytes;
	if (!insn->x_size)
		return;
	clear_entries(d, insn->memory, at, (size_t)width * insn->y_pad_0);
	at += width * insn->y_pad_0;
	for (uint32_t y = 0; y < insn->y_size; y++) {
		const uint8_t *row = memory + (insn->dram_base + (size_t)y * insn->x_stride) * bytes;
		clear_entries(d, insn->memory, at, insn->x_pad_0);
		fill_entries(d, insn->memory, at + insn->x_pad_0, row, insn->x_size);
		clear_entries(d, insn->memory, at + insn->x_pad_0 + insn->x_size, insn->x_pad_1);
		at += width;
	}
	clear_entries(d, insn->memory, at, (size_t)width * insn->y_pad_1);
}

static void store_entries(const struct vta_device *d, const struct vta_insn *insn, uint8_t *memory)
{
	for (uint32_t y = 0; y < insn->y_size && insn->x_size; y++)
		memcpy(memory + (insn->dram_base + (size_t)y * insn->x_stride) * VTA_BLOCK,
		       d->output[insn->sram_base + y * insn->x_size], (size_t)insn->x_size * VTA_BLOCK);
}

/* --- loops --- */

/* A step of a GEMM: one vector times one block, whose rows are outputs. */
static void multiply_block(struct vta_device *d, uint32_t dst, uint32_t src, uint32_t wgt)
{
	for (int row = 0; row < VTA_BLOCK; row++) {
		int32_t sum = 0;
		for (int k = 0; k < VTA_BLOCK; k++)
			sum += d->input[src][k] * d->weight[wgt][row][k];
		d->accumulator[dst][row] = (int32_t)((uint32_t)d->accumulator[dst][row] + (uint32_t)sum);
	}
}

static int32_t shift_right(int32_t x, int32_t by)
{
	int32_t places = (by & 31) - (by & 16 ? 32 : 0);
	return places >= 0 ? x >> places : (int32_t)((uint32_t)x << -places);
}

static int32_t apply_operation(enum vta_alu operation, int32_t x, int32_t y)
{
	switch (operation) {
	case VTA_ALU_MIN:
		return x < y ? x : y;
	case VTA_ALU_MAX:
		return x < y ? y : x;
	case VTA_ALU_ADD:
		return (int32_t)((uint32_t)x + (uint32_t)y);
	default:
		return shift_right(x, y);
	}
}

static void operate_on_entry(struct vta_device *d, const struct vta_insn *insn, uint32_t dst, uint32_t src)
{
	for (int i = 0; i < VTA_BLOCK; i++) {
		int32_t y = insn->use_imm ? (int32_t)insn->imm : d->accumulator[src][i];
		d->accumulator[dst][i] = apply_operation(insn->operation, d->accumulator[dst][i], y);
	}
}

static void run_step(struct vta_device *d, const struct vta_insn *insn, struct vta_uop at)
{
	if (insn->opcode == VTA_ALU)
		operate_on_entry(d, insn, at.dst, at.src);
	else if (insn->reset)
		memset(d->accumulator[at.dst], 0, sizeof d->accumulator[0]);
	else
		multiply_block(d, at.dst, at.src, at.wgt);
	for (int i = 0; i < VTA_BLOCK; i++)
		d->output[at.dst][i] = (int8_t)(uint8_t)d->accumulator[at.dst][i];
}

static void run_uops(struct vta_device *d, const struct vta_insn *insn, struct vta_uop offset)
{
	for (uint32_t i = insn->uop_begin; i < insn->uop_end; i++) {
		struct vta_uop uop = vta_decode_uop(d->uop[i]);
		run_step(d, insn,
			 (struct vta_uop){uop.dst + offset.dst, uop.src + offset.src, uop.wgt + offset.wgt});
	}
}

static void run_loop(struct vta_device *d, const struct vta_insn *insn)
{
	bool gemm = insn->opcode == VTA_GEMM;
	uint32_t wgt_out = gemm ? insn->wgt_factor_out : 0, wgt_in = gemm ? insn->wgt_factor_in : 0;
	for (uint32_t i = 0; i < insn->iter_out; i++)
		for (uint32_t j = 0; j < insn->iter_in; j++)
			run_uops(d, insn,
				 (struct vta_uop){i * insn->dst_factor_out + j * insn->dst_factor_in,
						  i * insn->src_factor_out + j * insn->src_factor_in,
						  i * wgt_out + j * wgt_in});
}

static void run_insn(struct vta_device *d, const struct vta_insn *insn, uint8_t *memory)
{
	if (insn->opcode == VTA_LOAD)
		load_entries(d, insn, memory);
	else if (insn->opcode == VTA_STORE)
		store_entries(d, insn, memory);
	else if (insn->opcode != VTA_FINISH)
		run_loop(d, insn);
}

#endif
