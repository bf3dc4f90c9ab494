/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights that are kept in a narrow type: to the bit what f32 weights give that were rounded to that type
 * before, however the program is run; and what the oracle says of the program, which narrows them itself. */
#include "tests/models/variants.h"

#include <stdlib.h>

/* Shapes of weights are of two dimensions; `reduced` is the one that products sum over. */
static const struct narrowed_model {
	const char *path, *sizes;
	int reduced;
} models[] = {
    {"examples/treelstm/treelstm.ra", "V=7 E=8 D=32 C=5", 1},
    {"examples/gru/gru.ra", "E=5 D=17", 1},
    {"examples/childsum/childsum.ra", "V=7 E=5 D=9 C=3", 1},
    {"tests/models/matrices.ra", "V=7 D=16", 0},
};

static const char *const types[] = {"f16", "bf16", "i8"};

/* --- rounding, by itself --- */

static double round_to_digits(double x, int digits, int least)
{
	int exponent;
	frexp(x, &exponent);
	exponent = exponent - 1 < least ? least : exponent - 1;
	return ldexp(nearbyint(ldexp(x, digits - 1 - exponent)), exponent - digits + 1);
}

struct rounding {
	const struct test_model *model;
	const char *type;
	bool *narrow; /* by parameter */
	int reduced;
};

/* The largest of the row that an element belongs to. */
static float largest_beside(const struct rounding *r, int param, int64_t element)
{
	const struct ra_shape *s = &r->model->model->params.at[param].shape;
	int64_t rows = ra_dim_value(&s->dim[0], r->model->sizes),
		columns = ra_dim_value(&s->dim[1], r->model->sizes);
	int64_t n = r->reduced ? columns : rows, stride = r->reduced ? 1 : columns;
	int64_t first = r->reduced ? element / columns * columns : element % columns;
	float most = 0;
	for (int64_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(weight_at(param, first + i * stride)));
	return most;
}

static float round_weight(const struct rounding *r, int param, int64_t element)
{
	float w = weight_at(param, element);
	if (!r->narrow[param])
		return w;
	if (strcmp(r->type, "f16") == 0)
		return (float)round_to_digits(w, 11, -14);
	if (strcmp(r->type, "bf16") == 0)
		return (float)round_to_digits(w, 8, -126);
	float scale = largest_beside(r, param, element) / 127;
	return scale * (float)nearbyint(w / scale);
}

static bool read_rounded(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	(void)d;
	for (int64_t i = 0; i < count; i++)
		((float *)to)[i] = round_weight(context, param, first + i);
	return true;
}

/* --- the program --- */

/* Which of the model's parameters the program has in a narrow type, too. */
static bool *find_narrow(const struct sub_program *p, const char *type, struct arena *a)
{
	bool *narrow = ARENA_ARRAY(a, bool, p->params.n);
	for (size_t i = 0; i < p->params.n; i++)
		for (size_t k = 0; k < p->params.n; k++) {
			const struct sub_tensor *t = &p->params.at[k];
			size_t n = strlen(p->params.at[i].name);
			narrow[i] |= t->folded && strncmp(t->name, p->params.at[i].name, n) == 0 &&
				     t->name[n] == '_' && strcmp(t->name + n + 1, type) == 0 &&
				     strcmp(dtype_traits_of(t->dtype)->spelling, type) == 0;
		}
	return narrow;
}

/* --- runs --- */

/* Weights that were rounded before, kept as f32. */
static bool agrees_with_rounded(struct setting *s, struct rounding *rounding)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .rules = "-tables"};
	struct rt_source source = {read_rounded, rounding};
	struct test_run r;
	bool ok = compile_run(&r, s->model, &o);
	r.bound = ok && rt_bind(&r.binding, &allocator_default, &r.image, &source, NULL, &r.diags);
	r.open = r.bound && rt_session_init(&r.session, &allocator_default, &r.image, &r.diags);
	ok = r.open && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r);
	end_run(&r);
	return ok;
}

static void test_program(struct setting *s, const struct narrowed_model *m, const char *name,
			 const char *type, const struct test_run *base, struct arena *a)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .weights_as = type};
	struct rounding rounding = {s->model, type, NULL, m->reduced};
	struct sub_program p;
	struct sched_plan plan;
	struct diags d;
	int narrow = 0;
	diags_init(&d, &allocator_default);
	if (tap_ok(compile_plan_as(a, &d, s->model->model, s->model->sizes, &o, &p, &plan), "%s: has a plan",
		   name)) {
		rounding.narrow = find_narrow(&p, type, a);
		for (size_t i = 0; i < p.params.n; i++)
			narrow += rounding.narrow[i];
		tap_ok(narrow > 0, "%s: %d of its weights are narrow", name, narrow);
		tap_ok(agrees_with_rounded(s, &rounding), "%s: the bits of weights that were rounded before",
		       name);
		double worst = distance(s, base, evaluate_rounded(s, &p, &base->session.order, a));
		tap_ok(worst < 2e-6, "%s: within %.1e of the oracle", name, worst);
		test_variants(s, name, o);
	}
	print_diags(&d);
	diags_free(&d);
}

static void test_model(const struct narrowed_model *m, const char *type)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .weights_as = type};
	struct test_model model = {0};
	struct test_run base = {0};
	struct setting s = {0};
	struct arena a;
	jmp_buf jump;
	char name[100];
	snprintf(name, sizeof name, "%s, %s, %s", m->path, m->sizes, type);
	arena_init(&a, &allocator_default);
	bool ok = load_model(&model, m->path, m->sizes) && start_run(&base, &model, &o);
	if (ok) {
		s.model = &model;
		make_forest(&s.forest, &base.image, 3, 12);
		ok = begin_setting(&s, &base);
	}
	if (tap_ok(ok, "%s: is interpreted", name) && !arena_guard(&a, &jump))
		test_program(&s, m, name, type, &base, &a);
	end_setting(&s);
	end_run(&base);
	free_model(&model);
	arena_free(&a);
}

/* --- bytes --- */

static int64_t bytes_as(const struct test_model *model, const char *type)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .weights_as = type};
	struct test_run r;
	int64_t bytes = start_run(&r, model, &o) ? (int64_t)r.binding.packed_bytes : -1;
	end_run(&r);
	return bytes;
}

/* Nearly all weights of a sequence are multiplied. */
static void test_bytes(void)
{
	struct test_model model = {0};
	if (tap_ok(load_model(&model, "examples/gru/gru.ra", "E=64 D=128"), "a model of large matrices")) {
		int64_t wide = bytes_as(&model, NULL), half = bytes_as(&model, "f16"),
			quarter = bytes_as(&model, "i8");
		tap_ok(half > 0 && half < wide * 0.55, "f16: %lld bytes instead of %lld", (long long)half,
		       (long long)wide);
		tap_ok(bytes_as(&model, "bf16") == half, "bf16: as many");
		tap_ok(quarter > 0 && quarter < wide * 0.32, "i8: %lld bytes", (long long)quarter);
		tap_ok(bytes_as(&model, "f32") == wide, "f32: what it is without the option");
	}
	free_model(&model);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
			random_state = 5;
			test_model(&models[i], types[t]);
		}
	test_bytes();
	skip_backends();
	return tap_done();
}
