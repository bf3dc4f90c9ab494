/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tensors to files: safetensors, and NumPy's .npy.  A regular file appears when it is complete and on the
 * disk, with the mode that the one it replaces had; devices and pipes are written in place. */
#ifndef ESPALIER_IO_WRITE_H
#define ESPALIER_IO_WRITE_H

#include "base/diag.h"
#include "base/tensor.h"
#include "io/safetensors.h"

/* Row-major values; one axis more than tensors of weights have, for the rows. */
struct io_tensor {
	const char *name;
	enum dtype dtype;
	int rank;
	int64_t shape[TENSOR_MAX_RANK + 1];
	const void *values;
};

int64_t io_tensor_bytes(const struct io_tensor *);

/* The tensors in this order; those of 8-byte elements must stand first for their alignment.  False after
 * `cannot-write`.  The arena holds headers and paths; it may escape, with nothing written. */
bool io_safetensors_write(struct arena *, struct diags *, const char *path, const struct io_tensor *, int n);
/* The same with metadata, `texts` pairs. */
bool io_safetensors_write_with(struct arena *, struct diags *, const char *path, const struct io_pair *, int texts,
			       const struct io_tensor *, int n);
bool io_npy_write(struct arena *, struct diags *, const char *path, const struct io_tensor *);

/* --- read.c's counterpart, for the two above and store.c --- */

struct io_piece {
	const void *bytes;
	int64_t n;
};

/* Writes the pieces one after the other. */
bool io_write_file(struct arena *, struct diags *, const char *path, const struct io_piece *, int n);

/* Writes all the bytes; false with errno.  A closed pipe and a file at the limit of its
 * length are plain errors, EPIPE and EFBIG, whatever the host does about their signals. */
bool io_write_bytes(int fd, const void *, size_t n);

#endif
