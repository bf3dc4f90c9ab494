/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: drops lets and registers that nothing reads, repeatedly, and marks buffers that nothing accesses as
 * unused, so that the image does not contain them. */
#include "ilir/passes.h"

struct used {
	bool *var, *buffer; /* by id */
	bool dropped;	    /* a statement, in this round */
};

static void use_expr(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct used *u = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR)
		u->var[n->var.i] = true;
	else if (n->op == ILIR_LOAD)
		u->buffer[n->buffer.i] = true;
}

/* Matrix registers are named by statements.  Steps over rows of some cases read the buffer of cases, those over edges that of where edges begin. */
static void use_structure(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct used *u = context;
	if (s->kind == ILIR_DOT)
		u->buffer[s->dot.sum.i] = u->buffer[s->dot.a.i] = u->buffer[s->dot.b.i] = true;
	if (s->kind == ILIR_FILL || s->kind == ILIR_SPILL)
		u->buffer[s->rows.matrix.i] = true;
	if (s->kind == ILIR_STEP && s->step.cases)
		u->buffer[ilir_find_buffer(m, IMAGE_CASE).i] = true;
	if (s->kind == ILIR_STEP && s->step.sort)
		u->buffer[ilir_find_buffer(m, IMAGE_CHILD_BEGIN).i] = true;
}

static struct ilir_stmt *drop_unused(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct used *u = context;
	ilir_buffer b = s->kind == ILIR_STORE ? s->store.buffer : s->kind == ILIR_ALLOC ? s->alloc : (ilir_buffer){0};
	bool dead = b.i && ilir_buffer_at(m, b)->kind == ILIR_REGISTER && !u->buffer[b.i];
	dead |= s->kind == ILIR_LET && !u->var[s->let.var.i];
	dead |= s->kind == ILIR_FOR && !s->loop.body;
	u->dropped |= dead;
	return dead ? NULL : s;
}

static void note_uses(const struct ilir_module *m, struct used *u)
{
	u->var = ARENA_ARRAY(m->arena, bool, m->vars.n);
	u->buffer = ARENA_ARRAY(m->arena, bool, m->buffers.n);
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_block(m, m->kernels.at[k].body, &(struct ilir_visit){.stmt = use_structure, .expr = use_expr, .context = u});
}

static void note_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	(void)m;
	struct used *u = context;
	if (s->kind == ILIR_STORE)
		u->buffer[s->store.buffer.i] = true;
}

void ilir_clean(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	struct used u;
	do {
		u.dropped = false;
		note_uses(m, &u);
		ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = drop_unused, .context = &u});
	} while (u.dropped);
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_block(m, m->kernels.at[k].body, &(struct ilir_visit){.stmt = note_store, .context = &u});
	for (size_t c = 0; c < m->calls.n; c++)
		for (int i = 0; i < m->calls.at[c].operands; i++)
			u.buffer[m->calls.at[c].operand[i].buffer.i] = true;
	for (size_t b = 1; b < m->buffers.n; b++) /* a result, whether kernels use it or not */
		if (m->buffers.at[b].table.i)
			u.buffer[b] = u.buffer[m->buffers.at[b].table.i] = u.buffer[m->buffers.at[b].read_row.i] = true;
	for (size_t b = 1; b < m->buffers.n; b++)
		if (!u.buffer[b] && m->buffers.at[b].kind != ILIR_REGISTER) {
			m->buffers.at[b].kind = ILIR_UNUSED;
			m->buffers.at[b].recipe = NULL;
		}
}
