/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The generator of mutants of sums of products: every operator, of every value of a body, and every group of values where it takes
 * several; groups that are proved grow by one more.  What values have in common is not asked: the proof of a mutant that supposes
 * too much fails.  And each value that a body of leaves stores, as one of inner nodes. */
#include "mutate/product_mutant.h"

#include <string.h>

enum { MOST_WORK = 2 /* of a mutant that is kept, compared with the originals' */ };

static const int parts[] = {
#define MUTATE_PARTS(n) n,
#include "mutate/products.def"
#undef MUTATE_PARTS
};

static const int multiples[] = {
#define MUTATE_MULTIPLE(n) n,
#include "mutate/products.def"
#undef MUTATE_MULTIPLE
};

struct finder {
	struct sub_program *p;
	const struct sub_body *b;
	bool exact;
	const struct mutate_watch *watch;
	struct mutate_relations *relations;
	struct mutate_form *forms;
	size_t values, vars; /* of the program without mutants */
	int n;
	sub_ref *product;
	uint32_t *grown; /* by product: the operators and dimensions by which it belongs to an earlier one, as bits */
	struct mutate_product_search *s;
	bool given_up;
};

/* Whether the search goes on; once it does not, the watch is not asked again. */
static bool goes_on(struct finder *f)
{
	f->given_up = f->given_up || (f->watch->goes_on && !f->watch->goes_on(f->watch->context));
	return !f->given_up;
}

/* Whether further mutants are built: those that are kept are not too many. */
static bool has_room(struct finder *f)
{
	f->s->ended = f->s->ended || f->s->built == MUTATE_MAX_PRODUCTS || f->s->n == MUTATE_PRODUCTS_KEPT;
	return !f->s->ended;
}

/* Whether a mutant is proved, and of no more than twice the work; the program is as before. */
static bool try_regroup(struct finder *f, const struct mutate_regroup *r, int rounds, struct mutate_products *m)
{
	sub_ref now[MUTATE_MAX_JOINED];
	if (!goes_on(f) || mutate_refuse_regroup(f->relations, r) || !has_room(f))
		return false;
	f->s->built++;
	bool ok = !mutate_make_products(f->p, r, f->exact, rounds, f->forms, m, now);
	ok &= r->op == MUTATE_LIKE || m->work <= MOST_WORK * m->original;
	sub_forget_values_and_vars(f->p, f->values, f->vars);
	return ok;
}

static bool keep_regroup(struct finder *f, const struct mutate_regroup *r)
{
	struct mutate_products m;
	if (!try_regroup(f, r, MUTATE_ROUNDS, &m))
		return false;
	f->s->found[f->s->n++] = m;
	return true;
}

/* --- one value --- */

static int count_dims(const struct finder *f, sub_ref r)
{
	return sub_at(f->p, r)->vars - sub_leading_dims(f->p, r);
}

static void try_numbers(struct finder *f, sub_ref r, enum mutate_operator op, const int *number, int n)
{
	for (int dim = 0; dim < count_dims(f, r); dim++)
		for (int i = 0; i < n; i++)
			keep_regroup(f, &(struct mutate_regroup){.op = op, .dim = dim, .number = number[i], .n = 1, .value = {r}});
}

static bool is_listed(const struct finder *f, sub_ref r)
{
	for (int i = 0; i < f->n; i++)
		if (f->product[i].i == r.i)
			return true;
	return false;
}

/* A sum with all that it begins with. */
static void try_chain(struct finder *f, sub_ref r)
{
	struct mutate_regroup chain = {.op = MUTATE_APPEND, .n = 1, .value = {r}};
	while (chain.n < MUTATE_MAX_JOINED) {
		sub_ref begin = sub_at(f->p, chain.value[chain.n - 1])->arg[0].value;
		if (!is_listed(f, begin))
			break;
		chain.value[chain.n++] = begin;
	}
	while (chain.n > 1 && !keep_regroup(f, &chain))
		chain.n--;
}

/* --- several values --- */

/* A value with all later ones that go with it and those before them; of more than two, the first two of them as well. */
static void grow_group(struct finder *f, int first, enum mutate_operator op, int dim)
{
	struct mutate_regroup all = {.op = op, .dim = dim, .n = 1, .value = {f->product[first]}};
	uint32_t bit = op == MUTATE_JOIN ? 1u << dim : 1u << SUB_MAX_VARS;
	struct mutate_products m;
	if (f->grown[first] & bit)
		return;
	for (int i = first + 1; i < f->n && all.n < MUTATE_MAX_JOINED && !f->s->ended; i++) {
		struct mutate_regroup more = all;
		more.value[more.n++] = f->product[i];
		if ((f->grown[i] & bit) || !try_regroup(f, &more, 1, &m))
			continue;
		f->grown[i] |= bit;
		all = more;
	}
	if (all.n > 1)
		keep_regroup(f, &all);
	bool more = all.n > 2;
	all.n = 2;
	if (more)
		keep_regroup(f, &all);
}

static void try_product(struct finder *f, int i)
{
	sub_ref r = f->product[i];
	try_chain(f, r);
	for (int dim = 0; dim < count_dims(f, r); dim++)
		grow_group(f, i, MUTATE_JOIN, dim);
	grow_group(f, i, MUTATE_STACK, 0);
	try_numbers(f, r, MUTATE_PAD, multiples, sizeof multiples / sizeof *multiples);
	try_numbers(f, r, MUTATE_SPLIT, parts, sizeof parts / sizeof *parts);
}

/* --- values of leaves --- */

static bool same_target(const struct sub_store *a, const struct sub_store *b)
{
	return a->to == b->to && a->which == b->which;
}

/* What a body of leaves stores, as what a body of inner nodes stores in the same place. */
static void try_like(struct finder *f, const struct sub_body *inner, const bool *done)
{
	for (size_t i = 0; i < f->b->stores.n; i++)
		for (size_t k = 0; k < inner->stores.n; k++) {
			const struct sub_store *to = &f->b->stores.at[i], *from = &inner->stores.at[k];
			sub_ref leaf = to->value.value, other = from->value.value;
			if (same_target(to, from) && !done[leaf.i] && !done[other.i])
				keep_regroup(f, &(struct mutate_regroup){.op = MUTATE_LIKE, .n = 2, .value = {leaf, other}});
		}
}

static void try_leaves(struct finder *f, const bool *done)
{
	for (size_t b = 0; b < f->p->bodies.n && f->b->domain == SUB_LEAF && !f->exact; b++)
		if (f->p->bodies.at[b].domain == SUB_INNER && f->p->bodies.at[b].traversal == f->b->traversal)
			try_like(f, &f->p->bodies.at[b], done);
}

/* --- all of a body --- */

/* Lists the sums of products of a body that no earlier one has; those of weights alone are computed when these are bound, so that no
 * run gains anything by their mutants. */
static void list_products(struct finder *f, bool *done)
{
	bool *live = ARENA_ARRAY(f->p->arena, bool, f->values);
	f->product = ARENA_ARRAY(f->p->arena, sub_ref, f->values);
	f->grown = ARENA_ARRAY(f->p->arena, uint32_t, f->values);
	const bool *constant = sub_find_constants(f->p);
	sub_mark_live(f->p, f->b, live);
	for (uint32_t i = 1; i < f->values; i++) {
		struct mutate_regroup alone = {.op = MUTATE_PAD, .n = 1, .value = {{i}}};
		if (!live[i] || done[i])
			continue;
		done[i] = true;
		if (!constant[i] && !mutate_refuse_regroup(f->relations, &alone))
			f->product[f->n++] = (sub_ref){i};
	}
}

bool mutate_find_products(struct sub_program *p, const struct sub_body *b, bool exact, const struct mutate_watch *watch,
			  struct mutate_relations *relations, bool *done, struct mutate_product_search *s)
{
	struct finder f = {.p = p, .b = b, .exact = exact, .watch = watch, .relations = relations};
	f.values = p->values.n, f.vars = p->vars.n, f.s = s;
	f.forms = ARENA_ARRAY(p->arena, struct mutate_form, p->values.n + MUTATE_ROOM);
	*s = (struct mutate_product_search){.found = ARENA_ARRAY(p->arena, struct mutate_products, MUTATE_PRODUCTS_KEPT)};
	bool *before = ARENA_ARRAY(p->arena, bool, f.values);
	memcpy(before, done, f.values * sizeof *done);
	list_products(&f, done);
	s->products = f.n;
	for (int i = 0; i < f.n && !f.given_up && !s->ended; i++)
		try_product(&f, i);
	try_leaves(&f, before);
	return !f.given_up;
}
