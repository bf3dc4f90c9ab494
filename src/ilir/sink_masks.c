/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which loops of a nest sink, and with which of them each value differs. */
#include "ilir/sink.h"

/* --- the loops that a value differs with --- */

struct mask {
	const struct sink *s;
	uint64_t bits;
};

static void mask_leaf(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct mask *mask = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR && n->var.i < mask->s->var_mask.n)
		mask->bits |= mask->s->var_mask.at[n->var.i];
	else if (n->op == ILIR_LOAD && n->buffer.i < mask->s->buffer_mask.n)
		mask->bits |= mask->s->buffer_mask.at[n->buffer.i];
}

uint64_t sink_mask_of(const struct sink *s, ilir_expr e)
{
	struct mask mask = {s, 0};
	ilir_visit_expr(s->m, e, &(struct ilir_visit){.expr = mask_leaf, .context = &mask});
	return mask.bits;
}

uint64_t sink_store_mask(const struct sink *s, const struct ilir_stmt *stmt)
{
	uint64_t mask = sink_mask_of(s, stmt->store.value);
	for (int i = 0; i < stmt->store.indices; i++)
		mask |= sink_mask_of(s, stmt->store.index[i]);
	return mask;
}

bool sink_is_register(const struct ilir_module *m, ilir_buffer b)
{
	return ilir_buffer_at(m, b)->kind == ILIR_REGISTER;
}

static void add_mask(struct sink *s, uint64_t *to, uint64_t bits)
{
	s->changed |= (*to | bits) != *to;
	*to |= bits;
}

static void mask_var(struct sink *s, ilir_var v, uint64_t bits)
{
	if (bits && !s->var_mask.at[v.i])
		vec_push(s->m->arena, &s->masked_vars, v);
	add_mask(s, &s->var_mask.at[v.i], bits);
}

void sink_mask_buffer(struct sink *s, ilir_buffer b, uint64_t bits)
{
	if (bits && !s->buffer_mask.at[b.i])
		vec_push(s->m->arena, &s->masked_buffers, b);
	add_mask(s, &s->buffer_mask.at[b.i], bits);
}

/* --- the loops that sink --- */

struct independence {
	const struct ilir_module *m;
	VEC(uint32_t) own; /* registers that the body allocates */
	const struct ilir_stmt *loop;
	bool ok;
};

static void note_alloc(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct independence *in = context;
	if (s->kind == ILIR_ALLOC)
		vec_push(m->arena, &in->own, s->alloc.i);
}

struct touching {
	uint32_t buffer;
	int stores, loads;
};

static void touch_expr(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct touching *t = context;
	const struct ilir_node *n = ilir_at(m, e);
	t->loads += n->op == ILIR_LOAD && n->buffer.i == t->buffer;
}

static void touch_stmt(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct touching *t = context;
	(void)m;
	t->stores += s->kind == ILIR_STORE && s->store.buffer.i == t->buffer;
}

/* Whether a loop around loops carries a register from iteration to iteration in a single statement of its
 * body.  Then that statement can keep the order of iterations while those of the other statements are
 * interleaved. */
static bool is_carried(const struct ilir_module *m, const struct ilir_stmt *loop, ilir_buffer b)
{
	struct touching all = {.buffer = b.i}, own = {.buffer = b.i};
	bool loops = false;
	const struct ilir_visit look = {touch_stmt, touch_expr, &all},
				look_own = {touch_stmt, touch_expr, &own};
	if (loop->loop.kind != ILIR_UNROLLED)
		return false;
	ilir_visit_block(m, loop->loop.body, &look);
	for (const struct ilir_stmt *s = loop->loop.body; s; s = s->next) {
		loops |= s->kind == ILIR_FOR && s->loop.kind == ILIR_SERIAL;
		struct ilir_stmt alone = *s;
		alone.next = NULL;
		if (s->kind == ILIR_STORE && s->store.buffer.i == b.i)
			ilir_visit_block(m, &alone, &look_own);
	}
	return loops && all.stores == 1 && own.stores == 1 && own.loads == all.loads;
}

static void note_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct independence *in = context;
	if (s->kind != ILIR_STORE || !sink_is_register(m, s->store.buffer))
		return;
	for (size_t i = 0; i < in->own.n; i++)
		if (in->own.at[i] == s->store.buffer.i)
			return;
	in->ok &= is_carried(m, in->loop, s->store.buffer);
}

bool sink_can_move(const struct ilir_module *m, const struct ilir_stmt *s)
{
	struct independence in = {
	    .m = m, .loop = s, .ok = s->kind == ILIR_FOR && s->loop.kind != ILIR_SERIAL};
	if (in.ok) {
		ilir_visit_block(m, s->loop.body, &(struct ilir_visit){.stmt = note_alloc, .context = &in});
		ilir_visit_block(m, s->loop.body, &(struct ilir_visit){.stmt = note_store, .context = &in});
	}
	return in.ok;
}

uint64_t sink_bit_of(const struct sink *s, const struct ilir_stmt *loop)
{
	for (size_t i = 0; i < s->loops.n; i++)
		if (s->loops.at[i].loop == loop)
			return 1ull << i;
	return 0;
}

/* The loops that carry a register, which therefore does not differ with their iterations. */
static uint64_t carriers_of(const struct sink *s, ilir_buffer b)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < s->loops.n; i++)
		if (is_carried(s->m, s->loops.at[i].loop, b))
			bits |= 1ull << i;
	return bits;
}

/* Sets the masks of what a block defines and stores.  `control` are the loops that decide whether the
 * block runs. */
static void mark_block(struct sink *s, const struct ilir_stmt *b, uint64_t control)
{
	for (; b; b = b->next) {
		uint64_t inner = control;
		switch (b->kind) {
		case ILIR_FOR:
			inner |= sink_mask_of(s, b->loop.begin) | sink_mask_of(s, b->loop.end);
			mask_var(s, b->loop.var, inner | sink_bit_of(s, b));
			mark_block(s, b->loop.body, inner);
			break;
		case ILIR_IF:
			inner |= sink_mask_of(s, b->branch.condition);
			mark_block(s, b->branch.then, inner);
			mark_block(s, b->branch.otherwise, inner);
			break;
		case ILIR_LET:
			mask_var(s, b->let.var, control | sink_mask_of(s, b->let.value));
			break;
		case ILIR_STORE:
			if (sink_is_register(s->m, b->store.buffer))
				sink_mask_buffer(s, b->store.buffer,
						 (control | sink_store_mask(s, b)) &
						     ~carriers_of(s, b->store.buffer));
			break;
		default:
			break;
		}
	}
}

static void find_loops(struct sink *s, const struct ilir_stmt *b)
{
	for (; b; b = b->next) {
		if (s->loops.n < MAX_SUNK && sink_can_move(s->m, b))
			vec_push(s->m->arena, &s->loops, (struct sunk){b, b->loop.dim});
		if (b->kind == ILIR_FOR)
			find_loops(s, b->loop.body);
		else if (b->kind == ILIR_IF)
			find_loops(s, b->branch.then), find_loops(s, b->branch.otherwise);
	}
}

/* --- tables --- */

/* Extends the tables to variables and registers that earlier nests added. */
static void reserve_masks(struct sink *s)
{
	while (s->var_mask.n < s->m->vars.n) {
		vec_push(s->m->arena, &s->var_mask, 0);
		vec_push(s->m->arena, &s->as_register, (ilir_buffer){0});
	}
	while (s->buffer_mask.n < s->m->buffers.n)
		vec_push(s->m->arena, &s->buffer_mask, 0);
}

void sink_clear_masks(struct sink *s)
{
	for (size_t i = 0; i < s->masked_vars.n; i++) {
		s->var_mask.at[s->masked_vars.at[i].i] = 0;
		s->as_register.at[s->masked_vars.at[i].i] = (ilir_buffer){0};
	}
	for (size_t i = 0; i < s->masked_buffers.n; i++)
		s->buffer_mask.at[s->masked_buffers.at[i].i] = 0;
	s->masked_vars.n = s->masked_buffers.n = s->loops.n = 0;
}

void sink_find_masks(struct sink *s, const struct ilir_stmt *nest)
{
	reserve_masks(s);
	find_loops(s, nest);
	do {
		s->changed = false;
		mark_block(s, nest, 0);
	} while (s->changed);
}
