/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/vocab.h"

#include "tests/io/files.h"

static struct io_vocab *vocab(const char *text)
{
	return io_vocab_open(&arena, &diags, write_file("vocab", text, strlen(text)));
}

static int find(const struct io_vocab *v, const char *word)
{
	return io_vocab_find(v, word, strlen(word));
}

static void finds(void)
{
	struct io_vocab *v = vocab("<unk>\nthe\r\nfilm\n\xc3\x89t\xc3\xa9\n-lrb-");
	tap_ok(accepted(v) && v->n == 5 && v->unknown == 0, "a line is a word, the last may lack its end");
	tap_ok(find(v, "the") == 1 && find(v, "film") == 2, "a word's id is its line, CR LF or LF");
	tap_ok(find(v, "THE") == 1 && find(v, "-LRB-") == 4, "ASCII capitals are lowered");
	tap_ok(find(v, "\xc3\x89t\xc3\xa9") == 3 && find(v, "\xc3\xa9t\xc3\xa9") == 0, "other bytes are not");
	tap_ok(find(v, "nowhere") == 0 && find(v, "") == 0, "other words are unknown");
	char longest[2 * IO_VOCAB_WORD];
	memset(longest, 'a', sizeof longest);
	tap_ok(io_vocab_find(v, longest, sizeof longest) == 0, "a very long word is unknown");
	v = vocab("noun\nNOUN\nNum\n<unk>\n");
	tap_ok(find(v, "NOUN") == 1 && find(v, "Noun") == 0 && find(v, "Num") == 2 && find(v, "num") == 3,
	       "a word is what it is spelt as before it is lowered");
	tap_ok(io_vocab_get(v, "num", 3) == -1 && io_vocab_get(v, "NOUN", 4) == 1, "or is not there");
	v = vocab("a\nb\n");
	tap_ok(accepted(v) && v->unknown == -1 && find(v, "c") == -1,
	       "without <unk> unknown words have no id");
}

static void refuses(void)
{
	char longest[IO_VOCAB_WORD + 3] = "";
	tap_ok(!vocab("") && refused(DIAG_EMPTY_INPUT, "is empty"), "an empty vocabulary is refused");
	tap_ok(!vocab("\xef\xbb\xbfthe\ncat\n") && refused(DIAG_BYTE_ORDER_MARK, "UTF-8"),
	       "a byte order mark is no part of a word");
	tap_ok(!vocab("a\nb\na\n") && refused(DIAG_DUPLICATE_WORD, "'a' stands on lines 1 and 3"),
	       "a word on two lines is refused");
	tap_ok(!vocab("a\n\nb\n") && refused(DIAG_BAD_VOCABULARY, "line 2 is empty"),
	       "an empty line is refused");
	tap_ok(!io_vocab_open(&arena, &diags, write_file("nul", "a\nb\0c\n", 6)) &&
		   refused(DIAG_BAD_VOCABULARY, "NUL"),
	       "a NUL byte is refused");
	memset(longest, 'w', IO_VOCAB_WORD);
	tap_ok(accepted(vocab(longest)), "the longest word is taken");
	memset(longest, 'w', IO_VOCAB_WORD + 1);
	tap_ok(!vocab(longest) && refused(DIAG_BAD_VOCABULARY, "1001 bytes"), "a longer one is refused");
	tap_ok(!io_vocab_open(&arena, &diags, path_of("absent")) && refused(DIAG_CANNOT_READ, "absent"),
	       "a missing file is refused");
	tap_ok(!vocab("a\nb\nb\n") && diags.n == 1 && diags.at[0].line == 3 &&
		   strstr(diags.at[0].file, "vocab"),
	       "the diagnostic says where");
	diags_free(&diags);
}

int main(void)
{
	begin_tests();
	finds();
	refuses();
	return end_tests();
}
