/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Constants leave the bodies: what the folded program says, that it gives the same numbers, what is left
 * where it is. */
#include "rewrite/rewrite.h"
#include "tests/models/reference.h"

struct folded {
	struct test_model model;
	struct sub_program written, program;
	struct rewrite_trace trace;
	struct diags diags;
};

static bool fold(struct folded *f, const struct rewrite_options *options)
{
	struct arena *a = &f->model.arena;
	diags_init(&f->diags, &allocator_default);
	f->trace = (struct rewrite_trace){0};
	sub_init(&f->written, a, f->model.model->name);
	struct sub_program lowered;
	sub_init(&lowered, a, f->model.model->name);
	sub_init(&f->program, a, f->model.model->name);
	if (!sub_lower_model(&lowered, f->model.model, f->model.sizes, SUB_AT_MODEL, &f->diags))
		return print_diags(&f->diags), false;
	rewrite_contract(&f->written, &lowered, NULL, NULL);
	rewrite_fold(&f->program, &f->written, options, &f->trace);
	bool ok = sub_verify(&f->program, &f->diags);
	print_diags(&f->diags);
	diags_free(&f->diags);
	return ok;
}

static bool fold_text(struct folded *f, const char *text, const char *sizes, unsigned off)
{
	struct rewrite_options options = {.off = off};
	return load_text(&f->model, "test.ra", text, strlen(text), sizes) && fold(f, &options);
}

static int bodies_at_binding(const struct sub_program *p)
{
	int n = 0;
	for (size_t b = 0; b < p->bodies.n; b++)
		n += p->bodies.at[b].domain == SUB_AT_BINDING;
	return n;
}

/* --- text --- */

static bool says(const struct sub_program *p, const char *expected)
{
	struct str s = str_in(p->arena);
	sub_print(p, &s);
	if (strstr(str_text(&s), expected))
		return true;
	for (char *line = strtok(s.text, "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
	return false;
}

#define HEAD                                                                                                 \
	"model m\nstructure sequence\ninput x[D]\nparam A[D, D], B[D, D], p[D], q[D]\nstate h[D]\n"          \
	"output y = A @ (B @ (h * p + q))\nnode:\n"

static const struct {
	const char *what, *text, *expected;
} texts[] = {
    {"a product of parameters, row by row", HEAD " h = A @ B @ x + previous.h\n",
     "fold0 at binding\n"
     "  %4[r0,j] = accumulate_k 0, A[r0,k], B[k,j]\n"
     "  store fold0[r0,j] = %4[r0,j]\n"},
    {"a scalar, once", HEAD " h = x * max(p) * 2 + previous.h\n",
     "fold0 at binding\n"
     "  %2[] = max_i p[i]\n"
     "  store fold0[] = %2[]\n"},
    {"an expensive value without a row comes before", HEAD " h = A * sum(exp(p)) @ x + previous.h\n",
     "fold0 at binding\n"
     "  %2[r0] = exp p[r0]\n"
     "  store fold0[r0] = %2[r0]\n"
     "\n"
     "fold1 at binding\n"
     "  %4[] = sum_i fold0[i]\n"
     "  store fold1[] = %4[]\n"
     "\n"
     "fold2 at binding\n"
     "  %7[r0,j] = multiply A[r0,j], fold1[]\n"},
    {"data movement stays with its user", HEAD " h = transpose(A) @ x + exp(q)[:D] + previous.h\n",
     "fold0 at binding\n"
     "  %2[r0] = exp q[r0]\n"
     "  store fold0[r0] = %2[r0]\n"
     "\n"
     "leaf"},
    {"a transposed part of a constant is of another row",
     HEAD " h = (tanh(A) + transpose(tanh(A))) @ x + previous.h\n",
     "fold0 at binding\n"
     "  %2[r0,j] = tanh A[r0,j]\n"
     "  store fold0[r0,j] = %2[r0,j]\n"
     "\n"
     "fold1 at binding\n"
     "  %4[r0,j] = assign fold0[j,r0]\n"
     "  %5[r0,j] = add fold0[r0,j], %4[r0,j]\n"
     "  store fold1[r0,j] = %5[r0,j]\n"},
    {"what two constants share is computed once", HEAD " h = exp(A @ p) * x + tanh(A @ p) + previous.h\n",
     "fold0 at binding\n"
     "  %4[r0] = accumulate_j 0, A[r0,j], p[j]\n"
     "  store fold0[r0] = %4[r0]\n"
     "\n"
     "fold1 at binding\n"
     "  %6[r0] = exp fold0[r0]\n"},
    {"what is joined along the rows is computed in one piece",
     HEAD " h = exp(concat(p, q)[1:D + 1]) * x + previous.h\n",
     "fold0 at binding\n"
     "  %3[k] = cond_k p[i], q[i]\n"
     "  store fold0[k] = %3[k]\n"
     "\n"
     "fold1 at binding\n"
     "  %5[r0] = assign fold0[r0+1]\n"
     "  %6[r0] = exp %5[r0]\n"
     "  store fold1[r0] = %6[r0]\n"},
    {"an expression of numbers alone stays", HEAD " h = x * dimension(D) * (2 + 1) + previous.h\n",
     "param q[3]\nstate"},
    {"and a sign", HEAD " h = x - p + previous.h\n", "param q[3]\nstate"},
    {"a bias of indices begins the chain of a sum as others do",
     HEAD " h = A @ x + exp(cast(argmax(p), f32)) + previous.h\n", "accumulate_j fold1[], A[i,j], x[n,j]"},
};

static void test_texts(void)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct folded f = {0};
		tap_ok(fold_text(&f, texts[i].text, "D=3", 0) && says(&f.program, texts[i].expected), "%s",
		       texts[i].what);
		free_model(&f.model);
	}
}

/* --- what is not profitable --- */

static const char outer[] =
    "model m\nstructure sequence\ninput x[D]\nparam p[D], q[D]\nstate h[D]\noutput y = h\nnode:\n"
    " h = transpose(zeros(D, D) + tanh(p)) * q @ x + previous.h\n";

static void test_large(void)
{
	struct folded f = {0};
	bool ok = fold_text(&f, outer, "D=200", 0) && f.trace.notes.n == 2;
	tap_ok(ok && bodies_at_binding(&f.program) == 1 && f.program.params.at[2].rank == 1,
	       "of a large product of two vectors only the expensive one is folded");
	bool told = ok &&
		    strstr(f.trace.notes.at[0],
			   "160000 bytes is made again where it is used, from 1604 bytes by 2 cheap") &&
		    strstr(f.trace.notes.at[1], "fold0 is computed at binding: 800 bytes");
	for (size_t i = 0; !told && i < f.trace.notes.n; i++)
		printf("# %s\n", f.trace.notes.at[i]);
	tap_ok(told, "and both decisions are told");
	free_model(&f.model);
	f = (struct folded){0};
	tap_ok(fold_text(&f, outer, "D=20", 0) && f.program.params.at[f.program.params.n - 1].rank == 2,
	       "a small one is folded whole");
	free_model(&f.model);
}

static void test_types(void)
{
	struct folded f = {0};
	bool ok = fold_text(&f,
			    "model m\nstructure sequence\nparam p[D] : i64\nstate n[D] : i64\noutput y = n\n"
			    "node:\n n = p * p + previous.n\n",
			    "D=3", 0);
	bool told =
	    ok && f.trace.notes.n && strstr(f.trace.notes.at[0], "fold0 is computed at binding: 24 bytes");
	for (size_t i = 0; !told && i < f.trace.notes.n; i++)
		printf("# %s\n", f.trace.notes.at[i]);
	tap_ok(told, "an i64 has eight bytes");
	free_model(&f.model);
}

static void test_off(void)
{
	struct folded f = {0};
	unsigned off = 1u << REWRITE_FAMILY_CONSTANTS;
	tap_ok(fold_text(&f, HEAD " h = (A + B) @ x + p * q + previous.h\n", "D=3", off) &&
		   !bodies_at_binding(&f.program),
	       "without the family what is cheap stays");
	free_model(&f.model);
	f = (struct folded){0};
	tap_ok(fold_text(&f, HEAD " h = (tanh(A) + B) @ x + previous.h\n", "D=3", off) &&
		   bodies_at_binding(&f.program) == 1 && says(&f.program, "store fold0[r0,j] = %2[r0,j]\n"),
	       "and an expensive value does not");
	free_model(&f.model);
}

/* A constant that is shared on every level has more terms than anybody can count. */
static void test_shared(void)
{
	enum { LEVELS = 40 };
	struct folded f = {0};
	char text[2000];
	int n = snprintf(text, sizeof text, "%s t0 = p + q\n", HEAD);
	for (int i = 1; i <= LEVELS; i++)
		n += snprintf(text + n, sizeof text - n, " t%d = t%d + t%d\n", i, i - 1, i - 1);
	snprintf(text + n, sizeof text - n, " h = x + t%d + previous.h\n", LEVELS);
	tap_ok(fold_text(&f, text, "D=3", 0) && bodies_at_binding(&f.program) == 1,
	       "a sum that is doubled %d times is one constant, soon found", LEVELS);
	free_model(&f.model);
}

/* --- models --- */

static const struct {
	const char *path, *sizes;
} models[] = {
    {"tests/models/constants.ra", "V=9 D=5 X=7 L=11"},
    {"tests/models/constants.ra", "V=9 D=33 X=100 L=130"},
    {"tests/models/nested.ra", "A=2 B=1 C=1 F=6 G=5 V=9"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/models/parts.ra", "D=9"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"examples/treelstm/treelstm.ra", "D=7 E=9 V=30"},
};

/* What planner and lowering count on. */
static bool expensive_values_have_rows(const struct sub_program *p)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n), ok = true;
	for (size_t b = 0; b < p->bodies.n; b++)
		if (p->bodies.at[b].domain != SUB_AT_BINDING ||
		    sub_store_tensor(p, p->bodies.at[b].stores.at)->rank)
			sub_mark_live(p, &p->bodies.at[b], live);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool row = v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
		ok &= !live[i] || row || sub_traits_of(v->op)->price != SUB_EXPENSIVE;
	}
	return ok;
}

/* States and outputs of a program over a forest, one after the other. */
static double *evaluate(const struct sub_program *p, size_t params, const struct test_forest *f,
			const struct lin_order *order, int64_t *count)
{
	struct arena *a = p->arena;
	const struct lin_forest *l = &f->minibatch.forest;
	struct sub_forest forest = {l->nodes, l->inputs,    l->child_begin, l->children,
				    l->root,  order->order, f->data,	    NULL};
	const void **weights = ARENA_ARRAY(a, const void *, p->params.n);
	double **states = ARENA_ARRAY(a, double *, p->states.n),
	       **outputs = ARENA_ARRAY(a, double *, p->outputs.n + 1);
	*count = 0;
	for (size_t i = 0; i < params; i++) {
		int64_t n = 1;
		for (int d = 0; d < p->params.at[i].rank; d++)
			n *= p->params.at[i].shape[d];
		float *values = ARENA_ARRAY(a, float, n);
		read_weight(NULL, i, 0, n, values, NULL);
		weights[i] = values;
	}
	for (int fill = 0; fill < 2; fill++) {
		double *all = fill ? ARENA_ARRAY(a, double, *count) : NULL;
		*count = 0;
		for (size_t i = 0; i < p->states.n + p->outputs.n; i++) {
			bool state = i < p->states.n;
			const struct sub_tensor *t =
			    state ? &p->states.at[i] : &p->outputs.at[i - p->states.n].row;
			int64_t n = state || !p->outputs.at[i - p->states.n].at_root ? l->nodes : l->inputs;
			for (int d = 0; d < t->rank; d++)
				n *= t->shape[d];
			if (fill)
				*(state ? &states[i] : &outputs[i - p->states.n]) = all + *count;
			*count += n;
		}
		if (fill)
			sub_evaluate(p, &forest, weights, states, outputs, a);
		if (fill)
			return all;
	}
	return NULL;
}

static bool gives_the_same(const struct folded *f)
{
	struct test_run r;
	struct test_forest forest;
	struct option_texts o = {.backend = "interpreter", .target = "generic"};
	int64_t n, m;
	random_state = 3;
	if (!start_run(&r, &f->model, &o))
		return false;
	make_forest(&forest, &r.image, 3, 20);
	bool same = run_forest(&r, &forest.minibatch);
	double *before =
	    same ? evaluate(&f->written, f->written.params.n, &forest, &r.session.order, &n) : NULL;
	double *after =
	    same ? evaluate(&f->program, f->written.params.n, &forest, &r.session.order, &m) : NULL;
	same = same && n == m && n > 0 && memcmp(before, after, n * sizeof *after) == 0;
	free_forest(&forest);
	end_run(&r);
	return same;
}

static void test_model(const char *path, const char *sizes, unsigned off)
{
	struct folded f = {0};
	struct rewrite_options options = {.off = off};
	char name[120];
	snprintf(name, sizeof name, "%s %s%s", strrchr(path, '/') + 1, sizes,
		 off ? ", without the family" : "");
	if (!tap_ok(load_model(&f.model, path, sizes) && fold(&f, &options), "%s: folded", name))
		return;
	tap_ok(expensive_values_have_rows(&f.program), "%s: expensive values have rows", name);
	tap_ok(gives_the_same(&f), "%s: the same numbers, %d constants", name, bodies_at_binding(&f.program));
	free_model(&f.model);
}

int main(void)
{
	test_texts();
	test_large();
	test_types();
	test_off();
	test_shared();
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		test_model(models[i].path, models[i].sizes, 0);
		test_model(models[i].path, models[i].sizes, 1u << REWRITE_FAMILY_CONSTANTS);
	}
	return tap_done();
}
