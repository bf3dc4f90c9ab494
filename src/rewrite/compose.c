/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions of replacements that combine moves.  A move is the maps of an assign, from the variables outside
 * to the dimensions of its argument. */
#include "rewrite/rule_engine.h"

static const struct sub_use none = {.value = {0}};

static const struct sub_map *map_of(const struct rewrite_move *move, int inner)
{
	for (int i = 0; i < move->n; i++)
		if (move->inner[i] == inner)
			return &move->map[i];
	return NULL;
}

static struct sub_map identity_map(int var)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1};
}

/* Whether one variable comes after another: in the order of their sets, then of the root if it has both. */
static bool comes_after(const struct rewrite_match *m, int a, int b)
{
	int at[2] = {-1, -1};
	if (m->w->p->vars.at[a].set != m->w->p->vars.at[b].set)
		return m->w->p->vars.at[a].set > m->w->p->vars.at[b].set;
	for (int i = 0; i < m->root.vars; i++) {
		at[0] = m->root.var[i] == a ? i : at[0];
		at[1] = m->root.var[i] == b ? i : at[1];
	}
	return at[0] >= 0 && at[1] >= 0 && at[0] > at[1];
}

static void sort_vars(const struct rewrite_match *m, int *var, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j && comes_after(m, var[j - 1], var[j]); j--) {
			int other = var[j];
			var[j] = var[j - 1];
			var[j - 1] = other;
		}
}

/* Whether maps only rename variables; if so, sets `out` to the use under the new names. */
static bool only_renames(const struct sub_value *v, const struct sub_use *u, struct sub_use *out)
{
	*out = (struct sub_use){.value = u->value};
	for (int i = 0; i < u->vars; i++) {
		if (!sub_is_identity(&v->map[i]) || sub_use_has(out, v->map[i].var))
			return false;
		out->var[out->vars++] = v->map[i].var;
	}
	return true;
}

/* Whether two uses have equal ranges: an identity to a variable of another range is a slice. */
static bool same_extents(const struct sub_program *p, const struct sub_use *a, const struct sub_use *b)
{
	for (int i = 0; i < a->vars; i++)
		if (!sub_same_range(p, a->var[i], b->var[i]))
			return false;
	return true;
}

bool rewrite_reads_fill(const struct rewrite_match *m, const struct rewrite_move *a)
{
	for (int i = 0; a->fills && i < a->n; i++)
		if (sub_index_leaves(m->w->p, &a->map[i], a->inner[i]))
			return true;
	return false;
}

static bool add_var(struct sub_value *v, int var)
{
	struct sub_use so_far = {.vars = v->vars};
	memcpy(so_far.var, v->var, sizeof so_far.var);
	if (var < 0 || sub_use_has(&so_far, var))
		return true;
	if (v->vars == SUB_MAX_VARS)
		return false;
	v->var[v->vars++] = var;
	return true;
}

/* Adds the assign of `u` by the maps of `v`, without a fill if no map leaves its dimension; if the maps only
 * rename, adds nothing and returns the renamed use. */
static struct sub_use add_move(struct rewrite_match *m, struct sub_value v, struct sub_use u)
{
	struct sub_use out;
	bool leaves = false;
	if (only_renames(&v, &u, &out) && same_extents(m->w->p, &u, &out))
		return out;
	v.op = SUB_ASSIGN;
	v.arg[0] = u;
	for (int i = 0; i < u.vars; i++) {
		leaves |= sub_index_leaves(m->w->p, &v.map[i], u.var[i]);
		if (!add_var(&v, v.map[i].var) || (v.map[i].scale2 && !add_var(&v, v.map[i].var2)))
			return none;
	}
	if (leaves && !v.fills)
		return none;
	v.fills &= leaves;
	sort_vars(m, v.var, v.vars);
	return rewrite_add_value(m->w, v);
}

struct sub_use rewrite_move_value(struct rewrite_match *m, const struct rewrite_move *move, struct sub_use u)
{
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.fills = move->fills, .fill = move->fill, .map = maps};
	for (int i = 0; i < u.vars; i++) {
		const struct sub_map *map = map_of(move, u.var[i]);
		maps[i] = map ? *map : identity_map(u.var[i]);
	}
	return u.value.i ? add_move(m, v, u) : none;
}

/* Composes a map, `second`, with the maps of A that give its variables; false if the composition is no map.
 * `leaves`: the map may leave its dimension, where a function of the structure must not be applied. */
static bool compose_maps(const struct rewrite_move *a, const struct sub_map *second, bool leaves,
			 struct sub_map *out)
{
	const struct sub_map *first = second->var < 0 ? NULL : map_of(a, second->var);
	return sub_compose_maps(second, first, second->scale2 ? map_of(a, second->var2) : NULL, leaves, out);
}

/* compose(A, B, x): A(B(x)) as one assign. */
struct sub_use rewrite_compose_moves(struct rewrite_match *m, const struct rewrite_term *call)
{
	const struct rewrite_move *a = &m->move[call->arg[0]->name], *b = &m->move[call->arg[1]->name];
	struct sub_use x = rewrite_build_term(m, call->arg[2]);
	const struct rewrite_move *fills = rewrite_reads_fill(m, b) ? b : a;
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.fills = fills->fills, .fill = fills->fill, .map = maps};
	for (int i = 0; i < x.vars; i++)
		if (i >= b->n || !compose_maps(a, &b->map[i],
					       sub_index_leaves(m->w->p, &b->map[i], b->inner[i]), &maps[i]))
			return none;
	return x.value.i ? add_move(m, v, x) : none;
}

/* under(A, x): x, named as inside of A, with the names that its dimensions have outside. */
struct sub_use rewrite_rename_outside(struct rewrite_match *m, const struct rewrite_term *call)
{
	const struct rewrite_move *a = &m->move[call->arg[0]->name];
	struct sub_use x = rewrite_build_term(m, call->arg[1]);
	for (int i = 0; i < x.vars; i++) {
		const struct sub_map *map = map_of(a, x.var[i]);
		if (map && !sub_is_identity(map))
			return none;
		x.var[i] = map ? map->var : x.var[i];
	}
	return x;
}

/* through(A, b): b, named as outside of A, with names from inside, so that A(through(A, b)) is b.  Impossible
 * if b has a variable that A maps by anything but an identity. */
struct sub_use rewrite_rename_inside(struct rewrite_match *m, const struct rewrite_term *call)
{
	const struct rewrite_move *a = &m->move[call->arg[0]->name];
	struct sub_use b = rewrite_build_term(m, call->arg[1]);
	for (int i = 0; i < b.vars; i++) {
		int inner = -1, used = 0;
		for (int j = 0; j < a->n; j++) {
			used += sub_map_uses(&a->map[j], b.var[i]);
			if (a->map[j].var == b.var[i] && sub_is_identity(&a->map[j]))
				inner = a->inner[j];
		}
		if (used && inner < 0)
			return none;
		if (inner >= 0 && !sub_same_range(m->w->p, inner, b.var[i]))
			return none;
		b.var[i] = inner < 0 ? b.var[i] : inner;
	}
	return b;
}

/* side(A, j, a, b): A applied to the concatenation of a and b along j, if it reads only one of them. */
struct sub_use rewrite_select_side(struct rewrite_match *m, const struct rewrite_term *call)
{
	struct rewrite_move a = m->move[call->arg[0]->name];
	const struct rewrite_bound_index *j = &m->index[call->arg[1]->name];
	const struct sub_program *p = m->w->p;
	int64_t first = p->vars.at[j->side[0]].extent;
	for (int i = 0; i < a.n; i++) {
		struct sub_map *map = &a.map[i];
		if (a.inner[i] != j->over.var[0])
			continue;
		int64_t low, high;
		if (!sub_map_range(p, map, &low, &high))
			return none;
		int side = low >= first;
		if ((!side && high >= first) || (side && map->function != SUB_AFFINE))
			return none;
		a.inner[i] = j->side[side];
		map->offset -= side ? first : 0;
		return rewrite_move_value(m, &a, rewrite_build_term(m, call->arg[2 + side]));
	}
	return none;
}

/* join(A, B, j, x): the concatenation along j of A(x) and B(x), two slices of x of which the second begins
 * where the first ends, as one assign. */
struct sub_use rewrite_join_slices(struct rewrite_match *m, const struct rewrite_term *call)
{
	const struct rewrite_move *a = &m->move[call->arg[0]->name], *b = &m->move[call->arg[1]->name];
	const struct rewrite_bound_index *j = &m->index[call->arg[2]->name];
	struct sub_use x = rewrite_build_term(m, call->arg[3]);
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.map = maps};
	for (int i = 0; i < x.vars; i++) {
		if (i >= a->n || i >= b->n)
			return none;
		const struct sub_map *f = &a->map[i], *g = &b->map[i];
		maps[i] = *f;
		if (f->var == j->side[0] && !f->scale2) {
			int64_t extent = m->w->p->vars.at[f->var].extent;
			if (f->function != SUB_AFFINE || g->function != SUB_AFFINE || g->var != j->side[1] ||
			    g->scale2 || f->scale != g->scale || g->offset != f->offset + f->scale * extent)
				return none;
			maps[i].var = j->over.var[0];
		} else if (!sub_same_map(f, g)) {
			return none;
		}
	}
	return x.value.i ? add_move(m, v, x) : none;
}

/* join_moved(A, j, x, y): the concatenation of A(x) and A(y) along j as A applied to a concatenation of x and
 * y. */
struct sub_use rewrite_join_arguments(struct rewrite_match *m, const struct rewrite_term *call)
{
	struct rewrite_move *a = &m->move[call->arg[0]->name];
	const struct rewrite_bound_index *j = &m->index[call->arg[1]->name];
	int sides[2] = {-1, -1}, axis = rewrite_new_var_like(m, j->over.var[0]);
	for (int i = 0; i < a->n; i++)
		for (int s = 0; s < 2; s++)
			if (sub_is_identity(&a->map[i]) && a->map[i].var == j->side[s] &&
			    m->w->p->vars.at[a->inner[i]].extent == m->w->p->vars.at[j->side[s]].extent)
				sides[s] = a->inner[i];
	if (axis < 0 || sides[0] < 0 || sides[1] < 0 || a->n == SUB_MAX_VARS)
		return none;
	struct sub_use joined = rewrite_concatenate(m, axis, sides, rewrite_build_term(m, call->arg[2]),
						    rewrite_build_term(m, call->arg[3]));
	struct rewrite_move out = *a;
	out.inner[out.n] = axis;
	out.map[out.n++] = identity_map(j->over.var[0]);
	return rewrite_move_value(m, &out, joined);
}

/* The slice of a value along the axis of a cond that belongs to one of its sides. */
static struct sub_use slice_side(struct rewrite_match *m, const struct rewrite_term *call, int side)
{
	struct sub_use w = rewrite_build_term(m, call->arg[0]);
	const struct rewrite_bound_index *k = &m->index[call->arg[1]->name];
	struct rewrite_move move = {.n = 1, .inner = {k->over.var[0]}};
	if (!sub_use_has(&w, k->over.var[0]) || k->side[side] < 0)
		return none;
	move.map[0] = identity_map(k->side[side]);
	move.map[0].offset = side ? m->w->p->vars.at[k->side[0]].extent : 0;
	return rewrite_move_value(m, &move, w);
}

struct sub_use rewrite_slice_first(struct rewrite_match *m, const struct rewrite_term *call)
{
	return slice_side(m, call, 0);
}

struct sub_use rewrite_slice_second(struct rewrite_match *m, const struct rewrite_term *call)
{
	return slice_side(m, call, 1);
}

/* regroup(j, i, a, b, c): the concatenation along j of a with the concatenation of b and c.  The match has
 * a and b concatenated along i, and these with c along j. */
struct sub_use rewrite_regroup_sides(struct rewrite_match *m, const struct rewrite_term *call)
{
	const struct rewrite_bound_index *j = &m->index[call->arg[0]->name],
					 *i = &m->index[call->arg[1]->name];
	const struct sub_program *p = m->w->p;
	int last[2] = {i->side[1], j->side[1]};
	int axis = rewrite_new_var(m, p->vars.at[last[0]].extent + p->vars.at[last[1]].extent),
	    all[2] = {i->side[0], axis};
	if (axis < 0)
		return none;
	struct sub_use rest = rewrite_concatenate(m, axis, last, rewrite_build_term(m, call->arg[3]),
						  rewrite_build_term(m, call->arg[4]));
	return rewrite_concatenate(m, j->over.var[0], all, rewrite_build_term(m, call->arg[2]), rest);
}

/* concatenated(k, l, x, a, y, b): the sum of sum[k](x a) and sum[l](y b) as one product with the
 * concatenation of x and y, if that is live already. */
struct sub_use rewrite_find_concatenation(struct rewrite_match *m, const struct rewrite_term *call)
{
	int k[2] = {rewrite_index_of(m, call->arg[0]), rewrite_index_of(m, call->arg[1])};
	const struct sub_program *p = m->w->p;
	if (k[0] < 0 || k[1] < 0 || p->vars.at[k[0]].set != SUB_DIM || p->vars.at[k[1]].set != SUB_DIM)
		return none;
	int axis = rewrite_new_var(m, p->vars.at[k[0]].extent + p->vars.at[k[1]].extent);
	if (axis < 0)
		return none;
	struct sub_use xy = rewrite_concatenate(m, axis, k, rewrite_build_term(m, call->arg[2]),
						rewrite_build_term(m, call->arg[4]));
	if (!xy.value.i || !rewrite_note_of(m->w, xy.value)->uses)
		return none;
	struct sub_use ab = rewrite_concatenate(m, axis, k, rewrite_build_term(m, call->arg[3]),
						rewrite_build_term(m, call->arg[5]));
	struct sub_use product =
	    rewrite_add_value(m->w, (struct sub_value){.op = SUB_MULTIPLY, .arg = {xy, ab}});
	return rewrite_add_value(m->w, (struct sub_value){.op = SUB_SUM, .arg = {product}, .reduced = sub_one_var(axis)});
}
