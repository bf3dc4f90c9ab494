/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Products with the states of children, slot after slot: with rows by parent they are one loop. */
#include "sched/sched.h"

/* Whether a value is the whole state of a child; finds the state and the slot. */
static bool is_child(const struct sub_program *p, const struct sub_value *v, int *state, int *slot)
{
	const struct sub_value *from = sub_at(p, v->arg[0].value);
	if (v->op != SUB_ASSIGN || from->op != SUB_STATE || from->vars != 2 || v->vars != 2 || v->map[0].function != SUB_CHILD)
		return false;
	const struct sub_map *m = &v->map[1];
	*state = from->which;
	*slot = v->map[0].which;
	return !v->fills && m->function == SUB_AFFINE && m->var == v->var[1] && m->scale == 1 &&
	       m->offset == 0 && !m->scale2 && p->vars.at[m->var].extent == p->states.at[*state].shape[0];
}

/* Whether a value is a concatenation of children's states in the order of their slots, continuing those in
 * `c`; adds them to `c`. */
static bool joins_children(const struct sub_program *p, const struct sub_value *v,
			   struct sched_child_product *c)
{
	int state, slot;
	if (v->op == SUB_COND)
		return v->vars == 2 && v->axis == 1 && joins_children(p, sub_at(p, v->arg[0].value), c) &&
		       joins_children(p, sub_at(p, v->arg[1].value), c);
	if (!is_child(p, v, &state, &slot) || (c->slots && (state != c->state || slot != c->slot + c->slots)))
		return false;
	c->slot -= c->slots ? 0 : c->slot - slot;
	c->state = state;
	c->slots++;
	return true;
}

bool sched_child_product(const struct sub_program *p, sub_ref r, struct sched_child_product *c)
{
	const struct sub_value *v = sub_at(p, r);
	*c = (struct sched_child_product){0};
	for (int a = 1; v->op == SUB_ACCUMULATE && a < v->args; a++) {
		const struct sub_use *u = &v->arg[a];
		c->child_at = a;
		c->weight_at = 3 - a;
		c->slots = 0;
		if (u->vars == 2 && v->reduced.n == 1 && u->var[1] == v->reduced.var[0] && joins_children(p, sub_at(p, u->value), c))
			return true;
	}
	return false;
}

static bool same_vars(const struct sub_use *a, const struct sub_use *b)
{
	return a->vars == b->vars && memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

/* Whether two values are weights of one shape and type. */
static bool same_weights(const struct sub_program *p, const struct sub_value *a, const struct sub_value *b)
{
	if (a->op != SUB_PARAM || b->op != SUB_PARAM || a->vars != 2 || b->vars != 2)
		return false;
	const struct sub_tensor *x = &p->params.at[a->which], *y = &p->params.at[b->which];
	return x->dtype == y->dtype && memcmp(x->shape, y->shape, 2 * sizeof *x->shape) == 0;
}

bool sched_next_child(const struct sub_program *p, sub_ref first, sub_ref other, int distance)
{
	struct sched_child_product a, b;
	if (!sched_child_product(p, first, &a) || !sched_child_product(p, other, &b))
		return false;
	const struct sub_value *x = sub_at(p, first), *y = sub_at(p, other);
	return a.slots == 1 && b.slots == 1 && a.state == b.state && a.child_at == b.child_at &&
	       b.slot == a.slot + distance && x->reduced.var[0] == y->reduced.var[0] &&
	       same_vars(&x->arg[1], &y->arg[1]) && same_vars(&x->arg[2], &y->arg[2]) &&
	       same_weights(p, sub_at(p, x->arg[a.weight_at].value), sub_at(p, y->arg[a.weight_at].value));
}
