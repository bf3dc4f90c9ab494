/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The object file that describes a function in memory to debuggers: where it is, its name, how its frame is
 * unwound, and its lines. */
#ifndef ESPALIER_IMAGE_SYMFILE_H
#define ESPALIER_IMAGE_SYMFILE_H

#include "image/perf.h"

/* Appends an ELF file with the function MODEL:NAME, without its code; `listing` is the path of the file that
 * its lines are of, NULL = it has none. */
void image_put_symfile(struct str *, const char *model, const char *listing, const struct image_function *);

#endif
