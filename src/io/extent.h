/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a structure by the delimiters of its format alone, in a text that is still arriving.
 *
 * An extent begins where the last structure ended, and is given the text piece by piece.  It may end too
 * early where the text is no structure, but not before the reader of the format can see that. */
#ifndef ESPALIER_IO_EXTENT_H
#define ESPALIER_IO_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* AUTO is no format: its extent is the first bytes, as many as show the format. */
enum io_format { IO_BRACKETS, IO_CONLLU, IO_JSON, IO_PLAIN, IO_AUTO };

/* Zero, but for the format, before the first piece. */
struct io_extent {
	enum io_format format;
	int64_t open;	      /* brackets without their end */
	bool string, escaped; /* JSON: inside of a string, behind a backslash */
	bool line, text;      /* the line has a byte, one that is no space */
	bool comment, words;  /* CoNLL-U: the line is a comment; a line that is none came before */
};

/* The place behind the last byte of the structure; NULL = the structure goes on after the piece. */
const char *io_extent_end(struct io_extent *, const char *piece, const char *end);

#endif
