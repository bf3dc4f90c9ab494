/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What lower_model.c, lower_operator.c, lower_movement.c and lower_nest.c share: a model being lowered. */
#ifndef ESPALIER_SUBOP_LOWER_OPERATOR_H
#define ESPALIER_SUBOP_LOWER_OPERATOR_H

#include "subop/subop.h"

struct lowering {
	struct sub_program *p;
	const struct ra_model *model;
	const int64_t *sizes;
	struct diags *diags;
	int traversal;	 /* the one that the current body belongs to */
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

/* --- lower_operator.c: for operators in other files --- */

typedef sub_ref lower_op(struct lowering *, const struct ra_node *);

/* The sub-operators that ra/ra_ops.def names. */
extern const enum sub_op sub_op_of_ra[];
/* Writes a variable for each extent, that which no earlier one has. */
void sub_name_extents(struct lowering *, const int64_t *extent, int n, int *vars);
/* The dimensions of a value without its leading ones (node, edge, member, input).  There is one for each
 * axis; axes of extent 1 at the front may lack one, but a value with axes has at least one dimension. */
int sub_dims_of(const struct lowering *, sub_ref);
/* The last n axes of a shape. */
struct ra_shape sub_last_axes(const struct ra_shape *, int n);
/* Whether a variable is a dimension, not a leading one (node, edge, member, input). */
bool sub_is_dim(const struct sub_program *, int var);
/* The value of the i-th argument; with a dimension for each axis. */
sub_ref sub_value_of_argument(const struct lowering *, const struct ra_node *, int i);
sub_ref sub_expand_argument(struct lowering *, const struct ra_node *, int i);
/* The value with its dimensions named `vars`, aligned at the last.  Leading dimensions keep their names. */
struct sub_use sub_use_under(const struct lowering *, sub_ref, const int *vars, int n);
/* The index var + offset, and a constant one. */
struct sub_map sub_affine_map(int var, int64_t offset);
struct sub_map sub_fixed_map(int64_t index);
/* Appends the leading dimensions of a use that the value lacks. */
void sub_add_leading_vars(const struct lowering *, struct sub_value *, const struct sub_use *);
void sub_add_dims(struct sub_value *, const int *vars, int n);
/* A copy with dimensions `vars`; dimension d of what is copied is reached by `map[d]`.  Where that is outside, the
 * copy is `fill`; NULL = it never is. */
sub_ref sub_move_filled(struct lowering *, sub_ref from, const struct sub_map *map, const int *vars, int rank,
			const double *fill);

/* The index of the current step along the axis of a scan's steps, or of one that is `shift` places further.
 */
struct sub_map sub_step_map(const struct lowering *, int64_t shift);

/* --- lower_movement.c --- */

lower_op lower_slice, lower_row, lower_transpose, lower_reshape;

/* --- lower_nest.c: index notation --- */

/* The i-th argument of a number, under the names of index notation. */
struct sub_use sub_number_use(struct lowering *, const struct ra_node *, int i);
/* Adds an operator of numbers; where these order their variables in contradictory ways, they are transposed. */
sub_ref sub_add_numbers(struct lowering *, struct sub_value);
lower_op lower_element;
/* An element one of whose indices is a value. */
lower_op lower_gather;
/* A reduction; the number is repeated along variables that it does not depend on. */
lower_op lower_over;
/* The numbers of a nest as a value with an axis for each index. */
lower_op lower_nest;

#endif
