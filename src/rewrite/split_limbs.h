/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of integers of 16 bits as four sums of products of bytes, their limbs (split_limbs.c). */
#ifndef ESPALIER_REWRITE_SPLIT_LIMBS_H
#define ESPALIER_REWRITE_SPLIT_LIMBS_H

#include "subop/subop.h"

/* The range of a weight that is 256 h + l with signed bytes h and l. */
enum { REWRITE_LEAST_LIMBS = -(256 * 128 + 128), REWRITE_MOST_LIMBS = 256 * 127 + 127 };

/* The sums of products of limbs, by the limb of either factor; the one of both lower limbs goes on from what
 * is added to all products. */
enum rewrite_limb_sum {
	REWRITE_HIGH_HIGH,
	REWRITE_HIGH_LOW,
	REWRITE_LOW_HIGH,
	REWRITE_LOW_LOW,
	REWRITE_LIMB_SUMS
};

/* Whether there are sums at all: the first one has a value. */
struct rewrite_limbs {
	struct sub_use sum[REWRITE_LIMB_SUMS];
};

/* The operator of a number and an integer, which one of a single argument does not read.  Of what is moved
 * with a fill in between, or repeated, that is what is moved of such a number: words are made before the
 * move. */
struct sub_use rewrite_apply_to_number(struct sub_program *, enum sub_op, struct sub_use number, double by);
/* The sums of products of x, in 0 .. 65535, and weights w, in the range of limbs, over variables that both
 * have; the last one goes on from `start`.  Uses without a value if there are too many variables. */
struct rewrite_limbs rewrite_sum_limbs(struct sub_program *, const struct sub_vars *reduced, struct sub_use x,
				       struct sub_use w, struct sub_use start);
/* The sum of all products. */
struct sub_use rewrite_combine_limbs(struct sub_program *, const struct rewrite_limbs *);

#endif
