/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What mutants of a model without a structure are compared with: all elements of its outputs, of random leaves, modulo the prime, by
 * the evaluator of subop/, which proves no mutant. */
#ifndef ESPALIER_TESTS_MUTATE_ORACLE_H
#define ESPALIER_TESTS_MUTATE_ORACLE_H

#include "rewrite/rewrite.h"
#include "tests/models/agree.h"

enum { ORACLE_PARAMS = 16, ORACLE_INPUTS = 2 };

struct oracle {
	struct sub_program p; /* contracted */
	const void *params[ORACLE_PARAMS], *inputs[ORACLE_INPUTS];
	double *expected;
};

static inline const void *draw_elements(struct arena *a, int64_t n)
{
	float *x = ARENA_ARRAY(a, float, n);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(1 + random_below(1 << 20));
	return x;
}

static inline int64_t count_outputs(const struct sub_program *p)
{
	int64_t n = 0;
	for (size_t i = 0; i < p->outputs.n; i++)
		n += elements_of(&p->outputs.at[i].row);
	return n;
}

/* All elements of all outputs, one output after the other, modulo the prime. */
static inline double *evaluate_all(const struct oracle *o, const struct sub_program *p)
{
	const int32_t none[2] = {0, 0};
	struct sub_forest f = {.nodes = 1, .inputs = 1, .child_begin = none, .children = none, .root = none, .order = none, .data = o->inputs, .input_begin = none};
	double *all = ARENA_ARRAY(p->arena, double, count_outputs(p)), **out = ARENA_ARRAY(p->arena, double *, p->outputs.n);
	int64_t at = 0;
	for (size_t i = 0; i < p->outputs.n; i++) {
		out[i] = all + at;
		at += elements_of(&p->outputs.at[i].row);
	}
	return sub_evaluate_in(SUB_FIELD, p, &f, o->params, NULL, out, p->arena) ? all : NULL;
}

/* Lowers and contracts a model, draws its leaves, and evaluates it. */
static inline bool open_oracle(struct oracle *o, struct test_model *t)
{
	struct sub_program lowered;
	sub_init(&lowered, &t->arena, "m");
	sub_init(&o->p, &t->arena, "m");
	if (!sub_lower_model(&lowered, t->model, t->sizes, SUB_AT_MODEL, &t->diags))
		return false;
	rewrite_contract(&o->p, &lowered, NULL, NULL);
	for (size_t i = 0; i < o->p.params.n; i++)
		o->params[i] = draw_elements(&t->arena, elements_of(&o->p.params.at[i]));
	for (size_t i = 0; i < o->p.inputs.n; i++)
		o->inputs[i] = draw_elements(&t->arena, elements_of(&o->p.inputs.at[i].row));
	o->expected = evaluate_all(o, &o->p);
	return o->expected != NULL;
}

/* Whether a program computes what the original does, at every element. */
static inline bool agrees_with_oracle(const struct oracle *o, const struct sub_program *p, struct diags *diags)
{
	double *found = sub_verify(p, diags) ? evaluate_all(o, p) : NULL;
	return found && memcmp(found, o->expected, (size_t)count_outputs(&o->p) * sizeof *found) == 0;
}

#endif
