/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams as bits, text and files: each form gives back the same stream, and what is malformed is refused. */
#include "tests/tap.h"
#include "tests/vta/streams.h"

#include <string.h>

static struct arena arena;
static struct diags diags;

/* --- bits --- */

/* Words of two instructions and of a micro-op, composed by hand from the published layout. */
static void test_published_bits(void)
{
	struct vta_insn load = {.opcode = VTA_LOAD, .pop_next = 1, .push_next = 1};
	load.memory = VTA_MEMORY_INPUT;
	load.sram_base = 0x1234;
	load.dram_base = 0x89abcdef;
	load.y_size = 3;
	load.x_size = 5;
	load.x_stride = 7;
	load.y_pad_0 = 1;
	load.y_pad_1 = 2;
	load.x_pad_0 = 3;
	load.x_pad_1 = 4;
	uint64_t low = 0 | 1 << 4 | 1 << 6 | 2 << 7 | (uint64_t)0x1234 << 10 | (uint64_t)0x89abcdef << 26;
	uint64_t high = 3 | 5 << 16 | (uint64_t)7 << 32 | (uint64_t)0x4321 << 48;
	uint8_t bytes[VTA_INSN_BYTES];
	vta_encode(&load, bytes);
	tap_ok(vta_get_u32(bytes) == (uint32_t)low && vta_get_u32(bytes + 4) == low >> 32 &&
		   vta_get_u32(bytes + 8) == (uint32_t)high && vta_get_u32(bytes + 12) == high >> 32,
	       "a load has the published bits");
	struct vta_insn alu = {.opcode = VTA_ALU, .pop_prev = 1};
	alu.uop_begin = 1;
	alu.uop_end = 8192;
	alu.iter_out = 2;
	alu.iter_in = 16383;
	alu.src_factor_in = 2047;
	alu.operation = VTA_ALU_SHR;
	alu.use_imm = 1;
	alu.imm = (uint32_t)-3;
	low = 4 | 1 << 3 | 1 << 8 | (uint64_t)8192 << 21 | (uint64_t)2 << 35 | (uint64_t)16383 << 49;
	high = (uint64_t)2047 << 33 | (uint64_t)3 << 44 | (uint64_t)1 << 47 | (uint64_t)0xfffd << 48;
	vta_encode(&alu, bytes);
	tap_ok(vta_get_u32(bytes) == (uint32_t)low && vta_get_u32(bytes + 4) == low >> 32 &&
		   vta_get_u32(bytes + 8) == (uint32_t)high && vta_get_u32(bytes + 12) == high >> 32,
	       "an operation has the published bits, its immediate operand in two's complement");
	tap_ok(vta_encode_uop((struct vta_uop){5, 1027, 513}) == (5 | 1027 << 11 | (uint32_t)513 << 22),
	       "a micro-op has the published bits");
}

/* Fields lie in one half of an instruction and do not overlap. */
static void test_fields(void)
{
	bool apart = true;
	for (int i = 0; i < vta_field_count; i++)
		for (int j = 0; j < i; j++) {
			const struct vta_field *a = &vta_fields[i], *b = &vta_fields[j];
			bool together = false;
			for (uint32_t code = 0; code < 8; code++)
				together |= (vta_sets_of(code) & a->set) && (vta_sets_of(code) & b->set);
			apart &= !together || a->offset + a->width <= b->offset ||
				 b->offset + b->width <= a->offset;
			apart &= a->offset / 64 == (a->offset + a->width - 1) / 64;
		}
	tap_ok(apart, "no two fields of an instruction share bits");
}

static struct vta_insn draw_insn(uint32_t opcode)
{
	struct vta_insn insn = {.opcode = opcode};
	for (int i = 1; i < vta_field_count; i++) {
		const struct vta_field *field = &vta_fields[i];
		uint32_t value = draw() & (uint32_t)(((uint64_t)1 << field->width) - 1);
		if (!(field->set & vta_sets_of(opcode)))
			continue;
		bool imm = !strcmp(field->name, "imm");
		vta_field_set(&insn, field, imm ? (uint32_t)(int32_t)(int16_t)value : value);
	}
	return insn;
}

static bool same_insns(const struct vta_insn *a, const struct vta_insn *b)
{
	for (int i = 0; i < vta_field_count; i++)
		if (vta_fields[i].set & vta_sets_of(a->opcode) &&
		    vta_field_get(a, &vta_fields[i]) != vta_field_get(b, &vta_fields[i]))
			return false;
	return a->opcode == b->opcode;
}

static void test_random_bits(void)
{
	bool same = true;
	for (int i = 0; i < 20000; i++) {
		struct vta_insn insn = draw_insn((uint32_t)i % 5), back;
		uint8_t bytes[VTA_INSN_BYTES];
		vta_encode(&insn, bytes);
		same &= vta_decode(bytes, &back) && same_insns(&insn, &back);
	}
	tap_ok(same, "random instructions survive encoding");
	uint8_t bytes[VTA_INSN_BYTES] = {VTA_FINISH, 1};
	struct vta_insn insn;
	tap_ok(!vta_decode(bytes, &insn), "a bit that belongs to no field is refused");
	tap_ok(!vta_decode((uint8_t[VTA_INSN_BYTES]){5}, &insn), "an opcode that is not known is refused");
}

/* --- text and file --- */

static bool same_streams(const struct vta_stream *a, const struct vta_stream *b)
{
	bool same = a->insns == b->insns && a->segments == b->segments && a->bytes == b->bytes;
	for (size_t i = 0; same && i < a->insns; i++)
		same = same_insns(&a->insn[i], &b->insn[i]);
	for (size_t i = 0; same && i < a->segments; i++) {
		const struct vta_segment *p = &a->segment[i], *q = &b->segment[i];
		same = !strcmp(p->name, q->name) && p->role == q->role && p->begin == q->begin &&
		       p->bytes == q->bytes && !p->data == !q->data &&
		       (!p->data || !memcmp(p->data, q->data, p->bytes));
	}
	return same;
}

static void test_round_trips(void)
{
	struct vta_stream stream, back;
	bool parsed = tap_ok(vta_parse(&arena, &diags, "sum", stream_text, &stream), "a text is read");
	struct str out = str_in(&arena);
	if (!parsed)
		return;
	vta_print(&stream, &out);
	tap_ok(!strcmp(str_text(&out), stream_text), "it prints as it was written");
	size_t n;
	uint8_t *file = vta_write(&arena, &stream, &n);
	tap_ok(vta_read(&arena, &diags, "sum", file, n, &back) && same_streams(&stream, &back),
	       "it survives a file");
	tap_ok(n == 64 + stream.insns * 16 + stream.segments * 56 + 16 + 512,
	       "a file is as long as its form says");
	uint8_t first[VTA_INSN_BYTES];
	vta_encode(&stream.insn[0], first);
	tap_ok(!memcmp(file + 64, first, sizeof first),
	       "instructions stand behind the header as the device reads them");
}

/* Every byte of the header and the tables matters: a file that differs in one is refused or is another
 * stream. */
static void test_changed_files(void)
{
	struct vta_stream stream, back;
	size_t n, silent = 0;
	if (!vta_parse(&arena, &diags, "sum", stream_text, &stream))
		return;
	uint8_t *file = vta_write(&arena, &stream, &n);
	for (size_t at = 0; at < n; at++) {
		file[at] ^= 0x10;
		silent += vta_read(&arena, &diags, "sum", file, n, &back) && same_streams(&stream, &back);
		file[at] ^= 0x10;
	}
	tap_is((long)silent, 0, "no changed byte goes unnoticed");
	bool refused = true;
	for (size_t length = 0; length < n; length++)
		refused &= !vta_read(&arena, &diags, "sum", file, length, &back);
	tap_ok(refused, "no file that was cut off is read");
}

static void check_refused(const char *text, enum diag_id id, const char *what)
{
	struct vta_stream stream;
	size_t before = diags.n;
	bool read = vta_parse(&arena, &diags, "bad", text, &stream);
	tap_ok(!read && diags.n > before && diags.at[diags.n - 1].id == id, "refused: %s", what);
}

static void test_bad_texts(void)
{
	check_refused("jump\n", DIAG_VTA_TEXT, "a word that is no instruction");
	check_refused("load input sram_base\n", DIAG_VTA_TEXT, "a field without its value");
	check_refused("load input pop_next=1\n", DIAG_VTA_TEXT, "a flag with a value");
	check_refused("load input sram_base=65536\n", DIAG_VTA_TEXT, "a value that is too large");
	check_refused("alu add use_imm imm=-32769\n", DIAG_VTA_TEXT, "a value that is too small");
	check_refused("gemm imm=1\n", DIAG_VTA_TEXT, "a field of another instruction");
	check_refused("memory 256\nuops u 0 16\n  1 2 3\n", DIAG_VTA_TEXT, "data that are too short");
	check_refused("memory 256\nconstant c 0 16\n  0g\n", DIAG_VTA_TEXT, "bytes that are none");
	check_refused("memory 256\ninput x 0 16 16\n", DIAG_VTA_TEXT, "a word too many");
	check_refused("memory 255\n", DIAG_VTA_FORMAT, "a memory of another alignment");
	check_refused("memory 256\ninput x 0 512\n", DIAG_VTA_FORMAT, "a segment behind the memory");
	check_refused("memory 256\ninput x 0 32\noutput y 16 32\n", DIAG_VTA_FORMAT, "segments that overlap");
	check_refused("memory 256\ninput x 0 32\noutput x 32 32\n", DIAG_VTA_FORMAT, "segments of one name");
	check_refused("memory 256\ninput a/b 0 32\n", DIAG_VTA_FORMAT, "a name that is a path");
}

/* One more than a limit. */
static void test_limits(void)
{
	struct str text = str_in(&arena);
	for (int i = 0; i < 1025; i++)
		str_printf(&text, "scratch s%d 0 0\n", i);
	check_refused(str_text(&text), DIAG_VTA_FORMAT, "too many segments");
	check_refused("memory 268435712\n", DIAG_VTA_TEXT, "too much memory");
	struct vta_stream none = {.insns = VTA_INSNS_LIMIT + 1};
	tap_ok(!vta_check_memory(&diags, "test", &none), "refused: too many instructions");
}

int main(void)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	test_published_bits();
	test_fields();
	test_random_bits();
	test_round_trips();
	test_changed_files();
	test_bad_texts();
	test_limits();
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
