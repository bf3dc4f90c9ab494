/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* However many threads compute a model, and whatever the strategy that divides ranges among them, its results
 * have the same bits. */
#include "tests/models/agree.h"

#include "jit/jit.h"

#include <limits.h>

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=64 E=64 V=20"},
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
    {"tests/models/parts.ra", "D=9"},
    {"tests/models/order.ra", "D=5"},
    {"tests/models/stacked.ra", "D=17 E=6 F=9 G=12 V=30"},
    {"tests/models/bilstm.ra", "D=20 X=6 V=30 C=4"},
    {"tests/models/parents.ra", "D=10 X=7"},
    {"tests/models/constants.ra", "V=9 D=11 X=19 L=30"},
    {"examples/labelled/matrix.ra", "D=34 E=9 V=30 R=5 C=3"},
    {"tests/models/selected.ra", "V=30 D=18 R=4 F=17 C=5"},
    {"tests/models/tagged.ra", "D=17 R=5 F=20"},
    {"examples/typed/typed.ra", "D=64 E=40 V=20 C=3"},
};

/* Who does what, and where it is kept. */
static const char *const schedules[] = {"persist off\nbarrier step\n",
					"fuse none\nbarrier step\nparallel inner.0 columns\n",
					"parallel inner.0 rows\nparallel leaf.0 off\ndense_index off\n",
					"fuse none\npeel off\ndynamic_batch off\n"};

/* Tiles of rows of a node, whose blocks threads divide. */
static const char *const nests[] = {
    "tile inner.2 rows 4 2 1 columns 2 across 0 along 1\nparallel inner.2 columns\n",
    "tile inner.2 rows 4 2 1 columns 1 across 0 block 1 along 1\ntile output.0 rows 6 4 1 columns 1 across 0 "
    "block 7 along 1\n",
    "layout Z node 1 0\nlayout Y node 1 0\ntile inner.2 rows 8 3 1 columns 2 across 1 block 10 along "
    "0\nvectorize 4\n",
    "tile inner.2 rows 4 2 1 columns 1 cut 5 across 0 block 3 along 1\ntile output.0 rows 6 4 1 columns 1 "
    "cut 4 across 0 along 1\n"};

enum { MAX_THREADS = 4, RUNS = 5 };

/* With groups that each thread computes for itself, one of them behind another, one before two parts of a group. */
static const char *const local[][2] = {{"examples/simpletreegru/simpletreegru.ra", "D=13 E=10 V=30 C=3"},
				       {"examples/dagrnn/dagrnn.ra", "D=9 E=10 C=3"},
				       {"examples/treegru/treegru.ra", "D=17 E=9 V=30 C=3"},
				       {"tests/golden/gated.ra", "D=24 X=5"}};

/* Divides ranges of the smallest models as if they were large. */
static bool exaggerate(struct test_run *r)
{
	struct image_step *step = ARENA_ARRAY(&r->arena, struct image_step, r->image.steps);
	bool known = r->image.steps > 0;
	for (int i = 0; i < r->image.steps; i++) {
		step[i] = r->image.step[i];
		bool whole = step[i].domain == IMAGE_DOMAIN_BINDING && !step[i].operations;
		known &= whole || step[i].domain == IMAGE_DOMAIN_ONCE ||
			 (step[i].operations > 0 && step[i].rows > 0);
		step[i].operations = whole ? 0 : INT_MAX;
	}
	r->image.step = step;
	return known;
}

/* Sweeps go on from run to run, so that some go upwards and some downwards. */
static bool same_by_all_strategies(struct setting *s, struct test_run *r, struct rt_team *team)
{
	bool same = true;
	for (enum image_strategy strategy = IMAGE_CHEAPEST; same && strategy <= IMAGE_SUBTREES; strategy++) {
		same = request_for_session(r, strategy);
		for (int i = 0; same && i < RUNS; i++)
			same =
			    rt_session_run(&r->session, &r->binding, team, &s->forest.minibatch, &r->diags) &&
			    same_bits(s, r);
	}
	return same;
}

static void test_threads(struct setting *s, struct test_run *r, const char *name)
{
	for (int threads = 2; threads <= MAX_THREADS; threads++) {
		struct rt_team team;
		rt_team_init(&team, &allocator_default, threads);
		rt_binding_free(&r->binding);
		r->bound = rt_bind(&r->binding, &allocator_default, &r->image,
				   &(struct rt_source){read_weight, NULL}, &team, &r->diags);
		bool same = r->bound && same_by_all_strategies(s, r, &team);
		tap_ok(same && team.crew, "%s: %d threads", name, threads);
		rt_team_stop(&team);
	}
}

static void test_model(const char *path, const char *sizes, const char *schedule)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = usual_backend(), .target = "native", .schedule = schedule};
	char name[120];
	snprintf(name, sizeof name, "%s %s%s", strrchr(path, '/') + 1, sizes, schedule ? ", scheduled" : "");
	if (!tap_ok(load_model(&t, path, sizes), "%s: parsed", name))
		return;
	random_state = 5;
	if (tap_ok(start_run(&r, &t, &o), "%s: compiled", name)) {
		make_forest(&s.forest, &r.image, 9, 60);
		tap_ok(exaggerate(&r), "%s: what a row costs was estimated", name);
		if (tap_ok(run_forest(&r, &s.forest.minibatch), "%s: one thread", name)) {
			s.expected =
			    gather_outputs(&r, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
			test_threads(&s, &r, name);
			free(s.expected);
		}
		free_forest(&s.forest);
	}
	end_run(&r);
	free_model(&t);
}

int main(void)
{
	if (!backend_at(0)) {
		tap_skip("no back end", "threads");
		return tap_done();
	}
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(models[i].path, models[i].sizes, NULL);
	test_model(models[0].path, models[0].sizes, "specialize none\n");
	for (size_t i = 0; i < sizeof nests / sizeof *nests; i++)
		test_model("tests/models/products.ra", "A=7 B=19 C=33 V=9", nests[i]);
	for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
		test_model(local[i][0], local[i][1], "local all\n");
		test_model(local[i][0], local[i][1], "local all\nfuse greedy\n");
		test_model(local[i][0], local[i][1], "local all\nspecialize none\n");
	}
	test_model("bench/models/childsum.ra", "D=64 V=30", "tile inner.1 columns 1\ntile inner.2 columns 1\n");
	for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
		test_model(models[0].path, models[0].sizes, schedules[i]);
		test_model("tests/golden/gated.ra", "D=24 X=5", schedules[i]);
	}
	return tap_done();
}
