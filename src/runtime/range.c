/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/range.h"

#include "runtime/section.h"
#include "runtime/shared.h"
#include "runtime/span.h"

/* Sets which blocks of columns are swept, and in which direction. */
static void set_blocks(struct image_range *r, int64_t first, int64_t blocks, bool downwards)
{
	r->first = downwards ? first + blocks - 1 : first;
	r->blocks = blocks;
	r->direction = downwards ? -1 : 1;
}

/* The rows and blocks of a step that a chunk consists of. */
static struct image_range chunk_of(const struct rt_range *of, const struct image_step *s, int chunk,
				   int chunks)
{
	struct image_range r = {.begin = of->begin, .end = of->end};
	int64_t first = 0, behind = s->blocks;
	if (of->strategy == RT_ROWS) {
		int64_t rows = of->end - of->begin;
		r.begin = of->begin + rt_chunk_begin(rows, of->tile, chunk, chunks);
		r.end = of->begin + rt_chunk_begin(rows, of->tile, chunk + 1, chunks);
	} else if (of->strategy == RT_COLUMNS) {
		int at = of->shift ? (chunk + of->shift) % chunks : chunk;
		first = rt_chunk_begin(s->blocks, 1, at, chunks);
		behind = rt_chunk_begin(s->blocks, 1, at + 1, chunks);
	}
	set_blocks(&r, first, behind - first, of->downwards);
	return r;
}

static bool call_kernel(const struct rt_calls *c, int kernel, const struct image_frame *frame,
			const struct image_range *r)
{
	const struct image_code *code = &c->image->code;
	image_kernel *run = image_kernel_of(code, kernel);
	if (!run)
		return code->call(code->self, kernel, frame, r, c->diags);
	run(frame->buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

static bool make_call(const struct rt_calls *c, int step, int chunk, const struct image_range *r)
{
	const struct image_step *s = &c->image->step[step];
	struct image_frame frame = {c->frame.buffers + chunk * c->table, c->frame.sizes};
	if (s->target == IMAGE_TARGET_HOST)
		return call_kernel(c, s->kernel, &frame, r);
	rt_drive_call(c->driver, c->image, s->call, &frame, r->begin, r->end);
	return true;
}

static bool record_call(const struct rt_calls *c, int step, int job, int chunk, const struct image_range *r)
{
	struct rt_event e = {.step = step,
			     .job = job,
			     .begin = r->begin,
			     .end = r->end,
			     .first = r->direction > 0 ? r->first : r->first - r->blocks + 1,
			     .blocks = r->blocks,
			     .direction = r->direction,
			     .taken = chunk && pthread_equal(pthread_self(), c->caller)};
	e.start = rt_nanoseconds();
	bool ok = make_call(c, step, chunk, r);
	e.stop = rt_nanoseconds();
	rt_profile_add_event(c->profile, chunk, &e);
	return ok;
}

static bool call_step(const struct rt_calls *c, int step, int job, int chunk, const struct image_range *r)
{
	if (r->begin >= r->end || r->blocks <= 0)
		return true;
	return c->profile ? record_call(c, step, job, chunk, r)
			  : make_call(c, step, chunk, r);
}

/* --- spans --- */

/* Runs a step at one level of a span, the n-th in the order of the run: column by column, each with cuts of
 * its own. */
static bool run_level(const struct rt_calls *c, const struct rt_range *of, int step, int32_t n, int chunk,
		      int chunks)
{
	const struct image_step *s = &c->image->step[step];
	int32_t level = of->from_top ? of->levels - 1 - n : n;
	struct image_range r;
	bool ok = true;
	set_blocks(&r, 0, s->blocks, of->downwards ^ (n & 1));
	for (int column = 0; ok && column < c->columns; column++) {
		r.begin = rt_span_cut(of->cut, c->columns, chunks, level, column, chunk);
		r.end = rt_span_cut(of->cut, c->columns, chunks, level, column, chunk + 1);
		if (!s->cases || s->cases >> column & 1)
			ok = call_step(c, step, of->job + n, chunk, &r);
	}
	return ok;
}

static bool run_subtrees(const struct rt_calls *c, const struct rt_range *of, int chunk, int chunks)
{
	bool ok = true;
	for (int32_t n = 0; ok && n < of->levels; n++)
		for (int i = of->step; ok && i < of->step + of->steps; i++)
			ok = run_level(c, of, i, n, chunk, chunks);
	return ok;
}

/* --- sections --- */

/* Whether a chunk has some of the rows, and all columns of each. */
static bool has_whole_rows(const struct rt_range *of)
{
	return of->strategy == RT_ROWS || of->strategy == RT_ALONE;
}

/* Runs some steps over the rows of a chunk, piece by piece. */
static bool run_section(const struct rt_calls *c, const struct rt_range *of, int first, const struct rt_section *section, int chunk,
			int chunks)
{
	struct image_range all = chunk_of(of, &c->image->step[first], chunk, chunks), r = {.end = all.begin};
	bool ok = true;
	while (ok && r.end < all.end) {
		r.begin = r.end;
		r.end = r.begin + section->rows < all.end ? r.begin + section->rows : all.end;
		for (int i = first; ok && i < first + section->steps; i++) {
			set_blocks(&r, 0, c->image->step[i].blocks, of->downwards);
			ok = call_step(c, i, of->job, chunk, &r);
		}
	}
	return ok;
}

static bool run_sections(const struct rt_calls *c, const struct rt_range *of, int chunk, int chunks)
{
	struct image_range r = chunk_of(of, &c->image->step[of->step], chunk, chunks);
	struct rt_section section;
	bool ok = true;
	for (int i = of->step, end = of->step + of->steps; ok && i < end; i += section.steps) {
		section = rt_find_section(&c->image->step[i], end - i, r.end - r.begin, c->l2_bytes);
		ok = run_section(c, of, i, &section, chunk, chunks);
	}
	return ok;
}

bool rt_run_chunk(const struct rt_calls *c, const struct rt_range *of, int chunk, int chunks)
{
	bool ok = true;
	if (of->strategy == RT_SUBTREES)
		return run_subtrees(c, of, chunk, chunks);
	if (c->step_buffer >= 0 && c->image->step[of->step].domain == IMAGE_DOMAIN_SCAN)
		*(int32_t *)c->frame.buffers[chunk * c->table + c->step_buffer] = of->level;
	if (of->steps > 1 && c->l2_bytes > 0 && has_whole_rows(of))
		return run_sections(c, of, chunk, chunks);
	for (int i = of->step; ok && i < of->step + of->steps; i++) {
		struct image_range r = chunk_of(of, &c->image->step[i], chunk, chunks);
		ok = call_step(c, i, of->job, chunk, &r);
	}
	return ok;
}
