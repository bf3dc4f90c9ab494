/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* exp, log, log1p, sigmoid, tanh, both as in `fast` and to 4 and 5 decimal places, erf, sin, cos, atan and sqrt as
 * compiled, against libm in binary64: the errors that doc/performance/kernels.md states.  One float in
 * ESPALIER_STRIDE, 499 by default; `make check-long` takes every one. */
#include "tests/floats.h"
#include "tests/jit/helper.h"

#include <pthread.h>
#include <unistd.h>

enum { CHUNK = 4096, LANES = 8, THREADS_MAX = 64 };

/* The sigmoid of `fast`. */
static double limited_sigmoid(double x)
{
	return exact_sigmoid(x < -87 ? -87 : x);
}

static const struct function {
	enum ilir_op op;
	const char *name;
	double (*exact)(double);
	double bound; /* ulp, or of the difference if absolute */
	float limit;  /* beyond it, the result need only be in -1..1; 0 = none */
	bool absolute; /* and no result may be outside of 0..1, or -1..1 */
} functions[] = {
    {ILIR_EXP, "exp", exp, 2, 0, false},
    {ILIR_LOG, "log", log, 1.5, 0, false},
    {ILIR_LOG1P, "log1p", log1p, 2, 0, false},
    {ILIR_SIGMOID, "sigmoid", exact_sigmoid, 3.5, 0, false},
    {ILIR_TANH, "tanh", tanh, 2.6, 0, false},
    {ILIR_QUICK_SIGMOID, "quick_sigmoid", limited_sigmoid, 6, 0, false},
    {ILIR_QUICK_TANH, "quick_tanh", tanh, 6, 0, false},
    {ILIR_SIGMOID_4, "sigmoid_4", exact_sigmoid, 2.3e-5, 0, true},
    {ILIR_SIGMOID_5, "sigmoid_5", exact_sigmoid, 7e-7, 0, true},
    {ILIR_TANH_4, "tanh_4", tanh, 4.5e-5, 0, true},
    {ILIR_TANH_5, "tanh_5", tanh, 1.2e-6, 0, true},
    {ILIR_ERF, "erf", erf, 1.25, 0, false},
    {ILIR_SIN, "sin", sin, 1.7, 0x1p17f, false},
    {ILIR_COS, "cos", cos, 1.7, 0x1p17f, false},
    {ILIR_ATAN, "atan", atan, 2, 0, false},
    {ILIR_SQRT, "sqrt", sqrt, 0.5, 0, false},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* y[n] = function(x[n]): a kernel for each. */
static void build(struct fixture *f)
{
	ilir_buffer y = buffer_of(f, "y", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	for (int i = 0; i < FUNCTIONS; i++) {
		ilir_var n = index_var(f, "n");
		ilir_expr at = ramp(f, ref(f, n), LANES);
		ilir_expr of = ilir_expand_compound(
		    &f->m, ilir_unary(&f->m, functions[i].op, ilir_load(&f->m, x, &at, 1)));
		kernel(f, functions[i].name, over_rows(f, n, LANES, ilir_store(&f->m, y, &at, 1, of)));
	}
}

/* One thread's share of the floats: chunks first, first + by, ... */
struct share {
	const struct function *f;
	image_kernel *kernel;
	uint64_t first, by, stride;
	double error;
	float x, y;
};

/* A NaN must be one, of any sign. */
static double find_difference(const struct function *f, float y, double exact)
{
	double least = f->exact == tanh ? -1 : 0;
	return isnan(exact) ? (isnan(y) ? 0 : INFINITY) : y >= least && y <= 1 ? fabs(y - exact) : INFINITY;
}

static double find_error(const struct function *f, float x, float y)
{
	bool far = f->limit > 0 && fabsf(x) > f->limit && !isinf(x);
	if (f->absolute)
		return find_difference(f, y, f->exact(x));
	return far ? (fabsf(y) <= 1 ? 0 : INFINITY) : error_of(y, f->exact(x));
}

static void check_chunk(struct share *s, uint64_t from, float *x, float *y)
{
	for (int i = 0; i < CHUNK; i++) {
		uint32_t bits = from + i * s->stride; /* wraps at the end: some twice */
		memcpy(&x[i], &bits, sizeof bits);
	}
	s->kernel((void *[]){y, x}, 0, CHUNK, 0, 1, 1);
	for (int i = 0; i < CHUNK; i++) {
		double error = find_error(s->f, x[i], y[i]);
		if (error > s->error)
			s->error = error, s->x = x[i], s->y = y[i];
	}
}

static void *sweep(void *context)
{
	struct share *s = context;
	float *x = aligned(CHUNK * sizeof *x), *y = aligned(CHUNK * sizeof *y);
	uint64_t step = CHUNK * s->stride;
	for (uint64_t from = s->first * step; from <= UINT32_MAX; from += s->by * step)
		check_chunk(s, from, x, y);
	free(x);
	free(y);
	return NULL;
}

static void check(const struct function *f, image_kernel *kernel, int threads, uint64_t stride)
{
	struct share share[THREADS_MAX], worst = {0};
	pthread_t thread[THREADS_MAX];
	bool started[THREADS_MAX];
	for (int i = 0; i < threads; i++) {
		share[i] = (struct share){f, kernel, i, threads, stride, 0, 0, 0};
		started[i] = pthread_create(&thread[i], NULL, sweep, &share[i]) == 0;
		if (!started[i])
			sweep(&share[i]);
	}
	for (int i = 0; i < threads; i++) {
		if (started[i])
			pthread_join(thread[i], NULL);
		worst = share[i].error >= worst.error ? share[i] : worst;
	}
	tap_ok(worst.error <= f->bound, "%s: within %g%s, worst %.4g at %.9g (%.9g)", f->name, f->bound,
	       f->absolute ? "" : " ulp", worst.error, worst.x, worst.y);
}

static uint64_t stride_of(const char *text)
{
	uint64_t stride = text ? strtoull(text, NULL, 10) : 0;
	return stride ? stride : 499;
}

static void test_all(void)
{
	struct fixture f;
	struct image_code code;
	fixture_init(&f, "functions");
	build(&f);
	bool ok = compile_for(&f, "native", true, &code);
	tap_ok(ok, "compiled");
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; ok && i < FUNCTIONS; i++)
		check(&functions[i], code.kernels[i],
		      cores < 1		    ? 1
		      : cores > THREADS_MAX ? THREADS_MAX
					    : cores,
		      stride_of(getenv("ESPALIER_STRIDE")));
	if (ok)
		image_code_release(&code);
	fixture_free(&f);
}

int main(void)
{
	return over_backends(test_all);
}
