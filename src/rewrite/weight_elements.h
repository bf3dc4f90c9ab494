/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The elements of the weights of products, for those that find scales for them (weight_scales.c, row_scales.c). */
#ifndef ESPALIER_REWRITE_WEIGHT_ELEMENTS_H
#define ESPALIER_REWRITE_WEIGHT_ELEMENTS_H

#include "rewrite/products.h"

/* An element of a value, and then of the parameter that it is moved from. */
struct rewrite_element {
	const struct sub_value *value;
	int64_t at[SUB_MAX_VARS];
};

/* An element of the weights of a product, and the row of the sum that it belongs to. */
struct rewrite_weight {
	struct rewrite_element element; /* of the weights, with an index for each variable of their use */
	int64_t row;
	int param;
	int64_t number; /* in the parameter */
};

/* How many elements a parameter has; how many elements, and how many rows, the weights of a product. */
int64_t rewrite_count_param(const struct sub_tensor *);
int64_t rewrite_count_weights(const struct sub_program *, const struct sub_use *w);
int64_t rewrite_count_weight_rows(const struct sub_program *, const struct sub_value *sum, const struct sub_use *w);
/* Goes to element number `i` of the weights of a product; false if it is of no parameter. */
bool rewrite_visit_weight(const struct sub_program *, const struct sub_value *sum, const struct sub_use *w, int64_t i,
			  struct rewrite_weight *to);
/* Marks, by parameter, those that a value is computed of. */
void rewrite_mark_params(const struct sub_program *, sub_ref, bool *marked, struct arena *);
/* Marks the parameters that bodies read but by the weights of products in integers. */
void rewrite_mark_other_params(const struct rewrite_products *, bool *marked, struct arena *);

#endif
