/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the team share: work that counts its calls. */
#ifndef ESPALIER_TESTS_RUNTIME_CREW_WORK_H
#define ESPALIER_TESTS_RUNTIME_CREW_WORK_H

#include "runtime/crew.h"

#include <sched.h>
#include <sys/wait.h>

enum { MAX_CHUNKS = 8 };

/* Operations of a run that is longer than any pause of the team. */
static const double MUCH = 1e15;

typedef int work(void *context, int item, int chunk, int chunks);

static inline void run_items(struct rt_team *t, work *run, void *context, int items)
{
	rt_team_run(t, &(struct rt_work){run, context, items});
}

/* Plain integers: the team alone keeps apart who writes and who reads. */
struct count {
	int calls[MAX_CHUNKS], threads;
};

static inline int count_chunk(void *context, int item, int chunk, int chunks)
{
	struct count *c = context;
	(void)item;
	c->calls[chunk]++;
	if (chunk == 0)
		c->threads = chunks;
	return 0;
}

/* Whether each of `chunks` chunks was called so often. */
static inline bool is_counted(const struct count *c, int chunks, int calls)
{
	for (int p = 0; p < MAX_CHUNKS; p++)
		if (c->calls[p] != (p < chunks ? calls : 0))
			return false;
	return c->threads == chunks;
}

/* Enters, runs work and leaves, or finds the team busy, some times; returns how often the work was right. */
static inline int enter_and_run(struct rt_team *t, int runs)
{
	int jobs = 0;
	for (int i = 0; i < runs; i++) {
		struct count c = {0};
		int threads = rt_team_enter(t, MUCH);
		if (!threads)
			continue;
		run_items(t, count_chunk, &c, 3);
		rt_team_leave(t);
		jobs += is_counted(&c, threads, 3);
	}
	return jobs;
}

/* Which processor is the n-th of a set, counted through again and again. */
static inline int nth_processor(const cpu_set_t *set, int n)
{
	int cpu = 0;
	for (n %= CPU_COUNT(set); !CPU_ISSET(cpu, set) || n-- > 0;)
		cpu++;
	return cpu;
}

static inline bool ends_well(pid_t child)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

#endif
