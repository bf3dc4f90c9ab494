/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Faults in sub-operators, in one place: rules, folding, refactoring, hoisting. */
#ifndef ESPALIER_TESTS_MUTATION_PROGRAMS_H
#define ESPALIER_TESTS_MUTATION_PROGRAMS_H

#include "tests/mutation/mutant.h"

static bool wrong_sign(struct sub_program *p, struct choice *c)
{
	for (size_t i = 1; i < p->values.n; i++) {
		struct sub_value *v = &p->values.at[i];
		if (v->op == SUB_CONST && v->constant != 0 && isfinite(v->constant) && is_chosen(c))
			v->constant = -v->constant;
	}
	return c->done;
}

/* Replaces an operator, only of marked values unless `of` is NULL. */
static bool take_for(struct sub_program *p, enum sub_op from, enum sub_op to, const bool *of,
		     struct choice *c)
{
	for (size_t i = 1; i < p->values.n; i++)
		if (p->values.at[i].op == from && (!of || of[i]) && is_chosen(c))
			p->values.at[i].op = to;
	return c->done;
}

static bool wrong_law(struct sub_program *p, struct choice *c)
{
	return take_for(p, SUB_ADD, SUB_MULTIPLY, NULL, c);
}

/* The maps of an ASSIGN, copied so that they can be changed. */
static struct sub_map *own_maps(struct sub_program *p, struct sub_value *v)
{
	return sub_copy_maps(v, ARENA_ARRAY(p->arena, struct sub_map, SUB_MAX_VARS));
}

static bool wrong_slice(struct sub_program *p, struct choice *c)
{
	for (size_t i = 1; i < p->values.n; i++) {
		struct sub_value *v = &p->values.at[i];
		for (int d = 0; v->op == SUB_ASSIGN && d < v->arg[0].vars; d++)
			if (v->map[d].function == SUB_AFFINE && v->map[d].offset > 0 && is_chosen(c))
				own_maps(p, v)[d].offset--;
	}
	return c->done;
}

static bool wrong_fold(struct sub_program *p, struct choice *c)
{
	bool *at_binding = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == SUB_AT_BINDING)
			sub_mark_live(p, &p->bodies.at[b], at_binding);
	return take_for(p, SUB_MULTIPLY, SUB_ADD, at_binding, c);
}

static bool lost_derived(struct sub_program *p, struct choice *c)
{
	for (size_t b = 0; b < p->bodies.n; b++) {
		struct sub_body *body = &p->bodies.at[b];
		for (size_t s = 0; body->domain == SUB_LEAF && s < body->stores.n; s++) {
			const struct sub_store *store = &body->stores.at[s];
			if (store->to != SUB_TO_STATE || !p->states.at[store->which].derived || !is_chosen(c))
				continue;
			body->stores.n--;
			memmove(&body->stores.at[s], &body->stores.at[s + 1],
				(body->stores.n - s) * sizeof *store);
		}
	}
	return c->done;
}

/* Replaces a slot by the next one. */
static bool other_node(struct sub_program *p, struct choice *c)
{
	for (size_t i = 1; i < p->values.n; i++) {
		struct sub_value *v = &p->values.at[i];
		if (v->op != SUB_ASSIGN || !v->arg[0].vars || v->map[0].function != SUB_CHILD || p->children < 2)
			continue;
		const struct sub_value *of = sub_at(p, v->arg[0].value);
		if (of->op == SUB_STATE && p->states.at[of->which].derived && is_chosen(c))
			own_maps(p, v)->which = (v->map[0].which + 1) % p->children;
	}
	return c->done;
}

static bool lost_ahead(struct sub_program *p, struct choice *c)
{
	for (size_t b = 0; b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == SUB_AHEAD && is_chosen(c))
			p->bodies.at[b].domain = SUB_AHEAD_INNER;
	return c->done;
}

#endif
