/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The header of arithmetic: a function for each row of ilir_ops.def, in its own words, and what these call. */
#include "csource/writer.h"

/* base/convert.h as a text, `conversions`. */
#include "csource/convert_text.inc"

/* What has no meaning in C unless a compiler keeps to IEEE 754: it is refused where it is compiled. */
static const char preamble[] =
    "#include <float.h>\n"
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "\n"
    "/* Every operation rounds once to its own type, so nothing may be contracted, reordered or kept wider. */\n"
    "#if defined __FAST_MATH__\n"
    "#error \"compile without -ffast-math\"\n"
    "#endif\n"
    "#if FLT_EVAL_METHOD != 0\n"
    "#error \"floats are computed in a wider type: compile with -msse2 -mfpmath=sse, or for another processor\"\n"
    "#endif\n"
    "#if defined __clang__\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#elif defined __GNUC__ && !defined __STRICT_ANSI__ /* without -std=c11 */\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#endif\n"
    "\n";

static const char selections[] =
    "\n"
    "static inline float larger_float(float x, float y)\n{\n\treturn x > y ? x : y;\n}\n"
    "\n"
    "static inline float smaller_float(float x, float y)\n{\n\treturn x < y ? x : y;\n}\n";

struct row {
	enum ilir_op op;
	enum ilir_dtype operand, last, result; /* last: the type of the third operand */
	const char *expression;
};

static const struct row rows[] = {
#define ILIR_ROW(name, operand, result, expression) {ILIR_##name, ILIR_##operand, ILIR_##operand, ILIR_##result, #expression},
#define ILIR_WORDS_ROW(name, expression) {ILIR_##name, ILIR_I32, ILIR_F32, ILIR_F32, #expression},
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) rows
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows)
#include "ilir/ilir_ops.def"
};

/* Writes the function of a row; compounds have none, since they were expanded. */
static void print_row(struct csource_writer *w, const struct row *r)
{
	const char *result = csource_type(r->result);
	struct str list = str_in(w->arena);
	for (int i = 0; i < ilir_op_arity(r->op); i++)
		str_printf(&list, "%s%s %c", i ? ", " : "", csource_type(i == 2 ? r->last : r->operand), "xyz"[i]);
	csource_line(w, "\nstatic inline %s %s(%s)", result, csource_function(w->arena, r->op, r->operand), str_text(&list));
	csource_block(w);
	csource_line(w, "return (%s)(%s);", result, r->expression);
	csource_close(w);
}

void csource_print_arithmetic(struct csource_writer *w)
{
	csource_line(w, "/* The operators of the kernels: what each computes, to the bit. */");
	csource_line(w, "#ifndef %s_ARITHMETIC_H\n#define %s_ARITHMETIC_H\n", w->program->name, w->program->name);
	str_puts(w->to, preamble);
	str_puts(w->to, conversions);
	str_puts(w->to, selections);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		print_row(w, &rows[i]);
	csource_line(w, "\n#endif");
}
