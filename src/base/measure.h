/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures the limits of this machine.  Includes only targets.h of the library: the command judges times by the same
 * measurement. */
#ifndef ESPALIER_BASE_MEASURE_H
#define ESPALIER_BASE_MEASURE_H

#include "base/targets.h"

#include <stdbool.h>
#include <stddef.h>

/* Working sets of MACHINE_LEAST bytes a core, twice as many, and so on. */
enum { MACHINE_LEAST = 16 << 10, MACHINE_SETS = 15, MACHINE_MEMORY = 256 << 20 };

struct machine {
	const char *vector;		/* the target whose loops computed */
	int threads;			/* that compute and read at once */
	double peak;			/* operations a second and core, of multiply-adds counted as two */
	double multiply_add;		/* seconds from one to the next that needs its result */
	double bandwidth[MACHINE_SETS]; /* bytes that a core reads a second, from a working set of its own */
	int sets;			/* how many of these were measured: as many as memory allows */
	/* The next five are 0 of one thread, and `kept` where tiles are not measured. */
	double barrier;	 /* seconds that threads which compute at the peak wait at a barrier */
	double skew;	 /* seconds more that they wait at one after equal work, in the median */
	double exchange; /* bytes that a core reads a second of what another has just written */
	double wake;	 /* seconds from waking a thread that sleeps until it runs: a quarter of the samples took less */
	double create;	 /* seconds from making a thread until it runs, likewise */
	double kept; /* bytes of a sweep over the set beyond the second level that are still near in a sweep back */
	target_times iteration; /* seconds of an iteration of each tile; 0 = was not measured */
};

/* Measures so many threads together, by loops for a target or, for TARGETS, the best one, each on a processor of its own while there are as many.  Takes about
 * 0.5 s and up to `memory` bytes, of which MACHINE_MEMORY are enough for all sets of one thread, and leaves the
 * calling thread where it was.  `tile_sets` are the bytes of weights for each cache that iterations read; NULL =
 * they are not measured.  False when there is neither the memory nor the threads, or the processor has not the target's
 * registers. */
bool machine_measure(struct machine *, enum target_id, int threads, size_t memory, const size_t *tile_sets);
/* Keeps the best of two measurements with equally many threads: measuring before and after separates the
 * machine from disturbances. */
void machine_merge(struct machine *, const struct machine *);
/* Bytes that a core reads a second from a working set of so many bytes: between those measured by the
 * logarithm of their sizes, beyond the last as there. */
double machine_bandwidth(const struct machine *, double bytes);

#endif
