/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Linked nodes as arrays: against a walk by recursion, for random graphs with cycles. */
#include "linearize/walk.h"
#include "tests/budget.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 60 };

/* Nodes are places in this array, which is all that a pointer to one means. */
static struct graph {
	size_t n, children[MOST];
	int child[MOST][MOST];
} graph;
static const char nodes[MOST];

static size_t children_of(void *user, const void *node)
{
	(void)user;
	return graph.children[(const char *)node - nodes];
}

static const void *child_of(void *user, const void *node, size_t slot)
{
	(void)user;
	return &nodes[graph.child[(const char *)node - nodes][slot]];
}

static const struct lin_links links = {NULL, children_of, child_of};

/* --- the reference --- */

static int number[MOST], numbered;
static bool open[MOST];

static void number_all(int node)
{
	open[node] = true;
	for (size_t i = 0; i < graph.children[node]; i++)
		if (!open[graph.child[node][i]])
			number_all(graph.child[node][i]);
	number[node] = numbered++;
}

static bool is_walk_right(const struct lin_walk *w)
{
	if (w->nodes != numbered)
		return false;
	for (int32_t i = 0; i < w->nodes; i++) {
		int node = (int)((const char *)lin_walk_node(w, i) - nodes);
		int32_t n = w->child_begin[i + 1] - w->child_begin[i];
		if (number[node] != i || (size_t)n != graph.children[node])
			return false;
		for (int32_t c = 0; c < n; c++)
			if (w->children[w->child_begin[i] + c] != number[graph.child[node][c]])
				return false;
	}
	return w->child_begin[0] == 0 && w->child_begin[w->nodes] == w->edges;
}

static unsigned state = 1;

static int random_below(int n)
{
	state = state * 1664525 + 1013904223;
	return (int)((state >> 8) % (unsigned)n);
}

/* Any child of any node: cycles, nodes in two slots of one parent, nodes that are not reached. */
static void make_graph(void)
{
	graph.n = 1 + (size_t)random_below(MOST);
	for (size_t i = 0; i < graph.n; i++) {
		graph.children[i] = (size_t)random_below(random_below(2) ? 4 : 2);
		for (size_t c = 0; c < graph.children[i]; c++)
			graph.child[i][c] = random_below((int)graph.n);
	}
	memset(open, 0, sizeof open);
	numbered = 0;
	number_all(0);
}

int main(void)
{
	struct budget budget = {.left = LONG_MAX};
	struct allocator a = {resize_budget, &budget};
	struct lin_walk w;
	struct diags diags;
	int right = 0, graphs = 2000;
	lin_walk_init(&w, &a);
	diags_init(&diags, &allocator_default);
	for (int i = 0; i < graphs; i++) {
		make_graph();
		right += lin_walk(&w, &nodes[0], &links, 0, &diags) && is_walk_right(&w);
	}
	tap_is(right, graphs, "random graphs are numbered as by recursion");
	make_graph();
	budget.left = 0;
	tap_ok(lin_walk(&w, &nodes[0], &links, 0, &diags) && is_walk_right(&w),
	       "without memory when there is enough");
	lin_walk_free(&w);
	bool told = true, done = false;
	long n = 0;
	for (; !done && n < 100; n++) {
		budget.left = n;
		done = lin_walk(&w, &nodes[0], &links, 0, &diags);
		told &= done ? is_walk_right(&w)
			     : diags.n == 1 && diags.at[0].id == DIAG_OUT_OF_MEMORY && w.nodes == 0;
		diags_free(&diags);
		lin_walk_free(&w);
	}
	tap_ok(done && told && n > 3, "memory running out at any of %ld requests is told", n - 1);
	tap_is(budget.held, 0, "and all is given back");
	return tap_done();
}
