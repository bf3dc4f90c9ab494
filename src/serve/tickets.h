/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the service share.
 *
 * The lock guards all but the engine, which is the driver's; where nobody drives, it is that of the thread
 * with the lock. */
#ifndef ESPALIER_SERVE_TICKETS_H
#define ESPALIER_SERVE_TICKETS_H

#include "serve/queue.h"
#include "serve/trace.h"

#include <pthread.h>

/* Where a ticket is, and who may touch it:
 *   WAITING    in the queue                            who has the lock
 *   ADMITTING  the driver checks it without the lock   the driver
 *   COMPUTED   in flight                               the driver; where nobody drives, who has the lock
 *   TOLD       ended, to be called back or returned    who has the lock
 *   OVER       ended                                   its owner */
enum serve_place { SERVE_WAITING, SERVE_ADMITTING, SERVE_COMPUTED, SERVE_TOLD, SERVE_OVER };

struct serve_ticket {
	struct serve_ticket *before, *after; /* in the list of its place */
	struct serve_submission of;
	struct serve_request *request; /* NULL = none yet */
	struct diags diags;
	enum serve_place place;
	_Atomic enum serve_answer answer; /* written last, when its stream may go on; read without the lock */
	uint64_t number; /* of those that were submitted, from 1 on */
	int64_t rank;	 /* what is smaller comes first [ns] */
	int64_t bytes;
	int64_t submitted, joined, ended; /* when [ns] */
	bool cancelled, freed;	   /* freed: by its owner, while another thread may use it */
	bool calling;		   /* `done` runs */
	bool lent;		   /* its memory is the caller's */
	bool has_wake;		   /* `wake` was made, by the first who sleeps */
	bool apart;		   /* a forest that it was gathered into could not be run */
	int sleepers;		   /* threads that wait for it, or to drive */
	pthread_cond_t wake;
};

struct serve_tickets {
	struct serve_ticket *first, *last;
};

/* A thread that waits for a ticket, or to drive; on its stack. */
struct serve_sleeper {
	struct serve_sleeper *before, *after;
	struct serve_ticket *ticket;
};

/* Puts a ticket behind another one; NULL = first. */
void serve_put_ticket_behind(struct serve_tickets *, struct serve_ticket *before, struct serve_ticket *);
void serve_remove_ticket(struct serve_tickets *, struct serve_ticket *);

struct serve_service {
	const struct allocator *allocator;
	const struct image *image;
	struct serve_service_options options;
	struct serve_engine *engine;
	uint64_t process; /* the fork generation that it belongs to */
	pthread_mutex_t lock;
	/* freed: they have ended, and the driver returns their requests */
	struct serve_tickets waiting, computed, calls, events, freed;
	struct serve_sleeper *sleeping, *sleeping_last; /* who sleeps longest comes first */
	bool driving, cancels; /* cancels: one in flight was cancelled */
	int finishing;	       /* threads that give back what was freed, without the lock */
	pthread_cond_t settled; /* no ticket is freed that is not given back */
	int64_t next_deadline; /* none of those pending is earlier; INT64_MAX = none has one */
	int64_t deadlines;     /* how many of those pending have one */
	int64_t waiting_nodes;
	int64_t taken; /* when results were last taken from the engine [ns]: when their tickets have ended */
	int descriptor; /* -1 = none yet */
	/* the thread */
	pthread_t thread;
	pthread_cond_t work;
	bool started, closing;
	bool *gone; /* set when the thread itself has closed the service */
	struct serve_counters counters;
	struct serve_trace trace;
};

/* --- service.c --- */

/* Ends a ticket that is in no list.  One that is freed is put among `freed`. */
void serve_end_ticket(struct serve_service *, struct serve_ticket *, enum serve_answer);
/* Frees tickets that their owners have freed; the caller drives or nobody does, and has the lock, which is
 * released meanwhile. */
void serve_free_tickets(struct serve_service *);

/* --- drive.c --- */

/* Whether something is pending. */
bool serve_has_work(const struct serve_service *);
/* When the next superstep may begin: now, or when those that wait have waited for company. */
int64_t serve_start_time(const struct serve_service *);
/* Runs one superstep, with the lock before and behind it; nobody else drives. */
void serve_drive(struct serve_service *);
/* Wakes who is to drive next, if nobody does: who has waited longest for a ticket, or the thread. */
void serve_hand_over(struct serve_service *);

/* --- trace_ring.c: each records an event, if the service is recorded; with the lock --- */

void serve_trace_submitted(struct serve_service *, const struct serve_ticket *);
void serve_trace_joined(struct serve_service *, const struct serve_ticket *);
void serve_trace_ended(struct serve_service *, const struct serve_ticket *, enum serve_answer);
/* Of a superstep that the caller has driven, behind it; whether it was a forest. */
void serve_trace_superstep(struct serve_service *, uint64_t number, uint64_t nodes, bool forest);

/* --- notify.c --- */

/* Starts the thread of the service if there is none.  False after a diagnostic. */
bool serve_start_thread(struct serve_service *, struct diags *);
void serve_stop_thread(struct serve_service *);
/* Tells that a ticket has ended, as it was submitted to. */
void serve_tell(struct serve_service *, struct serve_ticket *);
/* Whether the thread runs `done` of the ticket. */
bool serve_is_called_here(const struct serve_ticket *);
/* Takes a ticket out of the list in which it waits to be told. */
void serve_forget(struct serve_service *, struct serve_ticket *);
void serve_init_condition(pthread_cond_t *);

#endif
