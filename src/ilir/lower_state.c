/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Maps the indices of an access to a buffer: the layout of a state gives the row, the order of dimensions
 * the element of the row. */
#include "ilir/lower.h"

static bool is_by_parent(const struct lowering *l, int state)
{
	return l->sched->states.at[state].layout == IMAGE_BY_PARENT;
}

/* In the layout by parent, row e belongs to the child of edge e. */
const char *lower_state_rows(const struct lowering *l, int state)
{
	return is_by_parent(l, state) ? "edge" : "node";
}

/* The row of a node's first child by parent.  These rows are numbered like edges, in the order of inner
 * nodes, which follow batch 0, the leaves. */
static ilir_expr first_child(struct lowering *l, ilir_expr node)
{
	struct ilir_module *m = l->m;
	if (l->p->children < 0)
		return lower_row_of(l, l->child_begin, "first", node);
	ilir_expr first = lower_row_of(l, l->batch_begin, "inner", ilir_index(m, 1));
	ilir_expr rank = ilir_binary(m, ILIR_SUB, node, first);
	return ilir_binary(m, ILIR_MUL, rank, ilir_index(m, l->p->children));
}

ilir_expr lower_state_row(struct lowering *l, int state, ilir_expr node)
{
	return is_by_parent(l, state) ? lower_row_of(l, l->place, "place", node) : node;
}

/* Inner nodes have their own rows. */
ilir_expr lower_read_row(struct lowering *l, int state, ilir_expr node)
{
	ilir_buffer rows = ilir_buffer_at(l->m, l->state[state])->read_row;
	bool inner = node.i == l->row.i && l->p->bodies.at[l->body].domain == SUB_INNER;
	return rows.i && !inner ? lower_row_of(l, rows, "row", node) : lower_state_row(l, state, node);
}

ilir_expr lower_mapped_row(struct lowering *l, int state, const struct sub_map *map, ilir_expr at)
{
	if (!is_by_parent(l, state))
		return (ilir_expr){0};
	switch (map->function) {
	case SUB_CHILD:
		return ilir_binary(l->m, ILIR_ADD, lower_named(l, "row", first_child(l, at)),
				   ilir_index(l->m, map->which));
	case SUB_EDGE_CHILD:
		return at;
	default:
		return (ilir_expr){0};
	}
}

/* The row in a buffer with the rows of one batch: counted from the first node of the batch, or from its
 * first edge, even if the current range is a later part of the batch. */
static ilir_expr dense_row(struct lowering *l, ilir_buffer b, ilir_expr row)
{
	const struct ilir_buffer_decl *decl = ilir_buffer_at(l->m, b);
	enum image_size rows = decl->rank ? decl->dim[0].rows : IMAGE_ONE;
	if (rows != IMAGE_WIDEST && rows != IMAGE_WIDEST_INNER && rows != IMAGE_WIDEST_EDGES)
		return row;
	ilir_expr begin = ilir_var_ref(l->m, ilir_begin);
	if (l->sort && l->sort->edges)
		begin = ilir_load_index(l->m, l->edge_node, &begin, 1);
	ilir_expr first = ilir_load_index(l->m, l->origin, &begin, 1);
	if (rows == IMAGE_WIDEST_EDGES)
		first = ilir_load_index(l->m, l->child_begin, &first, 1);
	return ilir_binary(l->m, ILIR_SUB, row, first);
}

/* --- the order of dimensions --- */

void lower_order_dims(const struct sched_order *order, struct ilir_dim *dim)
{
	struct ilir_dim was[SUB_MAX_VARS];
	memcpy(was, dim, order->rank * sizeof *dim);
	for (int i = 0; i < order->rank; i++)
		dim[i] = was[order->dim[i]];
}

void lower_note_order(struct lowering *l, ilir_buffer b, const struct sched_order *order)
{
	while (l->orders.n <= b.i)
		vec_push(l->m->arena, &l->orders, NULL);
	l->orders.at[b.i] = order;
}

const struct image_recipe *lower_table_recipe(struct lowering *l, int param, const struct sched_order *order)
{
	const struct sub_tensor *t = &l->p->params.at[param];
	struct image_recipe *r = ARENA_NEW(l->m->arena, struct image_recipe);
	struct image_pack_source *source = ARENA_NEW(l->m->arena, struct image_pack_source);
	source->param = param;
	for (int d = 0; d < t->rank; d++) {
		int axis = d ? 1 + order->dim[d - 1] : 0;
		r->dim[r->dims++] = (struct image_pack_dim){axis, t->shape[axis], 1};
		source->end[d] = t->shape[d];
	}
	r->sources = 1;
	r->source = source;
	return r;
}

/* Permutes the indices of an access, but for the leading ones, which number rows. */
static void order_indices(struct lowering *l, ilir_buffer b, const ilir_expr *index, int n, ilir_expr *out)
{
	const struct sched_order *order = b.i < l->orders.n ? l->orders.at[b.i] : NULL;
	int leading = order ? n - order->rank : n;
	for (int i = 0; i < n; i++)
		out[i] = i < leading ? index[i] : index[leading + order->dim[i - leading]];
	if (n > 0)
		out[0] = dense_row(l, b, out[0]);
}

ilir_expr lower_load(struct lowering *l, ilir_buffer b, const ilir_expr *index, int n)
{
	ilir_expr at[ILIR_MAX_RANK];
	order_indices(l, b, index, n, at);
	return ilir_load(l->m, b, at, n);
}

struct ilir_stmt *lower_store(struct lowering *l, ilir_buffer b, const ilir_expr *index, int n,
			      ilir_expr value)
{
	ilir_expr at[ILIR_MAX_RANK];
	order_indices(l, b, index, n, at);
	return ilir_store(l->m, b, at, n, lower_narrowed(l, value, (enum dtype)ilir_buffer_at(l->m, b)->dtype));
}
