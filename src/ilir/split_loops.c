/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: cuts a loop where a comparison of its variable with a constant changes, so that the comparison is
 * constant in each piece, and simplifies selects and branches.  A concatenation, select(i < 64, a[i], b[i
 * - 64]), becomes two loops without a choice.  Where a comparison also has variables of loops inside, such as
 * 32*b + q < 150, the piece in which it is decided by these is a loop of its own; if that has one iteration,
 * its loops are cut in turn. */
#include "ilir/passes.h"

/* A piece of a loop's range. */
struct piece {
	ilir_var var;
	int64_t begin, end;
	int64_t cut; /* the least place inside where a comparison changes, or `end` */
	const struct ilir_stmt *body;
};

/* scale * variable + a number from low to high, where the loops inside have all their iterations. */
struct form {
	int64_t scale, low, high;
};

/* The loop inside a piece over a variable; NULL = it is another one. */
struct inner {
	ilir_var var;
	const struct ilir_stmt *loop;
};

static void find_inner(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct inner *inner = context;
	(void)m;
	if (s->kind == ILIR_FOR && s->loop.var.i == inner->var.i)
		inner->loop = s;
}

/* Adds the values of another variable than the piece's, times a factor. */
static bool add_inner(const struct ilir_module *m, ilir_var v, const struct piece *p, int64_t factor, struct form *f)
{
	struct inner inner = {.var = v};
	int64_t begin, end;
	ilir_visit_block(m, p->body, &(struct ilir_visit){.stmt = find_inner, .context = &inner});
	if (!inner.loop || !ilir_constant(m, inner.loop->loop.begin, &begin) || !ilir_constant(m, inner.loop->loop.end, &end) ||
	    begin >= end)
		return false;
	f->low += factor * begin;
	f->high += factor * (end - 1);
	return true;
}

/* Adds an expression, times a positive factor. */
static bool add_form(const struct ilir_module *m, ilir_expr e, const struct piece *p, int64_t factor, struct form *f)
{
	const struct ilir_node *n = ilir_at(m, e);
	int64_t i;
	if (n->op == ILIR_ADD)
		return add_form(m, ilir_arg(m, e, 0), p, factor, f) && add_form(m, ilir_arg(m, e, 1), p, factor, f);
	if (n->op == ILIR_MUL && ilir_constant(m, ilir_arg(m, e, 1), &i) && i > 0 && i < INT32_MAX && factor == 1)
		return add_form(m, ilir_arg(m, e, 0), p, i, f);
	if (ilir_constant(m, e, &i)) {
		f->low += factor * i;
		f->high += factor * i;
		return true;
	}
	if (n->op != ILIR_VAR || n->type.dtype != ILIR_INDEX)
		return false;
	f->scale += n->var.i == p->var.i ? factor : 0;
	return n->var.i == p->var.i || add_inner(m, n->var, p, factor, f);
}

/* How many of the numbers 0, 1, ... are such that scale * number < limit. */
static int64_t count_below(int64_t scale, int64_t limit)
{
	return limit > 0 ? (limit + scale - 1) / scale : -(-limit / scale);
}

/* Whether an expression is a comparison with a constant that holds while the piece's variable is less than *always, whatever those
 * of loops inside are, and from *never on does not. */
static bool find_ends(const struct ilir_module *m, ilir_expr e, const struct piece *p, int64_t *always, int64_t *never)
{
	struct form f = {0};
	int64_t k;
	if (ilir_at(m, e)->op != ILIR_LT || !ilir_constant(m, ilir_arg(m, e, 1), &k) || !add_form(m, ilir_arg(m, e, 0), p, 1, &f) ||
	    !f.scale)
		return false;
	*always = count_below(f.scale, k - f.high);
	*never = count_below(f.scale, k - f.low);
	return true;
}

static void find_cut(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct piece *p = context;
	int64_t end[2];
	if (find_ends(m, e, p, &end[0], &end[1]))
		for (int i = 0; i < 2; i++)
			p->cut = end[i] > p->begin && end[i] < p->cut ? end[i] : p->cut;
}

/* 1 = a condition holds in the whole piece, 0 = it does nowhere, -1 = neither is known. */
static int decide(const struct ilir_module *m, ilir_expr condition, const struct piece *p)
{
	int64_t always, never;
	if (!find_ends(m, condition, p, &always, &never))
		return -1;
	return p->end <= always ? 1 : p->begin >= never ? 0 : -1;
}

static ilir_expr decide_select(struct ilir_module *m, ilir_expr e, void *context)
{
	int holds = ilir_at(m, e)->op == ILIR_SELECT ? decide(m, ilir_arg(m, e, 0), context) : -1;
	return holds < 0 ? e : ilir_arg(m, e, holds ? 1 : 2);
}

static struct ilir_stmt *decide_branch(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	int holds = s->kind == ILIR_IF ? decide(m, s->branch.condition, context) : -1;
	return holds < 0 ? s : holds ? s->branch.then : s->branch.otherwise;
}

/* Whether a comparison of a piece changes by the loops inside alone. */
static void find_open(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct piece *p = context;
	int64_t always, never;
	if (find_ends(m, e, p, &always, &never) && p->begin >= always && p->end <= never)
		p->cut = p->begin;
}

static struct ilir_stmt *split_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct ilir_tiling *tiling = context;
	struct piece p = {.var = s->loop.var, .body = s->loop.body};
	if (s->kind != ILIR_FOR || !ilir_constant(m, s->loop.begin, &p.begin) || !ilir_constant(m, s->loop.end, &p.end))
		return s;
	p.cut = p.end;
	ilir_visit_block(m, s->loop.body, &(struct ilir_visit){.expr = find_cut, .context = &p});
	struct ilir_stmt *rest = NULL;
	if (p.cut < p.end) {
		rest = ilir_clone_block(m, s, tiling);
		rest->loop.begin = ilir_index(m, p.cut);
		rest = split_loop(m, rest, tiling);
		s->loop.end = ilir_index(m, p.cut);
		p.end = p.cut;
	}
	ilir_visit_block(m, s->loop.body, &(struct ilir_visit){.expr = find_open, .context = &p});
	if (p.cut == p.begin && p.end == p.begin + 1) {
		struct ilir_stmt *body = ilir_substitute_block(m, s->loop.body, p.var, ilir_index(m, p.begin));
		s->loop.body = ilir_rewrite_block(m, body, &(struct ilir_rewrite){.stmt = split_loop, .context = tiling});
	} else {
		s->loop.body = ilir_rewrite_block(m, s->loop.body, &(struct ilir_rewrite){decide_select, decide_branch, &p});
	}
	return ilir_append(s, rest);
}

void ilir_split_loops(struct ilir_module *m, struct ilir_tiling *tiling)
{
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = split_loop, .context = tiling});
}
