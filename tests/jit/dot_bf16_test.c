/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dot products of bf16: what back ends make of them, with the instruction and without, and the interpreter leave the bits
 * that exact sums say, for special numbers in all combinations, and at random near all limits. */
#include "base/convert.h"
#include "tests/floats.h"
#include "tests/jit/helper.h"

enum { WIDTHS = 4, CHUNK = 8192, ROUNDS = 20 };

static const int widths[WIDTHS] = {1, 4, 8, 16};

struct triples {
	int32_t a[CHUNK], b[CHUNK];
	float c[CHUNK];
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

static long double read_number(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* The sum in at least 64 digits, which is more than twice 24, rounded to 24 digits. */
static float add_product(long double a, long double b, float c)
{
	int exponent;
	long double sum = a * b + read_number(c), digits = frexpl(sum, &exponent);
	if (!isfinite(sum) || sum == 0)
		return (float)sum;
	sum = ldexpl(rintl(ldexpl(digits, 24)), exponent - 24);
	return fabsl(sum) < 0x1p-126L ? copysignf(0, (float)digits) : (float)sum;
}

static float add_products(int32_t a, int32_t b, float c)
{
	float sum = add_product(read_number(from_bits(a & 0xffff0000)), read_number(from_bits(b & 0xffff0000)), c);
	return add_product(read_number(from_bits((uint32_t)a << 16)), read_number(from_bits((uint32_t)b << 16)), sum);
}

static bool is_right(int32_t a, int32_t b, float c, float out)
{
	float wanted = add_products(a, b, c);
	bool right = bits_of(out) == bits_of(wanted) || (isnan(out) && isnan(wanted));
	if (!right)
		printf("# dot_bf16(%08x, %08x, %a) is %a, not %a\n", (unsigned)a, (unsigned)b, c, out, wanted);
	return right;
}

/* --- kernels --- */

/* out[n] = dot_bf16(a[n], b[n], c[n]): a kernel for each width. */
static void build(struct fixture *f)
{
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS)),
		    a = buffer_of(f, "a", IMAGE_VECTOR, ILIR_I32, EXTENTS(ROWS)),
		    b = buffer_of(f, "b", IMAGE_VECTOR, ILIR_I32, EXTENTS(ROWS)),
		    c = buffer_of(f, "c", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	for (int w = 0; w < WIDTHS; w++) {
		struct str name = str_in(&f->arena);
		ilir_var n = index_var(f, "n");
		ilir_expr at = widths[w] > 1 ? ramp(f, ref(f, n), widths[w]) : ref(f, n);
		ilir_expr dot = ilir_ternary(&f->m, ILIR_DOT_BF16, ilir_load(&f->m, a, &at, 1),
					     ilir_load(&f->m, b, &at, 1), ilir_load(&f->m, c, &at, 1));
		str_printf(&name, "of_%d", widths[w]);
		kernel(f, str_text(&name), over_rows(f, n, widths[w], ilir_store(&f->m, out, &at, 1, dot)));
	}
}

static bool agrees(image_kernel *kernel, const struct triples *t)
{
	static float out[CHUNK];
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
		right = is_right(t->a[i], t->b[i], t->c[i], dot_bf16(t->a[i], t->b[i], t->c[i]));
	return right;
}

/* --- triples --- */

/* Zeros, denormal numbers, the least and the largest ones, numbers whose product is just below the least, infinities, NaNs. */
static const uint16_t edges[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x8080, 0x3f80, 0xbf81, 0x7f7f, 0xff7f, 0x7f80,
				 0xff80, 0x7fc0, 0xff81, 0x1a00, 0x9a00, 0x1980, 0x99a0, 0x1970, 0x2000, 0x5f80, 0xdfff};
static const uint32_t sums[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x80800000,
				0x00800001, 0x80800003, 0x3f800000, 0xbf7fffff, 0x7f7fffff, 0xff7fffff,
				0x7f800000, 0xff800000, 0x7fc00000, 0x33800000};
enum { EDGES = sizeof edges / sizeof *edges, SUMS = sizeof sums / sizeof *sums };

static uint32_t draw_edge(void)
{
	return edges[draw() % EDGES];
}

/* The upper parts of all triples come one after the other, in rounds of a chunk; the lower ones are drawn. */
static void draw_edges(struct triples *t, int round)
{
	for (int i = 0; i < CHUNK; i++) {
		int at = (round * CHUNK + i) % (EDGES * EDGES * SUMS);
		t->a[i] = (int32_t)((uint32_t)edges[at % EDGES] << 16 | (draw() % 2 ? draw_edge() : 0));
		t->b[i] = (int32_t)((uint32_t)edges[at / EDGES % EDGES] << 16 | draw_edge());
		t->c[i] = from_bits(sums[at / EDGES / EDGES]);
	}
}

/* A bf16 whose exponent is one of a few. */
static uint32_t draw_near(int exponent, int range)
{
	return draw() % 2 << 15 | (uint32_t)(exponent + (int)(draw() % range)) << 7 | draw() % 128;
}

/* Products about as large as sums: of ordinary numbers, near the least and near the largest one. */
static void draw_exponents(struct triples *t, int round)
{
	static const struct {
		int factor, sum;
	} near[] = {{124, 120}, {59, 1}, {186, 247}};
	for (int i = 0; i < CHUNK; i++) {
		int factor = near[round % 3].factor, sum = near[round % 3].sum;
		t->a[i] = (int32_t)(draw_near(factor, 8) << 16 | draw_near(factor, 8));
		t->b[i] = (int32_t)(draw_near(factor, 8) << 16 | draw_near(factor, 8));
		t->c[i] = from_bits(draw_near(sum, 8) << 16 | draw() % 65536);
	}
}

static void draw_bits(struct triples *t, int round)
{
	(void)round;
	for (int i = 0; i < CHUNK; i++) {
		t->a[i] = (int32_t)draw();
		t->b[i] = (int32_t)draw();
		t->c[i] = from_bits(draw());
	}
}

static const struct {
	const char *name;
	void (*draw)(struct triples *, int round);
} ways[] = {{"special numbers", draw_edges}, {"exponents near each other", draw_exponents}, {"any bits", draw_bits}};
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
	if (fixture_init(&f, "dots")) {
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
	return over_backends(tests);
}
