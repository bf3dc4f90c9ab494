/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gate.h"

#include "runtime/shared.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* For so long a thread that watches has its processor for itself, then it lets others go first: they
	 * may be those that it waits for. */
	ALONE_NANOSECONDS = 20000,
	PAUSES = 32 /* between two looks at the clock */
};

/* Some looks at the gate, without one at the clock. */
static bool glance(const struct rt_gate *g, uint64_t turn)
{
	for (int i = 0; i < PAUSES; i++) {
		if (rt_gate_reached(g, turn))
			return true;
		rt_pause();
	}
	return false;
}

/* Watches the gate without sleeping; false when it was not reached in time. */
static bool watch(const struct rt_gate *g, uint64_t turn, bool crowded)
{
	if (glance(g, turn))
		return true;
	int64_t begin = rt_nanoseconds(), passed = 0;
	for (; passed < (crowded ? ALONE_NANOSECONDS : RT_WATCH_NANOSECONDS);
	     passed = rt_nanoseconds() - begin) {
		if (glance(g, turn))
			return true;
		if (crowded || passed >= ALONE_NANOSECONDS)
			sched_yield();
	}
	return false;
}

/* The half of the number that the system looks at before it lets a thread sleep. */
static uint32_t *word(struct rt_gate *g)
{
	return (uint32_t *)&g->turn + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Whoever sleeps has said so before it looked at the turn for the last time, and rt_gate_move changes the
 * turn before it looks for sleepers: one of the two sees the other. */
void rt_gate_wait(struct rt_gate *g, uint64_t turn, bool crowded)
{
	while (!watch(g, turn, crowded)) {
		atomic_fetch_add(&g->sleepers, 1);
		uint64_t at = atomic_load(&g->turn);
		if (at < turn)
			syscall(SYS_futex, word(g), FUTEX_WAIT_PRIVATE, (uint32_t)at, NULL, NULL, 0);
		atomic_fetch_sub(&g->sleepers, 1);
	}
}

void rt_gate_rouse(struct rt_gate *g)
{
	if (atomic_load(&g->sleepers))
		syscall(SYS_futex, word(g), FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void rt_gate_move(struct rt_gate *g, uint64_t turn)
{
	atomic_store(&g->turn, turn);
	rt_gate_rouse(g);
}
