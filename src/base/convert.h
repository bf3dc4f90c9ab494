/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The C type that holds an element of each type of dtype.def, and conversions between them that C leaves
 * undefined. They work on bits, so that modes of the processor (denormals as zeros) do not change them. */
#ifndef ESPALIER_BASE_CONVERT_H
#define ESPALIER_BASE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float c_F32;
typedef uint16_t c_F16, c_BF16; /* their bits */
typedef int8_t c_I8;
typedef uint8_t c_U8, c_BOOL; /* 0 or 1 */
typedef int16_t c_I16;
typedef int32_t c_I32;
typedef int64_t c_I64;

static inline float f32_of_bits(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static inline uint32_t bits_of_f32(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

/* bfloat16 is the upper half of an f32. */
static inline float f32_of_bf16(uint16_t h)
{
	return f32_of_bits((uint32_t)h << 16);
}

/* IEEE binary16: 5 bits of exponent (bias 15), 10 of fraction.  A subnormal is fraction * 2^-24; NaNs become
 * quiet. */
static inline float f32_of_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
	if (exponent == 31)
		return f32_of_bits(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
	if (exponent)
		return f32_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
	float magnitude = (float)fraction * 0x1p-24f;
	return sign ? -magnitude : magnitude;
}

/* The integer that is left when the fraction is dropped; of a NaN 0, of what is out of range the nearest. */
static inline int64_t i64_of_f32(float f)
{
	if (!(f >= -0x1p63f))
		return f != f ? 0 : INT64_MIN;
	return f >= 0x1p63f ? INT64_MAX : (int64_t)f;
}

/* c + the sum of the products of the four bytes of a, which are unsigned, and of b, which are signed; modulo
 * 2^32. */
static inline uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t c)
{
	for (int shift = 0; shift < 32; shift += 8)
		c += (uint32_t)((int32_t)(uint8_t)(a >> shift) * (int8_t)(b >> shift));
	return c;
}

/* The same of the two halves of a and b, which are signed. */
static inline uint32_t dot_halves(uint32_t a, uint32_t b, uint32_t c)
{
	for (int shift = 0; shift < 32; shift += 16)
		c += (uint32_t)((int32_t)(int16_t)(a >> shift) * (int16_t)(b >> shift));
	return c;
}

/* The nearest of low..high. */
static inline int64_t clamp_integer(int64_t i, int64_t low, int64_t high)
{
	return i < low ? low : i > high ? high : i;
}

#endif
