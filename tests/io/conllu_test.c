/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/conllu.h"

#include "io/file.h"
#include "tests/io/show.h"

/* Words of tests are written with spaces for tabs: ID FORM HEAD DEPREL DEPS, a line each. */
static const char *sentence(const char *words)
{
	struct str s = str_in(&arena);
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, "\n");
		char id[20], form[20], head[20], rel[20], deps[80];
		char *line = arena_text(&arena, p, n);
		if (!strchr(line, '\t') &&
		    sscanf(line, "%19s %19s %19s %19s %79s", id, form, head, rel, deps) == 5 && *line != '#')
			str_printf(&s, "%s\t%s\tl%s\tX\t_\t_\t%s\t%s\t%s\t_", id, form, form, head, rel,
				   deps);
		else
			str_puts(&s, line);
		str_puts(&s, "\n");
		p += n + (p[n] == '\n');
	}
	return str_text(&s);
}

/* All sentences, one after the other; what is refused as its id. */
static const char *read_all(const char *text, bool enhanced, const char *column)
{
	struct io_text t = io_text_in("words", text, strlen(text));
	struct str s = str_in(&arena);
	struct io_structure found;
	enum io_next next;
	while ((next = io_conllu_next(&t, enhanced, &arena, &diags, &found)) != IO_END) {
		str_puts(&s, s.n ? " / " : "");
		str_puts(&s, next == IO_TREE ? show_structure(&found, column)
					     : diag_spelling(diags.at[diags.n - 1].id));
	}
	return str_text(&s);
}

static void gives(const char *text, bool enhanced, const char *want, const char *what)
{
	const char *got = read_all(sentence(text), enhanced, "form");
	if (!tap_ok(strcmp(got, want) == 0, "%s", what))
		printf("# %s\n", got);
	diags_free(&diags);
}

#define SHE "1 she 2 nsubj 2:nsubj\n2 saw 0 root 0:root\n3 it 2 obj 2:obj\n"

static void takes(void)
{
	gives(SHE, false, "she saw[0:nsubj,2:obj] it ^1",
	      "heads make a tree, children in the order of words");
	gives(SHE, true, "she saw[0:nsubj,2:obj] it ^1", "so do enhanced dependencies");
	gives("# newdoc\n\n# sent_id = a\n" SHE "\n\n# b\n1 go 0 root 0:root\n", false,
	      "she saw[0:nsubj,2:obj] it ^1 / go ^0",
	      "empty lines stand between sentences, comments before them");
	gives("1-2 cannot _ _ _\n1 can 2 aux 2:aux\n2 not 0 root 0:root\n2.1 go _ _ 2:dep\n", false,
	      "can not[0:aux] ^1", "the tree has neither ranges nor empty nodes");
	gives("1-2 cannot _ _ _\n1 can 2 aux 2.1:aux\n2 not 0 root 0:root\n2.1 go _ _ 2:dep:x\n", true,
	      "can not[2:dep:x] go[0:aux] ^1", "the graph has empty nodes");
}

static void graphs(void)
{
	gives("0.1 We _ _ 1:nsubj|3:nsubj\n1 eat 0 root 0:root\n2 and 3 cc 3:cc\n3 go 1 conj 1:conj:and\n",
	      true, "We eat[0:nsubj,3:conj:and] and go[0:nsubj,2:cc] ^1",
	      "a word can have several heads, an empty node is a node");
	gives("1 a 0 root 0:root\n1.1 b _ _ 1:x\n1.2 c _ _ 1.1:y\n2 d 1 z 1.2:z\n", true,
	      "a[1:x] b[2:y] c[3:z] d ^0", "empty nodes are heads, too");
	gives("1 a 0 root 0:root\n2 b 1 dep 0:root\n3 c 1 dep 2:dep\n", true, "a b[2:dep] c ^0",
	      "of two roots the first is the structure's");
	gives("1 a 0 root 0:root\n2 b 1 dep 1:x|1:y\n", true, "a[1:x,1:y] b ^0",
	      "two edges may join the same two");
}

static void columns(void)
{
	static const char line[] = "1\tWas\tbe\tAUX\tVBD\tMood=Ind\t0\troot\t_\tSpaceAfter=No\r\n";
	static const char *const names[][2] = {{"word", "Was ^0"},	 {"lemma", "be ^0"},
					       {"tag", "AUX ^0"},	 {"xpos", "VBD ^0"},
					       {"feats", "Mood=Ind ^0"}, {"rel", "root ^0"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		tap_ok(strcmp(read_all(line, false, names[i][0]), names[i][1]) == 0, "column %s",
		       names[i][0]);
	tap_ok(accepted(true), "lines may end with CR LF, the file in a word");
}

/* The second sentence is wrong, the first and the third are read. */
static void refuses(const char *words, bool enhanced, enum diag_id id, int line, const char *says,
		    const char *what)
{
	struct str text = str_in(&arena), want = str_in(&arena);
	str_printf(&text, "1 a 0 root 0:root\n\n# sent_id = bad\n%s\n1 b 0 root 0:root\n", words);
	str_printf(&want, "a ^0 / %s / b ^0", diag_spelling(id));
	const char *got = read_all(sentence(str_text(&text)), enhanced, "form");
	bool ok = strcmp(got, str_text(&want)) == 0 && diags.n == 1 && diags.at[0].line == line &&
		  strstr(diags.at[0].message, "sentence 1, counted from 0 (sent_id bad)") &&
		  strstr(diags.at[0].message, says);
	if (!tap_ok(ok, "%s", what))
		printf("# %s: %d: %s\n", got, diags.n ? diags.at[0].line : 0,
		       diags.n ? diags.at[0].message : "-");
	diags_free(&diags);
}

static void refuses_sentences(void)
{
	static const struct {
		const char *words;
		bool enhanced;
		enum diag_id id;
		int line;
		const char *says, *what;
	} wrong[] = {
	    {"1 a 0 root _\n2 b 0 root _\n", false, DIAG_BAD_HEAD, 5, "words 1 and 2 are both roots",
	     "two roots"},
	    {"1 a 3 x _\n2 b 0 root _\n", false, DIAG_BAD_HEAD, 4, "the head '3', of 2 words",
	     "a head out of range"},
	    {"1 a _ x _\n2 b 0 root _\n", false, DIAG_BAD_HEAD, 4, "the head '_'", "a missing head"},
	    {"1 a 99999999999999999999 x _\n", false, DIAG_BAD_HEAD, 4, "of 1 words",
	     "a head of many digits"},
	    {"1 a 2 x _\n2 b 1 y _\n", false, DIAG_BAD_HEAD, 3, "none of its 2 words is the root", "no root"},
	    {"1 a 0 root _\n2 b 3 y _\n3 c 2 z _\n", false, DIAG_CYCLE, 6, "'c' depends on itself",
	     "a cycle"},
	    {"1 a 0 root _\n2 b 2 y _\n", false, DIAG_CYCLE, 5, "'b'", "a word that is its own head"},
	    {"1 a 0 root _\n3 c 1 z _\n", false, DIAG_BAD_CONLLU, 5, "the id '3' stands where 2 should",
	     "a skipped id"},
	    {"1.1 a 0 root _\n1 b 0 root _\n", false, DIAG_BAD_CONLLU, 4, "the id '1.1'",
	     "an empty node too early"},
	    {"2-1 a _ _ _\n1 b 0 root _\n", false, DIAG_BAD_CONLLU, 4, "the id '2-1'", "a range of nothing"},
	    {"0.1 a _ _ 0:root\n", false, DIAG_BAD_CONLLU, 3, "it has no word", "a sentence without words"},
	    {"1\ta\ta\tX\t_\t_\t0\troot\t_\n", false, DIAG_BAD_CONLLU, 4, "9 of 10 columns",
	     "a missing column"},
	    {"1\ta\ta\tX\t_\t_\t0\troot\t_\t_\t_\n", false, DIAG_BAD_CONLLU, 4, "more than 10",
	     "one too many"},
	    {"1\ta\ta\tX\t\t_\t0\troot\t_\t_\n", false, DIAG_BAD_CONLLU, 4, "column 5 is empty",
	     "an empty column"},
	    {"(2 It)\n", false, DIAG_BAD_CONLLU, 4, "1 of 10", "another format"},
	    {"1 a 0 root 0:root|2:x\n2 b 1 y 1:y\n", true, DIAG_CYCLE, 4, "depends on itself", "a cycle"},
	    {"1 a 0 root 0:root\n2 b 1 y 2:y\n", true, DIAG_CYCLE, 5, "'b'", "a loop"},
	    {"1 a 0 root _\n", true, DIAG_BAD_HEAD, 4, "no enhanced dependencies", "no enhanced graph"},
	    {"1 a 0 root 2:x\n", true, DIAG_BAD_HEAD, 4, "'2:x' is no", "a head out of range"},
	    {"1 a 0 root 0.1:x\n", true, DIAG_BAD_HEAD, 4, "'0.1:x' is no",
	     "an empty node that is not there"},
	    {"1 a 0 root 0\n", true, DIAG_BAD_HEAD, 4, "'0' is no", "a head without a label"},
	    {"1 a 0 root 0:root|\n", true, DIAG_BAD_HEAD, 4, "'' is no", "a bar at the end"},
	    {"1 a 0 root 1.1:x\n1.1 b _ _ 1:y\n", true, DIAG_BAD_HEAD, 3, "none of its 1 words", "no root"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		refuses(wrong[i].words, wrong[i].enhanced, wrong[i].id, wrong[i].line, wrong[i].says,
			wrong[i].what);
}

static void no_sentence(void)
{
	tap_ok(strcmp(read_all("", false, "form"), "empty-input") == 0 &&
		   refused(DIAG_EMPTY_INPUT, "no sentence"),
	       "an empty text is refused");
	tap_ok(strcmp(read_all("# a comment\n\n", false, "form"), "empty-input") == 0 &&
		   refused(DIAG_EMPTY_INPUT, "no sentence"),
	       "so is one of comments");
	struct io_text t = io_text_in("nul", "1\ta\0b\ta\tX\t_\t_\t0\troot\t_\t_\n", 25);
	struct io_structure found;
	tap_ok(io_conllu_next(&t, false, &arena, &diags, &found) == IO_FAILED &&
		   refused(DIAG_BAD_CONLLU, "NUL"),
	       "a NUL byte is refused");
}

static void real_sentences(void)
{
	const char *path = data_path("ud/en_ewt-ud-dev.conllu");
	long sentences[2] = {0}, nodes[2] = {0}, cycles = 0, shared = 0;
	if (!path) {
		tap_skip("no folder with data", "the development sentences are read");
		return;
	}
	size_t length;
	const char *text = io_read_file(&arena, &diags, path, &length);
	for (int enhanced = 0; enhanced < 2; enhanced++) {
		struct io_text t = io_text_in(path, text, length);
		struct io_structure s;
		enum io_next next;
		while ((next = io_conllu_next(&t, enhanced, &arena, &diags, &s)) != IO_END) {
			if (next == IO_FAILED)
				continue;
			sentences[enhanced]++;
			nodes[enhanced] += s.nodes;
			shared += s.child_begin[s.nodes] >= s.nodes;
		}
	}
	for (size_t i = 0; i < diags.n; i++)
		cycles += diags.at[i].id == DIAG_CYCLE;
	printf("# enhanced: %ld sentences, %ld nodes, %ld cycles, %ld with shared nodes\n", sentences[1],
	       nodes[1], cycles, shared);
	tap_ok(sentences[0] == 2001 && nodes[0] == 25147, "the development sentences are read");
	tap_ok(sentences[1] == 1798 && nodes[1] == 20235 && cycles == 203 && diags.n == 203,
	       "as are their graphs, but for those with cycles");
	diags_free(&diags);
}

int main(void)
{
	begin_tests();
	takes();
	graphs();
	columns();
	refuses_sentences();
	no_sentence();
	real_sentences();
	return end_tests();
}
