/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* linearize: nanoseconds per node of linearizing forests, from arrays.
 *
 *   usage: linearize [REPEATS [NODES [NAME]]]
 *
 * Columns: the least and the median of the repeats, which reuse the memory of an order, and the least time
 * of a first call, whose memory is fresh.  Forests of parsers have binary trees of 1 to 38 leaves, divided at
 * random; children precede their parents.  Those of dependencies have a node for each of 1 to 38 words, in the
 * order of the words: the head of a phrase is any of its words, and the rest are phrases.  NODES (a million) is
 * rounded up to whole trees.  With NAME only rows that contain it are measured. */
#include "bench/timing.h"
#include "linearize/linearize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t *child_begin, *children, *roots, *token, edges;
static struct lin_forest forest;

static int32_t begin_node(void)
{
	child_begin[forest.nodes] = edges;
	return forest.nodes++;
}

static void end_tree(int32_t root)
{
	child_begin[forest.nodes] = edges;
	roots[forest.inputs++] = root;
}

/* Node `at` of a heap has the children 2 at + 1 and 2 at + 2. */
static void make_heap(int32_t nodes, bool children_first)
{
	for (int32_t i = 0; i < nodes; i++) {
		int32_t at = children_first ? nodes - 1 - i : i;
		begin_node();
		for (int32_t c = 2 * at + 1; c <= 2 * at + 2 && c < nodes; c++)
			children[edges++] = children_first ? nodes - 1 - c : c;
	}
	end_tree(children_first ? nodes - 1 : 0);
}

static void make_children_first(int32_t nodes)
{
	make_heap(nodes | 1, true);
}

static void make_root_first(int32_t nodes)
{
	make_heap(nodes | 1, false);
}

static int32_t divide_at_random(int32_t leaves)
{
	return 1 + rand() % (leaves - 1);
}

static int32_t divide_evenly(int32_t leaves)
{
	return leaves / 2;
}

/* Appends a tree in post order: its root comes last. */
static int32_t add_tree(int32_t leaves, int32_t (*divide)(int32_t))
{
	int32_t left = leaves > 1 ? divide(leaves) : 0;
	int32_t a = left ? add_tree(left, divide) : -1, b = left ? add_tree(leaves - left, divide) : -1;
	int32_t n = begin_node();
	if (left) {
		children[edges++] = a;
		children[edges++] = b;
	}
	return n;
}

static void make_parsed(int32_t nodes)
{
	while (forest.nodes < nodes)
		end_tree(add_tree(1 + rand() % 38, divide_at_random));
}

static void make_random(int32_t nodes)
{
	end_tree(add_tree((nodes + 1) / 2, divide_at_random));
}

static void make_even(int32_t nodes)
{
	end_tree(add_tree((nodes + 1) / 2, divide_evenly));
}

/* Heads the words begin..end, which are divided before and behind the head into phrases that depend on it. */
static int32_t add_phrase(int32_t begin, int32_t end, int32_t *head)
{
	int32_t top = begin + rand() % (end - begin);
	for (int32_t at = begin, next; at < end; at = next) {
		next = at + 1 + rand() % (end - begin);
		next = at <= top && next > top ? top : next > end ? end : next;
		if (at == top)
			next = top + 1;
		else
			head[add_phrase(at, next, head)] = top;
	}
	return top;
}

static void make_dependencies(int32_t nodes)
{
	enum { WORDS = 38 };
	while (forest.nodes < nodes) {
		int32_t head[WORDS], words = 1 + rand() % WORDS, first = forest.nodes;
		int32_t top = add_phrase(0, words, head);
		head[top] = -1;
		for (int32_t n = 0; n < words; n++) {
			begin_node();
			for (int32_t c = 0; c < words; c++)
				if (head[c] == n)
					children[edges++] = first + c;
		}
		end_tree(first + top);
	}
}

/* Of squares of 10 by 10 nodes, each node has its left and its upper neighbour as children. */
static void make_grids(int32_t nodes)
{
	enum { SIDE = 10 };
	while (forest.nodes < nodes) {
		for (int i = 0; i < SIDE * SIDE; i++) {
			int32_t n = begin_node();
			if (i % SIDE)
				children[edges++] = n - 1;
			if (i / SIDE)
				children[edges++] = n - SIDE;
		}
		end_tree(forest.nodes - 1);
	}
}

/* Three cases of inner nodes, chosen at random. */
static const struct image_match zero[] = {{0, 0}}, one[] = {{0, 1}};
static const struct image_case three[] = {{"leaf", false, -1, IMAGE_EITHER, 0, NULL},
					  {"a", true, -1, IMAGE_EITHER, 1, zero},
					  {"b", true, -1, IMAGE_EITHER, 1, one},
					  {"c", true, -1, IMAGE_EITHER, 0, NULL}};
static const int32_t *tokens[1];
static const struct lin_cases cases = {4, three, tokens};

static const struct measured {
	const char *name;
	void (*make)(int32_t nodes); /* NULL = the forest above */
	struct lin_rules rules;
} measured[] = {
    {"parsed trees, post order", make_parsed, {.children = 2}},
    {"... in spans of 4 levels", NULL, {.children = 2, .span = 4}},
    {"... of three cases", NULL, {.children = 2, .cases = &cases}},
    {"... with places and parents", NULL, {.children = 2, .places = true, .parent = true}},
    {"... as any number of children", NULL, {.children = -1}},
    {"one random tree, post order", make_random, {.children = 2}},
    {"one perfect tree, post order", make_even, {.children = 2}},
    {"heap, children first", make_children_first, {.children = 2}},
    {"... in spans of 4 levels", NULL, {.children = 2, .span = 4}},
    {"heap, root first", make_root_first, {.children = 2}},
    {"dependencies, by words", make_dependencies, {.children = -1}},
    {"... in spans of 4 levels", NULL, {.children = -1, .span = 4}},
    {"grids of 10 x 10", make_grids, {.children = -1, .shared = true}},
    {"... with all parents", NULL, {.children = -1, .shared = true, .parents = true}},
};

static double linearize_once(struct lin_order *order, struct lin_rules rules)
{
	struct diags diags;
	diags_init(&diags, &allocator_default);
	double begin = read_clock();
	if (!lin_linearize(order, &forest, rules, &diags))
		exit(1);
	return read_clock() - begin;
}

static void measure_rules(const struct measured *m, double *seconds, int repeats)
{
	double first = 1e9;
	struct lin_order order;
	lin_order_init(&order, &allocator_default);
	for (int i = 0; i < 1 + (repeats - 1) / 4; i++) {
		double taken = linearize_once(&order, m->rules);
		first = taken < first ? taken : first;
		lin_order_free(&order);
	}
	linearize_once(&order, m->rules);
	for (int i = 0; i < repeats; i++)
		seconds[i] = linearize_once(&order, m->rules);
	qsort(seconds, repeats, sizeof *seconds, compare_doubles);
	double scale = 1e9 / forest.nodes;
	printf("%-36s %8.2f %8.2f %8.2f\n", m->name, seconds[0] * scale, seconds[repeats / 2] * scale,
	       first * scale);
	lin_order_free(&order);
}

static void make_forest(void (*make)(int32_t), int32_t nodes)
{
	forest.nodes = forest.inputs = edges = 0;
	make(nodes);
}

static bool allocate_forest(int32_t nodes)
{
	size_t capacity = (size_t)nodes + 100, bytes = capacity * sizeof(int32_t);
	child_begin = malloc(bytes);
	children = malloc(2 * bytes);
	roots = malloc(bytes);
	tokens[0] = token = malloc(bytes);
	if (!child_begin || !children || !roots || !token)
		return false;
	for (size_t i = 0; i < capacity; i++)
		token[i] = rand() % 3;
	forest = (struct lin_forest){.child_begin = child_begin, .children = children, .root = roots};
	return true;
}

int main(int argc, char **argv)
{
	int repeats = argc > 1 ? atoi(argv[1]) : 100, nodes = argc > 2 ? atoi(argv[2]) : 1000001;
	const char *name = argc > 3 ? argv[3] : "";
	double *seconds = repeats > 0 ? malloc(repeats * sizeof *seconds) : NULL;
	if (!seconds || nodes <= 0 || nodes > 100000000 || !allocate_forest(nodes)) {
		fputs("usage: linearize [REPEATS [NODES [NAME]]]\n", stderr);
		return 2;
	}
	printf("%-36s %8s %8s %8s\n", "ns a node", "minimum", "median", "first");
	for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
		if (measured[i].make)
			make_forest(measured[i].make, nodes);
		if (strstr(measured[i].name, name))
			measure_rules(&measured[i], seconds, repeats);
	}
	free(seconds);
	return 0;
}
