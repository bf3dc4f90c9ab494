/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Gates: numbers that only rise, and threads that wait until they have reached something.
 *
 * Who waits watches for some time and then sleeps; who moves a gate wakes those that sleep at it. */
#ifndef ESPALIER_RUNTIME_GATE_H
#define ESPALIER_RUNTIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* How long a thread watches before it sleeps.  Between two wide batches of one structure lie narrow
	 * ones, up to some hundred microseconds; waking up takes as long (bench/team.c). */
	RT_WATCH_NANOSECONDS = 500000
};

struct rt_gate {
	_Atomic uint64_t turn;
	atomic_int sleepers;
};

/* What was written before the gate was moved can be read by whoever sees that it has. */
static inline uint64_t rt_gate_turn(const struct rt_gate *g)
{
	return atomic_load_explicit(&g->turn, memory_order_acquire);
}

static inline bool rt_gate_reached(const struct rt_gate *g, uint64_t turn)
{
	return rt_gate_turn(g) >= turn;
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

/* Returns when the gate has reached the turn.  Crowded: there are more threads than processors, and those
 * that are waited for may need this one. */
void rt_gate_wait(struct rt_gate *, uint64_t turn, bool crowded);
void rt_gate_move(struct rt_gate *, uint64_t turn);
/* Sleepers wake up and watch again. */
void rt_gate_rouse(struct rt_gate *);

#endif
