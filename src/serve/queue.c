/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services and tickets, from submission to their end. */
#include "serve/tickets.h"

#include "base/fork.h"
#include "serve/engine.h"

#include <unistd.h>

/* --- lists --- */

void serve_put_ticket_behind(struct serve_tickets *l, struct serve_ticket *before, struct serve_ticket *t)
{
	t->before = before;
	t->after = before ? before->after : l->first;
	*(t->before ? &t->before->after : &l->first) = t;
	*(t->after ? &t->after->before : &l->last) = t;
}

void serve_remove_ticket(struct serve_tickets *l, struct serve_ticket *t)
{
	*(t->before ? &t->before->after : &l->first) = t->after;
	*(t->after ? &t->after->before : &l->last) = t->before;
	t->before = t->after = NULL;
}

/* By rank, then by age. */
static void put_by_rank(struct serve_tickets *l, struct serve_ticket *t)
{
	struct serve_ticket *before = l->last;
	while (before && before->rank > t->rank)
		before = before->before;
	serve_put_ticket_behind(l, before, t);
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
	s->image = image;
	s->options = *o;
	s->process = fork_generation();
	s->next_deadline = INT64_MAX;
	s->descriptor = -1;
	s->engine = serve_create(a, image, o->limits, diags);
	if (!s->engine) {
		rt_free(a, s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	serve_init_condition(&s->work);
	serve_init_condition(&s->settled);
	return s;
}

/* A child of the process that opened it has none of its threads, whose locks and lists are as they left them:
 * there the memory of the service is not given back. */
static bool is_inherited(const struct serve_service *s)
{
	return s->process != fork_generation();
}

void serve_close(struct serve_service *s)
{
	if (!s || is_inherited(s))
		return;
	serve_stop_thread(s);
	if (s->descriptor >= 0)
		close(s->descriptor);
	serve_free(s->engine);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->settled);
	pthread_mutex_destroy(&s->lock);
	rt_free(s->allocator, s->trace.event);
	rt_free(s->allocator, s);
}

bool serve_can_stream(const struct serve_service *s, struct diags *diags)
{
	return serve_can_carry(s->engine, diags);
}

const struct serve_counters *serve_counters(const struct serve_service *s)
{
	return &s->counters;
}

/* --- submission --- */

size_t serve_ticket_bytes(void)
{
	return sizeof(struct serve_ticket) + (-sizeof(struct serve_ticket) & (_Alignof(max_align_t) - 1));
}

static struct serve_ticket *new_ticket(struct serve_service *s, const struct serve_submission *of,
				       struct diags *diags)
{
	struct serve_ticket *t = of->memory ? of->memory : rt_allocate_zeroed(s->allocator, sizeof *t);
	if (!t) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a request");
		return NULL;
	}
	t->of = *of;
	t->submitted = rt_nanoseconds();
	t->rank = t->submitted - of->priority * s->options.head_start;
	t->lent = of->memory;
	diags_init(&t->diags, s->allocator);
	return t;
}

static void destroy_ticket(struct serve_service *s, struct serve_ticket *t)
{
	if (t->has_wake)
		pthread_cond_destroy(&t->wake);
	diags_free(&t->diags);
	if (!t->lent)
		rt_free(s->allocator, t);
}

static int64_t row_bytes(int64_t elements, enum dtype dtype)
{
	return elements * dtype_traits_of(dtype)->bytes;
}

/* What a request holds until it is freed: its structure, what nodes and edges carry, and its results. */
static int64_t count_bytes(const struct image *image, const struct lin_forest *f)
{
	int64_t edges = f->nodes ? f->child_begin[f->nodes] - f->child_begin[0] : 0;
	int64_t bytes = (f->nodes + edges) * (int64_t)sizeof(int32_t);
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		bytes +=
		    (in->on_edge ? edges : f->nodes) * row_bytes(in->token ? 1 : in->elements, in->dtype);
	}
	for (int i = 0; i < image->outputs; i++) {
		const struct image_output *o = &image->output[i];
		bytes += (o->at_root ? f->inputs : f->nodes) * row_bytes(o->elements, o->dtype);
	}
	return bytes;
}

static bool refuse_ticket(struct serve_service *s, const char *what, int64_t has, int64_t most,
			  struct diags *diags)
{
	serve_add(&s->counters.full, 1);
	return diag_add(diags, DIAG_SERVICE_FULL, (struct diag_at){0},
			"submit it again when others have ended",
			"%lld %s of requests that wait or are computed; the limit is %lld", (long long)has,
			what, (long long)most);
}

/* One that alone is larger than the limit of bytes is taken when nothing else is pending. */
static bool has_room(struct serve_service *s, const struct serve_ticket *t, struct diags *diags)
{
	struct serve_counters *c = &s->counters;
	const struct serve_service_options *o = &s->options;
	if (c->pending >= o->requests)
		return refuse_ticket(s, "requests", c->pending, o->requests, diags);
	if (o->bytes && c->pending && c->bytes + t->bytes > o->bytes)
		return refuse_ticket(s, "bytes", c->bytes + t->bytes, o->bytes, diags);
	return true;
}

static void enqueue_ticket(struct serve_service *s, struct serve_ticket *t)
{
	struct serve_counters *c = &s->counters;
	put_by_rank(&s->waiting, t);
	s->waiting_nodes += t->of.minibatch.forest.nodes;
	s->deadlines += t->of.deadline != 0;
	if (t->of.deadline && t->of.deadline < s->next_deadline)
		s->next_deadline = t->of.deadline;
	serve_add(&c->submitted, 1);
	t->number = serve_read(&c->submitted);
	serve_trace_submitted(s, t);
	serve_change(&c->pending, 1);
	serve_change(&c->bytes, t->bytes);
	if (c->bytes > c->most_bytes)
		c->most_bytes = c->bytes;
	bool wanted = t->of.notice != SERVE_NO_NOTICE || s->options.company;
	if (wanted && !s->driving)
		serve_hand_over(s);
}

struct serve_ticket *serve_submit(struct serve_service *s, const struct serve_submission *of,
				  struct diags *diags)
{
	struct serve_ticket *t = new_ticket(s, of, diags);
	if (!t)
		return NULL;
	t->bytes = count_bytes(s->image, &of->minibatch.forest);
	pthread_mutex_lock(&s->lock);
	bool taken = has_room(s, t, diags) && (of->notice == SERVE_NO_NOTICE || serve_start_thread(s, diags));
	if (taken && of->ticket)
		*of->ticket = t;
	if (taken)
		enqueue_ticket(s, t);
	pthread_mutex_unlock(&s->lock);
	if (taken)
		return t;
	destroy_ticket(s, t);
	return NULL;
}

/* --- the end --- */

static void note_end(struct serve_service *s, struct serve_ticket *t, enum serve_answer answer)
{
	struct serve_counters *c = &s->counters;
	serve_add(&c->ended[answer], 1);
	serve_change(&c->pending, -1);
	serve_change(&c->bytes, -t->bytes);
	s->deadlines -= t->of.deadline != 0;
	if (!s->deadlines)
		s->next_deadline = INT64_MAX;
	int64_t now = t->ended = answer == SERVE_DONE ? s->taken : 0;
	serve_trace_ended(s, t, answer);
	if (answer != SERVE_DONE)
		return;
	serve_note_value(&c->queued, t->joined - t->submitted);
	serve_note_value(&c->computed, now - t->joined);
	serve_note_value(&c->whole, now - t->submitted);
}

/* Only a ticket that is done keeps its request, for its results. */
void serve_end_ticket(struct serve_service *s, struct serve_ticket *t, enum serve_answer answer)
{
	if (answer != SERVE_DONE && t->request) {
		serve_release(s->engine, t->request);
		s->counters.rows = serve_count(s->engine).rows;
		t->request = NULL;
	}
	note_end(s, t, answer);
	t->place = SERVE_OVER;
	if (t->of.carry)
		atomic_store(&t->of.carry->busy, false);
	if (t->freed)
		serve_put_ticket_behind(&s->freed, s->freed.last, t);
	else
		serve_tell(s, t);
	atomic_store_explicit(&t->answer, answer, memory_order_release);
	if (t->sleepers)
		pthread_cond_broadcast(&t->wake);
}

/* The last release may close the service: it is not looked at behind it. */
static void finish_ticket(struct serve_service *s, struct serve_ticket *t)
{
	void (*release)(void *) = t->of.release;
	void *user = t->of.user;
	destroy_ticket(s, t);
	if (release)
		release(user);
}

void serve_free_tickets(struct serve_service *s)
{
	struct serve_tickets freed = s->freed;
	if (!freed.first)
		return;
	bool *gone = s->gone, closed = false;
	s->freed = (struct serve_tickets){0};
	s->finishing++;
	for (struct serve_ticket *t = freed.first; t; t = t->after)
		if (t->request)
			serve_release(s->engine, t->request);
	pthread_mutex_unlock(&s->lock);
	for (struct serve_ticket *t = freed.first, *next; t && !closed; t = next) {
		next = t->after;
		finish_ticket(s, t);
		closed = gone && *gone;
	}
	if (closed)
		return;
	pthread_mutex_lock(&s->lock);
	s->finishing--;
	pthread_cond_broadcast(&s->settled);
}

static bool is_own_thread(const struct serve_service *s)
{
	return s->started && pthread_equal(pthread_self(), s->thread);
}

void serve_settle(struct serve_service *s)
{
	if (is_inherited(s))
		return;
	pthread_mutex_lock(&s->lock);
	while (!is_own_thread(s) && (s->finishing || s->freed.first))
		if (s->freed.first && !s->driving)
			serve_free_tickets(s);
		else
			pthread_cond_wait(&s->settled, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* --- tickets --- */

enum serve_answer serve_ticket_answer(const struct serve_ticket *t)
{
	return atomic_load_explicit(&t->answer, memory_order_acquire);
}

static bool is_pending(const struct serve_ticket *t)
{
	return t->place < SERVE_TOLD;
}

/* Ends a ticket that the driver does not hold. */
static void cancel_ticket(struct serve_service *s, struct serve_ticket *t)
{
	t->cancelled = true;
	s->cancels |= t->place != SERVE_WAITING;
	if (t->place != SERVE_WAITING && (t->place != SERVE_COMPUTED || s->driving))
		return;
	if (t->place == SERVE_WAITING)
		s->waiting_nodes -= t->of.minibatch.forest.nodes;
	serve_remove_ticket(t->place == SERVE_WAITING ? &s->waiting : &s->computed, t);
	serve_end_ticket(s, t, SERVE_CANCELLED);
}

void serve_cancel(struct serve_service *s, struct serve_ticket *t)
{
	pthread_mutex_lock(&s->lock);
	if (is_pending(t))
		cancel_ticket(s, t);
	pthread_mutex_unlock(&s->lock);
}

int64_t serve_ticket_time(struct serve_service *s, const struct serve_ticket *t, int which)
{
	pthread_mutex_lock(&s->lock);
	const int64_t times[] = {t->submitted, t->joined, t->ended};
	const bool known = which >= 0 && which < 3 && t->ended;
	pthread_mutex_unlock(&s->lock);
	return known ? times[which] : 0;
}

const void *serve_ticket_row(const struct serve_ticket *t, int output, int64_t row)
{
	return serve_ticket_answer(t) == SERVE_DONE ? serve_row(t->request, output, row) : NULL;
}

struct diags *serve_ticket_diags(struct serve_ticket *t)
{
	return &t->diags;
}

/* With the lock.  Whether the caller finishes it: otherwise the driver does, or the thread that calls it
 * back. */
static bool let_go(struct serve_service *s, struct serve_ticket *t)
{
	bool idle = t->place == SERVE_TOLD || t->place == SERVE_OVER;
	if (t->place == SERVE_TOLD)
		serve_forget(s, t);
	t->freed = true;
	if (!idle) {
		cancel_ticket(s, t);
		idle = t->place == SERVE_OVER;
		if (idle)
			serve_remove_ticket(&s->freed, t);
	}
	if (!idle || t->calling)
		return false;
	if (t->request && s->driving) {
		serve_put_ticket_behind(&s->freed, s->freed.last, t);
		return false;
	}
	if (t->request)
		serve_release(s->engine, t->request);
	return true;
}

void serve_ticket_free(struct serve_service *s, struct serve_ticket *t)
{
	if (!t)
		return;
	if (is_inherited(s)) {
		if (t->of.release)
			t->of.release(t->of.user);
		return;
	}
	if (serve_is_called_here(t)) {
		t->freed = true; /* its call gives it back */
		return;
	}
	pthread_mutex_lock(&s->lock);
	bool mine = let_go(s, t);
	pthread_mutex_unlock(&s->lock);
	if (mine)
		finish_ticket(s, t);
}
