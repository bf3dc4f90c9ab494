/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Hand-written kernels for one level of an N-ary TreeLSTM (N = 2), to compare generated kernels with. */
#ifndef ESPALIER_BENCH_HAND_KERNELS_H
#define ESPALIER_BENCH_HAND_KERNELS_H

enum { GATES = 5, MOST_NODES_OF_TILE = 5 };

/* The operands of a tile, with a row for each of its nodes. */
struct level_tile {
	const float *panel, *bias;				       /* of the block */
	const float *x[MOST_NODES_OF_TILE], *cell[MOST_NODES_OF_TILE]; /* [left | right] */
	float *h[MOST_NODES_OF_TILE], *c[MOST_NODES_OF_TILE];
};

typedef void level_kernel(const struct level_tile *, long hidden, long column);

/* Kernels for vectors of one length. A block is `lanes` columns of all five gates. Its weights are two
 * panels, [k][wide gates][lane] and [k][the other gates][lane]. */
struct level_kernels {
	int lanes, wide;
	int most_nodes;						     /* of a tile */
	level_kernel *tile[MOST_NODES_OF_TILE + 1];		     /* by the number of nodes */
	double (*multiply_add)(void);				     /* returns how many operations it did */
	void (*read)(const float *from, long floats, int backwards); /* floats: a multiple of 8 vectors */
};

extern const struct level_kernels kernels_avx2, kernels_avx512;

#endif
