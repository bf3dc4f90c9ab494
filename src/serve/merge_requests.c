/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* One minibatch of several: nodes, edges and inputs follow each other, and with them what they carry. */
#include "serve/engine.h"

#include <string.h>

/* Where the next request begins in the minibatch. */
struct place {
	int64_t node, edge, input;
};

static int64_t count_edges(const struct lin_forest *f)
{
	return f->child_begin[f->nodes] - f->child_begin[0];
}

/* Memory of at least so many bytes, whose content is lost; false when there is none. */
static bool reserve_bytes(const struct serve_engine *e, void **at, size_t *capacity, size_t bytes)
{
	if (bytes <= *capacity)
		return true;
	bytes = bytes > 2 * *capacity ? bytes : 2 * *capacity;
	void *p = rt_allocate(e->allocator, bytes);
	if (!p)
		return false;
	rt_free(e->allocator, *at);
	*at = p;
	*capacity = bytes;
	return true;
}

/* --- structures --- */

/* Copies elements begin .. end - 1, which are ids of `nodes` nodes, as ids behind `first` others; false when one is no id. */
static bool shift_ids(int32_t *to, const int32_t *from, int64_t begin, int64_t end, int64_t nodes, int64_t first)
{
	uint32_t beyond = 0;
	for (int64_t i = begin; i < end; i++) {
		beyond |= (uint32_t)((uint32_t)from[i] >= (uint32_t)nodes);
		to[i - begin] = (int32_t)((uint32_t)from[i] + (uint32_t)first);
	}
	return !beyond;
}

/* Whether inputs begin at the first node, and each behind the one before. */
static bool is_divided(const struct lin_forest *f)
{
	bool is = !f->input_begin || f->input_begin[0] == 0;
	for (int64_t i = 1; f->input_begin && i < f->inputs; i++)
		is &= f->input_begin[i] >= f->input_begin[i - 1] && f->input_begin[i] <= f->nodes;
	return is;
}

/* False where a child or a root is none of the nodes of its request: in the minibatch it would be one of another's. */
static bool copy_structure(const struct lin_forest *to, const struct lin_forest *f, struct place at)
{
	int32_t *begin = (int32_t *)to->child_begin + at.node, *input = (int32_t *)to->input_begin + at.input;
	for (int64_t n = 0; n <= f->nodes; n++)
		begin[n] = (int32_t)(f->child_begin[n] - f->child_begin[0] + at.edge);
	for (int64_t i = 0; i < f->inputs; i++)
		input[i] = (int32_t)(at.node + (f->input_begin ? f->input_begin[i] : 0));
	return is_divided(f) &&
	       shift_ids((int32_t *)to->children + at.edge, f->children, f->child_begin[0], f->child_begin[f->nodes],
			 f->nodes, at.node) &&
	       shift_ids((int32_t *)to->root + at.input, f->root, 0, f->inputs, f->nodes, at.node);
}

/* Counts what is gathered, and gives it arrays. */
static bool reserve_structure(struct serve_engine *e, struct lin_forest *to, struct diags *diags)
{
	struct serve_forest *f = &e->forest;
	int64_t edges = 0;
	for (const struct serve_request *r = f->gathered.first; r; r = r->after) {
		if (!lin_check_sizes(&r->minibatch.forest, NULL, diags))
			return false;
		edges += count_edges(&r->minibatch.forest);
	}
	const int64_t nodes = f->forest.nodes, inputs = f->forest.inputs;
	void *index = f->index;
	bool ok = edges <= INT32_MAX && reserve_bytes(e, &index, &f->index_capacity,
						      (size_t)(nodes + 1 + edges + 2 * inputs) * sizeof(int32_t));
	f->index = index;
	f->edges = edges;
	if (!ok)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "serve fewer requests at a time",
				"no memory for the structures of %lld requests", (long long)inputs);
	int32_t *children = f->index + nodes + 1, *root = children + edges;
	*to = (struct lin_forest){.nodes = nodes,
				  .inputs = inputs,
				  .child_begin = f->index,
				  .children = children,
				  .root = root,
				  .input_begin = root + inputs};
	return true;
}

/* Without the arrays that say where inputs begin, those of one request may be mixed. */
static bool has_mixed_inputs(const struct serve_list *l)
{
	for (const struct serve_request *r = l->first; r; r = r->after)
		if (r->minibatch.forest.inputs > 1 && !r->minibatch.forest.input_begin)
			return true;
	return false;
}

static bool merge_structures(struct serve_engine *e, struct lin_forest *to, struct diags *diags)
{
	struct place at = {0};
	if (!reserve_structure(e, to, diags))
		return false;
	for (const struct serve_request *r = e->forest.gathered.first; r; r = r->after) {
		const struct lin_forest *f = &r->minibatch.forest;
		if (!copy_structure(to, f, at))
			return false;
		at.node += f->nodes;
		at.edge += count_edges(f);
		at.input += f->inputs;
	}
	if (has_mixed_inputs(&e->forest.gathered))
		to->input_begin = NULL;
	return true;
}

/* --- data --- */

static const void *data_of(const struct serve_request *r, int input)
{
	return r->minibatch.data ? r->minibatch.data[input] : NULL;
}

/* All requests have data of an input, or none has: the others of a minibatch would be refused with one that has none. */
static bool merge_data(struct serve_engine *e, int input, struct diags *diags)
{
	struct serve_forest *f = &e->forest;
	const struct image_input *in = &e->image->input[input];
	const size_t bytes = (size_t)(in->token ? 1 : in->elements) * (size_t)dtype_traits_of(in->dtype)->bytes;
	const bool given = data_of(f->gathered.first, input) != NULL;
	if (given && !reserve_bytes(e, &f->data[input], &f->data_capacity[input],
				    (size_t)(in->on_edge ? f->edges : f->forest.nodes) * bytes + 1))
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "serve fewer requests at a time",
				"no memory for '%s'", in->name);
	char *to = f->data[input];
	f->given[input] = given ? to : NULL;
	for (const struct serve_request *r = f->gathered.first; r; r = r->after) {
		const struct lin_forest *of = &r->minibatch.forest;
		const size_t first = in->on_edge ? (size_t)of->child_begin[0] : 0;
		const size_t n = (size_t)(in->on_edge ? count_edges(of) : of->nodes) * bytes;
		if (given != (data_of(r, input) != NULL))
			return false;
		if (given)
			memcpy(to, (const char *)data_of(r, input) + first * bytes, n);
		to = given ? to + n : to;
	}
	return true;
}

bool serve_merge_requests(struct serve_engine *e, struct rt_minibatch *m, struct diags *diags)
{
	struct serve_forest *f = &e->forest;
	*m = (struct rt_minibatch){.data = f->given};
	if (!merge_structures(e, &m->forest, diags))
		return false;
	for (int i = 0; i < e->image->inputs; i++)
		if (!merge_data(e, i, diags))
			return false;
	return true;
}
