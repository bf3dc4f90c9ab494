/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What every benchmark measures by: a clock, and the order of figures. */
#ifndef ESPALIER_BENCH_TIMING_H
#define ESPALIER_BENCH_TIMING_H

#include <time.h>

/* Seconds, from some point on. */
static inline double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* For qsort of double. */
static inline int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

#endif
