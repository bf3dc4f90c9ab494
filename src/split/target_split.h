/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The target split: which parts of a program another target computes.
 *
 * Quantised products (sums of products of integers with weights, what is added to them, and the formula by which they become
 * bytes again) are found in the program of sub-operators, before any pass rewrites them for processors.  Those that the
 * accelerator computes to the bit are annotated with its number, chains of them become functions, and the program is cut into
 * bodies: of the host, which store what a function reads, and of calls (struct sub_call), which store what it computes.  So
 * later passes see inputs in place of what was cut out. */
#ifndef ESPALIER_SPLIT_TARGET_SPLIT_H
#define ESPALIER_SPLIT_TARGET_SPLIT_H

#include "rewrite/rewrite.h"

/* How quotients by a power of two are rounded: the column of patterns.def. */
enum split_rounding { SPLIT_NONE, SPLIT_EVEN, SPLIT_TWICE };

/* Places of activations. */
enum { SPLIT_IMAGE, SPLIT_CHANNEL, SPLIT_ROW, SPLIT_COLUMN, SPLIT_AXES };

/* The formula behind sums of products. */
struct split_tail {
	sub_ref result;
	enum split_rounding rounding;
	struct sub_use sums; /* the sums, under the names of the result; a dimension of one element may have none, -1 */
	double factor;	     /* what sums are multiplied by */
	int shift;	     /* its negative logarithm to base 2; -1 = it is no such power */
	double zero, low, high; /* the zero point, and the bounds of the result */
};

/* A quantised product with weights. */
struct split_product {
	const char *refused; /* why the host computes it; NULL = the accelerator does */
	sub_ref sum;	     /* the sums of products */
	struct split_tail tail; /* its result is 0 if there is none that is known */
	sub_ref result;	     /* what the function computes of it: that of the formula, or sums, which the host requantises */
	const char *requantised; /* why the host does; NULL = the accelerator does */
	sub_ref bias;	     /* what is added for each output, 0 = nothing; its dimension of outputs: */
	int bias_dim;
	/* what is multiplied: an activation, as `offset` + its elements */
	sub_ref input;
	int input_axis[SPLIT_AXES]; /* its dimensions; -1 = there is one image, row or column */
	int result_axis[SPLIT_AXES];
	double offset, low, high; /* the elements are in low .. high */
	int zero;		  /* what the accelerator takes off elements of the input */
	int result_zero;	  /* and of the result */
	bool depthwise; /* each output is of the channel with its number alone */
	bool bordered;		  /* windows read the number 0 around an image */
	bool copied;		  /* the host copies the input with this border, of rows and columns before it: */
	int64_t margin[2];
	sub_ref weights;
	int weight_dim[SPLIT_AXES]; /* outputs, channels, rows and columns of kernels; -1 = there is one */
	int64_t images, channels, outputs, size[2], kernel[2], stride[2], before[2], after[2];
	int function; /* its number; -1 = none */
	int from;     /* the product whose result it reads in the same function; -1 = the input of the function */
	bool in_blocks; /* the input is computed in blocks of channels, so that nothing is packed */
	bool unpacked;	/* the host reads the result as the model has it */
};

/* How a value lies in blocks of channels: which of its dimensions are images, channels, rows and columns, -1 = there is one. */
struct split_layout {
	int axis[SPLIT_AXES];
	int64_t extent[SPLIT_AXES]; /* of channels 0 = it has no such layout */
};

/* What is found in a program, in the order of results. */
struct split_products {
	const struct sub_program *p;
	struct arena *arena;
	VEC(struct split_product) all;
	const bool *constant; /* by value: it depends on weights alone */
	int *of_result; /* by value: the number + 1 of the product whose result it is */
	struct split_layout *layout; /* by value */
	int functions;
};

/* Finds the quantised products of a program, and the function of each that the options do not keep on the host. */
void split_find_products(struct split_products *, struct arena *, const struct sub_program *, const struct rewrite_options *);
/* A number that the options keep on the host and no quantised product of a program has, and how many products there are;
 * -1 = there is no such number. */
long split_find_unknown(const struct sub_program *, const struct rewrite_options *, struct arena *, size_t *products);
/* Cuts a program where its products say, and notes of them what is unpacked: `to` is an empty program of the same arena. */
void split_cut_program(struct sub_program *to, struct split_products *);
/* Finds the products of a program, and cuts it. */
void rewrite_cut(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		 struct rewrite_trace *);
/* Prints products as Q operators, or functions with what stays on the host and why. */
void split_print_products(const struct split_products *, struct str *);
void split_print_functions(const struct split_products *, struct str *);

/* Prints where activations are packed for the accelerator, and unpacked, of a program that was cut. */
void split_print_packing(const struct split_products *, struct str *);

/* --- what the files of this folder share --- */

/* The value and the names under which a use sees it, through moves that only reorder dimensions, add some, or read the one
 * element of some. */
struct sub_use split_see_through(const struct sub_program *, struct sub_use);
/* Whether a value is one number, through operators on numbers. */
bool split_find_number(const struct sub_program *, sub_ref, double *);
/* Finds by which formula a value is made of sums. */
bool split_match_tail(const struct sub_program *, struct arena *, sub_ref, struct split_tail *);
/* Finds which values lie in blocks, or can be computed there; then chains of products that are functions. */
void split_find_layouts(struct split_products *);
void split_find_functions(struct split_products *);
/* Whether a product reads images as its input has them in blocks. */
bool split_reads_layout(const struct split_products *, const struct split_product *);
/* A product as the accelerator computes it, without names. */
struct vta_operation split_operation_of(const struct split_product *);
/* Why a product is too large for the accelerator; NULL = it is not. */
const char *split_check_limits(const struct split_product *);
/* Rows (0) or columns (1) of its sums. */
int64_t split_count_sums(const struct split_product *, int axis);
/* Declares a parameter that has the dimensions of a value, and adds the body that computes it when weights are bound. */
int split_add_param(struct sub_program *to, sub_ref value, enum dtype, const char *name);
/* Adds the parameter of the packed weights of a product, or of what is added to its sums, and the body that computes it. */
int split_add_weights(struct sub_program *to, const struct split_product *, sub_ref weights, const char *name);
int split_add_bias(struct sub_program *to, const struct split_product *, sub_ref weights, sub_ref bias, const char *name);

#endif
