/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures that hurt: deep, wide, large; each in an order that is kind and in one that is not. */
#include "tests/linearize/forests.h"
#include "tests/sample.h"

static struct lin_order order;

/* A forest with memory of its own. */
struct large {
	struct lin_forest f;
	int32_t *begin, *list, root;
};

static struct large large_of(int64_t nodes, int64_t edges)
{
	struct large l = {.begin = calloc(nodes + 1, sizeof(int32_t)),
			  .list = calloc(edges + 1, sizeof(int32_t))};
	l.f = (struct lin_forest){.nodes = nodes, .inputs = 1, .child_begin = l.begin, .children = l.list};
	return l;
}

static void release_forest(struct large *l)
{
	free(l->begin);
	free(l->list);
}

/* Linearizes, and checks what needs no recursion. */
static bool test_forest(struct large *l, struct lin_rules rules, int32_t leaves, int32_t batches)
{
	l->f.root = &l->root;
	bool ok = accepted(lin_linearize(&order, &l->f, rules, &diags)) && order.leaves == leaves &&
		  order.batches == batches && order.batch_begin[batches] == l->f.nodes;
	return ok && indices_right(&order, &l->f, rules);
}

static void test_chains(void)
{
	enum { N = 3000000 / SAMPLE };
	struct large l = large_of(N, N);
	for (int32_t n = 0; n < N; n++) {
		l.begin[n + 1] = n;
		l.list[n] = n;
	}
	l.root = N - 1;
	tap_ok(test_forest(&l, chain_rules, 1, N) && order.root[0] == N - 1,
	       "a chain of %d nodes, leaf first", N);
	for (int32_t n = 0; n < N; n++) {
		l.begin[n + 1] = n + 1 < N ? n + 1 : N - 1;
		l.list[n] = n + 1;
	}
	l.root = 0;
	tap_ok(test_forest(&l, chain_rules, 1, N) && order.root[0] == N - 1,
	       "a chain of %d nodes, root first", N);
	l.begin[N] = N;
	l.list[N - 1] = N / 2;
	char node[40];
	snprintf(node, sizeof node, "node %d of input 0", N / 2);
	tap_ok(!lin_linearize(&order, &l.f, any_dag, &diags) && refused(DIAG_CYCLE, node),
	       "the same with a cycle at its end");
	release_forest(&l);
}

static void test_stars(void)
{
	enum { N = 1000000 / SAMPLE };
	struct large l = large_of(N + 1, N);
	for (int32_t n = 0; n < N; n++)
		l.list[n] = n;
	l.begin[N + 1] = N;
	l.root = N;
	tap_ok(test_forest(&l, any_tree, N, 2), "a star of %d leaves, centre last", N);
	for (int32_t n = 0; n <= N; n++)
		l.begin[n + 1] = N;
	for (int32_t n = 0; n < N; n++)
		l.list[n] = N - n;
	l.root = 0;
	tap_ok(test_forest(&l, any_tree, N, 2), "a star of %d leaves, centre first", N);
	release_forest(&l);
}

/* Children 2n+1 and 2n+2, as in a heap. */
static struct large heap_of(int height)
{
	int32_t inner = ((int32_t)1 << height) - 1;
	struct large l = large_of(2 * (int64_t)inner + 1, 2 * (int64_t)inner);
	for (int32_t n = 0; n < 2 * inner + 1; n++)
		l.begin[n + 1] = n < inner ? 2 * (n + 1) : 2 * inner;
	for (int32_t i = 0; i < 2 * inner; i++)
		l.list[i] = i + 1;
	return l;
}

static void perfect_trees(void)
{
	struct large l = heap_of(19);
	tap_ok(test_forest(&l, binary, 1 << 19, 20), "a perfect tree of height 19, root first");
	tap_ok(order.batch_begin[2] - order.batch_begin[1] == 1 << 18, "its levels halve");
	release_forest(&l);
}

/* Node (x, y) has the children (x-1, y) and (x, y-1): every inner node is shared. */
static void test_grids(void)
{
	enum { SIDE = 700 };
	struct large l = large_of(SIDE * SIDE, 2 * SIDE * SIDE);
	int32_t edges = 0;
	for (int32_t n = 0; n < SIDE * SIDE; n++) {
		if (n % SIDE)
			l.list[edges++] = n - 1;
		if (n >= SIDE)
			l.list[edges++] = n - SIDE;
		l.begin[n + 1] = edges;
	}
	l.root = SIDE * SIDE - 1;
	tap_ok(test_forest(&l, any_dag, 1, 2 * SIDE - 1), "a grid of %d x %d, paths beyond number", SIDE,
	       SIDE);
	release_forest(&l);
}

static void test_reuse(void)
{
	struct lin_order first;
	struct large l = heap_of(3);
	lin_order_init(&first, &allocator_default);
	l.f.root = &l.root;
	bool ok = lin_linearize(&first, &l.f, binary, &diags) && lin_linearize(&first, &l.f, any_tree, &diags);
	void *block = first.block.at;
	for (int i = 0; i < 10; i++)
		ok &= lin_linearize(&first, &l.f, i % 2 ? binary : any_tree, &diags);
	tap_ok(accepted(ok) && first.block.at == block, "an order that is large enough takes no memory");
	lin_order_free(&first);
	release_forest(&l);
}

int main(void)
{
	begin_tests();
	lin_order_init(&order, &allocator_default);
	test_chains();
	test_stars();
	perfect_trees();
	test_grids();
	test_reuse();
	lin_order_free(&order);
	return end_tests();
}
