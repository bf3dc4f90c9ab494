/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The schedule: how a sub-operator program becomes loops, as data.
 *
 * A plan says what is fused (groups of values that share one loop nest) and what is stored to memory between groups; a
 * schedule says how the nests run.  Neither knows what model it is for. */
#ifndef ESPALIER_SCHED_SCHED_H
#define ESPALIER_SCHED_SCHED_H

#include "base/target.h"
#include "image/image.h"
#include "move/move.h"
#include "subop/subop.h"

/* --- the plan --- */

/* The loop of reductions that share an operand. */
struct sched_loop {
	uint64_t shared; /* names the operand */
	int gates;	 /* reductions */
	int64_t extent;
	bool per_edge; /* once for each edge of a row */
	bool own; /* rows share no weights: each, or each edge, has its own, such as those of its label */
};

/* Values that are computed in one loop nest: over the rows of the body (if `rows`) and these dimensions. */
struct sched_group {
	const char *name; /* body and number: inner.0 */
	int body;	  /* of the program */
	int stage;        /* groups of a body run in this order; a group reads what earlier stages stored */
	bool rows, edges; /* edges: over the child edges of each row as well */
	int dims;
	int64_t extent[SUB_MAX_VARS];
	VEC(sub_ref) targets; /* what it stores */
	int reductions;       /* in one pass over the row: all of them */
	int products;         /* those that are not over edges */
	int gates;            /* the most of them that share one operand, and so one loop */
	double operations;    /* of a row, estimated */
	VEC(struct sched_loop) loops;
	bool over_edges; /* its products are of the edges of a row: the nodes of a tile are those that edges lead to */
};

/* Who decides what is fused. */
enum sched_planner_name {
#define SCHED_PLANNER(name, spelling, meaning) SCHED_##name,
#include "sched/sched.def"
#undef SCHED_PLANNER
	SCHED_PLANNERS
};

/* What SCHED_GROW does where the table of mapping types leaves it open (fusion.def). */
enum sched_profit { SCHED_PROFIT_MEASURED, SCHED_PROFIT_ALWAYS, SCHED_PROFIT_NEVER };

enum { SCHED_MAX_STORES = 32 };

/* What is decided before there is a plan. */
struct sched_fusion {
	enum sched_planner_name planner;
	enum sched_profit profit;
	enum move_extent refactoring, hoisting;
	int stores; /* values that are to be stored, by their names in the schedule's text */
	struct sched_store {
		const char *name;
		int length;
	} store[SCHED_MAX_STORES];
};

struct sched_plan {
	const struct sub_program *p;
	const struct target *target;
	struct sched_fusion fusion;
	VEC(struct sched_group) groups; /* in the order in which they run */
	const struct sched_values *values; /* by body (plan.h) */
};

/* The cases that `specialize CASE when ...` makes, in the program as lowered; all other lines are for others.  False
 * after a diagnostic. */
bool sched_split_cases(struct sub_program *, const char *file, const char *text, size_t length,
		       struct diags *);
/* All planners give the same results, to the bit. */
void sched_make_plan(struct sched_plan *, struct arena *, const struct sub_program *, const struct target *,
		     const struct sched_fusion *);
/* The directives of a schedule's text that steer the plan, `fuse`, `store`, `refactor` and `hoist`; all others are for
 * sched_read. The plan refers to the text. */
bool sched_read_fusion(struct sched_fusion *, const char *file, const char *text, size_t length, struct diags *);
/* Why the plan does not store a value as asked for; NULL = it does. */
const char *sched_not_stored(const struct sched_plan *, const struct sched_store *);
/* Looks at a plan without knowing how it came about.  False after a diagnostic. */
bool sched_verify(const struct sched_plan *, struct diags *);

/* What a plan comes to, in one body. */
struct sched_counts {
	int groups, stages; /* stages: one after the other in each level */
	int stored;	    /* intermediates in memory: neither states nor outputs */
	int reductions;
};
struct sched_counts sched_count(const struct sched_plan *, int body);

/* Bytes that a row of a body moves; an edge counts as two. */
struct sched_bytes {
	double states;	/* read and written */
	double outputs; /* written */
	double stored;	/* written, and read by each group that wants them */
	double inputs;	/* numbers, tokens and the rows that they look up */
	double weights; /* read once for all rows of a level */
};
struct sched_bytes sched_bytes_of(const struct sched_plan *, int body);
bool sched_is_stored(const struct sched_plan *, int body, sub_ref);
/* Computed with the value that alone wants it, as a step of its chain. */
bool sched_is_step(const struct sched_plan *, int body, sub_ref);
/* The group of the body that has the value as a target; -1 = none. */
int sched_group_of(const struct sched_plan *, int body, sub_ref);

/* --- the schedule --- */

enum {
	SCHED_MAX_SIZES = 8,
	SCHED_MAX_NODES = 8,
	SCHED_MAX_ACCUMULATORS = 64,
	SCHED_MAX_COLUMNS = 8,
	SCHED_MAX_UNROLL = 16,
	SCHED_MAX_SPAN = 64
};

/* See sched.def. */
struct sched_tile {
	int sizes, nodes[SCHED_MAX_SIZES]; /* falling */
	int columns, unroll;
	int along; /* the dimension of the group that columns, and so vectors, are along */
	int lanes; /* 1 = no vectors */
	bool by_rows; /* all columns of a row before the next row, one row at a time */
};

/* The dimensions of what is stored as they stand in memory, the last one innermost. */
struct sched_order {
	int rank, dim[SUB_MAX_VARS];
};

/* How a state is kept: the order of its rows, and that of the dimensions of a row. */
struct sched_state {
	enum image_layout layout;
	struct sched_order order;
};

/* The same of an intermediate of a dimension or more. */
struct sched_intermediate {
	int body;
	sub_ref value;
	const char *name; /* of the value, or like it where a state or a parameter has that */
	struct sched_order order;
};

struct sched {
	const struct target *target;
	bool dynamic_batch, dense_index, peel, persist, barrier_each_step, specialize_leaf;
	int unroll;	  /* levels of the recursion without a meeting between them, at least 1 */
	unsigned shared_cases; /* cases whose nodes share a kernel that tests them, with others of their domain; a mask */
	int lanes;	   /* of groups of which nothing else is said, as `vectorize` says it */
	int accumulators; /* that one loop may have */
	VEC(struct sched_tile) tiles; /* by group */
	VEC(enum image_way) ways;     /* by group: what threads share out of it */
	VEC(struct sched_state) states; /* by state */
	VEC(struct sched_intermediate) intermediates;
	VEC(struct sched_order) tables; /* by parameter: of a row, for those of which rows are picked; rank 0: none are */
};

/* How many of the sums that share an operand one loop keeps, of so many turns (nodes and vectors of columns) each: all of
 * them, or as equal numbers as can be. */
int sched_gates_at_once(int accumulators, int gates, int turns);
/* Whether a tile of the i-th size and one node more are better two tiles of the sizes that follow: a node alone costs
 * about what two cost. */
bool sched_shares_last(const int *size, int sizes, int i);
/* What the cost model says of a tile: how many times the least that levels can take they take, in the mean; not a number
 * where it says nothing, as of groups without products. */
double sched_predict(const struct sched *, const struct sched_plan *, int group, const struct sched_tile *);
/* Shows all tiles that it chooses from, each with what it says; `unroll` and `along` are those of `like`. */
typedef void sched_tile_visit(void *user, const struct sched_tile *, double predicted);
void sched_each_tile(const struct sched *, const struct sched_plan *, int group, const struct sched_tile *like,
		     sched_tile_visit *, void *user);
/* The schedule that the cost model chooses. */
void sched_choose(struct sched *, const struct sched_plan *, const struct target *);
/* What a row of a body costs, in multiplications and additions; estimated. */
double sched_operations(const struct sub_program *, const struct sub_body *);
/* Parts of it: the order of dimensions (order.c), which tiles follow, and the rows of states (layout.c), which follow the
 * tiles. */
void sched_choose_order(struct sched *, const struct sched_plan *);
void sched_choose_layout(struct sched *, const struct sched_plan *);
bool sched_is_row_major(const struct sched_order *);
/* The name of a stored value. */
const char *sched_value_name(const struct sched_plan *, int body, sub_ref);
/* NULL = it has no dimensions. */
const struct sched_order *sched_intermediate_order(const struct sched *, int body, sub_ref);
/* A sum of products with the state of a child, all of it, or with those of several children joined slot after slot. */
struct sched_child_product {
	int child_at, weight_at; /* which arguments */
	int state;
	int slot, slots; /* the first, and how many */
};
bool sched_child_product(const struct sub_program *, sub_ref, struct sched_child_product *);
/* Whether `first` is one with a weight, and `other` the same with another weight and the child so many slots further on. */
bool sched_next_child(const struct sub_program *, sub_ref first, sub_ref other, int distance);
/* A row of a group: the rows of the greatest of its tiles, and operations, estimated. */
struct sched_work {
	int rows, operations;
};
struct sched_work sched_work_of(const struct sched *, const struct sched_plan *, int group);
/* Changes a chosen schedule by the directives of a text; diagnostics name `file`.  False after diagnostics. */
bool sched_read(struct sched *, const struct sched_plan *, const char *file, const char *text, size_t length,
		struct diags *);
/* Text that sched_read reads; the plan's groups and stored intermediates stand in it as comments. */
void sched_print(const struct sched *, const struct sched_plan *, struct str *);
void sched_print_tile(const struct sched_tile *, const struct sched_group *, struct str *);
/* All that a schedule says of a group, also where it says the same of all of them. */
void sched_print_group(const struct sched *, const struct sched_plan *, int group, struct str *);

/* --- what else a schedule may say --- */

enum sched_scope { SCHED_SCOPE_PLAN, SCHED_SCOPE_PROGRAM, SCHED_SCOPE_STATE, SCHED_SCOPE_GROUP };

/* A row of sched.def: the arguments stand between bars. */
struct sched_choice {
	enum sched_scope scope;
	const char *spelling, *arguments;
};
/* NULL past the last. */
const struct sched_choice *sched_choice_at(size_t i);
/* The i-th of them as a line without its end; NULL past the last.  `name` = NULL: of a plan or program. */
const char *sched_choice_line(struct arena *, const struct sched_choice *, const char *name, size_t i);
/* The directive of this key, "fuse" or "tile inner.0", in a printed schedule, without its end; NULL = it says none. */
const char *sched_find_line(struct arena *, const char *printed, const char *key);
/* Blocks of lines of which a schedule may have one each, the first being that of this one.  A block begins with an
 * empty line and a comment, its scope and the directive's key; a line that the cost model has a prediction for ends with
 * it, as a comment, and such come in its order.  What is for plans is not among them. */
void sched_print_choices(const struct sched *, const struct sched_plan *, struct str *);
/* How such a block begins. */
void sched_print_block(enum sched_scope, const char *key, const char *now, struct str *);

#endif
