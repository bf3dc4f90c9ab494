/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* All ways to run a program, and what the oracle says of it. */
#ifndef ESPALIER_TESTS_MODELS_VARIANTS_H
#define ESPALIER_TESTS_MODELS_VARIANTS_H

#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/sample.h"

/* What the oracle says of a program as it is computed, all operators rounded once. */
static inline double *evaluate_rounded(const struct setting *s, const struct sub_program *p,
				       const struct lin_order *order, struct arena *a)
{
	const struct lin_forest *f = &s->forest.minibatch.forest;
	const void **params = ARENA_ARRAY(a, const void *, p->params.n);
	double **states = ARENA_ARRAY(a, double *, p->states.n + 1),
	       **outputs = ARENA_ARRAY(a, double *, p->outputs.n + 1);
	double *all = ARENA_ARRAY(a, double, s->count);
	int64_t at = 0;
	for (size_t i = 0; i < p->params.n; i++) {
		float *values = ARENA_ARRAY(a, float, elements_of(&p->params.at[i]));
		read_weight(NULL, (int)i, 0, elements_of(&p->params.at[i]), values, NULL);
		params[i] = values;
	}
	for (size_t i = 0; i < p->states.n; i++)
		states[i] = ARENA_ARRAY(a, double, f->nodes *elements_of(&p->states.at[i]));
	for (size_t i = 0; i < p->outputs.n; i++) {
		outputs[i] = all + at;
		at += (p->outputs.at[i].at_root ? f->inputs : f->nodes) * elements_of(&p->outputs.at[i].row);
	}
	struct sub_forest forest = {f->nodes, f->inputs,    f->child_begin, f->children,
				    f->root,  order->order, s->forest.data, f->input_begin};
	return sub_evaluate_in(SUB_BINARY32, p, &forest, params, states, outputs, a) && at == s->count ? all
												       : NULL;
}

/* Interpreted after each pass and for a machine with matrix registers, and by each back end, for each target that runs here,
 * as far as they are in the sample: the bits of the setting. */
static inline void test_variants(struct setting *s, const char *name, struct option_texts o)
{
	static size_t turn;
	bool ok = true;
	turn++;
	for (int i = 1; ilir_pass_at(i); i++) {
		if (!in_sample(i + turn))
			continue;
		o.last_pass = ilir_pass_at(i)->name;
		ok &= agrees(s, &o);
	}
	tap_ok(ok, "%s: the same bits interpreted after passes", name);
	o.last_pass = NULL;
	const char *target = o.target;
	o.target = "amx";
	tap_ok(agrees(s, &o), "%s: the same bits interpreted for a machine with matrix registers", name);
	o.target = target; /* one back end for all targets, others for the first */
	for (int b = 0; backend_at(b); b++)
		for (int i = 0; target_at(i); i++) {
			o.backend = backend_at(b);
			o.target = target_at(i)->name;
			if (target_runs_here(target_at(i)) && (b == 0 || i == 0) && in_sample(b + i + turn))
				tap_ok(agrees(s, &o), "%s: the same bits by %s for %s", name, o.backend,
				       o.target);
		}
}

#endif
