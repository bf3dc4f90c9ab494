/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A queue before an engine, for any number of threads.
 *
 * Of the threads that wait for tickets one *drives*, superstep after superstep, until its own ticket has
 * ended; then another one does.  So a thread that submits and waits while nobody else does computes at once,
 * and wakes nobody.  The first ticket that nobody needs to wait for starts a thread of the service, which
 * drives when no other does, and calls back. */
#ifndef ESPALIER_SERVE_QUEUE_H
#define ESPALIER_SERVE_QUEUE_H

#include "serve/counters.h"
#include "serve/serve.h"
#include "serve/trace.h"

struct serve_service_options {
	struct serve_limits limits;
	int64_t requests;     /* that wait or are in flight at most */
	int64_t bytes;	      /* of these and their results at most; 0 = no limit */
	int64_t company;      /* how long a request may wait for others when none is in flight [ns] */
	int64_t head_start;   /* by which a request is ahead of those with a priority less by one [ns] */
	struct rt_team *team; /* NULL = none */
	/* Called before and behind what the thread of the service computes; when `enter` returns false,
	 * `leave` is called, and what is pending ends as rejected.  NULL = nothing is to be called. */
	bool (*enter)(void *user);
	void (*leave)(void *user);
	void *user; /* argument of both */
};

/* What tells that a ticket has ended, besides serve_wait. */
enum serve_notice {
	SERVE_NO_NOTICE,
	SERVE_CALL, /* `done` is called by the thread of the service, with no lock held */
	SERVE_EVENT /* serve_next returns it, and the descriptor becomes readable */
};

struct serve_ticket;

struct serve_submission {
	struct rt_minibatch minibatch;
	const struct rt_binding *binding;
	uint64_t generation; /* of the binding, for the trace */
	struct serve_carry *carry; /* NULL = none; `busy` is cleared when the ticket has ended */
	int priority;		   /* larger ones come first, by a head start each */
	int64_t deadline;	   /* of CLOCK_MONOTONIC [ns], 0 = none */
	enum serve_notice notice;
	void (*done)(void *user);
	/* Called once, with no lock held, when the ticket was freed and nothing of the submission is read any
	 * more.  May be NULL. */
	void (*release)(void *user);
	void *user;		      /* argument of both */
	struct serve_ticket **ticket; /* set before anything is called; may be NULL */
	/* Memory for the ticket, zeroed, of serve_ticket_bytes() bytes, which is not used any more when `release` is called;
	 * NULL = it is allocated. */
	void *memory;
};

struct serve_service;

/* As serve_create. */
struct serve_service *serve_open(const struct allocator *, const struct image *,
				 const struct serve_service_options *, struct diags *);
/* All tickets were freed, and no thread is in a call, but perhaps the thread of the service in a `done` or
 * `release`. */
void serve_close(struct serve_service *);
/* Waits until tickets that were freed while a thread drove are given back: then whoever holds the service
 * last is a caller, and not its thread, which could still be closing it when the process ends. Does nothing
 * in that thread. */
void serve_settle(struct serve_service *);
/* A multiple of the alignment that any type needs. */
size_t serve_ticket_bytes(void);
/* NULL after a diagnostic, `service-full` among them; then `release` is not called. */
struct serve_ticket *serve_submit(struct serve_service *, const struct serve_submission *, struct diags *);
/* Waits until the ticket has ended, or until a time of CLOCK_MONOTONIC [ns]; INT64_MAX = no limit.  May
 * compute for others meanwhile; a superstep that has begun is run to its end.  Takes no lock when it has ended. */
enum serve_answer serve_wait(struct serve_service *, struct serve_ticket *, int64_t until);
/* The answer without waiting, and without a lock. */
enum serve_answer serve_ticket_answer(const struct serve_ticket *);
/* A pending ticket ends as cancelled, at the next superstep if it is in flight. */
void serve_cancel(struct serve_service *, struct serve_ticket *);
/* When a ticket that is done was submitted (0), joined (1) and ended (2) [ns]; otherwise 0. */
int64_t serve_ticket_time(struct serve_service *, const struct serve_ticket *, int which);
/* As serve_row, of a ticket that is done; NULL of any other, also while another thread computes it. */
const void *serve_ticket_row(const struct serve_ticket *, int output, int64_t row);
/* Why it was rejected. */
struct diags *serve_ticket_diags(struct serve_ticket *);
/* Cancels it if it is pending; it is not called back any more, unless `done` runs already.  No other thread
 * uses the ticket.  NULL is accepted. */
void serve_ticket_free(struct serve_service *, struct serve_ticket *);
/* A descriptor (eventfd) that is readable while serve_next has a ticket to return; -1 after a diagnostic.  It
 * is the service's. */
int serve_descriptor(struct serve_service *, struct diags *);
/* The user of the ticket with an event that ended first and was not returned yet; NULL = there is none. */
void *serve_next(struct serve_service *);
/* As serve_can_carry. */
bool serve_can_stream(const struct serve_service *, struct diags *);
/* Records the last `events` events of requests and supersteps, from now on; 0 = no longer, and what was
 * recorded is freed.  False after a diagnostic, when memory is out: then nothing changes. */
bool serve_record(struct serve_service *, size_t events, struct diags *);
/* A copy of what was recorded, to be freed; its capacity is 0 when nothing is.  False after a diagnostic,
 * when memory is out. */
bool serve_copy_trace(struct serve_service *, struct serve_trace_copy *, struct diags *);
void serve_free_trace(struct serve_service *, struct serve_trace_copy *);
/* What was counted so far. */
const struct serve_counters *serve_counters(const struct serve_service *);

#endif
