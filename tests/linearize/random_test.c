/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random forests against the definition. */
#include "tests/linearize/forests.h"

enum { NODES = 60, ROUNDS = 4000, MOST = LIN_USUAL + 3 /* children of a node */ };

static struct lin_order order;
static uint64_t state = 88172645463325252u;

static int32_t random_below(int32_t n)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (int32_t)((state >> 11) % (uint32_t)n);
}

/* A forest whose ids are shuffled; `children_of` says for each node in topological order how many earlier
 * ones it takes. */
struct random {
	struct lin_forest f;
	int32_t begin[NODES + 1], list[MOST * NODES], root[NODES], id[NODES];
	int32_t count[NODES], child[NODES][MOST];
};

static void shuffle_ids(struct random *r, int32_t nodes, bool keep)
{
	for (int32_t n = 0; n < nodes; n++)
		r->id[n] = n;
	for (int32_t n = nodes - 1; n > 0 && !keep; n--) {
		int32_t other = random_below(n + 1), id = r->id[n];
		r->id[n] = r->id[other];
		r->id[other] = id;
	}
}

/* Node n in topological order gets `slots` children, any number of them when that is negative, or none. */
static void grow_forest(struct random *r, int32_t nodes, struct lin_rules rules)
{
	int32_t free_nodes[NODES], frees = 0;
	for (int32_t n = 0; n < nodes; n++) {
		int32_t wanted = random_below(3) == 0  ? 0
				 : rules.children >= 0 ? rules.children
						       : 1 + random_below(MOST);
		int32_t have = rules.shared ? n : frees;
		r->count[n] = wanted <= have ? wanted : 0;
		for (int32_t k = 0; k < r->count[n]; k++) {
			if (rules.shared) {
				r->child[n][k] = random_below(n);
			} else {
				int32_t pick = random_below(frees);
				r->child[n][k] = free_nodes[pick];
				free_nodes[pick] = free_nodes[--frees];
			}
		}
		free_nodes[frees++] = n;
	}
}

static void lay_out(struct random *r, int32_t nodes)
{
	int32_t at[NODES];
	for (int32_t n = 0; n < nodes; n++)
		at[r->id[n]] = n;
	r->begin[0] = 0;
	for (int32_t id = 0; id < nodes; id++) {
		int32_t n = at[id];
		for (int32_t k = 0; k < r->count[n]; k++)
			r->list[r->begin[id] + k] = r->id[r->child[n][k]];
		r->begin[id + 1] = r->begin[id] + r->count[n];
	}
}

static void make_forest(struct random *r, struct lin_rules rules)
{
	int32_t nodes = 1 + random_below(NODES), inputs = 1 + random_below(5);
	shuffle_ids(r, nodes, random_below(2));
	grow_forest(r, nodes, rules);
	lay_out(r, nodes);
	for (int32_t i = 0; i < inputs; i++)
		r->root[i] = random_below(nodes);
	r->f = (struct lin_forest){nodes, inputs, r->begin, r->list, r->root, NULL, NULL, 0};
}

static void test_agreement(struct lin_rules rules, const char *what)
{
	static struct random r;
	int wrong = 0, inner = 0;
	for (int i = 0; i < ROUNDS; i++) {
		make_forest(&r, rules);
		wrong += !accepted(lin_linearize(&order, &r.f, rules, &diags)) ||
			 !order_right(&order, &r.f, rules);
		inner += order.batches > 1;
		arena_free(&arena);
	}
	tap_ok(wrong == 0 && inner > ROUNDS / 4, "%d random forests, %s, are as defined", ROUNDS, what);
}

/* Whether a node reaches itself. */
static bool on_cycle(const struct lin_forest *f, int32_t n)
{
	int32_t stack[NODES], seen[NODES] = {0}, depth = 0;
	for (stack[depth++] = n; depth;) {
		int32_t at = stack[--depth];
		for (int32_t i = f->child_begin[at]; i < f->child_begin[at + 1]; i++) {
			if (f->children[i] == n)
				return true;
			if (!seen[f->children[i]])
				seen[stack[depth++] = f->children[i]] = 1;
		}
	}
	return false;
}

/* Edges at random make cycles or do not: the search by definition and the linearizer must agree, and the node
 * named must lie on one. */
static void finds_cycles(void)
{
	static struct random r;
	int wrong = 0, cyclic = 0;
	for (int i = 0; i < ROUNDS; i++) {
		make_forest(&r, any_dag);
		if (r.begin[r.f.nodes])
			r.list[random_below(r.begin[r.f.nodes])] = random_below((int32_t)r.f.nodes);
		bool cycle = false, ok = lin_linearize(&order, &r.f, any_dag, &diags);
		for (int32_t n = 0; n < r.f.nodes; n++)
			cycle |= on_cycle(&r.f, n);
		int named = -1;
		if (!ok && diags.n && diags.at[0].id == DIAG_CYCLE)
			sscanf(diags.at[0].message, "node %d", &named);
		wrong += ok == cycle || (!ok && (named < 0 || !on_cycle(&r.f, named)));
		cyclic += cycle;
		diags_free(&diags);
	}
	tap_ok(wrong == 0 && cyclic > ROUNDS / 20, "%d of %d graphs have cycles, and a node on one is named",
	       cyclic, ROUNDS);
}

/* Binary trees in post order: every inner node takes the last two trees before it. */
static void make_post_order(struct random *r)
{
	int32_t nodes = 1 + random_below(NODES), edges = 0, roots = 0;
	for (int32_t n = 0; n < nodes; n++) {
		r->begin[n] = edges;
		if (roots > 1 && random_below(2)) {
			roots -= 2;
			r->list[edges++] = r->root[roots];
			r->list[edges++] = r->root[roots + 1];
		}
		r->root[roots++] = n;
	}
	r->begin[nodes] = edges;
	r->f = (struct lin_forest){nodes, roots, r->begin, r->list, r->root, NULL, NULL, 0};
}

/* Changes a few children, or leaves all as they are. */
static void disturb_children(struct random *r)
{
	int32_t edges = r->begin[r->f.nodes];
	for (int k = edges ? random_below(3) : 0; k > 0; k--) {
		int32_t *at = &r->list[random_below(edges)], *with = &r->list[random_below(edges)],
			child = *at;
		if (random_below(3)) {
			*at = *with;
			*with = child;
		} else {
			*at = random_below((int32_t)r->f.nodes + 2) - 1;
		}
	}
}

/* Whether all children are nodes, of one parent each, and none is its own descendant. */
static bool are_trees(const struct random *r)
{
	int parents[NODES] = {0};
	bool trees = true;
	for (int32_t e = 0; e < r->begin[r->f.nodes]; e++) {
		int32_t c = r->list[e];
		trees &= c >= 0 && c < r->f.nodes && !parents[c]++;
	}
	for (int32_t n = 0; trees && n < r->f.nodes; n++)
		trees = !on_cycle(&r->f, n);
	return trees;
}

/* Node 1 comes when only node 0 is on the stack; its other child is named as what is below. */
static void refuses_child_below_stack(void)
{
	int32_t begin[] = {0, 0, 2, 2}, list[] = {3, 0}, root = 1;
	struct lin_forest f = {3, 1, begin, list, &root, NULL, NULL, 0};
	tap_ok(!lin_linearize(&order, &f, (struct lin_rules){.children = 2}, &diags) &&
		   refused(DIAG_DANGLING_CHILD, "node 1 of input 0 is node 3"),
	       "a child behind the last node is refused where a node lacks another");
}

/* All rules that let pairs in post order be numbered and linked at once, and some that do not. */
static void test_post_order(struct lin_rules rules, bool disturb, const char *what)
{
	static struct random r;
	int wrong = 0, inner = 0, refused = 0;
	for (int i = 0; i < ROUNDS; i++) {
		make_post_order(&r);
		if (disturb)
			disturb_children(&r);
		bool right = are_trees(&r), ok = lin_linearize(&order, &r.f, rules, &diags);
		wrong += ok != right || (ok ? !order_right(&order, &r.f, rules) || diags.n : diags.n != 1);
		inner += order.batches > 1;
		refused += !ok;
		diags_free(&diags);
		arena_free(&arena);
	}
	tap_ok(wrong == 0 && inner > ROUNDS / 4 && (refused > ROUNDS / 20) == disturb,
	       "%d forests of pairs in post order%s, %s, are %s", ROUNDS, disturb ? ", disturbed" : "", what,
	       disturb ? "as defined or refused" : "as defined");
}

/* Bytes at random: refused or right, never read out of bounds. */
static void survives_noise(void)
{
	static struct random r;
	int wrong = 0;
	for (int i = 0; i < ROUNDS; i++) {
		struct lin_rules rules = {.children = random_below(4) - 1,
					  .shared = random_below(2),
					  .places = random_below(2),
					  .unlinked = random_below(2)};
		rules.parent = random_below(2);
		rules.parents = random_below(2);
		make_forest(&r, (struct lin_rules){.children = rules.children == 0 ? -1 : rules.children,
						   .shared = rules.shared});
		for (int k = random_below(3); k > 0; k--)
			switch (random_below(3)) {
			case 0:
				r.begin[random_below((int32_t)r.f.nodes)] += random_below(3) - 1;
				break;
			case 1:
				r.list[random_below(4 * NODES)] = random_below(2 * NODES) - NODES / 2;
				break;
			case 2:
				r.root[random_below((int32_t)r.f.inputs)] =
				    random_below(2 * NODES) - NODES / 2;
			}
		bool ok = lin_linearize(&order, &r.f, rules, &diags);
		wrong += ok ? !order_right(&order, &r.f, rules) || diags.n : diags.n != 1;
		diags_free(&diags);
		arena_free(&arena);
	}
	tap_ok(wrong == 0, "%d forests with random faults are refused or right", ROUNDS);
}

/* Of leaves and inner nodes; by parent, by number of children, by two tokens. */
static const struct image_match first[] = {{0, 1}}, both[] = {{0, 2}, {1, 0}};
static const struct image_case typed[] = {
    {"number", false, -1, IMAGE_EITHER, 1, first}, {"lone", false, -1, IMAGE_NO, 0, NULL},
    {"leaf", false, -1, IMAGE_EITHER, 0, NULL},	   {"unary", true, 1, IMAGE_EITHER, 0, NULL},
    {"marked", true, 2, IMAGE_YES, 2, both},	   {"top", true, -1, IMAGE_NO, 0, NULL},
    {"inner", true, -1, IMAGE_EITHER, 0, NULL},
};

static void agrees_typed(struct lin_rules rules, bool post_order, const char *what)
{
	static int32_t token[2][NODES];
	static const int32_t *const tokens[] = {token[0], token[1]};
	static const struct lin_cases cases = {sizeof typed / sizeof *typed, typed, tokens};
	for (int t = 0; t < 2; t++)
		for (int n = 0; n < NODES; n++)
			token[t][n] = random_below(4) - 1;
	rules.cases = &cases;
	if (post_order)
		test_post_order(rules, false, what);
	else
		test_agreement(rules, what);
}

int main(void)
{
	begin_tests();
	lin_order_init(&order, &allocator_default);
	test_agreement(any_tree, "trees of any arity");
	test_agreement(binary, "binary trees");
	test_agreement((struct lin_rules){.children = 2}, "plain binary trees");
	test_agreement(chain_rules, "sequences");
	test_agreement((struct lin_rules){.children = 3, .places = true}, "ternary trees");
	test_agreement(
	    (struct lin_rules){
		.children = -1, .places = true, .unlinked = true, .parent = true, .parents = true},
	    "trees of any arity, by place alone");
	test_agreement((struct lin_rules){.children = 2,
					  .edges = true,
					  .places = true,
					  .unlinked = true,
					  .parent = true,
					  .parents = true},
		       "binary trees, by place alone");
	test_agreement(any_dag, "DAGs of any arity");
	test_agreement((struct lin_rules){.children = -1, .shared = true, .unlinked = true, .parents = true},
		       "DAGs of any arity, unlinked");
	test_agreement((struct lin_rules){.children = 2, .shared = true, .places = true}, "binary DAGs");
	agrees_typed(any_tree, false, "trees of typed nodes");
	agrees_typed(binary, false, "binary trees of typed nodes");
	agrees_typed(any_dag, false, "DAGs of typed nodes");
	agrees_typed(binary, true, "typed, with places and parents");
	agrees_typed((struct lin_rules){.children = 2}, true, "typed");
	agrees_typed(any_tree, true, "typed lists with all arrays");
	agrees_typed((struct lin_rules){.children = -1}, true, "typed lists");
	for (int disturb = 0; disturb < 2; disturb++) {
		test_post_order((struct lin_rules){.children = 2}, disturb, "plain");
		test_post_order(binary, disturb, "with places and parents");
		test_post_order((struct lin_rules){.children = 2, .places = true}, disturb, "with places");
		test_post_order((struct lin_rules){.children = 2, .edges = true, .parents = true}, disturb,
				"with lists");
		test_post_order((struct lin_rules){.children = 2, .unlinked = true}, disturb, "unlinked");
		test_post_order((struct lin_rules){.children = -1}, disturb, "as lists");
		test_post_order(any_tree, disturb, "as lists with all arrays");
		test_post_order((struct lin_rules){.children = -1, .places = true, .unlinked = true}, disturb,
				"as unlinked lists");
	}
	refuses_child_below_stack();
	struct target machine = *target_at(0);
	machine.l3_bytes = 0; /* as if forests were larger */
	lin_order_describe(&order, &machine);
	test_agreement(any_tree, "trees of any arity from a stack");
	test_agreement((struct lin_rules){.children = -1, .places = true, .unlinked = true, .parent = true},
		       "the same by place alone");
	agrees_typed(any_tree, false, "trees of typed nodes from a stack");
	for (int disturb = 0; disturb < 2; disturb++) {
		test_post_order((struct lin_rules){.children = -1}, disturb, "lists from a stack");
		test_post_order(any_tree, disturb, "lists from a stack, with all arrays");
		test_post_order(
		    (struct lin_rules){.children = -1, .places = true, .parent = true, .unlinked = true},
		    disturb, "unlinked lists from a stack");
		test_post_order(binary, disturb, "far, with places and parents");
	}
	test_post_order((struct lin_rules){.children = 2}, false, "far");
	agrees_typed(binary, true, "far and typed");
	test_agreement(any_dag, "DAGs of any arity, far");
	machine = *target_at(0);
	machine.l2_bytes = 0;
	lin_order_describe(&order, &machine);
	test_agreement(any_dag, "DAGs of any arity beyond the L2 cache");
	finds_cycles();
	survives_noise();
	lin_order_free(&order);
	return end_tests();
}
