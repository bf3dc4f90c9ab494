/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Servers made of a service: requests that join and leave at every superstep, and streams. */
#include "load/load.h"

#include <stdlib.h>

static esp_service *open_service(const struct load *load)
{
	const esp_service_options o = {.size = sizeof o,
				       .rows = load->options.rows,
				       .requests = (size_t)load->options.requests};
	esp_service *s = NULL;
	esp_error *error;
	esp_status status = esp_service_create(load->joined.binding, &o, &s, &error);
	if (status)
		report_failure(status, error);
	return s;
}

static enum outcome outcome_of(esp_ticket *t)
{
	esp_error *error;
	esp_status status = esp_ticket_wait(t, 0, &error);
	if (status == ESP_OK)
		return OUTCOME_DONE;
	if (status != ESP_ERROR_EXPIRED)
		return report_failure(status, error), OUTCOME_FAILED;
	esp_error_free(error);
	return OUTCOME_EXPIRED;
}

static enum outcome outcome_of_refusal(esp_status status)
{
	return status == ESP_ERROR_BUSY ? OUTCOME_REFUSED : OUTCOME_FAILED;
}

/* --- cells --- */

struct cells {
	const struct load *load;
	esp_service *service;
};

void *cells_open(const struct load *load, const struct server_kind *kind)
{
	(void)kind;
	struct cells *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	*c = (struct cells){load, open_service(load)};
	if (c->service)
		return c;
	free(c);
	return NULL;
}

static void end_cells(void *arrival, esp_ticket *t)
{
	enum outcome outcome = outcome_of(t);
	esp_ticket_free(t);
	traffic_end(arrival, outcome);
}

void cells_submit(void *self, struct arrival *a)
{
	struct cells *c = self;
	const struct requests *r = &c->load->requests;
	const esp_submit_options o = {
	    .size = sizeof o, .deadline = traffic_deadline(a), .done = end_cells, .user = a};
	esp_ticket *t;
	esp_status status =
	    esp_service_submit(c->service, r->joined[arrival_number(a) % r->n], &o, &t, NULL);
	if (status)
		traffic_end(a, outcome_of_refusal(status));
}

static uint64_t count_nodes(const esp_service *s)
{
	esp_service_counts c = {.size = sizeof c};
	esp_service_count(s, &c);
	return c.nodes;
}

uint64_t cells_count(const void *self)
{
	return count_nodes(((const struct cells *)self)->service);
}

void cells_close(void *self)
{
	struct cells *c = self;
	esp_service_free(c->service);
	free(c);
}

/* --- streams --- */

enum { MOST_ELEMENTS = 64 /* that are pushed together */ };

/* Request `n` is an element of stream n % streams. */
struct lane {
	struct streams *streams;
	pthread_mutex_t lock;
	esp_stream *stream;
	bool busy;
	struct arrival *first;	 /* of those pushed, or else of those that wait */
	size_t pushed, waiting; /* elements */
};

struct streams {
	const struct load *load;
	esp_service *service;
	void *data[MOST_INPUTS];
	struct lane *lane;
	size_t lanes;
};

/* The n-th element behind one of the same stream. */
static struct arrival *element_behind(const struct lane *l, struct arrival *a, size_t n)
{
	return a + n * l->streams->lanes;
}

static void push_waiting(struct lane *l);

/* Ends the elements that were pushed, and pushes those that have come meanwhile. */
static void end_elements(struct lane *l, enum outcome outcome)
{
	struct arrival *first = l->first;
	size_t n = l->pushed;
	pthread_mutex_lock(&l->lock);
	bool more = l->waiting;
	if (more)
		l->first = element_behind(l, first, n);
	l->busy = more;
	pthread_mutex_unlock(&l->lock);
	if (more)
		push_waiting(l);
	for (size_t i = 0; i < n; i++)
		traffic_end(element_behind(l, first, i), outcome);
}

static void end_push(void *lane, esp_ticket *t)
{
	enum outcome outcome = outcome_of(t);
	esp_ticket_free(t);
	end_elements(lane, outcome);
}

/* The lane is busy, hence nobody else pushes. */
static void push_waiting(struct lane *l)
{
	pthread_mutex_lock(&l->lock);
	l->pushed = l->waiting < MOST_ELEMENTS ? l->waiting : MOST_ELEMENTS;
	l->waiting -= l->pushed;
	pthread_mutex_unlock(&l->lock);
	const esp_submit_options o = {
	    .size = sizeof o, .deadline = traffic_deadline(l->first), .done = end_push, .user = l};
	esp_ticket *t;
	esp_status status = esp_stream_push(l->stream, l->pushed, (const void *const *)l->streams->data, &o,
					    &t, NULL);
	if (status)
		end_elements(l, outcome_of_refusal(status));
}

void streams_submit(void *self, struct arrival *a)
{
	struct streams *s = self;
	struct lane *l = &s->lane[arrival_number(a) % s->lanes];
	pthread_mutex_lock(&l->lock);
	bool idle = !l->busy;
	if (idle && !l->waiting)
		l->first = a;
	l->waiting++;
	l->busy = true;
	pthread_mutex_unlock(&l->lock);
	if (idle)
		push_waiting(l);
}

static bool open_lanes(struct streams *s)
{
	esp_error *error;
	s->lane = calloc((size_t)s->load->options.streams, sizeof *s->lane);
	if (!s->lane)
		return complain("no memory for streams");
	for (; s->lanes < (size_t)s->load->options.streams; s->lanes++) {
		struct lane *l = &s->lane[s->lanes];
		l->streams = s;
		esp_status status = esp_stream_open(s->service, &l->stream, &error);
		if (status)
			return report_failure(status, error), false;
		pthread_mutex_init(&l->lock, NULL);
	}
	return true;
}

/* Values of an input for so many elements, the same for all. */
static bool make_elements(struct streams *s)
{
	const esp_input *input;
	struct random random = {1};
	for (size_t i = 0; (input = esp_program_input(s->load->joined.objects.program, i)); i++) {
		size_t n = MOST_ELEMENTS * (input->is_token ? 1 : input->elements);
		int32_t *values = calloc(n, sizeof *values);
		for (size_t k = 0; values && k < n && !input->is_token; k++)
			((float *)values)[k] = random_float(&random);
		s->data[i] = values;
		if (!values)
			return complain("no memory for elements");
	}
	return true;
}

uint64_t streams_count(const void *self)
{
	return count_nodes(((const struct streams *)self)->service);
}

void *streams_open(const struct load *load, const struct server_kind *kind)
{
	(void)kind;
	struct streams *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->load = load;
	s->service = open_service(load);
	if (s->service && make_elements(s) && open_lanes(s))
		return s;
	streams_close(s);
	return NULL;
}

void streams_close(void *self)
{
	struct streams *s = self;
	for (size_t i = 0; i < s->lanes; i++) {
		esp_stream_free(s->lane[i].stream);
		pthread_mutex_destroy(&s->lane[i].lock);
	}
	for (int i = 0; i < MOST_INPUTS; i++)
		free(s->data[i]);
	free(s->lane);
	esp_service_free(s->service);
	free(s);
}
