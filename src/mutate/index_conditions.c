/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Conditions on one index of the position: programs of sub-operators can have them, though model texts make
 * none that choose between floats. */
#include "mutate/forms.h"

/* Whether a value is computed of indices and whole numbers alone, by no more operators than are left. */
static bool is_of_indices(const struct sub_program *p, sub_ref r, int *left)
{
	const struct sub_value *v = sub_at(p, r);
	if (--*left < 0)
		return false;
	if (v->op == SUB_INDEX || v->op == SUB_CONST)
		return v->dtype != DTYPE_F32;
	if (sub_class_of(v->op) == SUB_SOURCE || !sub_takes_integers(v->op) || v->op == SUB_CAST ||
	    v->dtype == DTYPE_F32)
		return false;
	for (int a = 0; a < v->args; a++)
		if (!is_of_indices(p, v->arg[a].value, left))
			return false;
	return true;
}

static int64_t compute_number(const struct sub_program *p, const struct mutate_scope *scope,
			      const struct sub_use *u, const int64_t *index)
{
	const struct sub_value *v = sub_at(p, u->value);
	struct mutate_scope own = mutate_scope_of(p, v);
	int64_t at[SUB_MAX_VARS] = {0}, x[SUB_MAX_ARITY] = {0};
	for (int i = 0; i < u->vars; i++)
		at[i] = index[mutate_find_var(scope, u->var[i])];
	if (v->op == SUB_CONST)
		return (int64_t)v->constant;
	if (v->op == SUB_INDEX)
		return at[0];
	for (int a = 0; a < v->args; a++)
		x[a] = compute_number(p, &own, &v->arg[a], at);
	return sub_apply_to_integers(v->op, v->dtype, x[0], x[1], x[2]);
}

bool mutate_holds(const struct sub_program *p, const struct mutate_scope *scope,
		  const struct sub_use *condition, const int64_t *index)
{
	return compute_number(p, scope, condition, index) != 0;
}

/* Cuts where a condition of one variable changes. */
static void cut_where_it_changes(struct mutate_draft *d, const struct sub_use *condition)
{
	int64_t index[MUTATE_MAX_SCOPE] = {0};
	int at = mutate_find_var(&d->scope, condition->var[0]);
	int64_t extent = d->p->vars.at[condition->var[0]].extent;
	bool before = mutate_holds(d->p, &d->scope, condition, index);
	for (index[at] = 1; index[at] < extent && !d->why; index[at]++) {
		bool holds = mutate_holds(d->p, &d->scope, condition, index);
		if (holds != before)
			mutate_cut(d, at, index[at]);
		before = holds;
	}
}

bool mutate_cut_at_condition(struct mutate_draft *d, const struct sub_use *condition)
{
	const struct sub_value *v = sub_at(d->p, condition->value);
	bool logic = v->op == SUB_AND || v->op == SUB_OR || v->op == SUB_NOT;
	int left = MUTATE_MAX_CONDITION;
	if (!is_of_indices(d->p, condition->value, &left))
		return false;
	if (condition->vars == 1)
		cut_where_it_changes(d, condition);
	else if (condition->vars > 1 && !logic)
		return false;
	for (int a = 0; condition->vars > 1 && a < v->args; a++) {
		struct sub_use argument = sub_rename_use(v, condition, v->arg[a]);
		if (!mutate_cut_at_condition(d, &argument))
			return false;
	}
	return true;
}
