/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The operators of a body and what they need of each other: whole values (chains.c); data movement that one
 * operator wants is not among them but in the edges. */
#ifndef ESPALIER_SCHED_GRAPH_H
#define ESPALIER_SCHED_GRAPH_H

#include "sched/plan.h"

struct sched_edge {
	int from, to; /* operators */
	unsigned char moved,
	    last;      /* mapping types: of the movement between, and of the consumer in the operand */
	bool again;    /* the consumer has a loop that the operand lacks */
	bool scalar;   /* a reduction takes the columns that vectors would run along */
	double times;  /* that the operand would be computed, then */
	double volume; /* of the consumer: elements a row */
};

struct sched_operator {
	sub_ref value;
	enum sched_mapping type;
	bool moves;	 /* data movement with several consumers */
	bool expensive;	 /* itself */
	unsigned spaces; /* in which it reduces dimensions */
	int accumulators;
	double elements, volume; /* of its result, a row; that computing it passes */
	int in, ins;		 /* edges of what it needs, in graph.edges */
	int out, outs;		 /* edges of what needs it, in graph.by_producer */
};

struct sched_graph {
	const struct sub_program *p;
	const struct sched_values *values;
	struct arena *arena;
	VEC(struct sched_operator) ops; /* arguments before users */
	VEC(struct sched_edge) edges;
	int *by_producer;
	int *op_of; /* by number of the fact; -1 = none */
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
