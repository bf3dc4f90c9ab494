/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Forms of values: cuts and motions, propagated through each linear operator. */
#include "mutate/forms.h"
#include "mutate/image_mutant.h"

#include <math.h>

struct mutate_scope mutate_scope_of(const struct sub_program *p, const struct sub_value *v)
{
	struct mutate_scope scope = {.n = v->vars};
	(void)p;
	memcpy(scope.var, v->var, v->vars * sizeof *v->var);
	if (sub_reduces(v->op))
		for (int i = 0; i < v->reduced.n; i++)
			scope.var[scope.n++] = v->reduced.var[i];
	return scope;
}

struct mutate_scope mutate_joined_scope(const struct sub_program *p, const struct sub_value *v, int argument)
{
	struct mutate_scope scope = mutate_scope_of(p, v);
	scope.var[v->axis] = sub_joined_var(v, argument);
	return scope;
}

static struct mutate_draft begin_draft(const struct sub_program *p, const struct mutate_scope *scope)
{
	return (struct mutate_draft){.p = p, .scope = *scope};
}

/* Adds an argument under the names of a scope, whose indices of one position are shifted by `offset`. */
static void add_shifted(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_use *u,
			const struct mutate_scope *names, int shifted, int64_t offset)
{
	const struct mutate_form *of = &forms[u->value.i];
	int64_t *step = ARENA_ARRAY(d->p->arena, int64_t, (size_t)u->vars * d->scope.n + 1);
	for (int i = 0; i < u->vars; i++) {
		int at = mutate_find_var(names, u->var[i]);
		step[i * d->scope.n + at] += 1;
		for (size_t c = 0; c < of->cuts[i].n; c++)
			mutate_cut(d, at, of->cuts[i].at[c] + (at == shifted ? offset : 0));
	}
	mutate_add_motions(d, sub_at(d->p, u->value), of, step);
	d->weight += of->weight;
}

static void add_argument(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_use *u)
{
	add_shifted(d, forms, u, &d->scope, -1, 0);
}

/* Adds the product of two arguments. */
static void add_product(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_use *a,
			const struct sub_use *b, double times)
{
	struct mutate_draft x = begin_draft(d->p, &d->scope), y = x;
	add_argument(&x, forms, a);
	add_argument(&y, forms, b);
	mutate_multiply_motions(&x, &y);
	for (int i = 0; i < d->scope.n; i++) {
		for (size_t c = 0; c < x.cuts[i].n; c++)
			mutate_cut(d, i, x.cuts[i].at[c]);
		for (size_t c = 0; c < y.cuts[i].n; c++)
			mutate_cut(d, i, y.cuts[i].at[c]);
	}
	for (int m = 0; m < x.motions; m++)
		if (!mutate_insert_motion(d->p, d->scope.n, d->motion, &d->motions, MUTATE_MAX_MOTIONS, &x.motion[m]))
			d->why = "too many kinds of terms";
	d->weight += x.weight * times;
	d->why = d->why ? d->why : x.why ? x.why : y.why;
}

/* --- data movement --- */

/* Makes the sum of a map's terms, those alone that `by` does not divide where it is not 0. */
static struct mutate_sum make_sum(const struct mutate_draft *d, const struct sub_map *m, int64_t by)
{
	struct mutate_sum sum = {.scale = {m->var < 0 ? 0 : m->scale, m->scale2}};
	for (int i = 0; i < 2; i++) {
		sum.scale[i] = by && sum.scale[i] % by == 0 ? 0 : sum.scale[i];
		sum.at[i] = sum.scale[i] ? mutate_find_var(&d->scope, i ? m->var2 : m->var) : 0;
	}
	return sum;
}

/* Cuts wherever a sum reaches a number that is `residue` modulo the period. */
static void cut_periodically(struct mutate_draft *d, const struct mutate_sum *sum, int64_t offset, int64_t period,
			     int64_t residue)
{
	int64_t least, most;
	mutate_bound_sum(d, sum, &least, &most);
	if (period < 1)
		return;
	int64_t first = least + offset - (least + offset - residue) % period;
	if ((most - least) / period > MUTATE_MAX_CUTS)
		d->why = "too many intervals";
	for (int64_t bound = first - period; bound <= most + offset && !d->why; bound += period)
		mutate_cut_at_bound(d, sum, bound - offset);
}

/* Cuts where the index that a map computes crosses `bound`.  A digit does so in each of its periods. */
static void cut_at_index(struct mutate_draft *d, const struct sub_map *m, int64_t bound)
{
	int64_t divisor = m->function == SUB_DIGIT ? m->divisor : 1;
	struct mutate_sum sum = make_sum(d, m, 0);
	if (m->function == SUB_DIGIT && m->modulus)
		cut_periodically(d, &sum, m->offset, divisor * m->modulus, bound * divisor);
	else
		mutate_cut_at_bound(d, &sum, bound * divisor - m->offset);
}

/* Cuts where a digit does not go on as it did: where it begins again, and where a quotient grows. */
static void cut_at_digits(struct mutate_draft *d, const struct sub_map *m)
{
	struct mutate_sum all = make_sum(d, m, 0), rest = make_sum(d, m, m->divisor);
	if (m->modulus)
		cut_periodically(d, &all, m->offset, m->divisor * m->modulus, 0);
	if (m->divisor > 1)
		cut_periodically(d, &rest, m->offset, m->divisor, 0);
}

/* Adds to a row of steps those of the index that a map computes, in a box. */
static void add_steps_of_map(const struct mutate_draft *d, const struct sub_map *m, int64_t *row)
{
	int64_t divisor = m->function == SUB_DIGIT ? m->divisor : 1;
	struct mutate_sum sum = make_sum(d, m, 0);
	for (int i = 0; i < 2; i++)
		if (sum.scale[i] && sum.scale[i] % divisor == 0)
			row[sum.at[i]] += sum.scale[i] / divisor;
}

static void move_argument(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_value *v)
{
	const struct sub_value *from = sub_at(d->p, v->arg[0].value);
	const struct mutate_form *of = &forms[v->arg[0].value.i];
	int64_t *step = ARENA_ARRAY(d->p->arena, int64_t, (size_t)from->vars * d->scope.n + 1);
	for (int i = 0; i < from->vars && !d->why; i++) {
		const struct sub_map *m = &v->map[i];
		if (m->function == SUB_DIGIT)
			cut_at_digits(d, m);
		for (size_t c = 0; c < of->cuts[i].n && !d->why; c++)
			cut_at_index(d, m, of->cuts[i].at[c]);
		if (sub_map_leaves(d->p, v, i)) {
			cut_at_index(d, m, 0);
			cut_at_index(d, m, d->p->vars.at[from->var[i]].extent);
		}
		add_steps_of_map(d, m, step + i * d->scope.n);
	}
	mutate_add_motions(d, from, of, step);
	d->weight += of->weight;
	if (v->fills && v->fill != 0)
		mutate_add_number(d, v->fill);
}

/* The first argument, and the second one behind the seam. */
static void join_arguments(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_value *v)
{
	int64_t seam = d->p->vars.at[sub_joined_var(v, 0)].extent;
	for (int a = 0; a < 2; a++) {
		struct mutate_scope names = mutate_joined_scope(d->p, v, a);
		add_shifted(d, forms, &v->arg[a], &names, v->axis, a ? seam : 0);
	}
	mutate_cut(d, v->axis, seam);
}

/* --- values --- */

static bool is_small_number(double x)
{
	return x == trunc(x) && fabs(x) <= MUTATE_MAX_NUMBER;
}

static bool is_moderate(int64_t x)
{
	return x > -INT32_MAX && x < INT32_MAX;
}

/* Whether what is computed of a map of dimensions fits in 64 bits. */
static bool is_of_moderate_size(const struct sub_program *p, const struct sub_map *m)
{
	int64_t least, most;
	return is_moderate(m->offset) && is_moderate(m->scale) && is_moderate(m->scale2) && is_moderate(m->divisor) &&
	       is_moderate(m->modulus) && sub_map_range(p, m, &least, &most) && is_moderate(least) && is_moderate(most);
}

/* Why an operator is not linear whatever its arguments are, NULL = it may be. */
static const char *refuse_operator(const struct sub_program *p, const struct sub_value *v)
{
	if (v->dtype != DTYPE_F32)
		return "not f32";
	if (v->op == SUB_SUM && sub_reduces_ragged(p, v))
		return "a sum over edges or members";
	if (v->op == SUB_ACCUMULATE && sub_reduces_ragged(p, v))
		return "a sum over edges or members";
	if (v->op != SUB_ASSIGN)
		return NULL;
	for (int i = 0; i < v->arg[0].vars; i++) {
		bool dim = p->vars.at[sub_at(p, v->arg[0].value)->var[i]].set == SUB_DIM;
		if (dim ? !sub_is_arithmetic(&v->map[i]) : !sub_is_identity(&v->map[i]))
			return "an index of the structure";
		if (dim && !is_of_moderate_size(p, &v->map[i]))
			return "an index that may be too large";
	}
	return v->fills && !is_small_number(v->fill) ? "a border of a number that is not small" : NULL;
}

/* Adds what a linear operator computes; false if it is none. */
static bool add_value(struct mutate_draft *d, const struct mutate_form *forms, const struct sub_value *v)
{
	switch (v->op) {
	case SUB_CONST:
		if (is_small_number(v->constant))
			mutate_add_number(d, v->constant);
		return is_small_number(v->constant);
	case SUB_NEG:
	case SUB_NOP:
		add_argument(d, forms, &v->arg[0]);
		return true;
	case SUB_SUM:
		add_argument(d, forms, &v->arg[0]);
		d->weight *= sub_reduced_extent(d->p, v);
		return true;
	case SUB_ADD:
		add_argument(d, forms, &v->arg[0]);
		add_argument(d, forms, &v->arg[1]);
		return true;
	case SUB_MULTIPLY:
		add_product(d, forms, &v->arg[0], &v->arg[1], 1);
		return true;
	case SUB_FMA:
		add_product(d, forms, &v->arg[0], &v->arg[1], 1);
		add_argument(d, forms, &v->arg[2]);
		return true;
	case SUB_ACCUMULATE:
		add_product(d, forms, &v->arg[1], &v->arg[2], sub_reduced_extent(d->p, v));
		add_argument(d, forms, &v->arg[0]);
		return true;
	case SUB_SELECT:
		if (!mutate_cut_at_condition(d, &v->arg[0]))
			return false;
		add_argument(d, forms, &v->arg[1]);
		add_argument(d, forms, &v->arg[2]);
		return true;
	case SUB_ASSIGN:
		move_argument(d, forms, v);
		return true;
	case SUB_COND:
		join_arguments(d, forms, v);
		return true;
	default:
		return false;
	}
}

/* The form of a value that counts as unknown. */
static void make_leaf(const struct sub_program *p, sub_ref r, const char *why, struct mutate_form *form)
{
	const struct sub_value *v = sub_at(p, r);
	int64_t *step = ARENA_ARRAY(p->arena, int64_t, (size_t)v->vars * v->vars + 1);
	for (int i = 0; i < v->vars; i++)
		step[i * v->vars + i] = 1;
	*form = (struct mutate_form){.kind = MUTATE_LEAF, .why = why, .motions = 1, .weight = 1};
	form->motion[0].factors = 1;
	form->motion[0].factor = ARENA_NEW(p->arena, struct mutate_factor);
	form->motion[0].factor[0] = (struct mutate_factor){r, step};
}

static void find_form(const struct sub_program *p, struct mutate_form *forms, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	struct mutate_scope scope = mutate_scope_of(p, v);
	struct mutate_draft d = begin_draft(p, &scope);
	d.why = refuse_operator(p, v);
	bool linear = !d.why && add_value(&d, forms, v);
	if (linear && !d.why && d.weight >= (double)SUB_FIELD_PRIME)
		d.why = "coefficients that may be too large";
	if (!linear || d.why) {
		make_leaf(p, r, linear || v->op == SUB_SUM || v->op == SUB_ASSIGN ? d.why : NULL, &forms[r.i]);
		return;
	}
	forms[r.i] = (struct mutate_form){.kind = MUTATE_LINEAR, .weight = d.weight};
	memcpy(forms[r.i].cuts, d.cuts, v->vars * sizeof *d.cuts);
	mutate_take_motions(&d, v->vars, &forms[r.i]);
}

struct mutate_form *mutate_find_forms(const struct sub_program *p)
{
	struct mutate_form *forms = ARENA_ARRAY(p->arena, struct mutate_form, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++)
		find_form(p, forms, (sub_ref){i});
	return forms;
}

/* Finds the form of a value after those of its arguments. */
static void need_form(const struct sub_program *p, struct mutate_form *forms, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	if (forms[r.i].kind != MUTATE_UNKNOWN)
		return;
	for (int a = 0; a < v->args; a++)
		need_form(p, forms, v->arg[a].value);
	find_form(p, forms, r);
}

void mutate_find_forms_over(const struct sub_program *p, const sub_ref *leaf, int n, struct mutate_form *forms, sub_ref r)
{
	for (int i = 0; i < n; i++)
		if (forms[leaf[i].i].kind == MUTATE_UNKNOWN)
			make_leaf(p, leaf[i], NULL, &forms[leaf[i].i]);
	need_form(p, forms, r);
}

void mutate_extend_forms(const struct sub_program *p, const struct mutate_site *s, struct mutate_form *forms, sub_ref mutant)
{
	const struct sub_value *y = sub_at(p, s->value);
	sub_ref a = y->arg[s->operand].value;
	const sub_ref leaves[] = {y->arg[0].value, y->arg[3 - s->operand].value, sub_at(p, a)->arg[0].value};
	mutate_find_forms_over(p, leaves, 3, forms, s->value);
	mutate_find_forms_over(p, leaves, 3, forms, mutant);
}

int mutate_list_leaves(const struct sub_program *p, const struct mutate_form *forms, sub_ref r, sub_ref *leaf)
{
	int n = 0;
	for (uint32_t i = 1; i < p->values.n; i++) {
		bool used = false;
		for (int m = 0; m < forms[r.i].motions; m++)
			for (int f = 0; f < forms[r.i].motion[m].factors; f++)
				used |= forms[r.i].motion[m].factor[f].leaf.i == i;
		if (used)
			leaf[n++] = (sub_ref){i};
	}
	return n;
}

/* Marks the linear operators that a value is computed by. */
static int mark_operators(const struct sub_program *p, const struct mutate_form *forms, sub_ref r, bool *seen)
{
	const struct sub_value *v = sub_at(p, r);
	int n = 1;
	if (seen[r.i] || forms[r.i].kind != MUTATE_LINEAR || sub_class_of(v->op) == SUB_SOURCE)
		return 0;
	seen[r.i] = true;
	for (int a = 0; a < v->args; a++)
		n += mark_operators(p, forms, v->arg[a].value, seen);
	return n;
}

int mutate_count_operators(const struct sub_program *p, const struct mutate_form *forms, sub_ref r, bool *seen)
{
	memset(seen, 0, p->values.n * sizeof *seen);
	return mark_operators(p, forms, r, seen);
}

long mutate_count_boxes(const struct sub_program *p, const struct mutate_form *form, sub_ref r)
{
	long n = 1;
	for (int i = 0; i < sub_at(p, r)->vars && n <= MUTATE_MAX_BOXES; i++)
		n *= (long)form->cuts[i].n + 1;
	return n;
}
