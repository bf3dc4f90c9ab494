/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Heights.
 *
 * The frontier of a forest is the set of nodes whose children are all known; removing it again and again,
 * from the leaves on, yields the nodes height by height.  So heights are computed first, and nodes are then
 * sorted by them (number.c).  lin_scan has found those of the nodes before `swept`. */
#include "linearize/linearize.h"

#include <string.h>

enum { UNSEEN = -1, OPEN = -2, NONE = -1 };

/* The height of a node whose children have heights. */
static inline int32_t height_of(const struct lin_forest *f, const int32_t *height, int32_t n)
{
	int32_t h = 0;
	for (int32_t i = f->child_begin[n]; i < f->child_begin[n + 1]; i++)
		h = height[f->children[i]] >= h ? height[f->children[i]] + 1 : h;
	return h;
}

/* Counts height h at h + 2, as lin_number reads it. */
static inline void set_height(struct lin_order *o, const struct lin_forest *f, int32_t n)
{
	o->batches = lin_set_height(o->height, o->batch_begin + 2, o->batches, n, height_of(f, o->height, n));
}

/* Finds heights from the last node down to `swept`, as far as children have them by then: forests that are
 * not numbered children first mostly are parents first.  A missing height is the largest number when it is
 * read as unsigned. */
static void sweep_back(struct lin_order *o, const struct lin_forest *f)
{
	const int32_t *child_begin = f->child_begin, *children = f->children;
	int32_t *height = o->height, *count = o->batch_begin + 2, batches = o->batches;
	for (int32_t n = o->nodes - 1; n >= o->swept; n--) {
		uint32_t after = 0;
		for (int32_t i = child_begin[n]; i < child_begin[n + 1]; i++) {
			uint32_t h = height[children[i]];
			after = h >= after ? h + (h != (uint32_t)UNSEEN) : after;
		}
		if (after != (uint32_t)UNSEEN)
			batches = lin_set_height(height, count, batches, n, after);
	}
	o->batches = batches;
}

/* Finds the heights of a node and of all below it, depth first.  The stack, in `order`, has the next edge of
 * each open node; the edge before that leads to the open node above it.  An open child closes a cycle, and is
 * returned; otherwise NONE. */
static int32_t search_below(struct lin_order *o, const struct lin_forest *f, int32_t top)
{
	int32_t *height = o->height, *next = o->order, depth = 0;
	for (int32_t n = top;;) {
		if (height[n] == UNSEEN) {
			height[n] = OPEN;
			next[depth++] = f->child_begin[n];
		} else if (height[n] == OPEN) {
			return n;
		}
		while (n = depth > 1 ? f->children[next[depth - 2] - 1] : top,
		       next[depth - 1] == f->child_begin[n + 1]) {
			set_height(o, f, n);
			if (--depth == 0)
				return NONE;
		}
		n = f->children[next[depth - 1]++];
	}
}

static bool refuse_cycle(struct lin_order *o, const struct lin_forest *f, int32_t n, struct diags *diags)
{
	struct lin_name name = lin_name(f, n, o->order, o->number);
	diag_add(diags, DIAG_CYCLE, name.at, "structures must be trees or acyclic graphs",
		 "%s is its own descendant", name.text);
	return diag_about(diags, name.input, name.node);
}

/* Where ids are parents first one sweep finds all heights; any other order needs a search. */
bool lin_frontier(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	int32_t cycle = NONE;
	memset(o->height + o->swept, UNSEEN, (o->nodes - o->swept) * sizeof *o->height);
	sweep_back(o, f);
	for (int32_t n = o->swept; n < o->nodes && cycle == NONE; n++)
		if (o->height[n] == UNSEEN)
			cycle = search_below(o, f, n);
	return cycle == NONE || refuse_cycle(o, f, cycle, diags);
}
