/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Texts that nobody meant: mutations of good models, random bytes, extremes of size, and memory that runs
 * out. */
#include "ra/syntax.h"
#include "tests/budget.h"
#include "tests/ra/read.h"
#include "tests/ra/session.h"
#include "tests/tap.h"

enum { MUTATIONS = 3000 };

static unsigned long state = 88172645463325252ul;

static unsigned random_below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % n;
}

/* Parses; a model must print and read back, anything else must have been explained. */
static bool survives_text(const char *text, size_t length)
{
	struct session s, again;
	session_parse(&s, &allocator_default, text, length);
	bool good = !s.out_of_memory && (s.model != NULL) == (s.diags.n == 0);
	if (s.model) {
		const char *printed = session_print(&s);
		session_parse(&again, &allocator_default, printed, strlen(printed));
		good &= again.model && strcmp(session_print(&again), printed) == 0;
		session_end(&again);
	}
	struct str shown = str_in(&s.arena);
	for (size_t i = 0; i < s.diags.n; i++)
		diag_print(&s.diags.at[i], &shown);
	if (!good)
		printf("# %.*s\n", (int)length, text);
	session_end(&s);
	return good;
}

/* Replaces, deletes, doubles or swaps pieces; pieces of the language as well as bytes. */
static size_t mutate_text(char *text, size_t length, size_t capacity)
{
	static const char *const pieces[] = {"(",	   ")",	       "[",
					     "]",	   "{",	       "}",
					     ",",	   ":",	       ";",
					     "=",	   "\n",       "@",
					     "-",	   "\"",       "#",
					     ".",	   "*",	       " for k in children",
					     "leaf:\n",	   "node:\n",  "state ",
					     "h",	   "D",	       "2*D",
					     "sum(",	   "left.h",   "children[0].h",
					     "1e38",	   "zeros(D)", "softmax(",
					     "x",	   "\xff",     " at root",
					     "def f(a) = "};
	for (unsigned n = 1 + random_below(3); n; n--) {
		size_t at = random_below((unsigned)length), span = random_below(12);
		span = span > length - at ? length - at : span;
		const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
		size_t added = random_below(4) ? strlen(piece) : 0;
		if (random_below(2))
			span = 0;
		if (length - span + added + 1 >= capacity)
			continue;
		memmove(text + at + added, text + at + span, length - at - span);
		memcpy(text + at, piece, added);
		length += added - span;
		if (!length)
			text[length++] = '\n';
	}
	return length;
}

static void check_mutations(const char *name)
{
	char path[200];
	size_t length;
	snprintf(path, sizeof path, "tests/ra/good/%s.ra", name);
	char *text = read_text(source_path(path), &length);
	if (!tap_ok(text, "%s: the file is there", name))
		return;
	size_t capacity = length + 1000, faults = 0;
	char *copy = malloc(capacity);
	for (int i = 0; i < MUTATIONS; i++) {
		memcpy(copy, text, length);
		faults += !survives_text(copy, mutate_text(copy, length, capacity));
	}
	tap_ok(!faults, "%s: %d mutations are refused or are models", name, MUTATIONS);
	free(copy);
	free(text);
}

static void check_random_bytes(void)
{
	char text[300];
	size_t faults = 0;
	for (int i = 0; i < MUTATIONS; i++) {
		size_t length = random_below(sizeof text);
		for (size_t j = 0; j < length; j++)
			text[j] = (char)random_below(random_below(2) ? 256 : 128);
		faults += !survives_text(text, length);
	}
	tap_ok(!faults, "random bytes are refused");
	tap_ok(survives_text(NULL, 0) && survives_text("\0\0\0", 3) && survives_text("model \0m\n", 9),
	       "so are no bytes, and zeros");
}

/* --- size --- */

#define HEAD "model m\nstructure tree(*)\ninput x[D]\nparam W[D, D]\nstate h[D]\n"

static void check_large_model(void)
{
	struct str s = {0};
	struct arena arena;
	jmp_buf escape;
	arena_init(&arena, &allocator_default);
	if (arena_guard(&arena, &escape)) {
		tap_ok(false, "there is memory for the test");
		return;
	}
	s = str_in(&arena);
	str_puts(&s, HEAD "leaf:\n h = x\ninner:\n v0 = W @ sum(k.h for k in children)\n");
	for (int i = 1; i < 20000; i++)
		str_printf(&s, " v%d = v%d * p%d\n", i, i - 1, i);
	str_puts(&s, " h = v19999\n");
	for (int i = 1; i < 20000; i++)
		str_printf(&s, "param p%d[D]\n", i);
	str_puts(&s, "output o = h\n");
	tap_ok(survives_text(str_text(&s), s.n), "twenty thousand parameters and statements are a model");
	s = str_in(&arena);
	str_puts(&s, HEAD "node:\n h = x");
	for (int i = 0; i < 20000; i++)
		str_puts(&s, " + W @ sum(k.h for k in children)");
	str_puts(&s, "\noutput o = h\n");
	tap_ok(survives_text(str_text(&s), s.n), "so is a sum of twenty thousand terms");
	s = str_in(&arena);
	for (int i = 0; i < 100000; i++)
		str_puts(&s, "x $ ((\n");
	tap_ok(survives_text(str_text(&s), s.n), "a hundred thousand faulty lines are refused");
	arena_free(&arena);
}

static void check_brace_bomb(void)
{
	char text[600] = "model m\nparam a";
	for (int i = 0; i < 16; i++)
		strcat(text, "{a,b,c,d,e,f,g,h}");
	strcat(text, "[D]\n");
	tap_ok(survives_text(text, strlen(text)), "braces that expand to 8^16 names are refused");
}

static void check_long_text(void)
{
	size_t length = RA_TEXT_LIMIT + 1;
	char *text = malloc(length);
	memset(text, '\n', length);
	struct session s;
	session_parse(&s, &allocator_default, text, length);
	tap_ok(!s.model && s.diags.n == 1 && s.diags.at[0].id == DIAG_MODEL_LARGE,
	       "a text that is too long is refused");
	session_end(&s);
	free(text);
}

/* --- memory --- */

static void check_out_of_memory(void)
{
	size_t length;
	char *text = read_text(source_path("tests/ra/good/dag.ra"), &length);
	bool finished = false, kept = false;
	int n = 0;
	for (; text && !finished && n < 1000; n++) {
		struct budget b = {.left = n};
		struct allocator a = {resize_budget, &b};
		struct session s;
		session_parse(&s, &a, text, length);
		finished = s.model != NULL;
		session_end(&s);
		kept |= b.held != 0;
	}
	tap_ok(finished && n > 5 && !kept, "memory that runs out at any point is given back");
	free(text);
}

static void check_bind_out_of_memory(void)
{
	const char *text = HEAD "node:\n h = W @ x\noutput o = h\n";
	struct tensor_info w = {"W", DTYPE_F32, 2, {4, 4}};
	struct session s;
	int64_t sizes[2];
	session_parse(&s, &allocator_default, text, strlen(text));
	struct budget b = {.left = 0};
	struct allocator a = {resize_budget, &b};
	struct diags d;
	diags_init(&d, &a);
	tap_ok(!ra_bind(s.model, &d, "w", &w, 1, sizes) && d.lost && !b.held, "binding without memory fails");
	diags_free(&d);
	tap_ok(ra_bind(s.model, &s.diags, "w", &w, 1, sizes) && sizes[0] == 4, "and succeeds with it");
	session_end(&s);
}

int main(void)
{
	static const char *const models[] = {"treelstm", "childsum", "gru",  "dag",
					     "matrix",	 "updown",   "down", "tensor"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		check_mutations(models[i]);
	check_random_bytes();
	check_large_model();
	check_brace_bomb();
	check_long_text();
	check_out_of_memory();
	check_bind_out_of_memory();
	return tap_done();
}
