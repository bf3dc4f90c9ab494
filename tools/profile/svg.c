/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* One run as a picture: time from left to right, a lane for the phases, one for the levels, one for each
 * thread. Kernels have colours, which the legend names; whoever points at something is told more. */
#include "profile.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 1400,
	LEFT = 90, /* where time begins */
	RIGHT = WIDTH - 20,
	TOP = 70, /* of the first lane */
	LANE = 30,
	GAP = 8,
	LEGEND_COLUMNS = 4,
	LEGEND_ROW = 20,
	KEYS = 7 /* beside those of kernels */
};

/* That most people tell apart (Okabe and Ito 2008), and paler and darker ones. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
				      "#b8a900", "#6a51a3", "#66c2a4", "#a6761d", "#fb9a99", "#525252"};

#define LINEARIZE "#fdd0a2"
#define FILL "#a1d99b"
#define WAIT "url(#wait)"

/* Of ranges, by how they are split. */
static const char *const shades[] = {
    [ESP_SPLIT_NONE] = "#e0e0e0",
    [ESP_SPLIT_ROWS] = "#b3cde3",
    [ESP_SPLIT_COLUMNS] = "#ccebc5",
    [ESP_SPLIT_SUBTREES] = "#fed9a6"};

static const char *colour_of(size_t step)
{
	return colours[step % (sizeof colours / sizeof *colours)];
}

/* --- places --- */

struct picture {
	FILE *to;
	const struct view *view;
	double width; /* of a nanosecond */
	int top;      /* of the lane at hand */
	double drawn; /* up to where the lane has something so narrow that more of it would not be seen */
};

static double x_of(const struct picture *p, int64_t time)
{
	return LEFT + time * p->width;
}

static int64_t stop_of(const esp_profile_facts *f)
{
	return f->linearize + f->fill + f->run;
}

/* --- elements --- */

static void put_escaped(FILE *to, const char *text)
{
	for (; *text; text++) {
		const char *entity = *text == '<'   ? "&lt;"
				     : *text == '>' ? "&gt;"
				     : *text == '&' ? "&amp;"
				     : *text == '"' ? "&quot;"
						    : NULL;
		if (entity)
			fputs(entity, to);
		else
			fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
	}
}

static void put_words(FILE *to, double x, double y, const char *class, const char *text)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	put_escaped(to, text);
	fputs("</text>\n", to);
}

/* What is too narrow to be seen beside its neighbour is left out, so that a picture has an end. */
static bool is_hidden(struct picture *p, double left, double right)
{
	enum { PER_POINT = 4 };
	if (right - left < 1.0 / PER_POINT && left < p->drawn)
		return true;
	p->drawn = left + 1.0 / PER_POINT;
	return false;
}

/* Begins a box of the lane, which a title may follow; false when it is hidden. */
static bool begin_box(struct picture *p, int64_t start, int64_t stop, const char *fill)
{
	double left = x_of(p, start), right = x_of(p, stop);
	if (is_hidden(p, left, right))
		return false;
	fprintf(p->to, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>", left,
		p->top, fmax(right - left, 0.1), LANE, fill);
	return true;
}

static void end_box(struct picture *p, int64_t start, int64_t stop)
{
	fprintf(p->to, ", %.2f us</title></rect>\n", (stop - start) * 1e-3);
}

/* A name inside of a box, where there is room. */
static void put_label(struct picture *p, int64_t start, int64_t stop, const char *text, int letters)
{
	enum { LETTER = 7 };
	double left = x_of(p, start), right = x_of(p, stop);
	if (right - left > letters * LETTER + 4)
		put_words(p->to, (left + right) / 2, p->top + LANE / 2 + 4, "in", text);
}

static void begin_lane(struct picture *p, const char *name)
{
	p->drawn = 0;
	put_words(p->to, LEFT - 8, p->top + LANE / 2 + 4, "lane", name);
	fprintf(p->to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f7f7f7\"/>\n", LEFT,
		p->top, RIGHT - LEFT, LANE);
}

static void end_lane(struct picture *p)
{
	p->top += LANE + GAP;
}

/* --- lanes --- */

static void put_phases(struct picture *p)
{
	const esp_profile_facts *f = &p->view->shown->facts;
	const struct {
		const char *name, *fill;
		int64_t start, time;
		int letters;
	} phases[] = {{"linearize", LINEARIZE, 0, f->linearize, 9},
		      {"fill", FILL, f->linearize, f->fill, 4},
		      {"run", "#dadaeb", f->linearize + f->fill, f->run, 3}};
	begin_lane(p, "phases");
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
		int64_t start = phases[i].start, stop = start + phases[i].time;
		if (!begin_box(p, start, stop, phases[i].fill))
			continue;
		fputs(phases[i].name, p->to);
		end_box(p, start, stop);
		put_label(p, start, stop, phases[i].name, phases[i].letters);
	}
	end_lane(p);
}

static void put_levels(struct picture *p)
{
	const struct recording *r = p->view->shown;
	begin_lane(p, "levels");
	for (size_t i = 0; i < r->facts.ranges; i++) {
		const esp_range *range = &r->range[i];
		char name[48], shown[48];
		int over = r->step[range->step].over;
		range_name(over, range->level, name, sizeof name);
		if (range->level >= 0 && over != ESP_OVER_LEAVES)
			snprintf(shown, sizeof shown, "%lld", (long long)range->level);
		else
			snprintf(shown, sizeof shown, "%s", over_word(over));
		if (!begin_box(p, range->start, range->stop, shades[range->split]))
			continue;
		fprintf(p->to, "%s, %lld rows, %s", name, (long long)range->rows, split_word(range->split));
		end_box(p, range->start, range->stop);
		put_label(p, range->start, range->stop, shown, (int)strlen(shown));
	}
	end_lane(p);
}

static void put_event(struct picture *p, const esp_event *e)
{
	const struct recording *r = p->view->shown;
	bool waits = e->kind == ESP_EVENT_WAIT;
	char name[48];
	if (!begin_box(p, e->start, e->stop, waits ? WAIT : colour_of(e->step)))
		return;
	range_name(r->step[e->step].over, r->range[e->range].level, name, sizeof name);
	if (waits) {
		fprintf(p->to, "waits, %s", name);
	} else {
		put_escaped(p->to, r->step[e->step].name);
		fprintf(p->to, ", %s, %lld rows, %lld of %lld blocks", name, (long long)e->rows,
			(long long)e->blocks, (long long)r->step[e->step].blocks);
	}
	end_box(p, e->start, e->stop);
}

static void put_threads(struct picture *p)
{
	const struct recording *r = p->view->shown;
	size_t i = 0;
	for (int thread = 0; thread < r->facts.threads; thread++) {
		char name[32];
		snprintf(name, sizeof name, thread ? "thread %d" : "caller", thread);
		begin_lane(p, name);
		for (; i < r->facts.events && r->event[i].thread == thread; i++)
			put_event(p, &r->event[i]);
		end_lane(p);
	}
}

/* --- around them --- */

/* The smallest of 1, 2, 5, 10, ... that is not less. */
static double round_up(double x)
{
	double power = pow(10, floor(log10(x)));
	double digit = x / power;
	return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void put_axis(struct picture *p, int bottom)
{
	enum { TICKS = 12 };
	double whole = stop_of(&p->view->shown->facts) * 1e-3, step = round_up(fmax(whole, 0.001) / TICKS);
	for (int i = 0; i * step <= whole; i++) {
		double x = x_of(p, (int64_t)(i * step * 1e3));
		char text[32];
		fprintf(p->to, "<path d=\"M%.1f %d V%d\" class=\"tick\"/>\n", x, TOP - 6, bottom);
		snprintf(text, sizeof text, "%g", i * step);
		put_words(p->to, x, TOP - 10, "number", text);
	}
	put_words(p->to, LEFT - 8, TOP - 10, "lane", "us");
}

static void put_key(struct picture *p, size_t place, const char *fill, const char *text)
{
	int x = LEFT + (int)(place % LEGEND_COLUMNS) * ((RIGHT - LEFT) / LEGEND_COLUMNS);
	int y = p->top + 10 + (int)(place / LEGEND_COLUMNS) * LEGEND_ROW;
	fprintf(p->to, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, y, fill);
	put_words(p->to, x + 18, y + 11, "key", text);
}

/* Of the time that all threads had, what they spent in a step: its part of the lanes. */
static double area_of(const struct recording *r, size_t step)
{
	int64_t time = 0;
	for (size_t i = 0; i < r->facts.events; i++)
		if (r->event[i].kind == ESP_EVENT_KERNEL && r->event[i].step == step)
			time += r->event[i].stop - r->event[i].start;
	return part_of(time, (double)r->facts.run * r->facts.threads);
}

static void put_legend(struct picture *p)
{
	const struct recording *r = p->view->shown;
	size_t steps = r->facts.steps;
	for (size_t i = 0; i < steps; i++) {
		char text[96];
		snprintf(text, sizeof text, "%.48s, %.1f %%", r->step[i].name, 100 * area_of(r, i));
		put_key(p, i, colour_of(i), text);
	}
	put_key(p, steps, WAIT, "waits for others");
	put_key(p, steps + 1, shades[ESP_SPLIT_NONE], "level: by the caller alone");
	put_key(p, steps + 2, shades[ESP_SPLIT_ROWS], "level: rows are shared out");
	put_key(p, steps + 3, shades[ESP_SPLIT_COLUMNS], "level: columns are shared out");
	put_key(p, steps + 4, shades[ESP_SPLIT_SUBTREES], "level: subtrees are shared out, of several levels");
	put_key(p, steps + 5, LINEARIZE, "linearize");
	put_key(p, steps + 6, FILL, "fill");
}

static const char style[] =
    "<style>text{font-family:sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:16px}.lane{text-anchor:end}.number,.in{text-anchor:middle}"
    ".in{pointer-events:none}.tick{stroke:#ccc;fill:none}</style>\n"
    "<defs><pattern id=\"wait\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#999\"/></pattern></defs>\n";

static void put_title(struct picture *p)
{
	const struct view *v = p->view;
	const esp_profile_facts *f = &v->shown->facts;
	char text[256];
	snprintf(text, sizeof text,
		 "%.60s, %.60s: %zu structures, %zu nodes, %zu levels, %d threads: %.1f us", v->model,
		 v->sizes, f->structures, f->nodes, f->levels, f->threads, stop_of(f) * 1e-3);
	put_words(p->to, LEFT, 26, "title", text);
}

void view_svg(FILE *to, const struct view *v)
{
	const esp_profile_facts *f = &v->shown->facts;
	struct picture p = {.to = to, .view = v, .top = TOP};
	int bottom = TOP + (2 + f->threads) * (LANE + GAP);
	size_t keys = (v->summary->steps + KEYS + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;
	int height = bottom + 20 + (int)keys * LEGEND_ROW;
	p.width = stop_of(f) ? (double)(RIGHT - LEFT) / stop_of(f) : 0;
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		WIDTH, height, WIDTH, height);
	fprintf(to, "%s<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", style, WIDTH, height);
	put_title(&p);
	put_axis(&p, bottom - GAP);
	put_phases(&p);
	put_levels(&p);
	put_threads(&p);
	put_legend(&p);
	fputs("</svg>\n", to);
}
