/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

/* --- columns --- */

static int compare_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Least and median of a column over all runs; `scratch` has space for a time of each run. */
static struct seconds seconds_of(const struct gathering *g, size_t column, double *scratch)
{
	for (int i = 0; i < g->runs; i++)
		scratch[i] = g->time[i * g->columns + column];
	qsort(scratch, g->runs, sizeof *scratch, compare_seconds);
	int middle = g->runs / 2;
	double above = scratch[middle], below = scratch[middle - !(g->runs % 2)];
	return (struct seconds){scratch[0], (above + below) / 2};
}

/* --- what was gathered --- */

/* The floor of a kernel has no barrier: barriers count for the section. */
static void summarize_cells(struct summary *s, struct section *section, const struct gathering *g,
			    const struct recording *shown, const struct machine *m, double *scratch)
{
	const struct floor_span *span = &section->span;
	for (size_t i = 0; i < span->steps; i++) {
		const esp_step *step = &shown->step[span->step + i];
		struct cell *c = &s->cell[section->cell + i];
		struct kernel *k = &s->kernel[span->step + i];
		/* Rows that come one by one each have a range, and read the weights again. */
		double readings = span->level < 0 && span->ranges == (size_t)span->rows ? span->rows : 1;
		c->operations = (double)step->operations * span->rows;
		c->bytes = (double)step->weight_bytes * readings;
		c->time = seconds_of(g, cell_column(g, section->cell + i), scratch);
		k->rows += span->rows;
		k->operations += c->operations;
		k->bytes += c->bytes;
		k->floor +=
		    floor_without_barrier(m, s->threads, c->operations, c->bytes, (double)step->weight_bytes);
		k->time += c->time.median;
	}
}

static void summarize_section(struct summary *s, size_t i, const struct gathering *g,
			      const struct recording *shown, const struct machine *m, double *scratch)
{
	struct section *section = &s->section[i];
	section->span = g->span[i];
	section->cell = g->cell[i];
	section->over = shown->step[section->span.step].over;
	section->floor = floor_of_span(m, s->threads, &section->span);
	section->alone = floor_of_span(m, 1, &section->span);
	section->time = seconds_of(g, section_column(i, SECTION_TIME), scratch);
	section->wait = seconds_of(g, section_column(i, SECTION_WAIT), scratch).median;
	s->floor += section->floor;
	summarize_cells(s, section, g, shown, m, scratch);
}

static void summarize_threads(struct summary *s, const struct gathering *g, double *scratch)
{
	for (int i = 0; i < s->threads; i++) {
		struct thread *t = &s->thread[i];
		t->busy = seconds_of(g, thread_column(g, i, THREAD_BUSY), scratch).median;
		t->wait = seconds_of(g, thread_column(g, i, THREAD_WAIT), scratch).median;
		double idle = s->run.median - t->busy - t->wait;
		t->idle = idle > 0 ? idle : 0;
	}
}

static void summarize_phases(struct summary *s, const struct gathering *g, double *scratch)
{
	s->linearize = seconds_of(g, TIME_LINEARIZE, scratch);
	s->fill = seconds_of(g, TIME_FILL, scratch);
	s->run = seconds_of(g, TIME_RUN, scratch);
	s->whole = seconds_of(g, TIME_WHOLE, scratch);
}

/* --- the run that is shown --- */

/* Time without an event is idle. */
static void summarize_shares(struct summary *s, const struct recording *shown)
{
	double whole = (double)shown->facts.run * shown->facts.threads;
	s->idle = whole > 0;
	for (size_t i = 0; i < shown->facts.events; i++) {
		const esp_event *e = &shown->event[i];
		double share = fraction_of(e->stop - e->start, whole);
		bool waits = recording_waits(shown, i);
		if (!waits && e->kind == ESP_EVENT_WAIT)
			continue;
		*(waits ? &s->waiting : &s->kernel[e->step].share) += share;
		s->idle -= share;
	}
	s->idle = s->idle > 0 ? s->idle : 0;
}

static void summarize_shown(struct summary *s, const struct recording *shown)
{
	for (size_t i = 0; i < shown->facts.events; i++) {
		const esp_event *e = &shown->event[i];
		if (e->kind != ESP_EVENT_KERNEL)
			continue;
		s->kernel[e->step].calls++;
		s->thread[e->thread].taken += e->share != e->thread;
	}
	size_t range = 0;
	for (size_t i = 0; i < s->sections; i++) {
		struct floor_span p = floor_span_at(shown, range);
		for (size_t k = 0; k < p.ranges; k++)
			if (shown->range[range + k].split > s->section[i].split)
				s->section[i].split = shown->range[range + k].split;
		range += p.ranges;
	}
}

int width_of(size_t nodes)
{
	int i = 0;
	while (i < WIDTHS - 1 && (size_t)1 << i < nodes)
		i++;
	return i;
}

static void summarize_widths(struct summary *s, const struct recording *shown)
{
	for (size_t i = 0; i < shown->facts.levels; i++) {
		struct width *w = &s->width[width_of(shown->nodes[i])];
		w->levels++;
		w->nodes += shown->nodes[i];
	}
	for (size_t i = 0; i < s->sections; i++) {
		const struct section *section = &s->section[i];
		if (section->span.level < 0 || (size_t)section->span.level >= shown->facts.levels)
			continue;
		struct width *w = &s->width[width_of(shown->nodes[section->span.level])];
		w->time += section->time.median;
		w->floor += section->floor;
	}
}

/* --- the summary --- */

static bool reserve_summary(struct summary *s, const struct gathering *g)
{
	s->section = calloc(s->sections + 1, sizeof *s->section);
	s->cell = calloc(g->cells + 1, sizeof *s->cell);
	s->kernel = calloc(s->steps + 1, sizeof *s->kernel);
	s->thread = calloc(s->threads + 1, sizeof *s->thread);
	return s->section && s->cell && s->kernel && s->thread;
}

bool summarize_runs(struct summary *s, const struct gathering *g, const struct recording *shown,
		    const struct machine *m)
{
	double *scratch = calloc(g->runs + 1, sizeof *scratch);
	*s = (struct summary){
	    .runs = g->runs, .threads = g->threads, .sections = g->sections, .steps = shown->facts.steps};
	if (!scratch || !reserve_summary(s, g)) {
		free(scratch);
		summary_free(s);
		return false;
	}
	summarize_phases(s, g, scratch);
	summarize_threads(s, g, scratch);
	for (size_t i = 0; i < s->sections; i++)
		summarize_section(s, i, g, shown, m, scratch);
	summarize_shares(s, shown);
	summarize_shown(s, shown);
	summarize_widths(s, shown);
	free(scratch);
	return true;
}

void summary_free(struct summary *s)
{
	free(s->section);
	free(s->cell);
	free(s->kernel);
	free(s->thread);
	*s = (struct summary){0};
}
