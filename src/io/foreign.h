/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Recognises weights in formats that are not supported, by their first bytes. */
#ifndef ESPALIER_IO_FOREIGN_H
#define ESPALIER_IO_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum { IO_FOREIGN_BYTES = 128 }; /* of the file's beginning, enough to recognise the format */

struct io_foreign {
	const char *what; /* "a checkpoint of PyTorch" */
	/* How to convert it.  A shell command, when `command`: the names of the file and of the new one follow. */
	const char *hint;
	bool command;
};

/* The format of a file that begins with these bytes; NULL = unknown. */
const struct io_foreign *io_foreign_find(const unsigned char *bytes, size_t n);

#endif
