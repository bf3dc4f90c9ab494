/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/profile.h"

#include "runtime/internal.h"
#include "runtime/range.h"

#include <string.h>

void rt_profile_init(struct rt_profile *p, const struct allocator *a)
{
	*p = (struct rt_profile){.allocator = a};
}

void rt_profile_free(struct rt_profile *p)
{
	for (int i = 0; i < p->lanes; i++)
		rt_give(p->allocator, p->lane[i].event);
	rt_give(p->allocator, p->lane);
	rt_give(p->allocator, p->job);
	rt_profile_init(p, p->allocator);
}

void rt_profile_clear(struct rt_profile *p)
{
	for (int i = 0; i < p->lanes; i++)
		p->lane[i].events = 0;
	p->jobs = 0;
	p->parts = 0;
	p->lost = false;
	memset(p->phase, 0, sizeof p->phase);
}

/* --- room --- */

/* Ranges of a step in a batch: one for each row of neighbours among its cases; in spans one for each of them. */
static int ranges_of(const struct image *image, unsigned cases)
{
	int all = image->cases ? image->cases : 1;
	if (image->unroll > 1)
		return cases ? __builtin_popcount(cases) : all;
	return cases ? __builtin_popcount(cases & ~(cases << 1)) : 1;
}

/* Calls of a step by one part. */
static int64_t calls_of(const struct image *image, const struct image_step *s, const int64_t *sizes)
{
	int ranges = ranges_of(image, s->cases);
	switch (s->domain) {
	case IMAGE_DOMAIN_INNER:
	case IMAGE_DOMAIN_BATCH:
	case IMAGE_DOMAIN_BATCH_DOWN:
		return sizes[IMAGE_BATCHES] * ranges;
	case IMAGE_DOMAIN_INNER_NODE:
	case IMAGE_DOMAIN_NODE:
	case IMAGE_DOMAIN_NODE_DOWN:
		return sizes[IMAGE_NODES];
	default:
		return ranges;
	}
}

/* What goes node by node is the caller's alone. */
static bool shared(const struct image_step *s)
{
	return s->domain != IMAGE_DOMAIN_NODE && s->domain != IMAGE_DOMAIN_INNER_NODE &&
	       s->domain != IMAGE_DOMAIN_NODE_DOWN && s->domain != IMAGE_DOMAIN_ONCE;
}

static int64_t count_calls(const struct image *image, const int64_t *sizes, bool callers)
{
	int64_t calls = 0;
	for (int i = image->folds; i < image->steps; i++)
		if (callers || shared(&image->step[i]))
			calls += calls_of(image, &image->step[i], sizes);
	return calls;
}

/* What is there is forgotten. */
static bool make_room(const struct allocator *a, void **at, size_t *has, size_t bytes)
{
	if (bytes <= *has)
		return true;
	rt_give(a, *at);
	*has = 0;
	*at = rt_take(a, 2 * bytes);
	*has = *at ? 2 * bytes : 0;
	return *at;
}

/* Those that there are keep their memory. */
static bool make_lanes(struct rt_profile *p, int parts)
{
	if (parts <= p->lanes)
		return true;
	struct rt_lane *more = rt_take(p->allocator, parts * sizeof *more);
	if (!more)
		return false;
	if (p->lanes)
		memcpy(more, p->lane, p->lanes * sizeof *more);
	rt_give(p->allocator, p->lane);
	p->lane = more;
	p->lanes = parts;
	return true;
}

bool rt_profile_reserve(struct rt_profile *p, const struct image *image, int parts, const int64_t *sizes)
{
	const struct allocator *a = p->allocator;
	int64_t calls = count_calls(image, sizes, true), others = count_calls(image, sizes, false);
	p->parts = parts > 1 ? parts : 1;
	bool ok = make_lanes(p, p->parts) &&
		  make_room(a, (void **)&p->job, &p->job_capacity, calls * sizeof *p->job);
	for (int i = 0; ok && i < p->parts; i++)
		ok = make_room(a, (void **)&p->lane[i].event, &p->lane[i].capacity,
			       (i ? others : calls) * sizeof *p->lane->event);
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

void rt_profile_add_event(struct rt_profile *p, int part, const struct rt_event *e)
{
	struct rt_lane *lane = &p->lane[part];
	lane->event[lane->events++] = *e;
}

void rt_profile_settle(struct rt_profile *p)
{
	for (int part = 0; part < p->parts; part++)
		for (int64_t i = 0; i < p->lane[part].events; i++) {
			const struct rt_event *e = &p->lane[part].event[i];
			struct rt_job *j = &p->job[e->job];
			j->start = e->start < j->start ? e->start : j->start;
			j->stop = e->stop > j->stop ? e->stop : j->stop;
		}
	for (int64_t i = 1; i < p->jobs; i++)
		if (p->job[i].follows)
			p->job[i].start = p->job[i - 1].stop;
}
