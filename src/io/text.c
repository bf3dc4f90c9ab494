/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/text.h"

#include <limits.h>
#include <string.h>

enum { SHOWN_LINE = 4000 }; /* longer lines are not copied into diagnostics */

struct io_text io_text_in(const char *file, const char *text, size_t length)
{
	return (struct io_text){.file = file, .at = text, .end = text + length, .line = {1, text}};
}

/* The line that `p` is on, found from one that is not after it. */
static struct io_line line_of(struct io_line from, const char *p)
{
	const char *newline;
	while ((newline = memchr(from.begin, '\n', p - from.begin)))
		from = (struct io_line){from.number + 1, newline + 1};
	return from;
}

void io_text_mark(struct io_text *t)
{
	t->line = line_of(t->line, t->at);
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
	if (length <= SHOWN_LINE) {
		memcpy(source, line.begin, length);
		source[length] = 0;
	}
	diag_add(diags, id,
		 (struct diag_at){.file = t->file,
				  .line = io_place(line.number),
				  .column = io_place(p - line.begin + 1),
				  .source = length <= SHOWN_LINE ? source : NULL},
		 hint, "%s", message);
	return IO_FAILED;
}
