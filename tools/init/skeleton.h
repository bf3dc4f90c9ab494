/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier init --weights: a model whose parameters are the tensors of a file. */
#ifndef ESPALIER_TOOLS_SKELETON_H
#define ESPALIER_TOOLS_SKELETON_H

#include "tool.h"

/* An extent that recurs, and what it is written as. */
struct extent {
	int64_t size;
	size_t tensors; /* that have it */
	char name[16];	/* "D", "4*D"; "" = the number */
};

struct skeleton {
	esp_context *context;
	esp_weights *weights;
	const char *path;
	enum kind { KIND_TREE, KIND_SEQUENCE, KIND_DAG } kind;
	struct extent *extent;
	size_t extents;
	char **chosen; /* names that tensors and states are given */
	size_t choices;
	FILE *to;
};

/* extents.c: names the extents of all tensors that are parameters.  False after a message. */
bool name_extents(struct skeleton *);
void print_extent(const struct skeleton *, int64_t size);
/* That of states: the size that recurs most; 0 = none does. */
int64_t choose_extent(const struct skeleton *);

/* skeleton.c: why a tensor cannot be a parameter, NULL = it can. */
enum fault { FAULT_NONE, FAULT_NAME, FAULT_TYPE, FAULT_EMPTY };
enum fault fault_of(const struct skeleton *, const esp_tensor *);
/* Whether a tensor has the name, or could be taken for that part of a child, or it was chosen. */
bool is_taken(const struct skeleton *, const char *name);
/* The name if it is not taken, or else with a number behind it; NULL = no memory. */
const char *choose_name(struct skeleton *, const char *name);

#endif
