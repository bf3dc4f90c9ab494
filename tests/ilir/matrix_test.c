/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matrix registers: their rules, each broken once; their text; and what they compute, against dot products of words;
 * and which loops the pass use_matrices leaves alone. */
#include "tests/ilir/support.h"

#include "base/convert.h"
#include "ilir/passes.h"

static const char head[] = "module m\n"
			   "dim node, i, j\n"
			   "buffer x : vector 0 i32 [nodes:node, 40:j]\n"
			   "buffer w : weight 0 i32 [40:j, 2:i, 16:i]\n"
			   "buffer t : weight 1 i32 [8:node, 40:j]\n"
			   "buffer rows : read_row 0 i32 [nodes:node]\n"
			   "buffer h : state 0 i32 [nodes:node, 40:j] or t by rows\n"
			   "buffer y : output 0 i32 [nodes:node, 16:i]\n"
			   "buffer z : output 1 f32 [nodes:node, 16:i]\n"
			   "kernel k in once {\n";

static bool open_body(struct bench *b, const char *body)
{
	bench_open(b);
	struct str s = str_in(&b->arena);
	str_printf(&s, "%s%s\n}\n", head, body);
	b->m = ilir_parse(&b->arena, &b->diags, "test", s.text, s.n);
	if (!b->m && b->diags.n)
		printf("# %d:%d: %s\n", b->diags.at[0].line, b->diags.at[0].column, b->diags.at[0].message);
	return b->m;
}

#define LOOP "for n:node in begin..end step 3 matrix {\n"
#define SUMS "alloc matrix s : i32 [3:node, 16:i]\n"
#define ROWS "alloc matrix a : i32 [3:node, 16:j]\n"
#define PANEL "alloc matrix b : i32 [16:j, 16:i]\n"
#define PLACE "alloc r : i32 [2:i, 3:node, 16:i]\n"

/* --- rules --- */

static const struct {
	const char *body, *message;
} broken[] = {
    {SUMS, "matrix register 's' outside of a matrix loop, which configures it"},
    {"for n:node in begin..end { " SUMS " }", "matrix register 's' outside of a matrix loop, which configures it"},
    {LOOP SUMS "} for m:node in begin..end step 3 matrix { matrix fill s = x[m, ramp(16, 0)] to x[m + 2, ramp(16, 0)] }",
     "matrix register 's' is used outside of its alloc"},
    {LOOP "for m:node in n..end matrix { } }", "a matrix loop in another one"},
    {LOOP "barrier }", "a barrier inside a matrix loop, whose registers are not released"},
    {LOOP "step s in 0..4 { } }", "a step inside a matrix loop, whose registers are not released"},
    {"for j:j in 0..8 matrix { for i:i in 0..8 swept { } }", "a swept loop inside a matrix loop, whose registers are not released"},
    {LOOP "alloc matrix s : i32 [17:node, 16:i] }", "matrix register 's' has 17 rows, not 1..16"},
    {LOOP "alloc matrix s : i32 [0:node, 16:i] }", "matrix register 's' has 0 rows, not 1..16"},
    {LOOP "alloc matrix s : i32 [3:node, 17:i] }", "matrix register 's' has rows of 68 bytes, not 4..64"},
    {LOOP "alloc matrix s : i32 [3:node, 0:i] }", "matrix register 's' has rows of 0 bytes, not 4..64"},
    {LOOP "alloc matrix s : i8 [3:node, 16:i] }", "matrix register 's' is not made of rows of words"},
    {LOOP "alloc matrix s : i32 [16:i] }", "matrix register 's' is not made of rows of words"},
    {LOOP "alloc matrix a0 : i32 [1:node, 1:i] alloc matrix a1 : i32 [1:node, 1:i] alloc matrix a2 : i32 [1:node, 1:i] "
	  "alloc matrix a3 : i32 [1:node, 1:i] alloc matrix a4 : i32 [1:node, 1:i] alloc matrix a5 : i32 [1:node, 1:i] "
	  "alloc matrix a6 : i32 [1:node, 1:i] if 0 < 1 { alloc matrix a7 : i32 [1:node, 1:i] } "
	  "alloc matrix a8 : i32 [1:node, 1:i] }",
     "a matrix loop with more than 8 matrix registers"},
    {LOOP SUMS "s[0, 0] = 1i }", "matrix register 's' is used otherwise than by matrix statements"},
    {LOOP SUMS "y[0, 0] = s[0, 0] }", "matrix register 's' is used otherwise than by matrix statements"},
    {LOOP PLACE "matrix fill r = x[n, ramp(16, 0)] to x[n + 2, ramp(16, 0)] }", "a matrix statement of 'r', which is no matrix register"},
    {LOOP SUMS "matrix fill s = 1i to 1i }", "rows of something that does not lie in memory row by row"},
    {LOOP SUMS "matrix fill s = h[n, ramp(16, 0)] to h[n + 2, ramp(16, 0)] }", "rows of something that does not lie in memory row by row"},
    {LOOP SUMS "matrix fill s = x[n, ramp(8, 0)] to x[n + 2, ramp(8, 0)] }", "rows of another length or type than those of 's'"},
    {LOOP SUMS "matrix fill s = z[n, ramp(16, 0)] to z[n + 2, ramp(16, 0)] }", "rows of another length or type than those of 's'"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to y[n + 2, ramp(16, 0)] }", "the first and the last row are of different buffers"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to x[n + 3, ramp(16, 0)] }", "the rows of the place are not those of the matrix register"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to x[n, ramp(16, 0)] }", "the rows of the place are not those of the matrix register"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to x[n + 2, ramp(16, 2)] }", "the first and the last row lie in no known distance"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to x[n, ramp(16, 2)] }", "the first and the last row lie in no known distance"},
    {LOOP SUMS "matrix fill s = x[n, ramp(16, 0)] to x[to_index(rows[n]), ramp(16, 0)] }", "the first and the last row lie in no known distance"},
    {LOOP SUMS "matrix spill s = y[n, ramp(16, 0)] to y[n + 2, ramp(16, 0)] }", "a matrix register is spilled to 'y', which is no register"},
    {LOOP SUMS ROWS "alloc matrix b : i32 [15:j, 16:i] matrix dot4 s, a, b }", "a product of matrix registers whose shapes do not fit each other"},
    {LOOP SUMS PANEL "alloc matrix a : i32 [4:node, 16:j] matrix dot4 s, a, b }", "a product of matrix registers whose shapes do not fit each other"},
    {LOOP SUMS ROWS "alloc matrix b : i32 [16:j, 8:i] matrix dot4 s, a, b }", "a product of matrix registers whose shapes do not fit each other"},
    {LOOP ROWS PANEL "alloc matrix s : f32 [3:node, 16:i] matrix dot4 s, a, b }", "a product of matrix registers of other types than its operator's"},
    {LOOP PANEL "alloc matrix s : i32 [16:i, 16:i] matrix dot4 s, s, b }", "a product of a matrix register and itself"},
    {LOOP SUMS ROWS PANEL PLACE "matrix dot4 s, a, r }", "a matrix statement of 'r', which is no matrix register"},
};

static void test_rules(void)
{
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct bench b;
		tap_ok(open_body(&b, broken[i].body) && !ilir_verify(b.m, 0, "test", &b.diags) && bench_says(&b, broken[i].message) &&
			   b.diags.at[0].id == DIAG_INVALID_LOOPS,
		       "refused: %s", broken[i].message);
		bench_close(&b);
	}
	struct bench b;
	tap_ok(open_body(&b, "for n:node in 0..1 matrix { alloc matrix b : i32 [16:j, 16:i] matrix fill b = w[30, 1, ramp(16, 0)] to w[45, 1, ramp(16, 0)] }") &&
		   ilir_verify(b.m, 0, "test", &b.diags) && !ilir_verify(b.m, ILIR_IN_BOUNDS, "test", &b.diags) &&
		   bench_says(&b, "index 0 of 'w' reaches 45..45, but its extent is 40"),
	       "refused: a last row out of bounds");
	bench_close(&b);
}

/* --- text and meaning --- */

/* Products of 3 rows and 2 x 16 columns: 32 words by whole registers, then 8. */
static const char product[] =
    LOOP SUMS ROWS PANEL PLACE
    "alloc matrix a8 : i32 [3:node, 8:j]\n"
    "alloc matrix b8 : i32 [8:j, 16:i]\n"
    "for c:i in 0..16 { for m:node in 0..3 { r[0, m, c] = y[n + m, c] r[1, m, c] = y[n + m, c] } }\n"
    "matrix fill s = r[1, 0, ramp(16, 0)] to r[1, 2, ramp(16, 0)]\n"
    "for k:j in 0..32 step 16 {\n"
    "  matrix fill a = x[n, ramp(16, k)] to x[n + 2, ramp(16, k)]\n"
    "  matrix fill b = w[k, 1, ramp(16, 0)] to w[k + 15, 1, ramp(16, 0)]\n"
    "  matrix dot4 s, a, b\n"
    "}\n"
    "matrix fill a8 = x[n, ramp(8, 32)] to x[n + 2, ramp(8, 32)]\n"
    "matrix fill b8 = w[32, 1, ramp(16, 0)] to w[39, 1, ramp(16, 0)]\n"
    "matrix dot4 s, a8, b8\n"
    "matrix spill s = r[1, 0, ramp(16, 0)] to r[1, 2, ramp(16, 0)]\n"
    "for c1:i in 0..16 { for m1:node in 0..3 { y[n + m1, c1] = r[1, m1, c1] } }\n"
    "}";

static void test_text(void)
{
	struct bench b, again;
	bool read = open_body(&b, product) && ilir_verify(b.m, ILIR_IN_BOUNDS, "test", &b.diags);
	const char *text = read ? bench_text(&b) : "";
	tap_ok(read && bench_parse(&again, text) && strcmp(bench_text(&again), text) == 0, "text is read back as it was printed");
	tap_ok(strstr(text, "alloc matrix s : i32 [3:node, 16:i]\n") && strstr(text, "step 3 matrix {\n") &&
		   strstr(text, "matrix fill a8 = x[n, ramp(8, 32)] to x[n + 2, ramp(8, 32)]\n") && strstr(text, "matrix dot4 s, a8, b8\n") &&
		   strstr(text, "matrix spill s = r[1, 0, ramp(16, 0)] to r[1, 2, ramp(16, 0)]\n"),
	       "and names each statement");
	bench_close(&again);
	bench_close(&b);
}

static uint32_t next_word(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed ^ *seed >> 15;
}

static void fill_words(uint32_t *word, size_t n, uint32_t *seed)
{
	for (size_t i = 0; i < n; i++)
		word[i] = next_word(seed);
}

/* The sums of 6 rows and 16 columns by dot products of words, in any order. */
static void compute_sums(const uint32_t *x, const uint32_t *w, uint32_t *y)
{
	for (int k = 40; k-- > 0;)
		for (int n = 0; n < 6; n++)
			for (int c = 0; c < 16; c++)
				y[16 * n + c] = dot_bytes(x[40 * n + k], w[(2 * k + 1) * 16 + c], y[16 * n + c]);
}

static void test_meaning(void)
{
	struct bench b;
	uint32_t expected[6 * 16], seed = 1;
	bool ok = open_body(&b, product) && ilir_verify(b.m, ILIR_IN_BOUNDS, "test", &b.diags);
	if (ok) {
		bench_allocate(&b, 6, 3, 1, 5, 2);
		uint32_t *x = bench_buffer(&b, "x"), *w = bench_buffer(&b, "w"), *y = bench_buffer(&b, "y");
		fill_words(x, 6 * 40, &seed);
		fill_words(w, 40 * 2 * 16, &seed);
		fill_words(y, sizeof expected / sizeof *expected, &seed);
		memcpy(expected, y, sizeof expected);
		compute_sums(x, w, expected);
		ok = bench_run(&b, 0, 6) && memcmp(expected, y, sizeof expected) == 0;
	}
	tap_ok(ok, "products of any bytes are those of dot products of words");
	bench_close(&b);
}

/* --- the pass --- */

/* Loops of products of two or three rows, in one plane or two, and up to three columns, with sums in a register of some shape. */
static const struct {
	const char *what;
	const char *lane, *sums; /* the name of the columns' dimension; the shape of the sums */
	struct {
		const char *row, *column, *sum; /* of a product: its first factor, the index of w, and the whole index of its sum */
	} product[12];
	int rows;
	bool used; /* by the pass */
} loops[] = {
    {"sums side by side", "lane", "2:i, 2:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"}, {"x[n, q]", "1", "1, 0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, 1, ramp(16, 0)"}}, 2, true},
    {"sums side by side in one row", "lane", "2:node, 32:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n, q]", "1", "0, ramp(16, 16)"},
     {"x[n + 1, q]", "0", "1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, ramp(16, 16)"}}, 2, true},
    {"a dimension with the name of that of the words", "tile_word", "2:node, 16:tile_word", {{"x[n, q]", "0", "0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "1, ramp(16, 0)"}}, 2, true},
    {"two columns that are added to one sum", "lane", "2:node, 16:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n, q]", "1", "0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, ramp(16, 0)"}}, 2, false},
    {"a column whose first sum is the last one of another", "lane", "3:node, 16:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"},
     {"x[n, q]", "1", "1, ramp(16, 0)"}, {"x[n + 1, q]", "0", "1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "2, ramp(16, 0)"}}, 2, false},
    {"columns whose sums share words", "lane", "2:node, 32:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n, q]", "1", "0, ramp(16, 8)"},
     {"x[n + 1, q]", "0", "1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, ramp(16, 8)"}}, 2, false},
    {"sums that do not lie in one line", "lane", "2:i, 3:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "1, 0, ramp(16, 0)"}, {"x[n + 2, q]", "0", "0, 2, ramp(16, 0)"}}, 3, false},
    {"columns whose sums lie in lines of two dimensions", "lane", "2:i, 3:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"},
     {"x[n, q]", "1", "0, 1, ramp(16, 0)"}, {"x[n + 1, q]", "0", "1, 0, ramp(16, 0)"}, {"x[n + 1, q]", "1", "0, 2, ramp(16, 0)"}}, 2, true},
    {"two planes of rows", "lane", "4:i, 2:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"}, {"low[n, q]", "0", "1, 0, ramp(16, 0)"},
     {"x[n, q]", "1", "2, 0, ramp(16, 0)"}, {"low[n, q]", "1", "3, 0, ramp(16, 0)"}, {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"},
     {"low[n + 1, q]", "0", "1, 1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "2, 1, ramp(16, 0)"}, {"low[n + 1, q]", "1", "3, 1, ramp(16, 0)"}}, 2, true},
    {"a column that only one of the planes multiplies", "lane", "3:i, 2:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"}, {"x[n, q]", "1", "1, 0, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, 1, ramp(16, 0)"},
     {"low[n, q]", "0", "2, 0, ramp(16, 0)"}, {"low[n + 1, q]", "0", "2, 1, ramp(16, 0)"}}, 2, true},
    {"planes whose sums are rows of one register", "lane", "4:node, 16:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n + 1, q]", "0", "1, ramp(16, 0)"},
     {"low[n, q]", "0", "2, ramp(16, 0)"}, {"low[n + 1, q]", "0", "3, ramp(16, 0)"}}, 2, true},
    {"planes apart from each other in one register", "lane", "5:node, 16:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n + 1, q]", "0", "1, ramp(16, 0)"},
     {"low[n, q]", "0", "3, ramp(16, 0)"}, {"low[n + 1, q]", "0", "4, ramp(16, 0)"}}, 2, true},
    {"planes of other numbers of rows", "lane", "2:i, 3:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"}, {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"},
     {"x[n + 2, q]", "0", "0, 2, ramp(16, 0)"}, {"low[n, q]", "0", "1, 0, ramp(16, 0)"}, {"low[n + 1, q]", "0", "1, 1, ramp(16, 0)"}}, 3, false},
    {"a row that a column of its plane does not multiply", "lane", "2:i, 3:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"}, {"x[n + 2, q]", "0", "0, 2, ramp(16, 0)"}, {"x[n, q]", "1", "1, 0, ramp(16, 0)"}, {"x[n + 1, q]", "1", "1, 1, ramp(16, 0)"}},
     3, false},
    {"more sums than registers", "lane", "6:i, 2:node, 16:lane", {{"x[n, q]", "0", "0, 0, ramp(16, 0)"}, {"low[n, q]", "0", "1, 0, ramp(16, 0)"}, {"x[n, q]", "1", "2, 0, ramp(16, 0)"},
     {"low[n, q]", "1", "3, 0, ramp(16, 0)"}, {"x[n, q]", "2", "4, 0, ramp(16, 0)"}, {"low[n, q]", "2", "5, 0, ramp(16, 0)"},
     {"x[n + 1, q]", "0", "0, 1, ramp(16, 0)"}, {"low[n + 1, q]", "0", "1, 1, ramp(16, 0)"}, {"x[n + 1, q]", "1", "2, 1, ramp(16, 0)"},
     {"low[n + 1, q]", "1", "3, 1, ramp(16, 0)"}, {"x[n + 1, q]", "2", "4, 1, ramp(16, 0)"}, {"low[n + 1, q]", "2", "5, 1, ramp(16, 0)"}}, 2, true},
    {"planes that are added to one sum", "lane", "2:node, 16:lane", {{"x[n, q]", "0", "0, ramp(16, 0)"}, {"x[n + 1, q]", "0", "1, ramp(16, 0)"},
     {"low[n, q]", "0", "0, ramp(16, 0)"}, {"low[n + 1, q]", "0", "1, ramp(16, 0)"}}, 2, false},
};

enum { LOOP_ROWS = 6, LOOP_SUMS = 12, LOOP_WORDS = 16, LOOP_RESULTS = LOOP_ROWS * LOOP_SUMS * 16 };

/* Copies the sums from the output, or to it. */
static void write_sums(struct str *s, int k, bool fill)
{
	for (int p = 0; p < LOOP_SUMS && loops[k].product[p].row; p++)
		if (fill)
			str_printf(s, "s[%s] = y[n, %d, ramp(16, 0)]\n", loops[k].product[p].sum, p);
		else
			str_printf(s, "y[n, %d, ramp(16, 0)] = s[%s]\n", p, loops[k].product[p].sum);
}

static void write_loop(struct str *s, int k)
{
	str_printf(s, "module m\ndim node, i, j, %s\nbuffer x : vector 0 i32 [nodes:node, 16:j]\n", loops[k].lane);
	str_puts(s, "buffer low : vector 1 i32 [nodes:node, 16:j]\n");
	str_printf(s, "buffer w : weight 0 i32 [16:j, 3:i, 16:%s]\nbuffer y : output 0 i32 [nodes:node, 12:i, 16:i]\n", loops[k].lane);
	str_printf(s, "kernel k in nodes {\nfor n:node in begin..end step %d {\nalloc s : i32 [%s]\n", loops[k].rows, loops[k].sums);
	write_sums(s, k, true);
	str_puts(s, "for q:j in 0..16 {\n");
	for (int p = 0; p < LOOP_SUMS && loops[k].product[p].row; p++)
		str_printf(s, "s[%s] = dot4(broadcast(16, %s), w[q, %s, ramp(16, 0)], s[%s])\n", loops[k].product[p].sum,
			   loops[k].product[p].row, loops[k].product[p].column, loops[k].product[p].sum);
	str_puts(s, "}\n");
	write_sums(s, k, false);
	str_puts(s, "}\n}\n");
}

/* Whether each matrix register that a text allocates is filled somewhere. */
static bool fills_all(const char *text)
{
	char name[40], fill[60];
	for (const char *at = text; (at = strstr(at, "alloc matrix ")); at++) {
		if (sscanf(at, "alloc matrix %39s", name) != 1)
			return false;
		snprintf(fill, sizeof fill, "matrix fill %s = ", name);
		if (!strstr(text, fill))
			return false;
	}
	return true;
}

/* The results of the loop, after the pass if that is wanted; false = it is not verified, or cannot run. */
static bool run_loop(int k, bool pass, bool *used, uint32_t *results)
{
	struct bench b, text;
	uint32_t seed = 7;
	bench_open(&text);
	struct str s = str_in(&text.arena);
	write_loop(&s, k);
	bool ok = bench_parse(&b, str_text(&s));
	if (ok && pass)
		ilir_use_matrices(b.m, &(struct ilir_tiling){.matrices = true});
	ok = ok && ilir_verify(b.m, ILIR_IN_BOUNDS | ILIR_OUTLINED | ILIR_UNROLLED_ALL, "use_matrices", &b.diags);
	if (ok) {
		*used = strstr(bench_text(&b), "matrix dot4") != NULL;
		ok = fills_all(bench_text(&b));
		bench_allocate(&b, LOOP_ROWS, LOOP_ROWS, 1, 1, 1);
		fill_words(bench_buffer(&b, "x"), LOOP_ROWS * LOOP_WORDS, &seed);
		fill_words(bench_buffer(&b, "low"), LOOP_ROWS * LOOP_WORDS, &seed);
		fill_words(bench_buffer(&b, "w"), LOOP_WORDS * 3 * 16, &seed);
		fill_words(bench_buffer(&b, "y"), LOOP_RESULTS, &seed);
		ok = bench_run(&b, 0, LOOP_ROWS) && ok;
		memcpy(results, bench_buffer(&b, "y"), LOOP_RESULTS * sizeof *results);
	}
	if (b.diags.n)
		printf("# %s\n", b.diags.at[0].message);
	bench_close(&b);
	bench_close(&text);
	return ok;
}

static void test_pass(void)
{
	static uint32_t before[LOOP_RESULTS], after[LOOP_RESULTS];
	for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
		bool used = false, unused = false;
		bool ok = run_loop((int)k, false, &unused, before) && run_loop((int)k, true, &used, after);
		tap_ok(ok && memcmp(before, after, sizeof before) == 0 && used == loops[k].used, "%s: the same words, %s matrix registers",
		       loops[k].what, loops[k].used ? "by" : "without");
	}
}

/* --- what the pass writes --- */

/* Three rows of two planes, with products of a row side by side, and two columns, of which the second multiplies the first plane only. */
static const char planes[] = "module m\n"
			     "dim node, plane, i, j, lane\n"
			     "buffer x : vector 0 i32 [nodes:node, 2:plane, 36:j]\n"
			     "buffer w : weight 0 i32 [36:j, 2:i, 16:lane]\n"
			     "buffer y : output 0 i32 [nodes:node, 16:i]\n"
			     "kernel k in nodes {\n"
			     "for n:node in begin..end step 3 {\n"
			     "alloc a : i32 [2:plane, 3:node, 16:lane]\n"
			     "alloc b : i32 [3:node, 16:lane]\n"
			     "for q:j in 0..36 {\n"
			     "a[0, 0, ramp(16, 0)] = dot4(broadcast(16, x[n, 0, q]), w[q, 0, ramp(16, 0)], a[0, 0, ramp(16, 0)])\n"
			     "a[1, 0, ramp(16, 0)] = dot4(broadcast(16, x[n, 1, q]), w[q, 0, ramp(16, 0)], a[1, 0, ramp(16, 0)])\n"
			     "b[0, ramp(16, 0)] = dot4(broadcast(16, x[n, 0, q]), w[q, 1, ramp(16, 0)], b[0, ramp(16, 0)])\n"
			     "a[0, 1, ramp(16, 0)] = dot4(broadcast(16, x[n + 1, 0, q]), w[q, 0, ramp(16, 0)], a[0, 1, ramp(16, 0)])\n"
			     "a[1, 1, ramp(16, 0)] = dot4(broadcast(16, x[n + 1, 1, q]), w[q, 0, ramp(16, 0)], a[1, 1, ramp(16, 0)])\n"
			     "b[1, ramp(16, 0)] = dot4(broadcast(16, x[n + 1, 0, q]), w[q, 1, ramp(16, 0)], b[1, ramp(16, 0)])\n"
			     "a[0, 2, ramp(16, 0)] = dot4(broadcast(16, x[n + 2, 0, q]), w[q, 0, ramp(16, 0)], a[0, 2, ramp(16, 0)])\n"
			     "a[1, 2, ramp(16, 0)] = dot4(broadcast(16, x[n + 2, 1, q]), w[q, 0, ramp(16, 0)], a[1, 2, ramp(16, 0)])\n"
			     "b[2, ramp(16, 0)] = dot4(broadcast(16, x[n + 2, 0, q]), w[q, 1, ramp(16, 0)], b[2, ramp(16, 0)])\n"
			     "}\n}\n}\n";

/* All sums fit, so each panel is filled once and multiplied by all planes; what is left of the words goes plane by plane. */
static const char planes_after[] =
    "  for n:node in begin..end step 3 matrix {\n"
    "    alloc matrix rows : i32 [3:tile_row, 16:tile_word]\n"
    "    alloc matrix panel : i32 [16:tile_word, 16:lane]\n"
    "    alloc matrix rows.1 : i32 [3:tile_row, 4:tile_word]\n"
    "    alloc matrix panel.1 : i32 [4:tile_word, 16:lane]\n"
    "    alloc matrix sums : i32 [3:tile_row, 16:lane]\n"
    "    alloc matrix sums.1 : i32 [3:tile_row, 16:lane]\n"
    "    alloc matrix rows.2 : i32 [3:tile_row, 16:tile_word]\n"
    "    alloc matrix sums.2 : i32 [3:tile_row, 16:lane]\n"
    "    alloc a : i32 [2:plane, 3:node, 16:lane]\n"
    "    alloc b : i32 [3:node, 16:lane]\n"
    "    matrix fill sums = a[0, 0, ramp(16, 0)] to a[0, 2, ramp(16, 0)]\n"
    "    matrix fill sums.1 = a[1, 0, ramp(16, 0)] to a[1, 2, ramp(16, 0)]\n"
    "    matrix fill sums.2 = b[0, ramp(16, 0)] to b[2, ramp(16, 0)]\n"
    "    for q.1:j in 0..32 step 16 {\n"
    "      matrix fill rows = x[n, 0, ramp(16, q.1)] to x[n + 2, 0, ramp(16, q.1)]\n"
    "      matrix fill rows.2 = x[n, 1, ramp(16, q.1)] to x[n + 2, 1, ramp(16, q.1)]\n"
    "      matrix fill panel = w[q.1, 0, ramp(16, 0)] to w[q.1 + 15, 0, ramp(16, 0)]\n"
    "      matrix dot4 sums, rows, panel\n"
    "      matrix dot4 sums.1, rows.2, panel\n"
    "      matrix fill panel = w[q.1, 1, ramp(16, 0)] to w[q.1 + 15, 1, ramp(16, 0)]\n"
    "      matrix dot4 sums.2, rows, panel\n"
    "    }\n"
    "    matrix fill rows.1 = x[n, 0, ramp(4, 32)] to x[n + 2, 0, ramp(4, 32)]\n"
    "    matrix fill panel.1 = w[32, 0, ramp(16, 0)] to w[35, 0, ramp(16, 0)]\n"
    "    matrix dot4 sums, rows.1, panel.1\n"
    "    matrix fill panel.1 = w[32, 1, ramp(16, 0)] to w[35, 1, ramp(16, 0)]\n"
    "    matrix dot4 sums.2, rows.1, panel.1\n"
    "    matrix fill rows.1 = x[n, 1, ramp(4, 32)] to x[n + 2, 1, ramp(4, 32)]\n"
    "    matrix fill panel.1 = w[32, 0, ramp(16, 0)] to w[35, 0, ramp(16, 0)]\n"
    "    matrix dot4 sums.1, rows.1, panel.1\n"
    "    matrix spill sums = a[0, 0, ramp(16, 0)] to a[0, 2, ramp(16, 0)]\n"
    "    matrix spill sums.1 = a[1, 0, ramp(16, 0)] to a[1, 2, ramp(16, 0)]\n"
    "    matrix spill sums.2 = b[0, ramp(16, 0)] to b[2, ramp(16, 0)]\n"
    "  }\n"
    "}\n";

static void test_planes(void)
{
	struct bench b;
	bool ok = bench_parse(&b, planes);
	if (ok)
		ilir_use_matrices(b.m, &(struct ilir_tiling){.matrices = true});
	const char *after = ok ? strstr(bench_text(&b), "  for n:node") : NULL;
	ok = after && strcmp(after, planes_after) == 0;
	if (after && !ok)
		printf("# it is:\n%s", after);
	tap_ok(ok, "a panel is multiplied by each plane of rows that the column multiplies");
	bench_close(&b);
}

int main(void)
{
	test_rules();
	test_text();
	test_meaning();
	test_pass();
	test_planes();
	return tap_done();
}
