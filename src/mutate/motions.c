/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How the factors of terms move along index variables. */
#include "mutate/forms.h"

static size_t count_steps(const struct sub_program *p, sub_ref leaf, int vars)
{
	return (size_t)sub_at(p, leaf)->vars * vars;
}

bool mutate_same_leaves(const struct mutate_motion *a, const struct mutate_motion *b)
{
	for (int f = 0; f < a->factors && f < b->factors; f++)
		if (a->factor[f].leaf.i != b->factor[f].leaf.i)
			return false;
	return a->factors == b->factors;
}

static bool same_motion(const struct sub_program *p, int vars, const struct mutate_motion *a,
			const struct mutate_motion *b)
{
	if (!mutate_same_leaves(a, b))
		return false;
	for (int f = 0; f < a->factors; f++) {
		size_t n = count_steps(p, a->factor[f].leaf, vars);
		if (n && memcmp(a->factor[f].step, b->factor[f].step, n * sizeof *a->factor[f].step) != 0)
			return false;
	}
	return true;
}

bool mutate_insert_motion(const struct sub_program *p, int vars, struct mutate_motion *list, int *n, int room,
			  const struct mutate_motion *m)
{
	for (int i = 0; i < *n; i++)
		if (same_motion(p, vars, &list[i], m))
			return true;
	if (*n == room)
		return false;
	list[(*n)++] = *m;
	return true;
}

static void insert_motion(struct mutate_draft *d, const struct mutate_motion *m)
{
	if (!mutate_insert_motion(d->p, d->scope.n, d->motion, &d->motions, MUTATE_MAX_MOTIONS, m))
		d->why = "too many kinds of terms";
}

void mutate_add_number(struct mutate_draft *d, double number)
{
	const struct mutate_motion none = {0};
	insert_motion(d, &none);
	d->weight += number < 0 ? -number : number;
}

/* The steps of a factor after those of the argument's variables: their product as matrices.  Along a variable of one index
 * a step may be any number, and overflow. */
static struct mutate_factor move_factor(const struct mutate_draft *d, const struct mutate_factor *f, int vars,
					const int64_t *step)
{
	int dims = sub_at(d->p, f->leaf)->vars, n = d->scope.n;
	uint64_t *moved = ARENA_ARRAY(d->p->arena, uint64_t, (size_t)dims * n + 1);
	for (int dim = 0; dim < dims; dim++)
		for (int i = 0; i < vars; i++)
			for (int j = 0; j < n; j++)
				moved[dim * n + j] += (uint64_t)f->step[dim * vars + i] * (uint64_t)step[i * n + j];
	return (struct mutate_factor){f->leaf, (const int64_t *)moved};
}

void mutate_add_motions(struct mutate_draft *d, const struct sub_value *v, const struct mutate_form *of,
			const int64_t *step)
{
	for (int m = 0; m < of->motions; m++) {
		struct mutate_motion moved = {.factors = of->motion[m].factors};
		moved.factor = ARENA_ARRAY(d->p->arena, struct mutate_factor, moved.factors + 1);
		for (int f = 0; f < moved.factors; f++)
			moved.factor[f] = move_factor(d, &of->motion[m].factor[f], v->vars, step);
		insert_motion(d, &moved);
	}
}

/* Merges the factors of two motions by leaf; false if they share one. */
static bool merge_factors(struct arena *arena, const struct mutate_motion *a, const struct mutate_motion *b,
			  struct mutate_motion *to)
{
	to->factor = ARENA_ARRAY(arena, struct mutate_factor, a->factors + b->factors + 1);
	to->factors = 0;
	for (int i = 0, j = 0; i < a->factors || j < b->factors;) {
		if (i < a->factors && j < b->factors && a->factor[i].leaf.i == b->factor[j].leaf.i)
			return false;
		bool first = j == b->factors || (i < a->factors && a->factor[i].leaf.i < b->factor[j].leaf.i);
		to->factor[to->factors++] = first ? a->factor[i++] : b->factor[j++];
	}
	return true;
}

void mutate_multiply_motions(struct mutate_draft *d, const struct mutate_draft *by)
{
	struct mutate_draft product = *d;
	product.motions = 0;
	for (int i = 0; i < d->motions; i++)
		for (int j = 0; j < by->motions; j++) {
			struct mutate_motion m;
			if (!merge_factors(d->p->arena, &d->motion[i], &by->motion[j], &m))
				product.why = "a product of a value with itself";
			else
				insert_motion(&product, &m);
		}
	product.weight = d->weight * by->weight;
	*d = product;
}

/* The steps of a factor along the first variables of a scope. */
static struct mutate_factor narrow_factor(const struct mutate_draft *d, const struct mutate_factor *f, int vars)
{
	int dims = sub_at(d->p, f->leaf)->vars;
	int64_t *step = ARENA_ARRAY(d->p->arena, int64_t, (size_t)dims * vars + 1);
	for (int dim = 0; dim < dims; dim++)
		for (int i = 0; i < vars; i++)
			step[dim * vars + i] = f->step[dim * d->scope.n + i];
	return (struct mutate_factor){f->leaf, step};
}

void mutate_take_motions(const struct mutate_draft *d, int vars, struct mutate_form *form)
{
	form->motions = 0;
	for (int m = 0; m < d->motions; m++) {
		struct mutate_motion narrow = {.factors = d->motion[m].factors};
		narrow.factor = ARENA_ARRAY(d->p->arena, struct mutate_factor, narrow.factors + 1);
		for (int f = 0; f < narrow.factors; f++)
			narrow.factor[f] = narrow_factor(d, &d->motion[m].factor[f], vars);
		mutate_insert_motion(d->p, vars, form->motion, &form->motions, MUTATE_MAX_MOTIONS, &narrow);
	}
}
