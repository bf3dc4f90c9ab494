/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reductions that are cut: an outermost loop over pieces of the first reduced variable, so that what a piece reads stays in
 * a cache until the whole nest has used it.  Sums go on where the piece before has parked them, so their order, and every bit
 * of them, is that of the loop that is not cut.
 *
 *                                          for k in 0..256 step 128
 *     for i in 0..64                         for i in 0..64
 *       alloc sum                              alloc sum
 *       sum[] = 0                ->            if k == 0 { sum[] = 0 } else { sum[] = parked[i] }
 *       for k in 0..256                        for k.1 in 0..128
 *         sum[] = fma(.., x[k], sum[])           sum[] = fma(.., x[k + k.1], sum[])
 *       y[i] = tanh(sum[])                     if 256 <= k + 128 { y[i] = tanh(sum[]) } else { parked[i] = sum[] }
 *
 * The group has one loop of reductions, whose values have all of its dimensions (sched_why_uncut). */
#include "ilir/lower.h"

/* The variable that is cut, the first that the group's reductions reduce. */
static const struct sub_var *cut_variable(const struct lowering *l)
{
	return &l->p->vars.at[l->group->loops.at[0].first];
}

void lower_open_cut(struct lowering *l)
{
	l->piece = (ilir_var){0};
	if (l->tile->cut)
		l->piece = ilir_new_var(l->m, cut_variable(l)->name, (struct ilir_type){ILIR_INDEX, 1});
}

ilir_expr lower_cut_element(struct lowering *l, ilir_expr element)
{
	return ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, l->piece), element);
}

/* The index of the current element in a buffer of parked sums, whose last dimension is that of columns. */
static int parked_index(const struct lowering *l, ilir_expr *index)
{
	int n = 0, leading = l->group->rows;
	if (leading)
		index[n++] = l->row;
	for (int d = 0; d < l->group->dims; d++)
		if (d != l->tile->along)
			index[n++] = l->space[leading + d];
	index[n++] = l->space[leading + l->tile->along];
	return n;
}

void lower_cut_sum(struct lowering *l, struct lower_loop *loop, sub_ref sum, ilir_buffer acc, struct ilir_stmt *start)
{
	ilir_expr index[SUB_MAX_VARS];
	ilir_buffer parked = lower_partial_sums(l, sum);
	int n = parked_index(l, index);
	loop->start = ilir_append(loop->start, start);
	loop->resume = ilir_append(loop->resume, ilir_store(l->m, acc, NULL, 0, lower_load(l, parked, index, n)));
	loop->park = ilir_append(loop->park, lower_store(l, parked, index, n, ilir_load(l->m, acc, NULL, 0)));
}

/* The loops over a piece, of which the last may be shorter:
 *
 *     if k + 128 <= 200 { for k.1 in 0..128 .. } else { for k.1 in 0..72 .. } */
static struct ilir_stmt *piece_loops(struct lowering *l, struct ilir_stmt *loops, ilir_expr end)
{
	int64_t extent = cut_variable(l)->extent, cut = l->tile->cut;
	struct ilir_stmt *rest = extent % cut ? ilir_clone_block(l->m, loops, l->tiling) : NULL;
	loops->loop.end = ilir_index(l->m, cut);
	if (!rest)
		return loops;
	rest->loop.end = ilir_index(l->m, extent % cut);
	return ilir_if(l->m, ilir_binary(l->m, ILIR_LE, end, ilir_index(l->m, extent)), loops, rest);
}

struct ilir_stmt *lower_cut_loops(struct lowering *l, const struct lower_loop *loop, struct ilir_stmt *loops,
				  struct ilir_stmt *after)
{
	struct ilir_module *m = l->m;
	ilir_expr begin = ilir_var_ref(m, l->piece), end = ilir_binary(m, ILIR_ADD, begin, ilir_index(m, l->tile->cut));
	ilir_expr is_first = ilir_binary(m, ILIR_EQ, begin, ilir_index(m, 0));
	ilir_expr is_last = ilir_binary(m, ILIR_LE, ilir_index(m, cut_variable(l)->extent), end);
	struct ilir_stmt *block = ilir_append(loop->prologue, ilir_if(m, is_first, loop->start, loop->resume));
	block = ilir_append(block, piece_loops(l, loops, end));
	return ilir_append(block, ilir_if(m, is_last, after, loop->park));
}

struct ilir_stmt *lower_pieces(struct lowering *l, struct ilir_stmt *nest)
{
	const struct sub_var *v = l->piece.i ? cut_variable(l) : NULL;
	if (!v)
		return nest;
	return ilir_for(l->m, l->piece, ilir_index(l->m, 0), ilir_index(l->m, v->extent), l->tile->cut,
			ilir_dim_name(l->m, v->name), ILIR_SERIAL, nest);
}
