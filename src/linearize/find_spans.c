/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Spans: consecutive levels that are run without a barrier in between.
 *
 * A node of a span whose parent is not in it is a top.  Subtrees of the tops, as far as they are in the span,
 * do not depend on each other.  In post order each of them is a run of the span's nodes that ends with its
 * top; batches keep the post order, so that the nodes of some consecutive tops are one range of each batch,
 * or of each case of it.
 *
 *     rank    of a node, in a post order of the forest; it rises within a batch, or a case of it
 *     cut     the rank that follows a top's: no edge of the span crosses it
 *     work    the nodes of the span that are below the cut
 *
 * Pairs of children in post order have numbers and links already (fill.c): their ids are ranks, and only cuts are
 * found.  Where nodes have any number of children and seem to be in post order they are numbered as without spans,
 * and passes over levels find the rest; in any other order they have ranks by their sizes (descend.c).  Of nodes with so
 * many children each, in any other order, one walk finds ranks, numbers, links and cuts.  Time is linear; the C stack is
 * not touched. */
#include "linearize/linearize.h"

#include <string.h>

static int32_t first_level(const struct lin_order *o, int32_t span)
{
	return span ? 1 + (span - 1) * o->span : 0;
}

static int32_t spans_of(const struct lin_order *o)
{
	return o->batches ? lin_span_of(o, o->batches - 1) + 1 : 0;
}

/* The number of a span's first node; for the span behind the last, the number of nodes. */
static int32_t span_begin(const struct lin_order *o, int32_t span)
{
	int32_t level = first_level(o, span);
	return o->batch_begin[level < o->batches ? level : o->batches];
}

/* --- cuts: found from the last node to the first --- */

static void fill_span_of(struct lin_order *o)
{
	for (int32_t level = 0; level < o->batches; level++)
		o->span_of[level] = lin_span_of(o, level);
}

/* The cuts of a span, at most as many as nodes, end at the number where its nodes end.  `work` has, by span, the
 * nodes that are left.  The first number of level b is at `first[b * cases]`; behind the last is the number of all. */
static void begin_cuts(struct lin_order *o, const int32_t *first, int64_t cases)
{
	for (int32_t span = 0; span < spans_of(o); span++) {
		int32_t level = first_level(o, span), next = first_level(o, span + 1);
		o->cut_begin[span] = first[(next < o->batches ? next : o->batches) * cases];
		o->work[span] = o->cut_begin[span] - first[level * cases];
	}
}

/* For pairs of children in post order that have their numbers.  Backwards a parent comes right before its subtree, so
 * a stack tells the span of a node's parent: an inner node pushes its own for each child.  Below its bottom there is
 * no span.  There is no branch on whether a node is a leaf, since it cannot be predicted. */
static void find_cuts_of_pairs(struct lin_order *o)
{
	int32_t *work = o->work, *span_of = o->span_of, *stack = o->stack, *height = o->height;
	int64_t depth = 0;
	fill_span_of(o);
	begin_cuts(o, o->batch_begin, 1);
	stack[0] = -1;
	for (int32_t id = o->nodes; id-- > 0;) {
		int32_t span = span_of[height[id]];
		lin_put_cut(o, work, span, id, stack[depth] != span);
		depth -= depth > 0;
		stack[depth + 1] = stack[depth + 2] = span;
		depth += 2 * (height[id] > 0);
	}
}

/* --- lists that are a post order, as it seems: in passes over levels, without a branch on what is a leaf --- */

enum { NEXT_SPAN, SAME_SPAN, NOBODY }; /* where a node's parent is */

/* Finds, by id, which span parents are in.  True when ids are a post order: the subtree of each child ends
 * where that of the next one begins, the last one's right before the parent. */
static bool find_parents(struct lin_order *o, const struct lin_forest *f, uint8_t *parent_span)
{
	uint32_t *size = (uint32_t *)o->stack, nested = 1;
	for (int32_t n = 0; n < o->nodes; n++)
		size[n] = 1;
	memset(parent_span, NOBODY, o->nodes);
	for (int32_t span = 1; span < spans_of(o); span++) {
		int32_t begin = span_begin(o, span), end = span_begin(o, span + 1);
		for (int32_t n = begin; n < end; n++) {
			int32_t id = o->order[n];
			uint32_t last = id - 1;
			for (int32_t i = f->child_begin[id + 1]; i-- > f->child_begin[id];) {
				int32_t c = f->children[i];
				nested &= (uint32_t)c == last;
				last -= size[c];
				parent_span[c] = o->number[c] >= begin ? SAME_SPAN : NEXT_SPAN;
			}
			size[id] = id - last;
		}
	}
	return nested;
}

/* Finds the ids in post order: filled from the end, parents before children, the last child first. */
static void find_post_order(struct lin_order *o, const struct lin_forest *f, const uint8_t *parent_span)
{
	int32_t *stack = o->stack + 2 * (int64_t)o->nodes, *post = o->stack + o->nodes, at = o->nodes, depth = 0;
	for (int32_t root = o->nodes - 1; root >= 0; root--) {
		if (parent_span[root] == NOBODY)
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

static void find_cuts(struct lin_order *o, const uint8_t *parent_span, const int32_t *post)
{
	begin_cuts(o, o->batch_begin, 1);
	for (int32_t r = o->nodes; r-- > 0;) {
		int32_t id = post ? post[r] : r;
		lin_put_cut(o, o->work, lin_span_of(o, level_of(o, id)), r, parent_span[id] != SAME_SPAN);
	}
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
	uint8_t *parent_span = (uint8_t *)(o->stack + 3 * (int64_t)o->nodes);
	bool nested = find_parents(o, f, parent_span);
	if (nested) {
		o->rank = o->order;
	} else {
		find_post_order(o, f, parent_span);
		renumber_nodes(o);
	}
	find_cuts(o, parent_span, nested ? NULL : o->stack + o->nodes);
}

/* --- any other order: numbers, links and cuts in one walk --- */

/* A node that is to be numbered, and where it is below its parent.  Roots have the number behind the last as parent. */
struct visit {
	int32_t id, parent, slot, span;
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
			stack[depth++] = (struct visit){id, o->nodes, 0, -1};
	}
	return depth;
}

/* Local copies of an order, which stay in registers. */
struct walk {
	struct lin_order *o;
	int32_t *end; /* of each batch, or case of one: one more than the last number that is free */
	int32_t *number, *order, *rank;
	int32_t *place, *parent;
	const int32_t *case_of, *span_of;
	struct lin_cut *cut;
	int32_t cases, slots;
	bool far;
};

/* Asks for the elements of an array that a batch writes some nodes before this one: two cache lines back. */
static inline void prefetch_back(const void *array, int64_t to, size_t size)
{
	enum { BACK = 32 };
	__builtin_prefetch((const char *)((uintptr_t)array + (to - BACK) * size), 1);
}

/* Without cases leaves alone are span 0, and each of them is a top: the first cuts are theirs. */
static inline __attribute__((always_inline)) int32_t number_leaf(const struct walk *w, int32_t r, int32_t *leaves)
{
	int32_t to = --*leaves;
	w->cut[to] = (struct lin_cut){r + 1, to + 1};
	return to;
}

static inline __attribute__((always_inline)) int32_t number_and_cut(const struct walk *w, const struct visit *v,
								    int32_t r, int32_t level, int32_t span)
{
	int32_t to = --w->end[w->case_of ? (int64_t)level * w->cases + w->case_of[v->id] : level];
	lin_put_cut(w->o, w->o->work, span, r, span != v->span);
	if (w->far) {
		prefetch_back(w->order, to, sizeof *w->order);
		prefetch_back(w->rank, to, sizeof *w->rank);
		prefetch_back(w->cut, w->o->cut_begin[span], sizeof *w->cut);
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
 * parent of a node is then known, so its link, its place and its cut are written at once.  A number is written over
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
			 .span_of = o->span_of,
			 .cut = o->cut,
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
		int32_t level = w.number[v.id] & marks.level, span = w.span_of[level];
		int32_t to = level || w.case_of ? number_and_cut(&w, &v, r, level, span)
						: number_leaf(&w, r, &leaves);
		w.number[v.id] = to;
		w.order[to] = v.id;
		w.rank[to] = r;
		moved |= v.id ^ r;
		link_node(&w, &v, to);
		if (level) {
			int32_t begin = child_begin[v.id], last = slots - 1;
			for (int32_t k = 0; k < last; k++)
				stack[depth++] = (struct visit){children[begin + k], to, k, span};
			v = (struct visit){children[begin + last], to, last, span};
		} else {
			v = stack[--depth];
		}
	}
	if (!w.case_of)
		w.end[0] = o->cut_begin[0] = leaves; /* none is left */
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
	fill_span_of(o);
	begin_cuts(o, begin + 1, cases);
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

void lin_find_cuts(struct lin_order *o)
{
	o->rank = o->order;
	find_cuts_of_pairs(o);
}

/* --- chunks of spans --- */

/* The first cut of at..end with at least so much work. */
static const struct lin_cut *find_cut(const struct lin_cut *at, const struct lin_cut *end, int32_t work)
{
	while (at < end) {
		const struct lin_cut *middle = at + (end - at) / 2;
		if (middle->work < work)
			at = middle + 1;
		else
			end = middle;
	}
	return at;
}

int32_t lin_span_chunk_begin(const struct lin_order *o, int32_t span, int chunk, int chunks)
{
	int32_t begin = span_begin(o, span), nodes = span_begin(o, span + 1) - begin;
	int32_t wanted = (int64_t)nodes * chunk / chunks;
	const struct lin_cut *first = o->cut + o->cut_begin[span], *c = find_cut(first, o->cut + begin + nodes, wanted);
	struct lin_cut before = c > first ? c[-1] : (struct lin_cut){0, 0};
	if (chunk == chunks)
		return o->nodes;
	return wanted - before.work < c->work - wanted ? before.rank : c->rank;
}

int32_t lin_first_of_rank(const struct lin_order *o, int32_t begin, int32_t end, int32_t rank)
{
	while (begin < end) {
		int32_t middle = begin + (end - begin) / 2;
		if (o->rank[middle] < rank)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}
