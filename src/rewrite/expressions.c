/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/expressions.h"

static const struct sub_use none;

struct sub_use rewrite_use_value(struct sub_program *p, struct sub_value v)
{
	sub_ref r = sub_add(p, v, NULL);
	return r.i ? sub_as_is(p, r) : none;
}

struct sub_use rewrite_add_operator(struct sub_program *p, enum sub_op op, struct sub_use a, struct sub_use b,
				    struct sub_use c)
{
	struct sub_value v = {.op = op, .arg = {a, b, c}};
	for (int i = 0; i < sub_traits_of(op)->arity; i++)
		if (!v.arg[i].value.i)
			return none;
	return rewrite_use_value(p, v);
}

struct sub_use rewrite_add_constant(struct sub_program *p, enum dtype dtype, double x)
{
	return rewrite_use_value(p, (struct sub_value){.op = SUB_CONST, .dtype = dtype, .constant = x});
}

struct sub_use rewrite_add_cast(struct sub_program *p, enum dtype dtype, struct sub_use x)
{
	return x.value.i ? rewrite_use_value(p, (struct sub_value){.op = SUB_CAST, .dtype = dtype, .arg = {x}})
			 : none;
}

struct sub_use rewrite_add_reduction(struct sub_program *p, enum sub_op op, struct sub_use x,
				     const struct sub_vars *reduced)
{
	return x.value.i ? rewrite_use_value(p, (struct sub_value){.op = op, .arg = {x}, .reduced = *reduced}) : none;
}

sub_ref rewrite_reorder(struct sub_program *p, struct sub_use x, const struct sub_value *like)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {x}, .vars = like->vars, .map = map};
	if (!x.value.i || x.vars != like->vars)
		return (sub_ref){0};
	if (memcmp(x.var, like->var, like->vars * sizeof *like->var) == 0)
		return x.value;
	memcpy(v.var, like->var, sizeof v.var);
	for (int i = 0; i < x.vars; i++)
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = x.var[i], .scale = 1};
	return sub_add(p, v, NULL);
}
