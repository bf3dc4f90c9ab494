/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The epilogue of a tile, which is what it computes of its sums, as one loop over rows that is not unrolled.
 *
 *     alloc sum; sum[] = 0                       alloc sum : i32 [16] parked
 *     for k in 0..64                             for n2: sum[n2] = 0
 *       sum[] = dot4(.., sum[])           ->     for k in 0..64
 *     let y = tanh(to_f32(sum[]))                  for n2: sum[n2] = dot4(.., sum[n2])
 *     h[n1 + n2] = y                             for n in 0..16
 *                                                  let y = tanh(to_f32(sum[n]))
 *                                                  h[n1 + n] = y
 *
 * Matrix registers leave their sums in memory, so nothing is gained by a copy of the epilogue for each row,
 * as for sums in vector registers.  Only what comes from the statements before it differs by row, and is in
 * memory; its own values need no dimension for rows.  What is the same for all rows is computed once, before
 * the loop. */
#include "ilir/sink.h"

uint64_t sink_row_bit(const struct sink *s)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < s->loops.n; i++) {
		const struct ilir_stmt *l = s->loops.at[i].loop;
		if (s->active >> i & 1 && l->loop.kind == ILIR_UNROLLED && l->loop.step == 1)
			bits |= 1ull << i;
	}
	return bits & (bits - 1) ? 0 : bits;
}

/* What differs by row in a statement, and what it does to memory and to registers. */
struct row_use {
	const struct sink *s;
	uint64_t row;
	bool differs, carries; /* carries: it stores what differs by row to a register that rows share */
	struct map stored;     /* buffers */
};

static bool is_stored(const struct row_use *u, ilir_buffer b)
{
	return map_get(&u->stored, (const char *)&b, sizeof b) > 0;
}

static void note_leaf(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct row_use *u = context;
	(void)m;
	u->differs |= (sink_mask_of(u->s, e) & u->row) != 0;
}

static void note_statement(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct row_use *u = context;
	uint64_t own = s->kind == ILIR_ALLOC   ? u->s->buffer_mask.at[s->alloc.i]
		       : s->kind == ILIR_STORE ? u->s->buffer_mask.at[s->store.buffer.i]
					       : 0;
	u->differs |= (own & u->row) != 0;
	if (s->kind != ILIR_STORE)
		return;
	bool memory = !sink_is_register(m, s->store.buffer);
	u->carries |= !memory && !(own & u->row) && sink_store_mask(u->s, s) & u->row;
	u->differs |= memory;
	map_add(&u->stored, (const char *)&s->store.buffer, sizeof s->store.buffer, 1);
}

static struct row_use find_row_use(const struct sink *s, const struct ilir_stmt *block, uint64_t row)
{
	struct row_use u = {.s = s, .row = row, .stored = map_in(s->m->arena)};
	ilir_visit_block(s->m, block, &(struct ilir_visit){note_statement, note_leaf, &u});
	return u;
}

/* Whether a statement loads what the epilogue stores to memory. */
struct rereading {
	const struct row_use *all;
	bool found;
};

static void note_reload(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct rereading *r = context;
	const struct ilir_node *n = ilir_at(m, e);
	r->found |= n->op == ILIR_LOAD && !sink_is_register(m, n->buffer) && is_stored(r->all, n->buffer);
}

bool sink_can_loop_rows(const struct sink *s, const struct ilir_stmt *epilogue, uint64_t row)
{
	struct row_use all = find_row_use(s, epilogue, row);
	bool can = row && all.differs && !all.carries;
	for (const struct ilir_stmt *at = epilogue; can && at; at = at->next) {
		struct ilir_stmt alone = *at;
		struct rereading r = {&all, false};
		alone.next = NULL;
		if (!find_row_use(s, &alone, row).differs)
			ilir_visit_block(s->m, &alone,
					 &(struct ilir_visit){.expr = note_reload, .context = &r});
		can = !r.found;
	}
	return can;
}

/* Removes the loop over rows from the masks of what a statement defines. */
static void share_definition(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct row_use *u = context;
	struct sink *sink = (struct sink *)u->s;
	(void)m;
	if (s->kind == ILIR_FOR || s->kind == ILIR_LET)
		sink->var_mask.at[s->kind == ILIR_FOR ? s->loop.var.i : s->let.var.i] &= ~u->row;
	else if (s->kind == ILIR_ALLOC)
		sink->buffer_mask.at[s->alloc.i] &= ~u->row;
}

/* Parks the registers of which the loop selects elements. */
static void park_register(struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int n, ilir_var row)
{
	for (int d = 0; d < n && sink_is_register(m, b); d++)
		if (ilir_uses_var(m, index[d], row))
			ilir_buffer_at(m, b)->parked = true;
}

struct parking {
	struct ilir_module *m;
	ilir_var row;
};

static void park_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	const struct parking *p = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_LOAD)
		park_register(p->m, n->buffer, &m->args.at[n->arg], n->args, p->row);
}

static void park_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	const struct parking *p = context;
	(void)m;
	if (s->kind == ILIR_STORE)
		park_register(p->m, s->store.buffer, s->store.index, s->store.indices, p->row);
}

struct ilir_stmt *sink_rows(struct sink *s, const struct ilir_stmt *epilogue, uint64_t row)
{
	struct ilir_stmt *once = NULL, *each = NULL;
	for (const struct ilir_stmt *at = epilogue; at; at = at->next) {
		struct ilir_stmt *alone = arena_copy(s->m->arena, at, sizeof *at);
		alone->next = NULL;
		struct ilir_stmt **block = find_row_use(s, alone, row).differs ? &each : &once;
		*block = ilir_append(*block, alone);
	}
	struct row_use shared = {.s = s, .row = row};
	ilir_visit_block(s->m, each, &(struct ilir_visit){.stmt = share_definition, .context = &shared});
	once = sink_block(s, once);
	uint64_t saved = s->active;
	s->active &= ~row;
	each = sink_block(s, each);
	s->active = saved;
	struct ilir_stmt *loop = sink_wrap_in_loops(s, each, row);
	loop->loop.kind = ILIR_SERIAL;
	struct parking p = {s->m, loop->loop.var};
	ilir_visit_block(s->m, loop, &(struct ilir_visit){park_store, park_load, &p});
	return ilir_append(once, loop);
}
