/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The schedule: how a sub-operator program becomes loops, as data.
 *
 * A plan says which values are fused (groups share a loop nest) and which are stored between groups; a
 * schedule says how the nests run.  Neither knows which model it is for. */
#ifndef ESPALIER_SCHED_SCHED_H
#define ESPALIER_SCHED_SCHED_H

#include "base/target.h"
#include "image/image.h"
#include "move/move.h"
#include "mutate/mutant_lines.h"
#include "subop/subop.h"

/* --- the plan --- */

/* In a mask of dimensions of a row: the row itself, or the edge. */
enum { SCHED_ROW = 1 << SUB_MAX_VARS };

/* The loop of the reductions of a group that share an operand. */
struct sched_loop {
	uint64_t shared; /* identifies the operand */
	int gates;	 /* reductions */
	int64_t extent;	 /* its iterations: the product of the extents of what is reduced */
	int64_t innermost; /* the extent of the innermost one */
	int window;	   /* the iterations of the innermost ones that can be written out; 1 = of none */
	int first;	   /* the outermost variable that is reduced */
	bool whole;	   /* all values have the dimensions of the group; none reads a concatenation of children */
	bool per_edge; /* once for each edge of a row */
	bool of_matrices; /* its reductions are dot products with weights that matrix registers can compute */
	bool own; /* not shared: each row, or each edge, has weights of its own, such as those of its label */
	/* of the operands of its first product, or of the one operand: the dimensions that they depend on, as `beside`; bytes in memory */
	unsigned operand[2];
	double bytes[2];
	/* elements by which neighbours along the innermost dimension are apart; 0 = the first reduced variable runs along it */
	int64_t step[2];
	/* by dimension of a row: what else the operands that depend on it depend on, a mask with SCHED_ROW */
	unsigned beside[SUB_MAX_VARS];
	/* by dimension of a row: after how many iterations an element reads through its window what the next element reads
	 * now; 0 = never */
	int64_t shift[SUB_MAX_VARS];
};

/* Numbers of groups. */
typedef VEC(int) sched_groups;

/* Values that are computed in one loop nest, over the rows of the body (if `rows`) and these dimensions. */
struct sched_group {
	const char *name; /* body and number: inner.0 */
	int body;	  /* of the program */
	int superstep;	  /* those of a body run in this order; a group reads what earlier ones have stored */
	bool rows, edges; /* edges: also over the child edges of each row */
	int dims;
	int64_t extent[SUB_MAX_VARS];
	VEC(sub_ref) targets; /* what it stores */
	int reductions;	      /* in one pass over the row */
	int products;         /* those that are not over edges */
	int gates;	      /* the most reductions that share one operand, and so one loop */
	double operations;    /* of a row, estimated */
	bool moves;	      /* it only moves elements: a copy with a border, or in another order */
	VEC(struct sched_loop) loops;
	bool members;    /* its edges are pairs of a row and a node of its input, or the nodes of an input */
	bool over_edges; /* products are per edge of a row: the nodes of a tile are the ends of its edges */
	bool local; /* computed by each group that reads it, at the head of its kernel (local.c) */
	int sort; /* the number + 1 of the sort in whose order its rows, or edges, are computed (sort.c); 0 = none */
	sched_groups reads; /* those whose values it reads */
	sched_groups readers; /* those that read its values, rising */
	sched_groups heads; /* the local ones that it computes first, in this order */
};

/* An order of the rows of a body, nodes or edges to children, by a token that selects weights for them. */
struct sched_sort {
	int input; /* whose tokens they are */
	int slot;  /* of nodes by the token of their edges: that to the child in this slot; else -1 */
	bool edges;
};

/* The planners, which decide what is fused. */
enum sched_planner_name {
#define SCHED_PLANNER(name, spelling, meaning) SCHED_##name,
#include "sched/sched.def"
#undef SCHED_PLANNER
	SCHED_PLANNERS
};

/* Whether SCHED_GROW takes fusing to be profitable where the table of mapping types leaves it open
 * (fusion.def). */
enum sched_profit { SCHED_PROFIT_MEASURED, SCHED_PROFIT_ALWAYS, SCHED_PROFIT_NEVER };

enum { SCHED_MAX_STORES = 32, SCHED_MAX_MUTANTS = 32 };

/* What the schedule's text specifies before a plan is made. */
struct sched_fusion {
	enum sched_planner_name planner;
	enum sched_profit profit;
	enum move_extent refactoring, hoisting, unstacking, padding, local, sorting, arranging, words;
	int stores; /* values to be stored, by name; the names lie in the schedule's text */
	struct sched_store {
		const char *name;
		int length;
	} store[SCHED_MAX_STORES];
	int mutants; /* values of which mutants are computed; the names lie in the schedule's text, too */
	struct mutate_choice mutant[SCHED_MAX_MUTANTS];
	int mutant_line[SCHED_MAX_MUTANTS]; /* of the text */
	int mutants_off; /* the last line that takes back those before it; 0 = none does */
};

struct sched_plan {
	const struct sub_program *p;
	const struct target *target;
	struct sched_fusion fusion;
	VEC(struct sched_group) groups;	   /* in execution order */
	VEC(struct sched_sort) sorts;
	const struct sched_values *values; /* facts about them, by body (plan.h) */
	const enum dtype *stored_types;	   /* by value: that of an intermediate in memory (stored_types.c) */
};

/* The pass over programs that follows the lines `mutate`; false after a diagnostic.  `exact`: no bit of a result may change. */
bool sched_mutate(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *, bool exact, struct diags *);
/* The same, and now[i], which has an entry for each value of `from`, is what stands in place of value i; there are such lines. */
bool sched_apply_mutants(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *, bool exact, sub_ref *now,
			 struct diags *);
/* The pass behind it, which cancels reorganisations on both sides of elementwise operators (mutate_cancel_moves). */
bool sched_cancel(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *, bool exact, struct diags *);
/* Adds the cases that lines `specialize CASE when ...` define to a lowered program; skips all other lines.
 * False after a diagnostic. */
bool sched_split_cases(struct sub_program *, const char *file, const char *text, size_t length,
		       struct diags *);
/* Makes the plan.  Results are the same to the bit, whichever planner decides. */
void sched_make_plan(struct sched_plan *, struct arena *, const struct sub_program *, const struct target *,
		     const struct sched_fusion *);
/* Reads the directives of a schedule's text that the plan depends on: `fuse`, `store`, `mutate`, `local`, `refactor`,
 * `hoist`, `pad`, `arrange` and `words`.  All others are read by sched_read.  The plan refers to the text. */
bool sched_read_fusion(struct sched_fusion *, const char *file, const char *text, size_t length,
		       struct diags *);
/* The reason why the plan does not store a value that a directive names; NULL = it stores it. */
const char *sched_not_stored(const struct sched_plan *, const struct sched_store *);
/* Checks the rules of a plan, independently of how it was made.  False after a diagnostic. */
bool sched_verify(const struct sched_plan *, struct diags *);

/* Totals of a plan in one body. */
struct sched_counts {
	int groups, supersteps; /* which run one after the other in each level; local groups are in none */
	int stored;	    /* intermediates that are stored for other groups, states and outputs excluded */
	int local;	    /* groups that are computed by their readers */
	int reductions;
};
struct sched_counts sched_count(const struct sched_plan *, int body);

/* Bytes that a row of a body reads and writes; a row is taken to have two edges. */
struct sched_bytes {
	double states;	/* read and written */
	double outputs; /* written */
	double stored; /* intermediates and hoisted inputs: written once, read by each group that uses them */
	double inputs; /* vectors, tokens and the rows that they look up */
	double weights; /* read once for all rows of a level */
};
struct sched_bytes sched_bytes_of(const struct sched_plan *, int body);
bool sched_is_stored(const struct sched_plan *, int body, sub_ref);
/* Whether a value is a step of a chain, computed together with the chain's end. */
bool sched_is_step(const struct sched_plan *, int body, sub_ref);
bool sched_has_local(const struct sched_plan *);
/* Whether something is stored in another order (arrange.c). */
bool sched_has_arranged(const struct sched_plan *);
/* Whether words are read where their bytes are stored (words_in_place.c). */
bool sched_has_words_in_place(const struct sched_plan *);
bool sched_has_sorts(const struct sched_plan *);
/* The group of the body that computes and stores the value; -1 = none. */
int sched_group_of(const struct sched_plan *, int body, sub_ref);

/* --- the schedule --- */

enum {
	SCHED_MAX_SIZES = 8,
	SCHED_MAX_NODES = 12, /* rows of a tile whose sums are vector registers */
	SCHED_MAX_ACCUMULATORS = 64,
	SCHED_MAX_COLUMNS = 8,
	SCHED_MAX_UNROLL = 16,
	SCHED_MAX_BLOCK = 1 << 20,
	SCHED_MAX_CUT = 1 << 20,
	SCHED_MAX_SPAN = 64
};

/* The rows of a tile are nodes, not elements along a dimension of the group. */
enum { SCHED_NODES = -1 };

/* How a group is tiled; sched.def describes the directive. */
struct sched_tile {
	int sizes, nodes[SCHED_MAX_SIZES]; /* of the rows of a tile, nodes or others, in falling order */
	int columns, unroll;
	int across; /* the dimension of the group that the rows of a tile run along, or SCHED_NODES */
	int block;  /* so many of these rows are computed for all nodes before the next; 0 = all */
	int cut;    /* iterations of the first reduced variable that the nest runs before the next; 0 = all */
	int along; /* the dimension of the group that columns and vectors run along */
	int lanes; /* 1 = no vectors */
	bool by_rows; /* one row at a time, all its columns before the next row */
	bool pipelined; /* what is computed of the sums of a tile of the largest size runs between the steps of the next one's sums */
	bool rows_outside; /* of the loops outside the nodes, that over blocks of columns is the innermost, not the outermost */
};

/* The dimensions of a stored value in memory order, the last one innermost. */
struct sched_order {
	int rank, dim[SUB_MAX_VARS];
};

/* How a state is laid out: the order of its rows, and that of the dimensions of a row; where the rows of leaves are. */
struct sched_state {
	enum image_layout layout;
	bool in_table; /* what reads it of leaves reads their table, if it can (sched_copies_leaves) */
	struct sched_order order;
};

/* How an intermediate of at least one dimension is laid out. */
struct sched_intermediate {
	int body;
	sub_ref value;
	const char *name; /* the value's; changed where a state or a parameter has the same */
	struct sched_order order;
};

struct sched {
	const struct target *target;
	bool dynamic_batch, dense_index, peel, align, persist, barrier_each_step, specialize_leaf;
	bool joins_leaves; /* leaves run through kernels of inner nodes where these store the same values */
	int unroll; /* levels of the recursion without a barrier between them, at least 1 */
	unsigned shared_cases; /* a mask of cases whose nodes share a kernel that tests the case */
	int lanes;	  /* of groups without a `vectorize` directive of their own */
	int accumulators; /* vectors of sums that one loop may have */
	VEC(struct sched_tile) tiles;	/* by group */
	VEC(enum image_strategy) strategies;	/* by group: what of it threads divide among them */
	VEC(struct sched_state) states; /* by state */
	VEC(struct sched_intermediate) intermediates;
	VEC(bool) given; /* by input: kernels read its rows where the caller has them, if they can (sched_copies_vector) */
	VEC(struct sched_order) tables; /* by parameter: of a row that is looked up; rank 0 = none is */
};

/* How many of the gates that share an operand one loop computes, with `vectors` accumulators (nodes times
 * vectors of columns) each: all of them, or as equal numbers as possible. */
int sched_gates_at_once(int accumulators, int gates, int vectors);
/* Whether size[i] + 1 nodes are better computed as two tiles of smaller sizes than as one tile and a
 * single node, which costs about as much as two. */
bool sched_shares_last(const int *size, int sizes, int i);
/* Whether the sums of a group are all products that the target's matrix registers can compute, in vectors of so many lanes
 * (matrix_tiles.c). */
bool sched_uses_matrices(const struct target *, const struct sched_group *, int lanes);
/* The most rows that a tile of a group may have. */
int sched_most_rows(const struct target *, const struct sched_group *, int lanes);
/* Whether a group that uses matrix registers has rows that fill them, one after the other: then its tile is chosen so. */
bool sched_fills_matrices(const struct target *, const struct sched_group *, const struct sched_tile *);
/* Such a tile, of at most so many rows, and with as many vectors of columns as matrix registers hold sums for. */
struct sched_tile sched_make_matrix_tile(const struct target *, const struct sched_group *, struct sched_tile like, int rows);
/* The cost model's prediction for a tile: its time relative to the least possible, in the mean over levels
 * of many widths; NaN where the model has none, as for groups without products and for products by matrix registers. */
double sched_predict(const struct sched *, const struct sched_plan *, int group, const struct sched_tile *);
/* Visits all tiles that the cost model chooses from, each with its prediction; `unroll` and `along` are
 * those of `like`. */
typedef void sched_tile_visit(void *user, const struct sched_tile *, double predicted);
void sched_each_tile(const struct sched *, const struct sched_plan *, int group, const struct sched_tile *like,
		     sched_tile_visit *, void *user);
/* The extent of the variable that a cut of a group's reduction cuts; 0 = it reduces nothing. */
int64_t sched_cut_extent(const struct sched_plan *, const struct sched_group *);
/* Why the reduction of a group cannot be cut as a tile says; NULL = it can. */
const char *sched_why_uncut(const struct sched_plan *, const struct sched_group *, const struct sched_tile *);
/* The piece that the cost model cuts the reduction of a tiled group into; 0 = it does not cut it. */
int sched_choose_cut(const struct sched *, const struct sched_plan *, const struct sched_group *, const struct sched_tile *);
/* Makes the schedule that the cost model chooses. */
void sched_choose(struct sched *, const struct sched_plan *, const struct target *);
/* An estimate of the multiplications and additions of a row of a body. */
double sched_operations(const struct sub_program *, const struct sub_body *);
/* Called by sched_choose: chooses the order of dimensions (order.c) before tiles, and the rows of states
 * (layout.c) after them. */
void sched_choose_order(struct sched *, const struct sched_plan *);
void sched_choose_layout(struct sched *, const struct sched_plan *);
/* Places the rows of all states and inputs by node, those of leaves as well, and lets no levels be spans: whichever nodes are
 * computed together. */
void sched_place_by_node(struct sched *);
bool sched_is_row_major(const struct sched_order *);
/* The name of a value in the text of plans and schedules, as "inner.v12". */
const char *sched_value_name(const struct sched_plan *, int body, sub_ref);
/* The order of an intermediate's dimensions; NULL = it has none. */
const struct sched_order *sched_intermediate_order(const struct sched *, int body, sub_ref);
/* A sum of products with the whole state of a child, or with those of several children concatenated slot
 * after slot. */
struct sched_child_product {
	int child_at, weight_at; /* positions among the arguments */
	int state;
	int slot, slots; /* the first slot, and the number of them */
};
bool sched_child_product(const struct sub_program *, sub_ref, struct sched_child_product *);
/* Whether `first` is such a product with a weight, and `other` the same with a weight of the same shape
 * and the child `distance` slots further on. */
bool sched_next_child(const struct sub_program *, sub_ref first, sub_ref other, int distance);
/* The row of a parameter that a token of the node selects. */
struct sched_look_up {
	int param, input;
};
/* Whether a state is such a row in all leaves, of the state's type. */
bool sched_looks_up(const struct sched_plan *, int state, struct sched_look_up *);
/* Why leaves must have rows of a state, not their readers those of a table; NULL = they need not. */
const char *sched_copies_leaves(const struct sched *, const struct sched_plan *, int state);
/* Whether what reads a state of leaves reads their table. */
bool sched_reads_table(const struct sched *, const struct sched_plan *, int state);
/* Whether all that a group would store are such states of leaves: then it has no step. */
bool sched_only_looks_up(const struct sched *, const struct sched_plan *, int group);
/* Whether an input of the model is a vector that nodes carry. */
bool sched_is_vector_of_nodes(const struct sub_program *, int input);
/* Why rows of a vector must be copied in the order of the nodes' numbers; NULL = they need not. */
const char *sched_copies_vector(const struct sched_plan *, int input);
/* Whether kernels read its rows where the caller has them. */
bool sched_reads_given(const struct sched *, const struct sched_plan *, int input);
/* Whether a body reads such an input: then it runs in the order of the caller's rows. */
bool sched_is_in_given_order(const struct sched *, const struct sched_plan *, int body);
/* The work of a group: rows of its largest tile, a mask of those of all (bit r - 1 = r rows), and an estimate of the
 * operations of a row. */
struct sched_work {
	int rows, tiles, operations;
};
struct sched_work sched_work_of(const struct sched *, const struct sched_plan *, int group);
/* Changes a chosen schedule by the directives of a text; diagnostics name `file`.  False after a
 * diagnostic. */
bool sched_read(struct sched *, const struct sched_plan *, const char *file, const char *text, size_t length,
		struct diags *);
/* Writes the text that sched_read reads, with the plan's groups and counts as comments. */
void sched_print(const struct sched *, const struct sched_plan *, struct str *);
void sched_print_tile(const struct sched_tile *, const struct sched_group *, struct str *);
/* Writes all directives of a group, also those that agree with the ones of the program. */
void sched_print_group(const struct sched *, const struct sched_plan *, int group, struct str *);

/* --- what else a schedule may say --- */

enum sched_scope { SCHED_SCOPE_PLAN, SCHED_SCOPE_PROGRAM, SCHED_SCOPE_STATE, SCHED_SCOPE_GROUP };

/* A row of sched.def: alternative arguments, separated by bars. */
struct sched_choice {
	enum sched_scope scope;
	const char *spelling, *arguments;
};
/* The i-th row; NULL past the last. */
const struct sched_choice *sched_choice_at(size_t i);
/* The i-th alternative as a line without its newline; NULL past the last.  `name` is that of a group or
 * state, NULL for choices of a plan or program. */
const char *sched_choice_line(struct arena *, const struct sched_choice *, const char *name, size_t i);
/* The line of a printed schedule that begins with a key ("fuse", "tile inner.0"), without its newline;
 * NULL = it has none. */
const char *sched_find_line(struct arena *, const char *printed, const char *key);
/* Writes the choices of a schedule, plans excepted, in blocks: a schedule may have one line of each block,
 * and the first line is that of this schedule.  A block begins with an empty line and a comment that names
 * its scope and key.  A line with a prediction of the cost model ends with it, as a comment; those lines
 * are sorted by it. */
void sched_print_choices(const struct sched *, const struct sched_plan *, struct str *);
/* Writes the beginning of such a block. */
void sched_begin_block(enum sched_scope, const char *key, const char *now, struct str *);

#endif
