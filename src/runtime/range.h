/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges of rows in the order of the walk, and the calls of kernels that run them. */
#ifndef ESPALIER_RUNTIME_RANGE_H
#define ESPALIER_RUNTIME_RANGE_H

#include "runtime/drive_calls.h"
#include "runtime/record.h"
#include "runtime/split.h"

#include <pthread.h>

/* Rows, and the steps of a stage that run over them, or one of these: a work item of the team.  A cache line:
 * it goes from the caller to each worker. */
struct rt_range {
	_Alignas(64) int64_t begin, end;
	int32_t step, steps; /* the first, as the image's table counts; how many */
	int32_t tile;	     /* of which chunks of rows have halves (rt_stage) */
	int32_t level;	     /* the batch, -1 where rows are not cut at batches; of a span the lowest */
	int32_t levels;	     /* how many */
	enum rt_strategy strategy;
	bool downwards; /* the direction in which columns are swept; in a span it alternates by level */
	bool joined; /* each chunk begins when its own of the range before has ended */
	bool from_top;	/* the highest level of a span comes first */
	int32_t alone;	/* how many ranges right behind it in the queue are joined, or the caller's alone */
	int32_t shift;	/* chunk c runs the blocks of columns that are chunk c + shift's without migration */
	int32_t job;	/* its index in the record, if there is one; of a span its first level's */
	const int32_t *cut; /* of RT_SUBTREES (span.h) */
};

/* What all ranges of a run are called with. */
struct rt_calls {
	const struct image *image;
	struct image_frame frame; /* of the first chunk */
	int64_t table; /* pointers from the table of one chunk to that of the next; 0 = they share one */
	int columns;		    /* of the cuts of a span */
	struct rt_profile *profile; /* NULL = the run is not recorded */
	pthread_t caller;	    /* set when there is a profile */
	struct diags *diags;
	struct rt_driver *driver; /* of steps of the accelerator; NULL = there are none */
	double l2_bytes; /* the second-level cache of a core; 0 = not known, and no rows of a chunk are cut */
	int step_buffer; /* where a thread has the step of a scan that it is at; -1 = nothing reads it */
};

/* Makes all calls of one chunk, if it has any.  Compiled kernels do not fail. */
bool rt_run_chunk(const struct rt_calls *, const struct rt_range *, int chunk, int chunks);

#endif
