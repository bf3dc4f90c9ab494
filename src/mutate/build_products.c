/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants of sums of products as sub-operators.
 *
 * All values get the names of the first one: a place is a position in the list of its variables and of those that it reduces.  An
 * operand that is to be joined is spread over the places that any value's has, and joined along one place (JOIN, APPEND), along a
 * new variable (STACK), or only made longer (PAD).  The results are parts of the one sum. */
#include "mutate/product_mutant.h"

#include <string.h>

enum { MOST_PLACES = 2 * SUB_MAX_VARS };

struct factory {
	struct sub_program *p;
	const struct mutate_regroup *r;
	int n;
	struct sub_value y[MUTATE_MAX_JOINED]; /* with the names of the first; APPEND: the one that the others begin with first */
	int own[MUTATE_MAX_JOINED][MOST_PLACES];  /* variables by place: those of the value, */
	int name[MUTATE_MAX_JOINED][MOST_PLACES]; /* those of the first where extents agree, */
	int whole[MOST_PLACES];			  /* those of the one product */
	int places, along;			  /* the place that is joined, padded or split; -1 = none */
	int stacked;				  /* STACK: the further variable */
	int used[(2 * MUTATE_MAX_JOINED + 4) * MOST_PLACES], uses;
};

const struct mutate_operator_traits mutate_operators[] = {{0},
#define MUTATE_OPERATOR(name, spelling, dim, number, values, meaning) {spelling, dim, number, values},
#include "mutate/products.def"
#undef MUTATE_OPERATOR
};

int mutate_count_replaced(const struct mutate_regroup *r)
{
	return r->op == MUTATE_APPEND || r->op == MUTATE_LIKE ? 1 : r->n;
}

/* --- places --- */

static int64_t extent_of(const struct factory *f, int var)
{
	return f->p->vars.at[var].extent;
}

static bool is_dim(const struct factory *f, int var)
{
	return f->p->vars.at[var].set == SUB_DIM;
}

static int take_var(struct factory *f, int64_t extent)
{
	int var = sub_other_dim(f->p, extent, f->used, f->uses);
	f->used[f->uses++] = var;
	return var;
}

static int find_in(const int *list, int n, int var)
{
	for (int i = 0; i < n; i++)
		if (list[i] == var)
			return i;
	return -1;
}

/* The places of a use's variables, as bits. */
static unsigned places_of(const struct factory *f, int k, const struct sub_use *u)
{
	unsigned mask = 0;
	for (int i = 0; i < u->vars; i++)
		mask |= 1u << find_in(f->name[k], f->places, u->var[i]);
	return mask;
}

/* Whether a place may have another extent in a further value. */
static bool may_differ(const struct factory *f, int place)
{
	return f->r->op == MUTATE_STACK || place == f->along;
}

/* Names the places of a value; false if it has others than the first. */
static bool name_places(struct factory *f, int k, const struct sub_value *y)
{
	if (y->vars + y->reduced.n != f->places || y->vars != f->y[0].vars)
		return false;
	memcpy(f->own[k], y->var, (size_t)y->vars * sizeof *y->var);
	memcpy(f->own[k] + y->vars, y->reduced.var, (size_t)y->reduced.n * sizeof *y->reduced.var);
	for (int t = 0; t < f->places; t++) {
		int var = f->own[k][t], first = f->own[0][t];
		bool same = is_dim(f, var) && is_dim(f, first) ? extent_of(f, var) == extent_of(f, first) : var == first;
		if (!same && !(is_dim(f, var) && is_dim(f, first) && may_differ(f, t)))
			return false;
		f->name[k][t] = same ? first : take_var(f, extent_of(f, var));
	}
	return true;
}

/* Gives a use the names of its value's places; false if it has a variable that is at none. */
static bool rename_use(const struct factory *f, int k, struct sub_use *u)
{
	for (int i = 0; i < u->vars; i++) {
		int t = find_in(f->own[k], f->places, u->var[i]);
		if (t < 0)
			return false;
		u->var[i] = f->name[k][t];
	}
	return true;
}

/* Puts the factors in the order of the first value's, where the variables tell which is which. */
static void order_factors(struct factory *f, int k)
{
	struct sub_use *u = f->y[k].arg;
	unsigned first = places_of(f, 0, &f->y[0].arg[1]);
	if (places_of(f, k, &u[1]) != first && places_of(f, k, &u[2]) == first) {
		struct sub_use other = u[1];
		u[1] = u[2];
		u[2] = other;
	}
}

static bool add_value(struct factory *f, int k, sub_ref r)
{
	f->y[k] = *sub_at(f->p, r);
	if (!name_places(f, k, &f->y[k]))
		return false;
	for (int a = 0; a < 3; a++)
		if (!rename_use(f, k, &f->y[k].arg[a]))
			return false;
	order_factors(f, k);
	return true;
}

/* --- sizes --- */

static int64_t sum_extents(const struct factory *f, int place, int before)
{
	int64_t n = 0;
	for (int k = 0; k < before; k++)
		n += extent_of(f, f->name[k][place]);
	return n;
}

static int64_t longest_extent(const struct factory *f, int place)
{
	int64_t most = 0;
	for (int k = 0; k < f->n; k++)
		most = extent_of(f, f->name[k][place]) > most ? extent_of(f, f->name[k][place]) : most;
	return most;
}

static int64_t whole_extent(const struct factory *f, int place)
{
	int64_t own = extent_of(f, f->name[0][place]), by = f->r->number;
	if (f->r->op == MUTATE_STACK)
		return longest_extent(f, place);
	if (place != f->along || f->r->op == MUTATE_SPLIT)
		return own;
	return f->r->op == MUTATE_PAD ? (own + by - 1) / by * by : sum_extents(f, place, f->n);
}

static void name_whole(struct factory *f)
{
	for (int t = 0; t < f->places; t++) {
		int first = f->name[0][t];
		bool same = !is_dim(f, first) || whole_extent(f, t) == extent_of(f, first);
		f->whole[t] = same ? first : take_var(f, whole_extent(f, t));
	}
	f->stacked = f->r->op == MUTATE_STACK ? take_var(f, f->n) : -1;
}

/* --- operands --- */

/* The variable at a place of what a value's operand is made before it is joined. */
static int part_var(const struct factory *f, int k, int place)
{
	bool joins = f->r->op == MUTATE_JOIN || f->r->op == MUTATE_APPEND;
	return joins && place == f->along ? f->name[k][place] : f->whole[place];
}

/* Variables of the same extents as those of a use, which depend on these extents alone: operands that are made alike for different
 * sums are one value. */
static void list_common_vars(const struct factory *f, const struct sub_use *u, int *var)
{
	for (int i = 0; i < u->vars; i++)
		var[i] = is_dim(f, u->var[i]) ? sub_other_dim(f->p, extent_of(f, u->var[i]), var, i) : u->var[i];
}

/* An operand as a value of these variables: read again along those that it lacks, zero where it ends before them. */
static struct sub_use spread_use(struct factory *f, int k, const struct sub_use *u, const struct sub_use *to)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(f->p, u->value)}, .vars = to->vars, .map = map};
	if (u->vars == to->vars && memcmp(u->var, to->var, (size_t)u->vars * sizeof *u->var) == 0)
		return *u;
	list_common_vars(f, to, v.var);
	for (int i = 0; i < u->vars; i++) {
		int var = part_var(f, k, find_in(f->name[k], f->places, u->var[i]));
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = v.var[find_in(to->var, to->vars, var)], .scale = 1};
		v.fills |= is_dim(f, var) && extent_of(f, var) > extent_of(f, u->var[i]);
	}
	struct sub_use spread = *to;
	spread.value = sub_add(f->p, v, NULL);
	return spread;
}

/* Joins two uses of the same variables but for that at one position, which becomes `var`. */
static struct sub_use join_pair(struct factory *f, const struct sub_use *a, const struct sub_use *b, int axis, int var)
{
	struct sub_use joined = *a;
	struct sub_value v = {.op = SUB_COND, .arg = {*a, *b}, .vars = a->vars, .axis = axis};
	joined.var[axis] = var;
	list_common_vars(f, &joined, v.var);
	for (int k = 0; k < 2; k++) {
		int64_t extent = extent_of(f, v.arg[k].var[axis]);
		memcpy(v.arg[k].var, v.var, sizeof v.var);
		v.arg[k].var[axis] = sub_other_dim(f->p, extent, v.var, v.vars);
	}
	joined.value = a->value.i && b->value.i ? sub_add(f->p, v, NULL) : (sub_ref){0};
	return joined;
}

static struct sub_use join_uses(struct factory *f, const struct sub_use *part, int n, int axis, int var)
{
	struct sub_use all = part[0];
	for (int k = 1; k < n && all.value.i; k++) {
		int64_t extent = extent_of(f, all.var[axis]) + extent_of(f, part[k].var[axis]);
		all = join_pair(f, &all, &part[k], axis, k == n - 1 ? var : take_var(f, extent));
	}
	return all;
}

/* The places of an operand that is joined, in the order of a value's that has them all, else in their own. */
static int order_places(const struct factory *f, int a, unsigned mask, int *place)
{
	int n = 0;
	for (int k = 0; k < f->n; k++) {
		const struct sub_use *u = &f->y[k].arg[a];
		if (places_of(f, k, u) != mask)
			continue;
		for (int i = 0; i < u->vars; i++)
			place[n++] = find_in(f->name[k], f->places, u->var[i]);
		return n;
	}
	for (int t = 0; t < f->places; t++)
		if (mask >> t & 1)
			place[n++] = t;
	return n;
}

/* Writes the variables of a value's part of an operand; returns the position along which parts are joined. */
static int list_part_vars(const struct factory *f, int k, const int *place, int n, int one, struct sub_use *to)
{
	int axis = -1;
	*to = (struct sub_use){.vars = 0};
	for (int i = 0; i < n; i++) {
		if (one >= 0 && axis < 0 && is_dim(f, f->name[0][place[i]])) {
			axis = to->vars;
			to->var[to->vars++] = one;
		}
		if (one < 0 && place[i] == f->along)
			axis = to->vars;
		to->var[to->vars++] = part_var(f, k, place[i]);
	}
	if (one >= 0 && axis < 0) {
		axis = to->vars;
		to->var[to->vars++] = one;
	}
	return axis;
}

static struct sub_use join_operand(struct factory *f, int a, unsigned mask)
{
	struct sub_use part[MUTATE_MAX_JOINED];
	int place[MOST_PLACES], axis = 0, n = order_places(f, a, mask, place);
	int one = f->r->op == MUTATE_STACK ? take_var(f, 1) : -1;
	if (n + (one >= 0) > SUB_MAX_VARS)
		return (struct sub_use){.vars = 0};
	for (int k = 0; k < f->n; k++) {
		struct sub_use to;
		axis = list_part_vars(f, k, place, n, one, &to);
		part[k] = spread_use(f, k, &f->y[k].arg[a], &to);
	}
	return join_uses(f, part, f->n, axis, one >= 0 ? f->stacked : f->whole[f->along]);
}

/* The operand of the one product: that of the first value, or all joined. */
static struct sub_use build_operand(struct factory *f, int a)
{
	unsigned mask = 0, bit = f->along < 0 ? 0 : 1u << f->along;
	bool alike = true;
	for (int k = 0; k < f->n; k++) {
		mask |= places_of(f, k, &f->y[k].arg[a]);
		alike &= sub_same_use(&f->y[0].arg[a], &f->y[k].arg[a]);
	}
	if (a == 0 && f->r->op == MUTATE_JOIN && !alike)
		mask |= bit;
	bool moves = f->r->op == MUTATE_STACK ? !alike : f->r->op == MUTATE_APPEND ? a > 0 : (mask & bit) != 0;
	return moves ? join_operand(f, a, mask) : f->y[0].arg[a];
}

static sub_ref build_sum(struct factory *f)
{
	struct sub_value v = f->y[0];
	for (int a = 0; a < 3; a++) {
		v.arg[a] = build_operand(f, a);
		if (!v.arg[a].value.i)
			return (sub_ref){0};
	}
	for (int i = 0; i < v.reduced.n; i++)
		v.reduced.var[i] = f->whole[f->y[0].vars + i];
	return sub_add(f->p, v, NULL);
}

/* --- results --- */

/* The part of the sum that is a value. */
static sub_ref take_result(struct factory *f, sub_ref sum, int k)
{
	const struct sub_value from = *sub_at(f->p, sum);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(f->p, sum)}, .vars = f->y[k].vars, .map = map};
	memcpy(v.var, f->own[k], (size_t)v.vars * sizeof *v.var);
	for (int i = 0; i < from.vars; i++) {
		int t = find_in(f->whole, f->places, from.var[i]);
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = -1, .offset = k};
		if (from.var[i] != f->stacked)
			map[i] = (struct sub_map){.function = SUB_AFFINE,
						  .var = f->own[k][t],
						  .scale = 1,
						  .offset = t == f->along && f->r->op == MUTATE_JOIN ? sum_extents(f, t, k) : 0};
	}
	return sub_add(f->p, v, NULL);
}

/* --- a value in parts --- */

/* A part of an operand along a place: `var` in place of its variable, from an index on. */
static struct sub_use cut_use(struct factory *f, const struct sub_use *u, int var, int64_t first)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(f->p, u->value)}, .vars = u->vars, .map = map};
	struct sub_use part = *u;
	int at = find_in(u->var, u->vars, f->name[0][f->along]);
	if (at < 0)
		return *u;
	for (int i = 0; i < u->vars; i++) {
		v.var[i] = part.var[i] = i == at ? var : u->var[i];
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = v.var[i], .scale = 1, .offset = i == at ? first : 0};
	}
	part.value = sub_add(f->p, v, NULL);
	return part;
}

static sub_ref build_part(struct factory *f, int var, int64_t first)
{
	struct sub_value v = f->y[0];
	for (int a = 0; a < 3; a++) {
		v.arg[a] = cut_use(f, &f->y[0].arg[a], var, first);
		if (!v.arg[a].value.i)
			return (sub_ref){0};
	}
	return sub_add(f->p, v, NULL);
}

/* Parts of equal extents, the last one perhaps shorter, joined again. */
static sub_ref build_parts(struct factory *f)
{
	struct sub_use part[MUTATE_MAX_JOINED];
	int64_t extent = extent_of(f, f->name[0][f->along]), size = (extent + f->r->number - 1) / f->r->number;
	int n = 0, full = take_var(f, size);
	for (int64_t first = 0; first < extent; first += size) {
		int var = first + size <= extent ? full : take_var(f, extent - first);
		sub_ref r = build_part(f, var, first);
		if (!r.i)
			return r;
		part[n++] = sub_as_is(f->p, r);
	}
	return join_uses(f, part, n, f->along, f->name[0][f->along]).value;
}

/* --- whole mutants --- */

/* Which place an operator works along; false if the value has none. */
static bool find_along(struct factory *f, const struct sub_value *first)
{
	int leading = sub_leading_dims(f->p, f->r->value[0]), dims = first->vars - leading;
	f->along = -1;
	if (f->r->op == MUTATE_APPEND)
		f->along = first->vars;
	else if (mutate_operators[f->r->op].dim)
		f->along = leading + f->r->dim;
	return !mutate_operators[f->r->op].dim || (f->r->dim >= 0 && f->r->dim < dims);
}

/* Whether each sum begins with the one before it, element by element. */
static bool is_chain(const struct factory *f)
{
	bool any = true;
	for (int k = 1; k < f->n; k++) {
		const struct sub_use *begin = &f->y[k].arg[0];
		any &= begin->value.i == f->r->value[f->n - k].i && begin->vars == f->y[0].vars;
		any &= memcmp(begin->var, f->name[0], (size_t)begin->vars * sizeof *begin->var) == 0;
	}
	return any;
}

static const char *refuse_number(const struct factory *f)
{
	int64_t extent = f->along < 0 ? 0 : extent_of(f, f->name[0][f->along]);
	if (f->r->op == MUTATE_PAD && (f->r->number < 2 || extent % f->r->number == 0))
		return "it does not fit the sizes";
	if (f->r->op == MUTATE_SPLIT && (f->r->number < 2 || f->r->number > MUTATE_MAX_JOINED || f->r->number > extent))
		return "it does not fit the sizes";
	return f->r->op == MUTATE_APPEND && !is_chain(f) ? "it does not begin with the others" : NULL;
}

const char *mutate_build_products(struct sub_program *p, const struct mutate_regroup *r, sub_ref *whole)
{
	const struct sub_value *first = sub_at(p, r->value[0]);
	struct factory f = {.p = p, .r = r, .n = r->n, .places = first->vars + first->reduced.n, .stacked = -1};
	if (f.places > MOST_PLACES || first->vars + 1 > SUB_MAX_VARS || !find_along(&f, first))
		return "it does not fit the sizes";
	f.y[0] = *first;
	for (int k = 0; k < f.n; k++) {
		const struct sub_value *y = sub_at(p, r->value[k]);
		for (int i = 0; i < y->vars + y->reduced.n; i++)
			f.used[f.uses++] = i < y->vars ? y->var[i] : y->reduced.var[i - y->vars];
	}
	for (int k = 0; k < f.n; k++)
		if (!add_value(&f, k, r->value[r->op == MUTATE_APPEND ? r->n - 1 - k : k]))
			return "its values have other sizes";
	const char *why = refuse_number(&f);
	if (why)
		return why;
	name_whole(&f);
	sub_ref sum = r->op == MUTATE_SPLIT ? build_parts(&f) : build_sum(&f);
	for (int k = 0; k < mutate_count_replaced(r) && sum.i; k++) {
		whole[k] = take_result(&f, sum, r->op == MUTATE_APPEND ? f.n - 1 : k);
		sum = whole[k].i ? sum : whole[k];
	}
	return sum.i ? NULL : "it has too many dimensions";
}
