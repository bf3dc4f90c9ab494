/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a loop module to LLVM's IR: one function per kernel, statements to blocks.  All
 * decisions were made before, by our own passes. */
#include "jit/llvm/emit.h"

#include <stdio.h>

LLVMTypeRef jit_type(const struct emitter *e, struct ilir_type t)
{
	return t.lanes > 1 ? LLVMVectorType(e->scalar[t.dtype], t.lanes) : e->scalar[t.dtype];
}

LLVMTypeRef jit_stored_type(const struct emitter *e, struct ilir_type t)
{
	if (t.dtype == ILIR_BOOL)
		t.dtype = ILIR_U8;
	return jit_type(e, t);
}

LLVMValueRef jit_constant(LLVMTypeRef type, int64_t value)
{
	LLVMValueRef lane[2 * ILIR_MAX_LANES]; /* the halves of as many i32 as there can be (dot.c) */
	bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
	unsigned lanes = vector ? LLVMGetVectorSize(type) : 1;
	for (unsigned i = 0; i < lanes; i++)
		lane[i] = LLVMConstInt(vector ? LLVMGetElementType(type) : type, value, true);
	return vector ? LLVMConstVector(lane, lanes) : lane[0];
}

LLVMValueRef jit_refuse(struct emitter *e, struct ilir_type t, const char *why)
{
	if (!e->problem) {
		e->problem = why;
		e->culprit = e->kernel;
	}
	return LLVMGetPoison(jit_type(e, t));
}

LLVMBasicBlockRef jit_block(struct emitter *e, const char *name)
{
	return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

/* --- statements --- */

/* A register may change with every statement, so values computed for one must not be used for the next. */
static LLVMValueRef value_for_statement(struct emitter *e, ilir_expr x)
{
	LLVMValueRef v = jit_emit_expr(e, x);
	jit_forget(e, 0);
	return v;
}

static void emit_block(struct emitter *, const struct ilir_stmt *);

/* --- loops --- */

/* The same value, of unknown origin until instructions are selected: LLVM then finds no induction variables.
 * Its loop strength reduction would take a quarter of code generation to find the addresses that are here
 * already. */
static LLVMValueRef hide_origin(struct emitter *e, LLVMValueRef v)
{
	static const char name[] = "llvm.expect";
	LLVMTypeRef type = LLVMTypeOf(v);
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef expect = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1);
	LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, &type, 1);
	return LLVMBuildCall2(e->at, signature, expect, (LLVMValueRef[]){v, v}, 2, "");
}

static LLVMValueRef index_constant(const struct emitter *e, int64_t n)
{
	return LLVMConstInt(e->scalar[ILIR_INDEX], n, true);
}

/* Adds an induction variable: a multiple of the loop's variable, a phi at the top of the body. */
static LLVMValueRef make_multiple(struct emitter *e, uint64_t factor)
{
	struct jit_loop *l = &e->loop;
	LLVMBasicBlockRef here = LLVMGetInsertBlock(e->at);
	LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(e->at);
	LLVMPositionBuilderBefore(e->at, LLVMGetBasicBlockTerminator(l->before));
	LLVMValueRef begin = LLVMBuildNSWMul(e->at, l->begin, index_constant(e, factor), "");
	LLVMPositionBuilderBefore(e->at, LLVMGetFirstInstruction(l->body));
	LLVMValueRef phi = LLVMBuildPhi(e->at, e->scalar[ILIR_INDEX], "");
	LLVMAddIncoming(phi, &begin, &l->before, 1);
	LLVMPositionBuilderAtEnd(e->at, here);
	LLVMSetCurrentDebugLocation2(e->at, line);
	l->multiple[l->multiples].factor = factor;
	l->multiple[l->multiples++].phi = phi;
	return phi;
}

LLVMValueRef jit_multiple(struct emitter *e, ilir_expr x, uint64_t factor)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	struct jit_loop *l = &e->loop;
	if (!l->var.i || n->op != ILIR_VAR || n->var.i != l->var.i)
		return NULL;
	if (factor == 1)
		return e->var[l->var.i];
	for (int i = 0; i < l->multiples; i++)
		if (l->multiple[i].factor == factor)
			return l->multiple[i].phi;
	return l->multiples < JIT_MULTIPLES ? make_multiple(e, factor) : NULL;
}

static void advance_variable(struct emitter *e, LLVMValueRef phi, int64_t by, LLVMValueRef *next)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(e->at);
	*next = hide_origin(e, LLVMBuildNSWAdd(e->at, phi, index_constant(e, by), ""));
	LLVMAddIncoming(phi, next, &here, 1);
}

static bool is_innermost(const struct ilir_stmt *s)
{
	for (; s; s = s->next)
		if (s->kind == ILIR_FOR || (s->kind == ILIR_IF && !(is_innermost(s->branch.then) &&
								    is_innermost(s->branch.otherwise))))
			return false;
	return true;
}

/* The test stands at the end and once before the loop: LLVM can hoist invariant loads from this form, since
 * the body is known to run. */
static void emit_loop(struct emitter *e, const struct ilir_stmt *s)
{
	LLVMValueRef begin = value_for_statement(e, s->loop.begin), end = value_for_statement(e, s->loop.end);
	const char *name = e->m->vars.at[s->loop.var.i].name;
	LLVMBasicBlockRef before = LLVMGetInsertBlock(e->at), body = jit_block(e, name),
			  after = jit_block(e, "after");
	bool inner = is_innermost(s->loop.body);
	LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSLT, begin, end, ""), body, after);
	LLVMPositionBuilderAtEnd(e->at, body);
	LLVMValueRef i = LLVMBuildPhi(e->at, e->scalar[ILIR_INDEX], name), next, unused;
	LLVMAddIncoming(i, &begin, &before, 1);
	e->var[s->loop.var.i] = i;
	e->loop = (struct jit_loop){inner ? s->loop.var : (ilir_var){0}, begin, before, body, 0, {{0}}};
	emit_block(e, s->loop.body);
	jit_set_line(e, s->line);
	for (int m = 0; inner && m < e->loop.multiples; m++)
		advance_variable(e, e->loop.multiple[m].phi, e->loop.multiple[m].factor * s->loop.step,
				 &unused);
	e->loop.var = (ilir_var){0};
	advance_variable(e, i, s->loop.step, &next);
	LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSLT, next, end, ""), body, after);
	LLVMPositionBuilderAtEnd(e->at, after);
}

/* Sets the variables of swept loops for a block of this number; returns the block of the innermost one. */
static const struct ilir_stmt *place_block(struct emitter *e, const struct ilir_stmt *s, LLVMValueRef number)
{
	for (; s && s->kind == ILIR_FOR && s->loop.kind == ILIR_SWEPT; s = s->loop.body) {
		LLVMValueRef inside = index_constant(e, ilir_blocks(e->m, s->loop.body));
		LLVMValueRef at = LLVMBuildSDiv(e->at, number, inside, "");
		number = LLVMBuildSRem(e->at, number, inside, "");
		at = LLVMBuildNSWMul(e->at, at, index_constant(e, s->loop.step), "");
		at = LLVMBuildNSWAdd(e->at, at, value_for_statement(e, s->loop.begin), "");
		e->var[s->loop.var.i] = hide_origin(e, at);
	}
	return s;
}

/* A loop over the caller's blocks, counted; their number goes up or down by the kernel's direction. */
static void emit_sweep(struct emitter *e, const struct ilir_stmt *s)
{
	LLVMTypeRef index = e->scalar[ILIR_INDEX];
	LLVMValueRef none = index_constant(e, 0), one = index_constant(e, 1);
	LLVMValueRef first = LLVMGetParam(e->function, 3), blocks = LLVMGetParam(e->function, 4);
	const char *name = e->m->vars.at[s->loop.var.i].name;
	LLVMBasicBlockRef before = LLVMGetInsertBlock(e->at), body = jit_block(e, name),
			  after = jit_block(e, "after");
	LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSGT, blocks, none, ""), body, after);
	LLVMPositionBuilderAtEnd(e->at, body);
	LLVMValueRef number = LLVMBuildPhi(e->at, index, "block"), left = LLVMBuildPhi(e->at, index, "left");
	e->block = number;
	emit_block(e, place_block(e, s, number));
	jit_set_line(e, s->line);
	LLVMValueRef next = hide_origin(e, LLVMBuildNSWAdd(e->at, number, LLVMGetParam(e->function, 5), ""));
	LLVMValueRef rest = LLVMBuildNSWSub(e->at, left, one, "");
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->at);
	LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSGT, rest, none, ""), body, after);
	LLVMAddIncoming(number, (LLVMValueRef[]){first, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
	LLVMAddIncoming(left, (LLVMValueRef[]){blocks, rest}, (LLVMBasicBlockRef[]){before, latch}, 2);
	LLVMPositionBuilderAtEnd(e->at, after);
}

static void emit_branch(struct emitter *e, const struct ilir_stmt *s)
{
	LLVMValueRef condition = value_for_statement(e, s->branch.condition);
	LLVMBasicBlockRef then = jit_block(e, "then"), otherwise = jit_block(e, "else"),
			  join = jit_block(e, "join");
	LLVMBuildCondBr(e->at, condition, then, otherwise);
	LLVMPositionBuilderAtEnd(e->at, then);
	emit_block(e, s->branch.then);
	LLVMBuildBr(e->at, join);
	LLVMPositionBuilderAtEnd(e->at, otherwise);
	emit_block(e, s->branch.otherwise);
	LLVMBuildBr(e->at, join);
	LLVMPositionBuilderAtEnd(e->at, join);
}

static void emit_matrix_loop(struct emitter *e, const struct ilir_stmt *s)
{
	jit_configure_matrices(e, s);
	emit_loop(e, s);
	jit_release_matrices(e);
}

static void emit_any_loop(struct emitter *e, const struct ilir_stmt *s)
{
	if (s->loop.kind == ILIR_SWEPT)
		emit_sweep(e, s);
	else if (s->loop.kind == ILIR_MATRIX)
		emit_matrix_loop(e, s);
	else
		emit_loop(e, s);
}

static void emit_statement(struct emitter *e, const struct ilir_stmt *s)
{
	jit_set_line(e, s->line);
	switch (s->kind) {
	case ILIR_FOR:
		emit_any_loop(e, s);
		break;
	case ILIR_IF:
		emit_branch(e, s);
		break;
	case ILIR_LET:
		e->var[s->let.var.i] = value_for_statement(e, s->let.value);
		break;
	case ILIR_ALLOC:
		jit_emit_alloc(e, s->alloc);
		break;
	case ILIR_STORE:
		jit_emit_store(e, s);
		jit_forget(e, 0);
		break;
	case ILIR_PREFETCH:
		jit_emit_prefetch(e, s);
		jit_forget(e, 0);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		jit_emit_rows(e, s);
		jit_forget(e, 0);
		break;
	case ILIR_DOT:
		jit_emit_matrix_dot(e, s);
		break;
	case ILIR_BARRIER:
	case ILIR_STEP:
		jit_refuse(e, (struct ilir_type){ILIR_INDEX, 1}, "steps and barriers were not made kernels");
	}
}

/* --- variants --- */

/* The number of the block that a sweep is at, of those that the call was for. */
static LLVMValueRef current_block(struct emitter *e)
{
	return e->block ? e->block : LLVMGetParam(e->function, 3);
}

/* The function of a variant, which is compiled apart. */
static LLVMValueRef function_of(struct emitter *e, const struct jit_unit *variant)
{
	LLVMValueRef f = LLVMGetNamedFunction(e->module, variant->name);
	return f ? f : LLVMAddFunction(e->module, variant->name, LLVMGlobalGetValueType(e->function));
}

/* Calls a variant for the caller's rows, and for blocks of columns from `first` on. */
static LLVMValueRef call_variant(struct emitter *e, const struct jit_unit *variant, LLVMValueRef first,
				 LLVMValueRef blocks)
{
	LLVMValueRef argument[6], f = function_of(e, variant);
	for (int i = 0; i < 6; i++)
		argument[i] = LLVMGetParam(e->function, i);
	argument[3] = first;
	argument[4] = blocks;
	return LLVMBuildCall2(e->at, LLVMGlobalGetValueType(f), f, argument, 6, "");
}

/* Continues in a new block where the condition holds; returns the block to go on in otherwise. */
static LLVMBasicBlockRef begin_if(struct emitter *e, LLVMValueRef condition)
{
	LLVMBasicBlockRef then = jit_block(e, "variant"), after = jit_block(e, "after");
	LLVMBuildCondBr(e->at, condition, then, after);
	LLVMPositionBuilderAtEnd(e->at, then);
	return after;
}

/* A range that one variant runs alone is its own from the first block to the last. */
static void leave_to_variants(struct emitter *e)
{
	const struct ilir_stmt *loop = e->rows->next;
	for (int v = 1; v < e->unit->variants; v++, loop = loop->next) {
		LLVMValueRef begin = value_for_statement(e, loop->loop.begin), end = value_for_statement(e, loop->loop.end);
		LLVMValueRef first = LLVMBuildICmp(e->at, LLVMIntSLE, begin, LLVMGetParam(e->function, 1), "");
		LLVMValueRef last = LLVMBuildICmp(e->at, LLVMIntSGE, end, LLVMGetParam(e->function, 2), "");
		LLVMBasicBlockRef after = begin_if(e, LLVMBuildAnd(e->at, first, last, ""));
		LLVMSetTailCall(call_variant(e, e->unit + v, LLVMGetParam(e->function, 3), LLVMGetParam(e->function, 4)),
				true);
		LLVMBuildRetVoid(e->at);
		LLVMPositionBuilderAtEnd(e->at, after);
	}
}

/* Calls the variants that have rows for one block. */
static void call_variants(struct emitter *e)
{
	const struct ilir_stmt *loop = e->rows->next;
	for (int v = 1; v < e->unit->variants; v++, loop = loop->next) {
		LLVMValueRef begin = value_for_statement(e, loop->loop.begin), end = value_for_statement(e, loop->loop.end);
		LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->at, LLVMIntSLT, begin, end, ""));
		call_variant(e, e->unit + v, current_block(e), LLVMConstInt(e->scalar[ILIR_INDEX], 1, false));
		LLVMBuildBr(e->at, after);
		LLVMPositionBuilderAtEnd(e->at, after);
	}
}

/* Emits the loop of the unit; the kernel itself has the first one, and calls variants for the others. */
static void emit_rows(struct emitter *e)
{
	const struct ilir_stmt *loop = e->rows;
	for (int i = 0; i < e->unit->variant; i++)
		loop = loop->next;
	emit_statement(e, loop);
	if (!e->unit->variant)
		call_variants(e);
}

static void emit_block(struct emitter *e, const struct ilir_stmt *s)
{
	for (; s && s != e->rows; s = s->next)
		emit_statement(e, s);
	if (s)
		emit_rows(e);
}

/* --- kernels --- */

static void add_value(struct emitter *e, int where, const char *name, uint64_t value)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(e->function, where, LLVMCreateEnumAttribute(e->context, kind, value));
}

static void add_flag(struct emitter *e, int where, const char *name)
{
	add_value(e, where, name, 0);
}

static void add_text(struct emitter *e, const char *name, const char *value)
{
	LLVMAttributeRef a = LLVMCreateStringAttribute(e->context, name, strlen(name), value, strlen(value));
	LLVMAddAttributeAtIndex(e->function, LLVMAttributeFunctionIndex, a);
}

/* The value of LLVM's attribute uwtable for tables that hold at every instruction. */
enum { ASYNCHRONOUS = 2 };

/* void NAME(ptr buffers, i64 begin, i64 end, i64 first, i64 blocks, i64 direction): image_kernel.
 * no-builtins: the code must import nothing, so loops must not become calls of memcpy.
 * uwtable: what unwinds the frame at any instruction, for profilers and handlers of signals. */
static void declare_kernel(struct emitter *e, const char *name, int vector_bits)
{
	LLVMTypeRef i = e->scalar[ILIR_INDEX], parameters[] = {e->pointer, i, i, i, i, i};
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), parameters, 6, false);
	char width[16];
	snprintf(width, sizeof width, "%d", vector_bits);
	e->function = LLVMAddFunction(e->module, name, type);
	add_flag(e, LLVMAttributeFunctionIndex, "nounwind");
	add_value(e, LLVMAttributeFunctionIndex, "uwtable", ASYNCHRONOUS);
	add_flag(e, 1, "noalias");
	add_flag(e, 1, "nocapture");
	add_flag(e, 1, "readonly");
	add_text(e, "no-builtins", "");
	add_text(e, "prefer-vector-width", width);
}

/* Variables, base pointers and slots belong to one function. */
static void forget_kernel(struct emitter *e)
{
	memset(e->var, 0, e->m->vars.n * sizeof *e->var);
	memset(e->base, 0, e->m->buffers.n * sizeof *e->base);
	memset(e->reg, 0, e->m->buffers.n * sizeof *e->reg);
}

static void emit_unit(struct emitter *e, const struct jit_unit *u, int vector_bits)
{
	const struct ilir_kernel *k = &e->m->kernels.at[u->kernel];
	e->kernel = u->name;
	e->unit = u;
	e->rows = u->variants > 1 ? jit_row_loops(e->m, u->kernel) : NULL;
	e->block = NULL;
	forget_kernel(e);
	jit_measure_registers(e, k->body);
	declare_kernel(e, u->name, vector_bits);
	jit_begin_function(e, k, u->name);
	LLVMBasicBlockRef entry = jit_block(e, "entry"), body = jit_block(e, "body");
	LLVMPositionBuilderAtEnd(e->entry, entry);
	LLVMPositionBuilderAtEnd(e->at, body);
	e->var[ilir_begin.i] = LLVMGetParam(e->function, 1);
	e->var[ilir_end.i] = LLVMGetParam(e->function, 2);
	if (e->rows && !u->variant)
		leave_to_variants(e);
	emit_block(e, k->body);
	jit_set_line(e, k->line);
	LLVMBuildRetVoid(e->at);
	LLVMBuildBr(e->entry, body);
}

static void prepare_emitter(struct emitter *e)
{
	const struct ilir_module *m = e->m;
	for (int t = 0; t < ILIR_DTYPES; t++)
		e->scalar[t] = LLVMIntTypeInContext(e->context, 8 * ilir_bytes(t));
	e->scalar[ILIR_F32] = LLVMFloatTypeInContext(e->context);
	e->scalar[ILIR_BOOL] = LLVMInt1TypeInContext(e->context);
	e->pointer = LLVMPointerTypeInContext(e->context, 0);
	e->reads = jit_find_reads(m, e->arena);
	e->value = ARENA_ARRAY(e->arena, LLVMValueRef, m->nodes.n);
	e->var = ARENA_ARRAY(e->arena, LLVMValueRef, m->vars.n);
	e->base = ARENA_ARRAY(e->arena, LLVMValueRef, m->buffers.n);
	e->reg = ARENA_ARRAY(e->arena, struct jit_register, m->buffers.n);
	jit_make_promises(e);
	jit_begin_lines(e);
}

/* All kernels of the module, each as one unit. */
static void emit_whole_kernels(struct emitter *e, int vector_bits)
{
	struct jit_unit *unit;
	int n = jit_list_units(e->arena, e->m, true, &unit);
	for (int i = 0; i < n && !e->problem; i++)
		emit_unit(e, &unit[i], vector_bits);
}

bool jit_emit_module(struct emitter *e, const struct jit_unit *unit, int vector_bits)
{
	prepare_emitter(e);
	if (unit)
		emit_unit(e, unit, vector_bits);
	else
		emit_whole_kernels(e, vector_bits);
	jit_end_lines(e);
	return !e->problem;
}
