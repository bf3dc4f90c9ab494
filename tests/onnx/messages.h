/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models made of parts, for tests: a graph whose nodes, values and tensors are arrays of the test. */
#ifndef ESPALIER_TESTS_ONNX_MESSAGES_H
#define ESPALIER_TESTS_ONNX_MESSAGES_H

#include "onnx/onnx.pb-c.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 8 };

/* A node of at most so many arguments and results. */
struct part_node {
	Onnx__NodeProto node;
	char *input[3], *output[2];
	Onnx__AttributeProto *attribute[2];
};

struct parts {
	Onnx__ModelProto model;
	Onnx__GraphProto graph;
	Onnx__OperatorSetIdProto opset, *opsets[1];
	struct part_node node[MOST_PARTS];
	Onnx__NodeProto *nodes[MOST_PARTS];
	Onnx__ValueInfoProto input[MOST_PARTS], *inputs[MOST_PARTS], output[MOST_PARTS], *outputs[MOST_PARTS];
	Onnx__TensorProto tensor[MOST_PARTS], *tensors[MOST_PARTS];
};

static inline void init_graph(struct parts *p)
{
	onnx__graph_proto__init(&p->graph);
	p->graph.node = p->nodes;
	p->graph.input = p->inputs;
	p->graph.output = p->outputs;
	p->graph.initializer = p->tensors;
}

static inline void init_parts(struct parts *p, int opset)
{
	memset(p, 0, sizeof *p);
	onnx__model_proto__init(&p->model);
	onnx__operator_set_id_proto__init(&p->opset);
	init_graph(p);
	p->model.has_ir_version = p->opset.has_version = true;
	p->model.ir_version = 8;
	p->opset.version = opset;
	p->opset.domain = "";
	p->opsets[0] = &p->opset;
	p->model.opset_import = p->opsets;
	p->model.n_opset_import = 1;
	p->model.graph = &p->graph;
}

static inline Onnx__NodeProto *put_node(struct parts *p, char *name, char *op, char *a, char *b, char *out)
{
	struct part_node *n = &p->node[p->graph.n_node];
	onnx__node_proto__init(&n->node);
	n->node.name = name;
	n->node.op_type = op;
	n->node.input = n->input;
	n->node.output = n->output;
	n->node.attribute = n->attribute;
	n->input[0] = a;
	n->input[1] = b;
	n->output[0] = out;
	n->node.n_input = b ? 2 : 1;
	n->node.n_output = 1;
	p->nodes[p->graph.n_node++] = &n->node;
	return &n->node;
}

static inline void put_input(struct parts *p, char *name)
{
	Onnx__ValueInfoProto *v = &p->input[p->graph.n_input];
	onnx__value_info_proto__init(v);
	v->name = name;
	p->inputs[p->graph.n_input++] = v;
}

static inline void put_output(struct parts *p, char *name)
{
	Onnx__ValueInfoProto *v = &p->output[p->graph.n_output];
	onnx__value_info_proto__init(v);
	v->name = name;
	p->outputs[p->graph.n_output++] = v;
}

/* A vector of floats, whose elements are in the list of the message. */
static inline Onnx__TensorProto *put_tensor(struct parts *p, char *name, int64_t *extent, float *elements,
					    size_t n)
{
	Onnx__TensorProto *t = &p->tensor[p->graph.n_initializer];
	onnx__tensor_proto__init(t);
	t->name = name;
	t->has_data_type = true;
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	t->dims = extent;
	t->n_dims = 1;
	t->float_data = elements;
	t->n_float_data = n;
	p->tensors[p->graph.n_initializer++] = t;
	return t;
}

/* The bytes, which the caller frees. */
static inline uint8_t *pack_parts(const struct parts *p, size_t *n)
{
	uint8_t *bytes = malloc(onnx__model_proto__get_packed_size(&p->model) + 1);
	*n = bytes ? onnx__model_proto__pack(&p->model, bytes) : 0;
	return bytes;
}

#endif
