/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Trees with any number of children whose ids no sweep can follow, such as dependencies in the order of the
 * words: heights, and with spans numbers in a post order.
 *
 * How many children a node has cannot be predicted, so no pass has a loop over them.  First a queue of all
 * nodes is made, tree by tree, in which parents precede their children: LIN_USUAL children of each node are
 * copied behind the last one, although it may have fewer, and the queue grows by as many as it has.  The few
 * nodes that have more take a loop.  Then
 *
 *     backwards     each node tells its parent its height, and the size of its subtree
 *     forwards      the ranks of a node's subtree are divided among its children, in their order
 *     by the ranks  numbers, from the last node to the first
 *
 * Marks of children are in the memory of `number`. */
#include "linearize/linearize.h"

#include <string.h>

enum { MARK = -1 };

/* Arrays of scratch. */
struct descent {
	int32_t *queue; /* ids, parents first */
	int32_t *above; /* by place in the queue, the parent; `nodes` stands for none */
	/* with spans, by id: the nodes of a subtree, and the first rank of it that no child has yet; the last
	 * are of `nodes` */
	int32_t *size, *next;
	/* with spans, by rank: the id */
	int32_t *post;
};

static struct descent descent_with_spans(const struct lin_order *o)
{
	int64_t each = o->nodes + (int64_t)1;
	return (struct descent){o->rank, o->stack + 3 * each, o->stack, o->stack + each, o->stack + 2 * each};
}

/* Without spans they are in memory that numbers and links take afterwards. */
static struct descent descent_of(const struct lin_order *o)
{
	return o->span ? descent_with_spans(o) : (struct descent){.queue = o->order, .above = o->child_begin};
}

bool lin_mark_children(struct lin_order *o, const struct lin_forest *f)
{
	const int32_t *child = f->children + f->child_begin[0];
	int32_t *mark = o->number, edges = o->edges, twice = 0;
	uint32_t beyond = 0;
	for (int32_t e = 0; e < edges; e++)
		beyond |= (uint32_t)child[e] >= (uint32_t)o->nodes;
	if (beyond)
		return false;
	memset(mark, 0, (o->nodes + (size_t)1) * sizeof *mark);
	for (int32_t e = 0; e < edges; e++) {
		twice |= mark[child[e]];
		mark[child[e]] = MARK;
	}
	return o->children_marked = !twice;
}

/* Appends the children of a node to the queue; behind its end may stand anything. */
static inline __attribute__((always_inline)) void queue_children(int32_t *queue, int32_t *above, int32_t id,
								 const int32_t *child, int32_t count,
								 bool may_read_usual)
{
	int32_t k = 0;
	if (may_read_usual) {
		memcpy(queue, child, LIN_USUAL * sizeof *child);
		for (; k < LIN_USUAL; k++)
			above[k] = id;
	}
	for (; k < count; k++) {
		queue[k] = child[k];
		above[k] = id;
	}
}

/* Puts the trees of all roots into the queue, one after the other, each level behind the one above it.
 * Returns whether every node is below a root. */
static bool queue_nodes(const struct lin_order *o, const struct lin_forest *f, const struct descent *d)
{
	const int32_t *child_begin = f->child_begin, *children = f->children, *mark = o->number;
	int32_t *queue = d->queue, *above = d->above, nodes = o->nodes, last = child_begin[nodes] - LIN_USUAL;
	int32_t at = 0, end = 0;
	for (int32_t root = 0; root < nodes; root++) {
		if (mark[root] == MARK)
			continue;
		queue[end] = root;
		above[end++] = nodes;
		for (; at < end; at++) {
			int32_t id = queue[at], begin = child_begin[id], count = child_begin[id + 1] - begin;
			queue_children(queue + end, above + end, id, children + begin, count, begin <= last);
			end += count;
		}
	}
	return end == nodes;
}

/* A parent comes after its children.  Marks, which may be in the same memory as heights, are less than any
 * height. */
static inline __attribute__((always_inline)) void ascend(struct lin_order *o, const struct descent *d,
							 bool sizes)
{
	const int32_t *queue = d->queue, *above = d->above;
	int32_t *height = o->height, *count = o->batch_begin + 2, batches = 0;
	for (int32_t i = o->nodes; i-- > 0;) {
		int32_t id = queue[i], parent = above[i], least = height[parent], h = height[id];
		h = h > 0 ? h : 0;
		batches = lin_set_height(height, count, batches, id, h);
		height[parent] = least > h ? least : h + 1;
		if (sizes)
			d->size[parent] += d->size[id];
	}
	o->batches = batches;
}

static void ascend_with_sizes(struct lin_order *o, const struct descent *d)
{
	memset(o->height, 0, (o->nodes + (size_t)1) * sizeof *o->height);
	for (int32_t n = 0; n <= o->nodes; n++)
		d->size[n] = 1;
	ascend(o, d, true);
}

bool lin_descend(struct lin_order *o, const struct lin_forest *f)
{
	struct descent d = descent_of(o);
	o->swept = o->batches = 0;
	o->marked = false;
	if ((!o->children_marked && !lin_mark_children(o, f)) || !queue_nodes(o, f, &d))
		return false;
	if (d.size)
		ascend_with_sizes(o, &d);
	else
		ascend(o, &d, false);
	o->swept = o->nodes;
	return true;
}

/* Roots follow each other. */
static void rank_nodes(struct lin_order *o, const struct descent *d)
{
	const int32_t *queue = d->queue, *above = d->above;
	d->next[o->nodes] = 0;
	for (int32_t i = 0; i < o->nodes; i++) {
		int32_t id = queue[i], parent = above[i], first = d->next[parent], end = first + d->size[id];
		d->next[id] = first;
		d->next[parent] = end;
		d->post[end - 1] = id;
	}
}

/* Numbers the nodes from the last rank to the first.  Returns whether ids are the ranks. */
static inline __attribute__((always_inline)) bool number_ranks(struct lin_order *o, const int32_t *post,
							       const int32_t *case_of)
{
	int32_t *end = (o->cases ? o->case_begin : o->batch_begin) + 2, moved = 0;
	const int32_t *height = o->height;
	for (int32_t r = o->nodes; r-- > 0;) {
		int32_t id = post[r], level = height[id];
		int32_t to = --end[case_of ? (int64_t)level * o->cases + case_of[id] : level];
		o->number[id] = to;
		o->order[to] = id;
		o->rank[to] = r;
		moved |= id ^ r;
	}
	return !moved;
}

bool lin_number_descended(struct lin_order *o)
{
	struct descent d = descent_with_spans(o);
	rank_nodes(o, &d);
	return o->cases ? number_ranks(o, d.post, o->case_of) : number_ranks(o, d.post, NULL);
}
