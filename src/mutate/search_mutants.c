/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The generator: all layouts of a few changes of the image's dimensions, from one dimension to the next.  What does not fit the
 * sizes is dropped at once, what differs at most of a few positions next; of the rest all boxes are compared, those of least work
 * first, until so many are proved that no other would be kept.
 *
 * Nothing is lost for sums of products modulo the prime: a layout is dropped for what it computes, not for its shape. */
#include "mutate/image_mutant.h"

#include <stdlib.h>

enum {
	POSITIONS = 12, /* at which a mutant is compared before its boxes are */
	QUARTER = 4,	/* moved elements for the work of a product */
	MOST_WORK = 3	/* of a mutant that is proved, compared with the original's */
};

/* A layout that is equal at a few positions. */
struct likely {
	struct mutate_layout layout;
	double work; /* without a correction */
	size_t number;
};

struct finder {
	struct sub_program *p;
	const struct mutate_site *s;
	bool exact;
	struct mutate_form *forms;
	size_t values, vars; /* of the program without mutants */
	struct mutate_search *found;
	const struct mutate_watch *watch;
	bool given_up;
	uint64_t original[POSITIONS]; /* elements of the original */
	VEC(struct likely) likely;
};

/* Whether the search goes on; once it does not, the watch is not asked again. */
static bool goes_on(struct finder *f)
{
	f->given_up = f->given_up || (f->watch->goes_on && !f->watch->goes_on(f->watch->context));
	return !f->given_up;
}

/* --- one mutant --- */

static struct mutate_form *reserve_forms(struct sub_program *p)
{
	return ARENA_ARRAY(p->arena, struct mutate_form, p->values.n + MUTATE_ROOM);
}

static void clear_forms(struct mutate_form *forms, size_t first)
{
	memset(&forms[first], 0, MUTATE_ROOM * sizeof *forms);
}

static double count_row(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->op == SUB_ACCUMULATE ? sub_reduced_elements(p, v) : sub_row_elements(p, v) / QUARTER;
}

/* The work of a row for values from `first` on; windows are not stored, and so are no work. */
static double count_work(const struct sub_program *p, size_t first)
{
	double work = 0;
	for (uint32_t i = first; i < p->values.n; i++) {
		bool windows = false;
		for (uint32_t k = i + 1; k < p->values.n; k++)
			for (int a = 1; p->values.at[k].op == SUB_ACCUMULATE && a < 3; a++)
				windows |= p->values.at[k].arg[a].value.i == i;
		work += windows ? 0 : count_row(p, (sub_ref){i});
	}
	return work;
}

static const char *prove_mutant(struct sub_program *p, const struct mutate_site *s, const struct mutate_form *forms, bool exact,
				sub_ref whole, int rounds, struct mutate_mutant *m)
{
	bool ordered = !mutate_changes_kernel(s, &m->layout);
	if (exact && !ordered)
		return "its sums have further terms, which --math exact does not allow";
	mutate_compare_by(p, forms, s->value, whole, ordered, rounds, &m->proof);
	m->same_bits = ordered && !m->proof.refused;
	if (m->proof.refused)
		return m->proof.refused;
	return m->proof.wrong * 2 > m->proof.elements ? "it differs nearly everywhere" : NULL;
}

static const char *correct_mutant(struct sub_program *p, const struct mutate_site *s, sub_ref whole, size_t first,
				  struct mutate_mutant *m, sub_ref *corrected)
{
	*corrected = mutate_correct(p, s->value, whole, &m->proof, &m->recomputed);
	if (!corrected->i || p->values.n > first + MUTATE_ROOM)
		return "its correction has too many regions";
	m->work = count_work(p, first);
	return m->recomputed * 2 > m->proof.elements ? "its correction computes most of it" : NULL;
}

/* As mutate_make, with forms of the program's values, and room for more. */
static const char *make_mutant(struct sub_program *p, const struct mutate_site *s, bool exact, int rounds, struct mutate_form *forms,
			       struct mutate_mutant *m, sub_ref *corrected)
{
	struct mutate_shape shape[TENSOR_MAX_RANK];
	size_t first = p->values.n;
	if (!mutate_find_shapes(s, &m->layout, shape))
		return "it does not fit the sizes";
	sub_ref whole = mutate_build(p, s, &m->layout, shape);
	if (!whole.i)
		return "it has too many dimensions";
	mutate_extend_forms(p, s, forms, whole);
	const char *why = prove_mutant(p, s, forms, exact, whole, rounds, m);
	return why ? why : correct_mutant(p, s, whole, first, m, corrected);
}

const char *mutate_make(struct sub_program *p, const struct mutate_site *s, bool exact, struct mutate_mutant *m,
			sub_ref *corrected)
{
	return make_mutant(p, s, exact, MUTATE_ROUNDS, reserve_forms(p), m, corrected);
}

/* --- candidates --- */

static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* An element of a value at one of a few positions, by one round. */
static uint64_t sample_at(const struct finder *f, sub_ref value, int position)
{
	const struct sub_value *y = sub_at(f->p, f->s->value);
	struct mutate_sampler s = {.p = f->p, .forms = f->forms};
	int64_t index[SUB_MAX_VARS] = {0};
	for (int k = 0; k < y->vars; k++) {
		const struct sub_var *var = &f->p->vars.at[y->var[k]];
		uint64_t number = (uint64_t)(position * SUB_MAX_VARS + k + 1) * 0x9e3779b97f4a7c15u;
		if (var->set == SUB_DIM)
			index[k] = (int64_t)(mix_bits(number) >> 33) % var->extent;
	}
	return mutate_sample(&s, value, index);
}

/* Whether a mutant equals the original at half of a few positions; those that cannot change that are left out. */
static bool is_likely(const struct finder *f, sub_ref whole)
{
	for (int i = 0, equal = 0; i < POSITIONS; i++) {
		equal += f->original[i] == sample_at(f, whole, i);
		if (2 * equal >= POSITIONS)
			return true;
		if (2 * (i + 1 - equal) > POSITIONS)
			return false;
	}
	return false;
}

/* Keeps a mutant among those of least work. */
static void keep_mutant(struct mutate_search *found, const struct mutate_mutant *m)
{
	int at = found->n < MUTATE_KEPT ? found->n++ : MUTATE_KEPT;
	while (at > 0 && found->mutant[at - 1].work > m->work) {
		if (at < MUTATE_KEPT)
			found->mutant[at] = found->mutant[at - 1];
		at--;
	}
	if (at < MUTATE_KEPT)
		found->mutant[at] = *m;
}

static void judge_layout(struct finder *f, const struct mutate_layout *l, const struct mutate_shape *shape)
{
	struct likely one = {.layout = *l, .number = f->likely.n};
	sub_ref whole = mutate_build(f->p, f->s, l, shape);
	f->found->built++;
	if (!whole.i || f->p->values.n > f->values + MUTATE_ROOM)
		return;
	mutate_extend_forms(f->p, f->s, f->forms, whole);
	if (!is_likely(f, whole))
		return;
	f->found->likely++;
	one.work = count_work(f->p, f->values);
	if (one.work <= MOST_WORK * f->found->work)
		vec_push(f->p->arena, &f->likely, one);
}

static void try_layout(struct finder *f, const struct mutate_layout *l)
{
	struct mutate_shape shape[TENSOR_MAX_RANK];
	f->found->candidates++;
	if (!goes_on(f) || !mutate_find_shapes(f->s, l, shape) || (f->exact && mutate_changes_kernel(f->s, l)))
		return;
	if (f->found->built == MUTATE_MAX_CANDIDATES) {
		f->found->ended = true;
		return;
	}
	clear_forms(f->forms, f->values);
	judge_layout(f, l, shape);
	sub_forget_values_and_vars(f->p, f->values, f->vars);
}

/* --- all layouts --- */

static const int factors[] = {
#define MUTATE_FACTOR(n) n,
#include "mutate/mutants.def"
#undef MUTATE_FACTOR
};

static bool is_factor(int64_t n)
{
	for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
		if (factors[i] == n)
			return true;
	return false;
}

/* The i-th change that is tried of a dimension; false past the last. */
static bool change_at(const struct mutate_site *s, int dim, int i, struct mutate_change *c)
{
	enum { FACTORS = sizeof factors / sizeof *factors };
	int places = MUTATE_BEFORE + s->dims, kinds = MUTATE_PIECES - 1;
	*c = (struct mutate_change){.border = i % 2};
	i /= 2;
	if (i == 0)
		return true;
	i--;
	c->piece = MUTATE_WHOLE + 1 + i % kinds;
	i /= kinds;
	int place = i % places;
	i /= places;
	c->place = place < MUTATE_BEFORE ? place : MUTATE_BEFORE;
	c->before = place < MUTATE_BEFORE ? 0 : place - MUTATE_BEFORE;
	if (i < FACTORS)
		c->by = factors[i];
	else
		c->by = is_factor(s->dim[dim].extent) ? 0 : (int)s->dim[dim].extent;
	return i <= FACTORS && c->by;
}

/* Whether a change is another one under another name, or none: parts of a dimension before itself, further images of what are
 * images already, phases of what no window reads instead of parts, images of one element. */
static bool is_idle(const struct mutate_site *s, const struct mutate_change *c, int dim)
{
	const struct mutate_dim *d = &s->dim[dim];
	bool window = d->kernel > 1 || d->step > 1, all = c->by == d->extent;
	if (c->piece == MUTATE_WHOLE)
		return false;
	return (c->piece == MUTATE_PART && c->place == MUTATE_BEFORE && c->before == dim) ||
	       (!window && c->place == MUTATE_BATCH) || (!window && c->piece == MUTATE_PHASE) || (window && all);
}

/* Whether a dimension can be changed so at all, whatever becomes of the others. */
static bool fits_alone(const struct mutate_site *s, const struct mutate_layout *l, int dim)
{
	struct mutate_layout alone = {{{false}}};
	struct mutate_shape shape[TENSOR_MAX_RANK];
	alone.of[dim] = l->of[dim];
	return !is_idle(s, &l->of[dim], dim) && (!mutate_count_changes(s, &alone) || mutate_find_shapes(s, &alone, shape));
}

static bool is_joined(const struct mutate_site *s, const struct mutate_layout *l, int dim)
{
	bool any = false;
	for (int i = 0; i < s->dims; i++)
		any |= l->of[i].piece != MUTATE_WHOLE && l->of[i].place == MUTATE_BEFORE && l->of[i].before == dim;
	return any;
}

/* Whether something is moved, and borders are of dimensions that change: others change nothing but what is stored. */
static bool moves_elements(const struct mutate_site *s, const struct mutate_layout *l)
{
	bool any = false;
	for (int i = 0; i < s->dims; i++) {
		any |= l->of[i].piece != MUTATE_WHOLE;
		if (l->of[i].border && l->of[i].piece == MUTATE_WHOLE && !is_joined(s, l, i))
			return false;
	}
	return any;
}

static void try_from(struct finder *f, struct mutate_layout *l, int dim)
{
	int changes = mutate_count_changes(f->s, l);
	if (changes > MUTATE_MAX_DEPTH || f->found->ended || f->given_up)
		return;
	if (dim == f->s->dims) {
		if (moves_elements(f->s, l))
			try_layout(f, l);
		return;
	}
	for (int i = 0; change_at(f->s, dim, i, &l->of[dim]); i++)
		if (fits_alone(f->s, l, dim))
			try_from(f, l, dim + 1);
	l->of[dim] = (struct mutate_change){.border = false};
}

static int compare_work(const void *a, const void *b)
{
	const struct likely *x = a, *y = b;
	if (x->work != y->work)
		return x->work < y->work ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Whether so many are kept of less work that this one would not be. */
static bool is_outdone(const struct mutate_search *found, const struct likely *l)
{
	return found->n == MUTATE_KEPT && l->work >= found->mutant[MUTATE_KEPT - 1].work;
}

/* Compares all boxes by one round each. */
static void compare_likely(struct finder *f)
{
	sub_ref corrected;
	if (f->likely.n)
		qsort(f->likely.at, f->likely.n, sizeof *f->likely.at, compare_work);
	for (size_t i = 0; i < f->likely.n && !is_outdone(f->found, &f->likely.at[i]) && goes_on(f); i++) {
		struct mutate_mutant m = {.layout = f->likely.at[i].layout};
		clear_forms(f->forms, f->values);
		if (!make_mutant(f->p, f->s, f->exact, 1, f->forms, &m, &corrected))
			keep_mutant(f->found, &m);
		sub_forget_values_and_vars(f->p, f->values, f->vars);
	}
}

/* Compares the mutants that are kept by all rounds; where the search is given up, the last ones keep their one round. */
static void prove_kept(struct finder *f)
{
	struct mutate_search *found = f->found;
	int n = 0;
	for (int i = 0; i < found->n; i++) {
		sub_ref corrected;
		struct mutate_mutant m = found->mutant[i];
		if (!goes_on(f) || !mutate_make(f->p, f->s, f->exact, &m, &corrected))
			found->mutant[n++] = m;
		sub_forget_values_and_vars(f->p, f->values, f->vars);
	}
	found->n = n;
}

bool mutate_find_mutants(struct sub_program *p, const struct mutate_site *s, bool exact, const struct mutate_watch *watch,
			 struct mutate_search *found)
{
	struct mutate_layout l = {{{false}}};
	struct finder f = {.p = p,
			   .s = s,
			   .exact = exact,
			   .forms = reserve_forms(p),
			   .values = p->values.n,
			   .vars = p->vars.n,
			   .found = found,
			   .watch = watch};
	*found = (struct mutate_search){.work = sub_reduced_elements(p, sub_at(p, s->value))};
	mutate_extend_forms(p, s, f.forms, s->value);
	for (int i = 0; i < POSITIONS; i++)
		f.original[i] = sample_at(&f, s->value, i);
	try_from(&f, &l, 0);
	compare_likely(&f);
	prove_kept(&f);
	return !f.given_up;
}
