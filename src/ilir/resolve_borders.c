/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: replaces reads within extents by loads, where they are inside, by the number, where they are outside, and vectors
 * that an end of a dimension cuts by vectors inside whose lanes are moved, with the number in the others.
 *
 *     within(x[ramp(16, -1)], broadcast(16, 0.0))      ->   splice(broadcast(16, 0.0), x[ramp(16, 0)], 15, 1, 16)
 *     within(x[ramp(16, -1, 2)], broadcast(16, 0.0))   ->   keep(splice(x[ramp(16, 0)], x[ramp(16, 12)], -1, 2, 12),
 *                                                                broadcast(16, 0.0), 1, 15)   of a row of 28
 *
 * What is not known is compared, an element after the other.
 *
 * Needs: peel_borders has run, and loops that are unrolled are written out. */
#include "ilir/borders.h"

struct resolving {
	struct ilir_module *m;
	struct border_ranges ranges;
	VEC(int) needed; /* by buffer in registers: the lanes of its vectors, from the first, that results depend on */
	int lanes;	 /* those of the store that is looked at */
	bool changed;
};

/* --- lanes that are needed --- */

/* A row of results may end within a vector, whose other lanes are stored behind the row, where nothing reads them. */

static bool is_register(const struct ilir_module *m, ilir_buffer b)
{
	return ilir_buffer_at(m, b)->kind == ILIR_REGISTER;
}

/* The lanes of a store's vector that something may read. */
static int needed_lanes(const struct resolving *r, const struct ilir_stmt *s)
{
	int lanes = ilir_type_of(r->m, s->store.value).lanes, last = s->store.indices - 1;
	ilir_buffer b = s->store.buffer;
	int64_t first;
	if (lanes > 1 && is_register(r->m, b))
		return r->needed.at[b.i] < lanes ? r->needed.at[b.i] : lanes;
	if (lanes == 1 || ilir_at(r->m, s->store.index[last])->op != ILIR_RAMP ||
	    !ilir_constant(r->m, ilir_arg(r->m, s->store.index[last], 0), &first))
		return lanes;
	int64_t inside = ilir_buffer_at(r->m, b)->dim[last].extent - first;
	return inside < 0 ? 0 : inside < lanes ? (int)inside : lanes;
}

static void need_lanes(struct resolving *r, ilir_buffer b, int lanes)
{
	r->changed |= lanes > r->needed.at[b.i];
	r->needed.at[b.i] = lanes > r->needed.at[b.i] ? lanes : r->needed.at[b.i];
}

/* Whether an access of a register is to whole vectors, the i-th lane of which is always that of the same elements. */
static bool is_whole_vector(const struct ilir_module *m, ilir_expr last)
{
	return ilir_at(m, last)->op == ILIR_RAMP && ilir_is_const(m, ilir_arg(m, last, 0), 0);
}

static void note_register(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct resolving *r = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_LOAD && is_register(m, n->buffer) && n->args)
		need_lanes(r, n->buffer, is_whole_vector(m, ilir_arg(m, e, n->args - 1)) ? r->lanes : ILIR_MAX_LANES);
}

static void find_splice(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *found = context;
	*found |= ilir_at(m, e)->op == ILIR_SPLICE;
}

/* Whether a lane of a value may depend on other lanes of what it is computed of. */
static bool mixes_lanes(const struct ilir_module *m, ilir_expr value)
{
	bool found = false;
	ilir_visit_expr(m, value, &(struct ilir_visit){.expr = find_splice, .context = &found});
	return found;
}

static void note_needs(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct resolving *r = context;
	struct ilir_visit visit = {.expr = note_register, .context = r};
	r->lanes = ILIR_MAX_LANES;
	if (s->kind == ILIR_STORE) {
		int last = s->store.indices - 1;
		if (last >= 0 && is_register(m, s->store.buffer) && !is_whole_vector(m, s->store.index[last]))
			need_lanes(r, s->store.buffer, ILIR_MAX_LANES);
		r->lanes = mixes_lanes(m, s->store.value) ? ILIR_MAX_LANES : needed_lanes(r, s);
		ilir_visit_expr(m, s->store.value, &visit);
	} else if (s->kind == ILIR_LET)
		ilir_visit_expr(m, s->let.value, &visit);
	else if (s->kind == ILIR_IF)
		ilir_visit_expr(m, s->branch.condition, &visit);
}

/* Until no register needs more: what one is stored to may be loaded before. */
static void find_needs(struct resolving *r, struct ilir_stmt *body)
{
	r->needed.n = 0;
	for (size_t b = 0; b < r->m->buffers.n; b++)
		vec_push(r->m->arena, &r->needed, 0);
	do {
		r->changed = false;
		ilir_visit_block(r->m, body, &(struct ilir_visit){.stmt = note_needs, .context = r});
	} while (r->changed);
}

/* --- reads --- */

/* A read: the indices of a load, and the number, a vector as wide as the load. */
struct read {
	ilir_expr load, other;
	ilir_expr index[ILIR_MAX_RANK];
	int n, lanes;
	bool widened; /* to an i32 */
	ilir_expr condition; /* of indices that are not known to be inside; none = they all are */
};

static const struct ilir_buffer_decl *buffer_of(const struct resolving *r, const struct read *a)
{
	return ilir_buffer_at(r->m, ilir_at(r->m, a->load)->buffer);
}

static ilir_expr load_at(struct resolving *r, const struct read *a)
{
	ilir_expr load = ilir_load(r->m, ilir_at(r->m, a->load)->buffer, a->index, a->n);
	return a->widened ? ilir_unary(r->m, ILIR_TO_I32, load) : load;
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

/* The elements of a row that a vector has: `first`, `first + step`, ... */
struct lanes {
	int64_t first, step;
};

static int64_t clamp_index(int64_t i, int64_t least, int64_t most)
{
	return i < least ? least : i > most ? most : i;
}

static ilir_expr load_from(struct resolving *r, const struct read *a, int64_t first, int64_t step)
{
	struct read moved = *a;
	moved.index[a->n - 1] = ilir_ramp(r->m, ilir_index(r->m, first), a->lanes, step);
	return load_at(r, &moved);
}

/* The lanes of a vector that lie within the extent, the number in the others, as far as they are needed. */
static ilir_expr keep_inside(struct resolving *r, const struct read *a, ilir_expr v, struct lanes l, int64_t needed)
{
	int64_t extent = buffer_of(r, a)->dim[a->n - 1].extent;
	int64_t begin = l.first < 0 ? (-l.first + l.step - 1) / l.step : 0;
	int64_t end = (extent - l.first + l.step - 1) / l.step;
	end = end >= needed ? a->lanes : end;
	return ilir_keep(r->m, v, a->other, clamp_index(begin, 0, a->lanes), clamp_index(end, begin, a->lanes));
}

/* A vector that begins within the row's memory or before it: the elements by this step are taken for a row of their
 * own.  None: not all lanes that are loaded lie there. */
static ilir_expr load_row(struct resolving *r, const struct read *a, struct lanes l)
{
	const struct ilir_dim *dim = &buffer_of(r, a)->dim[a->n - 1];
	int64_t before = l.first < 0 ? (-l.first + l.step - 1) / l.step : 0;
	struct lanes inside = {l.first + before * l.step, l.step};
	if (inside.first + (a->lanes - 1) * l.step >= dim->padded)
		return (ilir_expr){0};
	ilir_expr v = keep_inside(r, a, load_from(r, a, inside.first, l.step), inside, r->lanes - before);
	return ilir_splice(r->m, a->other, v, a->lanes - before, 1, a->lanes);
}

/* A vector of two others, which lie at the beginning of the row or at its end, and overlap where it is short.  None: the
 * row has fewer elements than lanes, or the vector those of more than two. */
static ilir_expr load_two(struct resolving *r, const struct read *a, struct lanes l)
{
	const struct ilir_dim *dim = &buffer_of(r, a)->dim[a->n - 1];
	int64_t last = l.first + (a->lanes - 1) * l.step, end = dim->padded - a->lanes;
	int64_t low = l.first < 0 ? 0 : clamp_index(end - a->lanes, 0, end), high = clamp_index(low + a->lanes, low, end);
	if (end < 0 || (l.first >= 0 && l.first < low) || (last < dim->extent ? last : dim->extent - 1) >= high + a->lanes)
		return (ilir_expr){0};
	ilir_expr x = load_from(r, a, low, 1), y = load_from(r, a, high, 1);
	return keep_inside(r, a, ilir_splice(r->m, x, y, l.first - low, l.step, high - low), l, r->lanes);
}

/* A vector of adjacent elements that leaves the row's memory: of the last one inside, and the number.  None: the row
 * has fewer elements than lanes, or others behind its last. */
static ilir_expr load_end(struct resolving *r, const struct read *a, struct lanes l)
{
	const struct ilir_dim *dim = &buffer_of(r, a)->dim[a->n - 1];
	int64_t last = dim->padded - a->lanes;
	if (l.step > 1 || last < 0 || l.first <= last || dim->extent < dim->padded)
		return (ilir_expr){0};
	return ilir_splice(r->m, load_from(r, a, last, 1), a->other, l.first - last, 1, a->lanes);
}

/* A vector from a constant index on.  None: it is not made of two loads. */
static ilir_expr load_cut(struct resolving *r, const struct read *a, struct lanes l)
{
	ilir_expr v = load_row(r, a, l);
	v = v.i ? v : load_end(r, a, l);
	return v.i ? v : load_two(r, a, l);
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
		v = v.i ? ilir_splice(r->m, v, x, 1, 1, a->lanes) : x;
	}
	return v;
}

/* A vector that an end of the dimension may cut. */
static ilir_expr resolve_cut(struct resolving *r, const struct read *a)
{
	ilir_expr ramp = a->index[a->n - 1], first = ilir_arg(r->m, ramp, 0), v = {0};
	struct lanes l = {.step = ilir_at(r->m, ramp)->i};
	if (ilir_constant(r->m, first, &l.first) && l.step <= 2)
		v = load_cut(r, a, l);
	return v.i ? v : load_lanes(r, a, first, l.step);
}

static ilir_expr resolve_read(struct resolving *r, ilir_expr e)
{
	struct ilir_module *m = r->m;
	ilir_expr read = ilir_arg(m, e, 0);
	struct read a = {.load = ilir_widened(m, read), .other = ilir_arg(m, e, 1), .lanes = ilir_type_of(m, e).lanes};
	a.widened = a.load.i != read.i;
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
	r->lanes = ILIR_MAX_LANES;
	if (s->kind == ILIR_STORE) {
		r->lanes = needed_lanes(r, s);
		s->store.value = ilir_map_expr(r->m, s->store.value, resolve_expr, r);
	} else if (s->kind == ILIR_LET)
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

static void find_read(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *found = context;
	*found |= ilir_at(m, e)->op == ILIR_WITHIN;
}

static bool has_reads(const struct ilir_module *m, const struct ilir_kernel *k)
{
	bool found = false;
	ilir_visit_block(m, k->body, &(struct ilir_visit){.expr = find_read, .context = &found});
	return found;
}

void ilir_resolve_borders(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct resolving r = {.m = m, .ranges = {.m = m}};
	(void)tiling;
	border_set_range(&r.ranges, ilir_begin, (struct ilir_range){0, INT64_MAX});
	for (size_t k = 0; k < m->kernels.n; k++)
		if (has_reads(m, &m->kernels.at[k])) {
			find_needs(&r, m->kernels.at[k].body);
			resolve_block(&r, m->kernels.at[k].body);
		}
}
