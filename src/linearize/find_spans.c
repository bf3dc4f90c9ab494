/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Spans: consecutive levels that are run without a barrier in between.
 *
 * A node of a span whose parent is not in it is a top.  Subtrees of the tops, as far as they are in the span,
 * do not depend on each other.  In post order each of them is a run of the span's nodes that ends with its
 * top; batches keep the post order, so that the nodes of some consecutive tops are one range of each batch,
 * or of each case of it.
 *
 *     rank    of a node, in a post order of the forest; it rises within a batch, or a case of it
 *     cut     a rank that lies between two tops: no edge of the span crosses it
 *     work    the nodes of the span that are below a cut
 *
 * Linearizing finds ranks only.  Cuts are searched for when a span is divided (cut_spans.c).
 *
 * Pairs of children in post order have numbers and links already (fill.c): their ids are ranks.  Where nodes have any
 * number of children and seem to be in post order they are numbered as without spans, and a pass over the levels checks
 * that; in any other order they have ranks by their sizes (descend.c).  Of nodes with so many children each, in any other
 * order, one walk finds ranks, numbers and links.  Time is linear; the C stack is not touched. */
#include "linearize/linearize.h"

#include <string.h>

/* --- lists that are a post order, as it seems: in passes over levels, without a branch on what is a leaf --- */

/* Marks the nodes that have a parent, by id.  True when ids are a post order: the subtree of each child ends where that
 * of the next one begins, the last one's right before the parent. */
static bool find_parents(struct lin_order *o, const struct lin_forest *f, uint8_t *has_parent)
{
	uint32_t *size = (uint32_t *)o->stack, nested = 1;
	for (int32_t n = 0; n < o->nodes; n++)
		size[n] = 1;
	memset(has_parent, 0, o->nodes);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		int32_t id = o->order[n];
		uint32_t last = id - 1;
		for (int32_t i = f->child_begin[id + 1]; i-- > f->child_begin[id];) {
			int32_t c = f->children[i];
			nested &= (uint32_t)c == last;
			last -= size[c];
			has_parent[c] = 1;
		}
		size[id] = id - last;
	}
	return nested;
}

/* Finds the ids in post order: filled from the end, parents before children, the last child first. */
static void find_post_order(struct lin_order *o, const struct lin_forest *f, const uint8_t *has_parent)
{
	int32_t *stack = o->stack + 2 * (int64_t)o->nodes, *post = o->stack + o->nodes, at = o->nodes, depth = 0;
	for (int32_t root = o->nodes - 1; root >= 0; root--) {
		if (!has_parent[root])
			stack[depth++] = root;
		while (depth) {
			int32_t n = stack[--depth];
			post[--at] = n;
			for (int32_t i = f->child_begin[n]; i < f->child_begin[n + 1]; i++)
				stack[depth++] = f->children[i];
		}
	}
}

static int32_t level_of(const struct lin_order *o, int32_t id)
{
	return o->height[id] & (o->batches > LIN_CHILD ? -1 : ~LIN_CHILD);
}

/* Numbers each batch, or each case of it, in post order.  Numbering advances the begin of each to its end. */
static void renumber_nodes(struct lin_order *o)
{
	int32_t *begin = o->cases ? o->case_begin : o->batch_begin, cases = o->cases ? o->cases : 1;
	const int32_t *post = o->stack + o->nodes;
	for (int32_t r = 0; r < o->nodes; r++) {
		int32_t id = post[r], c = o->cases ? o->case_of[o->number[id]] : 0;
		int32_t to = begin[(int64_t)level_of(o, id) * cases + c]++;
		o->number[id] = to;
		o->order[to] = id;
		o->rank[to] = r;
	}
	memmove(begin + 1, begin, (size_t)o->batches * cases * sizeof *begin);
	begin[0] = 0;
}

bool lin_seem_nested(const struct lin_order *o, const struct lin_forest *f)
{
	const int32_t *end = f->child_begin + 1, *children = f->children;
	bool all = !lin_links_spans(o) && o->edges && o->swept == o->nodes;
	for (int32_t n = 0; all && n < o->nodes; n++) {
		int32_t inner = -(end[n] > end[n - 1]);
		all = !(inner & (children[(end[n] - 1) & inner] ^ (n - 1)));
	}
	return all;
}

void lin_find_spans(struct lin_order *o, const struct lin_forest *f)
{
	uint8_t *has_parent = (uint8_t *)(o->stack + 3 * (int64_t)o->nodes);
	if (find_parents(o, f, has_parent)) {
		o->rank = o->order;
		return;
	}
	find_post_order(o, f, has_parent);
	renumber_nodes(o);
}

/* --- any other order: numbers and links in one walk --- */

/* A node that is to be numbered, and where it is below its parent.  Roots have the number behind the last as parent. */
struct visit {
	int32_t id, parent, slot;
};

/* How heights are marked that belong to children. */
struct marks {
	int32_t child, level; /* masks */
};

/* Sweeps of pairs mark children; of other forests they are marked here. */
static struct marks mark_children(struct lin_order *o, const struct lin_forest *f)
{
	if (o->marked)
		return (struct marks){LIN_CHILD, ~LIN_CHILD};
	for (int32_t i = f->child_begin[0]; i < f->child_begin[o->nodes]; i++)
		o->height[f->children[i]] |= INT32_MIN;
	return (struct marks){INT32_MIN, INT32_MAX};
}

/* Whether all nodes of a block are children.  Vectors compute it. */
static inline bool are_children(const int32_t *height, int32_t nodes, int32_t child)
{
	int32_t all = child;
	for (int32_t i = 0; i < nodes; i++)
		all &= height[i];
	return all;
}

/* Puts all roots on the stack, and returns how many they are.  Mostly there are few. */
static int64_t push_roots(const struct lin_order *o, struct visit *stack, int32_t child)
{
	enum { BLOCK = 32 };
	int64_t depth = 0;
	for (int32_t id = 0; id < o->nodes; id++) {
		while (o->nodes - id > BLOCK && are_children(o->height + id, BLOCK, child))
			id += BLOCK;
		if (!(o->height[id] & child))
			stack[depth++] = (struct visit){id, o->nodes, 0};
	}
	return depth;
}

/* Local copies of an order, which stay in registers. */
struct walk {
	struct lin_order *o;
	int32_t *end; /* of each batch, or case of one: one more than the last number that is free */
	int32_t *number, *order, *rank;
	int32_t *place, *parent;
	const int32_t *case_of;
	int32_t cases, slots;
	bool far;
};

/* Asks for the elements of an array that a batch writes some nodes before this one: two cache lines back. */
static inline void prefetch_back(const void *array, int64_t to, size_t size)
{
	enum { BACK = 32 };
	__builtin_prefetch((const char *)((uintptr_t)array + (to - BACK) * size), 1);
}

static inline __attribute__((always_inline)) int32_t take_number(const struct walk *w, int32_t id, int32_t level)
{
	int32_t to = --w->end[w->case_of ? (int64_t)level * w->cases + w->case_of[id] : level];
	if (w->far) {
		prefetch_back(w->order, to, sizeof *w->order);
		prefetch_back(w->rank, to, sizeof *w->rank);
		for (int32_t slot = 0; slot < w->slots; slot++)
			prefetch_back(lin_child(w->o, slot), to, sizeof *w->order);
	}
	return to;
}

/* Tells the parent of a node its number, and the node its place and parent.  Roots become children of the element
 * behind the last node. */
static inline __attribute__((always_inline)) void link_node(const struct walk *w, const struct visit *v, int32_t to)
{
	struct lin_order *o = w->o;
	bool root = v->parent == o->nodes;
	lin_child(o, v->slot)[v->parent] = to;
	if (w->place)
		w->place[to] = root ? -1 : w->slots * (v->parent - o->leaves) + v->slot;
	if (w->parent)
		w->parent[to] = root ? -1 : v->parent;
}

/* Numbers the nodes in post order, from the last to the first: parents before children, the last child first.  The
 * parent of a node is then known, so its link and its place are written at once.  A number is written over
 * the height.  There is a branch on what is a leaf: the processor guesses on while it waits for heights, and without
 * the branch each node would wait for the one before.  Returns whether ids are a post order. */
static inline __attribute__((always_inline)) bool walk_back(struct lin_order *o, const struct lin_forest *f,
							    struct marks marks, int32_t slots, bool plain, bool far)
{
	struct walk w = {.o = o,
			 .end = (o->cases ? o->case_begin : o->batch_begin) + 2,
			 .number = o->height,
			 .order = o->order,
			 .rank = o->rank,
			 .place = plain ? NULL : o->place,
			 .parent = plain ? NULL : o->parent,
			 .case_of = plain ? NULL : o->case_of,
			 .cases = o->cases,
			 .slots = slots,
			 .far = far};
	const int32_t *child_begin = f->child_begin, *children = f->children;
	struct visit *stack = (struct visit *)o->stack + 1; /* its bottom is what is left after the last node */
	stack[-1] = (struct visit){0};
	int64_t depth = push_roots(o, stack, marks.child);
	struct visit v = stack[--depth];
	int32_t moved = 0, leaves = w.end[0];
	for (int32_t r = o->nodes; r-- > 0;) {
		int32_t level = w.number[v.id] & marks.level;
		int32_t to = level || w.case_of ? take_number(&w, v.id, level) : --leaves;
		w.number[v.id] = to;
		w.order[to] = v.id;
		w.rank[to] = r;
		moved |= v.id ^ r;
		link_node(&w, &v, to);
		if (level) {
			int32_t begin = child_begin[v.id], last = slots - 1;
			for (int32_t k = 0; k < last; k++)
				stack[depth++] = (struct visit){children[begin + k], to, k};
			v = (struct visit){children[begin + last], to, last};
		} else {
			v = stack[--depth];
		}
	}
	if (!w.case_of)
		w.end[0] = leaves; /* none is left */
	return !moved;
}

/* The walk is inlined for the commonest rules, near and far, and for all others. */
static bool number_subtrees(struct lin_order *o, const struct lin_forest *f)
{
	struct marks marks = mark_children(o, f);
	int32_t slots = o->slots;
	bool plain = slots == 2 && !o->cases && !o->place && !o->parent, far = lin_are_far(o);
	if (plain && far)
		return walk_back(o, f, marks, 2, true, true);
	if (plain)
		return walk_back(o, f, marks, 2, true, false);
	return walk_back(o, f, marks, slots, false, far);
}

void lin_number_spans(struct lin_order *o, const struct lin_forest *f)
{
	int32_t *begin = o->cases ? o->case_begin : o->batch_begin, cases = o->cases ? o->cases : 1;
	int64_t keys = (int64_t)o->batches * cases;
	if (!o->nodes)
		return;
	begin[keys + 1] = o->nodes;
	if (lin_links_spans(o) ? number_subtrees(o, f) : lin_number_descended(o))
		o->rank = o->order;
	memmove(begin, begin + 2, (size_t)keys * sizeof *begin);
	begin[keys] = o->nodes;
	if (!lin_links_spans(o))
		return;
	o->number = o->height;
	for (int32_t slot = 0; slot < o->slots; slot++)
		memset(lin_child(o, slot), -1, o->leaves * sizeof *o->child);
	if (o->place)
		lin_end_places(o);
}
