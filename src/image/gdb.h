/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What debuggers are told of kernels. */
#ifndef ESPALIER_IMAGE_GDB_H
#define ESPALIER_IMAGE_GDB_H

#include "base/memory.h"
#include "image/perf.h"

/* Functions that debuggers know, as a list. */
struct gdb_entry;

/* Tells debuggers of functions by GDB's interface for code that is made at run time: each gets a symbol
 * MODEL:NAME, lines of the file `listing` (NULL = none) and its call frame information.  They are added to
 * the list, whose memory is the arena's; it may escape. Any number of threads may call at once, each for a
 * list of its own. */
void gdb_add_functions(struct gdb_entry **, struct arena *, const char *model, const char *listing,
		       const struct image_function *, int n);
/* Takes all of them back, before their code and the arena go, and empties the list. */
void gdb_remove_functions(struct gdb_entry **);

#endif
