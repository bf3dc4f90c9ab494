/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Texts of what there is between the stages of the compile leg. */
#include "api/compilation.h"

#include <string.h>

static const char *const before_passes[] = {"ra",    "written", "derivation", "subop", "refactor",
					    "hoist", "sched",	"choices",    "lower"};
enum { BEFORE = sizeof before_passes / sizeof *before_passes };

/* The loops, the IR of each back end, assembly. */
static const char *after_passes(size_t i)
{
	size_t backends = 0;
	while (jit_backend_name(backends))
		backends++;
	return i == 0 ? "ilir" : i <= backends ? jit_backend_name(i - 1) : i == backends + 1 ? "asm" : NULL;
}

const char *compile_stage(size_t i)
{
	int passes = 0;
	while (ilir_pass_at(passes))
		passes++;
	if (i < BEFORE)
		return before_passes[i];
	i -= BEFORE;
	if (i < (size_t)passes)
		return ilir_pass_at(i)->name;
	i -= passes;
	return after_passes(i);
}

/* Whether a stage is what a back end makes: its own IR under its name, or assembly. */
static bool is_code(const char *stage)
{
	bool is = strcmp(stage, "asm") == 0;
	for (int i = 0; jit_backend_name(i); i++)
		is |= strcmp(stage, jit_backend_name(i)) == 0;
	return is;
}

static bool dump_code(struct compilation *c, const char *stage, struct str *s)
{
	struct jit_options options = compile_jit_options(c);
	enum jit_text what = strcmp(stage, "asm") == 0 ? JIT_TEXT_ASM : JIT_TEXT_IR;
	const char *name = what == JIT_TEXT_IR	   ? stage
			   : compile_interprets(c->options) ? jit_backend_usual(c->arena)
						   : c->options->backend;
	const struct jit_backend *backend = jit_backend_load(name, c->diags);
	return backend && jit_print(backend, &c->module, &options, what, s, c->diags);
}

/* A kernel counts alone, in a module that has no other. */
static void dump_loops(const struct compilation *c, struct str *s)
{
	const char *separator = "# intermediates, neither states nor outputs, that kernels store to memory: ";
	for (size_t k = 0; k < c->module.kernels.n; k++, separator = ", ") {
		struct ilir_module alone = c->module;
		alone.kernels.at += k;
		alone.kernels.n = 1;
		str_printf(s, "%s%s %d", separator, alone.kernels.at->name,
			   ilir_stored_intermediates(&alone));
	}
	str_puts(s, "\n");
	ilir_print(&c->module, s);
}

bool compile_dump(struct arena *arena, struct diags *diags, const struct ra_model *model,
		  const int64_t *sizes, const struct compile_options *options, const char *stage,
		  struct str *s)
{
	struct sub_trace trace = {.texts = strcmp(stage, "derivation") == 0};
	struct compilation c = {.arena = arena,
				.diags = diags,
				.model = model,
				.sizes = sizes,
				.options = options,
				.trace = &trace};
	if (strcmp(stage, "ra") == 0)
		return ra_print(model, s), true;
	if (!compile_to_program(&c))
		return false;
	if (strcmp(stage, "written") == 0)
		return sub_print(&c.written, s), true;
	if (trace.texts)
		return sub_print_trace(&trace, s), true;
	if (strcmp(stage, "subop") == 0)
		return sub_print(&c.folded, s), true;
	if (strcmp(stage, "refactor") == 0)
		return compile_to_plan(&c) && (sub_print(&c.refactored, s), true);
	if (strcmp(stage, "hoist") == 0)
		return compile_to_plan(&c) && (sub_print(&c.program, s), true);
	if (!compile_to_schedule(&c))
		return false;
	if (strcmp(stage, "sched") == 0)
		return sched_print(&c.sched, &c.plan, s), true;
	if (strcmp(stage, "choices") == 0)
		return compile_print_choices(&c, s), true;
	if (!compile_to_loops(&c))
		return false;
	if (strcmp(stage, "lower") == 0)
		return dump_loops(&c, s), true;
	if (!compile_run_passes(&c, stage))
		return false;
	if (is_code(stage))
		return dump_code(&c, stage, s);
	return dump_loops(&c, s), true;
}
