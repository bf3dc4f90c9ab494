/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/plain.h"

#include <string.h>

static const char *word_end(const char *p, const char *end)
{
	while (p < end && !io_is_space(*p))
		p++;
	return p;
}

static int32_t count_words(const char *p, const char *end)
{
	int32_t n = 0;
	for (; (p = io_skip_space(p, end)) < end; p = word_end(p, end))
		n++;
	return n;
}

/* The words of a line, which is not empty. */
static struct io_structure sentence_of(const char *p, const char *end, struct arena *arena)
{
	struct io_structure s = io_sequence(count_words(p, end), arena);
	struct io_span *word = ARENA_ARRAY(arena, struct io_span, s.nodes);
	struct io_column *column = ARENA_NEW(arena, struct io_column);
	struct str sentence = str_in(arena);
	for (int32_t n = 0; n < s.nodes; n++) {
		const char *begin = io_skip_space(p, end);
		p = word_end(begin, end);
		word[n] = (struct io_span){begin, p - begin};
		str_add(&sentence, " ", n > 0);
		str_add(&sentence, begin, p - begin);
	}
	*column = (struct io_column){.names = "word|form|token", .text = word};
	s.column = column;
	s.columns = 1;
	s.sentence = str_text(&sentence);
	return s;
}

enum io_next io_plain_next(struct io_text *t, struct arena *arena, struct diags *diags,
			   struct io_structure *to)
{
	const char *p = t->at = io_skip_space(t->at, t->end);
	if (p == t->end && t->structures)
		return IO_END;
	t->structures++;
	if (p == t->end)
		return io_refuse(t, diags, DIAG_EMPTY_INPUT, p,
				 "write a sentence a line, its words apart by spaces",
				 "the text holds no sentence");
	io_text_mark(t);
	const char *newline = memchr(p, '\n', t->end - p), *end = newline ? newline : t->end;
	t->at = end;
	const char *nul = memchr(p, 0, end - p);
	if (nul)
		return io_refuse(t, diags, DIAG_BAD_PLAIN, nul, "sentences are read from text files",
				 "a NUL byte in a line of words");
	*to = sentence_of(p, end, arena);
	return IO_TREE;
}
