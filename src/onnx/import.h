/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside the importer: a graph while it is imported. */
#ifndef ESPALIER_ONNX_IMPORT_H
#define ESPALIER_ONNX_IMPORT_H

#include "onnx/operators.h"

struct onnx_importer {
	struct arena *arena;
	struct diags *diags;
	const struct onnx_graph *graph;
	struct onnx_target target;
	struct onnx_operand *operand; /* by value of the graph */
	size_t faults;		      /* diagnostics that were there before */
	bool *needed;		      /* by value: a node or an output needs it */
};

/* Begins a model.  False after a diagnostic. */
bool onnx_start_target(struct arena *, struct diags *, const struct onnx_graph *, struct onnx_target *);
/* fold.c: whether a node depends on constants alone, of which there are few. */
bool onnx_is_foldable(const struct onnx_op *);
/* Computes a node with constant inputs: its outputs become constants.  False after a diagnostic. */
bool onnx_fold_node(struct onnx_op *);

#endif
