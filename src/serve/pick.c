/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which cells are computed in the next superstep: of each traversal those of the current level of each
 * request, or of all its levels where the traversal is flat, by priority, then age, as many as there are rows
 * for, and numbers of pairs where they read all nodes. */
#include "serve/engine.h"

/* What is left of the limits of a part. */
struct room {
	int64_t rows, pairs;
};

/* Nodes of a request that are ready, of which there is one at least. */
static struct serve_pick find_ready(const struct serve_engine *e, struct serve_request *r)
{
	const struct serve_traversal *t = serve_traversal_of(e, r);
	int32_t batches = t->flat ? r->order.batches : 1,
		batch = t->down ? r->order.batches - 1 - r->level : r->level;
	const int32_t *begin = r->order.batch_begin + batch;
	return (struct serve_pick){r, batch, batches, begin[0] + r->done, begin[batches], false};
}

/* Takes as many of the nodes as there is room for. */
static void take_room(const struct serve_engine *e, struct serve_pick *p, struct room *room)
{
	const struct serve_request *r = p->request;
	int64_t pairs = serve_traversal_of(e, r)->reads_nodes ? r->widest : 0, n = p->end - p->begin;
	n = n < room->rows ? n : room->rows;
	if (pairs && n * pairs > room->pairs)
		n = room->pairs / pairs;
	p->end = p->begin + (int32_t)n;
	room->rows -= n;
	room->pairs -= n * pairs;
}

/* Whether a request takes part in this superstep, in a traversal. */
static bool takes_part(const struct serve_engine *e, const struct serve_request *r, int traversal)
{
	return r->traversal == traversal && r->binding == e->binding;
}

static int64_t count_ready(const struct serve_engine *e, int traversal)
{
	struct room room = {e->limits.step_rows, e->limits.step_pairs};
	for (struct serve_request *r = e->in_flight.first; r && room.rows; r = r->after)
		if (takes_part(e, r, traversal)) {
			struct serve_pick p = find_ready(e, r);
			take_room(e, &p, &room);
		}
	return e->limits.step_rows - room.rows;
}

/* Picks nodes of requests for so many rows. */
static void pick_ready(struct serve_engine *e, int traversal, int64_t rows)
{
	struct room room = {rows, e->limits.step_pairs};
	for (struct serve_request *r = e->in_flight.first; r && room.rows; r = r->after) {
		struct serve_pick *p = &e->pick[e->picks];
		if (!takes_part(e, r, traversal))
			continue;
		*p = find_ready(e, r);
		take_room(e, p, &room);
		e->picks += p->begin < p->end;
	}
}

/* All rows are one range. */
static void place_flat(struct serve_part *p, int32_t first, int32_t end)
{
	p->batch_begin[0] = first;
	p->batch_begin[1] = end;
	p->order =
	    (struct lin_order){.nodes = end, .leaves = end, .batches = 1, .batch_begin = p->batch_begin};
}

/* The rows of each case are a range, and those of leaves a batch unless the traversal goes down. */
static void place_batches(const struct serve_engine *e, struct serve_part *p, int32_t first, bool down)
{
	int32_t count[IMAGE_MAX_CASES + 1] = {0};
	int cases = serve_cases(e->image);
	int32_t leaves = first, row = first;
	for (size_t i = p->first; i < p->next; i++)
		for (int c = 0; c < cases; c++) {
			int32_t begin, end;
			serve_case_range(&e->pick[i], cases, c, &begin, &end);
			count[c] += end - begin;
		}
	for (int c = 0; c < cases; c++)
		leaves += serve_is_inner(e->image, c) ? 0 : count[c];
	for (int c = 0; c < cases; c++) {
		bool inner = serve_is_inner(e->image, c);
		p->case_begin[c] = inner && !down ? leaves : row;
		if (!down)
			p->case_begin[cases + c] = inner ? row : leaves;
		row += count[c];
	}
	p->case_begin[down ? cases : 2 * cases] = row;
	p->batch_begin[0] = first;
	p->batch_begin[1] = down ? row : leaves;
	p->batch_begin[2] = row;
	p->order = (struct lin_order){.nodes = row,
				      .leaves = leaves,
				      .batches = down ? 1 : 2,
				      .batch_begin = p->batch_begin,
				      .cases = e->image->cases,
				      .case_begin = e->image->cases ? p->case_begin : NULL};
}

/* --- a request without company --- */

/* How many levels of it one superstep may compute: those that are begun by none, fit the limits, and take no
 * longer than others may wait. */
static int32_t count_levels(const struct serve_engine *e, const struct serve_request *r)
{
	const struct lin_order *o = &r->order;
	bool down = e->steps.traversal[r->traversal].down;
	double most = e->level_time ? SERVE_LEVELS_TIME / e->level_time : SERVE_LEVELS;
	int32_t levels = 0, left = o->batches - r->level;
	int64_t pairs = serve_traversal_of(e, r)->reads_nodes ? r->widest : 0, nodes = 0;
	left = left < most ? left : (int32_t)most;
	left = left < SERVE_LEVELS ? left : SERVE_LEVELS;
	for (; !r->done && levels < left; levels++) {
		int32_t level = r->level + levels, b = down ? o->batches - 1 - level : level;
		int32_t here = o->batch_begin[b + 1] - o->batch_begin[b];
		nodes += here;
		if (here > e->limits.step_rows || nodes * pairs > e->limits.step_pairs)
			break;
	}
	return levels;
}

static void describe_levels(const struct serve_engine *e, struct serve_part *p, const struct serve_pick *pick,
			    int32_t shift)
{
	const struct lin_order *o = &pick->request->order;
	int32_t lead = pick->batch > 0 && !e->steps.traversal[pick->request->traversal].down;
	int32_t begin = pick->begin + shift, end = pick->end + shift, leaves = o->leaves + shift;
	p->batch_begin[0] = begin;
	for (int32_t i = 0; i <= pick->batches; i++)
		p->batch_begin[lead + i] = o->batch_begin[pick->batch + i] + shift;
	for (int32_t i = 0; i < lead * o->cases; i++)
		p->case_begin[i] = begin;
	for (int32_t i = 0; o->cases && i <= pick->batches * o->cases; i++)
		p->case_begin[lead * o->cases + i] =
		    o->case_begin[(int64_t)pick->batch * o->cases + i] + shift;
	p->order = (struct lin_order){.nodes = end,
				      .leaves = leaves < begin ? begin
						: leaves < end ? leaves
							       : end,
				      .batches = lead + pick->batches,
				      .batch_begin = p->batch_begin,
				      .cases = o->cases,
				      .case_begin = o->cases ? p->case_begin : NULL};
}

/* The pick of the next levels of a request. */
static struct serve_pick levels_from(const struct serve_engine *e, struct serve_request *r, int32_t levels)
{
	const struct lin_order *o = &r->order;
	int32_t b = e->steps.traversal[r->traversal].down ? o->batches - r->level - levels : r->level;
	return (struct serve_pick){r, b, levels, o->batch_begin[b], o->batch_begin[b + levels], false};
}

/* Takes as many levels as there are consecutive rows for; false when these are fewer than two. */
static bool pick_levels(struct serve_engine *e, struct serve_request *r)
{
	struct serve_part *p = &e->part[r->traversal];
	int32_t levels = count_levels(e, r);
	int64_t given = 0, first = 0;
	if (levels < 2)
		return false;
	struct serve_pick pick = levels_from(e, r, levels);
	first = serve_give_rows(&e->pool, pick.end - pick.begin, &given);
	while (levels > 0 && pick.end - pick.begin > given)
		pick = levels_from(e, r, --levels);
	while (given > (levels < 2 ? 0 : pick.end - pick.begin))
		serve_return_row(&e->pool, first + --given);
	if (levels < 2)
		return false;
	e->pick[e->picks++] = pick;
	p->next = e->picks;
	describe_levels(e, p, &pick, (int32_t)first - pick.begin);
	return true;
}

int32_t serve_levels_alone(const struct serve_engine *e)
{
	return e->picks == 1 && !serve_traversal_of(e, e->pick[0].request)->flat ? e->pick[0].batches : 0;
}

static bool is_alone(const struct serve_engine *e, int traversal)
{
	const struct serve_request *r = e->in_flight.first;
	return !r->after && r->traversal == traversal;
}

static void pick_traversal(struct serve_engine *e, int traversal)
{
	const struct serve_traversal *t = &e->steps.traversal[traversal];
	struct serve_part *p = &e->part[traversal];
	int64_t first = 0;
	p->first = e->picks;
	p->pairs = 0;
	if (!t->flat && is_alone(e, traversal) && pick_levels(e, e->in_flight.first))
		return;
	int64_t ready = count_ready(e, traversal);
	if (ready)
		first = serve_give_rows(&e->pool, ready, &ready);
	pick_ready(e, traversal, ready);
	p->next = e->picks;
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
