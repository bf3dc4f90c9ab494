/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whole models with products in integers or in blocks of bf16 as code for matrix registers, by each back end, where the processor has them or they can be
 * executed in their place (tests/jit/amx.h): the bytes of the interpreter and of code for other targets. */
#include "tests/jit/amx.h"
#include "tests/models/anyhow.h"
#include "tests/sample.h"

#include "base/cpu.h"

#ifdef __x86_64__

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "V=7 E=8 D=33 C=5"},  {"examples/lstm/lstm.ra", "V=7 E=5 D=17 C=3"},
    {"examples/childsum/childsum.ra", "V=7 E=5 D=64 C=3"},  {"examples/simpletreegru/simpletreegru.ra", "V=7 E=5 D=18 C=3"},
    {"tests/golden/quantised.ra", "D=19"},		    {"tests/models/bounded.ra", "X=16 D=32"},
    {"tests/models/boundedtree.ra", "X=17 D=16"},
    {"examples/treelstm/treelstm.ra", "V=7 E=8 D=130 C=5"}, /* sums of several steps, between which rows of the tile before run */
};

/* Whether a program gives the bytes of the setting, or no number where that has none: the sign and the payload of one are left open. */
static bool gives_same(struct setting *s, const struct option_texts *o)
{
	struct test_run r;
	int64_t count = 0, wrong = 0;
	bool ok = compile_anyhow(&r, s->model, o) && open_run(&r) && run_forest(&r, &s->forest.minibatch);
	double *all = ok ? gather_outputs(&r, s->forest.nodes, s->forest.minibatch.forest.inputs, &count) : NULL;
	for (int64_t i = 0; i < count; i++)
		wrong += memcmp(&all[i], &s->expected[i], sizeof *all) != 0 && !(isnan(all[i]) && isnan(s->expected[i]));
	free(all);
	end_run(&r);
	return ok && count == s->count && !wrong;
}

static void test_tiles(struct setting *s, const char *name, struct option_texts o)
{
	long configurations = amx.configurations;
	o.target = "amx";
	tap_ok(gives_same(s, &o), "%s: the same bytes by %s for a machine with matrix registers", name, o.backend);
	if (!cpu_permits_matrices())
		tap_ok(amx.configurations > configurations && amx_is_released(),
		       "%s: by tiles, and none is left configured", name);
}

/* The first back end in halves of 16 bits for each model; what else there is as far as it is in the sample. */
static void test_backends(struct setting *s, const char *name, struct option_texts o)
{
	static size_t turn;
	turn++; /* so that models differ in what is done to them */
	for (int b = 0; backend_at(b); b++) {
		bool always = b == 0 && !SHADOWED && strcmp(o.precision, "i16") == 0;
		o.backend = backend_at(b);
		if (in_sample(turn++) || always)
			test_tiles(s, name, o);
		o.target = "avx512";
		if (in_sample(turn++))
			tap_ok(gives_same(s, &o), "%s: the same bytes by %s with halves or bytes in vectors", name, o.backend);
	}
}

/* Of weights some are zero, infinite or no numbers, if `each` is not 0: one in so many. */
static void test_model(size_t model, const char *precision, int each)
{
	struct option_texts o = {.backend = "interpreter", .target = "generic", .rules = "-tables", .precision = precision};
	struct test_model m = {0};
	struct test_run r = {0};
	struct setting s = {.model = &m};
	char name[120];
	snprintf(name, sizeof name, "%s, %s, %s%s", models[model].path, models[model].sizes, precision, each ? ", special weights" : "");
	random_state = 5 + model;
	special_each = each;
	bool ok = load_model(&m, models[model].path, models[model].sizes) && start_run(&r, &m, &o);
	if (ok)
		make_forest(&s.forest, &r.image, 40, 12); /* levels of several tiles of 16 rows */
	if (tap_ok(ok && begin_setting(&s, &r), "%s: is interpreted", name)) {
		o.target = "amx";
		tap_ok(gives_same(&s, &o), "%s: the same bytes interpreted for a machine with matrix registers", name);
		test_backends(&s, name, o);
	}
	special_each = 0;
	end_setting(&s);
	end_run(&r);
	free_model(&m);
}

int main(void)
{
	if (!amx_begin()) {
		tap_skip("this processor has no AVX-512 with VNNI and BF16", "code for AMX");
		return tap_done();
	}
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		test_model(i, "i16", 0);
		test_model(i, "i8", 0);
		test_model(i, "i8x3", 0);
		test_model(i, "bf16x1", 0);
		test_model(i, "bf16x3", 0);
	}
	test_model(0, "bf16x1", 300);
	test_model(2, "bf16x3", 300);
	test_model(0, "i16", 300);
	test_model(1, "i8x3", 300);
	test_model(2, "i16", 300);
	skip_backends();
	return tap_done();
}

#else

int main(void)
{
	tap_skip("this is no x86-64", "code for AMX");
	return tap_done();
}

#endif
