/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines of a schedule's text: a directive and its arguments, separated by blanks. */
#include "sched/line.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *spelling, *arguments;
} directives[] = {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) {spelling, arguments},
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
};

const char *sched_spelling(enum sched_directive d)
{
	return directives[d].spelling;
}

static bool refuse_directive(struct line *l, struct diag_at at)
{
	char list[320] = "directives are";
	for (int d = 0; d < SCHED_DIRECTIVES; d++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s %s", d ? "," : "",
			 sched_spelling(d));
	return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at, list, "'%s' is no directive", l->word[0]);
}

bool(line_refuse)(struct line *l, int word, const char *why)
{
	struct diag_at at = l->at;
	bool named = word > 0 && word < l->words;
	char hint[LINE_LENGTH];
	at.column = word < l->words ? l->column[word] : 0;
	if (l->directive == SCHED_DIRECTIVES)
		return refuse_directive(l, at);
	snprintf(hint, sizeof hint, "write '%s %s', or take out the line", sched_spelling(l->directive),
		 directives[l->directive].arguments);
	return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at, hint, "%s: %s%s%s%s", l->word[0], why,
			named ? ": '" : "", named ? l->word[word] : "", named ? "'" : "");
}

static enum sched_directive find_directive(const struct line *l)
{
	int d = 0;
	while (d < SCHED_DIRECTIVES && !line_is(l, 0, sched_spelling(d)))
		d++;
	return d;
}

/* Splits a line into words; false after a diagnostic if it is too long or has too many. */
static bool split_line(struct line *l, const char *text, size_t length)
{
	size_t end = 0;
	l->words = 0;
	l->from = text;
	while (end < length && text[end] != '#')
		end++;
	l->word[0] = l->text;
	if (end >= LINE_LENGTH)
		return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, l->at, "write one directive a line",
				"the line is too long");
	memcpy(l->text, text, end);
	l->text[end] = 0;
	char *save, *w = strtok_r(l->text, " \t\r", &save);
	for (; w && l->words < LINE_MOST_WORDS; w = strtok_r(NULL, " \t\r", &save)) {
		l->column[l->words] = w - l->text + 1;
		l->word[l->words++] = w;
	}
	l->directive = find_directive(l);
	return !w || line_refuse(l, 0, "too many words");
}

int line_number(struct line *l, int word, int low, int high)
{
	char why[80], *end = "x";
	long n = word < l->words ? strtol(l->word[word], &end, 10) : 0;
	if (*end == 0 && n >= low && n <= high)
		return n;
	snprintf(why, sizeof why, "expects a number from %d to %d", low, high);
	line_refuse(l, word, why);
	return -1;
}

bool line_is(const struct line *l, int word, const char *text)
{
	return word < l->words && strcmp(l->word[word], text) == 0;
}

int line_word(struct line *l, int word, const char *const *list)
{
	for (int i = 0; list[i]; i++)
		if (line_is(l, word, list[i]))
			return i;
	line_refuse(l, word, "wrong argument");
	return -1;
}

bool line_ends(struct line *l, int words)
{
	return l->words <= words || line_refuse(l, words, "wrong argument");
}

bool line_next(struct line *l, const char **text, const char *end)
{
	const char *newline = memchr(*text, '\n', end - *text);
	size_t n = (newline ? newline : end) - *text;
	const char *from = *text;
	l->at.line++;
	*text += n + 1;
	return split_line(l, from, n);
}
