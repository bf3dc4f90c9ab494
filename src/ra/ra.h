/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The recursive API graph: a model as its author wrote it, names resolved and shapes checked, dimensions symbolic.
 *
 * A model has a structure, inputs carried by nodes, parameters, traversals with their states and a body for each case,
 * and outputs.  By construction the graph has the properties that Cortex (Fegade et al. 2021, section 2) asks for: control
 * flow depends on the structure only (P.1: there are no conditionals on values), and children, or parents in a traversal
 * down, are reached only through their states (P.2, P.3: a body cannot see one child's result before it asks for
 * another's).  Of all other nodes of its input a body sees what they carry and states of earlier traversals, which are
 * complete. */
#ifndef ESPALIER_RA_RA_H
#define ESPALIER_RA_RA_H

#include "base/diag.h"
#include "base/precision.h"
#include "base/tensor.h"
#include "base/vec.h"
#include "image/image.h"

/* A dimension: constant + sum of coefficient * symbol. */
enum { RA_DIM_TERMS = 4, RA_MAX_RANK = TENSOR_MAX_RANK };
/* The most variables around a value in index notation: with a node and an edge as many as a sub-operator has. */
enum { RA_MAX_INDICES = 2 * TENSOR_MAX_RANK - 2 };
struct ra_dim {
	int64_t constant;
	int terms;
	struct {
		int32_t symbol; /* ascending */
		int32_t coefficient; /* of at most RA_COEFFICIENT_LIMIT */
	} term[RA_DIM_TERMS];
};

struct ra_shape {
	int rank; /* 0 = scalar */
	struct ra_dim dim[RA_MAX_RANK];
};

typedef struct {
	uint32_t i; /* 0 = none */
} ra_ref;

enum ra_op {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) RA_##name,
#include "ra/ra_ops.def"
	RA_OPS
};

/* A variable of index notation: 0 .. extent - 1. */
struct ra_index {
	const char *name;
	struct ra_dim extent;
	int nest, position; /* the nest that it is of, and its bit in ra_node.free there */
	struct diag_at at;
};

struct ra_indices {
	int n, index[RA_MAX_INDICES]; /* of the model's */
};

/* An index of an element: offset + sum of scale * variable. */
struct ra_index_form {
	int terms;
	struct {
		int32_t index, scale;
	} term[2];
	struct ra_dim offset;
};

struct ra_element {
	struct ra_index_form at[RA_MAX_RANK]; /* by axis of the argument */
	double fill;  /* what is read outside */
	bool written; /* the text says the fill: x[i - 1] else 1 */
	bool reduced; /* the element stands in a reduction, of which the fill is the neutral element */
};

enum { RA_EACH_CHILD = -1 };  /* the child, or the parent, that a sum over all of them is at */
enum { RA_EACH_MEMBER = -1 }; /* the node that a sum over the nodes of an input is at */

/* Fields by op: see the comments in ra_ops.def.  Shapes are those of one node's value: the node is no dimension. */
struct ra_node {
	enum ra_op op;
	ra_ref arg[3];
	enum dtype dtype; /* of its elements: f32, i32, i64 or bool; what is narrower is widened where it is read */
	struct ra_shape shape;
	struct diag_at at;
	uint64_t free; /* by position in their nest: the index variables that the value, then a number, depends on */
	int axis; /* SUM, MAX, MIN, PROD: the reduced axis; CUMSUM: that along which is added; CONCAT: the
		   * joined axis; SLICE: the one of which it is a part; GATHER: the      one along which the
		   * index is a value */
	union {
		double constant; /* CONST */
		int param;       /* PARAM */
		struct { /* INPUT, LOOKUP */
			int input, slot; /* of the edge to that child, or RA_EACH_CHILD; of what nodes carry 0 or RA_EACH_MEMBER */
		};
		struct {
			int state, slot; /* CHILD: slot or RA_EACH_CHILD; PARENT: 0 or RA_EACH_CHILD; STATE: 0 or RA_EACH_MEMBER */
		} state;
		bool members;        /* CHILD_SUM, CHILD_MAX: over the nodes of the input, not over children */
		int8_t order[RA_MAX_RANK]; /* TRANSPOSE: by axis, which one of the argument stands there */
		const struct ra_element *element; /* ELEMENT, GATHER; the form of the axis of a GATHER is 0 */
		const struct ra_indices
		    *indices; /* SUM_OVER, MAX_OVER, MIN_OVER, PROD_OVER: what is reduced; NEST: by axis */
		struct ra_dim begin; /* SLICE: where it begins, its extent is in the shape; ROW: its number;
				      * EXTENT: the dimension */
	};
};

/* RA_NONE: a feed-forward graph.  Its rows have no edges to each other: outputs are computed of the inputs of
 * their own row. It has states and bodies only where it scans: some traversals are then steps inside of each
 * row, the others a body that computes states of the row at once. */
enum ra_structure_kind { RA_SEQUENCE, RA_TREE, RA_DAG, RA_NONE, RA_STRUCTURES };
/* Their words in a text. */
extern const char *const ra_structure_words[RA_STRUCTURES];
/* The bodies of a traversal: of the nodes that it begins with, then of the others; up, these are leaves and inner nodes, and
 * then come those of the cases that the model names, in their order; down, they are roots and all below. */
enum ra_case { RA_LEAF, RA_INNER, RA_CASES, RA_ROOT = RA_LEAF, RA_BELOW = RA_INNER };
enum { RA_BODY_LIMIT = IMAGE_MAX_CASES };

struct ra_structure {
	enum ra_structure_kind kind;
	int children;             /* of an inner node; -1 = any number of at least one; NONE: 0 */
	const char *const *child; /* names of the slots, or NULL */
};

/* A size that a weights file tells, or one that is computed of others: floor(of / divisor). */
struct ra_symbol {
	const char *name; /* of a computed one its text: (H - R)/2 */
	int divisor;	  /* 0 = a weights file tells it */
	struct ra_dim of; /* of symbols that come before it */
};

struct ra_param {
	const char *name;
	enum dtype dtype; /* in memory */
	bool declared;	  /* the model says in what products with it are computed: */
	enum precision products;
	struct ra_shape shape;
	struct diag_at at;
};

struct ra_input {
	const char *name;
	const char *source_name; /* in the file of another format that the model was made of; NULL = `name` */
	enum dtype dtype; /* in memory; of a token i32 */
	bool token; /* declared as an index into a parameter's rows, and no value; i32 numbers are indices and values */
	bool edge;  /* carried by the edges to children, not by nodes */
	double within; /* the largest magnitude of an element, of floats; 0 = none is declared */
	struct ra_shape shape;
	struct diag_at at;
};

/* Leaves or inner nodes of which all this holds; a node is of the first that it fits. */
struct ra_named_case {
	const char *name;
	enum ra_case base;
	int children;			/* so many, -1 = any number */
	VEC(struct image_match) tokens; /* inputs and their values */
	struct diag_at at;
};

/* The line of the text that says it, without the blanks around it. */
struct ra_statement {
	const char *text; /* NULL = there is no text */
	int line;         /* 0 = unknown */
};

/* One walk over all nodes.  It computes the states that belong to it, of the states of neighbours and of those that
 * earlier traversals computed. */
struct ra_traversal {
	bool down; /* parents before children, else children before parents */
	struct ra_dim steps; /* of a scan: a sequence of so many nodes in each row of a model without a
				structure; 0 = it is none */
	struct diag_at at;
};

struct ra_state {
	const char *name;
	int traversal;
	enum dtype dtype; /* f32, i32, i64 or bool */
	struct ra_shape
	    shape; /* in a scan, of one step: others see the states of all steps, along a first axis */
	struct diag_at at;
	ra_ref value[RA_BODY_LIMIT]; /* by body of its traversal; 0 = a case has that of its base */
	struct ra_statement assigned[RA_BODY_LIMIT];
};

/* A name that a body of a text assigns and that is no state. */
struct ra_local {
	const char *name;
	int traversal, body; /* as those of a state's values */
	enum dtype dtype;
	struct ra_shape shape;
	struct diag_at at;
	struct ra_statement assigned;
	ra_ref value; /* only while the graph is made: it may be that nothing needs it */
};

struct ra_output {
	const char *name;
	const char *source_name; /* as that of an input */
	ra_ref value; /* of a graph over STATE, PARAM and constants; without a structure over INPUT, LOOKUP and those */
	bool at_root;
	int labels; /* 0 = none */
	const char *const *label;
	struct diag_at at;
	struct ra_statement computed;
};

/* An operator of the file of another format that the model was made of. */
struct ra_layer {
	const char *op, *name; /* the name may be "" */
};

struct ra_model {
	const char *name;
	const char *file;
	struct ra_structure structure;
	VEC(struct ra_symbol) symbols; /* those that are computed come last */
	VEC(struct ra_index) indices;
	VEC(struct ra_param) params;
	VEC(struct ra_input) inputs;
	VEC(struct ra_named_case) cases;
	VEC(struct ra_traversal) traversals; /* in their order: at least one */
	VEC(struct ra_state) states;	     /* by traversal */
	VEC(struct ra_output) outputs;
	VEC(struct ra_local) locals;	     /* by traversal and body */
	VEC(struct ra_node) nodes; /* arguments before users; nodes.at[0] is unused */
	VEC(struct ra_layer) layers; /* but for constants; none = the model was made of a text, or by calls */
};

static inline const struct ra_node *ra_at(const struct ra_model *m, ra_ref r)
{
	return &m->nodes.at[r.i];
}

/* Whether a node is an element of its first argument, by index notation. */
static inline bool ra_is_element(const struct ra_node *n)
{
	return n->op == RA_ELEMENT || n->op == RA_GATHER;
}

/* Whether the index of an element along an axis is a value. */
static inline bool ra_is_gathered(const struct ra_node *n, int axis)
{
	return n->op == RA_GATHER && n->axis == axis;
}

/* Bodies that a model may have: each case that it names counts, whether or not it has one. */
static inline int ra_bodies(const struct ra_model *m)
{
	return RA_CASES + (int)m->cases.n;
}

/* Whether a traversal has such a body: nodes of a case without one have that of its base. */
static inline bool ra_has_own_body(const struct ra_model *m, int traversal, int which)
{
	for (size_t i = 0; i < m->states.n; i++)
		if (m->states.at[i].traversal == traversal && m->states.at[i].value[which].i)
			return true;
	return false;
}

static inline bool ra_is_scan(const struct ra_traversal *t)
{
	return t->steps.constant || t->steps.terms;
}

/* The shape of a state as other traversals and outputs see it. */
struct ra_shape ra_outer_shape(const struct ra_model *, int state);

static inline bool ra_has_down(const struct ra_model *m)
{
	for (size_t t = 0; t < m->traversals.n; t++)
		if (m->traversals.at[t].down)
			return true;
	return false;
}

/* Reads a model text.  `file` names it in diagnostics.  NULL after diagnostics; as many as make sense are added.
 * The text need not be terminated and may hold any bytes. */
struct ra_model *ra_parse(struct arena *, struct diags *, const char *file, const char *text, size_t length);

/* The same with states that keep locals, which are numbered as in the model of the text alone.  Locals of several
 * bodies of one traversal, of one shape, may be kept in one state; bodies without one assign zeros.  No state or
 * output has its name. */
struct ra_keep {
	const char *state;
	size_t local;
};
struct ra_model *ra_parse_keeping(struct arena *, struct diags *, const char *file, const char *text, size_t length,
				  const struct ra_keep *, size_t n);

/* The canonical text of a model: parses to the same graph.  Functions are expanded. */
void ra_print(const struct ra_model *, struct str *);
/* Whether a text is a name, and no reserved word. */
bool ra_is_name(const char *text);

/* Finds the sizes of the symbols (symbols.n of them, into `sizes`) from the tensors of a weights file.  Every missing
 * or misshapen parameter is reported, then false.  Tensors that the model does not name are reported as well,
 * unless they are integers. */
bool ra_bind(const struct ra_model *, struct diags *, const char *weights_file, const struct tensor_info *tensors,
	     size_t n, int64_t *sizes);

/* As they are written. */
bool ra_dim_equal(const struct ra_dim *, const struct ra_dim *);
bool ra_shape_equal(const struct ra_shape *, const struct ra_shape *);
/* The type in which elements are computed that have this one in memory: f32, i32, i64 or bool. */
enum dtype ra_widened(enum dtype);
/* Whether an input is an integer that rows can be looked up with. */
bool ra_is_index(const struct ra_input *);
/* Index notation: the bits of ra_node.free, which bound the variables of a nest; the number of nests of a model; and
 * whether a node introduces index variables, which are its `indices`. */
enum { RA_MAX_POSITIONS = 64 };
int ra_count_nests(const struct ra_model *);
bool ra_introduces_indices(const struct ra_node *);
/* The number of symbols that a weights file tells. */
size_t ra_given_symbols(const struct ra_model *);
/* The size of another one, once those that it is computed of are known; the nearest one of 32 bits. */
int64_t ra_computed_size(const struct ra_symbol *, const int64_t *sizes);
/* Computes the sizes of the others. */
void ra_compute_sizes(const struct ra_model *, int64_t *sizes);
/* The number 1, whatever the sizes. */
bool ra_dim_is_one(const struct ra_dim *);
/* The value of a dimension once all symbols have sizes. */
int64_t ra_dim_value(const struct ra_dim *, const int64_t *sizes);
/* As text: "D", "4*D", "D + E", "5". */
void ra_dim_print(const struct ra_model *, const struct ra_dim *, struct str *);
void ra_shape_print(const struct ra_model *, const struct ra_shape *, struct str *);

#endif
