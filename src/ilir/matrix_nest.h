/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A loop over words whose statements all add dot products to sums, as matrix registers can compute them.
 *
 *     for q in 0..64 step 2
 *       s[0, ramp(16, 0)] = dot4(broadcast(16, x[n1, q]), w[q, 0, ramp(16, 0)], s[0, ramp(16, 0)])
 *
 * Or a loop over blocks of words of bf16 (lower_sum.c), whose products are added to two sums of each block, those of the lower
 * and of the upper halves, which begin with zeros and are added to the sum behind the block (bf16_nest.c).
 *
 * Each of its products is of a row (x[n1, q]) and a column (w[q, 0, ramp(16, 0)], the 16 lanes of a packed
 * weight).  Rows that one matrix register can hold are a plane: their sums lie one after the other for each
 * column that multiplies them.  So the sums of a plane and a column are one matrix register.  Where an
 * integer is made of several bytes, the rows of its upper and of its lower bytes are two planes, and a column
 * may multiply both, or one of them. */
#ifndef ESPALIER_ILIR_MATRIX_NEST_H
#define ESPALIER_ILIR_MATRIX_NEST_H

#include "ilir/ilir.h"

enum { MATRIX_NEST_ROWS = 64, MATRIX_NEST_COLUMNS = 64 };

/* A dot product that a statement of the loop adds to a sum: of row and column, and how far from the loop's
 * variable. */
struct matrix_product {
	int row, column;
	int64_t ahead;
	const struct ilir_stmt *store; /* to the sum: of bf16 that behind the block */
};

/* Rows by their number in the nest, in the order in which their sums lie. */
struct matrix_plane {
	int row[ILIR_MATRIX_ROWS];
};

struct matrix_nest {
	struct ilir_module *m;
	enum ilir_op op;	      /* DOT4 or DOT_BF16 */
	const struct ilir_stmt *loop; /* over the words: of bf16 over those of a block, */
	const struct ilir_stmt *blocks; /* and the loop around it; else NULL */
	ilir_expr row[MATRIX_NEST_ROWS], column[MATRIX_NEST_COLUMNS]; /* loads for the loop's variable */
	int rows, columns;
	VEC(struct matrix_product) products;
	/* By row and column: the statement that adds their first product; NULL = none does. */
	const struct ilir_stmt **sum;
	struct matrix_plane plane[MATRIX_NEST_ROWS];
	int planes, rows_of_plane;	/* each plane has as many: of bytes two at least */
	int plane_of[MATRIX_NEST_ROWS]; /* by row */
	int64_t begin, words;		/* that are reduced: of bf16 in a block */
};

/* Reads such a loop of a module, where matrix registers can compute it; else false. */
bool ilir_read_matrix_nest(struct matrix_nest *, struct ilir_module *, const struct ilir_stmt *loop);
/* The statement that adds the first product of a row and a column; NULL if there is none. */
const struct ilir_stmt *ilir_matrix_sum(const struct matrix_nest *, int row, int column);
/* Whether a column multiplies a plane. */
bool ilir_multiplies_plane(const struct matrix_nest *, int plane, int column);
/* Whether the rows of a plane lie in memory as they do in a matrix register, one after the other. */
bool ilir_rows_follow(const struct matrix_nest *, int plane);

/* --- what bf16_nest.c shares with matrix_nest.c --- */

/* Whether a statement adds to 16 lanes of a sum: it stores an operator whose last operand is what it stores to. */
bool ilir_adds_to_sum(struct ilir_module *, const struct ilir_stmt *);
/* Whether two statements that store to registers certainly store no lane in common. */
bool ilir_stores_are_apart(const struct ilir_module *, const struct ilir_stmt *, const struct ilir_stmt *);
/* Adds a product; false if the nest has that of a row, a column and a word already. */
bool ilir_add_product(struct matrix_nest *, struct matrix_product);
/* Numbers the factors of a product of the loop's words: a word of a row, and words of a weight.  False if they are
 * anything else, or there are too many. */
bool ilir_read_factors(struct matrix_nest *, ilir_expr row, ilir_expr column, struct matrix_product *);
/* Reads the products of a loop over blocks of words of bf16. */
bool ilir_read_bf16_products(struct matrix_nest *);

#endif
