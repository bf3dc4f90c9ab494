/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* CoNLL-U, both views: what is read is a tree, or a graph without cycles, whose texts are pieces of the text.
 */
#include "linearize/linearize.h"
#include "tests/fuzz/structures.h"

static void linearize(struct fuzz *f, const struct io_structure *s, bool shared)
{
	struct lin_order order;
	struct diags diags;
	diags_init(&diags, &f->allocator);
	struct lin_forest forest = {s->nodes, 1, s->child_begin, s->children, &s->root, NULL, NULL, 0};
	lin_order_init(&order, &f->allocator);
	bool ok =
	    lin_linearize(&order, &forest, (struct lin_rules){.children = -1, .shared = shared}, &diags);
	fuzz_check(f, ok, "a sentence that was read can be linearized");
	lin_order_free(&order);
	diags_free(&diags);
}

static void check_texts(const struct fuzz *f, const struct io_text *t, const struct io_structure *s)
{
	for (int i = 0; i < s->columns; i++) {
		const struct io_column *c = &s->column[i];
		int32_t rows = c->on_edges ? s->child_begin[s->nodes] : s->nodes;
		for (int32_t r = 0; r < rows; r++)
			fuzz_check(f, c->text[r].length && c->text[r].text + c->text[r].length <= t->end,
				   "columns are pieces of the text");
	}
}

static void check_tree(struct fuzz *f, const struct io_text *t, const struct io_structure *s)
{
	fuzz_check(f, s->child_begin[s->nodes] == s->nodes - 1, "a tree has one edge less than it has nodes");
	check_texts(f, t, s);
	linearize(f, s, false);
}

static void check_graph(struct fuzz *f, const struct io_text *t, const struct io_structure *s)
{
	check_texts(f, t, s);
	linearize(f, s, true);
}

static bool read_sentences(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct io_view basic = {.format = IO_CONLLU}, enhanced = {.format = IO_CONLLU, .enhanced = true};
	bool tree = fuzz_structures(f, &basic, bytes, n, check_tree);
	return fuzz_structures(f, &enhanced, bytes, n, check_graph) && tree;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_sentences, bytes, n);
}
