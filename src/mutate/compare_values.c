/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whether two linear values are equal, box by box.
 *
 * In a box of both, let x be the vector of steps along the variables of a motion, as a point of a space of formal powers:
 * the terms of one motion at the box's first position plus v are those at the first position times x^v.  The difference of
 * the two values there is a sum of H_k x_k^v over the K motions of both that have the same leaves.  Any K points are told
 * apart by polynomials of degree K-1, so if the sum is 0 for all v of degree below K, every H_k is 0, and so is the sum
 * everywhere.  With two motions these are the first position and its neighbours along each variable: m+1 positions of m
 * variables, as in theorem 1 of the paper, which supposes that each value has one motion.  Along a variable of which a box
 * has fewer than K positions all are taken, and the argument is used for the others.
 *
 * At a position the difference is a polynomial in the elements of leaves, of degree d at most, whose coefficients are whole
 * numbers below the prime (mutate_form.weight); if it is not zero it vanishes at a random point with probability d/p at
 * most (Schwartz and Zippel).  Where order counts, the n-th last term of a sum has the n-th power of another random number as a
 * factor, which is the same in all of a box; the degree grows by the length of the sum. */
#include "mutate/forms.h"

#include <math.h>

struct comparer {
	const struct sub_program *p;
	const struct mutate_form *forms;
	sub_ref value[2];
	int vars;
	int64_t extent[SUB_MAX_VARS];
	mutate_cuts cuts[SUB_MAX_VARS]; /* of both */
	struct mutate_comparison *c;
	bool ordered;
	int rounds;
	long steps;
};

double mutate_bound_error(const struct mutate_comparison *c)
{
	return pow(c->degree / (double)SUB_FIELD_PRIME, c->rounds);
}

static const struct sub_var *var_at(const struct sub_program *p, sub_ref r, int i)
{
	return &p->vars.at[sub_at(p, r)->var[i]];
}

static bool has_extent(const struct sub_var *v)
{
	return v->set == SUB_DIM || v->set == SUB_ROW;
}

static bool same_shape(const struct comparer *k)
{
	const struct sub_value *a = sub_at(k->p, k->value[0]), *b = sub_at(k->p, k->value[1]);
	bool same = a->vars == b->vars;
	for (int i = 0; same && i < a->vars; i++)
		same = sub_same_range(k->p, a->var[i], b->var[i]);
	return same;
}

/* The most motions of the same leaves, of both values. */
static int count_classes(const struct comparer *k)
{
	struct mutate_motion all[2 * MUTATE_MAX_MOTIONS];
	int n = 0, most = 2;
	for (int v = 0; v < 2; v++)
		for (int m = 0; m < k->forms[k->value[v].i].motions; m++)
			mutate_insert_motion(k->p, k->vars, all, &n, 2 * MUTATE_MAX_MOTIONS,
					     &k->forms[k->value[v].i].motion[m]);
	for (int i = 0; i < n; i++) {
		int like = 0;
		for (int j = 0; j < n; j++)
			like += mutate_same_leaves(&all[i], &all[j]);
		most = like > most ? like : most;
	}
	return most;
}

static int find_degree(const struct comparer *k)
{
	int most = 0;
	for (int v = 0; v < 2; v++)
		for (int m = 0; m < k->forms[k->value[v].i].motions; m++) {
			int factors = k->forms[k->value[v].i].motion[m].factors;
			most = factors > most ? factors : most;
		}
	return most;
}

/* How many terms a sum and those that it begins with add. */
static double count_terms(const struct comparer *k, sub_ref r)
{
	double n = 0;
	while (sub_at(k->p, r)->op == SUB_ACCUMULATE && k->forms[r.i].kind == MUTATE_LINEAR) {
		n += sub_reduced_extent(k->p, sub_at(k->p, r));
		r = sub_at(k->p, r)->arg[0].value;
	}
	return n;
}

/* Joins the cuts of both values, by a draft over the variables of the first. */
static void join_cuts(struct comparer *k)
{
	struct mutate_draft d = {.p = k->p, .scope = mutate_scope_of(k->p, sub_at(k->p, k->value[0]))};
	for (int v = 0; v < 2; v++)
		for (int i = 0; i < k->vars; i++) {
			const mutate_cuts *cuts = &k->forms[k->value[v].i].cuts[i];
			for (size_t c = 0; c < cuts->n; c++)
				mutate_cut(&d, i, cuts->at[c]);
		}
	memcpy(k->cuts, d.cuts, sizeof k->cuts);
	k->c->refused = d.why;
}

static const char *refuse_pair(const struct comparer *k)
{
	double weight = 0;
	for (int v = 0; v < 2; v++) {
		if (k->forms[k->value[v].i].kind != MUTATE_LINEAR)
			return "not linear";
		weight += k->forms[k->value[v].i].weight;
	}
	if (!same_shape(k))
		return "of other shapes";
	return weight >= (double)SUB_FIELD_PRIME ? "coefficients that may be too large" : NULL;
}

/* --- a box --- */

static bool equal_at(struct comparer *k, const int64_t *index)
{
	k->c->positions++;
	for (uint64_t round = 0; round < (uint64_t)k->rounds; round++) {
		uint64_t x[2];
		for (int v = 0; v < 2; v++) {
			struct mutate_sampler s = {.p = k->p, .forms = k->forms, .round = round, .ordered = k->ordered, .steps = k->steps};
			x[v] = mutate_sample(&s, k->value[v], index);
			k->steps = s.steps;
		}
		if (k->steps >= MUTATE_MAX_STEPS)
			k->c->refused = "too many elements to compute";
		if (x[0] != x[1] || k->c->refused)
			return false;
	}
	return true;
}

/* Tries all positions of a box from variable i on whose distance from the first one is `degree` at most, those along short
 * variables not counted. */
static bool equal_from(struct comparer *k, const struct mutate_box *box, int i, int degree, int64_t *index)
{
	if (i == k->vars)
		return equal_at(k, index);
	int64_t extent = box->end[i] - box->first[i];
	bool is_short = extent < k->c->classes;
	for (int64_t at = 0; at < extent && (is_short || at <= degree); at++) {
		index[i] = box->first[i] + at;
		if (!equal_from(k, box, i + 1, is_short ? degree : degree - (int)at, index))
			return false;
	}
	return true;
}

static bool continues_box(const struct mutate_box *a, const struct mutate_box *b, int vars, int along)
{
	for (int i = 0; i < vars; i++)
		if (i != along && (a->first[i] != b->first[i] || a->end[i] != b->end[i]))
			return false;
	return a->end[along] == b->first[along];
}

/* Joins boxes that are neighbours along one variable after the other, the last one first. */
static void join_boxes(struct mutate_comparison *c)
{
	for (int along = c->vars; along-- > 0;) {
		size_t n = 0;
		for (size_t i = 0; i < c->differ.n; i++) {
			size_t k = 0;
			while (k < n && !continues_box(&c->differ.at[k], &c->differ.at[i], c->vars, along))
				k++;
			if (k < n)
				c->differ.at[k].end[along] = c->differ.at[i].end[along];
			else
				c->differ.at[n++] = c->differ.at[i];
		}
		c->differ.n = n;
	}
}

/* The elements of a box in a row. */
static double count_elements(const struct comparer *k, const struct mutate_box *box)
{
	double n = 1;
	for (int i = 0; i < k->vars; i++)
		if (has_extent(var_at(k->p, k->value[0], i)))
			n *= (double)(box->end[i] - box->first[i]);
	return n;
}

static void compare_box(struct comparer *k, const struct mutate_box *box)
{
	int64_t index[SUB_MAX_VARS] = {0};
	k->c->boxes++;
	if (equal_from(k, box, 0, k->c->classes - 1, index))
		return;
	vec_push(k->p->arena, &k->c->differ, *box);
	k->c->wrong += count_elements(k, box);
}

/* Compares all boxes from variable i on. */
static void compare_boxes_from(struct comparer *k, int i, struct mutate_box *box)
{
	if (i == k->vars) {
		compare_box(k, box);
		return;
	}
	for (size_t c = 0; c <= k->cuts[i].n && !k->c->refused; c++) {
		box->first[i] = c ? k->cuts[i].at[c - 1] : 0;
		box->end[i] = c < k->cuts[i].n ? k->cuts[i].at[c] : k->extent[i];
		compare_boxes_from(k, i + 1, box);
	}
}

static void set_extents(struct comparer *k)
{
	struct mutate_box all = {0};
	for (int i = 0; i < k->vars; i++) {
		const struct sub_var *v = var_at(k->p, k->value[0], i);
		k->extent[i] = has_extent(v) ? v->extent : INT32_MAX;
		all.end[i] = k->extent[i];
	}
	k->c->elements = count_elements(k, &all);
}

static bool too_many_boxes(const struct comparer *k)
{
	double boxes = 1;
	for (int i = 0; i < k->vars; i++)
		boxes *= (double)k->cuts[i].n + 1;
	return boxes > MUTATE_MAX_BOXES;
}

void mutate_compare_by(const struct sub_program *p, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
		       bool ordered, int rounds, struct mutate_comparison *c)
{
	struct comparer k = {.p = p, .forms = forms, .value = {original, mutant}, .c = c, .ordered = ordered, .rounds = rounds};
	struct mutate_box box = {0};
	*c = (struct mutate_comparison){.rounds = rounds};
	c->refused = refuse_pair(&k);
	if (c->refused)
		return;
	c->vars = k.vars = sub_at(p, original)->vars;
	join_cuts(&k);
	c->classes = count_classes(&k);
	c->degree = find_degree(&k) + (ordered ? (int)fmin(count_terms(&k, original), INT32_MAX / 2) : 0);
	set_extents(&k);
	if (!c->refused && too_many_boxes(&k))
		c->refused = "too many boxes";
	if (!c->refused)
		compare_boxes_from(&k, 0, &box);
	join_boxes(c);
}

void mutate_compare(const struct sub_program *p, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
		    struct mutate_comparison *c)
{
	mutate_compare_by(p, forms, original, mutant, false, MUTATE_ROUNDS, c);
}
