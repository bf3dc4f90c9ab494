/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_CHILDREN = 32, MOST_PERFECT = 1 << 25 };

/* --- random numbers --- */

uint32_t random_bits(struct random *r)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return r->state >> 32;
}

int random_below(struct random *r, int n)
{
	return random_bits(r) % n;
}

float random_float(struct random *r)
{
	return (random_bits(r) >> 8) * (2.f / (1 << 24)) - 1;
}

/* --- shapes, built node by node in post order --- */

bool shape_init(struct shape *s, size_t nodes, size_t edges)
{
	*s = (struct shape){.begin = calloc(nodes + 1, sizeof *s->begin),
			    .children = calloc(edges + 1, sizeof *s->children),
			    .word = calloc(nodes + 1, sizeof *s->word)};
	return s->begin && s->children && s->word;
}

uint32_t shape_edge_word(const struct shape *s, int edge)
{
	return s->word[s->children[edge]];
}

static void shape_free(struct shape *s)
{
	free(s->begin);
	free(s->children);
	free(s->word);
}

/* Returns the new node's number. */
static int add_node(struct shape *s, const int32_t *children, int count, uint32_t word)
{
	int node = s->nodes++;
	s->begin[node + 1] = s->begin[node] + count;
	for (int i = 0; i < count; i++)
		s->children[s->begin[node] + i] = children[i];
	s->word[node] = word;
	return node;
}

/* --- making --- */

/* Leaves of the first child where a span of words is divided like a phrase: in 58 % of cases one or two
 * words come first, in 14 % one or two come last, in the others any number is first. */
static int divide_span(struct random *r, int leaves)
{
	int percent = random_below(r, 100), few = 1 + random_below(r, 2);
	if (few >= leaves)
		return 1 + random_below(r, leaves - 1);
	if (percent < 58)
		return few;
	if (percent < 72)
		return leaves - few;
	return 1 + random_below(r, leaves - 1);
}

/* Recurses as deep as the tree, which has at most as many levels as leaves: the words of a sentence. */
static int32_t add_phrase(struct shape *s, struct random *r, int leaves)
{
	uint32_t word = random_bits(r);
	if (leaves == 1)
		return add_node(s, NULL, 0, word);
	int left = divide_span(r, leaves);
	int32_t a = add_phrase(s, r, left), b = add_phrase(s, r, leaves - left);
	return add_node(s, (int32_t[]){a, b}, 2, word);
}

/* Draws the length of a sentence, 2 or more, with a standard deviation of about half the mean. */
static int sentence_length(struct random *r, int mean)
{
	double sum = 0;
	for (int i = 0; i < 12; i++)
		sum += random_float(r);
	return (int)fmax(2, fmin(3.0 * mean, mean + 0.245 * mean * sum));
}

/* Adds a tree of `inner` inner nodes, which are divided at random among the root's children. */
static int32_t add_branches(struct shape *s, struct random *r, int children, int inner)
{
	int32_t child[MOST_CHILDREN];
	int below[MOST_CHILDREN] = {0};
	if (!inner)
		return add_node(s, NULL, 0, random_bits(r));
	for (int i = 0; i < inner - 1; i++)
		below[random_below(r, children)]++;
	for (int k = 0; k < children; k++)
		child[k] = add_branches(s, r, children, below[k]);
	return add_node(s, child, children, random_bits(r));
}

static bool make_parse(struct shape *s, const struct making *m, struct random *r)
{
	int leaves = sentence_length(r, m->length),
	    inner = (leaves - 1) / (m->children > 1 ? m->children - 1 : 1);
	size_t nodes = m->children == 2 ? 2 * leaves - 1 : inner * m->children + 1;
	if (!shape_init(s, nodes, nodes))
		return false;
	if (m->children == 2)
		add_phrase(s, r, leaves);
	else
		add_branches(s, r, m->children, inner);
	return true;
}

/* Nodes of a perfect tree; a number above the limit when there are too many. */
static int64_t perfect_nodes(const struct making *m, int64_t *leaves)
{
	int64_t nodes = *leaves = 1;
	for (int i = 0; i < m->length && nodes <= MOST_PERFECT; i++)
		nodes += *leaves *= m->children;
	return nodes;
}

/* Adds level by level: the children of node i of a level begin at node children * i of the level below. */
static bool make_perfect(struct shape *s, const struct making *m, struct random *r)
{
	int64_t leaves, nodes = perfect_nodes(m, &leaves);
	if (!shape_init(s, nodes, nodes))
		return false;
	while (s->nodes < leaves)
		add_node(s, NULL, 0, random_bits(r));
	for (int32_t next = 0; s->nodes < nodes;) {
		int32_t child[MOST_CHILDREN];
		for (int k = 0; k < m->children; k++)
			child[k] = next++;
		add_node(s, child, m->children, random_bits(r));
	}
	return true;
}

/* The children of a node are its neighbours to the north, the west and the northwest. */
static bool make_grid(struct shape *s, const struct making *m, struct random *r)
{
	int side = m->length;
	if (!shape_init(s, side * side, 3 * side * side))
		return false;
	for (int32_t i = 0; i < side * side; i++) {
		int32_t child[3];
		int n = 0;
		if (i >= side)
			child[n++] = i - side;
		if (i % side)
			child[n++] = i - 1;
		if (i >= side && i % side)
			child[n++] = i - side - 1;
		add_node(s, child, n, random_bits(r));
	}
	return true;
}

static bool make_sequence(struct shape *s, const struct making *m, struct random *r)
{
	if (!shape_init(s, m->length, m->length))
		return false;
	for (int32_t i = 0; i < m->length; i++)
		add_node(s, &(int32_t){i - 1}, i > 0, random_bits(r));
	return true;
}

/* In the order of enum form, with the largest `length`. */
static const struct {
	bool (*make)(struct shape *, const struct making *, struct random *);
	int most;
} makers[FORMS] = {{make_parse, 100000}, {make_perfect, 24}, {make_grid, 10000}, {make_sequence, 100000000}};

bool shapes_make(struct shapes *all, const struct making *m, size_t n, struct random *r)
{
	*all = (struct shapes){.at = calloc(n, sizeof *all->at)};
	if (!all->at)
		return complain("no memory for %zu structures", n);
	if (m->length > makers[m->form].most)
		return complain("--length of such structures is at most %d", makers[m->form].most);
	if (m->children > MOST_CHILDREN)
		return complain("trees are made whose nodes have %d children at most", MOST_CHILDREN);
	int64_t leaves;
	if (m->form == FORM_PERFECT && perfect_nodes(m, &leaves) > MOST_PERFECT)
		return complain("perfect trees have at most %d nodes: make --length smaller", MOST_PERFECT);
	while (all->n < n)
		if (!makers[m->form].make(&all->at[all->n++], m, r))
			return complain("no memory for structures of length %d", m->length);
	return true;
}

void shapes_free(struct shapes *all)
{
	for (size_t i = 0; i < all->n; i++)
		shape_free(&all->at[i]);
	free(all->at);
}
