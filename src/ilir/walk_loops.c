/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The walkers that every pass is made of: map an expression, rewrite a block, visit a block. */
#include "ilir/ilir.h"

#include <stdlib.h>

/* --- the distinct nodes of an expression --- */

enum { FEW = 96 };

/* The set of nodes below some roots.  Constructors intern arguments before the node that uses them, so
 * arguments come first in ascending order of references.  A small set is kept in the struct, on the walker's
 * stack; a larger one in the module's arena. */
struct reach {
	const struct ilir_module *m;
	uint32_t *at, *table; /* table: open addressing, 2 * capacity slots, 0 = free */
	uint32_t n, capacity;
	uint32_t few[FEW], few_table[2 * FEW];
};

static void reach_init(struct reach *r, const struct ilir_module *m)
{
	r->m = m;
	r->n = 0;
	r->capacity = FEW;
	r->at = r->few;
	r->table = r->few_table;
	memset(r->few_table, 0, sizeof r->few_table);
}

static uint32_t *reach_slot(const struct reach *r, uint32_t e)
{
	for (uint32_t i = e * 2654435761u;; i++) {
		uint32_t *slot = &r->table[i % (2 * r->capacity)];
		if (!*slot || *slot == e)
			return slot;
	}
}

static void reach_grow(struct reach *r)
{
	uint32_t *at = ARENA_ARRAY(r->m->arena, uint32_t, 2 * r->capacity);
	memcpy(at, r->at, r->n * sizeof *at);
	r->at = at;
	r->capacity *= 2;
	r->table = ARENA_ARRAY(r->m->arena, uint32_t, 2 * r->capacity);
	for (uint32_t i = 0; i < r->n; i++)
		*reach_slot(r, at[i]) = at[i];
}

static void reach_add(struct reach *r, ilir_expr e)
{
	uint32_t *slot = reach_slot(r, e.i);
	if (!e.i || *slot)
		return;
	*slot = e.i;
	r->at[r->n++] = e.i;
	if (r->n == r->capacity)
		reach_grow(r);
}

static int compare_refs(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Sorts the set.  Roots were added first, so the reversed set is nearly sorted. */
static void reach_order(struct reach *r)
{
	if (r->n > FEW) {
		qsort(r->at, r->n, sizeof *r->at, compare_refs);
		return;
	}
	for (uint32_t i = 0, j = r->n; i + 1 < j; i++) {
		uint32_t last = r->at[--j];
		r->at[j] = r->at[i];
		r->at[i] = last;
	}
	for (uint32_t i = 1; i < r->n; i++) {
		uint32_t e = r->at[i], j = i;
		for (; j && r->at[j - 1] > e; j--)
			r->at[j] = r->at[j - 1];
		r->at[j] = e;
	}
}

/* Adds all nodes below the roots, and sorts the set. */
static void reach_close(struct reach *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		ilir_expr e = {r->at[i]};
		for (int k = 0; k < ilir_at(r->m, e)->args; k++)
			reach_add(r, ilir_arg(r->m, e, k));
	}
	reach_order(r);
}

static uint32_t reach_place(const struct reach *r, ilir_expr e)
{
	uint32_t low = 0, high = r->n;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;
		if (r->at[middle] > e.i)
			high = middle;
		else
			low = middle;
	}
	return low;
}

/* --- mapping expressions --- */

/* The node with its arguments mapped; the node itself if none changed. */
static ilir_expr with_mapped_args(struct ilir_module *m, ilir_expr e, const struct reach *r,
				  const ilir_expr *mapped)
{
	ilir_expr args[ILIR_MAX_RANK];
	bool changed = false;
	for (int i = 0; i < ilir_at(m, e)->args; i++) {
		ilir_expr old = ilir_arg(m, e, i);
		args[i] = mapped[reach_place(r, old)];
		changed |= args[i].i != old.i;
	}
	return changed ? ilir_with_args(m, e, args) : e;
}

ilir_expr ilir_map_expr(struct ilir_module *m, ilir_expr e, ilir_expr_map *map, void *context)
{
	if (!e.i)
		return e;
	struct reach r;
	reach_init(&r, m);
	reach_add(&r, e);
	reach_close(&r);
	ilir_expr few[FEW] = {{0}}, *mapped = r.n <= FEW ? few : ARENA_ARRAY(m->arena, ilir_expr, r.n);
	for (uint32_t i = 0; i < r.n; i++)
		mapped[i] = map(m, with_mapped_args(m, (ilir_expr){r.at[i]}, &r, mapped), context);
	return mapped[r.n - 1];
}

struct replacement {
	ilir_var var;
	ilir_expr by;
};

static ilir_expr replace_var(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct replacement *p = context;
	const struct ilir_node *n = ilir_at(m, e);
	return n->op == ILIR_VAR && n->var.i == p->var.i ? p->by : e;
}

ilir_expr ilir_substitute(struct ilir_module *m, ilir_expr e, ilir_var var, ilir_expr by)
{
	struct replacement p = {var, by};
	return ilir_map_expr(m, e, replace_var, &p);
}

/* --- expressions and blocks of a statement --- */

enum { MOST_EXPRS = ILIR_MAX_RANK + 1 };

/* Pointers to the expressions of a statement itself, in the order of evaluation. */
static int exprs_of(struct ilir_stmt *s, ilir_expr *at[MOST_EXPRS])
{
	int n = 0;
	switch (s->kind) {
	case ILIR_FOR:
		at[n++] = &s->loop.begin;
		at[n++] = &s->loop.end;
		break;
	case ILIR_IF:
		at[n++] = &s->branch.condition;
		break;
	case ILIR_LET:
		at[n++] = &s->let.value;
		break;
	case ILIR_STORE:
		for (int i = 0; i < s->store.indices; i++)
			at[n++] = &s->store.index[i];
		at[n++] = &s->store.value;
		break;
	case ILIR_PREFETCH:
		at[n++] = &s->prefetch.load;
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		at[n++] = &s->rows.first;
		at[n++] = &s->rows.last;
		break;
	case ILIR_STEP:
		at[n++] = &s->step.begin;
		at[n++] = &s->step.end;
		break;
	case ILIR_ALLOC:
	case ILIR_DOT:
	case ILIR_BARRIER:
		break;
	}
	return n;
}

/* Pointers to the blocks inside a statement. */
static int blocks_of(struct ilir_stmt *s, struct ilir_stmt **at[2])
{
	switch (s->kind) {
	case ILIR_FOR:
		at[0] = &s->loop.body;
		return 1;
	case ILIR_STEP:
		at[0] = &s->step.body;
		return 1;
	case ILIR_IF:
		at[0] = &s->branch.then;
		at[1] = &s->branch.otherwise;
		return 2;
	default:
		return 0;
	}
}

/* --- rewriting blocks --- */

static struct ilir_stmt *rewrite_stmt(struct ilir_module *m, const struct ilir_stmt *old,
				      const struct ilir_rewrite *r)
{
	struct ilir_stmt *s = arena_copy(m->arena, old, sizeof *old), **block[2];
	ilir_expr *expr[MOST_EXPRS];
	s->next = NULL;
	int exprs = r->expr ? exprs_of(s, expr) : 0;
	for (int i = 0; i < exprs; i++)
		*expr[i] = ilir_map_expr(m, *expr[i], r->expr, r->context);
	int blocks = blocks_of(s, block);
	for (int i = 0; i < blocks; i++)
		*block[i] = ilir_rewrite_block(m, *block[i], r);
	return r->stmt ? r->stmt(m, s, r->context) : s;
}

struct ilir_stmt *ilir_rewrite_block(struct ilir_module *m, const struct ilir_stmt *s,
				     const struct ilir_rewrite *r)
{
	struct ilir_stmt *first = NULL, **end = &first;
	for (; s; s = s->next) {
		*end = rewrite_stmt(m, s, r);
		while (*end)
			end = &(*end)->next;
	}
	return first;
}

void ilir_rewrite_module(struct ilir_module *m, const struct ilir_rewrite *r)
{
	for (size_t i = 0; i < m->kernels.n; i++) {
		struct ilir_stmt *body = ilir_rewrite_block(m, m->kernels.at[i].body, r);
		m->kernels.at[i].body = body; /* kernels.at may have moved: callbacks may add kernels */
	}
}

/* --- visiting --- */

static void visit_reach(const struct ilir_module *m, struct reach *r, const struct ilir_visit *v)
{
	reach_close(r);
	for (uint32_t i = 0; i < r->n; i++)
		v->expr(m, (ilir_expr){r->at[i]}, v->context);
}

void ilir_visit_expr(const struct ilir_module *m, ilir_expr e, const struct ilir_visit *v)
{
	struct reach r;
	if (!v->expr)
		return;
	reach_init(&r, m);
	reach_add(&r, e);
	visit_reach(m, &r, v);
}

static void visit_exprs(const struct ilir_module *m, const struct ilir_stmt *s, const struct ilir_visit *v)
{
	struct ilir_stmt copy = *s;
	ilir_expr *expr[MOST_EXPRS];
	struct reach r;
	reach_init(&r, m);
	int n = exprs_of(&copy, expr);
	for (int i = 0; i < n; i++)
		reach_add(&r, *expr[i]);
	visit_reach(m, &r, v);
}

void ilir_visit_block(const struct ilir_module *m, const struct ilir_stmt *s, const struct ilir_visit *v)
{
	for (; s; s = s->next) {
		struct ilir_stmt copy = *s, **block[2];
		if (v->stmt)
			v->stmt(m, s, v->context);
		if (v->expr)
			visit_exprs(m, s, v);
		int blocks = blocks_of(&copy, block);
		for (int i = 0; i < blocks; i++)
			ilir_visit_block(m, *block[i], v);
	}
}

struct search {
	ilir_var var;
	bool found;
};

static void compare_var(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct search *s = context;
	const struct ilir_node *n = ilir_at(m, e);
	s->found |= n->op == ILIR_VAR && n->var.i == s->var.i;
}

bool ilir_uses_var(const struct ilir_module *m, ilir_expr e, ilir_var var)
{
	struct search s = {.var = var};
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = compare_var, .context = &s});
	return s.found;
}
