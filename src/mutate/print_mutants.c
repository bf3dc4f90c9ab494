/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Layouts as words, and mutants with what is known of them as text. */
#include "mutate/mutant_lines.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const pieces[] = {[MUTATE_WHOLE] = "whole",
#define MUTATE_PIECE(name, spelling, meaning) [MUTATE_##name] = spelling,
#include "mutate/mutants.def"
#undef MUTATE_PIECE
				     NULL};

static const char *const places[] = {
#define MUTATE_PLACE(name, spelling, meaning) [MUTATE_##name] = spelling,
#include "mutate/mutants.def"
#undef MUTATE_PLACE
    NULL};

/* --- layouts --- */

void mutate_print_layout(const struct mutate_layout *l, struct str *to)
{
	for (int i = 0; i < TENSOR_MAX_RANK; i++) {
		const struct mutate_change *c = &l->of[i];
		if (c->border)
			str_printf(to, " border %d", i);
		if (c->piece != MUTATE_WHOLE)
			str_printf(to, " %s %d %d %s", pieces[c->piece], i, c->by, places[c->place]);
		if (c->piece != MUTATE_WHOLE && c->place == MUTATE_BEFORE)
			str_printf(to, " %d", c->before);
	}
}

bool mutate_same_layout(const struct mutate_layout *a, const struct mutate_layout *b)
{
	bool same = true;
	for (int i = 0; i < TENSOR_MAX_RANK; i++) {
		const struct mutate_change *x = &a->of[i], *y = &b->of[i];
		same &= x->border == y->border && x->piece == y->piece && x->by == y->by && x->place == y->place &&
			x->before == y->before;
	}
	return same;
}

/* The position of a word in a list that ends with NULL; -1 = it is not there. */
static int find_word(const char *const *list, const char *word)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(list[i], word) == 0)
			return i;
	return -1;
}

/* A number from `low` up to `high`; -1 = the word is none. */
static int read_number(char *const *word, int n, int at, int low, int high)
{
	char *end = "x";
	long number = at < n ? strtol(word[at], &end, 10) : 0;
	return *end == 0 && number >= low && number <= high ? (int)number : -1;
}

static struct mutate_change *read_dim(char *const *word, int n, int at, struct mutate_layout *l)
{
	int dim = read_number(word, n, at, 0, TENSOR_MAX_RANK - 1);
	return dim < 0 ? NULL : &l->of[dim];
}

/* phase 1 2 batch; returns the position of the word that is wrong, or of the one behind. */
static int read_piece(char *const *word, int n, int at, struct mutate_layout *l, bool *wrong)
{
	struct mutate_change *c = read_dim(word, n, at + 1, l);
	int place = at + 3 < n ? find_word(places, word[at + 3]) : -1;
	*wrong = true;
	if (!c || c->piece != MUTATE_WHOLE)
		return at + 1;
	c->piece = (enum mutate_piece)find_word(pieces, word[at]);
	c->by = read_number(word, n, at + 2, 2, INT32_MAX);
	c->place = (enum mutate_place)place;
	if (c->by < 0 || place < 0)
		return at + (c->by < 0 ? 2 : 3);
	if (place == MUTATE_BEFORE)
		c->before = read_number(word, n, at + 4, 0, TENSOR_MAX_RANK - 1);
	*wrong = place == MUTATE_BEFORE && c->before < 0;
	return at + 4 + (place == MUTATE_BEFORE && !*wrong);
}

/* The position of the word that is wrong, or of the last one where one is missing. */
static int place_wrong(int at, int n)
{
	return at < n ? at : n - 1;
}

int mutate_read_layout(char *const *word, int n, struct mutate_layout *l)
{
	bool wrong = false;
	*l = (struct mutate_layout){{{false}}};
	for (int at = 0; at < n;) {
		struct mutate_change *c = read_dim(word, n, at + 1, l);
		int piece = find_word(pieces, word[at]);
		if (strcmp(word[at], "border") == 0) {
			if (!c || c->border)
				return place_wrong(at + 1, n);
			c->border = true;
			at += 2;
		} else if (piece > MUTATE_WHOLE) {
			at = read_piece(word, n, at, l, &wrong);
			if (wrong)
				return place_wrong(at, n);
		} else {
			return at;
		}
	}
	return n;
}

/* --- mutants --- */

/* What was found of a site. */
struct searched {
	struct mutate_site site;
	struct mutate_search found;
};

struct printer {
	struct sub_program *p;
	const uint32_t *number; /* mutate_print_mutants */
	bool exact, every;
	const struct mutate_watch *watch;
	struct str *s;
	VEC(struct searched *) searched;
};

static void print_extents(const struct mutate_site *s, struct str *to)
{
	for (int i = 0; i < s->dims; i++)
		str_printf(to, "%s%" PRId64, i ? " x " : "", s->dim[i].extent);
}

static void print_boxes(const struct printer *t, const struct mutate_comparison *c)
{
	for (size_t b = 0; b < c->differ.n; b++) {
		str_puts(t->s, "    differs at");
		mutate_print_box(&c->differ.at[b], c->vars, t->s);
		str_puts(t->s, "\n");
	}
}

static void print_proof(const struct printer *t, const struct mutate_mutant *m)
{
	const struct mutate_comparison *c = &m->proof;
	str_printf(t->s, "    %ld box%s, %ld positions, %d round%s modulo 2^31-1, ", c->boxes, c->boxes == 1 ? "" : "es",
		   c->positions, c->rounds, c->rounds == 1 ? "" : "s");
	if (c->wrong == 0)
		str_puts(t->s, "equal");
	else
		str_printf(t->s, "%.0f of %.0f elements differ, %.0f are computed by the original", c->wrong, c->elements,
			   m->recomputed);
	str_printf(t->s, "; wrong with a probability of %.1g a position; %s\n", mutate_bound_error(c),
		   m->same_bits ? "the same bits" : "sums have further terms, which are 0");
	print_boxes(t, c);
}

/* Computes all elements of a mutant and of its correction, which the program has. */
static void print_check(const struct printer *t, const struct mutate_site *s, const struct mutate_layout *l)
{
	struct mutate_mutant m = {.layout = *l};
	struct mutate_census census;
	struct mutate_comparison none;
	struct mutate_form *forms;
	size_t values = t->p->values.n, vars = t->p->vars.n;
	sub_ref corrected;
	const char *why = mutate_make(t->p, s, t->exact, &m, &corrected);
	if (!why) {
		forms = ARENA_ARRAY(t->p->arena, struct mutate_form, t->p->values.n);
		mutate_extend_forms(t->p, s, forms, corrected);
		none = (struct mutate_comparison){.vars = m.proof.vars};
		if (mutate_compute_most(t->p, forms, s->value, corrected, &none, m.proof.elements, MUTATE_MAX_STEPS, &census))
			str_printf(t->s, "    all %ld elements computed: with the correction %ld differ\n", census.elements, census.missed);
		else
			str_puts(t->s, "    too many elements to compute all: take smaller sizes\n");
	}
	sub_forget_values_and_vars(t->p, values, vars);
}

static bool goes_on(const struct printer *t)
{
	return !t->watch->goes_on || t->watch->goes_on(t->watch->context);
}

static bool print_found(const struct printer *t, const struct sub_body *b, const struct mutate_site *s,
			const struct mutate_search *found)
{
	for (int i = 0; i < found->n; i++) {
		str_printf(t->s, "mutate %s.v%u", b->name, t->number ? t->number[s->value.i] : s->value.i);
		mutate_print_layout(&found->mutant[i].layout, t->s);
		str_printf(t->s, "  # work %.3g of %.3g\n", found->mutant[i].work, found->work);
		print_proof(t, &found->mutant[i]);
		if (t->every && !goes_on(t))
			return false;
		if (t->every)
			print_check(t, s, &found->mutant[i].layout);
	}
	return true;
}

static bool same_vars(const int *a, int n, const int *b, int m)
{
	return n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Whether two sites have the same mutants: their sums have the same variables, read the same of values of the same variables, and
 * by the same windows. */
static bool is_alike(const struct sub_program *p, const struct mutate_site *a, const struct mutate_site *b)
{
	const struct sub_value *x = sub_at(p, a->value), *y = sub_at(p, b->value);
	bool same = a->operand == b->operand && a->leading == b->leading && a->dims == b->dims && x->op == y->op &&
		    same_vars(x->var, x->vars, y->var, y->vars) && same_vars(x->reduced.var, x->reduced.n, y->reduced.var, y->reduced.n);
	for (int k = 0; same && k < x->args; k++) {
		const struct sub_value *u = sub_at(p, x->arg[k].value), *v = sub_at(p, y->arg[k].value);
		same = same_vars(x->arg[k].var, x->arg[k].vars, y->arg[k].var, y->arg[k].vars) && same_vars(u->var, u->vars, v->var, v->vars);
	}
	for (int i = 0; same && i < a->dims; i++) {
		const struct mutate_dim *d = &a->dim[i], *e = &b->dim[i];
		same = d->free == e->free && d->out == e->out && d->reduced == e->reduced && d->step == e->step &&
		       d->dilation == e->dilation && d->offset == e->offset && d->extent == e->extent && d->outs == e->outs &&
		       d->kernel == e->kernel && sub_same_map(&d->map, &e->map);
	}
	return same;
}

/* Searches the mutants of a site, or takes those of one that is alike; *ok: the search was not given up. */
static const struct mutate_search *find_mutants(struct printer *t, const struct mutate_site *site, bool *ok)
{
	*ok = true;
	for (size_t i = 0; i < t->searched.n; i++)
		if (is_alike(t->p, &t->searched.at[i]->site, site))
			return &t->searched.at[i]->found;
	struct searched *new = ARENA_ARRAY(t->p->arena, struct searched, 1);
	new->site = *site;
	*ok = mutate_find_mutants(t->p, site, t->exact, t->watch, &new->found);
	vec_push(t->p->arena, &t->searched, new);
	return &new->found;
}

/* True also for a value that has none; false if the search was given up. */
static bool print_site(struct printer *t, const struct sub_body *b, sub_ref r)
{
	struct mutate_site site;
	if (!mutate_find_site(t->p, r, &site))
		return true;
	bool ok;
	const struct mutate_search *found = find_mutants(t, &site, &ok);
	str_printf(t->s, "# %s.v%u, of an image of ", b->name, t->number ? t->number[r.i] : r.i);
	print_extents(&site, t->s);
	str_printf(t->s, ": %ld layouts, %ld of them built, %ld equal at most of a few positions; %d mutants%s\n", found->candidates,
		   found->built, found->likely, found->n, found->ended ? " (of too many layouts the first ones)" : "");
	return print_found(t, b, &site, found) && ok;
}

bool mutate_print_mutants(struct sub_program *p, const uint32_t *number, bool exact, bool every, const struct mutate_watch *watch, struct str *s)
{
	struct printer t = {.p = p, .number = number, .exact = exact, .every = every, .watch = watch, .s = s};
	size_t values = p->values.n, before = s->n;
	bool *done = ARENA_ARRAY(p->arena, bool, values), ok = true;
	for (size_t b = 0; b < p->bodies.n; b++) {
		bool *live = ARENA_ARRAY(p->arena, bool, values);
		sub_mark_live(p, &p->bodies.at[b], live);
		for (uint32_t i = 1; ok && i < values; i++)
			if (live[i] && !done[i] && (!number || number[i])) {
				done[i] = true;
				ok = print_site(&t, &p->bodies.at[b], (sub_ref){i});
			}
	}
	ok = ok && mutate_print_products(p, number, exact, every, watch, s);
	if (s->n == before)
		str_puts(s, "# no body has a sum of products\n");
	return ok;
}
