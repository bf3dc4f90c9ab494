/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights in the safetensors format: 8 bytes of header length, a JSON header, the values.
 *
 * https://github.com/huggingface/safetensors#format.  Everything in the header is checked against the
 * file when it is opened: types, shapes, sizes, and that the tensors cover the file without overlap or gap.
 */
#ifndef ESPALIER_IO_SAFETENSORS_H
#define ESPALIER_IO_SAFETENSORS_H

#include "base/diag.h"
#include "base/tensor.h"

#define IO_SAFETENSORS_HEADER_LIMIT ((uint64_t)100000000)

struct io_quantised;
struct io_scale;

/* A pair of the metadata. */
struct io_pair {
	const char *key, *value;
};

/* Lives in the arena it was opened with, except for the descriptor.  Reading changes nothing here: several
 * threads may read at once. */
struct io_safetensors {
	const char *path; /* its name in diagnostics */
	int fd;		  /* -1 = closed, or there are bytes */
	const char *bytes; /* the file in memory, owned by the caller; NULL = read by the descriptor */
	const void *const *elements; /* of each tensor, where there is no such file: the tensors are of another format */
	int64_t data; /* where in the file the values begin */
	int64_t size, modified; /* of the file when it was opened (io_stat) */
	int n;
	const struct tensor_info *tensor; /* in the order of the file */
	const int64_t *begin;		  /* of tensor i, in bytes from `data` */
	int own; /* the first so many tensors are of a model; others belong to the format of quantised weights (quantised.h) */
	int texts;
	const struct io_pair *text;		/* the metadata */
	const struct io_quantised *quantised;	/* NULL = they are not */
	const struct io_scale *scale;		/* by tensor; NULL = none has one */
};

/* NULL after a diagnostic.  Never escapes: when memory is out that is a diagnostic too. */
struct io_safetensors *io_safetensors_open(struct arena *, struct diags *, const char *path);
/* The same of bytes in memory, which are used where they are, at any alignment, until it is closed. */
struct io_safetensors *io_safetensors_open_memory(struct arena *, struct diags *, const char *name,
						  const void *bytes, int64_t n);
/* Closes the file; the descriptions of the tensors stay.  NULL is legal. */
void io_safetensors_close(struct io_safetensors *);

/* The format's name of a type. */
const char *io_safetensors_type(enum dtype);
/* The tensor of that name, or -1. */
int io_safetensors_find(const struct io_safetensors *, const char *name);

/* Elements first .. first+count-1 of tensor i in a type that has all values of its own: dtype_widens.  False also when the file was written to meanwhile: its
 * header is then of other values. */
bool io_safetensors_read(const struct io_safetensors *, struct diags *, int i, int64_t first, int64_t count,
			 enum dtype, void *to);
bool io_safetensors_read_f32(const struct io_safetensors *, struct diags *, int i, int64_t first,
			     int64_t count, float *to);

#endif
