/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Blocks under construction: their statements, where names are defined, and in which outer scope a value
 * can be placed. */
#include "ilir/lower.h"

struct scope *lower_scope_new(struct lowering *l, struct scope *outer, bool reduction)
{
	struct scope *s = ARENA_NEW(l->m->arena, struct scope);
	*s = (struct scope){.outer = outer, .depth = outer ? outer->depth + 1 : 0, .reduction = reduction};
	s->memo = map_in(l->m->arena);
	return s;
}

void lower_scope_add(struct lowering *l, struct scope *s, struct ilir_stmt *stmt, struct lower_loop *loop)
{
	vec_push(l->m->arena, &s->items, (struct scope_item){stmt, loop});
}

/* The loop over the blocks of a sum of words of f16 around that over one of them. */
static struct ilir_stmt *finish_blocks(struct lowering *l, const struct lower_loop *loop, struct ilir_stmt *words)
{
	struct ilir_module *m = l->m;
	struct ilir_stmt *block = ilir_append(loop->open, ilir_append(words, loop->close));
	if (loop->block == loop->extent)
		return ilir_substitute_block(m, block, loop->block_at, ilir_index(m, 0));
	return ilir_for(m, loop->block_at, loop->begin, ilir_index(m, loop->extent), loop->block, loop->dim, ILIR_SERIAL, block);
}

/* Of several variables, those of one element have no loop, but for that over blocks, which matrix registers compute
 * (use_matrices.c). */
static struct ilir_stmt *finish_loop(struct lowering *l, const struct lower_loop *loop)
{
	struct ilir_module *m = l->m;
	struct ilir_stmt *block = lower_scope_finish(l, loop->body);
	if (loop->outers && loop->extent == 1)
		block = ilir_substitute_block(m, block, loop->var, ilir_index(m, 0));
	else
		block = ilir_for(m, loop->var, loop->begin, loop->end, 1, loop->dim, ILIR_SERIAL, block);
	if (loop->block)
		block = finish_blocks(l, loop, block);
	for (int i = loop->outers; i-- > 0;) {
		const struct lower_outer_loop *outer = &loop->outer[i];
		if (outer->extent == 1 && !loop->block)
			block = ilir_substitute_block(m, block, outer->var, ilir_index(m, 0));
		else
			block = ilir_for(m, outer->var, ilir_index(m, 0), ilir_index(m, outer->extent), 1, outer->dim,
					 ILIR_SERIAL, block);
	}
	if (loop->slots)
		block = ilir_for(m, loop->slot, ilir_index(m, 0), ilir_index(m, loop->slots), 1,
				 ilir_dim_name(m, "slot"), ILIR_SERIAL, block);
	return block;
}

/* The statements of a scope from the i-th on.  What follows a reduction that is cut runs after its last piece. */
static struct ilir_stmt *finish_items(struct lowering *l, const struct scope *s, size_t i)
{
	struct ilir_stmt *first = NULL, **link = &first;
	for (; i < s->items.n; i++) {
		const struct lower_loop *loop = s->items.at[i].loop;
		if (loop && loop->park) {
			*link = lower_cut_loops(l, loop, finish_loop(l, loop), finish_items(l, s, i + 1));
			return first;
		}
		*link = loop ? ilir_append(loop->prologue, finish_loop(l, loop)) : s->items.at[i].stmt;
		while (*link)
			link = &(*link)->next;
	}
	return first;
}

struct ilir_stmt *lower_scope_finish(struct lowering *l, const struct scope *s)
{
	return finish_items(l, s, 0);
}

void lower_define(struct lowering *l, bool is_buffer, uint32_t id, int depth, int place)
{
	uint32_t key[2] = {is_buffer, id};
	map_add(&l->places, (const char *)key, sizeof key, l->defined.n);
	vec_push(l->m->arena, &l->defined, (struct definition){depth, place});
}

static const struct definition *definition_of(const struct lowering *l, bool is_buffer, uint32_t id)
{
	uint32_t key[2] = {is_buffer, id};
	int at = map_get(&l->places, (const char *)key, sizeof key);
	return at < 0 ? NULL : &l->defined.at[at];
}

static const struct definition *definition_at(const struct lowering *l, const struct ilir_module *m,
					      ilir_expr e)
{
	const struct ilir_node *n = ilir_at(m, e);
	return n->op == ILIR_VAR    ? definition_of(l, false, n->var.i)
	       : n->op == ILIR_LOAD ? definition_of(l, true, n->buffer.i)
				    : NULL;
}

/* State of lower_depth_of. */
struct deepest {
	const struct lowering *l;
	int depth;
};

static void note_depth(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct deepest *r = context;
	const struct definition *d = definition_at(r->l, m, e);
	if (d && d->depth > r->depth)
		r->depth = d->depth;
}

int lower_depth_of(const struct lowering *l, const ilir_expr *e, int n)
{
	struct deepest r = {l, 0};
	struct ilir_visit visit = {.expr = note_depth, .context = &r};
	for (int i = 0; i < n; i++)
		ilir_visit_expr(l->m, e[i], &visit);
	return r.depth;
}

/* State of lower_last_place. */
struct last {
	const struct lowering *l;
	int depth, place;
};

static void note_place(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct last *last = context;
	const struct definition *d = definition_at(last->l, m, e);
	if (d && d->depth == last->depth && d->place > last->place)
		last->place = d->place;
}

int lower_last_place(const struct lowering *l, ilir_expr e, int depth)
{
	struct last last = {l, depth, -1};
	struct ilir_visit visit = {.expr = note_place, .context = &last};
	ilir_visit_expr(l->m, e, &visit);
	return last.place;
}

struct scope *lower_scope_at(const struct lowering *l, int depth)
{
	struct scope *s = l->scope;
	while (s->depth > depth && s->depth > l->floor)
		s = s->outer;
	return s;
}
