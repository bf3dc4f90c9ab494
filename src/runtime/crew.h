/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A crew: the threads of a team, and how they go through a plan in lockstep.
 *
 *   turns     of all plans are counted through for the life of the crew.  Each part of a turn is called once,
 *             after all parts of the turn before have ended
 *   place     each part has one, on a line of its own: twice the turn that it has ended last, and one more
 *             when the next one is taken.  Who begins a part looks at the places of the others, and meeting
 *             takes the time that a line needs from one processor to another
 *   taken     only who has taken a part's turn may read the plan at that turn, and the plan stays until all
 *             turns of it have ended: a thread that comes late never reads one that is overwritten
 *   standing by   a member that ends its part takes the next in the same store, and gives it back if it
 *             cannot begin in a moment.  What is not taken the caller takes, when he has nothing else to do:
 *             members that sleep, or that the system has not found a processor for, are not waited for */
#ifndef ESPALIER_RUNTIME_CREW_H
#define ESPALIER_RUNTIME_CREW_H

#include "runtime/gate.h"
#include "runtime/team.h"

enum { RT_LINE = 64 };

struct rt_place {
	_Alignas(RT_LINE) struct rt_gate at;
	_Alignas(RT_LINE) char apart; /* lines are fetched in pairs */
};

struct rt_crew {
	_Alignas(RT_LINE) struct rt_gate limit; /* the last turn that there is */
	/* Changed by who holds the team, read by who has taken a turn.  Not in the line above: it would be
	 * taken away by those who watch between one store and the next. */
	_Alignas(RT_LINE) struct rt_plan plan;
	uint64_t first; /* its first turn */
	atomic_bool end;
	/* set before there are threads */
	_Alignas(RT_LINE) struct rt_processors processors;
	bool pinned;
	int wanted;   /* members */
	bool crowded; /* more parts than processors: watching keeps others from working */
	/* known when `up` has moved */
	struct rt_gate up; /* when the region was entered, or cannot be */
	int parts;
	int trouble;
	pthread_t master;
	atomic_int ended;	 /* members that have */
	struct rt_place place[]; /* by part; 0 is the caller */
};

/* Makes the threads and waits until it is known how many they are; the error or 0. */
int rt_crew_start(struct rt_crew *);
/* Ends them.  By who holds the team, as what follows. */
void rt_crew_end(struct rt_crew *);
/* All turns of a plan; returns when they have ended. */
void rt_crew_run(struct rt_crew *, const struct rt_plan *);
/* A member's life. */
void rt_crew_serve(struct rt_crew *, int part);
/* Nanoseconds that a turn takes in which nothing is done. */
double rt_crew_meeting(struct rt_crew *);

#endif
