/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loop over the rows of a step: nodes or inputs by number, their edges or members, the caller's rows, or
 * the positions of a sort. */
#include "ilir/lower.h"

static bool is_over_inputs(const struct lowering *l)
{
	return l->p->bodies.at[l->body].domain == SUB_EVERY_INPUT;
}

static bool is_member(const struct lowering *l, int var)
{
	return l->p->vars.at[var].set == SUB_MEMBER;
}

const char *lower_ragged_name(const struct lowering *l, int var)
{
	return is_member(l, var) ? "member" : "edge";
}

static ilir_buffer ragged_bounds_array(const struct lowering *l, int var)
{
	bool down = sub_goes_down(l->p, &l->p->bodies.at[l->body]);
	return is_member(l, var) ? l->member_begin : down ? l->parent_begin : l->child_begin;
}

void lower_ragged_bounds(struct lowering *l, int var, ilir_expr *begin, ilir_expr *end)
{
	ilir_buffer bounds = ragged_bounds_array(l, var);
	ilir_expr row = l->row;
	if (is_member(l, var) && !is_over_inputs(l))
		row = ilir_load_index(l->m, l->input_of, &row, 1);
	ilir_expr next = ilir_binary(l->m, ILIR_ADD, row, ilir_index(l->m, 1));
	*begin = ilir_load_index(l->m, bounds, &row, 1);
	*end = ilir_load_index(l->m, bounds, &next, 1);
}

/* Pairs are numbered node by node, those of a node in the order of the members of its input. */
static ilir_expr pair_number(struct lowering *l, ilir_expr node, ilir_expr member)
{
	struct ilir_module *m = l->m;
	ilir_expr input = lower_row_of(l, l->input_of, "input", node);
	ilir_expr first = lower_row_of(l, l->member_begin, "first", input);
	return ilir_binary(m, ILIR_ADD, lower_row_of(l, l->first_pair, "pairs", node), ilir_binary(m, ILIR_SUB, member, first));
}

int lower_stored_index(struct lowering *l, sub_ref r, const ilir_expr *index, ilir_expr *out)
{
	const struct sub_value *v = sub_at(l->p, r);
	int first = lower_first_stored(l, r), n = v->vars - first;
	memcpy(out, index + first, n * sizeof *out);
	if (first && is_member(l, v->var[first]) && !is_over_inputs(l))
		out[0] = pair_number(l, index[0], index[first]);
	return n;
}

/* Tiles the loop over this variable by the schedule's numbers of nodes, or of other rows. */
void lower_tile_rows(struct lowering *l, ilir_var var)
{
	struct ilir_tile t = {.var = var,
			      .kind = ILIR_UNROLLED,
			      .sizes = l->tile->sizes,
			      .columns = 1,
			      .pipelined = l->tile->pipelined};
	memcpy(t.size, l->tile->nodes, sizeof t.size);
	vec_push(l->m->arena, &l->tiling->tiles, t);
}

static struct ilir_stmt *edge_loop(struct lowering *l, int ragged, ilir_var var, struct ilir_stmt *block)
{
	ilir_expr begin, end;
	lower_ragged_bounds(l, ragged, &begin, &end);
	return ilir_for(l->m, var, begin, end, 1, ilir_dim_name(l->m, lower_ragged_name(l, ragged)), ILIR_SERIAL, block);
}

struct use_of {
	ilir_var var;
	bool used;
};

static void note_use(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct use_of *use = context;
	use->used |= ilir_at(m, e)->op == ILIR_VAR && ilir_at(m, e)->var.i == use->var.i;
}

static bool uses_variable(const struct ilir_module *m, const struct ilir_stmt *block, ilir_var var)
{
	struct use_of use = {var, false};
	ilir_visit_block(m, block, &(struct ilir_visit){.expr = note_use, .context = &use});
	return use.used;
}

/* The loop over the edges of all rows of the range, or the members of its inputs, which follow each other: so that
 * tiles hold those of several rows.  For blocks that do not depend on the row. */
static struct ilir_stmt *flat_edge_loop(struct lowering *l, int ragged, ilir_var var, struct ilir_stmt *block)
{
	ilir_buffer bounds = ragged_bounds_array(l, ragged);
	ilir_expr begin = ilir_var_ref(l->m, ilir_begin), end = ilir_var_ref(l->m, ilir_end);
	if (l->tile->across == SCHED_NODES)
		lower_tile_rows(l, var);
	begin = ilir_load_index(l->m, bounds, &begin, 1);
	end = ilir_load_index(l->m, bounds, &end, 1);
	return ilir_for(l->m, var, begin, end, 1, ilir_dim_name(l->m, lower_ragged_name(l, ragged)), ILIR_SERIAL, block);
}

/* Whether the rows of a group are pairs of a node and a node of its input. */
static bool has_pairs(const struct lowering *l)
{
	return l->group->members && !is_over_inputs(l);
}

/* Of pairs, the rows of a tile are those of one node, which share what is read of it. */
static struct ilir_stmt *pair_loop(struct lowering *l, int ragged, ilir_var var, struct ilir_stmt *block)
{
	if (l->tile->across == SCHED_NODES)
		lower_tile_rows(l, var);
	return edge_loop(l, ragged, var, block);
}

static struct ilir_stmt *row_loop(struct lowering *l, ilir_var var, const char *dim, struct ilir_stmt *block)
{
	if (!l->group->over_edges && !has_pairs(l) && l->tile->across == SCHED_NODES)
		lower_tile_rows(l, var);
	return ilir_for(l->m, var, ilir_var_ref(l->m, ilir_begin), ilir_var_ref(l->m, ilir_end), 1,
			ilir_dim_name(l->m, dim), ILIR_SERIAL, block);
}

/* The loop over the rows or edges of a sort's segments around a block that computes `row`. */
static struct ilir_stmt *sorted_loop(struct lowering *l, ilir_var row, struct ilir_stmt *block)
{
	const struct ilir_type index = {ILIR_INDEX, 1};
	ilir_var segment = ilir_new_var(l->m, "segment", index), position = ilir_new_var(l->m, "p", index);
	ilir_expr first, last;
	lower_segment_bounds(l, ilir_var_ref(l->m, segment), &first, &last);
	if (l->tile->across == SCHED_NODES)
		lower_tile_rows(l, position);
	block = lower_sorted_row(l, row, ilir_var_ref(l->m, position), block);
	block = ilir_for(l->m, position, first, last, 1, ilir_dim_name(l->m, "position"), ILIR_SERIAL, block);
	return lower_segments(l, segment, ilir_at(l->m, l->token)->var, block);
}

/* The loop over the caller's rows around a block that computes the row `row`, their node's number. */
static struct ilir_stmt *given_loop(struct lowering *l, ilir_var row, struct ilir_stmt *block)
{
	ilir_expr at = ilir_var_ref(l->m, l->given);
	block = ilir_append(ilir_let(l->m, row, ilir_load_index(l->m, l->member_list, &at, 1)), block);
	return row_loop(l, l->given, "member", block);
}

static const char *row_name(const struct lowering *l, int var)
{
	enum sub_set set = l->p->vars.at[var].set;
	return set == SUB_INPUT ? "input" : set == SUB_ROW ? "row" : "node";
}

struct ilir_stmt *lower_rows(struct lowering *l, const struct sub_value *v, const ilir_var *var, bool rows_here,
			     struct ilir_stmt *block)
{
	const struct sched_group *g = l->group;
	if (l->sort)
		return sorted_loop(l, var[g->edges], block);
	bool pairs = has_pairs(l);
	bool flat = g->edges && rows_here && !pairs && !uses_variable(l->m, block, var[0]);
	if (flat)
		block = flat_edge_loop(l, v->var[1], var[1], block);
	else if (pairs)
		block = pair_loop(l, v->var[1], var[1], block);
	else if (g->edges)
		block = edge_loop(l, v->var[1], var[1], block);
	if (l->given.i)
		return given_loop(l, var[0], block);
	return g->rows && rows_here && !flat ? row_loop(l, var[0], row_name(l, v->var[0]), block) : block;
}
