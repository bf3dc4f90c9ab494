/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A crew: the workers of a team, and the counters by which they and the caller run work in lockstep.
 *
 *   items     are numbered from 1 for the life of the crew, on from one struct rt_work to the next.  Each
 *             chunk of an item is run once, after all chunks of the item before have ended
 *   progress  a counter for each chunk, on a cache line of its own: twice the number of the item whose chunk
 *             ended last, plus one once the next has been claimed.  There is no other barrier: a thread that
 *             is about to begin reads the counters of all, which takes the time that a line needs from one
 *             processor to another
 *   claims    only the thread that has claimed a chunk of an item may read the work at that item, and the
 *             work stays until all its items have ended: a late thread never reads work that is overwritten
 *   standby   a worker that ends its chunk claims that of the next item in the same store, and releases it
 *             if it cannot begin in a moment.  The caller claims what is left when it has nothing else to do:
 *             it does not wait for workers that sleep or that the system has found no processor for */
#ifndef ESPALIER_RUNTIME_CREW_H
#define ESPALIER_RUNTIME_CREW_H

#include "runtime/gate.h"
#include "runtime/team.h"

enum { RT_LINE = 64 };

struct rt_progress {
	_Alignas(RT_LINE) struct rt_gate at;
	/* Lines are fetched in pairs. */
	_Alignas(RT_LINE) atomic_int processor; /* where the worker claimed a chunk last */
	atomic_int thread;			/* its number, if it may be moved to other processors; or 0 */
	_Atomic int64_t kept; /* when the worker, waiting for work, last had its processor to itself [ns] */
};

struct rt_crew {
	_Alignas(RT_LINE) struct rt_gate last; /* the number of the last item that there is */
	/* Written by the caller, read by threads that have claimed a chunk.  Not in the line above, which
	 * spinning threads would fetch between two of the caller's stores. */
	_Alignas(RT_LINE) struct rt_work work;
	uint64_t first; /* the number of its first item */
	int64_t waited; /* how long callers have waited for threads that had lost their processors [ns] */
	atomic_bool end;
	atomic_bool running; /* a caller has the team: workers wait longer before they sleep */
	/* set before there are threads */
	_Alignas(RT_LINE) struct rt_processors processors;
	bool pinned;
	int apart;	     /* the processor that workers are kept from; -1 = none */
	int wanted;	     /* workers */
	bool oversubscribed; /* more threads than processors: spinning keeps others from working */
	/* valid once `up` is 1 */
	struct rt_gate up; /* raised when the workers run, or could not be made */
	int threads;	   /* the workers and the caller */
	int error;	   /* that kept them from being made; 0 = none */
	pthread_t master;
	atomic_int ended;	       /* workers that have */
	struct rt_progress progress[]; /* by chunk; 0 is the caller's */
};

/* Makes the threads and waits until it is known how many there are; the error number or 0. */
int rt_crew_start(struct rt_crew *);
/* Ends them.  Only the caller that holds the team may call this and what follows. */
void rt_crew_end(struct rt_crew *);
/* Runs all items; returns when they have ended. */
void rt_crew_run(struct rt_crew *, const struct rt_work *);
/* Runs the chunks of one worker until the crew ends. */
void rt_crew_serve(struct rt_crew *, int chunk);
/* Binds the calling thread, the worker of a chunk, to where the team may run or, when the host's environment binds
 * threads, to OpenMP's place of its number. */
void rt_crew_place(struct rt_crew *, int chunk);
/* Keeps workers off the caller's processor: called before they are woken. */
void rt_crew_part(struct rt_crew *);
/* Whether every worker has had a processor to itself after a time [ns], waiting for work. */
bool rt_crew_kept_processors(const struct rt_crew *, int64_t after);
/* Measures an item in which nothing is computed [ns]. */
double rt_crew_barrier_cost(struct rt_crew *);

#endif
