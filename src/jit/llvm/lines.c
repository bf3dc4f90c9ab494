/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tables of lines: a statement's instructions are on its line of the listing.  image/link.h takes the lines
 * out of the object, and nothing else, so files and functions have any names. */
#include "jit/llvm/emit.h"

#include <string.h>

static void add_module_flag(struct emitter *e, const char *name, unsigned value)
{
	LLVMTypeRef type = LLVMInt32TypeInContext(e->context);
	LLVMAddModuleFlag(e->module, LLVMModuleFlagBehaviorWarning, name, strlen(name),
			  LLVMValueAsMetadata(LLVMConstInt(type, value, false)));
}

void jit_begin_lines(struct emitter *e)
{
	enum { DWARF = 4 };
	static const char producer[] = "espalier";
	const char *name = e->m->name;
	if (!e->lines)
		return;
	add_module_flag(e, "Debug Info Version", LLVMDebugMetadataVersion());
	add_module_flag(e, "Dwarf Version", DWARF);
	e->describe = LLVMCreateDIBuilder(e->module);
	e->file = LLVMDIBuilderCreateFile(e->describe, name, strlen(name), "", 0);
	LLVMDIBuilderCreateCompileUnit(e->describe, LLVMDWARFSourceLanguageC99, e->file, producer,
				       strlen(producer), true, "", 0, 0, "", 0,
				       LLVMDWARFEmissionLineTablesOnly, 0, false, false, "", 0, "", 0);
	e->signature = LLVMDIBuilderCreateSubroutineType(e->describe, e->file, NULL, 0, LLVMDIFlagZero);
}

void jit_end_lines(struct emitter *e)
{
	if (!e->lines)
		return;
	LLVMDIBuilderFinalize(e->describe);
	LLVMDisposeDIBuilder(e->describe);
}

static LLVMMetadataRef location_of(const struct emitter *e, int line)
{
	return LLVMDIBuilderCreateDebugLocation(e->context, e->lines + line - 1, 0, e->scope, NULL);
}

void jit_begin_function(struct emitter *e, const struct ilir_kernel *k, const char *name)
{
	unsigned line = e->lines + k->line - 1;
	if (!e->lines)
		return;
	e->scope = LLVMDIBuilderCreateFunction(e->describe, e->file, name, strlen(name), "", 0, e->file, line,
					       e->signature, false, true, line, LLVMDIFlagZero, true);
	LLVMSetSubprogram(e->function, e->scope);
	LLVMSetCurrentDebugLocation2(e->entry, location_of(e, k->line));
	jit_set_line(e, k->line);
}

void jit_set_line(struct emitter *e, int line)
{
	if (e->lines)
		LLVMSetCurrentDebugLocation2(e->at, location_of(e, line));
}
