/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

#include <stdlib.h>

/* --- the sections of a run --- */

static size_t count_sections(const struct recording *r, size_t *cells)
{
	size_t n = 0;
	*cells = 0;
	for (struct floor_span p = floor_span_at(r, 0); p.ranges; p = floor_span_at(r, p.range + p.ranges)) {
		*cells += p.steps;
		n++;
	}
	return n;
}

static void list_sections(struct gathering *g, const struct recording *r)
{
	size_t cell = 0, i = 0;
	for (struct floor_span p = floor_span_at(r, 0); p.ranges; p = floor_span_at(r, p.range + p.ranges)) {
		g->span[i] = p;
		g->cell[i++] = cell;
		cell += p.steps;
	}
}

bool gathering_begin(struct gathering *g, const struct recording *r, int threads, int runs)
{
	*g = (struct gathering){.threads = threads, .most = runs};
	g->sections = count_sections(r, &g->cells);
	g->columns = thread_column(g, threads, 0);
	g->span = calloc(g->sections + 1, sizeof *g->span);
	g->cell = calloc(g->sections + 1, sizeof *g->cell);
	g->own = calloc(g->cells + 1, sizeof *g->own);
	g->time = calloc(runs * g->columns, sizeof *g->time);
	if (g->span && g->cell && g->own && g->time) {
		list_sections(g, r);
		return true;
	}
	gathering_free(g);
	return false;
}

void gathering_free(struct gathering *g)
{
	free(g->span);
	free(g->cell);
	free(g->own);
	free(g->time);
	free(g->section_of);
	*g = (struct gathering){0};
}

/* --- a run --- */

static bool reserve_ranges(struct gathering *g, size_t ranges)
{
	if (ranges <= g->most_ranges)
		return true;
	size_t *p = realloc(g->section_of, ranges * sizeof *p);
	if (!p)
		return false;
	g->section_of = p;
	g->most_ranges = ranges;
	return true;
}

/* Finds the section of each range: a section may be divided among threads differently, and so into other
 * ranges, in each run. */
static bool find_sections(struct gathering *g, const struct recording *r)
{
	size_t i = 0;
	for (struct floor_span p = floor_span_at(r, 0); p.ranges;
	     p = floor_span_at(r, p.range + p.ranges), i++) {
		if (i == g->sections || p.step != g->span[i].step || p.steps != g->span[i].steps ||
		    p.rows != g->span[i].rows || p.level != g->span[i].level)
			return false;
		for (size_t k = 0; k < p.ranges; k++)
			g->section_of[p.range + k] = i;
	}
	return i == g->sections;
}

static void add_phases(const esp_profile_facts *f, double *row)
{
	row[TIME_LINEARIZE] = f->linearize * 1e-9;
	row[TIME_FILL] = f->fill * 1e-9;
	row[TIME_RUN] = f->run * 1e-9;
	row[TIME_WHOLE] = (f->linearize + f->fill + f->run) * 1e-9;
}

static void add_sections(const struct gathering *g, const struct recording *r, double *row)
{
	for (size_t i = 0; i < r->facts.ranges; i++) {
		size_t section = g->section_of[i], first = i;
		while (i + 1 < r->facts.ranges && g->section_of[i + 1] == section)
			i++;
		row[section_column(section, SECTION_TIME)] =
		    (r->range[i].stop - r->range[first].start) * 1e-9;
	}
}

/* Raises the time of each cell to that of this thread if it took longer. */
static void end_thread(struct gathering *g, double *row)
{
	for (size_t i = 0; i < g->cells; i++) {
		double *longest = &row[cell_column(g, i)];
		*longest = g->own[i] > *longest ? g->own[i] : *longest;
		g->own[i] = 0;
	}
}

/* Adds an event. A thread without a share is idle, neither busy nor waiting. */
static void add_event(struct gathering *g, const struct recording *r, size_t i, double *row)
{
	const esp_event *e = &r->event[i];
	size_t section = g->section_of[e->range];
	double time = (e->stop - e->start) * 1e-9;
	bool waits = recording_waits(r, i);
	if (!waits && e->kind == ESP_EVENT_WAIT)
		return;
	row[thread_column(g, e->thread, waits ? THREAD_WAIT : THREAD_BUSY)] += time;
	if (waits)
		row[section_column(section, SECTION_WAIT)] += time;
	else
		g->own[g->cell[section] + e->step - g->span[section].step] += time;
}

bool gathering_add(struct gathering *g, const struct recording *r)
{
	if (g->runs == g->most || r->facts.threads > g->threads || !reserve_ranges(g, r->facts.ranges + 1) ||
	    !find_sections(g, r))
		return false;
	double *row = &g->time[g->runs++ * g->columns];
	add_phases(&r->facts, row);
	add_sections(g, r, row);
	for (size_t i = 0; i < r->facts.events; i++) {
		if (i && r->event[i].thread != r->event[i - 1].thread)
			end_thread(g, row);
		add_event(g, r, i, row);
	}
	end_thread(g, row);
	return true;
}
