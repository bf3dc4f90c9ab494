/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Schedules, line by line: each gives the same bits, and what is printed of it is the whole of it. */
#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/sample.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"tests/golden/gated.ra", "D=9 X=4"},	    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"tests/golden/edges.ra", "D=11 V=9"},	    {"tests/ra/good/gru.ra", "D=10 E=7"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},	    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/models/labels.ra", "D=9 V=30 R=4 F=5"},
};

static const char *const schedules[] = {
    "dense_index off\n",
    "peel off\n",
    "persist off\nbarrier step\n",
    "parallel inner.0 rows\nparallel leaf.0 off\n",
    "fuse none\npeel off\ndense_index off\n",
    "fuse greedy\nspecialize none\npeel off\n",
    "dynamic_batch off\nbarrier step\n",
    "refactor off\nhoist off\naccumulators 2\n",
    "vectorize 16\nvectorize leaf.0 4\n",
    "vectorize off\nvectorize leaf.0 8\n",
};

static bool dump(struct setting *s, const char *schedule, const char *stage, struct str *to)
{
	struct test_model *t = (struct test_model *)s->model;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, to);
	diags_free(&t->diags);
	diags_init(&t->diags, &allocator_default);
	return ok;
}

/* The loops that a printed schedule makes are those that it was printed for. */
static bool round_trip(struct setting *s, const char *schedule)
{
	struct arena *a = (struct arena *)&s->model->arena;
	struct str printed = str_in(a), again = str_in(a), first = str_in(a), second = str_in(a);
	return dump(s, schedule, "sched", &printed) && dump(s, str_text(&printed), "sched", &again) &&
	       strcmp(str_text(&printed), str_text(&again)) == 0 && dump(s, schedule, "clean", &first) &&
	       dump(s, str_text(&printed), "clean", &second) &&
	       strcmp(str_text(&first), str_text(&second)) == 0;
}

static bool same(struct setting *s, const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	return agrees(s, &o);
}

static int all_stored; /* of all models */

/* Every value that can be stored, if it is in the sample, stored. */
static void test_stores(struct setting *s, const char *path, size_t model)
{
	static const char *const bodies[] = {"leaf", "inner"};
	char schedule[80];
	int stored = 0, right = 0;
	for (int b = 0; b < 2; b++)
		for (int v = 1; v < 60; v++) {
			if (!in_sample(v + model))
				continue;
			struct str text = str_in((struct arena *)&s->model->arena);
			snprintf(schedule, sizeof schedule, "store %s.v%d\n", bodies[b], v);
			if (!dump(s, schedule, "sched", &text))
				continue;
			stored++;
			right +=
			    strstr(str_text(&text), schedule) && same(s, schedule) && round_trip(s, schedule);
		}
	all_stored += stored;
	tap_ok(right == stored, "%s: %d of %d values stored by name", path, right, stored);
}

static void test_model(const char *path, const char *sizes, size_t model)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	if (!tap_ok(load_model(&t, path, sizes) && start_run(&r, &t, &o), "%s compiled", path))
		return;
	random_state = 11;
	make_forest(&s.forest, &r.image, 5, 20);
	if (tap_ok(begin_setting(&s, &r), "%s run", path)) {
		for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
			if (!in_sample(i + model))
				continue;
			tap_ok(same(&s, schedules[i]), "%s: the same bits by schedule %zu", path, i);
			tap_ok(round_trip(&s, schedules[i]), "%s: schedule %zu as it is printed", path, i);
		}
		test_stores(&s, path, model);
	}
	end_run(&r);
	end_setting(&s);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(models[i].path, models[i].sizes, i);
	tap_ok(all_stored > 0, "%d values are stored by name", all_stored);
	return tap_done();
}
