/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Workers that lose their processors, and what waiting threads see of theirs. */
#include "runtime/shared.h"
#include "tests/runtime/crew_work.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

/* --- workers that lose their processors --- */

/* A worker that loses its processor in a chunk: the caller's chunk ends at once. */
static int delay_worker(void *begun, int item, int chunk, int chunks)
{
	(void)item, (void)chunks;
	atomic_int *worker = begun;
	if (chunk == 1)
		atomic_store(worker, 1), usleep(10000);
	while (!atomic_load(worker))
		sched_yield();
	return 0;
}

/* How long callers are alone at least after the first of such runs that took longer than the caller alone, when
 * workers have helped for so long before [ns]; -1 = there was none.  On a busy machine the caller may lose its
 * processor as well. */
static int64_t pause_after_delay(struct rt_team *t, int64_t worked)
{
	t->resume = 0;
	for (int i = 0; i < 100 && !t->resume; i++) {
		atomic_int begun = 0;
		t->worked = worked;
		if (!rt_team_enter(t, MUCH))
			return -1;
		run_items(t, delay_worker, &begun, 1);
		rt_team_leave(t);
	}
	return t->resume ? t->pause : -1;
}

static void test_delayed(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	int64_t first = pause_after_delay(&t, 0), second = pause_after_delay(&t, 0), last = second;
	tap_ok(first > 0 && second > first, "callers do without a worker that delays runs, each time for longer");
	for (int i = 0; i < 6; i++)
		last = pause_after_delay(&t, 0);
	tap_ok(last > second && last <= 16 * t.lost, "but no longer than 16 such runs (%lld of %lld ns)",
	       (long long)last, (long long)t.lost);
	tap_ok(pause_after_delay(&t, INT64_MAX / 2) == 0, "and for no time when that is rare");
	rt_team_stop(&t);
}

/* Enters with work that is worth a thread, but nothing beside what it lost. */
static bool enters_soon(struct rt_team *t, int tries)
{
	bool entered = false;
	for (int i = 0; !entered && i < tries; i++) {
		entered = rt_team_enter(t, rt_wake_operations(t));
		usleep(entered ? 0 : 1000);
	}
	if (entered)
		rt_team_leave(t);
	return entered;
}

static void wait_until_asleep(struct rt_team *t)
{
	while (rt_team_awake(t))
		usleep(1000);
}

/* Workers see while they wait whether they have their processors. */
static void test_return(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	int64_t paused = pause_after_delay(&t, 0), never = INT64_MAX / 2;
	wait_until_asleep(&t);
	_Atomic int64_t *kept = &t.crew->progress[1].kept;
	t.resume = t.look = never;
	atomic_store(kept, 0);
	tap_ok(paused >= 0 && !enters_soon(&t, 3), "a worker that lost its processor is not used before its time");
	t.resume = rt_nanoseconds();
	tap_ok(!enters_soon(&t, 3), "nor then, unless it has seen that it has its processor");
	t.look = 0;
	tap_ok(enters_soon(&t, 10000) && !t.lost && atomic_load(kept) > t.resume, "woken to look, it sees that");
	pause_after_delay(&t, 0);
	wait_until_asleep(&t);
	atomic_store(kept, never);
	tap_ok(enters_soon(&t, 1000), "and is used as soon as it has");
	pause_after_delay(&t, 0);
	t.resume = t.look = never;
	tap_ok(rt_team_enter(&t, MUCH) == 2, "a run that takes much longer than the delay does not wait for that");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

/* --- what a waiting thread sees of its processor --- */

struct waiting {
	struct rt_gate gate;
	_Atomic int64_t kept;
	cpu_set_t on;
	atomic_bool end;
};

static void *wait_on_processor(void *waiting)
{
	struct waiting *w = waiting;
	sched_setaffinity(0, sizeof w->on, &w->on);
	rt_gate_wait(&w->gate, 1, &(struct rt_wait){.kept = &w->kept});
	return NULL;
}

static void *compute_on_processor(void *waiting)
{
	struct waiting *w = waiting;
	sched_setaffinity(0, sizeof w->on, &w->on);
	while (!atomic_load(&w->end))
		;
	return NULL;
}

/* Whether a thread that waits until it sleeps sees that it has its processor, alone or beside one that computes. */
static bool sees_itself_alone(const cpu_set_t *on, bool beside)
{
	struct waiting w = {.on = *on};
	pthread_t waiter, other;
	if (beside)
		pthread_create(&other, NULL, compute_on_processor, &w);
	pthread_create(&waiter, NULL, wait_on_processor, &w);
	while (!atomic_load(&w.gate.sleepers))
		usleep(1000);
	atomic_store(&w.end, true);
	rt_gate_raise(&w.gate, 1);
	pthread_join(waiter, NULL);
	if (beside)
		pthread_join(other, NULL);
	return atomic_load(&w.kept);
}

/* Other programs may use the processor, and the system may let the waiting thread keep it. */
static void test_presence(void)
{
	enum { TRIES = 40 };
	cpu_set_t process, one;
	int kept = 0;
	sched_getaffinity(0, sizeof process, &process);
	CPU_ZERO(&one);
	CPU_SET(nth_processor(&process, CPU_COUNT(&process) - 1), &one);
	for (int i = 0; i < TRIES; i++)
		kept += sees_itself_alone(&one, true);
	tap_ok(kept < TRIES / 2, "a waiting thread sees that another takes its processor (%d of %d times)",
	       TRIES - kept, TRIES);
	for (kept = 0; !kept;)
		kept = sees_itself_alone(&one, false);
	tap_ok(kept, "and that none does");
}

/* --- how long threads wait before they sleep --- */

struct worker_wait {
	struct rt_gate gate;
	atomic_bool running;
};

static void *wait_in_run(void *wait)
{
	struct worker_wait *w = wait;
	rt_gate_wait(&w->gate, 1, &(struct rt_wait){.running = &w->running});
	return NULL;
}

/* Nanoseconds until a thread sleeps that waits while a run is in progress, or while none is. */
static int64_t time_until_asleep(bool running)
{
	struct worker_wait w = {.running = running};
	pthread_t waiter;
	int64_t begin = rt_nanoseconds();
	pthread_create(&waiter, NULL, wait_in_run, &w);
	while (!atomic_load(&w.gate.sleepers))
		usleep(100);
	int64_t took = rt_nanoseconds() - begin;
	rt_gate_raise(&w.gate, 1);
	pthread_join(waiter, NULL);
	return took;
}

static void test_sleeping(void)
{
	tap_ok(time_until_asleep(true) >= RT_RUN_NANOSECONDS, "in the course of a run a worker stays awake for some milliseconds");
	tap_ok(time_until_asleep(false) >= RT_SPIN_NANOSECONDS, "after it for a part of one, then sleeps");
}

int main(void)
{
	test_delayed();
	test_return();
	test_presence();
	test_sleeping();
	return tap_done();
}
