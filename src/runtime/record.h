/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The record of a run, which profiles are made of.
 *
 *   phases   of the run: linearizing, filling buffers, running steps
 *   jobs     ranges of rows in the order of the walk: how each was divided, and from when to when it ran.  A
 *            range of the caller's alone is a job of one chunk.  Each level of a span is a job, though there is
 *            no barrier between them: all but the first begin where the one before has ended, and end no sooner
 *   events   calls of kernels, by chunk.  A job lasts from the start of its first event to the stop of its
 *            last.  At the end of a job a chunk waited from the stop of its last event in it, or from the start
 *            of the job when it has none
 *
 * A session records while a profile is attached; otherwise a kernel call costs one test of a pointer more.
 * Each chunk has a track of its own and no two threads write to one cache line; memory for all calls that
 * there can be is reserved before the first job.  The record is of the last run, and valid until the next. */
#ifndef ESPALIER_RUNTIME_RECORD_H
#define ESPALIER_RUNTIME_RECORD_H

#include "base/memory.h"
#include "image/image.h"
#include "runtime/split.h"

#include <stdint.h>

enum rt_phase {
	RT_PHASE_LINEARIZE, /* the order, with the checks of the minibatch */
	RT_PHASE_FILL,	    /* buffers: memory that is missing, node data in the order's numbering */
	RT_PHASE_STEPS,
	RT_PHASES
};

/* A range of rows and the steps that run over it. */
struct rt_job {
	int32_t step, steps; /* the first, as the image's table counts; how many */
	int32_t level;	     /* the batch, -1 where rows are not cut at batches */
	bool follows;	     /* no barrier since the job before: a level of a span, but its first */
	enum rt_strategy strategy;
	int64_t begin, end;  /* rows */
	int64_t start, stop; /* nanoseconds of CLOCK_MONOTONIC */
};

/* A call of a kernel. */
struct rt_event {
	int32_t step, job; /* indices: of the image's steps, of `job` in the record */
	int64_t begin, end;
	int32_t first, blocks; /* of columns: the lowest, how many */
	int16_t direction;     /* 1 upwards, -1 downwards */
	bool taken;	       /* the caller ran it, since the worker had not begun in time */
	int64_t start, stop;
};

/* The calls of a chunk, on a cache line of its own. */
struct rt_track {
	_Alignas(64) struct rt_event *event;
	int64_t events;
	size_t capacity; /* bytes */
};

struct rt_profile {
	const struct allocator *allocator;
	bool lost;   /* there was no memory: the last run has no jobs and no events */
	int threads; /* of the last run, each with a track; 1 when the team was not entered */
	int tracks;  /* for which there is memory */
	struct rt_track *track;
	struct rt_job *job;
	int64_t jobs;
	size_t job_capacity; /* bytes */
	/* nanoseconds of CLOCK_MONOTONIC: where a phase begins; the last is the end of the run */
	int64_t phase[RT_PHASES + 1];
};

void rt_profile_init(struct rt_profile *, const struct allocator *);
void rt_profile_free(struct rt_profile *);

/* --- what the walk calls --- */

/* Forgets the last run. */
void rt_profile_clear(struct rt_profile *);
/* Reserves memory for all jobs of a run over a minibatch of these sizes; false when memory is out, then
 * `lost` is set. */
bool rt_profile_reserve(struct rt_profile *, const struct image *, int threads, const int64_t *sizes);
struct rt_range;
/* Called when a range is queued; returns the job's index. */
int32_t rt_profile_add_job(struct rt_profile *, const struct rt_range *, bool follows);
/* Called by the thread that runs the chunk. */
void rt_profile_add_event(struct rt_profile *, int chunk, const struct rt_event *);
/* Called when all calls have been made: finds from when to when each job lasted. */
void rt_profile_time_jobs(struct rt_profile *);

#endif
