/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is compiled at once: a kernel, or, where its rows are cut into tiles of several sizes, what runs one of them.
 *
 *     kernel k {                              k:    for j swept { for n in B..B3 step 3 { X }
 *       for j swept {                                             k.rows2(B, E, j); k.rows1(B, E, j) }
 *         for n in B..B3 step 3 { X }   ->    k.rows2: for j swept { for n in B3..B2 step 2 { Y } }
 *         for n in B3..B2 step 2 { Y }        k.rows1: for j swept { for n in B2..E { Z } }
 *         for n in B2..E { Z }
 *       }
 *     }
 *
 * Y and Z are *variants*: kernels of the same form, which run their share of any range.  A range that is one variant's
 * alone needs no other, and since rows are independent, variants may run in any order.  Tiles are compiled
 * at the same time, and those that no range needs can wait. */
#ifndef ESPALIER_JIT_UNITS_H
#define ESPALIER_JIT_UNITS_H

#include "ilir/ilir.h"

struct jit_unit {
	int kernel;
	int variant;	  /* 0 = the kernel itself, with its first tiles; else of this loop over rows */
	int variants;	  /* of the kernel, with itself */
	int64_t rows;	  /* ranges of fewer rows do not need it */
	const char *name; /* of its function */
};

/* The loops over rows that a kernel's variants run, the first of several statements in a block; NULL when it has one
 * unit.  They stand alone in the kernel, or in one loop over columns. */
const struct ilir_stmt *jit_row_loops(const struct ilir_module *, int kernel);

/* The units of a module, those of a kernel behind each other and the kernel itself first; in the arena.  `whole`: one
 * for each kernel.  Returns how many there are. */
int jit_list_units(struct arena *, const struct ilir_module *, bool whole, struct jit_unit **);

#endif
