/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The products of a program with weights: which of them can be computed in integers, by what bounds, or in bf16, and what
 * they are called.  The passes that compute them (quantise.c), observe them (observe.c) and keep their weights in narrow types
 * (weight_scales.c) find the same ones here. */
#ifndef ESPALIER_REWRITE_PRODUCTS_H
#define ESPALIER_REWRITE_PRODUCTS_H

#include "rewrite/rule_engine.h"

enum { REWRITE_MOST_LINKS = 16 }; /* of a chain that is one sum */

/* Why a product is computed in f32. */
enum rewrite_refusal {
	REWRITE_NO_WEIGHTS, /* of others, and of what no body computes */
	REWRITE_QUANTISED,  /* it is not: in integers, or in bf16 */
	REWRITE_NO_SHAPE,
	REWRITE_TOO_SMALL,
	REWRITE_TOO_LONG,   /* in i8x3, for one i32 */
	REWRITE_SEVERAL,    /* of a sum over several indices, which is not computed in f16 */
	REWRITE_NO_BOUND,
	REWRITE_UNFIT_BOUND,
	REWRITE_KEPT,
	REWRITE_IN_F32,	   /* the model declares it */
	REWRITE_UNASKED,   /* neither the model nor the options ask for another precision */
	REWRITE_CONTRADICTED
};

/* The products of one accumulation, with the names of its variables. */
struct rewrite_product {
	enum rewrite_refusal refusal;
	const char *name; /* "W*x": a parameter of its weights and what they multiply; no two products have the same */
	struct sub_use x, w;
	double terms, sums;	    /* products of each sum, and sums that share what is multiplied */
	struct rewrite_bound bound; /* of the magnitudes of x; 1 of a calibrated one; bf16 needs none */
	enum precision precision;
	bool declared;		    /* by the model, else by the options */
	bool calibrated;	    /* the bound is a number that comes with the weights */
	const char *bound_of;	    /* the first calibrated product of the same x, whose bound it takes: so integers are shared */
	int links;		    /* the products before it in one sum of integers, which it goes on from */
	bool absorbed;		    /* another one goes on from it */
};

struct rewrite_products {
	const struct sub_program *p;
	const bool *constant;	     /* by value, like the next two */
	const int *uses;	     /* see sub_count_uses */
	struct rewrite_product *at;
};

/* The products that are one sum of integers or of f16, the last one first, and what all of them share. */
struct rewrite_product_chain {
	int links;
	const struct sub_value *sum[REWRITE_MOST_LINKS];
	const struct rewrite_product *product[REWRITE_MOST_LINKS];
	double levels, most, limit; /* of factors, of weights, of the magnitudes of a sum's weights */
	bool per_edge;		    /* the bounds of the factors are those of each edge */
};

/* Finds the products of a program that was contracted.  What options->calibration has bounds of is quantised, and so is
 * what has none if options->observing and no precision is given: then each is judged as if its bound were known. */
struct rewrite_products rewrite_find_products(const struct sub_program *, const struct rewrite_options *, struct arena *);
/* The chain that ends with the product of a value. */
struct rewrite_product_chain rewrite_find_chain(const struct rewrite_products *, uint32_t last);
/* Whether products are computed in bf16, in one of the ways there are: then a sum goes on from another one as it does in f32. */
bool rewrite_is_bf16(enum precision);
/* The value of an accumulation in such a way (bf16_products.c), of copies of its arguments; none if it has too many variables. */
sub_ref rewrite_add_bf16_product(struct sub_program *to, enum precision, const struct sub_value *sum, struct sub_use start,
				 struct sub_use x, struct sub_use w);
/* How many columns of what a product multiplies its weights tell apart; squares are observed of each (observe.c). */
int64_t rewrite_count_columns(const struct sub_program *, const struct rewrite_product *);
/* The axis of a parameter of `rank` axes that rows consist of, which have a scale each in i8, if this product is the first that reads
 * it (narrow.c). */
int rewrite_find_row_axis(const struct sub_program *, const struct sub_use *w, const struct sub_vars *reduced, int rank);
/* By value: its operator, which is one of fewer places where such products go into a sigmoid or a tanh
 * (choose_functions.c). */
const enum sub_op *rewrite_choose_functions(const struct rewrite_products *, const struct rewrite_options *,
					    struct arena *);
/* Why a product stays in f32. */
const char *rewrite_refusal_text(enum rewrite_refusal);

#endif
