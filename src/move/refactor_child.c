/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds values that depend on one child alone, and selects those to move from the parent to it. */
#include "move/refactor.h"

/* --- what depends on one child --- */

const struct sub_store *refactor_store(const struct sub_body *b, int state)
{
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].to == SUB_TO_STATE && b->stores.at[i].which == state)
			return &b->stores.at[i];
	return NULL;
}

/* Whether a body stores a value per node, of the state's dimensions, to the state. */
static bool is_kept(const struct refactoring *f, const struct sub_body *b, int state)
{
	const struct sub_store *s = refactor_store(b, state);
	const struct sub_value *v = s ? sub_at(f->from, s->value.value) : NULL;
	return v && v->vars == f->from->states.at[state].rank + 1 && v->var[0] == f->from->node;
}

bool refactor_is_child(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && sub_at(p, v->arg[0].value)->op == SUB_STATE;
}

static bool is_kept_by_all(const struct refactoring *f, int state)
{
	for (size_t i = 0; i < f->leaves.all.n; i++)
		if (!is_kept(f, f->leaves.all.at[i], state))
			return false;
	for (size_t i = 0; i < f->readers.n; i++)
		if (!is_kept(f, f->readers.at[i].body, state))
			return false;
	return true;
}

static int reach_of_child(const struct refactoring *f, const struct sub_value *v)
{
	int state = sub_at(f->from, v->arg[0].value)->which;
	if (!is_kept_by_all(f, state))
		return MORE;
	const struct sub_map *m = &v->map[0];
	return m->function == SUB_EDGE_CHILD				    ? OF_EDGE
	       : m->function == SUB_CHILD && m->which < REFACTOR_MOST_SLOTS ? OF_SLOT + m->which
									    : MORE;
}

/* Whether each row of the value is computed from the same row of its argument. */
static bool keeps_rows(const struct refactoring *f, const struct sub_value *v)
{
	int leading = sub_leading_dims(f->from, v->arg[0].value);
	for (int i = 0; v->op == SUB_ASSIGN && i < leading; i++)
		if (v->map[i].function != SUB_AFFINE || v->map[i].var != v->var[i])
			return false;
	return true;
}

static int reach_of(const struct refactoring *f, sub_ref r)
{
	const struct sub_value *v = sub_at(f->from, r);
	int leading = sub_leading_dims(f->from, r), reach = leading ? MORE : NOTHING;
	if (refactor_is_child(f->from, v))
		return reach_of_child(f, v);
	for (int a = 0, first = 1; a < v->args; a++) {
		int of = f->reach[v->arg[a].value.i];
		if (of == NOTHING)
			continue;
		reach = first || of == reach ? of : MORE;
		first = 0;
	}
	bool same = reach == OF_EDGE ? leading == 2 : reach == NOTHING ? !leading : leading == 1;
	return same && keeps_rows(f, v) ? reach : MORE;
}

void refactor_find_reach(struct refactoring *f)
{
	f->reach = ARENA_ARRAY(f->arena, int, f->from->values.n);
	for (uint32_t i = 1; i < f->from->values.n; i++)
		f->reach[i] = reach_of(f, (sub_ref){i});
}

/* --- which values are moved --- */

/* In slots, moving is profitable with several children that all have the value. */
static bool is_profitable(const struct refactoring *f, double work, sub_ref r, int reach)
{
	if (f->how == MOVE_ALL)
		return work > 0;
	return work > 0 && work >= MOVE_LEAST_WORK * sub_row_elements(f->from, sub_at(f->from, r)) &&
	       !f->excluded[r.i] && (reach == OF_EDGE || f->from->children > 1);
}

static int add_moved(struct refactoring *f, sub_ref value)
{
	struct moved_value moved = {.value = value, .reach = f->reach[value.i]};
	vec_push(f->arena, &f->in->moved, moved);
	return f->in->moved.n;
}

static bool can_be_stored(const struct refactoring *f, sub_ref r)
{
	const struct sub_value *v = sub_at(f->from, r);
	return sub_class_of(v->op) != SUB_MOVE && v->vars - sub_leading_dims(f->from, r) <= TENSOR_MAX_RANK;
}

/* Moves a value that depends on one child, used by a value that depends on more; else its operands. */
static void select_value(struct refactoring *f, sub_ref r)
{
	if (f->in->seen[r.i] || f->reach[r.i] <= NOTHING)
		return;
	f->in->seen[r.i] = true;
	if (can_be_stored(f, r) && is_profitable(f, f->work[r.i], r, f->reach[r.i])) {
		f->in->moved_of[r.i] = add_moved(f, r);
		return;
	}
	for (int a = 0; a < refactor_value(f, r)->args; a++)
		select_value(f, refactor_value(f, r)->arg[a].value);
}

void refactor_select_values(struct refactoring *f)
{
	size_t n = f->from->values.n;
	f->in->seen = ARENA_ARRAY(f->arena, bool, n);
	f->in->moved_of = ARENA_ARRAY(f->arena, int, n);
	f->in->moved.n = 0;
	for (int i = 0; i < f->in->values.n; i++) {
		sub_ref r = f->in->values.value[i];
		const struct sub_value *v = refactor_value(f, r);
		for (int a = 0; f->reach[r.i] == MORE && a < v->args; a++)
			select_value(f, v->arg[a].value);
	}
	for (size_t i = 0; i < f->in->body->stores.n; i++)
		select_value(f, f->in->body->stores.at[i].value.value);
}
