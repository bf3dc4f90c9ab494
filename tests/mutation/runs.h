/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Faults in tables of an image and in calls of its kernels, in one place. */
#ifndef ESPALIER_TESTS_MUTATION_RUNS_H
#define ESPALIER_TESTS_MUTATION_RUNS_H

#include "tests/mutation/mutant.h"

/* Puts a buffer into the memory of another one of at least its size that is needed at the same time. */
static bool one_home(struct image *image, struct choice *c)
{
	struct image_buffer *b = (struct image_buffer *)image->buffer;
	for (int i = 0; i < image->buffers; i++)
		for (int k = 0; k < i; k++) {
			bool both = b[i].kind == IMAGE_SCRATCH && b[k].kind == IMAGE_SCRATCH &&
				    !b[i].at_binding && !b[k].at_binding && b[i].home == i && b[k].home == k;
			bool overlap = b[i].first <= b[k].last && b[k].first <= b[i].last;
			if (both && overlap && b[i].rows == b[k].rows &&
			    b[i].row_elements <= b[k].row_elements && is_chosen(c))
				b[i].home = k;
		}
	return c->done;
}

/* Exchanges a child of the first inner node with one of the last node, in the arrays by slot or by edge. */
static bool other_number(const struct image *image, struct image_frame *f, struct image_range *range)
{
	(void)range;
	for (int i = 0; i < image->buffers; i++) {
		int32_t *of = f->buffers[i];
		int64_t first = image->buffer[i].kind == IMAGE_CHILD ? f->sizes[IMAGE_LEAVES] : 0;
		int64_t last = f->sizes[first ? IMAGE_NODES : IMAGE_EDGES] - 1;
		if ((image->buffer[i].kind != IMAGE_CHILD && image->buffer[i].kind != IMAGE_CHILD_LIST) ||
		    !of || last <= first)
			continue;
		int32_t moved = of[first];
		of[first] = of[last];
		of[last] = moved;
		return true;
	}
	return false;
}

static bool lost_row(const struct image *image, struct image_frame *f, struct image_range *range)
{
	(void)image, (void)f;
	range->end -= range->end - range->begin > 1;
	return false;
}

static bool lost_columns(const struct image *image, struct image_frame *f, struct image_range *range)
{
	(void)image, (void)f;
	range->blocks -= range->blocks > 1;
	return false;
}

#endif
