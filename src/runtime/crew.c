/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/crew.h"

#include "runtime/shared.h"

enum {
	/* Pauses for which a worker that has ended a chunk keeps its claim to the next one: some
	 * microseconds, as the chunks of narrow ranges take.  A thread that loses its processor meanwhile is
	 * waited for. */
	STANDBY = 256,
	/* Pauses that the caller gives workers to begin with new work: a few times the cost of a barrier, but at
	 * the first item no longer than its own chunk took, as a chunk of the same size then ends sooner.  A
	 * worker that is later can claim its chunk of a later item while the caller runs its own. */
	PATIENCE = 128
};

/* --- progress --- */

static bool has_ended(const struct rt_progress *p, uint64_t item)
{
	return rt_gate_reached(&p->at, 2 * item);
}

/* Returns how long the thread of the chunk had lost its processor [ns]. */
static int64_t wait_for_end(struct rt_crew *c, int chunk, uint64_t item)
{
	struct rt_wait wait = {.oversubscribed = c->oversubscribed};
	int64_t waited = rt_gate_wait(&c->progress[chunk].at, 2 * item, &wait);
	return waited >= RT_LOST_NANOSECONDS ? waited : 0;
}

static bool is_free(const struct rt_progress *p, uint64_t item)
{
	return rt_gate_value(&p->at) == 2 * (item - 1);
}

/* Claims a chunk of an item unless another thread has.  Only when the item before has ended. */
static bool claim_chunk(struct rt_progress *p, uint64_t item)
{
	uint64_t before = 2 * (item - 1);
	return is_free(p, item) && atomic_compare_exchange_strong(&p->at.value, &before, before + 1);
}

/* The first item whose chunk its worker may find free. */
static uint64_t next_item(const struct rt_progress *p)
{
	return (rt_gate_value(&p->at) + 1) / 2 + 1;
}

/* Ends a chunk, and those before it of items that were the caller's alone; claims the next on request. */
static void end_chunk(struct rt_progress *p, uint64_t item, bool claim_next)
{
	rt_gate_raise(&p->at, 2 * item + claim_next);
}

static int run_chunk(const struct rt_crew *c, uint64_t item, int chunk)
{
	const struct rt_work *w = &c->work;
	return w->run(w->context, item - c->first, chunk, c->threads);
}

/* --- the caller --- */

/* How long the caller still waits for workers that have not begun. */
struct patience {
	int pauses;
	int64_t begun; /* when it began with the first item [ns]; 0 = that item has ended */
};

static void wait_for_begin(const struct rt_progress *p, uint64_t item, struct patience *patience)
{
	int64_t now = patience->begun && is_free(p, item) ? rt_nanoseconds() : 0;
	for (int64_t until = 2 * now - patience->begun; patience->pauses > 0 && is_free(p, item); patience->pauses--) {
		if (patience->begun && rt_nanoseconds() >= until)
			return;
		rt_pause();
	}
}

/* Runs the chunk of a worker that has not begun in time. */
static void help_worker(struct rt_crew *c, uint64_t item, int chunk, struct patience *patience)
{
	struct rt_progress *p = &c->progress[chunk];
	wait_for_begin(p, item, patience);
	if (claim_chunk(p, item)) {
		uint64_t alone = run_chunk(c, item, chunk);
		end_chunk(p, item + alone, false);
	}
}

/* Runs one item with the workers, then those after it that are the caller's alone; returns how many those
 * are. */
static int run_items(struct rt_crew *c, uint64_t item, struct patience *patience)
{
	int alone = run_chunk(c, item, 0);
	if (!alone)
		end_chunk(&c->progress[0], item, false);
	for (int chunk = 1; chunk < c->threads; chunk++)
		help_worker(c, item, chunk, patience);
	patience->begun = 0;
	for (int chunk = 1; chunk < c->threads; chunk++)
		c->waited += wait_for_end(c, chunk, item);
	for (int i = 1; i <= alone; i++)
		c->work.run(c->work.context, item + i - c->first, 0, 1);
	if (alone)
		end_chunk(&c->progress[0], item + alone, false);
	return alone;
}

void rt_crew_run(struct rt_crew *c, const struct rt_work *work)
{
	uint64_t item = atomic_load_explicit(&c->last.value, memory_order_relaxed) + 1;
	uint64_t end = item + work->items;
	bool asleep = atomic_load_explicit(&c->last.sleepers, memory_order_relaxed);
	struct patience patience = {asleep || c->oversubscribed ? 0 : PATIENCE, rt_nanoseconds()};
	c->work = *work;
	c->first = item;
	rt_gate_raise(&c->last, end - 1);
	while (item < end)
		item += 1 + run_items(c, item, &patience);
}

/* --- workers --- */

static bool may_begin(const struct rt_crew *c, uint64_t item)
{
	bool may = rt_gate_reached(&c->last, item);
	for (int chunk = 0; may && chunk < c->threads; chunk++)
		may = has_ended(&c->progress[chunk], item - 1);
	return may;
}

static void wait_to_begin(struct rt_crew *c, struct rt_progress *own, uint64_t item)
{
	rt_gate_wait(&c->last, item, &(struct rt_wait){c->oversubscribed, &own->kept, &c->running});
	for (int chunk = 0; chunk < c->threads; chunk++)
		wait_for_end(c, chunk, item - 1);
}

/* Polls for a moment whether a claimed item can begin; if not, releases the claim. */
static bool poll_next_item(struct rt_crew *c, struct rt_progress *own, uint64_t item)
{
	for (int i = 0; i < STANDBY; i++) {
		if (may_begin(c, item))
			return true;
		rt_pause();
	}
	atomic_store_explicit(&own->at.value, 2 * (item - 1), memory_order_release);
	return false;
}

/* Only a change is written, as callers read it. */
static void note_processor(struct rt_progress *own)
{
	int now = sched_getcpu();
	if (atomic_load_explicit(&own->processor, memory_order_relaxed) != now)
		atomic_store_explicit(&own->processor, now, memory_order_relaxed);
}

/* Waits for an item, claims the worker's chunk and returns the item; 0 = the crew ends. */
static uint64_t claim_next(struct rt_crew *c, struct rt_progress *own)
{
	for (;;) {
		uint64_t item = next_item(own);
		wait_to_begin(c, own, item);
		if (atomic_load_explicit(&c->end, memory_order_relaxed))
			return 0;
		note_processor(own);
		if (claim_chunk(own, item))
			return item;
	}
}

/* The caller may have run items in the worker's place: each claim begins at the chunk's counter. */
void rt_crew_serve(struct rt_crew *c, int chunk)
{
	struct rt_progress *own = &c->progress[chunk];
	uint64_t item = claim_next(c, own);
	while (item) {
		item += run_chunk(c, item, chunk);
		end_chunk(own, item, !c->oversubscribed);
		item++;
		if (c->oversubscribed || !poll_next_item(c, own, item))
			item = claim_next(c, own);
		else if (atomic_load_explicit(&c->end, memory_order_relaxed))
			item = 0;
	}
	atomic_fetch_add(&c->ended, 1);
}

/* Workers that share their processors anyway do not notice others. */
bool rt_crew_kept_processors(const struct rt_crew *c, int64_t after)
{
	bool kept = true;
	for (int chunk = 1; chunk < c->threads; chunk++)
		kept &= atomic_load_explicit(&c->progress[chunk].kept, memory_order_relaxed) > after;
	return kept || c->oversubscribed;
}

/* --- the cost of a barrier --- */

static int do_nothing(void *context, int item, int chunk, int chunks)
{
	(void)context, (void)item, (void)chunk, (void)chunks;
	return 0;
}

double rt_crew_barrier_cost(struct rt_crew *c)
{
	static const struct rt_work work = {do_nothing, NULL, 16};
	int64_t begin = rt_nanoseconds();
	rt_crew_run(c, &work);
	return (double)(rt_nanoseconds() - begin) / work.items;
}
