/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How a range of rows is divided into chunks, one for each thread of a team. */
#ifndef ESPALIER_RUNTIME_SPLIT_H
#define ESPALIER_RUNTIME_SPLIT_H

#include "base/memory.h"
#include "base/target.h"
#include "image/image.h"

/* How a range is divided.  A row's bits, and a column's, are the same whatever the strategy. */
enum rt_strategy {
	RT_ALONE,    /* not at all: the caller runs it */
	RT_ROWS,     /* a chunk is a block of rows, with all steps: one work item */
	RT_COLUMNS,  /* a chunk is some of the blocks of columns of all rows: a work item for each step */
	RT_SUBTREES, /* a chunk is some of the subtrees of a span, with all steps and levels (span.h) */
	RT_CHEAPEST  /* the one of these that is expected to take the shortest */
};

/* Steps that run over the same ranges: neighbours in the table with one domain and the same cases. */
struct rt_stage {
	const struct image_step *step;
	int steps;
	int before;	  /* steps of the same stage before these, which run over the same range */
	double weights;	  /* bytes of weights that all of them read for a range */
	int64_t tile;	  /* the largest of theirs, but of those that do little [rows] */
	bool interleaved; /* other steps run between its ranges: see rt_stage_of_step */
	bool mixed;	  /* the image requests different strategies for its steps */
	enum rt_strategy strategy; /* that the image requests; RT_CHEAPEST = none */
	bool known;		   /* how many operations they have: otherwise no range is divided */
};

/* What the choice of a strategy depends on. */
struct rt_query {
	const struct rt_stage *stage;
	int64_t rows;
	int threads;		      /* of the team */
	double barrier_cost;	      /* of a work item in which nothing is computed [ns] */
	const struct target *machine; /* that the team runs on */
};

/* Times that a range is expected to take [ns]: by the strategy that was chosen for it, barriers included; by
 * one thread alone, which reads all weights. */
struct rt_estimate {
	enum rt_strategy strategy;
	double least, alone;
};

/* A cache of rt_choose_strategy by the first step and the number of rows, valid for one barrier cost.  Large
 * numbers of rows with the same highest bit share the answer for the first of them. */
struct rt_choices {
	const struct allocator *allocator;
	int answers;
	struct rt_choice {
		unsigned char strategy;
		float least, alone; /* a row */
	} * answer;
	int threads;
	double barrier_cost;
};

struct rt_stage rt_stage_of(const struct image_step *, int steps);
/* One step of a stage as a stage of its own; the others still run between its ranges. */
struct rt_stage rt_stage_of_step(const struct rt_stage *, int which);

/* Whether the stage runs over nodes of a case. */
static inline bool rt_stage_covers(const struct rt_stage *stage, int node_case)
{
	return !stage->step->cases || stage->step->cases >> node_case & 1;
}

/* Expected overhead of a work item without cache misses: the barrier, and the skew between threads [ns]. */
double rt_item_overhead(const struct target *machine, double barrier_cost);
/* Chooses how the rows of a stage are divided and estimates the time.  RT_COLUMNS for several steps means
 * that each step has a strategy of its own, which is chosen with the stage of that step alone. */
struct rt_estimate rt_choose_strategy(const struct rt_query *);

bool rt_choices_init(struct rt_choices *, const struct allocator *, int steps);
void rt_choices_free(struct rt_choices *);
/* rt_choose_strategy through the cache; `step` is the number of the stage's first step. */
struct rt_estimate rt_recall_strategy(struct rt_choices *, const struct rt_query *, int step);

/* The first of `rows` rows of a chunk; the next chunk's first is its end.  Chunks are cut at halves of tiles
 * and differ as little as that allows: half a tile is not much faster than a whole one, and less than half is
 * no faster, since reading the weights costs the same.  Chunk 0 is not empty.  Blocks of columns are divided
 * like rows, with tiles of 1: a chunk always has the same, so that their weights stay in the caches of one
 * processor. */
int64_t rt_chunk_begin(int64_t rows, int64_t tile, int chunk, int chunks);
/* Whether each chunk has the same columns of two steps. */
bool rt_share_borders(const struct image_step *, const struct image_step *, int chunks);

#endif
