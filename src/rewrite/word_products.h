/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Words of several numbers each, and sums of products of words: of narrow integers (group.c) and of bf16
 * (bf16_products.c). */
#ifndef ESPALIER_REWRITE_WORD_PRODUCTS_H
#define ESPALIER_REWRITE_WORD_PRODUCTS_H

#include "subop/subop.h"

/* The parts of a word. */
struct rewrite_parts {
	int count;
	enum sub_op append, accumulate;
	bool blocks; /* as many words as blocks of a multiple of four, and at most SUB_MOST_BLOCK, are filled by */
};

/* start + the sum of the products of x and w over variables that both have, by words along one of them: that of the
 * fewest dot products.  Parts past the end are 0.  A use without a value if it has too many variables. */
struct sub_use rewrite_sum_words(struct sub_program *, const struct sub_vars *reduced, struct sub_use x,
				 struct sub_use w, struct sub_use start, const struct rewrite_parts *);

/* The same over the variable k by blocks of words of two bf16, whose bits x and w are, with those of the first half of a block in the lower
 * halves of its words and those of the second one in the upper halves (accumulate_bf16_block). */
struct sub_use rewrite_sum_blocks(struct sub_program *, int k, struct sub_use x, struct sub_use w, struct sub_use start);

/* How many sums of products of x and w an element of x is part of: one for each element along variables that x lacks. */
double rewrite_count_readers(const struct sub_program *, const struct sub_use *x, const struct sub_use *w);
/* Whether words of x would be made for each window, and each be multiplied once, as those of a depthwise convolution: that takes
 * longer than multiplying the numbers. */
bool rewrite_makes_single_words(const struct sub_program *, const struct sub_vars *reduced, const struct sub_use *x,
				const struct sub_use *w, const struct rewrite_parts *);

#endif
