/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Building expressions: each function adds a value to a program, and returns its use under names of which
 * each argument has some.  A use without a value, which any of them takes and hands on, says that arguments
 * order their variables in contradictory ways or have too many. */
#ifndef ESPALIER_REWRITE_EXPRESSIONS_H
#define ESPALIER_REWRITE_EXPRESSIONS_H

#include "subop/subop.h"

/* The use of a value, whose arguments are there, when it was added. */
struct sub_use rewrite_use_value(struct sub_program *, struct sub_value);
/* An operator of one, two or three arguments, as it takes; the others are not looked at. */
struct sub_use rewrite_add_operator(struct sub_program *, enum sub_op, struct sub_use, struct sub_use,
				    struct sub_use);
/* One number of a type. */
struct sub_use rewrite_add_constant(struct sub_program *, enum dtype, double);
struct sub_use rewrite_add_cast(struct sub_program *, enum dtype, struct sub_use);
/* A reduction over variables of the argument. */
struct sub_use rewrite_add_reduction(struct sub_program *, enum sub_op, struct sub_use,
				     const struct sub_vars *reduced);
/* The same elements with variables in the order of those of `like`; none if they are not the same variables.
 */
sub_ref rewrite_reorder(struct sub_program *, struct sub_use, const struct sub_value *like);

#endif
