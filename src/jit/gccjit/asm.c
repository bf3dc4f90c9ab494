/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Instructions for operations that libgccjit lacks. */
#include "jit/gccjit/emit.h"

static const char *const templates[][JIT_AVX512 + 1] = {
#define GCCJIT_ASM(name, sse, avx, avx512, meaning) {sse, avx, avx512},
#include "jit/gccjit/asm.def"
#undef GCCJIT_ASM
};

/* Only vectors of 16 lanes use the third set. */
static const char *template_of(const struct emitter *e, enum jit_asm op, int width)
{
	return templates[op][width == 16 ? JIT_AVX512 : e->processor->set == JIT_SSE ? JIT_SSE : JIT_AVX];
}

bool jit_has_asm(const struct emitter *e, enum jit_asm op, int width)
{
	return template_of(e, op, width) != NULL;
}

/* The last operand that a template names, 0 = none. */
static int last_named(const char *template)
{
	int last = 0;
	for (const char *s = template; (s = strchr(s, '%')); s++)
		if (s[1] - '0' > last && s[1] <= '9')
			last = s[1] - '0';
	return last;
}

static bool names_operand(const char *template, int operand)
{
	char name[] = {'%', (char)('0' + operand), 0};
	return strstr(template, name) != NULL;
}

static bool is_mask(const struct emitter *e, gcc_jit_type *t)
{
	return t == e->type[ILIR_BOOL][4];
}

/* The factors of a product commute, so that GCC can choose which is read from memory. */
static const char *constraint_of(const struct emitter *e, const char *template, int operand, int width,
				 gcc_jit_rvalue *value, bool memory)
{
	bool swaps = strstr(template, "fmadd") != NULL;
	memory &= operand == last_named(template) && e->processor->set != JIT_SSE;
	if (!names_operand(template, operand))
		return swaps && operand == 1 ? "%0" : "0";
	if (is_mask(e, gcc_jit_rvalue_get_type(value)))
		return "Yk";
	if (width == 16)
		return memory ? "vm" : swaps && operand == 1 ? "%v" : "v";
	return memory ? "xm" : swaps && operand == 1 ? "%x" : "x";
}

static gcc_jit_rvalue *add_asm(struct emitter *e, enum jit_asm op, int width, gcc_jit_type *result,
			       gcc_jit_rvalue *const operand[3], bool memory)
{
	const char *template = template_of(e, op, width);
	gcc_jit_lvalue *to = jit_local(e, result);
	gcc_jit_extended_asm *s = gcc_jit_block_add_extended_asm(e->at, e->location, template);
	gcc_jit_extended_asm_add_output_operand(s, NULL,
						is_mask(e, result) ? "=Yk"
						: width == 16	   ? "=v"
								   : "=x",
						to);
	for (int i = 0; i < 3 && operand[i]; i++)
		gcc_jit_extended_asm_add_input_operand(
		    s, NULL, constraint_of(e, template, i + 1, width, operand[i], memory), operand[i]);
	return gcc_jit_lvalue_as_rvalue(to);
}

gcc_jit_rvalue *jit_asm(struct emitter *e, enum jit_asm op, int width, gcc_jit_type *result,
			gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	return add_asm(e, op, width, result, (gcc_jit_rvalue *[]){a, b, c}, true);
}

gcc_jit_rvalue *jit_asm_in_registers(struct emitter *e, enum jit_asm op, int width, gcc_jit_type *result,
				     gcc_jit_rvalue *a, gcc_jit_rvalue *b, gcc_jit_rvalue *c)
{
	return add_asm(e, op, width, result, (gcc_jit_rvalue *[]){a, b, c}, false);
}

void jit_asm_in_place(struct emitter *e, enum jit_asm op, int width, gcc_jit_lvalue *to, gcc_jit_rvalue *a,
		      gcc_jit_rvalue *b, bool memory)
{
	const char *template = template_of(e, op, width);
	gcc_jit_extended_asm *s = gcc_jit_block_add_extended_asm(e->at, e->location, template);
	gcc_jit_extended_asm_add_output_operand(s, NULL, width == 16 ? "+v" : "+x", to);
	gcc_jit_extended_asm_add_input_operand(s, NULL, constraint_of(e, template, 1, width, a, memory), a);
	gcc_jit_extended_asm_add_input_operand(s, NULL, constraint_of(e, template, 2, width, b, memory), b);
}

gcc_jit_rvalue *jit_asm_from_memory(struct emitter *e, enum jit_asm op, int width, gcc_jit_type *result,
				    gcc_jit_lvalue *from)
{
	gcc_jit_lvalue *to = jit_local(e, result);
	gcc_jit_extended_asm *s =
	    gcc_jit_block_add_extended_asm(e->at, e->location, template_of(e, op, width));
	gcc_jit_extended_asm_add_output_operand(s, NULL, width == 16 ? "=v" : "=x", to);
	gcc_jit_extended_asm_add_input_operand(s, NULL, "m", gcc_jit_lvalue_as_rvalue(from));
	return gcc_jit_lvalue_as_rvalue(to);
}

void jit_asm_to_memory(struct emitter *e, enum jit_asm op, int width, gcc_jit_lvalue *to, gcc_jit_rvalue *v)
{
	gcc_jit_extended_asm *s =
	    gcc_jit_block_add_extended_asm(e->at, e->location, template_of(e, op, width));
	gcc_jit_extended_asm_add_output_operand(s, NULL, "=m", to);
	gcc_jit_extended_asm_add_input_operand(s, NULL, width == 16 ? "v" : "x", v);
}
