/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the table of operators says of each. */
#include "subop/subop.h"

#include <math.h>

static const struct sub_traits traits[] = {
#define SUB_OP(name, spelling, arity, class, weight, price)                                                  \
	{spelling, arity, SUB_##class, weight, SUB_##price, 0, 0, 0},
#define TYPES_FLOAT SUB_FLOAT
#define TYPES_NUMBER SUB_NUMBER
#define TYPES_INTEGER SUB_INTEGER
#define TYPES_WORD SUB_WORD
#define TYPES_BITS SUB_BITS
#define TYPES_WORDS SUB_WORDS
#define TYPES_COMPARE SUB_COMPARE
#define TYPES_LOGIC SUB_LOGIC
#define TYPES_SELECT SUB_SELECTS
#define TYPES_SAME SUB_SAME
#define TYPES_CAST SUB_CASTS
#define SUB_TYPED(name, spelling, arity, class, weight, price, types, value, integer, field, loops)          \
	{spelling, arity, SUB_##class, weight, SUB_##price, TYPES_##types, 0, 0},
#define SUB_CONTRACTED(name, spelling, combine)                                                              \
	{spelling, 3, SUB_CONTRACTION, 2, SUB_EXPENSIVE, SUB_SAME, SUB_##combine, 0},
#define SUB_REDUCTION(name, spelling, combine, neutral)                                                      \
	{spelling, 1, SUB_REDUCE, 1, SUB_EXPENSIVE, SUB_NUMBER, SUB_##combine, neutral},
#include "subop/sub_ops.def"
};

const struct sub_traits *sub_traits_of(enum sub_op op)
{
	return &traits[op];
}

const int sub_op_count = SUB_OPS;

enum sub_class sub_class_of(enum sub_op op)
{
	return traits[op].class;
}

bool sub_reduces(enum sub_op op)
{
	return traits[op].class == SUB_REDUCE || traits[op].class == SUB_CONTRACTION;
}

bool sub_fits_matrices(enum sub_op op)
{
	return op == SUB_ACCUMULATE4 || op == SUB_ACCUMULATE_BF16_BLOCK;
}

bool sub_commutes(enum sub_op op)
{
	return traits[op].class == SUB_BINARY && op != SUB_DIVIDE && op != SUB_QUOTIENT && op != SUB_LESS &&
	       op != SUB_LESS_EQUAL && op != SUB_APPEND8 && op != SUB_APPEND16;
}

const char *sub_spelling(enum sub_op op)
{
	return traits[op].spelling;
}
