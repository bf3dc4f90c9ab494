/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reading.h"

#include <string.h>

static const char *domain_of(const char *domain)
{
	return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t find_opset(const struct onnx_reading *r, const char *domain)
{
	for (size_t i = 0; i < r->opsets; i++)
		if (strcmp(r->opset[i].domain, domain) == 0)
			return r->opset[i].version;
	return -1;
}

/* A node as far as it needs no other: so it can be named in diagnostics. */
static bool describe_node(struct onnx_making *g, const Onnx__NodeProto *from, struct onnx_node *node,
			  int number)
{
	node->op = onnx_text_of(from->op_type);
	node->domain = domain_of(from->domain);
	node->name = onnx_text_of(from->name);
	node->number = number;
	node->opset = find_opset(g->reading, node->domain);
	if (!*node->op)
		return onnx_refuse(g->reading->diags, g->graph, node, DIAG_BAD_ONNX, NULL,
				   "it names no operator");
	return node->opset >= 0 ||
	       onnx_refuse(g->reading->diags, g->graph, node, DIAG_ONNX_OPSET, NULL,
			   "the model imports no operators of the domain '%.100s'", node->domain);
}

static bool describe_nodes(struct onnx_making *g, const Onnx__GraphProto *from)
{
	g->graph->node = ARENA_ARRAY(g->reading->arena, struct onnx_node, from->n_node + 1);
	g->graph->nodes = from->n_node;
	for (size_t i = 0; i < from->n_node; i++)
		if (!describe_node(g, from->node[i], &g->graph->node[i], i))
			return false;
	return true;
}

static bool resolve_arguments(struct onnx_making *g, const Onnx__NodeProto *from, struct onnx_node *node)
{
	int *input = ARENA_ARRAY(g->reading->arena, int, from->n_input + 1);
	node->input = input;
	node->inputs = from->n_input;
	for (size_t i = 0; i < from->n_input; i++) {
		input[i] = *from->input[i] ? onnx_find_value(g, from->input[i]) : -1;
		if (*from->input[i] && input[i] < 0)
			return onnx_refuse(g->reading->diags, g->graph, node, DIAG_ONNX_GRAPH,
					   "a value is an input, an initializer or the output of a node",
					   "its input '%.200s' is defined nowhere", from->input[i]);
	}
	return true;
}

static bool resolve_nodes(struct onnx_making *g, const Onnx__GraphProto *from)
{
	for (size_t i = 0; i < from->n_node; i++)
		if (!resolve_arguments(g, from->node[i], &g->graph->node[i]) ||
		    !onnx_make_attributes(g, from->node[i], &g->graph->node[i]))
			return false;
	return true;
}

static bool resolve_outputs(struct onnx_making *g, const Onnx__GraphProto *from)
{
	int *output = ARENA_ARRAY(g->reading->arena, int, from->n_output + 1);
	g->graph->output = output;
	g->graph->outputs = from->n_output;
	for (size_t i = 0; i < from->n_output; i++) {
		const char *name = onnx_text_of(from->output[i]->name);
		output[i] = onnx_find_value(g, name);
		if (output[i] < 0)
			return onnx_report(g->reading, DIAG_ONNX_GRAPH, NULL,
					   "the output '%.200s' of a graph is defined nowhere", name);
	}
	return true;
}

/* The caller's decisions are about the graph of the model alone; what is not exported is not ordered either.
 */
static bool make_graph(struct onnx_making *g, const Onnx__GraphProto *from)
{
	bool decides = !g->outer && g->reading->choices;
	if (!describe_nodes(g, from) || !onnx_define_values(g, from) || (decides && !onnx_decide_values(g)) ||
	    !resolve_nodes(g, from) || !resolve_outputs(g, from) || (decides && !onnx_decide_outputs(g)))
		return false;
	onnx_join_quantised(g);
	return onnx_order_nodes(g);
}

struct onnx_graph *onnx_make_graph(struct onnx_reading *r, struct onnx_making *outer,
				   const Onnx__GraphProto *from)
{
	struct onnx_graph *graph = ARENA_NEW(r->arena, struct onnx_graph);
	struct onnx_making g = {.reading = r, .outer = outer, .graph = graph, .names = map_in(r->arena)};
	*graph = (struct onnx_graph){.file = r->file,
				     .name = onnx_text_of(from->name),
				     .outer = outer ? outer->graph : NULL,
				     .ir = r->model->ir_version,
				     .producer = onnx_text_of(r->model->producer_name)};
	if (!make_graph(&g, from))
		return NULL;
	graph->value = g.values.at;
	graph->values = g.values.n;
	return graph;
}
