/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on loop expressions, in which expansions of compounds are written; only this folder includes it.
 *
 * It is an expression language: calls read as the formula, add(c, x, multiply(c, y, z)) for x + y*z, so
 * functions are named by their operator alone. */
#ifndef ESPALIER_ILIR_CALC_H
#define ESPALIER_ILIR_CALC_H

#include "ilir/ilir.h"

/* The module, and the number of lanes to which constants are spread. */
struct calc {
	struct ilir_module *m;
	int lanes;
};

static inline ilir_expr spread(const struct calc *c, ilir_expr e)
{
	return c->lanes > 1 ? ilir_spread(c->m, ILIR_BROADCAST, e, c->lanes) : e;
}

static inline ilir_expr number(const struct calc *c, float f)
{
	return spread(c, ilir_float(c->m, f));
}

static inline ilir_expr bits(const struct calc *c, int32_t i)
{
	return spread(c, ilir_i32(c->m, i));
}

static inline ilir_expr add(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_ADD, a, b);
}

static inline ilir_expr subtract(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_SUB, a, b);
}

static inline ilir_expr multiply(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_MUL, a, b);
}

static inline ilir_expr divide(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_FDIV, a, b);
}

static inline ilir_expr fma3(const struct calc *c, ilir_expr x, ilir_expr y, ilir_expr z)
{
	return ilir_ternary(c->m, ILIR_FMA, x, y, z);
}

static inline ilir_expr as_bits(const struct calc *c, ilir_expr e)
{
	return ilir_unary(c->m, ILIR_AS_I32, e);
}

static inline ilir_expr as_float(const struct calc *c, ilir_expr e)
{
	return ilir_unary(c->m, ILIR_AS_F32, e);
}

static inline ilir_expr less(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_LT, a, b);
}

static inline ilir_expr choose(const struct calc *c, ilir_expr condition, ilir_expr yes, ilir_expr no)
{
	return ilir_ternary(c->m, ILIR_SELECT, condition, yes, no);
}

static inline ilir_expr magnitude(const struct calc *c, ilir_expr x)
{
	return as_float(c, ilir_binary(c->m, ILIR_BIT_AND, as_bits(c, x), bits(c, INT32_MAX)));
}

/* Sets the sign bit of y if that of x is set. */
static inline ilir_expr with_sign(const struct calc *c, ilir_expr y, ilir_expr x)
{
	ilir_expr sign = ilir_binary(c->m, ILIR_BIT_AND, as_bits(c, x), bits(c, INT32_MIN));
	return as_float(c, ilir_binary(c->m, ILIR_BIT_OR, as_bits(c, y), sign));
}

/* Limits.  A NaN passes unchanged, and each is one machine instruction. */
static inline ilir_expr at_least(const struct calc *c, ilir_expr x, float low)
{
	return choose(c, less(c, x, number(c, low)), number(c, low), x);
}

static inline ilir_expr at_most(const struct calc *c, ilir_expr x, float high)
{
	return choose(c, less(c, number(c, high), x), number(c, high), x);
}

static inline ilir_expr bit_and(const struct calc *c, ilir_expr a, int32_t b)
{
	return ilir_binary(c->m, ILIR_BIT_AND, a, bits(c, b));
}

static inline ilir_expr bit_or(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_BIT_OR, a, b);
}

static inline ilir_expr bit_xor(const struct calc *c, ilir_expr a, ilir_expr b)
{
	return ilir_binary(c->m, ILIR_BIT_XOR, a, b);
}

static inline ilir_expr shift_left(const struct calc *c, ilir_expr a, int by)
{
	return ilir_binary(c->m, ILIR_SHL, a, bits(c, by));
}

static inline ilir_expr shift_right(const struct calc *c, ilir_expr a, int by)
{
	return ilir_binary(c->m, ILIR_SHR, a, bits(c, by));
}

/* --- expand_number.c --- */

ilir_expr ilir_expand_ROUND(const struct calc *, ilir_expr);
ilir_expr ilir_expand_FLOOR(const struct calc *, ilir_expr);
ilir_expr ilir_expand_ROUND_SHR(const struct calc *, ilir_expr, ilir_expr);
ilir_expr ilir_expand_MUL_HIGH(const struct calc *, ilir_expr, ilir_expr);
ilir_expr ilir_expand_TO_F16(const struct calc *, ilir_expr);
ilir_expr ilir_expand_TO_BF16(const struct calc *, ilir_expr);

#endif
