/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do at most, measured at the moment: the limits that times are judged by. */
#ifndef ESPALIER_TOOLS_MACHINE_H
#define ESPALIER_TOOLS_MACHINE_H

#include <stdbool.h>
#include <stdio.h>

/* Working sets of MACHINE_LEAST bytes a core, twice as many, and so on. */
enum { MACHINE_LEAST = 16 << 10, MACHINE_SETS = 15 };

struct machine {
	const char *vector;		/* what computes: "avx512", "avx2", "generic" */
	int threads;			/* that compute and read at once */
	double peak;			/* operations a second and core, of multiply-adds counted as two */
	double bandwidth[MACHINE_SETS]; /* bytes that a core reads a second, from a working set of its own */
	int sets;			/* how many of these there are: so much memory was to be had */
	double barrier; /* seconds that threads which compute at the peak take to meet; 0 of one thread */
};

/* Measures so many threads together, each on a processor of its own while there are as many.  Takes up to
 * 0.2 s and 256 MiB, and leaves the calling thread where it was.  False when there is neither the memory nor
 * the threads. */
bool machine_measure(struct machine *, int threads);
/* The best of two measurements of so many threads: who measures before and after can tell the machine from
 * what disturbed it. */
void machine_merge(struct machine *, const struct machine *);
/* Bytes that a core reads a second from a working set of so many bytes: between those measured by the
 * logarithm of their sizes, beyond the last as there. */
double machine_bandwidth(const struct machine *, double bytes);
void machine_print(const struct machine *, FILE *);
/* As a JSON object, without a newline. */
void machine_print_json(const struct machine *, FILE *);

#endif
