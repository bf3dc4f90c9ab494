/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The arrays that kernels read at the rows of a superstep: where the rows of children and parents are, and
 * what nodes and edges carry.  All but what nodes keep is filled anew in every superstep; rows and edges of a
 * part are consecutive. */
#include "serve/engine.h"

#include <string.h>

/* Consecutive rows that nodes of one case and one level of a request have been given. */
struct rows {
	struct serve_request *request;
	int32_t begin, end; /* numbers of the nodes */
	int32_t row;	    /* of the first one */
	int32_t origin;
};

static int32_t id_of(const struct rows *rows, int32_t n)
{
	return rows->request->order.order[rows->begin + n];
}

static int32_t count_of(const struct rows *rows)
{
	return rows->end - rows->begin;
}

static void fill_slot(const struct rows *rows, int slot, int32_t *child)
{
	const struct serve_request *r = rows->request;
	const struct lin_forest *f = &r->minibatch.forest;
	for (int32_t n = 0; n < count_of(rows); n++) {
		const int32_t *begin = f->child_begin + id_of(rows, n);
		child[rows->row + n] = begin[0] < begin[1] ? r->row[f->children[begin[0] + slot]] : -1;
	}
}

static void fill_edges(struct serve_engine *e, const struct rows *rows)
{
	const struct serve_request *r = rows->request;
	const struct lin_forest *f = &r->minibatch.forest;
	serve_set_index(e, IMAGE_CHILD_BEGIN, rows->row, e->next_edge);
	for (int32_t n = 0; n < count_of(rows); n++) {
		const int32_t *begin = f->child_begin + id_of(rows, n);
		for (int32_t i = begin[0]; i < begin[1]; i++, e->next_edge++) {
			serve_set_index(e, IMAGE_CHILD_LIST, e->next_edge, r->row[f->children[i]]);
			serve_set_index(e, IMAGE_EDGE_NODE, e->next_edge, rows->row + n);
		}
		serve_set_index(e, IMAGE_CHILD_BEGIN, rows->row + n + 1, e->next_edge);
	}
}

static void fill_parents(struct serve_engine *e, const struct rows *rows)
{
	const struct serve_request *r = rows->request;
	const struct lin_order *o = &r->order;
	serve_set_index(e, IMAGE_PARENT_BEGIN, rows->row, e->next_parent);
	for (int32_t n = 0; n < count_of(rows); n++) {
		int32_t first = o->parent_begin[rows->begin + n], end = o->parent_begin[rows->begin + n + 1];
		serve_set_index(e, IMAGE_PARENT, rows->row + n,
				first < end ? r->row[o->order[o->parent_list[first]]] : -1);
		for (int32_t i = first; i < end; i++)
			serve_set_index(e, IMAGE_PARENT_LIST, e->next_parent++,
					r->row[o->order[o->parent_list[i]]]);
		serve_set_index(e, IMAGE_PARENT_BEGIN, rows->row + n + 1, e->next_parent);
	}
}

/* --- data --- */

static size_t row_bytes(const struct image_input *in)
{
	return (size_t)in->elements * (size_t)dtype_traits_of(in->dtype)->bytes;
}

/* The data of an input, NULL = the caller gave none. */
static const void *data_of(const struct rows *rows, int input)
{
	const struct rt_minibatch *m = &rows->request->minibatch;
	return m->data ? m->data[input] : NULL;
}

/* Nodes of one case are all read, or none. */
static bool are_read(const struct rows *rows, const struct image_input *in, const void *data)
{
	return data && rt_reads(in, &rows->request->order, rows->begin);
}

/* Unread tokens become 0. */
static void fill_tokens(const struct rows *rows, const struct image_input *in, const int32_t *from, int32_t *to)
{
	bool read = are_read(rows, in, from);
	for (int32_t n = 0; n < count_of(rows); n++)
		to[rows->row + n] = read ? from[id_of(rows, n)] : 0;
}

static void fill_vectors(const struct rows *rows, const struct image_input *in, const char *from,
			 const struct image_buffer *b, void *to)
{
	for (int32_t n = 0; are_read(rows, in, from) && n < count_of(rows); n++)
		rt_put_row(b, from + (size_t)id_of(rows, n) * row_bytes(in), rows->row + n, to);
}

/* Copies the values of edges, the first of which has the number `edge` in this superstep. */
static void fill_edge_values(const struct rows *rows, const struct image_input *in, const void *from,
			     const struct image_buffer *b, int64_t edge, void *to)
{
	const int32_t *child_begin = rows->request->minibatch.forest.child_begin;
	bool read = are_read(rows, in, from);
	for (int32_t n = 0; n < count_of(rows); n++) {
		const int32_t *begin = child_begin + id_of(rows, n);
		for (int32_t i = begin[0]; i < begin[1]; i++, edge++)
			if (in->token)
				((int32_t *)to)[edge] = read ? ((const int32_t *)from)[i] : 0;
			else if (read)
				rt_put_row(b, (const char *)from + (size_t)i * row_bytes(in), edge, to);
	}
}

static void fill_data(struct serve_engine *e, const struct rows *rows, int buffer, int64_t edge)
{
	const struct image_buffer *b = &e->image->buffer[buffer];
	const struct image_input *in = &e->image->input[b->which];
	const void *from = data_of(rows, b->which);
	void *to = e->session.buffers[buffer];
	if (in->on_edge)
		fill_edge_values(rows, in, from, b, edge, to);
	else if (in->token)
		fill_tokens(rows, in, from, to);
	else
		fill_vectors(rows, in, from, b, to);
}

/* --- what nodes keep --- */

/* Whether a buffer has a row for each node that the request's traversal, or a later one, may read and an earlier one
 * has written.  A stream carries all states. */
static bool is_kept(const struct serve_engine *e, const struct image_buffer *b, const struct serve_request *r)
{
	int first = serve_traversal_of(e, r)->first;
	bool scratch = b->kind == IMAGE_SCRATCH && !b->at_binding && b->rows == IMAGE_NODES;
	bool state = b->kind == IMAGE_STATE;
	return (state && r->carry) || ((state || scratch) && b->first_access < first && b->last_access >= first);
}

/* Copies the rows that nodes have to those from `row` on. */
static void copy_kept(const struct serve_engine *e, const struct serve_request *r, int buffer, int32_t begin, int32_t end,
		      int32_t row)
{
	const struct image_buffer *b = &e->image->buffer[buffer];
	const size_t bytes = (size_t)b->row_elements * (size_t)dtype_traits_of(b->dtype)->bytes;
	char *at = e->session.buffers[buffer];
	for (int32_t n = begin; n < end; n++) {
		int32_t from = r->row[r->order.order[n]];
		if (from >= 0)
			memcpy(at + (size_t)(row + n - begin) * bytes, at + (size_t)from * bytes, bytes);
	}
}

/* --- rows --- */

/* In a later traversal nodes have other rows, as those of a superstep have a range. */
static void place_nodes(struct serve_engine *e, struct serve_request *r, int32_t begin, int32_t end, int32_t row)
{
	for (int i = 0; i < e->image->buffers; i++)
		if (is_kept(e, &e->image->buffer[i], r))
			copy_kept(e, r, i, begin, end, row);
	for (int32_t n = begin; n < end; n++) {
		int32_t *at = &r->row[r->order.order[n]];
		if (*at >= 0)
			serve_return_row(&e->pool, *at);
		*at = row + n - begin;
	}
}

/* The nodes whose rows these refer to have theirs. */
static void fill_rows(struct serve_engine *e, const struct rows *rows)
{
	const struct lin_order *o = &rows->request->order;
	int64_t edge = e->next_edge;
	for (int slot = 0; slot < e->image->children; slot++)
		if (e->child[slot])
			fill_slot(rows, slot, e->child[slot]);
	fill_edges(e, rows);
	if (o->parent_begin)
		fill_parents(e, rows);
	for (int32_t n = 0; n < count_of(rows); n++) {
		serve_set_index(e, IMAGE_ORIGIN, rows->row + n, rows->origin);
		if (o->case_of)
			serve_set_index(e, IMAGE_CASE, rows->row + n, o->case_of[rows->begin + n]);
	}
	for (int i = 0; i < e->data_buffers; i++)
		fill_data(e, rows, e->data[i], edge);
}

/* Some nodes of a flat traversal.  Each level has rows of its own, which need not be read by others. */
static void fill_levels(struct serve_engine *e, const struct serve_pick *pick, int32_t row)
{
	const int32_t *batch = pick->request->order.batch_begin;
	int cases = serve_cases(e->image);
	place_nodes(e, pick->request, pick->begin, pick->end, row);
	for (int32_t b = pick->batch; b < pick->batch + pick->batches; b++) {
		struct serve_pick level = {pick->request, b, 1, batch[b], batch[b + 1], false};
		level.begin = level.begin > pick->begin ? level.begin : pick->begin;
		level.end = level.end < pick->end ? level.end : pick->end;
		struct rows rows = {.request = pick->request, .row = row, .origin = row};
		for (int c = 0; level.begin < level.end && c < cases; c++, rows.row += count_of(&rows)) {
			serve_case_range(&level, cases, c, &rows.begin, &rows.end);
			if (rows.begin < rows.end)
				fill_rows(e, &rows);
		}
		row = rows.row;
	}
}

/* The picks of a flat traversal, one behind the other. */
static void fill_flat(struct serve_engine *e, const struct serve_part *p)
{
	int32_t row = p->batch_begin[0];
	for (size_t i = p->first; i < p->next; row += e->pick[i].end - e->pick[i].begin, i++)
		fill_levels(e, &e->pick[i], row);
}

/* Calls a function for the rows of a part in their order: batch by batch, and in each by cases in the order of the
 * table. */
static void visit_rows(struct serve_engine *e, int traversal, void (*visit)(struct serve_engine *, const struct rows *))
{
	const struct serve_part *p = &e->part[traversal];
	bool down = e->steps.traversal[traversal].down;
	int cases = serve_cases(e->image);
	int32_t row = p->batch_begin[0];
	for (int32_t b = 0; b < p->order.batches; b++)
		for (int c = 0; c < cases; c++) {
			bool inner = serve_is_inner(e->image, c);
			for (size_t i = p->first; i < p->next && serve_batch_has(down, inner, b); i++) {
				struct serve_pick level = serve_level_of(&e->pick[i], p, down, inner, b);
				struct rows rows = {
				    .request = level.request, .row = row, .origin = p->batch_begin[b]};
				serve_case_range(&level, cases, c, &rows.begin, &rows.end);
				row += count_of(&rows);
				if (rows.begin < rows.end)
					visit(e, &rows);
			}
		}
}

static void place_rows(struct serve_engine *e, const struct rows *rows)
{
	place_nodes(e, rows->request, rows->begin, rows->end, rows->row);
}

static void place_and_fill(struct serve_engine *e, const struct rows *rows)
{
	place_rows(e, rows);
	fill_rows(e, rows);
}

/* A node may be read by one of another level of the same superstep, so that all have rows before any is filled. */
static void fill_cells(struct serve_engine *e, int traversal)
{
	bool several = e->part[traversal].levels > 1;
	if (several)
		visit_rows(e, traversal, place_rows);
	visit_rows(e, traversal, several ? fill_rows : place_and_fill);
}

void serve_fill_part(struct serve_engine *e, int traversal)
{
	if (e->steps.traversal[traversal].flat)
		fill_flat(e, &e->part[traversal]);
	else
		fill_cells(e, traversal);
}
