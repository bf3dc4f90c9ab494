/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Heights.
 *
 * The frontier of a forest is the set of nodes whose children are all done.  Run to exhaustion from the
 * leaves it takes the nodes height by height, so heights are computed first and nodes then counted out by
 * them (number.c).  lin_scan has done the most common case: what is here are the nodes from `swept` on. */
#include "linearize/linearize.h"

#include <string.h>

enum { UNSEEN = -1, OPEN = -2, NONE = -1 };

/* The height of a node whose children have theirs. */
static inline int32_t height_of(const struct lin_forest *f, const int32_t *height, int32_t n)
{
	int32_t h = 0;
	for (int32_t i = f->child_begin[n]; i < f->child_begin[n + 1]; i++)
		h = height[f->children[i]] >= h ? height[f->children[i]] + 1 : h;
	return h;
}

/* Counts two places further on than lin_number will want the begins. */
static inline void set_height(struct lin_order *o, const struct lin_forest *f, int32_t n)
{
	o->batches = lin_set_height(o->height, o->batch_begin + 2, o->batches, n, height_of(f, o->height, n));
}

/* Forests that are not numbered children first mostly are parents first: the nodes from the last to `swept`
 * whose children have their heights by then.  Heights that are missing are the largest of all when they are
 * read without a sign. */
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

/* The heights of a node and of all below it, depth first with the stack in `order` and, beside it, each
 * node's next child in `number`.  Open nodes are those on the stack: a child among them closes a cycle, and
 * is returned. */
static int32_t descend(struct lin_order *o, const struct lin_forest *f, int32_t top)
{
	int32_t *height = o->height, *stack = o->order, *next = o->number, depth = 0;
	for (int32_t n = top;;) {
		if (height[n] == UNSEEN) {
			height[n] = OPEN;
			stack[depth] = n;
			next[depth++] = f->child_begin[n];
		} else if (height[n] == OPEN) {
			return n;
		}
		while (n = stack[depth - 1], next[depth - 1] == f->child_begin[n + 1]) {
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

/* Children first was lin_scan's part, parents first is one sweep more, any other order takes a search. */
static bool find_heights(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	int32_t cycle = NONE;
	memset(o->height + o->swept, UNSEEN, (o->nodes - o->swept) * sizeof *o->height);
	sweep_back(o, f);
	for (int32_t n = o->swept; n < o->nodes && cycle == NONE; n++)
		if (o->height[n] == UNSEEN)
			cycle = descend(o, f, n);
	return cycle == NONE || refuse_cycle(o, f, cycle, diags);
}

bool lin_frontier(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	return find_heights(o, f, diags);
}
