/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside the importer: a graph while it is imported. */
#ifndef ESPALIER_ONNX_IMPORT_H
#define ESPALIER_ONNX_IMPORT_H

#include "onnx/operators.h"

/* A graph while its nodes are written. */
struct onnx_scope {
	const struct onnx_graph *graph;
	struct onnx_scope *around;    /* of the graph that it stands in; NULL = it is the model's */
	struct onnx_operand *operand; /* by value of the graph */
	bool *needed;		      /* by value: a node or an output needs it */
};

/* The most nodes that are written, those of a loop for each of its iterations. */
enum { ONNX_MAX_WRITTEN = 100000 };
/* The most nodes of which the iterations alone are unrolled, each at the cost of another attempt at the whole. */
enum { ONNX_MAX_UNROLLED = 8 };

/* Iterations of Loop and Scan are written as scans, unless an attempt at that has shown that they cannot be. */
struct onnx_attempts {
	struct diags said, before; /* of the attempt at hand; of that in which scans were at fault, perhaps */
	bool scans;		   /* the attempt has some */
	bool again;		   /* it has shown that the body of the last of `unrolled` cannot be a step */
	bool unroll;		   /* all iterations are unrolled in it */
	const struct onnx_node *unrolled[ONNX_MAX_UNROLLED];
	int n;
};

struct onnx_importer {
	struct arena *arena;
	struct diags *diags;	        /* what is said of the attempt at hand */
	const struct onnx_graph *whole; /* the model's */
	struct onnx_model *out;
	struct onnx_scope *scope;
	struct onnx_target target;
	size_t written;		      /* nodes, and times that a graph of a node was written */
	const struct onnx_node *node; /* that is being written; NULL = none */
	struct arena scratch;	      /* of the model of one node that is evaluated, and of its values */
	double evaluated;	      /* elements of nodes that were */
	const char *axis, *reduced;   /* what names of indices begin with */
	struct onnx_attempts attempts;
};

/* What import may take is bounded, as a few bytes of a file can ask for any extent: memory, by the nodes that
 * are written and the bytes of the file and of those beside it; and elements that are computed, of a node and
 * of all nodes.  Nodes beyond the latter are left to the compiled model. */
enum {
	ONNX_IMPORT_LEAST = 256 << 20, /* bytes for a file of any size */
	ONNX_IMPORT_OF_NODE = 8 << 10, /* bytes for each node */
	ONNX_IMPORT_MULTIPLE = 8,      /* bytes for each byte of the file */
	ONNX_EVALUATED = 1 << 22,
	ONNX_EVALUATED_IN_ALL = 1 << 26
};

/* Begins a model, which is made in that arena.  False after a diagnostic. */
bool onnx_start_target(const struct onnx_importer *, struct arena *, struct onnx_target *);
/* The model, with the inputs and weights that its outputs need, and no others; the target keeps these weights, in the order of
 * the parameters.  NULL after a diagnostic. */
struct ra_model *onnx_finish_target(struct onnx_target *);
/* Marks the values of a graph that its nodes or outputs need. */
void onnx_mark_needed(const struct onnx_graph *, bool *needed);
/* fold.c: whether a node, and the graphs in it, depend on constants alone, of which there are few. */
bool onnx_is_foldable(const struct onnx_op *);
/* Computes a node with constant inputs: its outputs become constants, and `folded` true, unless it is too
 * large.  False after a diagnostic. */
bool onnx_fold_node(struct onnx_importer *, struct onnx_op *, bool *folded);

#endif
