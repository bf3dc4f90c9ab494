/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Gates: counters that only rise, and on which threads wait for a value.
 *
 * A thread that waits spins for some time, then sleeps; whoever raises a gate wakes the sleepers.  While it
 * spins it sees whether another thread takes its processor: it yields, and looks how long that took. */
#ifndef ESPALIER_RUNTIME_GATE_H
#define ESPALIER_RUNTIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* How long a thread spins before it sleeps.  Between two wide batches of one structure lie narrow
	 * ones, up to some hundred microseconds; waking up takes as long (bench/team.c). */
	RT_SPIN_NANOSECONDS = 500000,
	/* The same in the course of a run: of steps that the caller computes alone others may be behind them, up to some
	 * milliseconds later. */
	RT_RUN_NANOSECONDS = 10000000,
	/* A thread that did not run for so long has lost its processor [ns]: interrupts end sooner, and the time
	 * slice of another process later. */
	RT_LOST_NANOSECONDS = 250000,
	/* A thread that spins for so long without losing its processor has it to itself [ns]: it yields often
	 * meanwhile, and another thread that is ready is then run for a slice of some milliseconds. */
	RT_KEPT_NANOSECONDS = 100000
};

struct rt_gate {
	_Atomic uint64_t value;
	atomic_int sleepers;
};

/* A thread that sees a value also sees all that was written before the gate was raised to it. */
static inline uint64_t rt_gate_value(const struct rt_gate *g)
{
	return atomic_load_explicit(&g->value, memory_order_acquire);
}

static inline bool rt_gate_reached(const struct rt_gate *g, uint64_t value)
{
	return rt_gate_value(g) >= value;
}

/* About twenty nanoseconds in which another thread of the same core has it to itself. */
static inline void rt_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* How a thread waits. */
struct rt_wait {
	bool oversubscribed; /* more threads than processors: the one that will raise the gate may need this one's */
	_Atomic int64_t *kept; /* where the time is noted whenever the thread had its processor to itself for
				  RT_KEPT_NANOSECONDS; NULL = nowhere */
	const atomic_bool *running; /* whether a run is in progress that may raise the gate; NULL = not */
};

/* Returns when the gate has reached the value: how long it waited [ns], 0 where that was a few polls. */
int64_t rt_gate_wait(struct rt_gate *, uint64_t value, const struct rt_wait *);
/* Also wakes the sleepers. */
void rt_gate_raise(struct rt_gate *, uint64_t value);
/* Sleepers wake up and spin again. */
void rt_gate_wake(struct rt_gate *);

#endif
