/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pooling, padding and normalisation in groups, the functions of the prelude, against loops in C: with
 * arguments by place and by name, and with their defaults, by each back end. */
#include "tests/api/called.h"

#include <math.h>
#include <stdio.h>

enum { C = 4, H = 9, W = 7, K = 6, U = 3, MOST = 4000 };

/* How a window moves over an image. */
struct window {
	int size, stride, pad, dilation, groups;
};

static const char text[] =
    "model windows\nstructure none\ninput image[4, 9, 7], full[6, 4, 3, 3], halves[6, 2, 3, 3], each[4, 1, "
    "3, 3]\n"
    "input line[4, 9], taps[6, 4, 3], gain[4], bias[4]\n"
    "input shift[6]\n"
    "def twice(x, by=2, again=by) = x * by * again\n"
    "output plain = conv(image, full)\n"
    "output strided = conv(image, full, stride=2, pad=1)\n"
    "output dilated = conv(image, full, pad=2, dilation=2)\n"
    "output placed = conv(image, full, 3, 2, 2)\n"
    "output grouped = conv(image, halves, stride=2, pad=1, groups=2)\n"
    "output depthwise = conv(image, each, groups=4, pad=1)\n"
    "output of_line = conv1d(line, taps, stride=2, pad=1)\n"
    "output largest = max_pool(image, 3, pad=1, stride=2)\n"
    "output halved = max_pool(image, 2)\n"
    "output averaged = avg_pool(image, size=3, stride=1, pad=1)\n"
    "output padded = pad(image, 2)\n"
    "output normal = group_norm(image, 2, gain, bias, 0.01)\n"
    "output eightfold = twice(gain, again=4)\n"
    "output fourfold = twice(gain)\n"
    "output ninefold = twice(again=3, by=3, x=gain)\n"
    "node:\n"
    "    images = reshape(concat(image, 2 * image, axis=0), 2, 4, 9, 7)\n"
    "    lines = reshape(concat(line, 2 * line, axis=0), 2, 4, 9)\n"
    "output shifted = conv(image, full, stride=2, bias=shift)\n"
    "output both = conv(images, full, stride=2, pad=1)\n"
    "output both_shifted = conv(images, halves, groups=2, bias=shift)\n"
    "output both_lines = conv1d(lines, taps, stride=2, pad=1, bias=shift)\n"
    "output both_largest = max_pool(images, 3, pad=1, stride=2)\n"
    "output both_averaged = avg_pool(images, 2)\n";

static struct {
	float image[C][H][W], full[K][C][U][U], halves[K][C / 2][U][U], each[C][1][U][U], line[C][H],
	    taps[K][C][U], gain[C], bias[C], shift[K];
} in;

static double result[MOST];

static int places(int extent, const struct window *w)
{
	return (extent + 2 * w->pad - w->dilation * (w->size - 1) - 1) / w->stride + 1;
}

static double pixel(int c, int i, int j, double outside)
{
	return i >= 0 && i < H && j >= 0 && j < W ? in.image[c][i][j] : outside;
}

/* Fills `result`; returns how many elements it has. */
static int convolve(const float *weights, int outputs, const struct window *w)
{
	int rows = places(H, w), columns = places(W, w), inputs = C / w->groups, n = 0;
	for (int k = 0; k < outputs; k++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++, n++) {
				result[n] = 0;
				for (int t = 0; t < inputs * U * U; t++) {
					int c = k / (outputs / w->groups) * inputs + t / (U * U);
					int u = t / U % U, v = t % U;
					result[n] += (double)weights[k * inputs * U * U + t] *
						     pixel(c, i * w->stride + u * w->dilation - w->pad,
							   j * w->stride + v * w->dilation - w->pad, 0);
				}
			}
	return n;
}

static int pool(bool largest, const struct window *w)
{
	int rows = places(H, w), columns = places(W, w), n = 0;
	for (int c = 0; c < C; c++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++, n++) {
				result[n] = largest ? -INFINITY : 0;
				for (int t = 0; t < w->size * w->size; t++) {
					double x = pixel(c, i * w->stride + t / w->size - w->pad,
							 j * w->stride + t % w->size - w->pad, largest ? -INFINITY : 0);
					result[n] = largest ? fmax(result[n], x) : result[n] + x / (w->size * w->size);
				}
			}
	return n;
}

static int convolve_line(int stride, int pad)
{
	int n = 0, rows = (H + 2 * pad - U) / stride + 1;
	for (int k = 0; k < K; k++)
		for (int i = 0; i < rows; i++, n++) {
			result[n] = 0;
			for (int t = 0; t < C * U; t++) {
				int at = i * stride + t % U - pad;
				result[n] += at >= 0 && at < H ? (double)in.taps[k][t / U][t % U] * in.line[t / U][at] : 0;
			}
		}
	return n;
}

static int surround(int size)
{
	int n = 0;
	for (int c = 0; c < C; c++)
		for (int i = -size; i < H + size; i++)
			for (int j = -size; j < W + size; j++)
				result[n++] = pixel(c, i, j, 0);
	return n;
}

static int normalise(int groups)
{
	int of_group = C / groups * H * W;
	for (int g = 0; g < groups; g++) {
		const float *x = &in.image[g * (C / groups)][0][0];
		double mean = 0, squares = 0;
		for (int i = 0; i < of_group; i++)
			mean += x[i] / (double)of_group;
		for (int i = 0; i < of_group; i++)
			squares += (x[i] - mean) * (x[i] - mean);
		for (int i = 0; i < of_group; i++) {
			int at = g * of_group + i, c = at / (H * W);
			result[at] = (x[i] - mean) / sqrt(squares / of_group + 0.01) * in.gain[c] + in.bias[c];
		}
	}
	return C * H * W;
}

static int scale(double by)
{
	for (int c = 0; c < C; c++)
		result[c] = in.gain[c] * by;
	return C;
}

/* Appends the same of an image whose elements are doubled, then adds the shift of its channel to each. */
static int batch(int n, bool shifted)
{
	for (int i = 0; i < 2 * n; i++)
		result[i] = i < n ? result[i] : 2 * result[i - n];
	for (int i = 0; shifted && i < 2 * n; i++)
		result[i] += in.shift[i % n / (n / K)];
	return 2 * n;
}

static size_t elements_of(const struct run *r, const char *output)
{
	for (size_t i = 0; esp_program_output(r->program, i); i++)
		if (strcmp(esp_program_output(r->program, i)->name, output) == 0)
			return esp_program_output(r->program, i)->elements;
	return 0;
}

static void check(const struct run *r, const char *output, int n, const char *backend)
{
	const float *y = row_of(r, output, 0);
	double worst = y && (int)elements_of(r, output) == n ? 0 : INFINITY;
	for (int i = 0; worst < INFINITY && i < n; i++) {
		double error = fabs(y[i] - result[i]) / (1 + fabs(result[i]));
		worst = error > worst || isnan(error) ? error : worst;
	}
	tap_ok(worst < 1e-5, "%s: %s has %d elements, each right to %.1e", backend, output, n, worst);
}

static void check_all(const struct run *r, const char *b)
{
	check(r, "plain", convolve(&in.full[0][0][0][0], K, &(struct window){U, 1, 0, 1, 1}), b);
	check(r, "strided", convolve(&in.full[0][0][0][0], K, &(struct window){U, 2, 1, 1, 1}), b);
	check(r, "dilated", convolve(&in.full[0][0][0][0], K, &(struct window){U, 1, 2, 2, 1}), b);
	check(r, "placed", convolve(&in.full[0][0][0][0], K, &(struct window){U, 3, 2, 2, 1}), b);
	check(r, "grouped", convolve(&in.halves[0][0][0][0], K, &(struct window){U, 2, 1, 1, 2}), b);
	check(r, "depthwise", convolve(&in.each[0][0][0][0], C, &(struct window){U, 1, 1, 1, 4}), b);
	check(r, "of_line", convolve_line(2, 1), b);
	check(r, "largest", pool(true, &(struct window){3, 2, 1, 1, 1}), b);
	check(r, "halved", pool(true, &(struct window){2, 2, 0, 1, 1}), b);
	check(r, "averaged", pool(false, &(struct window){3, 1, 1, 1, 1}), b);
	check(r, "padded", surround(2), b);
	check(r, "normal", normalise(2), b);
	check(r, "eightfold", scale(8), b);
	check(r, "fourfold", scale(4), b);
	check(r, "ninefold", scale(9), b);
	check(r, "shifted",
	      batch(convolve(&in.full[0][0][0][0], K, &(struct window){U, 2, 0, 1, 1}), true) / 2, b);
	check(r, "both", batch(convolve(&in.full[0][0][0][0], K, &(struct window){U, 2, 1, 1, 1}), false), b);
	check(r, "both_shifted",
	      batch(convolve(&in.halves[0][0][0][0], K, &(struct window){U, 1, 0, 1, 2}), true), b);
	check(r, "both_lines", batch(convolve_line(2, 1), true), b);
	check(r, "both_largest", batch(pool(true, &(struct window){3, 2, 1, 1, 1}), false), b);
	check(r, "both_averaged", batch(pool(false, &(struct window){2, 2, 0, 1, 1}), false), b);
}

static void test_backend(const char *backend)
{
	struct run r;
	const esp_array arrays[] = {{"image", ESP_F32, 3, (const size_t[]){C, H, W}, in.image},
				    {"full", ESP_F32, 4, (const size_t[]){K, C, U, U}, in.full},
				    {"halves", ESP_F32, 4, (const size_t[]){K, C / 2, U, U}, in.halves},
				    {"each", ESP_F32, 4, (const size_t[]){C, 1, U, U}, in.each},
				    {"line", ESP_F32, 2, (const size_t[]){C, H}, in.line},
				    {"taps", ESP_F32, 3, (const size_t[]){K, C, U}, in.taps},
				    {"gain", ESP_F32, 1, (const size_t[]){C}, in.gain},
				    {"bias", ESP_F32, 1, (const size_t[]){C}, in.bias},
				    {"shift", ESP_F32, 1, (const size_t[]){K}, in.shift}};
	if (open_run(&r, backend, "reassociate", text) &&
	    tap_ok(esp_session_call(r.session, arrays, 9, NULL) == ESP_OK, "%s runs windows", backend))
		check_all(&r, backend);
	close_run(&r);
}

int main(void)
{
	float *all = &in.image[0][0][0];
	for (size_t i = 0; i < sizeof in / sizeof(float); i++)
		all[i] = (float)((i * 7919 + 13) % 997) / 400 - 1.2f;
	skip_backends();
	test_backend("interpreter");
	for (int i = 0; backend_at(i); i++)
		test_backend(backend_at(i));
	return tap_done();
}
