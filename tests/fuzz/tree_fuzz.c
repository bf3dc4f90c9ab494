/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bracketed trees: what is read is a tree in post order made of pieces of the text, and linearizes, also when
 * it was made fit for other arities. */
#include "io/reshape.h"
#include "linearize/linearize.h"
#include "tests/fuzz/fuzz.h"

struct text {
	const char *begin, *end;
};

static bool inside(const struct text *t, struct io_span s)
{
	return s.text >= t->begin && s.text <= t->end && s.length <= (size_t)(t->end - s.text);
}

static void check_node(const struct fuzz *f, const struct text *text, const struct io_tree *t, int32_t n)
{
	bool leaf = t->child_begin[n] == t->child_begin[n + 1];
	fuzz_check(f, t->child_begin[n] <= t->child_begin[n + 1], "the children of a node are a range");
	fuzz_check(f, !t->label[n].text || (inside(text, t->label[n]) && t->label[n].length),
		   "a label is a piece of the text");
	fuzz_check(f, leaf ? inside(text, t->word[n]) && t->word[n].length : !t->word[n].text,
		   "leaves have a word, other nodes have none");
}

/* Every node but the last has one parent, which comes later. */
static void check_tree(struct fuzz *f, const struct text *text, const struct io_tree *t)
{
	int32_t *parents = ARENA_ARRAY(&f->arena, int32_t, t->nodes);
	fuzz_check(f, t->nodes > 0 && t->child_begin[0] == 0 && t->child_begin[t->nodes] == t->nodes - 1,
		   "a tree has one edge less than it has nodes");
	for (int32_t n = 0; n < t->nodes; n++) {
		check_node(f, text, t, n);
		for (int32_t e = t->child_begin[n]; e < t->child_begin[n + 1]; e++) {
			fuzz_check(f, t->children[e] >= 0 && t->children[e] < n,
				   "children precede their parent");
			fuzz_check(f, !parents[t->children[e]]++, "a node has one parent");
		}
	}
}

static void linearize(struct fuzz *f, const struct io_tree *t)
{
	struct lin_order order;
	int32_t root = t->nodes - 1;
	struct lin_forest forest = {t->nodes, 1, t->child_begin, t->children, &root, NULL, NULL, 0};
	lin_order_init(&order, &f->allocator);
	fuzz_check(f, lin_linearize(&order, &forest, (struct lin_rules){.children = -1}, &f->diags),
		   "a tree that was read can be linearized");
	lin_order_free(&order);
}

/* How many children the nodes of a tree have, at least (leaves aside) and at most. */
static void check_arity(const struct fuzz *f, const struct io_tree *t, int least, int most)
{
	for (int32_t n = 0; n < t->nodes; n++) {
		int32_t children = t->child_begin[n + 1] - t->child_begin[n];
		fuzz_check(f, !children || (children >= least && children <= most),
			   "nodes are as they were made");
	}
}

static void reshape(struct fuzz *f, const struct text *text, const struct io_tree *t)
{
	struct io_tree collapsed = io_collapse(t, &f->arena);
	check_tree(f, text, &collapsed);
	check_arity(f, &collapsed, 2, INT32_MAX);
	for (int side = IO_LEFT; side <= IO_RIGHT; side++) {
		struct io_tree pairs = io_binarize(t, (enum io_side)side, &f->arena);
		check_tree(f, text, &pairs);
		check_arity(f, &pairs, 1, 2);
		linearize(f, &pairs);
		pairs = io_binarize(&collapsed, (enum io_side)side, &f->arena);
		check_arity(f, &pairs, 2, 2);
		fuzz_check(f, pairs.nodes % 2 == 1, "a binary tree has a leaf more than other nodes");
	}
}

static bool read_trees(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct text text = {(const char *)bytes, (const char *)bytes + n};
	struct io_text reader = io_text_in("fuzz", text.begin, n);
	struct io_tree tree;
	enum io_next next;
	while ((next = io_ptb_next(&reader, &f->arena, &f->diags, &tree)) == IO_TREE) {
		check_tree(f, &text, &tree);
		linearize(f, &tree);
		reshape(f, &text, &tree);
	}
	if (next == IO_FAILED)
		fuzz_check(f, io_ptb_next(&reader, &f->arena, &f->diags, &tree) == IO_END,
			   "a refusal is the last");
	return next == IO_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_trees, bytes, n);
}
