#include "io/float16.h"

#include "tests/tap.h"

#include <math.h>

static uint32_t bits_of(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

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
		float got = io_f16(h);
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
		wrong += bits_of(f) != bits_of(io_f16(h));
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
		wrong += bits_of(io_bf16(h)) != h << 16;
	tap_ok(wrong == 0, "BF16: all 65536 values are the upper half of an f32");
	tap_ok(io_bf16(0x3f80) == 1 && io_bf16(0xc000) == -2, "BF16: 1 and -2");
}

int main(void)
{
	against_definition();
	against_compiler();
	brain_floats();
	return tap_done();
}
