/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The floor: the time that a machine cannot be beaten by, as far as its limits were measured.
 *
 * Of rows that run together, a level say: what the threads need for the operations, or a thread for reading
 * its share of the weights, at the bandwidth of a working set of that size, whichever is longer, and that the
 * threads meet once; or what one thread needs alone, which meets nobody, when that is less.  Of a run: the
 * sum.  Weights that the blocks of columns of one step share are read once. */
#ifndef ESPALIER_TOOLS_FLOOR_H
#define ESPALIER_TOOLS_FLOOR_H

#include "machine.h"
#include "recording.h"

/* Seconds; `bytes` are read of weights, of which `set` are distinct. */
double floor_of_rows(const struct machine *, int threads, double operations, double bytes, double set);
/* The same by all the threads, which need not meet: of a step that is a part of a level. */
double floor_without_barrier(const struct machine *, int threads, double operations, double bytes,
			     double set);

/* Ranges that follow each other over the same rows, or over one row after the other. */
struct floor_span {
	size_t range, ranges;	  /* the first, and how many; 0 = there is none */
	size_t step, steps;	  /* the same */
	int64_t level, rows;	  /* level -1: none */
	double operations, bytes; /* of all their rows; of weights */
	double set; /* bytes of one row after the other are read again for each: of one of them */
};

/* The part that begins with a range. */
struct floor_span floor_span_at(const struct recording *, size_t range);
double floor_of_span(const struct machine *, int threads, const struct floor_span *);

/* Of all steps of a run: what they compute, what they read of weights, and the seconds. */
struct floor {
	double seconds, operations, bytes;
};
struct floor floor_of_run(const struct machine *, int threads, const struct recording *);

#endif
