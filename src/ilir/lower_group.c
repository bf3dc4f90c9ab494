/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers the groups of a planned sub-operator program to loops.
 *
 * Each group becomes a loop nest: its dimensions outside, the rows of the step inside, so that the weights of
 * a block of columns are used for all rows before the next block; or, by rows, in the opposite order; or with
 * the dimension that a tile's rows run across inside, in blocks whose loop is outside.  The
 * innermost block computes values at an index, from the results down (lower_value.c). */
#include "ilir/lower.h"

/* Stores a target of the group: to all states and outputs that the body stores it to, or to an
 * intermediate. */
static void store_target(struct lowering *l, sub_ref r)
{
	ilir_expr e = lower_value_at(l, r, l->space);
	const struct sub_value *v = sub_at(l->p, r);
	const struct sub_body *b = &l->p->bodies.at[l->body];
	bool stored = false;
	for (size_t i = 0; i < b->stores.n; i++) {
		const struct sub_store *s = &b->stores.at[i];
		if (s->value.value.i != r.i)
			continue;
		stored = true;
		if (b->domain == SUB_LEAF && s->to == SUB_TO_STATE && ilir_buffer_at(l->m, l->state[s->which])->table.i)
			continue;
		ilir_expr index[SUB_MAX_VARS] = {l->row};
		int n = l->group->rows;
		if (s->stepped)
			index[n++] = lower_step_index(l, s->scale, s->offset);
		for (int d = 0; d < l->group->dims; d++)
			index[n++] = l->space[v->vars - l->group->dims + d];
		if (s->to == SUB_TO_STATE)
			index[0] = lower_state_row(l, s->which, l->row);
		lower_scope_add(l, l->scope, lower_store(l, lower_target(l, s), index, n, e), NULL);
	}
	ilir_expr at[SUB_MAX_VARS];
	int n = stored ? 0 : lower_stored_index(l, r, l->space, at);
	if (!stored)
		lower_scope_add(l, l->scope, lower_store(l, lower_storage(l, l->body, r), at, n, e), NULL);
}

/* Lowers the innermost block of a group, which computes one element of each target. */
static struct ilir_stmt *lower_element(struct lowering *l, struct scope *outer)
{
	l->scope = lower_scope_new(l, outer, false);
	l->floor = 0;
	for (size_t i = 0; i < l->group->targets.n; i++)
		store_target(l, l->group->targets.at[i]);
	return lower_scope_finish(l, l->scope);
}

/* Makes the variables of a group's nest, in the order row, edge, dimensions.  Returns that of the loop over
 * blocks of a tile's rows, to which the variable of the loop over these rows is added; none without blocks. */
static ilir_var open_space(struct lowering *l, const struct sub_value *v, bool row_loop, ilir_var *var)
{
	int first = v->vars - l->group->dims, across = first + l->tile->across;
	ilir_var rows = {0};
	for (int i = 0; i < v->vars; i++) {
		bool row = i == 0 && l->group->rows;
		if (row && !row_loop) {
			l->space[i] = l->row;
			continue;
		}
		var[i] = ilir_new_var(l->m, lower_var_name(l, v->var[i]), (struct ilir_type){ILIR_INDEX, 1});
		l->space[i] = ilir_var_ref(l->m, var[i]);
		if (row)
			l->row = l->space[i];
	}
	if (l->sort && l->sort->edges)
		l->row = l->space[0] = ilir_load_index(l->m, l->edge_node, &l->space[1], 1);
	if (l->tile->block) {
		rows = ilir_new_var(l->m, lower_var_name(l, v->var[across]), (struct ilir_type){ILIR_INDEX, 1});
		l->space[across] = ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, rows), l->space[across]);
	}
	l->column = l->group->dims ? var[first + l->tile->along] : (ilir_var){0};
	l->edge = l->group->edges ? l->space[1] : (ilir_expr){0};
	return rows;
}

/* Lowers the elements of a row, in loops over these dimensions.  What does not depend on them, such as the
 * rows that are read, comes before the loops. */
static struct ilir_stmt *lower_row(struct lowering *l, const struct sub_value *v, const ilir_var *var,
				   ilir_var first, unsigned dims)
{
	struct scope *row = lower_scope_new(l, NULL, false);
	int leading = v->vars - l->group->dims, across = l->tile->across;
	for (int d = 0; d < l->group->dims; d++)
		if (dims >> d & 1)
			lower_define(l, false, var[leading + d].i, row->depth + 1, -1);
	struct ilir_stmt *block = lower_element(l, row);
	block = across >= 0 ? lower_rows_of_block(l, v, var[leading + across], first, block)
			    : lower_dimensions(l, v, var, dims, -1, l->tile->along, block);
	return ilir_append(lower_scope_finish(l, row), block);
}

/* The dimensions whose loops are inside the loop over nodes. */
static unsigned inner_dims(const struct lowering *l)
{
	unsigned all = (1u << l->group->dims) - 1;
	return l->tile->by_rows ? all : l->tile->across >= 0 ? 1u << l->tile->across : 0;
}

struct ilir_stmt *lower_group(struct lowering *l, int number, bool rows_here)
{
	const struct sched_group *g = l->group = &l->plan->groups.at[number];
	const struct sub_value *v = sub_at(l->p, g->targets.at[0]);
	ilir_var var[SUB_MAX_VARS] = {{0}};
	l->tile = &l->sched->tiles.at[number];
	l->body = g->body;
	l->sort = rows_here ? lower_sort_of(l, number) : NULL;
	if (l->sort)
		l->token = ilir_var_ref(l->m, ilir_new_var(l->m, "token", (struct ilir_type){ILIR_INDEX, 1}));
	l->given = rows_here && sched_is_in_given_order(l->sched, l->plan, g->body)
		       ? ilir_new_var(l->m, "m", (struct ilir_type){ILIR_INDEX, 1})
		       : (ilir_var){0};
	lower_open_cut(l);
	unsigned inside = inner_dims(l);
	ilir_var rows = open_space(l, v, rows_here, var);
	struct ilir_stmt *block = inside ? lower_row(l, v, var, rows, inside) : lower_element(l, NULL);
	block = lower_rows(l, v, var, rows_here, block);
	unsigned first = l->tile->rows_outside ? 1u << l->tile->along : 0;
	if (first)
		block = lower_dimensions(l, v, var, first, -1, -1, block);
	if (rows.i)
		block = lower_blocks(l, v, rows, block);
	block = lower_dimensions(l, v, var, ~(inside | first), inside ? l->tile->along : -1, -1, block);
	block = lower_pieces(l, block);
	if (g->dims && l->tile->lanes > 1)
		vec_push(l->m->arena, &l->tiling->tiles,
			 (struct ilir_tile){l->column, ILIR_VECTOR, 1, {l->tile->lanes}, l->tile->columns, false});
	return block;
}
