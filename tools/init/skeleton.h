/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier init --weights: writes a model whose parameters are the tensors of a file. */
#ifndef ESPALIER_TOOLS_SKELETON_H
#define ESPALIER_TOOLS_SKELETON_H

#include "tool.h"

/* An extent of tensors, and how it is written. */
struct extent {
	int64_t size;
	size_t tensors; /* how many tensors have it */
	char name[16];	/* "D", "4*D"; "" = the number */
};

struct skeleton {
	esp_context *context;
	esp_weights *weights;
	const char *path;
	enum kind { KIND_TREE, KIND_SEQUENCE, KIND_DAG, KIND_NONE } kind;
	struct extent *extent;
	size_t extents;
	char **chosen; /* names given to tensors and states */
	size_t choices;
	FILE *to;
};

/* extents.c: names the extents of all tensors that are parameters.  False after a message. */
bool name_extents(struct skeleton *);
void print_extent(const struct skeleton *, int64_t size);
/* The extent of states: the size that recurs most; 0 = none recurs. */
int64_t choose_extent(const struct skeleton *);

/* skeleton.c: why a tensor cannot be a parameter; FAULT_NONE = it can. */
enum fault { FAULT_NONE, FAULT_NAME, FAULT_TYPE, FAULT_EMPTY };
enum fault fault_of(const struct skeleton *, const esp_tensor *);
/* Whether the name was chosen, or is a tensor's, or the end of a tensor's name after its last dot. */
bool is_taken(const struct skeleton *, const char *name);
/* The name if it is not taken, or else with a number behind it; NULL = no memory. */
const char *choose_name(struct skeleton *, const char *name);

#endif
