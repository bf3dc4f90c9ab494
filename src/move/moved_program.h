/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by hoisting and refactoring: copies of programs, and the work that moving a value saves. */
#ifndef ESPALIER_MOVE_MOVED_PROGRAM_H
#define ESPALIER_MOVE_MOVED_PROGRAM_H

#include "move/move.h"

/* Multiply-adds that cost as much as storing an element and reading it back. */
enum { MOVE_LEAST_WORK = 16 };

/* Copies declarations and values, which keep their numbers, but no bodies. */
void move_copy_program(struct sub_program *to, const struct sub_program *from);
/* The bodies of a domain in a traversal, one for each case that has its own. */
struct move_bodies {
	VEC(const struct sub_body *) all;
};
struct move_bodies move_find_bodies(const struct sub_program *, int traversal, enum sub_domain);
/* Transforms a program traversal by traversal; `move` fills an empty program from the previous one. */
void move_each_traversal(struct sub_program *to, const struct sub_program *from,
			 void (*move)(struct sub_program *to, const struct sub_program *from, int traversal,
				      void *),
			 void *context);
/* Copies a program unchanged. */
void move_keep_program(struct sub_program *to, const struct sub_program *from);
/* The name of the next hoisted value: "hoist0". */
const char *move_hoist_name(const struct sub_program *);
/* Gathering, the end of hoisting: computes what inputs need of each of their nodes, and of weights, for all nodes
 * (gather.c). */
void move_gather(struct sub_program *to, const struct sub_program *from, enum move_extent, struct rewrite_trace *);
/* By value: the multiplications by weights in it and in its operands, per row. */
const double *move_count_products(struct arena *, const struct sub_program *);
/* Declares a derived state with the dimensions of a value of nodes; returns its number. */
int move_declare_derived(struct sub_program *, sub_ref like, int traversal);
/* Bytes of a row of a value in memory. */
double move_row_bytes(const struct sub_program *, sub_ref);

#endif
