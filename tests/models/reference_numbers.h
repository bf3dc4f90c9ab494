/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What operators of a graph mean for single elements: f32 in binary64 and integers as they are, held in doubles. */
#ifndef ESPALIER_TESTS_MODELS_REFERENCE_NUMBERS_H
#define ESPALIER_TESTS_MODELS_REFERENCE_NUMBERS_H

#include "tests/models/helper.h"

static inline double refer_float(enum ra_op op, double a, double b)
{
	switch (op) {
	case RA_NEG:
		return -a;
	case RA_ADD:
		return a + b;
	case RA_SUB:
		return a - b;
	case RA_MUL:
		return a * b;
	case RA_DIV:
		return a / b;
	case RA_MAXIMUM:
		return a > b ? a : b;
	case RA_MINIMUM:
		return a < b ? a : b;
	case RA_ROUND:
		return nearbyint(a);
	case RA_FLOOR:
		return floor(a);
	case RA_SIN:
		return sin(a);
	case RA_COS:
		return cos(a);
	case RA_ABS:
		return fabs(a);
	case RA_EXP:
		return exp(a);
	case RA_LOG:
		return log(a);
	case RA_LOG1P:
		return log1p(a);
	case RA_SQRT:
		return sqrt(a);
	case RA_SIGMOID:
		return 1 / (1 + exp(-a));
	case RA_TANH:
		return tanh(a);
	case RA_ERF:
		return erf(a);
	case RA_ATAN:
		return atan(a);
	default:
		return NAN;
	}
}

/* In 64 bits, of which i32 keeps the lower half. */
static inline int64_t refer_integer(enum ra_op op, int64_t a, int64_t b)
{
	switch (op) {
	case RA_NEG:
		return -(uint64_t)a;
	case RA_ADD:
		return (uint64_t)a + (uint64_t)b;
	case RA_SUB:
		return (uint64_t)a - (uint64_t)b;
	case RA_MUL:
		return (uint64_t)a * (uint64_t)b;
	case RA_QUOTIENT:
		return b == 0 ? 0 : b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
	case RA_MAXIMUM:
		return a > b ? a : b;
	case RA_MINIMUM:
		return a < b ? a : b;
	case RA_ABS:
		return a < 0 ? -(uint64_t)a : (uint64_t)a;
	case RA_AND:
		return a && b;
	case RA_OR:
		return a || b;
	default: /* RA_NOT */
		return !a;
	}
}

/* The order of two numbers, and whether they have any. */
static inline bool compare_numbers(enum ra_op op, int order, bool ordered)
{
	switch (op) {
	case RA_LESS:
		return ordered && order < 0;
	case RA_LESS_EQUAL:
		return ordered && order <= 0;
	case RA_EQUAL:
		return ordered && order == 0;
	case RA_UNEQUAL:
		return !ordered || order != 0;
	case RA_GREATER:
		return ordered && order > 0;
	default: /* RA_GREATER_EQUAL */
		return ordered && order >= 0;
	}
}

static inline double wrap_integer(enum dtype dtype, int64_t i)
{
	return sub_element_of(dtype == DTYPE_I32 ? (int32_t)(uint32_t)i : i);
}

static inline double refer_cast(enum dtype from, enum dtype to, double x)
{
	int64_t least = to == DTYPE_I32 ? INT32_MIN : INT64_MIN,
		most = to == DTYPE_I32 ? INT32_MAX : INT64_MAX;
	int64_t i = sub_integer(x);
	if (to == DTYPE_BOOL)
		return sub_element_of(from == DTYPE_F32 ? x != 0 : i != 0);
	if (from != DTYPE_F32)
		return to == DTYPE_F32 ? (float)i : sub_element_of(i < least ? least : i > most ? most : i);
	if (to == DTYPE_F32)
		return x;
	if (isnan(x))
		return sub_element_of(0);
	return sub_element_of(x <= (double)least ? least : x >= (double)most ? most : (int64_t)x);
}

static inline bool is_comparison(enum ra_op op)
{
	return op == RA_LESS || op == RA_LESS_EQUAL || op == RA_EQUAL || op == RA_UNEQUAL ||
	       op == RA_GREATER || op == RA_GREATER_EQUAL;
}

/* Of arguments of type `from`. */
static inline double apply_to_numbers(const struct ra_node *n, enum dtype from, double a, double b)
{
	int64_t i = sub_integer(a), j = sub_integer(b);
	if (n->op == RA_CAST)
		return refer_cast(from, n->dtype, a);
	if (is_comparison(n->op))
		return sub_element_of(from == DTYPE_F32
					  ? compare_numbers(n->op, (a > b) - (a < b), !isnan(a) && !isnan(b))
					  : compare_numbers(n->op, (i > j) - (i < j), true));
	return from == DTYPE_F32 ? refer_float(n->op, a, b) : wrap_integer(from, refer_integer(n->op, i, j));
}

#endif
