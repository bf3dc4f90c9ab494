/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inference: the index variables and the type of a value follow from its operator and arguments. */
#include "subop/subop.h"

static bool contains_var(const int *vars, int n, int var)
{
	for (int i = 0; i < n; i++)
		if (vars[i] == var)
			return true;
	return false;
}

static bool add_var(struct sub_value *v, int var)
{
	if (v->vars == SUB_MAX_VARS)
		return false;
	v->var[v->vars++] = var;
	return true;
}

/* Whether one variable may stand before another: index sets come in the order of enum sub_set. */
static bool may_precede(const struct sub_program *p, int var, int other)
{
	return p->vars.at[var].set <= p->vars.at[other].set;
}

/* Merges two orders of variables.  A variable is next if the rest of the other side lacks it. */
static bool merge_vars(const struct sub_program *p, const struct sub_use *a, const struct sub_use *b,
		       struct sub_value *out)
{
	int i = 0, j = 0;
	out->vars = 0;
	while (i < a->vars || j < b->vars) {
		bool left = i < a->vars, right = j < b->vars;
		if (left && right && a->var[i] == b->var[j]) {
			if (!add_var(out, a->var[i]))
				return false;
			i++, j++;
			continue;
		}
		bool take_left = left && !contains_var(b->var + j, b->vars - j, a->var[i]);
		bool take_right = right && !contains_var(a->var + i, a->vars - i, b->var[j]);
		if (take_left && take_right)
			take_left = may_precede(p, a->var[i], b->var[j]);
		if (!take_left && !take_right)
			return false;
		if (!add_var(out, take_left ? a->var[i++] : b->var[j++]))
			return false;
	}
	return true;
}

static void copy_vars(struct sub_value *v, const struct sub_use *from)
{
	v->vars = from->vars;
	memcpy(v->var, from->var, sizeof v->var);
}

/* Merges the variables of one more argument into those of a value. */
static bool merge_argument(const struct sub_program *p, struct sub_value *v, const struct sub_use *u)
{
	struct sub_use before = {.vars = v->vars};
	memcpy(before.var, v->var, sizeof before.var);
	return merge_vars(p, &before, u, v);
}

/* Sets the variables of a value to those of the elements that it reduces. */
static bool find_reduced_vars(const struct sub_program *p, struct sub_value *v)
{
	bool product = sub_class_of(v->op) == SUB_CONTRACTION;
	copy_vars(v, &v->arg[product]);
	return !product || merge_argument(p, v, &v->arg[2]);
}

int sub_reduced_vars(const struct sub_program *p, const struct sub_value *value, int *var)
{
	struct sub_value v = *value;
	find_reduced_vars(p, &v);
	memcpy(var, v.var, v.vars * sizeof *var);
	return v.vars;
}

static void drop_reduced(struct sub_value *v)
{
	int kept = 0;
	for (int i = 0; i < v->vars; i++)
		if (sub_position_in(&v->reduced, v->var[i]) < 0)
			v->var[kept++] = v->var[i];
	v->vars = kept;
}

static bool has_reduced(const struct sub_value *v, const struct sub_use *u)
{
	for (int i = 0; i < v->reduced.n; i++)
		if (sub_use_has(u, v->reduced.var[i]))
			return true;
	return false;
}

/* The first argument of a contraction, its initial value, lacks the variables that are reduced. */
static bool infer_contraction(const struct sub_program *p, struct sub_value *v)
{
	if (!find_reduced_vars(p, v) || has_reduced(v, &v->arg[0]))
		return false;
	drop_reduced(v);
	return merge_argument(p, v, &v->arg[0]);
}

/* The dimensions of the index come first: those of rows that it picks stay together. */
static bool infer_gathering(const struct sub_program *p, struct sub_value *v)
{
	copy_vars(v, &v->arg[0]);
	drop_reduced(v);
	struct sub_use rest = {.vars = v->vars};
	memcpy(rest.var, v->var, sizeof rest.var);
	return !has_reduced(v, &v->arg[1]) && merge_vars(p, &v->arg[1], &rest, v);
}

bool sub_infer_vars(const struct sub_program *p, struct sub_value *v)
{
	switch (sub_class_of(v->op)) {
	case SUB_UNARY:
		copy_vars(v, &v->arg[0]);
		return true;
	case SUB_BINARY:
		return merge_vars(p, &v->arg[0], &v->arg[1], v);
	case SUB_TERNARY:
		return merge_vars(p, &v->arg[0], &v->arg[1], v) && merge_argument(p, v, &v->arg[2]);
	case SUB_REDUCE:
		copy_vars(v, &v->arg[0]);
		drop_reduced(v);
		return true;
	case SUB_CONTRACTION:
		return infer_contraction(p, v);
	case SUB_GATHERING:
		return infer_gathering(p, v);
	default:
		return v->vars <= SUB_MAX_VARS;
	}
}

/* --- types --- */

static enum dtype type_of(const struct sub_program *p, const struct sub_value *v, int a)
{
	return sub_at(p, v->arg[a].value)->dtype;
}

/* Whether the arguments from number `first` on have one type. */
static bool have_one_type(const struct sub_program *p, const struct sub_value *v, int first)
{
	for (int a = first; a < v->args; a++)
		if (type_of(p, v, a) != type_of(p, v, first))
			return false;
	return true;
}

static enum dtype declared_type(const struct sub_program *p, const struct sub_value *v)
{
	const struct sub_tensor *t = v->op == SUB_PARAM	  ? &p->params.at[v->which]
				     : v->op == SUB_STATE ? &p->states.at[v->which]
							  : &p->inputs.at[v->which].row;
	return ra_widened(t->dtype);
}

static bool find_source_type(const struct sub_program *p, struct sub_value *v)
{
	size_t declared = v->op == SUB_PARAM ? p->params.n : v->op == SUB_STATE ? p->states.n : p->inputs.n;
	if (v->op == SUB_INDEX)
		v->dtype = DTYPE_I32;
	else if (v->op != SUB_CONST && (size_t)v->which < declared)
		v->dtype = declared_type(p, v);
	return true;
}

/* The f32 that words add to is the last argument of an operator, and the first of a contraction. */
static bool find_type_of_words(const struct sub_program *p, struct sub_value *v)
{
	int sum = sub_class_of(v->op) == SUB_CONTRACTION ? 0 : 2;
	v->dtype = DTYPE_F32;
	for (int a = 0; a < v->args; a++)
		if (type_of(p, v, a) != (a == sum ? DTYPE_F32 : DTYPE_I32))
			return false;
	return true;
}

bool sub_find_type(const struct sub_program *p, struct sub_value *v)
{
	if (sub_class_of(v->op) == SUB_SOURCE)
		return find_source_type(p, v);
	enum dtype first = type_of(p, v, 0);
	if (sub_class_of(v->op) == SUB_GATHERING) {
		v->dtype = first;
		return type_of(p, v, 1) == DTYPE_I32 || type_of(p, v, 1) == DTYPE_I64;
	}
	const struct sub_traits *traits = sub_traits_of(v->op);
	enum sub_types types = traits->class == SUB_MOVE	  ? SUB_SAME
			       : traits->class == SUB_CONTRACTION ? sub_traits_of(traits->combine)->types
								  : traits->types;
	switch (types) {
	case SUB_SELECTS:
		v->dtype = type_of(p, v, 1);
		return first == DTYPE_BOOL && have_one_type(p, v, 1);
	case SUB_COMPARE:
		v->dtype = DTYPE_BOOL;
		return first != DTYPE_BOOL && have_one_type(p, v, 0);
	case SUB_BITS:
		v->dtype = DTYPE_I32;
		return first == DTYPE_F32;
	case SUB_WORDS:
		return find_type_of_words(p, v);
	case SUB_CASTS:
		return true;
	default:
		v->dtype = first;
		return have_one_type(p, v, 0) &&
		       (types == SUB_SAME || (types == SUB_LOGIC) == (first == DTYPE_BOOL)) &&
		       (types != SUB_FLOAT || first == DTYPE_F32) &&
		       (types != SUB_INTEGER || first != DTYPE_F32) &&
		       (types != SUB_WORD || first == DTYPE_I32);
	}
}
