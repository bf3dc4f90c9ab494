/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The sub-operator IR: a body is a list of sub-operators on tensors with named index variables, and the node of the
 * structure is one of those variables.
 *
 *     %1[n,k]   = assign h[child.0(n), k]
 *     %2[n,i,k] = multiply U[i,k], %1[n,k]
 *     %3[n,i]   = sum_k %2[n,i,k]
 *
 * A value has dimensions by position; a use names them (so a use may rename: the bounds must agree).  Values are
 * hash-consed: two that are computed alike are one. */
#ifndef ESPALIER_SUBOP_SUBOP_H
#define ESPALIER_SUBOP_SUBOP_H

#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "image/image.h"
#include "ra/ra.h"
#include "vta/vta_generate.h"

/* The most variables of a value: its axes, those of what it is multiplied with, leading dimensions. */
enum { SUB_MAX_VARS = 2 * TENSOR_MAX_RANK, SUB_MAX_ARITY = 3 };

/* The elements of a vector may be read so many elements apart in memory: it takes as many loads of vectors. */
enum { SUB_LONGEST_STEP = 4 };

enum sub_op {
#define SUB_OP(name, spelling, arity, class, weight, price) SUB_##name,
#include "subop/sub_ops.def"
	SUB_OPS
};

enum sub_class {
	SUB_SOURCE,
	SUB_UNARY,
	SUB_BINARY,
	SUB_REDUCE,
	SUB_MOVE,
	SUB_TERNARY,
	SUB_CONTRACTION,
	SUB_GATHERING
};
/* What types an operator takes and gives: the column TYPES of sub_ops.def. */
enum sub_types {
	SUB_FLOAT,
	SUB_NUMBER,
	SUB_INTEGER,
	SUB_WORD,
	SUB_BITS,
	SUB_WORDS,
	SUB_COMPARE,
	SUB_LOGIC,
	SUB_SELECTS,
	SUB_SAME,
	SUB_CASTS
};
enum sub_price { SUB_CHEAP, SUB_EXPENSIVE };

/* A row of sub_ops.def. */
struct sub_traits {
	const char *spelling;
	int arity;
	enum sub_class class;
	int weight;
	enum sub_price price;
	enum sub_types types;
	enum sub_op combine; /* REDUCE, CONTRACTION: joins what is reduced so far with the next element */
	double neutral;	     /* REDUCE: the value of no elements */
};

/* Index sets.  A value's variables stand in this order of their sets; those of DIM are its dimensions, the
 * others its leading dimensions. */
enum sub_set {
	SUB_NODE,   /* the nodes that the body runs over */
	SUB_INPUT,  /* the inputs of the minibatch */
	SUB_ROW,    /* the rows of a parameter that is computed at binding: 0 .. extent-1 */
	SUB_EDGE,   /* the edges of the node before it, ragged: to its children or, in a traversal down, to
		       its parents */
	SUB_MEMBER, /* the nodes of the input before it, or of the input of the node before it, ragged */
	SUB_DIM	    /* 0 .. extent-1 */
};

struct sub_var {
	const char *name;
	enum sub_set set;
	int64_t extent; /* DIM, ROW */
	int ordinal;	/* its number among the variables with this extent */
};

typedef struct {
	uint32_t i; /* 0 = none */
} sub_ref;

/* A value with names for its dimensions. */
struct sub_use {
	sub_ref value;
	int vars, var[SUB_MAX_VARS];
};

/* Variables in order. */
struct sub_vars {
	int n, var[SUB_MAX_VARS];
};

/* How the index along a dimension of the argument is computed from a variable of the value. */
enum sub_function {
	SUB_AFFINE,	 /* scale*var + scale2*var2 + offset; without a variable (var -1): offset */
	SUB_CHILD,	 /* the node in child slot `which` of node var */
	SUB_EDGE_CHILD,	 /* the child that edge var leads to */
	SUB_PARENT,	 /* the one parent of node var */
	SUB_EDGE_PARENT, /* the parent that edge var leads to */
	SUB_ROOT,	 /* the root of input var */
	SUB_TOKEN, /* input `which` of node var, or of member var; an input of edges: that of edge var, or of
		    * the edge to the child in slot `slot` of node var */
	SUB_MEMBER_NODE, /* the node of member var */
	SUB_SLOT_EDGE,	 /* the edge to the child in slot `which` of node var */
	SUB_STEP, /* of the step that a body of a scan is at, counted as they run: scale*step + offset */
	SUB_DIGIT /* of dimensions: (scale*var + scale2*var2 + offset) / divisor % modulus, of numbers that
		     are not negative; modulus 0: nothing is taken away */
};

/* Two variables stand in the order of the value's own.  scale2 = 0: there is no second one. */
struct sub_map {
	enum sub_function function;
	int which, var, var2, slot;
	int64_t scale, scale2, offset; /* AFFINE and DIGIT; STEP, without scale2 */
	int64_t divisor, modulus; /* DIGIT */
};

struct sub_value {
	enum sub_op op;
	enum dtype dtype; /* of its elements: f32, i32, i64 or bool */
	int args;
	struct sub_use arg[SUB_MAX_ARITY];
	int vars, var[SUB_MAX_VARS]; /* the output's index variables */
	double constant;             /* CONST */
	int which;		     /* PARAM, VECTOR, STATE: its number in the program's list */
	struct sub_vars
	    reduced; /* GATHERING: the dimension that is gathered; REDUCE, CONTRACTION: what is reduced, the
			last variable the fastest: one of edges or members, or any number of dimensions */
	int axis;                    /* COND: position in var */
	const struct sub_map *map; /* ASSIGN: one per dimension of the argument.  The maps of a value that was
				      added belong to the program, which keeps equal lists once. */
	bool fills;  /* ASSIGN: an affine map may leave the argument, which reads as `fill` there */
	double fill;
};

enum sub_target { SUB_TO_STATE, SUB_TO_OUTPUT, SUB_TO_PARAM, SUB_TO_INPUT };

/* A result of a body. */
struct sub_store {
	enum sub_target to;
	int which;
	struct sub_use value; /* with the names of the target's dimensions after its leading ones; the first
				 dimension of a parameter is the row */
	bool stepped; /* to a state of a scan: the value is that of one step, scale*step + offset along the
			 first dimension of the target */
	int64_t scale, offset;
};

enum sub_domain {
	SUB_LEAF,
	SUB_INNER,
	SUB_TOP,   /* nodes without parents: a traversal down begins with them */
	SUB_BELOW, /* nodes with parents, in a traversal down */
	SUB_EVERY_NODE,
	SUB_EVERY_INPUT,
	SUB_AHEAD,	 /* every node, before the recursion of the body's traversal */
	SUB_AHEAD_INNER, /* every node with children, likewise */
	SUB_FIRST_STEP,	 /* every node, at the first step of a scan */
	SUB_NEXT_STEPS,	 /* every node, at each further step of a scan, one after the other */
	SUB_AT_BINDING	 /* when weights are bound: over the rows of one folded parameter, or once when it has
			    none */
};

struct sub_body {
	const char *name;
	enum sub_domain domain;
	unsigned cases; /* LEAF, INNER: a mask of the program's cases; 0 = all of the domain */
	int traversal;	/* the one that the body belongs to; traversals run in the order of their numbers */
	int call; /* AHEAD: the number + 1 of the call that computes its rows in place of values; 0 = none, and it has stores */
	VEC(struct sub_store) stores;
};

/* What a segment of a call's memory holds, and how it lies in a tensor of the program. */
struct sub_operand {
	const char *segment;
	enum image_role role;
	int which; /* of an input or output of the call the number of an input of the program, of a constant that of a parameter */
	struct vta_activations extent;
	int axis[4]; /* of inputs and outputs: the dimensions of the row that are images, channels, rows and columns; -1 = there is one */
	int zero, planes; /* as in struct image_operand */
};

/* A function that another target computes, for each node: src/split makes them of values. */
struct sub_call {
	const char *name;
	const struct vta_operation *operation;
	int operations;
	const struct sub_operand *operand;
	int operands;
};

struct sub_tensor {
	const char *name;
	enum dtype dtype;		/* in memory; values read from it have the type ra_widened(dtype) */
	int rank, var[TENSOR_MAX_RANK]; /* the canonical variable of each dimension */
	int64_t shape[TENSOR_MAX_RANK];
	int traversal; /* states: the one that computes it */
	bool declared; /* a parameter of which the model says in what products with it are computed: */
	enum precision products;
	float within; /* an input whose elements have at most this magnitude, and are numbers, as runs check; 0 = not
			 known */
	bool folded; /* a parameter that a body at binding computes; these come after those of the model */
	bool derived; /* a state that is computed of the node's other states, for its parents alone; these come
			 after those of the model */
};

struct sub_input {
	const char *name;
	bool token;   /* an i32 that selects rows, or distinguishes cases */
	bool on_edge; /* a row per edge: a vector's value has the edge as its second variable */
	struct sub_tensor row; /* of a node or edge; that of a token is an i32 scalar */
	bool hoisted; /* a vector that a body ahead of the recursion computes; these come after those of the
			 model */
};

struct sub_output {
	struct sub_tensor row;
	bool at_root;
};

struct sub_traversal {
	bool down; /* parents before children, else children before parents */
	int64_t steps; /* of a scan, which has them in each node; 0 = it is none */
};

/* A case as the model names it; nodes of no named case are leaf or inner. */
struct sub_named_case {
	const char *name;
	unsigned cases; /* a mask of the program's cases: itself, or the two that differ in whether there is a
			   parent */
};

/* A new case that a schedule makes of the nodes of another case that meet further conditions. */
struct sub_split {
	const char *base; /* as the model names it */
	int children;     /* -1 = any number */
	VEC(struct image_match) match;
	const char *text; /* as the schedule spells it */
};

struct sub_program {
	struct arena *arena;
	const char *name;
	int children; /* slots of an inner node, -1 = any number */
	bool tree;    /* no node has two parents */
	int64_t stacked; /* rows that one row of the model has become (move/unstack.c); below 2: it is one row */
	VEC(struct sub_var) vars;
	VEC(struct sub_value) values; /* arguments before users; [0] unused */
	VEC(struct sub_tensor) params, states;
	VEC(struct sub_input) inputs;
	VEC(struct sub_output) outputs;
	VEC(struct sub_traversal) traversals;
	VEC(struct sub_call) calls;
	VEC(struct sub_body) bodies; /* of one traversal after those of another; those of outputs are the last */
	VEC(struct image_case) cases;	  /* those of leaves first; every node fits one; may be none */
	VEC(struct sub_named_case) named; /* by enum ra_case: leaf, inner, and those that the model names */
	VEC(struct sub_split) splits;	  /* that made cases which the model does not name */
	int node, input, edge, member;	  /* the variables of leading dimensions */
	uint32_t *hash; /* values by their hash; 0 = free */
	size_t hash_size;
	struct map map_lists; /* the maps of an ASSIGN, as bytes -> index in map_list */
	VEC(const struct sub_map *) map_list;
};

static inline const struct sub_value *sub_at(const struct sub_program *p, sub_ref r)
{
	return &p->values.at[r.i];
}

/* Whether a body runs in a recursion. */
static inline bool sub_is_recursive(const struct sub_body *b)
{
	return b->domain <= SUB_BELOW;
}

static inline bool sub_goes_down(const struct sub_program *p, const struct sub_body *b)
{
	return p->traversals.at[b->traversal].down;
}

/* Whether a body is a call that computes this input. */
bool sub_call_writes(const struct sub_program *, const struct sub_body *, int input);

/* Whether a call reads this input. */
bool sub_calls_read(const struct sub_program *, int input);

/* The number of children that the cases of a body give each of its nodes; -1 = any number. */
int sub_children_of(const struct sub_program *, const struct sub_body *);

/* A copy of a body without its stores. */
static inline struct sub_body sub_body_like(const struct sub_body *b)
{
	return (struct sub_body){
	    .name = b->name, .domain = b->domain, .cases = b->cases, .traversal = b->traversal, .call = b->call};
}

/* A copy of a body whose stores, in the arena, have now[i] for value i. */
struct sub_body sub_map_body(struct arena *, const struct sub_body *, const sub_ref *now);

static inline const struct sub_tensor *sub_store_tensor(const struct sub_program *p, const struct sub_store *s)
{
	return s->to == SUB_TO_OUTPUT  ? &p->outputs.at[s->which].row
	       : s->to == SUB_TO_INPUT ? &p->inputs.at[s->which].row
	       : s->to == SUB_TO_PARAM ? &p->params.at[s->which]
				       : &p->states.at[s->which];
}

/* What a store writes at once: the tensor, or one step of it. */
struct sub_tensor sub_stored_part(const struct sub_program *, const struct sub_store *);

/* Whether a body runs once for each step of a scan. */
static inline bool sub_is_stepped(const struct sub_body *b)
{
	return b->domain == SUB_FIRST_STEP || b->domain == SUB_NEXT_STEPS;
}

/* Whether a state is one of a scan, whose first dimension is its steps. */
static inline bool sub_is_scanned(const struct sub_program *p, int state)
{
	return p->traversals.at[p->states.at[state].traversal].steps;
}

/* Whether the extent of a variable depends on the row before it. */
static inline bool sub_is_ragged(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_EDGE || p->vars.at[var].set == SUB_MEMBER;
}

static inline struct sub_vars sub_one_var(int var)
{
	return (struct sub_vars){1, {var}};
}

/* The position of a variable in a list; -1 = it is not there. */
static inline int sub_position_in(const struct sub_vars *list, int var)
{
	for (int i = 0; i < list->n; i++)
		if (list->var[i] == var)
			return i;
	return -1;
}

/* Whether a reduction is one over edges or members. */
static inline bool sub_reduces_ragged(const struct sub_program *p, const struct sub_value *v)
{
	return v->reduced.n && sub_is_ragged(p, v->reduced.var[0]);
}

/* Whether two variables have one range. */
static inline bool sub_same_range(const struct sub_program *p, int a, int b)
{
	return p->vars.at[a].set == p->vars.at[b].set && p->vars.at[a].extent == p->vars.at[b].extent;
}

/* --- maps and uses --- */

static inline bool sub_is_identity(const struct sub_map *m)
{
	return m->function == SUB_AFFINE && m->var >= 0 && m->scale == 1 && m->offset == 0 && !m->scale2;
}

/* Whether a map is a function of dimensions, not of the structure. */
static inline bool sub_is_arithmetic(const struct sub_map *m)
{
	return m->function == SUB_AFFINE || m->function == SUB_DIGIT;
}

static inline bool sub_map_uses(const struct sub_map *m, int var)
{
	return m->var == var || (m->scale2 && m->var2 == var);
}

static inline bool sub_same_map(const struct sub_map *a, const struct sub_map *b)
{
	return a->function == b->function && a->which == b->which && a->slot == b->slot && a->var == b->var &&
	       a->scale == b->scale && a->offset == b->offset && a->scale2 == b->scale2 &&
	       a->divisor == b->divisor && a->modulus == b->modulus && (!a->scale2 || a->var2 == b->var2);
}

static inline bool sub_use_has(const struct sub_use *u, int var)
{
	for (int i = 0; i < u->vars; i++)
		if (u->var[i] == var)
			return true;
	return false;
}

static inline bool sub_use_has_all(const struct sub_use *u, const struct sub_vars *vars)
{
	for (int i = 0; i < vars->n; i++)
		if (!sub_use_has(u, vars->var[i]))
			return false;
	return true;
}

static inline bool sub_same_use(const struct sub_use *a, const struct sub_use *b)
{
	return a->value.i == b->value.i && a->vars == b->vars &&
	       memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

/* --- building --- */

void sub_init(struct sub_program *, struct arena *, const char *name);
/* Resets the program to empty and keeps its allocated capacity. */
void sub_clear(struct sub_program *);
/* The ordinal-th variable of this extent. */
int sub_dim(struct sub_program *, int64_t extent, int ordinal);
/* The first variable of this extent that is none of n others. */
int sub_other_dim(struct sub_program *, int64_t extent, const int *others, int n);
/* The variable of rows (SUB_ROW) of this extent. */
int sub_row(struct sub_program *, int64_t extent);
/* Copies the kind of structure, the traversals and the cases. */
void sub_copy_structure(struct sub_program *to, const struct sub_program *from);
/* Copies the structure, all variables (numbers unchanged) and all declarations into an empty program. */
void sub_copy_declarations(struct sub_program *to, const struct sub_program *from);
/* Adds a value, or finds an equal one; infers the variables of all but SOURCE and MOVE ops.  None, after a
 * diagnostic unless diags is NULL, if the arguments order their variables in contradictory ways or have too
 * many. */
sub_ref sub_add(struct sub_program *, struct sub_value, struct diags *);
/* Truncates the program to so many values and variables; nothing that stays may use the rest. */
void sub_forget_values_and_vars(struct sub_program *, size_t values, size_t vars);
/* Truncates the program to n values; nothing that stays may use the rest. */
void sub_forget_values(struct sub_program *, size_t n);
/* The value if it was added before, else none. */
sub_ref sub_find_value(struct sub_program *, struct sub_value);

enum { SUB_NAME_BODY = 1, SUB_NAME_CASE = 2, SUB_NAME_TENSOR = 4 /* a state or a parameter */ };
/* The first of NAME, NAME_1, NAME_2 ... that nothing of these kinds has in the program. */
const char *sub_find_free_name(const struct sub_program *, unsigned kinds, const char *name);

/* Sets the variables of a value from its arguments, unless it is a SOURCE or MOVE; false if their orders
 * contradict. */
bool sub_infer_vars(const struct sub_program *, struct sub_value *);
/* Makes an ASSIGN use a copy of its maps in `to`, which can be changed until the value is added; returns
 * `to`. */
struct sub_map *sub_copy_maps(struct sub_value *, struct sub_map *to);
/* Sets the type of a value from its arguments or declaration, unless it is a CONST or CAST; false if the
 * operator does not take arguments of these types. */
bool sub_find_type(const struct sub_program *, struct sub_value *);
/* A use under the value's own names. */
struct sub_use sub_as_is(const struct sub_program *, sub_ref);
/* A use of an argument of `v`, with its variables named as in `u`, a use of `v`. */
struct sub_use sub_rename_use(const struct sub_value *v, const struct sub_use *u, struct sub_use arg);
const struct sub_traits *sub_traits_of(enum sub_op);
/* SUB_OPS as a variable: its users need not be compiled anew when a row is added. */
extern const int sub_op_count;
enum sub_class sub_class_of(enum sub_op);
/* Whether it is a REDUCE or CONTRACTION: loops over variables that the value lacks. */
bool sub_reduces(enum sub_op);
/* Whether matrix registers can compute its sums (ilir/use_matrices.c): of products of bytes, and of blocks of bf16. */
bool sub_fits_matrices(enum sub_op);
/* Writes the variables of the elements that a value reduces: of its argument, or of the product of its last
 * two. */
int sub_reduced_vars(const struct sub_program *, const struct sub_value *, int *var);
/* Whether patterns may match its two arguments in either order; smax then may give the other one of two
 * zeros. */
bool sub_commutes(enum sub_op);
const char *sub_spelling(enum sub_op);
/* The variable of a COND's argument along the joined axis. */
int sub_joined_var(const struct sub_value *, int argument);
/* The least and the greatest index that a map of DIM or ROW variables reaches, exactly if it is affine; false
 * if it is a function of the structure or they do not fit in 64 bits. */
bool sub_map_range(const struct sub_program *, const struct sub_map *, int64_t *least, int64_t *most);
/* Whether the index that a map computes may be outside of a dimension with this variable. */
bool sub_index_leaves(const struct sub_program *, const struct sub_map *, int var);
/* Brings a map to the one form of those that compute the same, but for the order of its variables. */
void sub_normalize_map(const struct sub_program *, struct sub_map *);
/* Composes a map with the maps of its variables (`first2` NULL: it has no second one) to one map; false if the composition is none.
 * `leaves`: the map may leave its dimension, where a function of the structure must not be applied. */
bool sub_compose_maps(const struct sub_map *second, const struct sub_map *first, const struct sub_map *first2, bool leaves,
		      struct sub_map *out);
/* Whether the i-th map of an ASSIGN may leave its dimension. */
bool sub_map_leaves(const struct sub_program *, const struct sub_value *, int i);
/* --- sizes --- */

/* The number of leading dimensions of a value. */
int sub_leading_dims(const struct sub_program *, sub_ref);
bool sub_has_leading_dim(const struct sub_program *, sub_ref);
/* Whether a value has rows, and so a loop that can store it.  One of edges or members without their row, as
 * rules make of look-ups by tokens of edges, has none: it is computed where it is used. */
bool sub_has_rows(const struct sub_program *, sub_ref);
/* The extent that estimates assume of a loop over edges or members. */
enum { SUB_RAGGED_EXTENT = 2 };
/* Elements in one row. */
double sub_row_elements(const struct sub_program *, const struct sub_value *);
/* Elements that a value reduces for one row. */
double sub_reduced_elements(const struct sub_program *, const struct sub_value *);
/* Elements that a value reduces for one element of its own. */
double sub_reduced_extent(const struct sub_program *, const struct sub_value *);
/* The words of a block of accumulate_f16 or accumulate_bf16_block: the largest divisor of the extent of its last reduced variable that is at
 * most SUB_MOST_BLOCK or SUB_MOST_BF16_BLOCK.  0 = the value has no blocks. */
enum { SUB_MOST_BLOCK = 64, SUB_MOST_BF16_BLOCK = 16 };
int64_t sub_block_of(const struct sub_program *, const struct sub_value *);
/* How often a body computes a row: once, or once for each further step of a scan. */
double sub_runs_per_row(const struct sub_program *, const struct sub_body *);
/* Iterations of the loop over one variable; 0 = as many as there are rows. */
int64_t sub_loop_extent(const struct sub_program *, int var);

/* The values that a body computes or reads, in rising order. */
struct sub_values {
	int n;
	const sub_ref *value;
};
/* Finds them; `seen` has an entry for each value of the program, false before and after. */
struct sub_values sub_find_values(struct arena *, const struct sub_program *, const struct sub_body *,
				  bool *seen);

/* --- programs --- */

/* Which nodes have outputs. */
enum sub_outputs_at { SUB_AT_MODEL /* as the model says */, SUB_AT_ROOT, SUB_AT_EVERY_NODE };
/* The most operators from a result to a source: passes recurse along them, and whoever calls them on a model has a stack
 * for as many (api_guarded_deep). */
enum { SUB_MAX_DEPTH = 16000 };
/* Lowers a model whose symbols have sizes.  False after diagnostics. */
bool sub_lower_model(struct sub_program *, const struct ra_model *, const int64_t *sizes, enum sub_outputs_at,
		     struct diags *);
/* Makes a case of the nodes that a split selects, before the case that they were of, with copies of its
 * bodies.  The program must be as lowered.  Returns why that cannot be, NULL = it was done. */
const char *sub_split_case(struct sub_program *, const struct sub_split *);
/* Why a split cannot be of this case, add a condition on the number of children, or one on the value of an
 * input; NULL = it can. */
const char *sub_check_split_base(const struct sub_program *, const char *base);
const char *sub_check_split_children(const struct sub_program *, const struct sub_split *);
const char *sub_check_split_token(const struct sub_program *, const struct sub_split *, size_t input);
void sub_print(const struct sub_program *, struct str *);
/* Prints the name of a value: of a source its own, of a constant the number, else %N.  Prints maps. */
void sub_print_name(const struct sub_program *, sub_ref, struct str *);
void sub_print_maps(const struct sub_program *, const struct sub_value *assign, struct str *);
/* Prints the variables that a value reduces: _i,j */
void sub_print_reduced(const struct sub_program *, const struct sub_value *, struct str *);
/* Checks all rules of the IR; false after diagnostics. */
bool sub_verify(const struct sub_program *, struct diags *);
/* By value: whether it is a constant, which depends on weights, numbers and indices alone and has no leading
 * dimension.  In the arena of the program. */
bool *sub_find_constants(const struct sub_program *);
/* Whether a value is a constant if its arguments are. */
bool sub_may_be_constant(const struct sub_program *, const struct sub_value *);
/* Whether a value is data movement that depends on the step of a scan. */
bool sub_reads_step(const struct sub_value *);
/* By value: whether it needs a state of this traversal or a later one, or an edge, and so cannot be computed
 * ahead of the traversal.  In the arena of the program. */
bool *sub_find_recursive(const struct sub_program *, int traversal);
/* By value: whether some body that needs it cannot compute it ahead of its traversal.  In the arena of the program. */
bool *sub_find_unhoistable(const struct sub_program *);
/* The first traversal whose states count as unknown to a body: its own, or 0 for outputs. */
int sub_first_unknown_traversal(const struct sub_body *);
/* Marks the values that a body needs; `live` has values.n entries. */
void sub_mark_live(const struct sub_program *, const struct sub_body *, bool *live);
/* By value: how many arguments of values that a body computes, and stores, use it; 0 = no body computes it.  In the
 * arena. */
int *sub_count_uses(const struct sub_program *, struct arena *);
/* Whether a value has the variables of an argument, in their order, and reads it under its own names. */
bool sub_reads_as_is(const struct sub_program *, const struct sub_value *, int arg);

/* --- the oracle --- */

/* A minibatch in any numbering.  The parents of a node have its ascending order. */
struct sub_forest {
	int64_t nodes, inputs;
	const int32_t *child_begin, *children, *root;
	const int32_t *order;    /* nodes, children before parents */
	const void *const *data; /* for each input int32_t[nodes] or float[nodes][elements], or of edges */
	const int32_t *input_begin; /* the first node of each input; may be NULL if nothing reads members */
};

/* Applies an elementwise operator of f32 in binary64; comparisons give 0 or 1. */
double sub_apply_op(enum sub_op, double a, double b, double c);
/* The prime of the field, 2^31 - 1: products of what is below it fit in 64 bits. */
#define SUB_FIELD_PRIME ((1ull << 31) - 1)
/* Applies an elementwise operator of f32 in the field, to elements below the prime; sets `refused` where it has no
 * meaning there, and never clears it. */
uint64_t sub_apply_in_field(enum sub_op, uint64_t a, uint64_t b, uint64_t c, bool *refused);
/* Applies an elementwise operator to integers, or bools; the result has type `to`.  The operator must take integers
 * (sub_takes_integers). */
int64_t sub_apply_to_integers(enum sub_op, enum dtype to, int64_t a, int64_t b, int64_t c);
bool sub_takes_integers(enum sub_op);
/* A number in an integer type: rounded toward zero, 0 if it is a NaN, and the nearest integer of the type if it is out of
 * range, so that infinities are the least and the largest.  In bool: whether it is not zero. */
int64_t sub_convert_number(enum dtype, double);
/* Evaluates in binary64, node by node, value by value, exactly as the text reads.  states[s] has a row per node,
 * outputs[o] a row per node or input; params[p] have the type of the parameter in memory.  Of integers and bool, the eight
 * bytes of an element are an int64_t: sub_integer. */
void sub_evaluate(const struct sub_program *, const struct sub_forest *, const void *const *params,
		  double *const *states, double *const *outputs, struct arena *scratch);

/* How numbers of f32 are computed.  All are held in doubles; integers wrap as their type does in each
 * arithmetic. */
enum sub_arithmetic {
	SUB_BINARY64,
	SUB_BINARY32, /* every operation is rounded to binary32 */
	SUB_FIELD     /* modulo the prime 2^31 - 1: rational functions, exactly; a half is the inverse of 2 */
};
/* Evaluates in another arithmetic.  False, and results are undefined, if an operator or constant has no
 * meaning in the field. */
bool sub_evaluate_in(enum sub_arithmetic, const struct sub_program *, const struct sub_forest *, const void *const *params,
		     double *const *states, double *const *outputs, struct arena *scratch);

static inline int64_t sub_integer(double element)
{
	int64_t i;
	memcpy(&i, &element, sizeof i);
	return i;
}

static inline double sub_element_of(int64_t i)
{
	double element;
	memcpy(&element, &i, sizeof element);
	return element;
}

#endif
