/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The arrays of inputs: the roots and nodes of those that end, for their outputs, and of those whose nodes
 * read all nodes of an input, and then which input a row is of, and where its pairs begin.  Nodes of an input
 * are listed by the rows that they have in this superstep, wherever these are. */
#include "serve/engine.h"

/* The part whose rows read all nodes of the inputs of a pick; NULL = they do not. */
static struct serve_part *find_reading_part(struct serve_engine *e, const struct serve_pick *p)
{
	bool reads = serve_traversal_of(e, p->request)->reads_nodes;
	return reads ? &e->part[p->request->traversal] : NULL;
}

/* Lists the nodes of an input; those that are in the part, and read as many nodes, get numbers for their
 * pairs. */
static void fill_members(struct serve_engine *e, const int32_t *node_row, int32_t nodes,
			 struct serve_part *reading)
{
	for (int32_t n = 0; n < nodes; n++) {
		int32_t row = node_row[n];
		serve_set_index(e, IMAGE_MEMBER_LIST, e->next_member++, row);
		if (!reading || row < reading->batch_begin[0] || row >= reading->order.nodes)
			continue;
		serve_set_index(e, IMAGE_INPUT_OF, row, e->next_input);
		serve_set_index(e, IMAGE_FIRST_PAIR, row, reading->pairs);
		reading->pairs += nodes;
	}
}

static void fill_request(struct serve_engine *e, const struct serve_pick *p)
{
	const struct serve_request *r = p->request;
	const struct lin_forest *f = &r->minibatch.forest;
	struct serve_part *reading = find_reading_part(e, p);
	for (int64_t i = 0; i < f->inputs; i++, e->next_input++) {
		int32_t first = f->input_begin ? f->input_begin[i] : 0;
		serve_set_index(e, IMAGE_ROOT, e->next_input, r->row[f->root[i]]);
		serve_set_index(e, IMAGE_MEMBER_BEGIN, e->next_input, e->next_member);
		if (e->has_members)
			fill_members(e, r->row + first, (int32_t)rt_end_of_input(f, i) - first, reading);
		serve_set_index(e, IMAGE_MEMBER_BEGIN, e->next_input + 1, e->next_member);
	}
}

void serve_fill_inputs(struct serve_engine *e)
{
	e->next_input = e->next_member = 0;
	for (size_t i = 0; i < e->picks; i++)
		if (e->pick[i].last)
			fill_request(e, &e->pick[i]);
	e->ending_inputs = e->next_input;
	for (size_t i = 0; i < e->picks; i++)
		if (!e->pick[i].last && find_reading_part(e, &e->pick[i]))
			fill_request(e, &e->pick[i]);
}
