/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-adds of f16: what back ends make of them, with the instruction and without, and the interpreter leave the bits
 * that exact integers say, for special numbers in all combinations, and at random near the limits and near the middle of two
 * numbers. */
#include "base/convert.h"
#include "tests/floats.h"
#include "tests/jit/helper.h"

enum { WIDTHS = 4, CHUNK = 8192, ROUNDS = 20 };

static const int widths[WIDTHS] = {1, 4, 8, 16};

struct triples {
	int32_t a[CHUNK], b[CHUNK], c[CHUNK];
};

static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

/* --- what it should be --- */

/* A finite f16 in units of 2^-24. */
static int64_t count_units(uint16_t h)
{
	int exponent = h >> 10 & 31;
	int64_t size = exponent ? (int64_t)(0x400 | (h & 0x3ff)) << (exponent - 1) : h & 0x3ff;
	return h & 0x8000 ? -size : size;
}

/* The f16 nearest to so many units of 2^-48, ties to even; `zero` is that of none. */
static uint16_t nearest_half(__int128 units, uint16_t zero)
{
	unsigned __int128 size = units < 0 ? -units : units;
	uint16_t sign = units < 0 ? 0x8000 : 0;
	int shift = 24; /* denormal numbers are multiples of 2^-24, others of 2^(exponent - 25) */
	if (!units)
		return zero;
	while (size >> shift >= 0x800)
		shift++;
	uint64_t digits = size >> shift;
	unsigned __int128 rest = size - ((unsigned __int128)digits << shift), half = (unsigned __int128)1 << (shift - 1);
	digits += rest > half || (rest == half && digits % 2);
	uint64_t bits = digits + ((uint64_t)(shift - 24) << 10);
	return sign | (bits > 0x7c00 ? 0x7c00 : bits);
}

static bool is_nan(uint16_t h)
{
	return (h & 0x7fff) > 0x7c00;
}

static bool is_infinite(uint16_t h)
{
	return (h & 0x7fff) == 0x7c00;
}

static uint16_t fuse_exactly(uint16_t a, uint16_t b, uint16_t c)
{
	uint16_t sign = (a ^ b) & 0x8000;
	bool infinite = is_infinite(a) || is_infinite(b);
	if (is_nan(a) || is_nan(b) || is_nan(c) || (infinite && (!(a & 0x7fff) || !(b & 0x7fff))))
		return 0x7e00;
	if (infinite)
		return is_infinite(c) && c != (sign | 0x7c00) ? 0x7e00 : sign | 0x7c00;
	if (is_infinite(c))
		return c;
	bool zeros = (!(a & 0x7fff) || !(b & 0x7fff)) && !(c & 0x7fff);
	return nearest_half((__int128)count_units(a) * count_units(b) + (__int128)count_units(c) * (1 << 24),
			    zeros ? sign & c & 0x8000 : 0);
}

static bool is_half(uint16_t out, uint16_t wanted)
{
	return out == wanted || (is_nan(out) && is_nan(wanted));
}

static bool is_right(uint32_t a, uint32_t b, uint32_t c, uint32_t out)
{
	uint16_t low = fuse_exactly(a, b, c), high = fuse_exactly(a >> 16, b >> 16, c >> 16);
	bool right = is_half(out, low) && is_half(out >> 16, high);
	if (!right)
		printf("# fma_f16(%08x, %08x, %08x) is %08x, not %04x%04x\n", a, b, c, out, high, low);
	return right;
}

/* --- kernels --- */

/* out[n] = fma_f16(a[n], b[n], c[n]): a kernel for each width. */
static void build(struct fixture *f)
{
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_I32, EXTENTS(ROWS)),
		    a = buffer_of(f, "a", IMAGE_VECTOR, ILIR_I32, EXTENTS(ROWS)),
		    b = buffer_of(f, "b", IMAGE_VECTOR, ILIR_I32, EXTENTS(ROWS)),
		    c = buffer_of(f, "c", IMAGE_VECTOR, ILIR_I32, EXTENTS(ROWS));
	for (int w = 0; w < WIDTHS; w++) {
		struct str name = str_in(&f->arena);
		ilir_var n = index_var(f, "n");
		ilir_expr at = widths[w] > 1 ? ramp(f, ref(f, n), widths[w]) : ref(f, n);
		ilir_expr sum = ilir_ternary(&f->m, ILIR_FMA_F16, ilir_load(&f->m, a, &at, 1),
					     ilir_load(&f->m, b, &at, 1), ilir_load(&f->m, c, &at, 1));
		str_printf(&name, "of_%d", widths[w]);
		kernel(f, str_text(&name), over_rows(f, n, widths[w], ilir_store(&f->m, out, &at, 1, sum)));
	}
}

static bool agrees(image_kernel *kernel, const struct triples *t)
{
	static int32_t out[CHUNK];
	bool right = true;
	kernel((void *[]){out, (void *)t->a, (void *)t->b, (void *)t->c}, 0, CHUNK, 0, 1, 1);
	for (int i = 0; i < CHUNK && right; i++)
		right = is_right(t->a[i], t->b[i], t->c[i], out[i]);
	return right;
}

/* As the interpreter computes it. */
static bool agrees_here(const struct triples *t)
{
	bool right = true;
	for (int i = 0; i < CHUNK && right; i++)
		right = is_right(t->a[i], t->b[i], t->c[i], fma_halves(t->a[i], t->b[i], t->c[i]));
	return right;
}

/* --- triples --- */

/* Zeros, denormal numbers, the least and the largest ones, ones and their neighbours, infinities, NaNs. */
static const uint16_t edges[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x83ff, 0x03ff, 0x0400, 0x8401, 0x0401, 0x1000, 0x1400,
				 0x9401, 0x3bff, 0x3c00, 0xbc00, 0x3c01, 0xbc03, 0x4000, 0x5bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
				 0x7e00, 0xfd01};
enum { EDGES = sizeof edges / sizeof *edges };

/* The upper parts of all triples come one after the other, in rounds of a chunk; the lower ones are drawn. */
static void draw_edges(struct triples *t, int round)
{
	for (int i = 0; i < CHUNK; i++) {
		uint32_t at = round * CHUNK + i;
		t->a[i] = (int32_t)((uint32_t)edges[at % EDGES] << 16 | edges[draw() % EDGES]);
		t->b[i] = (int32_t)((uint32_t)edges[at / EDGES % EDGES] << 16 | edges[draw() % EDGES]);
		t->c[i] = (int32_t)((uint32_t)edges[at / EDGES / EDGES % EDGES] << 16 | edges[draw() % EDGES]);
	}
}

/* A number whose exponent is one of a few. */
static uint32_t draw_near(int exponent, int range)
{
	return draw() % 2 << 15 | (uint32_t)(exponent + (int)(draw() % range)) << 10 | draw() % 1024;
}

/* Products about as large as sums: of ordinary numbers, near the least and near the largest one. */
static void draw_exponents(struct triples *t, int round)
{
	static const struct {
		int factor, sum;
	} near[] = {{10, 8}, {5, 0}, {20, 26}};
	for (int i = 0; i < CHUNK; i++) {
		int factor = near[round % 3].factor, sum = near[round % 3].sum;
		t->a[i] = (int32_t)(draw_near(factor, 5) << 16 | draw_near(factor, 5));
		t->b[i] = (int32_t)(draw_near(factor, 5) << 16 | draw_near(factor, 5));
		t->c[i] = (int32_t)(draw_near(sum, 5) << 16 | draw_near(sum, 5));
	}
}

/* Products near half a unit of the last digit of the sum, where rounding twice is wrong: that of the digits of both factors is near
 * 2^21. */
static void draw_middle(uint32_t *a, uint32_t *b, uint32_t *c)
{
	uint32_t digits = 1025 + draw() % 1022, other = ((1u << 21) + digits / 2) / digits;
	int exponent = 14 + (int)(draw() % 6), first = 4 + (int)(draw() % 12);
	*c = draw_near(exponent, 1);
	*a = draw() % 2 << 15 | (uint32_t)first << 10 | (digits - 1024);
	*b = draw() % 2 << 15 | (uint32_t)(exponent - first + 3) << 10 | (other - 1024);
}

static void draw_middles(struct triples *t, int round)
{
	(void)round;
	for (int i = 0; i < CHUNK; i++) {
		uint32_t a[2], b[2], c[2];
		for (int k = 0; k < 2; k++)
			draw_middle(&a[k], &b[k], &c[k]);
		t->a[i] = (int32_t)(a[1] << 16 | a[0]);
		t->b[i] = (int32_t)(b[1] << 16 | b[0]);
		t->c[i] = (int32_t)(c[1] << 16 | c[0]);
	}
}

static void draw_bits(struct triples *t, int round)
{
	(void)round;
	for (int i = 0; i < CHUNK; i++) {
		t->a[i] = (int32_t)draw();
		t->b[i] = (int32_t)draw();
		t->c[i] = (int32_t)draw();
	}
}

static const struct {
	const char *name;
	void (*draw)(struct triples *, int round);
} ways[] = {{"special numbers", draw_edges},
	    {"exponents near each other", draw_exponents},
	    {"near the middle of two numbers", draw_middles},
	    {"any bits", draw_bits}};
enum { WAYS = sizeof ways / sizeof *ways };

/* --- machines --- */

static void test_kernel(const char *target, int width, image_kernel *kernel)
{
	static struct triples t;
	for (int w = 0; w < WAYS; w++) {
		bool right = true;
		for (int round = 0; round < ROUNDS && right; round++) {
			ways[w].draw(&t, round);
			right = agrees(kernel, &t);
		}
		tap_ok(right, "%s, %d lanes: %s", target, width, ways[w].name);
	}
}

static void test_target(const char *target, bool native)
{
	struct fixture f;
	struct image_code code;
	if (fixture_init(&f, "halves")) {
		build(&f);
		if (tap_ok(compile_for(&f, target, native, &code), "%s%s: compiles", target, native ? ", native" : "")) {
			for (int w = 0; target_runs_here(target_find(target)) && w < WIDTHS; w++)
				test_kernel(target, widths[w], code.kernels[w]);
			code.release(&code);
		}
	}
	fixture_free(&f);
}

static void tests(void)
{
	static const char *const targets[] = {"generic", "avx2", "avx512"};
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		test_target(targets[i], false);
		if (target_runs_here(target_find(targets[i])))
			test_target(targets[i], true);
	}
}

/* How often rounding to binary32 first would give another number: else the middles would show nothing. */
static void test_middles(void)
{
	static struct triples t;
	int twice = 0;
	draw_middles(&t, 0);
	for (int i = 0; i < CHUNK; i++) {
		float sum = f32_of_f16((uint16_t)t.a[i]) * f32_of_f16((uint16_t)t.b[i]) + f32_of_f16((uint16_t)t.c[i]);
		twice += f16_of_f32(sum) != fuse_exactly(t.a[i], t.b[i], t.c[i]);
	}
	tap_ok(twice > 10, "%d of %d sums would differ if they were rounded twice", twice, (int)CHUNK);
}

int main(void)
{
	static struct triples t;
	for (int w = 0; w < WAYS; w++) {
		bool right = true;
		for (int round = 0; round < ROUNDS && right; round++) {
			ways[w].draw(&t, round);
			right = agrees_here(&t);
		}
		tap_ok(right, "the meaning: %s", ways[w].name);
	}
	test_middles();
	return over_backends(tests);
}
