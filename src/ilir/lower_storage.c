/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The buffers of what bodies store: intermediates, and those of the interface. */
#include "ilir/lower.h"

int lower_first_stored(const struct lowering *l, sub_ref r)
{
	return sub_leading_dims(l->p, r) > 1;
}

/* The number of rows of an intermediate of nodes or edges: those of the widest batch if it is only read
 * in its batch. */
static enum image_size intermediate_rows(const struct lowering *l, int body, enum sub_set set)
{
	enum sub_domain domain = l->p->bodies.at[body].domain;
	bool recursion = domain == SUB_LEAF || domain == SUB_INNER, edges = set == SUB_EDGE;
	if (!recursion || !l->sched->dense_index)
		return edges ? IMAGE_EDGES : IMAGE_NODES;
	if (edges || !l->sched->specialize_leaf || lower_runs_leaves_as_inner(l, l->p->bodies.at[body].traversal))
		return edges ? IMAGE_WIDEST_EDGES : IMAGE_WIDEST;
	return domain == SUB_LEAF ? IMAGE_LEAVES : IMAGE_WIDEST_INNER;
}

static struct ilir_dim var_dim(struct lowering *l, int body, int which)
{
	const struct sub_var *var = &l->p->vars.at[which];
	switch (var->set) {
	case SUB_NODE:
	case SUB_EDGE: {
		enum image_size rows = intermediate_rows(l, body, var->set);
		return lower_rows_dim(l, var->set == SUB_NODE ? "node" : "edge", rows, 0);
	}
	case SUB_INPUT:
		return lower_rows_dim(l, "input", IMAGE_INPUTS, 0);
	case SUB_MEMBER: {
		bool of_input = l->p->bodies.at[body].domain == SUB_EVERY_INPUT;
		return of_input ? lower_rows_dim(l, "member", IMAGE_NODES, 0) : lower_rows_dim(l, "pair", IMAGE_PAIRS, 0);
	}
	default: {
		const char *name = var->set == SUB_ROW ? "row" : var->name;
		return (struct ilir_dim){ilir_dim_name(l->m, name), IMAGE_ONE, var->extent, var->extent};
	}
	}
}

/* A cache line is between rows of columns, so that rows of a power of two do not meet in the same sets of a cache. */
ilir_buffer lower_partial_sums(struct lowering *l, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	int leading = l->group->rows, along = leading + l->tile->along;
	struct str name = str_in(l->m->arena);
	str_printf(&name, "%s.parked", sched_value_name(l->plan, l->body, r));
	struct ilir_buffer_decl b = {.name = name.text, .kind = IMAGE_SCRATCH, .dtype = (enum ilir_dtype)v->dtype};
	for (int i = 0; i < v->vars; i++)
		if (i != along)
			b.dim[b.rank++] = var_dim(l, l->body, v->var[i]);
	b.dim[b.rank] = var_dim(l, l->body, v->var[along]);
	b.dim[b.rank++].padded += l->sched->target->line_bytes / ilir_bytes(b.dtype);
	ilir_buffer made = ilir_new_buffer(l->m, b);
	lower_note_order(l, made, NULL);
	return made;
}

static ilir_buffer new_intermediate(struct lowering *l, int body, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	bool local = l->plan->groups.at[sched_group_of(l->plan, body, r)].local;
	struct ilir_buffer_decl b = {.name = sched_value_name(l->plan, body, r),
				     .kind = local ? IMAGE_LOCAL : IMAGE_SCRATCH,
				     .dtype = (enum ilir_dtype)l->plan->stored_types[r.i]};
	for (int i = lower_first_stored(l, r); i < v->vars; i++)
		b.dim[b.rank++] = var_dim(l, body, v->var[i]);
	const struct sched_order *order = sched_intermediate_order(l->sched, body, r);
	if (order)
		lower_order_dims(order, &b.dim[b.rank - order->rank]);
	ilir_buffer made = ilir_new_buffer(l->m, b);
	lower_note_order(l, made, order);
	return made;
}

ilir_buffer lower_target(const struct lowering *l, const struct sub_store *s)
{
	const ilir_buffer *const buffers[] = {[SUB_TO_STATE] = l->state,
					      [SUB_TO_OUTPUT] = l->output,
					      [SUB_TO_PARAM] = l->param,
					      [SUB_TO_INPUT] = l->input};
	return buffers[s->to][s->which];
}

const struct sub_store *lower_result(const struct lowering *l, int body, sub_ref r)
{
	const struct sub_body *b = &l->p->bodies.at[body];
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i)
			return &b->stores.at[i];
	return NULL;
}

ilir_buffer lower_storage(struct lowering *l, int body, sub_ref r)
{
	const struct sub_store *result = lower_result(l, body, r);
	if (result)
		return lower_target(l, result);
	for (size_t i = 0; i < l->storage.n; i++)
		if (l->storage.at[i].body == body && l->storage.at[i].value.i == r.i)
			return l->storage.at[i].buffer;
	struct stored s = {body, r, new_intermediate(l, body, r)};
	vec_push(l->m->arena, &l->storage, s);
	return s.buffer;
}
