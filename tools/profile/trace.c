/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes one run for trace viewers (Chrome's "Trace Event Format", JSON object form): complete events
 * ("X") on a lane for each thread, in microseconds of esp_clock, so that it can be joined with the trace of a
 * service (esp_service_trace). The caller's lane nests: run, phase, level, kernel. */
#include "profile.h"

#include "tool.h"

struct trace {
	FILE *to;
	int64_t begin; /* of the run [ns] */
	const char *comma;
};

/* Names a lane; `key` is process_name or thread_name. */
static void put_name(struct trace *t, const char *key, int thread, const char *name)
{
	fprintf(t->to, "%s{\"name\":\"%s\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":", t->comma,
		key, thread);
	write_json_string(t->to, name);
	fputs("}}", t->to);
	t->comma = ",\n";
}

/* Begins an event; the caller writes its arguments and the closing brace. */
static void put_event(struct trace *t, const char *name, const char *category, int thread, int64_t start,
		      int64_t stop)
{
	fprintf(t->to, "%s{\"name\":", t->comma);
	write_json_string(t->to, name);
	fprintf(t->to, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":",
		category, thread, (t->begin + start) * 1e-3, (stop - start) * 1e-3);
	t->comma = ",\n";
}

static void put_phase(struct trace *t, const char *name, int64_t start, int64_t stop)
{
	put_event(t, name, "phase", 0, start, stop);
	fputs("{}}", t->to);
}

static void put_phases(struct trace *t, const esp_profile_facts *f)
{
	int64_t fill = f->linearize, run = fill + f->fill, stop = run + f->run;
	put_phase(t, "whole", 0, stop);
	put_phase(t, "linearize", 0, fill);
	put_phase(t, "fill", fill, run);
	put_phase(t, "run", run, stop);
}

static void put_range(struct trace *t, const struct recording *r, const esp_range *range)
{
	char name[48];
	range_name(r->step[range->step].over, range->level, name, sizeof name);
	put_event(t, name, "level", 0, range->start, range->stop);
	fprintf(t->to, "{\"rows\":%lld,\"split\":\"%s\"}}", (long long)range->rows, split_word(range->split));
}

static void put_call(struct trace *t, const struct recording *r, const esp_event *e)
{
	put_event(t, r->step[e->step].name, "kernel", e->thread, e->start, e->stop);
	fprintf(t->to,
		"{\"row\":%lld,\"rows\":%lld,\"block\":%lld,\"blocks\":%lld,\"direction\":%d,\"level\":%lld,"
		"\"share\":%d}}",
		(long long)e->row, (long long)e->rows, (long long)e->block, (long long)e->blocks,
		e->direction, (long long)r->range[e->range].level, e->share);
}

void view_trace(FILE *to, const struct view *v)
{
	const struct recording *r = v->shown;
	struct trace t = {to, r->facts.begin, "\n"};
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
	put_name(&t, "process_name", 0, v->model);
	for (int i = 0; i < r->facts.threads; i++) {
		char name[32];
		snprintf(name, sizeof name, i ? "thread %d" : "caller", i);
		put_name(&t, "thread_name", i, name);
	}
	put_phases(&t, &r->facts);
	for (size_t i = 0; i < r->facts.ranges; i++)
		put_range(&t, r, &r->range[i]);
	for (size_t i = 0; i < r->facts.events; i++) {
		const esp_event *e = &r->event[i];
		if (e->kind == ESP_EVENT_KERNEL) {
			put_call(&t, r, e);
		} else {
			const char *state = recording_waits(r, i) ? "wait" : "idle";
			put_event(&t, state, state, e->thread, e->start, e->stop);
			fputs("{}}", to);
		}
	}
	fputs("\n]}\n", to);
}
