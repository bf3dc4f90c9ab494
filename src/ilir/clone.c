/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Copies of blocks, and other functions that passes share. */
#include "base/map.h"
#include "ilir/passes.h"

struct clone {
	struct ilir_tiling *tiling;
	struct map var;	   /* old variable -> expression; no array, because blocks are many and small */
	struct map buffer; /* old register -> new one */
};

static void set_replacement(struct map *map, uint32_t old, uint32_t fresh)
{
	map_add(map, (const char *)&old, sizeof old, fresh);
}

/* The id that replaces an old one; 0 = it is kept. */
static uint32_t replacement_of(const struct map *map, uint32_t old)
{
	int fresh = map_get(map, (const char *)&old, sizeof old);
	return fresh < 0 ? 0 : fresh;
}

const struct ilir_tile *ilir_tile_of(const struct ilir_tiling *t, ilir_var v)
{
	for (size_t i = 0; i < t->tiles.n; i++)
		if (t->tiles.at[i].var.i == v.i)
			return &t->tiles.at[i];
	return NULL;
}

bool ilir_is_pipelined(const struct ilir_tiling *t, ilir_var v)
{
	size_t i = 0;
	while (i < t->pipelined.n && t->pipelined.at[i].i != v.i)
		i++;
	return i < t->pipelined.n;
}

static ilir_expr rename_leaf(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct clone *c = context;
	const struct ilir_node n = *ilir_at(m, e);
	uint32_t var = n.op == ILIR_VAR ? replacement_of(&c->var, n.var.i) : 0;
	uint32_t buffer = n.op == ILIR_LOAD ? replacement_of(&c->buffer, n.buffer.i) : 0;
	ilir_expr index[ILIR_MAX_RANK];
	if (!buffer)
		return var ? (ilir_expr){var} : e;
	for (int i = 0; i < n.args; i++)
		index[i] = ilir_arg(m, e, i);
	return ilir_load(m, (ilir_buffer){buffer}, index, n.args);
}

/* --- new names for the definitions of a block --- */

static ilir_var rename_var(struct ilir_module *m, struct clone *c, ilir_var v)
{
	ilir_var fresh = ilir_new_var(m, m->vars.at[v.i].name, m->vars.at[v.i].type);
	set_replacement(&c->var, v.i, ilir_var_ref(m, fresh).i);
	return fresh;
}

static void rename_register(struct ilir_module *m, struct clone *c, ilir_buffer b)
{
	set_replacement(&c->buffer, b.i, ilir_new_buffer(m, m->buffers.at[b.i]).i);
}

static void rename_loop(struct ilir_module *m, struct clone *c, ilir_var v)
{
	const struct ilir_tile *tile = c->tiling ? ilir_tile_of(c->tiling, v) : NULL;
	ilir_var fresh = rename_var(m, c, v);
	if (tile) {
		struct ilir_tile copy = *tile;
		copy.var = fresh;
		vec_push(m->arena, &c->tiling->tiles, copy);
	}
}

static void rename_definitions(struct ilir_module *m, struct clone *c, const struct ilir_stmt *s)
{
	for (; s; s = s->next)
		switch (s->kind) {
		case ILIR_FOR:
			rename_loop(m, c, s->loop.var);
			rename_definitions(m, c, s->loop.body);
			break;
		case ILIR_IF:
			rename_definitions(m, c, s->branch.then);
			rename_definitions(m, c, s->branch.otherwise);
			break;
		case ILIR_LET:
			rename_var(m, c, s->let.var);
			break;
		case ILIR_ALLOC:
			rename_register(m, c, s->alloc);
			break;
		case ILIR_STEP:
			rename_definitions(m, c, s->step.body);
			break;
		case ILIR_STORE:
		case ILIR_PREFETCH:
		case ILIR_FILL:
		case ILIR_SPILL:
		case ILIR_DOT:
		case ILIR_BARRIER:
			break;
		}
}

static ilir_var renamed_var(const struct ilir_module *m, const struct clone *c, ilir_var v)
{
	uint32_t fresh = replacement_of(&c->var, v.i);
	return fresh ? ilir_at(m, (ilir_expr){fresh})->var : v;
}

static ilir_buffer renamed_buffer(const struct clone *c, ilir_buffer b)
{
	uint32_t fresh = replacement_of(&c->buffer, b.i);
	return fresh ? (ilir_buffer){fresh} : b;
}

static void rename_product(const struct clone *c, struct ilir_stmt *s)
{
	s->dot.sum = renamed_buffer(c, s->dot.sum);
	s->dot.a = renamed_buffer(c, s->dot.a);
	s->dot.b = renamed_buffer(c, s->dot.b);
}

static struct ilir_stmt *rename_stmt(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	const struct clone *c = context;
	if (s->kind == ILIR_FOR)
		s->loop.var = renamed_var(m, c, s->loop.var);
	else if (s->kind == ILIR_LET)
		s->let.var = renamed_var(m, c, s->let.var);
	else if (s->kind == ILIR_ALLOC)
		s->alloc = renamed_buffer(c, s->alloc);
	else if (s->kind == ILIR_STORE)
		s->store.buffer = renamed_buffer(c, s->store.buffer);
	else if (s->kind == ILIR_FILL || s->kind == ILIR_SPILL)
		s->rows.matrix = renamed_buffer(c, s->rows.matrix);
	else if (s->kind == ILIR_DOT)
		rename_product(c, s);
	return s;
}

struct ilir_stmt *ilir_clone_block(struct ilir_module *m, const struct ilir_stmt *s,
				   struct ilir_tiling *tiling)
{
	struct clone c = {tiling, map_in(m->arena), map_in(m->arena)};
	rename_definitions(m, &c, s);
	struct ilir_rewrite r = {rename_leaf, rename_stmt, &c};
	return ilir_rewrite_block(m, s, &r);
}

struct ilir_stmt *ilir_substitute_block(struct ilir_module *m, const struct ilir_stmt *s, ilir_var v,
					ilir_expr by)
{
	struct clone c = {NULL, map_in(m->arena), map_in(m->arena)};
	set_replacement(&c.var, v.i, by.i);
	struct ilir_rewrite r = {rename_leaf, NULL, &c};
	return ilir_rewrite_block(m, s, &r);
}
