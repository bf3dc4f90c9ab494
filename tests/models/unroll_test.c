/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* However many levels are a span, and however many threads run its subtrees, results have the same bits. */
#include "tests/models/agree.h"
#include "tests/sample.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/golden/gated.ra", "D=3 X=2"},
    {"tests/models/stacked.ra", "D=17 E=6 F=9 G=12 V=30"},
    {"tests/models/typedlayers.ra", "D=17 X=6 V=30 F=9 G=11"},
    {"examples/typed/typed.ra", "D=17 E=9 V=30 C=3"},
};

enum { MODELS = sizeof models / sizeof *models, MAX_THREADS = 3, RUNS = 2 };

/* --- forests --- */

/* How a forest's structures are, and how many. */
static const struct shape {
	const char *name;
	int inputs, size;
	bool shuffled; /* ids are no post order */
} shapes[] = {
    {"one node", 1, 1, false},	     {"single nodes", 5, 1, false},  {"one structure", 1, 80, false},
    {"of all sizes", 12, 70, false}, {"ids shuffled", 12, 70, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Arrays of its own, ids exchanged at random. */
static void shuffle(struct arena *a, struct lin_forest *f)
{
	int32_t *id = ARENA_ARRAY(a, int32_t, f->nodes), *from = ARENA_ARRAY(a, int32_t, f->nodes),
		*begin = ARENA_ARRAY(a, int32_t, f->nodes + 1), *root = ARENA_ARRAY(a, int32_t, f->inputs),
		*children = ARENA_ARRAY(a, int32_t, f->child_begin[f->nodes] + 1);
	for (int32_t n = 0; n < f->nodes; n++)
		from[n] = n;
	for (int32_t n = f->nodes - 1; n > 0; n--) {
		int32_t other = random_below(n + 1), was = from[n];
		from[n] = from[other];
		from[other] = was;
	}
	for (int32_t n = 0; n < f->nodes; n++)
		id[from[n]] = n;
	for (int32_t n = 0; n < f->nodes; n++) {
		const int32_t *at = f->child_begin + from[n];
		begin[n + 1] = begin[n] + at[1] - at[0];
		for (int32_t i = at[0]; i < at[1]; i++)
			children[begin[n] + i - at[0]] = id[f->children[i]];
	}
	for (int64_t i = 0; i < f->inputs; i++)
		root[i] = id[f->root[i]];
	*f = (struct lin_forest){f->nodes, f->inputs, begin, children, root, NULL, NULL, 0};
}

/* --- runs --- */

static bool ran_subtrees(const struct rt_profile *p)
{
	bool any = false;
	for (int64_t i = 0; i < p->jobs; i++)
		any |= p->job[i].strategy == RT_SUBTREES;
	return any;
}

/* Sweeps go on from run to run, so that some go upwards and some downwards.  The cost model may choose
 * levels. */
static bool same_with_threads(struct setting *s, struct test_run *r, int threads, bool deep)
{
	struct rt_team team;
	struct rt_profile profile;
	bool same = true;
	rt_team_init(&team, &allocator_default, threads);
	rt_profile_init(&profile, &allocator_default);
	for (int i = 0; same && i < 2 * RUNS; i++) {
		bool asked = i < RUNS;
		if (i % RUNS == 0)
			same = request_for_session(r, asked ? IMAGE_SUBTREES : IMAGE_CHEAPEST);
		r->session.profile = &profile;
		same = same &&
		       rt_session_run(&r->session, &r->binding, &team, &s->forest.minibatch, &r->diags) &&
		       same_bits(s, r) && (!asked || ran_subtrees(&profile) == deep);
	}
	r->session.profile = NULL;
	rt_profile_free(&profile);
	rt_team_stop(&team);
	return same;
}

static bool same_over(struct setting *s, struct test_run *r, bool threads, int levels)
{
	bool same = run_forest(r, &s->forest.minibatch) && same_bits(s, r);
	for (int n = 2; same && threads && n <= MAX_THREADS; n++)
		same = same_with_threads(s, r, n, levels > 1 && r->session.order.batches > 2);
	return same;
}

/* The code is the same however many levels are a span.  The interpreter runs all ranges undivided. */
static void test_levels(const struct test_model *t, struct setting *s, const char *name, bool compiled)
{
	static const int levels[] = {1, 2, 3, 5, 64};
	struct test_run r;
	struct option_texts o = {.backend = compiled ? usual_backend() : "interpreter",
				    .target = compiled ? "native" : "avx2",
				    .schedule = "unroll 3\n"};
	bool ok = compile_run(&r, t, &o) && r.image.unroll == 3;
	divide_all(&r);
	ok = ok && open_run(&r);
	for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
		for (int i = 0; i < SHAPES; i++) {
			if (!in_sample(i + k))
				continue;
			r.image.unroll = levels[k];
			tap_ok(ok && same_over(&s[i], &r, compiled, levels[k]),
			       "%s, %s: spans of %d levels%s", name, shapes[i].name, levels[k],
			       compiled ? "" : ", interpreted");
		}
	end_run(&r);
}

/* --- rows --- */

/* Levels of a span are under way at once: no two of its nodes have one row of an intermediate. */
static bool rows_apart(const struct rt_session *s, bool *shared)
{
	const struct lin_order *o = &s->order;
	bool apart = o->origin;
	for (int32_t b = 1, next; apart && b < o->batches; b = next) {
		next = lin_end_of_levels(o, b);
		*shared |= next - b > 1;
		for (int32_t n = o->batch_begin[b]; n < o->batch_begin[next]; n++)
			apart &= o->origin[n] == o->batch_begin[b] &&
				 n - o->origin[n] < s->sizes[IMAGE_WIDEST_INNER];
	}
	return apart;
}

/* The code of dense intermediates, where a model has any, asks the run where their rows begin: it runs spans
 * as well. */
static void test_rows(const struct test_model *t, struct setting *s, const char *name)
{
	struct test_run r;
	struct rt_team team;
	bool shared = false, ok;
	struct option_texts o = {.backend = usual_backend(),
				    .target = "native",
				    .schedule = "dense_index on\n"};
	ok = compile_run(&r, t, &o);
	divide_all(&r);
	request_strategy(&r, IMAGE_SUBTREES);
	r.image.unroll = 3;
	ok = ok && open_run(&r);
	if (ok && !r.session.rules.origins) {
		end_run(&r);
		return;
	}
	rt_team_init(&team, &allocator_default, MAX_THREADS);
	for (int i = 0; ok && i < SHAPES; i++)
		ok = rt_session_run(&r.session, &r.binding, &team, &s[i].forest.minibatch, &r.diags) &&
		     rows_apart(&r.session, &shared) && same_bits(&s[i], &r);
	tap_ok(ok && shared, "%s: nodes of a span have rows of their own", name);
	rt_team_stop(&team);
	end_run(&r);
}

/* --- models --- */

static bool begin(struct setting *s, struct test_run *base, const struct shape *shape)
{
	make_forest(&s->forest, &base->image, shape->inputs, shape->size);
	if (shape->shuffled)
		shuffle(&base->arena, &s->forest.minibatch.forest);
	return begin_setting(s, base);
}

static void test_model(const struct test_model *t, const char *name, bool compiled)
{
	struct setting s[SHAPES] = {{0}};
	struct test_run base;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "unroll 1\n"};
	bool ok = start_run(&base, t, &o);
	for (int i = 0; ok && i < SHAPES; i++) {
		s[i].model = t;
		ok = begin(&s[i], &base, &shapes[i]);
	}
	if (tap_ok(ok, "%s: level by level", name))
		test_levels(t, s, name, false);
	if (ok && compiled) {
		test_levels(t, s, name, true);
		test_rows(t, s, name);
	}
	for (int i = 0; i < SHAPES; i++)
		end_setting(&s[i]);
	end_run(&base);
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
	/* a node that has several parents would be in several subtrees */
	tap_ok(refuses_schedule("tests/ra/good/dag.ra", "D=9 E=10", "unroll 2\n", "several parents"),
	       "levels of a DAG are not unrolled");
	return tap_done();
}
