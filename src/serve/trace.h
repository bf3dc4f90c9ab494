/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The last events of a service's requests and supersteps, for trace viewers.
 *
 * Events are kept in a ring, written with the service's lock.  The first event of a request is its
 * submission, and a superstep comes before those who took part in it: so where the first event of a request
 * has not been overwritten, none of its others has, nor any superstep that it was in. */
#ifndef ESPALIER_SERVE_TRACE_H
#define ESPALIER_SERVE_TRACE_H

#include "serve/counters.h"

#include <stddef.h>

enum serve_trace_kind {
	SERVE_TRACE_SUBMITTED,
	SERVE_TRACE_JOINED,
	SERVE_TRACE_ENDED,
	SERVE_TRACE_SUPERSTEP, /* then a PART for each request that was in it */
	SERVE_TRACE_FOREST,    /* a superstep that ran whole requests as one forest; otherwise the same */
	SERVE_TRACE_PART
};

struct serve_trace_event {
	enum serve_trace_kind kind;
	enum serve_answer answer; /* ENDED */
	uint64_t request;	  /* its number; SUPERSTEP, FOREST: how many took part */
	uint64_t superstep;	  /* SUPERSTEP, FOREST, PART: its number */
	uint64_t generation;	  /* SUBMITTED: of the weights */
	int64_t nodes;		  /* SUBMITTED: of the request; SUPERSTEP, FOREST, PART: that were computed */
	int64_t time, stop;	  /* [ns]; stop: SUPERSTEP, FOREST, PART */
};

struct serve_trace {
	struct serve_trace_event *event;
	size_t capacity; /* 0 = nothing is recorded */
	size_t events;	 /* so far: the last `capacity` of them are there */
	uint64_t before; /* requests that were submitted before the recording began */
};

static inline void serve_trace_add(struct serve_trace *t, struct serve_trace_event e)
{
	t->event[t->events++ % t->capacity] = e;
}

/* A copy of a trace, oldest events first. */
struct serve_trace_copy {
	struct serve_trace_event *event;
	size_t capacity, events;
	uint64_t before, submitted; /* requests before the recording began, and until now */
	int64_t now;		    /* [ns] */
};

/* Appends the events as a list of JSON in Chrome's "Trace Event Format": the service is a process with that
 * name and number, requests are asynchronous slices, supersteps those of a thread, and a flow leads from each
 * superstep to the slices of its requests. */
void serve_print_trace(const struct serve_trace_copy *, const char *name, int process, struct str *);

#endif
