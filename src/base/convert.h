/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The C type that holds an element of each type of dtype.def, and conversions between them that C leaves
 * undefined. They work on bits, so that modes of the processor (denormals as zeros) do not change them. */
#ifndef ESPALIER_BASE_CONVERT_H
#define ESPALIER_BASE_CONVERT_H

#include <math.h>
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

/* The value and its rounding in binary16, to nearest even; infinite where it is out of range.  A NaN becomes quiet and keeps its
 * upper bits. */
static inline uint16_t f16_of_f32(float f)
{
	uint32_t bits = bits_of_f32(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
	if (magnitude > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
	if (magnitude < 0x38800000) { /* below 2^-14: a multiple of 2^-24 */
		float units = f32_of_bits(magnitude) * 0x1p24f;
		uint32_t n = (uint32_t)units;
		float rest = units - (float)n;
		return (uint16_t)(sign | (n + (rest > 0.5f || (rest == 0.5f && n % 2))));
	}
	uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
	return (uint16_t)(sign | (rounded >= 0x0f800000 ? 0x7c00 : rounded >> 13));
}

/* The f32 on the side of zero if a binary64 is none, with its last bit set: then rounding it to a narrower type by two or more
 * bits gives what rounding the binary64 itself does ("round to odd"; the number is no denormal f32, and below 2^127). */
static inline float odd_of_f64(double x)
{
	float f = (float)x;
	uint32_t bits = bits_of_f32(f);
	if (!((double)f < x || (double)f > x))
		return f;
	return f32_of_bits((bits - (uint32_t)(fabs((double)f) > fabs(x))) | 1);
}

/* a * b + c of f16, rounded once; a NaN becomes quiet.  In binary64 the product is exact.  The sum is exact as well where it could be
 * near the middle of two f16, because both are multiples of 2^-48 and the product has 22 digits. */
static inline uint16_t fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
	double sum = (double)f32_of_f16(a) * (double)f32_of_f16(b) + (double)f32_of_f16(c);
	return sum != sum ? 0x7e00 : f16_of_f32(odd_of_f64(sum));
}

/* The same of the lower halves of three words, and of the upper ones. */
static inline uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)fma_f16((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16)) << 16 |
	       fma_f16((uint16_t)a, (uint16_t)b, (uint16_t)c);
}

/* c + the f16 that is the sum of the two halves of a word. */
static inline float add_halves(uint32_t word, float c)
{
	return c + f32_of_f16(fma_f16((uint16_t)word, 0x3c00, (uint16_t)(word >> 16)));
}

static inline uint16_t bf16_of_f32(float f)
{
	uint32_t bits = bits_of_f32(f);
	return (uint16_t)(f != f ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The integer that is left when the fraction is dropped; of a NaN 0, of what is out of range the nearest. */
static inline int64_t i64_of_f32(float f)
{
	if (!(f >= -0x1p63f))
		return f != f ? 0 : INT64_MIN;
	return f >= 0x1p63f ? INT64_MAX : (int64_t)f;
}

/* The sign flipped, of zeros and NaNs as well. */
static inline float negate_float(float x)
{
	return f32_of_bits(bits_of_f32(x) ^ 0x80000000u);
}

/* The quotient without its fraction, 0 by 0; unsigned, so that the least number by -1 wraps. */
static inline uint64_t divide_integers(int64_t x, int64_t y)
{
	return y == 0 ? 0 : y == -1 ? -(uint64_t)x : (uint64_t)(x / y);
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

/* A number below 2^-126 as a zero of its sign. */
static inline float flush_denormal(float x)
{
	uint32_t bits = bits_of_f32(x);
	return bits & 0x7f800000 ? x : f32_of_bits(bits & 0x80000000);
}

/* a * b + c of numbers that are not denormal, rounded once as if exponents had no limit below; then a number below
 * 2^-126 is a zero.  That differs from rounding to a denormal number first for what is just below 2^-126, where the sum
 * is rounded again 2^32 times as large: there a * b is below 2^-110, as it has 16 digits, and nothing overflows. */
static inline float add_flushed_product(float a, float b, float c)
{
	float sum = fmaf(a, b, c), large = fmaf(a * 0x1p32f, b, c * 0x1p32f);
	bool tiny = (bits_of_f32(sum) & 0x7fffffff) <= 0x00800000 && fabsf(large) < 0x1p-94f;
	return tiny ? f32_of_bits(bits_of_f32(sum) & 0x80000000) : sum;
}

/* The upper bf16 of a word as an f32, and the lower one; a denormal number is a zero. */
static inline float upper_bf16(uint32_t word)
{
	return flush_denormal(f32_of_bits(word & 0xffff0000));
}

static inline float lower_bf16(uint32_t word)
{
	return flush_denormal(f32_of_bits(word << 16));
}

/* c + the products of the two bf16 of a and b, the upper ones first, each added as add_flushed_product does. */
static inline float dot_bf16(uint32_t a, uint32_t b, float c)
{
	float sum = add_flushed_product(upper_bf16(a), upper_bf16(b), flush_denormal(c));
	return add_flushed_product(lower_bf16(a), lower_bf16(b), sum);
}

/* c + a block of products: of so many words of a and of b, those of b `apart` words from each other.  The products of the lower
 * bf16 are added one by one from zero on, those of the upper ones likewise; then both sums, and this to c.  Numbers below
 * 2^-126 count as zeros of their sign throughout. */
static inline float add_bf16_block(const int32_t *a, const int32_t *b, int64_t words, int64_t apart, float c)
{
	float lower = 0, upper = 0;
	for (int64_t k = 0; k < words; k++, b += apart) {
		lower = add_flushed_product(lower_bf16((uint32_t)a[k]), lower_bf16((uint32_t)*b), lower);
		upper = add_flushed_product(upper_bf16((uint32_t)a[k]), upper_bf16((uint32_t)*b), upper);
	}
	return flush_denormal(flush_denormal(c) + flush_denormal(lower + upper));
}

/* The nearest of low..high. */
static inline int64_t clamp_integer(int64_t i, int64_t low, int64_t high)
{
	return i < low ? low : i > high ? high : i;
}

#endif
