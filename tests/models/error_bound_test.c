/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of what integers and bf16 change: never below the largest change of any element of any run, over models, weights and
 * structures at random; near to it where errors have not gone through many levels; and none where there is none. */
#include "compile/compilation.h"
#include "tests/models/variants.h"

#include <stdlib.h>

enum { DRAWS = 6 /* of weights */, PARAMS = 64 };

/* The weights: those of parameters that a model does not have are others. */
static int draw;

/* Other ones than drawn: 1; 0; in rows of 64 a 1, then `low`. */
enum { ONES = -1, ZEROS = -2, LOW_BYTES = -3 };

/* Nearly in the middle between two integers of two bytes, the lower one of which has a low byte of -128. */
static const float low = 32384.498 / 32639;

static float choose_weight(int64_t i)
{
	return draw == ZEROS ? 0 : draw == ONES || i % 64 == 0 ? 1 : low;
}

static bool read_drawn(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	(void)d;
	const struct image *image = context;
	if (draw >= 0)
		put_elements(image ? image->param[param].dtype : DTYPE_F32, param + PARAMS * draw, first, count, to);
	for (int64_t i = 0; draw < 0 && i < count; i++)
		((float *)to)[i] = choose_weight(first + i);
	return true;
}

/* A model, its run in f32 and in integers, and its bounds. */
struct trial {
	const char *precision;
	struct test_model model;
	struct test_run f32, integers;
	struct arena arena;
	struct sub_program program;
	struct rewrite_bounding *bounding;
};

static bool open_drawn(struct test_run *r, const struct test_model *m, const char *precision)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .precision = precision};
	struct rt_source source = {read_drawn, &r->image};
	if (!compile_run(r, m, &o))
		return false;
	r->bound = rt_bind(&r->binding, &allocator_default, &r->image, &source, NULL, &r->diags);
	return r->bound;
}

static bool begin_bounds(struct trial *t)
{
	static const struct rewrite_weights weights = {read_drawn, NULL};
	struct option_texts texts = {.rules = "-tables", .target = "avx2", .precision = t->precision};
	struct diags *d = &t->model.diags;
	const struct compile_options *options = read_option_texts(&t->arena, d, &texts);
	struct compilation *c = ARENA_NEW(&t->arena, struct compilation);
	*c = (struct compilation){
	    .arena = &t->arena, .diags = d, .model = t->model.model, .sizes = t->model.sizes, .options = options};
	if (!options || !compile_to_written(c) || !compile_run_program_passes(c, "contract"))
		return false;
	struct rewrite_options rewriting = compile_rewrite_options(options);
	t->program = *c->latest;
	t->bounding = rewrite_begin_bounding(&t->program, &rewriting, &weights, &t->arena, d);
	return true;
}

/* --- structures --- */

static int larger(int a, int b)
{
	return a > b ? a : b;
}

/* The most edges of a path, and of a node to its children or to its parents. */
static struct rewrite_extent measure_forest(const struct test_forest *f)
{
	static int height[MAX_NODES], parents[MAX_NODES];
	const struct lin_forest *l = &f->minibatch.forest;
	struct rewrite_extent e = {0, 0};
	memset(parents, 0, sizeof parents);
	for (int n = 0; n < f->nodes; n++) {
		height[n] = 0;
		for (int k = l->child_begin[n]; k < l->child_begin[n + 1]; k++) {
			height[n] = larger(height[n], height[l->children[k]] + 1);
			e.edges = larger(e.edges, ++parents[l->children[k]]);
		}
		e.edges = larger(e.edges, l->child_begin[n + 1] - l->child_begin[n]);
		e.height = larger(e.height, height[n]);
	}
	return e;
}

static double *run_over(struct test_run *r, struct test_forest *f, int64_t *count)
{
	double *all = NULL;
	r->open = rt_session_init(&r->session, &allocator_default, &r->image, &r->diags);
	if (r->open && run_forest(r, &f->minibatch))
		all = gather_outputs(r, f->nodes, f->minibatch.forest.inputs, count);
	print_diags(&r->diags);
	if (r->open)
		rt_session_free(&r->session);
	r->open = false;
	return all;
}

/* --- comparing --- */

/* What f32 may lose by rounding, which bounds leave out. */
static const double rounding = 2e-6;

struct found {
	int compared, above; /* outputs; those that changed by more than their bound */
	double ratio;	     /* the least that a bound is over a change */
};

/* Compares the rows of an output; returns how many elements they have. */
static int64_t compare_output(const struct trial *t, int output, int64_t rows, const double *wide,
			      const double *narrow, double bound, struct found *found)
{
	int64_t n = rows * output_elements(&t->f32.image, output);
	double change = 0;
	bool above = false;
	for (int64_t i = 0; i < n; i++) {
		double now = fabs(wide[i] - narrow[i]);
		above |= !(now <= bound + rounding * (1 + fabs(wide[i])));
		change = fmax(change, now);
	}
	found->compared++;
	found->above += above;
	if (change > rounding)
		found->ratio = fmin(found->ratio, bound / change);
	return n;
}

static bool compare_outputs(struct trial *t, struct test_forest *f, bool any_height, struct found *found)
{
	struct rewrite_extent extent = measure_forest(f);
	struct rewrite_errors errors;
	int64_t count = 0, at = 0;
	double *wide = run_over(&t->f32, f, &count), *narrow = run_over(&t->integers, f, &count);
	if (any_height)
		extent.height = REWRITE_ANY_HEIGHT;
	bool ok = wide && narrow && rewrite_bound_errors(t->bounding, extent, &errors);
	for (int o = 0; ok && o < t->f32.image.outputs; o++) {
		bool at_root = t->f32.image.output[o].at_root;
		int64_t rows = at_root ? f->minibatch.forest.inputs : f->nodes;
		if (t->f32.image.output[o].dtype == DTYPE_F32)
			at += compare_output(t, o, rows, wide + at, narrow + at, errors.output[o], found);
		else
			at += rows * output_elements(&t->f32.image, o);
	}
	free(wide);
	free(narrow);
	return ok;
}

/* Over structures of one size, as they are drawn and for any height. */
static bool compare_structures(struct trial *t, int size, struct found *found)
{
	struct test_forest f = {0};
	make_forest(&f, &t->f32.image, 3, size);
	bool ok = compare_outputs(t, &f, false, found) && compare_outputs(t, &f, true, found);
	free_forest(&f);
	return ok;
}

static bool run_trial(struct trial *t, const char *path, const char *sizes, struct found *found)
{
	static const int nodes[] = {2, 3, 12};
	static jmp_buf jump;
	bool ok = !arena_guard(&t->arena, &jump) && load_model(&t->model, path, sizes) && begin_bounds(t) &&
		  open_drawn(&t->f32, &t->model, NULL) && open_drawn(&t->integers, &t->model, t->precision);
	for (size_t i = 0; ok && i < sizeof nodes / sizeof *nodes; i++)
		ok = compare_structures(t, nodes[i], found);
	end_run(&t->f32);
	end_run(&t->integers);
	free_model(&t->model);
	return ok;
}

static void test_bounds(const char *path, const char *sizes, const char *precision, double nearest)
{
	struct found found = {.ratio = INFINITY};
	bool ok = true;
	random_state = 9;
	for (draw = 0; draw < DRAWS && ok; draw++) {
		struct trial t = {.precision = precision};
		arena_init(&t.arena, &allocator_default);
		ok = run_trial(&t, path, sizes, &found);
		arena_free(&t.arena);
	}
	tap_ok(ok && found.compared && !found.above, "%s, %s, %s: no change of %d outputs is above its bound", path,
	       sizes, precision, found.compared);
	tap_ok(found.ratio < nearest, "and a bound is %.1f times a change", found.ratio);
}

/* --- the largest error --- */

/* All factors are in the middle between two integers, or two bf16, so no error cancels another one.  The rest of the bound is
 * that of weights, whose scale is twice as coarse in i16, so that no sum of 64 products reaches 2^31; and that of factors
 * near 1, which is twice as large in bf16. */
static void test_worst(const char *precision, int weights, double factor, double nearest)
{
	struct trial t = {.precision = precision};
	struct found found = {.ratio = INFINITY};
	struct test_forest f = {0};
	static jmp_buf jump;
	draw = weights;
	arena_init(&t.arena, &allocator_default);
	bool ok = !arena_guard(&t.arena, &jump) && load_model(&t.model, "tests/models/rows.ra", "D=64") &&
		  begin_bounds(&t) && open_drawn(&t.f32, &t.model, NULL) &&
		  open_drawn(&t.integers, &t.model, precision);
	if (ok)
		make_forest(&f, &t.f32.image, 3, 1);
	for (int i = 0; ok && i < f.nodes * 64; i++)
		((float *)f.owned[0])[i] = atanh(factor);
	ok = ok && compare_outputs(&t, &f, false, &found);
	tap_ok(ok && !found.above && found.ratio > 1 && found.ratio < nearest,
	       "%s: where no error cancels another one, a bound is %.3f times the change", precision, found.ratio);
	free_forest(&f);
	end_run(&t.f32);
	end_run(&t.integers);
	free_model(&t.model);
	arena_free(&t.arena);
}

/* Products with weights of zero have no error, so the tanh that they go into has all of it. */
static void test_function(const char *precision)
{
	static const char text[] = "model test\nstructure none\ninput x[D]\nparam W[D, D]\n"
				   "output y = 2 * tanh(W @ tanh(x) + x)\n";
	struct trial t = {.precision = precision};
	struct found found = {.ratio = INFINITY};
	struct test_forest f = {0};
	static jmp_buf jump;
	draw = ZEROS;
	arena_init(&t.arena, &allocator_default);
	bool ok = !arena_guard(&t.arena, &jump) &&
		  load_text(&t.model, "test", text, strlen(text), "D=64") && begin_bounds(&t) &&
		  open_drawn(&t.f32, &t.model, NULL) && open_drawn(&t.integers, &t.model, precision);
	if (ok)
		make_forest(&f, &t.f32.image, 3, 1);
	for (int i = 0; ok && i < f.nodes * 64; i++)
		((float *)f.owned[0])[i] = i / 32.0f - 3;
	ok = ok && compare_outputs(&t, &f, false, &found);
	tap_ok(ok && !found.above && found.ratio >= 1 && found.ratio < 1.2,
	       "%s: the bound of a tanh of fewer places is %.3f times its change", precision, found.ratio);
	free_forest(&f);
	end_run(&t.f32);
	end_run(&t.integers);
	free_model(&t.model);
	arena_free(&t.arena);
}

/* What is multiplied with an input has no bound, and the reason names both; a softmax has a bound below its range. */
static void test_unbounded(void)
{
	struct trial t = {.precision = "i16"};
	struct rewrite_errors errors;
	static jmp_buf jump;
	arena_init(&t.arena, &allocator_default);
	bool ok = !arena_guard(&t.arena, &jump) && load_model(&t.model, "tests/models/softened.ra", "D=24") &&
		  begin_bounds(&t) && rewrite_bound_errors(t.bounding, (struct rewrite_extent){0, 1}, &errors);
	tap_ok(ok && errors.output[0] > 0 && errors.output[0] < 0.01 && errors.output[1] < 0.01,
	       "softmax and a quotient have bounds");
	tap_ok(ok && isinf(errors.output[2]) && errors.unbounded && strstr(errors.unbounded, "multiply") &&
		   strstr(errors.unbounded, " x"),
	       "what an input multiplies has none: %s", ok ? errors.unbounded : "");
	free_model(&t.model);
	arena_free(&t.arena);
}

/* How many times the change that was found a bound may be at most. */
static const struct {
	const char *path, *sizes;
	double nearest;
} models[] = {
    {"tests/models/rows.ra", "D=64", 20},
    {"tests/models/softened.ra", "D=24", 20},
    {"tests/golden/quantised.ra", "D=16", 20},
    {"examples/treelstm/treelstm.ra", "V=7 E=8 D=33 C=5", 1000},
    {"examples/lstm/lstm.ra", "V=7 E=5 D=17 C=3", 1000},
    {"examples/childsum/childsum.ra", "V=7 E=5 D=16 C=3", 1000},
    {"examples/simpletreegru/simpletreegru.ra", "V=7 E=5 D=17 C=3", 1000},
    {"examples/gru/gru.ra", "E=5 D=16", 1000},
    {"tests/models/parents.ra", "X=5 D=16", 1000},
    {"tests/models/bounded.ra", "X=16 D=16", 1000},
    {"tests/models/boundedtree.ra", "X=17 D=16", 1000},
};

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i += SHADOWED ? 3 : 1) {
		test_bounds(models[i].path, models[i].sizes, "i16", models[i].nearest);
		test_bounds(models[i].path, models[i].sizes, "i8", models[i].nearest);
		test_bounds(models[i].path, models[i].sizes, "i8x3", models[i].nearest);
		test_bounds(models[i].path, models[i].sizes, "f16", 20 * models[i].nearest);
		test_bounds(models[i].path, models[i].sizes, "bf16", 20 * models[i].nearest);
		test_bounds(models[i].path, models[i].sizes, "bf16x1", 20 * models[i].nearest);
		if (models[i].nearest < 100) /* elsewhere most changes are as small as those of rounding */
			test_bounds(models[i].path, models[i].sizes, "bf16x3", 15000 * models[i].nearest);
	}
	test_worst("i16", ONES, 4096.498 / 8192, 3.3);
	test_worst("i8", ONES, 63.498 / 127, 2.1);
	test_worst("i8x3", LOW_BYTES, low, 1.05); /* what is left out is a third of it */
	test_worst("bf16", ONES, 0.5 * (1 + 0x0.ffp-8), 4.1);
	test_unbounded();
	test_function("i8");
	test_function("bf16");
	test_function("f16");
	return tap_done();
}
