/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Schedules that are measured against each other: what a program's schedule may say instead, which the
 * library tells
 * (`espalier dump choices`), and which of two is faster. */
#ifndef ESPALIER_TOOLS_TUNE_H
#define ESPALIER_TOOLS_TUNE_H

#include "bench/bench.h"

/* --- directives: what differs from the schedule that the library chooses --- */

struct directive {
	char *key, *line;
	bool plan; /* it decides which groups there are */
};

struct directives {
	struct directive *at;
	size_t n;
};

/* Takes a directive in the place of what had its key; one of a plan takes away those that are of none, which
 * were for other groups.  False, and nothing changed that matters, without memory. */
bool directives_set(struct directives *, const char *key, const char *line, bool plan);
bool directives_copy(struct directives *, const struct directives *from);
/* As the text of a schedule, to be freed; NULL without memory. */
char *directives_text(const struct directives *);
void directives_free(struct directives *);

/* --- the space around a schedule --- */

struct option {
	char *line;
	double predicted; /* by the cost model; not a number = it is not */
};

/* What there is to choose of one directive; the first is what the schedule says. */
struct block {
	char *scope, *key;
	struct option *option;
	size_t options;
};

struct space {
	char *text;
	struct block *block;
	size_t blocks;
};

/* The exit status, after a message when it is not 0. */
int space_of(struct space *, esp_program *);
/* Of a plan, so that groups are others. */
bool block_is_plan(const struct block *);
/* The group that it is about; NULL = it is about none. */
const char *block_group(const struct block *);
/* The block of a key; NULL = there is none. */
const struct block *space_find(const struct space *, const char *key);
void space_free(struct space *);

/* --- which is faster --- */

struct contest {
	size_t batch, minibatches;
	double seconds;	 /* about so many for each of the two */
	int places;	 /* where in memory both are tried: some are luckier */
	double hopeless; /* a challenger that takes so many times as long is not looked at any further */
};

struct outcome {
	double holder, challenger; /* seconds of the minibatches that both ran, undisturbed */
	bool differs;		   /* some bit of a result does */
};

/* Runs both over the same minibatches, in turns.  The exit status, after a message when it is not 0. */
int contest_run(const struct contest *, struct subject *holder, struct subject *challenger, struct outcome *);
/* Which part of the time of a run a group takes, by one that is recorded of the first minibatch. */
int contest_share(const struct contest *, struct subject *, const char *group, double *share);

/* --- the search --- */

struct search {
	const struct options *options;
	struct contest contest;
	struct subject *first, *holder; /* with the schedule that the library chose; the best so far */
	struct directives directives;	/* of the holder */
	double deadline;		/* of the clock */
	long measured, differing;
	char **tried; /* texts of schedules */
	size_t tries;
};

double tune_clock(void);
/* A time limit, or the user has had enough. */
bool search_is_over(const struct search *);
/* From `first` on uphill, until no neighbour is faster or it is over.  The exit status. */
int search_climb(struct search *);
void search_free(struct search *);

#endif
