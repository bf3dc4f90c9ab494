/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* linearize: nanoseconds per node of linearizing forests of a million nodes, from arrays.
 *
 *   usage: linearize [REPEATS]
 *
 * The random forest has binary trees of 1 to 38 leaves, divided at random, in post order like the output
 * of parsers. The heap is one perfect tree, numbered children first or root first. Where nodes have one of
 * three cases, they are also numbered by case. */
#include "bench/timing.h"
#include "linearize/linearize.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 1000001, CAPACITY = NODES + 100 };

static int32_t child_begin[CAPACITY + 1], children[2 * CAPACITY], roots[CAPACITY], token[CAPACITY];
static struct lin_forest forest = {.child_begin = child_begin, .children = children, .root = roots};

static void make_heap(bool children_first)
{
	int32_t edges = 0;
	for (int32_t i = 0; i < NODES; i++) {
		int32_t at = children_first ? NODES - 1 - i : i;
		child_begin[i] = edges;
		for (int32_t c = 2 * at + 1; c <= 2 * at + 2 && c < NODES; c++)
			children[edges++] = children_first ? NODES - 1 - c : c;
	}
	child_begin[NODES] = edges;
	roots[0] = children_first ? NODES - 1 : 0;
	forest.nodes = NODES;
	forest.inputs = 1;
}

/* Appends a tree with `leaves` leaves; its root comes last. */
static int32_t add_tree(int leaves, int32_t *edges)
{
	int left = leaves > 1 ? 1 + rand() % (leaves - 1) : 0;
	int32_t a = left ? add_tree(left, edges) : -1, b = left ? add_tree(leaves - left, edges) : -1;
	child_begin[forest.nodes] = *edges;
	if (left) {
		children[(*edges)++] = a;
		children[(*edges)++] = b;
	}
	return forest.nodes++;
}

static void make_random(void)
{
	int32_t edges = 0;
	forest.nodes = forest.inputs = 0;
	while (forest.nodes < NODES)
		roots[forest.inputs++] = add_tree(1 + rand() % 38, &edges);
	child_begin[forest.nodes] = edges;
}

/* Three cases of inner nodes, chosen at random. */
static const struct image_match zero[] = {{0, 0}}, one[] = {{0, 1}};
static const struct image_case three[] = {{"leaf", false, -1, IMAGE_EITHER, 0, NULL},
					  {"a", true, -1, IMAGE_EITHER, 1, zero},
					  {"b", true, -1, IMAGE_EITHER, 1, one},
					  {"c", true, -1, IMAGE_EITHER, 0, NULL}};
static const int32_t *const tokens[] = {token};
static const struct lin_cases cases = {4, three, tokens};

static void make_typed(void)
{
	for (int i = 0; i < CAPACITY; i++)
		token[i] = rand() % 3;
}

static void measure_rules(const char *what, struct lin_rules rules, double *seconds, int repeats)
{
	struct lin_order order;
	struct diags diags;
	lin_order_init(&order, &allocator_default);
	diags_init(&diags, &allocator_default);
	for (int i = -3; i < repeats; i++) {
		double begin = read_clock();
		if (!lin_linearize(&order, &forest, rules, &diags))
			exit(1);
		if (i >= 0)
			seconds[i] = read_clock() - begin;
	}
	qsort(seconds, repeats, sizeof *seconds, compare_doubles);
	printf("%-40s %8.2f %8.2f\n", what, seconds[0] / forest.nodes * 1e9, seconds[repeats / 2] / forest.nodes * 1e9);
	lin_order_free(&order);
}

int main(int argc, char **argv)
{
	int repeats = argc > 1 ? atoi(argv[1]) : 100;
	double *seconds = repeats > 0 ? malloc(repeats * sizeof *seconds) : NULL;
	if (!seconds) {
		fputs("usage: linearize [REPEATS]\n", stderr);
		return 2;
	}
	static const struct lin_rules plain = {.children = 2}, spans = {.children = 2, .span = 4},
				      typed = {.children = 2, .cases = &cases};
	printf("%-40s %8s %8s\n", "ns a node", "minimum", "median");
	make_random();
	measure_rules("random binary trees, post order", plain, seconds, repeats);
	measure_rules("the same, in spans of 4 levels", spans, seconds, repeats);
	make_typed();
	measure_rules("of three cases", typed, seconds, repeats);
	make_heap(true);
	measure_rules("heap, children first", plain, seconds, repeats);
	measure_rules("the same, in spans of 4 levels", spans, seconds, repeats);
	make_heap(false);
	measure_rules("heap, root first", plain, seconds, repeats);
	free(seconds);
	return 0;
}
