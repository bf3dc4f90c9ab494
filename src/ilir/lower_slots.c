/* Products with each child in turn, U_0 @ child0.h + U_1 @ child1.h + ..., as one loop: where the state is laid out by
 * parent the children lie side by side, and where the weights are stacked the slot is one index more.
 *
 *     for slot in 0..2
 *       for k in 0..64
 *         sum = fma(stack[slot, j, k], h[row + slot, k], sum) */
#include "ilir/lower.h"

/* One such product, taken apart. */
struct slot_product {
	const struct sub_value *sum, *product, *child;
	int param_at; /* which argument of the product is the weight */
	const struct sub_value *param;
	int state, slot;
};

static bool take_apart(const struct lowering *l, sub_ref r, struct slot_product *s)
{
	s->sum = sub_at(l->p, r);
	s->product = sub_at(l->p, s->sum->arg[0].value);
	if (s->sum->op != SUB_SUM || s->product->op != SUB_MULTIPLY ||
	    sched_is_stored(l->plan, l->body, s->sum->arg[0].value))
		return false;
	s->param_at = sub_at(l->p, s->product->arg[0].value)->op != SUB_PARAM;
	s->param = sub_at(l->p, s->product->arg[s->param_at].value);
	s->child = sub_at(l->p, s->product->arg[!s->param_at].value);
	if (s->param->op != SUB_PARAM || s->param->vars != 2 || s->child->op != SUB_ASSIGN)
		return false;
	const struct sub_value *state = sub_at(l->p, s->child->arg[0].value);
	s->state = state->which;
	s->slot = s->child->map[0].which;
	return state->op == SUB_STATE && state->vars == 2 && s->child->map[0].function == SUB_CHILD &&
	       l->sched->states.at[s->state].layout == IMAGE_BY_PARENT &&
	       !sched_is_stored(l->plan, l->body, s->product->arg[!s->param_at].value);
}

static bool same_vars(const struct sub_use *a, const struct sub_use *b)
{
	return a->vars == b->vars && memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

static bool same_map(const struct sub_map *a, const struct sub_map *b)
{
	return a->function == b->function && a->var == b->var && a->scale == b->scale && a->offset == b->offset;
}

static bool same_param(const struct lowering *l, const struct sub_value *a, const struct sub_value *b)
{
	const struct sub_tensor *x = &l->p->params.at[a->which], *y = &l->p->params.at[b->which];
	return x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}

bool lower_next_slot(const struct lowering *l, sub_ref first, sub_ref other, int distance)
{
	struct slot_product a, b;
	if (!take_apart(l, first, &a) || !take_apart(l, other, &b))
		return false;
	return b.state == a.state && b.slot == a.slot + distance && b.param_at == a.param_at &&
	       b.sum->reduced == a.sum->reduced && same_param(l, a.param, b.param) &&
	       same_vars(&a.sum->arg[0], &b.sum->arg[0]) && same_vars(&a.product->arg[0], &b.product->arg[0]) &&
	       same_vars(&a.product->arg[1], &b.product->arg[1]) && same_map(&a.child->map[0], &b.child->map[0]) &&
	       same_map(&a.child->map[1], &b.child->map[1]);
}

/* --- weights, one behind the other --- */

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
	struct ilir_buffer_decl b = {.name = "stack", .kind = IMAGE_WEIGHT, .dtype = ILIR_F32, .which = param[0]};
	b.recipe = stack_recipe(l, param, n);
	b.dim[b.rank++] = (struct ilir_dim){ilir_dim_name(l->m, "slot"), IMAGE_ONE, n, n};
	for (int d = 0; d < first->rank; d++)
		b.dim[b.rank++] = first->dim[d];
	struct stack s = {arena_copy(l->m->arena, param, n * sizeof *param), n, ilir_new_buffer(l->m, b)};
	vec_push(l->m->arena, &l->stacks, s);
	return s.buffer;
}

/* --- operands --- */

static ilir_expr weight_at(struct lowering *l, const struct slot_product *s, const int *param, int n, const ilir_expr *index,
			   ilir_expr slot)
{
	ilir_expr at[1 + SUB_MAX_VARS] = {slot};
	lower_indices_under(s->product, index, &s->product->arg[s->param_at], at + 1);
	return ilir_load(l->m, stack_of(l, param, n), at, 1 + s->param->vars);
}

static ilir_expr child_at(struct lowering *l, const struct slot_product *s, const ilir_expr *index, ilir_expr slot)
{
	ilir_expr of_child[SUB_MAX_VARS], at[2];
	lower_indices_under(s->product, index, &s->product->arg[!s->param_at], of_child);
	at[0] = lower_mapped_row(l, s->state, &s->child->map[0], lower_map_from(s->child, &s->child->map[0], of_child));
	at[0] = ilir_binary(l->m, ILIR_ADD, at[0], slot);
	at[1] = lower_apply_map(l, s->child, &s->child->map[1], of_child);
	return ilir_load(l->m, l->state[s->state], at, 2);
}

void lower_slot_operands(struct lowering *l, const sub_ref *sums, int n, const ilir_expr *index, ilir_expr slot, ilir_expr *operand)
{
	struct slot_product first, s;
	int *param = ARENA_ARRAY(l->m->arena, int, n);
	for (int i = 0; i < n; i++) {
		take_apart(l, sums[i], &s);
		param[i] = s.param->which;
	}
	take_apart(l, sums[0], &first);
	operand[first.param_at] = weight_at(l, &first, param, n, index, slot);
	operand[!first.param_at] = child_at(l, &first, index, slot);
}
