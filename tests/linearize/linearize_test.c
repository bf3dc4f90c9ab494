/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/linearize/forests.h"

static struct lin_order order;

#define COUNT(...) ((int64_t)(sizeof(__VA_ARGS__) / sizeof(int32_t)))
#define LIST(...) ((int32_t[]){__VA_ARGS__})
/* FOREST(begins, children, roots): the counts are those of the lists. */
#define FOREST(begin, list, roots)                                                                           \
	((struct lin_forest){.nodes = COUNT(begin) - 1,                                                      \
			     .inputs = COUNT(roots),                                                         \
			     .child_begin = begin,                                                           \
			     .children = list,                                                               \
			     .root = roots})

static bool is_accepted(struct lin_forest f, struct lin_rules rules)
{
	return accepted(lin_linearize(&order, &f, rules, &diags)) && order_right(&order, &f, rules);
}

static bool is_refused(struct lin_forest f, struct lin_rules rules, enum diag_id id, const char *part)
{
	bool ok = !lin_linearize(&order, &f, rules, &diags) && order.nodes == 0 && order.batches == 0;
	return refused(id, part) && ok;
}

static void test_small(void)
{
	struct lin_forest none = {0}, one = FOREST(LIST(0, 0), LIST(0), LIST(0));
	tap_ok(is_accepted(none, binary) && order.batches == 0 && order.leaves == 0 &&
		   order.batch_begin[0] == 0,
	       "nothing has no batches");
	tap_ok(is_accepted(one, binary) && order.batches == 1 && order.leaves == 1 && order.root[0] == 0,
	       "one node is a leaf");
	tap_ok(is_accepted(FOREST(LIST(0, 0, 0, 2, 2, 4), LIST(0, 1, 2, 3), LIST(4)), binary) &&
		   order.batches == 3,
	       "a binary tree in post order");
	tap_ok(is_accepted(FOREST(LIST(0, 2, 4, 4, 4, 4), LIST(1, 4, 2, 3), LIST(0)), binary) &&
		   order.root[0] == 4,
	       "a binary tree with the root first");
	tap_ok(is_accepted(FOREST(LIST(0, 0, 0, 2, 2, 4), LIST(1, 0, 3, 2), LIST(4)), binary) &&
		   lin_child(&order, 0)[3] == 1,
	       "slots keep their order");
	tap_ok(is_accepted(FOREST(LIST(7, 7, 7, 9), LIST(9, 9, 9, 9, 9, 9, 9, 0, 1), LIST(2)), binary),
	       "child_begin may begin within the children");
	tap_ok(is_accepted(FOREST(LIST(0, 0, 3, 3, 3), LIST(0, 2, 3), LIST(1, 1, 3)), any_tree) &&
		   order.root[0] == 3 && order.root[2] == 2,
	       "inputs may have the same root, and a node within another as root");
	tap_ok(is_accepted(FOREST(LIST(0, 0, 1, 1), LIST(0), LIST(1)), chain_rules) && order.leaves == 2,
	       "a node that no root reaches is numbered");
	tap_ok(is_accepted(FOREST(LIST(0, 0, 0), LIST(0), LIST(0, 1)), (struct lin_rules){.children = 0}),
	       "a model without inner nodes takes leaves");
}

static void test_dags(void)
{
	struct lin_forest diamond = FOREST(LIST(0, 0, 1, 2, 4), LIST(0, 0, 1, 2), LIST(3));
	struct lin_forest twice = FOREST(LIST(0, 0, 2), LIST(0, 0), LIST(1));
	tap_ok(is_accepted(diamond, any_dag) && order.batches == 3 && order.edges == 4, "a diamond is a DAG");
	tap_ok(is_accepted(FOREST(LIST(0, 2, 3, 4, 4), LIST(1, 2, 3, 3), LIST(0)), any_dag),
	       "a diamond from its top");
	tap_ok(is_accepted(twice, (struct lin_rules){.children = 2, .shared = true}),
	       "a child may be there twice");
	tap_ok(is_refused(diamond, any_tree, DIAG_SHARED_CHILD,
			  "node 0 of input 0 is a child of node 1 of input 0 and of "
			  "node 2 of input 0"),
	       "in a tree a child with two parents is refused");
	tap_ok(is_refused(twice, binary, DIAG_SHARED_CHILD, "and again of node 1"),
	       "so is one that is there twice");
	diamond.input_begin = LIST(0);
	tap_ok(is_refused(diamond, any_tree, DIAG_SHARED_CHILD, "node 0 of input 0"),
	       "with nodes counted by input too");
}

static void test_arity(void)
{
	struct lin_forest f = FOREST(LIST(0, 0, 0, 0, 3, 3, 4), LIST(0, 1, 2, 4), LIST(3, 5));
	tap_ok(is_accepted(f, any_tree), "any number of children");
	tap_ok(is_refused(f, binary, DIAG_WRONG_ARITY,
			  "node 3 of input 0 has 3 children; the model's inner nodes have 2"),
	       "another number of children is refused");
	tap_ok(is_refused(f, (struct lin_rules){.children = 3}, DIAG_WRONG_ARITY,
			  "node 5 of input 1 has 1 child;"),
	       "and the input named");
	f.input_begin = LIST(0, 4);
	tap_ok(is_refused(f, (struct lin_rules){.children = 3}, DIAG_WRONG_ARITY,
			  "node 1 of input 1 has 1 child;"),
	       "with nodes counted by input when they are consecutive");
	tap_ok(is_refused(FOREST(LIST(0, 0, 1), LIST(0), LIST(0)), binary, DIAG_WRONG_ARITY,
			  "node 1 has 1 child;"),
	       "a node of no input is named without one");
}

static void test_ranges(void)
{
	tap_ok(is_refused(FOREST(LIST(0, 0, 2), LIST(0, 2), LIST(1)), binary, DIAG_DANGLING_CHILD,
			  "child 1 of node 1 of input 0 is node 2, but there are nodes 0 to 1"),
	       "a child past the nodes is refused");
	tap_ok(is_refused(FOREST(LIST(0, 0, 2), LIST(-1, 0), LIST(1)), any_dag, DIAG_DANGLING_CHILD,
			  "is node -1"),
	       "a negative child is refused");
	tap_ok(is_refused(FOREST(LIST(0, 0, 0), LIST(0), LIST(0, 2)), binary, DIAG_BAD_ROOT,
			  "root of input 1 is node 2"),
	       "a root past the nodes is refused");
	tap_ok(is_refused(FOREST(LIST(0, 0, 0), LIST(0), LIST(-1)), binary, DIAG_BAD_ROOT, "node -1"),
	       "a negative root is refused");
	tap_ok(is_refused((struct lin_forest){.inputs = 1, .root = LIST(0)}, binary, DIAG_BAD_ROOT,
			  "there are 0 nodes"),
	       "a root where there are no nodes is refused");
	tap_ok(is_refused(FOREST(LIST(0, 2, 1), LIST(0, 0), LIST(0)), binary, DIAG_BAD_CHILD_BEGIN,
			  "children of node 1 begin at 2 and end at 1"),
	       "a child_begin that descends is refused");
	tap_ok(
	    is_refused(FOREST(LIST(-1, 0, 0), LIST(0), LIST(0)), binary, DIAG_BAD_CHILD_BEGIN, "begin at -1"),
	    "a negative child_begin is refused");
	tap_ok(is_refused(FOREST(LIST(0, INT32_MAX, INT32_MIN, 0), LIST(0), LIST(0)), binary, DIAG_BAD_CHILD_BEGIN,
			  "children of node 1 begin at 2147483647 and end at -2147483648"),
	       "a child_begin that descends by more than an int32 is refused");
}

/* An order that is used again finds any value in its memory, INT32_MAX, too: overflows are for UBSan to see. */
static void test_memory_used_before(void)
{
	struct lin_forest f = FOREST(LIST(0, 0, 0, 2, 2, 4), LIST(0, 1, 2, 3), LIST(4));
	bool ok = is_accepted(f, binary);
	for (int64_t i = 0; i < f.nodes + 2; i++)
		order.height[i] = INT32_MAX;
	tap_ok(ok && is_accepted(f, binary), "what memory had before is not read");
}

static void test_arguments(void)
{
	struct lin_forest f = FOREST(LIST(0, 0, 2), LIST(0, 1), LIST(0)), g = f;
	g.nodes = -1;
	tap_ok(is_refused(g, binary, DIAG_BAD_ARGUMENT, "-1 nodes"), "a negative count is refused");
	g.nodes = INT32_MAX;
	tap_ok(is_refused(g, binary, DIAG_TOO_MANY_NODES, "2147483647 nodes"), "2^31-1 nodes are refused");
	g = f, g.inputs = INT64_MAX;
	tap_ok(is_refused(g, binary, DIAG_TOO_MANY_NODES, "inputs"), "too many inputs are refused");
	g = f, g.child_begin = NULL;
	tap_ok(is_refused(g, binary, DIAG_BAD_ARGUMENT, "child_begin"), "a missing child_begin is refused");
	g = f, g.children = NULL;
	tap_ok(is_refused(g, binary, DIAG_BAD_ARGUMENT, "children"), "missing children are refused");
	g = f, g.root = NULL;
	tap_ok(is_refused(g, binary, DIAG_BAD_ARGUMENT, "root"), "missing roots are refused");
}

static void test_cycles(void)
{
	tap_ok(is_refused(FOREST(LIST(0, 1), LIST(0), LIST(0)), any_tree, DIAG_CYCLE,
			  "node 0 of input 0 is its own"),
	       "a node that is its own child is refused");
	tap_ok(is_refused(FOREST(LIST(0, 1, 2, 3, 4), LIST(1, 2, 3, 1), LIST(0)), any_dag, DIAG_CYCLE,
			  "node 1 of input 0"),
	       "the node named is on the cycle, not above it");
	tap_ok(is_refused(FOREST(LIST(0, 0, 1, 3, 4), LIST(2, 3, 0, 2), LIST(1)), any_dag, DIAG_CYCLE,
			  "node 2 of input 0"),
	       "nor below it");
	tap_ok(is_refused(FOREST(LIST(0, 0, 1, 2), LIST(2, 1), LIST(0)), any_tree, DIAG_CYCLE,
			  "node 1 is its own"),
	       "a cycle that no root reaches is refused");
}

int main(void)
{
	begin_tests();
	lin_order_init(&order, &allocator_default);
	test_small();
	test_dags();
	test_arity();
	test_ranges();
	test_memory_used_before();
	test_arguments();
	test_cycles();
	lin_order_free(&order);
	return end_tests();
}
