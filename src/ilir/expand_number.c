/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Expansions of compounds that round: to integers, to narrower floats and after products of integers.
 * They are exact. */
#include "ilir/calc.h"

/* Adding 2^23 rounds to an integer.  A number at least that large is one already. */
ilir_expr ilir_expand_ROUND(const struct calc *c, ilir_expr x)
{
	ilir_expr a = magnitude(c, x), rounder = number(c, 0x1p23f);
	ilir_expr rounded = subtract(c, add(c, a, rounder), rounder);
	return choose(c, less(c, a, rounder), with_sign(c, rounded, x), x);
}

ilir_expr ilir_expand_FLOOR(const struct calc *c, ilir_expr x)
{
	ilir_expr nearest = ilir_expand_ROUND(c, x);
	return choose(c, less(c, x, nearest), subtract(c, nearest, number(c, 1.0f)), nearest);
}

/* An integer constant of the type of x. */
static ilir_expr integer_like(const struct calc *c, ilir_expr x, int64_t i)
{
	return spread(c, ilir_type_of(c->m, x).dtype == ILIR_I32 ? ilir_i32(c->m, i) : ilir_i64(c->m, i));
}

/* Rounds up if the bits that are shifted out are at least half of the last bit that remains.  For
 * negative numbers they must be more than half, since a tie goes away from zero and the shift rounds
 * down. */
ilir_expr ilir_expand_ROUND_SHR(const struct calc *c, ilir_expr x, ilir_expr by)
{
	ilir_expr one = integer_like(c, x, 1), zero = integer_like(c, x, 0);
	ilir_expr mask = subtract(c, ilir_binary(c->m, ILIR_SHL, one, by), one);
	ilir_expr limit =
	    add(c, ilir_binary(c->m, ILIR_SHR, mask, one), choose(c, less(c, x, zero), one, zero));
	ilir_expr up = less(c, limit, ilir_binary(c->m, ILIR_BIT_AND, x, mask));
	return add(c, ilir_binary(c->m, ILIR_SHR, x, by), choose(c, up, one, zero));
}

ilir_expr ilir_expand_MUL_HIGH(const struct calc *c, ilir_expr x, ilir_expr y)
{
	ilir_expr product = multiply(c, ilir_unary(c->m, ILIR_TO_I64, x), ilir_unary(c->m, ILIR_TO_I64, y));
	ilir_expr high = ilir_binary(c->m, ILIR_SHR, product, integer_like(c, product, 32));
	return ilir_unary(c->m, ILIR_WRAP_I32, high);
}

/* i/2^by rounded to the nearest integer, ties to even; i must be far enough from overflow. */
static ilir_expr round_bits(const struct calc *c, ilir_expr i, int by)
{
	ilir_expr even = bit_and(c, shift_right(c, i, by), 1);
	return shift_right(c, add(c, add(c, i, bits(c, (1 << (by - 1)) - 1)), even), by);
}

/* Below 2^-14, adding 1/2 rounds to the last bit of a denormal f16.  From 65520 on the result is infinity. */
ilir_expr ilir_expand_TO_F16(const struct calc *c, ilir_expr x)
{
	const int32_t infinity = 0x7f800000, bias = (127 - 15) << 23, normal = 0x38800000;
	ilir_expr a = magnitude(c, x), i = as_bits(c, a);
	ilir_expr sign = bit_and(c, shift_right(c, as_bits(c, x), 16), 0x8000);
	ilir_expr large =
	    ilir_binary(c->m, ILIR_MIN, round_bits(c, subtract(c, i, bits(c, bias)), 13), bits(c, 0x7c00));
	ilir_expr small = subtract(c, as_bits(c, add(c, a, number(c, 0.5f))), bits(c, 0x3f000000));
	ilir_expr nan = bit_or(c, bit_and(c, shift_right(c, i, 13), 0x3ff), bits(c, 0x7e00));
	ilir_expr half = choose(c, less(c, i, bits(c, normal)), small, large);
	half = choose(c, less(c, bits(c, infinity), i), nan, half);
	return ilir_unary(c->m, ILIR_AS_F16, bit_or(c, sign, half));
}

ilir_expr ilir_expand_TO_BF16(const struct calc *c, ilir_expr x)
{
	ilir_expr i = as_bits(c, x), nan = bit_or(c, shift_right(c, i, 16), bits(c, 0x40));
	ilir_expr ordered = ilir_binary(c->m, ILIR_EQ, x, x);
	return ilir_unary(c->m, ILIR_AS_BF16, choose(c, ordered, round_bits(c, i, 16), nan));
}
