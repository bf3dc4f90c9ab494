/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions of the prelude as each back end computes them: elementwise ones against libm in binary64, within the errors
 * that doc/performance/kernels.md states; of integers to the bit; normalisations against their formulas. */
#include "tests/api/called.h"
#include "tests/floats.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 512, LANES = 16, N = ROWS * LANES };

/* --- functions of f32 --- */

static double sign(double x)
{
	return x > 0 ? 1 : x < 0 ? -1 : x;
}

static const struct function {
	const char *name;
	double (*exact)(double);
	double bound; /* ulp */
	float limit;  /* the largest argument that is tested; 0 = all */
} functions[] = {
    {"sign", sign, 0, 0},     {"ceil", ceil, 0, 0},	{"floor", floor, 0, 0},	  {"trunc", trunc, 0, 0},
    {"atan", atan, 2, 0},     {"tan", tan, 4, 0x1p17f}, {"asin", asin, 4, 0},	  {"acos", acos, 4, 0},
    {"sinh", sinh, 5, 0},     {"cosh", cosh, 5, 0},	{"asinh", asinh, 3, 0},	  {"acosh", acosh, 3, 0},
    {"atanh", atanh, 3, 0},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

/* Special numbers, then numbers of all sizes, of which half are between 2^-10 and 2^7. */
static void draw_floats(float *x)
{
	static const float special[] = {0.0f,	   -0.0f,     0x1p-149f, -0x1p-149f,	   1.0f,
					-1.0f,	   0x1.fffffep-1f, -0x1.fffffep-1f, 0x1.000002p0f, -0x1.000002p0f,
					0.5f,	   -0.5f,     INFINITY,	 -INFINITY,	   NAN,
					88.9f,	   -88.9f,    89.3f,	 -89.3f,	   89.5f,
					10000.0f,  9999.999f, -10000.0f, 0x1.fffffep127f, -0x1.fffffep127f,
					1.5f,	   -2.5f,     0x1p64f,	 -0x1p64f,	   1e-4f};
	enum { SPECIAL = sizeof special / sizeof *special };
	for (int i = 0; i < N; i++) {
		uint32_t near = (127 - 10 + draw() % 17) << 23 | (draw() & 0x807fffff);
		x[i] = i < SPECIAL ? special[i] : from_bits(i % 2 ? near : draw());
	}
}

static void check_function(const struct run *r, const struct function *f, const float *x, const char *backend,
			   const char *math)
{
	double worst = 0, at = 0, got = 0;
	for (int i = 0; i < N; i++) {
		const float *y = row_of(r, f->name, i / LANES);
		double exact = f->exact(x[i]);
		double error = f->limit > 0 && fabsf(x[i]) > f->limit ? 0 : y ? error_of(y[i % LANES], exact) : INFINITY;
		if (y && exact == 0 && x[i] == 0 && !signbit(y[i % LANES]) != !signbit(exact))
			error = INFINITY;
		if (error > worst)
			worst = error, at = x[i], got = y ? y[i % LANES] : NAN;
	}
	tap_ok(worst <= f->bound, "%s of %s, %s: within %g ulp, worst %.3f at %.9g (%.9g)", f->name, backend, math, f->bound,
	       worst, at, got);
}

/* Exact where the quotient is small, of what has a remainder at all. */
static void check_fmod(const struct run *r, const float *x, const float *y, const char *backend, const char *math)
{
	int tested = 0, wrong = 0;
	for (int i = 0; i < N; i++) {
		const float *row = row_of(r, "rest", i / LANES);
		if (fabs((double)x[i] / y[i]) >= 0x1p22 && !isinf(x[i]) && y[i] != 0)
			continue;
		float exact = fmodf(x[i], y[i]), got = row ? row[i % LANES] : exact + 1;
		tested++;
		wrong += isnan(exact) ? !isnan(got) : got != exact;
	}
	tap_ok(tested > N / 3 && wrong == 0, "fmod of %s, %s: exact for %d pairs, not for %d", backend, math,
	       tested - wrong, wrong);
}

static void test_functions(const char *backend, const char *math)
{
	static float x[N], y[N];
	char text[2000] = "model functions\nstructure none\ninput x[16], y[16]\noutput rest = fmod(x, y)\n";
	struct run r;
	for (int i = 0; i < FUNCTIONS; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "output %s = %s(x)\n", functions[i].name,
			 functions[i].name);
	draw_floats(x);
	draw_floats(y);
	for (int i = N / 2; i < N; i++)
		y[i] = x[i - N / 2 + 1];
	const esp_array arrays[] = {{"x", ESP_F32, 2, (const size_t[]){ROWS, LANES}, x},
				    {"y", ESP_F32, 2, (const size_t[]){ROWS, LANES}, y}};
	if (open_run(&r, backend, math, text) &&
	    tap_ok(esp_session_call(r.session, arrays, 2, NULL) == ESP_OK, "%s runs the functions", backend)) {
		for (int i = 0; i < FUNCTIONS; i++)
			check_function(&r, &functions[i], x, backend, math);
		check_fmod(&r, x, y, backend, math);
	}
	close_run(&r);
}

/* --- integers --- */

enum { INTEGERS = 16, PAIRS = INTEGERS * INTEGERS };

static int64_t exact_quotient(int64_t a, int64_t b)
{
	return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t exact_remainder(int64_t a, int64_t b)
{
	return b == 0 ? a : b == -1 ? 0 : a % b;
}

static int64_t exact_modulo(int64_t a, int64_t b)
{
	int64_t rest = exact_remainder(a, b);
	return (rest < 0 && b > 0) || (rest > 0 && b < 0) ? rest + b : rest;
}

static int64_t exact_sign(int64_t a, int64_t b)
{
	(void)b;
	return (a > 0) - (a < 0);
}

static const struct {
	const char *name;
	int64_t (*exact)(int64_t, int64_t);
} integer_functions[] = {
    {"quotient", exact_quotient}, {"remainder", exact_remainder}, {"modulo", exact_modulo}, {"sign", exact_sign}};

/* All pairs of numbers with which division goes wrong, in rows of 16 pairs. */
static void test_integers(const char *backend, bool wide)
{
	static const int64_t narrow_numbers[INTEGERS] = {
	    0, 1, -1, 2, -2, 3, -3, 7, -10, 100, INT32_MAX, INT32_MIN, INT32_MIN + 1, 46341, -65536, 1 << 30};
	static const int64_t wide_numbers[INTEGERS] = {
	    0,	       1,	  -1,	     2,		    -3,	       7,  -10, 100, INT32_MAX, INT32_MIN, 1ll << 32, -(1ll << 40),
	    INT64_MAX, INT64_MIN, INT64_MIN + 1, 3037000500ll};
	static int64_t a64[PAIRS], b64[PAIRS];
	static int32_t a32[PAIRS], b32[PAIRS];
	const char *type = wide ? "i64" : "i32";
	char text[600];
	struct run r;
	for (int i = 0; i < PAIRS; i++) {
		const int64_t *numbers = wide ? wide_numbers : narrow_numbers;
		a64[i] = numbers[i / INTEGERS], b64[i] = numbers[i % INTEGERS];
		a32[i] = (int32_t)a64[i], b32[i] = (int32_t)b64[i];
	}
	snprintf(text, sizeof text,
		 "model integers\nstructure none\ninput a[16] : %s, b[16] : %s\noutput quotient = quotient(a, b)\n"
		 "output remainder = remainder(a, b)\noutput modulo = modulo(a, b)\noutput sign = sign(a)\n"
		 "output least = argmin(a)\noutput least_of_b = argmin(b)\n",
		 type, type);
	const esp_array arrays[] = {
	    {"a", wide ? ESP_I64 : ESP_I32, 2, (const size_t[]){INTEGERS, INTEGERS}, wide ? (void *)a64 : (void *)a32},
	    {"b", wide ? ESP_I64 : ESP_I32, 2, (const size_t[]){INTEGERS, INTEGERS}, wide ? (void *)b64 : (void *)b32}};
	if (open_run(&r, backend, "reassociate", text) &&
	    tap_ok(esp_session_call(r.session, arrays, 2, NULL) == ESP_OK, "%s runs functions of %s", backend, type))
		for (size_t f = 0; f < sizeof integer_functions / sizeof *integer_functions; f++) {
			int wrong = 0;
			for (int i = 0; i < PAIRS; i++) {
				const void *row = row_of(&r, integer_functions[f].name, i / INTEGERS);
				int64_t exact = integer_functions[f].exact(a64[i], b64[i]);
				wrong += !row || (wide ? ((const int64_t *)row)[i % INTEGERS] != exact
						       : ((const int32_t *)row)[i % INTEGERS] != (int32_t)exact);
			}
			tap_ok(wrong == 0, "%s: %s of %s is exact for each pair, not for %d", backend,
			       integer_functions[f].name, type, wrong);
		}
	const int32_t *same = r.session ? row_of(&r, "least", 3) : NULL,
		      *least = r.session ? row_of(&r, "least_of_b", 0) : NULL;
	tap_ok(same && *same == 0, "%s: argmin of equal %s is the first", backend, type);
	tap_ok(least && *least == (wide ? 13 : 11), "%s: argmin of %s finds the least number of the type", backend, type);
	close_run(&r);
}

/* --- normalisations --- */

enum { C = 3, H = 4, W = 5 };

static const char norms[] = "model norms\nstructure none\ninput x[3, 4, 5], gain[3], bias[3], average[3], variance[3]\n"
			    "input wide[5]\n"
			    "output rms = rms_norm(x, wide, 0.01)\n"
			    "output batch = batch_norm(x, gain, bias, average, variance, 0.01, axis=0)\n"
			    "output instance = instance_norm(x, gain, bias, 0.01)\n"
			    "output pool = global_avg_pool(x)\n"
			    "output least = argmin(x, axis=1)\n";

struct norm_inputs {
	float x[C][H][W], gain[C], bias[C], average[C], variance[C], wide[W];
};

static double mean_of(const struct norm_inputs *in, int c)
{
	double sum = 0;
	for (int i = 0; i < H * W; i++)
		sum += in->x[c][i / W][i % W];
	return sum / (H * W);
}

static double exact_rms(const struct norm_inputs *in, int c, int i, int j)
{
	double squares = 0;
	for (int k = 0; k < W; k++)
		squares += (double)in->x[c][i][k] * in->x[c][i][k];
	return in->x[c][i][j] / sqrt(squares / W + 0.01) * in->wide[j];
}

static double exact_batch(const struct norm_inputs *in, int c, int i, int j)
{
	return (in->x[c][i][j] - in->average[c]) / sqrt(in->variance[c] + 0.01) * in->gain[c] + in->bias[c];
}

static double exact_instance(const struct norm_inputs *in, int c, int i, int j)
{
	double mean = mean_of(in, c), squares = 0;
	for (int k = 0; k < H * W; k++)
		squares += (in->x[c][k / W][k % W] - mean) * (in->x[c][k / W][k % W] - mean);
	return (in->x[c][i][j] - mean) / sqrt(squares / (H * W) + 0.01) * in->gain[c] + in->bias[c];
}

static void check_norm(const struct run *r, const struct norm_inputs *in, const char *name,
		       double (*exact)(const struct norm_inputs *, int, int, int), const char *backend)
{
	const float *y = row_of(r, name, 0);
	double worst = y ? 0 : INFINITY;
	for (int i = 0; y && i < C * H * W; i++) {
		double wanted = exact(in, i / (H * W), i / W % H, i % W), error = fabs(y[i] - wanted) / (1 + fabs(wanted));
		worst = error > worst || isnan(error) ? error : worst;
	}
	tap_ok(worst < 1e-6, "%s of %s is its formula, to %.1e", name, backend, worst);
}

static void check_reductions(const struct run *r, const struct norm_inputs *in, const char *backend)
{
	const float *pool = row_of(r, "pool", 0);
	const int32_t *least = row_of(r, "least", 0);
	bool pools = pool, places = least;
	for (int c = 0; pools && c < C; c++)
		pools = fabs(pool[c] - mean_of(in, c)) < 1e-6;
	for (int c = 0; places && c < C; c++)
		for (int j = 0; j < W; j++)
			for (int i = 0, at = least[c * W + j]; i < H; i++)
				places &= at >= 0 && at < H &&
					  (i < at ? in->x[c][at][j] < in->x[c][i][j] : in->x[c][at][j] <= in->x[c][i][j]);
	tap_ok(pools, "%s: global_avg_pool is the mean of each channel", backend);
	tap_ok(places, "%s: argmin along an axis is the first of the least", backend);
}

static void test_norms(const char *backend)
{
	struct norm_inputs in;
	struct run r;
	float *all = &in.x[0][0][0];
	for (size_t i = 0; i < sizeof in / sizeof(float); i++)
		all[i] = (float)(draw() % 2001) / 500 - 2;
	for (int c = 0; c < C; c++)
		in.variance[c] = fabsf(in.variance[c]);
	in.x[1][2][3] = in.x[1][0][3];
	static const size_t of_image[] = {C, H, W}, of_channels[] = {C}, of_row[] = {W};
	const esp_array arrays[] = {{"x", ESP_F32, 3, of_image, in.x},		   {"gain", ESP_F32, 1, of_channels, in.gain},
				    {"bias", ESP_F32, 1, of_channels, in.bias},	   {"average", ESP_F32, 1, of_channels, in.average},
				    {"variance", ESP_F32, 1, of_channels, in.variance}, {"wide", ESP_F32, 1, of_row, in.wide}};
	if (open_run(&r, backend, "reassociate", norms) &&
	    tap_ok(esp_session_call(r.session, arrays, 6, NULL) == ESP_OK, "%s runs normalisations", backend)) {
		check_norm(&r, &in, "rms", exact_rms, backend);
		check_norm(&r, &in, "batch", exact_batch, backend);
		check_norm(&r, &in, "instance", exact_instance, backend);
		check_reductions(&r, &in, backend);
	}
	close_run(&r);
}

/* --- movement --- */

static void test_movement(const char *backend)
{
	static const char text[] = "model movement\nstructure none\ninput x[3, 4, 5], w[4, 5], z[5], rows[4] : i32\n"
				   "output large = resize(x, 2)\noutput some = gather(w, rows)\noutput few = gather(z, rows)\n";
	static const size_t of_image[] = {C, H, W}, of_rows[] = {H}, of_matrix[] = {H, W}, of_row[] = {W};
	static const int32_t rows[H] = {3, 0, 3, 1};
	float x[C * H * W];
	struct run r;
	for (int i = 0; i < C * H * W; i++)
		x[i] = (float)i;
	const esp_array arrays[] = {{"x", ESP_F32, 3, of_image, x}, {"w", ESP_F32, 2, of_matrix, x}, {"z", ESP_F32, 1, of_row, x}, {"rows", ESP_I32, 1, of_rows, rows}};
	if (open_run(&r, backend, "exact", text) &&
	    tap_ok(esp_session_call(r.session, arrays, 4, NULL) == ESP_OK, "%s moves elements", backend)) {
		const float *large = row_of(&r, "large", 0), *some = row_of(&r, "some", 0), *few = row_of(&r, "few", 0);
		int wrong = 0;
		for (int i = 0; i < C * 2 * H * 2 * W; i++)
			wrong += large[i] != x[i / (4 * H * W) * H * W + i / (2 * W) % (2 * H) / 2 * W + i % (2 * W) / 2];
		for (int i = 0; i < H * W; i++)
			wrong += some[i] != x[rows[i / W] * W + i % W];
		for (int i = 0; i < H; i++)
			wrong += few[i] != x[rows[i]];
		tap_ok(wrong == 0, "%s: resize and gather take the elements that they name", backend);
	}
	close_run(&r);
}

static void test_backend(const char *backend)
{
	test_movement(backend);
	test_functions(backend, "exact");
	test_functions(backend, "reassociate");
	test_integers(backend, false);
	test_integers(backend, true);
	test_norms(backend);
}

int main(void)
{
	skip_backends();
	test_backend("interpreter");
	for (int i = 0; backend_at(i); i++)
		test_backend(backend_at(i));
	return tap_done();
}
