/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The two half-width floats, as bits, to f32; both are exact. */
#ifndef ESPALIER_IO_FLOAT16_H
#define ESPALIER_IO_FLOAT16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float io_float_of_bits(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

/* bfloat16 is the upper half of an f32. */
static inline float io_bf16(uint16_t h)
{
	return io_float_of_bits((uint32_t)h << 16);
}

/* IEEE binary16: 5 bits of exponent (bias 15), 10 of fraction.  A subnormal is fraction * 2^-24; NaNs become
 * quiet. */
static inline float io_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
	if (exponent == 31)
		return io_float_of_bits(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
	if (exponent)
		return io_float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
	float magnitude = (float)fraction * 0x1p-24f;
	return sign ? -magnitude : magnitude;
}

/* Widens `count` values.  `from` may be the last 2 * count bytes of what `to` will fill: no value is written
 * over one that is still to be read. */
void io_widen_f16(const void *from, float *to, int64_t count);
void io_widen_bf16(const void *from, float *to, int64_t count);

#endif
