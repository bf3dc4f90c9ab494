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
 * Post orders are common: then ids are ranks already.  Time is linear; the C stack is not touched. */
#include "linearize/linearize.h"

#include <string.h>

enum { NEXT_SPAN, SAME_SPAN, NOBODY }; /* where a node's parent is */

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

/* --- post order --- */

/* Finds, by id, which span parents are in.  True when ids are a post order: the subtree of each child ends
 * where that of the next one begins, the last one's right before the parent. */
static bool find_parents(struct lin_order *o, const struct lin_forest *f)
{
	uint32_t *size = (uint32_t *)o->spare, nested = 1;
	for (int32_t n = 0; n < o->nodes; n++)
		size[n] = 1;
	memset(o->parent_span, NOBODY, o->nodes);
	for (int32_t span = 1; span < spans_of(o); span++) {
		int32_t begin = span_begin(o, span), end = span_begin(o, span + 1);
		for (int32_t n = begin; n < end; n++) {
			int32_t id = o->order[n];
			uint32_t last = id - 1;
			for (int32_t i = f->child_begin[id + 1]; i-- > f->child_begin[id];) {
				int32_t c = f->children[i];
				nested &= (uint32_t)c == last;
				last -= size[c];
				o->parent_span[c] = o->number[c] >= begin ? SAME_SPAN : NEXT_SPAN;
			}
			size[id] = id - last;
		}
	}
	return nested;
}

/* Finds the ids in post order: filled from the end, parents before children, the last child first. */
static void find_post_order(struct lin_order *o, const struct lin_forest *f)
{
	int32_t *stack = o->spare, at = o->nodes, depth = 0;
	for (int32_t root = o->nodes - 1; root >= 0; root--) {
		if (o->parent_span[root] == NOBODY)
			stack[depth++] = root;
		while (depth) {
			int32_t n = stack[--depth];
			o->post[--at] = n;
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
	for (int32_t r = 0; r < o->nodes; r++) {
		int32_t id = o->post[r], c = o->cases ? o->case_of[o->number[id]] : 0;
		int32_t to = begin[(int64_t)level_of(o, id) * cases + c]++;
		o->number[id] = to;
		o->order[to] = id;
		o->rank[to] = r;
	}
	memmove(begin + 1, begin, (size_t)o->batches * cases * sizeof *begin);
	begin[0] = 0;
}

/* --- cuts: found from the last node to the first --- */

/* The cuts of a span, at most as many as nodes, end at the number where its nodes end.  `work` has, by span, the nodes that
 * are left. */
static void begin_cuts(struct lin_order *o, int32_t *work)
{
	for (int32_t span = 0, end; span < spans_of(o); span++) {
		o->cut_begin[span] = end = span_begin(o, span + 1);
		work[span] = end - span_begin(o, span);
	}
}

/* Writes a cut behind a node, and keeps it if the node is a top. */
static inline void put_cut(struct lin_order *o, int32_t *work, int32_t span, int32_t rank, bool top)
{
	int32_t at = o->cut_begin[span] - 1;
	o->cut[at] = (struct lin_cut){rank + 1, work[span]--};
	o->cut_begin[span] = at + !top;
}

static void find_cuts(struct lin_order *o, const int32_t *post)
{
	int32_t *work = o->spare;
	begin_cuts(o, work);
	for (int32_t r = o->nodes; r-- > 0;) {
		int32_t id = post ? post[r] : r;
		put_cut(o, work, lin_span_of(o, level_of(o, id)), r, o->parent_span[id] != SAME_SPAN);
	}
}

/* The same for pairs of children in post order.  Backwards a parent comes right before its subtree, so a stack tells the
 * span of a node's parent: an inner node pushes its own for each child.  Below its bottom there is no span.  There is no
 * branch on whether a node is a leaf, since it cannot be predicted. */
static void find_cuts_of_pairs(struct lin_order *o)
{
	int32_t *work = o->post, *span_of = o->spare, *stack = o->spare + o->nodes, *height = o->height;
	int64_t depth = 0;
	for (int32_t level = 0; level < o->batches; level++)
		span_of[level] = lin_span_of(o, level);
	begin_cuts(o, work);
	stack[0] = -1;
	for (int32_t id = o->nodes; id-- > 0;) {
		int32_t span = span_of[height[id]];
		put_cut(o, work, span, id, stack[depth] != span);
		depth -= depth > 0;
		stack[depth + 1] = stack[depth + 2] = span;
		depth += 2 * (height[id] > 0);
	}
}

void lin_find_spans(struct lin_order *o, const struct lin_forest *f)
{
	if (lin_are_pairs(o)) {
		o->rank = o->order;
		find_cuts_of_pairs(o);
		return;
	}
	bool nested = find_parents(o, f);
	if (nested) {
		o->rank = o->order;
	} else {
		find_post_order(o, f);
		renumber_nodes(o);
	}
	find_cuts(o, nested ? NULL : o->post);
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
