/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows that are given out in ranges and returned one by one. */
#ifndef ESPALIER_SERVE_GIVE_ROWS_H
#define ESPALIER_SERVE_GIVE_ROWS_H

#include "base/memory.h"

#include <stdint.h>

struct serve_rows {
	const struct allocator *allocator;
	uint64_t *free_at;	  /* a bit a row: it is free */
	int64_t rows, used, most; /* all of them; in use now, and at most at once */
	int64_t lowest;		  /* no row below is free */
};

bool serve_rows_init(struct serve_rows *, const struct allocator *, int64_t rows);
void serve_rows_free(struct serve_rows *);
/* Gives out consecutive rows: the lowest so many, or the longest range if there are nowhere so many.  Returns
 * the first and how many there are, 0 when none is free. */
int64_t serve_give_rows(struct serve_rows *, int64_t wanted, int64_t *given);
void serve_return_row(struct serve_rows *, int64_t row);

#endif
