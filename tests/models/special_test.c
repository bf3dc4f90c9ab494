/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Cases that a schedule makes of those that the model names: the same bits as without them, in all variants. */
#include "ilir/passes.h"
#include "tests/models/agree.h"

static const struct model {
	const char *path, *sizes;
	struct {
		const char *schedule;
		int cases; /* that the program tells apart */
	} variant[6];
} models[] = {
    {"examples/childsum/childsum.ra",
     "D=17 E=9 V=30 C=3",
     {{"specialize inner when children == 2\n", 3},
      {"specialize inner when children == 1\nspecialize inner when children == 3\nspecialize none\n", 4},
      {"specialize inner when children == 2\nspecialize inner.children2\nunroll 2\n", 3},
      {"specialize inner when word == 3 and children == 2\nspecialize leaf when word == 4\nfuse none\n", 4},
      {"specialize inner when children == 2\nvectorize 4\n", 3},
      {"specialize inner when children == 20\nspecialize inner when children == 2\nhoist off\n", 4}}},
    {"examples/typed/typed.ra",
     "D=17 E=9 V=30 C=3",
     {{"specialize inner when children == 3\n", 7},
      {"specialize pair when tag == 1\nspecialize leaf when word == 2\n", 8},
      {"specialize leaf when tag == 0\nspecialize inner when tag == 2 and children == 4\nspecialize leaf\n",
       8}}},
    {"tests/models/typedlayers.ra",
     "D=11 X=5 V=20 F=7 G=5",
     {{"specialize inner when children == 2\n", 12},
      {"specialize inner when children == 3\nspecialize leaf when tag == 0\nspecialize none\n", 14},
      {"specialize unary when tag == 2\nspecialize inner when tag == 2\nspecialize leaf\n", 14}}},
    {"examples/labelled/matrix.ra", "D=9 E=6 V=20 R=4 C=3", {{"specialize inner when children == 2\n", 3}}},
    {"tests/models/typed_dag.ra",
     "D=9 V=20 L=3",
     {{"specialize inner when children == 3\nspecialize inner when children == 1\n", 7},
      {"specialize word when children == 3\nspecialize join when kind == 1\nunroll 1\n", 7}}},
};

static void test_variant(struct setting *s, const char *schedule, int cases)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct test_run r;
	bool ok = compile_run(&r, s->model, &o);
	tap_ok(ok && (!cases || r.image.cases == cases), "%d cases: %.*s", cases,
	       (int)strcspn(schedule, "\n"), schedule);
	end_run(&r);
	tap_ok(agrees(s, &o), "interpreted");
	o.last_pass = "infer_bounds";
	tap_ok(agrees(s, &o), "interpreted with bounds");
	o = (struct option_texts){.backend = usual_backend(), .target = "native", .schedule = schedule};
	tap_ok(agrees(s, &o), "compiled");
}

static void test_model(const struct model *m)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	random_state = 7;
	if (!tap_ok(load_model(&t, m->path, m->sizes), "%s", m->path) ||
	    !tap_ok(start_run(&r, &t, &o), "compiled"))
		return;
	make_forest(&s.forest, &r.image, 12, 60);
	if (tap_ok(run_forest(&r, &s.forest.minibatch), "interpreted")) {
		s.expected = gather_outputs(&r, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
		for (int i = 0; i < 6 && m->variant[i].schedule; i++)
			test_variant(&s, m->variant[i].schedule, m->variant[i].cases);
	}
	end_run(&r);
	free(s.expected);
	free_forest(&s.forest);
	free_model(&t);
}

/* --- what is illegal --- */

#define CHILDSUM "examples/childsum/childsum.ra", "D=5 E=4 V=6 C=2"
#define TYPED "examples/typed/typed.ra", "D=5 E=4 V=6 C=2"

static const struct {
	const char *path, *sizes, *schedule, *why;
} refused[] = {
    {CHILDSUM, "specialize node when children == 2", "no case of this name"},
    {CHILDSUM, "specialize inner.children2 when word == 2", "no case of this name"},
    {CHILDSUM, "specialize inner when children == 2\nspecialize inner.children2 when word == 2",
     "no case of this name"},
    {CHILDSUM, "specialize inner when", "expects children == N"},
    {CHILDSUM, "specialize inner when children 2", "expects children == N"},
    {CHILDSUM, "specialize inner when children == 2 or word == 3", "expects the word and here"},
    {CHILDSUM, "specialize inner when children == 2 and", "expects children == N"},
    {CHILDSUM, "specialize inner when children == 0", "from 1 to"},
    {CHILDSUM, "specialize inner when children == two", "from 1 to"},
    {CHILDSUM, "specialize inner when word == -1", "from 0 to"},
    {CHILDSUM, "specialize inner when colour == 1", "not an input"},
    {CHILDSUM, "specialize leaf when children == 2", "asked of a leaf"},
    {CHILDSUM, "specialize inner when children == 2 and children == 3", "asked twice"},
    {CHILDSUM, "specialize inner when word == 2 and word == 3", "asked twice"},
    {CHILDSUM, "specialize inner when children == 2\nspecialize inner when children == 2", "takes them all"},
    {CHILDSUM, "specialize inner when children == 2\nspecialize inner when word == 1 and children == 2",
     "takes them all"},
    {TYPED, "specialize pair when children == 3", "asked twice"},
    {TYPED, "specialize number when tag == 1", "asked twice"},
    {TYPED, "specialize inner when children == 2", "takes them all"},
    {TYPED, "specialize inner when word == 2", "needs to carry it"},
    {TYPED, "specialize number when word == 2", "needs to carry it"},
    {"examples/treelstm/treelstm.ra", "D=5 E=4 V=6", "specialize inner when children == 2", "one answer"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct test_model t = {0};
		struct test_run r;
		struct option_texts o = {
		    .backend = "interpreter", .target = "avx2", .schedule = refused[i].schedule};
		if (!tap_ok(load_model(&t, refused[i].path, refused[i].sizes), "parsed"))
			continue;
		bool ok = !start_run(&r, &t, &o) && r.diags.n == 1 &&
			  r.diags.at[0].id == DIAG_ILLEGAL_SCHEDULE &&
			  strstr(r.diags.at[0].message, refused[i].why);
		if (!tap_ok(ok, "refused: %s",
			    strrchr(refused[i].schedule, '\n') ? "the second line" : refused[i].schedule))
			print_diags(&r.diags);
		end_run(&r);
		free_model(&t);
	}
}

/* More cases than a mask has bits. */
static void test_many(void)
{
	struct test_model t = {0};
	struct test_run r;
	char text[4096] = "";
	for (int i = 1; i <= IMAGE_MAX_CASES; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text),
			 "specialize inner when children == %d\n", i);
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = text};
	bool ok = load_model(&t, CHILDSUM) && !start_run(&r, &t, &o) && r.diags.n == 1 &&
		  strstr(r.diags.at[0].message, "too many cases") &&
		  r.diags.at[0].line == IMAGE_MAX_CASES - 1;
	tap_ok(ok, "there are %d cases at most", IMAGE_MAX_CASES);
	end_run(&r);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(&models[i]);
	test_refused();
	test_many();
	return tap_done();
}
