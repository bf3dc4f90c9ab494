/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Floats as decimals.
 *
 * A number of p digits is tried for p = 6, 7, 8, 9: each binary32 has one of 9 digits that reads back as
 * itself, and if it has a shorter one of at most 6 digits, rounding to 6 digits finds it.  One multiplication
 * or division by a power of ten that binary64 has exactly gives the digits; the inverse, rounded once, tells
 * whether a reader, however it rounds, gets the same binary32.  Where the power is not exact, printf does it.
 */
#include "body.h"

#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number above zero: digits * 10^-scale. */
struct decimal {
	uint32_t digits;
	int scale;
};

/* Whether a reader of the number gets `v`, even one that rounds to binary64 first. */
static bool reads_back(struct decimal d, float v)
{
	double near = decimal_shift(d.digits, -d.scale);
	return (float)near == v && decimal_is_decided(near, 0);
}

/* The power of ten of the first digit, or one more. */
static int exponent_of(float v)
{
	return (int)floor(log10((double)v));
}

/* False: it must be found in another way. */
static bool shorten(float v, struct decimal *d)
{
	int exponent = exponent_of(v);
	for (int p = 6; p <= 9; p++) {
		d->scale = p - 1 - exponent;
		if (d->scale > DECIMAL_EXACT || d->scale < -DECIMAL_EXACT)
			return false;
		d->digits = (uint32_t)(decimal_shift(v, d->scale) + 0.5);
		if (reads_back(*d, v))
			break;
		if (p == 9)
			return false;
	}
	while (d->digits % 10 == 0) {
		d->digits /= 10;
		d->scale--;
	}
	return true;
}

/* Digits before and behind a point, or one and an exponent; JSON needs a digit on both sides of a point. */
static size_t place_point(char *to, struct decimal d)
{
	char digits[12];
	int n = 0, p = 0, point;
	do
		digits[n++] = (char)('0' + d.digits % 10);
	while (d.digits /= 10);
	point = n - d.scale; /* digits before the point */
	if (point < -4 || point > 9) {
		to[p++] = digits[--n];
		if (n)
			to[p++] = '.';
		while (n)
			to[p++] = digits[--n];
		return p + sprintf(to + p, "e%d", point - 1);
	}
	if (point <= 0)
		to[p++] = '0';
	for (; point > 0; point--)
		to[p++] = n ? digits[--n] : '0';
	if (n)
		to[p++] = '.';
	for (; point < 0 && n; point++)
		to[p++] = '0';
	while (n)
		to[p++] = digits[--n];
	return p;
}

size_t put_float(char to[FLOAT_BYTES], float v)
{
	struct decimal d;
	if (!isfinite(v)) {
		memcpy(to, "null", 4);
		return 4;
	}
	size_t sign = signbit(v) ? 1 : 0;
	to[0] = '-';
	v = fabsf(v);
	if (v == 0)
		to[sign] = '0';
	if (v == 0)
		return sign + 1;
	return sign + (shorten(v, &d) ? place_point(to + sign, d)
				      : (size_t)snprintf(to + sign, FLOAT_BYTES - 1, "%.9g", v));
}
