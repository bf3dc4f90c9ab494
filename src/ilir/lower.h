/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The state that the files of the lowering share.  lower_group.c lowers groups, lower_steps.c bodies to steps, lower_program.c the
 * program around them; the other files are parts of these. */
#ifndef ESPALIER_ILIR_LOWER_H
#define ESPALIER_ILIR_LOWER_H

#include "base/map.h"
#include "ilir/passes.h"

/* The loop of a reduction under construction. */
struct lower_loop {
	int outers; /* the loops around it over the other variables that are reduced, the outermost first */
	struct lower_outer_loop {
		ilir_var var;
		int dim;
		int64_t extent;
	} outer[SUB_MAX_VARS];
	ilir_var var;
	ilir_expr begin, end;
	int dim;
	int64_t extent; /* -1: over the edges of a node */
	/* of words of floats that are summed by blocks: the words of each, and the first word of the current one; 0 = no blocks */
	int64_t block;
	ilir_var block_at;
	struct ilir_stmt *open, *close; /* before a block and after it, for each of its sums */
	ilir_expr first; /* first edge of a node with a known number of edges, added to `var`; else none */
	int place;      /* position in the enclosing scope */
	int slots;      /* number of children that an outer loop over `slot` runs it for; 0 = no such loop */
	ilir_var slot;
	/* the operands of its products that do not depend on the column, none of other reductions, and of products of bytes the others */
	VEC(ilir_expr) rows, columns;
	struct ilir_stmt *prologue;
	/* where the reduction is cut: stores the sums' first values; loads those of the piece before; stores those of this one */
	struct ilir_stmt *start, *resume, *park;
	struct scope *body;
};

struct scope_item {
	struct ilir_stmt *stmt;
	struct lower_loop *loop; /* instead of stmt */
};

/* A block under construction. */
struct scope {
	struct scope *outer;
	int depth;
	bool reduction; /* the body of a loop over a dimension, in which values get no names */
	VEC(struct scope_item) items;
	struct map memo; /* value and indices -> expression */
};

/* Where a variable or register is defined. */
struct definition {
	int depth, place; /* of the scope, and the position in it */
};

/* An intermediate of a body, and the buffer that holds it. */
struct stored {
	int body;
	sub_ref value;
	ilir_buffer buffer;
};

/* Weights joined to one buffer, which a slot indexes. */
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
	ilir_buffer *read_row; /* by input; none = no state is looked up by it */
	const char **child_name;
	ilir_buffer member_begin, member_list, input_of, first_pair, child_begin, child_list, root, place, batch_begin, case_of, origin, edge_node;
	struct lower_sorted {
		ilir_buffer sorted, segment_of, segment_begin;
	} *sorted; /* by sort */
	ilir_buffer parent, parent_begin, parent_list, step_of_call;
	int traversal; /* being lowered */
	ilir_expr step; /* of a scan: the one that the loop around its bodies is at */
	VEC(struct stored) storage;
	VEC(struct stack) stacks;
	VEC(const struct sched_order *) orders; /* by buffer, of its last dimensions; NULL = the program's */
	/* the group being lowered */
	int body;
	const struct sched_group *group;
	const struct sched_tile *tile;
	const struct sched_sort *sort; /* of the rows, or edges, that its loop over positions visits; NULL = it visits
					  them by number */
	ilir_expr token; /* with a sort: that of the segment */
	ilir_var given; /* of its loop over the caller's rows; none = it visits nodes by number */
	ilir_expr row, edge, space[SUB_MAX_VARS];
	ilir_var piece; /* the first iteration of a piece of the reduction that its tile cuts; none = it cuts none */
	ilir_var column; /* of the group's dimension that vectors run along; none = it has no dimensions */
	struct scope *scope;
	int floor; /* depth of the outermost scope that values may be placed in: a condition encloses it */
	struct map places; /* variables and registers -> index into `defined` */
	VEC(struct definition) defined;
};

/* Lowers a group to a loop nest over its rows or, without `row_loop`, for the row l->row. */
struct ilir_stmt *lower_group(struct lowering *, int group, bool row_loop);
/* The sort whose positions the rows of a group's step are; NULL = they are nodes. */
const struct sched_sort *lower_sort_of(const struct lowering *, int group);

/* --- bodies (lower_steps.c) --- */

/* The next body of a domain in the current traversal after body `before`; -1 = there is none. */
int lower_next_body(const struct lowering *, enum sub_domain, int before);
/* The first body of a domain in the current traversal; -1 = there is none. */
int lower_find_body(const struct lowering *, enum sub_domain);
/* Whether the leaves of a traversal run through the kernels of inner nodes. */
bool lower_runs_leaves_as_inner(const struct lowering *, int traversal);
/* Lowers all groups of a body, in sequence. */
struct ilir_stmt *lower_groups_of_body(struct lowering *, int body, bool row_loop);
/* Lowers each group of a body to a step over the same rows; a single one gets the given name. */
struct ilir_stmt *lower_steps(struct lowering *, int body, const char *name, ilir_expr begin, ilir_expr end);
/* Lowers the bodies of a domain to steps over the rows of their cases. */
struct ilir_stmt *lower_cases(struct lowering *, enum sub_domain, ilir_expr begin, ilir_expr end);
/* One step that tests each node: leaves and inner nodes, or roots and other nodes. */
struct ilir_stmt *lower_tested_steps(struct lowering *, ilir_expr begin, ilir_expr end);

/* --- buffers that are declared first (lower_buffers.c) --- */

void lower_declare_buffers(struct lowering *);
/* A new array of i32, of one dimension. */
ilir_buffer lower_index_buffer(struct lowering *, const char *name, enum image_buffer_kind, int which, const char *dim,
			       enum image_size rows);
/* A dimension of as many rows as a size of the structure says, and `extra`. */
struct ilir_dim lower_rows_dim(struct lowering *, const char *name, enum image_size rows, int64_t extra);
/* Whether a body reads all nodes of an input. */
bool lower_reads_members(const struct sub_program *, const struct sub_body *);

/* --- buffers of what bodies store (lower_storage.c) --- */

/* The buffer that a store of a body writes to. */
ilir_buffer lower_target(const struct lowering *, const struct sub_store *);
/* The store of a body that has this value; NULL = none. */
const struct sub_store *lower_result(const struct lowering *, int body, sub_ref);
/* The buffer of a stored value: the one that the body stores it to, or an intermediate. */
ilir_buffer lower_storage(struct lowering *, int body, sub_ref);
/* The first of a value's variables that indexes its storage: an edge determines its node, so values of
 * edges are stored without the index of the node, and those of pairs by the number of the pair. */
int lower_first_stored(const struct lowering *, sub_ref);
/* A new buffer for a group's sums between the pieces of a reduction that is cut. */
ilir_buffer lower_partial_sums(struct lowering *, sub_ref);

/* --- the rows of states (lower_state.c) --- */

/* Name of the dimension that the rows of a state are numbered by. */
const char *lower_state_rows(const struct lowering *, int state);
/* The row of a state that belongs to a node. */
ilir_expr lower_state_row(struct lowering *, int state, ilir_expr node);
/* The row to read of it, which may be one of its table. */
ilir_expr lower_read_row(struct lowering *, int state, ilir_expr node);
/* The row of a state that belongs to map(at), where the layout gives it without the node's number; else
 * none. */
ilir_expr lower_mapped_row(struct lowering *, int state, const struct sub_map *, ilir_expr at);

/* --- sorted rows (lower_sort.c) --- */

/* Declares the index arrays of all sorts. */
void lower_declare_sorts(struct lowering *);
/* Names the row, or edge, of a position `at` before a block that computes it. */
struct ilir_stmt *lower_sorted_row(struct lowering *, ilir_var row, ilir_expr at, struct ilir_stmt *block);
/* The loop over the segments of the range around `block`, a loop over positions from *first to *last. */
struct ilir_stmt *lower_segments(struct lowering *, ilir_var segment, ilir_var token, struct ilir_stmt *block);
/* The positions of a segment that the range has. */
void lower_segment_bounds(struct lowering *, ilir_expr segment, ilir_expr *first, ilir_expr *last);
/* Whether a map gives the token that the rows are sorted by, at the current row or edge. */
bool lower_is_sorting_token(const struct lowering *, const struct sub_map *, ilir_expr at);

/* --- products with consecutive children (lower_slots.c) --- */

/* Whether `first` is a sum of products of a weight and a child's state that is laid out by parent, and
 * `other` is the same with another weight and the child `distance` slots further on. */
bool lower_next_slot(const struct lowering *, sub_ref first, sub_ref other, int distance);
/* The number of such children whose concatenation a sum of products multiplies; 0 = it is no such sum. */
int lower_joined_slots(const struct lowering *, sub_ref);
/* The weight of sums[slot], at `index` and the given element of the reduced variable. */
ilir_expr lower_stacked_weight(struct lowering *, const sub_ref *sums, int n, const ilir_expr *index, ilir_expr element,
			       ilir_expr slot);
/* Element k of the child in a slot, counted from the first slot of the sum; sets the number of that
 * operand. */
ilir_expr lower_child_in_slot(struct lowering *, sub_ref sum, int *child_at, const ilir_expr *index, ilir_expr slot, ilir_expr k);

/* --- values (lower_value.c) --- */

/* A value at an index: loaded where it is stored, else computed in the scopes under construction. */
ilir_expr lower_value_at(struct lowering *, sub_ref, const ilir_expr *index);
/* Names array[at], a row, in the outermost scope in which `at` is defined. */
ilir_expr lower_row_of(struct lowering *, ilir_buffer array, const char *name, ilir_expr at);
/* Names an index in the outermost scope in which it can be computed. */
ilir_expr lower_named(struct lowering *, const char *name, ilir_expr);
/* The argument of a value at the value's index. */
ilir_expr lower_argument(struct lowering *, const struct sub_value *, const ilir_expr *index, int argument);
/* An elementwise operator, applied to as many of the operands as it has. */
ilir_expr lower_applied(struct lowering *, enum sub_op, ilir_expr, ilir_expr, ilir_expr);

/* The f32 of the sum in f16 of the two halves of a word. */
ilir_expr lower_half_sum(struct ilir_module *, ilir_expr word);
/* A sum and the product of the bf16 in the lower halves of two words, or in the upper ones (dot_bf16 of ilir_ops.def). */
ilir_expr lower_half_dot(struct ilir_module *, ilir_expr a, ilir_expr b, ilir_expr sum, bool upper);
/* A sum and those of the lower and the upper halves of a block, as add_bf16_block of base/convert.h has it. */
ilir_expr lower_block_sum(struct ilir_module *, ilir_expr sum, ilir_expr lower, ilir_expr upper);

/* --- reductions (lower_sum.c) --- */

/* Lowers a reduction, from its neutral element or from the sum that it continues. */
ilir_expr lower_reduction(struct lowering *, sub_ref, const ilir_expr *index);

/* --- reductions that are cut (lower_cut.c) --- */

/* Declares the variable of the pieces of the group's reduction, if its tile cuts it. */
void lower_open_cut(struct lowering *);
/* An element of the first reduced variable, whose loop counts from the beginning of a piece. */
ilir_expr lower_cut_element(struct lowering *, ilir_expr);
/* Lets the sum `acc` of a loop, whose first value `start` stores, go on from piece to piece, in a buffer of its own. */
void lower_cut_sum(struct lowering *, struct lower_loop *, sub_ref, ilir_buffer acc, struct ilir_stmt *start);
/* The loops of a reduction, `loops` over all of it, over a piece, and what follows: `after` the last piece. */
struct ilir_stmt *lower_cut_loops(struct lowering *, const struct lower_loop *, struct ilir_stmt *loops,
				  struct ilir_stmt *after);
/* The loop over the pieces around the nest of the group. */
struct ilir_stmt *lower_pieces(struct lowering *, struct ilir_stmt *nest);

/* --- the loop over a step's rows (lower_rows.c) --- */

/* The name of a ragged dimension: the edges of a node, or the members of an input. */
const char *lower_ragged_name(const struct lowering *, int var);
/* The range of a ragged variable: the edges of the current node, or the members of the current input, or of that of the
 * current node. */
void lower_ragged_bounds(struct lowering *, int var, ilir_expr *begin, ilir_expr *end);
/* Tiles the loop over this variable by the schedule's numbers of nodes, or of other rows. */
void lower_tile_rows(struct lowering *, ilir_var);
/* Puts the loops over rows and edges, whose variables come first in `var`, around a block; none over rows without
 * `rows_here`. */
struct ilir_stmt *lower_rows(struct lowering *, const struct sub_value *, const ilir_var *var, bool rows_here,
			     struct ilir_stmt *block);

/* --- loops over the dimensions of a group (lower_blocks.c) --- */

const char *lower_var_name(const struct lowering *, int var);
/* Puts the loops over some dimensions, a mask, around a block: the last one innermost, unless another is
 * to be, and the first one outermost, unless another is to be; -1 = none is. */
struct ilir_stmt *lower_dimensions(struct lowering *, const struct sub_value *, const ilir_var *var, unsigned dims,
				   int outermost, int innermost, struct ilir_stmt *block);
/* The loop over the rows of a tile in a block of them, whose first is `first`, or over all of them; the last block may have
 * fewer. */
struct ilir_stmt *lower_rows_of_block(struct lowering *, const struct sub_value *, ilir_var, ilir_var first,
				      struct ilir_stmt *block);
/* The loop over the blocks of these rows. */
struct ilir_stmt *lower_blocks(struct lowering *, const struct sub_value *, ilir_var, struct ilir_stmt *block);

/* --- types (lower_type.c) --- */

/* Converts a loaded element to the type that arithmetic uses. */
ilir_expr lower_widened(struct lowering *, ilir_expr);
/* Converts a value to the nearest element of a type in memory. */
ilir_expr lower_narrowed(struct lowering *, ilir_expr, enum dtype);
/* A constant of the program, rounded to the nearest number of its type. */
ilir_expr lower_number(struct lowering *, enum dtype, double);
ilir_expr lower_cast(struct lowering *, ilir_expr, enum dtype to);
/* Converts an index to an i32. */
ilir_expr lower_index_number(struct lowering *, ilir_expr index);

/* --- blocks under construction (lower_scope.c) --- */

struct scope *lower_scope_new(struct lowering *, struct scope *outer, bool reduction);
/* Appends a statement, or a loop under construction. */
void lower_scope_add(struct lowering *, struct scope *, struct ilir_stmt *, struct lower_loop *);
/* The finished block; statements that initialize the accumulators of a loop come before it. */
struct ilir_stmt *lower_scope_finish(struct lowering *, const struct scope *);
/* The scope of a depth that encloses l->scope, but never outside of l->floor. */
struct scope *lower_scope_at(const struct lowering *, int depth);
/* Records where a variable or register is defined. */
void lower_define(struct lowering *, bool is_buffer, uint32_t id, int depth, int place);
/* The depth of the innermost scope that expressions depend on. */
int lower_depth_of(const struct lowering *, const ilir_expr *, int n);
/* The last position in the scope of a depth that an expression depends on; -1 = none. */
int lower_last_place(const struct lowering *, ilir_expr, int depth);

/* --- data movement (lower_move.c) --- */

/* The indices of a use of an argument: those of the value's variables, and own_index[k] for own->var[k], which
 * the value lacks. */
void lower_indices_with(const struct sub_value *, const ilir_expr *index, const struct sub_use *,
			const struct sub_vars *own, const ilir_expr *own_index, ilir_expr *out);
/* An element of a concatenation, and of an `assign`. */
ilir_expr lower_joined(struct lowering *, const struct sub_value *, const ilir_expr *index);
ilir_expr lower_moved(struct lowering *, const struct sub_value *, const ilir_expr *index);

/* An index along the axis of the steps of a scan: scale * step + offset, where the scale is 1 or -1. */
ilir_expr lower_step_index(struct lowering *, int64_t scale, int64_t offset);

/* --- the order of dimensions (lower_state.c) --- */

/* Permutes the dimensions of a buffer into their order in memory. */
void lower_order_dims(const struct sched_order *, struct ilir_dim *dim);
/* The recipe of a table whose rows have their dimensions in this order. */
const struct image_recipe *lower_table_recipe(struct lowering *, int param, const struct sched_order *);
/* Records the order of a buffer's last dimensions. */
void lower_note_order(struct lowering *, ilir_buffer, const struct sched_order *);
/* Accesses by indices in the program's order. */
ilir_expr lower_load(struct lowering *, ilir_buffer, const ilir_expr *index, int n);
struct ilir_stmt *lower_store(struct lowering *, ilir_buffer, const ilir_expr *index, int n, ilir_expr value);

/* Writes the index of an element in its storage, in a buffer of its own; returns the number of dimensions. */
int lower_stored_index(struct lowering *, sub_ref, const ilir_expr *index, ilir_expr *out);

#endif
