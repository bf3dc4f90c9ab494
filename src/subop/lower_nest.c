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

sub_ref lower_element(struct lowering *l, const struct ra_node *n)
{
	sub_ref from = sub_expand_argument(l, n, 0);
	int vars[RA_MAX_RANK], rank = ra_at(l->model, n->arg[0])->shape.rank, dims[SUB_MAX_VARS], used = 0;
	struct sub_map map[RA_MAX_RANK];
	if (renames_dims(l, n, vars))
		return from;
	for (int d = 0; d < rank; d++) {
		const struct ra_index_form *f = &n->element->at[d];
		map[d] = sub_fixed_map(ra_dim_value(&f->offset, l->sizes));
		for (int t = 0; t < f->terms; t++) {
			int var = l->index[f->term[t].index], i = 0;
			*(t ? &map[d].var2 : &map[d].var) = var;
			*(t ? &map[d].scale2 : &map[d].scale) = f->term[t].scale;
			while (i < used && dims[i] != var)
				i++;
			if (i == used)
				dims[used++] = var;
		}
	}
	return sub_move_filled(l, from, map, dims, used, &n->element->fill);
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
