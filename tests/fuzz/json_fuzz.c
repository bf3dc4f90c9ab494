/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* JSON: what is read holds together, and its data is what an input wants it to be, or is refused. */
#include "tests/fuzz/structures.h"

#include <math.h>

static void fill(struct fuzz *f, const struct io_text *t, const struct io_structure *s, struct io_wanted w)
{
	int32_t rows = w.on_edges ? s->child_begin[s->nodes] : s->nodes;
	int32_t *to = ARENA_ARRAY(&f->arena, int32_t, rows * w.elements + 1);
	for (int i = 0; i < s->columns; i++) {
		size_t said = f->diags.n;
		if (!io_fill(t, s, &s->column[i], &w, &f->arena, to, &f->diags)) {
			fuzz_check(f, f->diags.n == said + 1 || f->diags.lost,
				   "data that is refused is explained");
			continue;
		}
		for (int64_t n = 0; n < rows * w.elements; n++)
			fuzz_check(f, w.token ? w.integer || to[n] >= -1 : isfinite(((float *)(void *)to)[n]),
				   "tokens are rows, or none, and numbers are finite");
	}
}

static void fill_all(struct fuzz *f, const struct io_text *t, const struct io_structure *s)
{
	static const int64_t shape[] = {2, 1, 2};
	static const struct io_wanted wanted[] = {
	    {.input = "x", .elements = 4, .rank = 3, .shape = shape, .inner = true},
	    {.input = "x", .token = true, .elements = 1},
	    {.input = "x", .token = true, .elements = 1, .on_edges = true},
	    {.input = "x", .token = true, .integer = true, .elements = 1, .leaf = true},
	    {.input = "x", .elements = 1, .leaf = true},
	    {.input = "x", .elements = 2, .inner = true},
	    {.input = "x", .elements = 2, .on_edges = true}};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		struct io_wanted w = wanted[i];
		w.vocab = fuzz_vocab(f);
		fill(f, t, s, w);
	}
}

static bool read_objects(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct io_view structures = {.format = IO_JSON}, sequences = {.format = IO_JSON, .sequence = true};
	bool all = fuzz_structures(f, &structures, bytes, n, fill_all);
	return fuzz_structures(f, &sequences, bytes, n, fill_all) && all;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_objects, bytes, n);
}
