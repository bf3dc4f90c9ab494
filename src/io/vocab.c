/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The words stay where they were read; a table of hashes has their numbers. */
#include "io/vocab.h"

#include "base/map.h"
#include "io/file.h"
#include "io/text.h"

#include <string.h>

/* --- the table --- */

/* Of a slot the lower bits are the id plus 1, 0 where it is free; the others are bits of the word's hash, so that few words
 * are compared with others. */
static uint32_t slot_of(const struct io_vocab *v, uint64_t hash, int id)
{
	return (uint32_t)(hash >> 32 << v->bits) | (uint32_t)(id + 1);
}

static struct io_span word_at(const struct io_vocab *v, int id)
{
	const char *begin = v->text + v->begin[id], *end = v->text + v->begin[id + 1] - 1;
	return (struct io_span){begin, end - begin - (end[-1] == '\r')};
}

/* The slot of a word, or the free one where it would stand. */
static uint32_t *find_slot(const struct io_vocab *v, uint64_t hash, const char *word, size_t length)
{
	uint32_t ids = ((uint32_t)1 << v->bits) - 1, mark = slot_of(v, hash, -1);
	for (size_t i = hash;; i++) {
		uint32_t *slot = &v->slot[i & v->mask];
		if (!*slot)
			return slot;
		if ((*slot & ~ids) != mark)
			continue;
		struct io_span other = word_at(v, (int)(*slot & ids) - 1);
		if (other.length == length && memcmp(other.text, word, length) == 0)
			return slot;
	}
}

/* The id of a word as it is written; -1 = it is not there. */
static int find_word(const struct io_vocab *v, const char *word, size_t length)
{
	uint32_t slot = *find_slot(v, hash_bytes(HASH_START, word, length), word, length);
	return (int)(slot & (((uint32_t)1 << v->bits) - 1)) - 1;
}

/* Makes room for words; a third of the slots stays free. */
static struct io_vocab *make_table(struct arena *arena, const char *text, size_t words)
{
	struct io_vocab *v = ARENA_NEW(arena, struct io_vocab);
	while (words >> v->bits)
		v->bits++;
	size_t slots = (size_t)1 << v->bits;
	if (2 * slots < 3 * words)
		slots *= 2;
	v->text = text;
	v->mask = slots - 1;
	v->slot = ARENA_ARRAY(arena, uint32_t, slots);
	v->begin = ARENA_ARRAY(arena, uint32_t, words + 1);
	return v;
}

/* --- reading --- */

/* Whether a line of the file, without its end, is a word. */
static bool is_word(const char *line, size_t length)
{
	return length && length <= IO_VOCAB_WORD && !memchr(line, 0, length);
}

static bool refuse_line(struct diag_at at, struct diags *diags, size_t length)
{
	bool zero = memchr(at.source, 0, length);
	if (!length)
		return diag_add(diags, DIAG_BAD_VOCABULARY, at, "take the line out, or put a word there",
				"line %d is empty; every line is the word with the line's number as id",
				at.line);
	at.source = NULL;
	return diag_add(diags, DIAG_BAD_VOCABULARY, at, "a vocabulary is a text file with one word a line",
			"line %d holds %zu bytes%s; a word has at most %d and no NUL", at.line, length,
			zero ? " and a NUL" : "", IO_VOCAB_WORD);
}

/* Adds the line that ends before `end`; of a word that is there already, both lines are named. */
static bool add_line(struct io_vocab *v, struct diags *diags, const char *path, const char *end)
{
	v->begin[v->n + 1] = (uint32_t)(end + 1 - v->text);
	const char *line = v->text + v->begin[v->n];
	size_t length = end - line;
	length -= length && line[length - 1] == '\r';
	if (!is_word(line, length))
		return refuse_line((struct diag_at){.file = path, .line = v->n + 1, .column = 1, .source = line}, diags, length);
	uint64_t hash = hash_bytes(HASH_START, line, length);
	uint32_t *slot = find_slot(v, hash, line, length);
	if (*slot)
		return diag_add(diags, DIAG_DUPLICATE_WORD, (struct diag_at){.file = path, .line = v->n + 1, .column = 1},
				"take one of the two lines out", "'%.*s' stands on lines %d and %d",
				(int)length, line, find_word(v, line, length) + 1, v->n + 1);
	*slot = slot_of(v, hash, v->n++);
	return true;
}

/* Blocks have a constant length, so that compilers count several bytes at once. */
static size_t count_lines(const char *text, size_t length)
{
	enum { BLOCK = 64 };
	size_t n = 1, i = 0;
	for (; length - i >= BLOCK; i += BLOCK) {
		uint8_t found = 0;
		for (int k = 0; k < BLOCK; k++)
			found += text[i + k] == '\n';
		n += found;
	}
	for (; i < length; i++)
		n += text[i] == '\n';
	return n;
}

struct io_vocab *io_vocab_open(struct arena *arena, struct diags *diags, const char *path)
{
	size_t length;
	const char *text = io_read_file(arena, diags, path, &length);
	if (!text || !io_check_mark(path, text, length, diags))
		return NULL;
	struct io_vocab *v = make_table(arena, text, count_lines(text, length));
	for (const char *p = text, *end = text + length, *newline; p < end; p = newline + 1) {
		newline = memchr(p, '\n', end - p);
		if (!newline)
			newline = end;
		if (!add_line(v, diags, path, newline))
			return NULL;
	}
	if (!v->n) {
		diag_add(diags, DIAG_EMPTY_INPUT, (struct diag_at){.file = path}, "write one word a line",
			 "the vocabulary '%s' is empty", path);
		return NULL;
	}
	v->unknown = find_word(v, "<unk>", 5);
	return v;
}

int io_vocab_get(const struct io_vocab *v, const char *word, size_t length)
{
	char lower[IO_VOCAB_WORD];
	if (length > sizeof lower)
		return -1;
	int id = find_word(v, word, length);
	if (id >= 0)
		return id;
	for (size_t i = 0; i < length; i++)
		lower[i] = word[i] >= 'A' && word[i] <= 'Z' ? word[i] - 'A' + 'a' : word[i];
	return find_word(v, lower, length);
}

int io_vocab_find(const struct io_vocab *v, const char *word, size_t length)
{
	int id = io_vocab_get(v, word, length);
	return id < 0 ? v->unknown : id;
}
