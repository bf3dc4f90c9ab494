/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mapping types, derived from index variables, and which types may be fused. */
#include "sched/plan.h"

#include <math.h>

static enum sched_mapping more_complex(enum sched_mapping a, enum sched_mapping b)
{
	return a > b ? a : b;
}

/* Whether a variable takes one value only. */
static bool has_one_value(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM && p->vars.at[var].extent == 1;
}

static bool names_var(const struct sub_use *u, int var)
{
	for (int i = 0; i < u->vars; i++)
		if (u->var[i] == var)
			return true;
	return false;
}

/* An argument that lacks one of the result's variables is repeated along it. */
static enum sched_mapping mapping_of_elementwise(const struct sub_program *p, const struct sub_value *v,
						 const struct sub_use *u)
{
	enum sched_mapping m = SCHED_ONE_TO_ONE;
	for (int i = 0; i < v->vars; i++)
		if (!names_var(u, v->var[i]))
			m = more_complex(m,
					 has_one_value(p, v->var[i]) ? SCHED_REORGANIZE : SCHED_ONE_TO_MANY);
	return m;
}

static int position_of(const struct sub_value *v, int var)
{
	int i = 0;
	while (i < v->vars && v->var[i] != var)
		i++;
	return i;
}

/* The mapping type of an ASSIGN: by the variables that its maps use and their order. */
static enum sched_mapping mapping_of_assign(const struct sub_program *p, const struct sub_value *v)
{
	enum sched_mapping m = SCHED_ONE_TO_ONE;
	bool used[SUB_MAX_VARS + 1] = {false};
	for (int i = 0, last = -1; i < v->arg[0].vars; i++) {
		if (!sub_is_arithmetic(&v->map[i]))
			return SCHED_ONE_TO_MANY;
		if (v->map[i].function == SUB_DIGIT)
			m = more_complex(m, SCHED_REORGANIZE);
		int at = v->map[i].var < 0 ? v->vars : position_of(v, v->map[i].var);
		if (at == v->vars) {
			m = more_complex(m, has_one_value(p, sub_at(p, v->arg[0].value)->var[i])
						? SCHED_REORGANIZE
						: SCHED_ONE_TO_ONE);
			continue;
		}
		m = at < last ? more_complex(m, SCHED_SHUFFLE) : m;
		last = at;
		used[at] = true;
		used[position_of(v, v->map[i].scale2 ? v->map[i].var2 : v->map[i].var)] = true;
	}
	for (int i = 0; i < v->vars; i++)
		if (!used[i])
			m = more_complex(m,
					 has_one_value(p, v->var[i]) ? SCHED_REORGANIZE : SCHED_ONE_TO_MANY);
	return m;
}

/* Whether the value reduces a variable of argument `a`. */
static bool is_reduced(const struct sub_value *v, int a)
{
	return sub_reduces(v->op) && (v->args == 1 || a > 0);
}

/* Whether every variable that a value reduces has one value. */
static bool reduces_nothing(const struct sub_program *p, const struct sub_value *v)
{
	for (int i = 0; i < v->reduced.n; i++)
		if (!has_one_value(p, v->reduced.var[i]))
			return false;
	return true;
}

enum sched_mapping sched_mapping_of(const struct sub_program *p, sub_ref r, int a)
{
	const struct sub_value *v = sub_at(p, r);
	if (is_reduced(v, a))
		return reduces_nothing(p, v) ? SCHED_REORGANIZE : SCHED_MANY_TO_MANY;
	switch (sub_class_of(v->op)) {
	case SUB_MOVE:
		return v->op == SUB_ASSIGN ? mapping_of_assign(p, v) : SCHED_ONE_TO_ONE;
	default:
		return mapping_of_elementwise(p, v, &v->arg[a]);
	}
}

/* Whether a value is a source, or data movement of one. */
static bool is_given(const struct sub_program *p, sub_ref r)
{
	while (sub_class_of(sub_at(p, r)->op) == SUB_MOVE && sub_at(p, r)->args == 1)
		r = sub_at(p, r)->arg[0].value;
	return sub_class_of(sub_at(p, r)->op) == SUB_SOURCE;
}

enum sched_mapping sched_mapping_of_value(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	enum sched_mapping m = SCHED_ONE_TO_ONE;
	bool moves = sub_class_of(v->op) == SUB_MOVE;
	for (int a = 0; a < v->args; a++)
		if (moves || is_reduced(v, a) || !is_given(p, v->arg[a].value))
			m = more_complex(m, sched_mapping_of(p, r, a));
	return m;
}

enum sched_relation sched_relation_of(enum sched_mapping first, enum sched_mapping second)
{
	enum { G = SCHED_FUSE, Y = SCHED_MAY, X = SCHED_NEVER };
	static const unsigned char table[SCHED_MAPPINGS][SCHED_MAPPINGS] = {
#define SCHED_FUSION(first, ...) [SCHED_##first] = {__VA_ARGS__},
#include "sched/fusion.def"
#undef SCHED_FUSION
	};
	return table[first][second];
}

/* --- measured costs --- */

struct cost {
	enum target_processor processor;
	enum sched_mapping first, second;
	double vectors, ratio;
};

static const struct cost costs[] = {
#define SCHED_FUSION_COST(processor, first, second, vectors, ratio)                                          \
	{TARGET_##processor, SCHED_##first, SCHED_##second, vectors, ratio},
#include "sched/fusion_cost.def"
#undef SCHED_FUSION_COST
};

enum { ROWS = sizeof costs / sizeof *costs };

/* Interpolates between two rows of one pair: the logarithm of the time of fusing relative to that of
 * storing. */
static double interpolate_cost(const struct cost *low, const struct cost *high, double vectors)
{
	double a = log(low->ratio), b = log(high->ratio);
	if (low == high)
		return a;
	double t = log(vectors / low->vectors) / log(high->vectors / low->vectors);
	return a + t * (b - a);
}

/* Finds the rows of a pair between which a number of vectors lies; false if the processor has none. In fusion_cost.def the rows
 * of a pair stand together, with rising numbers of vectors. */
static bool find_costs(enum target_processor processor, enum sched_mapping first, enum sched_mapping second, double vectors,
		       const struct cost **low, const struct cost **high)
{
	*low = *high = NULL;
	for (int i = 0; i < ROWS; i++) {
		const struct cost *c = &costs[i];
		if (c->processor != processor || c->first != first || c->second != second)
			continue;
		*low = !*low || c->vectors <= vectors ? c : *low;
		*high = !*high || (*high)->vectors < vectors ? c : *high;
	}
	return *low;
}

double sched_fusion_cost(const struct target *target, enum sched_mapping first, enum sched_mapping second, double volume)
{
	const struct cost *low, *high;
	double vectors = volume / target->lanes;
	if (!find_costs(target->known, first, second, vectors, &low, &high) &&
	    !find_costs(TARGET_PROCESSORS, first, second, vectors, &low, &high))
		return 1;
	return exp(interpolate_cost(low, high, fmin(fmax(vectors, low->vectors), high->vectors)));
}

bool sched_is_fusing_profitable(const struct target *target, enum sched_mapping first,
				enum sched_mapping second, double volume)
{
	return sched_fusion_cost(target, first, second, volume) <= 1;
}
