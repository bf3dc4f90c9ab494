/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tiles of products of bytes on a machine with matrix registers: as many rows as these have, by default and by hand, and for no
 * other products. */
#include "compile/compile.h"
#include "tests/models/helper.h"

#include <stdlib.h>

static const struct {
	const char *what, *target, *precision, *schedule;
	const char *says; /* a line of the schedule, or a part of the refusal */
	bool refused;
} tiles[] = {
    {"all rows of a register", "amx", "i8", "", "tile inner.1 nodes 16 8 4 2 1 columns 1 ", false},
    {"no matrix registers", "avx512", "i8", "tile inner.1 nodes 12 1\n", "tile inner.1 nodes 12 1 ", false},
    {"too many without matrix registers", "avx512", "i8", "tile inner.1 nodes 13 1\n", "from 1 to 12: '13'", true},
    {"by hand", "amx", "i8", "tile inner.1 nodes 15 3 1\n", "tile inner.1 nodes 15 3 1 columns 1 ", false},
    {"too many", "amx", "i8", "tile inner.1 nodes 17 1\n", "from 1 to 16: '17'", true},
    {"too many for products in f32", "amx", "f32", "tile inner.0 nodes 13 1\n", "from 1 to 12: '13'", true},
    {"short vectors, which matrix registers do not compute", "amx", "i8", "vectorize inner.1 8\n", "tile inner.1 nodes 8 4 2 1 columns 1 ",
     false},
    {"no vectors", "amx", "i8", "vectorize off\n", "tile inner.1 nodes 8 4 2 1 columns 1 ", false},
    {"vectors of this group alone", "amx", "i8", "vectorize off\nvectorize inner.1 16\ntile inner.1 nodes 16 8 1\n", "tile inner.1 nodes 16 8 1 columns 1 ",
     false},
    {"short vectors, then too many rows", "amx", "i8", "vectorize 8\ntile inner.1 nodes 16 1\n", "from 1 to 12: '16'", true},
};

static bool dump_with(struct test_model *t, size_t i, const char *schedule, const char *stage, struct str *s)
{
	struct option_texts o = {.backend = "interpreter", .target = tiles[i].target, .precision = tiles[i].precision, .schedule = schedule};
	*s = str_in(&t->arena);
	return compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, s);
}

static bool dump(struct test_model *t, size_t i, const char *stage, struct str *s)
{
	return dump_with(t, i, tiles[i].schedule, stage, s);
}

static void test_tile(size_t i)
{
	struct test_model t = {0};
	struct str s;
	bool loaded = load_model(&t, "examples/treelstm/treelstm.ra", "D=48 E=16 V=30");
	bool ok = loaded && dump(&t, i, "sched", &s);
	const char *text = ok ? str_text(&s) : t.diags.n ? t.diags.at[0].message : "";
	tap_ok(loaded && ok == !tiles[i].refused && strstr(text, tiles[i].says), "%s: %s%s", tiles[i].what, tiles[i].refused ? "refused, " : "",
	       tiles[i].says);
	struct str again;
	if (ok)
		tap_ok(dump_with(&t, i, text, "sched", &again) && strcmp(str_text(&again), text) == 0, "%s: what is printed is read again",
		       tiles[i].what);
	if (ok)
		print_diags(&t.diags);
	free_model(&t);
}

/* Matrix registers for sums of so many rows. */
static int count_sums(const char *text, int rows)
{
	int n = 0, found;
	for (; (text = strstr(text, "alloc matrix sums")); text++)
		n += sscanf(text, "alloc matrix %*s : i32 [%d:tile_row", &found) == 1 && found == rows;
	return n;
}

static int count_word(const char *text, const char *word)
{
	int n = 0;
	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* The loops of the schedule that the cost model chooses: with each size of a tile the five gates of both children by one product
 * each, and rows filled once for all of them. */
static void test_loops(void)
{
	struct test_model t = {0};
	struct str s;
	bool ok = load_model(&t, "examples/treelstm/treelstm.ra", "D=64 E=16 V=30") && dump(&t, 0, "use_matrices", &s);
	const char *text = ok ? str_text(&s) : "";
	for (int rows = 16; rows > 1; rows /= 2)
		tap_is(count_sums(text, rows), 5, "a tile has registers for the sums of all gates");
	tap_is(ok ? count_word(text, "matrix fill rows") : -1, 4 * 2, "tiles of 16, 8, 4 and 2 rows fill the rows of each child once");
	tap_is(count_word(text, "matrix dot4 "), 4 * 2 * 5, "and have a product for each gate and child");
	free_model(&t);
}

/* Products of bytes that matrix registers do not compute, of more sums than there are vector registers: their loops are cut as on a
 * machine without. */
static const struct {
	const char *what, *path, *sizes, *precision, *schedule;
} others[] = {
    {"short vectors", "examples/treelstm/treelstm.ra", "D=48 E=16 V=30", "i8", "words off\nvectorize 8\ntile inner.1 nodes 8 1 columns 1 unroll 4\n"},
    {"words that lie apart", "tests/golden/bytes.ra", "C=64 H=14 K=128", "f32", "words off\ntile output.1 rows 7 1 columns 4 unroll 4\n"},
};

static bool dump_sunk(struct test_model *t, size_t i, const char *target, struct str *s)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .precision = others[i].precision, .schedule = others[i].schedule};
	*s = str_in(&t->arena);
	return compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "sink", s);
}

static void test_others(size_t i)
{
	struct test_model t = {0};
	struct str with, without;
	bool ok = load_model(&t, others[i].path, others[i].sizes) && dump_sunk(&t, i, "amx", &with) && dump_sunk(&t, i, "avx512", &without);
	tap_ok(ok && strstr(str_text(&with), "dot4") && strcmp(str_text(&with), str_text(&without)) == 0, "%s: loops of as many sums as without",
	       others[i].what);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
		test_tile(i);
	test_loops();
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		test_others(i);
	return tap_done();
}
