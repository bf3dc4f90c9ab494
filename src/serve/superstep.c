/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A superstep: the ready cells of each traversal, then the outputs of requests whose last level that was. */
#include "base/floats.h"
#include "serve/engine.h"

/* --- before the steps --- */

bool serve_reserve_picks(struct serve_engine *e, const struct serve_list *l, struct diags *diags)
{
	size_t wanted = 0;
	for (const struct serve_request *r = l->first; r; r = r->after)
		wanted++;
	if (wanted <= e->pick_capacity)
		return true;
	wanted = wanted > 2 * e->pick_capacity ? wanted : 2 * e->pick_capacity;
	struct serve_pick *p = rt_allocate(e->allocator, wanted * sizeof *p);
	if (!p)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0},
				"serve fewer requests at a time", "no memory for a superstep");
	rt_free(e->allocator, e->pick);
	e->pick = p;
	e->pick_capacity = wanted;
	return true;
}

/* The nodes of the levels of a pick. */
static int32_t level_nodes(const struct serve_pick *p)
{
	const int32_t *begin = p->request->order.batch_begin + p->batch;
	return begin[p->batches] - begin[0];
}

/* Whether the pick ends its request. */
static bool is_last(const struct serve_engine *e, const struct serve_pick *p)
{
	const struct serve_request *r = p->request;
	return r->traversal + 1 == e->steps.traversals && r->level + p->batches == r->order.batches &&
	       r->done + p->end - p->begin == level_nodes(p);
}

/* Describes the steps to run: a part for each traversal with nodes, and one for the inputs that end. */
static int describe_parts(struct serve_engine *e, struct rt_part *part, struct lin_order *inputs)
{
	int parts = 0;
	for (int t = 0; t < e->steps.traversals; t++)
		if (e->part[t].first < e->part[t].next)
			part[parts++] = (struct rt_part){e->steps.traversal[t].first,
							 e->steps.traversal[t].next, &e->part[t].order};
	*inputs = (struct lin_order){.inputs = (int32_t)e->ending_inputs};
	if (e->ending_inputs && e->steps.inputs < e->image->steps)
		part[parts++] = (struct rt_part){e->steps.inputs, e->image->steps, inputs};
	return parts;
}

/* The traversal whose rows begin next, at `row` or behind it; -1 = none do. */
static int find_part(const struct serve_engine *e, int32_t row)
{
	int found = -1;
	for (int t = 0; t < e->steps.traversals; t++) {
		const struct serve_part *p = &e->part[t];
		if (p->first < p->next && p->batch_begin[0] >= row &&
		    (found < 0 || p->batch_begin[0] < e->part[found].batch_begin[0]))
			found = t;
	}
	return found;
}

/* Where the edges of a part end is where those of the next one begin, if its rows follow: so by ascending
 * rows. */
static void fill_arrays(struct serve_engine *e)
{
	int32_t row = 0;
	e->next_edge = e->next_parent = 0;
	for (int t; (t = find_part(e, row)) >= 0; row = e->part[t].order.nodes)
		serve_fill_part(e, t);
	for (size_t i = 0; i < e->picks; i++)
		e->pick[i].last = is_last(e, &e->pick[i]);
	serve_fill_inputs(e);
}

/* --- behind them --- */

static void copy_output(const struct serve_engine *e, const struct serve_request *r, int output,
			const struct rt_rows *rows)
{
	const struct image_output *o = &e->image->output[output];
	if (rows->n)
		rt_get_rows(&e->image->buffer[o->buffer], e->session.buffers[o->buffer], rows, serve_place(r, output, 0));
}

static void copy_nodes(const struct serve_engine *e, const struct serve_pick *p)
{
	const struct serve_request *r = p->request;
	if (r->traversal + 1 < e->steps.traversals)
		return;
	const struct rt_rows rows = {.n = p->end - p->begin, .row = r->row, .place = r->order.order + p->begin};
	for (int i = 0; i < e->image->outputs; i++)
		if (!e->image->output[i].at_root)
			copy_output(e, r, i, &rows);
}

/* Copies the outputs of the inputs of a request, the first of which has this row; returns the row of the
 * next. */
static int64_t copy_inputs(const struct serve_engine *e, const struct serve_request *r, int64_t first)
{
	const struct rt_rows rows = {.n = r->order.inputs, .first = first};
	for (int i = 0; i < e->image->outputs; i++)
		if (e->image->output[i].at_root)
			copy_output(e, r, i, &rows);
	return first + r->order.inputs;
}

static void return_row(struct serve_engine *e, struct serve_request *r, int32_t id)
{
	serve_return_row(&e->pool, r->row[id]);
	r->row[id] = -1;
}

static void use_row(struct serve_request *r, int32_t id, void *engine)
{
	if (--r->uses[id] == 0)
		return_row(engine, r, id);
}

/* In the order in which nodes are computed, so that none is read behind its return. */
static void return_rows(struct serve_engine *e, const struct serve_pick *p)
{
	struct serve_request *r = p->request;
	bool down = e->steps.traversal[r->traversal].down;
	for (int32_t i = p->begin; i < p->end; i++) {
		int32_t n = down ? p->end - 1 - (i - p->begin) : i;
		if (!r->uses[r->order.order[n]])
			return_row(e, r, r->order.order[n]);
		serve_visit_read(r, down, n, use_row, e);
	}
}

static void advance_request(struct serve_engine *e, const struct serve_pick *p)
{
	struct serve_request *r = p->request;
	e->nodes += p->end - p->begin;
	r->done += p->end - p->begin;
	if (r->done < level_nodes(p))
		return;
	r->done = 0;
	r->level += p->batches;
	if (r->level < r->order.batches)
		return;
	r->level = 0;
	if (++r->traversal < e->steps.traversals) {
		if (serve_returns_rows(e, r->traversal))
			serve_count_uses(e, r);
		return;
	}
	serve_note_time(&e->forecast, r->expected, e->step_end - r->joined);
	serve_end(e, r, SERVE_ENDED);
	serve_append(&e->ended, r);
	e->requests++;
}

static void end_superstep(struct serve_engine *e)
{
	int64_t input = 0;
	for (size_t i = 0; i < e->picks; i++) {
		const struct serve_pick *p = &e->pick[i];
		copy_nodes(e, p);
		if (p->last)
			input = copy_inputs(e, p->request, input);
		if (p->last && p->request->carry)
			serve_store_carry(e, p->request);
		if (serve_returns_rows(e, p->request->traversal))
			return_rows(e, p);
		advance_request(e, p);
	}
	e->supersteps++;
}

static bool fail_requests(struct serve_engine *e)
{
	for (struct serve_request *r; (r = e->in_flight.first);) {
		serve_end(e, r, SERVE_FAILED);
		serve_append(&e->ended, r);
	}
	return false;
}

static void average(double *of, double value)
{
	enum { WEIGHT = 4 };
	*of += *of ? (value - *of) / WEIGHT : value;
}

/* Notes what nodes take, with what the driver does between supersteps if it does not just come late, and averages what
 * a level takes without company.  Returns how many nodes it had. */
static int32_t note_times(struct serve_engine *e, int64_t begin)
{
	int64_t end = rt_nanoseconds(), since = e->ended_at > 2 * begin - end ? e->ended_at : 2 * begin - end;
	int32_t levels = serve_levels_alone(e), nodes = 0;
	for (size_t i = 0; i < e->picks; i++)
		nodes += e->pick[i].end - e->pick[i].begin;
	if (nodes)
		serve_note_step(&e->forecast, nodes, end - (e->ended_at ? since : begin));
	if (levels)
		average(&e->level_time, (double)(end - begin) / levels);
	e->ended_at = end;
	e->step_begin = begin;
	e->step_end = end;
	return nodes;
}

bool serve_advance(struct serve_engine *e, struct rt_team *team, int threads, struct diags *diags)
{
	struct rt_part part[SERVE_TRAVERSALS + 1];
	struct lin_order inputs;
	if (e->forest.gathered.first) {
		serve_run_forest(e, team, diags);
		return true;
	}
	if (!e->in_flight.first)
		return true;
	serve_choose_binding(e);
	if (!serve_reserve_picks(e, &e->in_flight, diags) || !rt_reserve_own(&e->session, threads > 1 ? threads : 1, diags))
		return fail_requests(e);
	int64_t begin = rt_nanoseconds();
	serve_pick_cells(e);
	fill_arrays(e);
	int parts = describe_parts(e, part, &inputs);
	struct float_mode mode = float_mode_enter(e->image->flush);
	bool ok = rt_run_steps(e->image, rt_tables_of(&e->session), e->session.sizes, part, parts, team,
			       threads, &e->session.walk_state, NULL, diags);
	float_mode_leave(&mode);
	if (!ok)
		return fail_requests(e);
	int32_t nodes = note_times(e, begin);
	end_superstep(e);
	serve_note_drive(e, SERVE_BY_CELLS, nodes);
	e->ended_at = e->in_flight.first ? e->ended_at : 0;
	return true;
}
