/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels.h for one vector length. Define before including: LANES, the floats of a vector;
 * WIDE, the gates of the first panel; VEC_ALL(scalar), VEC_MIN(a, b), VEC_MAX(a, b) and VEC_ROUND(a), which
 * rounds to the nearest integer. Functions of one vector have the names of the formula's functions.
 *
 * Tiles of few nodes compute both panels in one loop. Sums stay in registers, except between the two loops
 * of a tile. */
#include "bench/hand/kernels.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int veci __attribute__((vector_size(4 * LANES)));
#define ALWAYS static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

enum { NARROW = GATES - WIDE };

ALWAYS vec exponential(vec x)
{
	x = VEC_MAX(VEC_MIN(x, (vec){0} + 88.f), (vec){0} - 87.f);
	vec t = x * 1.44269504f, r = VEC_ROUND(t), f = t - r;
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
			vec operand = VEC_ALL(x[n][k]);
			EACH(g, gates) sum[n][g] += weight[g] * operand;
		}
	}
	EACH(n, nodes) EACH(g, gates) rest[n][first + g] = sum[n][g];
}

/* The same for both panels at once. */
ALWAYS void walk_both(const float *w, const float *bias, const float *const *x, long k_end, int nodes,
		      vec rest[][GATES])
{
	const float *narrow = w + k_end * WIDE * LANES;
	vec sum[2][GATES];
	EACH(n, nodes) EACH(g, GATES) sum[n][g] = *(const vec *)(bias + g * LANES);
	_Pragma("GCC unroll 2") for (long k = 0; k < k_end; k++, w += WIDE * LANES, narrow += NARROW * LANES)
	{
		vec operand[2];
		EACH(n, nodes) operand[n] = VEC_ALL(x[n][k]);
		EACH(g, GATES)
		{
			vec weight = *(const vec *)(g < WIDE ? w + g * LANES : narrow + (g - WIDE) * LANES);
			EACH(n, nodes) sum[n][g] += weight * operand[n];
		}
	}
	EACH(n, nodes) EACH(g, GATES) rest[n][g] = sum[n][g];
}

/* Computes the states of a node; gates are in the order i, u, fl | fr, o. */
ALWAYS void finish_node(const struct level_tile *t, int n, const vec *sum, long hidden, long j)
{
	vec left = *(const loose *)(t->cell[n] + j), right = *(const loose *)(t->cell[n] + hidden + j);
	vec c = logistic(sum[0]) * tangent(sum[1]) + logistic(sum[2]) * left + logistic(sum[3]) * right;
	*(loose *)(t->c[n] + j) = c;
	*(loose *)(t->h[n] + j) = logistic(sum[4]) * tangent(c);
}

ALWAYS void walk_block(const struct level_tile *t, long k_end, int nodes, vec rest[][GATES])
{
	if (NARROW && nodes <= 2) {
		walk_both(t->panel, t->bias, t->x, k_end, nodes, rest);
		return;
	}
	walk_panel(t->panel, t->bias, t->x, k_end, nodes, 0, WIDE, rest);
	if (NARROW)
		walk_panel(t->panel + k_end * WIDE * LANES, t->bias + WIDE * LANES, t->x, k_end, nodes, WIDE,
			   NARROW, rest);
}

ALWAYS void run_tile(const struct level_tile *t, long hidden, long j, int nodes)
{
	vec rest[MOST_NODES_OF_TILE][GATES];
	walk_block(t, 2 * hidden, nodes, rest);
	for (int n = 0; n < nodes; n++)
		finish_node(t, n, rest[n], hidden, j);
}

#define TILE(nodes)                                                                                          \
	static void tile_##nodes(const struct level_tile *t, long hidden, long column)                       \
	{                                                                                                    \
		run_tile(t, hidden, column, nodes);                                                          \
	}

/* --- the machine's limits --- */

static double multiply_add(void)
{
	enum { REPEATS = 20000, SUMS = 12 };
	vec sum[SUMS] = {0}, a = (vec){0} + 0.5f;
	for (int i = 0; i < REPEATS; i++)
		EACH(j, SUMS)
		{
			sum[j] = sum[j] * a + a;
			__asm__ volatile("" : "+v"(sum[j]));
		}
	return 2. * REPEATS * SUMS * LANES;
}

static void read_floats(const float *from, long floats, int backwards)
{
	vec sum[4] = {0};
	for (long i = 0; i < floats; i += 8 * LANES)
		EACH(j, 8)
		{
			sum[j % 4] +=
			    *(const vec *)(from + (backwards ? floats - 8 * LANES - i : i) + j * LANES);
		}
	__asm__ volatile("" : : "v"(sum[0] + sum[1] + sum[2] + sum[3]));
}
