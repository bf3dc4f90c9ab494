/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A checked graph of ONNX, or of another format whose nodes have a table of operators: what a reader makes of a file,
 * and the importer makes a model of.
 *
 * Of a graph that was read the following holds:
 * - every name is resolved: nodes refer to values by number, and a value has one definition: a node, an
 * initializer, an input of the graph, or a value of the graph around a subgraph;
 * - nodes are in topological order, whatever the order of the file was: a producer has a smaller number than
 * its users;
 * - tensors are in memory: little-endian, row-major, aligned for any type, and `bytes` is what type and
 * extents take;
 * - domains are "" (of the standard, also where the file says "ai.onnx") or what the file says, and each node
 * knows the version of the operators of its domain;
 * - no operator is known here: names of operators, their attributes and the number of their arguments are as
 * in the file.
 *
 * All of it lives in one arena. */
#ifndef ESPALIER_ONNX_GRAPH_H
#define ESPALIER_ONNX_GRAPH_H

#include "base/diag.h"
#include "base/dtype.h"
#include "base/tensor.h"

struct ra_model;

enum onnx_type {
	ONNX_UNKNOWN_TYPE, /* the file does not say it */
#define ONNX_TYPE(name, number, spelling, bits, dtype) ONNX_##name = number,
#include "onnx/onnx_types.def"
	ONNX_TYPES
};

/* The row of a type in onnx_types.def; of ONNX_UNKNOWN_TYPE and of what is no type one with the name
 * "unknown". */
struct onnx_type_traits {
	const char *name;
	int bits;  /* of an element in memory; 0 = of no fixed size */
	int dtype; /* an enum dtype; DTYPES = the library has no such type */
};
const struct onnx_type_traits *onnx_type_traits_of(enum onnx_type);

/* Any bytes, with a zero byte behind them that `length` does not count. */
struct onnx_text {
	const char *text;
	size_t length;
};

enum { ONNX_MAX_RANK = 16 }; /* of tensors in a file: the importer takes fewer axes */
enum {
	ONNX_LAST_OPSET = 21,
	ONNX_MAX_DOMAINS = 64
};					  /* the last supported version of the standard's operators */
#define ONNX_MAX_BYTES ((int64_t)1 << 31) /* of the elements of a tensor */

struct onnx_tensor {
	const char *name; /* "" = none */
	enum onnx_type type;
	int rank;
	int64_t dim[ONNX_MAX_RANK]; /* 0 or more */
	int64_t elements;
	const void *data; /* of ONNX_STRING: an array of struct onnx_text */
	size_t bytes;
};

/* The numbers of AttributeProto.AttributeType, but for kinds that are not read, which are ONNX_OTHER. */
enum onnx_kind {
	ONNX_OTHER_KIND = 0,
	ONNX_KIND_FLOAT = 1,
	ONNX_KIND_INT = 2,
	ONNX_KIND_STRING = 3,
	ONNX_KIND_TENSOR = 4,
	ONNX_KIND_GRAPH = 5,
	ONNX_KIND_FLOATS = 6,
	ONNX_KIND_INTS = 7,
	ONNX_KIND_STRINGS = 8
};

struct onnx_attribute {
	const char *name;
	enum onnx_kind kind;
	const char *kind_name; /* as the standard writes it: "INTS"; also of ONNX_OTHER_KIND */
	union {
		float f;
		int64_t i;
		struct onnx_text s;
		const struct onnx_tensor *tensor;
		const struct onnx_graph *graph;
		const float *floats;
		const int64_t *ints;
		const struct onnx_text *strings;
	};
	size_t n; /* of floats, ints or strings; else 1 */
};

/* An extent of a declared shape. */
struct onnx_dim {
	int64_t size;	   /* -1 = not known */
	const char *param; /* the name of a size that is not known, NULL = none */
};

enum onnx_what {
	ONNX_TENSOR_VALUE,
	ONNX_OTHER_VALUE /* a sequence, a map, an optional or a sparse tensor */
};

/* What elements of a value stand for: (element - zero) * scale, of one pair for all, or one for each index of an axis. */
struct onnx_quantisation {
	const float *scale;  /* positive and finite */
	const int64_t *zero; /* numbers of the value's type */
	size_t n;
	int axis; /* with n pairs; of a single one 0 */
};

struct onnx_value {
	const char *name;
	enum onnx_what what;
	const char *what_name; /* "tensor", "sequence", "map", "optional", "sparse tensor" */
	enum onnx_type type;   /* as declared, else ONNX_UNKNOWN_TYPE; of a constant its type */
	int rank;	       /* as declared; -1 = not declared */
	struct onnx_dim dim[ONNX_MAX_RANK];
	const struct onnx_tensor *constant; /* an initializer, or given by the caller; NULL = none */
	const struct onnx_quantisation *quantisation; /* NULL = the format does not say it of values */
	bool variable;			    /* the constant is what a state begins with, in each call */
	int producer;			    /* the node that computes it, -1 = none */
	int result;			    /* which of its outputs; 0 without a producer */
	int input;			    /* which of the graph's inputs it is, -1 = none */
	int outer; /* of a subgraph: the value of the graph around it that this one is, -1 = it is of this
		      graph */
};

struct onnx_node {
	const char *op, *domain, *name; /* never NULL; the name may be "" */
	int64_t opset;			/* version of the operators of its domain, as the file imports it */
	const int *input, *output;	/* values of the graph; -1 = absent */
	size_t inputs, outputs;
	const struct onnx_attribute *attribute; /* no name twice */
	size_t attributes;
	int number; /* in the order of the file, from 0 */
};

/* The operators that nodes may have, which the importer takes from the graph (operators.h). */
struct onnx_table {
	const struct onnx_operator *row;
	int rows;
	const char *page;    /* of the documentation, which lists them */
	const char *version; /* what a version of an operator is called: "opset" */
};

struct onnx_graph {
	const char *file;		/* its name in diagnostics */
	const struct onnx_table *table; /* NULL = that of ONNX */
	const char *name;		/* "" = none */
	const struct onnx_graph *outer; /* the graph that a subgraph stands in; NULL = it is the model's */
	struct onnx_node *node;
	size_t nodes;
	struct onnx_value *value;
	size_t values;
	const int *input, *output; /* values; initializers that are listed as inputs are among the inputs, and
				      have a constant */
	size_t inputs, outputs;
	int64_t ir; /* the version of the format that the file says */
	int64_t bytes; /* of the model's graph: of the file, and of elements in other files */
	/* What is written over the model's metadata: the producing program, for people. */
	const char *producer;
};

/* What the caller decides about a graph before it is imported.  The reader applies it: values then have the
 * sizes, the constants are `constant`s, and the outputs are those to export. */
struct onnx_choices {
	const struct onnx_size {
		const char
		    *name; /* a name of extents (dim_param), or `x[0]` for an axis of an input without one */
		int64_t size;
	} * size;
	size_t sizes;
	const struct onnx_tensor *constant; /* by the names of inputs */
	size_t constants;
	const char *const *exported; /* names of values; none = the outputs of the graph */
	size_t exports;
};

/* Reads the bytes of a model, which stay the caller's and are not needed afterwards.  `file` is its path,
 * beside which external data is looked for, and its name in diagnostics.  False after diagnostics.  Escapes
 * as the arena does. */
bool onnx_read_graph(struct arena *, struct diags *, const char *file, const void *bytes, size_t n,
		     const struct onnx_choices *, struct onnx_graph **);
/* Reads the bytes of a single tensor (a TensorProto, as test data comes).  Likewise. */
bool onnx_read_tensor(struct arena *, struct diags *, const char *file, const void *bytes, size_t n,
		      struct onnx_tensor *);

/* Refuses a node: the message begins with its number, its name, its operator and the version of that, as
 * "node 12 'conv1' (Conv, opset 11): ".  Always false. */
__attribute__((format(printf, 6, 7))) bool onnx_refuse(struct diags *, const struct onnx_graph *,
						       const struct onnx_node *, enum diag_id,
						       const char *hint, const char *format, ...);
#define onnx_refuse(...) diag_false(onnx_refuse(__VA_ARGS__))

/* NULL = the node does not have it. */
const struct onnx_attribute *onnx_find_attribute(const struct onnx_node *, const char *name);

/* The name that a model text has for a name of ONNX, which may be any text: what is no letter, digit, '.' or
 * '_' becomes '_';
 * '_' comes before a digit or '.' at the beginning and after a reserved word.  The same name for the same
 * text always; different texts can have one name. */
const char *onnx_spell_name(struct arena *, const char *);
/* Whether a name of a model can be what a name of ONNX is spelled as. */
bool onnx_is_spelled(const char *own, const char *name);

/* --- the importer --- */

/* A model made of a graph. */
struct onnx_model {
	struct ra_model *model;
	const struct onnx_tensor
	    *weight; /* the tensors that became parameters, each by the name of its parameter */
	size_t weights;
	const struct onnx_value *const *unread; /* inputs of the graph without a constant that no output needs, in its order */
	size_t unreads;
};

/* Makes a model without a structure.  Its inputs are the inputs of the graph that have no constant and are
 * used, by their spelled names and with their whole shapes; its outputs are the graph's, likewise.  The model
 * and the weights live in the arena, and refer to tensors of the graph.  False after diagnostics, each with
 * its node.  Escapes as the arena does. */
bool onnx_import(struct arena *, struct diags *, const struct onnx_graph *, struct onnx_model *out);

#endif
