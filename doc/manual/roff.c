/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "manual.h"

#include "espalier.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- text --- */

/* Escapes for signs that roff would replace by similar ones, which would spoil examples for pasting. */
static const char *escape_of(char c)
{
	switch (c) {
	case '\\':
		return "\\e";
	case '-':
		return "\\-";
	case '\'':
		return "\\(aq";
	case '`':
		return "\\(ga";
	case '^':
		return "\\(ha";
	case '~':
		return "\\(ti";
	case '"':
		return "\\(dq";
	default:
		return NULL;
	}
}

void roff_bytes(FILE *to, const char *text, size_t n)
{
	for (const char *p = text; p < text + n; p++) {
		const char *escape = escape_of(*p);
		if (escape)
			fputs(escape, to);
		else
			fputc(*p, to);
	}
}

void roff_text(FILE *to, const char *text)
{
	roff_bytes(to, text, strlen(text));
}

void roff_begin(FILE *to, const char *name, int section, const char *summary)
{
	fputs(".TH ", to);
	for (const char *p = name; *p; p++)
		fputc(toupper((unsigned char)*p), to);
	fprintf(to, " %d \"\" \"espalier " ESP_VERSION "\" \"Espalier\"\n.SH NAME\n", section);
	roff_text(to, name);
	fputs(" \\- ", to);
	roff_text(to, summary);
	fputc('\n', to);
}

/* --- Markdown --- */

/* The kind of the last line, which decides the request before the next one. */
enum last { NOTHING, PARAGRAPH };

/* Writes a line of text, so that roff does not take it for a request. */
static void put_inline(FILE *to, const char *text, size_t n)
{
	bool strong = false;
	if (n && (text[0] == '.' || text[0] == '\''))
		fputs("\\&", to);
	for (const char *p = text, *end = text + n; p < end;) {
		bool stars = p + 1 < end && p[0] == '*' && p[1] == '*';
		if (*p == '`' || stars) {
			strong = !strong;
			fputs(strong ? "\\fB" : "\\fR", to);
			p += stars ? 2 : 1;
		} else {
			roff_bytes(to, p++, 1);
		}
	}
	fputc('\n', to);
}

static const char *trim_blanks(const char *text, const char *end, size_t *n)
{
	while (text < end && *text == ' ')
		text++;
	while (end > text && end[-1] == ' ')
		end--;
	*n = end - text;
	return text;
}

/* | term | meaning |: a paragraph with the term as its tag. */
static void put_row(FILE *to, const char *line)
{
	size_t n;
	const char *middle = strchr(line + 1, '|'), *end = middle ? strchr(middle + 1, '|') : NULL;
	if (!end)
		return;
	const char *cell = trim_blanks(line + 1, middle, &n);
	fputs(".TP\n", to);
	put_inline(to, cell, n);
	cell = trim_blanks(middle + 1, end, &n);
	put_inline(to, cell, n);
}

static enum last put_fenced(FILE *to, FILE *from, char **line, size_t *size)
{
	ssize_t n;
	fputs(".PP\n.in +4n\n.EX\n", to);
	while ((n = getline(line, size, from)) > 0 && strncmp(*line, "```", 3) != 0) {
		if ((*line)[0] == '.')
			fputs("\\&", to);
		roff_text(to, *line);
	}
	fputs(".EE\n.in\n", to);
	return NOTHING;
}

/* Writes a table without its first two rows, the head and a rule. */
static enum last put_table(FILE *to, FILE *from, char **line, size_t *size)
{
	ssize_t n;
	for (int row = 0; (n = getline(line, size, from)) > 0 && (*line)[0] == '|'; row++)
		if (row > 0)
			put_row(to, *line);
	return NOTHING;
}

static enum last put_paragraph(FILE *to, const char *line, size_t n, enum last last)
{
	if (last != PARAGRAPH)
		fputs(".PP\n", to);
	put_inline(to, line, n);
	return PARAGRAPH;
}

static enum last put_heading(FILE *to, const char *line)
{
	const char *title = line + strspn(line, "# ");
	if (line[1] == '#') {
		fputs(".SH ", to);
		for (const char *p = title; *p; p++)
			fputc(toupper((unsigned char)*p), to);
		fputc('\n', to);
	}
	return NOTHING;
}

bool roff_markdown(FILE *to, const char *path)
{
	FILE *from = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	enum last last = NOTHING;
	if (!from)
		return false;
	fputs(".SH DESCRIPTION\n", to);
	while ((n = getline(&line, &size, from)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = 0;
		if (!n)
			last = NOTHING;
		else if (line[0] == '#')
			last = put_heading(to, line);
		else if (strncmp(line, "```", 3) == 0)
			last = put_fenced(to, from, &line, &size);
		else if (line[0] == '|')
			last = put_table(to, from, &line, &size);
		else
			last = put_paragraph(to, line, n, last);
	}
	bool ok = !ferror(from);
	free(line);
	fclose(from);
	return ok;
}
