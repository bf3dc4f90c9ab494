/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines, names, types and constants of C. */
#include "csource/writer.h"

#include "ilir/spelling.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

/* --- lines --- */

static void begin_line(struct csource_writer *w)
{
	for (int i = 0; i < w->depth; i++)
		str_puts(w->to, "\t");
}

void csource_line(struct csource_writer *w, const char *format, ...)
{
	va_list args;
	begin_line(w);
	va_start(args, format);
	str_vprintf(w->to, format, args);
	va_end(args);
	str_puts(w->to, "\n");
}

void csource_open(struct csource_writer *w, const char *format, ...)
{
	va_list args;
	begin_line(w);
	va_start(args, format);
	str_vprintf(w->to, format, args);
	va_end(args);
	str_puts(w->to, " {\n");
	w->depth++;
}

void csource_block(struct csource_writer *w)
{
	csource_line(w, "{");
	w->depth++;
}

void csource_close(struct csource_writer *w)
{
	w->depth--;
	csource_line(w, "}");
}

/* --- types --- */

const char *csource_type(enum ilir_dtype t)
{
	static const char *const type[ILIR_DTYPES] = {
	    [ILIR_F32] = "float",  [ILIR_F16] = "uint16_t", [ILIR_BF16] = "uint16_t", [ILIR_I8] = "int8_t",   [ILIR_U8] = "uint8_t",
	    [ILIR_I16] = "int16_t", [ILIR_I32] = "int32_t",  [ILIR_I64] = "int64_t",   [ILIR_BOOL] = "uint8_t", [ILIR_INDEX] = "int64_t"};
	return type[t];
}

bool csource_holds_bits(const struct ilir_buffer_decl *b)
{
	return b->kind == IMAGE_WEIGHT && b->dtype == ILIR_F32;
}

const char *csource_stored_type(const struct ilir_buffer_decl *b)
{
	return csource_holds_bits(b) ? "uint32_t" : csource_type(b->dtype);
}

/* --- names --- */

const char *csource_identifier(struct arena *a, const char *text)
{
	struct str s = str_in(a);
	if (!isalpha((unsigned char)*text) && *text != '_')
		str_puts(&s, "x");
	for (; *text; text++)
		str_add(&s, isalnum((unsigned char)*text) ? text : "_", 1);
	return str_text(&s);
}

const char *csource_buffer_name(struct csource_writer *w, ilir_buffer b)
{
	return str_format(w->arena, "%s_%u", csource_identifier(w->arena, ilir_buffer_at(w->m, b)->name), b.i);
}

const char *csource_var_name(struct csource_writer *w, ilir_var v)
{
	if (v.i == ilir_begin.i || v.i == ilir_end.i)
		return v.i == ilir_begin.i ? "begin" : "end";
	return str_format(w->arena, "%s_v%u", csource_identifier(w->arena, w->m->vars.at[v.i].name), v.i);
}

static const char *const op_names[ILIR_OPS] = {
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) [ILIR_##name] = #name,
#include "ilir/ilir_ops.def"
};

const char *csource_function(struct arena *a, enum ilir_op op, enum ilir_dtype operand)
{
	struct str s = str_in(a);
	str_printf(&s, "%s_%s", op_names[op], ilir_dtype_word[operand]);
	for (char *p = s.text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return s.text;
}

/* --- constants --- */

/* The shortest decimal number that is read back as the same, with a point, so that it is of a float. */
static const char *write_finite(struct arena *a, float f)
{
	struct str s = str_in(a);
	str_float(&s, f);
	if (!strpbrk(s.text, ".e"))
		str_puts(&s, ".0");
	str_puts(&s, "f");
	return *s.text == '-' ? str_format(a, "(%s)", s.text) : s.text;
}

const char *csource_float(struct arena *a, float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return isfinite(f) ? write_finite(a, f) : str_format(a, "f32_of_bits(UINT32_C(0x%08" PRIx32 "))", bits);
}

/* The least number of a type is no constant of C. */
const char *csource_integer(struct arena *a, enum ilir_dtype t, int64_t i)
{
	if (t == ILIR_BOOL)
		return i ? "1" : "0";
	if (t == ILIR_I32)
		return i == INT32_MIN ? "INT32_MIN" : str_format(a, i < 0 ? "(%" PRId64 ")" : "%" PRId64, i);
	return i == INT64_MIN ? "INT64_MIN" : str_format(a, i < 0 ? "(-INT64_C(%" PRIu64 "))" : "INT64_C(%" PRIu64 ")",
							    i < 0 ? (uint64_t)-i : (uint64_t)i);
}
