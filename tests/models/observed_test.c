/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs that are observed for a calibration, and those with bounds of one: the same bits however they are run; and
 * observing changes no bit of what a model computes. */
#include "tests/models/variants.h"

#include <stdlib.h>

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "V=7 E=17 D=16 C=5"},
    {"examples/childsum/childsum.ra", "V=7 E=16 D=16 C=3"},
    {"examples/dagrnn/dagrnn.ra", "C=4 E=16 D=17"},
    {"tests/golden/steps.ra", "D=16"},
    {"tests/models/scan.ra", "T=3 B=2 D=16 S=3"},
    {"tests/models/members.ra", "V=7 D=16 A=16"},
    {"tests/golden/quantised.ra", "D=16"},
};

/* All products, as if each had a bound, but for the first, which is kept in f32. */
static const struct rewrite_calibration *calibrate_all(const struct test_model *m, struct arena *a)
{
	struct diags d;
	struct sub_program p;
	struct option_texts texts = {.backend = "interpreter", .target = "avx2", .rules = "-tables"};
	struct rewrite_listed_products list = {0};
	struct rewrite_calibration *c = ARENA_NEW(a, struct rewrite_calibration);
	diags_init(&d, &allocator_default);
	const struct compile_options *o = read_option_texts(a, &d, &texts);
	if (o && compile_to_products(a, &d, m->model, m->sizes, o, &p)) {
		struct rewrite_options rewriting = compile_rewrite_options(o);
		rewrite_list_products(&p, &rewriting, &list);
	}
	struct rewrite_calibrated *product = ARENA_ARRAY(a, struct rewrite_calibrated, list.all.n + 1);
	for (size_t i = 0; i < list.all.n; i++)
		product[i] = (struct rewrite_calibrated){.name = list.all.at[i].name, .kept = i == 0};
	*c = (struct rewrite_calibration){.n = list.all.n, .product = product};
	print_diags(&d);
	diags_free(&d);
	return c;
}

static bool find_results(struct setting *s, struct test_run *r, const struct test_model *m, const struct option_texts *o)
{
	random_state = 7;
	if (!start_run(r, m, o))
		return false;
	s->model = m;
	make_forest(&s->forest, &r->image, 3, 12);
	return begin_setting(s, r);
}

static void test_model(size_t model)
{
	struct option_texts plain = {.backend = "interpreter", .target = "avx2", .rules = "-tables"}, o = plain;
	struct test_model m = {0};
	struct test_run run[3] = {0};
	struct setting f32 = {0}, observed = {0}, calibrated = {0};
	struct arena a;
	char name[100];
	arena_init(&a, &allocator_default);
	jmp_buf jump;
	bool ok = !arena_guard(&a, &jump) && load_model(&m, models[model].path, models[model].sizes);
	o.observing = true;
	ok = ok && find_results(&f32, &run[0], &m, &plain) && find_results(&observed, &run[1], &m, &o);
	snprintf(name, sizeof name, "%s, observed", models[model].path);
	if (tap_ok(ok && observed.count >= f32.count && !memcmp(observed.expected, f32.expected, f32.count * sizeof(double)),
		   "%s: the outputs of the model have the bits of f32", name))
		test_variants(&observed, name, o);
	o = plain;
	o.precision = "i8";
	o.calibration = ok ? calibrate_all(&m, &a) : NULL;
	snprintf(name, sizeof name, "%s, calibrated", models[model].path);
	if (tap_ok(ok && o.calibration->n && find_results(&calibrated, &run[2], &m, &o) && calibrated.count == f32.count,
		   "%s: %zu products", name, ok ? o.calibration->n : 0))
		test_variants(&calibrated, name, o);
	end_setting(&f32), end_setting(&observed), end_setting(&calibrated);
	for (int i = 0; i < 3; i++)
		end_run(&run[i]);
	free_model(&m);
	arena_free(&a);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(i);
	skip_backends();
	return tap_done();
}
