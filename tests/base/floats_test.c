/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How the processor computes between entering and leaving, and what its caller finds afterwards.  Stands
 * alone, so that tests/jit/machines_test.sh can compile it for other machines. */
#include "base/floats.h"
#include "tests/tap.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* --- what is computed: each operand and result goes through memory, so that none is computed elsewhere ---
 */

static volatile float operand[2], result;

static float divide(float x, float y)
{
	operand[0] = x, operand[1] = y;
	result = operand[0] / operand[1];
	return result;
}

static float add(float x, float y)
{
	operand[0] = x, operand[1] = y;
	result = operand[0] + operand[1];
	return result;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* Of a float between 1 and the next. */
static bool rounds_to_nearest(void)
{
	return add(1, FLT_EPSILON / 4) == 1 && add(-1, -FLT_EPSILON / 4) == -1 &&
	       add(1, FLT_EPSILON * 0.75f) == 1 + FLT_EPSILON;
}

/* As results and as operands; only their bits are looked at, since comparing is computing. */
static bool keeps_denormals(void)
{
	float made = divide(FLT_MIN, 4), used = divide(FLT_MIN / 4, FLT_MIN);
	return bits_of(made) == 0x00200000 && used == 0.25f;
}

static bool flushes_denormals(void)
{
	float made = divide(FLT_MIN, 4), used = divide(FLT_MIN / 4, FLT_MIN);
	return bits_of(made) == 0 && bits_of(used) == 0;
}

/* --- rounding --- */

static void test_rounding(void)
{
	static const int ways[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	bool nearest = true, back = true;
	for (int i = 0; i < 4; i++) {
		fesetround(ways[i]);
		float before = add(1, FLT_EPSILON / 4);
		struct float_mode mode = float_mode_enter(false);
		nearest &= rounds_to_nearest() && fegetround() == FE_TONEAREST;
		float_mode_leave(&mode);
		back &= fegetround() == ways[i] && add(1, FLT_EPSILON / 4) == before;
	}
	fesetround(FE_TONEAREST);
	tap_ok(nearest, "results are rounded to nearest, however the caller's are");
	tap_ok(back, "and the caller's as before");
}

/* --- denormals --- */

static void test_denormals(void)
{
#if defined FLOAT_FLUSH
	struct float_mode outer = float_mode_enter(true);
	tap_ok(flushes_denormals(), "denormals are zeros when that is wanted");
	struct float_mode inner = float_mode_enter(false);
	tap_ok(keeps_denormals() && rounds_to_nearest(),
	       "and themselves when it is not, though the caller's are zeros");
	float_mode_set(true);
	tap_ok(flushes_denormals(), "it can be changed on the way");
	float_mode_set(false);
	tap_ok(keeps_denormals(), "and back");
	float_mode_leave(&inner);
	tap_ok(flushes_denormals(), "the caller's are zeros again");
	float_mode_leave(&outer);
#else
	tap_skip("there is no way to say it", "denormals are zeros when that is wanted");
#endif
	struct float_mode mode = float_mode_enter(false);
	tap_ok(keeps_denormals(), "denormals are numbers otherwise");
	float_mode_leave(&mode);
	tap_ok(keeps_denormals(), "and so they are for a caller who has not changed that");
}

/* --- exceptions --- */

static void raise_all(void)
{
	divide(1, 0), divide(0, 0), divide(1, 3), divide(FLT_MAX, FLT_MIN), divide(FLT_MIN, FLT_MAX);
}

static void test_flags(void)
{
	feclearexcept(FE_ALL_EXCEPT);
	struct float_mode mode = float_mode_enter(false);
	raise_all();
	float_mode_leave(&mode);
	tap_ok(fetestexcept(FE_ALL_EXCEPT) == 0,
	       "flags that were raised meanwhile are not left to the caller");
	feraiseexcept(FE_DIVBYZERO | FE_OVERFLOW);
	int before = fetestexcept(FE_ALL_EXCEPT);
	mode = float_mode_enter(true);
	raise_all();
	float_mode_leave(&mode);
	tap_ok(before & FE_DIVBYZERO && fetestexcept(FE_ALL_EXCEPT) == before,
	       "those that were raised before are");
	feclearexcept(FE_ALL_EXCEPT);
}

/* A trap would end the process. */
static void test_traps(void)
{
	enum { TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };
	bool can = feenableexcept(TRAPS) >= 0 && (fegetexcept() & TRAPS) == TRAPS;
	struct float_mode mode = float_mode_enter(false);
	raise_all();
	bool quiet = isinf(divide(1, 0)) && isnan(divide(0, 0));
	float_mode_leave(&mode);
	bool back = (fegetexcept() & TRAPS) == TRAPS;
	fedisableexcept(TRAPS);
	tap_ok(quiet, "nothing traps: there are infinities and NaNs");
	if (can)
		tap_ok(back, "and the caller's traps are set as before");
	else
		tap_skip("this processor has no traps", "and the caller's traps are set as before");
}

#if defined __aarch64__
static void test_default_nan(void)
{
	static const uint64_t default_nan = UINT64_C(1) << 25;
	uint64_t now;
	float payload;
	memcpy(&payload, &(uint32_t){0x7fc01234}, sizeof payload);
	__asm__ volatile("msr fpcr, %0" : : "r"(default_nan));
	bool lost = bits_of(add(payload, 1)) == 0x7fc00000;
	struct float_mode mode = float_mode_enter(false);
	bool kept = bits_of(add(payload, 1)) == 0x7fc01234;
	float_mode_leave(&mode);
	__asm__ volatile("mrs %0, fpcr" : "=r"(now));
	__asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
	tap_ok(lost && kept && now == default_nan,
	       "NaNs stay what they are, though the caller's are all the same one");
}
#endif

int main(void)
{
	test_rounding();
	test_denormals();
	test_flags();
	test_traps();
#if defined __aarch64__
	test_default_nan();
#endif
	return tap_done();
}
