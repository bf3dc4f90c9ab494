/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A forest from structures that arrive one by one. */
#include "linearize/linearize.h"

#include <string.h>

void lin_collect_init(struct lin_collect *c, const struct allocator *allocator)
{
	*c = (struct lin_collect){.allocator = allocator};
}

static void free_array(struct lin_collect *c, struct lin_array *a)
{
	if (a->at)
		c->allocator->resize(c->allocator->context, a->at, a->capacity * sizeof *a->at, 0);
}

void lin_collect_free(struct lin_collect *c)
{
	free_array(c, &c->child_begin);
	free_array(c, &c->children);
	free_array(c, &c->root);
	free_array(c, &c->input_begin);
	if (c->origin)
		c->allocator->resize(c->allocator->context, c->origin, c->origin_capacity * sizeof *c->origin,
				     0);
	lin_collect_init(c, c->allocator);
}

void lin_collect_clear(struct lin_collect *c)
{
	c->nodes = c->edges = c->inputs = c->origins = 0;
}

/* Memory for `n` elements in all; capacities at least double. */
static bool reserve_array(struct lin_collect *c, struct lin_array *a, size_t n)
{
	if (n <= a->capacity)
		return true;
	size_t capacity = n > 2 * a->capacity ? n : 2 * a->capacity;
	int32_t *p =
	    c->allocator->resize(c->allocator->context, a->at, a->capacity * sizeof *p, capacity * sizeof *p);
	if (!p)
		return false;
	*a = (struct lin_array){p, capacity};
	return true;
}

/* Children are checked before they are appended: one outside of its input would become a node of another. */
static bool check_input(long long input, const struct lin_forest *f, struct diags *diags)
{
	struct diag_at at = {0};
	if (f->nodes == 0)
		return diag_add(diags, DIAG_EMPTY_INPUT, at, "an input has at least one node",
				"input %lld has no node", input);
	if (!lin_check_sizes(f, NULL, diags))
		return false;
	for (int32_t n = 0; n < f->nodes; n++)
		for (int32_t i = f->child_begin[n]; i < f->child_begin[n + 1]; i++)
			if (f->children[i] < 0 || f->children[i] >= f->nodes)
				return diag_add(
				    diags, DIAG_DANGLING_CHILD, at,
				    "children are named by their number within the input, from 0",
				    "child %d of node %d of input %lld is node %d, but the input has nodes "
				    "0 to %lld only",
				    i - f->child_begin[n], n, input, f->children[i], (long long)f->nodes - 1);
	if (f->root[0] < 0 || f->root[0] >= f->nodes)
		return diag_add(diags, DIAG_BAD_ROOT, at, "the root is one of the input's own nodes",
				"the root of input %lld is node %d, but the input has %lld nodes", input, f->root[0],
				(long long)f->nodes);
	return true;
}

/* Memory for one edge more than there are, so that a forest without edges has an array of them too. */
static bool reserve_inputs(struct lin_collect *c, int64_t inputs, int64_t nodes, int64_t edges, struct diags *diags)
{
	int64_t all_nodes = c->nodes + nodes, all_edges = c->edges + edges;
	if (all_nodes >= INT32_MAX || all_edges >= INT32_MAX)
		return diag_add(diags, DIAG_TOO_MANY_NODES, (struct diag_at){0}, "run fewer inputs at a time",
				"with input %lld there are %lld nodes and %lld edges; at most %d of each can be numbered",
				(long long)c->inputs, (long long)all_nodes, (long long)all_edges, INT32_MAX - 1);
	if (reserve_array(c, &c->child_begin, all_nodes + 1) &&
	    reserve_array(c, &c->children, all_edges + 1) && reserve_array(c, &c->root, c->inputs + inputs) &&
	    reserve_array(c, &c->input_begin, c->inputs + inputs))
		return true;
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "run fewer inputs at a time",
			"no memory for %lld nodes more", (long long)nodes);
}

static void append_input(struct lin_collect *c, const struct lin_forest *f)
{
	int32_t *begin = c->child_begin.at + c->nodes;
	int32_t first = f->child_begin[0], shift = (int32_t)c->edges - first;
	int64_t edges = f->child_begin[f->nodes] - first;
	for (int64_t n = 0; n <= f->nodes; n++)
		begin[n] = f->child_begin[n] + shift;
	for (int64_t i = 0; i < edges; i++)
		c->children.at[c->edges + i] = f->children[first + i] + (int32_t)c->nodes;
	c->root.at[c->inputs] = (int32_t)(c->nodes + f->root[0]);
	c->input_begin.at[c->inputs] = (int32_t)c->nodes;
	c->nodes += f->nodes;
	c->edges += edges;
	c->inputs++;
}

/* One of several inputs as a forest of its own; `root` receives its root. */
static struct lin_forest pick_input(const struct lin_inputs *in, int64_t i, int32_t *root)
{
	int64_t first = in->input_begin[i], nodes = in->input_begin[i + 1] - first;
	*root = in->root ? in->root[i] : (int32_t)nodes - 1;
	return (struct lin_forest){.nodes = nodes,
				   .inputs = 1,
				   .child_begin = in->child_begin + first,
				   .children = in->children,
				   .root = root};
}

/* Appends inputs of one node each. */
static bool add_single_nodes(struct lin_collect *c, int64_t inputs, struct diags *diags)
{
	if (!reserve_inputs(c, inputs, inputs, 0, diags))
		return false;
	c->child_begin.at[c->nodes] = (int32_t)c->edges;
	for (int64_t i = 0; i < inputs; i++) {
		c->child_begin.at[c->nodes + i + 1] = (int32_t)c->edges;
		c->root.at[c->inputs + i] = c->input_begin.at[c->inputs + i] = (int32_t)(c->nodes + i);
	}
	c->nodes += inputs;
	c->inputs += inputs;
	return true;
}

bool lin_collect_add_many(struct lin_collect *c, const struct lin_inputs *in, struct diags *diags)
{
	if (!in->input_begin)
		return add_single_nodes(c, in->inputs, diags);
	int32_t root, first = in->input_begin[0], end = in->input_begin[in->inputs];
	for (int64_t i = 0; i < in->inputs; i++) {
		struct lin_forest f = pick_input(in, i, &root);
		if (!check_input(c->inputs + i, &f, diags))
			return false;
	}
	if (!in->inputs)
		return true;
	if (!reserve_inputs(c, in->inputs, end - first, in->child_begin[end] - in->child_begin[first], diags))
		return false;
	for (int64_t i = 0; i < in->inputs; i++) {
		struct lin_forest f = pick_input(in, i, &root);
		append_input(c, &f);
	}
	return true;
}

/* A number that is no node of an input that has at most 2^31 - 1. */
static int32_t clamp_root(int64_t root)
{
	return root < 0 ? -1 : root > INT32_MAX ? INT32_MAX : (int32_t)root;
}

bool lin_collect_add_rooted(struct lin_collect *c, int64_t nodes, const int32_t *child_begin,
			    const int32_t *children, int64_t root, struct diags *diags)
{
	int32_t root_id = clamp_root(root);
	struct lin_forest f = {
	    .nodes = nodes, .inputs = 1, .child_begin = child_begin, .children = children, .root = &root_id};
	if (!check_input(c->inputs, &f, diags) ||
	    !reserve_inputs(c, 1, nodes, child_begin[nodes] - child_begin[0], diags))
		return false;
	append_input(c, &f);
	return true;
}

bool lin_collect_add(struct lin_collect *c, int64_t nodes, const int32_t *child_begin,
		     const int32_t *children, struct diags *diags)
{
	return lin_collect_add_rooted(c, nodes, child_begin, children, nodes - 1, diags);
}

/* --- where inputs were read --- */

static bool reserve_origins(struct lin_collect *c, size_t n, struct diags *diags)
{
	if (n <= c->origin_capacity)
		return true;
	size_t capacity = n > 2 * c->origin_capacity ? n : 2 * c->origin_capacity;
	struct lin_origin *p = c->allocator->resize(c->allocator->context, c->origin,
						    c->origin_capacity * sizeof *p, capacity * sizeof *p);
	if (!p)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "run fewer inputs at a time",
				"no memory for the places of %zu inputs", n);
	c->origin = p;
	c->origin_capacity = capacity;
	return true;
}

bool lin_collect_add_read(struct lin_collect *c, int64_t nodes, const int32_t *child_begin,
			  const int32_t *children, int64_t root, const struct lin_origin *origin,
			  struct diags *diags)
{
	if (!reserve_origins(c, c->inputs + 1, diags) ||
	    !lin_collect_add_rooted(c, nodes, child_begin, children, root, diags))
		return false;
	while (c->origins < c->inputs)
		c->origin[c->origins++] = (struct lin_origin){0};
	c->origin[c->inputs - 1] = *origin;
	return true;
}

static void remove_origin(struct lin_collect *c, int64_t input)
{
	if (input >= c->origins)
		return;
	memmove(c->origin + input, c->origin + input + 1, (--c->origins - input) * sizeof *c->origin);
}

void lin_collect_remove(struct lin_collect *c, int64_t input)
{
	int32_t *begin = c->child_begin.at, *first = c->input_begin.at;
	int64_t end = input + 1 < c->inputs ? first[input + 1] : c->nodes;
	int32_t nodes = (int32_t)end - first[input], edges = begin[end] - begin[first[input]];
	for (int64_t e = begin[end]; e < c->edges; e++)
		c->children.at[e - edges] = c->children.at[e] - nodes;
	for (int64_t n = end; n <= c->nodes; n++)
		begin[n - nodes] = begin[n] - edges;
	for (int64_t i = input + 1; i < c->inputs; i++) {
		first[i - 1] = first[i] - nodes;
		c->root.at[i - 1] = c->root.at[i] - nodes;
	}
	c->nodes -= nodes;
	c->edges -= edges;
	c->inputs--;
	remove_origin(c, input);
}

struct lin_forest lin_collect_forest(const struct lin_collect *c)
{
	return (struct lin_forest){.nodes = c->nodes,
				   .inputs = c->inputs,
				   .child_begin = c->child_begin.at,
				   .children = c->children.at,
				   .root = c->root.at,
				   .input_begin = c->input_begin.at,
				   .origin = c->origin,
				   .origins = c->origins};
}
