/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Floats for tests: their bits, and how far one is from what is exact. */
#ifndef ESPALIER_TESTS_FLOATS_H
#define ESPALIER_TESTS_FLOATS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* The distance between the floats at a value; that of the smallest ones below them. */
static inline double ulp(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	int exponent = (int)(bits >> 52 & 2047) - 1023;
	bits = (uint64_t)((exponent < -126 ? -126 : exponent) - 23 + 1023) << 52;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* In ulp; infinite when one is a NaN or an infinity and the other is not. */
static inline double error_of(float y, double exact)
{
	if (isnan(exact) || isnan(y))
		return isnan(exact) && isnan(y) ? 0 : INFINITY;
	if (isinf((float)exact) || isinf(y))
		return (float)exact == y ? 0 : INFINITY;
	return fabs(y - exact) / ulp(exact);
}

static inline double exact_sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

#endif
