/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The profile of a run, which is made of its record. */
#ifndef ESPALIER_API_PROFILE_H
#define ESPALIER_API_PROFILE_H

#include "api/espalier.h"
#include "runtime/runtime.h"

struct esp_profile {
	const struct allocator *allocator;
	struct rt_profile record; /* the session's, while it records */
	esp_profile_facts facts;
	const int32_t *level; /* where levels begin, and the last ends: the order's */
	int64_t stack; /* numbers of the order that a node of the caller's is (image_stack) */
	esp_step *step;
	esp_range *range;
	esp_event *event;
	size_t range_capacity, event_capacity; /* bytes */
};

/* Makes an empty profile; NULL when memory is out. */
struct esp_profile *profile_create(const struct allocator *, const struct image *);
/* NULL is legal for both.  Trimming frees what grows with runs, and leaves the profile empty. */
void profile_trim(struct esp_profile *);
void profile_free(struct esp_profile *);
/* Fills the profile from the run that the session recorded last; false when there was no memory for it. */
bool profile_fill(struct esp_profile *, const struct rt_session *, const struct rt_binding *);

/* --- the parts of profile_fill --- */

/* The most events of a record: its calls, and a wait of each thread in each job that is divided. */
size_t profile_most_events(const struct rt_profile *);
/* By thread and in order of time.  Steps are counted from the `folds`-th on, times from the run's begin.
 * Returns how many. */
size_t profile_events(const struct rt_profile *, int folds, esp_event *to);

#endif
