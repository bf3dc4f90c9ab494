/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The plug-in's entry: emit, check, optimise, generate an object. */
#include "jit/llvm/emit.h"

#include "base/str.h"

#include <dlfcn.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <time.h>

/* The passes that our own do not replace: registers become values (sroa), equal loads and row addresses are
 * computed once (early-cse), row addresses are hoisted out of the loop over k (licm).  doc/performance/kernels.md has
 * measurements of these and of others.  Lower levels of code generation are hardly faster; its loop strength
 * reduction finds nothing (emit.c). */
static const char pipeline[] = "function(sroa,early-cse,loop-mssa(licm))";

/* The resources of one compilation, which end_job frees. */
struct job {
	const struct ilir_module *m;
	const struct jit_options *options;
	const struct jit_unit *unit; /* what to compile, NULL = all kernels */
	struct diags *diags;
	double *seconds; /* of the phases; NULL = not needed */
	struct arena arena;
	const char *names; /* of the kernels, for messages */
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder[2];
	LLVMTargetMachineRef machine;
	LLVMMemoryBufferRef output; /* object or assembly */
	char error[400];	    /* LLVM's first error while it generated code */
};

/* --- failures --- */

static bool fail_job(struct job *j, const char *kernels, const char *what)
{
	return diag_add(
	    j->diags, DIAG_COMPILE_FAILED, (struct diag_at){0},
	    "this is a fault of the compiler, not of the model: please report it; another target or back "
	    "end may do meanwhile",
	    "LLVM could not compile kernel %s of '%s': %s", kernels, j->m->name, what);
}

/* Reports the message and frees it. */
static bool fail_message(struct job *j, char *message)
{
	fail_job(j, j->names, message ? message : "no reason given");
	LLVMDisposeMessage(message);
	return false;
}

/* Reports the error and frees it; true when there is none. */
static bool check_error(struct job *j, LLVMErrorRef error)
{
	if (!error)
		return true;
	char *message = LLVMGetErrorMessage(error);
	fail_job(j, j->names, message);
	LLVMDisposeErrorMessage(message);
	return false;
}

/* Keeps LLVM's first error.  Without this handler LLVM prints, and ends the process after an error. */
static void note_error(LLVMDiagnosticInfoRef info, void *context)
{
	struct job *j = context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || j->error[0])
		return;
	char *text = LLVMGetDiagInfoDescription(info);
	snprintf(j->error, sizeof j->error, "%s", text[0] ? text : "unknown error");
	LLVMDisposeMessage(text);
}

/* --- a job --- */

static const char *list_kernels(struct job *j)
{
	struct str s = str_in(&j->arena);
	if (j->unit)
		str_printf(&s, "'%s'", j->unit->name);
	else
		for (int i = 0; i < (int)j->m->kernels.n; i++)
			str_printf(&s, "%s'%s'", s.n ? ", " : "", j->m->kernels.at[i].name);
	return str_text(&s);
}

static void end_job(struct job *j)
{
	if (j->output)
		LLVMDisposeMemoryBuffer(j->output);
	for (int i = 0; i < 2; i++)
		if (j->builder[i])
			LLVMDisposeBuilder(j->builder[i]);
	if (j->module)
		LLVMDisposeModule(j->module);
	if (j->context)
		LLVMContextDispose(j->context);
	if (j->machine)
		LLVMDisposeTargetMachine(j->machine);
	arena_free(&j->arena);
}

static void start_module(struct job *j)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->machine);
	char *triple = LLVMGetTargetMachineTriple(j->machine);
	j->context = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(j->context, note_error, j);
	j->module = LLVMModuleCreateWithNameInContext(j->m->name, j->context);
	LLVMSetModuleDataLayout(j->module, layout);
	LLVMSetTarget(j->module, triple);
	for (int i = 0; i < 2; i++)
		j->builder[i] = LLVMCreateBuilderInContext(j->context);
	LLVMDisposeMessage(triple);
	LLVMDisposeTargetData(layout);
}

static bool emit_module(struct job *j)
{
	struct emitter e = {.m = j->m,
			    .arena = &j->arena,
			    .context = j->context,
			    .module = j->module,
			    .has_fma = jit_machine_has_fma(j->options),
			    .dots = jit_machine_dots(j->options),
			    .has_half = jit_machine_has_half(j->options),
			    .lines = j->options->lines};
	char quoted[200];
	e.at = j->builder[0];
	e.entry = j->builder[1];
	if (jit_emit_module(&e, j->unit, 32 * j->options->target->lanes))
		return true;
	snprintf(quoted, sizeof quoted, "'%s'", e.culprit);
	return fail_job(j, quoted, e.problem);
}

static bool verify_module(struct job *j)
{
	char *message = NULL;
	if (LLVMVerifyModule(j->module, LLVMReturnStatusAction, &message))
		return fail_message(j, message);
	LLVMDisposeMessage(message);
	return true;
}

static bool optimize_module(struct job *j)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error = LLVMRunPasses(j->module, pipeline, j->machine, options);
	LLVMDisposePassBuilderOptions(options);
	return check_error(j, error);
}

static double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static bool time_phase(struct job *j, enum jit_phase phase, bool (*work)(struct job *))
{
	double begin = clock_seconds();
	bool ok = work(j);
	if (j->seconds)
		j->seconds[phase] = clock_seconds() - begin;
	return ok;
}

static bool build_module(struct job *j)
{
	char *message;
	j->names = list_kernels(j);
	j->machine = jit_machine_new(j->options, &message);
	if (!j->machine)
		return fail_message(j, message);
	start_module(j);
	return time_phase(j, JIT_EMIT, emit_module) && time_phase(j, JIT_CHECK, verify_module) &&
	       time_phase(j, JIT_OPTIMIZE, optimize_module);
}

/* Memory may run out anywhere in here; end_job then frees what LLVM holds. */
static bool guarded_build(struct job *j)
{
	jmp_buf escape;
	if (arena_guard(&j->arena, &escape))
		return diag_add(j->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory to compile '%s'", j->m->name);
	return build_module(j);
}

/* Fills the rest of a job, which has its module, options, kernel and diagnostics. */
static bool start_job(struct job *j)
{
	arena_init(&j->arena, &allocator_default);
	return guarded_build(j);
}

static bool generate_code(struct job *j, LLVMCodeGenFileType what)
{
	char *message = NULL;
	if (LLVMTargetMachineEmitToMemoryBuffer(j->machine, j->module, what, &message, &j->output))
		return fail_message(j, message);
	return j->error[0] ? fail_job(j, j->names, j->error) : true;
}

static bool generate_object(struct job *j)
{
	return generate_code(j, LLVMObjectFile);
}

/* --- the back end --- */

/* False when memory is out: the caller of the back end owns the text, and may escape only after our job has
 * ended. */
static bool append_text(struct str *out, const char *text, size_t length)
{
	jmp_buf escape, *outer = out->arena->escape;
	bool ok = false;
	if (!arena_guard(out->arena, &escape)) {
		str_add(out, text, length);
		ok = true;
	}
	out->arena->escape = outer;
	return ok;
}

static bool append_ir(struct job *j, struct str *out)
{
	char *text = LLVMPrintModuleToString(j->module);
	bool ok = append_text(out, text, strlen(text));
	LLVMDisposeMessage(text);
	return ok;
}

static bool append_output(struct job *j, struct str *out)
{
	return append_text(out, LLVMGetBufferStart(j->output), LLVMGetBufferSize(j->output));
}

/* Ends the job, then escapes if memory for `out` ran out. */
static bool finish_job(struct job *j, bool ok, bool has_memory, struct str *out)
{
	end_job(j);
	if (!has_memory)
		arena_escape(out->arena);
	return ok;
}

LLVMMemoryBufferRef jit_compile_unit(const struct ilir_module *m, const struct jit_options *o,
				     const struct jit_unit *unit, double seconds[JIT_PHASES], struct diags *d)
{
	struct job j = {.m = m, .options = o, .unit = unit, .diags = d, .seconds = seconds};
	bool ok = start_job(&j) && time_phase(&j, JIT_GENERATE, generate_object);
	LLVMMemoryBufferRef object = j.output;
	j.output = ok ? NULL : object;
	end_job(&j);
	return ok ? object : NULL;
}

static bool compile_unit(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
			 struct str *to, double seconds[JIT_PHASES], struct diags *d)
{
	LLVMMemoryBufferRef object = jit_compile_unit(m, o, unit, seconds, d);
	if (!object)
		return false;
	bool has_memory = append_text(to, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
	LLVMDisposeMemoryBuffer(object);
	if (!has_memory)
		arena_escape(to->arena);
	return true;
}

static bool print_module(const struct ilir_module *m, const struct jit_options *o, enum jit_text what,
			 struct str *out, struct diags *d)
{
	struct job j = {.m = m, .options = o, .diags = d};
	bool has_memory = true, ok = start_job(&j);
	if (ok && what == JIT_TEXT_IR)
		has_memory = append_ir(&j, out);
	else if (ok && (ok = generate_code(&j, LLVMAssemblyFile)))
		has_memory = append_output(&j, out);
	return finish_job(&j, ok, has_memory, out);
}

/* The file that LLVM was loaded from; the plug-in itself, if it contains LLVM. */
static const char *find_compiler(void)
{
	Dl_info info;
	return dladdr((void *)LLVMContextCreate, &info) ? info.dli_fname : NULL;
}

__attribute__((visibility("default")))
const struct jit_backend espalier_backend = {.abi = JIT_ABI,
					     .name = "llvm",
					     .cuts_rows = true,
					     .compile = compile_unit,
					     .print = print_module,
					     .compiler = find_compiler,
					     .open = jit_process_open,
					     .find = jit_process_find,
					     .close = jit_process_close};
