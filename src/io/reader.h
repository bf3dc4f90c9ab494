/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from texts in any of the formats. */
#ifndef ESPALIER_IO_READER_H
#define ESPALIER_IO_READER_H

#include "io/reshape.h"
#include "io/structure.h"

enum io_format { IO_BRACKETS, IO_CONLLU, IO_JSON };

/* What is made of the text. */
struct io_view {
	enum io_format format;
	bool enhanced; /* CoNLL-U */
	bool collapse; /* brackets: nodes with one child go */
	int binarize;  /* brackets: 0 or enum io_side */
};

/* The format by the end of the path, or else by the first bytes; what it cannot tell is brackets. */
enum io_format io_format_of(const char *path, const char *text, size_t length);

/* The next structure, in the arena.  What is refused has been passed, as far as its end can be told. */
enum io_next io_next_structure(struct io_text *, const struct io_view *, struct arena *, struct diags *,
			       struct io_structure *);

#endif
