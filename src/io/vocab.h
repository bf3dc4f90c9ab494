/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary: one word a line, the number of the line (from 0) is the word's id. */
#ifndef ESPALIER_IO_VOCAB_H
#define ESPALIER_IO_VOCAB_H

#include "base/diag.h"

#include <stdint.h>

enum { IO_VOCAB_WORD = 1000 }; /* bytes of a word at most */

/* Lives in the arena; never changes, so that threads may share it. */
struct io_vocab {
	const char *text; /* the file, that is, the words */
	uint32_t *begin;  /* where each word begins, and where one more would */
	uint32_t *slot;	  /* by hash */
	size_t mask;	  /* slots less one: they are a power of two */
	int bits;	  /* of a slot that are an id */
	int n;
	int unknown; /* the id of "<unk>", or -1 */
};

/* NULL after a diagnostic.  Lines may end in CR LF; a byte order mark is refused. */
struct io_vocab *io_vocab_open(struct arena *, struct diags *, const char *path);

/* The id of a word as it is written; else after A-Z in it became a-z (other bytes, UTF-8 among them, stay);
 * else -1. */
int io_vocab_get(const struct io_vocab *, const char *word, size_t length);
/* The same, but for a word that is not there the id of "<unk>", if that is. */
int io_vocab_find(const struct io_vocab *, const char *word, size_t length);

#endif
