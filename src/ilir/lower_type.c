/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Types: conversion of elements, constants, casts. */
#include "ilir/lower.h"

#include <math.h>

static enum dtype type_of(const struct lowering *l, ilir_expr e)
{
	return (enum dtype)ilir_type_of(l->m, e).dtype;
}

ilir_expr lower_widened(struct lowering *l, ilir_expr e)
{
	enum dtype from = type_of(l, e), to = ra_widened(from);
	return from == to ? e : ilir_unary(l->m, to == DTYPE_F32 ? ILIR_TO_F32 : ILIR_TO_I32, e);
}

ilir_expr lower_narrowed(struct lowering *l, ilir_expr e, enum dtype to)
{
	static const enum ilir_op ops[DTYPES] = {[DTYPE_F16] = ILIR_TO_F16,
						 [DTYPE_BF16] = ILIR_TO_BF16,
						 [DTYPE_I8] = ILIR_TO_I8,
						 [DTYPE_U8] = ILIR_TO_U8,
						 [DTYPE_I16] = ILIR_TO_I16};
	bool narrows = (int)to < DTYPES && type_of(l, e) != to && ops[to];
	return narrows ? ilir_unary(l->m, ops[to], e) : e;
}

ilir_expr lower_number(struct lowering *l, enum dtype d, double number)
{
	switch (d) {
	case DTYPE_I32:
		return ilir_i32(l->m, (int32_t)sub_convert_number(d, number));
	case DTYPE_I64:
		return ilir_i64(l->m, sub_convert_number(d, number));
	case DTYPE_BOOL:
		return ilir_bool(l->m, sub_convert_number(d, number));
	default:
		return ilir_float(l->m, (float)number);
	}
}

ilir_expr lower_cast(struct lowering *l, ilir_expr e, enum dtype to)
{
	enum dtype from = type_of(l, e);
	if (from == to)
		return e;
	if (to == DTYPE_BOOL)
		return ilir_unary(l->m, ILIR_NOT, ilir_binary(l->m, ILIR_EQ, e, lower_number(l, from, 0)));
	if (from == DTYPE_BOOL && to == DTYPE_I64)
		e = ilir_unary(l->m, ILIR_TO_I32, e);
	return ilir_unary(l->m,
			  to == DTYPE_F32   ? ILIR_TO_F32
			  : to == DTYPE_I32 ? ILIR_TO_I32
					    : ILIR_TO_I64,
			  e);
}

ilir_expr lower_index_number(struct lowering *l, ilir_expr index)
{
	return ilir_unary(l->m, ILIR_TO_I32, ilir_unary(l->m, ILIR_TO_I64, index));
}
