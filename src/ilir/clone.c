/* Copies of blocks, and what else passes share. */
#include "ilir/passes.h"

struct clone {
	struct ilir_tiling *tiling;
	VEC(ilir_expr) var;      /* by old variable; none = kept */
	VEC(ilir_buffer) buffer; /* by old register; none = kept */
};

bool ilir_constant(const struct ilir_module *m, ilir_expr e, int64_t *value)
{
	const struct ilir_node *n = ilir_at(m, e);
	*value = n->i;
	return n->op == ILIR_CONST_I && n->type.dtype == ILIR_INDEX;
}

const struct ilir_tile *ilir_tile_of(const struct ilir_tiling *t, ilir_var v)
{
	for (size_t i = 0; i < t->tiles.n; i++)
		if (t->tiles.at[i].var.i == v.i)
			return &t->tiles.at[i];
	return NULL;
}

static ilir_expr rename_leaf(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct clone *c = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR && n->var.i < c->var.n && c->var.at[n->var.i].i)
		return c->var.at[n->var.i];
	if (n->op == ILIR_LOAD && n->buffer.i < c->buffer.n && c->buffer.at[n->buffer.i].i) {
		ilir_expr index[ILIR_MAX_RANK];
		for (int i = 0; i < n->args; i++)
			index[i] = ilir_arg(m, e, i);
		return ilir_load(m, c->buffer.at[n->buffer.i], index, n->args);
	}
	return e;
}

/* --- definitions of a block get new names --- */

static ilir_var rename_var(struct ilir_module *m, struct clone *c, ilir_var v)
{
	ilir_var fresh = ilir_new_var(m, m->vars.at[v.i].name, m->vars.at[v.i].type);
	while (c->var.n <= v.i)
		vec_push(m->arena, &c->var, (ilir_expr){0});
	c->var.at[v.i] = ilir_var_ref(m, fresh);
	return fresh;
}

static void rename_register(struct ilir_module *m, struct clone *c, ilir_buffer b)
{
	while (c->buffer.n <= b.i)
		vec_push(m->arena, &c->buffer, (ilir_buffer){0});
	c->buffer.at[b.i] = ilir_new_buffer(m, m->buffers.at[b.i]);
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
		case ILIR_BARRIER:
			break;
		}
}

static ilir_var renamed_var(const struct ilir_module *m, const struct clone *c, ilir_var v)
{
	return v.i < c->var.n && c->var.at[v.i].i ? ilir_at(m, c->var.at[v.i])->var : v;
}

static ilir_buffer renamed_buffer(const struct clone *c, ilir_buffer b)
{
	return b.i < c->buffer.n && c->buffer.at[b.i].i ? c->buffer.at[b.i] : b;
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
	return s;
}

struct ilir_stmt *ilir_clone_block(struct ilir_module *m, const struct ilir_stmt *s, struct ilir_tiling *tiling)
{
	struct clone c = {.tiling = tiling};
	rename_definitions(m, &c, s);
	struct ilir_rewrite r = {rename_leaf, rename_stmt, &c};
	return ilir_rewrite_block(m, s, &r);
}

struct ilir_stmt *ilir_substitute_block(struct ilir_module *m, const struct ilir_stmt *s, ilir_var v, ilir_expr by)
{
	struct clone c = {0};
	while (c.var.n <= v.i)
		vec_push(m->arena, &c.var, (ilir_expr){0});
	c.var.at[v.i] = by;
	struct ilir_rewrite r = {rename_leaf, NULL, &c};
	return ilir_rewrite_block(m, s, &r);
}
