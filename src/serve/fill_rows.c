/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The arrays that kernels read at the rows of a superstep: where the rows of children and parents are, and
 * what nodes and edges carry.  All but what nodes keep is filled anew in every superstep; rows and edges of a
 * part are consecutive. */
#include "serve/engine.h"

#include <string.h>

static void set_index(struct serve_engine *e, enum image_buffer_kind kind, int64_t at, int64_t value)
{
	if (e->index[kind])
		e->index[kind][at] = (int32_t)value;
}

static void fill_children(struct serve_engine *e, const struct serve_request *r, int32_t id, int32_t row)
{
	const struct lin_forest *f = &r->minibatch.forest;
	int32_t first = f->child_begin[id], end = f->child_begin[id + 1];
	set_index(e, IMAGE_CHILD_BEGIN, row, e->next_edge);
	for (int slot = 0; slot < e->image->children; slot++)
		if (e->child[slot])
			e->child[slot][row] = first < end ? r->row[f->children[first + slot]] : -1;
	for (int32_t i = first; i < end; i++, e->next_edge++) {
		set_index(e, IMAGE_CHILD_LIST, e->next_edge, r->row[f->children[i]]);
		set_index(e, IMAGE_EDGE_NODE, e->next_edge, row);
	}
	set_index(e, IMAGE_CHILD_BEGIN, row + 1, e->next_edge);
}

static void fill_parents(struct serve_engine *e, const struct serve_request *r, int32_t number, int32_t row)
{
	const struct lin_order *o = &r->order;
	int32_t first = o->parent_begin[number], end = o->parent_begin[number + 1];
	set_index(e, IMAGE_PARENT, row, first < end ? r->row[o->order[o->parent_list[first]]] : -1);
	set_index(e, IMAGE_PARENT_BEGIN, row, e->next_parent);
	for (int32_t i = first; i < end; i++)
		set_index(e, IMAGE_PARENT_LIST, e->next_parent++, r->row[o->order[o->parent_list[i]]]);
	set_index(e, IMAGE_PARENT_BEGIN, row + 1, e->next_parent);
}

/* --- data --- */

static size_t row_bytes(const struct image_input *in)
{
	return (size_t)in->elements * (size_t)dtype_traits_of(in->dtype)->bytes;
}

/* Copies the value of a node, or of an edge, by its place in the caller's array.  Unread tokens become 0. */
static void put_value(const struct image_buffer *b, const struct image_input *in, const void *from,
		      int64_t which, bool read, int64_t row, void *to)
{
	if (in->token)
		((int32_t *)to)[row] = read ? ((const int32_t *)from)[which] : 0;
	else if (read)
		rt_put_row(b, (const char *)from + (size_t)which * row_bytes(in), row, to);
}

static void fill_data(struct serve_engine *e, const struct serve_request *r, int buffer, int32_t number,
		      int32_t row, int64_t edge)
{
	const struct image_buffer *b = &e->image->buffer[buffer];
	const struct image_input *in = &e->image->input[b->which];
	const int32_t *begin = r->minibatch.forest.child_begin;
	int32_t id = r->order.order[number];
	bool read = rt_reads(in, &r->order, number) && r->minibatch.data[b->which];
	const void *from = r->minibatch.data ? r->minibatch.data[b->which] : NULL;
	void *to = e->session.buffers[buffer];
	if (!in->on_edge)
		put_value(b, in, from, id, read, row, to);
	for (int32_t i = begin[id]; in->on_edge && i < begin[id + 1]; i++)
		put_value(b, in, from, i, read, edge++, to);
}

/* --- what nodes keep --- */

/* Whether a buffer has a row for each node that a traversal may read and an earlier one has written. */
static bool is_kept(const struct serve_engine *e, const struct image_buffer *b, int traversal)
{
	int first = e->steps.traversal[traversal].first;
	return b->kind == IMAGE_STATE || (b->kind == IMAGE_SCRATCH && !b->at_binding &&
					  b->rows == IMAGE_NODES && b->first < first && b->last >= first);
}

/* In a later traversal a node has another row, as the nodes of a superstep have a range. */
static void move_row(struct serve_engine *e, int traversal, int32_t from, int32_t to)
{
	for (int i = 0; i < e->image->buffers; i++) {
		const struct image_buffer *b = &e->image->buffer[i];
		size_t bytes = (size_t)b->row_elements * (size_t)dtype_traits_of(b->dtype)->bytes;
		char *at = e->session.buffers[i];
		if (is_kept(e, b, traversal))
			memcpy(at + to * bytes, at + from * bytes, bytes);
	}
	serve_return_row(&e->pool, from);
}

/* --- rows --- */

static void place_node(struct serve_engine *e, struct serve_request *r, int32_t number, int32_t row)
{
	int32_t id = r->order.order[number];
	if (r->row[id] >= 0)
		move_row(e, r->traversal, r->row[id], row);
	r->row[id] = row;
}

/* The nodes whose rows it refers to have theirs. */
static void fill_row(struct serve_engine *e, const struct serve_request *r, int32_t number, int32_t row,
		     int32_t origin)
{
	int32_t id = r->order.order[number];
	int64_t edge = e->next_edge;
	fill_children(e, r, id, row);
	if (r->order.parent_begin)
		fill_parents(e, r, number, row);
	set_index(e, IMAGE_ORIGIN, row, origin);
	if (r->order.case_of)
		set_index(e, IMAGE_CASE, row, r->order.case_of[number]);
	for (int i = 0; i < e->image->buffers; i++)
		if (e->image->buffer[i].kind == IMAGE_TOKEN || e->image->buffer[i].kind == IMAGE_VECTOR)
			fill_data(e, r, i, number, row, edge);
}

/* Several levels of a request have the rows of its order, so that a node may be read by one of the same
 * superstep: all have rows before any is filled. */
static void fill_levels(struct serve_engine *e, const struct serve_part *p)
{
	const struct serve_pick *pick = &e->pick[p->first];
	struct serve_request *r = pick->request;
	int32_t shift = p->batch_begin[0] - pick->begin, b = pick->batch;
	for (int32_t n = pick->begin; n < pick->end; n++)
		place_node(e, r, n, n + shift);
	for (int32_t n = pick->begin; n < pick->end; n++) {
		while (n >= r->order.batch_begin[b + 1])
			b++;
		fill_row(e, r, n, n + shift, r->order.batch_begin[b] + shift);
	}
}

/* Cells of several requests: leaves, then cases in the order of the table. */
static void fill_cells(struct serve_engine *e, int traversal)
{
	const struct serve_part *p = &e->part[traversal];
	int cases = serve_cases(e->image);
	int32_t row = p->batch_begin[0];
	for (int c = 0; c < cases; c++)
		for (size_t i = p->first; i < p->next; i++) {
			int32_t begin, end,
			    origin = p->batch_begin[!e->steps.traversal[traversal].down &&
						    serve_is_inner(e->image, c)];
			serve_case_range(&e->pick[i], cases, c, &begin, &end);
			for (int32_t n = begin; n < end; n++, row++) {
				place_node(e, e->pick[i].request, n, row);
				fill_row(e, e->pick[i].request, n, row, origin);
			}
		}
}

void serve_fill_part(struct serve_engine *e, int traversal)
{
	const struct serve_part *p = &e->part[traversal];
	if (e->pick[p->first].batches > 1)
		fill_levels(e, p);
	else
		fill_cells(e, traversal);
}

void serve_fill_inputs(struct serve_engine *e, const struct serve_request *r)
{
	const struct lin_forest *f = &r->minibatch.forest;
	for (int64_t i = 0; i < f->inputs; i++, e->next_input++) {
		int32_t first = f->input_begin ? f->input_begin[i] : 0;
		int32_t end = f->input_begin && i + 1 < f->inputs ? f->input_begin[i + 1] : (int32_t)f->nodes;
		set_index(e, IMAGE_ROOT, e->next_input, r->row[f->root[i]]);
		set_index(e, IMAGE_MEMBER_BEGIN, e->next_input, e->next_member);
		for (int32_t id = first; e->has_members && id < end; id++)
			set_index(e, IMAGE_MEMBER_LIST, e->next_member++, r->row[id]);
		set_index(e, IMAGE_MEMBER_BEGIN, e->next_input + 1, e->next_member);
	}
}
