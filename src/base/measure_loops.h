/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loops that are measured, for one kind of vector.  The includer defines
 *     LOOPS(name)		the names of these functions
 *     VECTOR			a vector of floats
 *     TARGET			the attribute that allows it
 *     MULTIPLY_ADD(a, b, c)	a * b + c
 *     REGISTER			the constraint of a register for it; not undefined here
 * Twelve sums hide the latency of an operation on all processors at hand and leave registers for two
 * factors. */

enum { LOOPS(sums) = 12 };

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Computes independent sums.  Returns the number of operations. */
TARGET static double LOOPS(multiply)(long iterations)
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
TARGET static double LOOPS(chain)(long iterations)
{
	VECTOR factor = (VECTOR){0} + 0.999f, term = (VECTOR){0} + 1e-3f, sum = term;
	for (long t = 0; t < iterations; t++) {
		sum = MULTIPLY_ADD(sum, factor, term);
		__asm__ volatile("" : "+" REGISTER(sum));
	}
	return iterations;
}

/* Reads a multiple of 1 KiB. */
TARGET static void LOOPS(read)(const void *from, size_t bytes)
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

#undef EACH
#undef LOOPS
#undef VECTOR
#undef TARGET
#undef MULTIPLY_ADD
