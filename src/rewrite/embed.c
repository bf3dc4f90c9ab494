/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions of replacements for products that read a value through windows: a kernel that computes, read through one window,
 * what another kernel computes through a smaller one; a kernel without the elements that only meet a border; borders made of
 * what is concatenated. */
#include "rewrite/rule_engine.h"

static const struct sub_use none = {.value = {0}};

/* --- differences of maps --- */

enum { MOST_TERMS = 4 };

/* offset + the sum of by[i] * var[i]. */
struct line {
	int64_t offset;
	int n, var[MOST_TERMS];
	int64_t by[MOST_TERMS];
};

static void add_line_term(struct line *l, int var, int64_t by)
{
	int i = 0;
	while (i < l->n && l->var[i] != var)
		i++;
	if (var < 0 || !by)
		return;
	l->var[i] = var;
	l->by[i] = i < l->n ? l->by[i] + by : by;
	l->n += i == l->n;
	if (!l->by[i]) {
		l->n--;
		l->var[i] = l->var[l->n];
		l->by[i] = l->by[l->n];
	}
}

/* The difference of two affine maps; false if one is not affine, or a number is too large. */
static bool subtract_maps(const struct sub_map *f, const struct sub_map *g, struct line *to)
{
	*to = (struct line){0};
	if (f->function != SUB_AFFINE || g->function != SUB_AFFINE ||
	    __builtin_sub_overflow(f->offset, g->offset, &to->offset) || g->scale == INT64_MIN || g->scale2 == INT64_MIN)
		return false;
	add_line_term(to, f->var, f->scale);
	add_line_term(to, f->scale2 ? f->var2 : -1, f->scale2);
	add_line_term(to, g->var, -g->scale);
	add_line_term(to, g->scale2 ? g->var2 : -1, -g->scale2);
	return true;
}

/* --- one kernel in another --- */

/* Where the elements of a kernel `b` stand in that of a larger window: `to` has for each dimension that b is given how the
 * variables of the larger kernel, which the sum over the window reduces, index it, and is zero elsewhere. */
struct embedding {
	struct rewrite_match *m;
	const struct rewrite_move *window;
	const struct rewrite_bound_index *reduced, *own; /* by the window; by the product of b: NULL = by none */
	bool placed[SUB_MAX_VARS], read[SUB_MAX_VARS];	 /* of both: those that have a place in the other */
	struct rewrite_move to;
};

static void index_dimension(struct embedding *e, int inner, struct sub_map map)
{
	e->to.inner[e->to.n] = inner;
	e->to.map[e->to.n++] = map;
}

/* Whether all indices of a variable by which the window's variable is chosen are within its extent: it is `at` plus `by` times
 * the other variable, -1 = none. */
static bool is_in_window(const struct embedding *e, int window, int64_t at, int other, int64_t by)
{
	const struct sub_map map = {.function = SUB_AFFINE, .var = other, .scale = by, .offset = at};
	return !sub_index_leaves(e->m->w->p, &map, window);
}

/* The window reads what b reads where `d` is zero.  Of two reduced variables b's is indexed by the window's; where b has none,
 * it gets a dimension with the index 0, which is left everywhere else.  A variable of b that has its place already, as i of
 * x[i, i], would have to equal two of the window's: no affine index says that. */
static bool place_dimension(struct embedding *e, const struct line *d)
{
	int at = -1, k = -1;
	for (int i = 0; i < d->n; i++) {
		int position = sub_position_in(&e->reduced->over, d->var[i]);
		if (position >= 0 && k >= 0)
			return false;
		at = position >= 0 ? i : at;
		k = position >= 0 ? position : k;
	}
	if (k < 0 || d->n > 2 || e->placed[k] || (d->by[at] != 1 && d->by[at] != -1) || e->to.n == SUB_MAX_VARS)
		return false;
	int64_t sign = d->by[at];
	int other = d->n == 2 ? d->var[!at] : -1, l = -1;
	int64_t by = d->n == 2 ? d->by[!at] : 0;
	if (!is_in_window(e, d->var[at], -sign * d->offset, other, -sign * by))
		return false;
	e->placed[k] = true;
	if (e->own && other >= 0)
		l = sub_position_in(&e->own->over, other);
	if (l >= 0 && e->read[l])
		return false;
	if (l >= 0) {
		e->read[l] = true;
		index_dimension(e, other,
				(struct sub_map){.function = SUB_AFFINE, .var = d->var[at], .scale = 1, .offset = sign * d->offset});
		return by == -sign;
	}
	int unit = rewrite_new_var(e->m, 1);
	index_dimension(e, unit,
			(struct sub_map){.function = SUB_AFFINE, .var = d->var[at], .scale = sign, .offset = d->offset,
					 .var2 = other < 0 ? 0 : other, .scale2 = by});
	return unit >= 0;
}

/* Compares how the window and b's product read each dimension of the value.  Variables with one index need no place. */
static bool place_dimensions(struct embedding *e, const struct sub_map *other)
{
	for (int i = 0; i < e->window->n; i++) {
		struct line d;
		if (!sub_same_map(&e->window->map[i], &other[i]) &&
		    (!subtract_maps(&e->window->map[i], &other[i], &d) || !place_dimension(e, &d)))
			return false;
	}
	for (int k = 0; k < e->reduced->over.n; k++)
		if (!e->placed[k])
			return false;
	for (int l = 0; e->own && l < e->own->over.n; l++) {
		if (e->read[l])
			continue;
		const struct sub_var *v = &e->m->w->p->vars.at[e->own->over.var[l]];
		if (v->set != SUB_DIM || v->extent != 1 || e->to.n == SUB_MAX_VARS)
			return false;
		index_dimension(e, e->own->over.var[l], (struct sub_map){.function = SUB_AFFINE, .var = -1});
	}
	return true;
}

/* b repeated along the placed dimensions that it lacks. */
static struct sub_use add_dimensions(struct embedding *e, struct sub_use b)
{
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {b}, .vars = b.vars, .map = maps};
	memcpy(v.var, b.var, sizeof b.var);
	for (int i = 0; i < b.vars; i++)
		maps[i] = (struct sub_map){.function = SUB_AFFINE, .var = b.var[i], .scale = 1};
	for (int i = 0; i < e->to.n; i++) {
		if (sub_use_has(&b, e->to.inner[i]))
			continue;
		if (v.vars == SUB_MAX_VARS)
			return none;
		v.var[v.vars++] = e->to.inner[i];
	}
	return b.value.i && v.vars > b.vars ? rewrite_add_value(e->m->w, v) : b;
}

/* The map of a dimension of b: as it was placed, else the identity. */
static struct sub_map map_of_dimension(const struct embedding *e, int var)
{
	for (int i = 0; i < e->to.n; i++)
		if (e->to.inner[i] == var)
			return e->to.map[i];
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1};
}

/* Moves b to its place, zeros around it, with variables of the kernel `a` in their order; none if it needs others. */
static struct sub_use place_kernel(struct embedding *e, struct sub_use b, const struct sub_use *a)
{
	struct sub_map maps[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {b}, .map = maps, .fills = true};
	if (!b.value.i || !a->value.i)
		return none;
	for (int i = 0; i < b.vars; i++) {
		maps[i] = map_of_dimension(e, b.var[i]);
		int vars[] = {maps[i].var, maps[i].scale2 ? maps[i].var2 : -1};
		for (int j = 0; j < 2; j++)
			if (vars[j] >= 0 && !sub_use_has(a, vars[j]))
				return none;
	}
	for (int i = 0; i < a->vars; i++) {
		bool needed = false;
		for (int j = 0; j < b.vars; j++)
			needed |= sub_map_uses(&maps[j], a->var[i]);
		if (needed)
			v.var[v.vars++] = a->var[i];
	}
	return rewrite_add_value(e->m->w, v);
}

/* How a value is read: through a move, or as it is. */
static bool find_maps(const struct rewrite_match *m, const struct rewrite_term *t, struct sub_map *maps, bool *same_fill)
{
	const struct rewrite_move *window = &m->move[0];
	if (t->kind == REWRITE_TERM_MOVE) {
		const struct rewrite_move *b = &m->move[t->name];
		memcpy(maps, b->map, sizeof b->map);
		*same_fill = !rewrite_reads_fill(m, b) || (window->fills && memcmp(&window->fill, &b->fill, sizeof b->fill) == 0);
		return b->n == window->n;
	}
	for (int i = 0; i < m->value[t->name].vars; i++)
		maps[i] = (struct sub_map){.function = SUB_AFFINE, .var = m->value[t->name].var[i], .scale = 1};
	*same_fill = true;
	return m->value[t->name].vars == window->n;
}

/* embed(k, a, B, l, b): the kernel by which the sum over k of what the rule's first move reads is the sum over l of what B
 * reads, or of a value as it is, times b; it has the variables of the kernel a.  embed(k, a, y, b): of y times b, no sum. */
struct sub_use rewrite_embed_kernel(struct rewrite_match *m, const struct rewrite_term *call)
{
	bool sums = call->args == 5, same_fill;
	struct embedding e = {.m = m, .window = &m->move[0], .reduced = &m->index[call->arg[0]->name],
			      .own = sums ? &m->index[call->arg[3]->name] : NULL};
	struct sub_map other[SUB_MAX_VARS];
	if (!find_maps(m, call->arg[2], other, &same_fill) || !same_fill || !place_dimensions(&e, other))
		return none;
	struct sub_use a = rewrite_build_term(m, call->arg[1]);
	struct sub_use b = add_dimensions(&e, rewrite_build_term(m, call->arg[3 + sums]));
	return place_kernel(&e, b, &a);
}

/* --- borders --- */

/* The indices of a reduced variable, from `first` to before `end`, for which a map is within its dimension, if the others in
 * the map have one index. */
static bool find_inside(const struct sub_program *p, const struct sub_map *map, int inner, int var, int64_t *first, int64_t *end)
{
	int other = map->var == var ? map->scale2 ? map->var2 : -1 : map->var;
	int64_t scale = map->var == var ? map->scale : map->scale2, extent = p->vars.at[inner].extent;
	if (map->function != SUB_AFFINE || scale != 1 || (other >= 0 && (p->vars.at[other].set != SUB_DIM || p->vars.at[other].extent != 1)))
		return false;
	*first = map->offset < 0 ? -map->offset : 0;
	*end = p->vars.at[var].extent;
	if (__builtin_sub_overflow(extent, map->offset, &extent))
		return false;
	*end = extent < *end ? extent : *end;
	return *first < *end;
}

/* Replaces a reduced variable by one over the indices inside of the dimension; false if all are. */
static bool narrow_index(struct rewrite_match *m, struct rewrite_move *window, int *var, struct rewrite_move *kernel)
{
	const struct sub_program *p = m->w->p;
	int64_t first, end;
	int at = -1;
	for (int i = 0; i < window->n; i++)
		if (sub_map_uses(&window->map[i], *var)) {
			if (at >= 0)
				return false;
			at = i;
		}
	if (at < 0 || p->vars.at[*var].set != SUB_DIM || !sub_index_leaves(p, &window->map[at], window->inner[at]) ||
	    !find_inside(p, &window->map[at], window->inner[at], *var, &first, &end) || end - first == p->vars.at[*var].extent)
		return false;
	int inside = rewrite_new_var(m, end - first);
	window->map[at] = (struct sub_map){.function = SUB_AFFINE, .var = inside, .scale = 1, .offset = window->map[at].offset + first};
	kernel->inner[kernel->n] = *var;
	kernel->map[kernel->n++] = (struct sub_map){.function = SUB_AFFINE, .var = inside, .scale = 1, .offset = first};
	*var = inside;
	return inside >= 0;
}

/* inside(A, k, x, a): the sum over k of A(x) times a without terms in which A only reads zeros around x. */
struct sub_use rewrite_drop_border(struct rewrite_match *m, const struct rewrite_term *call)
{
	struct rewrite_move window = m->move[call->arg[0]->name], kernel = {0};
	struct sub_vars k = rewrite_indices_of(m, call->arg[1]);
	if (!rewrite_reads_fill(m, &window) || window.fill != 0)
		return none;
	for (int i = 0; i < k.n; i++)
		narrow_index(m, &window, &k.var[i], &kernel);
	if (!kernel.n)
		return none;
	struct sub_use x = rewrite_move_value(m, &window, rewrite_build_term(m, call->arg[2]));
	struct sub_use a = rewrite_move_value(m, &kernel, rewrite_build_term(m, call->arg[3]));
	struct sub_use product = rewrite_add_value(m->w, (struct sub_value){.op = SUB_MULTIPLY, .arg = {x, a}});
	for (int i = 0; i < k.n; i++)
		if (!sub_use_has(&product, k.var[i]))
			return none;
	return rewrite_add_value(m->w, (struct sub_value){.op = SUB_SUM, .arg = {product}, .reduced = k});
}

/* The fill of a move that reads a concatenation of a value with a number, as a border of that value: the number, if the move
 * has no other fill. */
static bool join_fills(struct rewrite_match *m, struct rewrite_move *a, double number)
{
	if (rewrite_reads_fill(m, a) && memcmp(&a->fill, &number, sizeof number) != 0)
		return false;
	a->fills = true;
	a->fill = number;
	return true;
}

/* border(A, j, x, side, a): A applied to a concatenation along j whose side 0 or 1 is x and whose other one is the number a, as A
 * applied to x with a border. */
struct sub_use rewrite_make_border(struct rewrite_match *m, const struct rewrite_term *call)
{
	struct rewrite_move a = m->move[call->arg[0]->name];
	const struct rewrite_bound_index *j = &m->index[call->arg[1]->name];
	int side = call->arg[3]->number != 0;
	const struct sub_use *number = &m->value[call->arg[4]->name];
	if (!join_fills(m, &a, rewrite_note_of(m->w, number->value)->fact.number))
		return none;
	for (int i = 0; i < a.n; i++) {
		if (a.inner[i] != j->over.var[0])
			continue;
		if (a.map[i].function != SUB_AFFINE)
			return none;
		a.inner[i] = j->side[side];
		a.map[i].offset -= side ? m->w->p->vars.at[j->side[0]].extent : 0;
		return rewrite_move_value(m, &a, rewrite_build_term(m, call->arg[2]));
	}
	return none;
}
