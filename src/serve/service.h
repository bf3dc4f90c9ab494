/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A queue before an engine, for any number of threads.
 *
 * No thread belongs to the service: of those that wait for tickets one *drives*, superstep after superstep,
 * until its own ticket has ended; then another one does.  So a thread that submits and waits while nobody
 * else does computes at once, and wakes nobody. */
#ifndef ESPALIER_SERVE_SERVICE_H
#define ESPALIER_SERVE_SERVICE_H

#include "serve/serve.h"

struct serve_service_options {
	struct serve_limits limits;
	int64_t requests;     /* that wait or are in flight at most */
	struct rt_team *team; /* NULL = none */
};

enum serve_answer {
	SERVE_PENDING,	/* it waits or is in flight */
	SERVE_DONE,	/* there are results */
	SERVE_REJECTED, /* it was refused or has failed: see serve_ticket_diags */
	SERVE_EXPIRED,	/* its deadline passed before it had ended */
	SERVE_CANCELLED
};
enum { SERVE_ANSWERS = SERVE_CANCELLED + 1 };

struct serve_submission {
	struct rt_minibatch minibatch;
	const struct rt_binding *binding;
	int priority;	  /* larger ones come first */
	int64_t deadline; /* of CLOCK_MONOTONIC [ns], 0 = none */
	/* Called once, when neither the minibatch nor the binding is read any more; with the service locked,
	 * so it must not call it.  May be NULL. */
	void (*release)(void *user);
	void *user;
};

struct serve_service;
struct serve_ticket;

/* As serve_create. */
struct serve_service *serve_open(const struct allocator *, const struct image *,
				 const struct serve_service_options *, struct diags *);
/* All tickets were freed, and no thread is in a call. */
void serve_close(struct serve_service *);
/* NULL after a diagnostic, `service-full` among them; then `release` is not called. */
struct serve_ticket *serve_submit(struct serve_service *, const struct serve_submission *, struct diags *);
/* Waits until the ticket has ended, or until a time of CLOCK_MONOTONIC [ns]; INT64_MAX = no limit.  May
 * compute for others meanwhile; a superstep that has begun is run to its end. */
enum serve_answer serve_wait(struct serve_service *, struct serve_ticket *, int64_t until);
/* The answer without waiting. */
enum serve_answer serve_ticket_answer(struct serve_service *, const struct serve_ticket *);
/* A pending ticket ends as cancelled, at the next superstep if it is in flight. */
void serve_cancel(struct serve_service *, struct serve_ticket *);
/* As serve_row, of a ticket that is done. */
const void *serve_ticket_row(const struct serve_ticket *, int output, int64_t row);
/* Why it was rejected. */
struct diags *serve_ticket_diags(struct serve_ticket *);
/* Cancels it if it is pending.  No other thread uses the ticket.  NULL is accepted. */
void serve_ticket_free(struct serve_service *, struct serve_ticket *);

struct serve_service_counts {
	uint64_t submitted, full;	 /* tickets, and submissions that were refused */
	uint64_t answers[SERVE_ANSWERS]; /* of those that have ended */
	int64_t pending;		 /* that wait or are in flight */
	uint64_t supersteps, nodes;
};
struct serve_service_counts serve_count_service(struct serve_service *);

#endif
