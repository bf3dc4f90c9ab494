/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A file that holds one array: of NumPy (.npy), or a protocol tensor of ONNX (.pb, a TensorProto). */
#ifndef ESPALIER_TOOLS_ARRAY_FILE_H
#define ESPALIER_TOOLS_ARRAY_FILE_H

#include "espalier.h"
#include "reference/reference.h"

struct array_file {
	const char *path; /* the caller's */
	esp_dtype dtype;
	size_t rank;
	const size_t *shape;
	const void *elements; /* row-major; NULL = not loaded yet */
	/* One of these. */
	esp_weights *tensor;
	struct reference npy;
};

/* Reads type and shape.  False after a message; to be closed in any case. */
bool array_file_open(struct array_file *, esp_context *, const char *path);
/* Reads the elements.  False after a message. */
bool array_file_load(struct array_file *);
/* What gives an array of the type, as a hint. */
const char *array_file_hint(const struct array_file *, esp_dtype);
void array_file_close(struct array_file *);

#endif
