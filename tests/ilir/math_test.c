/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The expansions of exp, log, log1p, sigmoid, tanh, erf, sin and cos, as interpreted, against libm in double precision. */
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

static void flush(struct sweep *s)
{
	struct image_frame frame = {s->b.buffers, s->b.sizes};
	ilir_interpret(s->r, 0, &frame, &(struct image_range){0, 0, 0, 1, 1}, &s->b.diags);
	for (int i = 0; i < s->n; i++) {
		bool defined = s->limit == 0 || !(fabs(s->x[i]) > s->limit) || isinf(s->x[i]);
		double exact = s->exact(s->x[i]), error = defined ? error_of(s->y[i], exact) : fabs(s->y[i]) <= 1 ? 0 : INFINITY;
		if (error > s->worst.error)
			s->worst = (struct worst){error, s->x[i], s->y[i]};
	}
	s->n = 0;
}

static void feed(struct sweep *s, uint32_t bits)
{
	s->x[s->n++] = from_bits(bits);
	if (s->n == CHUNK)
		flush(s);
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
	    dense_to; /* bits of positive numbers whose like of both signs are looked at more closely */
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
};

/* All floats in strides; `scale` 1 in make check, larger when called with an argument: 1000 is nearly all of
 * them. */
static void sweep(const struct function *f, int scale)
{
	struct sweep *s = &(struct sweep){.exact = f->exact, .limit = f->limit};
	open_sweep(s, f->name);
	uint32_t wide = 2003 / scale | 1, dense = 641 / scale | 1;
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += wide)
		feed(s, bits);
	for (uint32_t bits = f->dense_from; bits < f->dense_to; bits += dense) {
		feed(s, bits);
		feed(s, bits | 0x80000000);
	}
	while (s->n)
		feed(s, 0x3f800000);
	tap_ok(s->worst.error <= f->bound, "%s: within %g ulp, worst %.3f at %.9g (%.9g)", f->name, f->bound,
	       s->worst.error, s->worst.x, s->worst.y);
	bench_close(&s->b);
}

static float once(const char *name, float x)
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

static void corner(const char *name, float x, float y)
{
	float got = once(name, x);
	tap_ok(isnan(y) ? isnan(got) : got == y && !signbit(got) == !signbit(y), "%s(%g) is %g, got %g", name,
	       x, y, got);
}

static void corners(void)
{
	corner("exp", INFINITY, INFINITY);
	corner("exp", -INFINITY, 0);
	corner("exp", 88.72283f, expf(88.72283f));
	corner("exp", 88.72285f, INFINITY);
	corner("exp", -103.0f, 0x1p-149f);
	corner("exp", -104.5f, 0);
	corner("exp", NAN, NAN);
	corner("exp", -0.0f, 1);
	corner("log", 0.0f, -INFINITY);
	corner("log", -0.0f, -INFINITY);
	corner("log", -1.0f, NAN);
	corner("log", -INFINITY, NAN);
	corner("log", INFINITY, INFINITY);
	corner("log", NAN, NAN);
	corner("log", 1.0f, 0);
	corner("log1p", 0.0f, 0.0f);
	corner("log1p", -0.0f, -0.0f);
	corner("log1p", 0x1p-149f, 0x1p-149f);
	corner("log1p", -0x1p-149f, -0x1p-149f);
	corner("log1p", 0x1p-30f, 0x1p-30f);
	corner("log1p", 0x1.fffffep127f, 88.72284f);
	corner("log1p", -1.0f, -INFINITY);
	corner("log1p", -0x1.000002p0f, NAN);
	corner("log1p", -INFINITY, NAN);
	corner("log1p", INFINITY, INFINITY);
	corner("log1p", NAN, NAN);
	corner("sigmoid", INFINITY, 1);
	corner("sigmoid", 0.0f, 0.5f);
	corner("sigmoid", -0.0f, 0.5f);
	corner("sigmoid", -0x1p-149f, 0.5f);
	corner("sigmoid", -90.0f, 8.194013e-40f);
	corner("sigmoid", -103.0f, 0x1p-149f);
	corner("sigmoid", -104.5f, 0);
	corner("sigmoid", -INFINITY, 0);
	corner("sigmoid", NAN, NAN);
	corner("erf", INFINITY, 1);
	corner("erf", -INFINITY, -1);
	corner("erf", 0.0f, 0.0f);
	corner("erf", -0.0f, -0.0f);
	corner("erf", 0x1p-149f, 0x1p-149f);
	corner("erf", -0x1p-149f, -0x1p-149f);
	corner("erf", 4.0f, 1);
	corner("erf", NAN, NAN);
	corner("sin", 0.0f, 0.0f);
	corner("sin", -0.0f, -0.0f);
	corner("sin", 0x1p-149f, 0x1p-149f);
	corner("sin", -0x1p-149f, -0x1p-149f);
	corner("sin", INFINITY, NAN);
	corner("sin", -INFINITY, NAN);
	corner("sin", NAN, NAN);
	corner("cos", 0.0f, 1);
	corner("cos", -0.0f, 1);
	corner("cos", INFINITY, NAN);
	corner("cos", NAN, NAN);
	corner("round", 0.5f, 0.0f);
	corner("round", -0.5f, -0.0f);
	corner("round", 1.5f, 2);
	corner("round", 2.5f, 2);
	corner("round", -3.5f, -4);
	corner("round", 0x1.fffffep22f, 0x1p23f);
	corner("round", 0x1.000002p23f, 0x1.000002p23f);
	corner("round", INFINITY, INFINITY);
	corner("round", NAN, NAN);
	corner("floor", -0.0f, -0.0f);
	corner("floor", 0.75f, 0.0f);
	corner("floor", -0.25f, -1);
	corner("floor", -0x1p-149f, -1);
	corner("floor", 0x1.fffffep22f, 0x1.fffffcp22f);
	corner("floor", -INFINITY, -INFINITY);
	corner("tanh", INFINITY, 1);
	corner("tanh", -INFINITY, -1);
	corner("tanh", 0.0f, 0.0f);
	corner("tanh", -0.0f, -0.0f);
	corner("tanh", 0x1p-149f, 0x1p-149f);
	corner("tanh", NAN, NAN);
	corner("tanh", -0x1p-149f, -0x1p-149f);
}

static void odd(const char *name)
{
	struct sweep *s = &(struct sweep){.exact = NULL};
	bool same = true;
	open_sweep(s, name);
	struct image_frame frame = {s->b.buffers, s->b.sizes};
	for (int i = 0; i < CHUNK; i++)
		s->x[i] = (i % 2 ? -1 : 1) * from_bits(0x30000000 + (i / 2) * 150000);
	ilir_interpret(s->r, 0, &frame, &(struct image_range){0, 0, 0, 1, 1}, &s->b.diags);
	for (int i = 0; i < CHUNK; i += 2)
		same &= s->y[i] == -s->y[i + 1] && fabsf(s->y[i]) <= 1;
	tap_ok(same, "%s is odd to the bit and never beyond 1", name);
	bench_close(&s->b);
}

int main(int argc, char **argv)
{
	int scale = argc > 1 ? atoi(argv[1]) : 1;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		sweep(&functions[i], scale > 0 ? scale : 1);
	corners();
	odd("tanh");
	odd("erf");
	odd("sin");
	return tap_done();
}
