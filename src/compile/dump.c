/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The text of each stage of the compile leg. */
#include "compile/compilation.h"
#include "mutate/mutant_lines.h"
#include "split/target_split.h"

#include <string.h>

/* --- compiling up to a stage; false after diagnostics --- */

static bool reach_model(struct compilation *c, const char *stage)
{
	(void)c, (void)stage;
	return true;
}

static bool reach_written(struct compilation *c, const char *stage)
{
	(void)stage;
	return compile_to_written(c);
}

static bool reach_program(struct compilation *c, const char *stage)
{
	return compile_to_written(c) && compile_run_program_passes(c, stage);
}

/* Up to the last pass that no schedule steers. */
static bool reach_subop(struct compilation *c, const char *stage)
{
	(void)stage;
	const char *last = NULL;
	for (int i = 0; program_pass_at(i); i++)
		last = program_pass_at(i)->move ? last : program_pass_at(i)->name;
	return reach_program(c, last);
}

/* The program of which mutants are. */
static bool reach_unmutated(struct compilation *c, const char *stage)
{
	(void)stage;
	return reach_program(c, "group");
}

/* Up to the pass before the target split. */
static bool reach_products(struct compilation *c, const char *stage)
{
	(void)stage;
	const char *last = NULL;
	for (int i = 0; strcmp(program_pass_at(i)->name, "cut") != 0; i++)
		last = program_pass_at(i)->when(c) ? program_pass_at(i)->name : last;
	return reach_program(c, last);
}

static bool reach_schedule(struct compilation *c, const char *stage)
{
	(void)stage;
	return reach_program(c, NULL) && compile_to_schedule(c);
}

static bool reach_lower(struct compilation *c, const char *stage)
{
	return reach_schedule(c, stage) && compile_to_loops(c);
}

/* Up to the pass over loops of this name; for a name that is no pass, after all of them. */
static bool reach_loops(struct compilation *c, const char *stage)
{
	return reach_lower(c, stage) && compile_run_passes(c, stage);
}

/* --- printing --- */

static bool print_model(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return ra_print(c->model, s), true;
}

static bool print_written(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return sub_print(&c->written, s), true;
}

static bool print_boxes(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return mutate_print_boxes(&c->written, s), true;
}

/* Whether the compilation goes on; no diagnostic says that a search does not, as what it has found is of use. */
static bool search_goes_on(void *context)
{
	const struct compilation *c = context;
	const struct jit_watch *w = &c->options->watch;
	struct diags ignored;
	diags_init(&ignored, c->diags->allocator);
	bool on = !w->goes_on || w->goes_on(w->context, &ignored);
	diags_free(&ignored);
	return on;
}

/* Prints mutants until nobody waits for more. */
static void search_mutants(struct compilation *c, struct sub_program *p, const uint32_t *number, bool every, struct str *s)
{
	struct mutate_watch watch = {search_goes_on, c};
	if (!mutate_print_mutants(p, number, c->options->math == REWRITE_EXACT, every, &watch, s))
		str_puts(s, "# the search was ended here\n");
}

/* The mutants of the program with those that the schedule chooses, under the names of the program without. */
static bool print_further_mutants(struct compilation *c, bool every, struct str *s)
{
	struct sub_program mutated;
	sub_ref *now = ARENA_ARRAY(c->arena, sub_ref, c->program.values.n);
	sub_init(&mutated, c->arena, c->model->name);
	if (!sched_apply_mutants(&mutated, &c->program, &c->fusion, c->options->math == REWRITE_EXACT, now, c->diags))
		return false;
	uint32_t *number = ARENA_ARRAY(c->arena, uint32_t, mutated.values.n);
	for (uint32_t i = (uint32_t)c->program.values.n; i-- > 1;)
		number[now[i].i] = i;
	return search_mutants(c, &mutated, number, every, s), true;
}

static bool print_mutants(struct compilation *c, const char *stage, struct str *s)
{
	bool every = strcmp(stage, "checked-mutants") == 0;
	if (c->fusion.mutants)
		return print_further_mutants(c, every, s);
	return search_mutants(c, &c->program, NULL, every, s), true;
}

static bool print_products(struct compilation *c, const char *stage, struct str *s)
{
	struct split_products products;
	struct sub_program cut;
	const struct rewrite_options options = compile_rewrite_options(c->options);
	if (!compile_check_kept(c))
		return false;
	split_find_products(&products, c->arena, &c->program, &options);
	sub_init(&cut, c->arena, c->program.name);
	if (strcmp(stage, "q") == 0)
		split_print_products(&products, s);
	else if (strcmp(stage, "split") == 0)
		split_print_functions(&products, s);
	else
		split_cut_program(&cut, &products), split_print_packing(&products, s);
	return true;
}

static bool print_derivation(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return rewrite_print_trace(c->trace, s), true;
}

static bool print_program(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return sub_print(&c->program, s), true;
}

static bool print_schedule(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return sched_print(&c->sched, &c->plan, s), true;
}

static bool print_choices(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return compile_print_choices(c, s), true;
}

/* Counts the intermediates of each kernel in a module that has only this one. */
void compile_print_loops(struct compilation *c, struct str *s)
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
	c->lines = 2;
	ilir_print_numbered(&c->module, s);
}

static bool print_loops(struct compilation *c, const char *stage, struct str *s)
{
	(void)stage;
	return compile_print_loops(c, s), true;
}

static bool print_code(struct compilation *c, const char *stage, struct str *s)
{
	struct jit_options options = compile_jit_options(c);
	enum jit_text what = strcmp(stage, "asm") == 0 ? JIT_TEXT_ASM : JIT_TEXT_IR;
	const char *name = what == JIT_TEXT_IR		    ? stage
			   : compile_interprets(c->options) ? jit_backend_usual(c->arena)
							    : c->options->backend;
	const struct jit_backend *backend = jit_backend_load(name, c->diags);
	return backend && jit_print(backend, &c->module, &options, what, s, c->diags);
}

/* --- the stages --- */

struct stage {
	const char *name;
	bool (*reach)(struct compilation *, const char *stage);
	bool (*print)(struct compilation *, const char *stage, struct str *);
};

/* All stages but those of back ends. */
static const struct stage stages[] = {
    {"ra", reach_model, print_model},
    {"written", reach_written, print_written},
    {"boxes", reach_written, print_boxes},
    {"mutants", reach_unmutated, print_mutants},
    {"checked-mutants", reach_unmutated, print_mutants},
    {"q", reach_products, print_products},
    {"split", reach_products, print_products},
    {"packing", reach_products, print_products},
    {"derivation", reach_subop, print_derivation},
#define REWRITE_PASS(name, when, meaning) {#name, reach_program, print_program},
#define MOVE_PASS(name, when, moving, meaning)
#define SCHED_PASS(name, when, meaning) {#name, reach_program, print_program},
#include "compile/program_passes.def"
#undef REWRITE_PASS
#undef MOVE_PASS
#undef SCHED_PASS
    {"subop", reach_subop, print_program},
#define REWRITE_PASS(name, when, meaning)
#define MOVE_PASS(name, when, moving, meaning) {#name, reach_program, print_program},
#define SCHED_PASS(name, when, meaning)
#include "compile/program_passes.def"
#undef REWRITE_PASS
#undef MOVE_PASS
#undef SCHED_PASS
    {"sched", reach_schedule, print_schedule},
    {"choices", reach_schedule, print_choices},
    {"lower", reach_lower, print_loops},
#define ILIR_PASS(name, establishes, meaning) {#name, reach_loops, print_loops},
#include "ilir/passes.def"
#undef ILIR_PASS
    {"ilir", reach_loops, print_loops},
};

enum { STAGES = sizeof stages / sizeof *stages };

/* Whether an earlier row has the same name: a pass may have two rows, and is one stage. */
static bool is_repeated(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(stages[k].name, stages[i].name) == 0)
			return true;
	return false;
}

/* The i-th stage of back ends: the IR of each, then assembly. */
static const char *code_stage(size_t i)
{
	size_t backends = 0;
	while (jit_backend_name(backends))
		backends++;
	return i < backends ? jit_backend_name(i) : i == backends ? "asm" : NULL;
}

const char *compile_stage(size_t i)
{
	for (size_t k = 0; k < STAGES; k++)
		if (!is_repeated(k) && i-- == 0)
			return stages[k].name;
	return code_stage(i);
}

static struct stage find_stage(const char *name)
{
	for (size_t i = 0; i < STAGES; i++)
		if (strcmp(stages[i].name, name) == 0)
			return stages[i];
	return (struct stage){name, reach_loops, print_code};
}

bool compile_dump(struct arena *arena, struct diags *diags, const struct ra_model *model,
		  const int64_t *sizes, const struct compile_options *options, const char *stage,
		  struct str *s)
{
	struct stage of = find_stage(stage);
	struct rewrite_trace trace = {.texts = of.print == print_derivation};
	struct compilation c = {.arena = arena,
				.diags = diags,
				.model = model,
				.sizes = sizes,
				.options = options,
				.trace = &trace};
	return of.reach(&c, stage) && of.print(&c, stage, s);
}
