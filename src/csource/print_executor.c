/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The executor of the accelerator as a file of C: the machine of vta_isa.def, what vta/vta_device.h says of each instruction, and
 * an order in which the modules run theirs. */
#include "csource/writer.h"

/* vta/vta_device.h and run_modules.txt as texts, `device_source` and `modules_source`. */
#include "csource/device_text.inc"
#include "csource/modules_text.inc"

/* --- the machine --- */

static void print_enums(struct csource_writer *w)
{
	csource_line(w, "\nenum { VTA_BLOCK = %d };\n\nenum vta_opcode {", VTA_BLOCK);
#define VTA_OPCODE(NAME, spelling, code, fields) csource_line(w, "\tVTA_" #NAME " = %d,", code);
#include "vta/vta_isa.def"
	csource_line(w, "};\n\nenum vta_memory {");
#define VTA_MEMORY(NAME, spelling, code, bytes, entries, padded) csource_line(w, "\tVTA_MEMORY_" #NAME " = %d,", code);
#include "vta/vta_isa.def"
	csource_line(w, "};\n\nenum vta_alu {");
#define VTA_ALU(NAME, spelling, code) csource_line(w, "\tVTA_ALU_" #NAME " = %d,", code);
#include "vta/vta_isa.def"
	csource_line(w, "};");
}

static void print_structs(struct csource_writer *w)
{
	csource_line(w, "\n/* An instruction; of the fields those of its opcode count. */\nstruct vta_insn {");
	for (int i = 0; i < vta_field_count; i++)
		csource_line(w, "\tuint32_t %s;", vta_fields[i].name);
	csource_line(w, "};\n\nstruct vta_uop {");
#define VTA_UOP_FIELD(name, offset, width) csource_line(w, "\tuint32_t " #name ";");
#include "vta/vta_isa.def"
	csource_line(w, "};\n\nstruct vta_memory_traits {\n\tuint32_t bytes; /* of an entry */\n};");
}

/* --- bits --- */

static const char take_bits[] = "\n"
				"/* No field crosses the middle of an instruction. */\n"
				"static uint32_t take_bits(const unsigned char *bytes, int offset, int width)\n"
				"{\n"
				"\tuint64_t half = 0;\n"
				"\tfor (int i = 0; i < 8; i++)\n"
				"\t\thalf |= (uint64_t)bytes[offset / 64 * 8 + i] << 8 * i;\n"
				"\treturn (uint32_t)(half >> offset % 64 & (((uint64_t)1 << width) - 1));\n"
				"}\n"
				"\n"
				"static uint32_t vta_get_u32(const uint8_t *p)\n"
				"{\n"
				"\treturn p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;\n"
				"}\n";

static void print_decoder(struct csource_writer *w)
{
	csource_line(w, "\nstatic struct vta_insn decode_insn(const unsigned char *bytes)\n{\n\tstruct vta_insn insn;");
	for (int i = 0; i < vta_field_count; i++) {
		const struct vta_field *f = &vta_fields[i];
		const char *sign = vta_field_is_signed(f) ? "(uint32_t)(int16_t)" : "";
		csource_line(w, "\tinsn.%s = %stake_bits(bytes, %d, %d);", f->name, sign, f->offset, f->width);
	}
	csource_line(w, "\treturn insn;\n}\n\nstatic struct vta_uop vta_decode_uop(uint32_t bits)\n{\n\tstruct vta_uop uop;");
#define VTA_UOP_FIELD(name, offset, width) csource_line(w, "\tuop." #name " = bits >> %d & %d;", offset, (1 << (width)) - 1);
#include "vta/vta_isa.def"
	csource_line(w, "\treturn uop;\n}");
}

static void print_traits(struct csource_writer *w)
{
	csource_line(w, "\nstatic struct vta_memory_traits vta_memory_traits(enum vta_memory memory)\n{");
	csource_line(w, "\tstatic const struct vta_memory_traits traits[] = {");
#define VTA_MEMORY(NAME, spelling, code, bytes, entries, padded) csource_line(w, "\t    [VTA_MEMORY_" #NAME "] = {%d},", bytes);
#include "vta/vta_isa.def"
	csource_line(w, "\t};\n\treturn traits[memory];\n}\n");
}

/* --- the file --- */

static const char run[] = "{\n"
			  "\tstruct walk w = {.device = malloc(sizeof(struct vta_device)), .instructions = instructions, .count = count};\n"
			  "\t(void)bytes;\n"
			  "\tif (!w.device)\n"
			  "\t\treturn 1;\n"
			  "\tint failed = run_modules(&w, memory);\n"
			  "\tfree(w.device);\n"
			  "\treturn failed;\n"
			  "}\n";

void csource_print_executor(struct csource_writer *w)
{
	const char *name = w->program->name;
	csource_line(w, "/* The Versatile Tensor Accelerator in C, for hosts that have none: leave this file out where a device is linked. */");
	csource_line(w, "#include \"%s_device.h\"\n\n#include <stdint.h>\n#include <stdlib.h>", name);
	print_enums(w);
	print_structs(w);
	str_puts(w->to, take_bits);
	print_decoder(w);
	print_traits(w);
	str_puts(w->to, device_source);
	str_puts(w->to, modules_source);
	csource_line(w, "\nint %s_device_run(const unsigned char *instructions, size_t count, unsigned char *memory, size_t bytes)", name);
	str_puts(w->to, run);
}
