/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "serve/choose_way.h"

/* A trial takes so many measurements of a way: a run of a forest has all levels of its requests, a superstep one. */
static const int trial_length[SERVE_WAYS] = {[SERVE_BY_CELLS] = 48, [SERVE_BY_FOREST] = 6};

/* Measurements of the better way between two trials of the other: twice as many after each trial that changed nothing. */
enum { FIRST_REST = 48, MOST_REST = 8192 };

/* A measurement weighs as much as so many together, and one that was disturbed as much as one of twice the mean. */
enum { KEPT = 16, MOST_RATIO = 2 };

static enum serve_way other_way(enum serve_way way)
{
	return way == SERVE_BY_CELLS ? SERVE_BY_FOREST : SERVE_BY_CELLS;
}

/* --- loads --- */

static int octave_of(double nodes)
{
	int octave = 0;
	while (nodes >= 2 && octave < SERVE_LOADS - 1) {
		nodes /= 2;
		octave++;
	}
	return octave;
}

/* Nodes that are pending, on average, belong to a neighbouring load when they are a quarter beyond its border: otherwise each
 * superstep between two loads would be another one's. */
static void note_pending(struct serve_ways *w, int64_t nodes)
{
	const double weight = 1.0 / KEPT, slack = 1.25;
	w->pending += w->pending ? ((double)nodes - w->pending) * weight : (double)nodes;
	double begin = (double)(INT64_C(1) << w->now);
	if (w->pending * slack < begin || w->pending >= 2 * slack * begin)
		w->now = octave_of(w->pending);
}

enum serve_way serve_choose_way(struct serve_ways *w, int64_t nodes)
{
	note_pending(w, nodes);
	const struct serve_load *l = &w->load[w->now];
	return l->trial ? other_way(l->better) : l->better;
}

/* --- measurements --- */

static void note_rate(struct serve_rate *r, double cells, double time)
{
	const double keep = 1 - 1.0 / KEPT;
	double most = r->cells ? MOST_RATIO * r->time / r->cells * cells : time;
	r->cells = keep * r->cells + cells;
	r->time = keep * r->time + (time < most ? time : most);
}

/* Whether the other way takes less for a cell; one that has not been measured does not. */
static bool is_worse(const struct serve_load *l)
{
	const struct serve_rate *has = &l->rate[l->better], *other = &l->rate[other_way(l->better)];
	return has->cells && other->cells && other->time * has->cells < has->time * other->cells;
}

static void end_trial(struct serve_load *l)
{
	bool change = is_worse(l);
	l->rest = change ? FIRST_REST : l->rest < MOST_REST ? 2 * l->rest : MOST_REST;
	l->better = change ? other_way(l->better) : l->better;
	l->trial = false;
	l->done = 0;
}

/* The measurements of a way begin anew with a trial: what is years old says little. */
static void begin_trial(struct serve_load *l)
{
	l->trial = true;
	l->done = 0;
	l->rate[other_way(l->better)] = (struct serve_rate){0};
}

void serve_note_way(struct serve_ways *w, enum serve_way way, int64_t cells, int64_t time)
{
	struct serve_load *l = &w->load[w->now];
	if (cells)
		note_rate(&l->rate[way], (double)cells, (double)time);
	if ((way == l->better) == l->trial)
		return;
	l->rest = l->rest ? l->rest : FIRST_REST;
	if (++l->done < (l->trial ? trial_length[way] : l->rest))
		return;
	if (l->trial)
		end_trial(l);
	else
		begin_trial(l);
}
