/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The pass pipeline: loops over tiles whose epilogue runs between the steps of the next tile compute the same, and loops that may
 * not do so stay as they are. */
#include "ilir/passes.h"
#include "tests/ilir/support.h"

enum { TILES = 5, ROWS = 4, LANES = 4, WORDS = 6, NODES = TILES * ROWS };

static const char head[] = "module m\ndim node, j, lane\n"
			   "buffer x : vector 0 f32 [nodes:node, 6:j]\n"
			   "buffer w : weight 0 f32 [6:j, 4:lane]\n"
			   "buffer y : output 0 f32 [nodes:node, 4:lane]\n"
			   "buffer z : output 1 f32 [nodes:node, 4:lane]\n"
			   "buffer own : local 0 f32 [4:node, 4:lane]\n"
			   "buffer kept : scratch 0 f32 [20:node, 4:lane]\n"
			   "buffer origin : origin 0 i32 [nodes:node]\n"
			   "buffer count : child_begin 0 i32 [nodes+1:node]\n"
			   "kernel k in nodes {\n"
			   "for n:node in begin..begin + (div(end - begin, 4) * 4) step 4 {\n";

#define START                                                                                                \
	"alloc s : f32 [4:node, 4:lane] parked\n"                                                            \
	"for i:node in 0..4 { s[i, ramp(4, 0)] = broadcast(4, x[n + i, 5]) }\n"
#define STEPS(bounds)                                                                                        \
	"for q:j in " bounds " {\n"                                                                         \
	"s[0, ramp(4, 0)] = fma(broadcast(4, x[n, q]), w[q, ramp(4, 0)], s[0, ramp(4, 0)])\n"               \
	"s[1, ramp(4, 0)] = fma(broadcast(4, x[n + 1, q]), w[q, ramp(4, 0)], s[1, ramp(4, 0)])\n"           \
	"s[2, ramp(4, 0)] = fma(broadcast(4, x[n + 2, q]), w[q, ramp(4, 0)], s[2, ramp(4, 0)])\n"           \
	"s[3, ramp(4, 0)] = fma(broadcast(4, x[n + 3, q]), w[q, ramp(4, 0)], s[3, ramp(4, 0)])\n"           \
	"}\n"
#define END                                                                                                  \
	"for r:node in 0..4 {\n"                                                                             \
	"let a = x[n + r, 0]\n"                                                                              \
	"y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] * broadcast(4, a)\n"                                        \
	"}\n"

static const struct {
	const char *what, *body;
	bool pipelined;
} loops[] = {
    {"a loop of six steps", START STEPS("0..6") END, true},
    {"one of as many steps as rows", START STEPS("0..4") END, true},
    {"a single step", START STEPS("2..3") END, true},
    {"three steps, from the second word on", START STEPS("1..6 step 2") END, true},
    {"a value of all rows, computed again for the tile before",
     START "let v = x[n, 1]\nlet u = v * 2.0\n" STEPS("0..6") "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + broadcast(4, u) }\n", true},
    {"the number of the row by a register",
     "alloc at : index [4:node] parked\nfor c:node in 0..4 { at[c] = n + c }\n" START STEPS("0..6")
     "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] * broadcast(4, x[at[r], 2]) }\n", true},
    {"two places for each row",
     START STEPS("0..6") "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] z[n + r, ramp(4, 0)] = y[n + r, ramp(4, 0)] }\n", true},
    {"rows that are counted from the first one of a batch",
     START STEPS("0..6")
     "for r:node in 0..4 { kept[(n + r) - to_index(origin[begin]), ramp(4, 0)] = s[r, ramp(4, 0)] "
     "y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + kept[(n + r) - to_index(origin[begin]), ramp(4, 0)] }\n", true},
    {"rows that are counted from different ones",
     START STEPS("0..6")
     "for r:node in 0..4 { kept[(n + r) - to_index(origin[begin]), ramp(4, 0)] = s[r, ramp(4, 0)] "
     "y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + kept[(n + r) - to_index(origin[begin + 1]), ramp(4, 0)] }\n", false},
    {"rows whose number is read for each",
     START STEPS("0..6")
     "for r:node in 0..4 { kept[to_index(count[n + r]), ramp(4, 0)] = s[r, ramp(4, 0)] y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] }\n", false},
    {"steps whose number is read", START STEPS("0..to_index(count[n])") END, false},
    {"no loop of sums", START "s[0, ramp(4, 0)] = broadcast(4, 7.0)\n" END, false},
    {"an epilogue that reads the row before the tile",
     START STEPS("0..6") "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + y[max((n + r) - 4, 0), ramp(4, 0)] }\n", false},
    {"sums that begin with what the tile before has stored",
     "alloc s : f32 [4:node, 4:lane] parked\nfor i:node in 0..4 { s[i, ramp(4, 0)] = y[max((n + i) - 4, 0), ramp(4, 0)] }\n" STEPS("0..6") END, false},
    {"all tiles in one place of the thread's memory",
     START STEPS("0..6") "for r:node in 0..4 { own[r, ramp(4, 0)] = s[r, ramp(4, 0)] y[n + r, ramp(4, 0)] = own[r, ramp(4, 0)] }\n", false},
    {"a value that is read where rows are stored",
     START "let v = y[n, 0]\n" STEPS("0..6") "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + broadcast(4, v) }\n", false},
    {"a value of a register that changes",
     "alloc t : f32 [] parked\nt[] = x[n, 3]\nlet v = t[]\n" START STEPS("0..6")
     "for r:node in 0..4 { y[n + r, ramp(4, 0)] = s[r, ramp(4, 0)] + broadcast(4, v) }\n", false},
    {"statements behind the loop over rows", START STEPS("0..6") END "y[n, 0] = 1.0\n", false},
};

/* Parses a module with the loop; runs the pass on it if `pass`, whether or not the schedule `asks` for it. */
static bool open_loop(struct bench *b, int k, bool pass, bool asks)
{
	struct bench text;
	struct ilir_tiling tiling = {.peel = true};
	bench_open(&text);
	struct str s = str_in(&text.arena);
	str_printf(&s, "%s%s}\n}\n", head, loops[k].body);
	bool ok = bench_parse(b, str_text(&s));
	bench_close(&text);
	for (uint32_t v = 1; ok && asks && v < b->m->vars.n; v++)
		if (strcmp(b->m->vars.at[v].name, "n") == 0)
			vec_push(&b->arena, &tiling.pipelined, (ilir_var){v});
	if (ok && pass)
		ilir_pipeline(b->m, &tiling);
	ok = ok && ilir_verify(b->m, ILIR_IN_BOUNDS | ILIR_OUTLINED | ILIR_UNROLLED_ALL, "pipeline", &b->diags);
	if (b->diags.n)
		printf("# %s\n", b->diags.at[0].message);
	return ok;
}

/* The results for some rows, with what is before in memory. */
static bool run_loop(struct bench *b, int64_t begin, int64_t end, float *results)
{
	bench_allocate(b, NODES, NODES, 1, 1, 1);
	float *x = bench_buffer(b, "x"), *w = bench_buffer(b, "w"), *y = bench_buffer(b, "y");
	int32_t *count = bench_buffer(b, "count");
	for (int i = 0; i < NODES * WORDS; i++)
		x[i] = (float)(i * 7 % 23) - 11;
	for (int i = 0; i < WORDS * LANES; i++)
		w[i] = (float)(i * 5 % 13) / 8;
	for (int i = 0; i < NODES * LANES; i++)
		y[i] = -3;
	for (int i = 0; i <= NODES; i++)
		count[i] = i % WORDS;
	bool ok = bench_run(b, begin, end);
	memcpy(results, y, NODES * LANES * sizeof *y);
	memcpy(results + NODES * LANES, bench_buffer(b, "z"), NODES * LANES * sizeof *y);
	return ok;
}

/* Whether the results of some rows are the same with the pass. */
static bool computes_same(int k, int64_t begin, int64_t end)
{
	static float before[2 * NODES * LANES], after[2 * NODES * LANES];
	struct bench plain, pipelined;
	bool ok = open_loop(&plain, k, false, false) && run_loop(&plain, begin, end, before);
	ok = open_loop(&pipelined, k, true, true) && run_loop(&pipelined, begin, end, after) && ok;
	bench_close(&plain);
	bench_close(&pipelined);
	return ok && memcmp(before, after, sizeof before) == 0;
}

static bool is_pipelined(int k, bool asks)
{
	struct bench b;
	bool found = open_loop(&b, k, true, asks) && strstr(bench_text(&b), "tile_turn, 4:node");
	bench_close(&b);
	return found;
}

static void test_loops(void)
{
	for (int k = 0; k < (int)(sizeof loops / sizeof *loops); k++) {
		bool same = true;
		for (int64_t begin = 0; begin <= 4; begin += 2)
			for (int64_t end = begin; end <= NODES; end++)
				same &= computes_same(k, begin, end);
		tap_ok(same, "%s: the same results for all numbers of tiles", loops[k].what);
		tap_ok(is_pipelined(k, true) == loops[k].pipelined, "%s: %s", loops[k].what, loops[k].pipelined ? "pipelined" : "left as it is");
	}
	tap_ok(!is_pipelined(0, false), "only where the schedule says so");
}

/* --- what the pass writes --- */

static const char written[] = "  alloc s.1 : f32 [2:tile_turn, 4:node, 4:lane] parked\n"
			      "  for n:node in begin..begin + (div(end - begin, 4) * 4) step 4 {\n"
			      "    let turn = mod(div(n - begin, 4), 2)\n"
			      "    let before = max(n + -4, begin)\n"
			      "    let ready = select(n == begin, 0, 4)\n"
			      "    for i:node in 0..4 {\n"
			      "      s.1[turn, i, ramp(4, 0)] = broadcast(4, x[n + i, 5])\n"
			      "    }\n";

static void test_text(void)
{
	struct bench b;
	bool ok = open_loop(&b, 0, true, true);
	const char *text = ok ? bench_text(&b) : "";
	tap_ok(strstr(text, written), "copies of the sums, the turn, the tile before and how many of its rows there are");
	tap_ok(strstr(text, "      for r.1:node in div(q * 4, 6)..min(div((q + 1) * 4, 6), ready) {\n"
			    "        let a.1 = x[before + r.1, 0]\n"
			    "        y[before + r.1, ramp(4, 0)] = s.1[1 - turn, r.1, ramp(4, 0)] * broadcast(4, a.1)\n"),
	       "rows of the tile before in each step");
	tap_ok(strstr(text, "    for r.2:node in select((n + 4) < (begin + (div(end - begin, 4) * 4)), 4, 0)..4 {\n"), "rows of the last tile behind its steps");
	if (!strstr(text, written))
		printf("# %s\n", text);
	bench_close(&b);
}

int main(void)
{
	test_loops();
	test_text();
	return tap_done();
}
