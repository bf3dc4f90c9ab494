/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The pass fetch_ahead: what it prefetches before a loop, and which statements it moves there. */
#include "ilir/passes.h"
#include "tests/ilir/support.h"

static const char head[] =
    "module m\ndim node, j, k, lane\n"
    "buffer table : weight 0 f32 [20:k, 8:j]\n"
    "buffer bias : weight 1 f32 [8:j]\n"
    "buffer h : state 0 f32 [nodes:node, 8:j]\n"
    "buffer word : token 0 i32 [nodes:node]\n"
    "buffer child : child 0 i32 [nodes:node]\n"
    "buffer row : read_row 0 i32 [nodes:node]\n"
    "buffer leaf : state 1 f32 [nodes:node, 8:j] or table by row\n"
    "kernel t in inner {\n"
    "  for n:node in begin..end {\n";

static const char sum[] =
    "alloc sum : f32 []\nsum[] = 0.0\n"
    "for k:k in 0..4 { sum[] = fma(h[to_index(child[n]), k], 2.0, sum[]) }\n";

/* Whether the pass puts these lines, without indentation, before the loop. */
static bool puts_in_front(const char *body, const char *lines)
{
	struct bench b;
	bench_open(&b);
	struct str s = str_in(&b.arena);
	str_printf(&s, "%s%s%s}\n}\n", head, sum, body);
	b.m = ilir_parse(&b.arena, &b.diags, "test", s.text, s.n);
	bool good = b.m != NULL;
	if (good)
		ilir_fetch_ahead(b.m, NULL);
	good = good && ilir_verify(b.m, ILIR_IN_BOUNDS, "test", &b.diags);
	const char *at = good ? strstr(bench_text(&b), "sum[] = 0.0\n") : NULL;
	struct str found = str_in(&b.arena);
	for (at = at ? strchr(at, '\n') + 1 : ""; *at && strncmp(at, "    for k:k ", 12);
	     at = strchr(at, '\n') + 1)
		str_printf(&found, "%.*s", (int)(strchr(at, '\n') + 1 - at - 4), at + 4);
	good = good && strcmp(str_text(&found), lines) == 0;
	if (!good)
		printf("# %s\n# found: %s", b.diags.n ? b.diags.at[0].message : "", str_text(&found));
	bench_close(&b);
	return good;
}

static void test_prefetched_rows(void)
{
	tap_ok(puts_in_front("let w = to_index(word[n]) h[n, 0] = sum[] + table[w, 1]\n",
			     "let w = to_index(word[n])\nprefetch table[w, 1]\nprefetch write h[n, 0]\n"),
	       "a row of a table, its number, and the place of the result");
	tap_ok(puts_in_front("let w = to_index(row[n]) h[n, 0] = sum[] + leaf[w, 1] leaf[n, 0] = 1.0\n",
			     "let w = to_index(row[n])\nprefetch leaf[w, 1]\nprefetch write h[n, "
			     "0]\nprefetch write leaf[n, 0]\n"),
	       "rows of a state that may be in a table");
	tap_ok(puts_in_front("alloc w : index [2:node] w[0] = to_index(word[n]) w[1] = to_index(word[n]) "
			     "h[n, 0] = sum[] + table[w[1], 1]\n",
			     "alloc w : index [2:node]\nw[0] = to_index(word[n])\nw[1] = to_index(word[n])\n"
			     "prefetch table[w[1], 1]\nprefetch write h[n, 0]\n"),
	       "numbers in registers");
	tap_ok(puts_in_front("h[n, 0] = sum[] + bias[1] h[n, 1] = h[n, 0] * sum[] h[n, 0] = 1.0\n",
			     "prefetch write h[n, 0]\n"),
	       "each line once; what all rows share is near");
	tap_ok(puts_in_front("h[n, 0] = h[n, 1] + sum[]\n", "prefetch write h[n, 1]\n"),
	       "a line that is loaded and then stored to is written");
	tap_ok(puts_in_front("let a = h[n, 1] h[n, 0] = a * sum[]\n", "prefetch write h[n, 1]\n"),
	       "also if another statement loads it");
	tap_ok(puts_in_front("alloc a : f32 [] a[] = h[n, 1] * sum[]\n", "prefetch h[n, 1]\n"),
	       "a line that is only loaded is not");
	tap_ok(puts_in_front("let c = to_index(child[n]) h[n, 0] = sum[] + h[c, 1]\n",
			     "prefetch write h[n, 0]\n"),
	       "and so are the states of children, of which no number moves");
}

/* A loop over the rows of a tile, whose sums are in memory. */
static void test_row_loops(void)
{
	tap_ok(puts_in_front("alloc s : f32 [2:node] parked s[0] = sum[] s[1] = sum[]\n"
			     "for r:node in 0..2 { let w = to_index(word[n + r]) h[n + r, 0] = s[r] + table[w, 1] }\n",
			     "for r.1:node in 0..2 {\n  let w.1 = to_index(word[n + r.1])\n  prefetch table[w.1, 1]\n"
			     "  prefetch write h[n + r.1, 0]\n}\n"),
	       "what a loop over the rows of a tile accesses, by a loop");
	tap_ok(puts_in_front("alloc s : f32 [2:node] parked s[0] = sum[] for r:node in 0..2 { s[r] = s[0] }\n", ""),
	       "nothing for a loop that accesses registers alone");
	tap_ok(puts_in_front("for r:node in 0..2 { h[n + r, 0] = sum[] }\n", ""), "nor for one without sums of its rows");
}

/* Loops that prefetch have variables that the module did not have before the pass, and blocks around them are treated after
 * them. */
static void test_blocks_around(void)
{
	enum { LOOPS = 3000 };
	struct bench b;
	bench_open(&b);
	struct str s = str_in(&b.arena);
	str_printf(&s, "%sfor m:node in 0..2 {\n", head);
	str_puts(&s, "alloc s : f32 [2:node] parked\n");
	str_puts(&s, "for k:k in 0..4 { s[0] = x[k] s[1] = x[k] }\n");
	for (int i = 0; i < LOOPS; i++)
		str_printf(&s, "for r%d:node in 0..2 { let w%d = to_index(word[n + r%d]) h[n + r%d, 0] = s[r%d] + table[w%d, 1] }\n", i, i, i, i, i, i);
	str_puts(&s, "}\nlet w = to_index(word[n]) h[n, 0] = table[w, 3]\n}\n}\n");
	char *x = strstr(s.text, "buffer row");
	struct str text = str_in(&b.arena);
	str_printf(&text, "%.*sbuffer x : weight 1 f32 [4:k]\n%s", (int)(x - s.text), s.text, x);
	b.m = ilir_parse(&b.arena, &b.diags, "test", text.text, text.n);
	if (b.m)
		ilir_fetch_ahead(b.m, NULL);
	bool good = b.m && ilir_verify(b.m, ILIR_IN_BOUNDS, "test", &b.diags);
	const char *loop = good ? strstr(bench_text(&b), "    for m:node in 0..2 {\n") : NULL;
	static const char before[] = "    let w = to_index(word[n])\n    prefetch table[w, 3]\n    prefetch write h[n, 0]\n";
	size_t length = sizeof before - 1;
	tap_ok(loop && strncmp(loop - length, before, length) == 0, "a block around many loops that prefetch");
	if (b.diags.n)
		printf("# %s\n", b.diags.at[0].message);
	bench_close(&b);
}

static void test_unmoved_statements(void)
{
	tap_ok(
	    puts_in_front("alloc w : index [] for i:k in 0..2 { w[] = i } h[n, 0] = sum[] + table[w[], 1]\n",
			  "prefetch write h[n, 0]\n"),
	    "a register that a loop changes stays where it is");
	tap_ok(puts_in_front("alloc w : index [] for i:k in 0..2 { w[] = i } let v = w[] "
			     "h[n, 0] = sum[] + table[v, 1]\n",
			     "prefetch write h[n, 0]\n"),
	       "and so does what depends on it");
	tap_ok(puts_in_front("let w = to_index(word[n]) h[n, 0] = select(w < 3, table[w, 1], sum[])\n",
			     ""),
	       "of a scalar choice nothing is asked for: it may be no access");
	tap_ok(puts_in_front("if n < 3 { h[n, 0] = sum[] }\n", ""), "nor of a branch");
}

int main(void)
{
	test_prefetched_rows();
	test_row_loops();
	test_blocks_around();
	test_unmoved_statements();
	return tap_done();
}
