/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What readers of structures promise, whatever the format. */
#ifndef ESPALIER_TESTS_FUZZ_STRUCTURES_H
#define ESPALIER_TESTS_FUZZ_STRUCTURES_H

#include "io/reader.h"
#include "tests/fuzz/fuzz.h"

/* Reads all structures of a text and checks that each holds together; that what is refused is passed, one at
 * a time; and that an end is the end.  `each` may be NULL. */
bool fuzz_structures(struct fuzz *, const struct io_view *, const uint8_t *bytes, size_t n,
		     void (*each)(struct fuzz *, const struct io_text *, const struct io_structure *));

/* A vocabulary of a few words, with <unk>. */
const struct io_vocab *fuzz_vocab(struct fuzz *);

#endif
