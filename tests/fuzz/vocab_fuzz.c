/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: one that opens finds its own words, and a word for anything when it has the unknown one. */
#include "io/vocab.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* A line's word has the line's number. */
static void check_lines(const struct fuzz *f, const struct io_vocab *v, const char *p, const char *end)
{
	int line = 0;
	for (const char *newline; p < end; p = newline + 1, line++) {
		newline = memchr(p, '\n', end - p);
		newline = newline ? newline : end;
		size_t length = newline - p - (newline[-1] == '\r');
		int found = io_vocab_find(v, p, length);
		fuzz_check(f, found == line, "a word is found where it stands");
	}
	fuzz_check(f, line == v->n, "every line is a word");
}

static bool read_vocab(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	const struct io_vocab *v = io_vocab_open(&f->arena, &f->diags, fuzz_file(bytes, n));
	if (!v)
		return false;
	check_lines(f, v, (const char *)bytes, (const char *)bytes + n);
	fuzz_check(f, v->unknown < v->n && io_vocab_find(v, (const char *)bytes, n) < v->n,
		   "an id is a line");
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_vocab, bytes, n);
}
