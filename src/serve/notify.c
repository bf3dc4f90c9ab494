/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tickets that nobody needs to wait for: a thread that drives when no other does and calls back, and events.
 */
#include "serve/tickets.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

void serve_init_condition(pthread_cond_t *c)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* --- events --- */

static void raise_event(const struct serve_service *s)
{
	if (s->descriptor >= 0)
		eventfd_write(s->descriptor, 1); /* fails only when it is readable already */
}

static void lower_event(const struct serve_service *s)
{
	eventfd_t events;
	if (s->descriptor >= 0)
		eventfd_read(s->descriptor, &events); /* fails only when it is not readable */
}

int serve_descriptor(struct serve_service *s, struct diags *diags)
{
	pthread_mutex_lock(&s->lock);
	if (s->descriptor < 0) {
		s->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->descriptor < 0)
			diag_add(diags, DIAG_SYSTEM_REFUSED, (struct diag_at){0},
				 "close descriptors, or raise the limit",
				 "the system gave no descriptor for events");
		if (s->events.first)
			raise_event(s);
	}
	int descriptor = s->descriptor;
	pthread_mutex_unlock(&s->lock);
	return descriptor;
}

void *serve_next(struct serve_service *s)
{
	void *user = NULL;
	pthread_mutex_lock(&s->lock);
	struct serve_ticket *t = s->events.first;
	if (t) {
		user = t->of.user;
		serve_forget(s, t);
	}
	pthread_mutex_unlock(&s->lock);
	return user;
}

/* --- telling --- */

void serve_tell(struct serve_service *s, struct serve_ticket *t)
{
	if (t->of.notice == SERVE_NO_NOTICE)
		return;
	t->place = SERVE_TOLD;
	if (t->of.notice == SERVE_CALL) {
		serve_put_ticket_behind(&s->calls, s->calls.last, t);
		pthread_cond_signal(&s->work);
		return;
	}
	if (!s->events.first)
		raise_event(s);
	serve_put_ticket_behind(&s->events, s->events.last, t);
}

void serve_forget(struct serve_service *s, struct serve_ticket *t)
{
	serve_remove_ticket(t->of.notice == SERVE_CALL ? &s->calls : &s->events, t);
	t->place = SERVE_OVER;
	if (t->of.notice == SERVE_EVENT && !s->events.first)
		lower_event(s);
}

/* --- the thread --- */

/* The ticket whose `done` the thread runs, which may free it without the lock: no other thread uses it then. */
static _Thread_local const struct serve_ticket *called_here;

bool serve_is_called_here(const struct serve_ticket *t)
{
	return t == called_here;
}

/* Calls without the lock; a ticket that its owner frees meanwhile is freed behind the call. */
static void call_back(struct serve_service *s)
{
	struct serve_ticket *t = s->calls.first;
	serve_forget(s, t);
	t->calling = true;
	pthread_mutex_unlock(&s->lock);
	called_here = t;
	t->of.done(t->of.user);
	called_here = NULL;
	pthread_mutex_lock(&s->lock);
	t->calling = false;
	if (t->freed)
		serve_put_ticket_behind(&s->freed, s->freed.last, t);
}

static void reject_all(struct serve_service *s, struct serve_tickets *l)
{
	for (struct serve_ticket *t; (t = l->first);) {
		serve_remove_ticket(l, t);
		diag_add(&t->diags, DIAG_CLOSED, (struct diag_at){0}, "create another context",
			 "the context has been closed");
		serve_end_ticket(s, t, SERVE_REJECTED);
	}
}

/* One superstep, unless the context is closed. */
static void drive_as_thread(struct serve_service *s)
{
	const struct serve_service_options *o = &s->options;
	bool open = !o->enter || o->enter(o->user);
	if (open) {
		serve_drive(s);
	} else {
		reject_all(s, &s->waiting);
		reject_all(s, &s->computed);
		s->waiting_nodes = 0;
	}
	if (o->leave)
		o->leave(o->user);
}

static void wait_for_work(struct serve_service *s, int64_t until)
{
	struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
	if (until == INT64_MAX)
		pthread_cond_wait(&s->work, &s->lock);
	else
		pthread_cond_timedwait(&s->work, &s->lock, &time);
}

/* Calls a ticket back, drives or waits. */
static void serve_thread_once(struct serve_service *s)
{
	if (s->calls.first) {
		call_back(s);
		return;
	}
	int64_t start = s->driving || !serve_has_work(s) ? INT64_MAX : serve_start_time(s);
	if (start && start > rt_nanoseconds())
		wait_for_work(s, start);
	else
		drive_as_thread(s);
}

/* Whether what was freed is given back now: behind the calls of those that have ended together, or behind many.  Until then
 * who settles the service gives it back, since the next call may wait for that thread. */
static bool gives_back(struct serve_service *s, int *calls)
{
	enum { MOST_CALLS = 64 };
	bool later = s->driving || (s->calls.first && ++*calls < MOST_CALLS);
	if (later && s->freed.first)
		pthread_cond_broadcast(&s->settled);
	*calls = later ? *calls : 0;
	return !later;
}

static void *run_thread(void *service)
{
	struct serve_service *s = service;
	bool gone = false;
	int calls = 0;
	pthread_mutex_lock(&s->lock);
	s->gone = &gone;
	while (!s->closing) {
		serve_thread_once(s);
		if (gives_back(s, &calls))
			serve_free_tickets(s);
		if (gone)
			return NULL;
	}
	s->gone = NULL;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The thread takes no signals: handlers run in threads of the program. */
bool serve_start_thread(struct serve_service *s, struct diags *diags)
{
	sigset_t all, before;
	if (s->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&s->thread, NULL, run_thread, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->started = error == 0;
	return s->started ||
	       diag_add(diags, DIAG_SYSTEM_REFUSED, (struct diag_at){0}, "wait for the ticket instead",
			"the system gave no thread for the service: %s", strerror(error));
}

void serve_stop_thread(struct serve_service *s)
{
	if (!s->started)
		return;
	if (pthread_equal(pthread_self(), s->thread)) {
		*s->gone = true;
		pthread_detach(s->thread);
		return;
	}
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}
