/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-add on machines without the instruction, against C: the same bits for triples that are
 * chosen to be rounded wrongly, and for many at random. */
#include "tests/floats.h"
#include "tests/jit/helper.h"

enum { WIDTHS = 2, CHUNK = 4096, ROUNDS = 400 };

static const int widths[WIDTHS] = {1, 4};

struct triples {
	float a[CHUNK], b[CHUNK], c[CHUNK];
};

static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

/* out[n] = fma(a[n], b[n], c[n]): a kernel for each width. */
static void build(struct fixture *f)
{
	static const char *const names[] = {"out", "a", "b", "c"};
	ilir_buffer buffer[4];
	for (int i = 0; i < 4; i++)
		buffer[i] = buffer_of(f, names[i], i ? IMAGE_VECTOR : IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	for (int w = 0; w < WIDTHS; w++) {
		ilir_var n = index_var(f, "n");
		ilir_expr at = widths[w] > 1 ? ramp(f, ref(f, n), widths[w]) : ref(f, n), x[4];
		for (int i = 1; i < 4; i++)
			x[i] = ilir_load(&f->m, buffer[i], &at, 1);
		ilir_expr fma = ilir_ternary(&f->m, ILIR_FMA, x[1], x[2], x[3]);
		kernel(f, w ? "vector" : "scalar",
		       over_rows(f, n, widths[w], ilir_store(&f->m, buffer[0], &at, 1, fma)));
	}
}

/* Which of several NaNs comes out, and the bits of one that an operation makes, C does not say either. */
static bool same(float x, float y, int nans)
{
	return bits_of(x) == bits_of(y) || (isnan(x) && isnan(y) && nans != 1);
}

static bool agrees(image_kernel *kernel, const struct triples *t, int n)
{
	static float out[CHUNK];
	kernel((void *[]){out, (void *)t->a, (void *)t->b, (void *)t->c}, 0, n, 0, 1, 1);
	for (int i = 0; i < n; i++) {
		float x = t->a[i], y = t->b[i], z = t->c[i], wanted = fmaf(x, y, z);
		if (!same(out[i], wanted,
			  isnan(x) + isnan(y) + isnan(z) + (isinf(x) && !y) + (isinf(y) && !x))) {
			printf("# fma(%a, %a, %a) is %a (%08x), not %a (%08x)\n", x, y, z, out[i],
			       bits_of(out[i]), wanted, bits_of(wanted));
			return false;
		}
	}
	return true;
}

/* --- triples --- */

/* Every combination of numbers at the ends and edges of the format. */
static const uint32_t edges[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00000002, 0x007fffff,
				 0x807fffff, 0x00800000, 0x80800000, 0x00800001, 0x3f800000, 0xbf800000,
				 0x3f800001, 0xbf800001, 0x3f7fffff, 0x3fffffff, 0x33800000, 0xb3800000,
				 0x33800001, 0x34000000, 0x7f7fffff, 0xff7fffff, 0x7f000000, 0x5f000000,
				 0x5f7fffff, 0x1f800000, 0x1fffffff, 0x20000000, 0x7f800000, 0xff800000,
				 0x7fc00000, 0x7fc12345, 0xffc54321, 0x4b7fffff, 0xcb800000};
enum { EDGES = sizeof edges / sizeof *edges };

static bool edges_agree(image_kernel *kernel)
{
	static struct triples t;
	for (int a = 0; a < EDGES; a++) {
		for (int i = 0; i < EDGES * EDGES; i++) {
			t.a[i] = from_bits(edges[a]);
			t.b[i] = from_bits(edges[i / EDGES]);
			t.c[i] = from_bits(edges[i % EDGES]);
		}
		if (!agrees(kernel, &t, EDGES * EDGES / 4 * 4))
			return false;
	}
	return true;
}

static float any_bits(float product)
{
	(void)product;
	return from_bits(draw());
}

/* Close to the product, from either side: what is left is a small difference. */
static float cancelling(float product)
{
	return from_bits((bits_of(product) ^ 0x80000000u) + draw() % 5 - 2);
}

/* Where half of the last place of the sum decides: a power of two far above or below the product. */
static float far_away(float product)
{
	int exponent = (int)(draw() % 60) - 30;
	float x = ldexpf(draw() % 2 ? 1.0f : 1.0f + ldexpf(1, -23), ilogbf(product) + exponent);
	return draw() % 2 ? x : -x;
}

static float a_few_bits(void)
{
	uint32_t mantissa =
	    (draw() % 2 ? 0x400000u >> draw() % 23 : 0) | (draw() % 2 ? 1u << draw() % 23 : 0);
	return from_bits(draw() % 2 << 31 | (100 + draw() % 56) << 23 | mantissa);
}

/* Products that are less than the smallest float, and sums on the grid of the subnormal ones. */
static float subnormal(float product)
{
	(void)product;
	return from_bits((draw() % 2 << 31) | draw() % 0x1000000);
}

static float whole(void)
{
	return from_bits(draw());
}

static float moderate(void)
{
	return from_bits(draw() % 2 << 31 | (117 + draw() % 20) << 23 | (draw() & 0x7fffff));
}

static float tiny(void)
{
	return from_bits(draw() % 2 << 31 | (50 + draw() % 15) << 23 | (draw() & 0x7fffff));
}

static const struct {
	const char *what;
	float (*factor)(void);
	float (*addend)(float product);
} draws[] = {
    {"any bits", whole, any_bits},
    {"sums that cancel", moderate, cancelling},
    {"addends that are far away", a_few_bits, far_away},
    {"products on the edge of rounding", a_few_bits, cancelling},
    {"results below the normal numbers", tiny, subnormal},
};

static bool draws_agree(image_kernel *kernel, int which)
{
	static struct triples t;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CHUNK; i++) {
			t.a[i] = draws[which].factor();
			t.b[i] = draws[which].factor();
			t.c[i] = draws[which].addend(t.a[i] * t.b[i]);
		}
		if (!agrees(kernel, &t, CHUNK))
			return false;
	}
	return true;
}

static void check(const char *target, image_kernel *const *kernels)
{
	for (int w = 0; w < WIDTHS; w++) {
		tap_ok(edges_agree(kernels[w]), "%s, %d at a time: numbers at the edges of the format",
		       target, widths[w]);
		for (size_t i = 0; i < sizeof draws / sizeof *draws; i++)
			tap_ok(draws_agree(kernels[w], i), "%s, %d at a time: %s", target, widths[w],
			       draws[i].what);
	}
}

/* The rule of C, computed with more digits: the test must not lean on a fault that both share. */
static void check_reference(void)
{
	tap_ok(bits_of(fmaf(0x1.000002p+0f, 0x1.000002p+0f, -0x1.000004p+0f)) == bits_of(0x1p-46f),
	       "the C library's own keeps all digits of a product");
	tap_ok(bits_of(fmaf(0x1.fffffep+0f, 0x1p-1f, 0x1p-149f)) == bits_of(0x1.fffffep-1f),
	       "and rounds to nearest");
}

static void test_all(void)
{
	struct fixture f;
	struct image_code code;
	fixture_init(&f, "fma");
	check_reference();
	build(&f);
	if (tap_ok(compile_for(&f, "generic", false, &code),
		   "it compiles for machines without the instruction")) {
		check("generic", code.kernels);
		code.release(&code);
	}
	fixture_free(&f);
}

int main(void)
{
	return over_backends(test_all);
}
