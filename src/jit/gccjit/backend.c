/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The plug-in's entry: compiles all kernels in one context, in a process of its own. */
#include "jit/gccjit/apart.h"
#include "jit/gccjit/emit.h"

#include "base/str.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

/* One compilation, which the child runs. */
struct job {
	const struct ilir_module *m;
	const struct jit_options *options;
	enum product { AS_IR, AS_ASSEMBLY, AS_OBJECT } product;
	struct apart apart;
};

/* --- in the child --- */

static bool report_problem(struct apart *a, const char *kernel, const char *what)
{
	if (kernel)
		snprintf(a->report.culprit, sizeof a->report.culprit, "kernel '%s' of ", kernel);
	snprintf(a->report.reason, sizeof a->report.reason, "%s", what);
	return false;
}

static double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static bool emit_module(struct job *j, struct apart *a, gcc_jit_context *context, struct arena *arena)
{
	struct emitter e = {.m = j->m,
			    .arena = arena,
			    .context = context,
			    .processor = jit_find_processor(j->options->target),
			    .dots = jit_find_dots(j->options),
			    .lines = j->options->lines};
	jit_set_options(context, e.processor, e.lines);
	if (!jit_emit_module(&e))
		return report_problem(a, e.culprit, e.problem);
	const char *error = gcc_jit_context_get_first_error(context);
	return error ? report_problem(a, NULL, error) : true;
}

static bool generate_code(const struct job *j, struct apart *a, gcc_jit_context *context)
{
	if (j->product == AS_IR)
		gcc_jit_context_dump_to_file(context, a->made, 0);
	else
		gcc_jit_context_compile_to_file(context,
						j->product == AS_OBJECT ? GCC_JIT_OUTPUT_KIND_OBJECT_FILE
									: GCC_JIT_OUTPUT_KIND_ASSEMBLER,
						a->made);
	const char *error = gcc_jit_context_get_first_error(context);
	return error ? report_problem(a, NULL, error) : true;
}

/* The end of the process frees everything. */
static void compile_in_child(struct apart *a, void *job)
{
	struct job *j = job;
	struct arena arena;
	jmp_buf escape;
	gcc_jit_context *context = gcc_jit_context_acquire();
	arena_init(&arena, &allocator_default);
	double begin = clock_seconds();
	if (!context || arena_guard(&arena, &escape)) {
		report_problem(a, NULL, "no memory");
		return;
	}
	bool ok = emit_module(j, a, context, &arena);
	a->report.seconds[JIT_EMIT] = clock_seconds() - begin;
	begin = clock_seconds();
	a->report.ok = ok && generate_code(j, a, context);
	a->report.seconds[JIT_GENERATE] = clock_seconds() - begin;
}

/* --- the back end --- */

_Static_assert((int)APART_TIMES == (int)JIT_PHASES, "the child reports the times of all phases");

/* If the watch ended the child, it has added a diagnostic. */
static bool fail_job(const struct job *j, struct diags *d)
{
	if (j->apart.stopped)
		return false;
	return diag_add(d, DIAG_COMPILE_FAILED, (struct diag_at){0},
			"it needs the assembler as (package binutils) and space in the folder that TMPDIR "
			"names, or /tmp; if "
			"these are there it is a fault of the compiler: please report it; another target or "
			"back end may do "
			"meanwhile",
			"libgccjit could not compile %s'%s': %s", j->apart.report.culprit, j->m->name,
			j->apart.report.reason);
}

/* Sets `has_memory` to false when memory is out: the owner of the text may escape only after the job has
 * ended. */
static bool append_object(struct job *j, struct str *out, bool *has_memory)
{
	jmp_buf escape, *outer = out->arena->escape;
	volatile bool ok = false;
	*has_memory = false;
	if (!arena_guard(out->arena, &escape)) {
		ok = apart_read(&j->apart, out);
		*has_memory = true;
	}
	out->arena->escape = outer;
	return ok;
}

static bool run_job(struct job *j, struct str *out, struct diags *d)
{
	bool has_memory = true;
	if (!jit_find_processor(j->options->target))
		return diag_add(d, DIAG_COMPILE_FAILED, (struct diag_at){0},
				"choose another back end, or a target that has its instruction set",
				"libgccjit makes no code for %s (%s)", j->options->target->name,
				j->options->target->description);
	j->apart = (struct apart){.watch = j->options->watch, .diags = d};
	bool ok = apart_run(&j->apart, compile_in_child, j) && append_object(j, out, &has_memory);
	apart_end(&j->apart);
	if (!has_memory)
		arena_escape(out->arena);
	return ok || fail_job(j, d);
}

/* Compiles all kernels, see `compiles_all`. */
static bool compile_kernels(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
			    struct str *object, double seconds[JIT_PHASES], struct diags *d)
{
	struct job j = {.m = m, .options = o, .product = AS_OBJECT};
	(void)unit;
	bool ok = run_job(&j, object, d);
	memcpy(seconds, j.apart.report.seconds, sizeof j.apart.report.seconds);
	return ok;
}

static bool print_module(const struct ilir_module *m, const struct jit_options *o, enum jit_text what,
			 struct str *out, struct diags *d)
{
	struct job j = {.m = m, .options = o, .product = what == JIT_TEXT_IR ? AS_IR : AS_ASSEMBLY};
	return run_job(&j, out, d);
}

/* The file that libgccjit was loaded from. */
static const char *find_compiler(void)
{
	Dl_info info;
	return dladdr((void *)gcc_jit_context_acquire, &info) ? info.dli_fname : NULL;
}

__attribute__((visibility("default")))
const struct jit_backend espalier_backend = {.abi = JIT_ABI,
					     .name = "gccjit",
					     .compiles_all = true,
					     .compile = compile_kernels,
					     .print = print_module,
					     .compiler = find_compiler};
