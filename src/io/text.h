/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A text of structures, read front to back, and places in it for diagnostics. */
#ifndef ESPALIER_IO_TEXT_H
#define ESPALIER_IO_TEXT_H

#include "base/diag.h"

#include <stdint.h>

/* A piece of a text. */
struct io_span {
	const char *text; /* NULL = there is none */
	size_t length;
};

/* A line of the text: its number (from 1) and its beginning. */
struct io_line {
	int64_t number;
	const char *begin;
	int64_t gone; /* bytes of it before `begin`, which are no more in memory */
};

/* A copy of it is a mark to return to. */
struct io_text {
	const char *file; /* for diagnostics; may be NULL */
	const char *at, *end;
	struct io_line line; /* the one that `at` is on, or one before it */
	int64_t structures;  /* that were read or refused */
	int state;	     /* of the reader; 0 at the beginning */
	bool stopped;	     /* nothing more will be read, whatever follows */
};

enum io_next { IO_TREE, IO_END, IO_FAILED };

/* `text` must outlive the reader and all that is read from it. */
struct io_text io_text_in(const char *file, const char *text, size_t length);

/* Sets `line` to the line that `at` is on; later places are found from there. */
void io_text_mark(struct io_text *);
/* Adds a diagnostic about the place `p`, which is not before the line that was noted; always IO_FAILED. */
enum io_next io_refuse(const struct io_text *, struct diags *, enum diag_id, const char *p, const char *hint,
		       const char *message);
/* Ends the reading of the text. */
void io_text_stop(struct io_text *);
/* A line number as diagnostics have it; 0 = unknown. */
int io_place(int64_t number);

/* Whether a text, of which the first bytes are given, has no byte order mark; false after a diagnostic. */
bool io_check_mark(const char *file, const char *text, size_t length, struct diags *);

static inline bool io_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline const char *io_skip_space(const char *p, const char *end)
{
	while (p < end && io_is_space(*p))
		p++;
	return p;
}

#endif
