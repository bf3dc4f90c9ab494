/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Continuous batching: requests join and leave while others are being computed.
 *
 * A *cell* is what is computed at one node.  A *superstep* runs the cells that are ready, of all requests,
 * over one range of rows for each traversal: those whose children (in a traversal down, whose parents) were
 * computed in earlier supersteps.  A node gets a row when its cell is picked, and returns it when no cell
 * will read it any more.  So the memory is bounded by what is in flight, and a structure that joins now is
 * computed together with others that joined long ago.
 *
 * Requests that wait while nothing is in flight may be gathered instead: then they are one minibatch, a *forest*, which is
 * run as a session runs it, and end together.  Where that takes less for a cell is measured (choose_way.h).
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
/* Chooses how requests are computed that have company, where so many are pending, whose nodes are so many besides those of
 * requests in flight; 0 = by supersteps.  True: those that wait are to be gathered.  Otherwise they may be admitted, but where
 * only those in flight keep them from being gathered, and will not for long, those that come behind them find it full; not
 * when they are not `patient`, as when one has a deadline. */
bool serve_prefers_forest(struct serve_engine *, int64_t requests, int64_t nodes, bool patient);
/* Gathers a request into the forest that is run next.  Full: it would not fit, or be no forest's; late: it, or one that was
 * gathered before, would hardly end before its deadline.  The first may be admitted when none is gathered any more. */
enum serve_outcome serve_gather(struct serve_engine *, const struct serve_entry *, struct serve_request **);
/* Releases the request that was gathered last, which may be admitted; NULL = there was none, and requests that wait are admitted
 * rather than gathered until the next choice. */
struct serve_request *serve_drop_gathered(struct serve_engine *);
/* Runs one superstep, on so many threads of a team that was entered; below 2 alone.  False after a
 * diagnostic: then all requests in flight have failed.  Where requests were gathered, it runs their forest on a team that it
 * enters itself; what is still gathered behind it can only be admitted one by one, as one of them is to be refused. */
bool serve_advance(struct serve_engine *, struct rt_team *, int threads, struct diags *);
/* The operations that workers may do in the next superstep at most; 0 = a forest is next. */
double serve_operations(const struct serve_engine *);
/* Whether sequences of the image can be carried on: nodes have one child, and are traversed once, upwards.
 * False after a diagnostic. */
bool serve_can_carry(const struct serve_engine *, struct diags *);
/* Bytes of the states of a carry. */
size_t serve_carry_bytes(const struct image *);
/* Whether requests are in flight, or gathered. */
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
	uint64_t forests; /* of the supersteps */
	uint64_t forest_requests, forest_nodes; /* of the requests and nodes those of forests */
	int64_t rows, most_rows; /* in use now, and at most at once */
};
struct serve_counts serve_count(const struct serve_engine *);

#endif
