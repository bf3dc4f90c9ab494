/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checksums of 128 bits: names of contents, and proof that bytes are those that were written.  Not for
 * secrets. */
#ifndef ESPALIER_BASE_CHECKSUM_H
#define ESPALIER_BASE_CHECKSUM_H

#include <stddef.h>

struct checksum {
	unsigned char bytes[16];
};

/* XXH3, in its canonical order of bytes. */
struct checksum checksum_of(const void *bytes, size_t n);

#endif
