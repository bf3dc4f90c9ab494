/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a service counts.  Written with the service's lock; read by any thread at any time, without a lock: each
 * number is whole, and numbers that belong together may differ by what happens meanwhile.  So no addition needs to
 * be atomic, but only what it stores, after what was counted before. */
#ifndef ESPALIER_SERVE_COUNTERS_H
#define ESPALIER_SERVE_COUNTERS_H

#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

/* How a request stands, and how it ended. */
enum serve_answer {
	SERVE_PENDING,	/* it waits or is in flight */
	SERVE_DONE,	/* there are results */
	SERVE_REJECTED, /* it was refused or has failed: see serve_ticket_diags */
	SERVE_EXPIRED,	/* its deadline passed before it had ended */
	SERVE_CANCELLED
};
enum { SERVE_ANSWERS = SERVE_CANCELLED + 1 };

/* A histogram of values from 0 on: those below 2^SERVE_FINE have a bucket each, greater ones a part of an
 * octave, which is known to 1 / 2^SERVE_FINE (as in HdrHistogram). */
enum { SERVE_FINE = 5, SERVE_OCTAVES = 40, SERVE_BUCKETS = (SERVE_OCTAVES + 1) << SERVE_FINE };

struct serve_histogram {
	_Atomic uint64_t in[SERVE_BUCKETS];
	_Atomic uint64_t sum;
	_Atomic int64_t most;
};

void serve_note_value(struct serve_histogram *, int64_t value);

/* Quantiles are the greatest values of their buckets, and at most the greatest value. */
struct serve_distribution {
	uint64_t values;
	double mean;
	int64_t p50, p90, p99, p999, most;
};
struct serve_distribution serve_summarize(const struct serve_histogram *);
/* How many values are below 2^power. */
uint64_t serve_count_below(const struct serve_histogram *, int power);

struct serve_counters {
	_Atomic uint64_t submitted, full;      /* tickets, and submissions that were refused */
	_Atomic uint64_t ended[SERVE_ANSWERS]; /* by answer */
	_Atomic int64_t pending, bytes,
	    most_bytes; /* that wait or are in flight; their bytes, now and at most */
	_Atomic uint64_t supersteps, nodes, forests; /* forests: of the supersteps */
	_Atomic uint64_t forest_requests, forest_nodes; /* of the requests that are done, and of the nodes: those of forests */
	_Atomic int64_t rows;		  /* that nodes in flight have */
	struct serve_histogram step_rows; /* of supersteps: how many nodes each computed */
	struct serve_histogram queued, computed,
	    whole; /* of requests that are done: until they joined, from then on, both [ns] */
};

static inline void serve_add(_Atomic uint64_t *n, uint64_t more)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + more, memory_order_release);
}

/* The same of what also becomes less. */
static inline void serve_change(_Atomic int64_t *n, int64_t by)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + by, memory_order_release);
}

static inline uint64_t serve_read(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* Appends the counters in the text format of Prometheus (version 0.0.4): names begin with espalier_, times
 * are seconds. `labels` stands within the braces of every sample, `model="x"`; "" = none. */
void serve_print_metrics(const struct serve_counters *, uint64_t generation, const char *labels,
			 struct str *);

#endif
