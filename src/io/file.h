/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whole files into memory; "-" is the standard input. */
#ifndef ESPALIER_IO_FILE_H
#define ESPALIER_IO_FILE_H

#include "base/diag.h"

#include <stdint.h>

#define IO_FILE_LIMIT ((size_t)1 << 30)

/* The bytes of a file, then a zero byte that `*length` does not count.  NULL after a diagnostic: the file
 * cannot be opened or read, is longer than IO_FILE_LIMIT, or changed its size while it was read. */
char *io_read_file(struct arena *, struct diags *, const char *path, size_t *length);
char *io_read_limited(struct arena *, struct diags *, const char *path, size_t limit, size_t *length);

/* The size of a file and the time of its last change, in nanoseconds since the epoch: they show whether it
 * changed. False when there is no such file. */
bool io_stat(const char *path, int64_t *size, int64_t *modified);
bool io_stat_open(int fd, int64_t *size, int64_t *modified);

/* Opens for reading; -1 after a diagnostic.  Not for "-". */
int io_open(struct diags *, const char *path);
/* The same, without waiting for somebody to write to a pipe; reading it fails with EAGAIN while it is empty. */
int io_open_at_once(struct diags *, const char *path);
/* The same for a file that must be regular; does not wait for the writer of a pipe. */
int io_open_regular(struct diags *, const char *path);
/* Reads exactly `n` bytes at `offset`; false after a diagnostic. */
bool io_read_at(struct diags *, const char *path, int fd, void *to, int64_t n, int64_t offset);

#endif
