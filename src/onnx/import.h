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

struct onnx_importer {
	struct arena *arena;
	struct diags *diags;
	struct onnx_scope *scope;
	struct onnx_target target;
	size_t faults;	/* diagnostics that were there before */
	size_t written; /* nodes, and times that a graph of a node was written */
};

/* Begins a model.  False after a diagnostic. */
bool onnx_start_target(struct arena *, struct diags *, const struct onnx_graph *, struct onnx_target *);
/* fold.c: whether a node depends on constants alone, of which there are few. */
bool onnx_is_foldable(const struct onnx_op *);
/* Computes a node with constant inputs: its outputs become constants.  False after a diagnostic. */
bool onnx_fold_node(struct onnx_op *);

#endif
