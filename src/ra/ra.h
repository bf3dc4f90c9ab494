/* The recursive API graph: a model as its author wrote it, names resolved and shapes checked, dimensions symbolic.
 *
 * A model has a structure, inputs carried by nodes, parameters, states, a body for each case and outputs.  By
 * construction the graph has the properties that Cortex (Fegade et al. 2021, section 2) asks for: control flow depends
 * on the structure only (P.1: there are no conditionals on values), and children are reached only through their
 * states (P.2, P.3: a body cannot see one child's result before it asks for another's). */
#ifndef ESPALIER_RA_RA_H
#define ESPALIER_RA_RA_H

#include "base/diag.h"
#include "base/tensor.h"
#include "base/vec.h"

/* A dimension: constant + sum of coefficient * symbol. */
enum { RA_DIM_TERMS = 4, RA_MAX_RANK = 3 };
struct ra_dim {
	int64_t constant;
	int terms;
	struct {
		int symbol; /* ascending */
		int64_t coefficient;
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
#define RA_OP(name, arity, spelling, function, way, sub) RA_##name,
#include "ra/ops.def"
	RA_OPS
};

enum { RA_EACH_CHILD = -1 }; /* the child that a sum over children is at */

/* Fields by op: see the comments in ops.def.  Shapes are those of one node's value: the node is no dimension. */
struct ra_node {
	enum ra_op op;
	ra_ref arg[2];
	struct ra_shape shape;
	struct diag_at at;
	union {
		double constant; /* CONST */
		int param;       /* PARAM */
		int input;       /* INPUT, LOOKUP */
		struct {
			int state, slot; /* CHILD: slot or RA_EACH_CHILD; STATE: slot unused */
		} state;
		int axis;            /* SUM, MAX: the reduced axis; CONCAT: the joined axis */
		struct ra_dim begin; /* SLICE: of the last axis, its extent is in the shape; EXTENT: the dimension */
	};
};

enum ra_structure_kind { RA_SEQUENCE, RA_TREE, RA_DAG };
enum ra_case { RA_LEAF, RA_INNER, RA_CASES };

struct ra_structure {
	enum ra_structure_kind kind;
	int children;             /* of an inner node; -1 = any number of at least one */
	const char *const *child; /* names of the slots, or NULL */
};

struct ra_symbol {
	const char *name;
};

struct ra_param {
	const char *name;
	struct ra_shape shape;
	struct diag_at at;
};

struct ra_input {
	const char *name;
	bool token; /* an index into a parameter's rows; otherwise f32 of `shape` */
	struct ra_shape shape;
	struct diag_at at;
};

/* The line of the text that says it, without the blanks around it. */
struct ra_statement {
	const char *text; /* NULL = there is no text */
	int line;         /* 0 = unknown */
};

struct ra_state {
	const char *name;
	struct ra_shape shape;
	struct diag_at at;
	ra_ref value[RA_CASES];
	struct ra_statement assigned[RA_CASES];
};

struct ra_output {
	const char *name;
	ra_ref value; /* of a graph over STATE, PARAM and constants */
	bool at_root;
	int labels; /* 0 = none */
	const char *const *label;
	struct diag_at at;
	struct ra_statement computed;
};

struct ra_model {
	const char *name;
	const char *file;
	struct ra_structure structure;
	VEC(struct ra_symbol) symbols;
	VEC(struct ra_param) params;
	VEC(struct ra_input) inputs;
	VEC(struct ra_state) states;
	VEC(struct ra_output) outputs;
	VEC(struct ra_node) nodes; /* arguments before users; nodes.at[0] is unused */
};

static inline const struct ra_node *ra_at(const struct ra_model *m, ra_ref r)
{
	return &m->nodes.at[r.i];
}

/* Reads a model text.  `file` names it in diagnostics.  NULL after diagnostics; as many as make sense are added.
 * The text need not be terminated and may hold any bytes. */
struct ra_model *ra_parse(struct arena *, struct diags *, const char *file, const char *text, size_t length);

/* The canonical text of a model: parses to the same graph.  Functions are expanded. */
void ra_print(const struct ra_model *, struct str *);

/* Finds the sizes of the symbols (symbols.n of them, into `sizes`) from the tensors of a weights file.  Every missing
 * or misshapen parameter is reported, then false.  Tensors that the model does not name are reported as well. */
bool ra_bind(const struct ra_model *, struct diags *, const char *weights_file, const struct tensor_info *tensors,
	     size_t n, int64_t *sizes);

/* The value of a dimension once the symbols have sizes. */
int64_t ra_dim_value(const struct ra_dim *, const int64_t *sizes);
/* As text: "D", "4*D", "D + E", "5". */
void ra_dim_print(const struct ra_model *, const struct ra_dim *, struct str *);
void ra_shape_print(const struct ra_model *, const struct ra_shape *, struct str *);

#endif
