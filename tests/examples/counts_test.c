/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is left to compute of the example models, as they were written and as they are rewritten and planned,
 * against a file.  With UPDATE_GOLDEN set it is written anew (make update-golden): read the difference before
 * you keep it. */
#include "compile/explain.h"
#include "tests/models/helper.h"

/* Groups and barriers that a level of inner nodes may have at most, and intermediates that it may store. */
static const struct {
	const char *path;
	int groups, barriers, stored;
} models[] = {
    {"treelstm/treelstm.ra", 1, 1, 0}, {"childsum/childsum.ra", 3, 3, 1},
    {"treegru/treegru.ra", 3, 3, 2},   {"treefc/treefc.ra", 1, 1, 0},
    {"lstm/lstm.ra", 1, 1, 0},	       {"gru/gru.ra", 1, 1, 0},
    {"gru/gru-before.ra", 2, 2, 1},    {"simpletreegru/simpletreegru.ra", 3, 3, 2},
    {"treernn/treernn.ra", 2, 2, 1},   {"treefc/treefc-sum.ra", 2, 2, 1},
    {"narylstm/narylstm.ra", 1, 1, 0}, {"mvrnn/mvrnn.ra", 3, 2, 2},
    {"rntn/rntn.ra", 2, 2, 1},	       {"dagrnn/dagrnn.ra", 2, 2, 1},
};

static const enum explain_count told[] = {EXPLAIN_SUB_OPS, EXPLAIN_REDUCTIONS, EXPLAIN_GROUPS,
					  EXPLAIN_BARRIERS, EXPLAIN_STORED};
enum { TOLD = sizeof told / sizeof *told };

static void put_counts(const struct sched_plan *plan, const char *when, struct str *s)
{
	for (int d = 0; explain_domain(d); d++) {
		double count[EXPLAIN_COUNTS];
		if (!explain_count(plan, d, count))
			continue;
		str_printf(s, "  %-12s %s", explain_domain(d), when);
		for (int c = 0; c < TOLD; c++)
			str_printf(s, "  %*.0f", (int)strlen(explain_columns[told[c]].heading),
				   count[told[c]]);
		str_puts(s, "\n");
	}
}

static bool plan_model(struct test_model *t, const char *rules, struct sub_program *p,
		       struct sched_plan *plan)
{
	const char *schedule = strcmp(rules, "none") == 0 ? "refactor off\nhoist off\n" : NULL;
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = rules, .schedule = schedule};
	bool ok = compile_plan_as(&t->arena, &t->diags, t->model, t->sizes, &o, p, plan);
	print_diags(&t->diags);
	return ok;
}

static void test_level(const struct sched_plan *plan, size_t i)
{
	double count[EXPLAIN_COUNTS];
	for (int d = 0; explain_domain(d); d++)
		if (strcmp(explain_domain(d), "inner") == 0)
			explain_count(plan, d, count);
	tap_ok(count[EXPLAIN_GROUPS] <= models[i].groups && count[EXPLAIN_BARRIERS] <= models[i].barriers &&
		   count[EXPLAIN_STORED] <= models[i].stored,
	       "%s: %d groups, %d barriers a level, %d stored", models[i].path, models[i].groups,
	       models[i].barriers, models[i].stored);
}

static void test_model(size_t i, struct str *s)
{
	struct test_model t = {0};
	struct sub_program written, computed;
	struct sched_plan written_plan, computed_plan;
	char path[100];
	snprintf(path, sizeof path, "examples/%s", models[i].path);
	if (tap_ok(load_model(&t, path, "D=256 E=256 V=2000 C=5") &&
		       plan_model(&t, "none", &written, &written_plan) &&
		       plan_model(&t, "all", &computed, &computed_plan),
		   "%s is planned", models[i].path)) {
		str_printf(s, "%s\n", models[i].path);
		put_counts(&written_plan, "as written ", s);
		put_counts(&computed_plan, "as computed", s);
		test_level(&computed_plan, i);
	}
	free_model(&t);
}

static void put_heading(struct str *s)
{
	str_printf(s, "%-26s", "");
	for (int c = 0; c < TOLD; c++)
		str_printf(s, "  %s", explain_columns[told[c]].heading);
	str_puts(s, "\n");
}

static void compare(const char *text)
{
	static const char path[] = "tests/examples/counts.txt";
	size_t length;
	FILE *f = getenv("UPDATE_GOLDEN") ? fopen(source_path(path), "w") : NULL;
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	char *expected = read_text(source_path(path), &length);
	bool same = expected && strcmp(expected, text) == 0;
	tap_ok(same, "the counts are those of %s", path);
	for (char *line = same ? NULL : strtok((char *)text, "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
	free(expected);
}

int main(void)
{
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	if (!arena_guard(&a, &jump)) {
		struct str s = str_in(&a);
		put_heading(&s);
		for (size_t i = 0; i < sizeof models / sizeof *models; i++)
			test_model(i, &s);
		compare(str_text(&s));
	}
	arena_free(&a);
	return tap_done();
}
