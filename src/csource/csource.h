/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs as C11: kernels, the order in which they run, their memory and their weights, for hosts that have a compiler
 * of C and nothing of this library.
 *
 * Only programs of models without a structure: their rows are independent, so a minibatch is a number of rows and there
 * is nothing to linearize. */
#ifndef ESPALIER_CSOURCE_CSOURCE_H
#define ESPALIER_CSOURCE_CSOURCE_H

#include "base/diag.h"
#include "ilir/ilir.h"
#include "image/image.h"

/* What is written. */
struct csource_program {
	const struct ilir_module *module; /* after all passes */
	const struct image *image;	  /* the module's tables, without cases and sorts */
	void *const *packed;		  /* by recipe: weights as a binding holds them, NULL = no run needs them */
	const char *name;		  /* of files, functions and arrays: an identifier of C */
	/* By buffer: where an intermediate lies in memory that intermediates share, for one row, and in that of those
	 * that have no rows [bytes]; and how much there is of each. */
	const int64_t *row_offset, *fixed_offset;
	int64_t row_bytes, fixed_bytes;
};

/* A file: NAME and `suffix`. */
struct csource_file {
	const char *suffix;
	struct str text;
};

enum { CSOURCE_FILES = 8 }; /* at most */

/* How many rows of each size there are for one row of the minibatch, and besides those. */
extern const int64_t csource_row_sizes[IMAGE_SIZES], csource_fixed_sizes[IMAGE_SIZES];

/* Writes the files of a program into the arena; how many there are, 0 after `no-source`.  The last three are for calls of the
 * accelerator. */
int csource_write(struct arena *, const struct csource_program *, struct csource_file file[CSOURCE_FILES], struct diags *);

#endif
