/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model over one forest, compiled and run again and again with other options: each run must give the bits
 * of the first. */
#ifndef ESPALIER_TESTS_MODELS_AGREE_H
#define ESPALIER_TESTS_MODELS_AGREE_H

#include "jit/jit.h"
#include "tests/models/reference.h"

#include <limits.h>

struct setting {
	const struct test_model *model;
	struct test_forest forest;
	double *expected; /* what the first run gave */
	int64_t count;
};

static inline bool same_bits(const struct setting *s, const struct test_run *r)
{
	int64_t count;
	double *all = gather_outputs(r, s->forest.nodes, s->forest.minibatch.forest.inputs, &count);
	bool same = count == s->count && memcmp(all, s->expected, count * sizeof *all) == 0;
	for (int64_t i = 0; !same && i < count; i++)
		if (memcmp(&all[i], &s->expected[i], sizeof *all) != 0) {
			printf("# element %lld is %.9g or %lld, not %.9g or %lld\n", (long long)i, all[i],
			       (long long)sub_integer(all[i]), s->expected[i],
			       (long long)sub_integer(s->expected[i]));
			break;
		}
	free(all);
	return same;
}

typedef bool compile_function(struct test_run *, const struct test_model *, const struct option_texts *);

/* Columns in pieces at random: each block is computed by itself. */
static inline bool agrees_by(compile_function *compile, struct setting *s, const struct option_texts *o)
{
	struct test_run r;
	bool ok = compile(&r, s->model, o);
	if (ok)
		cut_columns(&r);
	ok = ok && open_run(&r) && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r);
	end_run(&r);
	return ok;
}

static inline bool agrees(struct setting *s, const struct option_texts *o)
{
	return agrees_by(compile_run, s, o);
}

/* Divides ranges of the smallest models as if they were large. */
static inline void divide_all(struct test_run *r)
{
	struct image_step *step = ARENA_ARRAY(&r->arena, struct image_step, r->image.steps);
	for (int i = 0; i < r->image.steps; i++) {
		step[i] = r->image.step[i];
		step[i].operations = step[i].operations ? INT_MAX : 0;
	}
	r->image.step = step;
}

/* Requests a strategy for all steps, of sessions that are made from now on. */
static inline void request_strategy(struct test_run *r, enum image_strategy strategy)
{
	struct image_step *step = ARENA_ARRAY(&r->arena, struct image_step, r->image.steps);
	for (int i = 0; i < r->image.steps; i++) {
		step[i] = r->image.step[i];
		step[i].strategy = strategy;
	}
	r->image.step = step;
}

/* The same, and makes the session of the run anew. */
static inline bool request_for_session(struct test_run *r, enum image_strategy strategy)
{
	request_strategy(r, strategy);
	rt_session_free(&r->session);
	return rt_session_init(&r->session, &allocator_default, &r->image, &r->diags);
}

/* What the first run over the setting's forest gives. */
static inline bool begin_setting(struct setting *s, struct test_run *base)
{
	if (!run_forest(base, &s->forest.minibatch))
		return false;
	s->expected = gather_outputs(base, s->forest.nodes, s->forest.minibatch.forest.inputs, &s->count);
	return true;
}

/* Also of one that was not begun, all zero. */
static inline void end_setting(struct setting *s)
{
	free(s->expected);
	if (s->model)
		free_forest(&s->forest);
}

/* Whether the model with such a schedule is refused, for this reason and no other. */
static inline bool refuses_schedule(const char *path, const char *sizes, const char *schedule,
				    const char *why)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct test_model t = {0};
	struct test_run r = {0};
	bool refused = load_model(&t, path, sizes) && !compile_run(&r, &t, &o) && r.diags.n == 1 &&
		       r.diags.at[0].id == DIAG_ILLEGAL_SCHEDULE && strstr(r.diags.at[0].message, why);
	end_run(&r);
	free_model(&t);
	return refused;
}

/* --- against the oracle --- */

static inline int64_t elements_of(const struct sub_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

static inline const void *make_param(struct arena *a, enum dtype dtype, int param, int64_t n)
{
	int64_t *elements = ARENA_ARRAY(a, int64_t, n);
	put_elements(dtype, param, 0, n, elements);
	return elements;
}

/* The oracle's results in the order of gather_outputs. */
static inline double *ask_oracle(struct setting *s, struct arena *a, const struct lin_order *order)
{
	const struct lin_forest *f = &s->forest.minibatch.forest;
	struct sub_program p;
	struct diags d;
	diags_init(&d, &allocator_default);
	sub_init(&p, a, "oracle");
	if (!sub_lower_model(&p, s->model->model, s->model->sizes, SUB_AT_MODEL, &d))
		return NULL;
	const void **params = ARENA_ARRAY(a, const void *, p.params.n);
	double **states = ARENA_ARRAY(a, double *, p.states.n),
	       **outputs = ARENA_ARRAY(a, double *, p.outputs.n + 1);
	for (size_t i = 0; i < p.params.n; i++) {
		int64_t n = elements_of(&p.params.at[i]);
		params[i] = make_param(a, p.params.at[i].dtype, i, n);
	}
	for (size_t i = 0; i < p.states.n; i++)
		states[i] = ARENA_ARRAY(a, double, f->nodes *elements_of(&p.states.at[i]));
	double *all = ARENA_ARRAY(a, double, s->count);
	int64_t at = 0;
	for (size_t i = 0; i < p.outputs.n; i++) {
		outputs[i] = all + at;
		at += (p.outputs.at[i].at_root ? f->inputs : f->nodes) * elements_of(&p.outputs.at[i].row);
	}
	struct sub_forest forest = {f->nodes, f->inputs,    f->child_begin, f->children,
				    f->root,  order->order, s->forest.data, f->input_begin};
	sub_evaluate(&p, &forest, params, states, outputs, a);
	diags_free(&d);
	return at == s->count ? all : NULL;
}

/* Integers are equal, or infinitely far. */
static inline double error_of(enum dtype dtype, double wanted, double found)
{
	if (dtype == DTYPE_F32)
		return fabs(found - wanted) / (1 + fabs(wanted));
	return sub_integer(found) == sub_integer(wanted) ? 0 : INFINITY;
}

static inline double distance(const struct setting *s, const struct test_run *r, const double *all)
{
	double worst = all ? 0 : INFINITY;
	for (int64_t i = 0; all && i < s->count; i++) {
		enum dtype dtype = type_of_result(r, s->forest.nodes, s->forest.minibatch.forest.inputs, i);
		double error = error_of(dtype, all[i], s->expected[i]);
		worst = error > worst || isnan(error) ? error : worst;
	}
	return worst;
}

/* Near to what the oracle of the sub-operators gives, and to what the model's own graph says. */
static inline bool near_oracle(struct setting *s, const struct test_run *r, double tolerance, double *worst)
{
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	*worst = INFINITY;
	if (!arena_guard(&a, &jump)) {
		double graph = distance(s, r, refer_outputs(&a, s->model, &s->forest, s->count));
		*worst = distance(s, r, ask_oracle(s, &a, &r->session.order));
		*worst = graph < *worst ? *worst : graph;
	}
	arena_free(&a);
	return *worst < tolerance;
}

#endif
