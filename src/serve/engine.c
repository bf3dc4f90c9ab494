/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The engine: its buffers, and its lists of requests. */
#include "serve/engine.h"

#include <string.h>

/* --- lists --- */

/* Puts `r` behind `before`; NULL = first. */
static void put_behind(struct serve_list *l, struct serve_request *before, struct serve_request *r)
{
	r->before = before;
	r->after = before ? before->after : l->first;
	*(r->before ? &r->before->after : &l->first) = r;
	*(r->after ? &r->after->before : &l->last) = r;
}

void serve_append(struct serve_list *l, struct serve_request *r)
{
	put_behind(l, l->last, r);
}

void serve_prepend(struct serve_list *l, struct serve_request *r)
{
	put_behind(l, NULL, r);
}

void serve_insert(struct serve_list *l, struct serve_request *r)
{
	struct serve_request *before = l->last;
	while (before && before->rank > r->rank)
		before = before->before;
	put_behind(l, before, r);
}

void serve_remove(struct serve_list *l, struct serve_request *r)
{
	*(r->before ? &r->before->after : &l->first) = r->after;
	*(r->after ? &r->after->before : &l->last) = r->before;
	r->before = r->after = NULL;
}

/* --- buffers --- */

/* The size that the buffers of the engine have where a minibatch has this one. */
static void set_sizes(struct serve_engine *e, int64_t edges, int64_t inputs, int64_t pairs)
{
	const int64_t rows = e->limits.rows, step = e->limits.step_rows;
	const int64_t sizes[IMAGE_SIZES] = {
	    [IMAGE_ONE] = 1,	     [IMAGE_NODES] = rows,	  [IMAGE_LEAVES] = rows,
	    [IMAGE_INPUTS] = inputs, [IMAGE_EDGES] = edges,	  [IMAGE_BATCHES] = 2,
	    [IMAGE_WIDEST] = step,   [IMAGE_WIDEST_INNER] = step, [IMAGE_WIDEST_EDGES] = edges,
	    [IMAGE_PAIRS] = pairs,
	};
	memcpy(e->session.sizes, sizes, sizeof sizes);
}

/* Whether the engine has memory for a buffer.  Weights are the binding's, local buffers the threads'. */
static bool has_memory(const struct image_buffer *b)
{
	enum image_memory memory = image_traits_of(b->kind)->memory;
	return !b->at_binding && memory != IMAGE_IN_BINDING && memory != IMAGE_IN_THREAD;
}

/* Index arrays have up to two elements more than rows: where the last row ends. */
enum { EXTRA = 64 };

static bool reserve_buffer(struct serve_engine *e, int i, struct diags *diags)
{
	const struct image_buffer *b = &e->image->buffer[i];
	int64_t bytes = rt_buffer_bytes(&e->session, b);
	if (bytes < 0 || __builtin_add_overflow(bytes, EXTRA, &bytes))
		bytes = -1;
	if (bytes >= 0 && (size_t)bytes <= e->session.capacities[i])
		return true;
	void *p = bytes < 0 ? NULL : rt_allocate_zeroed(e->allocator, bytes);
	if (!p)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0},
				"serve fewer requests at a time", "no memory for '%s'", b->name);
	rt_free(e->allocator, e->session.buffers[i]);
	e->session.buffers[i] = p;
	e->session.capacities[i] = bytes;
	return true;
}

static void note_index_arrays(struct serve_engine *e)
{
	for (int i = 0; i < e->image->buffers; i++) {
		const struct image_buffer *b = &e->image->buffer[i];
		if (b->kind == IMAGE_CHILD && b->which < e->image->children)
			e->child[b->which] = e->session.buffers[i];
		else if (image_traits_of(b->kind)->content == IMAGE_HOLDS_STRUCTURE)
			e->index[b->kind] = e->session.buffers[i];
	}
}

static bool reserve_buffers(struct serve_engine *e, struct diags *diags)
{
	for (int i = 0; i < e->image->buffers; i++)
		if (has_memory(&e->image->buffer[i]) && !reserve_buffer(e, i, diags))
			return false;
	note_index_arrays(e);
	return true;
}

static int64_t larger_size(int64_t had, int64_t wanted)
{
	return wanted <= had ? had : wanted > 2 * had ? wanted : 2 * had;
}

bool serve_reserve_rows(struct serve_engine *e, int64_t edges, int64_t inputs, int64_t pairs,
			struct diags *diags)
{
	const int64_t *sizes = e->session.sizes, most = e->limits.step_pairs;
	int64_t had_edges = sizes[IMAGE_EDGES], had_inputs = sizes[IMAGE_INPUTS],
		had_pairs = sizes[IMAGE_PAIRS];
	pairs = pairs < most ? pairs : most;
	if (edges <= had_edges && inputs <= had_inputs && pairs <= had_pairs)
		return true;
	int64_t all = larger_size(had_pairs, pairs);
	set_sizes(e, larger_size(had_edges, edges), larger_size(had_inputs, inputs), all < most ? all : most);
	if (reserve_buffers(e, diags))
		return true;
	set_sizes(e, had_edges, had_inputs, had_pairs);
	return false;
}

/* --- the engine --- */

static bool allocate_parts(struct serve_engine *e)
{
	size_t begins = (SERVE_LEVELS + (size_t)1) * serve_cases(e->image) + 1,
	       slots = e->image->children > 0 ? e->image->children : 0;
	e->case_begins = rt_allocate_zeroed(e->allocator, begins * SERVE_TRAVERSALS * sizeof *e->case_begins);
	e->child = rt_allocate_zeroed(e->allocator, (slots + 1) * sizeof *e->child);
	for (int t = 0; e->case_begins && t < SERVE_TRAVERSALS; t++)
		e->part[t].case_begin = e->case_begins + t * begins;
	e->data = rt_allocate_zeroed(e->allocator, (e->image->buffers + (size_t)1) * sizeof *e->data);
	return e->case_begins && e->child && e->data;
}

static void find_data_buffers(struct serve_engine *e)
{
	for (int i = 0; i < e->image->buffers; i++)
		if (e->image->buffer[i].kind == IMAGE_TOKEN || e->image->buffer[i].kind == IMAGE_VECTOR)
			e->data[e->data_buffers++] = i;
}

/* The arrays of structures are filled from the caller's, so the order needs only the parents of nodes. */
static struct lin_rules rules_of(const struct serve_engine *e)
{
	struct lin_rules rules = rt_rules_of(e->image);
	bool down = false;
	for (int t = 0; t < e->steps.traversals; t++)
		down |= e->steps.traversal[t].down;
	rules.parents |= rules.parent | down;
	rules.edges = rules.places = rules.origins = rules.edge_nodes = rules.parent = false;
	rules.unlinked = true;
	return rules;
}

enum { FIRST_EDGES = 1024, FIRST_INPUTS = 64 };

static bool init_engine(struct serve_engine *e, struct diags *diags)
{
	if (!serve_find_traversals(e->image, &e->steps, diags) ||
	    !rt_session_init(&e->session, e->allocator, e->image, diags) || !serve_forest_init(e, diags))
		return false;
	e->rules = rules_of(e);
	e->has_members =
	    rt_has_buffer(e->image, IMAGE_MEMBER_BEGIN) || rt_has_buffer(e->image, IMAGE_MEMBER_LIST);
	if (!serve_rows_init(&e->pool, e->allocator, e->limits.rows) || !allocate_parts(e))
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for %lld rows", (long long)e->limits.rows);
	find_data_buffers(e);
	int64_t most = e->limits.rows;
	return serve_reserve_rows(e, FIRST_EDGES, FIRST_INPUTS, 0, diags) &&
	       rt_need_all_code(e->image, most, e->session.walk_state.rows, diags);
}

struct serve_engine *serve_create(const struct allocator *a, const struct image *image,
				  struct serve_limits limits, struct diags *diags)
{
	struct serve_engine *e = rt_allocate_zeroed(a, sizeof *e);
	if (!e) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory to serve requests");
		return NULL;
	}
	limits.step_rows =
	    limits.step_rows < 1 || limits.step_rows > limits.rows ? limits.rows : limits.step_rows;
	limits.step_pairs =
	    limits.step_pairs < 1 || limits.step_pairs > INT32_MAX ? INT32_MAX : limits.step_pairs;
	e->allocator = a;
	e->image = image;
	e->limits = limits;
	if (init_engine(e, diags))
		return e;
	serve_free(e);
	return NULL;
}

static void free_request(struct serve_engine *e, struct serve_request *r)
{
	lin_order_free(&r->order);
	rt_free(e->allocator, r->row);
	rt_free(e->allocator, r->uses);
	rt_free(e->allocator, r->result);
	rt_free(e->allocator, r->output_at);
	rt_free(e->allocator, r);
}

static void free_list(struct serve_engine *e, struct serve_list *l)
{
	for (struct serve_request *r; (r = l->first);) {
		serve_remove(l, r);
		free_request(e, r);
	}
}

void serve_free(struct serve_engine *e)
{
	if (!e)
		return;
	free_list(e, &e->in_flight);
	free_list(e, &e->ended);
	free_list(e, &e->spare);
	free_list(e, &e->forest.gathered);
	serve_forest_free(e);
	if (e->session.image)
		rt_session_free(&e->session);
	serve_rows_free(&e->pool);
	rt_free(e->allocator, e->case_begins);
	rt_free(e->allocator, e->child);
	rt_free(e->allocator, e->data);
	rt_free(e->allocator, e->pick);
	rt_free(e->allocator, e);
}

double serve_operations(const struct serve_engine *e)
{
	const struct serve_request *r = e->in_flight.first;
	if (!r)
		return 0;
	/* several levels, perhaps all, of one that is alone */
	return rt_worker_operations(e->image, !r->after ? r->order.nodes : e->width);
}

bool serve_is_busy(const struct serve_engine *e)
{
	return e->in_flight.first || e->forest.gathered.first;
}

struct serve_request *serve_take(struct serve_engine *e)
{
	struct serve_request *r = e->ended.first;
	if (r)
		serve_remove(&e->ended, r);
	return r;
}

struct serve_counts serve_count(const struct serve_engine *e)
{
	return (struct serve_counts){.supersteps = e->supersteps,
				     .nodes = e->nodes,
				     .requests = e->requests,
				     .forests = e->forest.runs,
				     .forest_requests = e->forest.requests,
				     .forest_nodes = e->forest.nodes,
				     .rows = e->pool.used,
				     .most_rows = e->pool.most};
}
