/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tiles of groups whose sums are computed by matrix registers (ilir/use_matrices.c).
 *
 * Their sums are vector registers for one row only, so the number of these does not bound the rows of a tile: those of a matrix
 * register do.  A matrix register of weights is loaded and multiplied once for each tile of rows, whether it has two rows or all,
 * so the fewest tiles are best.  Sizes are the rows of a matrix register and its halves, down to one row, which vectors compute in
 * products of bytes: so a level of any width has at most one tile of each smaller size. */
#include "sched/sched.h"

/* Matrix registers that hold factors while the others hold sums. */
enum { FACTORS = 2 };

bool sched_uses_matrices(const struct target *t, const struct sched_group *g, int lanes)
{
	bool fits = t->matrix_rows && g->gates && g->loops.n && lanes == t->lanes;
	for (size_t i = 0; fits && i < g->loops.n; i++)
		fits = g->loops.at[i].of_matrices && !g->loops.at[i].own;
	return fits;
}

int sched_most_rows(const struct target *t, const struct sched_group *g, int lanes)
{
	return sched_uses_matrices(t, g, lanes) && t->matrix_rows > SCHED_MAX_NODES ? t->matrix_rows : SCHED_MAX_NODES;
}

bool sched_fills_matrices(const struct target *t, const struct sched_group *g, const struct sched_tile *tile)
{
	return g->rows && !g->edges && !g->over_edges && !g->sort && g->dims == 1 && sched_uses_matrices(t, g, tile->lanes);
}

/* The most vectors of columns whose sums fit for all gates, and of which whole tiles have no more than smaller ones would have. */
static int choose_columns(const struct target *t, const struct sched_group *g, int lanes)
{
	int64_t vectors = (g->extent[0] + lanes - 1) / lanes;
	int columns = (t->matrices - FACTORS) / g->gates;
	while (columns > 1 && vectors % columns)
		columns--;
	return columns > 1 ? columns : 1;
}

struct sched_tile sched_make_matrix_tile(const struct target *t, const struct sched_group *g, struct sched_tile tile, int rows)
{
	tile.across = SCHED_NODES;
	tile.block = tile.cut = 0;
	tile.rows_outside = tile.by_rows = false;
	tile.columns = choose_columns(t, g, tile.lanes);
	tile.sizes = 0;
	for (rows = rows < t->matrix_rows ? rows : t->matrix_rows; rows >= 1; rows /= 2)
		tile.nodes[tile.sizes++] = rows;
	return tile;
}
