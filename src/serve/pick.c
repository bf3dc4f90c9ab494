/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which cells are computed in the next superstep: of each traversal those of the current level of each
 * request, by priority, then age, as many as there are rows for. */
#include "serve/engine.h"

static int32_t batch_of(const struct serve_engine *e, const struct serve_request *r)
{
	bool down = e->steps.traversal[r->traversal].down;
	return down ? r->order.batches - 1 - r->level : r->level;
}

/* Whether a request takes part in this superstep, in a traversal. */
static bool takes_part(const struct serve_engine *e, const struct serve_request *r, int traversal)
{
	return r->traversal == traversal && r->binding == e->binding;
}

static int64_t count_ready(const struct serve_engine *e, int traversal)
{
	int64_t ready = 0;
	for (const struct serve_request *r = e->in_flight.first; r && ready < e->limits.step_rows;
	     r = r->after)
		if (takes_part(e, r, traversal)) {
			const int32_t *begin = r->order.batch_begin + batch_of(e, r);
			ready += begin[1] - begin[0] - r->done;
		}
	return ready < e->limits.step_rows ? ready : e->limits.step_rows;
}

static void pick_level(struct serve_engine *e, struct serve_request *r, int64_t *left)
{
	int32_t batch = batch_of(e, r);
	const int32_t *at = r->order.batch_begin + batch;
	int32_t begin = at[0] + r->done, end = at[1] - begin < *left ? at[1] : begin + (int32_t)*left;
	e->pick[e->picks++] = (struct serve_pick){r, batch, begin, end};
	*left -= end - begin;
}

static void place_batches(const struct serve_engine *e, struct serve_part *p, const int32_t *count,
			  int32_t first, bool down)
{
	int cases = serve_cases(e->image);
	int32_t leaves = first, row = first;
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

static void pick_traversal(struct serve_engine *e, int traversal)
{
	struct serve_part *p = &e->part[traversal];
	int64_t left, first = 0;
	int32_t count[IMAGE_MAX_CASES + 1] = {0};
	p->first = e->picks;
	int64_t ready = count_ready(e, traversal);
	if (ready)
		first = serve_give_rows(&e->pool, ready, &ready);
	left = ready;
	for (struct serve_request *r = e->in_flight.first; r && left; r = r->after)
		if (takes_part(e, r, traversal))
			pick_level(e, r, &left);
	p->next = e->picks;
	for (size_t i = p->first; i < p->next; i++)
		for (int c = 0; c < serve_cases(e->image); c++) {
			int32_t begin, end;
			serve_case_range(&e->pick[i], serve_cases(e->image), c, &begin, &end);
			count[c] += end - begin;
		}
	place_batches(e, p, count, (int32_t)first, e->steps.traversal[traversal].down);
}

void serve_choose_binding(struct serve_engine *e)
{
	const struct serve_request *r = e->in_flight.first;
	while (r && r->binding == e->binding)
		r = r->after;
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
