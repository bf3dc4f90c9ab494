/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tflite/fixed_point.h"

#include <math.h>
#include <stdbool.h>

struct fixed_factor fixed_of_real(double real)
{
	struct fixed_factor f = {0};
	if (real == 0)
		return f;
	int64_t q = llround(frexp(real, &f.shift) * 0x1p31);
	if (q == (int64_t)1 << 31) {
		q /= 2;
		f.shift++;
	}
	if (f.shift < -31)
		return (struct fixed_factor){0};
	f.multiplier = (int32_t)q;
	return f;
}

int32_t fixed_multiply(int32_t a, int32_t b)
{
	if (a == INT32_MIN && b == INT32_MIN)
		return INT32_MAX;
	int64_t n = (int64_t)a * b + ((int64_t)1 << 30);
	return (int32_t)(n >> 31);
}

int32_t fixed_divide(int32_t x, int exponent)
{
	if (!exponent)
		return x;
	int64_t half = (int64_t)1 << (exponent - 1);
	return (int32_t)(((int64_t)x + half - (x < 0)) >> exponent);
}

int32_t fixed_scale(int32_t x, struct fixed_factor f)
{
	int left = f.shift > 0 ? f.shift : 0;
	return fixed_divide(fixed_multiply((int32_t)((uint32_t)x << left), f.multiplier), left - f.shift);
}

/* --- 16 bits --- */

static int32_t clamp16(int32_t x)
{
	return x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x;
}

static int16_t multiply16(int16_t a, int16_t b)
{
	if (a == INT16_MIN && b == INT16_MIN)
		return INT16_MAX;
	return (int16_t)(((int32_t)a * b + (1 << 14)) >> 15);
}

/* A number of Q31 as one of 16 bits. */
static int16_t constant16(int32_t x)
{
	return (int16_t)fixed_divide(x, 16);
}

/* exp(x) of x in Q0 from -1/4 to 0, by its series around -1/8. */
static int16_t exp_of_quarter(int16_t a)
{
	const int16_t at_middle = constant16(1895147668), third = constant16(715827883);
	int16_t x = (int16_t)(a + (1 << 12)), x2 = multiply16(x, x), x3 = multiply16(x2, x),
		x4 = multiply16(x2, x2);
	int16_t quarter = (int16_t)fixed_divide(x4, 2);
	int16_t tail = (int16_t)fixed_divide((int16_t)(multiply16((int16_t)(quarter + x3), third) + x2), 1);
	return (int16_t)clamp16(at_middle + multiply16(at_middle, (int16_t)(x + tail)));
}

/* exp(x) of x <= 0 in Qm: that of the rest of a division by 1/4, times one factor for each bit of the
 * quotient. */
static int16_t exp_of_negative(int16_t a, int integer_bits)
{
	static const int32_t factor[] = {1672461947, 1302514674, 790015084, 290630308,
					 39332535,   720401,	 242}; /* exp(-1/4), exp(-1/2) ... */
	const int fraction_bits = 15 - integer_bits, quarter = 1 << (fraction_bits - 2);
	const int16_t rest = (int16_t)((a & (quarter - 1)) - quarter);
	const int16_t quotient = (int16_t)(rest - a);
	int16_t result = exp_of_quarter((int16_t)clamp16(rest * (1 << integer_bits)));
	for (int e = -2; e <= 4; e++)
		if (integer_bits > e && quotient & 1 << (fraction_bits + e))
			result = multiply16(result, constant16(factor[e + 2]));
	if (integer_bits > 5 && a < -(1 << (20 - integer_bits)))
		result = 0;
	return a ? result : INT16_MAX;
}

/* 2 / (1 + x) in Q2 of x in Q0 from 0 to 1, by three steps of Newton's method. */
static int16_t twice_reciprocal(int16_t a)
{
	const int16_t one = 1 << 13;
	int32_t sum = a + INT16_MAX;
	int16_t half = (int16_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
	int16_t x = (int16_t)(constant16(1515870810) + multiply16(half, constant16(-1010580540)));
	for (int i = 0; i < 3; i++) {
		int16_t error = (int16_t)(one - multiply16(half, x));
		x = (int16_t)(x + clamp16(multiply16(x, error) * 4));
	}
	return x;
}

int16_t fixed_logistic16(int16_t a, int integer_bits)
{
	if (!a)
		return 1 << 14;
	int16_t negative = a > 0 ? (int16_t)-a : a;
	int16_t y = (int16_t)clamp16(twice_reciprocal(exp_of_negative(negative, integer_bits)) * 2);
	return a > 0 ? y : (int16_t)(INT16_MAX - y);
}

int16_t fixed_tanh16(int16_t a, int integer_bits)
{
	if (!a)
		return 0;
	int16_t negative = a < 0 ? a : (int16_t)-a;
	int16_t y =
	    (int16_t)clamp16((twice_reciprocal(exp_of_negative(negative, integer_bits + 1)) - (1 << 13)) * 4);
	return (int16_t)(a < 0 ? -y : y);
}
