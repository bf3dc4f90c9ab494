/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Wraps and masks texts, and finds the word that may have been meant. */
#include "tool.h"

#include <string.h>

enum { COLUMNS = 80 };

void put_wrapped(FILE *to, int indent, const char *text)
{
	int column = 0;
	while (*text) {
		int n = (int)strcspn(text, " ");
		if (column && column + 1 + n > COLUMNS) {
			fputc('\n', to);
			column = 0;
		}
		column += fprintf(to, "%*s%.*s", column ? 1 : indent, "", n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', to);
}

/* Bytes of the control character at `p`, 0 = it is none; those from U+0080 to U+009F have two. */
static size_t control_at(const unsigned char *p)
{
	if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
		return 2;
	return (p[0] < ' ' && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f;
}

void put_masked(FILE *to, const char *text)
{
	while (*text) {
		size_t n = control_at((const unsigned char *)text);
		fputc(n ? '?' : *text, to);
		text += n ? n : 1;
	}
}

/* --- the nearest word --- */

enum { LONGEST = 63 };

static size_t smaller_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein distance: how many letters must be inserted, removed or replaced to turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t m = strlen(b), row[LONGEST + 1];
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = i;
		row[0] = i + 1;
		for (size_t j = 0; j < m; j++) {
			size_t replaced = diagonal + (a[i] != b[j]);
			diagonal = row[j + 1];
			row[j + 1] = smaller_of(replaced, smaller_of(diagonal, row[j]) + 1);
		}
	}
	return row[m];
}

/* A word is offered as meant only when at most a third of its letters differ. */
void nearest_offer(struct nearest *n, const char *word)
{
	size_t length = strlen(n->wanted);
	if (length > LONGEST || strlen(word) > LONGEST)
		return;
	size_t d = edit_distance(n->wanted, word);
	if (d <= length / 3 + 1 && d < length && (!n->word || d < n->distance)) {
		n->word = word;
		n->distance = d;
	}
}

bool complain_unknown(const char *what, const struct nearest *n, const char *list)
{
	if (n->word)
		return complain("there is no %s '%s'; did you mean '%s'?", what, n->wanted, n->word);
	return complain("there is no %s '%s' ('%s' lists them)", what, n->wanted, list);
}
