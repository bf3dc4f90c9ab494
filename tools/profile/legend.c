/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "profile/picture.h"

#include <string.h>

/* --- colours --- */

/* Colours that the colour-blind can tell apart, without black (Okabe and Ito 2008). Further kernels get
 * the same colours with stripes, then with dots. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
				      "#56b4e9", "#cc79a7", "#f0e442"};
static const char *const textures[] = {
    NULL,
    "<path d=\"M0 2 H8 M0 6 H8\" stroke=\"#fff\" stroke-width=\"1.5\"/>",
    "<circle cx=\"2\" cy=\"2\" r=\"1.2\" fill=\"#fff\"/><circle cx=\"6\" cy=\"6\" r=\"1.2\" fill=\"#fff\"/>",
};
enum { COLOURS = sizeof colours / sizeof *colours, PAINTS = COLOURS * (sizeof textures / sizeof *textures) };
#define OTHERS "#222222"

const struct paint picture_phases[PICTURE_PHASES] = {
    {"#9a9a9a", "linearize"}, {"#636363", "fill"}, {"#d9d9d9", "run"}};

const struct paint picture_splits[PICTURE_SPLITS] = {
    [ESP_SPLIT_NONE] = {"#d9d9d9", "by the caller alone"},
    [ESP_SPLIT_ROWS] = {"#9ecae1", "rows divided"},
    [ESP_SPLIT_COLUMNS] = {"#fee391", "columns divided"},
    [ESP_SPLIT_SUBTREES] = {"#e7b3cf", "subtrees divided"}};

/* Below a thousandth of the time a box is less than a point wide. */
static bool is_seen(const struct view *v, size_t step)
{
	return v->summary->kernel[step].share >= 0.001;
}

/* Index of a kernel's own colour; PAINTS = it has none. */
static size_t paint_of(const struct view *v, size_t step)
{
	size_t n = 0;
	for (size_t i = 0; i < step; i++)
		n += is_seen(v, i);
	return is_seen(v, step) && n < PAINTS ? n : PAINTS;
}

void picture_fill(const struct view *v, size_t step, char *fill, size_t size)
{
	size_t paint = paint_of(v, step);
	if (paint >= PAINTS)
		snprintf(fill, size, OTHERS);
	else if (paint < COLOURS)
		snprintf(fill, size, "%s", colours[paint]);
	else
		snprintf(fill, size, "url(#paint%zu)", paint);
}

void legend_put_patterns(FILE *to)
{
	fputs(
	    "<defs><pattern id=\"wait\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
	    "<rect width=\"2\" height=\"6\" fill=\"#777\"/></pattern>\n",
	    to);
	for (size_t i = COLOURS; i < PAINTS; i++)
		fprintf(to,
			"<pattern id=\"paint%zu\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
			"<rect width=\"8\" height=\"8\" fill=\"%s\"/>%s</pattern>\n",
			i, colours[i % COLOURS], textures[i / COLOURS]);
	fputs("</defs>\n", to);
}

/* --- keys --- */

enum { ROW = 22, BOX = 13, APART = 22 };

/* Position of the next key. With `to` NULL nothing is written: only the height is computed. */
struct legend {
	FILE *to;
	int x, y;
};

static void begin_keys(struct legend *l, const char *name)
{
	l->x = PICTURE_LEFT;
	l->y += ROW;
	if (l->to)
		picture_words(l->to, PICTURE_LEFT - 8, l->y, "lane", name);
}

static void put_key(struct legend *l, const char *fill, const char *text)
{
	int width = BOX + 6 + (int)strlen(text) * PICTURE_LETTER;
	if (l->x > PICTURE_LEFT && l->x + width > PICTURE_RIGHT) {
		l->x = PICTURE_LEFT;
		l->y += ROW;
	}
	if (l->to) {
		fprintf(l->to,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" class=\"key\"/>\n",
			l->x, l->y - BOX + 2, BOX, BOX, fill);
		picture_words(l->to, l->x + BOX + 6, l->y, "name", text);
	}
	l->x += width + APART;
}

static void put_share(struct legend *l, const char *fill, const char *name, double share)
{
	char text[96];
	snprintf(text, sizeof text, "%.48s, %.1f %%", name, 100 * share);
	put_key(l, fill, text);
}

static void put_kernels(struct legend *l, const struct view *v)
{
	double others = 0;
	begin_keys(l, "kernels");
	for (size_t i = 0; i < v->summary->steps; i++) {
		const struct kernel *k = &v->summary->kernel[i];
		char fill[32];
		picture_fill(v, i, fill, sizeof fill);
		if (paint_of(v, i) < PAINTS)
			put_share(l, fill, v->shown->step[i].name, k->share);
		else
			others += k->share;
	}
	if (others > 0)
		put_share(l, OTHERS, "all other kernels", others);
}

static void put_threads(struct legend *l, const struct summary *s)
{
	begin_keys(l, "threads");
	if (s->waiting > 0)
		put_share(l, PICTURE_WAIT, "waits for others to end their shares", s->waiting);
	put_share(l, PICTURE_IDLE, "idle: between calls or without a share", s->idle);
}

static void put_splits(struct legend *l, const struct recording *r)
{
	bool seen[PICTURE_SPLITS] = {false};
	for (size_t i = 0; i < r->facts.ranges; i++)
		seen[r->range[i].split] = true;
	begin_keys(l, "levels");
	for (int i = 0; i < PICTURE_SPLITS; i++)
		if (seen[i])
			put_key(l, picture_splits[i].fill, picture_splits[i].name);
}

static void put_phases(struct legend *l, const esp_profile_facts *f)
{
	const int64_t time[] = {f->linearize, f->fill, f->run};
	begin_keys(l, "phases");
	for (int i = 0; i < PICTURE_PHASES; i++)
		if (time[i] > 0)
			put_key(l, picture_phases[i].fill, picture_phases[i].name);
}

static void put_note(struct legend *l, const esp_profile_facts *f)
{
	char text[128];
	l->y += ROW + 4;
	snprintf(text, sizeof text,
		 "Shares are of the time that all threads have in the run: %d \303\227 %.1f \302\265s.",
		 f->threads, f->run * 1e-3);
	if (l->to)
		picture_words(l->to, PICTURE_LEFT, l->y, "note", text);
}

static int put_all(struct legend *l, const struct view *v)
{
	put_phases(l, &v->shown->facts);
	put_splits(l, v->shown);
	put_kernels(l, v);
	put_threads(l, v->summary);
	put_note(l, &v->shown->facts);
	return l->y + ROW / 2;
}

int legend_height(const struct view *v)
{
	return put_all(&(struct legend){.to = NULL}, v);
}

void legend_put(FILE *to, const struct view *v, int top)
{
	put_all(&(struct legend){.to = to, .y = top}, v);
}
