/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/vocab.h"

#include "io/file.h"
#include "io/text.h"

#include <string.h>

/* One line of the file, `length` bytes without its end. */
static bool add_line(struct io_vocab *v, struct diags *diags, const char *path, const char *line,
		     size_t length)
{
	struct diag_at at = {.file = path, .line = v->n + 1, .column = 1, .source = line};
	if (length && line[length - 1] == '\r')
		length--;
	if (!length)
		return diag_add(diags, DIAG_BAD_VOCABULARY, at, "take the line out, or put a word there",
				"line %d is empty; every line is the word with the line's number as id",
				v->n + 1);
	at.source = NULL;
	if (length > IO_VOCAB_WORD || memchr(line, 0, length))
		return diag_add(diags, DIAG_BAD_VOCABULARY, at,
				"a vocabulary is a text file with one word a line",
				"line %d holds %zu bytes%s; a word has at most %d and no NUL", v->n + 1,
				length, memchr(line, 0, length) ? " and a NUL" : "", IO_VOCAB_WORD);
	if (!map_add_lasting(&v->words, line, length, v->n))
		return diag_add(diags, DIAG_DUPLICATE_WORD, at, "take one of the two lines out",
				"'%.*s' stands on lines %d and %d", (int)length, line,
				map_get(&v->words, line, length) + 1, v->n + 1);
	v->n++;
	return true;
}

static size_t count_lines(const char *text, size_t length)
{
	size_t n = 1;
	for (const char *p = text, *end = text + length; (p = memchr(p, '\n', end - p)); p++)
		n++;
	return n;
}

struct io_vocab *io_vocab_open(struct arena *arena, struct diags *diags, const char *path)
{
	size_t length;
	const char *text = io_read_file(arena, diags, path, &length);
	if (!text || !io_check_mark(path, text, length, diags))
		return NULL;
	struct io_vocab *v = ARENA_NEW(arena, struct io_vocab);
	v->words = map_in(arena);
	map_reserve(&v->words, count_lines(text, length));
	for (const char *p = text, *end = text + length, *newline; p < end; p = newline + 1) {
		newline = memchr(p, '\n', end - p);
		if (!newline)
			newline = end;
		if (!add_line(v, diags, path, p, newline - p))
			return NULL;
	}
	if (!v->n) {
		diag_add(diags, DIAG_EMPTY_INPUT, (struct diag_at){.file = path}, "write one word a line",
			 "the vocabulary '%s' is empty", path);
		return NULL;
	}
	v->unknown = map_get(&v->words, "<unk>", 5);
	return v;
}

int io_vocab_get(const struct io_vocab *v, const char *word, size_t length)
{
	char lower[IO_VOCAB_WORD];
	if (length > sizeof lower)
		return -1;
	int id = map_get(&v->words, word, length);
	if (id >= 0)
		return id;
	for (size_t i = 0; i < length; i++)
		lower[i] = word[i] >= 'A' && word[i] <= 'Z' ? word[i] - 'A' + 'a' : word[i];
	return map_get(&v->words, lower, length);
}

int io_vocab_find(const struct io_vocab *v, const char *word, size_t length)
{
	int id = io_vocab_get(v, word, length);
	return id < 0 ? v->unknown : id;
}
