/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Kernels written by hand for one level of an N-ary TreeLSTM (N = 2) on a machine with eight lanes and
 * sixteen vector registers: what generated kernels are measured by.
 *
 * A block is eight columns of all five gates.  Its weights are two panels, [k][3 gates][lane] and [k][2
 * gates][lane]: with four nodes three gates are twelve sums, a broadcast operand and three weights.  One and
 * two nodes take both panels in one loop.  Sums stay in registers; only between the two loops of a tile do
 * they rest in memory. */
#ifndef ESPALIER_BENCH_HAND_KERNELS_H
#define ESPALIER_BENCH_HAND_KERNELS_H

/* Whatever the compiler was told, so that it compiles on any such machine; main asks whether it may run. */
#pragma GCC target("avx2,fma")
#include <immintrin.h>

typedef float vec __attribute__((vector_size(32)));
typedef float loose __attribute__((vector_size(32), aligned(4)));
typedef int veci __attribute__((vector_size(32)));
#define ALWAYS static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

enum { LANES = 8, GATES = 5, WIDE = 3, NARROW = 2, MOST_NODES_OF_TILE = 4 };

/* What a tile works on; rows are those of its nodes. */
struct level_tile {
	const float *panel, *bias;				       /* of the block */
	const float *x[MOST_NODES_OF_TILE], *cell[MOST_NODES_OF_TILE]; /* [left | right] */
	float *h[MOST_NODES_OF_TILE], *c[MOST_NODES_OF_TILE];
};

ALWAYS vec exponential(vec x)
{
	x = _mm256_max_ps(_mm256_min_ps(x, (vec){0} + 88.f), (vec){0} - 87.f);
	vec t = x * 1.44269504f, r = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
	    f = t - r;
	vec p = f * 1.8775767e-3f + 8.9893397e-3f;
	p = p * f + 5.5826318e-2f;
	p = p * f + 2.4015361e-1f;
	p = p * f + 6.9315308e-1f;
	p = p * f + 1.0f;
	return p * (vec)((__builtin_convertvector(r, veci) + 127) << 23);
}

ALWAYS vec logistic(vec x)
{
	return 1.f / (1.f + exponential(-x));
}

ALWAYS vec tangent(vec x)
{
	return 2.f / (1.f + exponential(-2.f * x)) - 1.f;
}

/* rest[node][gate] = bias + sum over k, for the gates of one panel. */
ALWAYS void walk_panel(const float *w, const float *bias, const float *const *x, long k_end, int nodes,
		       int first, int gates, vec rest[][GATES])
{
	vec sum[MOST_NODES_OF_TILE][GATES];
	EACH(n, nodes) EACH(g, gates) sum[n][g] = *(const vec *)(bias + g * LANES);
	_Pragma("GCC unroll 2") for (long k = 0; k < k_end; k++, w += gates * LANES)
	{
		vec weight[GATES];
		EACH(g, gates) weight[g] = *(const vec *)(w + g * LANES);
		EACH(n, nodes)
		{
			vec operand = _mm256_broadcast_ss(x[n] + k);
			EACH(g, gates) sum[n][g] += weight[g] * operand;
		}
	}
	EACH(n, nodes) EACH(g, gates) rest[n][first + g] = sum[n][g];
}

/* The same of both panels at once. */
ALWAYS void walk_both(const float *w, const float *bias, const float *const *x, long k_end, int nodes,
		      vec rest[][GATES])
{
	const float *narrow = w + k_end * WIDE * LANES;
	vec sum[2][GATES];
	EACH(n, nodes) EACH(g, GATES) sum[n][g] = *(const vec *)(bias + g * LANES);
	_Pragma("GCC unroll 2") for (long k = 0; k < k_end; k++, w += WIDE * LANES, narrow += NARROW * LANES)
	{
		vec operand[2];
		EACH(n, nodes) operand[n] = _mm256_broadcast_ss(x[n] + k);
		EACH(g, GATES)
		{
			vec weight = *(const vec *)(g < WIDE ? w + g * LANES : narrow + (g - WIDE) * LANES);
			EACH(n, nodes) sum[n][g] += weight * operand[n];
		}
	}
	EACH(n, nodes) EACH(g, GATES) rest[n][g] = sum[n][g];
}

/* Gates stand in the order i, u, fl | fr, o. */
ALWAYS void finish_node(const struct level_tile *t, int n, const vec *sum, long hidden, long j)
{
	vec left = *(const loose *)(t->cell[n] + j), right = *(const loose *)(t->cell[n] + hidden + j);
	vec c = logistic(sum[0]) * tangent(sum[1]) + logistic(sum[2]) * left + logistic(sum[3]) * right;
	*(loose *)(t->c[n] + j) = c;
	*(loose *)(t->h[n] + j) = logistic(sum[4]) * tangent(c);
}

ALWAYS void run_tile(const struct level_tile *t, long hidden, long j, int nodes)
{
	vec rest[MOST_NODES_OF_TILE][GATES];
	const float *narrow = t->panel + 2 * hidden * WIDE * LANES;
	if (nodes <= 2) {
		walk_both(t->panel, t->bias, t->x, 2 * hidden, nodes, rest);
	} else {
		walk_panel(t->panel, t->bias, t->x, 2 * hidden, nodes, 0, WIDE, rest);
		walk_panel(narrow, t->bias + WIDE * LANES, t->x, 2 * hidden, nodes, WIDE, NARROW, rest);
	}
	for (int n = 0; n < nodes; n++)
		finish_node(t, n, rest[n], hidden, j);
}

typedef void level_kernel(const struct level_tile *, long hidden, long column);
level_kernel hand_tile_1, hand_tile_2, hand_tile_3, hand_tile_4;

#endif
