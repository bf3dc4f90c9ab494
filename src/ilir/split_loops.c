/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: cuts a loop where a comparison of its variable with a constant changes, so that the comparison is
 * constant in each piece, and simplifies selects and branches.  A concatenation, select(i < 64, a[i], b[i
 * - 64]), becomes two loops without a choice. */
#include "ilir/passes.h"

/* Whether the expression is a comparison i + c < k, which holds for i < *threshold. */
static bool threshold_of(const struct ilir_module *m, ilir_expr e, ilir_var v, int64_t *threshold)
{
	int64_t k, c = 0;
	if (ilir_at(m, e)->op != ILIR_LT || !ilir_constant(m, ilir_arg(m, e, 1), &k))
		return false;
	ilir_expr left = ilir_arg(m, e, 0);
	if (ilir_at(m, left)->op == ILIR_ADD && ilir_constant(m, ilir_arg(m, left, 1), &c))
		left = ilir_arg(m, left, 0);
	*threshold = k - c;
	return ilir_at(m, left)->op == ILIR_VAR && ilir_at(m, left)->var.i == v.i;
}

/* A piece of a loop's range. */
struct piece {
	ilir_var var;
	int64_t begin, end;
	int64_t cut; /* the least threshold inside, or `end` */
};

static void find_cut(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct piece *p = context;
	int64_t t;
	if (threshold_of(m, e, p->var, &t) && t > p->begin && t < p->cut)
		p->cut = t;
}

static ilir_expr decide_select(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct piece *p = context;
	int64_t t;
	if (ilir_at(m, e)->op != ILIR_SELECT || !threshold_of(m, ilir_arg(m, e, 0), p->var, &t))
		return e;
	return t >= p->end ? ilir_arg(m, e, 1) : t <= p->begin ? ilir_arg(m, e, 2) : e;
}

static struct ilir_stmt *decide_branch(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	const struct piece *p = context;
	int64_t t;
	if (s->kind != ILIR_IF || !threshold_of(m, s->branch.condition, p->var, &t))
		return s;
	return t >= p->end ? s->branch.then : t <= p->begin ? s->branch.otherwise : s;
}

static struct ilir_stmt *split_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct ilir_tiling *tiling = context;
	struct piece p = {.var = s->loop.var};
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
	s->loop.body =
	    ilir_rewrite_block(m, s->loop.body, &(struct ilir_rewrite){decide_select, decide_branch, &p});
	return ilir_append(s, rest);
}

void ilir_split_loops(struct ilir_module *m, struct ilir_tiling *tiling)
{
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = split_loop, .context = tiling});
}
