/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Constructors of variables, buffers, dimensions and statements. */
#include "ilir/ilir.h"

/* --- variables, buffers, dimensions --- */

/* The name itself if it is free, else with the next free suffix: h, h.1, h.2. */
static const char *fresh_name(struct ilir_module *m, const char *name)
{
	if (map_add(&m->names, name, strlen(name), 1))
		return name;
	for (int suffix = map_get(&m->names, name, strlen(name));; suffix++) {
		struct str s = str_in(m->arena);
		str_printf(&s, "%s.%d", name, suffix);
		if (map_add(&m->names, s.text, s.n, 1)) {
			*map_at(&m->names, name, strlen(name)) = suffix + 1;
			return s.text;
		}
	}
}

ilir_var ilir_new_var(struct ilir_module *m, const char *name, struct ilir_type type)
{
	vec_push(m->arena, &m->vars, (struct ilir_var_decl){fresh_name(m, name), type});
	return (ilir_var){m->vars.n - 1};
}

ilir_buffer ilir_new_buffer(struct ilir_module *m, struct ilir_buffer_decl b)
{
	b.name = fresh_name(m, b.name);
	vec_push(m->arena, &m->buffers, b);
	return (ilir_buffer){m->buffers.n - 1};
}

int ilir_dim_name(struct ilir_module *m, const char *name)
{
	for (size_t i = 0; i < m->dims.n; i++)
		if (strcmp(m->dims.at[i], name) == 0)
			return i;
	vec_push(m->arena, &m->dims, name);
	return m->dims.n - 1;
}

ilir_buffer ilir_find_buffer(const struct ilir_module *m, enum image_buffer_kind kind)
{
	uint32_t i = 1;
	while (i < m->buffers.n && m->buffers.at[i].kind != (int)kind)
		i++;
	return (ilir_buffer){i < m->buffers.n ? i : 0};
}

int ilir_buffer_slot(const struct ilir_module *m, ilir_buffer b)
{
	int slot = 0;
	if (!ilir_traits_of(ilir_buffer_at(m, b)))
		return -1;
	for (uint32_t i = 1; i < b.i; i++)
		slot += ilir_traits_of(&m->buffers.at[i]) != NULL;
	return slot;
}

/* --- statements --- */

static struct ilir_stmt *new_stmt(struct ilir_module *m, struct ilir_stmt s)
{
	return arena_copy(m->arena, &s, sizeof s);
}

struct ilir_stmt *ilir_for(struct ilir_module *m, ilir_var v, ilir_expr begin, ilir_expr end, int64_t step,
			   int dim, enum ilir_loop_kind kind, struct ilir_stmt *body)
{
	return new_stmt(m,
			(struct ilir_stmt){.kind = ILIR_FOR, .loop = {v, begin, end, step, dim, kind, body}});
}

struct ilir_stmt *ilir_if(struct ilir_module *m, ilir_expr condition, struct ilir_stmt *then,
			  struct ilir_stmt *otherwise)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_IF, .branch = {condition, then, otherwise}});
}

struct ilir_stmt *ilir_let(struct ilir_module *m, ilir_var v, ilir_expr value)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_LET, .let = {v, value}});
}

struct ilir_stmt *ilir_alloc(struct ilir_module *m, ilir_buffer b)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_ALLOC, .alloc = b});
}

struct ilir_stmt *ilir_store(struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int n,
			     ilir_expr value)
{
	struct ilir_stmt s = {.kind = ILIR_STORE, .store = {.buffer = b, .indices = n, .value = value}};
	for (int i = 0; i < n; i++)
		s.store.index[i] = index[i];
	return new_stmt(m, s);
}

struct ilir_stmt *ilir_prefetch(struct ilir_module *m, ilir_expr load, bool writes)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_PREFETCH, .prefetch = {load, writes}});
}

struct ilir_stmt *ilir_fill(struct ilir_module *m, ilir_buffer matrix, ilir_expr first, ilir_expr last)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_FILL, .rows = {matrix, first, last}});
}

struct ilir_stmt *ilir_spill(struct ilir_module *m, ilir_buffer matrix, ilir_expr first, ilir_expr last)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_SPILL, .rows = {matrix, first, last}});
}

struct ilir_stmt *ilir_dot(struct ilir_module *m, enum ilir_op op, ilir_buffer sum, ilir_buffer a, ilir_buffer b)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_DOT, .dot = {op, sum, a, b}});
}

struct ilir_stmt *ilir_barrier(struct ilir_module *m)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_BARRIER});
}

struct ilir_stmt *ilir_step(struct ilir_module *m, const char *name, int group, ilir_expr begin,
			    ilir_expr end, struct ilir_stmt *body)
{
	return new_stmt(m, (struct ilir_stmt){.kind = ILIR_STEP, .step = {name, group, begin, end, .body = body}});
}

struct ilir_stmt *ilir_append(struct ilir_stmt *a, struct ilir_stmt *b)
{
	if (!a)
		return b;
	struct ilir_stmt *last = a;
	while (last->next)
		last = last->next;
	last->next = b;
	return a;
}
