/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the machine adds by itself: how late a thread wakes that does nothing but sleep. */
#include "load/load.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int64_t percentile(const int64_t *sorted, size_t n, double part)
{
	size_t rank = (size_t)((double)n * part);
	return n ? sorted[rank < n ? rank : n - 1] : 0;
}

static void *note_lateness(void *jitter)
{
	enum { STEP = 1000000, MOST = sizeof((struct jitter *)0)->late / sizeof(int64_t) };
	struct jitter *j = jitter;
	prctl(PR_SET_TIMERSLACK, 1);
	for (int64_t due = esp_clock() + STEP; !atomic_load(&j->stop) && j->n < MOST; due += STEP) {
		struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		int64_t now = esp_clock();
		j->late[j->n++] = now - due;
		due = now > due + STEP ? now : due;
	}
	return NULL;
}

bool jitter_start(struct jitter *j)
{
	j->n = 0;
	atomic_init(&j->stop, false);
	return !pthread_create(&j->thread, NULL, note_lateness, j) || complain("no thread to measure jitter");
}

void jitter_stop(struct jitter *j, double *p99, double *most)
{
	atomic_store(&j->stop, true);
	pthread_join(j->thread, NULL);
	qsort(j->late, j->n, sizeof *j->late, compare_times);
	*p99 = (double)percentile(j->late, j->n, 0.99) * 1e-3;
	*most = (double)percentile(j->late, j->n, 1) * 1e-3;
}
