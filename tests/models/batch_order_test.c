/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whatever batches are, those of one height or of one case, results have the same bits: with any number of
 * threads, for one structure or many. */
#include "tests/models/ways.h"
#include "tests/sanitizers.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3"},
    {"tests/models/typed_dag.ra", "D=17 V=30 L=5"},
    {"tests/models/typedlayers.ra", "D=17 X=6 V=30 F=9 G=11"},
};
enum { MODELS = sizeof models / sizeof *models, MAX_THREADS = 3 };

static const struct shape {
	const char *name;
	int inputs, size;
} shapes[] = {{"one node", 1, 1}, {"one structure", 1, 80}, {"many", 12, 70}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* What a schedule says, and whether batches are turns then: always, never, or who knows. */
enum answer { NEVER, ALWAYS, PERHAPS };
static const struct {
	const char *text;
	enum answer turns;
} schedules[] = {
    {"batch_order depth\n", NEVER},
    {"batch_order case\n", ALWAYS},
    {"batch_order least\n", PERHAPS},
    {"batch_order case\ndense_index off\nbarrier step\n", ALWAYS},
    {"batch_order case\nspecialize none\n", NEVER},
    {"batch_order case\nspecialize leaf\n", NEVER},
    {"dynamic_batch off\n", NEVER},
};

/* --- runs --- */

static bool same_with_threads(struct setting *s, struct test_run *r, int threads)
{
	struct rt_team team;
	bool same = true;
	rt_team_init(&team, &allocator_default, threads);
	for (team.way = RT_ALONE; same && team.way <= RT_CHEAPEST; team.way++)
		same = rt_session_run(&r->session, &r->binding, &team, &s->forest.minibatch, &r->diags) &&
		       same_bits(s, r);
	rt_team_stop(&team);
	return same;
}

/* A forest of leaves has no turns. */
static bool same_over(struct setting *s, struct test_run *r, enum answer turns, bool threads)
{
	bool same = run_forest(r, &s->forest.minibatch) && same_bits(s, r);
	if (turns != PERHAPS)
		same &= r->session.order.turns == (turns == ALWAYS && r->session.order.edges);
	for (int n = 2; same && threads && n <= MAX_THREADS; n++)
		same = same_with_threads(s, r, n);
	return same;
}

static void test_schedule(struct setting *s, const char *model, int schedule, bool compiled)
{
	struct test_run r;
	struct option_texts o = {.backend = compiled ? usual_backend() : "interpreter",
				    .target = compiled ? "native" : "avx2",
				    .schedule = schedules[schedule].text};
	bool ok = compile_run(&r, s->model, &o);
	share_all(&r);
	ok = ok && open_run(&r);
	for (int i = 0; i < SHAPES; i++)
		if (SAMPLE == 1 || i == schedule % SHAPES)
			tap_ok(ok && same_over(&s[i], &r, schedules[schedule].turns, compiled),
			       "%s, %s%s: schedule %d", model, shapes[i].name,
			       compiled ? "" : ", interpreted", schedule);
	end_run(&r);
}

static bool begin(struct setting *s, struct test_run *base, const struct shape *shape)
{
	make_forest(&s->forest, &base->image, shape->inputs, shape->size);
	return begin_setting(s, base) && !base->session.order.turns;
}

static void test_model(const struct test_model *t, const char *name, bool compiled)
{
	struct setting s[SHAPES] = {{0}};
	struct test_run base;
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .schedule = "batch_order depth\n"};
	bool ok = start_run(&base, t, &o);
	for (int i = 0; ok && i < SHAPES; i++) {
		s[i].model = t;
		ok = begin(&s[i], &base, &shapes[i]);
	}
	if (tap_ok(ok, "%s: batches are heights", name))
		for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) {
			test_schedule(s, name, k, false);
			if (compiled)
				test_schedule(s, name, k, true);
		}
	for (int i = 0; i < SHAPES; i++)
		end_setting(&s[i]);
	end_run(&base);
}

/* --- what is refused --- */

static const struct {
	const char *path, *sizes, *schedule, *why;
} refused[] = {
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "batch_order\n", "wrong argument"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "batch_order kind\n", "wrong argument"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "batch_order case least\n", "wrong argument"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "dynamic_batch off\nbatch_order case\n", "no batches"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "unroll 2\nbatch_order least\n", "are unrolled"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3", "batch_order case\nunroll 2\n", "of one case"},
    {"tests/golden/cell.ra", "D=10 V=7", "batch_order case\n", "have one case"},
    {"tests/golden/cell.ra", "D=10 V=7", "batch_order least\n", "have one case"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		tap_ok(
		    refuses_schedule(refused[i].path, refused[i].sizes, refused[i].schedule, refused[i].why),
		    "refused: %s, %zu", refused[i].why, i);
}

int main(void)
{
	bool compiled = backend_at(0) != NULL;
	random_state = 7;
	for (int i = 0; i < MODELS; i++) {
		struct test_model t = {0};
		if (tap_ok(load_model(&t, models[i].path, models[i].sizes), "%s: parsed", models[i].path))
			test_model(&t, strrchr(models[i].path, '/') + 1, compiled);
		free_model(&t);
	}
	test_refused();
	return tap_done();
}
