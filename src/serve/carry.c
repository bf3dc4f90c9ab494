/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sequences that go on: the states of the last node of a request are carried to the first of the next. */
#include "serve/engine.h"

#include <string.h>

bool serve_can_carry(const struct serve_engine *e, struct diags *diags)
{
	bool can = e->image->children == 1 && e->steps.traversals == 1 && !e->steps.traversal[0].down;
	if (e->has_members)
		return diag_add(
		    diags, DIAG_NO_STREAM, (struct diag_at){0},
		    "submit whole sequences as requests, or read the previous node instead of all",
		    "it reads all nodes of a sequence, of which more may come");
	return can ||
	       diag_add(
		   diags, DIAG_NO_STREAM, (struct diag_at){0},
		   "stream a model of sequences that goes upwards once",
		   "what comes later is needed for what came before, or nodes have other than one child");
}

static size_t row_bytes(const struct image_buffer *b)
{
	return (size_t)b->row_elements * (size_t)dtype_traits_of(b->dtype)->bytes;
}

size_t serve_carry_bytes(const struct image *image)
{
	size_t bytes = 0;
	for (int i = 0; i < image->buffers; i++)
		bytes += image->buffer[i].kind == IMAGE_STATE ? row_bytes(&image->buffer[i]) : 0;
	return bytes;
}

void serve_load_carry(struct serve_engine *e, struct serve_request *r)
{
	int64_t given, row = serve_give_rows(&e->pool, 1, &given);
	const char *from = r->carry->states;
	r->row[r->order.order[0]] = (int32_t)row;
	*(serve_traversal_of(e, r)->flat ? &r->done : &r->level) = 1;
	for (int i = 0; i < e->image->buffers; i++) {
		const struct image_buffer *b = &e->image->buffer[i];
		if (b->kind != IMAGE_STATE)
			continue;
		memcpy((char *)e->session.buffers[i] + (size_t)row * row_bytes(b), from, row_bytes(b));
		from += row_bytes(b);
	}
}

void serve_store_carry(const struct serve_engine *e, const struct serve_request *r)
{
	size_t row = (size_t)r->row[r->minibatch.forest.root[0]];
	char *to = r->carry->states;
	for (int i = 0; i < e->image->buffers; i++) {
		const struct image_buffer *b = &e->image->buffer[i];
		if (b->kind != IMAGE_STATE)
			continue;
		memcpy(to, (const char *)e->session.buffers[i] + row * row_bytes(b), row_bytes(b));
		to += row_bytes(b);
	}
	r->carry->elements += (uint64_t)(r->order.nodes - r->carry->begun);
	r->carry->begun = true;
}
