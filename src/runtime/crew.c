/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/crew.h"

#include "runtime/shared.h"

enum {
	/* Pauses for which a member that has ended a part keeps the next one: some microseconds, as the parts
	 * of narrow ranges take.  A thread that loses its processor meanwhile is waited for. */
	STAND_BY = 256,
	/* Pauses that the caller gives members to begin with a plan: a few times what a meeting takes.  Who
	 * does not come in time may join in while the caller does his own part of a later turn. */
	PATIENCE = 128
};

/* --- places --- */

static bool ended(const struct rt_place *p, uint64_t turn)
{
	return rt_gate_reached(&p->at, 2 * turn);
}

static void wait_for(struct rt_crew *c, int part, uint64_t turn)
{
	rt_gate_wait(&c->place[part].at, 2 * turn, c->crowded);
}

static bool is_free(const struct rt_place *p, uint64_t turn)
{
	return rt_gate_turn(&p->at) == 2 * (turn - 1);
}

/* Takes a turn of a part unless another thread has.  Not before all parts of the turn before have ended. */
static bool take(struct rt_place *p, uint64_t turn)
{
	uint64_t before = 2 * (turn - 1);
	return is_free(p, turn) && atomic_compare_exchange_strong(&p->at.turn, &before, before + 1);
}

/* The first turn of a part that its member may find free. */
static uint64_t next_turn(const struct rt_place *p)
{
	return (rt_gate_turn(&p->at) + 1) / 2 + 1;
}

/* Ends a turn and those after it that have no parts.  The next is taken or not. */
static void end(struct rt_place *p, uint64_t turn, bool next)
{
	rt_gate_move(&p->at, 2 * turn + next);
}

static int call(const struct rt_crew *c, uint64_t turn, int part)
{
	const struct rt_plan *p = &c->plan;
	return p->work(p->job, turn - c->first, part, c->parts);
}

/* --- the caller --- */

/* What nobody has begun when the caller is done with his own part he runs himself. */
static void help(struct rt_crew *c, uint64_t turn, int part, int *patience)
{
	struct rt_place *p = &c->place[part];
	for (; *patience > 0 && is_free(p, turn); --*patience)
		rt_pause();
	if (take(p, turn)) {
		uint64_t alone = call(c, turn, part);
		end(p, turn + alone, false);
	}
}

/* One turn of all parts, and those after it that are the caller's alone; how many those are. */
static int lead(struct rt_crew *c, uint64_t turn, int *patience)
{
	int alone = call(c, turn, 0);
	if (!alone)
		end(&c->place[0], turn, false);
	for (int part = 1; part < c->parts; part++)
		help(c, turn, part, patience);
	for (int part = 1; part < c->parts; part++)
		wait_for(c, part, turn);
	for (int i = 1; i <= alone; i++)
		c->plan.work(c->plan.job, turn + i - c->first, 0, 1);
	if (alone)
		end(&c->place[0], turn + alone, false);
	return alone;
}

void rt_crew_run(struct rt_crew *c, const struct rt_plan *plan)
{
	uint64_t turn = atomic_load_explicit(&c->limit.turn, memory_order_relaxed) + 1;
	uint64_t behind = turn + plan->turns;
	bool asleep = atomic_load_explicit(&c->limit.sleepers, memory_order_relaxed);
	int patience = asleep || c->crowded ? 0 : PATIENCE;
	c->plan = *plan;
	c->first = turn;
	rt_gate_move(&c->limit, behind - 1);
	while (turn < behind)
		turn += 1 + lead(c, turn, &patience);
}

/* --- members --- */

static bool may_begin(const struct rt_crew *c, uint64_t turn)
{
	bool may = rt_gate_reached(&c->limit, turn);
	for (int part = 0; may && part < c->parts; part++)
		may = ended(&c->place[part], turn - 1);
	return may;
}

static void wait_to_begin(struct rt_crew *c, uint64_t turn)
{
	rt_gate_wait(&c->limit, turn, c->crowded);
	for (int part = 0; part < c->parts; part++)
		wait_for(c, part, turn - 1);
}

/* With the turn taken: whether it can begin in a moment.  Otherwise it is given back. */
static bool stand_by(struct rt_crew *c, struct rt_place *own, uint64_t turn)
{
	for (int i = 0; i < STAND_BY; i++) {
		if (may_begin(c, turn))
			return true;
		rt_pause();
	}
	atomic_store_explicit(&own->at.turn, 2 * (turn - 1), memory_order_release);
	return false;
}

/* Waits for a turn of the part and takes it, and returns it; 0: there will be no more. */
static uint64_t take_next(struct rt_crew *c, struct rt_place *own)
{
	for (;;) {
		uint64_t turn = next_turn(own);
		wait_to_begin(c, turn);
		if (atomic_load_explicit(&c->end, memory_order_relaxed))
			return 0;
		if (take(own, turn))
			return turn;
	}
}

/* It may have missed turns. */
void rt_crew_serve(struct rt_crew *c, int part)
{
	struct rt_place *own = &c->place[part];
	uint64_t turn = take_next(c, own);
	while (turn) {
		turn += call(c, turn, part);
		end(own, turn, !c->crowded);
		turn++;
		if (c->crowded || !stand_by(c, own, turn))
			turn = take_next(c, own);
		else if (atomic_load_explicit(&c->end, memory_order_relaxed))
			turn = 0;
	}
	atomic_fetch_add(&c->ended, 1);
}

/* --- what a meeting costs --- */

static int nothing(void *job, int turn, int part, int parts)
{
	(void)job, (void)turn, (void)part, (void)parts;
	return 0;
}

double rt_crew_meeting(struct rt_crew *c)
{
	static const struct rt_plan plan = {nothing, NULL, 16};
	int64_t begin = rt_nanoseconds();
	rt_crew_run(c, &plan);
	return (double)(rt_nanoseconds() - begin) / plan.turns;
}
