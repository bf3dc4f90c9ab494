/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams as text: a line for each segment and its data, and for each instruction, where fields that are zero
 * are left out. */
#include "vta/vta.h"

/* The field whose values have names. */
static const char *name_value(const struct vta_field *field, uint32_t value)
{
	if (field->member == offsetof(struct vta_insn, opcode))
		return vta_opcode_name(value);
	if (field->set == VTA_SET_MOVE && field->member == offsetof(struct vta_insn, memory))
		return vta_memory_name(value);
	if (field->set == VTA_SET_ALU && field->member == offsetof(struct vta_insn, operation))
		return vta_alu_name(value);
	return NULL;
}

static void print_field(const struct vta_insn *insn, const struct vta_field *field, struct str *out)
{
	uint32_t value = vta_field_get(insn, field);
	const char *name = name_value(field, value);
	if (name)
		str_printf(out, "%s%s", field->set == VTA_SET_ANY ? "" : " ", name);
	else if (value && field->width == 1)
		str_printf(out, " %s", field->name);
	else if (value && vta_field_is_signed(field))
		str_printf(out, " %s=%d", field->name, (int)value);
	else if (value)
		str_printf(out, " %s=%u", field->name, value);
}

void vta_print_insn(const struct vta_insn *insn, struct str *out)
{
	int sets = vta_sets_of(insn->opcode);
	for (int i = 0; i < vta_field_count; i++)
		if (vta_fields[i].set & sets)
			print_field(insn, &vta_fields[i], out);
	str_puts(out, "\n");
}

static void print_uops(const struct vta_segment *segment, struct str *out)
{
	for (uint64_t at = 0; at < segment->bytes; at += 4) {
		struct vta_uop uop = vta_decode_uop(vta_get_u32(segment->data + at));
		str_printf(out, "  %u %u %u\n", uop.dst, uop.src, uop.wgt);
	}
}

static void print_bytes(const struct vta_segment *segment, struct str *out)
{
	for (uint64_t at = 0; at < segment->bytes; at++)
		str_printf(out, "%s%02x%s", at % VTA_CELL ? "" : "  ", segment->data[at],
			   at % VTA_CELL == VTA_CELL - 1 ? "\n" : "");
}

void vta_print(const struct vta_stream *stream, struct str *out)
{
	str_printf(out, "memory %llu\n", (unsigned long long)stream->bytes);
	for (size_t i = 0; i < stream->segments; i++) {
		const struct vta_segment *segment = &stream->segment[i];
		str_printf(out, "%s %s %llu %llu\n", vta_role_name(segment->role), segment->name,
			   (unsigned long long)segment->begin, (unsigned long long)segment->bytes);
		if (segment->role == VTA_ROLE_UOPS)
			print_uops(segment, out);
		else if (segment->data)
			print_bytes(segment, out);
	}
	for (size_t i = 0; i < stream->insns; i++)
		vta_print_insn(&stream->insn[i], out);
}

void vta_print_cost(const struct vta_cost *cost, struct str *out)
{
	str_printf(out, "cycles %llu\n", (unsigned long long)cost->cycles);
	for (int i = 0; i < VTA_MODULES; i++)
		str_printf(out, "  %s busy %llu\n", vta_module_name(i), (unsigned long long)cost->busy[i]);
	str_printf(out, "gemm steps %llu\nalu steps %llu\nbytes loaded %llu\nbytes stored %llu\n",
		   (unsigned long long)cost->gemm_steps, (unsigned long long)cost->alu_steps,
		   (unsigned long long)cost->loaded, (unsigned long long)cost->stored);
}
