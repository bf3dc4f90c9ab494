/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compares interpreted casts and integer arithmetic with independent C code: integers exactly, all 65536
 * half floats with arithmetic in binary64.  tests/jit/types_test compares compiled code. */
#include "tests/floats.h"
#include "tests/ilir/support.h"

enum { N = 65536 };

/* --- half floats --- */

/* The bits of the nearest float, ties to even, in a format with `fraction` bits of fraction and least
 * exponent `least`. */
static uint32_t nearest_bits(float x, int fraction, int least, int bits)
{
	int exponent, most = (1 << (bits - 1 - fraction)) - 1;
	uint32_t sign = (uint32_t)(signbit(x) != 0) << (bits - 1);
	double a = fabs((double)x);
	if (isnan(x))
		return bits_of(x) >> 31 << (bits - 1) | (uint32_t)most << fraction | 1u << (fraction - 1) |
		       (bits_of(x) & 0x7fffff) >> (23 - fraction);
	frexp(a, &exponent);
	exponent = a == 0 || exponent - 1 < least ? least : exponent - 1;
	double units = isinf(x) ? INFINITY : nearbyint(ldexp(a, fraction - exponent));
	double whole = units + (double)(exponent - least) * (1 << fraction);
	double infinity = (double)((uint32_t)most << fraction);
	return sign | (uint32_t)(whole < infinity ? whole : infinity);
}

/* The value of such a float: an exponent of zeros counts as 1, without the leading bit. */
static float value_of(uint32_t h, int fraction, int least, int bits)
{
	int exponent = h >> fraction & ((1 << (bits - 1 - fraction)) - 1), part = h & ((1 << fraction) - 1);
	double sign = h >> (bits - 1) & 1 ? -1 : 1;
	if (exponent == (1 << (bits - 1 - fraction)) - 1)
		return part ? NAN : sign * INFINITY;
	if (exponent)
		part += 1 << fraction;
	return sign * ldexp(part, least + (exponent ? exponent - 1 : 0) - fraction);
}

/* --- oracles --- */

#define ORACLE(name, from, to, value)                                                                        \
	static void name(const void *in, void *out)                                                          \
	{                                                                                                    \
		const from *xs = in;                                                                         \
		to *ys = out;                                                                                \
		for (int i = 0; i < N; i++) {                                                                \
			from x = xs[i], z = xs[N - 1 - i];                                                   \
			(void)z;                                                                             \
			ys[i] = (to)(value);                                                                 \
		}                                                                                            \
	}

static int64_t clamp_number(long double x, int64_t low, int64_t high)
{
	return isnan(x) ? 0 : x <= low ? low : x >= high ? high : (int64_t)x;
}

static int64_t round_shift(int64_t x, int by)
{
	__int128 half = by ? (__int128)1 << (by - 1) : 0, a = x < 0 ? -(__int128)x : x;
	return (int64_t)(x < 0 ? -((a + half) >> by) : (a + half) >> by);
}

ORACLE(f32_of_f16, uint16_t, float, value_of(x, 10, -14, 16))
ORACLE(f32_of_bf16, uint16_t, float, value_of(x, 7, -126, 16))
ORACLE(f16_of_f32, float, uint16_t, nearest_bits(x, 10, -14, 16))
ORACLE(bf16_of_f32, float, uint16_t, nearest_bits(x, 7, -126, 16))
ORACLE(i32_of_i8, int8_t, int32_t, x)
ORACLE(i32_of_u8, uint8_t, int32_t, x)
ORACLE(i32_of_i16, int16_t, int32_t, x)
ORACLE(i64_of_i32, int32_t, int64_t, x)
ORACLE(f32_of_i32, int32_t, float, x)
ORACLE(f32_of_i64, int64_t, float, x)
ORACLE(f32_of_bool, uint8_t, float, x != 0)
ORACLE(i32_of_bool, uint8_t, int32_t, x != 0)
ORACLE(i32_of_f32, float, int32_t, clamp_number(x, INT32_MIN, INT32_MAX))
ORACLE(i64_of_f32, float, int64_t, clamp_number(x, INT64_MIN, INT64_MAX))
ORACLE(i32_of_i64, int64_t, int32_t, clamp_number(x, INT32_MIN, INT32_MAX))
ORACLE(low_of_i64, int64_t, int32_t, (uint32_t)x)
ORACLE(i8_of_i32, int32_t, int8_t, clamp_number(x, -128, 127))
ORACLE(u8_of_i32, int32_t, uint8_t, clamp_number(x, 0, 255))
ORACLE(i16_of_i32, int32_t, int16_t, clamp_number(x, -32768, 32767))
ORACLE(rounded, float, float, isnan(x) ? x : rintf(x))
ORACLE(floored, float, float, isnan(x) ? x : floorf(x))
ORACLE(least, float, float, isnan(x) || x < z ? x : z)
ORACLE(by_0, int32_t, int32_t, x)
ORACLE(by_7, int32_t, int32_t, round_shift(x, 7))
ORACLE(by_31, int32_t, int32_t, round_shift(x, 31))
ORACLE(by_63, int64_t, int64_t, round_shift(x, 63))
ORACLE(by_20, int64_t, int64_t, round_shift(x, 20))
ORACLE(high, int32_t, int32_t, (int64_t)x *z >> 32)
ORACLE(sum, int64_t, int64_t, (uint64_t)x + (uint64_t)z)
ORACLE(difference, int64_t, int64_t, (uint64_t)x - (uint64_t)z)
ORACLE(product, int64_t, int64_t, (uint64_t)x *(uint64_t)z)
ORACLE(exclusive, int64_t, int64_t, x ^ z)
ORACLE(smaller, int64_t, int64_t, x < z ? x : z)
ORACLE(chosen, int16_t, int16_t, x < z ? z : x)
ORACLE(opposite, int32_t, uint8_t, !(x < z))

/* x and z: elements of `from`; the rows are read from both ends. */
static const struct cast {
	const char *from, *to, *text;
	void (*oracle)(const void *, void *);
} casts[] = {
    {"f16", "f32", "to_f32(x)", f32_of_f16},
    {"bf16", "f32", "to_f32(x)", f32_of_bf16},
    {"f32", "f16", "to_f16(x)", f16_of_f32},
    {"f32", "bf16", "to_bf16(x)", bf16_of_f32},
    {"i8", "i32", "to_i32(x)", i32_of_i8},
    {"u8", "i32", "to_i32(x)", i32_of_u8},
    {"i16", "i32", "to_i32(x)", i32_of_i16},
    {"i32", "i64", "to_i64(x)", i64_of_i32},
    {"i32", "f32", "to_f32(x)", f32_of_i32},
    {"i64", "f32", "to_f32(x)", f32_of_i64},
    {"bool", "f32", "to_f32(x)", f32_of_bool},
    {"bool", "i32", "to_i32(x)", i32_of_bool},
    {"f32", "i32", "to_i32(x)", i32_of_f32},
    {"f32", "i64", "to_i64(x)", i64_of_f32},
    {"i64", "i32", "to_i32(x)", i32_of_i64},
    {"i64", "i32", "wrap_i32(x)", low_of_i64},
    {"i32", "i8", "to_i8(x)", i8_of_i32},
    {"i32", "u8", "to_u8(x)", u8_of_i32},
    {"i32", "i16", "to_i16(x)", i16_of_i32},
    {"f32", "f32", "round(x)", rounded},
    {"f32", "f32", "floor(x)", floored},
    {"f32", "f32", "min(x, z)", least},
    {"i32", "i32", "round_shr(x, 0i)", by_0},
    {"i32", "i32", "round_shr(x, 7i)", by_7},
    {"i32", "i32", "round_shr(x, 31i)", by_31},
    {"i64", "i64", "round_shr(x, 63l)", by_63},
    {"i64", "i64", "round_shr(x, 20l)", by_20},
    {"i32", "i32", "mul_high(x, z)", high},
    {"i64", "i64", "x + z", sum},
    {"i64", "i64", "x - z", difference},
    {"i64", "i64", "x * z", product},
    {"i64", "i64", "x ^ z", exclusive},
    {"i64", "i64", "min(x, z)", smaller},
    {"i16", "i16", "select(to_i32(x) < to_i32(z), z, x)", chosen},
    {"i32", "bool", "not(x < z)", opposite},
};

/* --- operands --- */

static uint64_t draw_bits(void)
{
	static uint64_t state = 0x2545f4914f6cdd1d;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x9e3779b97f4a7c15;
}

/* Operands around the limits of narrower types, around exponents where rounding changes, and at random. */
static void fill_floats(float *x)
{
	static const float border[] = {0x1p-25f, 0x1p-24f, 0x1p-14f, 65504, 65520, 0x1p31f,	0x1p63f,
				       0x1p23f,	 1.5f,	   2.5f,     128,   0.5f,  0x1.ffp127f, INFINITY};
	int n = sizeof border / sizeof *border;
	for (int i = 0; i < N; i++) {
		uint32_t bits = bits_of(border[i % n]) + (uint32_t)(i / n % 64) - 32;
		x[i] =
		    from_bits(i < N / 2 ? bits ^ (uint32_t)(draw_bits() & 1) << 31 : (uint32_t)draw_bits());
		if (i % 5 == 0)
			x[i] = (float)(int)(draw_bits() % 4001 - 2000) / 4;
	}
}

static void fill_operands(void *x, const char *type)
{
	enum dtype t = DTYPE_F32;
	dtype_read(type, &t);
	int bytes = dtype_traits_of(t)->bytes;
	for (int i = 0; i < N; i++) {
		uint64_t bits = draw_bits();
		int64_t integer = (int64_t)bits >> (draw_bits() % 64);
		memcpy((char *)x + (size_t)i * bytes, &integer, bytes);
		if (t == DTYPE_BOOL)
			((uint8_t *)x)[i] = i % 3 ? i % 256 : 0;
		if (t == DTYPE_F16 || t == DTYPE_BF16)
			((uint16_t *)x)[i] = i;
	}
	if (t == DTYPE_F32)
		fill_floats(x);
	if (t == DTYPE_I32)
		memcpy(x,
		       (int32_t[]){INT32_MIN, INT32_MAX, -1, 0, 127, 128, -129, 255, 256, 32768, -32769, 64,
				   -64, 192, -192},
		       60);
	if (t == DTYPE_I64)
		memcpy(x,
		       (int64_t[]){INT64_MIN, INT64_MAX, INT32_MIN - 1LL, INT32_MAX + 1LL, -1, 0, 1LL << 19,
				   -(1LL << 19)},
		       64);
}

/* Whether two results are the same bits, or both NaNs of a widened float. */
static bool is_same_value(const char *type, const void *a, const void *b, int bytes)
{
	float x, y;
	if (memcmp(a, b, bytes) == 0)
		return true;
	if (strcmp(type, "f32") != 0)
		return false;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return isnan(x) && isnan(y);
}

static void check_cast(const struct cast *c)
{
	char text[1000];
	struct bench b;
	enum dtype to = DTYPE_F32;
	char *wanted = calloc(N, 8);
	int bad = 0;
	dtype_read(c->to, &to);
	snprintf(text, sizeof text,
		 "module m\ndim i\nbuffer in : vector 0 %s [65536:i]\nbuffer out : output 0 %s "
		 "[65536:i]\nkernel k in nodes {\n"
		 "  for n:i in 0..65536 { let x = in[n] let z = in[65535 - n] out[n] = %s }\n}\n",
		 c->from, c->to, c->text);
	bool ok = bench_parse(&b, text) && ilir_verify(b.m, 0, "parsing", &b.diags);
	if (ok) {
		bench_allocate(&b, 1, 1, 1, 1, 1);
		fill_operands(b.buffers[0], c->from);
		c->oracle(b.buffers[0], wanted);
		ok = bench_run(&b, 0, 1);
	}
	for (int i = 0, bytes = dtype_traits_of(to)->bytes; ok && i < N; i++)
		if (!is_same_value(c->to, (char *)b.buffers[1] + (size_t)i * bytes,
				   wanted + (size_t)i * bytes, bytes) &&
		    !bad++)
			printf("# row %d differs\n", i);
	if (!ok)
		bench_says(&b, "no message");
	tap_ok(ok && !bad, "%s: %s to %s, 65536 rows", c->text, c->from, c->to);
	free(wanted);
	bench_close(&b);
}

static void check_quiet(void)
{
	struct bench b;
	tap_ok(
	    bench_parse(&b,
			"module m\ndim i\nbuffer in : vector 0 f16 [1:i]\nbuffer out : output 0 i32 [1:i]\n"
			"kernel k in nodes { out[0] = as_i32(to_f32(in[0])) }\n"),
	    "a NaN of f16");
	bench_allocate(&b, 1, 1, 1, 1, 1);
	*(uint16_t *)b.buffers[0] = 0xfc01;
	tap_ok(bench_run(&b, 0, 1) && *(uint32_t *)b.buffers[1] == 0xffc02000,
	       "becomes quiet and keeps its fraction");
	bench_close(&b);
}

int main(void)
{
	for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
		check_cast(&casts[i]);
	check_quiet();
	return tap_done();
}
