/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whole programs in many variants: the oracle, the interpreter after every pass from the first on (before it
 * loops have no bounds), compiled code for every target, other
 * schedules, other minibatches.  All but the oracle must agree to the bit. */
#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"examples/treelstm/treelstm.ra", "D=1 E=1 V=3"},
    {"examples/treelstm/treelstm.ra", "D=64 E=64 V=20"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"bench/models/childsum.ra", "D=40 V=9"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/ra/good/tensor.ra", "B=3 D=9 E=6"},
    {"tests/models/nests.ra", "C=3 H=9 X=8 K=4 D=5"},
    {"tests/models/nests.ra", "C=1 H=7 X=7 K=17 D=1"},
    {"tests/models/strides.ra", "C=3 H=13 X=47"},
    {"tests/models/strides.ra", "C=1 H=12 X=24"},
    {"tests/models/axes.ra", "C=7 D=9 V=30"},
    {"tests/models/axes.ra", "C=2 D=1 V=3"},
    {"examples/dagrnn/dagrnn.ra", "C=4 D=18 E=7"},
    {"tests/models/products.ra", "A=7 B=19 C=33 V=9"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
    {"tests/models/nested.ra", "A=2 B=1 C=1 F=6 G=5 V=9"},
    {"tests/models/parts.ra", "D=9"},
    {"tests/models/order.ra", "D=5"},
    {"tests/models/constants.ra", "V=9 D=11 X=19 L=30"},
    {"tests/models/constants.ra", "V=20 D=33 X=100 L=130"},
    {"tests/ra/good/ones.ra", "D=9 V=30"},
    {"tests/ra/good/ones.ra", "D=3 V=1"},
    {"tests/models/dgl.ra", "V=30 E=7 D=9 C=4"},
    {"tests/models/stacked.ra", "D=17 E=6 F=9 G=12 V=30"},
    {"tests/models/bilstm.ra", "D=9 X=6 V=30 C=4"},
    {"tests/models/parents.ra", "D=10 X=7"},
    {"tests/models/flat.ra", "D=18 F=7 V=30"},
    {"tests/models/typedlayers.ra", "D=17 X=6 V=30 F=9 G=11"},
    {"tests/ra/good/updown.ra", "D=18 V=30"},
    {"tests/ra/good/down.ra", "D=9 E=10"},
    {"examples/attention/attention.ra", "V=30 E=9 D=17 A=6 C=3"},
    {"tests/models/members.ra", "V=30 D=18 A=10"},
    {"examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4"},
    {"tests/ra/good/among.ra", "V=30 D=18 F=5 H=3 K=6"},
    {"tests/ra/good/among.ra", "V=30 D=9 F=2 H=1 K=17"},
    {"examples/labelled/matrix.ra", "D=17 E=9 V=30 R=5 C=3"},
    {"examples/labelled/matrix.ra", "D=1 E=1 V=3 R=1 C=1"},
    {"examples/labelled/embedding.ra", "D=19 E=9 V=30 R=5 L=4 C=3"},
    {"tests/models/labels.ra", "V=30 D=18 R=4 F=5"},
    {"tests/models/pairs.ra", "V=30 D=18 R=4"},
    {"tests/models/ragged.ra", "D=21 R=4 F=3 K=6"},
    {"tests/models/selected.ra", "V=30 D=18 R=4 F=17 C=5"},
    {"tests/models/tagged.ra", "D=17 R=5 F=20"},
    {"tools/init/tree.ra", "D=9 E=6 V=30"},
    {"tools/init/sequence.ra", "D=7 E=5 V=30 C=3"},
    {"tools/init/dag.ra", "D=10 E=6 C=4"},
    {"tools/init/none.ra", "F=2 D=9 L=4"},
    {"examples/lenet/lenet.ra", "F=2 G=3 D=9 E=5"},
    {"tests/models/perceptron.ra", "E=6 H=19 V=30"},
    {"tests/models/perceptron.ra", "E=1 H=1 V=2"},
    {"tests/models/convolution.ra", "C=2 H=9 X=8 K=5 F=7"},
    {"tests/models/convolution.ra", "C=1 H=5 X=4 K=17 F=3"},
    {"tests/models/gather.ra", "N=5 D=9 V=11"},
    {"tests/models/gather.ra", "N=1 D=1 V=1"},
    {"tests/models/gather.ra", "N=8 D=32 V=40"},
    {"tests/models/indexed.ra", "C=17 V=5"},
    {"tests/models/indexed.ra", "C=4 V=1"},
    {"tests/models/scan.ra", "T=6 B=3 D=16 S=2"},
    {"tests/models/scan.ra", "T=1 B=1 D=5 S=9"},
    {"tests/models/scan.ra", "T=9 B=2 D=33 S=1"},
    {"tests/models/looked.ra", "T=3 D=5 N=7"},
    {"tests/models/columns.ra", "T=5 D=17"},
    {"tests/models/sides.ra", "T=3 D=5 E=4"},
    {"tests/models/sides.ra", "T=2 D=17 E=16"},
    {"tests/models/reshape.ra", "D=8"},
    {"tests/models/reshape.ra", "D=1"},
    {"tests/models/reshape.ra", "D=5"},
    {"tests/models/positions.ra", "H=4 X=9"},
    {"tests/models/positions.ra", "H=5 X=17"},
};

/* --- the variants --- */

/* With sanitizers one model in so many. */
enum { MODELS_EACH = SHADOWED ? 4 : 1 };

/* Compiling takes most of the time: of what is interpreted, one in so many is compiled as well; of models those in
 * the sample by all back ends. */
enum { COMPILED_EACH = 5 };

/* Of each model other passes, targets and schedules are in the sample. */
static void test_passes(struct setting *s, const char *name, size_t model)
{
	for (int i = 1; ilir_pass_at(i); i++) {
		struct option_texts o = {
		    .backend = "interpreter", .target = "avx2", .last_pass = ilir_pass_at(i)->name};
		if (in_sample(i + model))
			tap_ok(agrees(s, &o), "%s: interpreted after %s", name, ilir_pass_at(i)->name);
	}
}

static void test_targets(struct setting *s, const char *name, size_t model)
{
	for (int i = 0; target_at(i); i++) {
		if (!in_sample(i + model))
			continue;
		struct option_texts o = {.backend = "interpreter", .target = target_at(i)->name};
		tap_ok(agrees(s, &o), "%s: interpreted for %s", name, o.target);
		o.backend = usual_backend();
		if ((i + model) % COMPILED_EACH != 0)
			continue;
		if (target_runs_here(target_at(i)))
			tap_ok(agrees(s, &o), "%s: compiled for %s", name, o.target);
		else
			tap_skip("this machine cannot run it", "%s: compiled for %s", name, o.target);
	}
	for (int i = 0; in_sample(model) && backend_at(i); i++) {
		struct option_texts o = {.backend = backend_at(i), .target = "native"};
		tap_ok(agrees(s, &o), "%s: compiled by %s for this machine", name, o.backend);
	}
}

/* Schedules of single models: a reduction in pieces, beside a sum over edges that is not cut. */
static void test_own_schedule(struct setting *s, const char *name, const char *path)
{
	static const struct {
		const char *path, *schedule;
	} own[] = {{"bench/models/childsum.ra", "tile inner.1 nodes 3 2 1 columns 1 unroll 2 cut 12"}};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = own[i].schedule};
		if (strcmp(own[i].path, path) != 0)
			continue;
		tap_ok(agrees(s, &o), "%s: interpreted, %s", name, o.schedule);
		o.backend = usual_backend();
		o.target = "native";
		tap_ok(agrees(s, &o), "%s: compiled, %s", name, o.schedule);
	}
}

static void test_schedules(struct setting *s, const char *name, size_t model)
{
	static const char *const schedules[] = {"dynamic_batch off\n", "specialize none\n",
						"specialize none\ndynamic_batch off\nvectorize off",
						"vectorize 4 # lanes"};
	for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
		if (!in_sample(i + model))
			continue;
		struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedules[i]};
		tap_ok(agrees(s, &o), "%s: interpreted, schedule %zu", name, i);
		o.backend = usual_backend();
		o.target = "native";
		if ((i + model) % COMPILED_EACH == 0)
			tap_ok(agrees(s, &o), "%s: compiled, schedule %zu", name, i);
	}
	test_own_schedule(s, name, models[model].path);
}

/* All rows of an output of the last run, in the arena of the run. */
static float *copy_rows(struct test_run *r, int out, int64_t rows)
{
	size_t elements = output_elements(&r->image, out);
	float *all = ARENA_ARRAY(&r->arena, float, rows * elements + 1);
	for (int64_t row = 0; row < rows; row++)
		memcpy(all + row * elements, rt_session_row(&r->session, out, row), elements * sizeof(float));
	return all;
}

static bool same_rows(struct test_run *r, int out, int64_t rows, const float *wanted)
{
	size_t elements = output_elements(&r->image, out);
	bool same = true;
	for (int64_t row = 0; same && row < rows; row++)
		same = memcmp(rt_session_row(&r->session, out, row), wanted + row * elements,
			      elements * sizeof(float)) == 0;
	return same;
}

/* Structure i of the forest as a minibatch of its own. */
static bool run_alone(struct test_run *r, const struct setting *s, int64_t i)
{
	const struct lin_forest *f = &s->forest.minibatch.forest;
	int32_t first = f->input_begin[i], end = i + 1 < f->inputs ? f->input_begin[i + 1] : f->nodes,
		begin[MAX_NODES + 1];
	static int32_t children[8 * MAX_NODES];
	struct lin_collect c;
	const void *data[4];
	for (int32_t n = first; n <= end; n++)
		begin[n - first] = f->child_begin[n] - f->child_begin[first];
	for (int32_t e = f->child_begin[first]; e < f->child_begin[end]; e++)
		children[e - f->child_begin[first]] = f->children[e] - first;
	for (int k = 0; k < r->image.inputs; k++) {
		const struct image_input *in = &r->image.input[k];
		int64_t row = in->on_edge ? f->child_begin[first] : first; /* numbers have four bytes of either kind */
		data[k] = (const float *)s->forest.data[k] + row * (in->token ? 1 : in->elements);
	}
	lin_collect_init(&c, &allocator_default);
	bool ran = lin_collect_add(&c, end - first, begin, children, &r->diags);
	struct rt_minibatch m = {lin_collect_forest(&c), data};
	ran = ran && run_forest(r, &m);
	lin_collect_free(&c);
	return ran;
}

/* A structure alone gives the bits that it gives among others. */
static void test_alone(struct setting *s, const char *name)
{
	struct test_run r;
	struct option_texts o = {.backend = usual_backend(), .target = "native"};
	const struct lin_forest *f = &s->forest.minibatch.forest;
	bool same = start_run(&r, s->model, &o) && run_forest(&r, &s->forest.minibatch);
	float **all = ARENA_ARRAY(&r.arena, float *, r.image.outputs + 1);
	for (int out = 0; same && out < r.image.outputs; out++)
		all[out] = copy_rows(&r, out, r.image.output[out].at_root ? f->inputs : f->nodes);
	for (int64_t i = 0; same && i < f->inputs; i++) {
		int32_t first = f->input_begin[i], end = i + 1 < f->inputs ? f->input_begin[i + 1] : f->nodes;
		same = run_alone(&r, s, i);
		for (int out = 0; same && out < r.image.outputs; out++) {
			bool root = r.image.output[out].at_root;
			size_t before = (root ? i : first) * output_elements(&r.image, out);
			same = same_rows(&r, out, root ? 1 : end - first, all[out] + before);
		}
	}
	tap_ok(same, "%s: alone as among others", name);
	end_run(&r);
}

static void test_model(size_t model)
{
	const char *path = models[model].path, *sizes = models[model].sizes;
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	char name[120];
	snprintf(name, sizeof name, "%s %s", strrchr(path, '/') + 1, sizes);
	if (!tap_ok(load_model(&t, path, sizes), "%s: parsed", name))
		return;
	random_state = 7;
	if (!tap_ok(start_run(&r, &t, &o), "%s: lowered", name))
		return;
	make_forest(&s.forest, &r.image, 7, 40);
	if (tap_ok(begin_setting(&s, &r), "%s: interpreted with bounds", name)) {
		double worst;
		bool near = near_oracle(&s, &r, 2e-5, &worst);
		tap_ok(near, "%s: as the oracle, to %.1e, %lld values", name, worst, (long long)s.count);
		test_passes(&s, name, model);
		test_targets(&s, name, model);
		test_schedules(&s, name, model);
		if (in_sample(model))
			test_alone(&s, name);
	}
	end_run(&r);
	end_setting(&s);
	free_model(&t);
}

/*     differential_test [PART]     models whose path has this part */
int main(int argc, char **argv)
{
	skip_backends();
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (argc < 2 ? i % MODELS_EACH == 0 : strstr(models[i].path, argv[1]) != NULL)
			test_model(i);
	return tap_done();
}
