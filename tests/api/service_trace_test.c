/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Traces of services: every request begins and ends, flows lead from each superstep to those who were in it,
 * times ascend; what is overwritten is left out whole and counted; other threads submit meanwhile. */
#include "tests/api/serving.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 4000, DEPTH = 4, OUTCOMES = 5, PROCESS = 7 };
static const char *const outcomes[OUTCOMES] = {"done", "failed", "expired", "cancelled", "pending"};

/* --- what a trace says --- */

/* A request, by its number. */
struct slices {
	char open[DEPTH][32];
	int depth;
	double first, last; /* us */
	json_int_t nodes, computed;
	bool begun, joined, over;
};

/* A superstep, by its number, and those of its requests that are there. */
struct step {
	double begin, end;
	json_int_t rows, requests, rows_there, there;
	bool known;
};

struct reading {
	struct slices request[MOST];
	struct step step[MOST];
	int requests, steps, outcome[OUTCOMES], wrong;
	json_int_t dropped;
	double last_step; /* when it ended */
	bool processes;	  /* the name of the process is right */
};

static const char *text_at(const json_t *e, const char *key)
{
	const char *text = json_string_value(json_object_get(e, key));
	return text ? text : "";
}

static json_int_t argument(const json_t *e, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(e, "args"), key));
}

static double time_of(const json_t *e, const char *key)
{
	return json_number_value(json_object_get(e, key));
}

static int number_in(const char *text, const char *before)
{
	size_t n = strlen(before);
	int number = strncmp(text, before, n) == 0 ? atoi(text + n) : 0;
	return number > 0 && number < MOST ? number : 0;
}

static bool read_superstep(struct reading *r, const json_t *e)
{
	const char *name = text_at(e, "name"); /* a forest where that has been measured to be faster */
	int number = strncmp(name, "forest ", 7) == 0 ? number_in(name, "forest ") : number_in(name, "superstep ");
	struct step *s = &r->step[number];
	*s = (struct step){.begin = time_of(e, "ts"),
			   .end = time_of(e, "ts") + time_of(e, "dur"),
			   .rows = argument(e, "rows"),
			   .requests = argument(e, "requests"),
			   .known = true};
	bool follows = s->begin >= r->last_step - 1e-2 && time_of(e, "dur") >= 0;
	char id[32];
	snprintf(id, sizeof id, "0x%x%010x", PROCESS, (unsigned)number);
	r->last_step = s->end;
	r->steps++;
	return number && follows && s->rows > 0 && s->requests > 0 &&
	       strcmp(text_at(e, "bind_id"), id) == 0 && json_is_true(json_object_get(e, "flow_out"));
}

/* The superstep is known already, and has the same times. */
static bool read_part(struct reading *r, struct slices *s, const json_t *e)
{
	int number = number_in(text_at(e, "name"), "superstep ");
	struct step *step = &r->step[number];
	char id[32];
	snprintf(id, sizeof id, "0x%x%010x", PROCESS, (unsigned)number);
	s->computed += argument(e, "nodes");
	step->rows_there += argument(e, "nodes");
	step->there++;
	return number && step->known && argument(e, "nodes") > 0 && step->begin == time_of(e, "ts") &&
	       strcmp(text_at(e, "bind_id"), id) == 0 && json_is_true(json_object_get(e, "flow_in")) &&
	       strcmp(s->open[1], "compute") == 0;
}

static bool begin_slice(struct reading *r, struct slices *s, const json_t *e)
{
	const char *name = text_at(e, "name");
	if (s->over || s->depth == DEPTH)
		return false;
	snprintf(s->open[s->depth++], sizeof s->open[0], "%s", name);
	s->joined |= strcmp(name, "compute") == 0;
	if (s->depth == 3)
		return read_part(r, s, e);
	if (s->depth == 2)
		return strcmp(name, s->joined ? "compute" : "queue") == 0;
	r->requests++;
	s->begun = true;
	s->first = time_of(e, "ts");
	s->nodes = argument(e, "nodes");
	return s->nodes > 0 && argument(e, "generation") == 1;
}

static bool end_slice(struct reading *r, struct slices *s, const json_t *e)
{
	const char *outcome = text_at(json_object_get(e, "args"), "outcome");
	if (!s->depth || strcmp(s->open[--s->depth], text_at(e, "name")) != 0)
		return false;
	s->over = !s->depth;
	for (int i = 0; s->over && i < OUTCOMES; i++)
		if (strcmp(outcomes[i], outcome) == 0) {
			r->outcome[i]++;
			return i || s->computed == s->nodes;
		}
	return !s->over;
}

static bool read_slice(struct reading *r, const json_t *e)
{
	int number = atoi(text_at(json_object_get(e, "id2"), "local"));
	if (number < 1 || number >= MOST || strcmp(text_at(e, "cat"), "request") != 0)
		return false;
	struct slices *s = &r->request[number];
	bool ascends = time_of(e, "ts") >= s->last;
	s->last = time_of(e, "ts");
	return ascends && (*text_at(e, "ph") == 'b' ? begin_slice(r, s, e) : end_slice(r, s, e));
}

static bool read_name(struct reading *r, const json_t *e)
{
	const char *name = text_at(e, "name"), *value = text_at(json_object_get(e, "args"), "name");
	if (strcmp(name, "process_labels") == 0)
		r->dropped = argument(e, "dropped");
	if (strcmp(name, "process_name") == 0)
		r->processes = strcmp(value, "a \"service\"") == 0;
	return true;
}

static bool read_event(struct reading *r, const json_t *e)
{
	bool process = json_integer_value(json_object_get(e, "pid")) == PROCESS;
	switch (*text_at(e, "ph")) {
	case 'M':
		return process && read_name(r, e);
	case 'X':
		return process && read_superstep(r, e);
	case 'b':
	case 'e':
		return process && read_slice(r, e);
	default:
		return false;
	}
}

/* Requests that are there are the newest: their numbers follow each other. */
static bool is_whole(const struct reading *r)
{
	bool whole = r->processes;
	int gaps = 0;
	for (int i = 1; i < MOST; i++) {
		whole &= r->request[i].begun == r->request[i].over;
		gaps += r->request[i].begun && !r->request[i - 1].begun;
		const struct step *s = &r->step[i];
		whole &= s->there <= s->requests && s->rows_there <= s->rows;
	}
	return whole && gaps <= 1;
}

/* Whether all requests of all supersteps are there: none was dropped, or submitted before the recording. */
static bool is_complete(const struct reading *r)
{
	bool complete = !r->dropped;
	for (int i = 1; i < MOST; i++)
		complete &=
		    r->step[i].there == r->step[i].requests && r->step[i].rows_there == r->step[i].rows;
	return complete;
}

/* Reads the trace of a service and checks its structure. */
static bool read_trace(const esp_service *service, struct reading *r)
{
	char *text = NULL;
	size_t i;
	json_t *e;
	memset(r, 0, sizeof *r);
	if (esp_service_trace(service, "a \"service\"", PROCESS, &text, NULL))
		return false;
	json_t *root = json_loads(text, 0, NULL);
	json_array_foreach(root, i, e) if (!read_event(r, e) && !r->wrong++)
	    printf("# event %zu: %s\n", i, json_string_value(json_object_get(e, "name")));
	json_decref(root);
	esp_text_free(text);
	return root && !r->wrong && is_whole(r);
}

/* --- services --- */

/* A tree whose every inner node has a leaf at its right: 2 n + 1 nodes, n + 1 levels. */
static void add_comb(esp_forest *f, int n)
{
	int32_t begin[2 * FORESTS + 4] = {0}, children[2 * FORESTS + 4], words[2 * FORESTS + 4] = {0};
	int nodes = 1, edges = 0;
	for (int i = 0; i < n; i++) {
		begin[nodes] = edges;
		words[nodes++] = i % 4;
		begin[nodes] = edges;
		words[nodes] = -1;
		children[edges++] = i ? nodes - 2 : 0;
		children[edges++] = nodes - 1;
		nodes++;
	}
	begin[nodes] = edges;
	const void *data[] = {words};
	const esp_structure s = {sizeof s, (size_t)nodes, begin, children, nodes - 1, data};
	if (esp_forest_add(f, &s, NULL))
		abort();
}

static bool open_combs(struct place *p, const esp_context_options *memory)
{
	if (!open_place(p, memory, NULL, NULL))
		return false;
	for (int i = 0; i < FORESTS; i++) {
		if (esp_forest_create(p->k.program, &p->forest[i], NULL))
			return false;
		add_comb(p->forest[i], i + 1);
	}
	return true;
}

/* Requests one after the other. */
static void compute(struct place *p, int requests)
{
	for (int i = 0; i < requests; i++) {
		esp_ticket *t = submit(p, i % FORESTS, (esp_submit_options){0});
		if (esp_ticket_wait(t, INT64_MAX, NULL))
			abort();
		esp_ticket_free(t);
	}
}

static struct reading seen;

/* --- one service --- */

/* FORESTS that share supersteps, as many in each as its width allows, then one for each other end, and one that waits. */
static void test_structure(void)
{
	struct place p;
	esp_ticket *t[FORESTS + 3];
	if (!open_combs(&p, NULL))
		abort();
	compute(&p, 1);
	tap_is(esp_service_record(p.service, 1000, NULL), ESP_OK, "a service is recorded");
	for (int i = 0; i < FORESTS; i++)
		t[i] = submit(&p, i, (esp_submit_options){0});
	t[FORESTS] = submit(&p, 0, (esp_submit_options){0});
	esp_ticket_cancel(t[FORESTS]);
	t[FORESTS + 1] = submit(&p, 0, (esp_submit_options){.deadline = esp_clock() - 1});
	for (int i = 0; i < FORESTS + 2; i++)
		esp_ticket_wait(t[i], INT64_MAX, NULL);
	t[FORESTS + 2] = submit(&p, 0, (esp_submit_options){0});
	tap_ok(read_trace(p.service, &seen),
	       "requests begin and end, and flows lead from supersteps to them");
	tap_is(seen.requests, FORESTS + 3, "each that was submitted since is there, and none before");
	tap_ok(seen.outcome[0] == FORESTS && !seen.outcome[1] && seen.outcome[2] == 1 &&
		   seen.outcome[3] == 1 && seen.outcome[4] == 1,
	       "with its outcome");
	tap_ok(seen.steps >= 2 && is_complete(&seen), "none is left out of a superstep");
	int shared = 0;
	for (int i = 0; i < MOST; i++)
		shared += seen.step[i].there > 1;
	tap_ok(shared > 0, "requests that were computed together share supersteps");
	const struct slices *first = &seen.request[2];
	double submitted = (double)esp_ticket_time(t[0], ESP_TICKET_SUBMITTED) * 1e-3,
	       ended = (double)esp_ticket_time(t[0], ESP_TICKET_ENDED) * 1e-3;
	tap_ok(first->first > submitted - 1e-2 && first->first < submitted + 1e-2 &&
		   first->last > ended - 1e-2 && first->last < ended + 1e-2,
	       "times are those of the ticket, in microseconds");
	for (int i = 0; i < FORESTS + 3; i++)
		esp_ticket_free(t[i]);
	tap_is(esp_service_record(p.service, 1000, NULL), ESP_OK, "it is recorded anew");
	tap_ok(read_trace(p.service, &seen) && !seen.requests && !seen.dropped, "what was before is gone");
	close_place(&p);
}

static void test_overflow(void)
{
	static const size_t sizes[] = {1, 2, 3, 7, 40, 41, 64, 100};
	enum { REQUESTS = 50 };
	struct place p;
	bool right = true;
	int some = 0;
	if (!open_combs(&p, NULL))
		abort();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		esp_service_record(p.service, sizes[i], NULL);
		compute(&p, REQUESTS);
		right &= read_trace(p.service, &seen) && seen.requests + seen.dropped == REQUESTS &&
			 seen.dropped > 0 && seen.outcome[0] == seen.requests;
		some += seen.requests > 0;
		right &= !seen.requests || seen.request[REQUESTS * (i + 1)].over;
	}
	tap_ok(right, "the oldest requests are left out whole, and counted");
	tap_ok(some >= 4, "the newest ones stay");
	close_place(&p);
}

static esp_status trace(const struct place *p, int process, char **out, esp_error **error)
{
	return esp_service_trace(p->service, NULL, process, out, error);
}

static void test_refusals(void)
{
	struct place p;
	esp_error *error;
	char text[] = "x", *out = text;
	if (!open_combs(&p, NULL))
		abort();
	tap_is(trace(&p, 2, &out, &error), ESP_ERROR_ARGUMENT, "nothing is recorded");
	tap_ok(error_is(error, "bad-argument") && !out, "and so it says");
	esp_service_record(p.service, 10, NULL);
	tap_is(trace(&p, 0, &out, NULL), ESP_ERROR_ARGUMENT, "a process has a number");
	tap_is(trace(&p, 1000001, &out, NULL), ESP_ERROR_ARGUMENT, "that is not too large");
	tap_is(trace(&p, 1000000, &out, NULL), ESP_OK, "just not");
	esp_text_free(out);
	tap_is(esp_service_record(p.service, SIZE_MAX, &error), ESP_ERROR_MEMORY, "events need memory");
	tap_ok(error_is(error, "out-of-memory"), "and so it says");
	tap_is(trace(&p, 2, &out, NULL), ESP_OK, "it is recorded as before");
	esp_text_free(out);
	tap_is(esp_service_record(p.service, 0, NULL), ESP_OK, "recording ends");
	tap_is(trace(&p, 2, &out, NULL), ESP_ERROR_ARGUMENT, "and frees what was recorded");
	tap_is(esp_service_record(NULL, 1, NULL), ESP_ERROR_ARGUMENT, "no service");
	close_place(&p);
}

/* --- threads --- */

enum { THREADS = 3, EACH = 150 };

static atomic_int working;

static void *run_client(void *place)
{
	for (int i = 0; i < EACH; i++) {
		esp_ticket *t = submit(place, i % FORESTS, (esp_submit_options){0});
		if (i % 5 == 0)
			esp_ticket_cancel(t);
		if (i % 7)
			esp_ticket_wait(t, INT64_MAX, NULL);
		esp_ticket_free(t);
	}
	working--;
	return NULL;
}

static void test_threads(void)
{
	struct place p;
	pthread_t thread[THREADS];
	bool right = true;
	int traces = 0;
	if (!open_combs(&p, NULL))
		abort();
	working = THREADS;
	esp_service_record(p.service, 100, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run_client, &p))
			abort();
	while (working) {
		right &= read_trace(p.service, &seen);
		if (traces++ % 3 == 0)
			right &= esp_service_record(p.service, 50 * (size_t)(1 + traces % 7), NULL) == ESP_OK;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	right &= read_trace(p.service, &seen);
	tap_ok(right, "%d traces, and new recordings, while threads submit", traces);
	close_place(&p);
}

/* --- memory --- */

static bool is_refused(esp_status s, esp_error *error)
{
	bool refused =
	    s == ESP_ERROR_MEMORY && error && strcmp(esp_error_get(error, 0)->id, "out-of-memory") == 0;
	esp_error_free(error);
	return refused;
}

static void test_memory(void)
{
	struct account account = {.left = -1};
	const esp_context_options memory = memory_of(&account);
	struct place p;
	esp_status s = ESP_ERROR_MEMORY;
	esp_error *error = NULL;
	bool right = open_combs(&p, &memory);
	long n = 0, m = 0;
	for (; s && right; n++) {
		account.left = n;
		s = esp_service_record(p.service, 100, &error);
		right &= !s || is_refused(s, error);
	}
	account.left = -1;
	compute(&p, 20);
	for (s = ESP_ERROR_MEMORY; s && right; m++) {
		char *text = NULL;
		account.left = m;
		s = esp_service_trace(p.service, "x", PROCESS, &text, &error);
		right &= s ? is_refused(s, error) && !text : text != NULL;
		esp_text_free(text);
	}
	account.left = -1;
	tap_ok(right && n > 1 && m > 3, "%ld allocations: any that fails is told", n + m - 2);
	close_place(&p);
	tap_ok(account.blocks == 0 && !account.wrong, "and all are given back");
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors"};
	write_generations();
	test_structure();
	test_overflow();
	test_refusals();
	test_threads();
	test_memory();
	remove_folder(names, 2);
	return tap_done();
}
