/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: slices, rows, transposition, and reshaping, whose indices are digits. */
#include "subop/lower_operator.h"

static sub_ref move_value(struct lowering *l, sub_ref from, const struct sub_map *map, const int *vars, int rank)
{
	return sub_move_filled(l, from, map, vars, rank, NULL);
}

sub_ref lower_slice(struct lowering *l, const struct ra_node *n)
{
	struct ra_shape shape = sub_last_axes(&n->shape, sub_dims_of(l, sub_value_of_argument(l, n, 0)));
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, &shape, vars),
	    axis = n->axis - (n->shape.rank - rank);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[d] = sub_affine_map(vars[d], d == axis ? ra_dim_value(&n->begin, l->sizes) : 0);
	return move_value(l, sub_value_of_argument(l, n, 0), map, vars, rank);
}

sub_ref lower_row(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK] = {sub_fixed_map(n->begin.constant)};
	if (sub_dims_of(l, sub_value_of_argument(l, n, 0)) <= rank)
		return sub_value_of_argument(l, n, 0);
	for (int d = 0; d < rank; d++)
		map[d + 1] = sub_affine_map(vars[d], 0);
	return move_value(l, sub_expand_argument(l, n, 0), map, vars, rank);
}

sub_ref lower_transpose(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK] = {0}, rank = sub_lower_shape(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[n->order[d]] = sub_affine_map(vars[d], 0);
	return move_value(l, sub_expand_argument(l, n, 0), map, vars, rank);
}

/* Extents without those of 1, and where they stand among all. */
struct axes {
	int n, place[RA_MAX_RANK];
	int64_t extent[RA_MAX_RANK];
};

static struct axes long_axes(const struct lowering *l, const struct ra_shape *s)
{
	struct axes a = {0};
	for (int d = 0; d < s->rank; d++) {
		int64_t extent = ra_dim_value(&s->dim[d], l->sizes);
		if (extent == 1)
			continue;
		a.place[a.n] = d;
		a.extent[a.n++] = extent;
	}
	return a;
}

/* Cuts two lists of extents with one product into the smallest runs that have one; sets where those of each
 * list end, and returns their number. */
static int find_runs(const struct axes *a, const struct axes *b, int *end_a, int *end_b)
{
	int n = 0;
	for (int i = 0, j = 0; i < a->n && j < b->n; n++) {
		int64_t x = a->extent[i++], y = b->extent[j++];
		while (x != y && (x < y ? i < a->n : j < b->n))
			*(x < y ? &x : &y) *= x < y ? a->extent[i++] : b->extent[j++];
		end_a[n] = i;
		end_b[n] = j;
	}
	return n;
}

/* The value with one axis for each run of its axes, which are digits of its index. */
static sub_ref join_runs(struct lowering *l, sub_ref r, int rank, const struct axes *from, const int *end,
			 struct axes *runs)
{
	struct sub_map map[RA_MAX_RANK];
	int vars[RA_MAX_RANK];
	for (int g = 0; g < runs->n; g++) {
		runs->extent[g] = 1;
		for (int i = g ? end[g - 1] : 0; i < end[g]; i++)
			runs->extent[g] *= from->extent[i];
	}
	sub_name_extents(l, runs->extent, runs->n, vars);
	for (int d = 0; d < rank; d++)
		map[d] = sub_fixed_map(0);
	for (int g = 0; g < runs->n; g++) {
		int64_t below = 1;
		for (int i = end[g]; i-- > (g ? end[g - 1] : 0); below *= from->extent[i])
			map[from->place[i]] = (struct sub_map){.function = SUB_DIGIT,
							       .var = vars[g],
							       .scale = 1,
							       .divisor = below,
							       .modulus = from->extent[i]};
	}
	return move_value(l, r, map, vars, runs->n);
}

/* Cuts the last axis `to` has in each run off the first that `now` has of it: x[e] becomes y[a, b] =
 * x[extent*a + b].  False if every axis of `now` is one of `to`. */
static bool split_runs(struct lowering *l, sub_ref *r, struct axes *now, int *first, const struct axes *to,
		       const int *end, int runs)
{
	struct axes next = {0};
	int vars[RA_MAX_RANK], at[RA_MAX_RANK] = {0}, cut[RA_MAX_RANK] = {0}, left[RA_MAX_RANK];
	bool any = false;
	for (int g = 0, i = 0; g < runs; g++) {
		int begin = g ? end[g - 1] : 0, has = first[g];
		bool splits = has > begin;
		int64_t by = splits ? to->extent[has] : 1;
		any |= splits;
		at[i] = next.n;
		cut[i] = splits;
		next.extent[next.n++] = now->extent[i] / by;
		if (splits)
			next.extent[next.n++] = by;
		i++;
		for (int k = has + 1; k < end[g]; k++, i++) {
			at[i] = next.n;
			cut[i] = 0;
			next.extent[next.n++] = to->extent[k];
		}
		left[g] = splits ? has - 1 : has;
	}
	if (!any)
		return false;
	struct sub_map map[RA_MAX_RANK];
	sub_name_extents(l, next.extent, next.n, vars);
	for (int i = 0; i < now->n; i++) {
		map[i] = sub_affine_map(vars[at[i]], 0);
		if (cut[i]) {
			map[i].scale = next.extent[at[i] + 1];
			map[i].var2 = vars[at[i] + 1];
			map[i].scale2 = 1;
		}
	}
	*r = move_value(l, *r, map, vars, next.n);
	*now = next;
	memcpy(first, left, (size_t)runs * sizeof *first);
	return true;
}

/* Reshapes in steps, each of which is one move: the axes of each run become one, of which they are digits;
 * then that is taken apart, an axis at a time from the last, since a map has two variables; then axes of
 * extent 1 are put in. */
sub_ref lower_reshape(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *shape = &ra_at(l->model, n->arg[0])->shape;
	struct axes from = long_axes(l, shape), to = long_axes(l, &n->shape), now = {0};
	int end_from[RA_MAX_RANK], end_to[RA_MAX_RANK], first[RA_MAX_RANK], vars[RA_MAX_RANK];
	struct sub_map map[RA_MAX_RANK];
	int runs = now.n = find_runs(&from, &to, end_from, end_to);
	sub_ref r = join_runs(l, sub_expand_argument(l, n, 0), shape->rank, &from, end_from, &now);
	for (int g = 0; g < runs; g++)
		first[g] = end_to[g] - 1;
	while (r.i && split_runs(l, &r, &now, first, &to, end_to, runs))
		;
	if (!r.i || to.n == n->shape.rank)
		return r;
	int rank = sub_lower_shape(l, &n->shape, vars);
	for (int i = 0; i < to.n; i++)
		map[i] = sub_affine_map(vars[to.place[i]], 0);
	return move_value(l, r, map, vars, rank);
}
