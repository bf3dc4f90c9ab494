/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Wraps bytes into an ELF object for a linker. */
#ifndef ESPALIER_IMAGE_OBJECT_H
#define ESPALIER_IMAGE_OBJECT_H

#include "io/write.h"

enum { OBJECT_LIMIT = 1 << 30 }; /* bytes of content: code can refer to addresses within 2 GiB */

/* A relocatable object of a machine (an e_machine of <elf.h>) around the pieces of a content: read-only data
 * NAME_program, at a multiple of 64 bytes, and NAME_size, the number of its bytes as a 64-bit word.  The
 * content's pieces stand between others, which are in the arena; returns how many there are. */
int object_pieces(struct arena *, int machine, const char *name, const struct io_piece *content, int n,
		  const struct io_piece **pieces);
/* The bytes of pieces. */
int64_t object_bytes(const struct io_piece *, int n);

#endif
