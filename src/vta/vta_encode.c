/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Instructions and micro-ops as bits, by the tables of vta_isa.def. */
#include "vta/vta.h"

const struct vta_field vta_fields[] = {
#define ROW(set, name, offset, width) {#name, set, offset, width, offsetof(struct vta_insn, name)},
#define VTA_FIELD_ANY(name, offset, width) ROW(VTA_SET_ANY, name, offset, width)
#define VTA_FIELD_MOVE(name, offset, width) ROW(VTA_SET_MOVE, name, offset, width)
#define VTA_FIELD_LOOP(name, offset, width) ROW(VTA_SET_LOOP, name, offset, width)
#define VTA_FIELD_GEMM(name, offset, width) ROW(VTA_SET_GEMM, name, offset, width)
#define VTA_FIELD_ALU(name, offset, width) ROW(VTA_SET_ALU, name, offset, width)
#include "vta/vta_isa.def"
#undef ROW
};
const int vta_field_count = sizeof vta_fields / sizeof *vta_fields;

int vta_sets_of(uint32_t opcode)
{
	switch (opcode) {
#define VTA_OPCODE(NAME, spelling, code, fields)                                                             \
	case code:                                                                                           \
		return VTA_SET_ANY | (fields);
#include "vta/vta_isa.def"
	default:
		return 0;
	}
}

uint32_t vta_field_get(const struct vta_insn *insn, const struct vta_field *field)
{
	return *(const uint32_t *)((const char *)insn + field->member);
}

void vta_field_set(struct vta_insn *insn, const struct vta_field *field, uint32_t value)
{
	*(uint32_t *)((char *)insn + field->member) = value;
}

bool vta_field_is_signed(const struct vta_field *field)
{
	return field->member == offsetof(struct vta_insn, imm) && field->set == VTA_SET_ALU;
}

bool vta_field_fits(const struct vta_field *field, uint32_t value)
{
	if (vta_field_is_signed(field))
		return (int32_t)value >= INT16_MIN && (int32_t)value <= INT16_MAX;
	return value <= (uint32_t)(((uint64_t)1 << field->width) - 1);
}

static uint64_t mask_of(const struct vta_field *field)
{
	return (((uint64_t)1 << field->width) - 1) << field->offset % 64;
}

/* No field crosses the middle of an instruction. */
void vta_encode(const struct vta_insn *insn, uint8_t bytes[VTA_INSN_BYTES])
{
	uint64_t half[2] = {0};
	int sets = vta_sets_of(insn->opcode);
	for (int i = 0; i < vta_field_count; i++) {
		const struct vta_field *field = &vta_fields[i];
		if (field->set & sets)
			half[field->offset / 64] |=
			    (uint64_t)vta_field_get(insn, field) << field->offset % 64 & mask_of(field);
	}
	for (int i = 0; i < VTA_INSN_BYTES; i++)
		bytes[i] = (uint8_t)(half[i / 8] >> i % 8 * 8);
}

static uint32_t take_field(const struct vta_field *field, const uint64_t half[2])
{
	uint32_t value = (uint32_t)((half[field->offset / 64] & mask_of(field)) >> field->offset % 64);
	return vta_field_is_signed(field) ? (uint32_t)(int32_t)(int16_t)value : value;
}

bool vta_decode(const uint8_t bytes[VTA_INSN_BYTES], struct vta_insn *insn)
{
	uint64_t half[2] = {0}, used[2] = {0};
	for (int i = 0; i < VTA_INSN_BYTES; i++)
		half[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
	*insn = (struct vta_insn){.opcode = (uint32_t)(half[0] & 7)};
	int sets = vta_sets_of(insn->opcode);
	for (int i = 0; i < vta_field_count; i++) {
		const struct vta_field *field = &vta_fields[i];
		if (!(field->set & sets))
			continue;
		vta_field_set(insn, field, take_field(field, half));
		used[field->offset / 64] |= mask_of(field);
	}
	return sets && !(half[0] & ~used[0]) && !(half[1] & ~used[1]);
}

uint32_t vta_encode_uop(struct vta_uop uop)
{
	uint32_t bits = 0;
#define VTA_UOP_FIELD(name, offset, width) bits |= (uop.name & ((1u << (width)) - 1)) << (offset);
#include "vta/vta_isa.def"
	return bits;
}

struct vta_uop vta_decode_uop(uint32_t bits)
{
	struct vta_uop uop;
#define VTA_UOP_FIELD(name, offset, width) uop.name = bits >> (offset) & ((1u << (width)) - 1);
#include "vta/vta_isa.def"
	return uop;
}

uint32_t vta_get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void vta_put_u32(uint8_t *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

const char *vta_opcode_name(uint32_t code)
{
	switch (code) {
#define VTA_OPCODE(NAME, spelling, number, fields)                                                           \
	case number:                                                                                         \
		return spelling;
#include "vta/vta_isa.def"
	default:
		return NULL;
	}
}

const char *vta_memory_name(uint32_t code)
{
	switch (code) {
#define VTA_MEMORY(NAME, spelling, number, bytes, entries, padded)                                           \
	case number:                                                                                         \
		return spelling;
#include "vta/vta_isa.def"
	default:
		return NULL;
	}
}

const char *vta_alu_name(uint32_t code)
{
	switch (code) {
#define VTA_ALU(NAME, spelling, number)                                                                      \
	case number:                                                                                         \
		return spelling;
#include "vta/vta_isa.def"
	default:
		return NULL;
	}
}

const char *vta_role_name(uint32_t role)
{
	static const char *const name[VTA_ROLES] = {"uops", "constant", "input", "output", "scratch"};
	return role < VTA_ROLES ? name[role] : NULL;
}

const char *vta_module_name(enum vta_module module)
{
	static const char *const name[VTA_MODULES] = {"load", "compute", "store"};
	return name[module];
}

struct vta_memory_traits vta_memory_traits(enum vta_memory memory)
{
	static const struct vta_memory_traits traits[VTA_MEMORIES] = {
#define VTA_MEMORY(NAME, spelling, code, bytes, entries, padded) [code] = {bytes, entries, padded},
#include "vta/vta_isa.def"
	};
	return traits[memory];
}

enum vta_module vta_module_of(const struct vta_insn *insn)
{
	if (insn->opcode == VTA_STORE)
		return VTA_MODULE_STORE;
	bool fills = insn->memory == VTA_MEMORY_INPUT || insn->memory == VTA_MEMORY_WEIGHT;
	return insn->opcode == VTA_LOAD && fills ? VTA_MODULE_LOAD : VTA_MODULE_COMPUTE;
}
