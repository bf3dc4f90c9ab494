/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Where workers run.
 *
 * A worker that wakes up may be put on the processor of the caller that wakes it, though others are idle, and
 * stay there for some milliseconds, in which the caller computes the chunks of both.  So a caller that is about
 * to wake workers, or that finds one where it is itself, first takes its processor out of those on which they
 * may run. */
#include "runtime/crew.h"

#include <limits.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>

/* The processors of one of OpenMP's places; false when there are none. */
static bool find_omp_place(int thread, struct rt_processors *p)
{
	int id[CPU_SETSIZE], places = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
	int ids = places ? omp_get_place_num_procs(thread % places) : 0;
	if (ids < 1 || ids > CPU_SETSIZE)
		return false;
	omp_get_place_proc_ids(thread % places, id);
	memset(p, 0, sizeof *p);
	for (int i = 0; i < ids; i++)
		CPU_SET_S(id[i], sizeof p->set, p->set);
	return true;
}

/* The n-th of the team's processors, counted round and round. */
static struct rt_processors nth_processor(const struct rt_crew *c, int n)
{
	struct rt_processors own = c->processors;
	int processors = CPU_COUNT_S(sizeof own.set, own.set), before = processors ? n % processors : 0;
	for (size_t i = 0, met = 0; processors && i < sizeof own.set * CHAR_BIT; i++)
		if (CPU_ISSET_S(i, sizeof own.set, own.set) && met++ != (size_t)before)
			CPU_CLR_S(i, sizeof own.set, own.set);
	return own;
}

/* A new thread inherits the affinity of the caller that made it, which has work to do there. */
void rt_crew_place(struct rt_crew *c, int chunk)
{
	struct rt_processors place;
	bool bound = find_omp_place(chunk, &place);
	if (!bound)
		place = c->pinned ? nth_processor(c, chunk) : c->processors;
	if (CPU_COUNT_S(sizeof place.set, place.set))
		sched_setaffinity(0, sizeof place.set, place.set);
	if (!bound && !c->pinned)
		atomic_store(&c->progress[chunk].thread, gettid());
}

/* The processors of workers that are kept from one of them; -1 = from none. */
static struct rt_processors processors_without(const struct rt_crew *c, int processor)
{
	struct rt_processors p = c->processors;
	if (processor >= 0)
		CPU_CLR_S(processor, sizeof p.set, p.set);
	return p;
}

/* Whether the worker may run where it was last allowed to: otherwise somebody else has bound it. */
static bool is_movable(const struct rt_crew *c, int thread)
{
	struct rt_processors expected = processors_without(c, c->apart), now = {0};
	return thread && sched_getaffinity(thread, sizeof now.set, now.set) >= 0 &&
	       CPU_EQUAL_S(sizeof now.set, now.set, expected.set);
}

static bool is_near(const struct rt_crew *c, int processor)
{
	bool near = atomic_load_explicit(&c->last.sleepers, memory_order_relaxed);
	for (int chunk = 1; !near && chunk < c->threads; chunk++)
		near = atomic_load_explicit(&c->progress[chunk].processor, memory_order_relaxed) == processor;
	return near;
}

void rt_crew_part(struct rt_crew *c)
{
	int here = sched_getcpu();
	if (here == c->apart || here < 0 || c->oversubscribed || !is_near(c, here))
		return;
	struct rt_processors others = processors_without(c, here);
	if (!CPU_ISSET_S(here, sizeof others.set, c->processors.set) || !CPU_COUNT_S(sizeof others.set, others.set))
		return;
	for (int chunk = 1; chunk < c->threads; chunk++) {
		int thread = atomic_load_explicit(&c->progress[chunk].thread, memory_order_relaxed);
		if (!is_movable(c, thread) || sched_setaffinity(thread, sizeof others.set, others.set) != 0)
			atomic_store_explicit(&c->progress[chunk].thread, 0, memory_order_relaxed);
	}
	c->apart = here;
}
