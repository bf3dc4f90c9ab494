/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Events of a service as JSON for trace viewers. */
#include "serve/trace.h"

#include <string.h>

/* How far a request has come, of those whose first event is there. */
enum phase { PHASE_QUEUE, PHASE_COMPUTE, PHASE_OVER };
static const char *const phases[] = {"queue", "compute"};

static const char *const outcomes[SERVE_ANSWERS] = {
    [SERVE_PENDING] = "pending", [SERVE_DONE] = "done",		  [SERVE_REJECTED] = "failed",
    [SERVE_EXPIRED] = "expired", [SERVE_CANCELLED] = "cancelled",
};

/* The thread of supersteps has this number and that of the process: Perfetto names threads by their numbers,
 * whatever their process, and those of `espalier profile` are smaller. */
enum { THREADS = 1000000 };

struct writer {
	struct str *to;
	int process;
	const char *comma;
	uint64_t first; /* the oldest request whose events are all there */
	char *phase;	/* by request, from the first on */
};

/* Begins an event, up to its time: the caller writes the rest. */
static void begin_event(struct writer *w, const char *name, uint64_t number, const char *phase, int64_t time)
{
	str_printf(w->to, "%s{\"name\":\"%s", w->comma, name);
	if (number)
		str_printf(w->to, " %llu", (unsigned long long)number);
	str_printf(w->to, "\",\"ph\":\"%s\",\"pid\":%d,\"ts\":%lld.%03d", phase, w->process,
		   (long long)(time / 1000), (int)(time % 1000));
	w->comma = ",\n";
}

static void put_name(struct writer *w, const char *key, const char *name)
{
	str_printf(w->to, "%s{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":",
		   w->comma, key, w->process, THREADS + w->process);
	str_json(w->to, name);
	str_puts(w->to, "}}");
	w->comma = ",\n";
}

/* Says how many requests were left out. */
static void put_dropped(struct writer *w, uint64_t dropped)
{
	str_printf(w->to,
		   "%s{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"labels\":\"%llu older "
		   "requests dropped\",\"dropped\":%llu}}",
		   w->comma, w->process, (unsigned long long)dropped, (unsigned long long)dropped);
}

/* A flow is named after its superstep; names are of all processes. */
static void put_flow(struct writer *w, const struct serve_trace_event *e, const char *direction)
{
	str_printf(w->to, ",\"bind_id\":\"0x%x%010llx\",\"%s\":true", (unsigned)w->process,
		   (unsigned long long)e->superstep & 0xffffffffff, direction);
}

/* --- slices of a request: those with its number nest --- */

static void put_slice(struct writer *w, const char *name, uint64_t number, const char *phase, int64_t time,
		      uint64_t request)
{
	begin_event(w, name, number, phase, time);
	str_printf(w->to, ",\"cat\":\"request\",\"id2\":{\"local\":\"%llu\"}", (unsigned long long)request);
}

static void put_plain_slice(struct writer *w, const char *name, const char *phase, int64_t time,
			    uint64_t request)
{
	put_slice(w, name, 0, phase, time, request);
	str_puts(w->to, "}");
}

static void begin_request(struct writer *w, const struct serve_trace_event *e)
{
	put_slice(w, "request", e->request, "b", e->time, e->request);
	str_printf(w->to, ",\"args\":{\"nodes\":%lld,\"generation\":%llu}}", (long long)e->nodes,
		   (unsigned long long)e->generation);
	put_plain_slice(w, phases[PHASE_QUEUE], "b", e->time, e->request);
}

static void join_request(struct writer *w, const struct serve_trace_event *e)
{
	put_plain_slice(w, phases[PHASE_QUEUE], "e", e->time, e->request);
	put_plain_slice(w, phases[PHASE_COMPUTE], "b", e->time, e->request);
	w->phase[e->request - w->first] = PHASE_COMPUTE;
}

static void end_request(struct writer *w, uint64_t request, int64_t time, enum serve_answer answer)
{
	char *phase = &w->phase[request - w->first];
	put_plain_slice(w, phases[(int)*phase], "e", time, request);
	put_slice(w, "request", request, "e", time, request);
	str_printf(w->to, ",\"args\":{\"outcome\":\"%s\"}}", outcomes[answer]);
	*phase = PHASE_OVER;
}

static void put_part(struct writer *w, const struct serve_trace_event *e)
{
	put_slice(w, "superstep", e->superstep, "b", e->time, e->request);
	put_flow(w, e, "flow_in");
	str_printf(w->to, ",\"args\":{\"nodes\":%lld}}", (long long)e->nodes);
	put_slice(w, "superstep", e->superstep, "e", e->stop, e->request);
	str_puts(w->to, "}");
}

/* --- all --- */

static void put_superstep(struct writer *w, const struct serve_trace_event *e)
{
	begin_event(w, e->kind == SERVE_TRACE_FOREST ? "forest" : "superstep", e->superstep, "X", e->time);
	str_printf(w->to, ",\"cat\":\"superstep\",\"tid\":%d,\"dur\":%lld.%03d", THREADS + w->process,
		   (long long)((e->stop - e->time) / 1000), (int)((e->stop - e->time) % 1000));
	put_flow(w, e, "flow_out");
	str_printf(w->to, ",\"args\":{\"rows\":%lld,\"requests\":%llu}}", (long long)e->nodes,
		   (unsigned long long)e->request);
}

static void put_event(struct writer *w, const struct serve_trace_event *e)
{
	if (e->kind == SERVE_TRACE_SUPERSTEP || e->kind == SERVE_TRACE_FOREST) {
		put_superstep(w, e);
		return;
	}
	if (e->request < w->first)
		return;
	switch (e->kind) {
	case SERVE_TRACE_SUBMITTED:
		begin_request(w, e);
		break;
	case SERVE_TRACE_JOINED:
		join_request(w, e);
		break;
	case SERVE_TRACE_ENDED:
		end_request(w, e->request, e->time, e->answer);
		break;
	default:
		put_part(w, e);
	}
}

/* The oldest request whose first event is there; the one that would be submitted next when there is none. */
static uint64_t find_first(const struct serve_trace_copy *t)
{
	for (size_t i = 0; i < t->events; i++)
		if (t->event[i].kind == SERVE_TRACE_SUBMITTED)
			return t->event[i].request;
	return t->submitted + 1;
}

void serve_print_trace(const struct serve_trace_copy *t, const char *name, int process, struct str *to)
{
	struct writer w = {.to = to, .process = process, .comma = "", .first = find_first(t)};
	const size_t requests = t->submitted + 1 - w.first;
	w.phase = ARENA_ARRAY(to->arena, char, requests + 1);
	memset(w.phase, PHASE_QUEUE, requests + 1);
	str_puts(to, "[\n");
	put_name(&w, "process_name", name);
	put_name(&w, "thread_name", "supersteps");
	put_dropped(&w, w.first - 1 - t->before);
	for (size_t i = 0; i < t->events; i++)
		put_event(&w, &t->event[i]);
	for (size_t i = 0; i < requests; i++)
		if (w.phase[i] != PHASE_OVER)
			end_request(&w, w.first + i, t->now, SERVE_PENDING);
	str_puts(to, "\n]\n");
}
