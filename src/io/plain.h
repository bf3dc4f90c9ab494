/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sequences in plain text: a sentence a line, its words apart by spaces or tabs.
 *
 *     the cat sleeps
 *
 * A word is a node, with the word before it as its child; the last is the root.  Empty lines are skipped. */
#ifndef ESPALIER_IO_PLAIN_H
#define ESPALIER_IO_PLAIN_H

#include "io/structure.h"

/* The next sentence; a text without any is `empty-input`.  A line that is refused is skipped. */
enum io_next io_plain_next(struct io_text *, struct arena *, struct diags *, struct io_structure *);

#endif
