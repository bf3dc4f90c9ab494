/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Draws one run: time from left to right, a lane for the phases, one for the levels and one for each
 * thread. The legend (legend.c) names the colours; boxes have tool tips. */
#include "profile/picture.h"

#include <math.h>
#include <string.h>

enum {
	TOP = 72, /* y of the first lane */
	LANE = 28,
	GAP = 6,
	AXIS = 50, /* numbers and the unit, below the last lane */
};

/* --- places --- */

static double x_of(const struct picture *p, int64_t time)
{
	return PICTURE_LEFT + time * p->width;
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
		unsigned char c = *text;
		if (entity)
			fputs(entity, to);
		else
			fputc(c < ' ' || c == 0x7f ? '?' : c, to);
	}
}

void picture_words(FILE *to, double x, double y, const char *class, const char *text)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	put_escaped(to, text);
	fputs("</text>\n", to);
}

/* Whether a box is too narrow to be seen beside the one before it; leaving these out bounds the size of a
 * picture. */
static bool is_hidden(struct picture *p, double left, double right)
{
	enum { PER_POINT = 4 };
	if (right - left < 1.0 / PER_POINT && left < p->drawn)
		return true;
	p->drawn = left + 1.0 / PER_POINT;
	return false;
}

/* Begins a box of the lane, which a title may follow; false when it is too narrow to be drawn. */
static bool begin_box(struct picture *p, int64_t start, int64_t stop, const char *fill)
{
	double left = x_of(p, start), right = x_of(p, stop);
	if (is_hidden(p, left, right))
		return false;
	fprintf(p->to,
		"<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\" class=\"%s\"><title>",
		left, p->top, fmax(right - left, 0.1), LANE, fill, right - left > 3 ? "box" : "thin");
	return true;
}

static void end_box(struct picture *p, int64_t start, int64_t stop)
{
	fprintf(p->to, ", %.2f us</title></rect>\n", (stop - start) * 1e-3);
}

/* Writes a name inside a box if it fits. */
static void put_label(struct picture *p, int64_t start, int64_t stop, const char *text)
{
	double left = x_of(p, start), right = x_of(p, stop);
	if (right - left > strlen(text) * PICTURE_LETTER + 4)
		picture_words(p->to, (left + right) / 2, p->top + LANE / 2 + 4, "in", text);
}

static void begin_lane(struct picture *p, const char *name)
{
	p->drawn = 0;
	picture_words(p->to, PICTURE_LEFT - 8, p->top + LANE / 2 + 4, "lane", name);
}

static void end_lane(struct picture *p)
{
	p->top += LANE + GAP;
}

/* --- lanes --- */

static void put_phases(struct picture *p)
{
	const esp_profile_facts *f = &p->view->shown->facts;
	const int64_t time[] = {f->linearize, f->fill, f->run};
	int64_t start = 0;
	begin_lane(p, "phases");
	for (int i = 0; i < PICTURE_PHASES; start += time[i++]) {
		if (!begin_box(p, start, start + time[i], picture_phases[i].fill))
			continue;
		fputs(picture_phases[i].name, p->to);
		end_box(p, start, start + time[i]);
		put_label(p, start, start + time[i], picture_phases[i].name);
	}
	end_lane(p);
}

static void put_level(struct picture *p, const struct recording *r, const esp_range *range)
{
	char name[48], shown[48];
	int over = r->step[range->step].over;
	range_name(over, range->level, name, sizeof name);
	if (range->level >= 0 && over != ESP_OVER_LEAVES)
		snprintf(shown, sizeof shown, "%lld", (long long)range->level);
	else
		snprintf(shown, sizeof shown, "%s", over_word(over));
	if (!begin_box(p, range->start, range->stop, picture_splits[range->split].fill))
		return;
	fprintf(p->to, "%s, %lld rows, %s", name, (long long)range->rows, split_word(range->split));
	end_box(p, range->start, range->stop);
	put_label(p, range->start, range->stop, shown);
}

static void put_levels(struct picture *p)
{
	const struct recording *r = p->view->shown;
	begin_lane(p, "levels");
	for (size_t i = 0; i < r->facts.ranges; i++)
		put_level(p, r, &r->range[i]);
	end_lane(p);
}

static void put_wait(struct picture *p, const esp_event *e, const char *range)
{
	if (!begin_box(p, e->start, e->stop, PICTURE_WAIT))
		return;
	fprintf(p->to, "waits, %s", range);
	end_box(p, e->start, e->stop);
}

static void put_call(struct picture *p, const esp_event *e, const char *range)
{
	const esp_step *step = &p->view->shown->step[e->step];
	char fill[32];
	picture_fill(p->view, e->step, fill, sizeof fill);
	if (!begin_box(p, e->start, e->stop, fill))
		return;
	put_escaped(p->to, step->name);
	fprintf(p->to, ", %s, %lld rows, %lld of %lld blocks", range, (long long)e->rows,
		(long long)e->blocks, (long long)step->blocks);
	end_box(p, e->start, e->stop);
}

static void put_event(struct picture *p, size_t i)
{
	const struct recording *r = p->view->shown;
	const esp_event *e = &r->event[i];
	char range[48];
	range_name(r->step[e->step].over, r->range[e->range].level, range, sizeof range);
	if (e->kind == ESP_EVENT_KERNEL)
		put_call(p, e, range);
	else if (recording_waits(r, i))
		put_wait(p, e, range);
}

/* Draws time that no event covers as idle. */
static void put_idle(const struct picture *p)
{
	const esp_profile_facts *f = &p->view->shown->facts;
	double left = x_of(p, f->linearize + f->fill);
	fprintf(p->to, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n", left, p->top,
		x_of(p, stop_of(f)) - left, LANE, PICTURE_IDLE);
}

static void put_threads(struct picture *p)
{
	const struct recording *r = p->view->shown;
	size_t i = 0;
	for (int thread = 0; thread < r->facts.threads; thread++) {
		char name[32];
		snprintf(name, sizeof name, thread ? "thread %d" : "caller", thread);
		begin_lane(p, name);
		put_idle(p);
		for (; i < r->facts.events && r->event[i].thread == thread; i++)
			put_event(p, i);
		end_lane(p);
	}
}

/* --- axis, title, page --- */

/* The smallest of 1, 2, 5, 10, ... that is not less. */
static double round_up(double x)
{
	double power = pow(10, floor(log10(x)));
	double digit = x / power;
	return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void put_axis(struct picture *p, int bottom)
{
	enum { TICKS = 10, LENGTH = 5 };
	double whole = stop_of(&p->view->shown->facts) * 1e-3, step = round_up(fmax(whole, 0.001) / TICKS);
	fprintf(p->to, "<path d=\"M%d %d H%d\" class=\"axis\"/>\n", PICTURE_LEFT, bottom, PICTURE_RIGHT);
	for (int i = 0; i * step <= whole; i++) {
		double x = x_of(p, (int64_t)(i * step * 1e3));
		char text[32];
		fprintf(p->to, "<path d=\"M%.1f %d V%d\" class=\"axis\"/>\n", x, bottom, bottom + LENGTH);
		snprintf(text, sizeof text, "%g", i * step);
		picture_words(p->to, x, bottom + LENGTH + 14, "in", text);
	}
	picture_words(p->to, (PICTURE_LEFT + PICTURE_RIGHT) / 2, bottom + LENGTH + 32, "in",
		      "time since the run began [\302\265s]");
}

static const char style[] =
    "<style>text{font-family:Helvetica,Arial,sans-serif;font-size:13px;fill:#222}"
    ".title{font-size:17px;font-weight:bold}.lane{text-anchor:end}.in{text-anchor:middle;pointer-events:none}"
    ".axis{stroke:#222;fill:none}.box{stroke:#fff;stroke-width:0.6}.key{stroke:#888;stroke-width:0.6}</"
    "style>\n";

static void put_count(char **at, const char *end, size_t n, const char *word, const char *behind)
{
	int wrote = snprintf(*at, end - *at, "%zu %s%s%s", n, word, n == 1 ? "" : "s", behind);
	*at += wrote < end - *at ? wrote : end - *at - 1;
}

static void put_title(const struct picture *p)
{
	const struct view *v = p->view;
	const esp_profile_facts *f = &v->shown->facts;
	char text[256], *at = text, *end = text + sizeof text;
	snprintf(text, sizeof text, "%.60s%s%.60s", v->model, *v->sizes ? ", " : "", v->sizes);
	picture_words(p->to, PICTURE_LEFT, 28, "title", text);
	put_count(&at, end, f->structures, "structure", ", ");
	put_count(&at, end, f->nodes, "node", ", ");
	put_count(&at, end, f->levels, "level", "; ");
	put_count(&at, end, f->threads, "thread", ", ");
	snprintf(at, end - at, "%s; the fastest of %d run%s: %.1f \302\265s", v->machine->vector,
		 v->summary->runs, v->summary->runs == 1 ? "" : "s", stop_of(f) * 1e-3);
	picture_words(p->to, PICTURE_LEFT, 50, "head", text);
}

void view_svg(FILE *to, const struct view *v)
{
	const esp_profile_facts *f = &v->shown->facts;
	struct picture p = {.to = to, .view = v, .top = TOP};
	int bottom = TOP + (2 + f->threads) * (LANE + GAP), height = bottom + AXIS + legend_height(v);
	p.width = stop_of(f) ? (double)(PICTURE_RIGHT - PICTURE_LEFT) / stop_of(f) : 0;
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		PICTURE_WIDTH, height, PICTURE_WIDTH, height);
	fputs(style, to);
	legend_put_patterns(to);
	fprintf(to, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", PICTURE_WIDTH, height);
	put_title(&p);
	put_phases(&p);
	put_levels(&p);
	put_threads(&p);
	put_axis(&p, bottom);
	legend_put(to, v, bottom + AXIS);
	fputs("</svg>\n", to);
}
