/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants of sums of products, proved value by value, with their operands as leaves, and corrected. */
#include "mutate/product_mutant.h"

#include <string.h>

enum { QUARTER = 4 /* moved elements for the work of a product */ };

/* --- which values --- */

static bool is_product(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->op == SUB_ACCUMULATE && v->dtype == DTYPE_F32 && v->reduced.n && !sub_reduces_ragged(p, v);
}

/* Notes of the values of a body which traversal they belong to. */
static void note_traversal(struct mutate_relations *r, const struct sub_body *b, const bool *live, bool *computed)
{
	int number = b->traversal + 1, leaf = b->domain == SUB_LEAF ? number : 0;
	for (size_t i = 1; i < r->p->values.n; i++) {
		if (!live[i])
			continue;
		r->leaf[i] = !computed[i] || r->leaf[i] == leaf ? leaf : 0;
		r->inner[i] = b->domain == SUB_INNER ? number : r->inner[i];
		computed[i] = true;
	}
}

struct mutate_relations mutate_relate_values(const struct sub_program *p)
{
	size_t n = p->values.n;
	struct mutate_relations r = {.p = p, .bodies = ARENA_ARRAY(p->arena, uint32_t, n), .seen = ARENA_ARRAY(p->arena, uint32_t, n)};
	bool *live = ARENA_ARRAY(p->arena, bool, n), *computed = ARENA_ARRAY(p->arena, bool, n);
	r.leaf = ARENA_ARRAY(p->arena, int, n);
	r.inner = ARENA_ARRAY(p->arena, int, n);
	uint32_t *least[2] = {ARENA_ARRAY(p->arena, uint32_t, n), ARENA_ARRAY(p->arena, uint32_t, n)};
	for (size_t b = 0; b < p->bodies.n; b++) {
		memset(live, 0, n * sizeof *live);
		memset(least[0], 0, n * sizeof **least);
		memset(least[1], 0, n * sizeof **least);
		sub_mark_live(p, &p->bodies.at[b], live);
		note_traversal(&r, &p->bodies.at[b], live, computed);
		for (uint32_t i = 1; i < n; i++) {
			uint32_t *first = &least[live[i]][r.bodies[i]];
			*first = *first ? *first : i;
			r.bodies[i] = *first;
		}
	}
	return r;
}

/* Whether a value needs another, by a way of values that this question has not seen. */
static bool needs_value(struct mutate_relations *r, sub_ref at, sub_ref other)
{
	const struct sub_value *v = sub_at(r->p, at);
	if (at.i == other.i)
		return true;
	if (r->seen[at.i] == r->asked || at.i < other.i)
		return false;
	r->seen[at.i] = r->asked;
	for (int a = 0; a < v->args; a++)
		if (needs_value(r, v->arg[a].value, other))
			return true;
	return false;
}

static bool are_independent(struct mutate_relations *r, sub_ref a, sub_ref b)
{
	r->asked++;
	return a.i < b.i ? !needs_value(r, b, a) : !needs_value(r, a, b);
}

/* Whether a value is one of leaves, and the other of inner nodes of the same traversal. */
static const char *refuse_like(const struct mutate_relations *of, const struct mutate_regroup *r)
{
	if (r->n != 2)
		return "it is like one value";
	int traversal = of->leaf[r->value[0].i];
	const struct sub_value *v = sub_at(of->p, r->value[0]);
	if (!traversal || v->dtype != DTYPE_F32 || sub_class_of(v->op) == SUB_SOURCE || sub_leading_dims(of->p, r->value[0]) != 1)
		return "it is no value of leaves alone";
	return of->inner[r->value[1].i] == traversal ? NULL : "the other value is none of inner nodes";
}

const char *mutate_refuse_regroup(struct mutate_relations *of, const struct mutate_regroup *r)
{
	if (r->op == MUTATE_LIKE)
		return refuse_like(of, r);
	for (int k = 0; k < r->n; k++)
		if (!is_product(of->p, r->value[k]))
			return "it is no sum of products";
	for (int k = 1; k < r->n && r->op == MUTATE_APPEND; k++)
		if (sub_at(of->p, r->value[k - 1])->arg[0].value.i != r->value[k].i)
			return "it does not begin with the others";
	for (int k = 0; k < r->n && r->op != MUTATE_APPEND; k++)
		for (int i = 0; i < k; i++) {
			if (r->value[i].i == r->value[k].i)
				return "a value is named twice";
			if (!are_independent(of, r->value[i], r->value[k]))
				return "one of its values needs another";
			if (of->bodies[r->value[i].i] != of->bodies[r->value[k].i])
				return "its values are computed by other bodies";
		}
	return NULL;
}

int mutate_list_operands(const struct sub_program *p, const struct mutate_regroup *r, sub_ref *leaf)
{
	int n = 0;
	for (int k = 0; k < r->n; k++) {
		bool begins = r->op == MUTATE_APPEND && k + 1 < r->n;
		for (int a = begins; a < 3; a++)
			leaf[n++] = sub_at(p, r->value[k])->arg[a].value;
	}
	return n;
}

/* --- the proof --- */

double mutate_count_row_work(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	if (v->op == SUB_ACCUMULATE)
		return sub_reduced_elements(p, v);
	return sub_has_leading_dim(p, r) ? sub_row_elements(p, v) / QUARTER : 0;
}

/* Compares all values; whether they were compared and differ at fewer than half of their positions, *why if not. */
static bool compare_values(struct sub_program *p, const struct mutate_form *forms, const sub_ref *whole, bool ordered, int rounds,
			   struct mutate_products *m, const char **why)
{
	*why = NULL;
	for (int k = 0; k < mutate_count_replaced(&m->r) && !*why; k++) {
		struct mutate_comparison *c = &m->proof[k];
		mutate_compare_by(p, forms, m->r.value[k], whole[k], ordered, rounds, c);
		*why = c->refused ? c->refused : c->wrong * 2 > c->elements ? "it differs nearly everywhere" : NULL;
	}
	return !*why;
}

static const char *prove_values(struct sub_program *p, const struct mutate_form *forms, const sub_ref *whole, bool exact, int rounds,
				struct mutate_products *m)
{
	const char *why;
	m->same_bits = compare_values(p, forms, whole, true, rounds, m, &why);
	for (int k = 0; k < mutate_count_replaced(&m->r); k++)
		m->same_bits &= m->proof[k].wrong == 0;
	if (m->same_bits)
		return NULL;
	if (!compare_values(p, forms, whole, false, rounds, m, &why))
		return why;
	return exact ? "its sums have other terms, which --math exact does not allow" : NULL;
}

/* The sum itself where a result is all of it. */
static sub_ref skip_identity(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r), *from = sub_at(p, v->arg[0].value);
	bool same = v->op == SUB_ASSIGN && from->vars == v->vars;
	for (int i = 0; same && i < v->vars; i++)
		same = from->var[i] == v->var[i] && v->map[i].var == v->var[i] && sub_is_identity(&v->map[i]);
	return same ? v->arg[0].value : r;
}

static const char *correct_values(struct sub_program *p, const sub_ref *whole, size_t first, struct mutate_products *m, sub_ref *now)
{
	double elements = 0;
	for (int k = 0; k < mutate_count_replaced(&m->r); k++) {
		double recomputed;
		sub_ref corrected = mutate_correct(p, m->r.value[k], whole[k], &m->proof[k], &recomputed);
		if (!corrected.i || p->values.n > first + MUTATE_ROOM)
			return "its correction has too many regions";
		now[k] = skip_identity(p, corrected);
		m->recomputed += recomputed;
		elements += m->proof[k].elements;
	}
	for (uint32_t i = first; i < p->values.n; i++)
		m->work += mutate_count_row_work(p, (sub_ref){i});
	return m->recomputed * 2 > elements ? "its correction computes most of it" : NULL;
}

const char *mutate_make_products(struct sub_program *p, const struct mutate_regroup *r, bool exact, int rounds,
				 struct mutate_form *forms, struct mutate_products *m, sub_ref *now)
{
	sub_ref whole[MUTATE_MAX_JOINED], leaf[3 * MUTATE_MAX_JOINED];
	size_t first = p->values.n;
	if (r->op == MUTATE_LIKE)
		return mutate_make_like(p, r, exact, rounds, forms, m, NULL, now);
	*m = (struct mutate_products){.r = *r};
	for (int k = 0; k < r->n; k++) {
		if (!is_product(p, r->value[k]))
			return "it is no sum of products";
		m->original += sub_reduced_elements(p, sub_at(p, r->value[k]));
	}
	const char *why = mutate_build_products(p, r, whole);
	if (why)
		return why;
	if (p->values.n > first + MUTATE_ROOM)
		return "it has too many parts";
	int leaves = mutate_list_operands(p, r, leaf);
	memset(forms, 0, p->values.n * sizeof *forms);
	for (int k = 0; k < mutate_count_replaced(r); k++) {
		mutate_find_forms_over(p, leaf, leaves, forms, r->value[k]);
		mutate_find_forms_over(p, leaf, leaves, forms, whole[k]);
	}
	why = prove_values(p, forms, whole, exact, rounds, m);
	return why ? why : correct_values(p, whole, first, m, now);
}
