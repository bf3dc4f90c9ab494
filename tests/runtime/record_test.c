/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The record of a run: when jobs begin and end, behind a barrier and where none stands between them. */
#include "runtime/record.h"

#include "runtime/range.h"
#include "tests/tap.h"

/* Two chunks.  A level; the next one of the same span, which has rows for one chunk alone, while the other one is
 * still at the first; a range behind a barrier. */
int main(void)
{
	static struct rt_event first[] = {{.job = 0, .start = 5, .stop = 10},
					  {.job = 1, .start = 10, .stop = 20},
					  {.job = 2, .start = 60, .stop = 90}},
			       second[] = {{.job = 0, .start = 6, .stop = 50}};
	static const struct {
		bool follows;
		int64_t start, stop;
	} wanted[] = {{false, 5, 50}, {true, 50, 50}, {false, 60, 90}};
	enum { JOBS = sizeof wanted / sizeof *wanted };
	struct rt_track tracks[] = {{.event = first, .events = JOBS}, {.event = second, .events = 1}};
	struct rt_job jobs[JOBS];
	struct rt_profile p = {.threads = 2, .tracks = 2, .track = tracks, .job = jobs};
	for (int i = 0; i < JOBS; i++)
		rt_profile_add_job(&p, &(struct rt_range){.strategy = RT_SUBTREES}, wanted[i].follows);
	rt_profile_time_jobs(&p);
	for (int i = 0; i < JOBS; i++)
		tap_ok(jobs[i].start == wanted[i].start && jobs[i].stop == wanted[i].stop,
		       "job %d begins at %d and ends at %d, not before one that it follows", i, (int)wanted[i].start,
		       (int)wanted[i].stop);
	return tap_done();
}
