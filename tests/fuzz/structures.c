/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/structures.h"

#include <string.h>

/* What must hold before anybody looks at the nodes' children. */
static void check(const struct fuzz *f, const struct io_structure *s)
{
	fuzz_check(f, s->nodes > 0 && s->root >= 0 && s->root < s->nodes, "the root is a node");
	fuzz_check(f, s->child_begin[0] == 0, "children are counted from 0");
	for (int32_t n = 0; n < s->nodes; n++)
		fuzz_check(f, s->child_begin[n] <= s->child_begin[n + 1],
			   "the children of a node are a range");
	fuzz_check(f, s->sentence && strlen(s->sentence) < SIZE_MAX, "there is a sentence");
}

bool fuzz_structures(struct fuzz *f, const struct io_view *view, const uint8_t *bytes, size_t n,
		     void (*each)(struct fuzz *, const struct io_text *, const struct io_structure *))
{
	struct io_text text = io_text_in("fuzz", (const char *)bytes, n);
	struct io_structure s;
	enum io_next next;
	bool refused = false;
	for (;;) {
		int64_t before = text.structures;
		size_t said = f->diags.n;
		const char *extent =
		    io_extent_end(&(struct io_extent){.format = view->format}, text.at, text.end);
		next = io_next_structure(&text, view, &f->arena, &f->diags, &s);
		if (next == IO_END)
			break;
		fuzz_check(f, text.structures == before + 1 && before <= (int64_t)n,
			   "structures are counted");
		if (next == IO_FAILED) {
			fuzz_check(f, f->diags.n == said + 1 || f->diags.lost,
				   "what is refused is explained");
			refused = true;
			continue;
		}
		fuzz_check(f, !extent || text.at <= extent, "a structure ends in its extent");
		check(f, &s);
		if (each)
			each(f, &text, &s);
	}
	fuzz_check(f, text.at == text.end, "all is read");
	return !refused;
}

const struct io_vocab *fuzz_vocab(struct fuzz *f)
{
	static const char words[] = "<unk>\na\nb\nnsubj\n";
	return io_vocab_open(&f->arena, &f->diags, fuzz_file(words, sizeof words - 1));
}
