/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tickets: queued by any thread, admitted and ended by the one that drives.
 *
 * The lock guards all but the engine, which is the driver's; where nobody drives, it is that of the thread
 * with the lock. */
#include "serve/service.h"

#include "serve/engine.h"

#include <pthread.h>
#include <time.h>

enum place { WAITING, ADMITTING, IN_FLIGHT, ENDED };

struct serve_ticket {
	struct serve_ticket *before, *after; /* among those that wait, or are in flight */
	struct serve_submission of;
	struct serve_request *request; /* NULL = none yet */
	struct diags diags;
	enum place place;
	enum serve_answer answer;
	bool cancelled, freed; /* freed: by its owner, while the driver may use it */
	int sleepers;	       /* threads that wait for it, or to drive */
	pthread_cond_t wake;
};

struct tickets {
	struct serve_ticket *first, *last;
};

struct serve_service {
	const struct allocator *allocator;
	struct serve_engine *engine;
	struct rt_team *team;
	pthread_mutex_t lock;
	int64_t requests;
	struct tickets waiting, in_flight,
	    freed; /* freed: have ended, and the driver returns their requests */
	bool driving;
	struct serve_service_counts counts;
};

/* --- lists --- */

static void put_behind(struct tickets *l, struct serve_ticket *before, struct serve_ticket *t)
{
	t->before = before;
	t->after = before ? before->after : l->first;
	*(t->before ? &t->before->after : &l->first) = t;
	*(t->after ? &t->after->before : &l->last) = t;
}

/* Behind those of the same priority. */
static void put_ticket(struct tickets *l, struct serve_ticket *t)
{
	struct serve_ticket *before = l->last;
	while (before && before->of.priority < t->of.priority)
		before = before->before;
	put_behind(l, before, t);
}

static void remove_ticket(struct tickets *l, struct serve_ticket *t)
{
	*(t->before ? &t->before->after : &l->first) = t->after;
	*(t->after ? &t->after->before : &l->last) = t->before;
	t->before = t->after = NULL;
}

/* --- the service --- */

struct serve_service *serve_open(const struct allocator *a, const struct image *image,
				 const struct serve_service_options *o, struct diags *diags)
{
	struct serve_service *s = rt_allocate_zeroed(a, sizeof *s);
	if (!s) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a service");
		return NULL;
	}
	s->allocator = a;
	s->team = o->team;
	s->requests = o->requests;
	s->engine = serve_create(a, image, o->limits, diags);
	if (!s->engine) {
		rt_free(a, s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void serve_close(struct serve_service *s)
{
	if (!s)
		return;
	serve_free(s->engine);
	pthread_mutex_destroy(&s->lock);
	rt_free(s->allocator, s);
}

/* --- the end of tickets --- */

static void free_ticket(struct serve_service *s, struct serve_ticket *t)
{
	pthread_cond_destroy(&t->wake);
	if (t->request)
		serve_release(s->engine, t->request);
	diags_free(&t->diags);
	rt_free(s->allocator, t);
}

/* The ticket is in no list.  Only a ticket that is done keeps its request, for its results. */
static void end_ticket(struct serve_service *s, struct serve_ticket *t, enum serve_answer answer)
{
	if (answer != SERVE_DONE && t->request) {
		serve_release(s->engine, t->request);
		t->request = NULL;
	}
	t->answer = answer;
	t->place = ENDED;
	s->counts.answers[answer]++;
	s->counts.pending--;
	if (t->of.release)
		t->of.release(t->of.user);
	if (t->sleepers)
		pthread_cond_broadcast(&t->wake);
	if (t->freed)
		free_ticket(s, t);
}

/* How a ticket must end before it has results; SERVE_PENDING = it need not. */
static enum serve_answer find_early_end(const struct serve_ticket *t, int64_t at)
{
	return t->cancelled				? SERVE_CANCELLED
	       : t->of.deadline && t->of.deadline <= at ? SERVE_EXPIRED
							: SERVE_PENDING;
}

static void end_early(struct serve_service *s, struct tickets *l, int64_t at)
{
	for (struct serve_ticket *t = l->first, *next; t; t = next) {
		enum serve_answer answer = find_early_end(t, at);
		next = t->after;
		if (answer == SERVE_PENDING)
			continue;
		remove_ticket(l, t);
		end_ticket(s, t, answer);
	}
}

/* Frees tickets that their owners freed while somebody drove. */
static void free_ended(struct serve_service *s)
{
	for (struct serve_ticket *t; (t = s->freed.first);) {
		remove_ticket(&s->freed, t);
		free_ticket(s, t);
	}
}

/* --- driving --- */

/* Admits a ticket without the lock; false when it must wait. */
static bool admit_ticket(struct serve_service *s, struct serve_ticket *t)
{
	t->place = ADMITTING;
	remove_ticket(&s->waiting, t);
	pthread_mutex_unlock(&s->lock);
	enum serve_outcome outcome =
	    serve_admit(s->engine, t->of.binding, &t->of.minibatch, t->of.priority, &t->request, &t->diags);
	if (outcome == SERVE_ADMITTED)
		*serve_owner(t->request) = t;
	pthread_mutex_lock(&s->lock);
	if (outcome == SERVE_REFUSED) {
		end_ticket(s, t, SERVE_REJECTED);
	} else if (outcome == SERVE_FULL) { /* before those that came meanwhile with its priority */
		struct serve_ticket *behind = s->waiting.first;
		while (behind && behind->of.priority > t->of.priority)
			behind = behind->after;
		t->place = WAITING;
		put_behind(&s->waiting, behind ? behind->before : s->waiting.last, t);
	} else {
		t->place = IN_FLIGHT;
		put_behind(&s->in_flight, s->in_flight.last, t);
	}
	return outcome != SERVE_FULL;
}

/* Ends the tickets whose requests have ended. */
static void take_ended(struct serve_service *s, const struct diags *why)
{
	for (struct serve_request *r; (r = serve_take(s->engine));) {
		struct serve_ticket *t = *serve_owner(r);
		bool done = serve_succeeded(r);
		if (!done && why->n)
			diag_add(&t->diags, why->at[0].id, (struct diag_at){0}, why->at[0].hint, "%s",
				 why->at[0].message);
		remove_ticket(&s->in_flight, t);
		end_ticket(s, t, done ? SERVE_DONE : SERVE_REJECTED);
	}
}

/* One superstep, with the lock before and behind it. */
static void drive_engine(struct serve_service *s)
{
	struct diags diags;
	int64_t at = rt_nanoseconds();
	end_early(s, &s->waiting, at);
	end_early(s, &s->in_flight, at);
	while (s->waiting.first && admit_ticket(s, s->waiting.first))
		;
	pthread_mutex_unlock(&s->lock);
	diags_init(&diags, s->allocator);
	int threads = rt_enter_team(s->team, serve_operations(s->engine));
	serve_advance(s->engine, s->team, threads, &diags);
	if (threads)
		rt_team_leave(s->team);
	pthread_mutex_lock(&s->lock);
	struct serve_counts counts = serve_count(s->engine);
	s->counts.supersteps = counts.supersteps;
	s->counts.nodes = counts.nodes;
	take_ended(s, &diags);
	at = rt_nanoseconds();
	end_early(s, &s->waiting, at);
	end_early(s, &s->in_flight, at);
	free_ended(s);
	diags_free(&diags);
}

/* Wakes a thread that waits for a pending ticket: it will drive. */
static void hand_over(const struct serve_service *s)
{
	struct serve_ticket *t = s->in_flight.first ? s->in_flight.first : s->waiting.first;
	for (; t; t = t->after ? t->after : t->place == IN_FLIGHT ? s->waiting.first : NULL)
		if (t->sleepers) {
			pthread_cond_signal(&t->wake);
			return;
		}
}

static void sleep_until(struct serve_service *s, struct serve_ticket *t, int64_t until)
{
	struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
	t->sleepers++;
	if (until == INT64_MAX)
		pthread_cond_wait(&t->wake, &s->lock);
	else
		pthread_cond_timedwait(&t->wake, &s->lock, &time);
	t->sleepers--;
}

enum serve_answer serve_wait(struct serve_service *s, struct serve_ticket *t, int64_t until)
{
	pthread_mutex_lock(&s->lock);
	while (t->place != ENDED && (until == INT64_MAX || rt_nanoseconds() < until)) {
		if (s->driving) {
			sleep_until(s, t, until);
			continue;
		}
		s->driving = true;
		drive_engine(s);
		s->driving = false;
	}
	enum serve_answer answer = t->answer;
	if (!s->driving)
		hand_over(s);
	pthread_mutex_unlock(&s->lock);
	return answer;
}

/* --- tickets --- */

static struct serve_ticket *new_ticket(struct serve_service *s, const struct serve_submission *of,
				       struct diags *diags)
{
	struct serve_ticket *t = rt_allocate_zeroed(s->allocator, sizeof *t);
	pthread_condattr_t attributes;
	if (!t) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a request");
		return NULL;
	}
	t->of = *of;
	diags_init(&t->diags, s->allocator);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	return t;
}

static bool enqueue_ticket(struct serve_service *s, struct serve_ticket *t)
{
	pthread_mutex_lock(&s->lock);
	bool room = s->counts.pending < s->requests;
	if (room) {
		put_ticket(&s->waiting, t);
		s->counts.pending++;
		s->counts.submitted++;
	} else {
		s->counts.full++;
	}
	pthread_mutex_unlock(&s->lock);
	return room;
}

struct serve_ticket *serve_submit(struct serve_service *s, const struct serve_submission *of,
				  struct diags *diags)
{
	struct serve_ticket *t = new_ticket(s, of, diags);
	if (!t || enqueue_ticket(s, t))
		return t;
	free_ticket(s, t);
	diag_add(diags, DIAG_SERVICE_FULL, (struct diag_at){0}, "submit it again when others have ended",
		 "%lld requests wait or are computed", (long long)s->requests);
	return NULL;
}

enum serve_answer serve_ticket_answer(struct serve_service *s, const struct serve_ticket *t)
{
	pthread_mutex_lock(&s->lock);
	enum serve_answer answer = t->answer;
	pthread_mutex_unlock(&s->lock);
	return answer;
}

/* Ends a ticket that the driver does not hold. */
static void cancel_ticket(struct serve_service *s, struct serve_ticket *t)
{
	t->cancelled = true;
	if (t->place != WAITING && (t->place != IN_FLIGHT || s->driving))
		return;
	remove_ticket(t->place == WAITING ? &s->waiting : &s->in_flight, t);
	end_ticket(s, t, SERVE_CANCELLED);
}

void serve_cancel(struct serve_service *s, struct serve_ticket *t)
{
	pthread_mutex_lock(&s->lock);
	if (t->place != ENDED)
		cancel_ticket(s, t);
	pthread_mutex_unlock(&s->lock);
}

const void *serve_ticket_row(const struct serve_ticket *t, int output, int64_t row)
{
	return t->request ? serve_row(t->request, output, row) : NULL;
}

struct diags *serve_ticket_diags(struct serve_ticket *t)
{
	return &t->diags;
}

/* What is pending ends first, by the driver if there is one. */
void serve_ticket_free(struct serve_service *s, struct serve_ticket *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&s->lock);
	if (t->place != ENDED) {
		t->freed = true;
		cancel_ticket(s, t);
	} else if (s->driving) {
		put_behind(&s->freed, s->freed.last, t);
	} else {
		free_ticket(s, t);
	}
	pthread_mutex_unlock(&s->lock);
}

struct serve_service_counts serve_count_service(struct serve_service *s)
{
	pthread_mutex_lock(&s->lock);
	struct serve_service_counts counts = s->counts;
	pthread_mutex_unlock(&s->lock);
	return counts;
}
