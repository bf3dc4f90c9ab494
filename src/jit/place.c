/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "jit/place.h"

/* --- accesses --- */

static bool find_place(const struct ilir_module *m, const ilir_expr *index, int n, struct jit_place *p)
{
	*p = (struct jit_place){.spread = ILIR_VAR, .lanes = 1, .step = 1};
	if (n == 0)
		return true;
	p->last = index[n - 1];
	p->lanes = ilir_type_of(m, p->last).lanes;
	if (p->lanes == 1)
		return true;
	p->spread = ilir_at(m, p->last)->op;
	if (p->spread != ILIR_RAMP && p->spread != ILIR_BROADCAST)
		return false;
	p->step = p->spread == ILIR_RAMP ? (int)ilir_at(m, p->last)->i : 1;
	p->last = ilir_arg(m, p->last, 0);
	return true;
}

/* A weight that is not packed: a kernel at binding may write it. */
static bool is_filled(const struct ilir_buffer_decl *b)
{
	return b->kind == IMAGE_WEIGHT && !b->recipe;
}

static bool has_inner_rows(const struct ilir_buffer_decl *b)
{
	for (int d = 1; d < b->rank; d++)
		if (b->dim[d].rows != IMAGE_ONE)
			return true;
	return false;
}

static const char vector_problem[] = "the index of a vector access is not a ramp";
static const char written_problem[] = "a buffer that kernels only read is stored to";
static const char rows_problem[] = "a buffer has rows in a dimension other than the first";
const char jit_register_problem[] = "a register is too large, or its index is outside, or no constant though it is not parked";

static struct jit_access read_access(const struct ilir_module *m, ilir_buffer buffer, const ilir_expr *index,
				     int n)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, buffer);
	struct jit_access a = {.buffer = buffer, .index = index, .indices = n};
	if (!find_place(m, index, n, &a.place) || (a.place.step != 1 && b->kind == ILIR_REGISTER))
		a.problem = vector_problem;
	else if (b->kind != ILIR_REGISTER && has_inner_rows(b))
		a.problem = rows_problem;
	return a;
}

struct jit_access jit_read_load(const struct ilir_module *m, ilir_expr load)
{
	const struct ilir_node *n = ilir_at(m, load);
	return read_access(m, n->buffer, m->args.at + n->arg, n->args);
}

struct jit_access jit_read_prefetch(const struct ilir_module *m, ilir_expr load)
{
	struct jit_access a = jit_read_load(m, load);
	if (a.problem)
		a.problem = vector_problem;
	return a;
}

struct jit_access jit_read_store(const struct ilir_module *m, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, s->store.buffer);
	struct jit_access a = read_access(m, s->store.buffer, s->store.index, s->store.indices);
	a.stores = true;
	if (a.place.spread == ILIR_BROADCAST || a.place.step != 1 || a.place.lanes != ilir_type_of(m, s->store.value).lanes)
		a.problem = vector_problem;
	else if (a.problem != vector_problem && b->kind != ILIR_REGISTER && !ilir_holds_results(b) &&
		 !is_filled(b))
		a.problem = written_problem;
	return a;
}

int jit_lanes_in_memory(const struct jit_access *a)
{
	return a->place.spread == ILIR_RAMP ? a->place.lanes : 1;
}

/* --- addresses --- */

unsigned jit_element_bytes(const struct ilir_buffer_decl *b)
{
	return ilir_bytes(b->dtype);
}

/* The position of the constant that an expression multiplies another by; -1 = it is no such multiple. */
static int find_factor(const struct ilir_module *m, ilir_expr x)
{
	for (int a = 0; a < 2 && ilir_at(m, x)->op == ILIR_MUL; a++)
		if (ilir_at(m, ilir_arg(m, x, a))->op == ILIR_CONST_I)
			return a;
	return -1;
}

/* Whether sums and multiples of an index hold what is not part of its term: a constant, or the counted
 * variable. */
static bool has_parts(const struct ilir_module *m, ilir_expr x, ilir_var counted)
{
	const struct ilir_node *n = ilir_at(m, x);
	int factor = find_factor(m, x);
	if (n->op == ILIR_ADD)
		return has_parts(m, ilir_arg(m, x, 0), counted) || has_parts(m, ilir_arg(m, x, 1), counted);
	if (factor >= 0)
		return has_parts(m, ilir_arg(m, x, !factor), counted);
	return n->op == ILIR_CONST_I || (counted.i && n->op == ILIR_VAR && n->var.i == counted.i);
}

/* Adds a multiple of an index to an address, which then has room for `left` more terms. */
static void add_index(const struct ilir_module *m, struct jit_address *to, ilir_expr x, uint64_t stride,
		      ilir_var counted, int left)
{
	const struct ilir_node *n = ilir_at(m, x);
	bool parts = has_parts(m, x, counted);
	int factor = find_factor(m, x);
	if (n->op == ILIR_CONST_I) {
		to->displacement += (uint64_t)n->i * stride;
	} else if (parts && n->op == ILIR_ADD && to->terms + left + 2 <= JIT_MAX_TERMS) {
		add_index(m, to, ilir_arg(m, x, 0), stride, counted, left + 1);
		add_index(m, to, ilir_arg(m, x, 1), stride, counted, left);
	} else if (parts && factor >= 0) {
		uint64_t by = (uint64_t)ilir_at(m, ilir_arg(m, x, factor))->i;
		add_index(m, to, ilir_arg(m, x, !factor), stride * by, counted, left);
	} else {
		to->index[to->terms] = x;
		to->stride[to->terms++] = stride;
	}
}

struct jit_address jit_address_of(const struct ilir_module *m, const struct jit_access *a, ilir_var counted)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	struct jit_address to = {0};
	uint64_t stride[ILIR_MAX_RANK] = {0};
	for (int d = a->indices - 1; d >= 0; d--)
		stride[d] = d == a->indices - 1 ? 1 : stride[d + 1] * (uint64_t)b->dim[d + 1].padded;
	bool table = b->table.i && !a->stores;
	if (table) {
		to.row = a->index[0];
		to.row_stride = stride[0];
	}
	for (int d = table; d < a->indices; d++) {
		bool last = d == a->indices - 1;
		add_index(m, &to, last ? a->place.last : a->index[d], stride[d], counted, a->indices - 1 - d);
	}
	return to;
}

/* --- registers --- */

int64_t jit_register_elements(const struct ilir_buffer_decl *b)
{
	int64_t n = 1;
	for (int d = 0; d < b->rank; d++)
		if (b->dim[d].padded < 1 || __builtin_mul_overflow(n, b->dim[d].padded, &n) ||
		    n > JIT_REGISTER_LIMIT)
			return 0;
	return n;
}

int64_t jit_register_element(const struct ilir_module *m, const struct jit_access *a)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	int64_t element = 0;
	for (int d = 0; d < a->indices; d++) {
		bool last = d == a->indices - 1;
		const struct ilir_node *i = ilir_at(m, last ? a->place.last : a->index[d]);
		int64_t width = last ? jit_lanes_in_memory(a) : 1;
		bool constant = i->op == ILIR_CONST_I;
		if (constant ? i->i < 0 || i->i > b->dim[d].padded - width : !b->parked)
			return JIT_OUTSIDE;
		element = element == JIT_SELECTED || !constant ? JIT_SELECTED : element * b->dim[d].padded + i->i;
	}
	return element;
}

/* --- expressions --- */

/* Arguments stand before the expressions that use them, so one sweep suffices. */
bool *jit_find_reads(const struct ilir_module *m, struct arena *arena)
{
	bool *reads = ARENA_ARRAY(arena, bool, m->nodes.n);
	for (uint32_t i = 1; i < m->nodes.n; i++) {
		const struct ilir_node *n = &m->nodes.at[i];
		reads[i] = n->op == ILIR_LOAD && ilir_buffer_at(m, n->buffer)->kind != ILIR_REGISTER;
		for (int a = 0; a < n->args; a++)
			reads[i] |= reads[ilir_arg(m, (ilir_expr){i}, a).i];
	}
	return reads;
}

bool jit_must_branch(const struct ilir_module *m, const bool *reads, ilir_expr x)
{
	return ilir_type_of(m, x).lanes == 1 && (reads[ilir_arg(m, x, 1).i] || reads[ilir_arg(m, x, 2).i]);
}

int64_t jit_divisor(const struct ilir_module *m, ilir_expr x)
{
	const struct ilir_node *b = ilir_at(m, ilir_arg(m, x, 1));
	return b->op == ILIR_CONST_I && b->i > 0 ? b->i : 0;
}
