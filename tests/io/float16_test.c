/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/float16.h"

#include "tests/floats.h"
#include "tests/tap.h"

/* By the definition: sign, exponent, fraction. */
static double defined_f16(unsigned h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
			   : exponent	  ? ldexp(1024 + fraction, exponent - 25)
					  : ldexp(fraction, -24);
	return h & 0x8000 ? -magnitude : magnitude;
}

static void against_definition(void)
{
	int wrong = 0;
	for (unsigned h = 0; h < 0x10000; h++) {
		double want = defined_f16(h);
		float got = f32_of_f16(h);
		wrong += isnan(want) ? !isnan(got) : got != want || !signbit(got) != !signbit(want);
	}
	tap_ok(wrong == 0, "F16: all 65536 values are those of the definition");
}

static void against_compiler(void)
{
#ifdef __FLT16_MANT_DIG__
	int wrong = 0;
	for (unsigned i = 0; i < 0x10000; i++) {
		uint16_t h = i;
		_Float16 f;
		memcpy(&f, &h, sizeof f);
		wrong += bits_of(f) != bits_of(f32_of_f16(h));
	}
	tap_ok(wrong == 0, "F16: all 65536 values have the bits that the compiler gives them");
#else
	tap_skip("the compiler has no _Float16",
		 "F16: all values have the bits that the compiler gives them");
#endif
}

static void brain_floats(void)
{
	int wrong = 0;
	for (unsigned h = 0; h < 0x10000; h++)
		wrong += bits_of(f32_of_bf16(h)) != h << 16;
	tap_ok(wrong == 0, "BF16: all 65536 values are the upper half of an f32");
	tap_ok(f32_of_bf16(0x3f80) == 1 && f32_of_bf16(0xc000) == -2, "BF16: 1 and -2");
}

/* In the memory that the wide values will fill, from its end, as weights are read. */
static bool widens(int count, bool brain)
{
	static float wide[0x10000];
	bool ok = true;
	uint16_t *narrow = (uint16_t *)wide + count;
	for (int i = 0; i < count; i++)
		narrow[i] = i * (count < 0x10000 ? 2731 : 1);
	(brain ? io_widen_bf16 : io_widen_f16)(narrow, wide, count);
	for (int i = 0; i < count; i++) {
		uint16_t h = i * (count < 0x10000 ? 2731 : 1);
		ok &= bits_of(wide[i]) == bits_of(brain ? f32_of_bf16(h) : f32_of_f16(h));
	}
	return ok;
}

static void in_place(void)
{
	bool ok = true;
	for (int n = 0; n < 40; n++)
		ok &= widens(n, false) && widens(n, true);
	tap_ok(ok, "any number of values is widened in place");
	tap_ok(widens(0x10000, false), "F16: all values have the same bits when many are widened");
	tap_ok(widens(0x10000, true), "BF16: all values have the same bits when many are widened");
}

int main(void)
{
	in_place();
	against_definition();
	against_compiler();
	brain_floats();
	return tap_done();
}
