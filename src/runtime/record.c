/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/record.h"

#include "runtime/range.h"
#include "runtime/section.h"
#include "runtime/shared.h"

#include <string.h>

void rt_profile_init(struct rt_profile *p, const struct allocator *a)
{
	*p = (struct rt_profile){.allocator = a};
}

void rt_profile_free(struct rt_profile *p)
{
	for (int i = 0; i < p->tracks; i++)
		rt_free(p->allocator, p->track[i].event);
	rt_free(p->allocator, p->track);
	rt_free(p->allocator, p->job);
	rt_profile_init(p, p->allocator);
}

void rt_profile_clear(struct rt_profile *p)
{
	for (int i = 0; i < p->tracks; i++)
		p->track[i].events = 0;
	p->jobs = 0;
	p->threads = 0;
	p->lost = false;
	memset(p->phase, 0, sizeof p->phase);
}

/* --- memory --- */

/* Ranges of a step in a batch: one for each run of adjacent cases; in spans one for each case. */
static int ranges_of(const struct image *image, unsigned cases)
{
	int all = image->cases ? image->cases : 1;
	if (image->unroll > 1)
		return cases ? __builtin_popcount(cases) : all;
	return cases ? __builtin_popcount(cases & ~(cases << 1)) : 1;
}

/* Calls of a step for one chunk. */
static int64_t calls_of(const struct image *image, const struct image_step *s, const int64_t *sizes)
{
	int ranges = ranges_of(image, s->cases);
	switch (s->domain) {
	case IMAGE_DOMAIN_INNER:
	case IMAGE_DOMAIN_BATCH:
	case IMAGE_DOMAIN_BATCH_DOWN:
		return sizes[IMAGE_BATCHES] * ranges;
	case IMAGE_DOMAIN_SCAN:
		return s->last - s->first;
	case IMAGE_DOMAIN_INNER_NODE:
	case IMAGE_DOMAIN_NODE:
	case IMAGE_DOMAIN_NODE_DOWN:
		return sizes[IMAGE_NODES];
	default:
		return rt_may_be_cut(s) ? (int64_t)ranges * RT_PIECES : ranges;
	}
}

/* Ranges of one node, and steps without rows, are the caller's alone. */
static bool may_be_divided(const struct image_step *s)
{
	return s->domain != IMAGE_DOMAIN_NODE && s->domain != IMAGE_DOMAIN_INNER_NODE &&
	       s->domain != IMAGE_DOMAIN_NODE_DOWN && s->domain != IMAGE_DOMAIN_ONCE;
}

static int64_t count_calls(const struct image *image, const int64_t *sizes, bool caller)
{
	int64_t calls = 0;
	for (int i = image->folds; i < image->steps; i++)
		if (caller || may_be_divided(&image->step[i]))
			calls += calls_of(image, &image->step[i], sizes);
	return calls;
}

/* The old content is lost. */
static bool reserve_bytes(const struct allocator *a, void **at, size_t *has, size_t bytes)
{
	if (bytes <= *has)
		return true;
	rt_free(a, *at);
	*has = 0;
	*at = rt_allocate_zeroed(a, 2 * bytes);
	*has = *at ? 2 * bytes : 0;
	return *at;
}

/* Existing tracks keep their memory. */
static bool reserve_tracks(struct rt_profile *p, int threads)
{
	if (threads <= p->tracks)
		return true;
	struct rt_track *more = rt_allocate_zeroed(p->allocator, threads * sizeof *more);
	if (!more)
		return false;
	if (p->tracks)
		memcpy(more, p->track, p->tracks * sizeof *more);
	rt_free(p->allocator, p->track);
	p->track = more;
	p->tracks = threads;
	return true;
}

bool rt_profile_reserve(struct rt_profile *p, const struct image *image, int threads, const int64_t *sizes)
{
	const struct allocator *a = p->allocator;
	int64_t calls = count_calls(image, sizes, true), workers = count_calls(image, sizes, false);
	p->threads = threads > 1 ? threads : 1;
	bool ok = reserve_tracks(p, p->threads) &&
		  reserve_bytes(a, (void **)&p->job, &p->job_capacity, calls * sizeof *p->job);
	for (int i = 0; ok && i < p->threads; i++)
		ok = reserve_bytes(a, (void **)&p->track[i].event, &p->track[i].capacity,
				   (i ? workers : calls) * sizeof *p->track->event);
	p->lost = !ok;
	return ok;
}

/* --- recording --- */

int32_t rt_profile_add_job(struct rt_profile *p, const struct rt_range *r, bool follows)
{
	p->job[p->jobs] = (struct rt_job){.step = r->step,
					  .steps = r->steps,
					  .level = r->level,
					  .follows = follows,
					  .strategy = r->strategy,
					  .begin = r->begin,
					  .end = r->end,
					  .start = INT64_MAX};
	return p->jobs++;
}

void rt_profile_add_event(struct rt_profile *p, int chunk, const struct rt_event *e)
{
	struct rt_track *track = &p->track[chunk];
	track->event[track->events++] = *e;
}

/* Threads that have ended their chunks of the job before may have ended this one already. */
static void follow_job(struct rt_job *j, int64_t before)
{
	j->start = before;
	j->stop = j->stop > before ? j->stop : before;
}

void rt_profile_time_jobs(struct rt_profile *p)
{
	for (int chunk = 0; chunk < p->threads; chunk++)
		for (int64_t i = 0; i < p->track[chunk].events; i++) {
			const struct rt_event *e = &p->track[chunk].event[i];
			struct rt_job *j = &p->job[e->job];
			j->start = e->start < j->start ? e->start : j->start;
			j->stop = e->stop > j->stop ? e->stop : j->stop;
		}
	for (int64_t i = 1; i < p->jobs; i++)
		if (p->job[i].follows)
			follow_job(&p->job[i], p->job[i - 1].stop);
}
