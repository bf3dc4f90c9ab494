/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a loop module to libgccjit's trees: one function per kernel, statements to blocks.  All decisions
 * were made before, by our own passes. */
#include "jit/gccjit/emit.h"

#include <stdio.h>

/* --- types --- */

static int log2_of(int width)
{
	return __builtin_ctz(width);
}

gcc_jit_type *jit_subvector_type(const struct emitter *e, enum ilir_dtype t, int width)
{
	return e->type[t][log2_of(width)];
}

int jit_width(const struct emitter *e, struct ilir_type t)
{
	static const int lanes[] = {[JIT_SSE] = 4, [JIT_AVX] = 8, [JIT_AVX512] = 16};
	if (t.dtype == ILIR_F32 || t.dtype == ILIR_I32 || t.dtype == ILIR_BOOL)
		for (int width = lanes[e->processor->set]; width >= 4; width /= 2)
			if (t.lanes % width == 0)
				return width;
	return 1;
}

static void make_vectors(struct emitter *e, enum ilir_dtype t)
{
	for (int w = 2; w < JIT_WIDTHS; w++) {
		e->type[t][w] = gcc_jit_type_get_vector(e->type[t][0], 1u << w);
		e->loose[t][w] = gcc_jit_type_get_aligned(e->type[t][w], ilir_bytes(t));
	}
}

/* Truth is all bits of a lane, but of vectors of 16 lanes a bit each of a mask register. */
static void make_types(struct emitter *e)
{
	static const enum gcc_jit_types names[ILIR_DTYPES] = {
	    [ILIR_F32] = GCC_JIT_TYPE_FLOAT,   [ILIR_F16] = GCC_JIT_TYPE_UINT16_T, [ILIR_BF16] = GCC_JIT_TYPE_UINT16_T,
	    [ILIR_I8] = GCC_JIT_TYPE_INT8_T,   [ILIR_U8] = GCC_JIT_TYPE_UINT8_T,   [ILIR_I16] = GCC_JIT_TYPE_INT16_T,
	    [ILIR_I32] = GCC_JIT_TYPE_INT32_T, [ILIR_I64] = GCC_JIT_TYPE_INT64_T,  [ILIR_BOOL] = GCC_JIT_TYPE_BOOL,
	    [ILIR_INDEX] = GCC_JIT_TYPE_INT64_T};
	for (int t = 0; t < ILIR_DTYPES; t++) {
		e->type[t][0] = e->loose[t][0] = gcc_jit_context_get_type(e->context, names[t]);
		if (ilir_bytes(t) <= 4 && t != ILIR_BOOL)
			make_vectors(e, t);
	}
	e->loose[ILIR_BOOL][0] = e->type[ILIR_U8][0];
	e->type[ILIR_BOOL][2] = e->type[ILIR_I32][2];
	e->type[ILIR_BOOL][3] = e->type[ILIR_I32][3];
	e->type[ILIR_BOOL][4] = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_UINT16_T);
	e->nothing = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_VOID);
	e->pointer = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_VOID_PTR);
}

/* --- values --- */

struct jit_value *jit_new_value(struct emitter *e, struct ilir_type t)
{
	struct jit_value *v = ARENA_NEW(e->arena, struct jit_value);
	v->width = jit_width(e, t);
	v->subvectors = t.lanes / v->width;
	return v;
}

const struct jit_value *jit_refuse(struct emitter *e, struct ilir_type t, const char *why)
{
	struct jit_value *v = jit_new_value(e, t);
	for (int i = 0; i < v->subvectors; i++)
		v->subvector[i] =
		    gcc_jit_lvalue_as_rvalue(jit_local(e, jit_subvector_type(e, t.dtype, v->width)));
	if (!e->problem) {
		e->problem = why;
		e->culprit = e->kernel;
	}
	return v;
}

gcc_jit_block *jit_block(struct emitter *e, const char *name)
{
	return gcc_jit_function_new_block(e->function, name);
}

gcc_jit_lvalue *jit_local(struct emitter *e, gcc_jit_type *type)
{
	char name[16];
	snprintf(name, sizeof name, "v%u", e->names++);
	return gcc_jit_function_new_local(e->function, NULL, type, name);
}

gcc_jit_rvalue *jit_keep(struct emitter *e, gcc_jit_type *type, gcc_jit_rvalue *value)
{
	gcc_jit_lvalue *to = jit_local(e, type);
	gcc_jit_block_add_assignment(e->at, e->location, to, value);
	return gcc_jit_lvalue_as_rvalue(to);
}

gcc_jit_rvalue *jit_index(struct emitter *e, int64_t i)
{
	return gcc_jit_context_new_rvalue_from_long(e->context, e->type[ILIR_INDEX][0], i);
}

/* --- statements --- */

static void emit_block(struct emitter *, const struct ilir_stmt *);

/* A register may change with every statement, so values computed for one must not be used for the next. */
static gcc_jit_rvalue *scalar_for_statement(struct emitter *e, ilir_expr x)
{
	gcc_jit_rvalue *v = jit_emit_scalar(e, x);
	jit_forget(e, 0);
	return v;
}

static gcc_jit_rvalue *compare_indices(struct emitter *e, enum gcc_jit_comparison how, gcc_jit_rvalue *a,
				       gcc_jit_rvalue *b)
{
	return gcc_jit_context_new_comparison(e->context, NULL, how, a, b);
}

static gcc_jit_rvalue *combine_indices(struct emitter *e, enum gcc_jit_binary_op how, gcc_jit_rvalue *a,
				       gcc_jit_rvalue *b)
{
	return gcc_jit_context_new_binary_op(e->context, NULL, how, e->type[ILIR_INDEX][0], a, b);
}

static gcc_jit_rvalue *parameter_value(const struct emitter *e, int i)
{
	return gcc_jit_param_as_rvalue(e->parameter[i]);
}

/* What is emitted from now on is on this line of the module.  image/link.h takes lines alone, so the file has
 * any name. */
static void set_line(struct emitter *e, int line)
{
	if (e->lines)
		e->location = gcc_jit_context_new_location(e->context, "loops", e->lines + line - 1, 1);
}

/* --- loops --- */

/* Gives a loop's variable a place of its own, with its first value. */
static gcc_jit_lvalue *begin_variable(struct emitter *e, ilir_var var, gcc_jit_rvalue *begin)
{
	struct jit_value *v = jit_new_value(e, (struct ilir_type){ILIR_INDEX, 1});
	gcc_jit_lvalue *i = jit_local(e, e->type[ILIR_INDEX][0]);
	gcc_jit_block_add_assignment(e->at, e->location, i, begin);
	v->subvector[0] = gcc_jit_lvalue_as_rvalue(i);
	e->var[var.i] = v;
	return i;
}

static void advance_variable(struct emitter *e, gcc_jit_lvalue *i, enum gcc_jit_binary_op how,
			     gcc_jit_rvalue *by)
{
	gcc_jit_block_add_assignment_op(e->at, e->location, i, how, by);
}

/* The test stands at the end and once before the loop. */
static void emit_loop(struct emitter *e, const struct ilir_stmt *s)
{
	gcc_jit_rvalue *begin = scalar_for_statement(e, s->loop.begin),
		       *end = scalar_for_statement(e, s->loop.end);
	gcc_jit_lvalue *i = begin_variable(e, s->loop.var, begin);
	gcc_jit_rvalue *now = gcc_jit_lvalue_as_rvalue(i);
	gcc_jit_block *body = jit_block(e, e->m->vars.at[s->loop.var.i].name), *after = jit_block(e, "after");
	gcc_jit_block_end_with_conditional(e->at, e->location,
					   compare_indices(e, GCC_JIT_COMPARISON_LT, now, end), body, after);
	e->at = body;
	emit_block(e, s->loop.body);
	set_line(e, s->line);
	advance_variable(e, i, GCC_JIT_BINARY_OP_PLUS, jit_index(e, s->loop.step));
	gcc_jit_block_end_with_conditional(e->at, e->location,
					   compare_indices(e, GCC_JIT_COMPARISON_LT, now, end), body, after);
	e->at = after;
}

/* Sets the variables of swept loops for a block of this number; returns the block of the innermost one. */
static const struct ilir_stmt *place_block(struct emitter *e, const struct ilir_stmt *s, gcc_jit_rvalue *number)
{
	for (; s && s->kind == ILIR_FOR && s->loop.kind == ILIR_SWEPT; s = s->loop.body) {
		gcc_jit_rvalue *inside = jit_index(e, ilir_blocks(e->m, s->loop.body));
		gcc_jit_rvalue *at = combine_indices(e, GCC_JIT_BINARY_OP_DIVIDE, number, inside);
		gcc_jit_lvalue *i = begin_variable(e, s->loop.var, scalar_for_statement(e, s->loop.begin));
		at = combine_indices(e, GCC_JIT_BINARY_OP_MULT, at, jit_index(e, s->loop.step));
		advance_variable(e, i, GCC_JIT_BINARY_OP_PLUS, at);
		number = combine_indices(e, GCC_JIT_BINARY_OP_MODULO, number, inside);
	}
	return s;
}

/* A loop over the caller's blocks, counted; their number goes up or down by the kernel's direction. */
static void emit_sweep(struct emitter *e, const struct ilir_stmt *s)
{
	gcc_jit_type *index = e->type[ILIR_INDEX][0];
	gcc_jit_rvalue *none = jit_index(e, 0);
	gcc_jit_lvalue *number = jit_local(e, index), *left = jit_local(e, index);
	gcc_jit_block_add_assignment(e->at, e->location, number, parameter_value(e, 3));
	gcc_jit_block_add_assignment(e->at, e->location, left, parameter_value(e, 4));
	gcc_jit_block *body = jit_block(e, e->m->vars.at[s->loop.var.i].name), *after = jit_block(e, "after");
	gcc_jit_rvalue *more =
	    compare_indices(e, GCC_JIT_COMPARISON_GT, gcc_jit_lvalue_as_rvalue(left), none);
	gcc_jit_block_end_with_conditional(e->at, e->location, more, body, after);
	e->at = body;
	emit_block(e, place_block(e, s, gcc_jit_lvalue_as_rvalue(number)));
	set_line(e, s->line);
	advance_variable(e, number, GCC_JIT_BINARY_OP_PLUS, parameter_value(e, 5));
	advance_variable(e, left, GCC_JIT_BINARY_OP_MINUS, jit_index(e, 1));
	more = compare_indices(e, GCC_JIT_COMPARISON_GT, gcc_jit_lvalue_as_rvalue(left), none);
	gcc_jit_block_end_with_conditional(e->at, e->location, more, body, after);
	e->at = after;
}

static void emit_branch(struct emitter *e, const struct ilir_stmt *s)
{
	gcc_jit_block *then = jit_block(e, "then"), *otherwise = jit_block(e, "else"),
		      *join = jit_block(e, "join");
	gcc_jit_rvalue *condition = scalar_for_statement(e, s->branch.condition);
	gcc_jit_block_end_with_conditional(e->at, e->location, condition, then, otherwise);
	e->at = then;
	emit_block(e, s->branch.then);
	gcc_jit_block_end_with_jump(e->at, e->location, join);
	e->at = otherwise;
	emit_block(e, s->branch.otherwise);
	gcc_jit_block_end_with_jump(e->at, e->location, join);
	e->at = join;
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
	set_line(e, s->line);
	switch (s->kind) {
	case ILIR_FOR:
		emit_any_loop(e, s);
		break;
	case ILIR_IF:
		emit_branch(e, s);
		break;
	case ILIR_LET:
		e->var[s->let.var.i] = jit_emit_expr(e, s->let.value);
		break;
	case ILIR_ALLOC: /* what is in a register is undefined until it is stored to */
		break;
	case ILIR_STORE:
		jit_emit_store(e, s);
		break;
	case ILIR_PREFETCH:
		jit_emit_prefetch(e, s);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		jit_emit_rows(e, s);
		break;
	case ILIR_DOT:
		jit_emit_matrix_dot(e, s);
		break;
	case ILIR_BARRIER:
	case ILIR_STEP:
		jit_refuse(e, (struct ilir_type){ILIR_INDEX, 1}, "steps and barriers were not made kernels");
	}
	jit_forget(e, 0);
}

static void emit_block(struct emitter *e, const struct ilir_stmt *s)
{
	for (; s; s = s->next)
		emit_statement(e, s);
}

/* --- kernels --- */

/* The name of a function must be a name of C, that of a symbol need not: defines a symbol of the kernel's
 * name. */
static void name_function(struct emitter *e, const char *function, const char *name)
{
	struct str s = str_in(e->arena);
	if (strpbrk(name, "\"\\\n"))
		jit_refuse(e, (struct ilir_type){ILIR_INDEX, 1}, "its name cannot be that of a symbol");
	str_printf(&s, "\t.globl\t\"%s\"\n\t.type\t\"%s\", @function\n\t.set\t\"%s\", %s\n", name, name, name,
		   function);
	gcc_jit_context_add_top_level_asm(e->context, NULL, str_text(&s));
}

/* void kernel_I(ptr buffers, i64 begin, i64 end, i64 first, i64 blocks, i64 direction): image_kernel. */
static void declare_kernel(struct emitter *e, int i)
{
	static const char *const names[] = {"buffers", "begin", "end", "first", "blocks", "direction"};
	gcc_jit_type *index = e->type[ILIR_INDEX][0], *table = gcc_jit_type_get_pointer(e->pointer);
	char name[32];
	snprintf(name, sizeof name, "kernel_%d", i);
	for (int p = 0; p < 6; p++)
		e->parameter[p] = gcc_jit_context_new_param(e->context, NULL, p ? index : table, names[p]);
	e->function = gcc_jit_context_new_function(e->context, NULL, GCC_JIT_FUNCTION_EXPORTED, e->nothing,
						   name, 6, e->parameter, 0);
	name_function(e, name, e->kernel);
}

static void set_variable(struct emitter *e, ilir_var var, int at)
{
	struct jit_value *v = jit_new_value(e, (struct ilir_type){ILIR_INDEX, 1});
	v->subvector[0] = parameter_value(e, at);
	e->var[var.i] = v;
}

/* Variables, base pointers and slots belong to one function. */
static void forget_kernel(struct emitter *e)
{
	memset(e->var, 0, e->m->vars.n * sizeof *e->var);
	memset(e->base, 0, e->m->buffers.n * sizeof *e->base);
	memset(e->reg, 0, e->m->buffers.n * sizeof *e->reg);
	memset(e->loads, 0, e->m->nodes.n * sizeof *e->loads);
	e->names = 0;
}

static void emit_kernel(struct emitter *e, int i)
{
	const struct ilir_kernel *k = &e->m->kernels.at[i];
	e->kernel = k->name;
	forget_kernel(e);
	set_line(e, k->line);
	jit_measure_registers(e, k->body);
	declare_kernel(e, i);
	gcc_jit_block *body;
	e->entry = jit_block(e, "entry");
	e->at = body = jit_block(e, "body");
	set_variable(e, ilir_begin, 1);
	set_variable(e, ilir_end, 2);
	emit_block(e, k->body);
	set_line(e, k->line);
	gcc_jit_block_end_with_void_return(e->at, e->location);
	gcc_jit_block_end_with_jump(e->entry, e->location, body);
}

bool jit_emit_module(struct emitter *e)
{
	const struct ilir_module *m = e->m;
	make_types(e);
	e->reads = jit_find_reads(m, e->arena);
	e->loads = ARENA_ARRAY(e->arena, uint32_t, m->nodes.n);
	e->value = ARENA_ARRAY(e->arena, const struct jit_value *, m->nodes.n);
	e->var = ARENA_ARRAY(e->arena, const struct jit_value *, m->vars.n);
	e->base = ARENA_ARRAY(e->arena, gcc_jit_rvalue *, m->buffers.n);
	e->reg = ARENA_ARRAY(e->arena, struct jit_register, m->buffers.n);
	for (int i = 0; i < (int)m->kernels.n && !e->problem; i++)
		emit_kernel(e, i);
	return !e->problem;
}
