/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows of results, as rows.c and dlpack.c see them. */
#ifndef ESPALIER_NATIVE_ROWS_H
#define ESPALIER_NATIVE_ROWS_H

#include "native.h"

struct py_rows {
	PyObject_HEAD PyObject *owner; /* whose memory it is */
	char *copy;		       /* NULL = it is viewed */
	const char *at;
	esp_dtype dtype;
	int rank;
	Py_ssize_t *shape, *strides; /* one block; strides in bytes */
};

#endif
