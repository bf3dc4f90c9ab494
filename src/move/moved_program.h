/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What hoisting and refactoring share: programs that are made over, and what moving is worth. */
#ifndef ESPALIER_MOVE_MOVED_PROGRAM_H
#define ESPALIER_MOVE_MOVED_PROGRAM_H

#include "move/move.h"

/* An element that is stored and read again costs what so many multiply-adds do. */
enum { MOVE_LEAST_WORK = 16 };

/* Declarations and values, which keep their numbers; no bodies. */
void move_copy_program(struct sub_program *to, const struct sub_program *from);
/* The bodies of a domain in a traversal, one for each of the cases that have their own. */
struct move_bodies {
	VEC(const struct sub_body *) all;
};
struct move_bodies move_find_bodies(const struct sub_program *, int traversal, enum sub_domain);
/* Makes a program of another for one traversal after the other; `move` fills an empty one. */
void move_each_traversal(struct sub_program *to, const struct sub_program *from,
			 void (*move)(struct sub_program *to, const struct sub_program *from, int traversal,
				      void *),
			 void *context);
/* A program as it was. */
void move_keep_program(struct sub_program *to, const struct sub_program *from);
/* By value: multiplications by weights in what it is computed from. */
const double *move_count_products(struct arena *, const struct sub_program *);

#endif
