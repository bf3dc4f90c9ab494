/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by hoist.c and refactor.c, which move values to other bodies. */
#include "move/moved_program.h"

void move_copy_program(struct sub_program *to, const struct sub_program *from)
{
	sub_clear(to);
	sub_copy_declarations(to, from);
	for (uint32_t i = 1; i < from->values.n; i++)
		sub_add(to, from->values.at[i], NULL);
}

void move_keep_program(struct sub_program *to, const struct sub_program *from)
{
	move_copy_program(to, from);
	for (size_t i = 0; i < from->bodies.n; i++)
		vec_push(to->arena, &to->bodies, from->bodies.at[i]);
}

/* The program of a traversal is needed by the next one only, so two programs alternate. */
void move_each_traversal(struct sub_program *to, const struct sub_program *from,
			 void (*move)(struct sub_program *, const struct sub_program *, int, void *),
			 void *context)
{
	struct sub_program *between = ARENA_ARRAY(to->arena, struct sub_program, 2);
	sub_init(&between[0], to->arena, from->name);
	sub_init(&between[1], to->arena, from->name);
	for (size_t t = 0; t < from->traversals.n; t++) {
		struct sub_program *next = t + 1 == from->traversals.n ? to : &between[t % 2];
		sub_clear(next);
		move(next, from, t, context);
		from = next;
	}
}

struct move_bodies move_find_bodies(const struct sub_program *p, int traversal, enum sub_domain domain)
{
	struct move_bodies found = {.all = {0}};
	for (size_t i = 0; i < p->bodies.n; i++)
		if (p->bodies.at[i].domain == domain && p->bodies.at[i].traversal == traversal)
			vec_push(p->arena, &found.all, &p->bodies.at[i]);
	return found;
}

/* --- saved work --- */

/* Whether a value sums products of rows with weights that all rows share, which are read again at each
 * level. */
static bool reads_weights(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->op == SUB_ACCUMULATE && sub_has_leading_dim(p, r) &&
	       (!sub_has_leading_dim(p, v->arg[1].value) || !sub_has_leading_dim(p, v->arg[2].value));
}

const double *move_count_products(struct arena *a, const struct sub_program *p)
{
	double *work = ARENA_ARRAY(a, double, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		for (int k = 0; k < v->args; k++)
			work[i] += work[v->arg[k].value.i];
		if (reads_weights(p, (sub_ref){i}))
			work[i] += sub_reduced_elements(p, v);
	}
	return work;
}

double move_row_bytes(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return sub_row_elements(p, v) * dtype_traits_of(v->dtype)->bytes;
}
