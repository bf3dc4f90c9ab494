/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The stage `choices`: what it lists a schedule may say, and says the same when it is printed. */
#include "compile/compile.h"
#include "tests/models/helper.h"
#include "tests/sample.h"

#include <stdlib.h>

static const struct listed {
	const char *path, *sizes, *schedule, *target, *precision;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=24 E=16 V=30", "", "avx2", "f32"},
    {"examples/treelstm/treelstm.ra", "D=40 E=16 V=30", "", "amx", "i8"},
    {"examples/gru/gru-before.ra", "D=24 E=16", "", "avx2", "f32"},
    {"examples/childsum/childsum.ra", "D=16 E=8 V=30 C=4", "fuse greedy\nhoist off\ndynamic_batch off\n", "avx2", "f32"},
    {"tests/models/transposed.ra", "D=9 V=30", "", "avx2", "f32"},
    {"tests/golden/gated.ra", "D=3 X=2", "layout h parent\ntile inner.1 by columns\n", "avx2", "f32"},
};

static bool dump(struct test_model *t, struct arena *a, const struct listed *of, const char *schedule, const char *stage, struct str *s)
{
	struct option_texts o = {.backend = "interpreter", .target = of->target, .schedule = schedule, .precision = of->precision};
	*s = str_in(a);
	return compile_dump_as(a, &t->diags, t->model, t->sizes, &o, stage, s);
}

/* Whether a printed schedule says what a line says: as that line, or, of the lanes of a group, by saying it
 * of all groups and nothing else of this one. */
static bool says(struct arena *a, const char *printed, const char *line)
{
	struct str whole = str_in(a), all = str_in(a), other = str_in(a);
	char group[80], lanes[8];
	str_printf(&whole, "\n%s\n", line);
	if (strstr(printed, str_text(&whole)))
		return true;
	if (sscanf(line, "vectorize %79s %7s", group, lanes) != 2)
		return false;
	str_printf(&all, "\nvectorize %s\n", lanes);
	str_printf(&other, "\nvectorize %s ", group);
	return strstr(printed, str_text(&all)) && !strstr(printed, str_text(&other));
}

/* Whether a schedule that has this line, and what was said before, is printed with it. */
static bool holds_in(struct test_model *t, struct arena *a, const struct listed *of, const char *before, const char *line)
{
	struct str text = str_in(a), printed;
	int key = strcspn(line, " ");
	for (const char *p = before; *p; p += strcspn(p, "\n") + 1)
		if (strncmp(p, line, key + 1) != 0)
			str_printf(&text, "%.*s\n", (int)strcspn(p, "\n"), p);
	str_printf(&text, "%s\n", line);
	return dump(t, a, of, str_text(&text), "sched", &printed) && says(a, str_text(&printed), line);
}

/* There are hundreds of lines: each has memory of its own. */
static bool holds(struct test_model *t, const struct listed *of, const char *before, const char *line)
{
	struct arena a;
	arena_init(&a, &allocator_default);
	bool held = holds_in(t, &a, of, before, line);
	arena_free(&a);
	return held;
}

struct found {
	int blocks, lines, refused, others; /* others: first lines that are not what the schedule says */
};

/* A plan's line is for the schedule that only has such. */
static const char *beside(const char *scope, const char *schedule)
{
	return strncmp(scope, "# plan", 6) == 0 ? "" : schedule;
}

static struct found look_at(struct test_model *t, const struct listed *of, char *choices, const char *now)
{
	struct found f = {0};
	const char *scope = "";
	bool first = false;
	for (char *line = strtok(choices, "\n"); line; line = strtok(NULL, "\n")) {
		char *comment = strstr(line, "  # ");
		if (*line == '#') {
			scope = line;
			first = true;
			continue;
		}
		if (comment)
			*comment = 0;
		f.blocks += first;
		f.lines++;
		f.others += first && !says(&t->arena, now, line);
		f.refused += in_sample(f.lines) && !holds(t, of, beside(scope, of->schedule), line);
		first = false;
	}
	return f;
}

static void test_model(size_t i)
{
	struct test_model t = {0};
	struct str choices, now;
	if (!tap_ok(load_model(&t, models[i].path, models[i].sizes) &&
			dump(&t, &t.arena, &models[i], models[i].schedule, "choices", &choices) &&
			dump(&t, &t.arena, &models[i], models[i].schedule, "sched", &now),
		    "%s for %s: choices are listed", models[i].path, models[i].target)) {
		free_model(&t);
		return;
	}
	struct found f = look_at(&t, &models[i], choices.text, str_text(&now));
	tap_ok(f.blocks > 5 && f.lines > 2 * f.blocks && !f.others,
	       "%d blocks begin with what the schedule says", f.blocks);
	tap_ok(!f.refused, "of %d lines those in the sample are legal and read as they are printed", f.lines);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(i);
	return tap_done();
}
