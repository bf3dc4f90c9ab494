/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The order of nodes: that of the file where it is one, else that in which a walk from the outputs leaves
 * them. */
#include "onnx/reading.h"

#include <string.h>

enum state { UNSEEN, OPEN, DONE };

struct walk {
	struct onnx_making *g;
	int *begin, *need; /* the values that node i needs: need[begin[i]] .. need[begin[i + 1] - 1] */
	unsigned char *state;
	int *stack, *next; /* nodes that are open, and how many of the needs of a node were seen */
	int depth;
	int *left; /* nodes in the order in which they were left */
	int n;
};

size_t onnx_needed_values(const struct onnx_node *node, int *to)
{
	size_t n = node->inputs;
	if (to)
		memcpy(to, node->input, n * sizeof *to);
	for (size_t i = 0; i < node->attributes; i++)
		if (node->attribute[i].kind == ONNX_KIND_GRAPH)
			for (size_t v = 0; v < node->attribute[i].graph->values; v++)
				if (node->attribute[i].graph->value[v].outer >= 0) {
					if (to)
						to[n] = node->attribute[i].graph->value[v].outer;
					n++;
				}
	return n;
}

static void list_needs(struct walk *w)
{
	struct onnx_graph *graph = w->g->graph;
	struct arena *arena = w->g->reading->arena;
	size_t n = 0;
	for (size_t i = 0; i < graph->nodes; i++)
		n += onnx_needed_values(&graph->node[i], NULL);
	w->begin = ARENA_ARRAY(arena, int, graph->nodes + 1);
	w->need = ARENA_ARRAY(arena, int, n + 1);
	n = 0;
	for (size_t i = 0; i < graph->nodes; i++) {
		n += onnx_needed_values(&graph->node[i], w->need + n);
		w->begin[i + 1] = n;
	}
}

static int producer_of(const struct walk *w, int value)
{
	return value < 0 ? -1 : w->g->values.at[value].producer;
}

static void open_node(struct walk *w, int node)
{
	if (node < 0 || w->state[node] != UNSEEN)
		return;
	w->state[node] = OPEN;
	w->next[node] = w->begin[node];
	w->stack[w->depth++] = node;
}

static bool refuse_cycle(struct walk *w, int value)
{
	const struct onnx_value *v = &w->g->values.at[value];
	return onnx_refuse(
	    w->g->reading->diags, w->g->graph, &w->g->graph->node[v->producer], DIAG_ONNX_GRAPH,
	    "a graph has no cycles: what repeats is an operator with a graph of its own, as Loop and Scan",
	    "its output '%.200s' depends on itself", v->name);
}

/* Leaves a node when all that it needs was left. */
static bool walk_step(struct walk *w)
{
	int node = w->stack[w->depth - 1];
	if (w->next[node] == w->begin[node + 1]) {
		w->state[node] = DONE;
		w->left[w->n++] = node;
		w->depth--;
		return true;
	}
	int value = w->need[w->next[node]++], producer = producer_of(w, value);
	if (producer >= 0 && w->state[producer] == OPEN)
		return refuse_cycle(w, value);
	open_node(w, producer);
	return true;
}

static bool walk_from(struct walk *w, int value)
{
	open_node(w, producer_of(w, value));
	while (w->depth)
		if (!walk_step(w))
			return false;
	return true;
}

/* Whether the order of the file is topological. */
static bool is_ordered(const struct walk *w)
{
	for (int i = 0; i < w->n; i++)
		for (int k = w->begin[w->left[i]]; k < w->begin[w->left[i] + 1]; k++)
			if (producer_of(w, w->need[k]) >= w->left[i])
				return false;
	return true;
}

/* The needed nodes as the file has them. */
static void take_order_of_file(struct walk *w)
{
	int n = 0;
	for (size_t i = 0; i < w->g->graph->nodes; i++)
		if (w->state[i] == DONE)
			w->left[n++] = i;
}

static void move_nodes(struct walk *w)
{
	struct onnx_graph *graph = w->g->graph;
	struct onnx_node *moved = ARENA_ARRAY(w->g->reading->arena, struct onnx_node, w->n + 1);
	for (size_t v = 0; v < w->g->values.n; v++)
		w->g->values.at[v].producer = -1;
	for (int i = 0; i < w->n; i++) {
		moved[i] = graph->node[w->left[i]];
		for (size_t k = 0; k < moved[i].outputs; k++)
			if (moved[i].output[k] >= 0)
				w->g->values.at[moved[i].output[k]].producer = i;
	}
	graph->node = moved;
	graph->nodes = w->n;
}

bool onnx_order_nodes(struct onnx_making *g)
{
	struct arena *arena = g->reading->arena;
	size_t nodes = g->graph->nodes + 1;
	struct walk w = {.g = g,
			 .state = ARENA_ARRAY(arena, unsigned char, nodes),
			 .stack = ARENA_ARRAY(arena, int, nodes),
			 .next = ARENA_ARRAY(arena, int, nodes),
			 .left = ARENA_ARRAY(arena, int, nodes)};
	list_needs(&w);
	for (size_t i = 0; i < g->graph->outputs; i++)
		if (!walk_from(&w, g->graph->output[i]))
			return false;
	if (is_ordered(&w))
		take_order_of_file(&w);
	move_nodes(&w);
	return true;
}
