/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compares the expansions of exp, log, log1p, sigmoid, tanh, erf, sin, cos and atan, interpreted, with
 * libm in double precision. */
#include "tests/floats.h"
#include "tests/ilir/support.h"

enum { CHUNK = 4096 };

static const char program[] =
    "module math\ndim i\n"
    "buffer x : scratch 0 f32 [4096:i]\n"
    "buffer y : scratch 1 f32 [4096:i]\n"
    "kernel k in nodes {\n"
    "  for i:i in 0..4096 step 16 {\n"
    "    y[ramp(16, i)] = %s(x[ramp(16, i)])\n"
    "  }\n"
    "}\n";

struct worst {
	double error;
	float x, y;
};

struct sweep {
	struct bench b;
	struct ilir_interpreter *r;
	float *x, *y;
	int n;
	double (*exact)(double), limit;
	struct worst worst;
};

static void flush_sweep(struct sweep *s)
{
	struct image_frame frame = {s->b.buffers, s->b.sizes};
	ilir_interpret(s->r, 0, &frame, &(struct image_range){0, 0, 0, 1, 1}, &s->b.diags);
	for (int i = 0; i < s->n; i++) {
		bool defined = s->limit == 0 || !(fabs(s->x[i]) > s->limit) || isinf(s->x[i]);
		double exact = s->exact(s->x[i]), error = defined	       ? error_of(s->y[i], exact)
							  : fabs(s->y[i]) <= 1 ? 0
									       : INFINITY;
		if (error > s->worst.error)
			s->worst = (struct worst){error, s->x[i], s->y[i]};
	}
	s->n = 0;
}

static void feed_sweep(struct sweep *s, uint32_t bits)
{
	s->x[s->n++] = from_bits(bits);
	if (s->n == CHUNK)
		flush_sweep(s);
}

static void open_sweep(struct sweep *s, const char *name)
{
	char text[sizeof program + 16];
	snprintf(text, sizeof text, program, name);
	bench_parse(&s->b, text);
	bench_allocate(&s->b, 0, 0, 0, 0, 0);
	s->r = ilir_interpreter_new(&s->b.arena, s->b.m);
	s->x = s->b.buffers[0];
	s->y = s->b.buffers[1];
}

static const struct function {
	const char *name;
	double (*exact)(double);
	double bound;
	uint32_t dense_from,
	    dense_to; /* bits of the positive numbers between which, in both signs, more are tested */
	double limit; /* beyond it, the result need only be in -1..1; 0 = none */
} functions[] = {
    {"exp", exp, 2, 0x3e000000, 0x42d00000, 0},
    {"log", log, 2, 0x3f000000, 0x40000000, 0},
    {"log1p", log1p, 2, 0x3d000000, 0x42000000, 0},
    {"sigmoid", exact_sigmoid, 3.5, 0x3e000000, 0x42d00000, 0},
    {"tanh", tanh, 3, 0x3a000000, 0x41200000, 0},
    {"erf", erf, 2, 0x3e000000, 0x40900000, 0},
    {"sin", sin, 2, 0x3e000000, 0x48000000, 0x1p17},
    {"cos", cos, 2, 0x3e000000, 0x48000000, 0x1p17},
    {"atan", atan, 2, 0x3d000000, 0x42000000, 0},
};

/* Tests floats in strides.  `scale` is 1 in make check, else the program's argument; 1000 is nearly all
 * floats. */
static void test_sweep(const struct function *f, int scale)
{
	struct sweep *s = &(struct sweep){.exact = f->exact, .limit = f->limit};
	open_sweep(s, f->name);
	uint32_t wide = 2003 / scale | 1, dense = 641 / scale | 1;
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += wide)
		feed_sweep(s, bits);
	for (uint32_t bits = f->dense_from; bits < f->dense_to; bits += dense) {
		feed_sweep(s, bits);
		feed_sweep(s, bits | 0x80000000);
	}
	while (s->n)
		feed_sweep(s, 0x3f800000);
	tap_ok(s->worst.error <= f->bound, "%s: within %g ulp, worst %.3f at %.9g (%.9g)", f->name, f->bound,
	       s->worst.error, s->worst.x, s->worst.y);
	bench_close(&s->b);
}

static float evaluate_once(const char *name, float x)
{
	struct sweep *s = &(struct sweep){.exact = exp};
	open_sweep(s, name);
	struct image_frame frame = {s->b.buffers, s->b.sizes};
	s->x[0] = x;
	ilir_interpret(s->r, 0, &frame, &(struct image_range){0, 0, 0, 1, 1}, &s->b.diags);
	float y = s->y[0];
	bench_close(&s->b);
	return y;
}

static void check_corner(const char *name, float x, float y)
{
	float got = evaluate_once(name, x);
	tap_ok(isnan(y) ? isnan(got) : got == y && !signbit(got) == !signbit(y), "%s(%g) is %g, got %g", name,
	       x, y, got);
}

static void test_corners(void)
{
	check_corner("exp", INFINITY, INFINITY);
	check_corner("exp", -INFINITY, 0);
	check_corner("exp", 88.72283f, expf(88.72283f));
	check_corner("exp", 88.72285f, INFINITY);
	check_corner("exp", -103.0f, 0x1p-149f);
	check_corner("exp", -104.5f, 0);
	check_corner("exp", NAN, NAN);
	check_corner("exp", -0.0f, 1);
	check_corner("log", 0.0f, -INFINITY);
	check_corner("log", -0.0f, -INFINITY);
	check_corner("log", -1.0f, NAN);
	check_corner("log", -INFINITY, NAN);
	check_corner("log", INFINITY, INFINITY);
	check_corner("log", NAN, NAN);
	check_corner("log", 1.0f, 0);
	check_corner("log1p", 0.0f, 0.0f);
	check_corner("log1p", -0.0f, -0.0f);
	check_corner("log1p", 0x1p-149f, 0x1p-149f);
	check_corner("log1p", -0x1p-149f, -0x1p-149f);
	check_corner("log1p", 0x1p-30f, 0x1p-30f);
	check_corner("log1p", 0x1.fffffep127f, 88.72284f);
	check_corner("log1p", -1.0f, -INFINITY);
	check_corner("log1p", -0x1.000002p0f, NAN);
	check_corner("log1p", -INFINITY, NAN);
	check_corner("log1p", INFINITY, INFINITY);
	check_corner("log1p", NAN, NAN);
	check_corner("sigmoid", INFINITY, 1);
	check_corner("sigmoid", 0.0f, 0.5f);
	check_corner("sigmoid", -0.0f, 0.5f);
	check_corner("sigmoid", -0x1p-149f, 0.5f);
	check_corner("sigmoid", -90.0f, 8.194013e-40f);
	check_corner("sigmoid", -103.0f, 0x1p-149f);
	check_corner("sigmoid", -104.5f, 0);
	check_corner("sigmoid", -INFINITY, 0);
	check_corner("sigmoid", NAN, NAN);
	check_corner("erf", INFINITY, 1);
	check_corner("erf", -INFINITY, -1);
	check_corner("erf", 0.0f, 0.0f);
	check_corner("erf", -0.0f, -0.0f);
	check_corner("erf", 0x1p-149f, 0x1p-149f);
	check_corner("erf", -0x1p-149f, -0x1p-149f);
	check_corner("erf", 4.0f, 1);
	check_corner("erf", NAN, NAN);
	check_corner("sin", 0.0f, 0.0f);
	check_corner("sin", -0.0f, -0.0f);
	check_corner("sin", 0x1p-149f, 0x1p-149f);
	check_corner("sin", -0x1p-149f, -0x1p-149f);
	check_corner("sin", INFINITY, NAN);
	check_corner("sin", -INFINITY, NAN);
	check_corner("sin", NAN, NAN);
	check_corner("cos", 0.0f, 1);
	check_corner("cos", -0.0f, 1);
	check_corner("cos", INFINITY, NAN);
	check_corner("cos", NAN, NAN);
	check_corner("atan", INFINITY, 0x1.921fb6p0f);
	check_corner("atan", -INFINITY, -0x1.921fb6p0f);
	check_corner("atan", 0.0f, 0.0f);
	check_corner("atan", -0.0f, -0.0f);
	check_corner("atan", 0x1p-149f, 0x1p-149f);
	check_corner("atan", -0x1p-149f, -0x1p-149f);
	check_corner("atan", 1.0f, 0x1.921fb6p-1f);
	check_corner("atan", 0x1.fffffep127f, 0x1.921fb6p0f);
	check_corner("atan", NAN, NAN);
	check_corner("round", 0.5f, 0.0f);
	check_corner("round", -0.5f, -0.0f);
	check_corner("round", 1.5f, 2);
	check_corner("round", 2.5f, 2);
	check_corner("round", -3.5f, -4);
	check_corner("round", 0x1.fffffep22f, 0x1p23f);
	check_corner("round", 0x1.000002p23f, 0x1.000002p23f);
	check_corner("round", INFINITY, INFINITY);
	check_corner("round", NAN, NAN);
	check_corner("floor", -0.0f, -0.0f);
	check_corner("floor", 0.75f, 0.0f);
	check_corner("floor", -0.25f, -1);
	check_corner("floor", -0x1p-149f, -1);
	check_corner("floor", 0x1.fffffep22f, 0x1.fffffcp22f);
	check_corner("floor", -INFINITY, -INFINITY);
	check_corner("tanh", INFINITY, 1);
	check_corner("tanh", -INFINITY, -1);
	check_corner("tanh", 0.0f, 0.0f);
	check_corner("tanh", -0.0f, -0.0f);
	check_corner("tanh", 0x1p-149f, 0x1p-149f);
	check_corner("tanh", NAN, NAN);
	check_corner("tanh", -0x1p-149f, -0x1p-149f);
}

static void test_odd(const char *name, float most)
{
	struct sweep *s = &(struct sweep){.exact = NULL};
	bool same = true;
	open_sweep(s, name);
	struct image_frame frame = {s->b.buffers, s->b.sizes};
	for (int i = 0; i < CHUNK; i++)
		s->x[i] = (i % 2 ? -1 : 1) * from_bits(0x30000000 + (i / 2) * 150000);
	ilir_interpret(s->r, 0, &frame, &(struct image_range){0, 0, 0, 1, 1}, &s->b.diags);
	for (int i = 0; i < CHUNK; i += 2)
		same &= s->y[i] == -s->y[i + 1] && fabsf(s->y[i]) <= most;
	tap_ok(same, "%s is odd to the bit and never beyond %g", name, most);
	bench_close(&s->b);
}

int main(int argc, char **argv)
{
	int scale = argc > 1 ? atoi(argv[1]) : 1;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		test_sweep(&functions[i], scale > 0 ? scale : 1);
	test_corners();
	test_odd("tanh", 1);
	test_odd("erf", 1);
	test_odd("sin", 1);
	test_odd("atan", 0x1.921fb6p0f);
	return tap_done();
}
