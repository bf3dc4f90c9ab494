/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers products with consecutive children, U_0 @ child0.h + U_1 @ child1.h or W @ concat(child0.h,
 * child1.h), to one loop nest.  Where the state is laid out by parent, the rows of children are adjacent, and
 * the slot is added to the index.
 *
 *     for slot in 0..2
 *       for k in 0..64
 *         sum = fma(stack[slot, j, k], h[row + slot, k], sum)         or w[j, slot * 64 + k] */
#include "ilir/lower.h"

/* Whether a value is a product with children whose rows are adjacent and are read directly; sets *c if so. */
static bool match_child_product(const struct lowering *l, sub_ref r, struct sched_child_product *c)
{
	return sched_child_product(l->p, r, c) && l->sched->states.at[c->state].layout == IMAGE_BY_PARENT &&
	       !sched_is_stored(l->plan, l->body, sub_at(l->p, r)->arg[c->child_at].value);
}

bool lower_next_slot(const struct lowering *l, sub_ref first, sub_ref other, int distance)
{
	struct sched_child_product c;
	return sched_next_child(l->p, first, other, distance) && match_child_product(l, first, &c) &&
	       match_child_product(l, other, &c);
}

/* A loop over a child's elements that is not unrolled evenly is no single nest. */
int lower_joined_slots(const struct lowering *l, sub_ref r)
{
	struct sched_child_product c;
	if (!match_child_product(l, r, &c) || c.slots < 2)
		return 0;
	return l->p->states.at[c.state].shape[0] % l->tile->unroll ? 0 : c.slots;
}

/* --- stacks of weights --- */

static const struct image_recipe *stack_recipe(struct lowering *l, const int *param, int n)
{
	const struct sub_tensor *t = &l->p->params.at[param[0]];
	struct image_recipe *r = ARENA_NEW(l->m->arena, struct image_recipe);
	struct image_pack_source *source = ARENA_ARRAY(l->m->arena, struct image_pack_source, n);
	r->dim[r->dims++] = (struct image_pack_dim){IMAGE_PACK_SOURCE, n, 1};
	for (int d = 0; d < t->rank; d++)
		r->dim[r->dims++] = (struct image_pack_dim){d, t->shape[d], 1};
	for (int i = 0; i < n; i++) {
		source[i].param = param[i];
		memcpy(source[i].end, t->shape, t->rank * sizeof *t->shape);
	}
	r->sources = n;
	r->source = source;
	return r;
}

static ilir_buffer stack_of(struct lowering *l, const int *param, int n)
{
	for (size_t i = 0; i < l->stacks.n; i++)
		if (l->stacks.at[i].n == n && memcmp(l->stacks.at[i].param, param, n * sizeof *param) == 0)
			return l->stacks.at[i].buffer;
	const struct ilir_buffer_decl *first = ilir_buffer_at(l->m, l->param[param[0]]);
	struct ilir_buffer_decl b = {
	    .name = "stack", .kind = IMAGE_WEIGHT, .dtype = first->dtype, .which = param[0]};
	b.recipe = stack_recipe(l, param, n);
	b.dim[b.rank++] = (struct ilir_dim){ilir_dim_name(l->m, "slot"), IMAGE_ONE, n, n};
	for (int d = 0; d < first->rank; d++)
		b.dim[b.rank++] = first->dim[d];
	struct stack s = {param, n, ilir_new_buffer(l->m, b)};
	vec_push(l->m->arena, &l->stacks, s);
	return s.buffer;
}

/* --- operands --- */

ilir_expr lower_stacked_weight(struct lowering *l, const sub_ref *sums, int n, const ilir_expr *index,
			       ilir_expr element, ilir_expr slot)
{
	struct sched_child_product c;
	int *param = ARENA_ARRAY(l->m->arena, int, n);
	ilir_expr at[1 + SUB_MAX_VARS] = {slot};
	const struct sub_value *v = sub_at(l->p, sums[0]);
	match_child_product(l, sums[0], &c);
	for (int i = 0; i < n; i++)
		param[i] = sub_at(l->p, sub_at(l->p, sums[i])->arg[c.weight_at].value)->which;
	lower_indices_with(v, index, &v->arg[c.weight_at], &v->reduced, &element, at + 1);
	return lower_widened(l, ilir_load(l->m, stack_of(l, param, n), at, 3));
}

ilir_expr lower_child_in_slot(struct lowering *l, sub_ref sum, int *child_at, const ilir_expr *index,
			      ilir_expr slot, ilir_expr k)
{
	struct sched_child_product c;
	ilir_expr at[SUB_MAX_VARS];
	const struct sub_value *v = sub_at(l->p, sum);
	match_child_product(l, sum, &c);
	lower_indices_with(v, index, &v->arg[c.child_at], &v->reduced, &k, at);
	struct sub_map first = {.function = SUB_CHILD, .which = c.slot};
	at[0] = ilir_binary(l->m, ILIR_ADD, lower_mapped_row(l, c.state, &first, at[0]), slot);
	at[1] = k;
	*child_at = c.child_at;
	return lower_load(l, l->state[c.state], at, 2);
}
