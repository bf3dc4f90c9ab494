/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Index notation: numbers whose values have the dimensions of the variables that they depend on. */
#include "subop/lower_operator.h"

/* The extents of the variables of a nest, by position. */
struct nest_extents {
	int64_t at[RA_MAX_POSITIONS];
};

static struct nest_extents *find_nest_extents(struct lowering *l)
{
	const struct ra_model *m = l->model;
	struct nest_extents *extents = ARENA_ARRAY(l->p->arena, struct nest_extents, ra_count_nests(m) + 1);
	for (size_t i = 0; i < m->indices.n; i++)
		extents[m->indices.at[i].nest].at[m->indices.at[i].position] =
		    ra_dim_value(&m->indices.at[i].extent, l->sizes);
	return extents;
}

const int *sub_lower_indices(struct lowering *l)
{
	const struct ra_model *m = l->model;
	const struct nest_extents *extents = find_nest_extents(l);
	int *var = ARENA_ARRAY(l->p->arena, int, m->indices.n + 1);
	for (size_t i = 0; i < m->indices.n; i++) {
		const int64_t *of = extents[m->indices.at[i].nest].at;
		int at = m->indices.at[i].position, ordinal = 0;
		for (int k = 0; k < at; k++)
			ordinal += of[k] == of[at];
		var[i] = sub_dim(l->p, of[at], ordinal);
	}
	return var;
}

/* Whether an element is one of a whole value, under these names of its dimensions. */
static bool renames_dims(const struct lowering *l, const struct ra_node *n, int *vars)
{
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	for (int d = 0; d < from->rank; d++) {
		const struct ra_index_form *f = &n->element->at[d];
		vars[d] = f->terms ? l->index[f->term[0].index] : -1;
		if (f->terms != 1 || f->term[0].scale != 1 || ra_dim_value(&f->offset, l->sizes) ||
		    l->p->vars.at[vars[d]].extent != ra_dim_value(&from->dim[d], l->sizes))
			return false;
		for (int e = 0; e < d; e++)
			if (vars[e] == vars[d])
				return false;
	}
	return true;
}

struct sub_use sub_number_use(struct lowering *l, const struct ra_node *n, int i)
{
	const struct ra_node *arg = ra_at(l->model, n->arg[i]);
	int vars[RA_MAX_RANK];
	if (arg->op == RA_ELEMENT && renames_dims(l, arg, vars))
		return sub_use_under(l, sub_value_of_argument(l, n, i), vars, ra_at(l->model, arg->arg[0])->shape.rank);
	return sub_as_is(l->p, sub_value_of_argument(l, n, i));
}

/* A copy of a value under other variables, among which are all of its own. */
static struct sub_use arrange_vars(struct lowering *l, struct sub_use u, const int *dims, int n)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .map = map};
	for (int i = 0; i < u.vars; i++)
		map[i] = sub_affine_map(u.var[i], 0);
	sub_add_leading_vars(l, &v, &u);
	sub_add_dims(&v, dims, n);
	return sub_as_is(l->p, sub_add(l->p, v, l->diags));
}

/* Writes the dimensions of a use, without its leading ones; returns their number. */
static int dims_of_use(const struct lowering *l, const struct sub_use *u, int *dims)
{
	int n = 0;
	for (int i = 0; i < u->vars; i++)
		if (sub_is_dim(l->p, u->var[i]))
			dims[n++] = u->var[i];
	return n;
}

/* The use with its dimensions in an order that all values share. */
static struct sub_use sort_dims(struct lowering *l, struct sub_use u)
{
	int dims[SUB_MAX_VARS], n = dims_of_use(l, &u, dims);
	bool sorted = true;
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && dims[j] < dims[j - 1]; j--) {
			int var = dims[j];
			dims[j] = dims[j - 1], dims[j - 1] = var;
			sorted = false;
		}
	return sorted ? u : arrange_vars(l, u, dims, n);
}

sub_ref sub_add_numbers(struct lowering *l, struct sub_value v)
{
	struct sub_value trial = v;
	for (int a = 0; a < sub_traits_of(v.op)->arity && !sub_infer_vars(l->p, &trial); a++)
		trial.arg[a] = v.arg[a] = sort_dims(l, v.arg[a]);
	return sub_add(l->p, v, l->diags);
}

static struct sub_map map_of_form(const struct lowering *l, const struct ra_index_form *f)
{
	struct sub_map map = sub_fixed_map(ra_dim_value(&f->offset, l->sizes));
	for (int t = 0; t < f->terms; t++) {
		*(t ? &map.var2 : &map.var) = l->index[f->term[t].index];
		*(t ? &map.scale2 : &map.scale) = f->term[t].scale;
	}
	return map;
}

/* Appends the variables of a map that a list lacks. */
static void add_map_vars(const struct sub_map *map, int *vars, int *used)
{
	int of[] = {map->var, map->scale2 ? map->var2 : -1};
	for (int t = 0; t < 2; t++) {
		int i = 0;
		while (i < *used && vars[i] != of[t])
			i++;
		if (of[t] >= 0 && i == *used)
			vars[(*used)++] = of[t];
	}
}

sub_ref lower_element(struct lowering *l, const struct ra_node *n)
{
	sub_ref from = sub_expand_argument(l, n, 0);
	int vars[RA_MAX_RANK], rank = ra_at(l->model, n->arg[0])->shape.rank, dims[SUB_MAX_VARS], used = 0;
	struct sub_map map[RA_MAX_RANK];
	if (renames_dims(l, n, vars))
		return from;
	for (int d = 0; d < rank; d++) {
		map[d] = map_of_form(l, &n->element->at[d]);
		add_map_vars(&map[d], dims, &used);
	}
	return sub_move_filled(l, from, map, dims, used, &n->element->fill);
}

/* --- elements by a computed index --- */

/* A variable of this extent that none of these values has. */
static int find_other_var(struct lowering *l, int64_t extent, const struct sub_use *a,
			  const struct sub_use *b)
{
	int ordinal = 0;
	while (sub_use_has(a, sub_dim(l->p, extent, ordinal)) ||
	       sub_use_has(b, sub_dim(l->p, extent, ordinal)))
		ordinal++;
	return sub_dim(l->p, extent, ordinal);
}

/* What is gathered, with the names of index notation for all axes but the one of the computed index, which
 * gets a variable of its own. */
static struct sub_use find_gathered(struct lowering *l, const struct ra_node *n, const struct sub_use *by,
				    int *var)
{
	const struct ra_shape *shape = &ra_at(l->model, n->arg[0])->shape;
	struct sub_use taken = *by;
	int vars[SUB_MAX_VARS], used = 0;
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < shape->rank; d++)
		for (int t = 0; t < n->element->at[d].terms; t++)
			if (!sub_use_has(&taken, l->index[n->element->at[d].term[t].index]))
				taken.var[taken.vars++] = l->index[n->element->at[d].term[t].index];
	*var = find_other_var(l, ra_dim_value(&shape->dim[n->axis], l->sizes), &taken, by);
	for (int d = 0; d < shape->rank; d++) {
		map[d] = d == n->axis ? sub_affine_map(*var, 0) : map_of_form(l, &n->element->at[d]);
		add_map_vars(&map[d], vars, &used);
	}
	return sub_as_is(
	    l->p, sub_move_filled(l, sub_expand_argument(l, n, 0), map, vars, used, &n->element->fill));
}

static sub_ref add_integer(struct lowering *l, const struct sub_use *like, int64_t value)
{
	enum dtype dtype = sub_at(l->p, like->value)->dtype;
	return sub_add(l->p, (struct sub_value){.op = SUB_CONST, .dtype = dtype, .constant = (double)value},
		       l->diags);
}

static sub_ref add_two(struct lowering *l, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return sub_add_numbers(l, (struct sub_value){.op = op, .arg = {a, b}});
}

/* `inside` where the index is below the extent and not negative, else the fill. */
static sub_ref choose_inside(struct lowering *l, const struct ra_node *n, const struct sub_use *by,
			     int64_t extent, sub_ref inside)
{
	struct sub_use none = sub_as_is(l->p, add_integer(l, by, -1)),
		       end = sub_as_is(l->p, add_integer(l, by, extent));
	sub_ref from = add_two(l, SUB_LESS, none, *by), to = add_two(l, SUB_LESS, *by, end);
	sub_ref is = add_two(l, SUB_AND, sub_as_is(l->p, from), sub_as_is(l->p, to));
	sub_ref fill = sub_add(
	    l->p, (struct sub_value){.op = SUB_CONST, .dtype = n->dtype, .constant = n->element->fill},
	    l->diags);
	struct sub_value v = {.op = SUB_SELECT};
	v.arg[0] = sub_as_is(l->p, is);
	v.arg[1] = sub_as_is(l->p, inside);
	v.arg[2] = sub_as_is(l->p, fill);
	return sub_add_numbers(l, v);
}

sub_ref lower_gather(struct lowering *l, const struct ra_node *n)
{
	int var;
	struct sub_use by = sub_number_use(l, n, 1), from = find_gathered(l, n, &by, &var);
	struct sub_value v = {.op = SUB_GATHER, .arg = {from, by}, .reduced = sub_one_var(var)};
	sub_ref r = sub_add_numbers(l, v);
	bool filled = n->element->written || n->element->reduced;
	return filled && r.i ? choose_inside(l, n, &by, l->p->vars.at[var].extent, r) : r;
}

/* The variables of a list of indices. */
static struct sub_vars vars_of(const struct lowering *l, const struct ra_indices *indices)
{
	struct sub_vars all = {.n = indices->n};
	for (int i = 0; i < all.n; i++)
		all.var[i] = l->index[indices->index[i]];
	return all;
}

sub_ref lower_over(struct lowering *l, const struct ra_node *n)
{
	struct sub_use u = sub_number_use(l, n, 0);
	struct sub_vars over = vars_of(l, n->indices);
	int dims[SUB_MAX_VARS], had = dims_of_use(l, &u, dims), has = had;
	for (int i = 0; i < over.n; i++)
		if (!sub_use_has(&u, over.var[i]))
			dims[has++] = over.var[i];
	struct sub_value v = {.op = sub_op_of_ra[n->op], .reduced = over};
	v.arg[0] = has == had ? u : arrange_vars(l, u, dims, has);
	return sub_add(l->p, v, l->diags);
}

sub_ref lower_nest(struct lowering *l, const struct ra_node *n)
{
	struct sub_use u = sub_number_use(l, n, 0);
	struct sub_vars axes = vars_of(l, n->indices);
	int dims[SUB_MAX_VARS], has = dims_of_use(l, &u, dims);
	if (has == axes.n && memcmp(dims, axes.var, has * sizeof *dims) == 0)
		return u.value;
	return arrange_vars(l, u, axes.var, axes.n).value;
}
