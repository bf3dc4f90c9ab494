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

/* What a value is: of a type that elements have in memory, or an index of 64 bits, which only registers hold. */
enum ilir_dtype {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) ILIR_##name = DTYPE_##name,
#include "base/dtype.def"
	ILIR_INDEX,
	ILIR_DTYPES
};
/* A buffer has a dimension for each variable of a value, or for each dimension of a packed weight. */
enum { ILIR_MAX_LANES = 16, ILIR_MAX_RANK = 2 * TENSOR_MAX_RANK };
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
	uint8_t op, args; /* args: the number of them */
	struct ilir_type type;
	uint32_t arg; /* where the arguments begin in the module's argument pool */
	union {
		float f;            /* CONST_F */
		int64_t i;          /* CONST_I */
		ilir_var var;       /* VAR */
		int size;           /* SIZE: enum image_size */
		ilir_buffer buffer; /* LOAD; the arguments are its indices */
	};
};

/* --- buffers --- */

/* Kinds: those of the image, and these, which no image has. */
enum { ILIR_REGISTER = IMAGE_MEMBER_LIST + 1, ILIR_UNUSED };

/* A dimension of a buffer: named, so that loops can be related to it. */
struct ilir_dim {
	int name;               /* in the module's dimension names */
	enum image_size rows;   /* IMAGE_ONE: `extent` elements; else as many as that size (+ extent, for the begin arrays) */
	int64_t extent, padded; /* padded >= extent: what is allocated; what lies between holds no result */
};

/* What a packed weight holds; NULL in the buffer = the parameter itself, row-major. */
struct ilir_buffer_decl {
	const char *name;
	int kind;              /* enum image_buffer_kind or ILIR_REGISTER */
	enum ilir_dtype dtype; /* INDEX: registers only */
	int which;             /* as in image_buffer; WEIGHT: the parameter (first one, when packed) */
	int rank;
	struct ilir_dim dim[ILIR_MAX_RANK];
	const struct image_recipe *recipe;
	bool parked; /* REGISTER: rests in memory, because more are alive than the machine has */
};

/* --- statements --- */

/* SWEPT: the one statement of a kernel, between constants; its turns are the blocks of columns that a call
 * names (image_range), and share nothing that they write. */
enum ilir_loop_kind { ILIR_SERIAL, ILIR_SWEPT, ILIR_VECTOR, ILIR_UNROLLED };
enum ilir_stmt_kind {
	ILIR_FOR, ILIR_IF, ILIR_LET, ILIR_ALLOC, ILIR_STORE, ILIR_PREFETCH, ILIR_BARRIER, ILIR_STEP
};

struct ilir_stmt {
	enum ilir_stmt_kind kind;
	struct ilir_stmt *next; /* the next one in the block */
	union {
		struct {
			ilir_var var;
			ilir_expr begin, end; /* var = begin, begin+step, ... while < end */
			int64_t step;
			int dim; /* the dimension it walks along */
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
		} let; /* LET: until the end of the block */
		ilir_buffer alloc; /* ALLOC: a register, until the end of the block; its content is undefined */
		struct {
			ilir_buffer buffer;
			int indices;
			ilir_expr index[ILIR_MAX_RANK], value;
		} store; /* STORE */
		ilir_expr prefetch; /* PREFETCH: a load from memory, of which the place will soon be used; does nothing */
		struct {
			const char *name;
			int group;	      /* as of a kernel */
			ilir_expr begin, end; /* what the variables begin and end stand for inside */
			unsigned cases; /* a mask: the rows are those of nodes of these cases, in as many ranges as they
					   make; 0 = all of begin..end */
			struct ilir_stmt *body;
		} step; /* STEP: a unit of execution; becomes a kernel */
	};
};

/* --- the module --- */

struct ilir_kernel {
	const char *name;
	enum image_domain domain;
	struct ilir_stmt *body;
	int group;	 /* of the plan, counted from 1; 0 = all of a body, or not known */
	int part, parts; /* the first of two is 1, 2; 0, 0 = the whole group.  Parts of a group follow each other. */
	unsigned cases;	 /* as of a step */
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
	VEC(struct ilir_kernel) kernels;
	struct map names; /* of variables and buffers -> the suffix to try next */
	uint32_t *table;  /* hash of nodes */
	size_t table_size;
	struct ilir_tables *
	    *tables; /* index_range.c: what one walk over a part of the module leaves to the next */
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
static inline struct ilir_buffer_decl *ilir_buffer_at(const struct ilir_module *m, ilir_buffer b)
{
	return &m->buffers.at[b.i];
}
/* Bytes of an element in memory. */
static inline int ilir_bytes(enum ilir_dtype d)
{
	return d == ILIR_INDEX ? 8 : dtype_traits_of((enum dtype)d)->bytes;
}
static inline bool ilir_is_const(const struct ilir_module *m, ilir_expr e, int64_t value)
{
	return m->nodes.at[e.i].op == ILIR_CONST_I && m->nodes.at[e.i].i == value;
}

/* --- constructors (construct.c): index arithmetic on constants is folded, float arithmetic never --- */

ilir_expr ilir_float(struct ilir_module *, float);
ilir_expr ilir_index(struct ilir_module *, int64_t);
ilir_expr ilir_i32(struct ilir_module *, int32_t);
ilir_expr ilir_i64(struct ilir_module *, int64_t);
ilir_expr ilir_bool(struct ilir_module *, bool);
ilir_expr ilir_var_ref(struct ilir_module *, ilir_var);
ilir_expr ilir_size(struct ilir_module *, enum image_size);
ilir_expr ilir_inferred(struct ilir_module *);
ilir_expr ilir_load(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n);
/* What an array of i32 has there, as an index. */
ilir_expr ilir_load_index(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n);
/* The load that an index was read by; none: it was not. */
ilir_expr ilir_loaded_index(const struct ilir_module *, ilir_expr);
/* Any op with a fixed arity other than 0; SPREAD ops by ilir_spread. */
ilir_expr ilir_unary(struct ilir_module *, enum ilir_op, ilir_expr);
ilir_expr ilir_binary(struct ilir_module *, enum ilir_op, ilir_expr, ilir_expr);
ilir_expr ilir_ternary(struct ilir_module *, enum ilir_op, ilir_expr, ilir_expr, ilir_expr);
ilir_expr ilir_spread(struct ilir_module *, enum ilir_op, ilir_expr, int lanes);
/* The same op, buffer and constant as `like` with other arguments. */
ilir_expr ilir_with_args(struct ilir_module *, ilir_expr like, const ilir_expr *args);

/* New names get a suffix when they are taken. */
ilir_var ilir_new_var(struct ilir_module *, const char *name, struct ilir_type);
ilir_buffer ilir_new_buffer(struct ilir_module *, struct ilir_buffer_decl);
int ilir_dim_name(struct ilir_module *, const char *name);

struct ilir_stmt *ilir_for(struct ilir_module *, ilir_var, ilir_expr begin, ilir_expr end, int64_t step, int dim,
			   enum ilir_loop_kind, struct ilir_stmt *body);
struct ilir_stmt *ilir_if(struct ilir_module *, ilir_expr, struct ilir_stmt *then, struct ilir_stmt *otherwise);
struct ilir_stmt *ilir_let(struct ilir_module *, ilir_var, ilir_expr);
struct ilir_stmt *ilir_alloc(struct ilir_module *, ilir_buffer);
struct ilir_stmt *ilir_store(struct ilir_module *, ilir_buffer, const ilir_expr *index, int n, ilir_expr value);
struct ilir_stmt *ilir_prefetch(struct ilir_module *, ilir_expr load);
struct ilir_stmt *ilir_barrier(struct ilir_module *);
struct ilir_stmt *ilir_step(struct ilir_module *, const char *name, int group, ilir_expr begin, ilir_expr end,
			    struct ilir_stmt *body);
/* `b` after the last statement of `a`; either may be NULL. */
struct ilir_stmt *ilir_append(struct ilir_stmt *a, struct ilir_stmt *b);

const char *ilir_op_spelling(enum ilir_op);
int ilir_op_arity(enum ilir_op);
/* The result type, or lanes 0 when the operands break the rule (why: in *problem). */
struct ilir_type ilir_infer_type(const struct ilir_module *, const struct ilir_node *, const ilir_expr *args,
				 const char **problem);

/* --- walkers (walk_loops.c) --- */

/* Rebuilds an expression bottom up: `map` gets each node with its arguments already mapped and returns it or another. */
typedef ilir_expr ilir_expr_map(struct ilir_module *, ilir_expr, void *context);
ilir_expr ilir_map_expr(struct ilir_module *, ilir_expr, ilir_expr_map *, void *context);
ilir_expr ilir_substitute(struct ilir_module *, ilir_expr, ilir_var, ilir_expr by);

/* Rebuilds a block: expressions through `expr` (NULL = kept), then each statement, its blocks already rebuilt, through
 * `stmt` (NULL = kept), which gets it alone (next == NULL) and returns a block, NULL to drop it. */
struct ilir_rewrite {
	ilir_expr_map *expr;
	struct ilir_stmt *(*stmt)(struct ilir_module *, struct ilir_stmt *, void *context);
	void *context;
};
struct ilir_stmt *ilir_rewrite_block(struct ilir_module *, const struct ilir_stmt *, const struct ilir_rewrite *);
/* The same over every kernel. */
void ilir_rewrite_module(struct ilir_module *, const struct ilir_rewrite *);

/* Calls for every statement, outer ones first, and for every expression that stands in it (each once, arguments first). */
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
/* Reads what ilir_print writes.  NULL after diagnostics.  Recipes of packed weights are part of the text. */
struct ilir_module *ilir_parse(struct arena *, struct diags *, const char *file, const char *text, size_t length);

/* What a pass establishes and later passes must keep; the verifier checks those that are given. */
enum ilir_property {
	ILIR_BOUNDED = 1,   /* no INFERRED bound */
	ILIR_IN_BOUNDS = 2, /* every index that can be bounded lies in the padded extent of its dimension */
	ILIR_OUTLINED =
	    4, /* no STEP, no BARRIER: each kernel is a step, or a part of one, with a name of its own */
	ILIR_VECTORISED = 8,	/* no VECTOR loop */
	ILIR_UNROLLED_ALL = 16, /* no UNROLLED loop; registers are indexed by constants */
	ILIR_PRIMITIVE = 32	/* no compound of ilir_ops.def */
};
/* Types, scopes, ranks, single definition, and the properties.  `pass` names who is to blame.  False after
 * diagnostics. */
bool ilir_verify(const struct ilir_module *, unsigned properties, const char *pass, struct diags *);
/* Stores to intermediates: the number of SCRATCH buffers that a kernel writes. */
int ilir_stored_intermediates(const struct ilir_module *);

/* Runs one kernel of a verified module.  The pointer table has one entry per buffer that is not a register, at
 * ilir_buffer_slot().  Every access is checked against the padded extents; a fault aborts the run with false. */
struct ilir_interpreter;
struct ilir_interpreter *ilir_interpreter_new(struct arena *, struct ilir_module *);
bool ilir_interpret(struct ilir_interpreter *, int kernel, const struct image_frame *, const struct image_range *,
		    struct diags *);

/* Where a buffer stands in the image's buffer table; -1 for registers. */
int ilir_buffer_slot(const struct ilir_module *, ilir_buffer);

/* The buffer of the nodes' cases; none = they have none. */
ilir_buffer ilir_case_buffer(const struct ilir_module *);
/* The loop that calls sweep over; NULL = none. */
const struct ilir_stmt *ilir_swept_loop(const struct ilir_kernel *);
/* How many turns a loop between constants makes; 0 = it is none. */
int64_t ilir_turns(const struct ilir_module *, const struct ilir_stmt *);
/* A buffer through which the turns of a loop depend on their order: two of them write one element, or one
 * reads what another wrote.  NULL = none. */
const char *ilir_turns_clash(const struct ilir_module *, const struct ilir_stmt *);

/* --- compounds (expand_math.c) --- */

/* Whether ilir_ops.def has it as a compound. */
bool ilir_is_compound(enum ilir_op);
/* A compound of f32, scalar or vector, in basic arithmetic: its meaning.  Any other operator as it is. */
ilir_expr ilir_expand_compound(struct ilir_module *, ilir_expr);

/* --- ranges of index expressions (index_range.c) --- */

/* low <= value <= high; INT64_MIN and INT64_MAX stand for no bound. */
struct ilir_range {
	int64_t low, high;
};

static inline void ilir_widen(struct ilir_range *r, struct ilir_range by)
{
	r->low = by.low < r->low ? by.low : r->low;
	r->high = by.high > r->high ? by.high : r->high;
}

/* What is known of variables and of expressions, by their ids; NULL = nothing of any. */
struct ilir_known {
	const struct ilir_range *of_var, *of_expr;
};
/* The range of an index expression (of all lanes of a vector).  Always sets *range, possibly with one side open; true when
 * both are bounded. */
bool ilir_range_of(const struct ilir_module *, ilir_expr, const struct ilir_known *, struct ilir_range *range);

/* A load or a store, with what the loops, lets and conditions around it say of the variables. */
struct ilir_access {
	const struct ilir_stmt *stmt; /* the store, or the statement that the load stands in */
	ilir_expr load;               /* none: the store itself */
	ilir_buffer buffer;
	int indices;
	const ilir_expr *index; /* valid during the call */
	const struct ilir_known *known; /* of the nodes that the module has at the call */
};
/* Calls for every access of a block that can happen: sides of a branch whose condition cannot hold are left out. */
typedef void ilir_access_visit(const struct ilir_module *, const struct ilir_access *, void *context);
void ilir_visit_accesses(const struct ilir_module *, const struct ilir_stmt *, ilir_access_visit *, void *context);

#endif
