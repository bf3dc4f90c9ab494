/* Lines of a schedule's text: a directive and its arguments, words with blanks between. */
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

bool(line_refuse)(struct line *l, int word, const char *why)
{
	struct diag_at at = l->at;
	bool named = word > 0 && word < l->words;
	at.column = word < l->words ? l->column[word] : 0;
	for (int d = 0; d < SCHED_DIRECTIVES; d++)
		if (strcmp(l->word[0], sched_spelling(d)) == 0)
			return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at, directives[d].arguments,
					"%s: %s%s%s%s", l->word[0], why, named ? ": '" : "",
					named ? l->word[word] : "", named ? "'" : "");
	char list[256] = "directives are";
	for (int d = 0; d < SCHED_DIRECTIVES; d++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s %s", d ? "," : "",
			 sched_spelling(d));
	return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at, list, "'%s' is no directive", l->word[0]);
}

/* Splits a line into words; false when it is too long or has too many. */
static bool split(struct line *l, const char *text, size_t length)
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
	for (char *save, *w = strtok_r(l->text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (l->words == LINE_MOST_WORDS)
			return line_refuse(l, 0, "too many words");
		l->column[l->words] = w - l->text + 1;
		l->word[l->words++] = w;
	}
	return true;
}

int line_number(struct line *l, int word, int low, int high)
{
	char why[80], *end = "x";
	long n = word < l->words ? strtol(l->word[word], &end, 10) : 0;
	if (*end == 0 && n >= low && n <= high)
		return n;
	snprintf(why, sizeof why, "wants a number from %d to %d", low, high);
	line_refuse(l, word, why);
	return -1;
}

bool line_is(const struct line *l, int word, const char *text)
{
	return word < l->words && strcmp(l->word[word], text) == 0;
}

int line_find(const struct line *l, int word, const char *const *table, int n)
{
	int i = 0;
	while (i < n && !line_is(l, word, table[i]))
		i++;
	return i;
}

bool line_next(struct line *l, const char **text, const char *end)
{
	const char *newline = memchr(*text, '\n', end - *text);
	size_t n = (newline ? newline : end) - *text;
	const char *from = *text;
	l->at.line++;
	*text += n + 1;
	return split(l, from, n);
}
