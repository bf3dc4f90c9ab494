/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Code in this process, by LLVM's ORC: each unit is a symbol, which is compiled when it is first looked up and linked to
 * those that it calls.
 *
 * ORC runs a materialisation in the thread that looks the symbol up.  Each has a context and a target machine of
 * its own, since LLJIT's compiler has one for all threads; so units go to its linking layer as objects, after the sink has
 * seen them. */
#include "jit/llvm/emit.h"

#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <stdlib.h>

/* What a materialisation needs.  It writes `diags`, and whoever has looked the symbol up reads them after it. */
struct symbol {
	struct jit_process *process;
	const struct jit_unit *unit;
	bool defined; /* as a symbol, which a failure takes back */
	struct diags diags;
};

struct jit_process {
	const struct ilir_module *m;
	const struct jit_options *options;
	struct jit_sink sink;
	LLVMOrcLLJITRef jit;
	LLVMOrcObjectLayerRef linker;
	const struct jit_unit *unit; /* the first */
	int units;
	struct symbol *symbol; /* by unit */
};

/* --- failures --- */

static bool report_failure(struct jit_process *p, struct diags *d, const char *what)
{
	return diag_add(d, DIAG_COMPILE_FAILED, (struct diag_at){0},
			"let this process make memory executable (MemoryDenyWriteExecute of systemd, SELinux's execmem), "
			"or use the back end 'interpreter'",
			"LLVM could not link the code of '%s': %s", p->m->name, what);
}

/* Reports the error and frees it; true when there is none. */
static bool check_error(struct jit_process *p, LLVMErrorRef error, struct diags *d)
{
	if (!error)
		return true;
	char *message = LLVMGetErrorMessage(error);
	report_failure(p, d, message);
	LLVMDisposeErrorMessage(message);
	return false;
}

/* What goes wrong is told by the look-up. */
static void ignore_error(void *context, LLVMErrorRef error)
{
	(void)context;
	LLVMConsumeError(error);
}

/* --- symbols --- */

static void materialize_unit(void *context, LLVMOrcMaterializationResponsibilityRef r)
{
	struct symbol *s = context;
	struct jit_process *p = s->process;
	double seconds[JIT_PHASES] = {0};
	LLVMMemoryBufferRef object = jit_compile_unit(p->m, p->options, s->unit, seconds, &s->diags);
	if (!object) {
		LLVMOrcMaterializationResponsibilityFailMaterialization(r);
		LLVMOrcDisposeMaterializationResponsibility(r);
		return;
	}
	p->sink.put(p->sink.context, s->unit, LLVMGetBufferStart(object), LLVMGetBufferSize(object), seconds);
	LLVMOrcObjectLayerEmit(p->linker, r, object);
}

static void discard_unit(void *context, LLVMOrcJITDylibRef dylib, LLVMOrcSymbolStringPoolEntryRef symbol)
{
	(void)context, (void)dylib, (void)symbol;
}

static void destroy_unit(void *context)
{
	(void)context;
}

static bool define_symbol(struct symbol *s, struct diags *d)
{
	struct jit_process *p = s->process;
	LLVMOrcCSymbolFlagsMapPair pair = {
	    LLVMOrcLLJITMangleAndIntern(p->jit, s->unit->name),
	    {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}};
	LLVMOrcMaterializationUnitRef unit = LLVMOrcCreateCustomMaterializationUnit(s->unit->name, s, &pair, 1, NULL,
										    materialize_unit, discard_unit, destroy_unit);
	LLVMErrorRef error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(p->jit), unit);
	if (error)
		LLVMOrcDisposeMaterializationUnit(unit);
	s->defined = !error;
	return check_error(p, error, d);
}

static bool define_all(struct jit_process *p, struct diags *d)
{
	bool ok = true;
	for (int i = 0; ok && i < p->units; i++) {
		p->symbol[i].process = p;
		p->symbol[i].unit = &p->unit[i];
		diags_init(&p->symbol[i].diags, &allocator_default);
		ok = define_symbol(&p->symbol[i], d);
	}
	return ok;
}

/* --- the process --- */

void jit_process_close(struct jit_process *p)
{
	if (p->jit)
		LLVMConsumeError(LLVMOrcDisposeLLJIT(p->jit));
	for (int i = 0; i < p->units && p->symbol; i++)
		diags_free(&p->symbol[i].diags);
	free(p->symbol);
	free(p);
}

/* LLJIT links for the machine at hand, whatever the units are compiled for. */
static bool start_process(struct jit_process *p, struct diags *d)
{
	char *message = NULL;
	LLVMTargetMachineRef machine = jit_machine_new(p->options, &message);
	if (!machine) {
		report_failure(p, d, message);
		LLVMDisposeMessage(message);
		return false;
	}
	LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
	LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
						      LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
	if (!check_error(p, LLVMOrcCreateLLJIT(&p->jit, builder), d)) {
		p->jit = NULL;
		return false;
	}
	LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(p->jit), ignore_error, NULL);
	p->linker = LLVMOrcLLJITGetObjLinkingLayer(p->jit);
	return define_all(p, d);
}

struct jit_process *jit_process_open(const struct ilir_module *m, const struct jit_options *o,
				     const struct jit_unit *unit, int units, struct jit_sink sink, struct diags *d)
{
	struct jit_process *p = calloc(1, sizeof *p);
	struct symbol *symbol = calloc(units + 1, sizeof *symbol);
	if (!p || !symbol) {
		free(p);
		free(symbol);
		diag_add(d, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for the code of '%s'", m->name);
		return NULL;
	}
	*p = (struct jit_process){
	    .m = m, .options = o, .sink = sink, .unit = unit, .units = units, .symbol = symbol};
	if (start_process(p, d))
		return p;
	jit_process_close(p);
	return NULL;
}

/* Reports what went wrong when the symbol was materialised, if that did. */
static bool report_symbol(struct symbol *s, struct diags *d)
{
	bool any = s->diags.n;
	for (size_t i = 0; i < s->diags.n; i++)
		diag_add(d, s->diags.at[i].id, (struct diag_at){0}, s->diags.at[i].hint, "%s", s->diags.at[i].message);
	diags_free(&s->diags);
	return any;
}

void *jit_process_find(struct jit_process *p, const struct jit_unit *unit, struct diags *d)
{
	struct symbol *s = &p->symbol[unit - p->unit];
	LLVMOrcExecutorAddress address = 0;
	if (!s->defined && !define_symbol(s, d))
		return NULL;
	LLVMErrorRef error = LLVMOrcLLJITLookup(p->jit, &address, unit->name);
	if (!error)
		return (void *)(uintptr_t)address;
	s->defined = false;
	if (report_symbol(s, d))
		LLVMConsumeError(error);
	else
		check_error(p, error, d);
	return NULL;
}
