/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights as arrays of C, laid out as kernels read them; floats are their bits, so that they are exact. */
#include "csource/writer.h"

#include <inttypes.h>

enum { ELEMENTS_OF_LINE = 12 };

/* Writes an unsigned number in hexadecimal, without the way through formats: there may be 10^8 of them. */
static void put_bits(struct str *to, uint32_t bits)
{
	char text[12] = {'0', 'x'};
	int digits = 1;
	while (digits < 8 && bits >> 4 * digits)
		digits++;
	for (int i = 0; i < digits; i++)
		text[2 + i] = "0123456789abcdef"[bits >> 4 * (digits - 1 - i) & 15];
	text[2 + digits] = ',';
	str_add(to, text, (size_t)digits + 3);
}

static void put_number(struct csource_writer *w, enum dtype t, const void *at)
{
	int64_t wide;
	uint32_t bits;
	uint16_t half;
	switch (t) {
	case DTYPE_F32:
		put_bits(w->to, (memcpy(&bits, at, sizeof bits), bits));
		break;
	case DTYPE_F16:
	case DTYPE_BF16:
		put_bits(w->to, (memcpy(&half, at, sizeof half), half));
		break;
	case DTYPE_I8:
		str_printf(w->to, "%d,", *(const int8_t *)at);
		break;
	case DTYPE_U8:
	case DTYPE_BOOL:
		str_printf(w->to, "%d,", *(const uint8_t *)at);
		break;
	case DTYPE_I16:
		str_printf(w->to, "%d,", *(const int16_t *)at);
		break;
	case DTYPE_I32:
		str_printf(w->to, "%s,", csource_integer(w->arena, ILIR_I32, *(const int32_t *)at));
		break;
	default:
		str_printf(w->to, "%s,", csource_integer(w->arena, ILIR_I64, (memcpy(&wide, at, sizeof wide), wide)));
	}
}

static void print_elements(struct csource_writer *w, const struct image_recipe *r, const char *packed)
{
	int64_t bytes = dtype_traits_of(r->dtype)->bytes, elements = image_recipe_elements(r);
	for (int64_t i = 0; i < elements; i++) {
		put_number(w, r->dtype, packed + i * bytes);
		if (i % ELEMENTS_OF_LINE == ELEMENTS_OF_LINE - 1)
			str_puts(w->to, "\n");
	}
}

static void print_weight(struct csource_writer *w, int slot, bool declared)
{
	const struct image *image = w->program->image;
	const struct image_recipe *r = &image->recipe[image->buffer[slot].which];
	ilir_buffer b = csource_buffer_at(w->m, slot);
	const char *type = csource_stored_type(ilir_buffer_at(w->m, b));
	str_printf(w->to, "%sconst %s %s_%s[%" PRId64 "]", declared ? "extern " : "\n", type, w->program->name,
		   csource_buffer_name(w, b), image_recipe_elements(r));
	csource_line(w, declared ? ";" : " = {");
	if (declared)
		return;
	print_elements(w, r, w->program->packed[image->buffer[slot].which]);
	csource_line(w, "};");
}

static void print_all(struct csource_writer *w, bool declared)
{
	for (int i = 0; i < w->program->image->buffers; i++)
		if (csource_memory_of(w->program, i) == CSOURCE_WEIGHTS)
			print_weight(w, i, declared);
}

void csource_declare_weights(struct csource_writer *w)
{
	csource_line(w, "/* The weights, in the order in which kernels read them. */");
	csource_line(w, "#ifndef %s_WEIGHTS_H\n#define %s_WEIGHTS_H\n\n#include <stdint.h>\n", w->program->name, w->program->name);
	print_all(w, true);
	csource_line(w, "\n#endif");
}

void csource_print_weights(struct csource_writer *w)
{
	csource_line(w, "#include \"%s_weights.h\"", w->program->name);
	print_all(w, false);
}
