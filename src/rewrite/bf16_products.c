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
 * a sum is not that in f32, but a sum goes on from another one as it does there. */
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

sub_ref rewrite_add_bf16_product(struct sub_program *to, const struct sub_value *sum, struct sub_use start,
				 struct sub_use x, struct sub_use w)
{
	x = add_bits(to, x);
	w = add_bits(to, w);
	if (!x.value.i || !w.value.i)
		return (sub_ref){0};
	return rewrite_reorder(to, rewrite_sum_words(to, &sum->reduced, x, w, start, &pair), sum);
}
