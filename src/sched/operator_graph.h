/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The graph of a body's operators.  An operator is a value that ends its chain (chains.c); data movement
 * with one consumer is no operator, but part of the edge to that consumer. */
#ifndef ESPALIER_SCHED_OPERATOR_GRAPH_H
#define ESPALIER_SCHED_OPERATOR_GRAPH_H

#include "sched/plan.h"

struct sched_edge {
	int from, to; /* operators */
	unsigned char moved,
	    last;      /* mapping types: of the movement on the edge, and of the consumer in the operand */
	bool again;    /* the consumer has a loop that the operand does not depend on */
	bool scalar;   /* the consumer reduces the columns that the operand's vectors would run along */
	double times;  /* that the operand would be computed if it were fused */
	double volume; /* elements that the consumer visits per row */
};

struct sched_operator {
	sub_ref value;
	enum sched_mapping type;
	bool moves;	 /* data movement with several consumers */
	bool expensive;	 /* the operator itself, without its operands */
	unsigned spaces; /* a mask of the spaces in which it reduces: SCHED_OF_ROWS, SCHED_OF_EDGES */
	int accumulators;
	double elements, volume; /* elements per row: of its result, and visited to compute it */
	int in, ins;		 /* edges from its operands, in graph.edges */
	int out, outs;		 /* edges to its consumers, in graph.by_producer */
};

struct sched_graph {
	const struct sub_program *p;
	const struct sched_values *values;
	struct arena *arena;
	VEC(struct sched_operator) ops; /* operands before consumers */
	VEC(struct sched_edge) edges;
	int *by_producer;
	int *op_of; /* by index of the value's fact; -1 = no operator */
};

void sched_make_graph(struct sched_graph *, struct arena *, const struct sub_program *,
		      const struct sched_values *);

static inline const struct sched_edge *sched_edge_in(const struct sched_graph *g, int op, int i)
{
	return &g->edges.at[g->ops.at[op].in + i];
}

static inline const struct sched_edge *sched_edge_out(const struct sched_graph *g, int op, int i)
{
	return &g->edges.at[g->by_producer[g->ops.at[op].out + i]];
}

#endif
