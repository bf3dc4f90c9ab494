/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The team: threads that compute together, a caller and workers; all callers of a context share one.
 *
 *   budget T   the caller that has the team and T - 1 workers
 *   made       when there is enough to do, and kept; a process that computes little never makes it
 *   OpenMP     a master thread of the team's own enters one parallel region of T - 1 threads, itself one
 *              of them, for the life of the team: OpenMP gives each thread that enters a region a team of
 *              its own, so callers never do
 *   busy       a caller that finds another one in the team computes alone; nobody queues
 *   work       consists of items, an item of as many chunks as the team has threads, each of which belongs to
 *              one thread.  The caller runs a chunk that its worker has not begun when the caller has nothing
 *              else to do (crew.h)
 *   asleep     workers spin for some time, in the course of a run for longer, then sleep.  Handing over work takes less than a microsecond, but
 *              waking up takes a hundred.  So what comes while they sleep is counted, and they are woken only
 *              when enough was missed
 *   apart      workers are kept off the processor of the caller that wakes them (affinity.c)
 *   beside     a worker that loses its processor to another process keeps the chunk that it has begun, and the
 *              caller waits for it.  After a run that took longer than the caller alone would have, callers do
 *              without workers until these, waiting for work, have seen that nobody else takes their processors
 *   fork       a child has the caller's thread only: there the team cannot be entered, and stopping it
 *              touches no thread
 *
 * The host may use OpenMP as it likes, and callers may be inside of its regions.  What its environment sets
 * (OMP_THREAD_LIMIT and others) can make the team smaller, never wrong. */
#ifndef ESPALIER_RUNTIME_TEAM_H
#define ESPALIER_RUNTIME_TEAM_H

#include "base/memory.h"
#include "runtime/split.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

/* Processors, as many as the kernel can have: more than one cpu_set_t holds. */
struct rt_processors {
	cpu_set_t set[8];
};

/* Items that a team runs one after the other: no chunk of an item begins before all of the item before have
 * ended. */
struct rt_work {
	/* Called once for each chunk of each item.  Returns how many of the items that follow are the
	 * caller's alone: those are called with chunk 0 of 1, and workers skip them. */
	int (*run)(void *context, int item, int chunk, int chunks);
	void *context;
	int items; /* at least 1; the first is not the caller's alone */
};

enum { RT_THREADS_MAX = 256 };

struct rt_team {
	const struct allocator *allocator;
	atomic_int threads;		 /* the budget, 1 = there is no team; 0 = not counted yet, see rt_team_threads */
	uint64_t generation;		 /* the process it belongs to */
	struct rt_processors processors; /* where workers may run; none = it is not known */
	const struct target *machine;	 /* that it runs on */
	bool pinned; /* each to one of them, by its chunk; set before it is entered first */
	atomic_bool closed;		 /* stopped, or its threads could not be made */
	atomic_int error;		 /* see rt_team_error */
	pthread_mutex_t lock;		 /* held from rt_team_enter to rt_team_leave; guards all below */
	struct rt_crew *crew; /* NULL = not made yet */
	double barrier_cost;  /* of an item in which nothing is computed, as measured last [ns] */
	int64_t barrier_measured; /* when that was [ns] */
	double missed;		  /* operations that workers would have done, had they been awake */
	int64_t entered, left;	  /* when it was entered and left last [ns] */
	int64_t lost;	/* how long workers delayed the run since which callers are alone; 0 = none [ns] */
	int64_t pause, resume; /* how long callers are alone then at least, and when that ends [ns] */
	int64_t look;	  /* when workers are woken next, to see whether they have their processors [ns] */
	int64_t interval; /* from the last such time to that [ns] */
	int64_t worked;		  /* how long it was entered since the last such run [ns] */
};

/* Starts nothing; threads = 0: see rt_team_threads.  The team must not be moved.  Its workers will run where the calling thread may run now; if
 * they are pinned, that of chunk p on the p-th of these processors: the first is left to the caller. */
void rt_team_init(struct rt_team *, const struct allocator *, int threads);
/* The budget.  Without one given it is counted when it is first asked for, or the team first made: the processors that the
 * calling thread of rt_team_init could run on, or as many as the CPU quota allows, if fewer.  Reading the quota's files
 * takes longer than many a first run. */
int rt_team_threads(struct rt_team *);
/* Sets the machine that it runs on, before it is entered first; the default is that of the processor's best
 * target.  The description is kept by reference, and must outlive the team. */
void rt_team_describe(struct rt_team *, const struct target *machine);
/* Takes the team if it is free, for a run of which workers are expected to do so many operations; makes it,
 * or wakes it, if that is enough.  Returns the number of its threads, 2 .. the budget, or 0: compute alone.
 * The thread that entered it must leave it. */
int rt_team_enter(struct rt_team *, double operations);
/* Runs all items, chunk 0 on the calling thread; returns when all have ended, and what they wrote can then be
 * read.  Chunks of one item must not wait for each other: one thread may run several.  Only between
 * rt_team_enter and rt_team_leave. */
void rt_team_run(struct rt_team *, const struct rt_work *);
/* Operations that sleeping workers must have missed to be woken: those of one in the time to wake up. */
double rt_wake_operations(const struct rt_team *);
/* The same for a team that has not been made yet, by the time in which a thread is made. */
double rt_make_operations(const struct rt_team *);
/* Whether all workers spin, waiting for work. */
bool rt_team_awake(const struct rt_team *);
/* Counts operations that were not given to workers because they sleep; wakes them when they are enough. */
void rt_team_miss(struct rt_team *, double operations);
void rt_team_leave(struct rt_team *);
/* Ends the team: from now on it cannot be entered; waits for the caller that has it, then for its threads.
 * Stopping again does nothing.  In a child of the process that made it, only gives its memory back. */
void rt_team_stop(struct rt_team *);
/* The error number of what kept threads from being made, once; then 0 again.  The team is not tried again. */
int rt_team_error(struct rt_team *);

#endif
