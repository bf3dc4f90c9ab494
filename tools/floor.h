/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The floor: the least time that a machine needs, by its measured limits.
 *
 * The floor of rows that run together, such as a level, is the smaller of two times. With all threads: the
 * longer of computing the operations and reading a thread's share of the weights, at the bandwidth of a
 * working set of that size, plus one barrier. With one thread: the same without a barrier. The floor of a
 * run is the sum. Weights that the blocks of columns of one step share are read once, and so are, at each
 * level, those that edges select by equal tokens. */
#ifndef ESPALIER_TOOLS_FLOOR_H
#define ESPALIER_TOOLS_FLOOR_H

#include "machine.h"
#include "recording.h"

/* Seconds. `bytes` of weights are read, of which `set` are distinct. */
double floor_of_rows(const struct machine *, int threads, double operations, double bytes, double set);
/* The same by all threads and without the barrier, for a single step of a level. */
double floor_without_barrier(const struct machine *, int threads, double operations, double bytes,
			     double set);

/* Ranges that follow each other over the same rows, or over one row after the other. */
struct floor_span {
	size_t range, ranges;	  /* the first, and how many; 0 ranges = past the last */
	size_t step, steps;	  /* the same */
	int64_t level, rows;	  /* level -1: none */
	double operations, bytes; /* bytes: of weights; both of all their rows */
	double set;		  /* distinct bytes: those that each row reads again are counted once */
};

/* The span that begins with a range. */
struct floor_span floor_span_at(const struct recording *, size_t range);
double floor_of_span(const struct machine *, int threads, const struct floor_span *);

/* Sums over all steps of a run; bytes: of weights. */
struct floor {
	double seconds, operations, bytes;
};
struct floor floor_of_run(const struct machine *, int threads, const struct recording *);

#endif
