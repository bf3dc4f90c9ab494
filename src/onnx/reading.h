/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What passes between the files of the reader.  All memory is the arena's, and escapes as it does. */
#ifndef ESPALIER_ONNX_READING_H
#define ESPALIER_ONNX_READING_H

#include "base/map.h"
#include "base/vec.h"
#include "onnx/graph.h"
#include "onnx/onnx.pb-c.h"

struct onnx_opset {
	const char *domain;
	int64_t version;
};

/* A file that is being read. */
struct onnx_reading {
	struct arena *arena;
	struct diags *diags;
	const char *file;
	const Onnx__ModelProto *model; /* NULL = the file is a tensor */
	const struct onnx_opset *opset;
	size_t opsets;
	const struct onnx_choices *choices; /* may be NULL */
	bool *used;			    /* by number of a size of these: an extent has its name */
	int64_t external;		    /* bytes read from other files */
};

/* A graph that is being made. */
struct onnx_making {
	struct onnx_reading *reading;
	struct onnx_making *outer; /* NULL = it is the model's */
	struct onnx_graph *graph;
	struct map names; /* of its values */
	VEC(struct onnx_value) values;
};

/* Adds a diagnostic about the file; always false. */
__attribute__((format(printf, 4, 5))) bool onnx_report(struct onnx_reading *, enum diag_id, const char *hint,
						       const char *format, ...);
#define onnx_report(...) diag_false(onnx_report(__VA_ARGS__))

/* unpack.c: unpacks bytes that were scanned. */
ProtobufCMessage *onnx_unpack(struct arena *, const ProtobufCMessageDescriptor *, const void *bytes,
			      size_t n);
/* A text of a message, "" for one that it does not have. */
static inline const char *onnx_text_of(const char *text)
{
	return text ? text : "";
}
struct onnx_text onnx_text_of_bytes(struct arena *, ProtobufCBinaryData);

/* tensors.c: checks a tensor and brings its elements into memory; `what` names it in diagnostics. */
bool onnx_make_tensor(struct onnx_reading *, const char *what, const Onnx__TensorProto *,
		      struct onnx_tensor *);

/* external.c: reads the elements of a tensor, `tensor->bytes` bytes, that lie in another file.  Memory is
 * taken when the file is known to have them. */
bool onnx_read_external(struct onnx_reading *, const char *what, const Onnx__TensorProto *,
			struct onnx_tensor *);

/* definitions.c: the values of a graph, and what its nodes' outputs and lists declare of them. */
bool onnx_define_values(struct onnx_making *, const Onnx__GraphProto *);
/* The value of that name, of this graph or of one around it; -1 = there is none. */
int onnx_find_value(struct onnx_making *, const char *name);
/* Makes a value that nothing computes a constant, if the tensor fits what is declared of it. */
bool onnx_set_constant(struct onnx_making *, int value, const struct onnx_tensor *);

/* attributes.c: converts the attributes of a node, subgraphs among them. */
bool onnx_make_attributes(struct onnx_making *, const Onnx__NodeProto *, struct onnx_node *);

/* make_graph.c: the graph of a message. */
struct onnx_graph *onnx_make_graph(struct onnx_reading *, struct onnx_making *outer,
				   const Onnx__GraphProto *);

/* decide.c: applies what the caller decided to the model's graph: sizes and constants; and what is exported.
 */
void onnx_decide_extent(struct onnx_reading *, struct onnx_dim *);
bool onnx_decide_values(struct onnx_making *);
bool onnx_decide_outputs(struct onnx_making *);

/* join_quantised.c: operators whose inputs are dequantised and whose result is quantised compute in integers. */
void onnx_join_quantised(struct onnx_making *);

/* topological.c: lists the values that a node needs of the graph that it stands in, for itself and for the graphs in
 * it; -1 = an input that is left out.  Returns their number; `to` may be NULL. */
size_t onnx_needed_values(const struct onnx_node *, int *to);
/* Puts the nodes that outputs need in topological order and drops the others.  False when
 * there is a cycle. */
bool onnx_order_nodes(struct onnx_making *);

#endif
