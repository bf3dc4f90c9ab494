/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Products in integers, in f16 and in bf16: the same bits however the program is run, those of the oracle, near to the results in
 * f32; and what becomes of weights that have no scale. */
#include "tests/models/variants.h"

#include <stdlib.h>

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "V=7 E=8 D=33 C=5"},
    {"examples/lstm/lstm.ra", "V=7 E=5 D=17 C=3"},
    {"examples/childsum/childsum.ra", "V=7 E=5 D=16 C=3"},
    {"examples/simpletreegru/simpletreegru.ra", "V=7 E=5 D=17 C=3"},
    {"examples/gru/gru.ra", "E=5 D=16"},
    {"tests/models/parents.ra", "X=5 D=16"},
    {"tests/golden/quantised.ra", "D=16"},
    {"tests/models/bounded.ra", "X=16 D=16"},
    {"tests/models/boundedtree.ra", "X=17 D=16"},
};

/* How far results of these models may be from those in f32: some times what was found. */
static const struct {
	const char *name;
	double change;
} precisions[] = {{"i16", 2e-3}, {"i8x3", 2e-4}, {"i8", 0.1}, {"bf16", 0.1}, {"bf16x1", 0.1}, {"bf16x3", 1e-4}, {"f16", 2e-2}};

static bool find_results(struct setting *s, struct test_run *r, const struct test_model *m,
			 const char *precision)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .precision = precision};
	bool ok = start_run(r, m, &o);
	if (ok) {
		s->model = m;
		make_forest(&s->forest, &r->image, 3, 12);
		ok = begin_setting(s, r);
	}
	return ok;
}

/* The oracle rounds once where the program does; functions that are written out differ by some units. A sum
 * of integers that is rounded to another one may change. */
static void test_oracle(struct setting *s, const struct test_run *base, const char *name,
			const struct option_texts *o)
{
	struct sub_program p;
	struct sched_plan plan;
	struct diags d;
	struct arena a;
	jmp_buf jump;
	diags_init(&d, &allocator_default);
	arena_init(&a, &allocator_default);
	if (!arena_guard(&a, &jump)) {
		bool ok = compile_plan_as(&a, &d, s->model->model, s->model->sizes, o, &p, &plan);
		double worst =
		    ok ? distance(s, base, evaluate_rounded(s, &p, &base->session.order, &a)) : INFINITY;
		tap_ok(worst < 1e-2, "%s: within %.1e of the oracle", name, worst);
	}
	print_diags(&d);
	diags_free(&d);
	arena_free(&a);
}

static double change_of_i16; /* of the same model, which comes before */

static void test_model(size_t model, size_t precision)
{
	struct test_model m = {0};
	struct test_run wide = {0}, run = {0};
	struct setting f32 = {0}, s = {0};
	char name[100];
	double worst = 0;
	snprintf(name, sizeof name, "%s, %s, %s", models[model].path, models[model].sizes,
		 precisions[precision].name);
	bool ok = load_model(&m, models[model].path, models[model].sizes);
	random_state = 5;
	ok = ok && find_results(&f32, &wide, &m, NULL);
	random_state = 5;
	ok = ok && find_results(&s, &run, &m, precisions[precision].name) && s.count == f32.count;
	if (tap_ok(ok, "%s: is interpreted", name)) {
		struct option_texts o = {.backend = "interpreter",
					 .target = "avx2",
					 .rules = "-tables",
					 .precision = precisions[precision].name};
		for (int64_t i = 0; i < s.count; i++)
			worst = fmax(worst, fabs(s.expected[i] - f32.expected[i]));
		tap_ok(worst > 0 && worst < precisions[precision].change, "%s: within %.1e of f32", name,
		       worst);
		if (strcmp(precisions[precision].name, "i16") == 0)
			change_of_i16 = worst;
		if (strcmp(precisions[precision].name, "i8x3") == 0)
			tap_ok(worst < change_of_i16, "%s: nearer to f32 than in i16", name);
		test_oracle(&s, &run, name, &o);
		test_variants(&s, name, o);
	}
	end_setting(&f32), end_setting(&s);
	end_run(&wide), end_run(&run);
	free_model(&m);
}

/* --- what the model declares --- */

/* Sets `all` to the outputs of a model, which are `count`. */
static double *run_model(const char *path, const char *precision, int64_t *count)
{
	struct test_model m = {0};
	struct test_run r = {0};
	struct setting s = {0};
	random_state = 5;
	bool ok = load_model(&m, path, "D=16") && find_results(&s, &r, &m, precision);
	double *all = ok ? s.expected : NULL;
	*count = s.count;
	if (ok)
		s.expected = NULL;
	end_setting(&s);
	end_run(&r);
	free_model(&m);
	return all;
}

/* Whether two models, or one with two options, give the same bits. */
static bool are_same(const char *path, const char *precision, const char *other_path, const char *other)
{
	int64_t n, m;
	double *a = run_model(path, precision, &n), *b = run_model(other_path, other, &m);
	bool same = a && b && n == m && memcmp(a, b, n * sizeof *a) == 0;
	free(a);
	free(b);
	return same;
}

static void test_declared(void)
{
	const char *plain = "tests/golden/quantised.ra", *declared = "tests/models/declared.ra";
	tap_ok(are_same(declared, NULL, plain, "i16"), "products that a model declares are as those of the option");
	tap_ok(!are_same(declared, NULL, plain, NULL) && !are_same(declared, NULL, plain, "i8"),
	       "and not as those in f32 or of another option");
	tap_ok(are_same(declared, "i8", plain, "i16"), "what it declares goes before the option");
}

/* Sums in different precisions over as many words, which no operand tells apart: each is computed in its own. */
static void test_side_by_side(void)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .rules = "-tables"};
	const char *path = "tests/models/sidebyside.ra";
	struct test_model m = {0};
	struct test_run r = {0};
	struct setting s = {0};
	random_state = 5;
	if (tap_ok(load_model(&m, path, "D=16") && find_results(&s, &r, &m, NULL), "%s: is interpreted", path)) {
		test_oracle(&s, &r, path, &o);
		test_variants(&s, path, o);
	}
	end_setting(&s);
	end_run(&r);
	free_model(&m);
}

/* --- weights without a scale --- */

static float replaced; /* the weight that stands at row 3, column 2, of W; row 5 is zero */

static bool read_special(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	enum { COLUMNS = 16 };
	bool ok = read_weight(context, param, first, count, to, d);
	for (int64_t i = 0; param == 0 && i < count; i++) {
		if ((first + i) / COLUMNS == 5)
			((float *)to)[i] = 0;
		if (first + i == 3 * COLUMNS + 2)
			((float *)to)[i] = replaced;
	}
	return ok;
}

static void test_special(const char *precision, float weight, bool finite)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .precision = precision};
	struct rt_source source = {read_special, NULL};
	struct test_model m = {0};
	struct test_forest f = {0};
	struct test_run r = {0};
	int64_t count = 0, wrong = 0;
	replaced = weight;
	bool ok = load_model(&m, "tests/models/rows.ra", "D=16") && compile_run(&r, &m, &o);
	r.bound = ok && rt_bind(&r.binding, &allocator_default, &r.image, &source, NULL, &r.diags);
	r.open = r.bound && rt_session_init(&r.session, &allocator_default, &r.image, &r.diags);
	if (r.open)
		make_forest(&f, &r.image, 3, 12);
	ok = r.open && run_forest(&r, &f.minibatch);
	double *all = ok ? gather_outputs(&r, f.nodes, f.minibatch.forest.inputs, &count) : NULL;
	for (int64_t i = 0; i < count; i++)
		wrong += i % 16 == 5 ? all[i] != 0 : isfinite(all[i]) != (finite || i % 16 != 3);
	tap_ok(ok && count && !wrong, "%s: a weight of %g, sums of its row alone are %s", precision, weight,
	       finite ? "finite" : "none");
	free(all);
	if (r.open)
		free_forest(&f);
	end_run(&r);
	free_model(&m);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++)
			test_model(i, k);
	for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++) {
		test_special(precisions[k].name, NAN, false);
		test_special(precisions[k].name, INFINITY, false);
		test_special(precisions[k].name, -0x1p127f, true);
		test_special(precisions[k].name, 0x1p-149f, true);
	}
	test_declared();
	test_side_by_side();
	skip_backends();
	return tap_done();
}
