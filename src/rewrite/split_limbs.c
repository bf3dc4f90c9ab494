/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Limbs: writes a sum of products of integers of 16 bits as four sums of products of bytes, for machines that
 * multiply matrices of bytes and none of halves.
 *
 *     x = 256 xh + xl     xh and xl unsigned bytes: x is in 0 .. 65535
 *     w = 256 wh + wl     wh and wl signed bytes: w is in -32896 .. 32639
 *
 *     start + sum x w  =  256 (256 sum xh wh + sum xh wl + sum xl wh) + (start + sum xl wl)
 *
 * holds to the bit, as integers wrap: the sums on the right may.  A word takes the lowest byte of each number
 * that is appended to it, so that nothing is to be done for the lower limbs: as an unsigned byte it is x -
 * 256 floor(x / 256), as a signed one w - 256 floor((w + 128) / 256).  The upper limbs are the numbers
 * without their lowest byte (drop8), those of weights rounded.
 *
 * The four sums run over the same words of x and of w, each of which is part of two of them, so that they are
 * computed by one loop (ilir/lower_sum.c). */
#include "rewrite/split_limbs.h"

#include "rewrite/expressions.h"
#include "rewrite/word_products.h"

enum { LIMB = 256 };

static const struct sub_use none;
static const struct rewrite_parts bytes = {4, SUB_APPEND8, SUB_ACCUMULATE4, false};

/* Whether a move reads some of its elements several times, or none in places. */
static bool repeats_elements(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN &&
	       (v->fills || sub_row_elements(p, sub_at(p, v->arg[0].value)) < sub_row_elements(p, v));
}

struct sub_use rewrite_apply_to_number(struct sub_program *p, enum sub_op op, struct sub_use number,
				       double by)
{
	struct sub_value v = *sub_at(p, number.value);
	struct sub_use all = sub_as_is(p, number.value);
	if (repeats_elements(p, &v)) {
		v.arg[0] = rewrite_apply_to_number(p, op, v.arg[0], by);
		v.fill = v.fills
			     ? (double)sub_apply_to_integers(op, DTYPE_I32, (int64_t)v.fill, (int64_t)by, 0)
			     : v.fill;
		all = v.arg[0].value.i ? rewrite_use_value(p, v) : none;
	} else {
		all = rewrite_add_operator(p, op, all, rewrite_add_constant(p, DTYPE_I32, by), none);
	}
	number.value = all.value;
	return number;
}

static struct sub_use drop_byte(struct sub_program *p, struct sub_use number)
{
	return number.value.i ? rewrite_apply_to_number(p, SUB_DROP8, number, 0) : number;
}

struct rewrite_limbs rewrite_sum_limbs(struct sub_program *p, const struct sub_vars *reduced,
				       struct sub_use x, struct sub_use w, struct sub_use start)
{
	struct rewrite_limbs limbs = {0};
	struct sub_use high_x = drop_byte(p, x),
		       high_w = drop_byte(p, rewrite_apply_to_number(p, SUB_ADD, w, LIMB / 2)),
		       zero = rewrite_add_constant(p, DTYPE_I32, 0);
	if (!high_x.value.i || !high_w.value.i || !start.value.i)
		return limbs;
	limbs.sum[REWRITE_HIGH_HIGH] = rewrite_sum_words(p, reduced, high_x, high_w, zero, &bytes);
	limbs.sum[REWRITE_HIGH_LOW] = rewrite_sum_words(p, reduced, high_x, w, zero, &bytes);
	limbs.sum[REWRITE_LOW_HIGH] = rewrite_sum_words(p, reduced, x, high_w, zero, &bytes);
	limbs.sum[REWRITE_LOW_LOW] = rewrite_sum_words(p, reduced, x, w, start, &bytes);
	for (int i = 0; i < REWRITE_LIMB_SUMS; i++)
		if (!limbs.sum[i].value.i)
			return (struct rewrite_limbs){0};
	return limbs;
}

/* The last sum is behind a nop, without which it would be one accumulator with what is added to it, as a step of a chain
 * (sched/chains.c), and so wait for the other sums. */
struct sub_use rewrite_combine_limbs(struct sub_program *p, const struct rewrite_limbs *l)
{
	struct sub_use low = rewrite_add_operator(p, SUB_NOP, l->sum[REWRITE_LOW_LOW], none, none);
	struct sub_use limb = rewrite_add_constant(p, DTYPE_I32, LIMB), all = l->sum[REWRITE_HIGH_HIGH];
	struct sub_use mixed = rewrite_add_operator(p, SUB_ADD, l->sum[REWRITE_HIGH_LOW], l->sum[REWRITE_LOW_HIGH], none);
	all = rewrite_add_operator(p, SUB_MULTIPLY, all, limb, none);
	all = rewrite_add_operator(p, SUB_ADD, all, rewrite_add_operator(p, SUB_NOP, mixed, none, none), none);
	all = rewrite_add_operator(p, SUB_MULTIPLY, all, limb, none);
	return rewrite_add_operator(p, SUB_ADD, all, low, none);
}
