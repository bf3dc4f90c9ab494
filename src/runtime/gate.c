/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gate.h"

#include "runtime/shared.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* How long a spinning thread keeps its processor to itself.  Afterwards it yields: the threads that
	 * it waits for may need the processor. */
	KEEP_NANOSECONDS = 20000,
	PAUSES = 32 /* between two readings of the clock */
};

/* Polls some times without reading the clock. */
static bool poll_gate(const struct rt_gate *g, uint64_t value)
{
	for (int i = 0; i < PAUSES; i++) {
		if (rt_gate_reached(g, value))
			return true;
		rt_pause();
	}
	return false;
}

/* How long a spinning thread has had its processor to itself. */
struct presence {
	int64_t since, last; /* when that began; when the clock was read last [ns] */
	_Atomic int64_t *kept; /* see rt_gate_wait */
};

static void note_presence(struct presence *p, int64_t now)
{
	if (now - p->last >= RT_LOST_NANOSECONDS)
		p->since = now;
	p->last = now;
	if (p->kept && now - p->since >= RT_KEPT_NANOSECONDS) {
		atomic_store_explicit(p->kept, now, memory_order_relaxed);
		p->since = now;
	}
}

/* How long a thread spins from now on [ns]. */
static int64_t spinning_time(const struct rt_wait *w)
{
	if (w->oversubscribed)
		return KEEP_NANOSECONDS;
	bool running = w->running && atomic_load_explicit(w->running, memory_order_relaxed);
	return running ? RT_RUN_NANOSECONDS : RT_SPIN_NANOSECONDS;
}

/* Polls without sleeping; false when the value was not reached in time. */
static bool spin_at_gate(const struct rt_gate *g, uint64_t value, const struct rt_wait *w)
{
	int64_t begin = rt_nanoseconds();
	struct presence presence = {begin, begin, w->kept};
	while (presence.last - begin < spinning_time(w)) {
		if (poll_gate(g, value))
			return true;
		if (w->oversubscribed || presence.last - begin >= KEEP_NANOSECONDS)
			sched_yield();
		note_presence(&presence, rt_nanoseconds());
	}
	return false;
}

/* The low half of the value: the system compares 32 bits before it lets a thread sleep. */
static uint32_t *low_word(struct rt_gate *g)
{
	return (uint32_t *)&g->value + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* A sleeper counts itself before it reads the value for the last time, and rt_gate_raise changes the value
 * before it looks for sleepers: one of the two sees the other. */
int64_t rt_gate_wait(struct rt_gate *g, uint64_t value, const struct rt_wait *w)
{
	if (poll_gate(g, value))
		return 0;
	int64_t begin = rt_nanoseconds();
	while (!spin_at_gate(g, value, w)) {
		atomic_fetch_add(&g->sleepers, 1);
		uint64_t at = atomic_load(&g->value);
		if (at < value)
			syscall(SYS_futex, low_word(g), FUTEX_WAIT_PRIVATE, (uint32_t)at, NULL, NULL, 0);
		atomic_fetch_sub(&g->sleepers, 1);
	}
	return rt_nanoseconds() - begin;
}

void rt_gate_wake(struct rt_gate *g)
{
	if (atomic_load(&g->sleepers))
		syscall(SYS_futex, low_word(g), FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void rt_gate_raise(struct rt_gate *g, uint64_t value)
{
	atomic_store(&g->value, value);
	rt_gate_wake(g);
}
