/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A structure of linked nodes as arrays.  A node is an opaque pointer.
 *
 * Numbers are those of a post order: children before parents as long as there is no cycle, the root last.  A
 * node that is reached twice has one number.  Time is linear, nesting never touches the C stack, and memory
 * is kept from call to call. */
#ifndef ESPALIER_LINEARIZE_WALK_H
#define ESPALIER_LINEARIZE_WALK_H

#include "base/diag.h"
#include "linearize/linearize.h"

/* Access to nodes: `children` is called once for each node, `child` once for each of its slots. */
struct lin_links {
	void *user;
	size_t (*children)(void *user, const void *node);
	const void *(*child)(void *user, const void *node, size_t slot);
};

struct lin_walk {
	const struct allocator *allocator;
	int32_t nodes, edges;
	const int32_t *child_begin; /* nodes + 1 */
	const int32_t *children;
	/* its own */
	struct lin_seen *seen;
	size_t seen_capacity;
	struct lin_array edge, stack, order, table, begin, list;
	size_t slots; /* of the table that are in use, a power of two; 0 = none */
};

void lin_walk_init(struct lin_walk *, const struct allocator *);
void lin_walk_free(struct lin_walk *);

/* Walks the nodes that the root reaches; diagnostics name it by `input`.  False after one, and the walk is
 * empty: a child is NULL, there are more nodes or edges than can be numbered, or there is no memory. */
bool lin_walk(struct lin_walk *, const void *root, const struct lin_links *, int64_t input, struct diags *);
/* The node of a number. */
const void *lin_walk_node(const struct lin_walk *, int32_t number);

#endif
