// Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
// Counts the numbers that src/tflite/fixed_point.c and gemmlowp compute differently.
#include <gemmlowp/fixedpoint/fixedpoint.h>

#include <cstdint>
#include <cstdio>
#include <random>

extern "C" {
#include "tflite/fixed_point.h"
}

// What a sum becomes: the multiplier, then the shift to the right, each rounded; a shift to the left comes first.
static int32_t scale(int32_t x, fixed_factor f)
{
	const int left = f.shift > 0 ? f.shift : 0, right = left - f.shift;
	return gemmlowp::RoundingDivideByPOT(
	    gemmlowp::SaturatingRoundingDoublingHighMul(static_cast<int32_t>(static_cast<uint32_t>(x) << left), f.multiplier), right);
}

static long count_factors()
{
	std::mt19937_64 random(5);
	long different = 0;
	for (long i = 0; i < 5000000; i++) {
		const int32_t x = static_cast<int32_t>(random()) >> (random() % 31);
		const fixed_factor f = {static_cast<int32_t>(1u << 30 | (random() & 0x3fffffff)), static_cast<int>(random() % 36) - 31};
		different += fixed_scale(x, f) != scale(x, f);
	}
	return different + (fixed_multiply(INT32_MIN, INT32_MIN) != gemmlowp::SaturatingRoundingDoublingHighMul(INT32_MIN, INT32_MIN));
}

template <int bits> long count_tanh()
{
	long different = 0;
	for (int x = INT16_MIN; x <= INT16_MAX; x++)
		different += fixed_tanh16(static_cast<int16_t>(x), bits) !=
			     gemmlowp::tanh(gemmlowp::FixedPoint<int16_t, bits>::FromRaw(static_cast<int16_t>(x))).raw();
	return different;
}

template <int bits> long count_logistic()
{
	long different = 0;
	for (int x = INT16_MIN; x <= INT16_MAX; x++)
		different += fixed_logistic16(static_cast<int16_t>(x), bits) !=
			     gemmlowp::logistic(gemmlowp::FixedPoint<int16_t, bits>::FromRaw(static_cast<int16_t>(x))).raw();
	return different;
}

int main()
{
	std::printf("factors %ld, logistic %ld, tanh %ld\n", count_factors(), count_logistic<0>() + count_logistic<3>() + count_logistic<6>(),
		    count_tanh<0>() + count_tanh<1>() + count_tanh<2>() + count_tanh<3>() + count_tanh<4>() + count_tanh<5>() + count_tanh<6>());
}
