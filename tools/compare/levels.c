/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Levels of nodes: traversals up run after everything below a node (height), those down after everything
 * above it (depth). */
#include "compare/compare.h"

#include <stdlib.h>

static const size_t unknown = SIZE_MAX;

/* A node on the path from the root, and the slot of its next child. */
struct climb {
	size_t node, slot;
};

static bool allocate_numbers(size_t **to, size_t n)
{
	size_t *grown = realloc(*to, n * sizeof *grown);
	if (grown)
		*to = grown;
	return grown;
}

static bool reserve_levels(struct levels *l, size_t nodes)
{
	if (nodes <= l->capacity)
		return true;
	struct climb *climb = realloc(l->climb, nodes * sizeof *climb);
	if (climb)
		l->climb = climb;
	if (!climb || !allocate_numbers(&l->height, nodes) || !allocate_numbers(&l->depth, nodes) ||
	    !allocate_numbers(&l->order, nodes))
		return complain("no memory for a tree of %zu nodes", nodes);
	l->capacity = nodes;
	return true;
}

/* Computes the heights of a node and of all below it, however nodes are numbered, and appends them to
 * `order` after their children. */
static void find_below(struct levels *l, const esp_forest *f, size_t structure, size_t node, size_t *done)
{
	size_t depth = 0;
	if (l->height[node] != unknown)
		return;
	l->height[node] = 0;
	l->climb[depth++] = (struct climb){node, 0};
	while (depth) {
		struct climb *at = &l->climb[depth - 1];
		int32_t child = esp_forest_child(f, structure, at->node, at->slot);
		if (child < 0) {
			l->order[(*done)++] = at->node;
			depth--;
		} else if (l->height[child] == unknown) {
			l->height[child] = 0;
			l->climb[depth++] = (struct climb){child, 0};
		} else {
			if (l->height[at->node] <= l->height[child])
				l->height[at->node] = l->height[child] + 1;
			at->slot++;
		}
	}
}

/* Computes depths, the longest path from a node without parents, going through parents before their
 * children. */
static void find_depths(struct levels *l, const esp_forest *f, size_t structure, size_t nodes)
{
	int32_t child;
	for (size_t node = 0; node < nodes; node++)
		l->depth[node] = 0;
	for (size_t i = nodes; i-- > 0;)
		for (size_t slot = 0; (child = esp_forest_child(f, structure, l->order[i], slot)) >= 0;
		     slot++)
			if (l->depth[child] <= l->depth[l->order[i]])
				l->depth[child] = l->depth[l->order[i]] + 1;
}

bool levels_find(struct comparison *c, const struct batch *b, size_t structure)
{
	struct levels *l = &c->levels;
	size_t nodes = esp_forest_nodes(b->forest, structure), done = 0;
	if (l->capacity && l->tree == b->first + structure)
		return true;
	if (!reserve_levels(l, nodes))
		return false;
	for (size_t node = 0; node < nodes; node++)
		l->height[node] = unknown;
	for (size_t node = 0; node < nodes; node++)
		find_below(l, b->forest, structure, node, &done);
	find_depths(l, b->forest, structure, nodes);
	l->tree = b->first + structure;
	return true;
}

size_t level_of(const struct comparison *c, const struct quantity *q, size_t node)
{
	return q->down ? c->levels.depth[node] : c->levels.height[node];
}

void levels_free(struct levels *l)
{
	free(l->height);
	free(l->depth);
	free(l->order);
	free(l->climb);
}
