/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Spans of levels: post orders, and shares between which there is no edge of the span. */
#include "tests/linearize/forests.h"

enum { NODES = 80, ROUNDS = 1500, MAX_CHUNKS = 5 };

static struct lin_order order;
static uint64_t state = 88172645463325252u;

static int32_t random_below(int32_t n)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (int32_t)((state >> 11) % (uint32_t)n);
}

/* Trees in post order, whose ids are then shuffled if wanted. */
struct trees {
	struct lin_forest f;
	int32_t begin[NODES + 1], list[NODES], root[NODES], id[NODES];
	int32_t first[NODES], count[NODES], child[NODES]; /* before that */
};

static void grow_trees(struct trees *t, int32_t nodes, int arity)
{
	int32_t open[NODES], n = 0, edges = 0;
	for (int32_t i = 0; i < nodes; i++) {
		int32_t wanted = random_below(3) == 0 ? 0 : arity >= 0 ? arity : 1 + random_below(3);
		t->count[i] = wanted <= n ? wanted : 0;
		t->first[i] = edges;
		memcpy(t->child + edges, open + n - t->count[i], t->count[i] * sizeof *open);
		edges += t->count[i];
		n -= t->count[i];
		open[n++] = i;
	}
	memcpy(t->root, open, n * sizeof *open);
	t->f = (struct lin_forest){nodes, n, t->begin, t->list, t->root, NULL, NULL, 0};
}

static void name_nodes(struct trees *t, bool shuffle)
{
	int32_t at[NODES], nodes = t->f.nodes;
	for (int32_t n = 0; n < nodes; n++)
		t->id[n] = n;
	for (int32_t n = nodes - 1; n > 0 && shuffle; n--) {
		int32_t other = random_below(n + 1), id = t->id[n];
		t->id[n] = t->id[other];
		t->id[other] = id;
	}
	for (int32_t n = 0; n < nodes; n++)
		at[t->id[n]] = n;
	t->begin[0] = 0;
	for (int32_t id = 0; id < nodes; id++) {
		int32_t n = at[id];
		for (int32_t k = 0; k < t->count[n]; k++)
			t->list[t->begin[id] + k] = t->id[t->child[t->first[n] + k]];
		t->begin[id + 1] = t->begin[id] + t->count[n];
	}
	for (int64_t i = 0; i < t->f.inputs; i++)
		t->root[i] = t->id[t->root[i]];
}

/* Exchanges the first two of three or more children: each node still follows its last child, but ids are no post
 * order. */
static void swap_children(struct trees *t)
{
	for (int32_t n = 0; n < t->f.nodes; n++)
		if (t->begin[n + 1] - t->begin[n] > 2) {
			int32_t *first = t->list + t->begin[n], second = first[1];
			first[1] = first[0];
			first[0] = second;
		}
}

/* --- what must hold --- */

/* Cases rise within a level, and ranks within a case. */
static bool follows_batch(const struct lin_order *o, int32_t n)
{
	int32_t before = o->cases ? o->case_of[n - 1] : 0, here = o->cases ? o->case_of[n] : 0;
	return before < here || (before == here && o->rank[n - 1] < o->rank[n]);
}

/* Levels are as without spans, and ranks a permutation that puts children before parents. */
static bool has_ranks(const struct lin_order *o, const struct lin_forest *f)
{
	int32_t *height = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*seen = ARENA_ARRAY(&arena, int32_t, f->nodes + 1);
	bool ok = true;
	memset(height, -1, f->nodes * sizeof *height);
	for (int32_t b = 0; b < o->batches; b++)
		for (int32_t n = o->batch_begin[b]; n < o->batch_begin[b + 1]; n++) {
			ok &= naive_height(f, height, o->order[n]) == b && !seen[o->rank[n]]++;
			ok &= n == o->batch_begin[b] || follows_batch(o, n);
		}
	for (int32_t id = 0; id < f->nodes; id++)
		for (int32_t i = f->child_begin[id]; i < f->child_begin[id + 1]; i++)
			ok &= o->rank[o->number[f->children[i]]] < o->rank[o->number[id]];
	return ok && o->batch_begin[0] == 0 && o->batch_begin[o->batches] == f->nodes;
}

static int chunk_of(const int32_t *share, int chunks, int32_t rank)
{
	int chunk = 0;
	while (chunk + 1 < chunks && share[chunk + 1] <= rank)
		chunk++;
	return chunk;
}

static bool are_chunks_closed(const struct lin_order *o, const struct lin_forest *f, int32_t span,
			      const int32_t *share, int chunks, int32_t *work)
{
	bool ok = true;
	for (int32_t b = 0; b < o->batches; b++)
		for (int32_t n = o->batch_begin[b]; lin_span_of(o, b) == span && n < o->batch_begin[b + 1];
		     n++) {
			int chunk = chunk_of(share, chunks, o->rank[n]);
			const int32_t *at = f->child_begin + o->order[n];
			work[chunk]++;
			for (int32_t i = at[0]; i < at[1]; i++) {
				int32_t c = o->number[f->children[i]], level = 0;
				while (o->batch_begin[level + 1] <= c)
					level++;
				ok &= lin_span_of(o, level) != span ||
				      chunk_of(share, chunks, o->rank[c]) == chunk;
			}
		}
	return ok;
}

/* The nodes of the greatest subtree in a span. */
static int32_t largest_subtree(const struct lin_order *o, const struct lin_forest *f, int32_t span)
{
	int32_t *size = ARENA_ARRAY(&arena, int32_t, f->nodes + 1), most = 0;
	for (int32_t b = 0; b < o->batches; b++)
		for (int32_t n = o->batch_begin[b]; lin_span_of(o, b) == span && n < o->batch_begin[b + 1];
		     n++) {
			const int32_t *at = f->child_begin + o->order[n];
			size[n] = 1;
			for (int32_t i = at[0]; i < at[1]; i++)
				size[n] += size[o->number[f->children[i]]];
			most = size[n] > most ? size[n] : most;
		}
	return most;
}

static bool shares_right(const struct lin_order *o, const struct lin_forest *f, int32_t span, int chunks)
{
	int32_t share[MAX_CHUNKS + 1], work[MAX_CHUNKS] = {0}, nodes = 0;
	bool ok = true;
	for (int p = 0; p <= chunks; p++) {
		share[p] = lin_span_chunk_begin(o, span, p, chunks);
		ok &= !p || share[p - 1] <= share[p];
	}
	ok &=
	    share[0] == 0 && share[chunks] == o->nodes && are_chunks_closed(o, f, span, share, chunks, work);
	for (int p = 0; p < chunks; p++)
		nodes += work[p];
	for (int p = 0; p < chunks; p++)
		ok &= work[p] <= nodes / chunks + largest_subtree(o, f, span) + 1;
	int32_t cases = o->cases ? o->cases : 1;
	const int32_t *begin = o->cases ? o->case_begin : o->batch_begin;
	for (int32_t i = 0; i < o->batches * cases; i++)
		for (int p = 0; p < chunks; p++) {
			int32_t n = lin_first_of_rank(o, begin[i], begin[i + 1], share[p]);
			ok &= n == begin[i] || o->rank[n - 1] < share[p];
			ok &= n == begin[i + 1] || o->rank[n] >= share[p];
		}
	return ok;
}

static bool spans_right(const struct lin_order *o, const struct lin_forest *f)
{
	bool ok = true;
	for (int32_t span = 1; o->batches > 1 && span <= lin_span_of(o, o->batches - 1); span++)
		for (int chunks = 1; chunks <= MAX_CHUNKS; chunks++)
			ok &= shares_right(o, f, span, chunks);
	return ok;
}

/* --- the definition, the slow way --- */

/* Ranks by id: roots as their ids rise, of each the subtrees of its children in turn, then itself. */
static int32_t rank_subtree(const struct lin_forest *f, int32_t id, int32_t next, int32_t *rank)
{
	for (int32_t i = f->child_begin[id]; i < f->child_begin[id + 1]; i++)
		next = rank_subtree(f, f->children[i], next, rank);
	rank[id] = next;
	return next + 1;
}

/* What is known of each node, by id; `at` is by rank. */
struct defined {
	int32_t parent[NODES], rank[NODES], at[NODES], height[NODES];
};

static void define_nodes(const struct lin_forest *f, struct defined *d)
{
	int32_t next = 0;
	memset(d->parent, -1, sizeof d->parent);
	memset(d->height, -1, sizeof d->height);
	for (int32_t id = 0; id < f->nodes; id++)
		for (int32_t i = f->child_begin[id]; i < f->child_begin[id + 1]; i++)
			d->parent[f->children[i]] = id;
	for (int32_t id = 0; id < f->nodes; id++) {
		if (d->parent[id] < 0)
			next = rank_subtree(f, id, next, d->rank);
		naive_height(f, d->height, id);
	}
	for (int32_t id = 0; id < f->nodes; id++)
		d->at[d->rank[id]] = id;
}

/* Numbers are by height, in it by case, in it by rank. */
static bool numbers_defined(const struct lin_order *o, const struct lin_forest *f, const struct lin_cases *by,
			    const struct defined *d)
{
	int32_t n = 0;
	bool ok = true;
	for (int32_t b = 0; b < o->batches; b++) {
		ok &= o->batch_begin[b] == n;
		for (int32_t c = 0; c < (by ? by->n : 1); c++) {
			ok &= !by || o->case_begin[b * by->n + c] == n;
			for (int32_t r = 0; r < f->nodes; r++)
				if (d->height[d->at[r]] == b && naive_case(f, by, d->at[r]) == c) {
					ok &= o->order[n] == d->at[r] && o->number[d->at[r]] == n && o->rank[n] == r;
					ok &= !by || o->case_of[n] == c;
					n++;
				}
		}
	}
	return ok && n == f->nodes && (!by || o->case_begin[o->batches * by->n] == n);
}

/* The nodes of a span below the cut that is the nearest to so many: a cut stands behind each of its nodes whose parent is
 * not in it. */
static int32_t nearest_cut(const struct lin_order *o, const struct lin_forest *f, const struct defined *d, int32_t span,
			   int32_t wanted)
{
	int32_t work = 0, before = 0;
	for (int32_t r = 0; r < f->nodes; r++) {
		int32_t id = d->at[r], up = d->parent[id];
		if (lin_span_of(o, d->height[id]) != span)
			continue;
		work++;
		if (up >= 0 && lin_span_of(o, d->height[up]) == span)
			continue;
		if (work >= wanted)
			break;
		before = work;
	}
	return wanted - before < work - wanted ? before : work;
}

static int32_t nodes_below(const struct lin_order *o, const struct lin_forest *f, const struct defined *d, int32_t span,
			   int32_t rank)
{
	int32_t nodes = 0;
	for (int32_t r = 0; r < rank && r < f->nodes; r++)
		nodes += lin_span_of(o, d->height[d->at[r]]) == span;
	return nodes;
}

static bool chunks_defined(const struct lin_order *o, const struct lin_forest *f, const struct defined *d)
{
	bool ok = true;
	for (int32_t span = 1; o->batches > 1 && span <= lin_span_of(o, o->batches - 1); span++)
		for (int chunks = 2; chunks <= MAX_CHUNKS; chunks++)
			for (int chunk = 0; chunk < chunks; chunk++) {
				int32_t nodes = nodes_below(o, f, d, span, f->nodes),
					rank = lin_span_chunk_begin(o, span, chunk, chunks);
				ok &= nodes_below(o, f, d, span, rank) == nearest_cut(o, f, d, span, nodes * chunk / chunks);
			}
	return ok;
}

static bool as_defined(const struct lin_order *o, const struct lin_forest *f, const struct lin_cases *by)
{
	static struct defined d;
	define_nodes(f, &d);
	return numbers_defined(o, f, by, &d) && chunks_defined(o, f, &d);
}

/* --- tests --- */

static const struct image_case cases[] = {{"leaf", false, -1, IMAGE_EITHER, 0, NULL},
					  {"unary", true, 1, IMAGE_EITHER, 0, NULL},
					  {"top", true, -1, IMAGE_NO, 0, NULL},
					  {"inner", true, -1, IMAGE_EITHER, 0, NULL}};
static const struct lin_cases told = {4, cases, NULL};

static void test_agreement(int arity, const struct lin_cases *by, const char *what)
{
	static const int levels[] = {2, 3, 5, 64};
	static struct trees t;
	int wrong = 0, moved = 0;
	for (int i = 0; i < ROUNDS; i++) {
		struct lin_rules rules = {.children = arity,
					  .edges = random_below(4) == 0,
					  .places = random_below(2),
					  .unlinked = random_below(8) == 0,
					  .cases = by,
					  .parent = random_below(2),
					  .parents = random_below(4) == 0,
					  .span = levels[i % (sizeof levels / sizeof *levels)]};
		grow_trees(&t, 1 + random_below(NODES), arity);
		name_nodes(&t, i / 4 % 2);
		if (i / 8 % 2)
			swap_children(&t);
		wrong += !accepted(lin_linearize(&order, &t.f, rules, &diags)) || !has_ranks(&order, &t.f) ||
			 !indices_right(&order, &t.f, rules) || !spans_right(&order, &t.f) ||
			 !as_defined(&order, &t.f, by);
		moved += order.rank != order.order;
		arena_free(&arena);
	}
	tap_ok(wrong == 0 && moved > ROUNDS / 4 && moved < ROUNDS,
	       "%d random forests, %s: subtrees of a span are in one share", ROUNDS, what);
}

/* Without a post order, numbers follow one; with it they are the same as without spans. */
static void keeps_numbers(void)
{
	static struct trees t;
	struct lin_order plain;
	bool same = true;
	lin_order_init(&plain, &allocator_default);
	for (int i = 0; i < 100; i++) {
		grow_trees(&t, NODES, 2);
		name_nodes(&t, false);
		same &= lin_linearize(&plain, &t.f, binary, &diags) &&
			lin_linearize(&order, &t.f, (struct lin_rules){.children = 2, .span = 3}, &diags) &&
			!memcmp(plain.number, order.number, NODES * sizeof *plain.number);
	}
	tap_ok(same && !plain.rank && order.rank == order.order, "ids in post order keep their numbers");
	lin_order_free(&plain);
}

static void refuses_sharing(void)
{
	static const int32_t begin[] = {0, 0, 2}, list[] = {0, 0}, root[] = {1};
	struct lin_forest f = {2, 1, begin, list, root, NULL, NULL, 0};
	tap_ok(lin_linearize(&order, &f, (struct lin_rules){-1, .shared = true, .span = 4}, &diags) &&
		   !order.rank && !order.span,
	       "where nodes have several parents there are no spans");
}

/* A chain of many nodes and a star, names in reverse: no recursion, and no cut within the chain. */
static void stands_depth(void)
{
	enum { LONG = 300000 };
	int32_t *begin = ARENA_ARRAY(&arena, int32_t, LONG + 1), *list = ARENA_ARRAY(&arena, int32_t, LONG),
		root = 0;
	for (int32_t n = 0; n < LONG; n++) {
		begin[n + 1] = begin[n] + (n + 1 < LONG);
		list[begin[n]] = n + 1;
	}
	struct lin_forest f = {LONG, 1, begin, list, &root, NULL, NULL, 0};
	bool ok = accepted(lin_linearize(&order, &f, (struct lin_rules){.children = 1, .span = 64}, &diags));
	tap_ok(ok && order.batches == LONG && order.rank[LONG - 1] == LONG - 1 &&
		   lin_span_chunk_begin(&order, 2, 1, 2) >= 129,
	       "a chain of %d nodes, the first the root", LONG);
	begin[1] = LONG - 1;
	for (int32_t n = 1; n < LONG; n++) {
		begin[n + 1] = LONG - 1;
		list[n - 1] = n;
	}
	ok = accepted(lin_linearize(&order, &f, (struct lin_rules){.children = -1, .span = 64}, &diags));
	tap_ok(ok && order.batches == 2 && order.leaves == LONG - 1 &&
		   lin_span_chunk_begin(&order, 1, 1, 2) <= LONG,
	       "a star of as many");
	arena_free(&arena);
}

static void takes_little(void)
{
	int32_t begin[] = {0, 0}, root[] = {0};
	struct lin_forest none = {0}, one = {1, 1, begin, NULL, root, NULL, NULL, 0};
	struct lin_rules rules = {-1, .span = 2};
	tap_ok(accepted(lin_linearize(&order, &none, rules, &diags)) && order.batches == 0, "no nodes");
	tap_ok(accepted(lin_linearize(&order, &one, rules, &diags)) && order.batches == 1 &&
		   order.rank[0] == 0,
	       "one node");
}

int main(void)
{
	begin_tests();
	lin_order_init(&order, &allocator_default);
	test_agreement(-1, NULL, "trees of any arity");
	test_agreement(-1, &told, "trees of any arity, by cases");
	test_agreement(2, NULL, "binary trees");
	test_agreement(1, NULL, "sequences");
	test_agreement(3, NULL, "ternary trees");
	test_agreement(2, &told, "binary trees, by cases");
	struct target machine = *target_at(0);
	machine.l3_bytes = 0; /* as if forests were larger */
	lin_order_describe(&order, &machine);
	test_agreement(-1, NULL, "trees of any arity, far");
	test_agreement(2, NULL, "binary trees, far");
	keeps_numbers();
	refuses_sharing();
	stands_depth();
	takes_little();
	lin_order_free(&order);
	return end_tests();
}
