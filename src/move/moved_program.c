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

/* --- hoisted values --- */

const char *move_hoist_name(const struct sub_program *p)
{
	struct str s = str_in(p->arena);
	size_t n = p->inputs.n, others = 0;
	while (others < n && !p->inputs.at[others].hoisted)
		others++;
	str_printf(&s, "hoist%zu", n - others);
	return s.text;
}

/* --- derived states --- */

static int count_derived(const struct sub_program *p)
{
	int n = 0;
	for (size_t s = 0; s < p->states.n; s++)
		n += p->states.at[s].derived;
	return n;
}

int move_declare_derived(struct sub_program *p, sub_ref like, int traversal)
{
	const struct sub_value *v = sub_at(p, like);
	struct str s = str_in(p->arena);
	str_printf(&s, "refactor%d", count_derived(p));
	struct sub_tensor t = {.name = sub_find_free_name(p, SUB_NAME_TENSOR, s.text),
			       .dtype = v->dtype,
			       .rank = v->vars - 1,
			       .traversal = traversal,
			       .derived = true};
	for (int d = 0; d < t.rank; d++) {
		t.var[d] = v->var[d + 1];
		t.shape[d] = p->vars.at[t.var[d]].extent;
	}
	vec_push(p->arena, &p->states, t);
	return p->states.n - 1;
}

/* --- saved work --- */

/* Whether an argument of what is reduced is the same for all rows, and has a dimension that is reduced. */
static bool is_shared(const struct sub_program *p, const struct sub_use *u, const struct sub_vars *reduced)
{
	bool shared = false;
	for (int i = 0; i < reduced->n; i++)
		shared |= sub_use_has(u, reduced->var[i]);
	return shared && !sub_has_leading_dim(p, u->value);
}

/* The variables that a reduction reduces, under the names that its argument has for them. */
static struct sub_vars reduced_names(const struct sub_program *p, const struct sub_value *v)
{
	struct sub_vars names = {.n = 0};
	for (int i = 0; i < v->arg[0].vars; i++)
		if (sub_position_in(&v->reduced, v->arg[0].var[i]) >= 0)
			names.var[names.n++] = sub_at(p, v->arg[0].value)->var[i];
	return names;
}

/* Whether a value reduces products, or other pairs, of rows with weights that all rows share, which are read
 * again at each level. */
static bool reads_weights(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	if (!sub_reduces(v->op) || sub_reduces_ragged(p, v) || !sub_has_leading_dim(p, r))
		return false;
	if (sub_class_of(v->op) == SUB_CONTRACTION)
		return is_shared(p, &v->arg[1], &v->reduced) || is_shared(p, &v->arg[2], &v->reduced);
	struct sub_vars reduced = reduced_names(p, v);
	const struct sub_value *pair = sub_at(p, v->arg[0].value);
	return sub_class_of(pair->op) == SUB_BINARY &&
	       (is_shared(p, &pair->arg[0], &reduced) || is_shared(p, &pair->arg[1], &reduced));
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
