/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Batches of one kind each: that they are an order, and how many there are against other orders. */
#include "tests/linearize/forests.h"

enum { MOST = 4000, KINDS = 3 };

/* Kinds are those of a token; two cases of inner nodes that are one kind; leaves have two cases. */
static const struct image_match zero[] = {{0, 0}}, one[] = {{0, 1}}, two[] = {{0, 2}};
static const struct image_case table[] = {
    {"quiet", false, -1, IMAGE_EITHER, 1, zero}, {"leaf", false, -1, IMAGE_EITHER, 0, NULL},
    {"a", true, -1, IMAGE_EITHER, 1, zero},	 {"b", true, -1, IMAGE_EITHER, 1, one},
    {"c", true, -1, IMAGE_EITHER, 1, two},	 {"other", true, -1, IMAGE_EITHER, 0, NULL},
};
enum { CASES = sizeof table / sizeof *table };
static const struct lin_kinds all_turns = {false, KINDS, {0, 0, 0, 1, 2, 2}},
			      least = {true, KINDS, {0, 0, 0, 1, 2, 2}};

static struct lin_order order;

/* --- forests under construction --- */

static struct {
	int32_t nodes, edges, inputs;
	int32_t begin[MOST + 1], children[4 * MOST], root[MOST], token[MOST];
} made;
static const int32_t *const tokens[] = {made.token};
static const struct lin_cases cases = {CASES, table, tokens};

static uint64_t state = 88172645463325252u;

static int32_t below(int32_t n)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (int32_t)((state >> 11) % (uint32_t)n);
}

static void clear(void)
{
	made.nodes = made.edges = made.inputs = 0;
	made.begin[0] = 0;
}

static int32_t add(int32_t token, int32_t count, const int32_t *children)
{
	for (int32_t i = 0; i < count; i++)
		made.children[made.edges++] = children[i];
	made.token[made.nodes] = token;
	made.begin[++made.nodes] = made.edges;
	return made.nodes - 1;
}

static struct lin_forest forest(void)
{
	return (struct lin_forest){made.nodes, made.inputs, made.begin, made.children, made.root, NULL, NULL, 0};
}

/* A node on top of another, of a random kind. */
static void add_chain(int32_t length)
{
	int32_t top = add(0, 0, NULL);
	while (length-- > 0)
		top = add(below(KINDS), 1, &top);
	made.root[made.inputs++] = top;
}

static int32_t add_tree(int32_t leaves)
{
	if (leaves < 2)
		return below(4) ? add(0, 0, NULL) : add(below(KINDS), 1, (int32_t[]){add(0, 0, NULL)});
	int32_t left = 1 + below(leaves - 1), pair[] = {add_tree(left), add_tree(leaves - left)};
	return add(below(KINDS), 2, pair);
}

/* Of each of so many characters a node of one kind on top of the one before; over some of them a word, a node
 * of another kind from where it begins to where it ends, which the next character reads. */
static void add_lattice(int32_t length)
{
	int32_t word = -1, end = 0, last = add(0, 0, NULL);
	for (int32_t i = 0; i < length; i++) {
		bool ends = word >= 0 && i == end;
		last = add(0, ends ? 2 : 1, (int32_t[]){last, word});
		word = ends ? -1 : word;
		if (word < 0 && below(2)) {
			word = add(1, 1, &last);
			end = i + 1 + below(4);
		}
	}
	made.root[made.inputs++] = last;
}

static void add_dag(int32_t nodes)
{
	int32_t first = made.nodes;
	for (int32_t n = 0; n < nodes; n++) {
		int32_t count = n ? below(4) : 0, children[4];
		for (int32_t i = 0; i < count; i++)
			children[i] = first + below(n);
		add(below(4), count, children);
	}
	made.root[made.inputs++] = first + nodes - 1;
}

/* Ids exchanged at random. */
static void shuffle(void)
{
	static int32_t id[MOST], from[MOST], begin[MOST + 1], children[4 * MOST], token[MOST];
	for (int32_t n = 0; n < made.nodes; n++) {
		int32_t other = below(n + 1);
		from[n] = from[other];
		from[other] = n;
	}
	for (int32_t n = 0; n < made.nodes; n++)
		id[from[n]] = n;
	for (int32_t n = 0; n < made.nodes; n++) {
		const int32_t *at = made.begin + from[n];
		begin[n + 1] = begin[n] + at[1] - at[0];
		token[n] = made.token[from[n]];
		for (int32_t i = at[0]; i < at[1]; i++)
			children[begin[n] + i - at[0]] = id[made.children[i]];
	}
	for (int32_t i = 0; i < made.inputs; i++)
		made.root[i] = id[made.root[i]];
	memcpy(made.begin, begin, sizeof begin);
	memcpy(made.children, children, sizeof children);
	memcpy(made.token, token, sizeof token);
}

/* --- orders --- */

static struct lin_rules rules_of(const struct lin_kinds *kinds)
{
	return (struct lin_rules){
	    .children = -1, .shared = true, .cases = &cases, .kinds = kinds, .origins = true};
}

static bool number(const struct lin_kinds *kinds)
{
	struct lin_forest f = forest();
	return accepted(lin_linearize(&order, &f, rules_of(kinds), &diags));
}

/* Ranges of inner nodes that kernels run over: kinds by batch. */
static int32_t ranges(void)
{
	int32_t n = 0;
	for (int32_t b = 1; b < order.batches; b++) {
		unsigned kinds = 0;
		for (int32_t c = 0; c < CASES; c++) {
			const int32_t *begin = order.case_begin + b * CASES + c;
			kinds |= (unsigned)(begin[0] < begin[1]) << all_turns.of[c];
		}
		n += __builtin_popcount(kinds);
	}
	return n;
}

/* Every child is in an earlier batch, leaves are batch 0, no batch is empty; a batch has nodes of one kind
 * where they are turns, by case and in it by id. */
static bool legal(void)
{
	struct lin_forest f = forest();
	bool ok = indices_right(&order, &f, rules_of(NULL)) && order.batch_begin[order.batches] == f.nodes;
	for (int32_t b = 0; ok && b < order.batches; b++) {
		int32_t begin = order.batch_begin[b], end = order.batch_begin[b + 1];
		ok = begin < end && order.case_begin[b * CASES] == begin;
		for (int32_t n = begin; ok && n < end; n++) {
			int32_t id = order.order[n], c = order.case_of[n];
			ok = c == naive_case(&f, &cases, id) && order.origin[n] == begin &&
			     (b > 0) == (n >= order.leaves);
			ok &= n == begin || order.case_of[n - 1] < c ||
			      (order.case_of[n - 1] == c && order.order[n - 1] < id);
			ok &= !order.turns || b == 0 || all_turns.of[c] == all_turns.of[order.case_of[begin]];
			for (int32_t i = f.child_begin[id]; ok && i < f.child_begin[id + 1]; i++)
				ok = order.number[f.children[i]] < begin;
		}
	}
	return ok;
}

/* --- the fewest turns, searched: sets of inner nodes that are done, step by step --- */

enum { SMALL = 14 };

static int32_t fewest(void)
{
	static uint8_t seen[1 << SMALL], turns_to[1 << SMALL];
	static int32_t queue[1 << SMALL];
	int32_t bit[SMALL], kind[SMALL], bits = 0, of[SMALL + 1], head = 0, tail = 0;
	unsigned needs[SMALL];
	for (int32_t n = 0; n < made.nodes; n++) {
		if ((of[n] = made.begin[n] < made.begin[n + 1] ? bits : -1) < 0)
			continue;
		bit[bits] = n;
		kind[bits] = made.token[n] > 2 ? 2 : made.token[n];
		needs[bits] = 0;
		for (int32_t i = made.begin[n]; i < made.begin[n + 1]; i++)
			needs[bits] |= of[made.children[i]] < 0 ? 0 : 1u << of[made.children[i]];
		bits++;
	}
	memset(seen, 0, sizeof seen);
	for (seen[queue[tail++] = 0] = 1, turns_to[0] = 0; queue[head] != (1 << bits) - 1; head++)
		for (int32_t k = 0; k < KINDS; k++) {
			unsigned done = queue[head], next = done;
			for (int32_t i = 0; i < bits; i++)
				if (kind[i] == k && (needs[i] & ~done) == 0)
					next |= 1u << i;
			if (!seen[next]) {
				seen[next] = 1;
				turns_to[next] = turns_to[done] + 1;
				queue[tail++] = next;
			}
		}
	(void)bit;
	return turns_to[(1 << bits) - 1];
}

/* --- tests --- */

static void test_random(void)
{
	int wrong = 0, more = 0, turned = 0;
	for (int i = 0; i < 3000; i++) {
		clear();
		for (int k = 1 + below(3); k > 0; k--)
			add_dag(1 + below(40));
		if (below(2))
			shuffle();
		wrong += !number(NULL) || order.turns || !legal();
		int32_t by_depth = ranges();
		wrong += !number(&all_turns) || order.turns != (order.edges > 0) || !legal() ||
			 ranges() != order.batches - 1;
		int32_t by_case = ranges();
		wrong += !number(&least) || !legal();
		more += ranges() != (by_case < by_depth ? by_case : by_depth);
		turned += order.turns;
		arena_free(&arena);
	}
	tap_ok(wrong == 0, "batches of one kind are an order of random DAGs");
	tap_ok(more == 0 && turned > 1000, "the order of fewer ranges is taken");
}

static void test_small(void)
{
	int wrong = 0, optimal = 0, rounds = 1000;
	double greedy = 0, best = 0, depth = 0;
	for (int i = 0; i < rounds; i++) {
		clear();
		add_dag(SMALL);
		wrong += !number(NULL);
		depth += ranges();
		wrong += !number(&all_turns);
		int32_t turns = order.batches - 1, few = fewest();
		wrong += turns < few;
		optimal += turns == few;
		greedy += turns;
		best += few;
	}
	tap_ok(wrong == 0 && optimal > rounds * 9 / 10,
	       "%d of %d small DAGs have the fewest turns that there are: %.3f times as many on average, by "
	       "height %.3f",
	       optimal, rounds, greedy / best, depth / best);
}

/* Of a minibatch of some structures. */
static void test_ratio(const char *what, void (*add_one)(int32_t), int32_t size, double at_least)
{
	int64_t depth = 0, turns = 0;
	for (int round = 0; round < 20; round++) {
		clear();
		for (int i = 0; i < 10; i++)
			add_one(size / 2 + below(size));
		depth += number(NULL) ? ranges() : 0;
		turns += number(&least) ? ranges() : 0;
	}
	tap_ok(turns && depth >= at_least * turns, "%s: %.2f times fewer ranges than by height (%.1f, %.1f)",
	       what, (double)depth / turns, turns / 20., depth / 20.);
}

static void add_parse(int32_t leaves)
{
	made.root[made.inputs++] = add_tree(leaves);
}

/* Two kinds take turns, and are met at another height by every other structure. */
static void test_alternating(void)
{
	clear();
	for (int i = 0; i < 2; i++) {
		int32_t top = add(0, 0, NULL);
		for (int k = 0; k < 10 + i; k++)
			top = add((k + i) & 1, 1, &top);
		made.root[made.inputs++] = top;
	}
	int32_t by_depth = number(NULL) ? ranges() : 0;
	tap_ok(by_depth == 21 && number(&least) && ranges() == 11,
	       "two chains that are one turn apart: 11 turns, not %d", by_depth);
}

static void test_none(void)
{
	clear();
	tap_ok(number(&all_turns) && order.batches == 0 && !order.turns, "no nodes");
	made.root[made.inputs++] = add(1, 0, NULL);
	tap_ok(number(&all_turns) && order.batches == 1 && order.leaves == 1, "a leaf");
	clear();
	add_chain(3);
	struct lin_forest f = forest();
	struct lin_rules rules = {.children = 1, .cases = &cases, .kinds = &all_turns, .span = 2};
	tap_ok(accepted(lin_linearize(&order, &f, rules, &diags)) && order.turns && !order.span,
	       "no spans of turns");
}

int main(void)
{
	begin_tests();
	lin_order_init(&order, &allocator_default);
	test_none();
	test_alternating();
	test_random();
	test_small();
	test_ratio("chains", add_chain, 20, 1.1);
	test_ratio("trees", add_parse, 20, 1.1);
	test_ratio("lattices", add_lattice, 30, 1.2);
	lin_order_free(&order);
	return end_tests();
}
