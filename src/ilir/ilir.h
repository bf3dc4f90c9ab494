/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* ILIR, the irregular-loop IR: loops whose bounds are read from arrays, with indirect loads.
 *
 * Expressions are hash-consed references into the module's pool (equal expressions are one reference), statements are a
 * tree, buffers and variables are tables.  All of it lives in the module's arena.  See README.md for the text form. */
#ifndef ESPALIER_ILIR_ILIR_H
#define ESPALIER_ILIR_ILIR_H

#include "base/diag.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/vec.h"
#include "image/image.h"

/* --- types --- */

/* The type of a value: one that elements have in memory, or INDEX, 64 bits, which only registers hold. */
enum ilir_dtype {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) ILIR_##name = DTYPE_##name,
#include "base/dtype.def"
	ILIR_INDEX,
	ILIR_DTYPES
};
/* The rank of a buffer is the number of variables of the value stored in it, or of dimensions of a packed
 * weight. */
enum { ILIR_MAX_LANES = 16, ILIR_MAX_STEP = 16, ILIR_MAX_RANK = 2 * TENSOR_MAX_RANK };
_Static_assert((int)IMAGE_PACK_DIMS <= (int)ILIR_MAX_RANK, "a packed weight is a buffer");

struct ilir_type {
	uint8_t dtype, lanes; /* lanes 1 = scalar */
};

static inline bool ilir_same_type(struct ilir_type a, struct ilir_type b)
{
	return a.dtype == b.dtype && a.lanes == b.lanes;
}

/* --- expressions --- */

enum ilir_op {
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) ILIR_##name,
#include "ilir/ilir_ops.def"
	ILIR_OPS
};

typedef struct {
	uint32_t i; /* 0 = none */
} ilir_expr;
typedef struct {
	uint32_t i; /* 0 = none */
} ilir_var;
typedef struct {
	uint32_t i; /* 0 = none */
} ilir_buffer;

struct ilir_node {
	uint8_t op, args; /* args: the number of arguments */
	struct ilir_type type;
	uint32_t arg; /* index of the first argument in the module's argument pool */
	union {
		float f;            /* CONST_F */
		int64_t i;          /* CONST_I; RAMP: the step from lane to lane */
		ilir_var var;       /* VAR */
		int size;           /* SIZE: enum image_size */
		ilir_buffer buffer; /* LOAD; the arguments are its indices */
	};
};

/* --- buffers --- */

/* Kinds of buffers besides those of the image: what a kernel allocates, and what nothing uses any more. */
enum { ILIR_REGISTER = IMAGE_BUFFER_KINDS, ILIR_UNUSED };

/* A dimension of a buffer.  Its name relates loops to it. */
struct ilir_dim {
	int name;               /* index into the module's dimension names */
	enum image_size rows;   /* IMAGE_ONE: `extent` elements; else as many as that size (+ extent, for the begin arrays) */
	int64_t extent, padded; /* padded >= extent elements are allocated; the others hold no result */
};

struct ilir_buffer_decl {
	const char *name;
	int kind;              /* enum image_buffer_kind or ILIR_REGISTER */
	enum ilir_dtype dtype; /* INDEX: registers only */
	int which;             /* as in image_buffer; WEIGHT: the parameter (the first one when packed) */
	int rank;
	struct ilir_dim dim[ILIR_MAX_RANK];
	const struct image_recipe *recipe; /* layout of a packed weight; NULL = row-major, not packed */
	/* STATE: row -1 - r is row r of this weight, whose rows are like its own; and the array of the rows to read, by node.
	 * None = it has no such rows. */
	ilir_buffer table, read_row;
	/* REGISTER: kept in memory, because more are live than the machine has, or because a loop over rows that is not
	 * unrolled selects its elements. */
	bool parked;
	bool matrix; /* REGISTER: a matrix register of the machine, [rows, words]; see ILIR_MATRIX */
};

/* The traits of a buffer's kind; NULL where the image has no such kind, and so no place for the buffer. */
static inline const struct image_buffer_traits *ilir_traits_of(const struct ilir_buffer_decl *b)
{
	return b->kind < IMAGE_BUFFER_KINDS ? image_traits_of((enum image_buffer_kind)b->kind) : NULL;
}

/* Whether it is an array that kernels of runs write.  Kernels at binding may write weights, too. */
static inline bool ilir_holds_results(const struct ilir_buffer_decl *b)
{
	const struct image_buffer_traits *t = ilir_traits_of(b);
	return t && t->content == IMAGE_HOLDS_RESULTS;
}

/* --- statements --- */

/* SWEPT: the last statement of a kernel, behind loops that each call runs, or the only one of a swept loop; with
 * constant bounds.  The iterations of all swept loops together, those of the innermost one first, are the blocks of a
 * kernel: a call runs those that its image_range names, and none writes what another reads or writes.
 *
 * MATRIX: a serial loop for which the machine's matrix registers (tiles of AMX) are configured.  They have the shapes of
 * the matrix registers that its body allocates, ILIR_MATRICES at most, from before the first iteration until after the
 * last one, where the machine releases them: so none is configured when a kernel returns, and a level ends. */
enum ilir_loop_kind { ILIR_SERIAL, ILIR_SWEPT, ILIR_VECTOR, ILIR_UNROLLED, ILIR_MATRIX, ILIR_LOOP_KINDS };
enum ilir_stmt_kind {
	ILIR_FOR, ILIR_IF, ILIR_LET, ILIR_ALLOC, ILIR_STORE, ILIR_PREFETCH, ILIR_FILL, ILIR_SPILL, ILIR_DOT, ILIR_BARRIER, ILIR_STEP
};

/* Matrix registers that a loop may have, rows of one, and words of 4 bytes in a row. */
enum { ILIR_MATRICES = 8, ILIR_MATRIX_ROWS = 16, ILIR_MATRIX_WORDS = 16 };

struct ilir_stmt {
	enum ilir_stmt_kind kind;
	int line; /* of the module's text that ilir_print_numbered wrote, counted from 1; 0 = it has not */
	struct ilir_stmt *next; /* in the block */
	union {
		struct {
			ilir_var var;
			ilir_expr begin, end; /* var = begin, begin+step, ... while < end */
			int64_t step;
			int dim; /* name of the dimension that the loop runs along */
			enum ilir_loop_kind kind;
			struct ilir_stmt *body;
		} loop; /* FOR */
		struct {
			ilir_expr condition;
			struct ilir_stmt *then, *otherwise;
		} branch; /* IF */
		struct {
			ilir_var var;
			ilir_expr value;
		} let; /* LET: visible until the end of the block */
		ilir_buffer alloc; /* ALLOC: a register, undefined at first, until the end of the block */
		struct {
			ilir_buffer buffer;
			int indices;
			ilir_expr index[ILIR_MAX_RANK], value;
		} store; /* STORE */
		struct {
			ilir_expr load; /* from an address that is used soon */
			bool writes;	/* a store to it follows: no other cache keeps the line */
		} prefetch; /* PREFETCH: no effect */
		struct {
			ilir_buffer matrix;
			/* The elements of its first and of its last row, as loads of vectors that differ by one index; the rows
			 * between them are as far apart from each other. */
			ilir_expr first, last;
		} rows; /* FILL: the matrix register gets them; SPILL: they get what it holds, and are a register */
		struct {
			enum ilir_op op; /* DOT4 or DOT_BF16 */
			ilir_buffer sum, a, b;
		} dot; /* DOT: of DOT4 sum[m, n] = dot4(a[m, k], b[k, n], sum[m, n]) for all k; of DOT_BF16 sum[m, n] is of f32, and
			* the products for all k are added to it as add_bf16_block of base/convert.h says */
		struct {
			const char *name;
			int group;	      /* as in struct ilir_kernel */
			ilir_expr begin, end; /* values of the variables begin and end in the body */
			unsigned cases; /* a mask: the body runs for each range of rows in begin..end
					   whose nodes are of these cases; 0 = for all of begin..end */
			int sort; /* the number + 1 of a sort: the body runs over the positions of begin..end in it,
				     or of the edges of these nodes; 0 = none */
			bool apart; /* it reads what the steps before it store of all nodes */
			int call;   /* the number + 1 of the call that it makes in place of a body; 0 = none */
			struct ilir_stmt *body;
		} step; /* STEP: a unit of execution; becomes a kernel */
	};
};

/* --- the module --- */

struct ilir_kernel {
	const char *name;
	int line; /* as in struct ilir_stmt */
	enum image_domain domain;
	struct ilir_stmt *body;
	int group;	 /* of the plan, counted from 1; 0 = all groups of a body, or unknown */
	int first, last; /* of a scan: as in struct image_step */
	int part, parts; /* this is kernel `part`, counted from 1, of `parts` successive ones that a group
			    became; 0, 0 = the group is one kernel */
	unsigned cases;	 /* as in a step */
	int sort;	 /* likewise */
	bool apart;	 /* likewise */
	int call;	 /* likewise; its body is empty */
};

/* What a call of another target reads and writes, row by row. */
struct ilir_operand {
	ilir_buffer buffer;
	bool writes;
};

struct ilir_call {
	const char *name;
	int operands;
	const struct ilir_operand *operand;
};

struct ilir_var_decl {
	const char *name; /* unique in the module */
	struct ilir_type type;
};

struct ilir_module {
	struct arena *arena;
	const char *name;
	VEC(struct ilir_node) nodes;     /* nodes.at[0] unused */
	VEC(ilir_expr) args;
	VEC(struct ilir_var_decl) vars;  /* [0] unused, [1] begin, [2] end */
	VEC(struct ilir_buffer_decl) buffers; /* [0] unused */
	VEC(const char *) dims;          /* names of dimensions */
	VEC(struct image_sort) sorts;    /* that buffers and steps refer to */
	VEC(struct ilir_call) calls;     /* that steps make */
	VEC(struct ilir_kernel) kernels;
	struct map names; /* name of a variable or buffer -> the suffix to try next */
	uint32_t *table;  /* hash table of nodes, for hash-consing */
	size_t table_size;
	struct ilir_tables **tables; /* of index_range.c, reused by every walk over accesses */
};

static const ilir_var ilir_begin = {1}, ilir_end = {2};

void ilir_init(struct ilir_module *, struct arena *, const char *name);

static inline const struct ilir_node *ilir_at(const struct ilir_module *m, ilir_expr e)
{
	return &m->nodes.at[e.i];
}
static inline ilir_expr ilir_arg(const struct ilir_module *m, ilir_expr e, int i)
{
	return m->args.at[m->nodes.at[e.i].arg + i];
}
static inline struct ilir_type ilir_type_of(const struct ilir_module *m, ilir_expr e)
{
	return m->nodes.at[e.i].type;
}
/* What is widened: the load of narrow integers of which an expression is the i32; else the expression itself. */
static inline ilir_expr ilir_widened(const struct ilir_module *m, ilir_expr e)
{
	const struct ilir_node *n = ilir_at(m, e);
	ilir_expr load = n->op == ILIR_TO_I32 ? ilir_arg(m, e, 0) : e;
	enum ilir_dtype type = ilir_type_of(m, load).dtype;
	bool narrow = type == ILIR_U8 || type == ILIR_I8 || type == ILIR_I16;
	return ilir_at(m, load)->op == ILIR_LOAD && narrow ? load : e;
}
static inline struct ilir_buffer_decl *ilir_buffer_at(const struct ilir_module *m, ilir_buffer b)
{
	return &m->buffers.at[b.i];
}
/* Size of an element in memory [bytes]. */
static inline int ilir_bytes(enum ilir_dtype d)
{
	return d == ILIR_INDEX ? 8 : dtype_traits_of((enum dtype)d)->bytes;
}
static inline bool ilir_is_const(const struct ilir_module *m, ilir_expr e, int64_t value)
{
	return m->nodes.at[e.i].op == ILIR_CONST_I && m->nodes.at[e.i].i == value;
}

/* --- constructors (construct.c, construct_statements.c) ---
 *
 * They fold index arithmetic on constants, and never float arithmetic. */

ilir_expr ilir_float(struct ilir_module *, float);
ilir_expr ilir_index(struct ilir_module *, int64_t);
ilir_expr ilir_i32(struct ilir_module *, int32_t);
ilir_expr ilir_i64(struct ilir_module *, int64_t);
ilir_expr ilir_bool(struct ilir_module *, bool);
ilir_expr ilir_var_ref(struct ilir_module *, ilir_var);
ilir_expr ilir_size(struct ilir_module *, enum image_size);
ilir_expr ilir_inferred(struct ilir_module *);
ilir_expr ilir_load(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n);
/* An element of an array of i32, converted to an index. */
ilir_expr ilir_load_index(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n);
/* The load that an index was converted from; none if it was not loaded. */
ilir_expr ilir_loaded_index(const struct ilir_module *, ilir_expr);
/* Operators by arity, but for SPREAD ones, which ilir_spread makes. */
ilir_expr ilir_unary(struct ilir_module *, enum ilir_op, ilir_expr);
ilir_expr ilir_binary(struct ilir_module *, enum ilir_op, ilir_expr, ilir_expr);
ilir_expr ilir_ternary(struct ilir_module *, enum ilir_op, ilir_expr, ilir_expr, ilir_expr);
ilir_expr ilir_spread(struct ilir_module *, enum ilir_op, ilir_expr, int lanes);
ilir_expr ilir_ramp(struct ilir_module *, ilir_expr, int lanes, int64_t step);
/* Elements `first`, `first + step`, ... of a row of which a has the first lanes, and b those from the `apart`-th on. */
ilir_expr ilir_splice(struct ilir_module *, ilir_expr a, ilir_expr b, int64_t first, int64_t step, int64_t apart);
/* The lanes begin, ... end - 1 of a, the others of b. */
ilir_expr ilir_keep(struct ilir_module *, ilir_expr a, ilir_expr b, int64_t begin, int64_t end);
/* Of these two: where lane t is among the lanes of a followed by those of b. */
int ilir_paired_lane(const struct ilir_module *, ilir_expr, int t);
/* A copy of `like` with other arguments. */
ilir_expr ilir_with_args(struct ilir_module *, ilir_expr like, const ilir_expr *args);

/* A name that is already taken gets a suffix. */
ilir_var ilir_new_var(struct ilir_module *, const char *name, struct ilir_type);
ilir_buffer ilir_new_buffer(struct ilir_module *, struct ilir_buffer_decl);
int ilir_dim_name(struct ilir_module *, const char *name);

struct ilir_stmt *ilir_for(struct ilir_module *, ilir_var, ilir_expr begin, ilir_expr end, int64_t step, int dim,
			   enum ilir_loop_kind, struct ilir_stmt *body);
struct ilir_stmt *ilir_if(struct ilir_module *, ilir_expr, struct ilir_stmt *then, struct ilir_stmt *otherwise);
struct ilir_stmt *ilir_let(struct ilir_module *, ilir_var, ilir_expr);
struct ilir_stmt *ilir_alloc(struct ilir_module *, ilir_buffer);
struct ilir_stmt *ilir_store(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n, ilir_expr value);
struct ilir_stmt *ilir_prefetch(struct ilir_module *, ilir_expr load, bool writes);
struct ilir_stmt *ilir_fill(struct ilir_module *, ilir_buffer matrix, ilir_expr first, ilir_expr last);
struct ilir_stmt *ilir_spill(struct ilir_module *, ilir_buffer matrix, ilir_expr first, ilir_expr last);
struct ilir_stmt *ilir_dot(struct ilir_module *, enum ilir_op, ilir_buffer sum, ilir_buffer a, ilir_buffer b);
struct ilir_stmt *ilir_barrier(struct ilir_module *);
struct ilir_stmt *ilir_step(struct ilir_module *, const char *name, int group, ilir_expr begin, ilir_expr end,
			    struct ilir_stmt *body);
/* Appends block `b` to block `a` and returns the result; either may be NULL. */
struct ilir_stmt *ilir_append(struct ilir_stmt *a, struct ilir_stmt *b);

const char *ilir_op_spelling(enum ilir_op);
int ilir_op_arity(enum ilir_op);
/* The type of the result; lanes 0 when the operands break the rule, and *problem describes how. */
struct ilir_type ilir_infer_type(const struct ilir_module *, const struct ilir_node *, const ilir_expr *args,
				 const char **problem);

/* --- walkers (walk_loops.c) --- */

/* Rebuilds an expression bottom up: `map` gets each node with mapped arguments, and returns it or a
 * replacement. */
typedef ilir_expr ilir_expr_map(struct ilir_module *, ilir_expr, void *context);
ilir_expr ilir_map_expr(struct ilir_module *, ilir_expr, ilir_expr_map *, void *context);
ilir_expr ilir_substitute(struct ilir_module *, ilir_expr, ilir_var, ilir_expr by);

/* Rebuilds a block.  Expressions are mapped by `expr` (NULL = kept).  Then each statement, whose inner
 * blocks are already rebuilt, is passed to `stmt` (NULL = kept) with next == NULL; `stmt` returns a block
 * to replace it, or NULL to drop it. */
struct ilir_rewrite {
	ilir_expr_map *expr;
	struct ilir_stmt *(*stmt)(struct ilir_module *, struct ilir_stmt *, void *context);
	void *context;
};
struct ilir_stmt *ilir_rewrite_block(struct ilir_module *, const struct ilir_stmt *, const struct ilir_rewrite *);
/* Rebuilds the body of every kernel. */
void ilir_rewrite_module(struct ilir_module *, const struct ilir_rewrite *);

/* `stmt` is called for every statement, outer ones first, and `expr` for every expression in it, once
 * each, arguments first. */
struct ilir_visit {
	void (*stmt)(const struct ilir_module *, const struct ilir_stmt *, void *context);
	void (*expr)(const struct ilir_module *, ilir_expr, void *context);
	void *context;
};
void ilir_visit_block(const struct ilir_module *, const struct ilir_stmt *, const struct ilir_visit *);
void ilir_visit_expr(const struct ilir_module *, ilir_expr, const struct ilir_visit *);
bool ilir_uses_var(const struct ilir_module *, ilir_expr, ilir_var);

/* --- text, checks, meaning --- */

void ilir_print(const struct ilir_module *, struct str *);
/* The same, and numbers kernels and statements by the lines that they begin on. */
void ilir_print_numbered(struct ilir_module *, struct str *);
/* Reads what ilir_print writes.  NULL after diagnostics. */
struct ilir_module *ilir_parse(struct arena *, struct diags *, const char *file, const char *text, size_t length);

/* Properties that a pass establishes and later passes preserve. */
enum ilir_property {
	ILIR_BOUNDED = 1,    /* no INFERRED bound */
	ILIR_IN_BOUNDS = 2,  /* every index whose range is known lies in the padded extent of its dimension */
	ILIR_OUTLINED = 4,   /* no STEP, no BARRIER: a kernel is a step or a part of one; names are unique */
	ILIR_VECTORIZED = 8, /* no VECTOR loop */
	ILIR_UNROLLED_ALL = 16, /* no UNROLLED loop; registers that are not parked are indexed by constants, and vectors of all */
	ILIR_PRIMITIVE = 32,	/* no ILIR_COMPOUND of ilir_ops.def */
	ILIR_RESOLVED = 64	/* no WITHIN */
};
/* Checks types, scopes, ranks, single definitions, and the given properties.  Diagnostics blame `pass`.
 * False after diagnostics. */
bool ilir_verify(const struct ilir_module *, unsigned properties, const char *pass, struct diags *);
/* The number of SCRATCH buffers that kernels write. */
int ilir_stored_intermediates(const struct ilir_module *);

/* Runs one kernel of a verified module.  The frame has one pointer per buffer that is not a register, at
 * ilir_buffer_slot().  Accesses are checked against the padded extents; one out of bounds ends the run
 * with false and a diagnostic. */
struct ilir_interpreter;
struct ilir_interpreter *ilir_interpreter_new(struct arena *, struct ilir_module *);
bool ilir_interpret(struct ilir_interpreter *, int kernel, const struct image_frame *, const struct image_range *,
		    struct diags *);

/* The index of a buffer in the image's buffer table; -1 for registers. */
int ilir_buffer_slot(const struct ilir_module *, ilir_buffer);

/* Whether an expression is a constant index; sets *value if so. */
bool ilir_constant(const struct ilir_module *, ilir_expr, int64_t *value);
/* Splits x + 3 into x and 3, and 3 into none and 3. */
ilir_expr ilir_split_constant(const struct ilir_module *, ilir_expr, int64_t *added);
/* How far b is from a, if that is known: i + 3 from i, and (i + 3) - x from i - x; false if it is not. */
bool ilir_find_distance(const struct ilir_module *, ilir_expr a, ilir_expr b, int64_t *distance);
/* The first buffer of a kind, such as that of the nodes' cases; none if there is none. */
ilir_buffer ilir_find_buffer(const struct ilir_module *, enum image_buffer_kind);
/* The outermost SWEPT loop of a kernel, which is the last statement or alone inside loops that each call runs as a whole;
 * NULL = none. */
const struct ilir_stmt *ilir_swept_loop(const struct ilir_kernel *);
/* The blocks that a block of statements consists of: the iterations of its swept loops; 1 = it has none. */
int64_t ilir_blocks(const struct ilir_module *, const struct ilir_stmt *);
/* Lists the matrix registers that a block allocates, in order, ILIR_MATRICES + 1 at most; returns their number. */
int ilir_list_matrices(const struct ilir_module *, const struct ilir_stmt *, ilir_buffer *list);
/* How many elements apart the rows of a FILL or SPILL lie in memory; 0 = it has one row. */
int64_t ilir_row_distance(const struct ilir_module *, const struct ilir_stmt *);
/* The number of iterations of a loop with constant bounds; 0 for other loops. */
int64_t ilir_trip_count(const struct ilir_module *, const struct ilir_stmt *);
/* Whether a statement is a loop over the rows of a tile, which is not unrolled: its variable selects elements of parked
 * registers, the sums of a row. */
bool ilir_loops_over_rows(const struct ilir_module *, const struct ilir_stmt *);
/* The name of a buffer that makes the order of a loop's iterations matter: two of them write one element,
 * or one reads what another wrote.  NULL = none. */
const char *ilir_iterations_clash(const struct ilir_module *, const struct ilir_stmt *);
/* The same of iterations whose statements alternate: memory of the thread that each stores before it loads it is not its own. */
const char *ilir_interleaving_clash(const struct ilir_module *, const struct ilir_stmt *);
/* The name of a buffer that keeps calls of other blocks from running what stands before the last statement of
 * a kernel again: it is stored to and not of the thread, or the last statement stores what is read.  NULL =
 * none. */
const char *ilir_head_clash(const struct ilir_module *, const struct ilir_kernel *);

/* --- compounds (expand_math.c) --- */

/* Whether ilir_ops.def lists the operator as ILIR_COMPOUND. */
bool ilir_is_compound(enum ilir_op);
/* Writes a compound in basic arithmetic, which defines its meaning; returns any other expression
 * unchanged. */
ilir_expr ilir_expand_compound(struct ilir_module *, ilir_expr);

/* --- ranges of index expressions (index_range.c) --- */

/* low <= value <= high; INT64_MIN and INT64_MAX mean no bound. */
struct ilir_range {
	int64_t low, high;
};

static inline void ilir_widen(struct ilir_range *r, struct ilir_range by)
{
	r->low = by.low < r->low ? by.low : r->low;
	r->high = by.high > r->high ? by.high : r->high;
}

/* Known ranges of variables and of expressions, by their ids; NULL = none is known. */
struct ilir_known {
	const struct ilir_range *of_var, *of_expr;
};
/* Computes the range of an index expression (of all lanes of a vector), perhaps open on either side; true
 * when both sides are bounded. */
bool ilir_range_of(const struct ilir_module *, ilir_expr, const struct ilir_known *, struct ilir_range *range);

/* A load or a store, with the ranges that the loops, lets and conditions around it imply. */
struct ilir_access {
	const struct ilir_stmt *stmt; /* the store, or the statement that contains the load */
	ilir_expr load;               /* none: a store */
	ilir_buffer buffer;
	int indices;
	const ilir_expr *index; /* valid during the call */
	const struct ilir_known *known; /* covers the nodes that the module has at the call */
};
/* Whether it only asks for the line, and has no effect. */
static inline bool ilir_is_prefetch(const struct ilir_access *a)
{
	return a->load.i && a->stmt->kind == ILIR_PREFETCH && a->stmt->prefetch.load.i == a->load.i;
}

/* Visits every access of a block but for those in branches whose condition cannot hold. */
typedef void ilir_access_visit(const struct ilir_module *, const struct ilir_access *, void *context);
void ilir_visit_accesses(const struct ilir_module *, const struct ilir_stmt *, ilir_access_visit *, void *context);

#endif
