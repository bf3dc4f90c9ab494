/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Continuous batching: requests join and leave while others are being computed.
 *
 * A *cell* is what is computed at one node.  A *superstep* runs the cells that are ready, of all requests,
 * over one range of rows for each traversal: those whose children (in a traversal down, whose parents) were
 * computed in earlier supersteps.  A node gets a row when its cell is picked, and returns it when no cell
 * will read it any more.  So the memory is bounded by what is in flight, and a structure that joins now is
 * computed together with others that joined long ago.
 *
 * A request has the bits of rt_session_run with the same program, whatever company it had: a row's result
 * does not depend on the rows beside it. */
#ifndef ESPALIER_SERVE_SERVE_H
#define ESPALIER_SERVE_SERVE_H

#include "runtime/runtime.h"

#include <stdatomic.h>

enum { SERVE_MOST_ROWS = INT32_MAX / 2 };

struct serve_limits {
	int64_t rows;	    /* that nodes in flight may have at once: from 1 to SERVE_MOST_ROWS */
	int64_t step_rows;  /* that one traversal may have in a superstep; at most rows */
	int64_t step_pairs; /* pairs of a node and a node of its input that one traversal may have in a
			       superstep */
};

enum serve_outcome {
	SERVE_REFUSED, /* after a diagnostic: it can never be admitted */
	SERVE_FULL,    /* not now, until others have ended: there are not enough rows, or supersteps are wide enough */
	SERVE_LATE,    /* it would hardly end before its deadline beside those in flight */
	SERVE_ADMITTED
};

struct serve_engine;
struct serve_request;

/* What is carried from one request to the next, of a sequence that goes on: the states of its last node, a
 * row of each buffer of states.  `busy`: a request reads and writes it; cleared when that has ended.  When
 * `begun`, the first node of the next request stands for that node: it is not computed. */
struct serve_carry {
	atomic_bool busy;
	bool begun;
	uint64_t elements; /* nodes so far */
	char *states;
};

/* The image must have been compiled for continuous batching (the option `continuous`).  All its code is made
 * here.  The image must outlive the engine.  NULL after a diagnostic. */
struct serve_engine *serve_create(const struct allocator *, const struct image *, struct serve_limits,
				  struct diags *);
/* Requests that are in flight are dropped. */
void serve_free(struct serve_engine *);

/* What is to be computed.  All of it must stay as it is until the request has ended. */
struct serve_entry {
	const struct rt_binding *binding;
	const struct rt_minibatch *minibatch; /* most often of one structure; the struct itself is copied */
	int64_t rank;			      /* smaller ones come first, then older requests */
	struct serve_carry *carry;	      /* written at the end of a request with results; NULL = none */
	int64_t deadline;		      /* of CLOCK_MONOTONIC [ns], 0 = none */
};

/* Admits a minibatch into the next superstep.  Requests of several bindings take turns, superstep by superstep. */
enum serve_outcome serve_admit(struct serve_engine *, const struct serve_entry *, struct serve_request **,
			       struct diags *);
/* Runs one superstep, on so many threads of a team that was entered; below 2 alone.  False after a
 * diagnostic: then all requests in flight have failed. */
bool serve_advance(struct serve_engine *, struct rt_team *, int threads, struct diags *);
/* The operations that workers may do in the next superstep at most. */
double serve_operations(const struct serve_engine *);
/* Whether sequences of the image can be carried on: nodes have one child, and are traversed once, upwards.
 * False after a diagnostic. */
bool serve_can_carry(const struct serve_engine *, struct diags *);
/* Bytes of the states of a carry. */
size_t serve_carry_bytes(const struct image *);
/* Whether requests are in flight. */
bool serve_is_busy(const struct serve_engine *);
/* The request that ended first and was not taken yet; NULL = there is none. */
struct serve_request *serve_take(struct serve_engine *);
/* Whether it ended with results. */
bool serve_succeeded(const struct serve_request *);
/* The row of an output: of a node (forest numbering) or, for an output at the root, of an input.  NULL = no
 * such row. Valid until the request is released. */
const void *serve_row(const struct serve_request *, int output, int64_t row);
/* Ends a request wherever it is, and takes its memory back for others. */
void serve_release(struct serve_engine *, struct serve_request *);
/* Room for what the caller knows of a request. */
void **serve_owner(struct serve_request *);

/* Counts since the engine was made, and of now. */
struct serve_counts {
	uint64_t supersteps, nodes, requests;
	int64_t rows, most_rows; /* in use now, and at most at once */
};
struct serve_counts serve_count(const struct serve_engine *);

#endif
