/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the lowering share: lower_group.c for groups, lower_program.c for the program around
 * them, and parts of either. */
#ifndef ESPALIER_ILIR_LOWER_H
#define ESPALIER_ILIR_LOWER_H

#include "base/map.h"
#include "ilir/passes.h"

/* A reduction's loop while its body is still growing. */
struct lower_loop {
	ilir_var var;
	ilir_expr begin, end;
	int dim;
	int64_t extent; /* -1: over the edges of a node */
	ilir_expr first; /* edge of a node that has a known number of them, from which the loop counts; else none */
	int place;      /* in the scope around */
	int slots;      /* it runs once for each of so many children; 0 = once */
	ilir_var slot;
	ilir_expr shared; /* the operand that all products in it have in common */
	struct ilir_stmt *prologue;
	struct scope *body;
};

struct scope_item {
	struct ilir_stmt *stmt;
	struct lower_loop *loop; /* instead of stmt */
};

/* A block while it is still growing. */
struct scope {
	struct scope *outer;
	int depth;
	bool reduction; /* the body of a loop over a dimension: expressions stay whole */
	VEC(struct scope_item) items;
	struct map memo; /* value and indices -> expression */
};

struct definition {
	int depth, place;
};

/* An intermediate of a body. */
struct stored {
	int body;
	sub_ref value;
	ilir_buffer buffer;
};

/* Weights that are read as one, a slot each. */
struct stack {
	const int *param;
	int n;
	ilir_buffer buffer;
};

_Static_assert((int)SUB_MAX_VARS <= (int)ILIR_MAX_RANK, "a stored value is a buffer");

struct lowering {
	struct ilir_module *m;
	struct ilir_tiling *tiling;
	const struct sub_program *p;
	const struct sched_plan *plan;
	const struct sched *sched;
	/* buffers */
	ilir_buffer *param, *state, *output, *input, *child;
	const char **child_name;
	ilir_buffer member_begin, member_list, child_begin, child_list, root, place, batch_begin, case_of, origin;
	ilir_buffer parent, parent_begin, parent_list;
	int traversal; /* the one at hand */
	VEC(struct stored) storage;
	VEC(struct stack) stacks;
	VEC(const struct sched_order *) orders; /* by buffer: of the last of its dimensions; NULL = as the program has them */
	/* the group at hand */
	int body;
	const struct sched_group *group;
	const struct sched_tile *tile;
	ilir_expr row, edge, space[SUB_MAX_VARS];
	ilir_var column; /* of the group's last dimension */
	struct scope *scope;
	int floor; /* nothing is placed outside of the scope of this depth: it stands under a condition */
	struct map places; /* variables and registers -> defined */
	VEC(struct definition) defined;
};

/* The nest of a group; without `row_loop` for the row that l->row names. */
struct ilir_stmt *lower_group(struct lowering *, int group, bool row_loop);
/* What a store of a body writes to. */
ilir_buffer lower_target(const struct lowering *, const struct sub_store *);
/* Where a stored value is kept: what the body stores it to, or an intermediate. */
ilir_buffer lower_storage(struct lowering *, int body, sub_ref);

/* --- the rows of states (lower_state.c) --- */

/* A row that an index array names; read once for each row it belongs to. */
ilir_expr lower_row_of(struct lowering *, ilir_buffer array, const char *name, ilir_expr at);
/* An index under a name, computed once for each row it belongs to. */
ilir_expr lower_named(struct lowering *, const char *name, ilir_expr);
/* The dimension that a state's rows are along. */
const char *lower_state_rows(const struct lowering *, int state);
/* Where a state has the row of a node. */
ilir_expr lower_state_row(struct lowering *, int state, ilir_expr node);
/* Where it has the row of the node that a map leads to; none: where the node is must be asked first. */
ilir_expr lower_mapped_row(struct lowering *, int state, const struct sub_map *, ilir_expr at);
/* The state or output that a body stores a value to; NULL = none. */
const struct sub_store *lower_result(const struct lowering *, int body, sub_ref);

/* --- products with one child after the other (lower_slots.c) --- */

/* Whether `first` is a sum of products of a weight and a child's state that is laid out by parent, and `other` the same
 * with another weight and the child so many slots further on. */
bool lower_next_slot(const struct lowering *, sub_ref first, sub_ref other, int distance);
/* Of how many such children, joined, a value is a sum of products; 0 = it is none. */
int lower_joined_slots(const struct lowering *, sub_ref);
/* The weight of n such sums at the slot that an index names, at an element of what they reduce; `index` is theirs. */
ilir_expr lower_stacked_weight(struct lowering *, const sub_ref *sums, int n, const ilir_expr *index, ilir_expr element,
			       ilir_expr slot);
/* Element k of the child in that slot, counted from the first one of the sum; puts which operand it is. */
ilir_expr lower_child_in_slot(struct lowering *, sub_ref sum, int *child_at, const ilir_expr *index, ilir_expr slot, ilir_expr k);

/* --- values (lower_group.c) --- */

/* A value at an index, from where it is stored, or computed in the blocks that are growing. */
ilir_expr lower_value_at(struct lowering *, sub_ref, const ilir_expr *index);

/* --- types (lower_type.c) --- */

/* What was loaded, in the type that is computed with. */
ilir_expr lower_widened(struct lowering *, ilir_expr);
/* A value as an element of this type in memory, to which it is widened again: the nearest that there is. */
ilir_expr lower_narrowed(struct lowering *, ilir_expr, enum dtype);
/* A number of the program; one that a type lacks is its nearest. */
ilir_expr lower_number(struct lowering *, enum dtype, double);
ilir_expr lower_cast(struct lowering *, ilir_expr, enum dtype to);
/* An index as an i32. */
ilir_expr lower_index_number(struct lowering *, ilir_expr index);

/* --- blocks while they grow (lower_scope.c) --- */

struct scope *lower_scope_new(struct lowering *, struct scope *outer, bool reduction);
/* A statement, or a loop that still grows. */
void lower_scope_add(struct lowering *, struct scope *, struct ilir_stmt *, struct lower_loop *);
struct ilir_stmt *lower_scope_finish(struct lowering *, const struct scope *);
/* The scope of this depth around the block at hand, or the outermost one that is allowed there. */
struct scope *lower_scope_at(const struct lowering *, int depth);
/* Notes where a variable or register is defined: the depth of its scope and the place in it. */
void lower_define(struct lowering *, bool is_buffer, uint32_t id, int depth, int place);
/* The depth of the innermost scope that expressions depend on. */
int lower_depth_of(const struct lowering *, const ilir_expr *, int n);
/* The last place in the scope of this depth that an expression depends on; -1 = none. */
int lower_last_place(const struct lowering *, ilir_expr, int depth);

/* --- movement (lower_move.c) --- */

/* The indices of a use, from the names of its variables; one variable belongs to the use alone and has an index of its own. */
void lower_indices_with(const struct sub_value *, const ilir_expr *index, const struct sub_use *, int own,
			ilir_expr own_index, ilir_expr *out);
/* Elements of a concatenation, of what an `assign` takes, and of the same elements in another shape. */
ilir_expr lower_joined(struct lowering *, const struct sub_value *, const ilir_expr *index);
ilir_expr lower_moved(struct lowering *, const struct sub_value *, const ilir_expr *index);

/* --- the order of dimensions (lower_state.c) --- */

/* Puts the dimensions of a buffer that is about to be made in their order in memory. */
void lower_order_dims(const struct sched_order *, struct ilir_dim *dim);
/* How a table is laid out whose rows have this order. */
const struct image_recipe *lower_table_recipe(struct lowering *, int param, const struct sched_order *);
void lower_note_order(struct lowering *, ilir_buffer, const struct sched_order *);
/* An access by indices in the program's order. */
ilir_expr lower_load(struct lowering *, ilir_buffer, const ilir_expr *index, int n);
struct ilir_stmt *lower_store(struct lowering *, ilir_buffer, const ilir_expr *index, int n, ilir_expr value);

/* The first of a value's variables that is an index where it is stored. */
int lower_first_stored(const struct lowering *, sub_ref);

#endif
