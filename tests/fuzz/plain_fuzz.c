/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines of words: each is a sequence whose words are pieces of the text. */
#include "tests/fuzz/structures.h"

static void check_sequence(struct fuzz *f, const struct io_text *t, const struct io_structure *s)
{
	fuzz_check(f, s->root == s->nodes - 1 && s->child_begin[s->nodes] == s->nodes - 1,
		   "all nodes but the first have a child");
	for (int32_t n = 0; n < s->nodes; n++) {
		struct io_span word = s->column->text[n];
		fuzz_check(f, word.length && word.text + word.length <= t->end,
			   "words are pieces of the text");
		fuzz_check(f, !n || s->children[n - 1] == n - 1, "a word follows the one before it");
	}
}

static bool read_lines(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	return fuzz_structures(f, &(struct io_view){.format = IO_PLAIN}, bytes, n, check_sequence);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_lines, bytes, n);
}
