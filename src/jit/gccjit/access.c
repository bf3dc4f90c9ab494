/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: buffers in memory by address, registers by variables that the optimiser renames, or by
 * arrays where their accesses are of different widths. */
#include "jit/gccjit/emit.h"

/* --- adjacent elements --- */

/* Elements of a buffer, adjacent but for loads of vectors by a step:
 * element 0 of an access is `first` elements behind the pointer. */
struct span {
	gcc_jit_rvalue *at; /* a pointer to elements */
	int64_t first;
	enum ilir_dtype stored;
	bool parked;
	int step; /* from element to element of the access */
};

static gcc_jit_lvalue *element_at(struct emitter *e, const struct span *s, int64_t i)
{
	return gcc_jit_context_new_array_access(e->context, NULL, s->at, jit_index(e, s->first + i));
}

/* The `width` elements from the i-th on. */
static gcc_jit_lvalue *subvector_at(struct emitter *e, const struct span *s, int64_t i, int width)
{
	gcc_jit_type *type = e->loose[s->stored][__builtin_ctz(width)];
	gcc_jit_rvalue *at = gcc_jit_lvalue_get_address(element_at(e, s, i), NULL);
	at = gcc_jit_context_new_cast(e->context, NULL, at, gcc_jit_type_get_pointer(type));
	return gcc_jit_rvalue_dereference(at, NULL);
}

/* In memory truth is a byte, of which any but 0 is true. */
static gcc_jit_rvalue *load_value(struct emitter *e, gcc_jit_lvalue *from, enum ilir_dtype t, int width)
{
	gcc_jit_rvalue *v = gcc_jit_lvalue_as_rvalue(from);
	if (t != ILIR_BOOL)
		return jit_keep(e, jit_subvector_type(e, t, width), v);
	gcc_jit_type *byte = e->loose[ILIR_BOOL][0];
	return jit_compare(e, GCC_JIT_COMPARISON_NE, jit_keep(e, byte, v),
			   gcc_jit_context_zero(e->context, byte));
}

static void assign_stored(struct emitter *e, gcc_jit_lvalue *to, gcc_jit_rvalue *v, enum ilir_dtype t)
{
	if (t == ILIR_BOOL)
		v = gcc_jit_context_new_cast(e->context, NULL, v, e->loose[ILIR_BOOL][0]);
	gcc_jit_block_add_assignment(e->at, e->location, to, v);
}

/* Truth is stored lane by lane. */
static int stored_width(const struct emitter *e, struct ilir_type t)
{
	return t.dtype == ILIR_BOOL ? 1 : jit_width(e, t);
}

static struct jit_value *new_stored(struct emitter *e, struct ilir_type t)
{
	struct jit_value *v = jit_new_value(e, t);
	v->width = stored_width(e, t);
	v->subvectors = t.lanes / v->width;
	return v;
}

/* Converts subvectors as they are stored to those that are computed with. */
static const struct jit_value *join_stored(struct emitter *e, const struct jit_value *v, struct ilir_type t)
{
	return v->width == jit_width(e, t) ? v : jit_join(e, t, v->subvector);
}

static const struct jit_value *split_stored(struct emitter *e, const struct jit_value *v, struct ilir_type t)
{
	if (v->width == stored_width(e, t))
		return v;
	struct jit_value *lanes = new_stored(e, t);
	for (int i = 0; i < lanes->subvectors; i++)
		lanes->subvector[i] = jit_lane(e, v, t.dtype, i);
	return lanes;
}

/* The `width` elements of a load by a step from the i-th on, lane by lane. */
static gcc_jit_rvalue *load_apart(struct emitter *e, const struct span *s, int64_t i, int width)
{
	gcc_jit_rvalue *lane[ILIR_MAX_LANES];
	gcc_jit_type *type = jit_subvector_type(e, s->stored, width);
	for (int k = 0; k < width; k++)
		lane[k] = load_value(e, element_at(e, s, (i + k) * s->step), s->stored, 1);
	if (width == 1)
		return lane[0];
	return jit_keep(e, type, gcc_jit_context_new_rvalue_from_vector(e->context, NULL, type, width, lane));
}

static struct jit_value *load_span(struct emitter *e, const struct span *s, struct ilir_type t)
{
	struct jit_value *v = new_stored(e, t);
	for (int i = 0; i < v->subvectors; i++)
		v->subvector[i] =
		    s->step > 1 ? load_apart(e, s, i * v->width, v->width)
				: load_value(e, subvector_at(e, s, i * v->width, v->width), s->stored, v->width);
	return v;
}

static void store_span(struct emitter *e, const struct span *s, const struct jit_value *v)
{
	for (int i = 0; i < v->subvectors; i++) {
		gcc_jit_lvalue *to = subvector_at(e, s, i * v->width, v->width);
		if (s->parked && s->stored == ILIR_F32)
			jit_asm_to_memory(e, v->width == 1 ? JIT_ASM_PARK_ONE : JIT_ASM_PARK, v->width, to,
					  v->subvector[i]);
		else
			assign_stored(e, to, v->subvector[i], s->stored);
	}
}

/* --- memory --- */

/* Loads the base address from the pointer table once per call, in the entry block. */
static gcc_jit_rvalue *base_of(struct emitter *e, ilir_buffer b)
{
	if (!e->base[b.i]) {
		gcc_jit_type *elements =
		    gcc_jit_type_get_pointer(e->loose[ilir_buffer_at(e->m, b)->dtype][0]);
		gcc_jit_rvalue *slot = gcc_jit_lvalue_as_rvalue(gcc_jit_context_new_array_access(
		    e->context, NULL, gcc_jit_param_as_rvalue(e->parameter[0]),
		    jit_index(e, ilir_buffer_slot(e->m, b))));
		gcc_jit_lvalue *base =
		    gcc_jit_function_new_local(e->function, NULL, elements, ilir_buffer_at(e->m, b)->name);
		gcc_jit_block_add_assignment(e->entry, e->location, base,
					     gcc_jit_context_new_cast(e->context, NULL, slot, elements));
		e->base[b.i] = gcc_jit_lvalue_as_rvalue(base);
	}
	return e->base[b.i];
}

static gcc_jit_rvalue *index_operation(struct emitter *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *a,
				       gcc_jit_rvalue *b)
{
	gcc_jit_type *index = e->type[ILIR_INDEX][0];
	return jit_keep(e, index, gcc_jit_context_new_binary_op(e->context, NULL, op, index, a, b));
}

/* The state that has a row, or its table; sets the offset of the row in it. */
static gcc_jit_rvalue *row_of(struct emitter *e, ilir_buffer b, const struct jit_address *to, gcc_jit_rvalue **offset)
{
	gcc_jit_rvalue *row = jit_emit_scalar(e, to->row), *state = base_of(e, b);
	gcc_jit_rvalue *table = base_of(e, ilir_buffer_at(e->m, b)->table);
	gcc_jit_rvalue *sign = index_operation(e, GCC_JIT_BINARY_OP_RSHIFT, row, jit_index(e, 63));
	gcc_jit_rvalue *own = index_operation(e, GCC_JIT_BINARY_OP_BITWISE_XOR, row, sign);
	gcc_jit_rvalue *below = jit_compare(e, GCC_JIT_COMPARISON_LT, row, jit_index(e, 0));
	*offset = index_operation(e, GCC_JIT_BINARY_OP_MULT, own, jit_index(e, to->row_stride));
	return jit_choose(e, gcc_jit_rvalue_get_type(state), below, table, state);
}

/* A pointer and the terms of an address, behind `sum`, which may be NULL. */
static gcc_jit_rvalue *add_terms(struct emitter *e, const struct jit_address *to, gcc_jit_rvalue *at, gcc_jit_rvalue *sum)
{
	for (int i = 0; i < to->terms; i++) {
		gcc_jit_rvalue *term = jit_emit_scalar(e, to->index[i]);
		if (to->stride[i] != 1)
			term = index_operation(e, GCC_JIT_BINARY_OP_MULT, term, jit_index(e, to->stride[i]));
		sum = sum ? index_operation(e, GCC_JIT_BINARY_OP_PLUS, sum, term) : term;
	}
	if (!sum)
		return at;
	gcc_jit_lvalue *there = gcc_jit_context_new_array_access(e->context, NULL, at, sum);
	return jit_keep(e, gcc_jit_rvalue_get_type(at), gcc_jit_lvalue_get_address(there, NULL));
}

/* The address of an access; its pointer lacks the displacement, so that all accesses of an unrolled loop
 * share it. */
static struct span span_of(struct emitter *e, const struct jit_access *a)
{
	struct jit_address to = jit_address_of(e->m, a, (ilir_var){0});
	gcc_jit_rvalue *sum = NULL, *at = to.row.i ? row_of(e, a->buffer, &to, &sum) : base_of(e, a->buffer);
	at = add_terms(e, &to, at, sum);
	return (struct span){at, to.displacement, ilir_buffer_at(e->m, a->buffer)->dtype, false, a->place.step};
}

/* --- registers --- */

static void measure_access(struct emitter *e, const struct jit_access *a)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	struct jit_register *r = &e->reg[a->buffer.i];
	int lanes = jit_lanes_in_memory(a);
	if (b->kind != ILIR_REGISTER)
		return;
	int64_t element = jit_register_element(e->m, a);
	bool aligned = element >= 0 && element % lanes == 0 && jit_register_elements(b) % lanes == 0;
	r->lanes = aligned && (!r->lanes || r->lanes == lanes) ? lanes : -1;
}

static void measure_statement(const struct ilir_module *m, const struct ilir_stmt *s, void *emitter)
{
	if (s->kind == ILIR_STORE) {
		struct jit_access a = jit_read_store(m, s);
		measure_access(emitter, &a);
	}
	if (s->kind == ILIR_FILL || s->kind == ILIR_SPILL)
		((struct emitter *)emitter)->reg[ilir_at(m, s->rows.first)->buffer.i].lanes = -1;
}

static void measure_expr(const struct ilir_module *m, ilir_expr x, void *emitter)
{
	struct emitter *e = emitter;
	if (ilir_at(m, x)->op == ILIR_LOAD) {
		e->loads[x.i]++;
		struct jit_access a = jit_read_load(m, x);
		measure_access(emitter, &a);
	}
}

void jit_measure_registers(struct emitter *e, const struct ilir_stmt *s)
{
	ilir_visit_block(e->m, s, &(struct ilir_visit){measure_statement, measure_expr, e});
}

static void make_variables(struct emitter *e, struct jit_register *r, const struct ilir_buffer_decl *b,
			   int width)
{
	r->slots = jit_register_elements(b) / width;
	r->slot = ARENA_ARRAY(e->arena, gcc_jit_lvalue *, r->slots);
	for (int i = 0; i < r->slots; i++)
		r->slot[i] =
		    jit_local(e, width == 1 ? e->loose[b->dtype][0] : jit_subvector_type(e, b->dtype, width));
}

static void make_array(struct emitter *e, struct jit_register *r, const struct ilir_buffer_decl *b)
{
	gcc_jit_type *type =
	    gcc_jit_context_new_array_type(e->context, NULL, e->loose[b->dtype][0], jit_register_elements(b));
	r->array = gcc_jit_function_new_local(e->function, NULL, type, b->name);
	gcc_jit_lvalue_set_alignment(r->array, 64);
}

/* Parked registers must stay in memory: GCC would keep them in registers, and spill the wrong ones in the
 * loops.  It does not see that an instruction of asm.def is a store. */
static struct jit_register *register_of(struct emitter *e, ilir_buffer buffer, int width)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	struct jit_register *r = &e->reg[buffer.i];
	if (r->slot || r->array || !jit_register_elements(b))
		return r;
	if (r->lanes > 0 && !b->parked)
		make_variables(e, r, b, width);
	else
		make_array(e, r, b);
	return r;
}

static bool can_access(const struct jit_register *r, int64_t element)
{
	return (r->array || r->slot) && (element >= 0 || (element == JIT_SELECTED && r->array));
}

/* Elements of an array, which constants or variables select. */
static struct span span_of_array(struct emitter *e, const struct jit_register *r, const struct jit_access *a)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	struct jit_address to = jit_address_of(e->m, a, (ilir_var){0});
	gcc_jit_lvalue *begin = gcc_jit_context_new_array_access(
	    e->context, NULL, gcc_jit_lvalue_as_rvalue(r->array), jit_index(e, 0));
	gcc_jit_rvalue *at = add_terms(e, &to, gcc_jit_lvalue_get_address(begin, NULL), NULL);
	return (struct span){at, to.displacement, b->dtype, b->parked, 1};
}

static const struct jit_value *load_register(struct emitter *e, const struct jit_access *a,
					     struct ilir_type t)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	int width = stored_width(e, t);
	const struct jit_register *r = register_of(e, a->buffer, width);
	int64_t first = jit_register_element(e->m, a);
	if (!can_access(r, first))
		return jit_refuse(e, t, jit_register_problem);
	if (r->array) {
		struct span s = span_of_array(e, r, a);
		return load_span(e, &s, t);
	}
	struct jit_value *v = new_stored(e, t);
	for (int i = 0; i < v->subvectors; i++)
		v->subvector[i] = load_value(e, r->slot[first / width + i], b->dtype, width);
	return v;
}

static void store_register(struct emitter *e, const struct jit_access *a, const struct jit_value *v,
			   struct ilir_type t)
{
	int width = stored_width(e, t);
	const struct jit_register *r = register_of(e, a->buffer, width);
	int64_t first = jit_register_element(e->m, a);
	if (!can_access(r, first)) {
		jit_refuse(e, t, jit_register_problem);
		return;
	}
	if (r->array) {
		struct span s = span_of_array(e, r, a);
		store_span(e, &s, v);
		return;
	}
	for (int i = 0; i < v->subvectors; i++)
		assign_stored(e, r->slot[first / width + i], v->subvector[i], t.dtype);
}

/* Whether the last operand of a value is the content of the register that it is stored to. */
static bool is_accumulation(struct emitter *e, const struct jit_access *to, ilir_expr value)
{
	const struct ilir_node *n = ilir_at(e->m, value);
	ilir_expr c = ilir_arg(e->m, value, 2);
	if (ilir_at(e->m, c)->op != ILIR_LOAD || ilir_at(e->m, c)->buffer.i != to->buffer.i)
		return false;
	struct jit_access from = jit_read_load(e->m, c);
	return jit_lanes_in_memory(&from) == n->type.lanes &&
	       jit_register_element(e->m, &from) == jit_register_element(e->m, to);
}

/* False when the sum must be loaded and stored instead. */
static bool add_in_place(struct emitter *e, const struct jit_access *a, ilir_expr value)
{
	int width = jit_width(e, ilir_type_of(e->m, value));
	int64_t first = jit_register_element(e->m, a);
	enum jit_asm row;
	if (first < 0 || !jit_find_sum(e, value, &row) || !is_accumulation(e, a, value))
		return false;
	const struct jit_register *r = register_of(e, a->buffer, width);
	if (r->slot)
		jit_emit_sum(e, value, row, &r->slot[first / width]);
	return r->slot != NULL;
}

/* --- loads and stores --- */

static bool is_register(const struct emitter *e, const struct jit_access *a)
{
	return ilir_buffer_at(e->m, a->buffer)->kind == ILIR_REGISTER;
}

/* Loads the adjacent elements of an access, a vector or a scalar. */
static const struct jit_value *load_as_stored(struct emitter *e, const struct jit_access *a,
					      struct ilir_type t)
{
	if (is_register(e, a))
		return load_register(e, a, t);
	struct span s = span_of(e, a);
	return load_span(e, &s, t);
}

const struct jit_value *jit_emit_load(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x), stored = t;
	struct jit_access a = jit_read_load(e->m, x);
	if (a.problem)
		return jit_refuse(e, t, a.problem);
	stored.lanes = jit_lanes_in_memory(&a);
	const struct jit_value *v = join_stored(e, load_as_stored(e, &a, stored), stored);
	if (stored.lanes == t.lanes)
		return v;
	struct jit_value *all = jit_new_value(e, t);
	all->subvector[0] = jit_splat(e, t.dtype, v->subvector[0], all->width);
	for (int i = 1; i < all->subvectors; i++)
		all->subvector[i] = all->subvector[0];
	return all;
}

/* By a copy, which GCC makes a load of that may read what was stored as bytes. */
const struct jit_value *jit_emit_word(struct emitter *e, ilir_expr load)
{
	static const struct ilir_type word = {ILIR_I32, 1};
	struct jit_access a = jit_read_load(e->m, load);
	if (a.problem || is_register(e, &a))
		return jit_refuse(e, word, a.problem ? a.problem : jit_register_problem);
	struct span s = span_of(e, &a);
	gcc_jit_lvalue *to = jit_local(e, e->type[ILIR_I32][0]);
	gcc_jit_rvalue *args[] = {gcc_jit_context_new_cast(e->context, NULL, gcc_jit_lvalue_get_address(to, NULL), e->pointer),
				  gcc_jit_context_new_cast(e->context, NULL, gcc_jit_lvalue_get_address(element_at(e, &s, 0), NULL),
							   e->pointer),
				  gcc_jit_context_new_rvalue_from_long(
				      e->context, gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_SIZE_T), sizeof(int32_t))};
	gcc_jit_function *copy = gcc_jit_context_get_builtin_function(e->context, "__builtin_memcpy");
	gcc_jit_block_add_eval(e->at, e->location, gcc_jit_context_new_call(e->context, NULL, copy, 3, args));
	struct jit_value *v = jit_new_value(e, word);
	v->subvector[0] = jit_keep(e, e->type[ILIR_I32][0], gcc_jit_lvalue_as_rvalue(to));
	return v;
}

/* The row of asm.def that loads elements of a type and casts them. */
static bool find_widening(enum ilir_op cast, enum ilir_dtype stored, enum jit_asm *row)
{
	static const struct {
		enum ilir_op cast;
		enum ilir_dtype stored;
		enum jit_asm row;
	} rows[] = {{ILIR_TO_F32, ILIR_F16, JIT_ASM_WIDEN_F16},
		    {ILIR_TO_F32, ILIR_BF16, JIT_ASM_WIDEN_BF16},
		    {ILIR_TO_I32, ILIR_I8, JIT_ASM_WIDEN_I8},
		    {ILIR_TO_I32, ILIR_U8, JIT_ASM_WIDEN_U8},
		    {ILIR_TO_I32, ILIR_I16, JIT_ASM_WIDEN_I16}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].cast == cast && rows[i].stored == stored)
			return *row = rows[i].row, true;
	return false;
}

const struct jit_value *jit_emit_widening_load(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	ilir_expr load = ilir_at(e->m, x)->args == 1 ? ilir_arg(e->m, x, 0) : (ilir_expr){0};
	int width = jit_width(e, t);
	enum jit_asm row;
	if (!load.i || width == 1 || ilir_at(e->m, load)->op != ILIR_LOAD ||
	    !find_widening(ilir_at(e->m, x)->op, ilir_type_of(e->m, load).dtype, &row) ||
	    !jit_has_asm(e, row, width))
		return NULL;
	struct jit_access a = jit_read_load(e->m, load);
	if (a.problem || is_register(e, &a) || jit_lanes_in_memory(&a) != t.lanes)
		return NULL;
	struct span s = span_of(e, &a);
	struct jit_value *v = jit_new_value(e, t);
	for (int i = 0; i < v->subvectors; i++)
		v->subvector[i] = jit_asm_from_memory(e, row, width, jit_subvector_type(e, t.dtype, width),
						      subvector_at(e, &s, i * width, width));
	return v;
}

void jit_emit_store(struct emitter *e, const struct ilir_stmt *s)
{
	struct ilir_type t = ilir_type_of(e->m, s->store.value);
	struct jit_access a = jit_read_store(e->m, s);
	if (a.problem) {
		jit_refuse(e, t, a.problem);
		return;
	}
	if (is_register(e, &a) && add_in_place(e, &a, s->store.value))
		return;
	const struct jit_value *v = split_stored(e, jit_emit_expr(e, s->store.value), t);
	if (is_register(e, &a)) {
		store_register(e, &a, v, t);
		return;
	}
	struct span to = span_of(e, &a);
	store_span(e, &to, v);
}

gcc_jit_rvalue *jit_emit_address(struct emitter *e, ilir_expr load)
{
	struct ilir_type t = ilir_type_of(e->m, load);
	struct jit_access a = jit_read_load(e->m, load);
	struct span place;
	if (!a.problem && is_register(e, &a)) {
		const struct jit_register *r = register_of(e, a.buffer, 1);
		if (!r->array || !can_access(r, jit_register_element(e->m, &a)))
			a.problem = jit_register_problem;
		else
			place = span_of_array(e, r, &a);
	} else if (!a.problem)
		place = span_of(e, &a);
	if (a.problem)
		return jit_refuse(e, t, a.problem), NULL;
	return gcc_jit_context_new_cast(e->context, NULL, gcc_jit_lvalue_get_address(element_at(e, &place, 0), NULL), e->pointer);
}

/* Prefetches the cache line in which a vector begins; the next block of columns prefetches the next line. */
void jit_emit_prefetch(struct emitter *e, const struct ilir_stmt *s)
{
	struct jit_access a = jit_read_prefetch(e->m, s->prefetch.load);
	if (a.problem) {
		jit_refuse(e, ilir_type_of(e->m, s->prefetch.load), a.problem);
		return;
	}
	struct span place = span_of(e, &a);
	gcc_jit_function *prefetch = gcc_jit_context_get_builtin_function(e->context, "__builtin_prefetch");
	gcc_jit_rvalue *args[] = {
	    gcc_jit_context_new_cast(e->context, NULL,
				     gcc_jit_lvalue_get_address(element_at(e, &place, 0), NULL), e->pointer),
	    gcc_jit_context_new_rvalue_from_int(e->context, e->type[ILIR_I32][0], s->prefetch.writes)};
	gcc_jit_block_add_eval(e->at, e->location,
			       gcc_jit_context_new_call(e->context, NULL, prefetch, 2, args));
}
