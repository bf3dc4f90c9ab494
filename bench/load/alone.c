/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a request takes where nothing queues: a run by a session, and the time in which a waiting thread wakes. */
#include "load/load.h"

#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 300, PAUSE = 1000000 /* [ns] */ };

static void pause_thread(void)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = PAUSE}, NULL);
}

/* Median of so many [us]; sorts them. */
static double quantile(int64_t *times, double part)
{
	qsort(times, SAMPLES, sizeof *times, compare_times);
	return (double)percentile(times, SAMPLES, part) * 1e-3;
}

/* --- a session --- */

static bool time_session(const struct load *l, esp_session *session, bool rested, double *median)
{
	const struct requests *r = &l->requests;
	int64_t times[SAMPLES];
	for (size_t i = 0; i < SAMPLES; i++) {
		esp_error *error;
		if (rested)
			pause_thread();
		int64_t begin = esp_clock();
		esp_status status = esp_session_run(session, r->joined[i % r->n], &error);
		times[i] = esp_clock() - begin;
		if (status)
			return report_failure(status, error), false;
	}
	*median = quantile(times, 0.5);
	return true;
}

/* With all threads, of the program that services run. */
static bool time_sessions(const struct load *l, struct alone *a)
{
	esp_session *session;
	esp_error *error;
	esp_status status = esp_session_create(l->joined.binding, &session, &error);
	if (status)
		return report_failure(status, error), false;
	bool ok = time_session(l, session, false, &a->session) && time_session(l, session, false, &a->session) &&
		  time_session(l, session, true, &a->rested);
	esp_session_free(session);
	return ok;
}

/* --- waking --- */

struct sleeper {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int64_t signalled; /* 0 = not yet */
	int n;
	int64_t times[SAMPLES];
};

static void *wait_for_signals(void *sleeper)
{
	struct sleeper *s = sleeper;
	pthread_mutex_lock(&s->lock);
	for (; s->n < SAMPLES; s->n++, s->signalled = 0) {
		while (!s->signalled)
			pthread_cond_wait(&s->wake, &s->lock);
		s->times[s->n] = esp_clock() - s->signalled;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void signal_sleeper(struct sleeper *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->signalled)
		s->signalled = esp_clock();
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static bool time_waking(struct alone *a)
{
	struct sleeper s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {0}};
	pthread_t thread;
	if (pthread_create(&thread, NULL, wait_for_signals, &s))
		return complain("no thread to measure wake-ups");
	for (bool more = true; more;) {
		pause_thread();
		signal_sleeper(&s);
		pthread_mutex_lock(&s.lock);
		more = s.n + (s.signalled != 0) < SAMPLES;
		pthread_mutex_unlock(&s.lock);
	}
	pthread_join(thread, NULL);
	a->wake = quantile(s.times, 0.5);
	a->wake_p99 = quantile(s.times, 0.99);
	return true;
}

bool measure_alone(const struct load *l, struct alone *a)
{
	return time_sessions(l, a) && time_waking(a);
}
