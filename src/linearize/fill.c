/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The index arrays that kernels read, in the new numbers: roots, children, places, parents. */
#include "linearize/linearize.h"

#include <string.h>

/* Elements first .. end - 1, in blocks for vectors. */
static void fill_range(int32_t *array, int64_t first, int64_t end, int32_t value)
{
	enum { BLOCK = 8 };
	int64_t n = first;
	for (; n + BLOCK <= end; n += BLOCK)
		for (int i = 0; i < BLOCK; i++)
			array[n + i] = value;
	for (; n < end; n++)
		array[n] = value;
}

static void fill_roots(struct lin_order *o, const struct lin_forest *f)
{
	for (int32_t i = 0; i < o->inputs; i++)
		o->root[i] = o->number[f->root[i]];
}

static void fill_slots(struct lin_order *o, const struct lin_forest *f)
{
	for (int32_t slot = 0; slot < o->slots; slot++)
		memset(lin_child(o, slot), -1, o->leaves * sizeof *o->child);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		const int32_t *from = f->children + f->child_begin[o->order[n]];
		int32_t *to = o->child + n;
		for (int32_t slot = 0; slot < o->slots; slot++, to += o->stride)
			*to = o->number[from[slot]];
	}
}

/* Numbers of children, the usual many without a branch on how many there are: what is too much is overwritten by the
 * next node's, or behind the last element. */
static inline __attribute__((always_inline)) void fill_children(int32_t *to, const int32_t *number, const int32_t *child,
								 int32_t count, bool may_read_usual)
{
	int32_t k = 0;
	for (; may_read_usual && k < LIN_USUAL; k++)
		to[k] = number[child[k]];
	for (; k < count; k++)
		to[k] = number[child[k]];
}

/* Leaves come first, so their elements of child_begin are zero. */
static void fill_list(struct lin_order *o, const struct lin_forest *f)
{
	const int32_t *order = o->order, *number = o->number, *child_begin = f->child_begin;
	int32_t *begin_of = o->child_begin, *list = o->child_list, nodes = o->nodes, edges = 0;
	int32_t last = child_begin[nodes] - LIN_USUAL;
	memset(begin_of, 0, (o->leaves + (size_t)1) * sizeof *begin_of);
	for (int32_t n = o->leaves; n < nodes; n++) {
		int32_t id = order[n], begin = child_begin[id], count = child_begin[id + 1] - begin;
		if (list)
			fill_children(list + edges, number, f->children + begin, count, begin <= last);
		edges += count;
		begin_of[n + 1] = edges;
	}
}

/* Mostly they are the last nodes. */
void lin_end_places(struct lin_order *o)
{
	for (int32_t n = o->nodes, last = o->nodes; last > o->edges;)
		if (o->place[--n] < 0)
			o->place[n] = --last;
}

/* No node has two parents, so every rank is given once. */
static void fill_places(struct lin_order *o, const struct lin_forest *f)
{
	int32_t rank = 0;
	memset(o->place, -1, o->nodes * sizeof *o->place);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		const int32_t *begin = f->child_begin + o->order[n];
		for (int32_t i = begin[0]; i < begin[1]; i++)
			o->place[o->number[f->children[i]]] = rank++;
	}
	lin_end_places(o);
}

static void fill_parent(struct lin_order *o, const struct lin_forest *f)
{
	memset(o->parent, -1, o->nodes * sizeof *o->parent);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		const int32_t *begin = f->child_begin + o->order[n];
		for (int32_t i = begin[0]; i < begin[1]; i++)
			o->parent[o->number[f->children[i]]] = n;
	}
}

/* Counts the parents of node n at n + 2; lin_number_lists has done so already. */
static void count_parents(struct lin_order *o, const struct lin_forest *f)
{
	memset(o->parent_begin, 0, (o->nodes + (size_t)2) * sizeof *o->parent_begin);
	for (int32_t i = f->child_begin[0]; i < f->child_begin[o->nodes]; i++)
		o->parent_begin[o->number[f->children[i]] + 2]++;
}

/* Parents of a node are in the order of the caller's ids, which is the same in any minibatch.  Counting sort:
 * the begin of node n is kept at n + 1 and has advanced to the node's end when all parents are filled in. */
static inline __attribute__((always_inline)) void sort_parents(struct lin_order *o, const struct lin_forest *f,
							       bool far)
{
	const int32_t *child_begin = f->child_begin, *child = f->children + child_begin[0], *number = o->number;
	int32_t *begin = o->parent_begin + 1, *list = o->parent_list, nodes = o->nodes;
	for (int32_t id = 0; id < nodes; id++) {
		int32_t parent = number[id];
		for (const int32_t *end = f->children + child_begin[id + 1]; child < end; child++) {
			int32_t to = number[*child], at = begin[to]++;
			list[at] = parent;
			if (far) {
				lin_prefetch(begin, to);
				lin_prefetch(list, at);
			}
		}
	}
}

static void fill_parents(struct lin_order *o, const struct lin_forest *f)
{
	int32_t *begin = o->parent_begin;
	if (!o->edge_begin || o->post_order)
		count_parents(o, f);
	for (int32_t n = 1; n <= o->nodes + 1; n++)
		begin[n] += begin[n - 1];
	if (lin_are_far(o))
		sort_parents(o, f, true);
	else
		sort_parents(o, f, false);
}

static void fill_origins(struct lin_order *o)
{
	for (int32_t b = 0, end; b < o->batches; b = end) {
		end = lin_end_of_levels(o, b);
		fill_range(o->origin, o->batch_begin[b], o->batch_begin[end], o->batch_begin[b]);
	}
}

static void fill_edge_nodes(struct lin_order *o)
{
	for (int32_t n = o->leaves; n < o->nodes; n++)
		for (int32_t e = o->child_begin[n]; e < o->child_begin[n + 1]; e++)
			o->edge_node[e] = n;
}

void lin_link(struct lin_order *o, const struct lin_forest *f)
{
	if (o->child_begin)
		fill_list(o, f);
	if (o->slots)
		fill_slots(o, f);
	if (o->place)
		fill_places(o, f);
	if (o->parent)
		fill_parent(o, f);
}

void lin_fill(struct lin_order *o, const struct lin_forest *f)
{
	fill_roots(o, f);
	if (o->parent_begin)
		fill_parents(o, f);
	if (o->origin)
		fill_origins(o);
	if (o->edge_node)
		fill_edge_nodes(o);
}

/* --- pairs of children in post order --- */

bool lin_are_pairs(const struct lin_order *o)
{
	bool slots = o->slots == 2 && !o->child_begin, lists = !o->slots && o->child_list;
	return o->pairs && (slots || lists);
}

/* Where lists begin that have two elements at inner nodes, which follow the leaves. */
static void begin_pairs(struct lin_order *o)
{
	int32_t *begin = o->child_begin, leaves = o->leaves, nodes = o->nodes;
	memset(begin, 0, (leaves + (size_t)1) * sizeof *begin);
	for (int32_t n = leaves + 1; n <= nodes; n++)
		begin[n] = 2 * (n - leaves);
}

/* Numbers the nodes and links them to their children, whose numbers are the upper two of a stack as in
 * sweep_post_order (scan.c).  There is no branch on whether a node is a leaf: what a leaf would write goes
 * behind the last node, or edge.  The stack is in slots of leaves, which are -1 in the end, or where their lists begin. */
static inline __attribute__((always_inline)) void number_pairs(struct lin_order *o, const int32_t *case_of,
							       int32_t *place, int32_t *parent, bool lists, bool far)
{
	struct lin_sort s = lin_sort_of(o);
	int64_t nodes = o->nodes, leaves = o->leaves, each = lists ? 2 : 1;
	int32_t *left = lists ? o->child_list + o->edges : lin_child(o, 0) + nodes;
	int32_t *right = lists ? left + 1 : lin_child(o, 1) + nodes;
	int32_t *bottom = lists ? o->child_begin : left - nodes, *top = bottom;
	s.case_of = case_of; /* may be a constant */
	s.mask = -1;
	int32_t last = *top = lin_take_number(&s, 0);
	for (int64_t id = 1; id < nodes; id++) {
		int64_t inner = -(int64_t)(-(uint64_t)s.height[id] >> 63), past = nodes & ~inner; /* all bits, or none */
		int64_t to = lin_take_number(&s, id), slot = ((to - nodes) & inner) * each, a = top[inner], b = last;
		if (far) {
			lin_prefetch(s.order, to);
			lin_prefetch(left - nodes, to);
			lin_prefetch(right - nodes, to);
			lin_prefetch(place, to);
			lin_prefetch(parent, to);
		}
		top += 1 + 2 * inner;
		*top = last = to;
		left[slot] = a;
		right[slot] = b;
		a = (a & inner) | past;
		b = (b & inner) | past;
		if (place) {
			place[a] = 2 * (to - leaves);
			place[b] = 2 * (to - leaves) + 1;
		}
		if (parent)
			parent[a] = parent[b] = to;
	}
	for (const int32_t *root = bottom; root <= top; root++) {
		if (place)
			place[*root] = -1;
		if (parent)
			parent[*root] = -1;
	}
	if (lists)
		return begin_pairs(o);
	memset(bottom, -1, leaves * sizeof *bottom);
	memset(right - nodes, -1, leaves * sizeof *right);
}

/* The loop is inlined for the commonest rules and for all others, near and far; lists that are far are numbered by
 * lin_number_lists. */
void lin_number_pairs(struct lin_order *o)
{
	bool links = o->place || o->parent, far = lin_are_far(o);
	if (o->child_begin && (links || o->cases))
		number_pairs(o, o->case_of, o->place, o->parent, true, false);
	else if (o->child_begin)
		number_pairs(o, NULL, NULL, NULL, true, false);
	else if (links && far)
		number_pairs(o, o->case_of, o->place, o->parent, false, true);
	else if (links)
		number_pairs(o, o->case_of, o->place, o->parent, false, false);
	else if (far)
		number_pairs(o, o->case_of, NULL, NULL, false, true);
	else if (o->cases)
		number_pairs(o, o->case_of, NULL, NULL, false, false);
	else
		number_pairs(o, NULL, NULL, NULL, false, false);
	if (o->place)
		lin_end_places(o);
}

/* --- pairs of children that precede their parents in another order --- */

bool lin_are_levels(const struct lin_order *o)
{
	return o->marked && o->slots == 2 && !o->child_begin && !o->span && !o->cases && !o->place && !o->parent;
}

/* Mostly that is the order of levels: leaves stand together, so a branch on them can be predicted, and their numbers do not
 * wait for those that were stored before. */
void lin_number_levels(struct lin_order *o, const struct lin_forest *f)
{
	struct lin_sort s = lin_sort_of(o);
	const int32_t *child_begin = f->child_begin, *children = f->children;
	int32_t *left = lin_child(o, 0), *right = lin_child(o, 1), nodes = o->nodes, leaf = 0;
	for (int32_t id = 0; id < nodes; id++) {
		const int32_t *child = children + child_begin[id];
		if (child_begin[id + 1] == child_begin[id]) {
			s.number[id] = leaf;
			s.order[leaf++] = id;
			continue;
		}
		int32_t to = lin_take_number(&s, id);
		left[to] = s.number[child[0]];
		right[to] = s.number[child[1]];
	}
	s.begin[1] = leaf;
	memset(left, -1, leaf * sizeof *left);
	memset(right, -1, leaf * sizeof *right);
}

/* --- lists of children that precede their parents --- */

/* Where the L3 cache alone has all, and the L2 cache not even the numbers, reading DAGs level by level is faster than
 * writing several streams for each level. */
static bool is_only_l3_enough(const struct lin_order *o)
{
	return o->nodes * (int64_t)sizeof *o->number >= o->l2_bytes && !lin_are_far(o);
}

/* Trees have `edge_begin` only beyond the L3 cache: within it, a branch on what is a leaf is cheaper. */
bool lin_are_lists(const struct lin_order *o, bool shared)
{
	bool possible = shared ? o->swept == o->nodes && !is_only_l3_enough(o) : o->post_order;
	return o->edge_begin && !o->span && possible;
}

/* The number of an edge is known when its node is numbered: each batch, or case of one, counts its own.  So
 * the nodes that edges lead to are read soon after they were numbered, and the forest is read once. */
static inline __attribute__((always_inline)) void number_lists(struct lin_order *o, const struct lin_forest *f,
								const int32_t *case_of, int32_t *parents, bool far)
{
	struct lin_sort s = lin_sort_of(o);
	const int32_t *child_begin = f->child_begin, *child = f->children + child_begin[0];
	int32_t *begin = o->child_begin, *list = o->child_list, nodes = o->nodes;
	s.case_of = case_of; /* may be a constant, as others */
	begin[0] = 0;
	for (int32_t id = 0; id < nodes; id++) {
		int32_t count = child_begin[id + 1] - child_begin[id];
		int32_t *first = &s.edge_begin[lin_key(&s, id) + 1], e = *first;
		int32_t to = lin_take_number(&s, id);
		if (far) {
			lin_prefetch(s.order, to);
			lin_prefetch(begin, to);
			lin_prefetch(list, e);
			lin_prefetch(parents, to);
		}
		*first = begin[to + 1] = e + count;
		for (int32_t k = 0; list && k < count; k++)
			list[e + k] = s.number[child[k]];
		if (parents)
			parents[to] = 0;
		for (int32_t k = 0; parents && k < count; k++)
			parents[s.number[child[k]]]++;
		child += count;
	}
}

/* A node has its number before its parents have theirs, so they are counted on the way, as count_parents does. */
static void number_and_count_parents(struct lin_order *o, const struct lin_forest *f)
{
	int32_t *parents = o->parent_begin + 2;
	memset(o->parent_begin, 0, 2 * sizeof *parents);
	if (lin_are_far(o))
		number_lists(o, f, o->case_of, parents, true);
	else
		number_lists(o, f, o->case_of, parents, false);
}

/* The children of a node but for the last two, from the stack. */
static inline void link_further(const struct lin_order *o, const int32_t *stack, int32_t n, int32_t edge,
				int32_t to)
{
	for (int32_t k = 0; k < n; k++) {
		if (o->child_list)
			o->child_list[edge + k] = stack[k];
		if (o->place)
			o->place[stack[k]] = edge + k;
		if (o->parent)
			o->parent[stack[k]] = to;
	}
}

/* The same for trees in post order: the children of a node are on top of a stack of numbers, as in
 * sweep_lists_in_post_order (scan.c).  What a leaf would write goes behind the last element.  The stack is in
 * the elements of leaves, which are zero in the end. */
static inline __attribute__((always_inline)) void
number_stack(struct lin_order *o, const int32_t *child_begin, const int32_t *case_of, int32_t *place,
	     int32_t *parent)
{
	struct lin_sort s = lin_sort_of(o);
	int32_t *begin = o->child_begin, *list = o->child_list, *bottom = begin + 1, *top = bottom;
	int64_t nodes = o->nodes, none = o->edges;
	s.case_of = case_of; /* may be a constant */
	bottom[-1] = o->nodes;
	bottom[0] = lin_take_number(&s, 0);
	int32_t last = *top;
	for (int64_t id = 1; id < nodes; id++) {
		int32_t edges = child_begin[id + 1] - child_begin[id], *first = &s.edge_begin[lin_key(&s, id) + 1];
		int64_t edge = *first, one = -(int64_t)(edges > 0), two = -(int64_t)(edges > 1), left = top[-1];
		*first = edge + edges;
		int64_t to = lin_take_number(&s, id);
		lin_prefetch(s.order, to);
		lin_prefetch(begin, to);
		lin_prefetch(list, edge);
		lin_prefetch(place, to);
		lin_prefetch(parent, to);
		if (edges > 2)
			link_further(o, top + 1 - edges, edges - 2, edge, to);
		if (list) {
			list[((edge + edges - 2) & two) | (none & ~two)] = left;
			list[((edge + edges - 1) & one) | (none & ~one)] = last;
		}
		if (place) {
			place[(left & two) | (nodes & ~two)] = edge + edges - 2;
			place[(last & one) | (nodes & ~one)] = edge + edges - 1;
		}
		if (parent) {
			parent[(left & two) | (nodes & ~two)] = to;
			parent[(last & one) | (nodes & ~one)] = to;
		}
		top += 1 - edges;
		*top = last = to;
		begin[((to + 1) & one) | ((nodes + 1) & ~one)] = edge + edges;
	}
	for (const int32_t *root = bottom; root <= top; root++) {
		if (place)
			place[*root] = -1;
		if (parent)
			parent[*root] = -1;
	}
}

/* The loop is inlined for the commonest rules and for all others. */
static void number_trees(struct lin_order *o, const int32_t *child_begin)
{
	if (o->place || o->parent)
		number_stack(o, child_begin, o->case_of, o->place, o->parent);
	else if (o->cases)
		number_stack(o, child_begin, o->case_of, NULL, NULL);
	else
		number_stack(o, child_begin, NULL, NULL, NULL);
	memset(o->child_begin, 0, (o->leaves + (size_t)1) * sizeof *o->child_begin);
	if (o->place)
		lin_end_places(o);
}

void lin_number_lists(struct lin_order *o, const struct lin_forest *f)
{
	if (o->post_order)
		number_trees(o, f->child_begin);
	else if (o->parent_begin)
		number_and_count_parents(o, f);
	else if (lin_are_far(o))
		number_lists(o, f, o->case_of, NULL, true);
	else if (o->cases)
		number_lists(o, f, o->case_of, NULL, false);
	else
		number_lists(o, f, NULL, NULL, false);
}
