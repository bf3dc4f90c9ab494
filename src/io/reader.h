/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from texts in any of the formats. */
#ifndef ESPALIER_IO_READER_H
#define ESPALIER_IO_READER_H

#include "io/extent.h"
#include "io/reshape.h"
#include "io/structure.h"

/* How a text is read. */
struct io_view {
	enum io_format format; /* not IO_AUTO */
	bool sequence;	       /* JSON: an object without children is one */
	bool enhanced; /* CoNLL-U */
	bool collapse; /* brackets: removes nodes with one child */
	int binarize;  /* brackets: 0 or enum io_side */
};

/* The format by the extension of the path; IO_AUTO = unknown. */
enum io_format io_format_of_name(const char *path);
/* The format by the first bytes, as many as io_extent_end needs of IO_AUTO, or all; `otherwise` when they
 * do not show it. */
enum io_format io_format_of_text(const char *text, size_t length, enum io_format otherwise);

/* The next structure, in the arena.  One that is refused has been skipped, if its end was found. */
enum io_next io_next_structure(struct io_text *, const struct io_view *, struct arena *, struct diags *,
			       struct io_structure *);

#endif
