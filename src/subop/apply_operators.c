/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators on single elements, in any of several arithmetics.  `larger`, `power` and `less` are named by expressions of
 * sub_ops.def. */
#include "subop/apply_operators.h"

#include "base/convert.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t FIELD = SUB_FIELD_PRIME;

static double larger(double a, double b)
{
	return a > b || a != a ? a : b;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
	uint64_t n = 1;
	for (; exponent; exponent >>= 1, base = base * base % FIELD)
		n = exponent & 1 ? n * base % FIELD : n;
	return n;
}

static bool less(uint64_t a, uint64_t b)
{
	return (int64_t)a < (int64_t)b;
}

/* Each operator as a function of binary64, of the field and of integers; `refused` is set where that has no meaning. */
#define NO_FIELD (*refused = true, 0)
#define SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                                  \
	static double value_##name(double a, double b, double c)                                                       \
	{                                                                                                              \
		(void)a, (void)b, (void)c;                                                                             \
		return value;                                                                                          \
	}                                                                                                              \
	static uint64_t field_##name(uint64_t a, uint64_t b, uint64_t c, bool *refused)                                \
	{                                                                                                              \
		(void)a, (void)b, (void)c, (void)refused;                                                              \
		return (field) % FIELD;                                                                                \
	}
#define SUB_TYPED(name, spelling, arity, class, weight, price, types, value, integer, field, loops)                    \
	SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                                  \
	static uint64_t integer_##name(uint64_t a, uint64_t b, uint64_t c)                                             \
	{                                                                                                              \
		(void)a, (void)b, (void)c;                                                                             \
		return integer;                                                                                        \
	}
#include "subop/sub_ops.def"

static const struct {
	double (*value)(double, double, double);
	uint64_t (*field)(uint64_t, uint64_t, uint64_t, bool *refused);
	uint64_t (*integer)(uint64_t, uint64_t, uint64_t); /* NULL = of f32 alone */
} functions[SUB_OPS] = {
#define SUB_ELEMENT(name, spelling, arity, class, weight, price, value, field, loops)                                  \
	[SUB_##name] = {value_##name, field_##name, NULL},
#define SUB_TYPED(name, spelling, arity, class, weight, price, types, value, integer, field, loops)                    \
	[SUB_##name] = {value_##name, field_##name, integer_##name},
#include "subop/sub_ops.def"
};

double sub_apply_op(enum sub_op op, double a, double b, double c)
{
	return functions[op].value(a, b, c);
}

uint64_t sub_apply_in_field(enum sub_op op, uint64_t a, uint64_t b, uint64_t c, bool *refused)
{
	return functions[op].field(a, b, c, refused);
}

bool sub_takes_integers(enum sub_op op)
{
	return functions[op].integer != NULL;
}

/* A binary64 number in the field, where every finite one has a value: it is dyadic, and 2 has an inverse. */
static double enter_field(double x, bool *refused)
{
	int exponent;
	if (!isfinite(x)) {
		*refused = true;
		return 0;
	}
	int64_t digits = ldexp(frexp(x, &exponent), 53);
	uint64_t n = digits < 0 ? FIELD - -digits % FIELD : digits % FIELD;
	exponent -= 53;
	return n * power(exponent < 0 ? (FIELD + 1) / 2 : 2, abs(exponent)) % FIELD;
}

/* A number of a tensor or of the program in the arithmetic. */
double sub_round_number(struct sub_numbers *n, double x)
{
	return n->arithmetic == SUB_FIELD      ? enter_field(x, &n->refused)
	       : n->arithmetic == SUB_BINARY32 ? (float)x
					       : x;
}

/* An integer of 64 bits in a type: i32 keeps the lower half. */
static double keep_bits(enum dtype dtype, uint64_t i)
{
	return sub_element_of(dtype == DTYPE_I32 ? (int32_t)(uint32_t)i : (int64_t)i);
}

int64_t sub_apply_to_integers(enum sub_op op, enum dtype to, int64_t a, int64_t b, int64_t c)
{
	return sub_integer(keep_bits(to, functions[op].integer(a, b, c)));
}

int64_t sub_convert_number(enum dtype dtype, double x)
{
	double limit = dtype == DTYPE_I32 ? 0x1p31 : 0x1p63;
	if (dtype == DTYPE_BOOL)
		return x != 0;
	if (isnan(x))
		return 0;
	if (x <= -limit)
		return dtype == DTYPE_I32 ? INT32_MIN : INT64_MIN;
	if (x >= limit)
		return dtype == DTYPE_I32 ? INT32_MAX : INT64_MAX;
	return (int64_t)x;
}

static int64_t saturate_integer(enum dtype dtype, int64_t i)
{
	if (dtype != DTYPE_I32)
		return i;
	return i < INT32_MIN ? INT32_MIN : i > INT32_MAX ? INT32_MAX : i;
}

/* Converts an element from one type to another. */
static double cast_element(struct sub_numbers *n, enum dtype from, enum dtype to, double x)
{
	int64_t i = sub_integer(x);
	if (from == DTYPE_F32 && to == DTYPE_F32)
		return x;
	n->refused |= n->arithmetic == SUB_FIELD && from == DTYPE_F32;
	if (from == DTYPE_F32)
		return sub_element_of(sub_convert_number(to, x));
	if (to == DTYPE_F32)
		return sub_round_number(n, (float)i);
	return sub_element_of(to == DTYPE_BOOL ? i != 0 : saturate_integer(to, i));
}

/* Applies an operator of f32.  In binary32, rounding the binary64 result once more gives the result of sums,
 * products, quotients and sqrt, since 53 >= 2 * 24 + 2; but not that of a fused multiply-add. */
static double apply_float(struct sub_numbers *n, enum sub_op op, double a, double b, double c)
{
	if (n->arithmetic == SUB_FIELD)
		return functions[op].field(a, b, c, &n->refused);
	if (n->arithmetic == SUB_BINARY32 && op == SUB_FMA)
		return fmaf(a, b, c);
	double x = functions[op].value(a, b, c);
	return n->arithmetic == SUB_BINARY32 ? (float)x : x;
}

/* Applies an operator to arguments of type `from`; the value has type `to`. */
double sub_apply_operator(struct sub_numbers *n, enum sub_op op, enum dtype from, enum dtype to, double a,
			     double b, double c)
{
	if (op == SUB_SELECT)
		return sub_integer(a) ? b : c;
	if (op == SUB_CAST)
		return cast_element(n, from, to, a);
	if (from != DTYPE_F32 && sub_traits_of(op)->types != SUB_WORDS)
		return keep_bits(to, functions[op].integer(sub_integer(a), sub_integer(b), sub_integer(c)));
	double x = apply_float(n, op, a, b, c);
	return to == DTYPE_F32 ? x : sub_element_of((int64_t)x);
}
