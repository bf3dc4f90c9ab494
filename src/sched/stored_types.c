/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The types in which intermediates are stored.  An integer whose range fits a narrower type than i32 is stored in that:
 * the results of a quantisation as bytes.  No bit of a result changes, as each number is kept as it is. */
#include "rewrite/rewrite.h"
#include "sched/plan.h"

/* By preference. */
static const struct {
	enum dtype dtype;
	double low, high;
} narrow_types[] = {{DTYPE_U8, 0, UINT8_MAX}, {DTYPE_I8, INT8_MIN, INT8_MAX}, {DTYPE_I16, INT16_MIN, INT16_MAX}};

static enum dtype narrowest_type(const struct rewrite_range *r)
{
	for (size_t i = 0; i < sizeof narrow_types / sizeof *narrow_types; i++)
		if (r->low >= narrow_types[i].low && r->high <= narrow_types[i].high)
			return narrow_types[i].dtype;
	return DTYPE_I32;
}

bool sched_fits_byte(const struct rewrite_range *r)
{
	enum dtype d = narrowest_type(r);
	return d == DTYPE_U8 || d == DTYPE_I8;
}

/* Whether a value of a body is an intermediate in memory, and an i32. */
static bool is_stored_integer(const struct sched_plan *plan, const struct sched_values *values, int i)
{
	return values->fact[i].stored && !values->fact[i].result &&
	       sub_at(plan->p, values->value[i])->dtype == DTYPE_I32;
}

void sched_choose_stored_types(struct sched_plan *plan, struct arena *a)
{
	static const struct rewrite_options exact = {.math = REWRITE_EXACT};
	const struct rewrite_range *range = NULL;
	enum dtype *types = ARENA_ARRAY(a, enum dtype, plan->p->values.n);
	for (size_t i = 0; i < plan->p->values.n; i++)
		types[i] = plan->p->values.at[i].dtype;
	for (size_t b = 0; b < plan->p->bodies.n; b++) {
		const struct sched_values *values = &plan->values[b];
		for (int i = 0; i < values->n; i++) {
			if (!is_stored_integer(plan, values, i))
				continue;
			range = range ? range : rewrite_find_ranges(plan->p, &exact, a);
			types[values->value[i].i] = narrowest_type(&range[values->value[i].i]);
		}
	}
	plan->stored_types = types;
}
