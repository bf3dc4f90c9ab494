/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests: what is checked and reserved before one joins, and what is left of it when it has ended. */
#include "serve/engine.h"

#include <string.h>

/* --- memory of a request --- */

static bool report_no_memory(struct diags *diags)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "serve fewer requests at a time",
			"no memory for a request");
}

struct serve_request *serve_new_request(struct serve_engine *e)
{
	struct serve_request *r = e->spare.first;
	if (r) {
		serve_remove(&e->spare, r);
		return r;
	}
	r = rt_allocate_zeroed(e->allocator, sizeof *r);
	if (!r)
		return NULL;
	lin_order_init(&r->order, e->allocator);
	r->image = e->image;
	r->output_at =
	    rt_allocate_zeroed(e->allocator, (e->image->outputs + (size_t)1) * sizeof *r->output_at);
	if (r->output_at)
		return r;
	rt_free(e->allocator, r);
	return NULL;
}

static bool reserve_nodes(struct serve_engine *e, struct serve_request *r, size_t nodes)
{
	if (nodes <= r->capacity)
		return true;
	nodes = nodes > 2 * r->capacity ? nodes : 2 * r->capacity;
	int32_t *row = rt_allocate(e->allocator, nodes * sizeof *row),
		*uses = rt_allocate(e->allocator, nodes * sizeof *uses);
	if (!row || !uses) {
		rt_free(e->allocator, row);
		rt_free(e->allocator, uses);
		return false;
	}
	rt_free(e->allocator, r->row);
	rt_free(e->allocator, r->uses);
	r->row = row;
	r->uses = uses;
	r->capacity = nodes;
	return true;
}

static size_t output_row_bytes(const struct image_output *o)
{
	return (size_t)o->elements * (size_t)dtype_traits_of(o->dtype)->bytes;
}

static int64_t count_output_rows(const struct serve_request *r, const struct image_output *o)
{
	return o->at_root ? r->minibatch.forest.inputs : r->minibatch.forest.nodes;
}

/* Each output begins at a cache line. */
bool serve_reserve_results(const struct serve_engine *e, struct serve_request *r)
{
	size_t bytes = 0;
	for (int i = 0; i < e->image->outputs; i++) {
		const struct image_output *o = &e->image->output[i];
		size_t own, rows = (size_t)count_output_rows(r, o);
		r->output_at[i] = bytes;
		if (__builtin_mul_overflow(rows, output_row_bytes(o), &own) ||
		    __builtin_add_overflow(bytes, own + 63, &bytes))
			return false;
		bytes -= bytes % 64;
	}
	if (bytes <= r->result_capacity)
		return true;
	rt_free(e->allocator, r->result);
	r->result_capacity = 0;
	r->result = rt_allocate(e->allocator, bytes);
	if (r->result)
		r->result_capacity = bytes;
	return r->result;
}

/* --- how often rows are read --- */

/* Roots are read once more, when the request ends. */
void serve_count_uses(const struct serve_engine *e, struct serve_request *r)
{
	const struct lin_order *o = &r->order;
	const struct lin_forest *f = &r->minibatch.forest;
	memset(r->uses, 0, (size_t)o->nodes * sizeof *r->uses);
	if (e->steps.traversal[r->traversal].down)
		for (int32_t i = o->parent_begin[0]; i < o->parent_begin[o->nodes]; i++)
			r->uses[o->order[o->parent_list[i]]]++;
	else
		for (int32_t i = f->child_begin[0]; i < f->child_begin[o->nodes]; i++)
			r->uses[f->children[i]]++;
	for (int64_t i = 0; i < f->inputs; i++)
		r->uses[f->root[i]]++;
}

struct in_use {
	int64_t now;
};

static void use_once(struct serve_request *r, int32_t id, void *in_use)
{
	((struct in_use *)in_use)->now -= --r->row[id] == 0;
}

/* The most rows that the request has at once when its levels are computed one after the other.  Counts the uses of the
 * first traversal, and what is left of them in `row`, which is not needed before the request joins. */
static int64_t count_rows(const struct serve_engine *e, struct serve_request *r)
{
	const struct lin_order *o = &r->order;
	struct in_use in_use = {0};
	int64_t most = 0;
	if (!o->nodes)
		return 0;
	if (!serve_returns_rows(e, 0))
		return (int64_t)o->nodes + (e->steps.traversals > 1); /* moved one by one at least */
	bool down = e->steps.traversal[0].down;
	serve_count_uses(e, r);
	memcpy(r->row, r->uses, (size_t)o->nodes * sizeof *r->row);
	for (int32_t level = 0; level < o->batches; level++) {
		int32_t b = down ? o->batches - 1 - level : level;
		in_use.now += o->batch_begin[b + 1] - o->batch_begin[b];
		most = in_use.now > most ? in_use.now : most;
		for (int32_t n = o->batch_begin[b]; n < o->batch_begin[b + 1]; n++) {
			in_use.now -= !r->uses[o->order[n]];
			serve_visit_read(r, down, n, use_once, &in_use);
		}
	}
	return most;
}

/* --- deadlines --- */

/* What a request adds to a superstep, about [nodes]. */
static int64_t width_of(const struct serve_engine *e, int64_t nodes, int64_t levels)
{
	int64_t supersteps = serve_count_supersteps(e, levels);
	return supersteps ? (nodes * e->steps.traversals + supersteps - 1) / supersteps : 0;
}

/* How long a request takes beside those in flight; 0 = unknown, or there are none. */
static double expect_time(const struct serve_engine *e, int64_t nodes, int64_t levels)
{
	return e->in_flight.first ? serve_expect(&e->forecast, serve_count_supersteps(e, levels),
						 e->width + width_of(e, nodes, levels))
				  : 0;
}

/* If requests were computed that cannot end in time, none would where there are too many: the oldest come first.  One
 * without company always has a chance. */
static bool is_late(const struct serve_engine *e, const struct serve_entry *of, int64_t levels)
{
	double expected = levels ? expect_time(e, of->minibatch->forest.nodes, levels) : 0;
	return expected && serve_is_late(&e->forecast, expected, of->deadline - rt_nanoseconds());
}

/* The levels before a request is linearized, which costs more than to count them; 0 = unknown, or not needed. */
static int64_t count_levels(struct serve_engine *e, struct serve_request *r, const struct serve_entry *of)
{
	const struct lin_forest *f = &of->minibatch->forest;
	bool wanted = of->deadline && e->in_flight.first && f->nodes > 0 && f->nodes < INT32_MAX;
	return wanted && f->children && reserve_nodes(e, r, (size_t)f->nodes) ? serve_count_levels(f, r->row) : 0;
}

/* --- admission --- */

static int64_t most_edges(const struct serve_request *r)
{
	const struct lin_forest *f = &r->minibatch.forest;
	return f->nodes ? f->child_begin[f->nodes] - f->child_begin[0] : 0;
}

static int64_t widest_input(const struct serve_request *r)
{
	const struct lin_forest *f = &r->minibatch.forest;
	int64_t most = 1;
	for (int64_t i = 0, first = 0, end; i < f->inputs; i++, first = end) {
		end = rt_end_of_input(f, i);
		most = end - first > most ? end - first : most;
	}
	return most;
}

static bool prepare_request(struct serve_engine *e, struct serve_request *r, const struct serve_entry *of,
			    struct diags *diags)
{
	const struct rt_minibatch *m = of->minibatch;
	double seconds = 0;
	r->minibatch = *m;
	if (!rt_linearize(&r->order, e->image, e->rules, m, m, diags) || !rt_need_rows(of->binding, m, &seconds, diags))
		return false;
	return (reserve_nodes(e, r, r->order.nodes) && serve_reserve_results(e, r)) || report_no_memory(diags);
}

/* Refused after a diagnostic, or full for now. */
static enum serve_outcome reserve_request(struct serve_engine *e, struct serve_request *r, struct diags *diags)
{
	r->traversal = 0;
	r->rows = count_rows(e, r);
	r->edges = most_edges(r);
	r->widest = widest_input(r);
	r->pairs = rt_has_buffer(e->image, IMAGE_FIRST_PAIR) ? rt_count_pairs(&r->minibatch.forest) : 0;
	if (r->pairs && r->widest > e->limits.step_pairs)
		return diag_add(
			   diags, DIAG_TOO_MANY_PAIRS, (struct diag_at){0},
			   "raise the limit of pairs in a superstep, or divide the structure",
			   "a node of the request reads %lld nodes, and a superstep has room for %lld pairs",
			   (long long)r->widest, (long long)e->limits.step_pairs),
		       SERVE_REFUSED;
	if (r->rows > e->limits.rows)
		return diag_add(diags, DIAG_REQUEST_TOO_LARGE, (struct diag_at){0},
				"raise the limit of rows, or divide the structure",
				"the request needs %lld rows at once, and there are %lld", (long long)r->rows,
				(long long)e->limits.rows),
		       SERVE_REFUSED;
	if (e->rows + r->rows > e->limits.rows)
		return SERVE_FULL;
	bool room = serve_reserve_rows(e, e->edges + r->edges, e->inputs + r->order.inputs,
				       e->pairs + r->pairs, diags);
	return room ? SERVE_ADMITTED : SERVE_REFUSED;
}

/* Whether a request can join now; nothing of the engine was changed. */
static enum serve_outcome check_request(struct serve_engine *e, struct serve_request *r, const struct serve_entry *of,
					struct diags *diags)
{
	int64_t levels = count_levels(e, r, of);
	if (is_late(e, of, levels))
		return SERVE_LATE;
	if (!prepare_request(e, r, of, diags))
		return SERVE_REFUSED;
	if (of->deadline && !levels && is_late(e, of, r->order.batches))
		return SERVE_LATE;
	return reserve_request(e, r, diags);
}

static void join_engine(struct serve_engine *e, struct serve_request *r, int64_t rank)
{
	r->rank = rank;
	r->level = r->done = 0;
	r->state = SERVE_IN_FLIGHT;
	for (int32_t n = 0; n < r->order.nodes; n++)
		r->row[n] = -1;
	r->expected = expect_time(e, r->order.nodes, r->order.batches);
	r->width = width_of(e, r->order.nodes, r->order.batches);
	e->rows += r->rows;
	e->edges += r->edges;
	e->inputs += r->order.inputs;
	e->pairs += r->pairs;
	e->width += r->width;
	e->nodes_in_flight += r->order.nodes;
	if (r->carry && r->carry->begun)
		serve_load_carry(e, r);
	serve_insert(&e->in_flight, r);
}

/* Whether requests in flight fill supersteps, or are to end before a forest, and none of them comes behind this one. */
static bool must_wait(const struct serve_engine *e, int64_t rank)
{
	const struct serve_request *last = e->in_flight.last;
	return last && last->rank <= rank && (e->way == SERVE_BY_FOREST || serve_is_wide(&e->forecast, e->width));
}

enum serve_outcome serve_admit(struct serve_engine *e, const struct serve_entry *of, struct serve_request **out,
			       struct diags *diags)
{
	*out = NULL;
	if (must_wait(e, of->rank))
		return SERVE_FULL;
	struct serve_request *r = serve_new_request(e);
	if (!r) {
		report_no_memory(diags);
		return SERVE_REFUSED;
	}
	enum serve_outcome outcome = check_request(e, r, of, diags);
	if (outcome != SERVE_ADMITTED) {
		serve_prepend(&e->spare, r);
		return outcome;
	}
	r->owner = NULL;
	r->binding = of->binding;
	r->carry = of->carry;
	r->joined = rt_nanoseconds();
	*out = r;
	if (r->order.nodes) {
		join_engine(e, r, of->rank);
		return SERVE_ADMITTED;
	}
	r->rows = r->edges = r->pairs = 0;
	r->state = SERVE_ENDED;
	serve_append(&e->ended, r);
	return SERVE_ADMITTED;
}

/* --- the end --- */

void serve_end(struct serve_engine *e, struct serve_request *r, enum serve_state state)
{
	for (int32_t id = 0; id < r->order.nodes; id++)
		if (r->row[id] >= 0)
			serve_return_row(&e->pool, r->row[id]);
	e->rows -= r->rows;
	e->edges -= r->edges;
	e->inputs -= r->order.inputs;
	e->pairs -= r->pairs;
	e->width -= r->width;
	e->nodes_in_flight -= r->order.nodes;
	serve_remove(&e->in_flight, r);
	r->state = state;
}

void serve_release(struct serve_engine *e, struct serve_request *r)
{
	if (r->state == SERVE_IN_FLIGHT)
		serve_end(e, r, SERVE_FAILED);
	else if (r->before || r == e->ended.first)
		serve_remove(&e->ended, r);
	serve_prepend(&e->spare, r);
}

bool serve_succeeded(const struct serve_request *r)
{
	return r->state == SERVE_ENDED;
}

void **serve_owner(struct serve_request *r)
{
	return &r->owner;
}

char *serve_place(const struct serve_request *r, int output, int64_t row)
{
	return r->result + r->output_at[output] + (size_t)row * output_row_bytes(&r->image->output[output]);
}

const void *serve_row(const struct serve_request *r, int output, int64_t row)
{
	if (r->state != SERVE_ENDED || output < 0 || output >= r->image->outputs)
		return NULL;
	const struct image_output *o = &r->image->output[output];
	if (row < 0 || row >= count_output_rows(r, o))
		return NULL;
	return serve_place(r, output, row);
}
