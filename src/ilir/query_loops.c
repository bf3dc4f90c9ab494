/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What loops and statements say: constants, iterations, matrices. */
#include "ilir/ilir.h"

/* --- what statements say --- */

bool ilir_constant(const struct ilir_module *m, ilir_expr e, int64_t *value)
{
	const struct ilir_node *n = ilir_at(m, e);
	*value = n->i;
	return n->op == ILIR_CONST_I && n->type.dtype == ILIR_INDEX;
}

struct matrices {
	ilir_buffer *list;
	int n;
};

static void list_matrix(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct matrices *found = context;
	if (s->kind == ILIR_ALLOC && ilir_buffer_at(m, s->alloc)->matrix && found->n <= ILIR_MATRICES)
		found->list[found->n++] = s->alloc;
}

int ilir_list_matrices(const struct ilir_module *m, const struct ilir_stmt *s, ilir_buffer *list)
{
	struct matrices found = {.list = list};
	ilir_visit_block(m, s, &(struct ilir_visit){.stmt = list_matrix, .context = &found});
	return found.n;
}

/* The elements of a buffer from one index of dimension d to the next. */
static int64_t elements_between(const struct ilir_buffer_decl *b, int d)
{
	int64_t n = 1;
	for (int i = d + 1; i < b->rank; i++)
		n *= b->dim[i].padded;
	return n;
}

int64_t ilir_row_distance(const struct ilir_module *m, const struct ilir_stmt *s)
{
	const struct ilir_node *first = ilir_at(m, s->rows.first);
	for (int d = 0; d < first->args; d++)
		if (ilir_arg(m, s->rows.first, d).i != ilir_arg(m, s->rows.last, d).i)
			return elements_between(ilir_buffer_at(m, first->buffer), d);
	return 0;
}

/* --- loops with constant bounds --- */

ilir_expr ilir_split_constant(const struct ilir_module *m, ilir_expr e, int64_t *added)
{
	if (ilir_constant(m, e, added))
		return (ilir_expr){0};
	if (ilir_at(m, e)->op == ILIR_ADD && ilir_constant(m, ilir_arg(m, e, 1), added))
		return ilir_arg(m, e, 0);
	*added = 0;
	return e;
}

bool ilir_find_distance(const struct ilir_module *m, ilir_expr a, ilir_expr b, int64_t *distance)
{
	int64_t x, y;
	ilir_expr from = ilir_split_constant(m, a, &x), to = ilir_split_constant(m, b, &y);
	bool less = from.i && to.i && ilir_at(m, from)->op == ILIR_SUB && ilir_at(m, to)->op == ILIR_SUB &&
		    ilir_arg(m, from, 1).i == ilir_arg(m, to, 1).i;
	*distance = 0;
	if (from.i != to.i && !(less && ilir_find_distance(m, ilir_arg(m, from, 0), ilir_arg(m, to, 0), distance)))
		return false;
	*distance += y - x;
	return true;
}

int64_t ilir_trip_count(const struct ilir_module *m, const struct ilir_stmt *loop)
{
	int64_t begin, end;
	if (!ilir_constant(m, loop->loop.begin, &begin) || !ilir_constant(m, loop->loop.end, &end) ||
	    end <= begin)
		return 0;
	return (end - begin + loop->loop.step - 1) / loop->loop.step;
}

/* A loop's variable, and whether it selects elements of a parked register. */
struct selection {
	ilir_var var;
	bool found;
};

static void note_index(const struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int n, struct selection *s)
{
	for (int d = 0; ilir_buffer_at(m, b)->parked && d < n; d++)
		s->found |= ilir_uses_var(m, index[d], s->var);
}

static void note_selecting_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_LOAD)
		note_index(m, n->buffer, &m->args.at[n->arg], n->args, context);
}

static void note_selecting_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	if (s->kind == ILIR_STORE)
		note_index(m, s->store.buffer, s->store.index, s->store.indices, context);
}

bool ilir_loops_over_rows(const struct ilir_module *m, const struct ilir_stmt *s)
{
	if (s->kind != ILIR_FOR || s->loop.kind != ILIR_SERIAL || !ilir_trip_count(m, s))
		return false;
	struct selection selection = {s->loop.var, false};
	ilir_visit_block(m, s->loop.body, &(struct ilir_visit){note_selecting_store, note_selecting_load, &selection});
	return selection.found;
}

int64_t ilir_blocks(const struct ilir_module *m, const struct ilir_stmt *s)
{
	int64_t n = 1;
	for (; s && s->kind == ILIR_FOR && s->loop.kind == ILIR_SWEPT; s = s->loop.body)
		n *= ilir_trip_count(m, s);
	return n;
}
