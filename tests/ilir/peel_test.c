/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The pass peel_borders: into which iterations it cuts loops, however long they are. */
#include "ilir/passes.h"
#include "tests/ilir/support.h"

static const char head[] =
    "module m\ndim node, i\n"
    "buffer h : state 0 f32 [nodes:node]\n"
    "buffer x : vector 0 f32 [nodes:node, 5:i]\n"
    "kernel t in inner {\n"
    "  for n:node in begin..end {\n"
    "    alloc s : f32 []\n    s[] = 0.0\n";

/* Whether the pass makes these loops of one from 0 on that sums up a value, and so many other sums. */
static void cuts_into(const char *end, const char *value, const char *loops, int blocks, const char *what)
{
	struct bench b;
	bench_open(&b);
	struct str s = str_in(&b.arena), found = str_in(&b.arena);
	str_printf(&s, "%s    for i:i in 0..%s { s[] = s[] + %s }\n    h[n] = s[]\n  }\n}\n", head, end,
		   value);
	b.m = ilir_parse(&b.arena, &b.diags, "test", s.text, s.n);
	if (b.m)
		ilir_peel_borders(b.m, NULL);
	bool good = b.m && ilir_verify(b.m, 0, "test", &b.diags);
	int sums = 0;
	for (const char *line = good ? bench_text(&b) : NULL; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *range = strstr(line, "i in ");
		sums += strncmp(line + strspn(line, " "), "s[] = s[]", 9) == 0;
		if (range && range < line + strcspn(line, "\n"))
			str_printf(&found, "%.*s;", (int)strcspn(range + 5, " "), range + 5), sums--;
	}
	if (!tap_ok(good && sums == blocks && strcmp(str_text(&found), loops) == 0, "%s", what))
		printf("# %s\n# found: %s and %d\n", b.diags.n ? b.diags.at[0].message : "", str_text(&found),
		       sums);
	bench_close(&b);
}

int main(void)
{
	cuts_into("7", "within(x[n, i + -1], 0.0)", "1..6;", 2,
		  "an iteration before those inside, and one after them");
	cuts_into("5", "within(x[n, i], 0.0)", "0..5;", 0, "a loop whose iterations are all inside stays");
	cuts_into("3", "within(x[n, i + 5], 0.0)", "", 3,
		  "few iterations of which none is inside become blocks");
	cuts_into("2147483647", "within(x[n, i + -3], 0.0)", "3..8;8..2147483647;", 3,
		  "a long loop whose first iterations are inside");
	cuts_into("2147483647", "within(x[n, i + -2000000000], 0.0)",
		  "0..2000000000;2000000000..2000000005;2000000005..2147483647;", 0,
		  "one with those inside in the midst");
	cuts_into("2147483647", "(within(x[n, i], 0.0) + within(x[n, i + -7], 0.0))", "0..2147483647;", 0,
		  "one of which no iteration is inside stays");
	return tap_done();
}
