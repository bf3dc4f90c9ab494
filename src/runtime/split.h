/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How a range of rows is divided among the parts of a team. */
#ifndef ESPALIER_RUNTIME_SPLIT_H
#define ESPALIER_RUNTIME_SPLIT_H

#include "base/memory.h"
#include "base/target.h"
#include "image/image.h"

/* Which way a range is run.  A row's bits, and a column's, are the same in all of them. */
enum rt_strategy {
	RT_ALONE,    /* by the caller */
	RT_ROWS,     /* each part has some of the rows, and runs all steps over them */
	RT_COLUMNS,  /* each part has some of the blocks of columns, over all rows: a turn for each step */
	RT_SUBTREES, /* of levels of a span: each part runs its subtrees, all steps and levels (span.h) */
	RT_CHEAPEST  /* the one of these that is expected to take the shortest */
};

/* Steps that take turns over the same ranges: neighbours in the table with one domain and the same cases. */
struct rt_group {
	const struct image_step *step;
	int steps;
	double weights;	  /* bytes that a range reads of them */
	double row_bytes; /* of a row that they read or write, estimated */
	int64_t tile;	  /* the greatest of theirs */
	bool between;	  /* others are between its ranges, those of rt_step_of */
	bool apart;	  /* steps are to be run in ways that differ */
	enum rt_strategy strategy;  /* that is asked for; RT_CHEAPEST = none */
	bool known;	  /* how many operations they have: otherwise nothing is shared out */
};

struct rt_question {
	const struct rt_group *group;
	int64_t rows;
	int parts;	/* of the team, */
	double meeting; /* and nanoseconds that a turn takes it in which nothing is done */
	const struct target *machine; /* that it runs on */
};

/* Nanoseconds that a range is expected to take: in the way that was chosen for it, with the turns that it
 * takes of the team; by one part alone, which reads all weights. */
struct rt_times {
	enum rt_strategy strategy;
	double least, alone;
};

/* Answers of rt_choose, by the first step and the number of rows, for as long as the team's meeting takes the
 * same time.  From some rows on they are those of the first that came with as many digits. */
struct rt_choices {
	const struct allocator *allocator;
	int answers;
	struct rt_answer {
		unsigned char strategy;
		float least, alone; /* a row of it */
	} * answer;
	int parts;
	double meeting;
};

struct rt_group rt_group_of(const struct image_step *, int steps);
/* One step of a group: the others are between its ranges nevertheless. */
struct rt_group rt_step_of(const struct rt_group *, int which);

/* Whether the group runs over nodes of a case. */
static inline bool rt_covers(const struct rt_group *g, int node_case)
{
	return !g->step->cases || g->step->cases >> node_case & 1;
}

/* Nanoseconds of a turn in which parts fetch nothing of each other. */
double rt_turn(const struct target *machine, double meeting);
/* How the rows of a group are run, and how long that takes.  RT_COLUMNS says that each step is run in a way
 * of its own, which is asked for the group of that step alone. */
struct rt_times rt_choose(const struct rt_question *);

bool rt_choices_init(struct rt_choices *, const struct allocator *, int steps);
void rt_choices_free(struct rt_choices *);
/* What rt_choose answers or has answered; `step` tells the group's first one from others. */
struct rt_times rt_recall(struct rt_choices *, const struct rt_question *, int step);

/* The first of `rows` rows that a part runs; the next part's first is its end.  Shares are cut at halves of
 * tiles, where they differ least: half a tile is not much faster than a whole one, and less than that is no
 * faster, what reading the weights costs is the same.  The first has some.  Blocks of columns are shared out
 * as rows are, by tiles of 1: a part always has the same, so that their weights stay in the caches of its
 * processor. */
int64_t rt_share(int64_t rows, int64_t tile, int part, int parts);

#endif
