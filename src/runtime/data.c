/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Data of nodes and edges: checked where the cases read them, then permuted. */
#include "runtime/shared.h"

#include <stdio.h>
#include <string.h>

/* Names a node as the caller counts it. */
static struct lin_name name_node(const struct lin_forest *f, int32_t id)
{
	int64_t low = 0, high = f->input_begin ? f->inputs : 0;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (f->input_begin[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	return lin_name_of(f, high ? low : -1, id);
}

/* The node or edge that a diagnostic is about. */
struct carrier {
	struct lin_name name;
	char text[112];
};

static struct carrier name_carrier(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t edge)
{
	struct carrier c = {.name = name_node(f, id)};
	if (in->on_edge)
		snprintf(c.text, sizeof c.text, "edge %d of %s", edge, c.name.text);
	else
		snprintf(c.text, sizeof c.text, "%s", c.name.text);
	return c;
}

static bool refuse_missing(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t edge,
			   struct diags *diags)
{
	struct carrier c = name_carrier(in, f, id, edge);
	diag_add(diags, DIAG_MISSING_DATA, c.name.at,
		 in->on_edge ? "give every edge a value"
			     : "give the node a value, or read this input in the other case only",
		 "%s carries no '%s'", c.text, in->name);
	return diag_about(diags, c.name.input, c.name.node);
}

static bool refuse_token(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t edge,
			 int32_t token, struct diags *diags)
{
	if (token == -1)
		return refuse_missing(in, f, id, edge, diags);
	struct carrier c = name_carrier(in, f, id, edge);
	diag_add(diags, DIAG_TOKEN_OUT_OF_RANGE, c.name.at,
		 "do the vocabulary and the weights belong together?",
		 "'%s' of %s is %d, but the model has rows 0 .. %lld", in->name, c.text, token,
		 (long long)in->limit - 1);
	return diag_about(diags, c.name.input, c.name.node);
}

/* The range of numbers outside of which no node reads an input. */
static void find_read_range(const struct image_input *in, const struct lin_order *o, int32_t *begin,
			    int32_t *end)
{
	*begin = in->at_leaf ? 0 : o->leaves;
	*end = in->at_inner ? o->nodes : in->at_leaf ? o->leaves : *begin;
}

bool rt_reads(const struct image_input *in, const struct lin_order *o, int32_t n)
{
	if (o->cases)
		return in->cases >> o->case_of[n] & 1;
	return n < o->leaves ? in->at_leaf : in->at_inner;
}

/* Bytes of the value that a node or an edge has of an input that is no token. */
static size_t row_bytes(const struct image_input *in)
{
	return (size_t)in->elements * (size_t)dtype_traits_of(in->dtype)->bytes;
}

/* What no parameter is looked up with may be any number. */
static bool in_range(const struct image_input *in, int32_t token)
{
	return !in->limit || (token >= 0 && token < in->limit);
}

/* Refuses the first element of a row that is beyond the bound of its input. */
static bool refuse_beyond(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t edge,
			  const void *row, struct diags *diags)
{
	char element[64 * IMAGE_MAX_RANK] = "";
	struct carrier c = name_carrier(in, f, id, edge);
	int64_t at = rt_find_beyond(in, row, 1);
	size_t n = 0;
	for (int64_t d = 0, step = in->elements; d < in->rank; d++) {
		step /= in->shape[d];
		n += snprintf(element + n, sizeof element - n, "%s%lld", d ? ", " : "[",
			      (long long)(at / step % in->shape[d]));
	}
	diag_add(diags, DIAG_INPUT_BEYOND_BOUND, c.name.at,
		 "scale or cut off the input before it is run, or declare a larger bound",
		 "'%s%s%s' of %s is %.9g, but the model declares it within %g", in->name, element, n ? "]" : "",
		 c.text, rt_read_element(in, row, at), in->within);
	return diag_about(diags, c.name.input, c.name.node);
}

static bool check_row(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t edge,
		      int64_t row, const void *data, struct diags *diags)
{
	const char *at = (const char *)data + (size_t)row * row_bytes(in);
	return rt_find_beyond(in, at, 1) < 0 || refuse_beyond(in, f, id, edge, at, diags);
}

/* --- data of nodes --- */

/* Numbers that a node of the caller's forest has in the order, one after the other: several where it is a stack (image_stack). */
static int32_t numbers_of_node(const struct lin_order *o, const struct lin_forest *f)
{
	return f->nodes > 0 ? (int32_t)(o->nodes / f->nodes) : 1;
}

/* Whether all of the caller's rows that are read are within the bound of their input. */
static bool check_bounds(const struct image_input *in, const struct lin_order *o, const struct lin_forest *f,
			 int32_t begin, int32_t end, const void *data, struct diags *diags)
{
	int32_t stack = numbers_of_node(o, f);
	bool all = begin == 0 && end == o->nodes && !o->cases;
	if (all && rt_find_beyond(in, data, f->nodes) < 0)
		return true;
	for (int32_t n = begin; n < end; n += stack) {
		int32_t id = o->order[n] / stack;
		if (rt_reads(in, o, n) && !check_row(in, f, id, 0, id, data, diags))
			return false;
	}
	return true;
}

/* Whether all tokens that leaves, or inner nodes, read are within their limit: in the caller's order, in blocks for vectors,
 * as each minibatch is checked. */
static bool are_within_limit(const struct image_input *in, const struct lin_forest *f, const int32_t *token)
{
	enum { BLOCK = 16 };
	const int32_t *begin = f->child_begin;
	uint32_t limit = in->limit > INT32_MAX ? (uint32_t)1 << 31 : (uint32_t)in->limit, wrong = 0;
	uint32_t at_leaf = -(uint32_t)in->at_leaf, at_inner = -(uint32_t)in->at_inner;
	int64_t n = 0;
	for (; n + BLOCK <= f->nodes; n += BLOCK)
		for (int i = 0; i < BLOCK; i++) {
			uint32_t leaf = -(uint32_t)(begin[n + i] == begin[n + i + 1]);
			wrong |= -(uint32_t)((uint32_t)token[n + i] >= limit) & ((leaf & at_leaf) | (~leaf & at_inner));
		}
	for (; n < f->nodes; n++)
		wrong |= -(uint32_t)((uint32_t)token[n] >= limit) & (begin[n] == begin[n + 1] ? at_leaf : at_inner);
	return !wrong;
}

/* Refuses the first token beyond its limit, by the numbers of nodes. */
static bool check_tokens(const struct image_input *in, const struct lin_order *o, const struct lin_forest *f,
			 const int32_t *token, int32_t begin, int32_t end, struct diags *diags)
{
	for (int32_t n = begin; n < end; n++) {
		int32_t t = token[o->order[n]];
		if (!in_range(in, t) && rt_reads(in, o, n))
			return refuse_token(in, f, o->order[n], 0, t, diags);
	}
	return true;
}

static bool check_nodes(const struct image_input *in, const struct lin_order *o, const struct lin_forest *f,
			const void *data, struct diags *diags)
{
	const int32_t *token = in->token ? data : NULL;
	int32_t begin, end;
	find_read_range(in, o, &begin, &end);
	while (begin < end && !rt_reads(in, o, begin))
		begin++;
	if (begin < end && !data)
		return refuse_missing(in, f, o->order[begin], 0, diags);
	if (token && in->limit && !are_within_limit(in, f, token) && !check_tokens(in, o, f, token, begin, end, diags))
		return false;
	return !in->within || begin == end || check_bounds(in, o, f, begin, end, data, diags);
}

/* Reads the caller's rows one after the other, which may be far larger than the caches; what is written is
 * read next. */
static void permute_vectors(const struct image *image, const struct lin_order *o, const char *from,
			    const struct image_buffer *b, void *to)
{
	const struct image_input *in = &image->input[b->which];
	size_t bytes = row_bytes(in) / (size_t)image_stack(image);
	int32_t begin, end;
	find_read_range(in, o, &begin, &end);
	if (o->in_place && rt_is_dense(b) && b->row_elements == image_input_elements(image, b->which)) {
		memcpy(to, from, (size_t)o->nodes * bytes);
		return;
	}
	for (int32_t id = 0; id < o->nodes; id++) {
		int32_t n = o->number[id];
		if (n >= begin && n < end)
			rt_put_row(b, from + (size_t)id * bytes, n, to);
	}
}

static void permute_nodes(const struct image *image, const struct lin_order *o, const void *from,
			  const struct image_buffer *b, void *to)
{
	const struct image_input *in = &image->input[b->which];
	const int32_t *token = from;
	int32_t begin, end;
	find_read_range(in, o, &begin, &end);
	for (int32_t n = 0; in->token && n < o->nodes; n++)
		((int32_t *)to)[n] =
		    n >= begin && n < end && (!o->cases || rt_reads(in, o, n)) ? token[o->order[n]] : 0;
	if (!in->token && from)
		permute_vectors(image, o, from, b, to);
}

/* --- data of edges: the caller's rows are in the order of `children`, kernels count edges node by node in
 * the order's numbers --- */

static bool check_edges(const struct image_input *in, const struct lin_order *o, const struct lin_forest *f,
			const void *data, struct diags *diags)
{
	const int32_t *token = data;
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		int32_t id = o->order[n], first = f->child_begin[id];
		if (!rt_reads(in, o, n))
			continue;
		if (!data)
			return refuse_missing(in, f, id, 0, diags);
		for (int32_t e = first; in->token && e < f->child_begin[id + 1]; e++)
			if (!in_range(in, token[e]))
				return refuse_token(in, f, id, e - first, token[e], diags);
		for (int32_t e = first; in->within && e < f->child_begin[id + 1]; e++)
			if (!check_row(in, f, id, e - first, e, data, diags))
				return false;
	}
	return true;
}

static void permute_edges(const struct image_input *in, const struct lin_order *o, const struct lin_forest *f,
			  const void *from, const struct image_buffer *b, void *to)
{
	const char *vector = from;
	size_t bytes = row_bytes(in);
	int64_t at = 0;
	for (int32_t n = o->leaves; n < o->nodes; n++)
		for (int32_t e = f->child_begin[o->order[n]]; e < f->child_begin[o->order[n] + 1]; e++, at++)
			if (in->token)
				((int32_t *)to)[at] = rt_reads(in, o, n) ? ((const int32_t *)from)[e] : 0;
			else if (rt_reads(in, o, n))
				rt_put_row(b, vector + (size_t)e * bytes, at, to);
}

/* --- data of both --- */

bool rt_check_present(const struct image *image, const struct rt_minibatch *m, int which, struct diags *diags)
{
	return m->forest.nodes <= 0 || (m->data && m->data[which]) ||
	       refuse_missing(&image->input[which], &m->forest, 0, 0, diags);
}

bool rt_check_data(const struct image *image, const struct lin_order *o, const struct rt_minibatch *m,
		   int which, struct diags *diags)
{
	const struct image_input *in = &image->input[which];
	if (!in->at_leaf && !in->at_inner)
		return true;
	return (in->on_edge ? check_edges : check_nodes)(in, o, &m->forest, m->data[which], diags);
}

/* Tokens of leaves are checked: a model that looks up reads them. */
void rt_fill_read_rows(const struct lin_order *o, const int32_t *token, int32_t *row)
{
	int32_t n = 0;
	for (; n < o->leaves; n++)
		row[n] = -1 - token[o->order[n]];
	for (; n < o->nodes; n++)
		row[n] = n;
}

void rt_permute_data(const struct image *image, const struct lin_order *o, const struct rt_minibatch *m,
		     const struct image_buffer *b, void *to)
{
	const struct image_input *in = &image->input[b->which];
	if (in->on_edge)
		permute_edges(in, o, &m->forest, m->data[b->which], b, to);
	else
		permute_nodes(image, o, m->data[b->which], b, to);
}
