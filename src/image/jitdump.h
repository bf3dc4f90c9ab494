/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The dump of generated code that `perf inject --jit` makes object files of, so that `perf report` and `perf
 * annotate` show instructions, lines and call chains of code that is gone by then. */
#ifndef ESPALIER_IMAGE_JITDUMP_H
#define ESPALIER_IMAGE_JITDUMP_H

#include "base/memory.h"
#include "image/perf.h"

/* Appends functions of a model's code to the dump of this process,
 * FOLDER/.debug/jit/espalier-XXXXXX/jit-PID.dump, as MODEL:NAME; FOLDER is $JITDUMPDIR, else $HOME.  The
 * listing, if there are lines, goes to a file beside it.  The dump is made by the first call and lives until
 * the process ends; a child that was forked has its own.  Any number of threads may call at once.  False
 * after `perf-map-unusable`. */
bool image_dump_functions(struct arena *, const char *model, const char *listing,
			  const struct image_function *, int n, struct diags *);

#endif
