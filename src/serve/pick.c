/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which cells are computed in the next superstep: of each traversal those of the current level of each
 * request, of several levels where these cost little or nobody waits for them, or of all its levels where the
 * traversal is flat; by priority, then age, as many as there are rows for, and numbers of pairs where they read all nodes. */
#include "serve/engine.h"

/* What is left of the limits of a part. */
struct room {
	int64_t rows, pairs;
};

/* Nodes of a request that are ready, of which there is one at least: of so many levels at most, the first of which
 * has been begun or not, or of all where these do not matter. */
static struct serve_pick find_ready(const struct serve_engine *e, struct serve_request *r, int32_t levels)
{
	const struct serve_traversal *t = serve_traversal_of(e, r);
	int32_t left = r->order.batches - r->level, most = r->done ? 1 : levels;
	int32_t batches = t->flat || left < most ? left : most, batch = t->down ? left - batches : r->level;
	const int32_t *begin = r->order.batch_begin + batch;
	return (struct serve_pick){r, batch, batches, begin[0] + r->done, begin[batches], false};
}

/* Takes the last level back. */
static void drop_level(const struct serve_traversal *t, struct serve_pick *p)
{
	const int32_t *begin = p->request->order.batch_begin;
	p->batches--;
	p->batch += t->down;
	p->begin = t->down ? begin[p->batch] : p->begin;
	p->end = t->down ? p->end : begin[p->batch + p->batches];
}

/* Takes as many of the levels as there is room for, or of the nodes if that is not one level. */
static void take_room(const struct serve_engine *e, struct serve_pick *p, struct room *room)
{
	const struct serve_traversal *t = serve_traversal_of(e, p->request);
	int64_t pairs = t->reads_nodes ? p->request->widest : 0, n, most = room->rows;
	if (pairs && most * pairs > room->pairs)
		most = room->pairs / pairs;
	while (!t->flat && p->batches > 1 && p->end - p->begin > most)
		drop_level(t, p);
	n = p->end - p->begin < most ? p->end - p->begin : most;
	p->end = p->begin + (int32_t)n;
	room->rows -= n;
	room->pairs -= n * pairs;
}

/* Whether a request takes part in this superstep, in a traversal. */
static bool takes_part(const struct serve_engine *e, const struct serve_request *r, int traversal)
{
	return r->traversal == traversal && r->binding == e->binding;
}

/* Picks nodes of requests for so many rows at most; returns how many. */
static int64_t pick_ready(struct serve_engine *e, int traversal, int32_t levels, int64_t rows)
{
	struct room room = {rows, e->limits.step_pairs};
	struct serve_part *part = &e->part[traversal];
	part->levels = 0;
	e->picks = part->first;
	for (struct serve_request *r = e->in_flight.first; r && room.rows; r = r->after) {
		struct serve_pick *p = &e->pick[e->picks];
		if (!takes_part(e, r, traversal))
			continue;
		*p = find_ready(e, r, levels);
		take_room(e, p, &room);
		if (p->begin == p->end)
			continue;
		e->picks++;
		part->levels = p->batches > part->levels ? p->batches : part->levels;
	}
	part->next = e->picks;
	return rows - room.rows;
}

/* All rows are one range. */
static void place_flat(struct serve_part *p, int32_t first, int32_t end)
{
	p->batch_begin[0] = first;
	p->batch_begin[1] = end;
	p->order =
	    (struct lin_order){.nodes = end, .leaves = end, .batches = 1, .batch_begin = p->batch_begin};
}

/* The nodes of a case in a batch. */
static int32_t count_case(const struct serve_engine *e, const struct serve_part *p, bool down, int32_t batch,
			  int node_case)
{
	bool inner = serve_is_inner(e->image, node_case);
	int32_t count = 0, begin, end;
	for (size_t i = p->first; i < p->next && serve_batch_has(down, inner, batch); i++) {
		struct serve_pick level = serve_level_of(&e->pick[i], p, down, inner, batch);
		serve_case_range(&level, serve_cases(e->image), node_case, &begin, &end);
		count += end - begin;
	}
	return count;
}

/* The rows of each batch are a range, and in it those of each case. */
static void place_batches(const struct serve_engine *e, struct serve_part *p, int32_t first, bool down)
{
	int cases = serve_cases(e->image), batches = p->levels + !down;
	int32_t row = first, leaves = first;
	for (int b = 0; b < batches; b++) {
		p->batch_begin[b] = row;
		for (int c = 0; c < cases; c++) {
			int32_t count = count_case(e, p, down, b, c);
			p->case_begin[b * cases + c] = row;
			row += count;
			leaves += serve_is_inner(e->image, c) ? 0 : count;
		}
	}
	p->case_begin[batches * cases] = p->batch_begin[batches] = row;
	p->order = (struct lin_order){.nodes = row,
				      .leaves = leaves,
				      .batches = batches,
				      .batch_begin = p->batch_begin,
				      .cases = e->image->cases,
				      .case_begin = e->image->cases ? p->case_begin : NULL};
}

/* --- several levels --- */

int32_t serve_levels_alone(const struct serve_engine *e)
{
	const struct serve_traversal *t = e->picks == 1 ? serve_traversal_of(e, e->pick[0].request) : NULL;
	return t && !t->flat && !t->brief ? e->pick[0].batches : 0;
}

/* The most levels that a request is computed by: those of one without company take no longer than others may
 * wait. */
static int32_t most_levels(const struct serve_engine *e, int traversal)
{
	double most = e->level_time ? SERVE_LEVELS_TIME / e->level_time : SERVE_LEVELS;
	bool alone = !e->in_flight.first->after;
	if (e->steps.traversal[traversal].brief)
		return SERVE_LEVELS;
	return !alone || most < 1 ? 1 : most < SERVE_LEVELS ? (int32_t)most : SERVE_LEVELS;
}

/* Picks again where fewer consecutive rows are free than are wanted; those for which no level is narrow enough are
 * returned. */
static void pick_traversal(struct serve_engine *e, int traversal)
{
	const struct serve_traversal *t = &e->steps.traversal[traversal];
	struct serve_part *p = &e->part[traversal];
	int32_t levels = most_levels(e, traversal);
	int64_t given = 0, first = 0;
	p->first = e->picks;
	p->pairs = 0;
	int64_t ready = pick_ready(e, traversal, levels, e->limits.step_rows);
	if (ready)
		first = serve_give_rows(&e->pool, ready, &given);
	if (given < ready)
		ready = pick_ready(e, traversal, levels, given);
	while (given > ready)
		serve_return_row(&e->pool, first + --given);
	if (t->flat)
		place_flat(p, (int32_t)first, (int32_t)(first + ready));
	else
		place_batches(e, p, (int32_t)first, t->down);
}

/* The buffers are set even when it stays: the one of before may have been freed, and this one lie at
 * its address. */
void serve_choose_binding(struct serve_engine *e)
{
	const struct serve_request *r = e->in_flight.first;
	while (r && r->binding == e->binding)
		r = r->after;
	r = r ? r : e->in_flight.first;
	if (!r)
		return;
	e->binding = r->binding;
	for (int i = 0; i < e->image->buffers; i++)
		if (e->image->buffer[i].kind == IMAGE_WEIGHT)
			e->session.buffers[i] = e->binding->packed[e->image->buffer[i].which];
}

/* Requests that came first are mostly in later traversals. */
void serve_pick_cells(struct serve_engine *e)
{
	e->picks = 0;
	for (int t = e->steps.traversals; t-- > 0;)
		pick_traversal(e, t);
}
