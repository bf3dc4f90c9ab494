/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/text.h"

#include <limits.h>
#include <string.h>

enum { SHOWN_LINE = 4000 }; /* longer lines are not copied into diagnostics */

struct io_text io_text_in(const char *file, const char *text, size_t length)
{
	return (struct io_text){.file = file, .at = text, .end = text + length, .line = {1, text, 0}};
}

/* The line that `p` is on, found from one that is not after it. */
static struct io_line line_of(struct io_line from, const char *p)
{
	const char *newline;
	while ((newline = memchr(from.begin, '\n', p - from.begin)))
		from = (struct io_line){from.number + 1, newline + 1, 0};
	return from;
}

void io_text_mark(struct io_text *t)
{
	t->line = line_of(t->line, t->at);
	/* A line that is too long to be shown is scanned only once. */
	if (t->at - t->line.begin > SHOWN_LINE) {
		t->line.gone += t->at - t->line.begin;
		t->line.begin = t->at;
	}
}

void io_text_stop(struct io_text *t)
{
	t->at = t->end;
	t->stopped = true;
}

int io_place(int64_t n)
{
	return n > INT_MAX ? 0 : (int)n;
}

enum io_next io_refuse(const struct io_text *t, struct diags *diags, enum diag_id id, const char *p,
		       const char *hint, const char *message)
{
	struct io_line line = line_of(t->line, p);
	const char *newline = memchr(p, '\n', t->end - p);
	size_t length = (newline ? newline : t->end) - line.begin;
	char source[SHOWN_LINE + 1];
	bool shown = !line.gone && length <= SHOWN_LINE;
	if (shown) {
		memcpy(source, line.begin, length);
		source[length] = 0;
	}
	diag_add(diags, id,
		 (struct diag_at){.file = t->file,
				  .line = io_place(line.number),
				  .column = io_place(line.gone + (p - line.begin) + 1),
				  .source = shown ? source : NULL},
		 hint, "%s", message);
	return IO_FAILED;
}

/* --- byte order marks --- */

static const struct {
	const char *bytes, *encoding;
} marks[] = {{"\xef\xbb\xbf", "UTF-8"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"}};

bool io_check_mark(const char *file, const char *text, size_t length, struct diags *diags)
{
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t n = strlen(marks[i].bytes);
		if (length >= n && memcmp(text, marks[i].bytes, n) == 0)
			return diag_add(diags, DIAG_BYTE_ORDER_MARK,
					(struct diag_at){.file = file, .line = 1, .column = 1},
					"save it as UTF-8 without a byte order mark",
					"the text begins with a byte order mark of %s", marks[i].encoding);
	}
	return true;
}
