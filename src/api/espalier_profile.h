/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_profile.h - where the time of a run went (doc/profiling.md); espalier.h includes it. */
#ifndef ESPALIER_PROFILE_H
#define ESPALIER_PROFILE_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* What a session recorded of one run.  Times are nanoseconds since the run began. */
typedef struct esp_profile esp_profile;

/* From the next run on the session records each of its runs (`on` != 0), or no longer.  A run that is
 * recorded gives the same bits; it takes two readings of the clock longer for each call of a kernel.
 * ESP_ERROR_BUSY: another thread runs the session. */
esp_status esp_session_record(esp_session *, int on, esp_error **error);
/* Of the last run.  NULL: it was not recorded, or failed, or there was no memory for its record.  Belongs to
 * the session, valid until its next run, or until it is trimmed. */
const esp_profile *esp_session_profile(const esp_session *);

typedef struct esp_profile_facts {
	int64_t begin; /* of the run, in nanoseconds of CLOCK_MONOTONIC */
	/* What its phases took, one after the other: the order of nodes, with all checks of the forest;
	 * buffers and what nodes carry; the steps. */
	int64_t linearize, fill, run;
	int threads; /* that the run could be divided among, the caller's own included */
	size_t structures, nodes, edges, leaves; /* as the caller's forest has them */
	size_t levels, steps, ranges, events; /* see below */
	/* Bytes that the binding holds of weights, and the session for states, for intermediates, for
	 * outputs, for what nodes carry, for the order and links of nodes; and of machine code, 0 = it is
	 * interpreted. */
	uint64_t weight_bytes, state_bytes, scratch_bytes, output_bytes, data_bytes, index_bytes, code_bytes;
} esp_profile_facts;
/* NULL when the profile is. */
const esp_profile_facts *esp_profile_describe(const esp_profile *);

/* The nodes of a level: level 0 is the leaves, a node is one level above the highest of its children.
 * 0 past the last. */
size_t esp_profile_nodes(const esp_profile *, size_t level);

/* Over which rows a step goes: for a level at a time, the nodes of it; otherwise all there are at once. */
enum {
	ESP_OVER_NODES = 0,
	ESP_OVER_LEAVES = 1,
	ESP_OVER_INNER = 2, /* nodes with children */
	ESP_OVER_STRUCTURES = 3,
	ESP_OVER_EDGES = 4 /* those to the children of nodes */
};

/* A step of the program: a kernel, or a function of an accelerator, and its rows. */
typedef struct esp_step {
	const char *name; /* of the kernel or function */
	int over;
	int64_t operations; /* of a row, non-linearities included, estimated; 0 = unknown */
	/* Columns are cut into blocks; what a block reads of weights, whatever the number of rows. */
	int64_t blocks, block_bytes;
	int64_t tile; /* rows that the kernel computes together at most */
	/* Of weights, what all blocks read together: what several of them read is counted once, so it is at most
	 * blocks * block_bytes. */
	int64_t weight_bytes;
	/* Besides these: bytes of weights that an edge selects by its token of input `edge_input`, such as the matrix of its
	 * label.  Edges with the same token read the same.  0 = none. */
	int64_t edge_bytes;
	int edge_input;
	/* Of a step that an accelerator runs, the cycles that it takes for a row, estimated (doc/vta.md); 0 = the host runs
	 * it. */
	int64_t cycles;
} esp_step;
/* NULL past the last. */
const esp_step *esp_profile_step(const esp_profile *, size_t i);

enum {
	ESP_SPLIT_NONE = 0,   /* the caller computes it alone */
	ESP_SPLIT_ROWS = 1,   /* each thread some of the rows, all steps of the range */
	ESP_SPLIT_COLUMNS = 2, /* each thread some of the blocks of columns, all rows */
	ESP_SPLIT_SUBTREES = 3 /* each thread some of the subtrees of several levels, a range each, all steps */
};

/* Rows, and the steps that ran over them, in the order in which they ran.  A node is one row, or, where instances such as the
 * images of a batch were made rows (doc/schedules.md, `unstack`), as many as it has instances.  It ends when all threads have
 * ended their shares, before the next begins.  There is no barrier between levels that are divided by
 * subtrees: such a level begins when the one below has ended, though some threads may have begun before, or ended. */
typedef struct esp_range {
	size_t step, steps; /* the first, and how many */
	int64_t level;	    /* -1: its rows are no level; of several the lowest */
	int64_t row, rows;  /* the first, and how many */
	int split;
	int64_t start, stop;
} esp_range;
/* NULL past the last. */
const esp_range *esp_profile_range(const esp_profile *, size_t i);

enum { ESP_EVENT_KERNEL = 0, ESP_EVENT_WAIT = 1 };

/* What a thread did: a call of a kernel, or waiting until the others have ended a range. */
typedef struct esp_event {
	int kind;
	int thread; /* that did it; 0 = that of the caller */
	int share;  /* the thread whose share of the range it is; the caller runs shares that have not been begun in time */
	size_t range;
	/* Of a call, which rows and which blocks of columns, in which direction (1 or -1). */
	size_t step;
	int64_t row, rows, block, blocks;
	int direction;
	int64_t start, stop;
} esp_event;
/* By thread and, of a thread, in order of time; those of one thread do not overlap.  NULL past the last. */
const esp_event *esp_profile_event(const esp_profile *, size_t i);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
