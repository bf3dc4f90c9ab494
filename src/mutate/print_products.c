/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants of sums of products, with what is known of them, as text. */
#include "mutate/product_mutant.h"

#include <math.h>
#include <string.h>

struct printer {
	struct sub_program *p;
	const struct sub_body *b;
	const uint32_t *number; /* mutate_print_mutants */
	bool exact, every;
	struct str *s;
};

static bool computes_value(const struct sub_program *p, const struct sub_body *b, sub_ref r)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	sub_mark_live(p, b, live);
	return live[r.i];
}

/* Prints the name of a value of this body, or of another one that computes it. */
static void print_name(const struct printer *t, sub_ref r)
{
	const struct sub_body *b = t->b;
	for (size_t i = 0; i < t->p->bodies.n && !computes_value(t->p, b, r); i++)
		b = &t->p->bodies.at[i];
	str_printf(t->s, "%s.v%u", b->name, t->number ? t->number[r.i] : r.i);
}

static void print_regroup(const struct printer *t, const struct mutate_regroup *r)
{
	const struct mutate_operator_traits *traits = &mutate_operators[r->op];
	str_puts(t->s, "mutate ");
	print_name(t, r->value[0]);
	str_printf(t->s, " %s", traits->spelling);
	if (traits->dim)
		str_printf(t->s, " %d", r->dim);
	if (traits->number)
		str_printf(t->s, " %d", r->number);
	for (int k = 1; k < r->n; k++) {
		str_puts(t->s, " ");
		print_name(t, r->value[k]);
	}
}

static void print_boxes(const struct printer *t, const struct mutate_products *m, int k)
{
	const struct mutate_comparison *c = &m->proof[k];
	for (size_t b = 0; b < c->differ.n; b++) {
		str_puts(t->s, "    ");
		print_name(t, m->r.value[k]);
		str_puts(t->s, " differs at");
		mutate_print_box(&c->differ.at[b], c->vars, t->s);
		str_puts(t->s, "\n");
	}
}

static void print_proof(const struct printer *t, const struct mutate_products *m)
{
	long boxes = 0, positions = 0;
	double wrong = 0, elements = 0, error = 0;
	for (int k = 0; k < mutate_count_replaced(&m->r); k++) {
		boxes += m->proof[k].boxes;
		positions += m->proof[k].positions;
		wrong += m->proof[k].wrong;
		elements += m->proof[k].elements;
		error = fmax(error, mutate_bound_error(&m->proof[k]));
	}
	str_printf(t->s, "    %ld box%s, %ld positions, %d rounds modulo 2^31-1, ", boxes, boxes == 1 ? "" : "es", positions,
		   MUTATE_ROUNDS);
	if (wrong == 0)
		str_puts(t->s, "equal");
	else
		str_printf(t->s, "%.0f of %.0f elements differ, %.0f are computed by the original", wrong, elements, m->recomputed);
	str_printf(t->s, "; wrong with a probability of %.1g a position; %s\n", error,
		   m->same_bits ? "the same bits" : "sums have other terms, or another order");
	for (int k = 0; k < mutate_count_replaced(&m->r); k++)
		print_boxes(t, m, k);
}

/* Computes all elements of what stands in place of each value; false if there is none, or that would take long. */
static bool compute_products(struct sub_program *p, const struct mutate_regroup *r, bool exact, struct mutate_census *all)
{
	sub_ref now[MUTATE_MAX_JOINED], leaf[3 * MUTATE_MAX_JOINED];
	struct mutate_form *forms = ARENA_ARRAY(p->arena, struct mutate_form, p->values.n + MUTATE_ROOM);
	struct mutate_products m;
	if (r->op == MUTATE_LIKE)
		return !mutate_make_like(p, r, exact, MUTATE_ROUNDS, forms, &m, all, now);
	bool ok = !mutate_make_products(p, r, exact, MUTATE_ROUNDS, forms, &m, now) &&
		  m.work + m.original <= MUTATE_MAX_CHECKED_WORK;
	int leaves = mutate_list_operands(p, r, leaf);
	forms = ok ? ARENA_ARRAY(p->arena, struct mutate_form, p->values.n) : forms;
	for (int k = 0; k < mutate_count_replaced(r) && ok; k++) {
		struct mutate_census census;
		struct mutate_comparison none = {.vars = m.proof[k].vars};
		mutate_find_forms_over(p, leaf, leaves, forms, r->value[k]);
		mutate_find_forms_over(p, leaf, leaves, forms, now[k]);
		ok = mutate_compute_most(p, forms, r->value[k], now[k], &none, m.proof[k].elements, MUTATE_MAX_STEPS, &census);
		all->elements += census.elements;
		all->missed += census.missed;
	}
	return ok;
}

static void print_check(const struct printer *t, const struct mutate_regroup *r)
{
	size_t values = t->p->values.n, vars = t->p->vars.n;
	struct mutate_census all = {0};
	if (compute_products(t->p, r, t->exact, &all))
		str_printf(t->s, "    all %ld elements computed: with the correction %ld differ\n", all.elements, all.missed);
	else
		str_puts(t->s, "    too many elements to compute all: take smaller sizes\n");
	sub_forget_values_and_vars(t->p, values, vars);
}

static bool print_found(const struct printer *t, const struct mutate_product_search *found, const struct mutate_watch *watch)
{
	str_printf(t->s, "# %s, %d sum%s of products: %ld mutants built; %d equal%s\n", t->b->name, found->products,
		   found->products == 1 ? "" : "s", found->built, found->n, found->ended ? " (of too many the first ones)" : "");
	for (int i = 0; i < found->n; i++) {
		const struct mutate_products *m = &found->found[i];
		print_regroup(t, &m->r);
		str_printf(t->s, "  # work %.3g of %.3g\n", m->work, m->original);
		print_proof(t, m);
		if (t->every && watch->goes_on && !watch->goes_on(watch->context))
			return false;
		if (t->every)
			print_check(t, &m->r);
	}
	return true;
}

bool mutate_print_products(struct sub_program *p, const uint32_t *number, bool exact, bool every, const struct mutate_watch *watch,
			   struct str *s)
{
	bool *done = ARENA_ARRAY(p->arena, bool, p->values.n), ok = true;
	struct mutate_relations relations = mutate_relate_values(p);
	for (size_t i = 1; number && i < p->values.n; i++)
		done[i] = !number[i];
	for (size_t b = 0; b < p->bodies.n && ok; b++) {
		struct printer t = {.p = p, .b = &p->bodies.at[b], .number = number, .exact = exact, .every = every, .s = s};
		struct mutate_product_search found;
		ok = mutate_find_products(p, t.b, exact, watch, &relations, done, &found);
		if (found.products || found.n)
			ok = print_found(&t, &found, watch) && ok;
	}
	return ok;
}
