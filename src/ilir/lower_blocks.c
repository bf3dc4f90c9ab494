/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loops over the dimensions of a group, and over blocks of them. */
#include "ilir/lower.h"

/* Whether the group only stores intermediates: infer_bounds computes the bounds of its loops from what is
 * read of them. */
static bool is_inferred(const struct lowering *l)
{
	const struct sub_body *b = &l->p->bodies.at[l->body];
	for (size_t i = 0; i < b->stores.n; i++)
		for (size_t t = 0; t < l->group->targets.n; t++)
			if (b->stores.at[i].value.value.i == l->group->targets.at[t].i)
				return false;
	return true;
}

const char *lower_var_name(const struct lowering *l, int var)
{
	return l->p->vars.at[var].name;
}

static struct ilir_stmt *dimension_loop(struct lowering *l, ilir_var var, int dim, int64_t extent,
					struct ilir_stmt *block)
{
	bool infer = is_inferred(l);
	ilir_expr begin = infer ? ilir_inferred(l->m) : ilir_index(l->m, 0);
	ilir_expr end = infer ? ilir_inferred(l->m) : ilir_index(l->m, extent);
	return ilir_for(l->m, var, begin, end, 1, ilir_dim_name(l->m, lower_var_name(l, dim)), ILIR_SERIAL, block);
}

/* In which of three turns a dimension's loop is put around a block. */
static int place_of(int dim, int innermost, int outermost)
{
	if (dim == innermost)
		return 0;
	return dim == outermost ? 2 : 1;
}

/* Puts the loops over some dimensions, a mask, around a block: the last one innermost, unless another is
 * to be, and the first one outermost, unless another is to be; -1 = none is. */
struct ilir_stmt *lower_dimensions(struct lowering *l, const struct sub_value *v, const ilir_var *var,
					 unsigned dims, int outermost, int innermost, struct ilir_stmt *block)
{
	const struct sched_group *g = l->group;
	int leading = v->vars - g->dims;
	for (int place = 0; place < 3; place++)
		for (int d = g->dims; d-- > 0;)
			if (dims >> d & 1 && place == place_of(d, innermost, outermost))
				block = dimension_loop(l, var[leading + d], v->var[leading + d], g->extent[d],
						       block);
	return block;
}

/* The loop over the rows of a tile in a block of them, whose first is `first`; the last block may have fewer:
 *
 *     if first + 4 <= 7 { for i in 0..4 .. } else { for i in 0..3 .. } */
struct ilir_stmt *lower_rows_of_block(struct lowering *l, const struct sub_value *v, ilir_var var, ilir_var first,
				   struct ilir_stmt *block)
{
	int name = v->var[v->vars - l->group->dims + l->tile->across];
	int64_t extent = l->group->extent[l->tile->across], rows = first.i ? l->tile->block : extent;
	lower_tile_rows(l, var);
	struct ilir_stmt *whole = ilir_for(l->m, var, ilir_index(l->m, 0), ilir_index(l->m, rows), 1,
					   ilir_dim_name(l->m, lower_var_name(l, name)), ILIR_SERIAL, block);
	if (extent % rows == 0)
		return whole;
	struct ilir_stmt *rest = ilir_clone_block(l->m, whole, l->tiling);
	rest->loop.end = ilir_index(l->m, extent % rows);
	ilir_expr end = ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, first), ilir_index(l->m, rows));
	return ilir_if(l->m, ilir_binary(l->m, ILIR_LE, end, ilir_index(l->m, extent)), whole, rest);
}

/* The loop over the blocks of these rows. */
struct ilir_stmt *lower_blocks(struct lowering *l, const struct sub_value *v, ilir_var var,
				     struct ilir_stmt *block)
{
	int name = v->var[v->vars - l->group->dims + l->tile->across];
	int64_t extent = l->group->extent[l->tile->across];
	return ilir_for(l->m, var, ilir_index(l->m, 0), ilir_index(l->m, extent), l->tile->block,
			ilir_dim_name(l->m, lower_var_name(l, name)), ILIR_SERIAL, block);
}
