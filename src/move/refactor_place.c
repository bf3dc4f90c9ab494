/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Computes values of a child's states at another place: of the states that a body stores, or of rows of
 * tables. */
#include "move/refactor.h"

#include <stdio.h>

/* --- at another place --- */

struct place refactor_new_place(const struct refactoring *f, int row)
{
	return (struct place){row, ARENA_ARRAY(f->arena, sub_ref, f->from->states.n),
			      ARENA_ARRAY(f->arena, sub_ref, f->to->values.n)};
}

/* Drops the variable of the edge and renames that of the node to the place's; returns the number of
 * variables. */
static int put_vars(const struct refactoring *f, const struct place *to, int *var, int n)
{
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (var[i] != f->from->edge)
			var[kept++] = var[i] == f->from->node ? to->row : var[i];
	return kept;
}

/* Keeps the maps of dimensions, after one for the row itself. */
static void put_maps(const struct refactoring *f, const struct place *to, struct sub_value *v,
		     struct sub_map *maps)
{
	int leading = sub_leading_dims(f->from, v->arg[0].value), dims = v->arg[0].vars - leading;
	maps[0] = (struct sub_map){.function = SUB_AFFINE, .var = to->row, .scale = 1};
	memcpy(&maps[1], &v->map[leading], dims * sizeof *maps);
	v->map = maps;
}

bool refactor_is_whole(const struct sub_program *p, const struct sub_value *v)
{
	int leading = v->vars - (v->arg[0].vars - 1);
	for (int i = 1; i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		int of = sub_at(p, v->arg[0].value)->var[i];
		if (m->function != SUB_AFFINE || leading + i - 1 >= v->vars ||
		    m->var != v->var[leading + i - 1] || m->scale != 1 || m->offset || m->scale2 ||
		    p->vars.at[of].extent != p->vars.at[m->var].extent)
			return false;
	}
	return !v->fills;
}

/* Reads the state's value at the place instead of a child's state. */
static sub_ref move_child(struct refactoring *f, const struct place *to, struct sub_value v)
{
	sub_ref state = to->state[sub_at(f->from, v.arg[0].value)->which];
	if (refactor_is_whole(f->from, &v))
		return state;
	struct sub_map maps[SUB_MAX_VARS];
	put_maps(f, to, &v, maps);
	v.vars = put_vars(f, to, v.var, v.vars);
	v.arg[0] = sub_as_is(f->to, state);
	return sub_add(f->to, v, NULL);
}

static sub_ref value_at(const struct refactoring *f, const struct place *to, sub_ref r)
{
	return sub_has_leading_dim(f->to, r) ? to->value[r.i] : r;
}

static sub_ref move_value(struct refactoring *f, const struct place *to, struct sub_value v)
{
	bool as_is = v.op == SUB_ASSIGN;
	int vars = v.vars;
	struct sub_map maps[SUB_MAX_VARS];
	if (v.op == SUB_ASSIGN)
		put_maps(f, to, &v, maps);
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = value_at(f, to, v.arg[a].value);
		v.arg[a].vars = put_vars(f, to, v.arg[a].var, v.arg[a].vars);
		if (as_is)
			v.arg[a] = sub_as_is(f->to, v.arg[a].value);
	}
	v.vars = put_vars(f, to, v.var, v.vars);
	v.axis -= v.op == SUB_COND ? vars - v.vars : 0;
	return sub_add(f->to, v, NULL);
}

/* By value: whether it has rows and is needed for `r`, itself included.  Operands have smaller numbers
 * than their users, so one loop does, and the C stack does not grow with the length of a chain. */
static bool *mark_needed(const struct refactoring *f, sub_ref r)
{
	bool *needed = ARENA_ARRAY(f->arena, bool, r.i + 1);
	needed[r.i] = sub_has_leading_dim(f->to, r);
	for (uint32_t i = r.i; i > 0; i--) {
		const struct sub_value *v = refactor_value(f, (sub_ref){i});
		if (!needed[i] || refactor_is_child(f->to, v))
			continue;
		for (int a = 0; a < v->args; a++)
			needed[v->arg[a].value.i] = sub_has_leading_dim(f->to, v->arg[a].value);
	}
	return needed;
}

sub_ref refactor_move(struct refactoring *f, struct place *to, sub_ref r)
{
	bool *needed = mark_needed(f, r);
	for (uint32_t i = 1; i <= r.i; i++) {
		struct sub_value v = *refactor_value(f, (sub_ref){i});
		if (needed[i] && !to->value[i].i)
			to->value[i] =
			    refactor_is_child(f->to, &v) ? move_child(f, to, v) : move_value(f, to, v);
	}
	sub_ref there = value_at(f, to, r);
	int leading = sub_leading_dims(f->to, r), dims = refactor_value(f, r)->vars - leading;
	f->misfit |= !there.i || refactor_value(f, there)->vars != dims + 1 ||
		     memcmp(&refactor_value(f, there)->var[1], &refactor_value(f, r)->var[leading],
			    dims * sizeof(int)) != 0;
	return there;
}

/* --- tables --- */

/* Whether a value looks up rows of a parameter by a token. */
static bool is_look_up(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && sub_at(p, v->arg[0].value)->op == SUB_PARAM &&
	       v->vars == v->arg[0].vars && v->map[0].function == SUB_TOKEN && refactor_is_whole(p, v);
}

/* Joins the look-up of a leaf's state with the others: they must agree in token and number of rows. */
static void join_look_up(const struct refactoring *f, int state, struct look_up *l)
{
	const struct sub_value *leaf = refactor_value(f, refactor_store(f->leaf, state)->value.value);
	if (!is_look_up(f->to, leaf)) {
		l->ok = false;
		return;
	}
	int64_t rows = f->to->vars.at[refactor_value(f, leaf->arg[0].value)->var[0]].extent;
	bool first = l->map.function == SUB_AFFINE;
	l->ok &= first || (l->map.which == leaf->map[0].which && l->rows == rows);
	l->map = leaf->map[0];
	l->rows = rows;
}

/* Whether all states of a leaf that a value needs are looked up, in rows that are not taken apart. */
static void find_look_up(const struct refactoring *f, sub_ref r, struct look_up *l)
{
	bool *needed = mark_needed(f, r);
	for (uint32_t i = 1; i <= r.i; i++) {
		const struct sub_value *v = refactor_value(f, (sub_ref){i});
		if (!needed[i])
			continue;
		l->ok &= v->op != SUB_COND && !v->fills;
		if (refactor_is_child(f->to, v))
			join_look_up(f, refactor_value(f, v->arg[0].value)->which, l);
	}
}

static double tensor_bytes(const struct sub_tensor *t)
{
	double bytes = dtype_traits_of(t->dtype)->bytes;
	for (int d = 0; d < t->rank; d++)
		bytes *= t->shape[d];
	return bytes;
}

/* Bytes of all tables that are made at binding, and of one more. */
static double table_bytes(const struct refactoring *f, double more)
{
	bool *counted = ARENA_ARRAY(f->arena, bool, f->to->params.n);
	for (size_t b = 0; b < f->from->bodies.n; b++) {
		bool *live = ARENA_ARRAY(f->arena, bool, f->from->values.n);
		sub_mark_live(f->from, &f->from->bodies.at[b], live);
		for (uint32_t i = 1; i < f->from->values.n; i++)
			if (live[i] && is_look_up(f->from, sub_at(f->from, (sub_ref){i})))
				counted[sub_at(f->from, f->from->values.at[i].arg[0].value)->which] = true;
	}
	for (size_t i = 0; i < f->to->params.n; i++) {
		const struct sub_tensor *t = &f->to->params.at[i];
		if (t->folded && (i >= f->from->params.n || counted[i]))
			more += tensor_bytes(t);
	}
	return more;
}

/* A variable for the rows of a table that is not among the variables of a row. */
static int row_dim(struct refactoring *f, const struct sub_tensor *row, int64_t rows)
{
	int ordinal = 0, var = sub_dim(f->to, rows, ordinal);
	for (int d = 0; d < row->rank; d++)
		if (row->var[d] == var) {
			var = sub_dim(f->to, rows, ++ordinal);
			d = -1;
		}
	return var;
}

/* Declares a table with rows like `row` as a parameter. */
static int declare_table(struct refactoring *f, const struct sub_tensor *row, int64_t rows)
{
	struct sub_tensor t = {.dtype = row->dtype, .rank = row->rank + 1, .folded = true};
	struct str s = str_in(f->arena);
	int number = 0;
	for (size_t i = 0; i < f->to->params.n; i++)
		number += f->to->params.at[i].folded;
	str_printf(&s, "fold%d", number);
	t.name = sub_find_free_name(f->from, SUB_NAME_TENSOR | SUB_NAME_BODY, s.text);
	t.shape[0] = rows;
	memcpy(&t.shape[1], row->shape, row->rank * sizeof *row->shape);
	memcpy(&t.var[1], row->var, row->rank * sizeof *row->var);
	t.var[0] = row_dim(f, row, rows);
	vec_push(f->arena, &f->to->params, t);
	return f->to->params.n - 1;
}

/* A place with a value for each row of the tables that leaves look their states up in. */
static struct place table_place(struct refactoring *f, int64_t rows)
{
	struct place at = refactor_new_place(f, sub_row(f->to, rows));
	for (size_t s = 0; s < f->from->states.n; s++) {
		const struct sub_store *leaf = refactor_store(f->leaf, s);
		if (leaf && is_look_up(f->to, refactor_value(f, leaf->value.value)))
			at.state[s] = refactor_value(f, leaf->value.value)->arg[0].value;
	}
	return at;
}

static sub_ref read_table(struct refactoring *f, int param, const struct sub_tensor *row,
			  const struct look_up *l)
{
	const struct sub_tensor *t = &f->to->params.at[param];
	struct sub_value table = {.op = SUB_PARAM, .which = param, .vars = t->rank};
	struct sub_map map[SUB_MAX_VARS] = {l->map};
	struct sub_value read = {
	    .op = SUB_ASSIGN, .args = 1, .vars = t->rank, .var = {f->to->node}, .map = map};
	memcpy(table.var, t->var, t->rank * sizeof *t->var);
	memcpy(&read.var[1], row->var, row->rank * sizeof *row->var);
	for (int i = 1; i < t->rank; i++)
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = read.var[i], .scale = 1};
	read.arg[0] = sub_as_is(f->to, sub_add(f->to, table, NULL));
	return sub_add(f->to, read, NULL);
}

sub_ref refactor_make_table(struct refactoring *f, const struct derived *d, const struct look_up *l,
			    struct place *at)
{
	const struct sub_tensor *row = &f->to->states.at[d->which];
	*at = table_place(f, l->rows);
	sub_ref value = refactor_move(f, at, d->value);
	for (size_t i = 0; i < f->tables.n; i++) {
		const struct sub_store *made = &f->tables.at[i].stores.at[0];
		if (made->value.value.i == value.i)
			return read_table(f, made->which, row, l);
	}
	int param = declare_table(f, row, l->rows);
	struct sub_body b = {.name = f->to->params.at[param].name, .domain = SUB_AT_BINDING};
	vec_push(f->arena, &b.stores,
		 (struct sub_store){.to = SUB_TO_PARAM, .which = param, .value = sub_as_is(f->to, value)});
	vec_push(f->arena, &f->tables, b);
	return read_table(f, param, row, l);
}

bool refactor_find_table(const struct refactoring *f, const struct derived *d, struct look_up *l)
{
	const struct sub_tensor *row = &f->to->states.at[d->which];
	*l = (struct look_up){.ok = !(f->options->off >> REWRITE_FAMILY_TABLES & 1) &&
				    row->rank < TENSOR_MAX_RANK};
	find_look_up(f, d->value, l);
	return l->ok && l->map.function == SUB_TOKEN &&
	       table_bytes(f, tensor_bytes(row) * l->rows) <= f->options->table_bytes;
}
