/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Linear values, their boxes and their differences as text. */
#include "mutate/mutate.h"

#include <inttypes.h>

/* A result of a body whose name is that of a target, or a value that an operator which is not linear uses. */
struct result {
	const char *name;
	sub_ref value;
};

struct printer {
	const struct sub_program *p;
	struct mutate_form *forms;
	struct str *s;
	sub_ref *leaf[2]; /* room for lists of leaves */
	bool *seen;
};

static const char *name_var(const struct sub_program *p, sub_ref r, int i)
{
	return p->vars.at[sub_at(p, r)->var[i]].name;
}

static void print_leaves(const struct printer *t, sub_ref r)
{
	sub_ref *leaf = t->leaf[0];
	int n = mutate_list_leaves(t->p, t->forms, r, leaf);
	for (int i = 0; i < n; i++) {
		str_puts(t->s, i ? ", " : " of ");
		sub_print_name(t->p, leaf[i], t->s);
		if (t->forms[leaf[i].i].why)
			str_printf(t->s, " (%s)", t->forms[leaf[i].i].why);
	}
	str_puts(t->s, n ? "" : " of numbers");
}

/* x5 at 1 7; x6 at 1 7 */
static void print_cuts(const struct printer *t, sub_ref r)
{
	const struct mutate_form *form = &t->forms[r.i];
	const char *separator = ": ";
	for (int i = 0; i < sub_at(t->p, r)->vars; i++) {
		if (!form->cuts[i].n)
			continue;
		str_printf(t->s, "%s%s at", separator, name_var(t->p, r, i));
		for (size_t c = 0; c < form->cuts[i].n; c++)
			str_printf(t->s, " %" PRId64, form->cuts[i].at[c]);
		separator = "; ";
	}
}

static void print_linear(const struct printer *t, const struct result *result)
{
	long boxes = mutate_count_boxes(t->p, &t->forms[result->value.i], result->value);
	int operators = mutate_count_operators(t->p, t->forms, result->value, t->seen);
	str_puts(t->s, "  ");
	if (result->name)
		str_printf(t->s, "%s = ", result->name);
	sub_print_name(t->p, result->value, t->s);
	print_leaves(t, result->value);
	str_printf(t->s, ", %d operator%s\n    %s%ld box%s", operators, operators == 1 ? "" : "s", boxes > MUTATE_MAX_BOXES ? "more than " : "",
		   boxes > MUTATE_MAX_BOXES ? (long)MUTATE_MAX_BOXES : boxes, boxes == 1 ? "" : "es");
	print_cuts(t, result->value);
	str_puts(t->s, "\n");
}

void mutate_print_box(const struct mutate_box *box, int vars, struct str *s)
{
	str_puts(s, " [");
	for (int i = 0; i < vars; i++) {
		str_puts(s, i ? ", " : "");
		if (box->end[i] == INT32_MAX)
			str_puts(s, "*");
		else if (box->end[i] == box->first[i] + 1)
			str_printf(s, "%" PRId64, box->first[i]);
		else
			str_printf(s, "%" PRId64 "..%" PRId64, box->first[i], box->end[i]);
	}
	str_puts(s, "]");
}

/* Prints how many elements differ in fact, if there are few enough to compute all of them. */
static void print_census(const struct printer *t, const struct mutate_comparison *c, sub_ref original, sub_ref mutant)
{
	struct mutate_census census;
	if (!mutate_compute_all(t->p, t->forms, original, mutant, c, &census))
		return;
	str_printf(t->s, "    all %ld computed: ", census.elements);
	if (census.missed)
		str_printf(t->s, "%ld differ, %ld of them where boxes are equal\n", census.differ, census.missed);
	else
		str_printf(t->s, "%ld differ%s\n", census.differ, census.differ ? ", in these boxes" : "");
}

static void print_comparison(const struct printer *t, const struct result *of, const struct result *with)
{
	struct mutate_comparison c;
	mutate_compare(t->p, t->forms, with->value, of->value, &c);
	str_printf(t->s, "  %s and %s: ", of->name, with->name);
	if (c.refused) {
		str_printf(t->s, "not compared, %s\n", c.refused);
		return;
	}
	str_printf(t->s, "%ld box%s, %ld positions, %d rounds modulo 2^31-1, ", c.boxes, c.boxes == 1 ? "" : "es",
		   c.positions, MUTATE_ROUNDS);
	if (c.wrong == 0)
		str_printf(t->s, "equal but with a probability of %.1g a position\n", mutate_bound_error(&c));
	else
		str_printf(t->s, "%.0f of %.0f elements differ\n", c.wrong, c.elements);
	for (size_t i = 0; i < c.differ.n; i++) {
		str_puts(t->s, "    differs at");
		mutate_print_box(&c.differ.at[i], c.vars, t->s);
		str_puts(t->s, "\n");
	}
	print_census(t, &c, with->value, of->value);
}

static bool same_leaves(const struct printer *t, sub_ref a, sub_ref b)
{
	int n = mutate_list_leaves(t->p, t->forms, a, t->leaf[0]);
	return n == mutate_list_leaves(t->p, t->forms, b, t->leaf[1]) &&
	       memcmp(t->leaf[0], t->leaf[1], n * sizeof **t->leaf) == 0;
}

static bool same_shape(const struct sub_program *p, sub_ref a, sub_ref b)
{
	bool same = sub_at(p, a)->vars == sub_at(p, b)->vars;
	for (int i = 0; same && i < sub_at(p, a)->vars; i++)
		same = sub_same_range(p, sub_at(p, a)->var[i], sub_at(p, b)->var[i]);
	return same;
}

static bool is_linear(const struct printer *t, sub_ref r)
{
	return t->forms[r.i].kind == MUTATE_LINEAR && sub_class_of(sub_at(t->p, r)->op) != SUB_SOURCE;
}

/* Prints the linear values that operators of a body which are not linear use, and no store names. */
static void print_inner_values(const struct printer *t, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(t->p->arena, bool, t->p->values.n), *used = ARENA_ARRAY(t->p->arena, bool, t->p->values.n);
	sub_mark_live(t->p, b, live);
	for (uint32_t i = 1; i < t->p->values.n; i++)
		for (int a = 0; live[i] && t->forms[i].kind == MUTATE_LEAF && a < t->p->values.at[i].args; a++)
			used[t->p->values.at[i].arg[a].value.i] = true;
	for (size_t i = 0; i < b->stores.n; i++)
		used[b->stores.at[i].value.value.i] = false;
	for (uint32_t i = 1; i < t->p->values.n; i++)
		if (used[i] && is_linear(t, (sub_ref){i}))
			print_linear(t, &(struct result){NULL, {i}});
}

static void print_stores(const struct printer *t, const struct sub_body *b)
{
	struct result *result = ARENA_ARRAY(t->p->arena, struct result, b->stores.n + 1);
	int n = 0;
	for (size_t i = 0; i < b->stores.n; i++) {
		struct result r = {sub_store_tensor(t->p, &b->stores.at[i])->name, b->stores.at[i].value.value};
		if (!is_linear(t, r.value))
			continue;
		print_linear(t, &r);
		result[n++] = r;
		for (int k = 0; k < n - 1; k++)
			if (same_shape(t->p, r.value, result[k].value) && same_leaves(t, r.value, result[k].value)) {
				print_comparison(t, &r, &result[k]);
				break;
			}
	}
}

void mutate_print_boxes(const struct sub_program *p, struct str *s)
{
	struct printer t = {.p = p, .forms = mutate_find_forms(p), .s = s};
	t.leaf[0] = ARENA_ARRAY(p->arena, sub_ref, p->values.n);
	t.leaf[1] = ARENA_ARRAY(p->arena, sub_ref, p->values.n);
	t.seen = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++) {
		str_printf(s, "%s%s\n", b ? "\n" : "", p->bodies.at[b].name);
		print_inner_values(&t, &p->bodies.at[b]);
		print_stores(&t, &p->bodies.at[b]);
	}
}
