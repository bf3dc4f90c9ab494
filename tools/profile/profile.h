/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier profile: recorded runs, what is counted of them, and the forms in which it is shown.
 *
 *   recording   one run                                                 recording.h
 *   gathering   the times of many runs over one forest                  gather.c
 *   summary     what is counted of them, by section and by kernel       summary.c
 *   view        what is shown: the summary and the fastest of the runs  text.c json.c trace.c svg.c legend.c
 *
 * A section is what runs over the same rows: a level, the leaves, all nodes, the structures. */
#ifndef ESPALIER_TOOLS_PROFILE_H
#define ESPALIER_TOOLS_PROFILE_H

#include "floor.h"

#include <stdio.h>

/* --- times of many runs --- */

/* The columns of a run's row of times: its phases, then sections, cells and threads. */
enum { TIME_LINEARIZE, TIME_FILL, TIME_RUN, TIME_WHOLE, TIME_PHASES };
enum { SECTION_TIME, SECTION_WAIT, SECTION_TIMES };
enum { THREAD_BUSY, THREAD_WAIT, THREAD_TIMES };

struct gathering {
	size_t sections, cells, columns;
	int threads, runs, most;
	struct floor_span *span; /* of each section */
	size_t *cell;		 /* the first cell of each section, which has a cell for each step */
	double *time;		 /* [most][columns], seconds */
	double *own;		 /* seconds of the current thread, by cell */
	size_t *section_of;	 /* by range */
	size_t most_ranges;	 /* capacity of section_of */
};

/* Reserves space for `runs` runs over the same rows as a recorded one, by `threads` threads at most.
 * False, and empty, when memory is out. */
bool gathering_begin(struct gathering *, const struct recording *, int threads, int runs);
/* Adds a run; false when memory is out or its rows differ. */
bool gathering_add(struct gathering *, const struct recording *);
void gathering_free(struct gathering *);

static inline size_t section_column(size_t section, int which)
{
	return TIME_PHASES + section * SECTION_TIMES + which;
}

static inline size_t cell_column(const struct gathering *g, size_t cell)
{
	return section_column(g->sections, 0) + cell;
}

static inline size_t thread_column(const struct gathering *g, int thread, int which)
{
	return cell_column(g, g->cells) + thread * THREAD_TIMES + which;
}

/* --- the summary --- */

/* Least and median over the runs. */
struct seconds {
	double least, median;
};

/* A step in a section; its time is that of the thread that worked longest on it. */
struct cell {
	double operations, bytes; /* bytes: of weights; both of all its rows */
	struct seconds time;
};

struct section {
	struct floor_span span;
	size_t cell;
	int over, split;     /* split: in the run that is shown */
	double floor, alone; /* seconds: floors with all threads and with one */
	struct seconds time; /* from its beginning to its end */
	double wait;	     /* median of the seconds that all threads together waited in it */
};

struct kernel {
	size_t calls; /* in the run that is shown */
	double rows, operations, bytes, floor;
	double time;  /* sum of medians */
	double share; /* of the time that all threads have in the run that is shown */
};

/* Median seconds of a thread. */
struct thread {
	double busy, wait, idle;
	size_t taken; /* shares of other threads that it computed, in the run that is shown */
};

enum { WIDTHS = 32 };

/* Levels of 2^(i-1)+1 .. 2^i nodes. */
struct width {
	size_t levels, nodes;
	double time, floor; /* of their sections; time: medians */
};

struct summary {
	int runs, threads;
	size_t sections, steps;
	struct seconds linearize, fill, run, whole;
	double floor; /* sum over the sections */
	/* Shares of the time of all threads, in the run that is shown; together with those of the kernels
	 * they add up to 1. */
	double waiting, idle;
	struct section *section;
	struct cell *cell;
	struct kernel *kernel; /* by step */
	struct thread *thread;
	struct width width[WIDTHS];
};

/* Summarizes the runs, of which `shown` is one, and computes the machine's floors. False, and empty, when
 * memory is out. */
bool summarize_runs(struct summary *, const struct gathering *, const struct recording *shown,
		    const struct machine *);
void summary_free(struct summary *);
/* Index in `width` of a level of so many nodes. */
int width_of(size_t nodes);

/* --- what is shown --- */

struct view {
	const char *model;
	const char *sizes;    /* "V = 8217, D = 64"; may be empty */
	const char *schedule; /* as `espalier dump sched` writes it */
	const struct machine *machine;
	const struct recording *shown;
	const struct summary *summary;
};

void view_text(FILE *, const struct view *);
void view_json(FILE *, const struct view *);
void view_trace(FILE *, const struct view *);
void view_svg(FILE *, const struct view *);

/* "leaves", "inner nodes", ... */
const char *over_word(int over);
/* "alone", "rows", "columns". */
const char *split_word(int split);
/* The name of a range's rows: "level 3", "nodes". */
void range_name(int over, int64_t level, char *name, size_t size);
/* Amount per second, in units of 1e9; 0 when the time is 0. */
double giga_per_second(double amount, double seconds);
/* Fraction part / whole; 0 when the whole is 0. */
double fraction_of(double part, double whole);

#endif
