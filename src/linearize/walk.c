/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "linearize/walk.h"

#include <string.h>

enum { FIRST = 64, UNVISITED = -1, OPEN = -2 };

/* A node that was found. */
struct lin_seen {
	const void *node;
	int32_t begin, end; /* of its children in `edge` */
	int32_t next;	    /* the child to be visited */
	int32_t number;	    /* UNVISITED, then OPEN while its children are visited, then its number */
};

/* One walk. */
struct walk {
	struct lin_walk *w;
	const struct lin_links *links;
	int64_t input;
	struct diags *diags;
};

void lin_walk_init(struct lin_walk *w, const struct allocator *allocator)
{
	*w = (struct lin_walk){.allocator = allocator};
}

static void free_array(struct lin_walk *w, struct lin_array *a)
{
	if (a->at)
		w->allocator->resize(w->allocator->context, a->at, a->capacity * sizeof *a->at, 0);
}

void lin_walk_free(struct lin_walk *w)
{
	free_array(w, &w->edge);
	free_array(w, &w->stack);
	free_array(w, &w->order);
	free_array(w, &w->table);
	free_array(w, &w->begin);
	free_array(w, &w->list);
	if (w->seen)
		w->allocator->resize(w->allocator->context, w->seen, w->seen_capacity * sizeof *w->seen, 0);
	lin_walk_init(w, w->allocator);
}

/* --- memory: capacities double, content is kept --- */

static bool grow_memory(struct walk *x, void **at, size_t *capacity, size_t wanted, size_t size)
{
	const struct allocator *a = x->w->allocator;
	size_t n = wanted > 2 * *capacity ? wanted : 2 * *capacity, least = FIRST;
	n = n > least ? n : least;
	void *p = a->resize(a->context, *at, *capacity * size, n * size);
	if (!p)
		return diag_add(x->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0},
				"run fewer inputs at a time", "no memory to walk through input %lld",
				(long long)x->input);
	*at = p;
	*capacity = n;
	return true;
}

static bool reserve_array(struct walk *x, struct lin_array *a, size_t wanted)
{
	void *at = a->at;
	if (wanted <= a->capacity)
		return true;
	if (!grow_memory(x, &at, &a->capacity, wanted, sizeof *a->at))
		return false;
	a->at = at;
	return true;
}

static bool reserve_seen(struct walk *x, size_t wanted)
{
	void *at = x->w->seen;
	if (wanted <= x->w->seen_capacity)
		return true;
	if (!grow_memory(x, &at, &x->w->seen_capacity, wanted, sizeof *x->w->seen))
		return false;
	x->w->seen = at;
	return true;
}

/* --- nodes by identity --- */

/* The node's slot in the table, or the free one where it belongs. */
static int32_t *slot_of(const struct lin_walk *w, const void *node)
{
	uint64_t hash = (uint64_t)(uintptr_t)node * 0x9E3779B97F4A7C15u;
	for (size_t i = hash >> 32;; i++) {
		int32_t *slot = &w->table.at[i & (w->slots - 1)];
		if (*slot < 0 || w->seen[*slot].node == node)
			return slot;
	}
}

/* The table begins small, whatever its capacity, so that a small structure after a large one is cheap. */
static bool resize_table(struct walk *x, size_t slots)
{
	struct lin_walk *w = x->w;
	if (!reserve_array(x, &w->table, slots))
		return false;
	w->slots = slots;
	memset(w->table.at, -1, slots * sizeof *w->table.at);
	for (int32_t i = 0; i < w->nodes; i++)
		*slot_of(w, w->seen[i].node) = i;
	return true;
}

static bool refuse_too_many(const struct walk *x, const char *what)
{
	return diag_add(x->diags, DIAG_TOO_MANY_NODES, (struct diag_at){0},
			"at most 2147483646 can be numbered", "input %lld has more %s than can be numbered",
			(long long)x->input, what);
}

/* Adds a node unless it was found before; returns its index, or -1 after a diagnostic. */
static int32_t find_node(struct walk *x, const void *node)
{
	struct lin_walk *w = x->w;
	if (2 * ((size_t)w->nodes + 1) > w->slots && !resize_table(x, w->slots ? 2 * w->slots : FIRST))
		return -1;
	int32_t *slot = slot_of(w, node);
	if (*slot >= 0)
		return *slot;
	if (w->nodes == INT32_MAX - 1) {
		refuse_too_many(x, "nodes");
		return -1;
	}
	if (!reserve_seen(x, (size_t)w->nodes + 1))
		return -1;
	w->seen[w->nodes] = (struct lin_seen){.node = node, .number = UNVISITED};
	return *slot = w->nodes++;
}

/* --- the walk --- */

/* Finds the children of a node, all before any is entered, since they must be consecutive in `edge`. */
static bool find_children(struct walk *x, int32_t i, size_t n)
{
	struct lin_walk *w = x->w;
	const void *node = w->seen[i].node;
	for (size_t slot = 0; slot < n; slot++) {
		const void *child = x->links->child(x->links->user, node, slot);
		if (!child)
			return diag_add(x->diags, DIAG_DANGLING_CHILD, (struct diag_at){0},
					"a child that is not there is not counted by 'children'",
					"child %zu of a node of input %lld that has %zu children is NULL",
					slot, (long long)x->input, n);
		int32_t index = find_node(x, child);
		if (index < 0 || !reserve_array(x, &w->edge, (size_t)w->edges + 1))
			return false;
		w->edge.at[w->edges++] = index;
	}
	return true;
}

static bool enter_node(struct walk *x, int32_t i, size_t *depth)
{
	struct lin_walk *w = x->w;
	size_t n = x->links->children(x->links->user, w->seen[i].node);
	if (n > (size_t)(INT32_MAX - 1 - w->edges))
		return refuse_too_many(x, "children");
	int32_t begin = w->edges;
	if (!find_children(x, i, n) || !reserve_array(x, &w->stack, *depth + 1))
		return false;
	struct lin_seen *s = &w->seen[i];
	s->begin = s->next = begin;
	s->end = w->edges;
	s->number = OPEN;
	w->stack.at[(*depth)++] = i;
	return true;
}

/* A child that is open closes a cycle, which lin_linearize reports. */
static bool visit_nodes(struct walk *x, const void *root)
{
	struct lin_walk *w = x->w;
	size_t depth = 0;
	int32_t first = find_node(x, root), number = 0;
	if (first < 0 || !enter_node(x, first, &depth))
		return false;
	while (depth) {
		struct lin_seen *s = &w->seen[w->stack.at[depth - 1]];
		if (s->next == s->end) {
			s->number = number++;
			depth--;
			continue;
		}
		int32_t child = w->edge.at[s->next++];
		if (w->seen[child].number == UNVISITED && !enter_node(x, child, &depth))
			return false;
	}
	return true;
}

/* Copies what was found in the order of the numbers. */
static bool copy_nodes(struct walk *x)
{
	struct lin_walk *w = x->w;
	if (!reserve_array(x, &w->order, (size_t)w->nodes) ||
	    !reserve_array(x, &w->begin, (size_t)w->nodes + 1) ||
	    !reserve_array(x, &w->list, (size_t)w->edges))
		return false;
	for (int32_t i = 0; i < w->nodes; i++)
		w->order.at[w->seen[i].number] = i;
	int32_t n = 0;
	for (int32_t number = 0; number < w->nodes; number++) {
		const struct lin_seen *s = &w->seen[w->order.at[number]];
		w->begin.at[number] = n;
		for (int32_t e = s->begin; e < s->end; e++)
			w->list.at[n++] = w->seen[w->edge.at[e]].number;
	}
	w->begin.at[w->nodes] = n;
	w->child_begin = w->begin.at;
	w->children = w->list.at;
	return true;
}

bool lin_walk(struct lin_walk *w, const void *root, const struct lin_links *links, int64_t input,
	      struct diags *diags)
{
	struct walk x = {w, links, input, diags};
	w->nodes = w->edges = 0;
	w->slots = 0;
	if (visit_nodes(&x, root) && copy_nodes(&x))
		return true;
	w->nodes = w->edges = 0;
	return false;
}

const void *lin_walk_node(const struct lin_walk *w, int32_t number)
{
	return w->seen[w->order.at[number]].node;
}
