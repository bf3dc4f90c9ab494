/* How a range of rows is divided among the parts of a team. */
#ifndef ESPALIER_RUNTIME_SPLIT_H
#define ESPALIER_RUNTIME_SPLIT_H

#include "image/image.h"

/* Which way a range is run.  A row's bits, and a column's, are the same in all of them. */
enum rt_way {
	RT_ALONE,   /* by the caller */
	RT_ROWS,    /* each part has some of the rows, and runs all steps over them */
	RT_COLUMNS, /* each part has some of the blocks of columns, over all rows: a job for each step */
	RT_CHEAPEST /* the one of these that is expected to take the shortest */
};

/* Steps that take turns over the same ranges: neighbours in the table with one domain. */
struct rt_group {
	const struct image_step *step;
	int steps;
	double weights; /* bytes that a range reads of them */
};

struct rt_group rt_group_of(const struct image_step *, int steps);
/* One step of a group: the others are between its ranges nevertheless. */
struct rt_group rt_step_of(const struct rt_group *, int which);

/* How so many rows of a group are run by a team that meets in so many nanoseconds.  RT_COLUMNS says that each
 * step is run in a way of its own, which is asked for the group of that step alone. */
enum rt_way rt_choose(const struct rt_group *, int64_t rows, int parts, double meeting);

/* The first of `rows` rows that a part runs; the next part's first is its end.  Shares are whole tiles, or
 * half tiles when there are fewer tiles than parts; the first is the greatest.  Less than half a tile is no
 * faster: what reading the weights costs is the same.  Blocks of columns are shared out as rows are, by tiles
 * of 1: a part always has the same, so that their weights stay in the caches of its processor. */
int64_t rt_share(int64_t rows, int64_t tile, int part, int parts);
int64_t rt_greatest_tile(const struct rt_group *);

#endif
