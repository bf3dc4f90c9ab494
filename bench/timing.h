/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A clock for benchmarks, and the order of numbers for qsort. */
#ifndef ESPALIER_BENCH_TIMING_H
#define ESPALIER_BENCH_TIMING_H

#include <time.h>

/* Seconds since some fixed time. */
static inline double read_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* For qsort of double. */
static inline int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

#endif
