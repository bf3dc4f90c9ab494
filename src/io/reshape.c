/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/reshape.h"

/* A tree under construction, with space for a number of nodes and an edge for each. */
struct reshape {
	const struct io_tree *from;
	struct io_span *label, *word;
	int32_t *child_begin, *children;
	int32_t nodes, edges;
	int32_t *number; /* of the old nodes in the new tree */
};

static struct reshape reshape_of(const struct io_tree *t, int64_t nodes, struct arena *a)
{
	return (struct reshape){
	    .from = t,
	    .label = ARENA_ARRAY(a, struct io_span, nodes),
	    .word = ARENA_ARRAY(a, struct io_span, nodes),
	    .child_begin = ARENA_ARRAY(a, int32_t, nodes + 1),
	    .children = ARENA_ARRAY(a, int32_t, nodes),
	    .number = ARENA_ARRAY(a, int32_t, t->nodes),
	};
}

static void add_child(struct reshape *r, int32_t child)
{
	r->children[r->edges++] = child;
}

/* Adds a node, whose children were added before. */
static int32_t add_node(struct reshape *r, struct io_span label, struct io_span word)
{
	r->label[r->nodes] = label;
	r->word[r->nodes] = word;
	r->child_begin[++r->nodes] = r->edges;
	return r->nodes - 1;
}

static int32_t children_of(const struct io_tree *t, int32_t n)
{
	return t->child_begin[n + 1] - t->child_begin[n];
}

static struct io_tree finish_tree(const struct reshape *r)
{
	return (struct io_tree){r->nodes, r->label, r->word, r->child_begin, r->children};
}

struct io_tree io_collapse(const struct io_tree *t, struct arena *a)
{
	struct reshape r = reshape_of(t, t->nodes, a);
	for (int32_t n = 0; n < t->nodes; n++) {
		const int32_t *child = &t->children[t->child_begin[n]];
		if (children_of(t, n) == 1) {
			r.number[n] = r.number[*child];
			if (t->label[n].text)
				r.label[r.number[n]] = t->label[n];
			continue;
		}
		for (int32_t i = 0; i < children_of(t, n); i++)
			add_child(&r, r.number[child[i]]);
		r.number[n] = add_node(&r, t->label[n], t->word[n]);
	}
	return finish_tree(&r);
}

/* --- two children --- */

/* Of each old node: its parent (-1 = none) and the slot that it is in. */
struct place {
	int32_t parent, slot;
};

static struct place *places_of(const struct io_tree *t, struct arena *a)
{
	struct place *place = ARENA_ARRAY(a, struct place, t->nodes);
	place[t->nodes - 1].parent = -1;
	for (int32_t n = 0; n < t->nodes; n++)
		for (int32_t i = 0; i < children_of(t, n); i++)
			place[t->children[t->child_begin[n] + i]] = (struct place){n, i};
	return place;
}

static int64_t nodes_after(const struct io_tree *t)
{
	int64_t nodes = t->nodes;
	for (int32_t n = 0; n < t->nodes; n++)
		nodes += children_of(t, n) > 2 ? children_of(t, n) - 2 : 0;
	return nodes;
}

static int32_t insert_node(struct reshape *r, int32_t parent, int32_t left, int32_t right)
{
	add_child(r, left);
	add_child(r, right);
	return add_node(r, r->from->label[parent], (struct io_span){0});
}

/* Adds the new nodes that post order has after the old node in that place.  The number of the first child, or
 * of the last, becomes that of the new node that replaces it. */
static void insert_after(struct reshape *r, struct place at, enum io_side side)
{
	const struct io_tree *t = r->from;
	if (at.parent < 0)
		return;
	int32_t count = children_of(t, at.parent);
	const int32_t *child = &t->children[t->child_begin[at.parent]];
	if (side == IO_LEFT && at.slot > 0 && at.slot + 1 < count)
		r->number[child[0]] =
		    insert_node(r, at.parent, r->number[child[0]], r->number[child[at.slot]]);
	if (side == IO_RIGHT && at.slot + 1 == count)
		for (int32_t i = count - 2; i > 0; i--)
			r->number[child[count - 1]] =
			    insert_node(r, at.parent, r->number[child[i]], r->number[child[count - 1]]);
}

struct io_tree io_binarize(const struct io_tree *t, enum io_side side, struct arena *a)
{
	const struct place *place = places_of(t, a);
	struct reshape r = reshape_of(t, nodes_after(t), a);
	for (int32_t n = 0; n < t->nodes; n++) {
		const int32_t *child = &t->children[t->child_begin[n]];
		int32_t count = children_of(t, n);
		if (count)
			add_child(&r, r.number[child[0]]);
		if (count > 1)
			add_child(&r, r.number[child[count - 1]]);
		r.number[n] = add_node(&r, t->label[n], t->word[n]);
		insert_after(&r, place[n], side);
	}
	return finish_tree(&r);
}
