/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arrays: where each has its memory, what is in it before the first kernel, and copies of rows that the caller's arrays
 * hold without padding. */
#include "csource/writer.h"

#include <inttypes.h>

enum { LINE = 64 };

const int64_t csource_row_sizes[IMAGE_SIZES] = {
    [IMAGE_NODES] = 1, [IMAGE_LEAVES] = 1, [IMAGE_INPUTS] = 1, [IMAGE_WIDEST] = 1, [IMAGE_PAIRS] = 1};
const int64_t csource_fixed_sizes[IMAGE_SIZES] = {[IMAGE_ONE] = 1, [IMAGE_BATCHES] = 1};

/* What arrays of structure and of data hold, where every row is a node, an input and a leaf of the one batch. */
enum content { AS_IT_COMES, NUMBERS, ENDS, ZEROS, ROWS_OF_TABLE, OF_RECURSION };

static const enum content contents[IMAGE_BUFFER_KINDS] = {
    [IMAGE_CHILD] = OF_RECURSION,      [IMAGE_CHILD_BEGIN] = OF_RECURSION,  [IMAGE_CHILD_LIST] = OF_RECURSION,
    [IMAGE_CASE] = OF_RECURSION,       [IMAGE_PARENT] = OF_RECURSION,       [IMAGE_PARENT_BEGIN] = OF_RECURSION,
    [IMAGE_PARENT_LIST] = OF_RECURSION, [IMAGE_EDGE_NODE] = OF_RECURSION,   [IMAGE_SORTED] = OF_RECURSION,
    [IMAGE_SEGMENT_OF] = OF_RECURSION, [IMAGE_SEGMENT_BEGIN] = OF_RECURSION, [IMAGE_ROOT] = NUMBERS,
    [IMAGE_PLACE] = NUMBERS,	       [IMAGE_MEMBER_LIST] = NUMBERS,	    [IMAGE_MEMBER_BEGIN] = NUMBERS,
    [IMAGE_INPUT_OF] = NUMBERS,	       [IMAGE_FIRST_PAIR] = NUMBERS,	    [IMAGE_BATCH_BEGIN] = ENDS,
    [IMAGE_ORIGIN] = ZEROS,	       [IMAGE_READ_ROW] = ROWS_OF_TABLE,
};

bool csource_is_of_recursion(enum image_buffer_kind kind)
{
	return contents[kind] == OF_RECURSION;
}

static const struct image_buffer *buffer_at(const struct csource_program *p, int slot)
{
	return &p->image->buffer[slot];
}

static bool is_dense(const struct image_buffer *b)
{
	int64_t elements = 1;
	bool dense = true;
	for (int d = b->rank - 1; d >= 0; d--) {
		dense &= b->stride[d] == elements;
		elements *= b->shape[d];
	}
	return dense && elements == b->row_elements;
}

/* Whether the array is that of an argument, as it is. */
static bool is_callers(const struct csource_program *p, int slot)
{
	const struct image_buffer *b = buffer_at(p, slot);
	if (b->kind == IMAGE_OUTPUT)
		return p->image->output[b->which].buffer == slot && is_dense(b);
	return b->kind == IMAGE_GIVEN || b->kind == IMAGE_TOKEN || (b->kind == IMAGE_VECTOR && is_dense(b));
}

enum csource_memory csource_memory_of(const struct csource_program *p, int slot)
{
	const struct image_buffer *b = buffer_at(p, slot);
	if (b->kind == IMAGE_WEIGHT)
		return p->packed && p->packed[b->which] && !b->at_binding ? CSOURCE_WEIGHTS : CSOURCE_NONE;
	if (b->at_binding)
		return CSOURCE_NONE;
	if (b->kind == IMAGE_SCRATCH)
		return CSOURCE_SHARED;
	if (b->kind == IMAGE_STEP)
		return CSOURCE_STEP;
	return is_callers(p, slot) ? CSOURCE_CALLER : CSOURCE_OWN;
}

ilir_buffer csource_buffer_at(const struct ilir_module *m, int slot)
{
	ilir_buffer b = {0};
	for (int slots = -1; slots < slot;)
		slots += ilir_traits_of(ilir_buffer_at(m, (ilir_buffer){++b.i})) != NULL;
	return b;
}

static const char *name_of(struct csource_writer *w, int slot)
{
	return csource_buffer_name(w, csource_buffer_at(w->m, slot));
}

/* --- arguments --- */

/* The name of an argument among those of its kind that stand before it: another of the same gets its number. */
static const char *argument_name(struct csource_writer *w, const char *prefix, const char *name, int number, bool again)
{
	const char *id = csource_identifier(w->arena, name);
	return again ? str_format(w->arena, "%s_%s_%d", prefix, id, number) : str_format(w->arena, "%s_%s", prefix, id);
}

const char *csource_input_name(struct csource_writer *w, int input)
{
	const struct image_input *in = w->program->image->input;
	const char *id = csource_identifier(w->arena, in[input].name);
	bool again = false;
	for (int i = 0; i < input; i++)
		again |= strcmp(csource_identifier(w->arena, in[i].name), id) == 0;
	return argument_name(w, "in", in[input].name, input, again);
}

const char *csource_output_name(struct csource_writer *w, int output)
{
	const struct image_output *out = w->program->image->output;
	const char *id = csource_identifier(w->arena, out[output].name);
	bool again = false;
	for (int i = 0; i < output; i++)
		again |= strcmp(csource_identifier(w->arena, out[i].name), id) == 0;
	return argument_name(w, "out", out[output].name, output, again);
}

static const char *argument_of(struct csource_writer *w, const struct image_buffer *b)
{
	return b->kind == IMAGE_OUTPUT ? csource_output_name(w, b->which) : csource_input_name(w, b->which);
}

/* --- places --- */

void csource_print_arrays(struct csource_writer *w)
{
	csource_line(w, "\n/* The arrays of a run: rows of what is given, of intermediates, and of results. */");
	csource_open(w, "struct arrays");
	csource_line(w, "int64_t rows;");
	for (int i = 0; i < w->program->image->buffers; i++) {
		enum csource_memory memory = csource_memory_of(w->program, i);
		const struct ilir_buffer_decl *b = ilir_buffer_at(w->m, csource_buffer_at(w->m, i));
		if (memory == CSOURCE_NONE || memory == CSOURCE_WEIGHTS)
			continue;
		bool constant = memory == CSOURCE_STEP || (memory == CSOURCE_CALLER && b->kind != IMAGE_OUTPUT);
		csource_line(w, "%s%s *%s;", constant ? "const " : "", csource_type(b->dtype), name_of(w, i));
	}
	if (w->program->image->calls)
		csource_line(w, "unsigned char *device; /* the memory of the accelerator */");
	w->depth--;
	csource_line(w, "};");
}

/* Bytes of a buffer of its own for a row, and besides; a minibatch has a row at least. */
static int64_t round_up(int64_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

static int64_t own_bytes(const struct image_buffer *b, const int64_t *sizes)
{
	int64_t rows = sizes[b->rows];
	if (!rows)
		return 0;
	return round_up((rows + image_traits_of(b->kind)->more) * b->row_elements * dtype_traits_of(b->dtype)->bytes);
}

static void print_place(struct csource_writer *w, int slot, int64_t row_bytes, int64_t fixed_bytes)
{
	csource_line(w, "all.%s = (void *)(memory + n * %" PRId64 " + %" PRId64 ");", name_of(w, slot), row_bytes, fixed_bytes);
}

struct bytes {
	int64_t row, fixed;
};

/* What buffers before `slot` have of their own; all of them at the end. */
static struct bytes own_before(const struct csource_program *p, int slot)
{
	struct bytes sum = {0};
	for (int i = 0; i < slot; i++) {
		bool own = csource_memory_of(p, i) == CSOURCE_OWN;
		sum.row += own ? own_bytes(buffer_at(p, i), csource_row_sizes) : 0;
		sum.fixed += own ? own_bytes(buffer_at(p, i), csource_fixed_sizes) : 0;
	}
	return sum;
}

/* The memory of the accelerator lies behind all other, at a multiple of what the largest entry has. */
static void print_device_memory(struct csource_writer *w, int64_t row_bytes, int64_t fixed_bytes)
{
	if (!w->program->image->calls)
		return;
	csource_line(w, "all.device = memory + n * %" PRId64 " + %" PRId64 ";", row_bytes, fixed_bytes);
	csource_line(w, "all.device += (%d - (uintptr_t)all.device %% %d) %% %d;", VTA_MEMORY_ALIGNMENT, VTA_MEMORY_ALIGNMENT,
		     VTA_MEMORY_ALIGNMENT);
}

/* Memory has first what there is for each row, that of intermediates last, then what there is once. */
static void print_memory(struct csource_writer *w)
{
	const struct csource_program *p = w->program;
	struct bytes own = own_before(p, p->image->buffers);
	int64_t row = own.row + p->row_bytes;
	for (int i = 0; i < p->image->buffers; i++) {
		enum csource_memory memory = csource_memory_of(p, i);
		struct bytes before = own_before(p, i);
		bool rows = csource_row_sizes[buffer_at(p, i)->rows];
		if (memory == CSOURCE_OWN)
			print_place(w, i, rows ? before.row : row, rows ? 0 : before.fixed);
		else if (memory == CSOURCE_SHARED)
			print_place(w, i, rows ? own.row + p->row_offset[i] : row, rows ? 0 : own.fixed + p->fixed_offset[i]);
		else if (memory == CSOURCE_CALLER)
			csource_line(w, "all.%s = %s;", name_of(w, i), argument_of(w, buffer_at(p, i)));
		else if (memory == CSOURCE_STEP)
			csource_line(w, "all.%s = &step;", name_of(w, i));
	}
	print_device_memory(w, row, own.fixed + p->fixed_bytes);
}

static void print_content(struct csource_writer *w, int slot)
{
	const struct image_buffer *b = buffer_at(w->program, slot);
	const char *name = name_of(w, slot);
	switch (contents[b->kind]) {
	case NUMBERS:
		csource_open(w, "for (int64_t i = 0; i < rows + %d; i++)", image_traits_of(b->kind)->more);
		csource_line(w, "all.%s[i] = (int32_t)i;", name);
		csource_close(w);
		break;
	case ENDS:
		csource_line(w, "all.%s[1] = (int32_t)rows;", name);
		break;
	case ROWS_OF_TABLE:
		csource_open(w, "for (int64_t i = 0; i < rows; i++)");
		csource_line(w, "all.%s[i] = -1 - %s[i];", name, csource_input_name(w, b->which));
		csource_close(w);
		break;
	case AS_IT_COMES:
	case ZEROS:
	case OF_RECURSION:
		break;
	}
}

void csource_print_places(struct csource_writer *w)
{
	const struct csource_program *p = w->program;
	struct bytes own = own_before(p, p->image->buffers);
	int64_t row = own.row + p->row_bytes, fixed = own.fixed + p->fixed_bytes + csource_device_bytes(p->image) + 1;
	csource_line(w, "const size_t n = (size_t)rows;");
	csource_open(w, "if (rows > INT32_MAX || n > (SIZE_MAX / 2 - %" PRId64 ") / %" PRId64 ")", fixed, row ? row : 1);
	csource_line(w, "return %s_NO_MEMORY;", p->name);
	csource_close(w);
	csource_line(w, "unsigned char *const memory = calloc(n * %" PRId64 " + %" PRId64 ", 1);", row, fixed);
	csource_open(w, "if (!memory)");
	csource_line(w, "return %s_NO_MEMORY;", p->name);
	csource_close(w);
	csource_line(w, "all.rows = rows;");
	print_memory(w);
	for (int i = 0; i < p->image->buffers; i++)
		if (csource_memory_of(p, i) == CSOURCE_OWN)
			print_content(w, i);
}

/* --- rows --- */

/* Copies all rows between an array of the program and a dense one of the caller's. */
static void print_copy(struct csource_writer *w, int slot, const char *argument, bool in)
{
	const struct image_buffer *b = buffer_at(w->program, slot);
	struct str padded = str_in(w->arena), dense = str_in(w->arena);
	int64_t elements = 1;
	for (int d = b->rank - 1; d >= 0; d--) {
		str_printf(&padded, " + i%d * %" PRId64, d, b->stride[d]);
		str_printf(&dense, " + i%d * %" PRId64, d, elements);
		elements *= b->shape[d];
	}
	csource_open(w, "for (int64_t i = 0; i < rows; i++)");
	for (int d = 0; d < b->rank; d++)
		csource_open(w, "for (int64_t i%d = 0; i%d < %" PRId64 "; i%d++)", d, d, b->shape[d], d);
	const char *own = str_format(w->arena, "all.%s[i * %" PRId64 "%s]", name_of(w, slot), b->row_elements, str_text(&padded));
	const char *given = str_format(w->arena, "%s[i * %" PRId64 "%s]", argument, elements, str_text(&dense));
	csource_line(w, "%s = %s;", in ? own : given, in ? given : own);
	for (int d = 0; d <= b->rank; d++)
		csource_close(w);
}

void csource_print_inputs(struct csource_writer *w)
{
	const struct csource_program *p = w->program;
	for (int i = 0; i < p->image->buffers; i++)
		if (buffer_at(p, i)->kind == IMAGE_VECTOR && csource_memory_of(p, i) == CSOURCE_OWN)
			print_copy(w, i, csource_input_name(w, buffer_at(p, i)->which), true);
}

void csource_print_outputs(struct csource_writer *w)
{
	const struct csource_program *p = w->program;
	for (int o = 0; o < p->image->outputs; o++)
		if (csource_memory_of(p, p->image->output[o].buffer) != CSOURCE_CALLER)
			print_copy(w, p->image->output[o].buffer, csource_output_name(w, o), false);
}
