/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/range.h"

#include "runtime/internal.h"
#include "runtime/span.h"

/* All blocks, or those from `first` on that are given. */
static void set_blocks(struct image_range *r, int64_t first, int64_t blocks, bool downwards)
{
	r->first = downwards ? first + blocks - 1 : first;
	r->blocks = blocks;
	r->direction = downwards ? -1 : 1;
}

/* What a part runs of a step. */
static struct image_range share_of(const struct rt_range *of, const struct image_step *s, int part, int parts)
{
	struct image_range r = {.begin = of->begin, .end = of->end};
	int64_t first = 0, behind = s->blocks;
	if (of->strategy == RT_ROWS) {
		int64_t rows = of->end - of->begin;
		r.begin = of->begin + rt_share(rows, of->tile, part, parts);
		r.end = of->begin + rt_share(rows, of->tile, part + 1, parts);
	} else if (of->strategy == RT_COLUMNS) {
		int at = of->shift ? (part + of->shift) % parts : part;
		first = rt_share(s->blocks, 1, at, parts);
		behind = rt_share(s->blocks, 1, at + 1, parts);
	}
	set_blocks(&r, first, behind - first, of->downwards);
	return r;
}

static bool call_kernel(const struct rt_calls *c, int kernel, const struct image_range *r)
{
	const struct image_code *code = &c->image->code;
	if (!code->kernels)
		return code->call(code->self, kernel, &c->frame, r, c->diags);
	code->kernels[kernel](c->frame.buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

static bool record_call(const struct rt_calls *c, int step, int job, int part, const struct image_range *r)
{
	struct rt_event e = {.step = step,
			     .job = job,
			     .begin = r->begin,
			     .end = r->end,
			     .first = r->direction > 0 ? r->first : r->first - r->blocks + 1,
			     .blocks = r->blocks,
			     .direction = r->direction,
			     .taken = part && pthread_equal(pthread_self(), c->caller)};
	e.start = rt_nanoseconds();
	bool ok = call_kernel(c, c->image->step[step].kernel, r);
	e.stop = rt_nanoseconds();
	rt_profile_add_event(c->profile, part, &e);
	return ok;
}

static bool call(const struct rt_calls *c, int step, int job, int part, const struct image_range *r)
{
	if (r->begin >= r->end || r->blocks <= 0)
		return true;
	return c->profile ? record_call(c, step, job, part, r)
			  : call_kernel(c, c->image->step[step].kernel, r);
}

/* --- spans --- */

/* A step at one level of a span, the turn-th that is run: column by column, each cut for itself. */
static bool run_level(const struct rt_calls *c, const struct rt_range *of, int step, int32_t turn, int part,
		      int parts)
{
	const struct image_step *s = &c->image->step[step];
	int32_t level = of->from_top ? of->levels - 1 - turn : turn;
	struct image_range r;
	bool ok = true;
	set_blocks(&r, 0, s->blocks, of->downwards ^ (turn & 1));
	for (int column = 0; ok && column < c->columns; column++) {
		r.begin = rt_span_cut(of->cut, c->columns, parts, level, column, part);
		r.end = rt_span_cut(of->cut, c->columns, parts, level, column, part + 1);
		if (!s->cases || s->cases >> column & 1)
			ok = call(c, step, of->job + turn, part, &r);
	}
	return ok;
}

static bool run_subtrees(const struct rt_calls *c, const struct rt_range *of, int part, int parts)
{
	bool ok = true;
	for (int32_t turn = 0; ok && turn < of->levels; turn++)
		for (int i = of->step; ok && i < of->step + of->steps; i++)
			ok = run_level(c, of, i, turn, part, parts);
	return ok;
}

bool rt_run_share(const struct rt_calls *c, const struct rt_range *of, int part, int parts)
{
	bool ok = true;
	if (of->strategy == RT_SUBTREES)
		return run_subtrees(c, of, part, parts);
	for (int i = of->step; ok && i < of->step + of->steps; i++) {
		struct image_range r = share_of(of, &c->image->step[i], part, parts);
		ok = call(c, i, of->job, part, &r);
	}
	return ok;
}
