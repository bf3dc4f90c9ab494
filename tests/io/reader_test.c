/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is common to the formats, and brackets made fit. */
#include "io/reader.h"

#include "tests/io/show.h"

static const char *read_brackets(const char *text, struct io_view view)
{
	struct io_text t = io_text_in("trees", text, strlen(text));
	struct io_structure s;
	struct str all = str_in(&arena);
	if (io_next_structure(&t, &view, &arena, &diags, &s) != IO_TREE)
		return "refused";
	str_printf(&all, "%s | %s", show_structure(&s, "label"), show_structure(&s, "word"));
	return str_text(&all);
}

static void gives(const char *text, struct io_view view, const char *want, const char *what)
{
	const char *got = read_brackets(text, view);
	if (!tap_ok(accepted(strcmp(got, want) == 0), "%s", what))
		printf("# %s\n", got);
}

static void collapses(void)
{
	struct io_view view = {.collapse = true};
	gives("(S (VP (VB go)))", view, "S ^0 | go ^0",
	      "a chain becomes its lowest node with the highest label");
	gives("(S (A (B x) (C y)) (D z))", view, "B C A[0,1] D S[2,3] ^4 | x y -[0,1] z -[2,3] ^4",
	      "other nodes stay");
	gives("(S ((A x) (B y)))", view, "A B S[0,1] ^2 | x y -[0,1] ^2",
	      "a label that is missing does not count");
	gives("(S (((A x) (B y))) (C z))", view, "A B -[0,1] C S[2,3] ^4 | x y -[0,1] z -[2,3] ^4",
	      "numbers stay in post order");
}

static void binarizes(void)
{
	static const char three[] = "(S (A a) (B b) (C c))",
			  four[] = "(S (A a) (B b1) (N (C c) (D d) (E e)) (F f))";
	struct io_view left = {.binarize = IO_LEFT}, right = {.binarize = IO_RIGHT};
	gives(three, left, "A B S[0,1] C S[2,3] ^4 | a b -[0,1] c -[2,3] ^4", "three children, to the left");
	gives(three, right, "A B C S[1,2] S[0,3] ^4 | a b c -[1,2] -[0,3] ^4",
	      "three children, to the right");
	gives(four, left,
	      "A B S[0,1] C D N[3,4] E N[5,6] S[2,7] F S[8,9] ^10 | a b1 -[0,1] c d -[3,4] e -[5,6] -[2,7] f "
	      "-[8,9] ^10",
	      "four of them, one with three, to the left");
	gives(four, right,
	      "A B C D E N[3,4] N[2,5] F S[6,7] S[1,8] S[0,9] ^10 | a b1 c d e -[3,4] -[2,5] f -[6,7] -[1,8] "
	      "-[0,9] ^10",
	      "and to the right");
	gives("(S (A a) (B (C c)))", left, "A C B[1] S[0,2] ^3 | a c -[1] -[0,2] ^3", "fewer children stay");
	left.collapse = true;
	gives("(S (X (A a) (B b) (C c)))", left, "A B S[0,1] C S[2,3] ^4 | a b -[0,1] c -[2,3] ^4",
	      "chains go before children are paired");
}

static void tells_formats(void)
{
	static const struct {
		const char *path;
		enum io_format want;
	} names[] = {{"a.ptb", IO_BRACKETS}, {"a.conllu", IO_CONLLU}, {"a.json", IO_JSON}, {"a.jsonl", IO_JSON},
		     {"a.txt", IO_AUTO},     {".json", IO_AUTO},      {"-", IO_AUTO},	   {"", IO_AUTO}};
	static const struct {
		const char *text;
		enum io_format want;
	} texts[] = {
	    {"\n (2 a)", IO_BRACKETS}, {" {\"children\": []}", IO_JSON}, {"[{", IO_JSON},	 {"\n# text\n", IO_CONLLU},
	    {"1\tgo\t", IO_CONLLU},	  {"1-2\tgo\t", IO_CONLLU},	  {"1 go", IO_PLAIN},	 {"12", IO_PLAIN},
	    {"the cat", IO_PLAIN},	  {")", IO_PLAIN},		  {"", IO_PLAIN},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		tap_ok(io_format_of_name(names[i].path) == names[i].want, "format of '%s'", names[i].path);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		tap_ok(io_format_of_text(texts[i].text, strlen(texts[i].text), IO_PLAIN) == texts[i].want,
		       "format of '%.5s'", texts[i].text);
}

/* --- plain text --- */

static void reads_lines(void)
{
	static const char text[] = "\n the  cat\tsleeps\r\n \n(so)\nno\0t\nlast";
	struct io_text t = io_text_in("lines", text, sizeof text - 1);
	struct io_view view = {.format = IO_PLAIN};
	struct io_structure s;
	tap_ok(io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE &&
		   strcmp(show_structure(&s, "form"), "the cat[0] sleeps[1] ^2") == 0 &&
		   strcmp(s.sentence, "the cat sleeps") == 0,
	       "a line is a sequence of words");
	tap_ok(io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE && t.line.number == 4 &&
		   accepted(strcmp(show_structure(&s, "word"), "(so) ^0") == 0),
	       "empty lines are skipped, and brackets are letters");
	tap_ok(io_next_structure(&t, &view, &arena, &diags, &s) == IO_FAILED && diags.at[0].line == 5 &&
		   diags.at[0].column == 3 && refused(DIAG_BAD_PLAIN, "NUL"),
	       "a line that is no text is refused");
	tap_ok(io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE && t.structures == 4 &&
		   io_next_structure(&t, &view, &arena, &diags, &s) == IO_END && accepted(true),
	       "the last line may lack its end");
	t = io_text_in("lines", " \n", 2);
	tap_ok(io_next_structure(&t, &view, &arena, &diags, &s) == IO_FAILED && refused(DIAG_EMPTY_INPUT, "no sentence"),
	       "a text without words is refused");
}

/* --- columns --- */

static void fills(void)
{
	static const char text[] = "(S (A a) (nsubj:pass:x b))";
	struct io_text t = io_text_in("trees", text, strlen(text));
	struct io_view view = {0};
	struct io_structure s;
	int32_t to[3];
	struct io_wanted w = {.input = "label", .token = true, .elements = 1};
	w.vocab = io_vocab_open(&arena, &diags, write_file("vocab", "a\nS\nnsubj\n", 10));
	io_next_structure(&t, &view, &arena, &diags, &s);
	const struct io_column *label = io_find_column(&s, "tag", false);
	tap_ok(!io_find_column(&s, "lemma", false) && io_find_column(&s, "form", false) == s.column &&
		   strcmp(io_column_names(&s, &arena), "word, label") == 0,
	       "columns have several names");
	tap_ok(!io_fill(&t, &s, label, &w, &arena, to, &diags) &&
		   refused(DIAG_UNKNOWN_WORD, "'nsubj:pass:x'"),
	       "a label that is not in the vocabulary is refused");
	w.cut = true;
	tap_ok(accepted(io_fill(&t, &s, label, &w, &arena, to, &diags)) && to[0] == 0 && to[1] == 2 &&
		   to[2] == 1,
	       "or cut until it is there");
	w.on_edges = true;
	tap_ok(accepted(io_fill(&t, &s, label, &w, &arena, to, &diags)) && to[0] == 0 && to[1] == 2,
	       "an edge carries what the child does");
}

int main(void)
{
	begin_tests();
	collapses();
	binarizes();
	tells_formats();
	reads_lines();
	fills();
	return end_tests();
}
