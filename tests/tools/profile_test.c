/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier profile from a recording that was made up: sections, medians, floors, and the forms that others
 * read. */
#include "tests/tap.h"
#include "tools/profile/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a recording --- */

/* A forest of 8 leaves, levels of 4 and 1 nodes, one structure; the two steps of a level take turns over its
 * rows. */
enum { LEAF, GATES, UPDATE, ROOT, STEPS };
static esp_step steps[STEPS] = {
    [LEAF] = {"leaf", ESP_OVER_LEAVES, 100, 1, 0, 4, 0, 0, 0, 0},
    [GATES] = {"inner.0", ESP_OVER_INNER, 1000, 4, 500, 4, 2000, 0, 0, 0},
    [UPDATE] = {"inner.1", ESP_OVER_INNER, 50, 1, 0, 4, 0, 0, 0, 0},
    [ROOT] = {"out<&\">", ESP_OVER_STRUCTURES, 10, 1, 40, 1, 40, 0, 0, 0},
};
static size_t nodes[] = {8, 4, 1};

/* The leaves by rows, level 1 by columns (a range for each step), the rest alone. */
static esp_range ranges[] = {
    {LEAF, 1, 0, 0, 8, ESP_SPLIT_ROWS, 1000, 2000},   {GATES, 1, 1, 8, 4, ESP_SPLIT_COLUMNS, 2000, 5000},
    {UPDATE, 1, 1, 8, 4, ESP_SPLIT_NONE, 5000, 5500}, {GATES, 2, 2, 12, 1, ESP_SPLIT_NONE, 5500, 7000},
    {ROOT, 1, -1, 0, 1, ESP_SPLIT_NONE, 7000, 7100},
};
static esp_event events[] = {
    {ESP_EVENT_KERNEL, 0, 0, 0, LEAF, 0, 4, 0, 1, 1, 1000, 1800},
    {ESP_EVENT_WAIT, 0, 0, 0, LEAF, 0, 0, 0, 0, 0, 1800, 2000},
    {ESP_EVENT_KERNEL, 0, 0, 1, GATES, 8, 4, 0, 2, 1, 2000, 3500},
    {ESP_EVENT_KERNEL, 0, 1, 1, GATES, 8, 4, 2, 2, 1, 3500, 5000},
    {ESP_EVENT_KERNEL, 0, 0, 2, UPDATE, 8, 4, 0, 1, 1, 5000, 5500},
    {ESP_EVENT_KERNEL, 0, 0, 3, GATES, 12, 1, 0, 4, -1, 5500, 6500},
    {ESP_EVENT_KERNEL, 0, 0, 3, UPDATE, 12, 1, 0, 1, 1, 6500, 7000},
    {ESP_EVENT_KERNEL, 0, 0, 4, ROOT, 0, 1, 0, 1, 1, 7000, 7100},
    {ESP_EVENT_KERNEL, 1, 1, 0, LEAF, 4, 4, 0, 1, 1, 1000, 2000},
    {ESP_EVENT_WAIT, 1, 1, 1, GATES, 0, 0, 0, 0, 0, 2000, 5000},
};

static const struct recording made_up = {
    .facts = {.begin = 5,
	      .linearize = 600,
	      .fill = 400,
	      .run = 6200,
	      .threads = 2,
	      .structures = 1,
	      .nodes = 13,
	      .edges = 12,
	      .leaves = 8,
	      .levels = 3,
	      .steps = STEPS,
	      .ranges = 5,
	      .events = 10,
	      .weight_bytes = 2048},
    .step = steps,
    .range = ranges,
    .event = events,
    .nodes = nodes,
};

/* A byte and an operation each nanosecond and thread. */
static const struct machine machine = {
    .vector = "paper", .threads = 2, .peak = 1e9, .bandwidth = {1e9}, .sets = 1, .barrier = 1e-7};

/* A copy whose times are `times` as long. */
static void stretch(struct recording *r, int times)
{
	*r = made_up;
	r->range = malloc(sizeof ranges);
	r->event = malloc(sizeof events);
	memcpy(r->range, ranges, sizeof ranges);
	memcpy(r->event, events, sizeof events);
	r->facts.linearize *= times;
	r->facts.fill *= times;
	r->facts.run *= times;
	for (size_t i = 0; i < r->facts.ranges; i++) {
		r->range[i].start *= times;
		r->range[i].stop *= times;
	}
	for (size_t i = 0; i < r->facts.events; i++) {
		r->event[i].start *= times;
		r->event[i].stop *= times;
	}
}

static void drop(struct recording *r)
{
	free(r->range);
	free(r->event);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b) + 1e-15;
}

/* --- floors --- */

static void test_floor(void)
{
	tap_ok(near(floor_of_rows(&machine, 1, 3000, 2000, 2000), 3e-6) &&
		   near(floor_of_rows(&machine, 1, 2000, 3000, 3000), 3e-6),
	       "the longer of computing and reading");
	tap_ok(near(floor_of_rows(&machine, 2, 3000, 2000, 2000), 1.6e-6), "divided among threads, with a barrier");
	tap_ok(near(floor_of_rows(&machine, 2, 100, 60, 60), 1e-7) &&
		   near(floor_of_rows(&machine, 2, 0, 0, 0), 0) &&
		   near(floor_of_rows(&machine, 2, 300, 0, 0), 2.5e-7),
	       "or done by one thread alone, where a barrier takes longer than it saves");
	tap_ok(near(floor_without_barrier(&machine, 2, 100, 60, 60), 5e-8),
	       "steps of a level without a barrier between them");
	struct floor_span p = floor_span_at(&made_up, 1);
	tap_ok(p.ranges == 2 && p.step == GATES && p.steps == 2 && p.level == 1 && p.rows == 4 &&
		   near(p.operations, 4 * 1050) && near(p.bytes, 2000),
	       "ranges over the same rows are one part");
	tap_ok(floor_span_at(&made_up, 5).ranges == 0, "past the last there is none");
	struct floor f = floor_of_run(&machine, 1, &made_up);
	tap_ok(near(f.operations, 800 + 4200 + 1050 + 10) && near(f.bytes, 2000 + 2000 + 40) &&
		   near(f.seconds, (800 + 4200 + 2000 + 40) * 1e-9),
	       "the floor of a run is their sum");

	esp_range one_by_one[] = {{GATES, 2, -1, 8, 1, 0, 0, 1}, {GATES, 2, -1, 9, 1, 0, 1, 2}};
	struct recording r = made_up;
	r.range = one_by_one;
	r.facts.ranges = 2;
	p = floor_span_at(&r, 0);
	tap_ok(p.ranges == 2 && p.steps == 2 && p.rows == 2 && near(p.operations, 2100) &&
		   near(p.bytes, 4000) && near(p.set, 2000),
	       "rows one by one are one part, which reads weights for each");
}

/* Rows of level 1 one by one, whose edges select 300 bytes each. */
static void test_edges(void)
{
	esp_range one_by_one[] = {
	    {GATES, 1, 1, 8, 1, 0, 0, 1}, {GATES, 1, 1, 8, 1, 0, 1, 2}, {GATES, 1, 0, 9, 1, 0, 2, 3}};
	size_t tokens[] = {0, 4, 1};
	esp_step other[STEPS];
	struct recording r = made_up;
	memcpy(other, steps, sizeof steps);
	other[GATES] = (esp_step){"gates", ESP_OVER_INNER, 1000, 1, 0, 4, 0, .edge_bytes = 300, .edge_input = 1};
	r.step = other;
	r.range = one_by_one;
	r.facts.ranges = 3;
	struct floor_span p = floor_span_at(&r, 0);
	tap_ok(near(p.bytes, 300) && near(p.set, 300), "what edges select is read for one token at least");
	r.tokens = tokens;
	tap_ok(near(floor_span_at(&r, 0).bytes, 300), "also where the tokens of another input are counted");
	r.edge_input = 1;
	p = floor_span_at(&r, 0);
	tap_ok(near(p.bytes, 1200) && near(p.set, 1200), "else for each different one");
	tap_ok(near(floor_span_at(&r, 2).bytes, 0), "and not for leaves");
}

/* A recording of made_up with other bytes of the gates' weights. */
static double bytes_of_first_level(int64_t weight_bytes)
{
	esp_step other[STEPS];
	struct recording r = made_up;
	memcpy(other, steps, sizeof steps);
	other[GATES].weight_bytes = weight_bytes;
	r.step = other;
	return floor_span_at(&r, 1).bytes;
}

/* Two working sets, the larger of which is read at half the speed of the smaller one. */
static void test_weights(void)
{
	struct machine slow = machine;
	slow.bandwidth[1] = 5e8;
	slow.sets = 2;
	tap_ok(near(bytes_of_first_level(500), 500), "weights that all blocks share are read once");
	tap_ok(
	    near(floor_of_rows(&slow, 1, 0, 4.0 * MACHINE_LEAST, MACHINE_LEAST), 4 * MACHINE_LEAST * 1e-9) &&
		near(floor_of_rows(&slow, 1, 0, 4.0 * MACHINE_LEAST, 4 * MACHINE_LEAST),
		     8 * MACHINE_LEAST * 1e-9),
	    "what is read again is as near as the set that it is of");
}

/* --- summaries --- */

static bool gather(struct gathering *g, struct summary *s)
{
	bool ok = gathering_begin(g, &made_up, 2, 3);
	static const int times[] = {3, 1, 2};
	for (int i = 0; ok && i < 3; i++) {
		struct recording r;
		stretch(&r, times[i]);
		ok = gathering_add(g, &r);
		drop(&r);
	}
	return ok && summarize_runs(s, g, &made_up, &machine);
}

static void test_summary(const struct summary *s)
{
	tap_ok(s->runs == 3 && s->sections == 4 && near(s->whole.least, 7.2e-6) &&
		   near(s->whole.median, 14.4e-6) && near(s->linearize.median, 1.2e-6) &&
		   near(s->run.least, 6.2e-6),
	       "phases: the least and the median");
	const struct section *leaves = &s->section[0], *first = &s->section[1];
	tap_ok(near(leaves->time.least, 1e-6) && near(leaves->wait, 0.4e-6) &&
		   leaves->split == ESP_SPLIT_ROWS,
	       "a section lasts from its first range to its last, and threads wait in it");
	tap_ok(near(first->time.least, 3.5e-6) && near(first->wait, 0) && first->split == ESP_SPLIT_COLUMNS &&
		   near(first->floor, 2.2e-6) && near(first->alone, 4.2e-6),
	       "also when its steps have ranges of their own");
	tap_ok(near(s->cell[leaves->cell].time.least, 1e-6) && near(s->cell[first->cell].time.least, 3e-6) &&
		   near(s->cell[first->cell + 1].time.median, 1e-6),
	       "a kernel takes as long as the thread that is longest at it");
	const struct kernel *gates = &s->kernel[GATES];
	tap_ok(gates->calls == 3 && gates->rows == 5 && near(gates->operations, 5000) &&
		   near(gates->bytes, 4000) && near(gates->time, 8e-6),
	       "kernels are summed up over levels");
	tap_ok(near(s->thread[0].busy, 11.8e-6) && near(s->thread[0].wait, 0.4e-6) &&
		   near(s->thread[0].idle, 0.2e-6) && s->thread[0].taken == 1 && near(s->thread[1].wait, 0) &&
		   near(s->thread[1].idle, 10.4e-6) && s->thread[1].taken == 0,
	       "threads work, wait and do nothing: who has no share does not wait");
	tap_ok(near(s->kernel[LEAF].share, 1800 / 12400.) && near(gates->share, 4000 / 12400.) &&
		   near(s->waiting, 200 / 12400.) && near(s->idle, 5300 / 12400.),
	       "shares are of the time that all threads have");
	tap_ok(s->width[0].levels == 1 && s->width[2].levels == 1 && s->width[2].nodes == 4 &&
		   s->width[3].nodes == 8 && near(s->width[2].time, 7e-6) && s->width[1].levels == 0,
	       "levels are told by their width");
	tap_ok(width_of(1) == 0 && width_of(2) == 1 && width_of(3) == 2 && width_of(4) == 2 &&
		   width_of(5) == 3,
	       "whose classes end at powers of two");
}

static void test_strangers(struct gathering *g)
{
	struct recording r;
	stretch(&r, 1);
	tap_ok(!gathering_add(g, &r), "there is no room for a run more");
	struct gathering other;
	gathering_begin(&other, &made_up, 2, 4);
	r.range[3].rows = 2;
	tap_ok(!gathering_add(&other, &r), "a run over other rows is refused");
	r.range[3].rows = 1;
	r.facts.ranges = 4;
	tap_ok(!gathering_add(&other, &r), "and one that ends before");
	gathering_free(&other);
	drop(&r);
}

/* --- forms --- */

static char *written(void (*form)(FILE *, const struct view *), const struct view *v)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	form(f, v);
	fclose(f);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void test_text(const struct view *v)
{
	char *text = written(view_text, v);
	tap_ok(strstr(text, "paper, D = 4\n1 structure, 13 nodes, 8 leaves, 3 levels; 2 threads, 3 runs\n"),
	       "the page says what ran");
	tap_ok(strstr(text, "\nlevel 1 ") && strstr(text, "\nleaves ") && strstr(text, "\nstructures ") &&
		   strstr(text, "\ninner.0 "),
	       "and has a line for each level and kernel");
	tap_ok(strstr(text, "\n    tile wide\n    tile high\n"), "and the schedule");
	free(text);
}

/* In the order of the steps, then of waiting and idling. */
static const char *const shares[] = {"14.5 %", "32.3 %", "8.1 %", "0.8 %", "1.6 %", "42.7 %"};

static void test_shares(const struct view *v)
{
	char *page = written(view_text, v), *picture = written(view_svg, v);
	static const char *const rows[] = {"\nleaf ", "\ninner.0 ", "\ninner.1 ",
					   "\nout<",  "\nwaiting ", "\nidle "};
	static const char *const keys[] = {"\"name\">leaf, ",	 "\"name\">inner.0, ",
					   "\"name\">inner.1, ", "\"name\">out&lt;&amp;&quot;&gt;, ",
					   ">waits for others",	 ">idle: "};
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		const char *row = strstr(page, rows[i]), *key = strstr(picture, keys[i]);
		const char *in_row = row ? strstr(row, shares[i]) : NULL,
			   *in_key = key ? strstr(key, shares[i]) : NULL;
		tap_ok(in_row && in_row < strchr(row + 1, '\n') && in_key && in_key < strchr(key + 1, '\n'),
		       "page and picture say %s", shares[i]);
	}
	free(page);
	free(picture);
}

static double number_at(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void test_json(const struct view *v)
{
	char *text = written(view_json, v);
	json_t *root = json_loads(text, 0, NULL);
	const json_t *sections = json_object_get(root, "sections"), *level = json_array_get(sections, 1);
	const json_t *kernels = json_object_get(root, "kernels");
	tap_ok(root && json_array_size(sections) == 4 && json_array_size(kernels) == STEPS, "JSON is read");
	tap_ok(near(number_at(level, "floor_us"), 2.2) && number_at(level, "rows") == 4 &&
		   json_array_size(json_object_get(level, "kernels")) == 2 &&
		   near(number_at(json_object_get(level, "time_us"), "median"), 7),
	       "with the numbers of a level");
	tap_ok(strcmp(json_string_value(json_object_get(json_array_get(kernels, 3), "name")), "out<&\">") ==
		       0 &&
		   json_array_size(json_object_get(root, "per_thread")) == 2 &&
		   json_array_size(json_object_get(root, "widths")) == 3 &&
		   number_at(json_object_get(root, "memory_bytes"), "weights") == 2048,
	       "of kernels, threads, widths and memory");
	json_decref(root);
	free(text);
}

static void test_trace(const struct view *v)
{
	char *text = written(view_trace, v);
	json_t *root = json_loads(text, 0, NULL), *event;
	size_t i, complete = 0, kernels = 0, bad = 0;
	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
			continue;
		complete++;
		kernels += strcmp(json_string_value(json_object_get(event, "cat")), "kernel") == 0;
		bad += !(number_at(event, "ts") >= .005) || !(number_at(event, "dur") >= 0) ||
		       number_at(event, "ts") + number_at(event, "dur") > 7.205 + 1e-9;
	}
	tap_ok(root && complete == 4 + 5 + 10 && kernels == 8 && bad == 0,
	       "a trace has phases, levels, calls and waits within the run");
	json_decref(root);
	free(text);
}

/* Whether each element that begins ends, in order, and no text holds what begins one. */
static bool is_well_formed(const char *xml)
{
	char open[16][16];
	int depth = 0;
	for (const char *p = strchr(xml, '<'); p; p = strchr(p + 1, '<')) {
		const char *end = strchr(p, '>');
		char name[16] = "";
		if (!end || sscanf(p + 1 + (p[1] == '/'), "%15[a-z]", name) > 1)
			return false;
		if (p[1] == '?' || end[-1] == '/')
			continue;
		if (p[1] == '/') {
			if (depth == 0 || strcmp(open[--depth], name) != 0)
				return false;
		} else {
			if (depth == 16 || !*name)
				return false;
			strcpy(open[depth++], name);
		}
	}
	return depth == 0;
}

static void test_svg(const struct view *v)
{
	char *text = written(view_svg, v);
	tap_ok(is_well_formed(text) && count(text, "<svg ") == 1 && !strstr(text, "out<&"),
	       "a picture is well-formed");
	tap_ok(strstr(text, ">caller<") && strstr(text, ">thread 1<") && strstr(text, ">inner.0, ") &&
		   strstr(text, "<title>waits, leaves"),
	       "with lanes, waits and a legend");
	tap_ok(!strstr(text, "<title>waits, level 1"), "a thread without a share does not wait");
	tap_ok(strstr(text, ">rows divided<") && strstr(text, ">columns divided<") &&
		   !strstr(text, ">subtrees divided<") && !strstr(text, ">all other kernels"),
	       "the legend has what is in the picture only");
	tap_ok(strstr(text, "of the time that all threads have in the run: 2 "),
	       "and says what shares are of");
	free(text);
}

/* The fill of a key of the legend, up to its quote. */
static const char *fill_of(const char *picture, const char *name)
{
	const char *key = strstr(picture, name), *fill = key;
	while (fill && fill > picture && strncmp(fill, "fill=\"", 6) != 0)
		fill--;
	return fill;
}

static bool same_fill(const char *a, const char *b)
{
	size_t n = strcspn(a + 6, "\"");
	return n == strcspn(b + 6, "\"") && strncmp(a + 6, b + 6, n) == 0;
}

/* As many kernels as have paints of their own, and some that are too short to be seen. */
static void test_paints(const struct view *view)
{
	enum { MANY = 24, LONG = 21 };
	static char names[MANY][8], keys[MANY][24];
	esp_step many[MANY];
	esp_event calls[MANY];
	struct kernel kernels[MANY] = {{0}};
	struct recording r = made_up;
	struct summary s = *view->summary;
	struct view v = *view;
	for (int i = 0; i < MANY; i++) {
		sprintf(names[i], "k%d", i);
		sprintf(keys[i], "\"name\">k%d, ", i);
		many[i] = (esp_step){.name = names[i], .over = ESP_OVER_INNER, .blocks = 1, .tile = 1};
		calls[i] =
		    (esp_event){.range = 3, .step = i, .rows = 1, .start = 100 * i, .stop = 100 * i + 90};
		kernels[i].share = i < LONG ? 0.04 : 0.0004;
	}
	r.step = many;
	r.event = calls;
	r.facts.steps = r.facts.events = s.steps = MANY;
	s.kernel = kernels;
	v.shown = &r;
	v.summary = &s;
	char *text = written(view_svg, &v);
	int alike = 0, shown = 0;
	for (int i = 0; i < MANY; i++) {
		const char *a = fill_of(text, keys[i]);
		shown += a != NULL;
		for (int k = 0; k < i && a; k++)
			alike += same_fill(a, fill_of(text, keys[k]));
	}
	tap_ok(shown == LONG && alike == 0, "%d kernels have paints of their own, %d pairs the same", shown,
	       alike);
	tap_ok(is_well_formed(text) && strstr(text, ">all other kernels, 0.1 %"),
	       "the rest have one together");
	free(text);
}

/* More calls than a picture has points: it must have an end. */
static void test_many(const struct view *view)
{
	enum { MANY = 200000 };
	struct recording r = made_up;
	struct view v = *view;
	r.event = calloc(MANY, sizeof *r.event);
	for (int i = 0; i < MANY; i++)
		r.event[i] = (esp_event){
		    .range = 3, .step = i % 2 ? GATES : UPDATE, .rows = 1, .start = i, .stop = i + 1};
	r.facts.events = MANY;
	r.facts.run = MANY;
	v.shown = &r;
	char *text = written(view_svg, &v);
	tap_ok(is_well_formed(text) && strlen(text) < 2000000, "what cannot be seen is not drawn");
	free(text);
	free(r.event);
}

int main(void)
{
	struct gathering g = {0};
	struct summary s = {0};
	test_floor();
	test_weights();
	test_edges();
	if (!tap_ok(gather(&g, &s), "three runs are gathered"))
		return tap_done();
	test_summary(&s);
	test_strangers(&g);
	const struct view v = {"paper", "D = 4", "tile wide\ntile high\n", &machine, &made_up, &s};
	test_text(&v);
	test_json(&v);
	test_trace(&v);
	test_svg(&v);
	test_shares(&v);
	test_paints(&v);
	test_many(&v);
	gathering_free(&g);
	summary_free(&s);
	return tap_done();
}
