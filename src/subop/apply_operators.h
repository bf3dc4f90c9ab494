/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators on single elements, for evaluate.c; what other folders use is in subop.h. */
#ifndef ESPALIER_SUBOP_APPLY_OPERATORS_H
#define ESPALIER_SUBOP_APPLY_OPERATORS_H

#include "subop/subop.h"

/* The arithmetic that numbers are computed in, and whether anything had no meaning in it. */
struct sub_numbers {
	enum sub_arithmetic arithmetic;
	bool refused;
};

/* A number of a tensor or of the program in the arithmetic. */
double sub_round_number(struct sub_numbers *, double);
/* Applies an operator to arguments of type `from`; the value has type `to`. */
double sub_apply_operator(struct sub_numbers *, enum sub_op, enum dtype from, enum dtype to, double a, double b, double c);

#endif
