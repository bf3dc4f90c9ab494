/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The team: threads that help callers, all callers of one context, one at a time.
 *
 *   budget T   the caller that has the team and T - 1 members
 *   made       when there is enough to do, and kept; a process that computes little never makes it
 *   OpenMP     a master thread of the team's own enters one parallel region of T - 1 threads, itself one
 *              of them, for the life of the team: OpenMP gives each thread that enters a region a team of
 *              its own, so callers never do
 *   busy       a caller that finds another one in the team computes alone; nobody queues
 *   plans      have turns, turns have as many parts as the team has threads, each with a thread that it
 *              belongs to.  A part that its member has not begun when the caller has nothing else to do is
 *              the caller's (crew.h)
 *   asleep     members watch for plans for some time, then sleep.  One is handed over in
 * less than a microsecond, but waking up takes a hundred.  So what comes while they sleep is counted, and
 *              only when enough was missed are they roused
 *   fork       a child has the caller's thread only: there the team cannot be entered, and stopping it
 *              touches no thread
 *
 * The host may use OpenMP as it likes, callers may stand inside of its regions, and what its environment asks
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

/* What a team does, turn by turn: no part of a turn is begun before all of the turn before have ended. */
struct rt_plan {
	/* Called once for each part of each turn.  Answers how many of the turns that follow are the caller's
	 * alone: those are called with part 0 of 1, and the other parts go past them. */
	int (*work)(void *job, int turn, int part, int parts);
	void *job;
	int turns; /* at least 1; the first is not the caller's alone */
};

struct rt_team {
	const struct allocator *allocator;
	int threads;			 /* the budget; below 2 there is no team */
	uint64_t generation;		 /* the process it belongs to */
	struct rt_processors processors; /* where members may run; none = it is not known */
	const struct target *machine;	 /* that it runs on */
	bool pinned;			 /* each to one of them, by its part; before it is entered first */
	atomic_bool closed;		 /* stopped, or its threads could not be made */
	atomic_int trouble;		 /* see rt_team_trouble */
	pthread_mutex_t lock; /* whose turn it is: held from rt_team_enter to rt_team_leave; of all below */
	struct rt_crew *crew; /* NULL = not made yet */
	double meeting;	      /* nanoseconds that a turn takes in which nothing is done, as found lately */
	int64_t met;	      /* when that was found */
	double missed;	      /* operations that members would have done, had they been awake */
	int64_t left;	      /* when it was left last, in nanoseconds */
};

/* Starts nothing.  The team must not be moved.  Its members will run where the calling thread may run now,
 * that of part p on the p-th of these processors if they are pinned: the first is left to the caller. */
void rt_team_init(struct rt_team *, const struct allocator *, int threads);
/* Says what machine it runs on, before it is entered first; until then it is what its best target is taken for.  The
 * description is kept, and must outlive the team. */
void rt_team_describe(struct rt_team *, const struct target *machine);
/* Takes the team if it is free, for a run of which members are expected to do so many operations; makes it,
 * or rouses it, if that is enough.  The number of parts that turns have, 2 .. threads, or 0: compute alone.
 * What was entered must be left by the same thread. */
int rt_team_enter(struct rt_team *, double operations);
/* All turns of the plan, part 0 on the calling thread; returns when all have ended, and what they wrote can
 * then be read.  Parts of one turn must not wait for each other: one thread may run several.  Only between
 * rt_team_enter and rt_team_leave. */
void rt_team_run(struct rt_team *, const struct rt_plan *);
/* Operations that sleeping members must have missed to be roused: what one does in the time that waking takes. */
double rt_rouse_operations(const struct rt_team *);
/* Whether all members watch for a plan. */
bool rt_team_awake(const struct rt_team *);
/* Says that so many operations were not given to members because they sleep. */
void rt_team_miss(struct rt_team *, double operations);
void rt_team_leave(struct rt_team *);
/* Ends the team: from now on it cannot be entered; waits for the caller that has it, then for its threads.
 * Stopping again does nothing.  In a child of the process that made it, only gives its memory back. */
void rt_team_stop(struct rt_team *);
/* The error number of what kept threads from being made, once; then 0 again.  The team is not tried again. */
int rt_team_trouble(struct rt_team *);

#endif
