/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the passes over reads within extents share: the ranges of loop variables, where a read stands to its extent. */
#ifndef ESPALIER_ILIR_BORDERS_H
#define ESPALIER_ILIR_BORDERS_H

#include "ilir/passes.h"

/* Ranges of variables, open where nothing is known. */
struct border_ranges {
	const struct ilir_module *m;
	VEC(struct ilir_range) of_var;
};

struct ilir_range border_range(const struct border_ranges *, ilir_expr);
void border_set_range(struct border_ranges *, ilir_var, struct ilir_range);
/* Sets the range of a loop's variable; false unless the loop has constant bounds and an iteration. */
bool border_enter_loop(struct border_ranges *, const struct ilir_stmt *loop);

/* Whether an index of the load of a WITHIN must be compared: indices of rows always lie in their dimension. */
bool border_is_guarded(const struct ilir_module *, ilir_expr load, int dim);

/* Where an index stands to the extent of its dimension. */
enum border_side { BORDER_INSIDE, BORDER_OUTSIDE, BORDER_OPEN };
enum border_side border_side_of(const struct border_ranges *, ilir_expr load, int dim);

#endif
