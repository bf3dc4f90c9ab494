/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile as text. */
#include "profile.h"

#include "tool.h"

#include <string.h>

/* --- head --- */

static void put_head(FILE *to, const struct view *v)
{
	const esp_profile_facts *f = &v->shown->facts;
	fprintf(to, "%s%s%s\n", v->model, *v->sizes ? ", " : "", v->sizes);
	fprintf(to, "%zu structure%s, %zu nodes, %zu leaves, %zu levels; %d thread%s, %d runs\n",
		f->structures, f->structures == 1 ? "" : "s", f->nodes, f->leaves, f->levels,
		v->summary->threads, v->summary->threads == 1 ? "" : "s", v->summary->runs);
	machine_print(v->machine, to);
}

static void put_phase(FILE *to, const char *name, const struct seconds *s, double whole)
{
	fprintf(to, "%-22s %10.2f %10.2f %6.1f %%\n", name, s->median * 1e6, s->least * 1e6,
		100 * fraction_of(s->median, whole));
}

static void put_phases(FILE *to, const struct summary *s)
{
	fprintf(to, "\n%-22s %10s %10s %8s\n", "phase", "us median", "least", "share");
	put_phase(to, "linearize", &s->linearize, s->whole.median);
	put_phase(to, "fill", &s->fill, s->whole.median);
	put_phase(to, "run", &s->run, s->whole.median);
	put_phase(to, "whole", &s->whole, s->whole.median);
	fprintf(to, "floor of run %.2f us: floor / time %.2f by the median, %.2f by the least\n",
		s->floor * 1e6, fraction_of(s->floor, s->run.median), fraction_of(s->floor, s->run.least));
}

/* --- sections --- */

/* A line of the table: a section, or all levels of one width. */
struct line {
	char name[48];
	double rows, time, least, wait, operations, bytes, floor, alone;
	int split;
	bool mixed; /* its sections differ in their split */
};

static void add_section(struct line *l, const struct section *s, bool first)
{
	l->rows += s->span.rows;
	l->time += s->time.median;
	l->least += s->time.least;
	l->wait += s->wait;
	l->operations += s->span.operations;
	l->bytes += s->span.bytes;
	l->floor += s->floor;
	l->alone += s->alone;
	l->mixed |= !first && l->split != s->split;
	l->split = s->split;
}

static void put_line(FILE *to, const struct line *l, int threads)
{
	fprintf(to, "%-22s %7.0f  %-8s %9.2f %9.2f %8.1f %7.1f %9.2f %6.2f %9.2f %9.2f\n", l->name, l->rows,
		l->mixed ? "both" : split_word(l->split), l->time * 1e6, l->least * 1e6,
		giga_per_second(l->operations, l->time), giga_per_second(l->bytes, l->time), l->floor * 1e6,
		fraction_of(l->floor, l->time), l->alone * 1e6, l->wait * 1e6 / threads);
}

/* Up to so many sections have a line each; when there are more, levels of one width share a line. */
enum { LINES = 40 };

static void put_each(FILE *to, const struct summary *s)
{
	for (size_t i = 0; i < s->sections; i++) {
		struct line l = {0};
		range_name(s->section[i].over, s->section[i].span.level, l.name, sizeof l.name);
		add_section(&l, &s->section[i], true);
		put_line(to, &l, s->threads);
	}
}

static void put_width(FILE *to, const struct summary *s, int over, int width)
{
	struct line l = {0};
	size_t levels = 0;
	for (size_t i = 0; i < s->sections; i++)
		if (s->section[i].over == over && width_of(s->section[i].span.rows) == width)
			add_section(&l, &s->section[i], !levels++);
	if (!levels)
		return;
	snprintf(l.name, sizeof l.name, "%zu of %s <= %zu", levels, over_word(over), (size_t)1 << width);
	put_line(to, &l, s->threads);
}

static void put_widths_together(FILE *to, const struct summary *s)
{
	for (int over = 0; over <= ESP_OVER_EDGES; over++)
		for (int width = 0; width < WIDTHS; width++)
			put_width(to, s, over, width);
}

static void put_sections(FILE *to, const struct summary *s)
{
	fprintf(to, "\n%-22s %7s  %-8s %9s %9s %8s %7s %9s %6s %9s %9s\n", "level", "rows", "split", "us",
		"least", "GFLOP/s", "GB/s", "floor us", "/ time", "of one", "wait us");
	if (s->sections <= LINES)
		put_each(to, s);
	else
		put_widths_together(to, s);
}

/* --- kernels, threads, levels --- */

static void put_kernels(FILE *to, const struct view *v)
{
	const struct summary *s = v->summary;
	fprintf(to, "\n%-22s %7s %9s %9s %7s %8s %7s %6s %7s %9s\n", "kernel", "calls", "rows", "us", "share",
		"GFLOP/s", "GB/s", "/ time", "blocks", "KiB/block");
	for (size_t i = 0; i < s->steps; i++) {
		const struct kernel *k = &s->kernel[i];
		const esp_step *step = &v->shown->step[i];
		fprintf(to, "%-22s %7zu %9.0f %9.2f %5.1f %% %8.1f %7.1f %6.2f %7lld %9.1f\n", step->name,
			k->calls, k->rows, k->time * 1e6, 100 * k->share,
			giga_per_second(k->operations, k->time), giga_per_second(k->bytes, k->time),
			fraction_of(k->floor, k->time), (long long)step->blocks, step->block_bytes / 1024.0);
	}
	fprintf(to, "%-22s %7s %9s %9s %5.1f %%\n", "waiting", "", "", "", 100 * s->waiting);
	fprintf(to, "%-22s %7s %9s %9s %5.1f %%\n", "idle", "", "", "", 100 * s->idle);
}

/* Functions of an accelerator, where there are any: cycles that they are estimated to take there.  The times above are those
 * of its executor. */
static void put_functions(FILE *to, const struct view *v)
{
	bool first = true;
	for (size_t i = 0; i < v->summary->steps; i++) {
		const esp_step *step = &v->shown->step[i];
		double rows = v->summary->kernel[i].rows;
		if (!step->cycles)
			continue;
		if (first)
			fprintf(to, "\n%-22s %12s %14s\n", "accelerator", "cycles/row", "cycles");
		fprintf(to, "%-22s %12lld %14.0f\n", step->name, (long long)step->cycles, (double)step->cycles * rows);
		first = false;
	}
}

static void put_threads(FILE *to, const struct summary *s)
{
	fprintf(to, "\n%-22s %9s %9s %9s %12s\n", "thread", "busy us", "wait us", "idle us", "others' work");
	for (int i = 0; i < s->threads; i++)
		fprintf(to, "%-22d %9.2f %9.2f %9.2f %12zu\n", i, s->thread[i].busy * 1e6,
			s->thread[i].wait * 1e6, s->thread[i].idle * 1e6, s->thread[i].taken);
}

enum { BAR = 40 };

static void put_bar(FILE *to, double part)
{
	int n = (int)(part * BAR + 0.5);
	for (int i = 0; i < (part > 0 && n == 0 ? 1 : n); i++)
		fputc('#', to);
	fputc('\n', to);
}

static void put_widths(FILE *to, const struct summary *s)
{
	size_t most = 0;
	double whole = 0;
	for (int i = 0; i < WIDTHS; i++) {
		most = s->width[i].levels > most ? s->width[i].levels : most;
		whole += s->width[i].time;
	}
	fprintf(to, "\n%-22s %7s %9s %9s %7s %6s\n", "nodes of a level", "levels", "nodes", "us", "share",
		"/ time");
	for (int i = 0; i < WIDTHS; i++) {
		const struct width *w = &s->width[i];
		char name[48];
		if (!w->levels)
			continue;
		if (i < 2)
			snprintf(name, sizeof name, "%d", i + 1);
		else
			snprintf(name, sizeof name, "%zu to %zu", ((size_t)1 << (i - 1)) + 1, (size_t)1 << i);
		fprintf(to, "%-22s %7zu %9zu %9.2f %5.1f %% %6.2f  ", name, w->levels, w->nodes,
			w->time * 1e6, 100 * fraction_of(w->time, whole), fraction_of(w->floor, w->time));
		put_bar(to, fraction_of(w->levels, most));
	}
}

/* --- memory, schedule --- */

static void put_memory(FILE *to, const esp_profile_facts *f)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} rows[] = {{"weights", f->weight_bytes},	 {"states", f->state_bytes},
		    {"intermediates", f->scratch_bytes}, {"outputs", f->output_bytes},
		    {"what nodes carry", f->data_bytes}, {"order and links", f->index_bytes},
		    {"machine code", f->code_bytes}};
	fprintf(to, "\n%-22s %9s\n", "memory", "KiB");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(to, "%-22s %9.1f\n", rows[i].name, rows[i].bytes / 1024.0);
}

static void put_schedule(FILE *to, const char *schedule)
{
	if (!*schedule)
		return;
	fputs("\nschedule\n", to);
	while (*schedule) {
		size_t n = strcspn(schedule, "\n");
		fprintf(to, "    %.*s\n", (int)n, schedule);
		schedule += n + (schedule[n] == '\n');
	}
}

static const char legend[] =
    "least      the fastest of the runs; all other times are medians\n"
    "split      who computes a level: the caller alone, each thread some of its rows or some of its columns, "
    "or\n"
    "           some subtrees of several levels, between which there is no barrier\n"
    "share      for kernels, waiting and idling: of the time of all threads in the fastest run; for others: "
    "of the\n"
    "           sum over the lines of the table\n"
    "GFLOP/s    operations as estimated, non-linearities included\n"
    "GB/s       weights that a level reads, once\n"
    "floor      the longer of computing at the machine's peak and reading the weights, plus a barrier\n"
    "of one     the floor of one thread: where it is not larger, more threads cannot gain\n"
    "wait       for other threads to finish their shares, per thread\n"
    "idle       without a share: the caller works alone, or computed the share that the thread had not "
    "begun\n"
    "others' work  shares of other threads, not begun in time, that this thread computed\n";

void view_text(FILE *to, const struct view *v)
{
	put_head(to, v);
	put_phases(to, v->summary);
	put_sections(to, v->summary);
	put_kernels(to, v);
	put_functions(to, v);
	put_threads(to, v->summary);
	put_widths(to, v->summary);
	put_memory(to, &v->shown->facts);
	put_schedule(to, v->schedule);
	fprintf(to, "\n%s", legend);
}
