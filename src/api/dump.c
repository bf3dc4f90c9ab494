/* Texts of what there is between the stages of the compile leg. */
#include "api/compilation.h"

#include <string.h>

static const char *const before_passes[] = {"ra",	"written", "derivation", "subop",
					    "refactor", "hoist",   "sched",	 "lower"};
static const char *const after_passes[] = {"ilir", "llvm", "asm"};
enum {
	BEFORE = sizeof before_passes / sizeof *before_passes,
	AFTER = sizeof after_passes / sizeof *after_passes
};

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
	return i < AFTER ? after_passes[i] : NULL;
}

static bool dump_code(struct compilation *c, enum jit_text what, struct str *s)
{
	struct jit_options options = compile_jit_options(c);
	const struct jit_backend *backend =
	    jit_backend_load(compile_interprets(c) ? "llvm" : c->options->backend, c->diags);
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
	if (!compile_to_loops(&c))
		return false;
	if (strcmp(stage, "lower") == 0)
		return dump_loops(&c, s), true;
	if (!compile_run_passes(&c, stage))
		return false;
	if (strcmp(stage, "llvm") == 0 || strcmp(stage, "asm") == 0)
		return dump_code(&c, strcmp(stage, "asm") == 0 ? JIT_TEXT_ASM : JIT_TEXT_IR, s);
	return dump_loops(&c, s), true;
}
