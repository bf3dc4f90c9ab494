/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Records events of requests and supersteps in a ring. */
#include "serve/engine.h"
#include "serve/tickets.h"

#include <string.h>

/* --- start, end and copy --- */

static bool refuse_memory(struct diags *diags)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "record fewer events",
			"no memory for the events of a service");
}

static struct serve_trace_event *new_events(const struct serve_service *s, size_t events)
{
	const size_t most = PTRDIFF_MAX / sizeof(struct serve_trace_event);
	return events > most ? NULL
			     : rt_allocate_zeroed(s->allocator, events * sizeof(struct serve_trace_event));
}

bool serve_record(struct serve_service *s, size_t events, struct diags *diags)
{
	struct serve_trace fresh = {.capacity = events};
	if (events && !(fresh.event = new_events(s, events)))
		return refuse_memory(diags);
	pthread_mutex_lock(&s->lock);
	struct serve_trace old = s->trace;
	fresh.before = serve_read(&s->counters.submitted);
	s->trace = fresh;
	pthread_mutex_unlock(&s->lock);
	rt_free(s->allocator, old.event);
	return true;
}

static void copy_events(struct serve_service *s, struct serve_trace_copy *to)
{
	const struct serve_trace *t = &s->trace;
	size_t first = t->events > t->capacity ? t->events % t->capacity : 0;
	to->events = t->events < t->capacity ? t->events : t->capacity;
	memcpy(to->event, t->event + first, (to->events - first) * sizeof *to->event);
	memcpy(to->event + (to->events - first), t->event, first * sizeof *to->event);
	to->before = t->before;
	to->submitted = serve_read(&s->counters.submitted);
	to->now = rt_nanoseconds();
}

/* Memory is taken without the lock; another thread may begin another recording meanwhile. */
bool serve_copy_trace(struct serve_service *s, struct serve_trace_copy *to, struct diags *diags)
{
	*to = (struct serve_trace_copy){0};
	pthread_mutex_lock(&s->lock);
	while (to->capacity != s->trace.capacity) {
		to->capacity = s->trace.capacity;
		pthread_mutex_unlock(&s->lock);
		rt_free(s->allocator, to->event);
		to->event = to->capacity ? new_events(s, to->capacity) : NULL;
		if (to->capacity && !to->event)
			return refuse_memory(diags);
		pthread_mutex_lock(&s->lock);
	}
	if (to->capacity)
		copy_events(s, to);
	pthread_mutex_unlock(&s->lock);
	return true;
}

void serve_free_trace(struct serve_service *s, struct serve_trace_copy *t)
{
	rt_free(s->allocator, t->event);
	*t = (struct serve_trace_copy){0};
}

/* --- events --- */

void serve_trace_submitted(struct serve_service *s, const struct serve_ticket *t)
{
	if (s->trace.capacity)
		serve_trace_add(&s->trace, (struct serve_trace_event){.kind = SERVE_TRACE_SUBMITTED,
								      .request = t->number,
								      .generation = t->of.generation,
								      .nodes = t->of.minibatch.forest.nodes,
								      .time = t->submitted});
}

void serve_trace_joined(struct serve_service *s, const struct serve_ticket *t)
{
	if (s->trace.capacity)
		serve_trace_add(&s->trace, (struct serve_trace_event){.kind = SERVE_TRACE_JOINED,
								      .request = t->number,
								      .time = t->joined});
}

void serve_trace_ended(struct serve_service *s, const struct serve_ticket *t, enum serve_answer answer)
{
	if (s->trace.capacity)
		serve_trace_add(&s->trace,
				(struct serve_trace_event){.kind = SERVE_TRACE_ENDED,
							   .answer = answer,
							   .request = t->number,
							   .time = t->ended ? t->ended : rt_nanoseconds()});
}

/* Requests whose last superstep it was have not been released yet. */
void serve_trace_superstep(struct serve_service *s, uint64_t number, uint64_t nodes, bool forest)
{
	const struct serve_engine *e = s->engine;
	struct serve_trace_event step = {.kind = forest ? SERVE_TRACE_FOREST : SERVE_TRACE_SUPERSTEP,
					 .request = e->picks,
					 .superstep = number,
					 .nodes = (int64_t)nodes,
					 .time = e->step_begin,
					 .stop = e->step_end};
	if (!s->trace.capacity)
		return;
	serve_trace_add(&s->trace, step);
	step.kind = SERVE_TRACE_PART;
	for (size_t i = 0; i < e->picks; i++) {
		const struct serve_ticket *t = *serve_owner(e->pick[i].request);
		step.request = t->number;
		step.nodes = e->pick[i].end - e->pick[i].begin;
		serve_trace_add(&s->trace, step);
	}
}
