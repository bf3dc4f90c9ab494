/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow Lite: the reader of its files, which makes the graph that the importer of onnx/ takes, and the
 * table of its operators. */
#ifndef ESPALIER_TFLITE_LITE_H
#define ESPALIER_TFLITE_LITE_H

#include "onnx/graph.h"
#include "tflite/flatbuffer.h"

/* Reads the bytes of a model, which stay the caller's and are not needed afterwards: its first subgraph.
 * Values that the file calls variable are what they begin with, 0.  `file` is its name in diagnostics.  False
 * after diagnostics.  Escapes as the arena does. */
bool tflite_read_graph(struct arena *, struct diags *, const char *file, const void *bytes, size_t n,
		       struct onnx_graph **);

/* Of a row of tflite_ops.def what the reader needs to know. */
struct tflite_options {
	const char *name;
	int number;	     /* in the union of options; 0 = it has none */
	enum flat_type type; /* their table */
};
/* NULL = there is no such operator here. */
const struct tflite_options *tflite_find_options(const char *name);
extern const struct onnx_table tflite_table;

/* quantisation.c: the scales and zero points of a tensor, as far as numbers can be read without knowing who
 * uses them; NULL = none. */
struct onnx_quantisation *tflite_read_quantisation(struct flat_file *, const struct flat_table *tensor);
/* Checks the scales and zero points of all values of a node: positive and finite, in the range of the type,
 * and as many as the axis has elements.  False after a diagnostic, which names the node. */
bool tflite_check_quantisation(struct diags *, const struct onnx_graph *, const struct onnx_node *);

#endif
