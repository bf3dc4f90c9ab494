#include "runtime/range.h"

#include "runtime/internal.h"

/* What a part runs of a step. */
static struct image_range share_of(const struct rt_range *of, const struct image_step *s, int part, int parts)
{
	struct image_range r = {of->begin, of->end, 0, s->blocks, 1};
	if (of->way == RT_ROWS) {
		int64_t rows = of->end - of->begin;
		r.begin = of->begin + rt_share(rows, of->tile, part, parts);
		r.end = of->begin + rt_share(rows, of->tile, part + 1, parts);
	} else if (of->way == RT_COLUMNS) {
		r.first = rt_share(s->blocks, 1, part, parts);
		r.blocks = rt_share(s->blocks, 1, part + 1, parts) - r.first;
	}
	if (of->downwards) {
		r.direction = -1;
		r.first += r.blocks - 1;
	}
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

bool rt_run_share(const struct rt_calls *c, const struct rt_range *of, int part, int parts)
{
	bool ok = true;
	for (int i = of->step; ok && i < of->step + of->steps; i++) {
		const struct image_step *s = &c->image->step[i];
		struct image_range r = share_of(of, s, part, parts);
		if (r.begin < r.end && r.blocks > 0)
			ok =
			    c->profile ? record_call(c, i, of->job, part, &r) : call_kernel(c, s->kernel, &r);
	}
	return ok;
}
