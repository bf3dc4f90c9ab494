/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Search for a faster schedule: the alternatives to each directive, which the library lists (`espalier
 * dump choices`), and contests between two schedules. */
#ifndef ESPALIER_TOOLS_TUNE_H
#define ESPALIER_TOOLS_TUNE_H

#include "bench/bench.h"

/* --- directives: the differences from the schedule that the library chooses --- */

struct directive {
	char *key, *line;
	bool plan; /* it belongs to the fusion plan, which decides what groups there are */
};

struct directives {
	struct directive *at;
	size_t n;
};

/* Sets a directive, replacing one with the same key. A directive of the plan also removes all others,
 * which were for the groups of the old plan. False, and the directives unchanged, when memory is out. */
bool directives_set(struct directives *, const char *key, const char *line, bool plan);
bool directives_copy(struct directives *, const struct directives *from);
/* The text of a schedule, which the caller frees; NULL when memory is out. */
char *directives_text(const struct directives *);
void directives_free(struct directives *);

/* --- the space around a schedule --- */

struct option {
	char *line;
	double predicted; /* by the cost model; NaN = not predicted */
};

/* The options of one directive; the first is that of the schedule. */
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
/* Whether its options change the fusion plan, and with it the groups. */
bool block_is_plan(const struct block *);
/* The group that its directive is for; NULL = none. */
const char *block_group(const struct block *);
/* The block of a key; NULL = there is none. */
const struct block *space_find(const struct space *, const char *key);
void space_free(struct space *);

/* --- which is faster --- */

struct contest {
	size_t batch, minibatches;
	double seconds;	 /* about how long each of the two runs */
	int places;	 /* places in memory at which both are timed, since some are faster by chance */
	bool any_bits;	 /* results may differ, as sums may be in another order */
	double hopeless; /* a challenger that takes so many times as long is given up */
};

struct outcome {
	double holder, challenger; /* undisturbed seconds for the minibatches that both ran */
	bool differs;		   /* in some bit of a result */
};

/* Runs both alternately over the same minibatches. Returns the exit status, after a message when it is not
 * 0. */
int contest_run(const struct contest *, struct subject *holder, struct subject *challenger, struct outcome *);
/* The kernels of a group. */
struct kernels {
	double share; /* of a run's time */
	int64_t rows; /* the most that one call computes */
};
/* By a recorded run of the first minibatch. */
int contest_kernels(const struct contest *, struct subject *, const char *group, struct kernels *);

/* --- the search --- */

struct search {
	const struct options *options;
	struct contest contest;
	struct subject *first, *holder; /* with the schedule that the library chose; with the best so far */
	struct directives directives;	/* of the holder */
	double deadline;		/* of read_clock */
	bool tells_all; /* gains of challengers that are no faster are printed, too */
	const char *base; /* what is printed before a challenger's line: that of the schedule that it is added to; NULL = the holder's */
	long measured, differing;
	char **tried; /* texts of schedules */
	size_t tries;
};

/* Whether time is up or the user has interrupted the search. */
bool search_is_over(const struct search *);
/* Climbs from `first` until no alternative is faster or the search is over. Returns the exit status. */
int search_climb(struct search *);
/* What became of a schedule. */
struct attempt {
	bool tried;  /* it was new */
	bool faster; /* it is the holder's now */
	double ratio; /* how many times as fast as the holder it was; 0 = it was not measured, or changes results */
};

/* Measures a schedule (NULL = the holder's) with one more line against the holder, and replaces that if it is faster.  Returns the
 * exit status. */
int search_try(struct search *, const struct directives *from, const char *key, const char *line, bool plan, struct attempt *);
/* Tries the mutants of each value that has some, as the library lists them (`espalier explain --mutants`), against the best so
 * far; then those of the best, and of the fastest of the others, which are mutants of mutants.  Listing takes at most half of the
 * time that is left, and an interrupt ends it.  Returns the exit status. */
int search_mutants(struct search *);
void search_free(struct search *);

/* --- which precision --- */

/* Measures each precision and each type of weights against f32, in which `first` computes, and writes a table.  Returns the
 * exit status. */
int precisions_measure(const struct search *, FILE *to);

#endif
