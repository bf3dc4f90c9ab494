/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Faults in loops, in one place after some pass. */
#ifndef ESPALIER_TESTS_MUTATION_LOOPS_H
#define ESPALIER_TESTS_MUTATION_LOOPS_H

#include "tests/mutation/mutant.h"

static bool rewrite_loops(struct ilir_module *m, ilir_expr_map *expr,
			  struct ilir_stmt *(*stmt)(struct ilir_module *, struct ilir_stmt *, void *),
			  struct choice *c)
{
	ilir_rewrite_module(m, &(struct ilir_rewrite){.expr = expr, .stmt = stmt, .context = c});
	return c->done;
}

/* --- expressions --- */

static ilir_expr swap_subtraction(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op != ILIR_SUB || n->type.dtype != ILIR_F32 || !is_chosen(context))
		return e;
	ilir_expr x = ilir_arg(m, e, 0), y = ilir_arg(m, e, 1);
	return ilir_binary(m, ILIR_SUB, y, x);
}

static bool swapped_subtraction(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, swap_subtraction, NULL, c);
}

static ilir_buffer buffer_of(const struct ilir_module *m, int kind, int which)
{
	for (uint32_t i = 1; i < m->buffers.n; i++)
		if (m->buffers.at[i].kind == kind && m->buffers.at[i].which == which)
			return (ilir_buffer){i};
	return (ilir_buffer){0};
}

/* The load `e` from buffer `from`, with index number `changed` replaced. */
static ilir_expr load_like(struct ilir_module *m, ilir_expr e, ilir_buffer from, int changed, ilir_expr by)
{
	ilir_expr index[ILIR_MAX_RANK];
	int n = ilir_at(m, e)->args;
	for (int i = 0; i < n; i++)
		index[i] = i == changed ? by : ilir_arg(m, e, i);
	return ilir_load(m, from, index, n);
}

static bool is_load_of(const struct ilir_module *m, ilir_expr e, int kind)
{
	const struct ilir_node *n = ilir_at(m, e);
	return n->op == ILIR_LOAD && ilir_buffer_at(m, n->buffer)->kind == kind;
}

static ilir_expr take_first_slot(struct ilir_module *m, ilir_expr e, void *context)
{
	ilir_buffer first = buffer_of(m, IMAGE_CHILD, 0);
	if (!is_load_of(m, e, IMAGE_CHILD) || !first.i || ilir_at(m, e)->buffer.i == first.i ||
	    !is_chosen(context))
		return e;
	return load_like(m, e, first, -1, e);
}

static bool other_slot(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, take_first_slot, NULL, c);
}

static ilir_expr take_next_row(struct ilir_module *m, ilir_expr e, void *context)
{
	if (!is_load_of(m, e, IMAGE_TOKEN) || !is_chosen(context))
		return e;
	ilir_expr next = ilir_binary(m, ILIR_ADD, ilir_arg(m, e, 0), ilir_index(m, 1));
	return load_like(m, e, ilir_at(m, e)->buffer, 0, next);
}

static bool next_edge(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, take_next_row, NULL, c);
}

static ilir_expr take_first_lane(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	int lanes = n->type.lanes, last = n->args - 1;
	if (n->op != ILIR_LOAD || lanes < 2 || ilir_at(m, ilir_arg(m, e, last))->op != ILIR_RAMP ||
	    !is_chosen(context))
		return e;
	ilir_expr first = ilir_arg(m, ilir_arg(m, e, last), 0);
	return ilir_spread(m, ILIR_BROADCAST, load_like(m, e, n->buffer, last, first), lanes);
}

static bool one_lane(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, take_first_lane, NULL, c);
}

static ilir_expr round_twice(struct ilir_module *m, ilir_expr e, void *context)
{
	struct choice *c = context;
	if (ilir_at(m, e)->op != ILIR_FMA)
		return e;
	c->done = true;
	ilir_expr x = ilir_arg(m, e, 0), y = ilir_arg(m, e, 1), z = ilir_arg(m, e, 2);
	return ilir_binary(m, ILIR_ADD, ilir_binary(m, ILIR_MUL, x, y), z);
}

static bool split_fma(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, round_twice, NULL, c);
}

/* Loads from a weight past its end, by its first extent. */
static ilir_expr take_far_row(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (!is_load_of(m, e, IMAGE_WEIGHT) || n->args < 1 || !is_chosen(context))
		return e;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, n->buffer);
	ilir_expr far = ilir_index(m, b->dim[0].padded);
	return load_like(m, e, n->buffer, 0,
			 n->args > 1 || n->type.lanes == 1
			     ? ilir_binary(m, ILIR_ADD, ilir_arg(m, e, 0), far)
			     : ilir_spread(m, ILIR_RAMP,
					   ilir_binary(m, ILIR_ADD, ilir_arg(m, ilir_arg(m, e, 0), 0), far),
					   n->type.lanes));
}

static bool far_row(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, take_far_row, NULL, c);
}

/* Loads the same element of the next row. */
static ilir_expr take_far_column(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (!is_load_of(m, e, IMAGE_STATE) || n->args < 2 || n->type.lanes > 1 || !is_chosen(context))
		return e;
	int last = n->args - 1;
	ilir_expr far = ilir_index(m, ilir_buffer_at(m, n->buffer)->dim[last].padded);
	return load_like(m, e, n->buffer, last, ilir_binary(m, ILIR_ADD, ilir_arg(m, e, last), far));
}

static bool far_column(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, take_far_column, NULL, c);
}

/* --- statements --- */

/* Moves the end of a loop with constant bounds down, or that of a loop over rows up. */
static bool move_end(struct ilir_module *m, struct ilir_stmt *s, int iterations)
{
	const struct ilir_node *begin = ilir_at(m, s->loop.begin), *end = ilir_at(m, s->loop.end);
	if (iterations < 0 && begin->op == ILIR_CONST_I && end->op == ILIR_CONST_I &&
	    end->i - begin->i > s->loop.step)
		s->loop.end = ilir_index(m, end->i + iterations * s->loop.step);
	else if (iterations > 0 && end->op == ILIR_VAR && end->var.i == ilir_end.i)
		s->loop.end = ilir_binary(m, ILIR_ADD, s->loop.end, ilir_index(m, iterations * s->loop.step));
	else
		return false;
	return true;
}

static struct ilir_stmt *end_early(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct choice *c = context;
	if (s->kind == ILIR_FOR && !c->done && (c->skip-- > 0 || !move_end(m, s, -1)))
		return s;
	c->done |= s->kind == ILIR_FOR;
	return s;
}

static bool short_loop(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, end_early, c);
}

static struct ilir_stmt *end_late(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct choice *c = context;
	c->done |= s->kind == ILIR_FOR && move_end(m, s, 16);
	return s;
}

static bool long_loop(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, end_late, c);
}

/* Drops the second of two successive loops along one dimension. */
static void keep_first(struct ilir_stmt *block, struct choice *c)
{
	for (struct ilir_stmt *s = block; s; s = s->next)
		if (s->kind == ILIR_FOR && s->next && s->next->kind == ILIR_FOR &&
		    s->loop.dim == s->next->loop.dim && is_chosen(c))
			s->next = s->next->next;
}

static struct ilir_stmt *lose_second(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)m;
	if (s->kind == ILIR_FOR)
		keep_first(s->loop.body, context);
	if (s->kind == ILIR_STEP)
		keep_first(s->step.body, context);
	return s;
}

static bool lost_piece(struct ilir_module *m, struct choice *c)
{
	rewrite_loops(m, NULL, lose_second, c);
	for (size_t k = 0; k < m->kernels.n; k++)
		keep_first(m->kernels.at[k].body, c);
	return c->done;
}

static struct ilir_stmt *swap_sides(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)m;
	struct ilir_stmt *then = s->kind == ILIR_IF ? s->branch.then : NULL;
	if (!then || !s->branch.otherwise || !is_chosen(context))
		return s;
	s->branch.then = s->branch.otherwise;
	s->branch.otherwise = then;
	return s;
}

static bool swapped_sides(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, swap_sides, c);
}

static bool stores_constant(const struct ilir_module *m, const struct ilir_stmt *s)
{
	return s->kind == ILIR_STORE && ilir_buffer_at(m, s->store.buffer)->kind == ILIR_REGISTER &&
	       ilir_at(m, s->store.value)->op == ILIR_CONST_F;
}

static struct ilir_stmt *lose_start(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	return stores_constant(m, s) && is_chosen(context) ? NULL : s;
}

static bool lost_start(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, lose_start, c);
}

static struct ilir_stmt *lose_sum(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	bool sums = s->kind == ILIR_STORE && ilir_at(m, s->store.value)->op == ILIR_FMA;
	return sums && is_chosen(context) ? NULL : s;
}

static bool lost_iteration(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, lose_sum, c);
}

static struct ilir_stmt *lose_result(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	int kind = s->kind == ILIR_STORE ? ilir_buffer_at(m, s->store.buffer)->kind : -1;
	return (kind == IMAGE_STATE || kind == IMAGE_OUTPUT) && is_chosen(context) ? NULL : s;
}

static bool lost_result(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, lose_result, c);
}

static struct ilir_stmt *begin_late(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	if (s->kind == ILIR_FOR && s->loop.kind == ILIR_SWEPT && is_chosen(context))
		s->loop.begin = ilir_index(m, ilir_at(m, s->loop.begin)->i + s->loop.step);
	return s;
}

static bool late_sweep(struct ilir_module *m, struct choice *c)
{
	return rewrite_loops(m, NULL, begin_late, c);
}

/* --- tables of the module --- */

static bool wrong_domain(struct ilir_module *m, struct choice *c)
{
	for (size_t k = 0; k < m->kernels.n; k++)
		if (m->kernels.at[k].domain == IMAGE_DOMAIN_INNER && is_chosen(c))
			m->kernels.at[k].domain = IMAGE_DOMAIN_PAST_LEAVES;
	return c->done;
}

static bool shifted_recipe(struct ilir_module *m, struct choice *c)
{
	for (uint32_t i = 1; i < m->buffers.n; i++) {
		const struct image_recipe *r = m->buffers.at[i].recipe;
		if (!r || r->source[0].end[0] - r->source[0].begin[0] < 2 || !is_chosen(c))
			continue;
		struct image_recipe *changed = arena_copy(m->arena, r, sizeof *r);
		struct image_pack_source *source =
		    arena_copy(m->arena, r->source, r->sources * sizeof *source);
		source[0].begin[0]++;
		changed->source = source;
		m->buffers.at[i].recipe = changed;
	}
	return c->done;
}

static bool lost_padding(struct ilir_module *m, struct choice *c)
{
	for (uint32_t i = 1; i < m->buffers.n; i++) {
		struct ilir_buffer_decl *b = &m->buffers.at[i];
		struct ilir_dim *last = b->rank ? &b->dim[b->rank - 1] : NULL;
		bool memory = b->kind == IMAGE_STATE || b->kind == IMAGE_SCRATCH || b->kind == IMAGE_OUTPUT;
		if (memory && last && last->rows == IMAGE_ONE && last->padded > last->extent && is_chosen(c))
			last->padded = last->extent;
	}
	return c->done;
}

#endif
