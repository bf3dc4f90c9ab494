/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The accesses of groups to memory, and the orders of dimensions that follow from them; for this folder only:
 * accesses.c lists them, order.c chooses orders, arrange.c copies in another order what hinders vectors. */
#ifndef ESPALIER_SCHED_ORDER_H
#define ESPALIER_SCHED_ORDER_H

#include "sched/plan.h"

enum {
	ORDER_ROW = -2,
	ORDER_NONE = -1 /* an index that is read from an index array; one that is independent of the group's
			   dimensions */
};

enum order_kind { ORDER_STATE, ORDER_TABLE, ORDER_INTERMEDIATE };

/* A tensor in memory whose order can be chosen.  A table is a parameter whose rows are looked up. */
struct order_tensor {
	enum order_kind kind;
	int which;	      /* the state, the parameter, or the body of the intermediate */
	sub_ref value;	      /* the intermediate */
	int rank;	      /* of a row */
	int last;	      /* the dimension that is the last in memory */
	bool settled, packed; /* packed: a table that is also packed as a whole */
	double volume;	      /* of accesses, in the largest group that touches it */
	VEC(int) groups;      /* those that touch it, rising */
};

struct order_access {
	int tensor; /* -1 = a parameter, an input or an output */
	int rank, moves[SUB_MAX_VARS];
	bool packed; /* vectors may run along any of its dimensions */
	double volume;
	/* the ASSIGN that it is read through, and how the group moves along the dimensions of that; 0 = none
	 */
	sub_ref through;
	sub_ref word; /* the words that are read in place by it, along a dimension of the tensor; 0 = none */
	int word_dim;
	int outer_rank, outer[SUB_MAX_VARS];
};

struct order_group {
	int dims;
	double volume;
	VEC(struct order_access) all;
};

struct order {
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	int lanes;
	VEC(struct order_tensor) tensors;
	struct map
	    *numbers; /* of the first `numbered` tensors, by what they are; a copy of the whole adds none */
	size_t numbered;
	bool copy;
	struct order_group *groups;
};

/* The tensor of an access; NULL = a parameter, an input or an output. */
static inline struct order_tensor *order_tensor_of(const struct order *o, const struct order_access *a)
{
	return a->tensor >= 0 && (size_t)a->tensor < o->tensors.n ? &o->tensors.at[a->tensor] : NULL;
}

/* Lists the accesses of all groups of a plan.  Orders are not chosen yet. */
void order_list_accesses(struct order *, const struct sched_plan *, struct arena *, int lanes);
/* The number of a tensor, which is added if it is new. */
int order_find_tensor(struct order *, enum order_kind, int which, sub_ref value, int rank);
/* Notes that a group touches a tensor. */
void order_touch(struct order *, int tensor, int group);

/* An index that moves with one dimension of the group: that dimension, and by how many elements at a time. Of
 * one that moves otherwise, ORDER_NONE, ORDER_ROW or another number that is no dimension; and the mask of
 * dimensions that it moves with. */
int order_dim_of(int moves);
int order_step_of(int moves);
unsigned order_dims_of(int moves);

/* A copy whose tensors can be settled apart from those of the original. */
struct order order_copy(const struct order *);
/* Chooses the order of all tensors that have none, greedily. */
void order_settle(struct order *);
/* Whether an access allows vectors along a dimension of its group. */
bool order_suits(const struct order *, const struct order_group *, size_t access, int dim);
/* The dimension of a group that the fewest vectors run along, the last of several; -1 = none. */
int order_vector_dim(const struct order *, int group);
/* The accesses of a group, as vectors where these can be. */
double order_count_accesses(const struct order *, int group);
double order_count_all(const struct order *);

#endif
