/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The processor that libgccjit makes code for, and its other options. */
#include "base/cpu.h"
#include "jit/gccjit/emit.h"

/* libgccjit refuses -march=native, so a target of base/targets.h is chosen instead.  Every processor with
 * AVX-512 has prefetchw, which x86-64-v4 leaves out. */
static const struct jit_processor processors[TARGETS] = {
    [TARGET_GENERIC] = {JIT_SSE, "-march=x86-64", {NULL, NULL}},
    [TARGET_AVX2] = {JIT_AVX, "-march=x86-64-v3", {NULL, NULL}},
    [TARGET_AVX512] = {JIT_AVX512, "-march=x86-64-v4", {"-mprefer-vector-width=512", "-mprfchw"}},
    [TARGET_AMX] = {JIT_AVX512, "-march=x86-64-v4", {"-mprefer-vector-width=512", "-mprfchw"}},
};

const struct jit_processor *jit_find_processor(const struct target *t)
{
	return processors[t->id].march ? &processors[t->id] : NULL;
}

/* Only code for this very machine may use what its target does not have. */
struct jit_dots jit_find_dots(const struct jit_options *o)
{
	enum jit_set set = processors[o->target->id].set;
	return (struct jit_dots){.vex = o->native && set != JIT_SSE && !cpu_lacks("avxvnni"),
				 .evex = o->target->amx_int8 ||
					 (o->native && set == JIT_AVX512 && !cpu_lacks("avx512vnni avx512vl")),
				 .bf16 = o->target->amx_int8 ||
					 (o->native && set == JIT_AVX512 && !cpu_lacks("avx512bf16 avx512vl")),
				 .halves = o->native && set == JIT_AVX512 && !cpu_lacks("avx512fp16 avx512vl")};
}

static const char *const options[] = {
    /* Arithmetic is that of ilir/ilir_ops.def: integers wrap, a product and a sum stay two roundings. */
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    /* Our own passes have decided on vectors. */
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    /* These would keep constants in registers that accumulators need. */
    "-fno-gcse",
    "-fno-move-loop-invariants",
    /* Code imports nothing: no memcpy for a loop, no guard, and nothing that the linker does not know. */
    "-fno-tree-loop-distribute-patterns",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fasynchronous-unwind-tables",
    "-fno-exceptions",
    "-fPIC",
    "-fvisibility=hidden",
};

void jit_set_options(gcc_jit_context *context, const struct jit_processor *p, bool lines)
{
	gcc_jit_context_set_bool_option(context, GCC_JIT_BOOL_OPTION_DEBUGINFO, lines);
	gcc_jit_context_set_bool_print_errors_to_stderr(context, 0);
	gcc_jit_context_set_bool_allow_unreachable_blocks(context, 1);
	gcc_jit_context_set_int_option(context, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 2);
	gcc_jit_context_add_command_line_option(context, p->march);
	for (size_t i = 0; i < sizeof p->option / sizeof *p->option; i++)
		if (p->option[i])
			gcc_jit_context_add_command_line_option(context, p->option[i]);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		gcc_jit_context_add_command_line_option(context, options[i]);
}
