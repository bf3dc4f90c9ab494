/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels for debuggers. */
#ifndef ESPALIER_IMAGE_GDB_H
#define ESPALIER_IMAGE_GDB_H

#include "base/memory.h"
#include "image/perf.h"

/* Functions that debuggers know, as a list. */
struct gdb_entry;

/* Tells debuggers of functions by GDB's interface for code that is made at run time: each gets a symbol MODEL:NAME.
 * They are added to the list, whose memory is the allocator's.  What there is no memory for has no name.
 * Any number of threads may call at once, each for a list of its own. */
void gdb_add_functions(struct gdb_entry **, const struct allocator *, const char *model, const struct image_function *,
		       int n);
/* Takes all of them back, before their code goes, and empties the list. */
void gdb_remove_functions(struct gdb_entry **, const struct allocator *);

#endif
