/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Cuts of spans (find_spans.c), which are searched for when a span is divided: a run that does not divide it takes no
 * time for them, and one that does looks at few nodes of each level.
 *
 * The nodes of a span stand in columns, one for each level or each case of it, in each of which ranks rise.  So the nodes
 * below a rank are counted by a binary search in each column, and so is the subtree of the span found that a rank lies
 * in.  The search for a cut is a bisection of the ranks that begins where it would end if all levels were
 * mixed evenly. */
#include "linearize/linearize.h"

static int32_t first_level(const struct lin_order *o, int32_t span)
{
	int32_t level = span ? 1 + (span - 1) * o->span : 0;
	return level < o->batches ? level : o->batches;
}

/* Column i of a span has the numbers begin[i] .. begin[i + 1] - 1; higher levels come later. */
struct columns {
	const int32_t *begin;
	int64_t n;
};

static struct columns columns_of(const struct lin_order *o, int32_t span)
{
	int64_t cases = o->cases ? o->cases : 1, level = first_level(o, span), next = first_level(o, span + 1);
	const int32_t *begin = o->cases ? o->case_begin : o->batch_begin;
	return (struct columns){begin + level * cases, (next - level) * cases};
}

/* There is no branch on what is compared: it could not be predicted. */
int32_t lin_first_of_rank(const struct lin_order *o, int32_t begin, int32_t end, int32_t rank)
{
	const int32_t *at = o->rank + begin;
	int32_t n = end - begin;
	for (; n > 1; n -= n / 2)
		at += n / 2 & -(at[n / 2 - 1] < rank);
	return (int32_t)(at - o->rank) + (n && *at < rank);
}

static int32_t count_below(const struct lin_order *o, const struct columns *c, int32_t rank)
{
	int32_t nodes = 0;
	for (int64_t i = 0; i < c->n; i++)
		nodes += lin_first_of_rank(o, c->begin[i], c->begin[i + 1], rank) - c->begin[i];
	return nodes;
}

/* The first child of a node that has at least this number, as all children in the node's span have; -1 = there is none. */
static int32_t first_child(const struct lin_order *o, int32_t n, int32_t least)
{
	bool list = !o->slots && o->child_list;
	for (int32_t slot = 0; slot < o->slots; slot++)
		if (lin_child(o, slot)[n] >= least)
			return lin_child(o, slot)[n];
	for (int32_t e = list ? o->child_begin[n] : 0, end = list ? o->child_begin[n + 1] : 0; e < end; e++)
		if (o->child_list[e] >= least)
			return o->child_list[e];
	return -1;
}

/* The first rank of a node's subtree, as far as it is in the span. */
static int32_t first_rank(const struct lin_order *o, const struct columns *c, int32_t n)
{
	for (int32_t child = n; child >= 0; child = first_child(o, n, c->begin[0]))
		n = child;
	return o->rank[n];
}

/* A cut, and the nodes of the span below it. */
struct cut {
	int32_t rank, work;
};

/* Where the subtree of the span begins and ends that a rank lies in; where it lies between two, both are there.  The top of
 * the subtree is the highest of the nodes whose subtrees have lower ranks and not all. */
static void find_cuts(const struct lin_order *o, const struct columns *c, int32_t rank, struct cut *before,
		      struct cut *after)
{
	before->rank = after->rank = rank;
	for (int64_t i = c->n; i-- > 0 && before->rank == rank;) {
		int32_t end = c->begin[i + 1], n = lin_first_of_rank(o, c->begin[i], end, rank);
		int32_t first = n < end ? first_rank(o, c, n) : rank;
		if (first < rank) {
			before->rank = first;
			after->rank = o->rank[n] + 1;
		}
	}
	before->work = count_below(o, c, before->rank);
	after->work = before->rank < after->rank ? count_below(o, c, after->rank) : before->work;
}

/* A rank between two cuts: where so many nodes are below it if they are spread evenly, or in the middle. */
static int32_t rank_between(struct cut low, struct cut high, int32_t wanted, bool evenly)
{
	int64_t ranks = (int64_t)high.rank - low.rank;
	int64_t at = evenly ? ranks * (wanted - low.work) / (high.work - low.work) : ranks / 2;
	return low.rank + (int32_t)(at < 1 ? 1 : at < ranks ? at : ranks - 1);
}

int32_t lin_span_chunk_begin(const struct lin_order *o, int32_t span, int chunk, int chunks)
{
	struct columns c = columns_of(o, span);
	int32_t nodes = c.begin[c.n] - c.begin[0], wanted = (int32_t)((int64_t)nodes * chunk / chunks);
	struct cut low = {0, 0}, high = {o->nodes, nodes}, before, after;
	if (chunk == chunks)
		return o->nodes;
	for (bool evenly = true; low.work < wanted && wanted < high.work; evenly = !evenly) {
		find_cuts(o, &c, rank_between(low, high, wanted, evenly), &before, &after);
		if (before.work <= wanted && wanted <= after.work)
			return wanted - before.work < after.work - wanted ? before.rank : after.rank;
		if (after.work < wanted)
			low = after;
		else
			high = before;
	}
	return low.work < wanted ? high.rank : low.rank;
}
