/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loops that are measured, for the registers of each target.  Included by measure.c alone. */
#ifndef ESPALIER_BASE_TARGET_LOOPS_H
#define ESPALIER_BASE_TARGET_LOOPS_H

#include "base/targets.h"

#include <stddef.h>

enum { LOOP_DEPTH = 256 /* iterations of a panel; fewer where few weights are to be read */ };

/* What the loop of a tile reads.  The rows do not begin at the same place in a page. */
struct operands {
	const void *weights;
	const float (*rows)[LOOP_DEPTH + 16];
	long depth, panels;
};

struct tile {
	int rows, vectors;
	void (*multiply)(const struct operands *);
};

struct loops {
	enum target_id target;
	double (*multiply)(long iterations);	  /* of independent sums; returns the number of operations */
	double (*chain)(long iterations);	  /* of one sum; returns the number of its steps */
	void (*read)(const void *, size_t bytes); /* a multiple of 1 KiB */
	const struct tile *tile;		  /* the last has 0 rows */
	size_t vector_bytes;
};

/* The loops for a target, or, for TARGETS, the best that this processor runs; NULL where it runs none. */
const struct loops *machine_find_loops(enum target_id);

#endif
