/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Servers made of sessions and a queue: a thread for each session, which runs one request at a time; or one
 * thread, which waits for a window of time and runs what has come as a minibatch. */
#include "load/load.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 16 };

/* A thread with a session. */
struct worker {
	struct queue *queue;
	pthread_t thread;
	esp_session *session;
	esp_forest *forest; /* of its minibatches */
	struct arrival **taken;
};

struct queue {
	const struct load *load;
	int64_t window;
	size_t most; /* requests that run together */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool closing;
	struct entry {
		struct arrival *arrival;
		int64_t came;
	} *entry; /* a ring */
	size_t first, waiting, capacity;
	struct worker worker[MOST_THREADS];
	int workers;
};

/* --- the queue --- */

/* Doubles the ring, which begins at entry 0 then; false when memory is out. */
static bool grow_queue(struct queue *q)
{
	size_t capacity = q->capacity ? 2 * q->capacity : 1024;
	struct entry *more = malloc(capacity * sizeof *more);
	if (!more)
		return false;
	for (size_t i = 0; i < q->waiting; i++)
		more[i] = q->entry[(q->first + i) % q->capacity];
	free(q->entry);
	q->entry = more;
	q->first = 0;
	q->capacity = capacity;
	return true;
}

void queue_submit(void *self, struct arrival *a)
{
	struct queue *q = self;
	pthread_mutex_lock(&q->lock);
	bool taken = q->waiting < (size_t)q->load->options.requests &&
		     (q->waiting < q->capacity || grow_queue(q));
	if (taken) {
		q->entry[(q->first + q->waiting++) % q->capacity] = (struct entry){a, esp_clock()};
		if (!q->window || q->waiting == 1 || q->waiting == q->most)
			pthread_cond_signal(&q->wake);
	}
	pthread_mutex_unlock(&q->lock);
	if (!taken)
		traffic_end(a, OUTCOME_REFUSED);
}

/* Waits until requests are to be run; false when the server is closed. */
static bool wait_for_requests(struct queue *q)
{
	while (!q->closing) {
		int64_t start = q->waiting ? q->entry[q->first].came + q->window : 0;
		struct timespec until = {.tv_sec = start / 1000000000, .tv_nsec = start % 1000000000};
		if (!q->waiting)
			pthread_cond_wait(&q->wake, &q->lock);
		else if (q->waiting >= q->most || start <= esp_clock())
			return true;
		else
			pthread_cond_timedwait(&q->wake, &q->lock, &until);
	}
	return false;
}

/* Takes the oldest requests; 0 when the server is closed. */
static size_t take_requests(struct queue *q, struct arrival **taken)
{
	size_t n = 0;
	pthread_mutex_lock(&q->lock);
	if (wait_for_requests(q))
		for (; n < q->most && q->waiting; q->waiting--, q->first = (q->first + 1) % q->capacity)
			taken[n++] = q->entry[q->first].arrival;
	pthread_mutex_unlock(&q->lock);
	return n;
}

/* --- workers --- */

static esp_status run_requests(struct worker *w, size_t n)
{
	const struct requests *r = &w->queue->load->requests;
	const esp_forest *forest = w->forest;
	esp_status status = ESP_OK;
	esp_error *error;
	if (w->queue->most == 1)
		forest = r->plain[arrival_number(w->taken[0]) % r->n];
	else
		esp_forest_clear(w->forest);
	for (size_t i = 0; i < n && !status && forest == w->forest; i++)
		status = esp_forest_add(w->forest, &r->structure[arrival_number(w->taken[i]) % r->n], &error);
	if (!status)
		status = esp_session_run(w->session, forest, &error);
	if (status)
		report_failure(status, error);
	return status;
}

/* Ends the requests whose deadline has passed; returns how many are left. */
static size_t drop_expired(struct worker *w, size_t n)
{
	size_t left = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t deadline = traffic_deadline(w->taken[i]);
		if (deadline && deadline <= esp_clock())
			traffic_end(w->taken[i], OUTCOME_EXPIRED);
		else
			w->taken[left++] = w->taken[i];
	}
	return left;
}

static void *work(void *worker)
{
	struct worker *w = worker;
	for (size_t n; (n = take_requests(w->queue, w->taken));) {
		n = drop_expired(w, n);
		esp_status status = n ? run_requests(w, n) : ESP_OK;
		for (size_t i = 0; i < n; i++)
			traffic_end(w->taken[i], status ? OUTCOME_FAILED : OUTCOME_DONE);
	}
	return NULL;
}

static bool start_worker(struct queue *q, const struct subject *s)
{
	struct worker *w = &q->worker[q->workers];
	w->queue = q;
	w->taken = calloc(q->most, sizeof(void *));
	if (w->taken && !esp_session_create(s->binding, &w->session, NULL) &&
	    !esp_forest_create(s->objects.program, &w->forest, NULL) &&
	    !pthread_create(&w->thread, NULL, work, w)) {
		q->workers++;
		return true;
	}
	free(w->taken);
	esp_session_free(w->session);
	esp_forest_free(w->forest);
	return complain("no memory or no thread for a session");
}

/* --- servers --- */

static struct queue *open_queue(const struct load *load, const struct server_kind *kind, size_t most)
{
	struct queue *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->load = load;
	q->window = kind->window;
	q->most = most;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return q;
}

void queue_close(void *self)
{
	struct queue *q = self;
	pthread_mutex_lock(&q->lock);
	q->closing = true;
	pthread_cond_broadcast(&q->wake);
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < q->workers; i++) {
		pthread_join(q->worker[i].thread, NULL);
		esp_session_free(q->worker[i].session);
		esp_forest_free(q->worker[i].forest);
		free(q->worker[i].taken);
	}
	pthread_cond_destroy(&q->wake);
	pthread_mutex_destroy(&q->lock);
	free(q->entry);
	free(q);
}

static void *start_workers(struct queue *q, const struct subject *s, long threads)
{
	bool ok = q;
	for (long i = 0; ok && i < threads && i < MOST_THREADS; i++)
		ok = start_worker(q, s);
	if (!q || ok)
		return q;
	queue_close(q);
	return NULL;
}

/* As many threads as the last subject has, each with a session that runs alone. */
void *threads_open(const struct load *load, const struct server_kind *kind)
{
	const struct bench *b = &load->bench;
	return start_workers(open_queue(load, kind, 1), &b->subject[0], b->subject[b->subjects - 1].threads);
}

void *window_open(const struct load *load, const struct server_kind *kind)
{
	const struct bench *b = &load->bench;
	return start_workers(open_queue(load, kind, (size_t)load->options.flight),
			     &b->subject[b->subjects - 1], 1);
}
