/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/linearize/forests.h"

#include "io/file.h"
#include "io/ptb.h"

static struct lin_collect collect;
static struct lin_order order;
static int calls;
static size_t largest = SIZE_MAX; /* of one block that is given out */

static void *count_calls(void *context, void *p, size_t old_size, size_t new_size)
{
	calls += new_size != 0;
	return new_size > largest ? NULL : allocator_default.resize(context, p, old_size, new_size);
}

static const struct allocator counting = {count_calls, NULL};

/* A leaf, and a node over two leaves whose arrays begin elsewhere than at 0. */
static const int32_t leaf_begin[] = {0, 0}, first_pair[] = {1, 1, 1, 3}, pair[] = {99, 0, 1};

static bool add_both(void)
{
	return lin_collect_add(&collect, 1, leaf_begin, NULL, &diags) &&
	       lin_collect_add(&collect, 3, first_pair, pair, &diags) &&
	       lin_collect_add_rooted(&collect, 3, first_pair, pair, 1, &diags);
}

static void test_append(void)
{
	static const int32_t begin[] = {0, 0, 0, 0, 2, 2, 2, 4}, children[] = {1, 2, 4, 5};
	struct lin_forest f = lin_collect_forest(&collect);
	tap_ok(accepted(lin_linearize(&order, &f, binary, &diags)) && order.nodes == 0 &&
		   accepted(lin_linearize(&order, &f, any_dag, &diags)) && order.nodes == 0,
	       "an empty collection is a forest");
	bool ok = accepted(add_both());
	f = lin_collect_forest(&collect);
	tap_ok(ok && f.nodes == 7 && f.inputs == 3 && same(f.child_begin, begin, 8) &&
		   same(f.children, children, 4),
	       "structures are appended");
	tap_ok(f.root[0] == 0 && f.root[1] == 3 && f.root[2] == 5,
	       "the last node is the root unless told otherwise");
	tap_ok(f.input_begin[0] == 0 && f.input_begin[1] == 1 && f.input_begin[2] == 4,
	       "inputs know where they begin");
	tap_ok(accepted(lin_linearize(&order, &f, binary, &diags)) && order_right(&order, &f, binary),
	       "the forest can be linearized");
}

/* What is left is what there would be without it. */
static void test_remove(void)
{
	for (int which = 0; which < 3; which++) {
		struct lin_collect rest;
		lin_collect_init(&rest, &allocator_default);
		lin_collect_clear(&collect);
		bool ok = add_both() && (which == 0 || lin_collect_add(&rest, 1, leaf_begin, NULL, &diags)) &&
			  (which == 1 || lin_collect_add(&rest, 3, first_pair, pair, &diags)) &&
			  (which == 2 || lin_collect_add_rooted(&rest, 3, first_pair, pair, 1, &diags));
		lin_collect_remove(&collect, which);
		struct lin_forest a = lin_collect_forest(&collect), b = lin_collect_forest(&rest);
		ok = accepted(ok) && a.nodes == b.nodes && a.inputs == 2 && collect.edges == rest.edges &&
		     same(a.child_begin, b.child_begin, a.nodes + 1) &&
		     same(a.children, b.children, rest.edges) && same(a.root, b.root, 2) &&
		     same(a.input_begin, b.input_begin, 2);
		tap_ok(ok, "input %d is left out", which);
		lin_collect_free(&rest);
	}
	lin_collect_clear(&collect);
	tap_ok(accepted(add_both()), "and others are appended");
}

static void test_refusals(void)
{
	static const int32_t out[] = {0, 3}, back[] = {-1, 0}, descends[] = {0, 2, 1},
			     last_begin[] = {0, 0, 0, 2};
	struct lin_collect *c = &collect;
	int64_t nodes = c->nodes, edges = c->edges, inputs = c->inputs;
	tap_ok(!lin_collect_add(c, 0, NULL, NULL, &diags) && refused(DIAG_EMPTY_INPUT, "input 3 has no node"),
	       "an input without nodes is refused");
	tap_ok(!lin_collect_add(c, -5, NULL, NULL, &diags) && refused(DIAG_BAD_ARGUMENT, "-5 nodes"),
	       "a negative count is refused");
	tap_ok(!lin_collect_add(c, 3, last_begin, out, &diags) &&
		   refused(DIAG_DANGLING_CHILD, "child 1 of node 2 of input 3 is node 3"),
	       "a child in the next input is refused");
	tap_ok(!lin_collect_add(c, 3, last_begin, back, &diags) && refused(DIAG_DANGLING_CHILD, "is node -1"),
	       "a child in the input before is refused");
	tap_ok(!lin_collect_add(c, 2, descends, out, &diags) && refused(DIAG_BAD_CHILD_BEGIN, "begin at 2"),
	       "a child_begin that descends is refused");
	tap_ok(!lin_collect_add_rooted(c, 1, leaf_begin, NULL, 1, &diags) &&
		   refused(DIAG_BAD_ROOT, "root of input 3 is node 1"),
	       "a root outside of the input is refused");
	tap_ok(!lin_collect_add(c, INT32_MAX, leaf_begin, NULL, &diags) &&
		   refused(DIAG_TOO_MANY_NODES, "2147483647"),
	       "2^31-1 nodes are refused");
	c->nodes = INT32_MAX - 1;
	tap_ok(!lin_collect_add(c, 1, leaf_begin, NULL, &diags) &&
		   refused(DIAG_TOO_MANY_NODES, "with input 3"),
	       "so are inputs that together have as many");
	c->nodes = nodes;
	tap_ok(c->edges == edges && c->inputs == inputs, "what is refused leaves no trace");
}

/* A fault is named as the input knows it, though the forest counts on. */
static void names_faults(void)
{
	static const int32_t begin[] = {0, 0, 1, 2}, shared[] = {0, 0};
	bool ok = lin_collect_add(&collect, 3, begin, shared, &diags);
	struct lin_forest f = lin_collect_forest(&collect);
	tap_ok(ok && !lin_linearize(&order, &f, any_tree, &diags) &&
		   refused(DIAG_SHARED_CHILD, "node 0 of input 3 is a child of node 1 of input 3"),
	       "faults found later count nodes within the input");
}

static void test_reuse(void)
{
	lin_collect_clear(&collect);
	lin_order_free(&order);
	lin_order_init(&order, &counting);
	bool ok = true;
	for (int round = 0; round < 10; round++) {
		lin_collect_clear(&collect);
		for (int i = 0; i < 100; i++)
			ok &= add_both();
		struct lin_forest f = lin_collect_forest(&collect);
		ok &= lin_linearize(&order, &f, binary, &diags);
		if (round == 0)
			calls = 0;
	}
	tap_ok(accepted(ok) && calls == 0, "from the second minibatch on no memory is taken");
}

/* Every block in turn is refused; what there was stays. */
static void survives_without_memory(void)
{
	struct lin_collect small;
	int failures = 0;
	bool ok = true;
	lin_collect_init(&small, &counting);
	for (largest = 3; !lin_collect_add(&small, 3, first_pair, pair, &diags); largest += 4) {
		ok &= refused(DIAG_OUT_OF_MEMORY, "no memory for 3 nodes") && small.nodes == 0 &&
		      small.inputs == 0;
		failures++;
	}
	tap_ok(accepted(ok) && failures >= 3, "a collection that cannot grow is a diagnostic");
	struct lin_forest f = lin_collect_forest(&small);
	lin_order_free(&order);
	tap_ok(!lin_linearize(&order, &f, binary, &diags) && refused(DIAG_OUT_OF_MEMORY, "3 nodes") &&
		   !order.block.at,
	       "so is an order without memory");
	largest = 1 << 20;
	tap_ok(accepted(lin_linearize(&order, &f, binary, &diags)) && order_right(&order, &f, binary),
	       "and both can be used when there is memory again");
	lin_collect_clear(&small);
	lin_collect_add(&small, 1, leaf_begin, NULL, &diags);
	f = lin_collect_forest(&small);
	tap_ok(!lin_linearize(&order, &f, (struct lin_rules){.children = INT32_MAX}, &diags) &&
		   refused(DIAG_OUT_OF_MEMORY, "1 nodes"),
	       "very many slots need too much of it");
	largest = SIZE_MAX;
	lin_collect_free(&small);
}

static void test_treebank(void)
{
	static const char what[] = "the development trees, one minibatch, are as defined";
	const char *path = data_path("sst/dev.txt");
	if (!path) {
		tap_skip("no folder with data", "%s", what);
		return;
	}
	size_t length;
	const char *text = io_read_file(&arena, &diags, path, &length);
	struct io_text r = io_text_in(path, text, length);
	struct io_tree t;
	bool ok = text;
	lin_collect_clear(&collect);
	while (ok && io_ptb_next(&r, &arena, &diags, &t) == IO_TREE)
		ok = lin_collect_add(&collect, t.nodes, t.child_begin, t.children, &diags);
	struct lin_forest f = lin_collect_forest(&collect);
	ok = ok && lin_linearize(&order, &f, binary, &diags);
	tap_ok(accepted(ok) && f.inputs == 1101 && f.nodes == 41447 && order.leaves == (41447 + 1101) / 2 &&
		   order_right(&order, &f, binary),
	       "%s", what);
}

int main(void)
{
	begin_tests();
	lin_collect_init(&collect, &counting);
	lin_order_init(&order, &allocator_default);
	test_append();
	test_remove();
	test_refusals();
	names_faults();
	test_reuse();
	survives_without_memory();
	test_treebank();
	lin_collect_free(&collect);
	lin_order_free(&order);
	return end_tests();
}
