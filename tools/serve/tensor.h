/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a request. */
#ifndef ESPALIER_TOOLS_SERVE_TENSOR_H
#define ESPALIER_TOOLS_SERVE_TENSOR_H

#include "request.h"

enum { AXES = 8, SHOWN = 60 /* bytes of a name in failures */ };

/* A tensor as its object says; texts lie in the body. */
struct tensor {
	struct span name, datatype; /* datatype: "" = there is no such tensor */
	int64_t shape[AXES];
	int rank;
	const char *data, *end; /* of the list, not looked into yet */
};

/* Reads an object of "inputs". */
bool tensor_scan(struct scan *, struct tensor *, struct infer_failure *);
/* In place of a number of rows: any number; no axis of rows. */
enum { ANY_ROWS = -1, NO_ROWS = -2 };
/* Whether it has the shape [rows, shape...]; false after a failure. */
bool tensor_check_shape(const struct tensor *, int64_t rows, const size_t *shape, size_t rank,
			struct infer_failure *);
/* Whether it has the type, false after a failure.  Indices may be INT32 or INT64. */
bool tensor_check_type(const struct tensor *, esp_dtype, bool index, struct infer_failure *);
/* Its elements, for free(); NULL after a failure. */
void *tensor_read(const struct tensor *, esp_dtype, struct infer_failure *);
/* Calls `take` for each element of a tensor of strings. */
bool tensor_read_strings(const struct tensor *, bool (*take)(void *user, size_t i, struct span), void *user,
			 struct infer_failure *);

/* gather.c: makes structures of the tensors and adds them to the forest.  `tensor` has those of the program's
 * inputs, then the structure tensors. */
bool gather_structures(struct texts *, const struct tensor *tensor);

/* For printf's %.*s: a name as it stands in the body, cut. */
#define SHOW(span) (int)((span).n < SHOWN ? (span).n : SHOWN), (span).text

#endif
