/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the equations of the example models are written with: numbers, weights, structures, vectors.  Nothing
 * of the library is in it. */
#ifndef ESPALIER_TESTS_EXAMPLES_NUMBERS_H
#define ESPALIER_TESTS_EXAMPLES_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes; D and E are chosen by the test. */
enum { V = 30, C = 3, R = 5, L = 4, A = 6, MOST_D = 40, MOST_E = 40 };

/* --- numbers --- */

static uint64_t random_state;

static inline uint32_t random_bits(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

static inline int random_below(int n)
{
	return random_bits() % n;
}

/* Between -1 and 1. */
static inline float random_float(void)
{
	return random_bits() / (float)(1u << 30) - 1;
}

/* --- weights --- */

struct weight {
	char name[40];
	int rank, shape[3];
	float *at;
};

struct weights {
	int D, E, n;
	struct weight weight[40];
};

static inline const float *weight_of(const struct weights *w, const char *name)
{
	for (int i = 0; i < w->n; i++)
		if (strcmp(w->weight[i].name, name) == 0)
			return w->weight[i].at;
	printf("# there is no weight %s\n", name);
	exit(1);
}

/* --- structures --- */

enum { MOST_NODES = 64, MOST_EDGES = 4 * MOST_NODES };

/* Nodes in any numbering; begin[i] .. begin[i + 1] are the children of node i. */
struct structure {
	int nodes, root;
	int32_t begin[MOST_NODES + 1], children[MOST_EDGES];
	int32_t word[MOST_NODES], label[MOST_EDGES];
	float x[MOST_NODES * MOST_E];
	/* what the equations give; the second state is a vector or a matrix */
	double h[MOST_NODES][MOST_D], c[MOST_NODES][MOST_D * MOST_D];
};

/* --- vectors --- */

static inline double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

/* y += W x, W of `rows` rows. */
static inline void add_product(double *y, const float *W, int rows, int columns, const double *x)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			y[i] += (double)W[i * columns + j] * x[j];
}

static inline void add(double *y, const double *x, int n)
{
	for (int i = 0; i < n; i++)
		y[i] += x[i];
}

static inline void set(double *y, const float *b, int n)
{
	for (int i = 0; i < n; i++)
		y[i] = b ? b[i] : 0;
}

#endif
