/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Products in bf16: computes a sum of products with weights as dot products of words of two bf16.
 *
 *     %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]
 *                                                  ->
 *     %3[q,j] = append16 bf16_bits W[j,2*q+1], bf16_bits W[j,2*q]              at binding
 *     %4[n,q] = append16 bf16_bits x[n,2*q+1], bf16_bits x[n,2*q]
 *     %2[n,j] = accumulate_bf16_q b[j], %4[n,q], %3[q,j]
 *
 * Both factors are rounded once, to the nearest bf16.  Their products are exact in f32 but for overflow, and are added to
 * the sum one by one, as dot_bf16 of ilir/ilir_ops.def says: the second of each pair before the first.  So the order of
 * a sum is not that in f32, but a sum goes on from another one as it does there.
 *
 * In bf16x1 products are added by blocks of at most 16 words, as matrix registers do, whose words have two numbers that lie half a block apart:
 *
 *     %3[b,q,j] = append16 bf16_bits W[j,32*b+q+16], bf16_bits W[j,32*b+q]
 *     %4[n,b,q] = append16 bf16_bits x[n,32*b+q+16], bf16_bits x[n,32*b+q]
 *     %2[n,j] = accumulate_bf16_block_b,q b[j], %4[n,b,q], %3[b,q,j]
 *
 * In bf16x3 each factor is the sum of two bf16, of which it has 16 digits: x = x1 + x2, where x2 is what rounding to x1 takes away,
 * rounded in turn.  Three such sums are added, those of x1 W1, x2 W1 and x1 W2. */
#include "base/convert.h"
#include "rewrite/expressions.h"
#include "rewrite/products.h"
#include "rewrite/word_products.h"

static const struct sub_use none;
static const struct rewrite_parts pair = {2, SUB_APPEND16, SUB_ACCUMULATE_BF16, false};

/* Whether a value has elements of its argument at indices that are sums of its own. */
static bool is_window(const struct sub_program *p, const struct sub_value *v)
{
	bool affine = v->op == SUB_ASSIGN;
	for (int i = 0; affine && i < sub_at(p, v->arg[0].value)->vars; i++)
		affine = v->map[i].function == SUB_AFFINE;
	return affine;
}

/* The bits of the nearest bf16 of each element.  Those of windows are windows of bits, so that words are made below
 * what repeats elements. */
static struct sub_use add_bits(struct sub_program *p, struct sub_use x)
{
	struct sub_value v = *sub_at(p, x.value);
	if (!is_window(p, &v))
		return rewrite_add_operator(p, SUB_BF16_BITS, x, none, none);
	v.arg[0] = add_bits(p, v.arg[0]);
	v.fill = v.fills ? bf16_of_f32((float)v.fill) : v.fill;
	x.value = v.arg[0].value.i ? sub_add(p, v, NULL) : v.arg[0].value;
	return x;
}

/* What rounding to bf16 takes away of each element; of windows below what repeats elements. */
static struct sub_use add_rest(struct sub_program *p, struct sub_use x)
{
	struct sub_value v = *sub_at(p, x.value);
	if (!is_window(p, &v))
		return rewrite_add_operator(p, SUB_BF16_REST, x, none, none);
	v.arg[0] = add_rest(p, v.arg[0]);
	v.fill = v.fills ? v.fill - (double)f32_of_bf16(bf16_of_f32((float)v.fill)) : 0;
	x.value = v.arg[0].value.i ? sub_add(p, v, NULL) : v.arg[0].value;
	return x;
}

/* The sum of three products of two bf16 each.  The sum of the large ones is behind a nop, as the lower limbs are in split_limbs.c. */
static struct sub_use add_three_products(struct sub_program *p, int k, struct sub_use start, struct sub_use x, struct sub_use w)
{
	struct sub_use zero = rewrite_add_constant(p, DTYPE_F32, 0), x_bits = add_bits(p, x), w_bits = add_bits(p, w);
	struct sub_use x_rest = add_bits(p, add_rest(p, x)), w_rest = add_bits(p, add_rest(p, w));
	if (!x_bits.value.i || !w_bits.value.i || !x_rest.value.i || !w_rest.value.i)
		return none;
	struct sub_use large = rewrite_sum_blocks(p, k, x_bits, w_bits, start), left = rewrite_sum_blocks(p, k, x_rest, w_bits, zero),
		       right = rewrite_sum_blocks(p, k, x_bits, w_rest, zero);
	struct sub_use small = rewrite_add_operator(p, SUB_ADD, left, right, none);
	return rewrite_add_operator(p, SUB_ADD, rewrite_add_operator(p, SUB_NOP, small, none, none),
				    rewrite_add_operator(p, SUB_NOP, large, none, none), none);
}

static struct sub_use add_one_product(struct sub_program *p, enum precision precision, const struct sub_vars *reduced,
				      struct sub_use start, struct sub_use x, struct sub_use w)
{
	x = add_bits(p, x);
	w = add_bits(p, w);
	if (!x.value.i || !w.value.i)
		return none;
	return precision == PRECISION_BF16 ? rewrite_sum_words(p, reduced, x, w, start, &pair)
					   : rewrite_sum_blocks(p, reduced->var[0], x, w, start);
}

sub_ref rewrite_add_bf16_product(struct sub_program *to, enum precision precision, const struct sub_value *sum, struct sub_use start,
				 struct sub_use x, struct sub_use w)
{
	struct sub_use all = precision == PRECISION_BF16X3 ? add_three_products(to, sum->reduced.var[0], start, x, w)
							    : add_one_product(to, precision, &sum->reduced, start, x, w);
	return all.value.i ? rewrite_reorder(to, all, sum) : (sub_ref){0};
}
