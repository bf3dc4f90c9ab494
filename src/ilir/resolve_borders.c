/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: replaces reads within extents by loads, where they are inside, by the number, where they are outside, and vectors
 * that an end of a dimension cuts by vectors inside whose lanes are moved, with the number in the others.
 *
 *     within(x[ramp(16, -1)], broadcast(16, 0.0))   ->   splice(broadcast(16, 0.0), x[ramp(16, 0)], 15, 1)
 *
 * What is not known is compared, an element after the other.
 *
 * Needs: peel_borders has run, and loops that are unrolled are written out. */
#include "ilir/borders.h"

struct resolving {
	struct ilir_module *m;
	struct border_ranges ranges;
};

/* A read: the indices of a load, and the number, a vector as wide as the load. */
struct read {
	ilir_expr load, other;
	ilir_expr index[ILIR_MAX_RANK];
	int n, lanes;
	ilir_expr condition; /* of indices that are not known to be inside; none = they all are */
};

static const struct ilir_buffer_decl *buffer_of(const struct resolving *r, const struct read *a)
{
	return ilir_buffer_at(r->m, ilir_at(r->m, a->load)->buffer);
}

static ilir_expr load_at(struct resolving *r, const struct read *a)
{
	return ilir_load(r->m, ilir_at(r->m, a->load)->buffer, a->index, a->n);
}

static ilir_expr join_conditions(struct ilir_module *m, ilir_expr a, ilir_expr b)
{
	return a.i ? ilir_binary(m, ILIR_AND, a, b) : b;
}

static ilir_expr is_inside(struct ilir_module *m, ilir_expr at, int64_t extent)
{
	return ilir_binary(m, ILIR_AND, ilir_binary(m, ILIR_LE, ilir_index(m, 0), at),
			   ilir_binary(m, ILIR_LT, at, ilir_index(m, extent)));
}

/* Decides a scalar index; one that is not known is compared, and replaced by the nearest inside.  False = outside. */
static bool decide_index(struct resolving *r, struct read *a, int d)
{
	int64_t extent = buffer_of(r, a)->dim[d].extent;
	enum border_side side = border_side_of(&r->ranges, a->load, d);
	if (side != BORDER_OPEN)
		return side == BORDER_INSIDE;
	a->condition = join_conditions(r->m, a->condition, is_inside(r->m, a->index[d], extent));
	ilir_expr least = ilir_binary(r->m, ILIR_MAX, a->index[d], ilir_index(r->m, 0));
	a->index[d] = ilir_binary(r->m, ILIR_MIN, least, ilir_index(r->m, extent - 1));
	return true;
}

/* --- vectors --- */

/* The vector of adjacent elements from a constant index on.  None: the row has fewer elements than lanes. */
static ilir_expr load_cut(struct resolving *r, const struct read *a, int64_t at)
{
	struct read moved = *a;
	const struct ilir_dim *dim = &buffer_of(r, a)->dim[a->n - 1];
	int64_t lanes = a->lanes, most = dim->padded - lanes, from = at < 0 ? 0 : at > most ? most : at;
	int64_t inside = dim->extent - at; /* lanes that lie before the end */
	if (at <= -lanes || inside <= 0)
		return a->other;
	if (most < 0)
		return (ilir_expr){0};
	moved.index[a->n - 1] = ilir_ramp(r->m, ilir_index(r->m, from), a->lanes, 1);
	ilir_expr v = load_at(r, &moved);
	if (at < from)
		v = ilir_splice(r->m, a->other, v, lanes + at - from, 1);
	else if (at > from)
		v = ilir_splice(r->m, v, a->other, at - from, 1);
	if (inside < lanes && !(at > from && dim->extent == dim->padded))
		v = ilir_splice(r->m, ilir_splice(r->m, v, v, inside, 1), a->other, lanes - inside, 1);
	return v;
}

/* Compares and loads an element after the other: each moves those before it by a lane. */
static ilir_expr load_lanes(struct resolving *r, const struct read *a, ilir_expr first, int64_t step)
{
	int64_t extent = buffer_of(r, a)->dim[a->n - 1].extent;
	ilir_expr other = ilir_arg(r->m, a->other, 0), v = {0};
	struct read one = *a;
	for (int i = 0; i < a->lanes; i++) {
		ilir_expr at = ilir_binary(r->m, ILIR_ADD, first, ilir_index(r->m, i * step));
		one.index[a->n - 1] = at;
		ilir_expr x = ilir_ternary(r->m, ILIR_SELECT, is_inside(r->m, at, extent), load_at(r, &one), other);
		x = ilir_spread(r->m, ILIR_BROADCAST, x, a->lanes);
		v = v.i ? ilir_splice(r->m, v, x, 1, 1) : x;
	}
	return v;
}

/* A vector that an end of the dimension may cut, of elements that are adjacent or every second. */
static ilir_expr resolve_cut(struct resolving *r, const struct read *a)
{
	ilir_expr ramp = a->index[a->n - 1], first = ilir_arg(r->m, ramp, 0), v = {0};
	int64_t at, step = ilir_at(r->m, ramp)->i;
	if (ilir_constant(r->m, first, &at) && step == 1)
		v = load_cut(r, a, at);
	else if (ilir_constant(r->m, first, &at) && step == 2) {
		ilir_expr low = load_cut(r, a, at), high = load_cut(r, a, at + a->lanes);
		v = low.i && high.i ? ilir_splice(r->m, low, high, 0, 2) : v;
	}
	return v.i ? v : load_lanes(r, a, first, step);
}

static ilir_expr resolve_read(struct resolving *r, ilir_expr e)
{
	struct ilir_module *m = r->m;
	struct read a = {.load = ilir_arg(m, e, 0), .other = ilir_arg(m, e, 1), .lanes = ilir_type_of(m, e).lanes};
	a.n = ilir_at(m, a.load)->args;
	for (int d = 0; d < a.n; d++)
		a.index[d] = ilir_arg(m, a.load, d);
	int scalars = a.n - (ilir_type_of(m, a.index[a.n - 1]).lanes > 1);
	for (int d = 0; d < scalars; d++)
		if (!decide_index(r, &a, d))
			return a.other;
	enum border_side last = scalars < a.n ? border_side_of(&r->ranges, a.load, a.n - 1) : BORDER_INSIDE;
	ilir_expr v = last == BORDER_INSIDE ? load_at(r, &a) : last == BORDER_OUTSIDE ? a.other : resolve_cut(r, &a);
	if (!a.condition.i)
		return v;
	ilir_expr condition = a.lanes > 1 ? ilir_spread(m, ILIR_BROADCAST, a.condition, a.lanes) : a.condition;
	return ilir_ternary(m, ILIR_SELECT, condition, v, a.other);
}

/* --- statements --- */

static ilir_expr resolve_expr(struct ilir_module *m, ilir_expr e, void *context)
{
	return ilir_at(m, e)->op == ILIR_WITHIN ? resolve_read(context, e) : e;
}

static void resolve_block(struct resolving *r, struct ilir_stmt *s);

static void resolve_stmt(struct resolving *r, struct ilir_stmt *s)
{
	if (s->kind == ILIR_STORE)
		s->store.value = ilir_map_expr(r->m, s->store.value, resolve_expr, r);
	else if (s->kind == ILIR_LET)
		s->let.value = ilir_map_expr(r->m, s->let.value, resolve_expr, r);
	else if (s->kind == ILIR_IF) {
		s->branch.condition = ilir_map_expr(r->m, s->branch.condition, resolve_expr, r);
		resolve_block(r, s->branch.then);
		resolve_block(r, s->branch.otherwise);
	} else if (s->kind == ILIR_FOR) {
		border_enter_loop(&r->ranges, s);
		resolve_block(r, s->loop.body);
	}
}

static void resolve_block(struct resolving *r, struct ilir_stmt *s)
{
	for (; s; s = s->next)
		resolve_stmt(r, s);
}

void ilir_resolve_borders(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct resolving r = {.m = m, .ranges = {.m = m}};
	(void)tiling;
	border_set_range(&r.ranges, ilir_begin, (struct ilir_range){0, INT64_MAX});
	for (size_t k = 0; k < m->kernels.n; k++)
		resolve_block(&r, m->kernels.at[k].body);
}
