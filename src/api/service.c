/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services and tickets as their callers see them. */
#include "api/submit.h"

#include <string.h>

struct esp_ticket {
	struct object object;
	esp_service *service;
	const esp_forest *forest;
	struct packed *weights;
	void *stream;		     /* an object; NULL = none */
	struct serve_ticket *ticket; /* in memory behind this struct; its release gives the object back */
	void (*done)(void *user, esp_ticket *);
	void *user;
	size_t structures;
	int32_t begin[]; /* structures + 1: their first nodes in the forest */
};

int64_t esp_clock(void)
{
	return rt_nanoseconds();
}

/* --- services --- */

static void destroy_service(void *object)
{
	esp_service *s = object;
	serve_close(s->queue);
	object_release(s->binding);
}

static bool enter_context(void *context)
{
	return context_enter(context);
}

static void leave_context(void *context)
{
	context_leave(context);
}

static bool read_options(const esp_service_options *from, struct serve_service_options *o,
			 struct diags *diags)
{
	const char *function = "esp_service_create";
	enum { ROWS = 4096, STEP_ROWS = 1024, STEP_PAIRS = 1 << 18, REQUESTS = 4096, HEAD_START = 100000000 };
	if (from->rows < 0 || from->step_rows < 0 || from->step_pairs < 0 || from->company < 0 ||
	    from->head_start < 0)
		return api_bad_argument(diags, function, "options", "must not be negative");
	if (from->head_start > 1000000000000)
		return api_bad_argument(diags, function, "options->head_start", "must be below 1000 s");
	if (from->rows > SERVE_MOST_ROWS)
		return api_bad_argument(diags, function, "options->rows", "must be below 2^30");
	o->limits.rows = from->rows ? from->rows : ROWS;
	o->limits.step_rows = from->step_rows ? from->step_rows : STEP_ROWS;
	o->limits.step_pairs = from->step_pairs ? from->step_pairs : STEP_PAIRS;
	o->requests = from->requests ? (int64_t)(from->requests & INT64_MAX) : REQUESTS;
	o->bytes = (int64_t)(from->bytes & INT64_MAX);
	o->company = from->company;
	o->head_start = from->head_start ? from->head_start : HEAD_START;
	return true;
}

static esp_service *new_service(esp_binding *binding, const esp_service_options *options, struct diags *diags)
{
	struct esp_context *c = binding->object.context;
	struct serve_service_options o = {
	    .team = &c->team, .enter = enter_context, .leave = leave_context, .user = c};
	if (!read_options(options, &o, diags))
		return NULL;
	esp_service *s = object_new(c, sizeof *s, destroy_service, diags);
	if (!s)
		return NULL;
	s->binding = object_hold(binding);
	s->queue = serve_open(&c->allocator, &binding->program->image, &o, diags);
	if (s->queue)
		return s;
	object_release(s);
	return NULL;
}

esp_status esp_service_create(esp_binding *binding, const esp_service_options *options, esp_service **out,
			      esp_error **error)
{
	struct api_call call = api_begin(binding);
	esp_service_options o = {.size = sizeof o};
	esp_service *s = NULL;
	if (api_need(&call, binding) && api_need(&call, out) &&
	    (!options || api_take_struct(&call.diags, __func__, "options", options, &o, sizeof o)))
		s = new_service(binding, &o, &call.diags);
	if (out)
		*out = s;
	return api_end(&call, s, error);
}

void esp_service_free(esp_service *s)
{
	if (s)
		serve_settle(s->queue);
	object_release(s);
}

/* --- submission --- */

static void destroy_ticket(void *object)
{
	esp_ticket *t = object;
	object_release(t->weights);
	object_release(t->stream);
	object_release((void *)t->forest);
	object_release(t->service);
}

static void call_done(void *ticket)
{
	esp_ticket *t = ticket;
	t->done(t->user, t);
}

/* Where the queue's ticket lies behind the struct of one with so many structures. */
static size_t place_in_queue(size_t structures)
{
	size_t bytes = sizeof(esp_ticket) + (structures + 1) * sizeof(int32_t);
	return bytes + (-bytes & (_Alignof(max_align_t) - 1));
}

/* Copies where structures begin: results are found by structure and node even after the forest has changed.
 */
static esp_ticket *new_ticket(const struct submission *of, const esp_submit_options *o, struct diags *diags)
{
	const struct lin_forest f = lin_collect_forest(&of->forest->collect);
	esp_ticket *t = object_new(of->service->object.context, place_in_queue(f.inputs) + serve_ticket_bytes(),
				   destroy_ticket, diags);
	if (!t)
		return NULL;
	t->service = object_hold(of->service);
	t->forest = object_hold(of->forest);
	t->weights = object_hold(of->weights);
	t->stream = of->stream ? object_hold(of->stream) : NULL;
	t->done = o->done;
	t->user = o->user;
	t->structures = f.inputs;
	if (f.inputs)
		memcpy(t->begin, f.input_begin, f.inputs * sizeof *t->begin);
	t->begin[0] += of->first;
	t->begin[f.inputs] = (int32_t)f.nodes;
	return t;
}

esp_ticket *ticket_submit(const struct submission *s, const esp_submit_options *o, struct diags *diags)
{
	esp_ticket *t = new_ticket(s, o, diags);
	if (!t)
		return NULL;
	struct serve_submission of = {.minibatch = forest_minibatch(s->forest),
				      .binding = &t->weights->weights,
				      .generation = t->weights->generation,
				      .carry = s->carry,
				      .priority = o->priority,
				      .deadline = o->deadline,
				      .notice = o->done	   ? SERVE_CALL
						: o->event ? SERVE_EVENT
							   : SERVE_NO_NOTICE,
				      .done = call_done,
				      .release = object_release,
				      .user = t,
				      .ticket = &t->ticket,
				      .memory = (char *)t + place_in_queue(t->structures)};
	if (serve_submit(s->service->queue, &of, diags))
		return t;
	object_release(t);
	return NULL;
}

bool submit_read_options(const esp_submit_options *from, esp_submit_options *to, const char *function,
			 struct diags *diags)
{
	enum { PRIORITY = 1000 };
	*to = (esp_submit_options){.size = sizeof *to};
	if (from && !api_take_struct(diags, function, "options", from, to, sizeof *to))
		return false;
	if (to->done && to->event)
		return api_bad_argument(diags, function, "options", "asks for a callback and an event");
	if (to->priority < -PRIORITY || to->priority > PRIORITY)
		return api_bad_argument(diags, function, "options->priority", "must be from -1000 to 1000");
	return true;
}

static esp_ticket *submit_forest(esp_service *s, const esp_forest *forest, const esp_submit_options *o,
				 struct diags *diags)
{
	if (forest->program != s->binding->program) {
		api_bad_argument(diags, "esp_service_submit", "forest",
				 "belongs to another program than the service");
		return NULL;
	}
	struct submission of = {.service = s, .forest = forest, .weights = binding_hold(s->binding)};
	esp_ticket *t = ticket_submit(&of, o, diags);
	object_release(of.weights);
	return t;
}

esp_status esp_service_submit(esp_service *service, const esp_forest *forest,
			      const esp_submit_options *options, esp_ticket **out, esp_error **error)
{
	struct api_call call = api_begin(service ? (const void *)service : forest);
	esp_submit_options o;
	esp_ticket *t = NULL;
	if (api_need(&call, service) && api_need(&call, forest) && api_need(&call, out) &&
	    submit_read_options(options, &o, __func__, &call.diags))
		t = submit_forest(service, forest, &o, &call.diags);
	if (out)
		*out = t;
	return api_end(&call, t, error);
}

/* --- events --- */

esp_status esp_service_descriptor(esp_service *service, int *descriptor, esp_error **error)
{
	struct api_call call = api_begin(service);
	int d = -1;
	if (api_need(&call, service) && api_need(&call, descriptor))
		d = serve_descriptor(service->queue, &call.diags);
	if (descriptor)
		*descriptor = d;
	return api_end(&call, d >= 0, error);
}

esp_ticket *esp_service_next(esp_service *s)
{
	return s ? serve_next(s->queue) : NULL;
}

/* --- tickets --- */

/* Whether there are results; otherwise why not. */
static bool explain_answer(esp_ticket *t, enum serve_answer answer, struct diags *diags)
{
	const struct diag_at nowhere = {0};
	switch (answer) {
	case SERVE_DONE:
		context_check_team(t->object.context);
		return true;
	case SERVE_PENDING:
		return diag_add(diags, DIAG_REQUEST_PENDING, nowhere, "wait again",
				"the request has not ended");
	case SERVE_EXPIRED:
		return diag_add(diags, DIAG_REQUEST_EXPIRED, nowhere, NULL,
				"the deadline passed before the request had ended");
	case SERVE_CANCELLED:
		return diag_add(diags, DIAG_REQUEST_CANCELLED, nowhere, NULL, "the request was cancelled");
	case SERVE_REJECTED:
		break;
	}
	diags_copy(diags, serve_ticket_diags(t->ticket));
	return false;
}

esp_status esp_ticket_wait(esp_ticket *ticket, int64_t until, esp_error **error)
{
	struct api_call call = api_begin(ticket);
	bool ok =
	    api_need(&call, ticket) &&
	    explain_answer(ticket, serve_wait(ticket->service->queue, ticket->ticket, until), &call.diags);
	return api_end(&call, ok, error);
}

void esp_ticket_cancel(esp_ticket *t)
{
	if (t)
		serve_cancel(t->service->queue, t->ticket);
}

void esp_ticket_free(esp_ticket *t)
{
	if (t)
		serve_ticket_free(t->service->queue, t->ticket);
}

void *esp_ticket_user(const esp_ticket *t)
{
	return t ? t->user : NULL;
}

uint64_t esp_ticket_generation(const esp_ticket *t)
{
	return t ? t->weights->generation : 0;
}

int64_t esp_ticket_time(const esp_ticket *t, int which)
{
	return t ? serve_ticket_time(t->service->queue, t->ticket, which) : 0;
}

static const struct image_output *find_output(const esp_ticket *t, size_t output)
{
	const struct image *image = &t->service->binding->program->image;
	return output < (size_t)image->outputs ? &image->output[output] : NULL;
}

const void *esp_ticket_output_elements(const esp_ticket *t, size_t output, size_t structure, size_t node)
{
	const struct image_output *o = t ? find_output(t, output) : NULL;
	if (!o || structure >= t->structures)
		return NULL;
	size_t nodes = (size_t)(t->begin[structure + 1] - t->begin[structure]);
	if (o->at_root)
		return serve_ticket_row(t->ticket, (int)output, (int64_t)structure);
	return node < nodes ? serve_ticket_row(t->ticket, (int)output, t->begin[structure] + (int64_t)node)
			    : NULL;
}

const float *esp_ticket_output(const esp_ticket *t, size_t output, size_t structure, size_t node)
{
	const void *row = esp_ticket_output_elements(t, output, structure, node);
	return row && find_output(t, output)->dtype == DTYPE_F32 ? row : NULL;
}

/* --- counters --- */

static esp_distribution read_distribution(const struct serve_histogram *h)
{
	struct serve_distribution d = serve_summarize(h);
	return (esp_distribution){d.values, d.mean, d.p50, d.p90, d.p99, d.p999, d.most};
}

void esp_service_count(const esp_service *s, esp_service_counts *counts)
{
	size_t size = counts->size;
	esp_service_counts all = {.size = size};
	if (s) {
		const struct serve_counters *c = serve_counters(s->queue);
		all = (esp_service_counts){
		    .size = size,
		    .submitted = serve_read(&c->submitted),
		    .refused = serve_read(&c->full),
		    .done = serve_read(&c->ended[SERVE_DONE]),
		    .failed = serve_read(&c->ended[SERVE_REJECTED]),
		    .expired = serve_read(&c->ended[SERVE_EXPIRED]),
		    .cancelled = serve_read(&c->ended[SERVE_CANCELLED]),
		    .pending = (uint64_t)c->pending,
		    .bytes = (uint64_t)c->bytes,
		    .most_bytes = (uint64_t)c->most_bytes,
		    .generation = esp_binding_generation(s->binding),
		    .supersteps = serve_read(&c->supersteps),
		    .nodes = serve_read(&c->nodes),
		    .rows = (uint64_t)c->rows,
		    .step_nodes = read_distribution(&c->step_rows),
		    .queued = read_distribution(&c->queued),
		    .computed = read_distribution(&c->computed),
		    .whole = read_distribution(&c->whole),
		    .forests = serve_read(&c->forests),
		    .forest_requests = serve_read(&c->forest_requests),
		    .forest_nodes = serve_read(&c->forest_nodes),
		};
	}
	memset(counts, 0, size);
	memcpy(counts, &all, size < sizeof all ? size : sizeof all);
}

struct metrics {
	const esp_service *service;
	const char *labels;
	struct str text;
};

static bool print_metrics(void *job)
{
	struct metrics *m = job;
	serve_print_metrics(serve_counters(m->service->queue), esp_binding_generation(m->service->binding),
			    m->labels, &m->text);
	return true;
}

static char *metrics_text(const esp_service *s, const char *labels, struct diags *diags)
{
	struct arena arena;
	struct metrics m = {s, labels ? labels : "", {0}};
	arena_init(&arena, &s->object.context->allocator);
	m.text = str_in(&arena);
	char *copy = api_guarded(&arena, diags, print_metrics, &m)
			 ? api_text(s->object.context, str_text(&m.text), diags)
			 : NULL;
	arena_free(&arena);
	return copy;
}

esp_status esp_service_metrics(const esp_service *service, const char *labels, char **text, esp_error **error)
{
	struct api_call call = api_begin(service);
	char *copy = NULL;
	if (api_need(&call, service) && api_need(&call, text))
		copy = metrics_text(service, labels, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}

/* --- trace --- */

esp_status esp_service_record(esp_service *service, size_t events, esp_error **error)
{
	struct api_call call = api_begin(service);
	bool ok = api_need(&call, service) && serve_record(service->queue, events, &call.diags);
	return api_end(&call, ok, error);
}

struct trace {
	struct serve_trace_copy copy;
	const char *name;
	int process;
	struct str text;
};

static bool print_trace(void *job)
{
	struct trace *t = job;
	serve_print_trace(&t->copy, t->name, t->process, &t->text);
	return true;
}

static bool check_trace(const struct trace *t, struct diags *diags)
{
	const char *function = "esp_service_trace";
	enum { PROCESSES = 1000000 };
	if (t->process < 1 || t->process > PROCESSES)
		return api_bad_argument(diags, function, "process", "must be from 1 to 1000000");
	return t->copy.capacity || api_bad_argument(diags, function, "service",
						    "is not recorded: call esp_service_record first");
}

static char *trace_text(const esp_service *s, struct trace *t, struct diags *diags)
{
	struct arena arena;
	char *copy = NULL;
	if (!serve_copy_trace(s->queue, &t->copy, diags))
		return NULL;
	arena_init(&arena, &s->object.context->allocator);
	t->text = str_in(&arena);
	if (check_trace(t, diags) && api_guarded(&arena, diags, print_trace, t))
		copy = api_text(s->object.context, str_text(&t->text), diags);
	arena_free(&arena);
	serve_free_trace(s->queue, &t->copy);
	return copy;
}

esp_status esp_service_trace(const esp_service *service, const char *name, int process, char **text,
			     esp_error **error)
{
	struct api_call call = api_begin(service);
	struct trace trace = {.name = name ? name : "service", .process = process};
	char *copy = NULL;
	if (api_need(&call, service) && api_need(&call, text))
		copy = trace_text(service, &trace, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
