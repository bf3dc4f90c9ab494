/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A check of a comparison: every element of both values, whatever boxes there are. */
#include "mutate/mutate.h"

static bool is_within(const struct mutate_box *box, int vars, const int64_t *index)
{
	for (int i = 0; i < vars; i++)
		if (index[i] < box->first[i] || index[i] >= box->end[i])
			return false;
	return true;
}

static bool is_called_different(const struct mutate_comparison *c, const int64_t *index)
{
	for (size_t b = 0; b < c->differ.n; b++)
		if (is_within(&c->differ.at[b], c->vars, index))
			return true;
	return false;
}

/* Steps to the next element of a row; false after the last. */
static bool step_element(const struct sub_program *p, const struct sub_value *v, int64_t *index)
{
	for (int i = v->vars; i-- > 0; index[i] = 0) {
		const struct sub_var *var = &p->vars.at[v->var[i]];
		if ((var->set == SUB_DIM || var->set == SUB_ROW) && ++index[i] < var->extent)
			return true;
	}
	return false;
}

bool mutate_compute_most(const struct sub_program *p, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
			 const struct mutate_comparison *c, double most, long most_steps, struct mutate_census *census)
{
	struct mutate_sampler s = {.p = p,
				   .forms = forms,
				   .round = MUTATE_ROUNDS,
				   .steps = MUTATE_MAX_STEPS - most_steps};
	int64_t index[SUB_MAX_VARS] = {0};
	*census = (struct mutate_census){0};
	if (c->elements > most)
		return false;
	do {
		bool differs = mutate_sample(&s, original, index) != mutate_sample(&s, mutant, index);
		census->elements++;
		census->differ += differs;
		census->missed += differs && !is_called_different(c, index);
	} while (s.steps < MUTATE_MAX_STEPS && step_element(p, sub_at(p, original), index));
	return s.steps < MUTATE_MAX_STEPS;
}

bool mutate_compute_all(const struct sub_program *p, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
			const struct mutate_comparison *c, struct mutate_census *census)
{
	return mutate_compute_most(p, forms, original, mutant, c, MUTATE_MAX_CENSUS, MUTATE_MAX_CENSUS_STEPS, census);
}
