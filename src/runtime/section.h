/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring steps of a chunk that run over some of its rows before the next. */
#ifndef ESPALIER_RUNTIME_SECTION_H
#define ESPALIER_RUNTIME_SECTION_H

#include "image/image.h"

/* Pieces that the rows of a chunk are cut into at most. */
enum { RT_PIECES = 64 };

struct rt_section {
	int steps;    /* so many run over a piece of the rows before the next piece */
	int64_t rows; /* of a piece; the last one may have fewer */
};

/* Whether the rows of a chunk of the step may be cut: its ranges have all rows of a domain, so they are few. */
bool rt_may_be_cut(const struct image_step *);
/* The section that begins with the first of some steps of a chunk of so many rows, on a core with so large a second-level cache;
 * all rows of some steps where none pays. */
struct rt_section rt_find_section(const struct image_step *, int steps, int64_t rows, double l2_bytes);

#endif
