/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The driver: admits tickets, runs supersteps, and ends what has ended. */
#include "serve/engine.h"
#include "serve/tickets.h"

#include <time.h>

/* --- early ends --- */

/* How a ticket must end before it has results; SERVE_PENDING = it need not. */
static enum serve_answer find_early_end(const struct serve_ticket *t, int64_t at)
{
	return t->cancelled				? SERVE_CANCELLED
	       : t->of.deadline && t->of.deadline <= at ? SERVE_EXPIRED
							: SERVE_PENDING;
}

/* Ends those of a list that must; notes the next deadline of the others. */
static void end_early(struct serve_service *s, struct serve_tickets *l, int64_t at)
{
	for (struct serve_ticket *t = l->first, *next; t; t = next) {
		enum serve_answer answer = find_early_end(t, at);
		next = t->after;
		if (answer == SERVE_PENDING) {
			if (t->of.deadline && t->of.deadline < s->next_deadline)
				s->next_deadline = t->of.deadline;
			continue;
		}
		if (l == &s->waiting)
			s->waiting_nodes -= t->of.minibatch.forest.nodes;
		serve_remove_ticket(l, t);
		serve_end_ticket(s, t, answer);
	}
}

/* What has expired or was cancelled ends before anything is computed for it. */
static void end_all_early(struct serve_service *s)
{
	int64_t at = rt_nanoseconds();
	if (!s->cancels && at < s->next_deadline)
		return;
	s->cancels = false;
	s->next_deadline = INT64_MAX;
	end_early(s, &s->waiting, at);
	end_early(s, &s->computed, at);
}

/* --- admission --- */

static struct serve_entry entry_of(const struct serve_ticket *t)
{
	return (struct serve_entry){t->of.binding, &t->of.minibatch, t->rank, t->of.carry, t->of.deadline};
}

/* Puts a ticket back that must wait, before those that came meanwhile with its rank. */
static void put_back(struct serve_service *s, struct serve_ticket *t)
{
	struct serve_ticket *behind = s->waiting.first;
	while (behind && behind->rank < t->rank)
		behind = behind->after;
	t->place = SERVE_WAITING;
	s->waiting_nodes += t->of.minibatch.forest.nodes;
	serve_put_ticket_behind(&s->waiting, behind ? behind->before : s->waiting.last, t);
}

/* Admits a ticket without the lock; false when it must wait. */
static bool admit_ticket(struct serve_service *s, struct serve_ticket *t)
{
	t->place = SERVE_ADMITTING;
	s->waiting_nodes -= t->of.minibatch.forest.nodes;
	serve_remove_ticket(&s->waiting, t);
	pthread_mutex_unlock(&s->lock);
	const struct serve_entry entry = entry_of(t);
	enum serve_outcome outcome = serve_admit(s->engine, &entry, &t->request, &t->diags);
	if (outcome == SERVE_ADMITTED)
		*serve_owner(t->request) = t;
	pthread_mutex_lock(&s->lock);
	if (outcome == SERVE_REFUSED || outcome == SERVE_LATE) {
		serve_end_ticket(s, t, outcome == SERVE_LATE ? SERVE_EXPIRED : SERVE_REJECTED);
	} else if (outcome == SERVE_FULL) {
		put_back(s, t);
	} else {
		t->place = SERVE_COMPUTED;
		t->joined = t->request->joined;
		serve_trace_joined(s, t);
		serve_put_ticket_behind(&s->computed, s->computed.last, t);
	}
	return outcome != SERVE_FULL;
}

/* --- forests --- */

/* Whether a ticket may be computed together with others as one forest: nothing is carried to it, and none has failed. */
static bool may_gather(const struct serve_ticket *t)
{
	return !t->of.carry && !t->apart;
}

static bool gather_ticket(struct serve_service *s, struct serve_ticket *t, enum serve_outcome *outcome)
{
	const struct serve_entry entry = entry_of(t);
	*outcome = may_gather(t) ? serve_gather(s->engine, &entry, &t->request) : SERVE_FULL;
	if (*outcome != SERVE_ADMITTED)
		return false;
	*serve_owner(t->request) = t;
	s->waiting_nodes -= t->of.minibatch.forest.nodes;
	serve_remove_ticket(&s->waiting, t);
	t->place = SERVE_COMPUTED;
	t->joined = s->engine->drive_begin;
	serve_put_ticket_behind(&s->computed, s->computed.last, t);
	return true;
}

/* Puts those back that are gathered. */
static void put_gathered_back(struct serve_service *s, bool apart)
{
	for (struct serve_request *r; (r = serve_drop_gathered(s->engine));) {
		struct serve_ticket *t = *serve_owner(r);
		serve_remove_ticket(&s->computed, t);
		t->request = NULL;
		t->apart |= apart;
		put_back(s, t);
	}
}

/* Gathers those that wait, in their order, if that is the better way for them; two at least, and none that would be late so. */
static bool gather_tickets(struct serve_service *s)
{
	const struct serve_ticket *first = s->waiting.first;
	enum serve_outcome outcome = SERVE_ADMITTED;
	int64_t pending = first && !may_gather(first) ? 0 : s->counters.pending, gathered = 0;
	if (!serve_prefers_forest(s->engine, pending, s->waiting_nodes, !s->deadlines))
		return false;
	while (s->waiting.first && gather_ticket(s, s->waiting.first, &outcome))
		gathered++;
	if (gathered > 1 && outcome != SERVE_LATE)
		return true;
	put_gathered_back(s, false);
	return false;
}

/* Behind the run of a forest, which was one if nothing of it is left. */
static void note_forest(struct serve_service *s)
{
	put_gathered_back(s, true);
	for (const struct serve_ticket *t = s->computed.first; t; t = t->after)
		serve_trace_joined(s, t);
}

/* --- supersteps --- */

/* Ends the tickets whose requests have ended. */
static void take_ended(struct serve_service *s, const struct diags *why)
{
	s->taken = rt_nanoseconds();
	for (struct serve_request *r; (r = serve_take(s->engine));) {
		struct serve_ticket *t = *serve_owner(r);
		bool done = serve_succeeded(r);
		if (!done)
			diags_copy(&t->diags, why);
		serve_remove_ticket(&s->computed, t);
		serve_end_ticket(s, t, done ? SERVE_DONE : SERVE_REJECTED);
	}
}

static void note_superstep(struct serve_service *s)
{
	struct serve_counts n = serve_count(s->engine);
	struct serve_counters *c = &s->counters;
	uint64_t nodes = n.nodes - serve_read(&c->nodes), steps = n.supersteps - serve_read(&c->supersteps);
	if (nodes)
		serve_note_value(&c->step_rows, (int64_t)nodes);
	bool forest = n.forests > serve_read(&c->forests);
	serve_add(&c->nodes, nodes);
	serve_add(&c->supersteps, steps);
	atomic_store_explicit(&c->forests, n.forests, memory_order_release);
	atomic_store_explicit(&c->forest_requests, n.forest_requests, memory_order_release);
	atomic_store_explicit(&c->forest_nodes, n.forest_nodes, memory_order_release);
	if (steps)
		serve_trace_superstep(s, n.supersteps, nodes, forest);
	atomic_store_explicit(&c->rows, n.rows, memory_order_release);
}

void serve_drive(struct serve_service *s)
{
	struct diags diags;
	s->driving = true;
	end_all_early(s);
	bool forest = gather_tickets(s);
	while (!forest && s->waiting.first && admit_ticket(s, s->waiting.first))
		;
	pthread_mutex_unlock(&s->lock);
	diags_init(&diags, s->allocator);
	if (serve_is_busy(s->engine)) {
		int threads = rt_enter_team(s->options.team, serve_operations(s->engine));
		serve_advance(s->engine, s->options.team, threads, &diags);
		if (threads)
			rt_team_leave(s->options.team);
	}
	pthread_mutex_lock(&s->lock);
	if (forest)
		note_forest(s);
	note_superstep(s);
	take_ended(s, &diags);
	end_all_early(s);
	diags_free(&diags);
	s->driving = false;
}

/* --- who drives --- */

bool serve_has_work(const struct serve_service *s)
{
	return s->waiting.first || s->computed.first;
}

int64_t serve_start_time(const struct serve_service *s)
{
	const struct serve_engine *e = s->engine;
	if (!s->options.company || s->computed.first || !s->waiting.first ||
	    s->waiting_nodes >= e->limits.step_rows)
		return 0;
	int64_t oldest = INT64_MAX;
	for (const struct serve_ticket *t = s->waiting.first; t; t = t->after)
		oldest = t->submitted < oldest ? t->submitted : oldest;
	int64_t start = oldest + s->options.company;
	return start < s->next_deadline ? start : s->next_deadline;
}

/* A ticket that waits is driven by one of the threads that wait for it, if there are any.  Not all tickets
 * are looked at: there may be thousands that no thread waits for.  A thread whose ticket has ended is awake. */
void serve_hand_over(struct serve_service *s)
{
	for (struct serve_sleeper *w = s->sleeping; w; w = w->after)
		if (w->ticket->place < SERVE_TOLD) {
			pthread_cond_signal(&w->ticket->wake);
			return;
		}
	if (s->started && serve_has_work(s))
		pthread_cond_signal(&s->work);
}

static void add_sleeper(struct serve_service *s, struct serve_sleeper *w)
{
	w->before = s->sleeping_last;
	*(w->before ? &w->before->after : &s->sleeping) = w;
	s->sleeping_last = w;
}

static void remove_sleeper(struct serve_service *s, struct serve_sleeper *w)
{
	*(w->before ? &w->before->after : &s->sleeping) = w->after;
	*(w->after ? &w->after->before : &s->sleeping_last) = w->before;
}

static void sleep_until(struct serve_service *s, struct serve_ticket *t, int64_t until)
{
	struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
	struct serve_sleeper self = {.ticket = t};
	if (!t->has_wake)
		serve_init_condition(&t->wake);
	t->has_wake = true;
	t->sleepers++;
	add_sleeper(s, &self);
	if (until == INT64_MAX)
		pthread_cond_wait(&t->wake, &s->lock);
	else
		pthread_cond_timedwait(&t->wake, &s->lock, &time);
	remove_sleeper(s, &self);
	t->sleepers--;
}

enum serve_answer serve_wait(struct serve_service *s, struct serve_ticket *t, int64_t until)
{
	enum serve_answer answer = serve_ticket_answer(t);
	if (answer != SERVE_PENDING)
		return answer;
	pthread_mutex_lock(&s->lock);
	while (t->place < SERVE_TOLD && (until == INT64_MAX || rt_nanoseconds() < until)) {
		int64_t start = s->driving ? INT64_MAX : serve_start_time(s);
		if (start && start > rt_nanoseconds()) {
			sleep_until(s, t, until < start ? until : start);
			continue;
		}
		serve_drive(s);
		serve_free_tickets(s);
	}
	answer = serve_ticket_answer(t);
	if (!s->driving)
		serve_hand_over(s);
	pthread_mutex_unlock(&s->lock);
	return answer;
}
