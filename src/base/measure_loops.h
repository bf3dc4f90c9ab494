/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loops that are measured, for one kind of vector.  The includer defines
 *     LOOPS(name)		the names of these functions
 *     VECTOR			a vector of floats
 *     TARGET			the attribute that allows it, which is in MEASURED
 *     MULTIPLY_ADD(a, b, c)	a * b + c
 *     REGISTER			the constraint of a register for it; not undefined here
 *     EACH_TILE(X)		X(m, n) for all tiles that are measured, which the registers must hold
 * Twelve sums hide the latency of an operation on all processors at hand and leave registers for two
 * factors. */

enum { LOOPS(sums) = 12 };

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Computes independent sums.  Returns the number of operations. */
MEASURED static double LOOPS(multiply)(long iterations)
{
	VECTOR factor = (VECTOR){0} + 0.999f, term = (VECTOR){0} + 1e-3f;
#define SUM(i) VECTOR s##i = term * (float)i;
	EACH(SUM)
#undef SUM
	for (long t = 0; t < iterations; t++) {
#define STEP(i) s##i = MULTIPLY_ADD(s##i, factor, term);
		EACH(STEP)
#undef STEP
		/* Keeps the compiler from joining iterations. */
		__asm__ volatile("" : "+" REGISTER(factor));
	}
#define KEEP(i) __asm__ volatile("" : : REGISTER(s##i));
	EACH(KEEP)
#undef KEEP
	return 2.0 * iterations * LOOPS(sums) * (sizeof(VECTOR) / sizeof(float));
}

/* Computes one sum, each step of which waits for the one before.  Returns the number of steps. */
MEASURED static double LOOPS(chain)(long iterations)
{
	VECTOR factor = (VECTOR){0} + 0.999f, term = (VECTOR){0} + 1e-3f, sum = term;
	for (long t = 0; t < iterations; t++) {
		sum = MULTIPLY_ADD(sum, factor, term);
		__asm__ volatile("" : "+" REGISTER(sum));
	}
	return iterations;
}

/* Reads a multiple of 1 KiB. */
MEASURED static void LOOPS(read)(const void *from, size_t bytes)
{
	const VECTOR *at = from, *end = (const VECTOR *)((const char *)from + bytes);
	VECTOR a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0};
	for (; at < end; at += 8) {
		a += at[0], b += at[1], c += at[2], d += at[3];
		e += at[4], f += at[5], g += at[6], h += at[7];
	}
	a += b + c + d + e + f + g + h;
	__asm__ volatile("" : : REGISTER(a));
}

/* Runs the loop of a product for m rows and n vectors of columns: each of the `depth` iterations reads n vectors of
 * weights, which lie one after the other, and an element of each row.  The smaller side is kept in registers.  All
 * panels of weights are multiplied by the same elements. */
MEASURED static inline __attribute__((always_inline)) void
LOOPS(multiply_tile)(const int m, const int n, const struct operands *o)
{
	const VECTOR *weights = o->weights;
	const VECTOR none = {0};
	VECTOR sum[TARGET_ROWS][TARGET_VECTORS], kept[TARGET_ROWS];
	UNROLL_ALL
	for (int i = 0; i < m * n; i++)
		sum[i / n][i % n] = none;
	for (long panel = 0; panel < o->panels; panel++)
		UNROLL_TWICE
		for (long k = 0; k < o->depth; k++, weights += n) {
			/* Subtracting 0 is broadcasting alone. */
			UNROLL_ALL
			for (int i = 0; i < (m < n ? m : n); i++)
				kept[i] = m < n ? o->rows[i][k] - none : weights[i];
			UNROLL_ALL
			for (int i = 0; i < m * n; i++) {
				int row = m < n ? i % m : i / n, column = m < n ? i / m : i % n;
				VECTOR x = m < n ? kept[row] : o->rows[row][k] - none;
				VECTOR w = m < n ? weights[column] : kept[column];
				sum[row][column] = MULTIPLY_ADD(w, x, sum[row][column]);
			}
		}
	UNROLL_ALL
	for (int i = 0; i < m * n; i++)
		__asm__ volatile("" : : REGISTER(sum[i / n][i % n]));
}

#define TILE(m, n)                                                                                           \
	MEASURED static void LOOPS(tile_##m##_##n)(const struct operands *o)                                   \
	{                                                                                                    \
		LOOPS(multiply_tile)(m, n, o);                                                               \
	}
EACH_TILE(TILE)
#undef TILE

static const struct tile LOOPS(tiles)[] = {
#define TILE(m, n) {m, n, LOOPS(tile_##m##_##n)},
    EACH_TILE(TILE)
#undef TILE
    {0, 0, NULL}};

#undef EACH
#undef EACH_TILE
#undef LOOPS
#undef VECTOR
#undef TARGET
#undef MULTIPLY_ADD
