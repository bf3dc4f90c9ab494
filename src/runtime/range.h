/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges of rows as the walk meets them, and the calls of kernels that they come to. */
#ifndef ESPALIER_RUNTIME_RANGE_H
#define ESPALIER_RUNTIME_RANGE_H

#include "runtime/profile.h"
#include "runtime/split.h"

#include <pthread.h>

/* Steps that take turns over some rows, or one of them, and how they are run.  A line of memory: it goes from
 * the caller to each member. */
struct rt_range {
	_Alignas(64) int64_t begin, end;
	int32_t step, steps; /* from which on in the image's table, how many */
	int32_t tile;	     /* the greatest of theirs */
	int32_t level;	     /* the batch, -1 where rows are not cut at batches; of several the lowest */
	int32_t levels;	     /* how many */
	enum rt_strategy strategy;
	bool downwards; /* the direction in which columns are swept, in turns at several levels */
	bool from_top;	/* the highest of several levels comes first */
	int32_t alone;	/* ranges right behind it in the plan that are the caller's alone */
	int32_t shift;	/* of columns from part to part */
	int32_t job;	/* in the record, when there is one; of several levels the first, as they are run */
	const int32_t *cut; /* of RT_SUBTREES (span.h) */
};

/* What all ranges of a run are called with. */
struct rt_calls {
	const struct image *image;
	struct image_frame frame;
	int columns;		    /* of the cuts of a span */
	struct rt_profile *profile; /* NULL = nobody asked */
	pthread_t caller;	    /* known when there is a profile */
	struct diags *diags;
};

/* All calls of one part, if it has any.  Compiled kernels do not fail. */
bool rt_run_share(const struct rt_calls *, const struct rt_range *, int part, int parts);

#endif
