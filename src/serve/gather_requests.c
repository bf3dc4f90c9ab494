/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait together and leave together: one minibatch is made of them, which a session runs.  Their results have
 * the bits that supersteps give them. */
#include "serve/engine.h"

#include <string.h>

bool serve_forest_init(struct serve_engine *e, struct diags *diags)
{
	struct serve_forest *f = &e->forest;
	size_t inputs = e->image->inputs + (size_t)1;
	f->data = rt_allocate_zeroed(e->allocator, inputs * sizeof *f->data);
	f->given = rt_allocate_zeroed(e->allocator, inputs * sizeof *f->given);
	f->data_capacity = rt_allocate_zeroed(e->allocator, inputs * sizeof *f->data_capacity);
	if (!f->data || !f->given || !f->data_capacity)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for forests");
	return rt_session_init(&f->session, e->allocator, e->image, diags);
}

void serve_forest_free(struct serve_engine *e)
{
	struct serve_forest *f = &e->forest;
	if (f->session.image)
		rt_session_free(&f->session);
	for (int i = 0; f->data && i < e->image->inputs; i++)
		rt_free(e->allocator, f->data[i]);
	rt_free(e->allocator, f->data);
	rt_free(e->allocator, f->given);
	rt_free(e->allocator, f->data_capacity);
	rt_free(e->allocator, f->index);
}

/* --- the choice --- */

/* The supersteps that a request is still computed by, if none of its levels is cut. */
static int64_t count_left(const struct serve_engine *e, const struct serve_request *r)
{
	int64_t left = 0;
	for (int t = r->traversal; t < e->steps.traversals; t++)
		left += serve_supersteps_of(&e->steps.traversal[t], r->order.batches - (t == r->traversal ? r->level : 0));
	return left;
}

/* Whether others may wait until those in flight have ended. */
static bool ends_soon(const struct serve_engine *e)
{
	int64_t most = 0;
	for (const struct serve_request *r = e->in_flight.first; r; r = r->after) {
		int64_t left = count_left(e, r);
		most = left > most ? left : most;
	}
	return serve_expect(&e->forecast, most, e->width) <= SERVE_FOREST_TIME;
}

/* Attempts in a row without a forest: from so many on nothing is drained for one, and after so many the time of forests is
 * measured anew: one of two requests is run, however long it is expected to take. */
enum { UNDRAINED_AFTER = 2, MEASURED_AFTER = 16 };

/* One more attempt made no forest.  What the time of forests was is forgotten before it is measured anew. */
static void note_failure(struct serve_forest *f)
{
	f->failures = f->failures < MEASURED_AFTER ? f->failures + 1 : UNDRAINED_AFTER;
	if (f->failures == MEASURED_AFTER)
		f->forecast = (struct serve_forecast){0};
}

/* Whether others have waited for those in flight as long as they may, since requests that are ahead of them kept joining. */
static bool drains_too_long(const struct serve_engine *e)
{
	return e->forest.drain_begin && e->drive_begin - e->forest.drain_begin > SERVE_FOREST_TIME;
}

/* Whether those in flight are to end before a forest.  Where the last attempts have made none, or this one takes too long, it
 * has failed. */
static bool drains_for_forest(struct serve_engine *e, bool patient)
{
	struct serve_forest *f = &e->forest;
	bool fails = (f->failures >= UNDRAINED_AFTER && f->failures < MEASURED_AFTER) || drains_too_long(e);
	if (fails) {
		note_failure(f);
		serve_note_way(&e->ways, SERVE_BY_FOREST, 0, 0);
	}
	return !fails && patient && ends_soon(e);
}

/* An attempt has failed, too, where only one request waits behind those that have ended for it. */
static void note_drained(struct serve_engine *e, bool busy)
{
	if (e->forest.drain_begin && !busy && !e->company)
		note_failure(&e->forest);
}

bool serve_prefers_forest(struct serve_engine *e, int64_t requests, int64_t nodes, bool patient)
{
	bool busy = e->in_flight.first;
	e->drive_begin = rt_nanoseconds();
	e->way = SERVE_BY_CELLS;
	e->company = requests > 1;
	note_drained(e, busy);
	if (e->company)
		e->way = serve_choose_way(&e->ways, nodes + e->nodes_in_flight);
	if (e->way == SERVE_BY_FOREST && busy && !drains_for_forest(e, patient))
		e->way = SERVE_BY_CELLS;
	bool forest = e->way == SERVE_BY_FOREST, drains = forest && busy;
	e->forest.drain_begin = !drains ? 0 : e->forest.drain_begin ? e->forest.drain_begin : e->drive_begin;
	return forest && !busy;
}

void serve_note_drive(struct serve_engine *e, enum serve_way way, int64_t cells)
{
	if (e->company && way == e->way)
		serve_note_way(&e->ways, way, cells, rt_nanoseconds() - e->drive_begin);
}

/* --- who is gathered --- */

static int64_t count_cells(const struct serve_engine *e, int64_t nodes)
{
	return nodes * e->steps.traversals;
}

static int64_t count_pairs(const struct serve_engine *e, const struct lin_forest *f)
{
	return rt_has_buffer(e->image, IMAGE_FIRST_PAIR) ? rt_count_pairs(f) : 0;
}

/* Whether the limits of a superstep have room for a forest with a request more.  What no forest may have is refused where
 * requests join supersteps, and an empty one ends there. */
static bool has_room(const struct serve_engine *e, const struct lin_forest *more, int64_t pairs)
{
	const struct serve_forest *f = &e->forest;
	const int64_t most = INT32_MAX / SERVE_TRAVERSALS;
	return more->nodes > 0 && more->inputs > 0 && (more->inputs == 1 || more->input_begin || !e->has_members) &&
	       f->forest.nodes + more->nodes <= (e->limits.step_rows < most ? e->limits.step_rows : most) &&
	       pairs >= 0 && f->pairs + pairs <= e->limits.step_pairs;
}

/* How long the forest takes with so many nodes more [ns]; 0 = unknown. */
static double expect_run(const struct serve_engine *e, int64_t nodes)
{
	const struct serve_forecast *known = e->forest.forecast.nodes ? &e->forest.forecast : &e->forecast;
	return serve_expect(known, 1, count_cells(e, e->forest.forest.nodes + nodes));
}

/* Whether others would wait too long for the forest; not where it measures anew how long two requests take. */
static bool is_too_long(const struct serve_forest *f, double expected)
{
	bool measures = f->failures >= MEASURED_AFTER && f->gathered.first == f->gathered.last;
	return !measures && expected > SERVE_FOREST_TIME;
}

enum serve_outcome serve_gather(struct serve_engine *e, const struct serve_entry *of, struct serve_request **out)
{
	struct serve_forest *f = &e->forest;
	const struct lin_forest *more = &of->minibatch->forest;
	const int64_t pairs = count_pairs(e, more), deadline = of->deadline ? of->deadline : INT64_MAX;
	const int64_t first = f->gathered.first && f->deadline < deadline ? f->deadline : deadline;
	double expected = expect_run(e, more->nodes);
	*out = NULL;
	if (of->carry || (f->gathered.first && f->gathered.first->binding != of->binding) || !has_room(e, more, pairs) ||
	    is_too_long(f, expected))
		return SERVE_FULL;
	if (first < INT64_MAX && serve_is_late(&f->forecast, expected, first - e->drive_begin))
		return SERVE_LATE;
	struct serve_request *r = serve_new_request(e);
	if (!r)
		return SERVE_FULL;
	r->minibatch = *of->minibatch;
	r->binding = of->binding;
	r->rank = of->rank;
	r->carry = NULL;
	r->state = SERVE_GATHERED;
	serve_append(&f->gathered, r);
	f->forest.nodes += more->nodes;
	f->forest.inputs += more->inputs;
	f->pairs += pairs;
	f->deadline = first;
	*out = r;
	return SERVE_ADMITTED;
}

static void clear_sums(struct serve_forest *f)
{
	f->forest = (struct lin_forest){0};
	f->pairs = 0;
}

struct serve_request *serve_drop_gathered(struct serve_engine *e)
{
	struct serve_request *r = e->forest.gathered.last;
	if (!r) {
		if (e->way == SERVE_BY_FOREST)
			note_failure(&e->forest);
		serve_note_drive(e, SERVE_BY_FOREST, 0);
		e->way = SERVE_BY_CELLS;
		clear_sums(&e->forest);
		return NULL;
	}
	serve_remove(&e->forest.gathered, r);
	serve_prepend(&e->spare, r);
	return r;
}

/* --- the run --- */

static void copy_rows(const struct serve_engine *e, const struct serve_request *r, int output, int64_t first)
{
	const struct image_output *o = &e->image->output[output];
	const struct rt_session *s = &e->forest.session;
	const struct rt_rows rows = {.n = o->at_root ? r->minibatch.forest.inputs : r->minibatch.forest.nodes,
				     .first = first,
				     .row = o->at_root ? NULL : s->order.number + first};
	rt_get_rows(&e->image->buffer[o->buffer], s->buffers[o->buffer], &rows, serve_place(r, output, 0));
}

static void copy_results(const struct serve_engine *e)
{
	int64_t input = 0, node = 0;
	for (const struct serve_request *r = e->forest.gathered.first; r; r = r->after) {
		for (int i = 0; i < e->image->outputs; i++)
			copy_rows(e, r, i, e->image->output[i].at_root ? input : node);
		input += r->minibatch.forest.inputs;
		node += r->minibatch.forest.nodes;
	}
}

/* Each request had part in the forest with all its cells: what is recorded of a superstep. */
static void note_picks(struct serve_engine *e)
{
	e->picks = 0;
	for (struct serve_request *r = e->forest.gathered.first; r; r = r->after)
		e->pick[e->picks++] =
		    (struct serve_pick){.request = r, .end = (int32_t)count_cells(e, r->minibatch.forest.nodes), .last = true};
}

static void end_all(struct serve_engine *e)
{
	for (struct serve_request *r; (r = e->forest.gathered.first);) {
		serve_remove(&e->forest.gathered, r);
		r->state = SERVE_ENDED;
		serve_append(&e->ended, r);
		e->requests++;
		e->forest.requests++;
	}
	clear_sums(&e->forest);
}

static bool reserve_all_results(struct serve_engine *e)
{
	for (struct serve_request *r = e->forest.gathered.first; r; r = r->after)
		if (!serve_reserve_results(e, r))
			return false;
	return true;
}

/* One that was disturbed counts as one that took twice as long as expected, which 0 = is unknown. */
static void note_time(struct serve_forest *f, int64_t cells, double expected, int64_t took)
{
	int64_t most = expected ? (int64_t)(2 * expected) + 1 : INT64_MAX, time = took < most ? took : most;
	serve_note_step(&f->forecast, cells, time);
	serve_note_time(&f->forecast, expected, time);
}

bool serve_run_forest(struct serve_engine *e, struct rt_team *team, struct diags *diags)
{
	struct serve_forest *f = &e->forest;
	struct rt_minibatch m;
	const int64_t cells = count_cells(e, f->forest.nodes);
	double expected = expect_run(e, 0);
	e->step_begin = rt_nanoseconds();
	if (!reserve_all_results(e) || !serve_reserve_picks(e, &f->gathered, diags) || !serve_merge_requests(e, &m, diags) ||
	    !rt_session_run(&f->session, f->gathered.first->binding, team, &m, diags))
		return false;
	copy_results(e);
	e->step_end = rt_nanoseconds();
	note_time(f, cells, expected, e->step_end - e->step_begin);
	note_picks(e);
	end_all(e);
	serve_note_drive(e, SERVE_BY_FOREST, cells);
	e->way = SERVE_BY_CELLS;
	f->failures = 0;
	e->nodes += cells;
	e->supersteps++;
	f->runs++;
	f->nodes += (uint64_t)cells;
	e->ended_at = 0;
	return true;
}
