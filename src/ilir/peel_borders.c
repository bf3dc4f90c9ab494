/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: cuts loops around reads within extents into the iterations in which all of them are inside, and those before and
 * after, each of which becomes a block of its own.
 *
 *     for i in 0..112 step 4                           B(0)
 *       B(i): .. within(x[i + u - 1], 0.0) ..   ->     for i in 4..108 step 4: B(i)
 *                                                      B(108)
 *
 * So nothing is compared in the iterations that most of the time is spent in, and in the others indices are constants.
 *
 * Needs: loops are cut into tiles, and none is swept yet. */
#include "ilir/borders.h"

/* The most iterations before, and after, those inside that become blocks of their own; the most of a loop that has none
 * inside. */
enum { MOST_PEELED = 4, MOST_OUTSIDE = 8 };

/* --- ranges --- */

static const struct ilir_range open_range = {INT64_MIN, INT64_MAX};

void border_set_range(struct border_ranges *r, ilir_var v, struct ilir_range to)
{
	while (r->of_var.n < r->m->vars.n)
		vec_push(r->m->arena, &r->of_var, open_range);
	r->of_var.at[v.i] = to;
}

struct ilir_range border_range(const struct border_ranges *r, ilir_expr e)
{
	struct ilir_range range;
	struct ilir_known known = {.of_var = r->of_var.at};
	ilir_range_of(r->m, e, &known, &range);
	return range;
}

static int64_t last_iteration(int64_t begin, int64_t end, int64_t step)
{
	return begin + (end - 1 - begin) / step * step;
}

bool border_enter_loop(struct border_ranges *r, const struct ilir_stmt *loop)
{
	int64_t begin, end;
	bool known = ilir_constant(r->m, loop->loop.begin, &begin) && ilir_constant(r->m, loop->loop.end, &end);
	known = known && begin < end;
	border_set_range(r, loop->loop.var,
			 known ? (struct ilir_range){begin, last_iteration(begin, end, loop->loop.step)} : open_range);
	return known;
}

bool border_is_guarded(const struct ilir_module *m, ilir_expr load, int dim)
{
	return ilir_buffer_at(m, ilir_at(m, load)->buffer)->dim[dim].rows == IMAGE_ONE;
}

enum border_side border_side_of(const struct border_ranges *r, ilir_expr load, int dim)
{
	int64_t extent = ilir_buffer_at(r->m, ilir_at(r->m, load)->buffer)->dim[dim].extent;
	struct ilir_range at = border_range(r, ilir_arg(r->m, load, dim));
	return !border_is_guarded(r->m, load, dim)	? BORDER_INSIDE
	       : at.low >= 0 && at.high < extent	? BORDER_INSIDE
	       : at.high < 0 || at.low >= extent	? BORDER_OUTSIDE
							: BORDER_OPEN;
}

/* --- loops --- */

struct peeling {
	struct ilir_module *m;
	struct border_ranges ranges;
	ilir_var var;	/* of the loop that is looked at */
	VEC(ilir_expr) reads; /* loads that are read within extents and depend on it */
};

static void note_read(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct peeling *p = context;
	if (ilir_at(m, e)->op == ILIR_WITHIN && ilir_uses_var(m, ilir_arg(m, e, 0), p->var))
		vec_push(m->arena, &p->reads, ilir_widened(m, ilir_arg(m, e, 0)));
}

static void note_inner_loop(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct peeling *p = context;
	(void)m;
	if (s->kind == ILIR_FOR)
		border_enter_loop(&p->ranges, s);
}

/* Where the reads of iterations are: inside as far as the loop's variable decides it, one of them outside in
 * each iteration, or not the same in all, as far as is known. */
static enum border_side side_of_iterations(struct peeling *p, struct ilir_range iterations)
{
	enum border_side side = BORDER_INSIDE;
	border_set_range(&p->ranges, p->var, iterations);
	for (size_t i = 0; i < p->reads.n; i++) {
		const struct ilir_node *n = ilir_at(p->m, p->reads.at[i]);
		for (int d = 0; d < n->args; d++) {
			if (!ilir_uses_var(p->m, ilir_arg(p->m, p->reads.at[i], d), p->var))
				continue;
			enum border_side one = border_side_of(&p->ranges, p->reads.at[i], d);
			if (one == BORDER_OUTSIDE)
				return one;
			side = one == BORDER_OPEN ? one : side;
		}
	}
	return side;
}

/* Finds the first iteration, or the last one, all of whose reads are inside.  Halves are looked at apart, so
 * that a long loop takes no longer than a short one. */
static bool find_interior(struct peeling *p, struct ilir_range in, int64_t step, bool last, int64_t *found)
{
	enum border_side side = side_of_iterations(p, in);
	if (side != BORDER_OPEN || in.low == in.high) {
		*found = last ? in.high : in.low;
		return side == BORDER_INSIDE;
	}
	int64_t middle = in.low + (in.high - in.low) / step / 2 * step;
	const struct ilir_range half[] = {{in.low, middle}, {middle + step, in.high}};
	return find_interior(p, half[last], step, last, found) ||
	       find_interior(p, half[!last], step, last, found);
}

static void append_block(struct ilir_stmt ***end, struct ilir_stmt *block)
{
	**end = block;
	while (**end)
		*end = &(**end)->next;
}

/* Appends the iterations begin..end of a loop: each as a block if they are few, else a loop. */
static void append_iterations(struct peeling *p, const struct ilir_stmt *loop, int64_t begin, int64_t end, int most,
			      struct ilir_stmt ***to)
{
	struct ilir_stmt alone = *loop;
	int64_t step = loop->loop.step, n = begin < end ? (end - begin + step - 1) / step : 0;
	alone.next = NULL;
	if (n > most) {
		struct ilir_stmt *piece = ilir_clone_block(p->m, &alone, NULL);
		piece->loop.begin = ilir_index(p->m, begin);
		piece->loop.end = ilir_index(p->m, end);
		append_block(to, piece);
		return;
	}
	for (int64_t i = begin; i < end; i += step) {
		struct ilir_stmt *body = ilir_clone_block(p->m, loop->loop.body, NULL);
		append_block(to, ilir_substitute_block(p->m, body, loop->loop.var, ilir_index(p->m, i)));
	}
}

/* The pieces of a loop; the loop itself where no read depends on it. */
static struct ilir_stmt *cut_borders(struct peeling *p, struct ilir_stmt *loop)
{
	int64_t begin, end, step = loop->loop.step;
	struct ilir_stmt *pieces = NULL, **to = &pieces;
	p->var = loop->loop.var;
	p->reads.n = 0;
	ilir_visit_block(p->m, loop->loop.body, &(struct ilir_visit){note_inner_loop, note_read, p});
	if (!p->reads.n || loop->loop.kind != ILIR_SERIAL || !border_enter_loop(&p->ranges, loop))
		return loop;
	struct ilir_range all = p->ranges.of_var.at[p->var.i];
	bool interior = find_interior(p, all, step, false, &begin) && find_interior(p, all, step, true, &end);
	border_set_range(&p->ranges, p->var, all);
	if (interior && begin == all.low && end == all.high)
		return loop;
	if (!interior) {
		if ((all.high - all.low) / step >= MOST_OUTSIDE)
			return loop;
		append_iterations(p, loop, all.low, all.high + 1, MOST_OUTSIDE, &to);
		return pieces;
	}
	append_iterations(p, loop, all.low, begin, MOST_PEELED, &to);
	append_iterations(p, loop, begin, end + 1, 1, &to);
	append_iterations(p, loop, end + step, all.high + 1, MOST_PEELED, &to);
	return pieces;
}

static struct ilir_stmt *cut_block(struct peeling *p, struct ilir_stmt *s);

/* Cuts a statement, and then what is in its pieces, whose variables have narrower ranges. */
static struct ilir_stmt *cut_stmt(struct peeling *p, struct ilir_stmt *s)
{
	if (s->kind == ILIR_IF) {
		s->branch.then = cut_block(p, s->branch.then);
		s->branch.otherwise = cut_block(p, s->branch.otherwise);
	}
	if (s->kind != ILIR_FOR)
		return s;
	struct ilir_stmt *pieces = cut_borders(p, s);
	if (pieces != s)
		return cut_block(p, pieces);
	border_enter_loop(&p->ranges, s);
	s->loop.body = cut_block(p, s->loop.body);
	return s;
}

static struct ilir_stmt *cut_block(struct peeling *p, struct ilir_stmt *s)
{
	struct ilir_stmt *block = NULL, **end = &block;
	while (s) {
		struct ilir_stmt *next = s->next;
		s->next = NULL;
		append_block(&end, cut_stmt(p, s));
		s = next;
	}
	return block;
}

static void find_within(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *found = context;
	*found |= ilir_at(m, e)->op == ILIR_WITHIN;
}

void ilir_peel_borders(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct peeling p = {.m = m, .ranges = {.m = m}};
	(void)tiling;
	for (size_t k = 0; k < m->kernels.n; k++) {
		bool found = false;
		ilir_visit_block(m, m->kernels.at[k].body, &(struct ilir_visit){.expr = find_within, .context = &found});
		if (found)
			m->kernels.at[k].body = cut_block(&p, m->kernels.at[k].body);
	}
}
