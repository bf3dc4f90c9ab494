/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Calls of the accelerator: a driver for each, as runtime/drive_calls.c drives them, its stream as data, and the header that declares
 * the function of the device. */
#include "csource/writer.h"

#include <inttypes.h>

enum { BYTES_OF_LINE = 16 };

int64_t csource_device_bytes(const struct image *image)
{
	uint64_t most = 0;
	for (int i = 0; i < image->calls; i++)
		most = image->call[i].opened->bytes > most ? image->call[i].opened->bytes : most;
	return image->calls ? (int64_t)most + VTA_MEMORY_ALIGNMENT : 0;
}

/* --- streams --- */

/* The array of what a call gives to the device: its instructions, or a segment. */
static const char *array_name(struct csource_writer *w, int call, const char *what)
{
	const char *id = csource_identifier(w->arena, w->program->image->call[call].name);
	return str_format(w->arena, "%s_%s_%s", w->program->name, id, csource_identifier(w->arena, what));
}

static void print_bytes(struct csource_writer *w, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_printf(w->to, "%s0x%02x,%s", i % BYTES_OF_LINE ? "" : "\t", bytes[i],
			   i % BYTES_OF_LINE == BYTES_OF_LINE - 1 || i + 1 == n ? "\n" : "");
}

static void print_instructions(struct csource_writer *w, const struct vta_stream *s)
{
	uint8_t bytes[VTA_INSN_BYTES];
	for (size_t i = 0; i < s->insns; i++) {
		vta_encode(&s->insn[i], bytes);
		print_bytes(w, bytes, sizeof bytes);
	}
}

/* Declares an array, or begins it. */
static void begin_array(struct csource_writer *w, const char *name, size_t bytes, bool declared)
{
	csource_line(w, "%sconst unsigned char %s[%zu]%s", declared ? "extern " : "\n", name, bytes, declared ? ";" : " = {");
}

static void print_stream(struct csource_writer *w, int call, bool declared)
{
	const struct vta_stream *s = w->program->image->call[call].opened;
	begin_array(w, array_name(w, call, "instructions"), s->insns * VTA_INSN_BYTES, declared);
	if (!declared) {
		print_instructions(w, s);
		csource_line(w, "};");
	}
	for (size_t i = 0; i < s->segments; i++) {
		const struct vta_segment *segment = &s->segment[i];
		if (!segment->data || !segment->bytes)
			continue;
		begin_array(w, array_name(w, call, segment->name), segment->bytes, declared);
		if (!declared) {
			print_bytes(w, segment->data, segment->bytes);
			csource_line(w, "};");
		}
	}
}

static const char described[] =
    "/* Runs instructions of the Versatile Tensor Accelerator (1 x 16 x 16, int8), `count` of 16 bytes, little end first, up to their end.\n"
    " * Addresses in them count from `memory`, which has so many bytes and begins at a multiple of 256.  The host reads and writes it\n"
    " * before and after, so the device's view of it must then be that of the host.  0 = done; else the run is given up.  Threads\n"
    " * that run the program at once call it at once. */";

void csource_declare_device(struct csource_writer *w)
{
	const char *name = w->program->name;
	csource_line(w, "#ifndef %s_DEVICE_H\n#define %s_DEVICE_H\n\n#include <stddef.h>\n", name, name);
	csource_line(w, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n%s", described);
	csource_line(w, "int %s_device_run(const unsigned char *instructions, size_t count, unsigned char *memory, size_t bytes);\n", name);
	csource_line(w, "/* What is given to it: instructions, and what lies in the memory besides weights and activations. */");
	for (int i = 0; i < w->program->image->calls; i++)
		print_stream(w, i, true);
	csource_line(w, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif");
}

void csource_print_streams(struct csource_writer *w)
{
	csource_line(w, "#include \"%s_device.h\"", w->program->name);
	for (int i = 0; i < w->program->image->calls; i++)
		print_stream(w, i, false);
}

/* --- drivers --- */

/* Puts an array to where the stream reads it, little end first. */
static void print_constant(struct csource_writer *w, const struct image_operand *o, const struct vta_segment *s)
{
	ilir_buffer b = csource_buffer_at(w->m, o->buffer);
	const char *array = str_format(w->arena, "%s_%s", w->program->name, csource_buffer_name(w, b));
	int bytes = dtype_traits_of(w->program->image->buffer[o->buffer].dtype)->bytes;
	csource_open(w, "for (size_t i = 0; i < %" PRIu64 "; i++)", s->bytes);
	if (bytes == 1)
		csource_line(w, "memory[%" PRIu64 " + i] = (unsigned char)%s[i];", s->begin, array);
	else
		csource_line(w, "memory[%" PRIu64 " + i] = (unsigned char)((uint32_t)%s[i / %d] >> 8 * (i %% %d));", s->begin, array, bytes,
			     bytes);
	csource_close(w);
}

static void print_segments(struct csource_writer *w, int call)
{
	const struct image_call *c = &w->program->image->call[call];
	for (size_t i = 0; i < c->opened->segments; i++) {
		const struct vta_segment *s = &c->opened->segment[i];
		if (s->data && s->bytes)
			csource_line(w, "memcpy(memory + %" PRIu64 ", %s, %" PRIu64 ");", s->begin, array_name(w, call, s->name), s->bytes);
	}
	for (int i = 0; i < c->operands; i++)
		if (c->operand[i].role == IMAGE_OPERAND_CONSTANT)
			print_constant(w, &c->operand[i], vta_find_segment(c->opened, c->operand[i].segment));
}

/* Opens loops over the elements of blocks, in the order in which they are packed; `packed` is the one at hand. */
static void open_blocks(struct csource_writer *w, const struct vta_activations *e)
{
	csource_open(w, "for (int64_t n = 0; n < %" PRId64 "; n++)", e->images);
	csource_open(w, "for (int64_t b = 0; b < %" PRId64 "; b++)", vta_blocks(e->channels));
	csource_open(w, "for (int64_t y = 0; y < %" PRId64 "; y++)", e->size[0]);
	csource_open(w, "for (int64_t x = 0; x < %" PRId64 "; x++)", e->size[1]);
	csource_open(w, "for (int64_t c = %d * b; c < %d * b + %d; c++, packed++)", VTA_BLOCK, VTA_BLOCK, VTA_BLOCK);
}

static void close_blocks(struct csource_writer *w)
{
	for (int i = 0; i < 5; i++)
		csource_close(w);
}

static void add_index(struct str *s, const char *index, int64_t extent, int64_t stride)
{
	if (extent == 1)
		return;
	str_printf(s, "%s%s", s->n ? " + " : "", index);
	if (stride != 1)
		str_printf(s, " * %" PRId64, stride);
}

/* The element of a row that stands for the one at hand. */
static const char *write_place(struct csource_writer *w, const struct image_operand *o)
{
	const struct vta_activations *e = &o->extent;
	struct str s = str_in(w->arena);
	add_index(&s, "n", e->images, o->stride.image);
	add_index(&s, "c", e->channels, o->stride.channel);
	add_index(&s, "y", e->size[0], o->stride.row);
	add_index(&s, "x", e->size[1], o->stride.column);
	return str_format(w->arena, "row[%s]", s.n ? str_text(&s) : "0");
}

/* A number and a constant behind it, of which it is the sum. */
static const char *write_sum(struct csource_writer *w, const char *number, int constant)
{
	if (!constant)
		return number;
	return str_format(w->arena, "%s %c %u", number, constant < 0 ? '-' : '+', constant < 0 ? 0u - (unsigned)constant : (unsigned)constant);
}

/* The element of an output, of the byte or of the bytes of planes that follow each other. */
static const char *write_element(struct csource_writer *w, const struct image_operand *o, const char *type)
{
	const struct vta_activations *e = &o->extent;
	int64_t apart = e->images * vta_blocks(e->channels) * e->size[0] * e->size[1] * VTA_BLOCK;
	if (o->planes == 1)
		return str_format(w->arena, "(%s)(uint8_t)(%s)", type, write_sum(w, "*packed", o->zero));
	const char *sum = str_format(w->arena,
				       "(packed[0] | (uint32_t)packed[%" PRId64 "] << 8 | (uint32_t)packed[%" PRId64
				       "] << 16 | (uint32_t)packed[%" PRId64 "] << 24)",
				       apart, 2 * apart, 3 * apart);
	return str_format(w->arena, "(%s)%s", type, o->zero ? str_format(w->arena, "(%s)", write_sum(w, sum, o->zero)) : sum);
}

/* Packs a row of an input, or unpacks one of an output. */
static void print_activations(struct csource_writer *w, const struct image_operand *o, const struct vta_segment *s)
{
	const struct image_buffer *b = &w->program->image->buffer[o->buffer];
	ilir_buffer buffer = csource_buffer_at(w->m, o->buffer);
	const char *type = csource_type(ilir_buffer_at(w->m, buffer)->dtype), *place = write_place(w, o);
	bool in = o->role == IMAGE_OPERAND_INPUT;
	csource_block(w);
	csource_line(w, "%sunsigned char *packed = memory + %" PRIu64 ";", in ? "" : "const ", s->begin);
	csource_line(w, "%s%s *const row = arrays->%s + r * %" PRId64 ";", in ? "const " : "", type, csource_buffer_name(w, buffer),
		     b->row_elements);
	open_blocks(w, &o->extent);
	if (in) {
		csource_line(w, "*packed = c < %" PRId64 " ? (unsigned char)(%s) : 0;", o->extent.channels, write_sum(w, place, -o->zero));
	} else {
		csource_open(w, "if (c < %" PRId64 ")", o->extent.channels);
		csource_line(w, "%s = %s;", place, write_element(w, o, type));
		csource_close(w);
	}
	close_blocks(w);
	csource_close(w);
}

static void print_operands(struct csource_writer *w, const struct image_call *c, enum image_role role)
{
	for (int i = 0; i < c->operands; i++)
		if (c->operand[i].role == role)
			print_activations(w, &c->operand[i], vta_find_segment(c->opened, c->operand[i].segment));
}

void csource_print_call(struct csource_writer *w, int call)
{
	const struct image_call *c = &w->program->image->call[call];
	csource_line(w, "\n/* %s, on the accelerator; 0 = done */", csource_identifier(w->arena, c->name));
	csource_line(w, "static int call_%d(const struct arrays *arrays, int64_t begin, int64_t end)", call);
	csource_block(w);
	csource_line(w, "unsigned char *const memory = arrays->device;");
	print_segments(w, call);
	csource_open(w, "for (int64_t r = begin; r < end; r++)");
	print_operands(w, c, IMAGE_OPERAND_INPUT);
	csource_open(w, "if (%s_device_run(%s, %zu, memory, %" PRIu64 "))", w->program->name, array_name(w, call, "instructions"),
		     c->opened->insns, c->opened->bytes);
	csource_line(w, "return 1;");
	csource_close(w);
	print_operands(w, c, IMAGE_OPERAND_OUTPUT);
	csource_close(w);
	csource_line(w, "return 0;");
	csource_close(w);
}
