/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What lower_model.c and lower_operator.c share: a model being lowered. */
#ifndef ESPALIER_SUBOP_LOWER_OPERATOR_H
#define ESPALIER_SUBOP_LOWER_OPERATOR_H

#include "subop/subop.h"

struct lowering {
	struct sub_program *p;
	const struct ra_model *model;
	const int64_t *sizes;
	struct diags *diags;
	int row;	 /* the variable that the body runs over: p->node or p->input */
	sub_ref *values; /* by node of the model graph, in the current body */
	const int *index; /* the variables of index notation, by those of the model graph */
};

/* Writes the canonical variables of a shape, and returns its rank: each dimension has the variable of its
 * extent that no earlier one has. */
int sub_lower_shape(struct lowering *, const struct ra_shape *, int *vars);
/* The variables of index notation: distinct in each nest. */
const int *sub_lower_indices(struct lowering *);
/* Adds the values of a node whose arguments are in `values`.  None after diagnostics. */
sub_ref sub_lower_node(struct lowering *, const struct ra_node *);
/* A value with all dimensions of a shape, in each row of the body, as a store reads it. */
struct sub_use sub_lower_result(struct lowering *, sub_ref, const struct ra_shape *);

#endif
