/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The lines of mutants that are found of a known model: each gives the bits of the model as it is. */
#ifndef ESPALIER_TESTS_KNOWN_LINES_H
#define ESPALIER_TESTS_KNOWN_LINES_H

#include "tests/mutate/oracle.h"

enum { LINE_TEXT = 2000 };

/* A model that was run, and the dump of its mutants. */
struct known_run {
	struct test_model model;
	struct test_run base;
	struct setting setting;
	const char *math, *text;
};

/* Whether a schedule gives the bits of the setting, or where sums have further terms nearly their numbers, which
 * are zeros: only the sign of a zero, and what is not finite, may differ. */
static inline bool agrees_with(struct known_run *r, const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = r->math, .schedule = schedule};
	if (agrees(&r->setting, &o))
		return true;
	printf("# %s", schedule);
	return false;
}

/* The length of a line up to what one of these characters begins, or its end. */
static inline int line_length(const char *line, const char *ends)
{
	return (int)strcspn(line, ends);
}

static inline const char *next_line(const char *line)
{
	line += line_length(line, "\n");
	return line + (*line == '\n');
}

/* Whether a text is in a line. */
static inline bool has_text(const char *line, const char *text)
{
	const char *at = strstr(line, text);
	return at && at < line + line_length(line, "\n");
}

/* Every line that chooses a mutant is tried as a schedule. */
static inline void test_lines(struct known_run *r, const char *name)
{
	int lines = 0, agreeing = 0, checked = 0;
	for (const char *line = r->text; *line; line = next_line(line)) {
		char schedule[LINE_TEXT];
		checked += has_text(line, "with the correction 0 differ");
		if (strncmp(line, "mutate ", 7) != 0)
			continue;
		snprintf(schedule, sizeof schedule, "%.*s\n", line_length(line, "\n#"), line);
		lines++;
		agreeing += agrees_with(r, schedule);
	}
	tap_ok(lines > 1, "%s: has mutants", name);
	tap_is(agreeing, lines, "and each gives the same bits");
	tap_is(checked, lines, "and is what is written at every element");
}

/* Runs a model and dumps its mutants; end the run in any case. */
static inline bool begin_known(struct known_run *r, const char *name, const char *math, const char *model)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = math};
	*r = (struct known_run){.math = math};
	r->setting.model = &r->model;
	bool ok = load_text(&r->model, "m", model, strlen(model), "") && start_run(&r->base, &r->model, &o);
	print_diags(&r->model.diags);
	if (!tap_ok(ok, "%s: compiled", name))
		return false;
	struct str text = str_in(&r->model.arena);
	make_forest(&r->setting.forest, &r->base.image, 2, 2);
	ok = begin_setting(&r->setting, &r->base) && compile_dump_as(&r->model.arena, &r->model.diags, r->model.model, r->model.sizes, &o, "checked-mutants", &text);
	print_diags(&r->model.diags);
	r->text = str_text(&text);
	return tap_ok(ok, "%s: run", name);
}

static inline void end_known(struct known_run *r)
{
	end_run(&r->base);
	end_setting(&r->setting);
	free_model(&r->model);
}

#endif
