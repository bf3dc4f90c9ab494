/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/ptb.h"

#include "io/file.h"

#include "tests/io/files.h"

#include <sys/mman.h>

static struct io_text reader_of(const char *text)
{
	return io_text_in("trees", text, strlen(text));
}

static void show_span(struct str *s, struct io_span span)
{
	str_add(s, span.text ? span.text : "-", span.text ? span.length : 1);
}

/* A tree as its nodes in order: `label:word` or `label[children]`. */
static const char *show(const struct io_tree *t)
{
	struct str s = str_in(&arena);
	for (int32_t n = 0; n < t->nodes; n++) {
		str_puts(&s, n ? " " : "");
		show_span(&s, t->label[n]);
		if (t->word[n].text) {
			str_puts(&s, ":");
			show_span(&s, t->word[n]);
		}
		for (int32_t i = t->child_begin[n]; i < t->child_begin[n + 1]; i++)
			str_printf(&s, "%s%d%s", i == t->child_begin[n] ? "[" : ",", t->children[i],
				   i + 1 == t->child_begin[n + 1] ? "]" : "");
	}
	return str_text(&s);
}

/* All trees of a text, one after the other. */
static const char *read_text(const char *text)
{
	struct io_text r = reader_of(text);
	struct str s = str_in(&arena);
	struct io_tree t;
	enum io_next next;
	while ((next = io_ptb_next(&r, &arena, &diags, &t)) == IO_TREE)
		str_printf(&s, "%s%s", s.n ? " / " : "", show(&t));
	return next == IO_END ? str_text(&s) : "failed";
}

static const struct {
	const char *name, *text, *want;
} good[] = {
    {"a leaf", "(2 word)", "2:word"},
    {"a sentiment tree", "(3 (2 It) (4 (2 's) (3 good)))", "2:It 2:'s 3:good 4[1,2] 3[0,3]"},
    {"a category tree", "(S (NP (DT the) (NN cat)) (VP (VBZ sat)))",
     "DT:the NN:cat NP[0,1] VBZ:sat VP[3] S[2,4]"},
    {"a bracket around the tree", "( (S (NP x) (VP y)) )", "NP:x VP:y S[0,1]"},
    {"several of them", "((((2 x))))", "2:x"},
    {"an inner node without label", "(S ((A x) (B y)) (C z))", "A:x B:y -[0,1] C:z S[2,3]"},
    {"a root without label over two", "((A x) (B y))", "A:x B:y -[0,1]"},
    {"an inner node with one child", "(NP (N x))", "N:x NP[0]"},
    {"three children", "(S (A a) (B b) (C c))", "A:a B:b C:c S[0,1,2]"},
    {"no space between brackets", "(S(A a)(B b))", "A:a B:b S[0,1]"},
    {"space everywhere", "\t( S\r\n ( A\ta )\n\n(B b ) )\n", "A:a B:b S[0,1]"},
    {"trees on one line", "(1 a)(2 b) (3 c)", "1:a / 2:b / 3:c"},
    {"blank lines and CR LF", "\n(1 a)\r\n\r\n\n(2 b)\r\n", "1:a / 2:b"},
    {"escaped words", "(1 (2 -LRB-) (2 1\\/2))", "2:-LRB- 2:1\\/2 1[0,1]"},
    {"a no-break space inside of a word",
     "(2 1\xc2\xa0"
     "1\\/2)",
     "2:1\xc2\xa0"
     "1\\/2"},
    {"form feed and vertical tab are no space", "(2 a\fb\vc)", "2:a\fb\vc"},
};

static void takes(void)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		const char *got = read_text(good[i].text);
		if (!tap_ok(accepted(strcmp(got, good[i].want) == 0), "%s", good[i].name))
			printf("# %s\n", got);
	}
}

static const struct {
	const char *name, *text;
	enum diag_id id;
	const char *part;
	int line, column;
} bad[] = {
    {"an empty text", "", DIAG_EMPTY_INPUT, "no tree", 1, 1},
    {"a text of space", " \n\n ", DIAG_EMPTY_INPUT, "no tree", 3, 2},
    {"a ')' too few", "(1 a)\n (2 (3 b)\n(4 c)", DIAG_UNBALANCED_TREE, "1 ')' too few", 2, 2},
    {"three ')' too few", "(1 (2 (3 a", DIAG_UNBALANCED_TREE, "3 ')' too few", 1, 1},
    {"a ')' too many", "(1 a))\n", DIAG_UNBALANCED_TREE, "closes no tree", 1, 6},
    {"a node without anything", "(1 (2 a)\n  ())", DIAG_BAD_TREE, "a node is empty", 2, 3},
    {"a label without content", "(1 (2 a) (2))", DIAG_BAD_TREE, "neither a word nor subtrees", 1, 10},
    {"only a word", "(word)", DIAG_BAD_TREE, "neither a word nor subtrees", 1, 1},
    {"a word before a subtree", "(2 a (2 b))", DIAG_BAD_TREE, "subtree stands beside a word", 1, 6},
    {"a word after a subtree", "(2 (2 b) a)", DIAG_BAD_TREE, "'a' stands beside subtrees", 1, 10},
    {"a word after an unlabelled subtree", "((2 b) a)", DIAG_BAD_TREE, "'a' stands beside subtrees", 1, 8},
    {"two words in a leaf", "(1 a)\n\n(2 b c)", DIAG_BAD_TREE, "'c' is a second word", 3, 6},
    {"text outside of a tree", "(1 a)\nb (2 c)", DIAG_BAD_TREE, "outside of a tree", 2, 1},
};

static void refuses(void)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *got = read_text(bad[i].text);
		bool there = diags.n == 1 && diags.at[0].line == bad[i].line &&
			     diags.at[0].column == bad[i].column && diags.at[0].hint && diags.at[0].source;
		if (diags.n && !there)
			printf("# line %d column %d\n", diags.at[0].line, diags.at[0].column);
		tap_ok(strcmp(got, "failed") == 0 && refused(bad[i].id, bad[i].part) && there,
		       "%s is refused, and where", bad[i].name);
	}
}

static void refuses_nul(void)
{
	struct io_tree t;
	struct io_text inside = io_text_in("trees", "(2 a\0b)", 7),
		       outside = io_text_in("trees", "(2 a)\0(2 b)", 11);
	tap_ok(io_ptb_next(&inside, &arena, &diags, &t) == IO_FAILED && diags.at[0].column == 5 &&
		   refused(DIAG_BAD_TREE, "NUL"),
	       "a NUL byte in a tree is refused");
	tap_ok(io_ptb_next(&outside, &arena, &diags, &t) == IO_TREE &&
		   io_ptb_next(&outside, &arena, &diags, &t) == IO_FAILED &&
		   refused(DIAG_BAD_TREE, "outside"),
	       "and one between trees");
	tap_ok(io_ptb_next(&outside, &arena, &diags, &t) == IO_END && accepted(true),
	       "after a failure comes the end");
}

static void shows_place(void)
{
	struct str s = str_in(&arena);
	read_text("(1 a)\n(2 b c)\n(3 d)\n");
	diag_print(&diags.at[0], &s);
	tap_ok(strcmp(str_text(&s),
		      "trees:2:6: error: 'c' is a second word in one leaf [bad-tree]\n"
		      "    (2 b c)\n"
		      "         ^\n"
		      "    hint: give every word a node of its own: (label word)\n") == 0,
	       "the diagnostic shows the line with a caret");
	diags_free(&diags);
	char *line = arena_take(&arena, 1, 20001);
	memset(line, 'x', 20000);
	memcpy(line, "(2 b ", 5);
	line[19999] = ')';
	read_text(line);
	tap_ok(diags.n == 1 && !diags.at[0].source && diags.at[0].column == 6 &&
		   strlen(diags.at[0].message) < 100,
	       "very long lines and words are not repeated");
	diags_free(&diags);
}

static void lines_of_trees(void)
{
	struct io_text r = reader_of("\n(1 a) (2\nb)\n\n(3 c)");
	struct io_tree t;
	io_ptb_next(&r, &arena, &diags, &t);
	bool first = r.line.number == 2;
	io_ptb_next(&r, &arena, &diags, &t);
	bool second = r.line.number == 2;
	io_ptb_next(&r, &arena, &diags, &t);
	tap_ok(accepted(first && second && r.line.number == 5), "the line that a tree begins on is known");
}

/* `(n (n (n ... (n x)))` of `depth` nodes. */
static void nests(void)
{
	enum { DEPTH = 1500000 };
	char *text = malloc(4 * DEPTH + 1);
	for (int i = 0; i < DEPTH; i++) {
		memcpy(text + 3 * i, "(n ", 3);
		text[3 * DEPTH + 1 + i] = ')';
	}
	text[3 * DEPTH] = 'x';
	struct io_text r = io_text_in("chain", text, 4 * DEPTH + 1);
	struct io_tree t;
	bool ok = io_ptb_next(&r, &arena, &diags, &t) == IO_TREE && t.nodes == DEPTH;
	for (int32_t n = 1; ok && n < DEPTH; n++)
		ok = t.child_begin[n] == n - 1 && t.children[n - 1] == n - 1;
	tap_ok(accepted(ok) && t.child_begin[DEPTH] == DEPTH - 1, "a chain of %d nodes", DEPTH);
	r = io_text_in("chain", text, 4 * DEPTH);
	tap_ok(io_ptb_next(&r, &arena, &diags, &t) == IO_FAILED &&
		   refused(DIAG_UNBALANCED_TREE, "1 ')' too few"),
	       "the same without its last ')'");
	free(text);
}

/* 2^31 times '(' in the address space, but one piece of memory. */
static void refuses_too_many(void)
{
	static const char what[] = "a tree of 2^31 nodes is refused";
	const size_t piece = (size_t)64 << 20, total = (size_t)1 << 31;
	int fd = memfd_create("brackets", MFD_CLOEXEC);
	char *text = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool ok = text != MAP_FAILED && fd >= 0 && ftruncate(fd, piece) == 0;
	for (size_t i = 0; ok && i < total; i += piece)
		ok = mmap(text + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == text + i;
	if (ok) {
		memset(text, '(', piece);
		struct io_text r = io_text_in("brackets", text, total);
		struct io_tree t;
		tap_ok(io_ptb_next(&r, &arena, &diags, &t) == IO_FAILED &&
			   refused(DIAG_TOO_MANY_NODES, "2147483647"),
		       "%s", what);
	} else {
		tap_skip("no address space for it", "%s", what);
	}
	if (text != MAP_FAILED)
		munmap(text, total);
	if (fd >= 0)
		close(fd);
}

static void real_trees(void)
{
	const char *path = data_path("sst/dev.txt");
	if (!path) {
		tap_skip("no folder with data", "the development trees are read");
		return;
	}
	size_t length;
	const char *text = io_read_file(&arena, &diags, path, &length);
	struct io_text r = io_text_in(path, text, length);
	struct io_tree t;
	long trees = 0, nodes = 0, last = 0, odd = 0;
	while (io_ptb_next(&r, &arena, &diags, &t) == IO_TREE) {
		trees++;
		nodes += t.nodes;
		last = r.line.number;
		for (int32_t n = 0; n < t.nodes; n++)
			odd += t.child_begin[n + 1] - t.child_begin[n] != (t.word[n].text ? 0 : 2) ||
			       t.label[n].length != 1;
	}
	tap_ok(accepted(trees == 1101 && nodes == 41447 && last == 1101 && odd == 0),
	       "the development trees are read");
}

int main(void)
{
	begin_tests();
	takes();
	refuses();
	refuses_nul();
	shows_place();
	lines_of_trees();
	nests();
	refuses_too_many();
	real_trees();
	return end_tests();
}
