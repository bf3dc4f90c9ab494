/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a run did and when: the record that profiles are made of.
 *
 *   phases   of the run: linearizing, filling buffers, running steps
 *   jobs     ranges of rows in the order of the walk: which way each was split, from when to when.  The
 *            caller's own ranges are jobs of one part.  Levels that are run by subtrees have a job each, though
 *            parts do not meet between them: all but the first begin where the one before has ended
 *   events   calls of kernels, by the part that they belong to.  A job lasts from the start of its first to
 *            the stop of its last.  What part p waited at the end of a job is the job's stop less the stop of
 *            the part's last event in it, or less the job's start when it has none
 *
 * A session records into it while one is attached; without, a run pays one test of a pointer for each call of
 * a kernel.  Each part has an array of its own and no line of memory is written by two; memory is taken
 * before the first job of a run, as much as there can be calls.  The record is of the last run, and valid
 * until the next. */
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

/* A range of rows and the steps that take turns over it, or one of them. */
struct rt_job {
	int32_t step, steps; /* from which on in the image's table, how many */
	int32_t level;	     /* the batch, -1 where rows are not cut at batches */
	bool follows;	     /* parts have not met since the job before: a level of a span, but its first */
	enum rt_way way;
	int64_t begin, end;  /* rows */
	int64_t start, stop; /* nanoseconds of CLOCK_MONOTONIC */
};

/* A call of a kernel. */
struct rt_event {
	int32_t step, job; /* indices: of the image's steps, of `job` in the record */
	int64_t begin, end;
	int32_t first, blocks; /* of columns: the lowest, how many */
	int16_t direction;     /* 1 upwards, -1 downwards */
	bool taken; /* the caller ran it, though the part is another's, who had not begun it in time */
	int64_t start, stop;
};

/* The calls of a part; a line of its own. */
struct rt_lane {
	_Alignas(64) struct rt_event *event;
	int64_t events;
	size_t capacity; /* bytes */
};

struct rt_profile {
	const struct allocator *allocator;
	bool lost; /* there was no memory: the last run has no jobs and no events */
	int parts; /* of the last run's jobs: lanes; 1 when the team was not entered */
	int lanes; /* that there is memory of */
	struct rt_lane *lane;
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
/* Makes room for all jobs of a run over a minibatch of these sizes; false when memory is out, and `lost`. */
bool rt_profile_reserve(struct rt_profile *, const struct image *, int parts, const int64_t *sizes);
struct rt_range;
/* As ranges are planned; the job's index. */
int32_t rt_profile_add_job(struct rt_profile *, const struct rt_range *, bool follows);
/* By the thread that runs the part. */
void rt_profile_add_event(struct rt_profile *, int part, const struct rt_event *);
/* When all calls have been made: from when to when jobs lasted. */
void rt_profile_settle(struct rt_profile *);

#endif
