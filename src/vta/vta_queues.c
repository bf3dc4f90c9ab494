/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The order in which modules run their instructions, by the queues between them.
 *
 * A module takes its instructions in order.  One runs when the queues that it pops have tokens and those that
 * it pushes have room, and it was fetched: instructions are fetched in the order of the stream, as long as
 * the queue of their module has room.  A token carries what its sender knew to be complete (a vector clock)
 * and when it was sent. */
#include "vta/vta.h"

#include <string.h>

enum queue { LOAD_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE, STORE_TO_COMPUTE, QUEUES, NO_QUEUE = -1 };

static const char *const queue_name[QUEUES] = {"load to compute", "compute to load", "compute to store",
					       "store to compute"};

struct token {
	uint32_t seen[VTA_MODULES];
	uint64_t time;
};

struct ring {
	struct token token[VTA_QUEUE_DEPTH];
	uint32_t begin, n;
};

struct vta_walk {
	const struct vta_stream *stream;
	enum vta_module order[VTA_MODULES];
	struct ring ring[QUEUES];
	uint32_t next[VTA_MODULES];    /* the module's next instruction; stream->insns = none */
	uint32_t waiting[VTA_MODULES]; /* that were fetched */
	uint32_t fetched;
	uint32_t seen[VTA_MODULES][VTA_MODULES];
	uint64_t time[VTA_MODULES];
};

/* Which queues an instruction of a module uses; load has no previous and store no next neighbour. */
static const struct {
	enum queue pop_prev, pop_next, push_prev, push_next;
} queues_of[VTA_MODULES] = {
    [VTA_MODULE_LOAD] = {NO_QUEUE, COMPUTE_TO_LOAD, NO_QUEUE, LOAD_TO_COMPUTE},
    [VTA_MODULE_COMPUTE] = {LOAD_TO_COMPUTE, STORE_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE},
    [VTA_MODULE_STORE] = {COMPUTE_TO_STORE, NO_QUEUE, STORE_TO_COMPUTE, NO_QUEUE},
};

static uint32_t find_next(const struct vta_stream *stream, enum vta_module module, uint32_t from)
{
	while (from < stream->insns && vta_module_of(&stream->insn[from]) != module)
		from++;
	return from;
}

static void fetch_insns(struct vta_walk *w)
{
	for (; w->fetched < w->stream->insns; w->fetched++) {
		enum vta_module module = vta_module_of(&w->stream->insn[w->fetched]);
		if (w->waiting[module] == VTA_QUEUE_DEPTH)
			return;
		w->waiting[module]++;
	}
}

size_t vta_walk_bytes(void)
{
	return sizeof(struct vta_walk);
}

/* Tokens that are in no queue are never read. */
void vta_walk_start(struct vta_walk *w, const struct vta_stream *stream, const enum vta_module order[VTA_MODULES])
{
	w->stream = stream;
	w->fetched = 0;
	memset(w->waiting, 0, sizeof w->waiting);
	memset(w->seen, 0, sizeof w->seen);
	memset(w->time, 0, sizeof w->time);
	for (int q = 0; q < QUEUES; q++)
		w->ring[q].begin = w->ring[q].n = 0;
	for (int m = 0; m < VTA_MODULES; m++) {
		w->order[m] = order ? order[m] : (enum vta_module)m;
		w->next[m] = find_next(stream, (enum vta_module)m, 0);
	}
	fetch_insns(w);
}

struct vta_walk *vta_walk_begin(struct arena *a, const struct vta_stream *stream,
				const enum vta_module order[VTA_MODULES])
{
	struct vta_walk *w = ARENA_NEW(a, struct vta_walk);
	vta_walk_start(w, stream, order);
	return w;
}

static bool has_token(const struct vta_walk *w, uint32_t wanted, enum queue queue)
{
	return !wanted || (queue != NO_QUEUE && w->ring[queue].n > 0);
}

static bool has_room(const struct vta_walk *w, uint32_t wanted, enum queue queue)
{
	return !wanted || (queue != NO_QUEUE && w->ring[queue].n < VTA_QUEUE_DEPTH);
}

static bool can_run(const struct vta_walk *w, enum vta_module m)
{
	if (w->next[m] >= w->fetched)
		return false;
	const struct vta_insn *insn = &w->stream->insn[w->next[m]];
	return has_token(w, insn->pop_prev, queues_of[m].pop_prev) &&
	       has_token(w, insn->pop_next, queues_of[m].pop_next) &&
	       has_room(w, insn->push_prev, queues_of[m].push_prev) &&
	       has_room(w, insn->push_next, queues_of[m].push_next);
}

static void pop_token(struct vta_walk *w, uint32_t wanted, enum queue queue, enum vta_module m)
{
	if (!wanted)
		return;
	struct ring *ring = &w->ring[queue];
	const struct token *token = &ring->token[ring->begin];
	for (int i = 0; i < VTA_MODULES; i++)
		if (w->seen[m][i] < token->seen[i])
			w->seen[m][i] = token->seen[i];
	if (w->time[m] < token->time)
		w->time[m] = token->time;
	ring->begin = (ring->begin + 1) % VTA_QUEUE_DEPTH;
	ring->n--;
}

static void push_token(struct vta_walk *w, uint32_t wanted, enum queue queue, enum vta_module m)
{
	if (!wanted)
		return;
	struct ring *ring = &w->ring[queue];
	struct token *token = &ring->token[(ring->begin + ring->n++) % VTA_QUEUE_DEPTH];
	memcpy(token->seen, w->seen[m], sizeof token->seen);
	token->time = w->time[m];
}

static uint64_t transfer_cycles(uint64_t bytes)
{
	return (bytes + VTA_DMA_BYTES - 1) / VTA_DMA_BYTES;
}

static uint64_t cycles_of(const struct vta_insn *insn)
{
	if (insn->opcode == VTA_FINISH)
		return 1;
	if (insn->opcode == VTA_LOAD || insn->opcode == VTA_STORE)
		return transfer_cycles((uint64_t)insn->y_size * insn->x_size *
				       vta_memory_traits(insn->memory).bytes);
	uint64_t steps = (uint64_t)insn->iter_out * insn->iter_in * (insn->uop_end - insn->uop_begin);
	return insn->opcode == VTA_ALU ? steps * VTA_ALU_CYCLES : steps;
}

static void run_insn(struct vta_walk *w, enum vta_module m, struct vta_event *event)
{
	uint32_t number = w->next[m];
	const struct vta_insn *insn = &w->stream->insn[number];
	uint64_t there = (number + (uint64_t)1) * transfer_cycles(VTA_INSN_BYTES);
	pop_token(w, insn->pop_prev, queues_of[m].pop_prev, m);
	pop_token(w, insn->pop_next, queues_of[m].pop_next, m);
	if (w->time[m] < there)
		w->time[m] = there;
	*event = (struct vta_event){.insn = number, .module = m, .begin = w->time[m]};
	memcpy(event->seen, w->seen[m], sizeof event->seen);
	event->end = w->time[m] += cycles_of(insn);
	w->seen[m][m] = number + 1;
	push_token(w, insn->push_prev, queues_of[m].push_prev, m);
	push_token(w, insn->push_next, queues_of[m].push_next, m);
	w->next[m] = find_next(w->stream, m, number + 1);
	w->waiting[m]--;
	fetch_insns(w);
}

bool vta_walk_next(struct vta_walk *w, struct vta_event *event)
{
	for (int i = 0; i < VTA_MODULES; i++)
		if (can_run(w, w->order[i])) {
			run_insn(w, w->order[i], event);
			return true;
		}
	return false;
}

uint32_t vta_walk_stuck(const struct vta_walk *w)
{
	uint32_t first = (uint32_t)w->stream->insns;
	for (int m = 0; m < VTA_MODULES; m++)
		if (w->next[m] < first)
			first = w->next[m];
	return first;
}

uint32_t vta_walk_left(const struct vta_walk *w, const char **queue)
{
	for (int i = 0; i < QUEUES; i++)
		if (w->ring[i].n) {
			*queue = queue_name[i];
			return w->ring[i].n;
		}
	return 0;
}
