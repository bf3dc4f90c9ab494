/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Refactoring: values that depend on one child's states alone are computed by the child, so that the
 * recursion's back edge moves.
 *
 *     inner                                          leaf, inner
 *       %1[n,e,k] = assign h[child(e),k]               ...
 *       %2[n,e,j,k] = multiply U[j,k], %1[n,e,k]       %8[n,j,k] = multiply U[j,k], %7[n,k]
 *       %3[n,e,j] = sum_k %2[n,e,j,k]         ->       %9[n,j] = sum_k %8[n,j,k]
 *       ... %3[n,e,j] ...                              store h[n,j] = %7[n,j]
 *                                                      store refactor0[n,j] = %9[n,j]
 *                                                    inner
 *                                                      ... refactor0[child(e),j] ...
 *
 * The parent multiplies by weights edge by edge, level by level: for a child once per parent.  At the child
 * it is one product per node, for leaves a single one over all of them.  Where the states of leaves are
 * looked up in a table, so is the product, in a table that is made at binding.  The child keeps the value for
 * its parents as a derived state, which nothing else reads.
 *
 * A value is computed at the child by the operations of the parent (as in hoist.c), and so to the same bits.
 * The beginning of a chain can be moved alone.
 *
 * Where a schedule asks for all that is legal, the last operators of states then go the other way
 * (refactor_tail.c). */
#include "move/refactor.h"

#include <stdio.h>

/* --- the states --- */

static sub_ref state_value(struct sub_program *p, int which)
{
	const struct sub_tensor *t = &p->states.at[which];
	struct sub_value v = {.op = SUB_STATE, .which = which, .vars = t->rank + 1, .var = {p->node}};
	memcpy(&v.var[1], t->var, t->rank * sizeof *t->var);
	return sub_add(p, v, NULL);
}

static void find_derived(struct refactoring *f, struct place *keys, struct moved_value *moved)
{
	sub_ref key = refactor_move(f, keys, moved->value);
	size_t i = 0;
	while (i < f->derived.n && f->derived.at[i].key.i != key.i)
		i++;
	if (i == f->derived.n)
		vec_push(f->arena, &f->derived, (struct derived){.key = key, .value = moved->value});
	f->derived.at[i].readers |= 1u << (f->in - f->readers.at);
	f->derived.at[i].slots |= moved->reach >= OF_SLOT ? 1u << (moved->reach - OF_SLOT) : 0;
	moved->derived = i;
}

static void find_all_derived(struct refactoring *f)
{
	struct place keys = refactor_new_place(f, f->from->node);
	for (size_t s = 0; s < f->from->states.n; s++)
		keys.state[s] = state_value(f->to, s);
	f->derived.n = 0;
	for (f->in = f->readers.at; f->in < f->readers.at + f->readers.n; f->in++)
		for (size_t i = 0; !f->misfit && i < f->in->moved.n; i++)
			find_derived(f, &keys, &f->in->moved.at[i]);
}

/* Whether all children have the value, whatever the case of their parents: only then it is profitable. */
static bool is_everywhere(const struct refactoring *f, const struct moved_value *moved)
{
	const struct derived *d = &f->derived.at[moved->derived];
	bool slots = moved->reach == OF_EDGE ||
		     (f->from->children <= REFACTOR_MOST_SLOTS && d->slots == (1u << f->from->children) - 1);
	return slots && d->readers == (1u << f->readers.n) - 1;
}

/* Excludes values that not all children have. */
static bool exclude_values(struct refactoring *f)
{
	bool any = false;
	for (size_t r = 0; f->how == MOVE_ON && r < f->readers.n; r++)
		for (size_t i = 0; i < f->readers.at[r].moved.n; i++) {
			const struct moved_value *moved = &f->readers.at[r].moved.at[i];
			if (!is_everywhere(f, moved))
				any = f->excluded[moved->value.i] = true;
		}
	return any;
}

static void declare_states(struct refactoring *f)
{
	int traversal = f->leaves.all.at[0]->traversal;
	for (size_t i = 0; i < f->derived.n; i++)
		f->derived.at[i].which = move_declare_derived(f->to, f->derived.at[i].key, traversal);
}

/* --- the bodies --- */

static sub_ref read_derived(struct refactoring *f, const struct moved_value *moved,
			    const struct sub_value *like)
{
	sub_ref state = state_value(f->to, f->derived.at[moved->derived].which);
	bool edge = moved->reach == OF_EDGE;
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value read = {.op = SUB_ASSIGN, .args = 1, .vars = like->vars, .map = map};
	memcpy(read.var, like->var, sizeof read.var);
	read.arg[0] = sub_as_is(f->to, state);
	map[0] =
	    (struct sub_map){.function = edge ? SUB_EDGE_CHILD : SUB_CHILD, .var = read.var[edge ? 1 : 0]};
	map[0].which = edge ? 0 : moved->reach - OF_SLOT;
	for (int i = 1; i < read.arg[0].vars; i++)
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = read.var[i + edge], .scale = 1};
	return sub_add(f->to, read, NULL);
}

static sub_ref copy_value(struct refactoring *f, sub_ref r, const sub_ref *now)
{
	struct sub_value v = *refactor_value(f, r);
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = now[v.arg[a].value.i];
	return sub_add(f->to, v, NULL);
}

static sub_ref rewrite_value(struct refactoring *f, sub_ref r, const sub_ref *now)
{
	struct sub_value v = *refactor_value(f, r);
	int number = f->in->moved_of[r.i];
	return number ? read_derived(f, &f->in->moved.at[number - 1], &v) : copy_value(f, r, now);
}

static void store_derived(struct refactoring *f, struct sub_body *b, size_t i, sub_ref value)
{
	int which = f->derived.at[i].which;
	vec_push(f->arena, &b->stores,
		 (struct sub_store){.to = SUB_TO_STATE, .which = which, .value = sub_as_is(f->to, value)});
}

/* The place of a body: its states are the values that it stores. */
static struct place place_in(struct refactoring *f, const struct sub_body *b)
{
	struct place at = refactor_new_place(f, f->from->node);
	for (size_t s = 0; s < f->from->states.n; s++)
		if (refactor_store(b, s))
			at.state[s] = refactor_store(b, s)->value.value;
	return at;
}

static struct sub_body new_leaf(struct refactoring *f)
{
	struct sub_body b = sub_body_like(f->leaf);
	for (size_t i = 0; i < f->leaf->stores.n; i++)
		vec_push(f->arena, &b.stores, f->leaf->stores.at[i]);
	return b;
}

/* --- the new program --- */

static struct sub_body make_inner(struct refactoring *f)
{
	sub_ref *now = ARENA_ARRAY(f->arena, sub_ref, f->from->values.n);
	for (int i = 0; i < f->in->values.n; i++)
		now[f->in->values.value[i].i] = rewrite_value(f, f->in->values.value[i], now);
	struct sub_body b = sub_map_body(f->arena, f->in->body, now);
	struct place at = place_in(f, &b);
	for (size_t i = 0; i < f->derived.n; i++)
		store_derived(f, &b, i, refactor_move(f, &at, f->derived.at[i].value));
	return b;
}

/* The derived state of a leaf: looked up in a table, or computed by the leaf. */
static sub_ref leaf_value(struct refactoring *f, const struct derived *d, struct place *leaf)
{
	struct look_up l;
	struct place rows;
	if (!refactor_find_table(f, d, &l))
		return refactor_move(f, leaf, d->value);
	return refactor_make_table(f, d, &l, &rows);
}

static struct sub_body make_leaf(struct refactoring *f)
{
	struct sub_body b = new_leaf(f);
	struct place at = place_in(f, &b);
	for (size_t i = 0; !f->misfit && i < f->derived.n; i++)
		store_derived(f, &b, i, leaf_value(f, &f->derived.at[i], &at));
	return b;
}

/* Adds bodies at binding, then all others, which are made first because they declare tables. */
static void add_bodies(struct refactoring *f)
{
	const struct sub_body *b = f->from->bodies.at, *end = b + f->from->bodies.n;
	struct sub_body *made = ARENA_ARRAY(f->arena, struct sub_body, f->from->bodies.n);
	for (size_t i = 0; i < f->from->bodies.n; i++)
		made[i] = b[i];
	for (f->in = f->readers.at; f->in < f->readers.at + f->readers.n; f->in++)
		made[f->in->body - b] = make_inner(f);
	f->in = f->readers.at;
	for (size_t i = 0; i < f->leaves.all.n; i++) {
		f->leaf = f->leaves.all.at[i];
		made[f->leaf - b] = make_leaf(f);
	}
	for (; b < end && b->domain == SUB_AT_BINDING; b++)
		vec_push(f->arena, &f->to->bodies, *b);
	for (size_t i = 0; i < f->tables.n; i++)
		vec_push(f->arena, &f->to->bodies, f->tables.at[i]);
	for (; b < end; b++)
		vec_push(f->arena, &f->to->bodies, made[b - f->from->bodies.at]);
}

/* Repeats the selection until all children have each moved value; false if none is moved. */
static bool choose_values(struct refactoring *f)
{
	size_t moved = 0;
	move_copy_program(f->to, f->from);
	do {
		sub_forget_values_and_vars(f->to, f->from->values.n, f->from->vars.n);
		for (f->in = f->readers.at; f->in < f->readers.at + f->readers.n; f->in++)
			refactor_select_values(f);
		find_all_derived(f);
	} while (!f->misfit && exclude_values(f));
	for (size_t i = 0; i < f->readers.n; i++)
		moved += f->readers.at[i].moved.n;
	return moved && !f->misfit;
}

static void note_derived(const struct refactoring *f, struct rewrite_trace *trace)
{
	for (size_t i = 0; trace && i < f->derived.n; i++) {
		const struct sub_tensor *t = &f->to->states.at[f->derived.at[i].which];
		struct str s = str_in(f->arena);
		str_printf(&s, "%s is computed once at each node, for its parents: %.0f bytes each", t->name,
			   move_row_bytes(f->to, f->derived.at[i].key));
		vec_push(f->arena, &trace->notes, s.text);
	}
	for (size_t i = 0; trace && i < f->tables.n; i++) {
		struct str s = str_in(f->arena);
		str_printf(&s, "%s is computed at binding, and looked up by leaves for their parents",
			   f->tables.at[i].name);
		vec_push(f->arena, &trace->notes, s.text);
	}
}

static void find_bodies(struct refactoring *f, int traversal)
{
	struct move_bodies inner = move_find_bodies(f->from, traversal, SUB_INNER);
	f->leaves = move_find_bodies(f->from, traversal, SUB_LEAF);
	for (size_t i = 0; i < inner.all.n; i++) {
		struct reader r = {.body = inner.all.at[i]};
		r.values = sub_find_values(f->arena, f->from, r.body,
					   ARENA_ARRAY(f->arena, bool, f->from->values.n));
		vec_push(f->arena, &f->readers, r);
	}
}

/* False if nothing is moved. */
static bool refactor_values(struct refactoring *f)
{
	f->excluded = ARENA_ARRAY(f->arena, bool, f->from->values.n);
	f->work = move_count_products(f->arena, f->from);
	refactor_find_reach(f);
	if (!choose_values(f))
		return false;
	declare_states(f);
	add_bodies(f);
	return !f->misfit;
}

struct request {
	enum move_extent how;
	const struct rewrite_options *options;
	struct rewrite_trace *trace;
};

/* Traversals down have no leaf and inner bodies, and keep their values. */
static void refactor_traversal(struct sub_program *to, const struct sub_program *from, int traversal,
			       void *context)
{
	const struct request *r = context;
	struct refactoring f = {
	    .arena = to->arena, .from = from, .to = to, .how = r->how, .options = r->options};
	find_bodies(&f, traversal);
	if (r->how != MOVE_OFF && f.leaves.all.n && f.readers.n && refactor_values(&f))
		note_derived(&f, r->trace);
	else
		move_keep_program(to, from);
}

void move_refactor(struct sub_program *to, const struct sub_program *from, enum move_extent how,
		   const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct request request = {how, options, trace};
	struct sub_program moved;
	if (how != MOVE_ALL) {
		move_each_traversal(to, from, refactor_traversal, &request);
		return;
	}
	sub_init(&moved, to->arena, from->name);
	move_each_traversal(&moved, from, refactor_traversal, &request);
	refactor_tails(to, &moved, trace);
}

bool move_is_refactored(const struct sub_program *p)
{
	return p->states.n && p->states.at[p->states.n - 1].derived;
}
