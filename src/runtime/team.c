/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/team.h"

#include "base/fork.h"
#include "runtime/crew.h"
#include "runtime/shared.h"

#include <string.h>
#include <unistd.h>

enum {
	/* How often it is found out what a meeting costs: the least of some, which take a few microseconds.
	 */
	MEETING_NANOSECONDS = 10000000,
	MEETINGS = 4,
	MOST_MEETING = 5000
};

/* How many, at least 1. */
static long count(const struct rt_processors *p)
{
	int known = CPU_COUNT_S(sizeof p->set, p->set);
	long online = known ? known : sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? online : 1;
}

void rt_team_init(struct rt_team *t, const struct allocator *allocator, int threads)
{
	*t = (struct rt_team){.allocator = allocator,
			      .threads = threads,
			      .generation = fork_generation()};
	rt_team_describe(t, target_find(TARGET_NATIVE));
	if (sched_getaffinity(0, sizeof t->processors.set, t->processors.set) != 0)
		memset(&t->processors, 0, sizeof t->processors);
	pthread_mutex_init(&t->lock, NULL);
}

void rt_team_describe(struct rt_team *t, const struct target *machine)
{
	t->machine = machine;
	t->meeting = machine->barrier;
}

double rt_rouse_operations(const struct rt_team *t)
{
	return t->machine->wake * target_kernel_rate(t->machine);
}

/* With the lock held.  When memory is out the next caller may find some; threads are not tried for again. */
static bool make_crew(struct rt_team *t)
{
	struct rt_crew *c = rt_take(t->allocator, sizeof *c + t->threads * sizeof *c->place);
	if (!c)
		return false;
	c->wanted = t->threads - 1;
	c->processors = t->processors;
	c->pinned = t->pinned;
	c->crowded = t->threads > count(&t->processors);
	int error = rt_crew_start(c);
	if (error) {
		rt_give(t->allocator, c);
		atomic_store(&t->trouble, error);
		atomic_store(&t->closed, true);
		return false;
	}
	t->crew = c;
	return true;
}

/* In a child the lock may be held by a thread that is not there. */
static bool may_enter(struct rt_team *t)
{
	return t->threads > 1 && !atomic_load_explicit(&t->closed, memory_order_relaxed) &&
	       fork_generation() == t->generation;
}

/* Whether enough was missed to have the members awake from now on; it is then counted anew. */
static bool missed_enough(struct rt_team *t, double operations)
{
	t->missed += operations;
	if (t->missed < rt_rouse_operations(t))
		return false;
	t->missed = 0;
	return true;
}

/* With the lock held, by the way when members watch.  How far processors are from each other is no constant
 * of a machine: a virtual one's move. */
static void find_meeting(struct rt_team *t, int64_t now)
{
	if (now - t->met < MEETING_NANOSECONDS || !rt_team_awake(t))
		return;
	t->met = now;
	t->meeting = MOST_MEETING;
	for (int i = 0; i < MEETINGS; i++) {
		double took = rt_crew_meeting(t->crew);
		t->meeting = took < t->meeting ? took : t->meeting;
	}
}

/* With the lock held.  Runs that are far apart do not add up: members would be asleep again. */
static bool have_crew(struct rt_team *t, double operations)
{
	int64_t now = rt_nanoseconds();
	if (now - t->left > RT_WATCH_NANOSECONDS)
		t->missed = 0;
	if (!t->crew)
		return missed_enough(t, operations) && make_crew(t);
	if (operations >= rt_rouse_operations(t))
		rt_gate_rouse(&t->crew->limit);
	find_meeting(t, now);
	return true;
}

int rt_team_enter(struct rt_team *t, double operations)
{
	if (!may_enter(t) || pthread_mutex_trylock(&t->lock) != 0)
		return 0;
	if (!atomic_load(&t->closed) && have_crew(t, operations))
		return t->crew->parts;
	rt_team_leave(t);
	return 0;
}

void rt_team_run(struct rt_team *t, const struct rt_plan *plan)
{
	rt_crew_run(t->crew, plan);
}

bool rt_team_awake(const struct rt_team *t)
{
	return !atomic_load_explicit(&t->crew->limit.sleepers, memory_order_relaxed);
}

void rt_team_miss(struct rt_team *t, double operations)
{
	if (missed_enough(t, operations))
		rt_gate_rouse(&t->crew->limit);
}

void rt_team_leave(struct rt_team *t)
{
	t->left = rt_nanoseconds();
	pthread_mutex_unlock(&t->lock);
}

void rt_team_stop(struct rt_team *t)
{
	bool here = fork_generation() == t->generation;
	if (here) {
		atomic_store(&t->closed, true);
		pthread_mutex_lock(&t->lock);
	}
	if (here && t->crew)
		rt_crew_end(t->crew);
	rt_give(t->allocator, t->crew);
	t->crew = NULL;
	if (here)
		pthread_mutex_unlock(&t->lock);
}

int rt_team_trouble(struct rt_team *t)
{
	return atomic_load_explicit(&t->trouble, memory_order_relaxed) ? atomic_exchange(&t->trouble, 0) : 0;
}
