/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/team.h"

#include "base/fork.h"
#include "base/quota.h"
#include "runtime/crew.h"
#include "runtime/shared.h"

#include <string.h>
#include <unistd.h>

enum {
	/* How often the cost of a barrier is measured: the least of some samples, which take a few
	 * microseconds, but at most this [ns]. */
	MEASURE_NANOSECONDS = 10000000,
	SAMPLES = 4,
	MAX_BARRIER_COST = 5000,
	/* How long callers do without workers that lost their processors twice in a short time, at least [ns]. */
	LEAST_PAUSE = 1000000,
	/* A loss is taken for a single one when workers helped for so many times as long before; no pause is
	 * longer than so many losses; and a run that is, is not delayed by much. */
	RARE = 16,
	/* From one time to the next that workers are woken to see whether they have their processors again, at
	 * first and at most [ns]: waking them takes some ten microseconds. */
	LEAST_INTERVAL = 1000000,
	MOST_INTERVAL = 16000000
};

static long count_processors(const struct rt_processors *p)
{
	int known = CPU_COUNT_S(sizeof p->set, p->set);
	long online = known ? known : sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? online : 1;
}

static int count_budget(const struct rt_team *t)
{
	long n = count_processors(&t->processors);
	int quota = n > 1 ? quota_processors("") : 0;
	n = quota && quota < n ? quota : n;
	return n < RT_THREADS_MAX ? (int)n : RT_THREADS_MAX;
}

/* Of several threads that count, the first one decides. */
int rt_team_threads(struct rt_team *t)
{
	int threads = atomic_load(&t->threads), counted = threads ? threads : count_budget(t);
	return threads || !atomic_compare_exchange_strong(&t->threads, &threads, counted) ? threads : counted;
}

void rt_team_init(struct rt_team *t, const struct allocator *allocator, int threads)
{
	*t = (struct rt_team){.allocator = allocator, .threads = threads, .generation = fork_generation()};
	rt_team_describe(t, target_of_machine());
	if (sched_getaffinity(0, sizeof t->processors.set, t->processors.set) != 0)
		memset(&t->processors, 0, sizeof t->processors);
	pthread_mutex_init(&t->lock, NULL);
}

void rt_team_describe(struct rt_team *t, const struct target *machine)
{
	t->machine = machine;
	t->barrier_cost = machine->barrier;
}

double rt_wake_operations(const struct rt_team *t)
{
	return t->machine->wake * target_kernel_rate(t->machine);
}

double rt_make_operations(const struct rt_team *t)
{
	return t->machine->create * target_kernel_rate(t->machine);
}

/* With the lock held.  After a failed allocation the next caller tries again, after failed threads nobody. */
static bool make_crew(struct rt_team *t)
{
	struct rt_crew *c = rt_allocate_zeroed(t->allocator, sizeof *c + t->threads * sizeof *c->progress);
	if (!c)
		return false;
	c->apart = -1;
	c->wanted = t->threads - 1;
	c->processors = t->processors;
	c->pinned = t->pinned;
	c->oversubscribed = t->threads > count_processors(&t->processors);
	int error = rt_crew_start(c);
	if (error) {
		rt_free(t->allocator, c);
		atomic_store(&t->error, error);
		atomic_store(&t->closed, true);
		return false;
	}
	t->crew = c;
	return true;
}

/* In a child the lock may be held by a thread that is not there. */
static bool may_enter(struct rt_team *t)
{
	return atomic_load_explicit(&t->threads, memory_order_relaxed) != 1 && !atomic_load_explicit(&t->closed, memory_order_relaxed) &&
	       fork_generation() == t->generation;
}

/* Whether enough was missed to wake the workers, or to make them; counting then begins anew. */
static bool missed_enough(struct rt_team *t, double operations)
{
	t->missed += operations;
	if (t->missed < (t->crew ? rt_wake_operations(t) : rt_make_operations(t)))
		return false;
	t->missed = 0;
	return true;
}

/* Only while workers spin, with the lock held.  The cost is no constant of a machine: the processors of a
 * virtual one move. */
static void measure_barrier(struct rt_team *t, int64_t now)
{
	if (now - t->barrier_measured < MEASURE_NANOSECONDS || !rt_team_awake(t))
		return;
	t->barrier_measured = now;
	t->barrier_cost = MAX_BARRIER_COST;
	for (int i = 0; i < SAMPLES; i++) {
		double took = rt_crew_barrier_cost(t->crew);
		t->barrier_cost = took < t->barrier_cost ? took : t->barrier_cost;
	}
}

/* Wakes workers, which then see whether they have their processors to themselves. */
static void wake_to_look(struct rt_team *t, int64_t now)
{
	if (now < t->look)
		return;
	rt_crew_part(t->crew);
	rt_gate_wake(&t->crew->last);
	t->interval = t->interval < MOST_INTERVAL / 2 ? 2 * t->interval : MOST_INTERVAL;
	t->look = now + t->interval;
}

/* Whether callers are alone: workers have lost their processors, and have not seen since that they have them again. */
static bool is_paused(struct rt_team *t, double operations, int64_t now)
{
	if (!t->lost || operations > (double)RARE * t->lost * target_kernel_rate(t->machine))
		return false;
	if (now >= t->resume && rt_crew_kept_processors(t->crew, t->resume))
		t->lost = 0;
	else if (now >= t->resume)
		wake_to_look(t, now);
	return t->lost;
}

/* With the lock held.  Runs that are far apart add up only where each is worth waking workers, who would be asleep again. */
static bool prepare_crew(struct rt_team *t, double operations, int64_t now)
{
	if (is_paused(t, operations, now))
		return false;
	if (now - t->left > RT_SPIN_NANOSECONDS && operations < rt_wake_operations(t))
		t->missed = 0;
	if (!t->crew)
		return missed_enough(t, operations) && rt_team_threads(t) > 1 && make_crew(t);
	rt_crew_part(t->crew);
	if (operations >= rt_wake_operations(t))
		rt_gate_wake(&t->crew->last);
	measure_barrier(t, now);
	return true;
}

int rt_team_enter(struct rt_team *t, double operations)
{
	if (!may_enter(t) || pthread_mutex_trylock(&t->lock) != 0)
		return 0;
	t->entered = rt_nanoseconds();
	if (!atomic_load(&t->closed) && prepare_crew(t, operations, t->entered)) {
		t->crew->waited = 0;
		atomic_store_explicit(&t->crew->running, true, memory_order_relaxed);
		return t->crew->threads;
	}
	t->left = t->entered;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void rt_team_run(struct rt_team *t, const struct rt_work *work)
{
	rt_crew_run(t->crew, work);
}

bool rt_team_awake(const struct rt_team *t)
{
	return !atomic_load_explicit(&t->crew->last.sleepers, memory_order_relaxed);
}

void rt_team_miss(struct rt_team *t, double operations)
{
	if (missed_enough(t, operations))
		rt_gate_wake(&t->crew->last);
}

/* Whether the caller waited so long for chunks that workers had begun that it had been sooner alone. */
static bool was_sooner_alone(const struct rt_team *t)
{
	int64_t elapsed = t->left - t->entered;
	return t->crew->threads * (elapsed - t->crew->waited) < elapsed;
}

/* After a run that workers delayed callers are alone until workers have their processors again; and, while that
 * happens often, for a longer while each time, which bounds what is lost in all. */
static void adapt_pause(struct rt_team *t)
{
	int64_t waited = t->crew->waited, longer = 4 * t->pause > LEAST_PAUSE ? 4 * t->pause : LEAST_PAUSE;
	t->worked += t->left - t->entered;
	if (!was_sooner_alone(t))
		return;
	t->pause = t->worked > RARE * waited ? 0 : longer < RARE * waited ? longer : RARE * waited;
	t->resume = t->left + t->pause;
	t->look = t->resume;
	t->interval = LEAST_INTERVAL;
	t->lost = waited;
	t->worked = 0;
}

void rt_team_leave(struct rt_team *t)
{
	atomic_store_explicit(&t->crew->running, false, memory_order_relaxed);
	t->left = rt_nanoseconds();
	adapt_pause(t);
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
	rt_free(t->allocator, t->crew);
	t->crew = NULL;
	if (here)
		pthread_mutex_unlock(&t->lock);
}

int rt_team_error(struct rt_team *t)
{
	return atomic_load_explicit(&t->error, memory_order_relaxed) ? atomic_exchange(&t->error, 0) : 0;
}
