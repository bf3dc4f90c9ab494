/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models that bodies of requests are read for, and what reading a body promises. */
#ifndef ESPALIER_TESTS_FUZZ_SERVED_H
#define ESPALIER_TESTS_FUZZ_SERVED_H

#include "serve/infer.h"
#include "tests/fuzz/fuzz.h"

/* A model with its weights, interpreted, and words a, b, c, d. */
struct served {
	struct infer_model model;
	esp_treebank_options reading;
	esp_service *service;
};

/* A model of nodes that carry a token `word`, and have the states of their children added; and one of all
 * types. */
enum { SERVED_TREE, SERVED_SEQUENCE, SERVED_TYPES, SERVED_MODELS };
/* Made by the first call, and never freed. */
const struct served *served_model(int which);

/* How many blocks of memory the library has. */
long served_blocks(void);
/* From now on the n-th request of the library for memory fails; below 0 = none does. */
void served_fail(long n);

/* What becomes of a body: it is refused with a reason; or it is computed, unless the model refuses its
 * structures, and the response has `lines` values of JSON (0 = as many as structures).  Takes the request. */
void served_check(const struct fuzz *, const struct served *, struct infer_request *,
		  const struct infer_failure *, int lines);

#endif
